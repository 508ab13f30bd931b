"""Speed and memory of the whole machine, measured here and printed as JSON: replay of transactions, a whole network.

    python scripts/bench_whole.py [--runs 5] [--workers 2] [--network resnet50] [--arch simba_4x4] [--objective cosa]

`replay` is CoSA's own example (1x1, 56x56, 64 to 64 channels) as the published simulator's transactions, without DRAM
and with the DRAMSim2 policy: CPU seconds from the list of transactions to the times of all, after compilation. The
SystemC simulator needs 5.2 s with DRAM if optimised, 33 s as its build file builds it. `network` is `nocsim run
--network` into an empty cache: every unique layer scheduled and simulated exactly, in a process for each worker; its
CPU time for each worker is what it would take on as many free cores, its
memory is the largest sum over all processes at one moment, pages that they share counted for each (Linux only).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

EXAMPLE = Path(__file__).parents[1] / "tests/data/endtoend"
SYSTEMC_CPU_SECONDS = {"optimised": 5.2, "as its build file builds it": 33.0}
TARGETS = {
    "replay_none_cpu_seconds": 0.05,
    "replay_dramsim2_cpu_seconds": 0.3,
    "network_cpu_seconds_per_worker": 60.0,
    "network_peak_mib": 1024.0,
}


def replay_cpu_seconds(memory: str, variant: str, runs: int) -> tuple[float, int]:
    """Median CPU seconds of the example, and its cycles."""
    from nocsim.published.replay import replay_transactions
    from nocsim.published.transactions import read_transactions

    packed = EXAMPLE / f"example_56_56_64_64.{variant}.transactions.csv.gz"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "transactions.csv"
        path.write_bytes(gzip.decompress(packed.read_bytes()))
        transactions = read_transactions(path)
    cycles = replay_transactions(transactions, 4, 5, memory).total_cycles
    seconds = []
    for _ in range(runs):
        started = time.process_time()
        replay_transactions(transactions, 4, 5, memory)
        seconds.append(time.process_time() - started)
    return median(seconds), cycles


def resident_mib(session: int) -> float:
    """Resident memory of all processes of a session; 0 where there is no /proc."""
    pages = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            if int(fields[3]) == session:
                pages += int(fields[21])
        except (OSError, IndexError):
            continue  # it has ended meanwhile
    return pages * resource.getpagesize() / 2**20


def run_watched(command: Sequence[str]) -> dict[str, float]:
    """Wall and CPU seconds of a command and its children, and their peak memory together."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    peak = 0.0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        while True:
            try:
                process.wait(0.05)
                break
            except subprocess.TimeoutExpired:
                peak = max(peak, resident_mib(process.pid))
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_seconds": wall, "cpu_seconds": cpu, "peak_mib": peak}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="runs of each replay")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--network", default="resnet50")
    parser.add_argument("--arch", default="simba_4x4")
    parser.add_argument("--objective", default="cosa", help="of the schedules; the published one solves fastest")
    options = parser.parse_args()
    figures: dict[str, float] = {}
    for memory, variant in (("none", "no_dram"), ("dramsim2", "dramsim2")):
        seconds, cycles = replay_cpu_seconds(memory, variant, options.runs)
        figures[f"replay_{memory}_cpu_seconds"], figures[f"replay_{memory}_cycles"] = seconds, cycles

    import cosa
    import nocsim

    layers = cosa.load_network(options.network).layers
    nocsim.simulate(
        cosa.schedule(layers[-1].layer, options.arch, objective=options.objective)
    )  # compiles what the workers then load
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).with_name("nocsim")), "run", "--network", options.network]
        command += ["--arch", options.arch, "--workers", str(options.workers), "--cache", folder]
        command += ["--objective", options.objective]
        watched = run_watched(command)
    figures |= {f"network_{name}": value for name, value in watched.items()}
    figures["network_cpu_seconds_per_worker"] = watched["cpu_seconds"] / options.workers
    report = {
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "figures": {name: round(value, 4) for name, value in figures.items()},
        "unique_layers": len(layers),
        "systemc_cpu_seconds_with_dram": SYSTEMC_CPU_SECONDS,
        "targets": {name: {"limit": limit, "met": figures[name] <= limit} for name, limit in TARGETS.items()},
    }
    print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
