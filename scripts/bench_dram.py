"""Speed of the DRAM models, measured here and printed as JSON: requests a second of CPU time, medians of several runs.

    python scripts/bench_dram.py [--runs 5] [--requests 1000000]

Traces are replayed in order from one source, as `dram replay` does without its files; energy and the account of lost
clocks are kept as always. `random` is saturating random reads over 8 GiB, `stream` reads one MB after the other from
address 0, `sparse` has one random read in 200 DRAM clocks. The compiled kernels are loaded before.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from statistics import median

import numpy as np

from dram.devices import load_device
from dram.replay import Replay
from dram.traces import Requests

TARGETS = {"random": 1_000_000, "stream": 1_500_000, "sparse": 1_000_000}
STREAM_BYTES = 1 << 20


def traces(count: int, request_bytes: int) -> dict[str, Requests]:
    """The three traces of so many requests."""
    zero = np.zeros(count, np.int64)
    number = np.arange(count, dtype=np.int64)
    scattered = np.random.default_rng(1).integers(0, (1 << 33) // request_bytes, count) * request_bytes
    stream = number * request_bytes % STREAM_BYTES + number * request_bytes // STREAM_BYTES % 1024 * STREAM_BYTES
    return {
        "random": Requests(zero, zero, scattered),
        "stream": Requests(zero, zero, stream),
        "sparse": Requests(number * 200, zero, scattered),
    }


def requests_per_second(policy: str, requests: Requests, runs: int) -> float:
    """Median over the runs, of CPU time."""
    config = load_device("ddr4_2400_x8")
    if config.controller.policy != policy:
        config = config.with_changes(controller={"policy": policy})
    found = []
    for run in range(runs + 1):
        replay = Replay(config)
        started = time.process_time()
        for _ in replay.run([requests]):
            pass
        elapsed = time.process_time() - started
        if run:  # the first one loads the kernels
            found.append(len(requests.cycles) / elapsed)
    return median(found)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="runs of each trace")
    parser.add_argument("--requests", type=int, default=1_000_000, help="requests of each trace")
    options = parser.parse_args()
    size = load_device("ddr4_2400_x8").request_bytes
    figures = {
        policy: {
            name: round(requests_per_second(policy, requests, options.runs))
            for name, requests in traces(options.requests, size).items()
        }
        for policy in ("frfcfs", "dramsim3")
    }
    report = {
        "machine": {"python": platform.python_version(), "processor": platform.machine(), "cores": os.cpu_count()},
        "load_average": os.getloadavg()[0],
        "requests_per_cpu_second": figures,
        "targets": {name: {"least": least, "met": figures["frfcfs"][name] >= least} for name, least in TARGETS.items()},
    }
    print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
