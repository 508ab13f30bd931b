#!/usr/bin/env python
"""What choosing what levels keep (`--bypass chosen`) saves on ResNet-50 layers, by the analytical model.

Each row: a layer on an architecture, an objective; values with levels as the architecture has them and as chosen, their
ratio, both gaps, CPU seconds of both, and what was chosen.
"""

from __future__ import annotations

import argparse
import time
from math import exp, log
from statistics import mean

import cosa
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
    for arch in args.archs:
        architecture = load_architecture(arch)
        for objective in args.objectives:
            ratios = []
            for name in args.layers:
                values, gaps, seconds = [], [], []
                for bypass in ("fixed", "chosen"):
                    started = time.process_time()
                    found = cosa.schedule(
                        network.find(name).layer,
                        architecture,
                        objective=objective,
                        model="analytical",
                        bypass=bypass,
                        time_limit_seconds=args.time_limit,
                    )
                    seconds.append(time.process_time() - started)
                    assert found.provenance.objective_value is not None
                    values.append(found.provenance.objective_value)
                    gaps.append(found.provenance.gap or 0.0)
                ratios.append(values[1] / values[0])
                changes = "; ".join(differences(architecture, [entry.keeps for entry in found.innermost_first]))
                print(
                    f"{arch:13} {name:10} {objective:9} {values[0]:10.4g} {values[1]:10.4g} {ratios[-1]:5.3f} "
                    f"{gaps[0]:6.2%} {gaps[1]:6.2%} {seconds[0]:5.1f} {seconds[1]:5.1f}  {changes}",
                    flush=True,
                )
            print(f"{arch:13} {'geometric mean':20} {exp(mean(map(log, ratios))):.3f}", flush=True)


if __name__ == "__main__":
    main()
