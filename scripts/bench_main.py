"""Speed of the main job, measured here and printed as JSON. Medians of several runs; times in seconds.

    python scripts/bench_main.py [--runs 5] [--layer input.8]

`solve` is HiGHS alone, one thread, over the 24 unique ResNet-50 layers; processes are whole command lines, from start
to exit; `first run` has an empty cache of compiled kernels. CPU time is the steadier figure on a shared machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import geometric_mean, median

TARGETS = {
    "solve_geomean_wall_seconds": 0.1,
    "schedule_process_wall_seconds": 2.0,
    "run_process_wall_seconds": 10.0,
    "first_run_process_wall_seconds": 60.0,
}


def measure(command: Sequence[str], runs: int, environment: dict[str, str]) -> dict[str, float]:
    """Median wall and CPU seconds of a whole process."""
    walls, cpus = [], []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        walls.append(time.perf_counter() - started)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return {"wall_seconds": median(walls), "cpu_seconds": median(cpus)}


def solve_seconds(runs: int) -> list[float]:
    """Median solver seconds of each unique ResNet-50 layer."""
    import cosa

    found = []
    for entry in cosa.load_network("resnet50").layers:
        timings = [cosa.schedule(entry.layer, "simba_4x4", "published").timing for _ in range(runs)]
        found.append(median(timing.solve_seconds for timing in timings if timing is not None))
    return found


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="runs of each process")
    parser.add_argument("--layer", default="input.8")
    options = parser.parse_args()
    bin_folder = Path(sys.executable).parent
    solves = solve_seconds(3)
    with tempfile.TemporaryDirectory() as folder:
        schedule_file = str(Path(folder) / "schedule.json")
        schedule = [str(bin_folder / "cosa"), "schedule", "--network", "resnet50", "--layer", options.layer]
        schedule += ["--arch", "simba_4x4", "--objective", "cosa", "-o", schedule_file]
        run = [str(bin_folder / "nocsim"), "run", "--schedule", schedule_file, "--mesh", "4x4"]
        environment = dict(os.environ)
        scheduling = measure(schedule, options.runs, environment)
        first = []
        for number in range(3):
            cold = environment | {"NUMBA_CACHE_DIR": str(Path(folder) / f"cache{number}")}
            first.append(measure(run, 1, cold))
        measure(run, 1, environment)
        running = measure(run, options.runs, environment)
    figures = {
        "solve_geomean_wall_seconds": geometric_mean(solves),
        "solve_max_wall_seconds": max(solves),
        "schedule_process_wall_seconds": scheduling["wall_seconds"],
        "schedule_process_cpu_seconds": scheduling["cpu_seconds"],
        "run_process_wall_seconds": running["wall_seconds"],
        "run_process_cpu_seconds": running["cpu_seconds"],
        "first_run_process_wall_seconds": median(entry["wall_seconds"] for entry in first),
        "first_run_process_cpu_seconds": median(entry["cpu_seconds"] for entry in first),
    }
    report = {
        "machine": {"python": platform.python_version(), "processor": platform.machine(), "cores": os.cpu_count()},
        "load_average": os.getloadavg()[0],
        "figures": {name: round(value, 4) for name, value in figures.items()},
        "targets": {name: {"limit": limit, "met": figures[name] <= limit} for name, limit in TARGETS.items()},
    }
    print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
