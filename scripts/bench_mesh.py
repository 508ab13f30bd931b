"""Speed and memory of the mesh, measured here and printed as JSON: CPU seconds, medians of several runs.

    python scripts/bench_mesh.py [--runs 5] [--packets 1000000]

Speeds of other simulators were measured once, on the same kind of machine and with the same load: BookSim2 (-O3, one
virtual channel, buffers of 7 flits) and the SystemC mesh of MatchLib routers that gave the reference measurements. Only
their speed is compared; BookSim2's router is another one.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import simpy

from cosa.model.arch import load_architecture
from nocsim.machine.conductor import Conductor
from nocsim.machine.network import MeshNetwork, Message
from nocsim.mesh import kernel as k
from nocsim.mesh.mesh import Mesh
from nocsim.mesh.state import MeshState
from nocsim.mesh.topology import Topology
from nocsim.traffic.patterns import Pattern
from nocsim.traffic.synthetic import SyntheticTraffic

ROOT = Path(__file__).resolve().parents[1]
END_TO_END = ROOT / "tests" / "data" / "endtoend"
PACKET_FLITS = 5

# load: columns, rows, flits/node/cycle, cycles of a run, target, BookSim2, SystemC mesh (cycles a second)
LOADS = {
    "4x4_uniform_0.20": (4, 4, 0.20, 200_000, 3_000_000, 110_000, 13_800),
    "8x8_uniform_0.10": (8, 8, 0.10, 60_000, 1_200_000, 27_600, 3_800),
    "16x16_uniform_0.05": (16, 16, 0.05, 20_000, 300_000, None, None),
}

START_UP = """
import time
import numba
started = time.process_time()
from nocsim.mesh.mesh import Mesh
mesh = Mesh(4, 4)
mesh.submit(0, [3, 15], 1, 5)
mesh.run(1000)
print(time.process_time() - started)
"""
REPLAY = """
import re, resource, sys, time
from pathlib import Path
from nocsim.traffic.replay import replay_packets_file
started = time.process_time()
summary = replay_packets_file(sys.argv[1], sys.argv[2], 4, 4)
assert summary.complete
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
status = Path("/proc/self/status")
if status.exists():  # on Linux the former starts with the peak of the process that started this one
    peak = int(re.search(r"VmHWM:\\s*(\\d+) kB", status.read_text())[1])
