"""What a sweep takes beyond the time of its points, measured here and printed as JSON.

    python scripts/bench_sweep.py [--layer resnet50:input.8]

One worker runs 100 points of one layer, simulated and then only evaluated. The overhead is everything else in the life
of the command `nocsim sweep`, from start to exit: starting Python and the worker, loading kernels, SQLite. It is given
against the points' own time (the column `seconds`), all in wall-clock time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TARGET = 0.05


def axes(layer: str) -> dict[str, object]:
    """100 points: every one is another machine for the same layer."""
    return {
        "layer": layer,
        "noc.fifo_flits": list(range(7, 32)),
        "noc.flit_bits": [64, 128],
        "dram.channels": [1, 2],
    }


def measure(layer: str, simulate: bool, folder: Path) -> dict[str, float]:
    """Seconds of a sweep and of its points."""
    from nocsim import Sweep
    from nocsim.experiments.sweep.result import read_results

    name = "simulated" if simulate else "evaluated"
    Sweep(name=name, axes=axes(layer), simulate=simulate).to_file(folder / f"{name}.yaml")
    results = folder / f"{name}.db"
    command = [
        sys.executable,
        "-m",
        "nocsim.commands.main",
        "sweep",
        str(folder / f"{name}.yaml"),
        "--results",
        str(results),
    ]
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - started
    rows = read_results(results).rows
    own = sum(row["seconds"] for row in rows)
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    again = time.perf_counter() - started
    return {
        "points": len(rows),
        "wall_seconds": wall,
        "points_seconds": own,
        "overhead_seconds": wall - own,
        "overhead_share": (wall - own) / own,
        "nothing_left_wall_seconds": again,
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layer", default="resnet50:input.8")
    layer = parser.parse_args().layer
    with tempfile.TemporaryDirectory() as folder:
        figures = {name: measure(layer, name == "simulated", Path(folder)) for name in ("simulated", "evaluated")}
    share = figures["simulated"]["overhead_share"]
    report = {
        "load_average": os.getloadavg()[0],
        "figures": {name: {key: round(value, 4) for key, value in part.items()} for name, part in figures.items()},
        "targets": {"simulated.overhead_share": {"limit": TARGET, "met": share <= TARGET}},
    }
    print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
