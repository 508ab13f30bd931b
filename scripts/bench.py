"""Speed and memory of everything that has a target, measured here and printed as one JSON object.

    python scripts/bench.py [--only main,mesh,dram,analytical,whole,sweep,program]

Each part is a script of its own (`scripts/bench_PART.py`, with options) and runs in a process of its own: `main` is the
main job (scheduling, simulating, first run), `mesh` the router kernel, `dram` the DRAM island, `analytical` the
evaluator, `whole` the whole machine (CoSA's example replayed, all layers of ResNet-50), `sweep`
what a sweep takes beyond its points, `program` the mixed-integer program (`scripts/program.py`).
Machines are shared: look at ratios and medians, and at `load_average` before believing a missed target.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

PARTS = ("main", "mesh", "dram", "analytical", "whole", "sweep", "program")


def main() -> int:
    """Run the parts and print what they print, by part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas")
    wanted = parser.parse_args().only.split(",")
    unknown = [part for part in wanted if part not in PARTS]
    if unknown:
        parser.error(f"no such part: {unknown[0]}; allowed: {', '.join(PARTS)}")
    report: dict[str, object] = {"load_average": os.getloadavg()[0]}
    for part in wanted:
        script = Path(__file__).with_name("program.py" if part == "program" else f"bench_{part}.py")
        print(f"{part} ...", file=sys.stderr, flush=True)
        done = subprocess.run([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, check=True)
        report[part] = json.loads(done.stdout)
    print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