print(time.process_time() - started, peak / 1024)
"""


def kernel_speed(columns: int, rows: int, rate: float, cycles: int) -> float:
    """Simulated cycles a CPU second of the compiled loop; the packets are handed over before the clock runs."""
    n = columns * rows
    rng = np.random.default_rng(1)
    cycle, src = np.nonzero(rng.random((cycles, n)) < rate / PACKET_FLITS)
    dst = (src + rng.integers(1, n, src.size)) % n
    state = MeshState(Topology(columns, rows), 7, 5, stop_at_records=False)
    state.reserve_submissions(cycle.size)
    state.reserve_slots(cycle.size)
    rows_ = state.sub.reshape(-1, 1 << k.SUB_SHIFT)[: cycle.size]
    rows_[:, k.S_CYCLE], rows_[:, k.S_LINK], rows_[:, k.S_ROUTE] = cycle, state.injection_links[src], dst * n
    rows_[:, k.S_FLITS] = rows_[:, k.S_LAST_FLITS] = PACKET_FLITS
    rows_[:, k.S_PACKETS] = rows_[:, k.S_DSTS] = 1
    rows_[:, k.S_TREE] = -1
    state.head[k.SUB_END] = cycle.size
    state.step(0)
    started = time.process_time()
    while state.head[k.CYCLE] < cycles:
        state.step(cycles)
        state.head[k.N_RECORDS] = 0
    return cycles / (time.process_time() - started)


def traffic_speed(columns: int, rows: int, rate: float, cycles: int) -> float:
    """The same with all that ``nocsim traffic`` does: random numbers, packets, statistics."""
    traffic = SyntheticTraffic(Pattern("uniform", Topology(columns, rows)), rate, cycles=cycles)
    started = time.process_time()
    traffic.run()
    return cycles / (time.process_time() - started)


def idle_jump_seconds() -> float:
    """Ten million cycles without a flit between two packets, the second packet included."""
    mesh = Mesh(8, 8)
    mesh.submit(0, 63, 1, PACKET_FLITS)
    while not mesh.idle:
        mesh.run(1 << 40)
    mesh.submit(0, 63, 1, PACKET_FLITS, cycle=mesh.now + 10_000_000)
    started = time.process_time()
    while not mesh.idle:
        mesh.run(1 << 40)
    return time.process_time() - started


# ---- endpoints in SimPy against endpoints in the kernel


Send = tuple[int, int, tuple[int, ...], int, bool]
"""Start cycle, source, destinations, packets, multicast."""


def measured_sends(path: Path) -> list[Send]:
    """The sends of an end-to-end run with the cycle in which each was taken up."""
    text = gzip.decompress(path.read_bytes()).decode()
    return sorted(
        (
            int(row["start"]),
            int(row["actor"]),
            tuple(map(int, row["dests"].split())),
            int(row["size"]),
            row["op"] == "multicast",
        )
        for row in csv.DictReader(io.StringIO(text))
        if row["op"] != "compute"
    )


def in_kernel(sends: list[Send]) -> tuple[float, int]:
    """All messages handed over at once, one call, all reports read: CPU seconds and the cycle of the last delivery.

    Messages in and reports out is the least that endpoints inside the kernel would cost; deciding costs nothing here.
    """
    mesh = Mesh(4, 5)
    state = mesh._state
    started = time.process_time()
    for start, src, dsts, packets, multicast in sends:
        mesh.submit(src, dsts, packets, PACKET_FLITS, multicast=multicast, cycle=start)
    # hand all over and run through the reports, as endpoints inside the kernel would
    rows = [row for _, _, row in sorted(mesh._later)]
    mesh._later.clear()
    for row in rows:
        mesh._hand_over(row)
    state.reserve_slots(len(rows))
    state.rec = np.zeros((len(sends) * 40 + 256) << k.RECORD_SHIFT, dtype=np.int64)
    state.head[k.RECORD_LIMIT] = len(sends) * 40
    state.bind()
    state.step(1 << 40)
    last = max(cycle for _, _, _, cycle in state.records().tolist())
    return time.process_time() - started, last


def in_simpy(sends: list[Send]) -> tuple[float, int]:
    """A process for each endpoint that sends, whole messages, arrivals reported to Python."""
    env = simpy.Environment()
    noc = load_architecture("simba_4x4").noc
    assert noc is not None
    conductor = Conductor(env)
    mesh = Mesh(4, 5)
    network = MeshNetwork(env, mesh, noc, conductor.wake)
    conductor.conduct(mesh, network, None)
    payload = network.packetiser.payload_bytes
    arrivals: list[int] = []

    def actor(own: list[Send]) -> Any:
        for start, src, dsts, packets, _ in own:
            if start > env.now:
                yield env.timeout(start - env.now)
            message: Message = network.send(src, dsts, "inputs", packets * payload, arrived)
            yield message.sent

    def arrived(_: int) -> None:
        arrivals.append(int(env.now))

    for src in sorted({send[1] for send in sends}):
        env.process(actor([send for send in sends if send[1] == src]))
    started = time.process_time()
    env.run()
    return time.process_time() - started, max(arrivals)


def simpy_ratio(runs: int) -> dict[str, dict[str, float]]:
    """Cost of SimPy actors over the kernel alone, for each end-to-end case without DRAM."""
    found = {}
    for path in sorted(END_TO_END.glob("*.no_dram.transactions.csv.gz")):
        sends = measured_sends(path)
        alone, actors = [], []
        for _ in range(runs):
            seconds, last = in_kernel(sends)
            alone.append(seconds)
            seconds, last_simpy = in_simpy(sends)
            actors.append(seconds)
            assert last == last_simpy, "the two ways differ"
        found[path.name.partition(".")[0]] = {
            "cycles": last,
            "kernel_seconds": median(alone),
            "simpy_seconds": median(actors),
            "ratio": median(actors) / median(alone),
        }
    return found


# ---- whole processes


def process(code: str, *arguments: str, **environment: str) -> list[float]:
    """Numbers that a Python process prints."""
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=ROOT, env={**os.environ, **environment}
    )
    return [float(word) for word in done.stdout.split()]


def start_up_seconds(runs: int) -> tuple[float, float]:
    """CPU seconds to import the kernel and run it first, numba itself imported before: no cache, then with one."""
    cold, cached = [], []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            cold += process(START_UP, NUMBA_CACHE_DIR=folder)
            cached += process(START_UP, NUMBA_CACHE_DIR=folder)
    return median(cold), median(cached)


def write_packets(path: Path, n_packets: int) -> None:
    """Random packets for a 4x4 mesh at 0.3 flits/node/cycle."""
    rng = np.random.default_rng(3)
    packets_a_cycle = 16 * 0.3 / PACKET_FLITS
    with path.open("w", encoding="utf-8") as stream:
        stream.write("packet,kind,src,dsts,inject_cycle,n_flits\n")
        cycle = 0
        for start in range(0, n_packets, 100_000):
            n = min(100_000, n_packets - start)
            cycles = cycle + np.sort(rng.integers(0, int(n / packets_a_cycle), n))
            cycle = int(cycles[-1])
            columns = (np.arange(start, start + n), rng.integers(0, 16, n), rng.integers(0, 16, n), cycles)
            stream.write("%d,u,%d,%d,%d,5\n" * n % tuple(np.stack(columns, axis=1).reshape(-1).tolist()))


def replay_memory(n_packets: int) -> dict[str, float]:
    """Peak memory of the replay of a file, and of one a tenth as long."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        packets, deliveries = Path(folder) / "packets.csv", Path(folder) / "deliveries.csv"
        for name, n in (("a_tenth", n_packets // 10), ("all", n_packets)):
            write_packets(packets, n)
            seconds, mebibytes = process(REPLAY, str(packets), str(deliveries))
            found |= {f"{name}_packets": n, f"{name}_peak_mib": mebibytes, f"{name}_packets_per_second": n / seconds}
    return found


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--packets", type=int, default=1_000_000, help="length of the packets file to replay")
    options = parser.parse_args()
    speeds = {}
    kernel_speed(2, 2, 0.1, 100)
    for name, (columns, rows, rate, cycles, target, booksim, systemc) in LOADS.items():
        speed = median(kernel_speed(columns, rows, rate, cycles) for _ in range(options.runs))
        whole = median(traffic_speed(columns, rows, rate, cycles) for _ in range(options.runs))
        speeds[name] = {
            "cycles_per_second": round(speed),
            "with_statistics_cycles_per_second": round(whole),
            "target": target,
            "met": speed >= target,
            "over_booksim2": round(speed / booksim, 1) if booksim else None,
            "over_systemc": round(speed / systemc, 1) if systemc else None,
        }
    jump = median(idle_jump_seconds() for _ in range(options.runs))
    ratios = simpy_ratio(options.runs)
    worst = max((entry["ratio"] for entry in ratios.values()), default=0.0)
    cold, cached = start_up_seconds(min(options.runs, 3))
    memory = replay_memory(options.packets)
    report = {
        "machine": {"python": platform.python_version(), "processor": platform.machine(), "cores": os.cpu_count()},
        "load_average": os.getloadavg()[0],
        "noc": {
            "speed": speeds,
            "idle_jump_10M_cycles": {"seconds": round(jump, 6), "limit": 1e-3, "met": jump < 1e-3},
            "simpy_over_kernel": {"cases": ratios, "limit": 1.5, "met": 0 < worst <= 1.5},
            "start_up": {
                "cold_seconds": round(cold, 3),
                "cached_seconds": round(cached, 3),
                "met": cold <= 5 and cached <= 0.5,
            },
            "replay_memory": memory | {"limit_mib": 300, "met": memory["all_peak_mib"] < 300},
        },
    }
    print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
