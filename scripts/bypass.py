#!/usr/bin/env python
"""What choosing what levels keep (`--bypass chosen`) saves on ResNet-50 layers, by the analytical model.

Each row: a layer on an architecture, an objective; values with levels as the architecture has them and as chosen, their
ratio, both gaps, CPU seconds of both, and what was chosen.
"""

from __future__ import annotations

import argparse
from itertools import product
from statistics import geometric_mean

from cosa.experiments.pipeline import Point, require_done, run_points
from cosa.mappers.program import ProgramOptions
from cosa.model.arch import load_architecture
from cosa.model.keeping import differences
from cosa.model.networks import load_network

LAYERS = ("input.2", "input.8", "input.40", "input.43", "input.83", "3356")
ARCHITECTURES = ("simba_4x4", "eyeriss_like", "tpu_128x128")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="resnet50")
    parser.add_argument("--layers", nargs="*", default=LAYERS)
    parser.add_argument("--archs", nargs="*", default=ARCHITECTURES)
    parser.add_argument("--objectives", nargs="*", default=("energy", "edp"))
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds a solve")
    args = parser.parse_args()
    names = f"{'architecture':13} {'layer':10} {'minimised':9} {'fixed':>10} {'chosen':>10}"
    print(f"{names} ratio   gaps         CPU s      chosen")
    network = load_network(args.network)
    for arch, objective in product(args.archs, args.objectives):
        architecture, ratios = load_architecture(arch), []
        points = []
        for name, bypass in product(args.layers, ("fixed", "chosen")):
            options = {"objective": objective, "bypass": bypass, "time_limit_seconds": args.time_limit}
            asked = ProgramOptions.of(options | {"model": "analytical"})
            points.append(Point(layer=network.find(name).layer, architecture=architecture, options=asked))
        fixed = None
        for number, outcome in run_points(points):
            require_done(outcome)
            row = outcome["figures"]
            if number % 2 == 0:
                fixed = row
                continue
            assert fixed is not None
            ratios.append(row["objective_value"] / fixed["objective_value"])
            found = points[number].schedule_of(outcome)
            changes = "; ".join(differences(architecture, [entry.keeps for entry in found.innermost_first]))
            each = [f"{one['objective_value']:10.4g}" for one in (fixed, row)]
            each += [f"{ratios[-1]:5.3f}", *(f"{one['gap'] or 0.0:6.2%}" for one in (fixed, row))]
            each += [f"{one['schedule_cpu_seconds']:5.1f}" for one in (fixed, row)]
            print(f"{arch:13} {found.layer.name:10} {objective:9} {' '.join(each)}  {changes}", flush=True)
        print(f"{arch:13} {'geometric mean':20} {geometric_mean(ratios):.3f}", flush=True)


if __name__ == "__main__":
    main()
