#!/usr/bin/env python
"""What smaller last tiles (`cosa schedule --remainders`) save, by the convention exact.

Each row: a layer on an architecture; value of the best schedule found with tiles that divide, of the best with
remainders, by the same search in the same time, their ratio, the second's distance from the bound of any tiles.
"""

from __future__ import annotations

import argparse
from math import exp, log
from statistics import mean

from cosa.mappers.program import ProgramOptions
from cosa.mappers.remainders import with_remainders
from cosa.model.arch import load_architecture
from cosa.model.networks import load_network

LAYERS = (
    "alexnet:input.2",
    "alexnet:input.6",
    "alexnet:223",
    "resnet50:input.83",
    "resnet50:input.138",
    "resnet50:3356",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", nargs="*", default=LAYERS, help="NETWORK:LAYER")
    parser.add_argument("--archs", nargs="*", default=("simba_4x4", "eyeriss_like"))
    parser.add_argument("--objectives", nargs="*", default=("latency", "edp"))
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds a search")
    args = parser.parse_args()
    print(f"{'architecture':13} {'layer':18} {'minimised':9} {'dividing':>10} {'remainders':>10} ratio    gap  covered")
    for arch in args.archs:
        architecture = load_architecture(arch)
        for objective in args.objectives:
            ratios = []
            for name in args.layers:
                network, _, layer = name.partition(":")
                wanted = load_network(network).find(layer).layer
                values = []
                for whole in (True, False):
                    asked = ProgramOptions(objective=objective, time_limit_seconds=args.time_limit)
                    found = with_remainders(wanted, architecture, asked, whole=whole)
                    assert found.provenance.objective_value is not None
                    values.append(found.provenance.objective_value)
                ratios.append(min(values) / values[0])
                covered = " ".join(f"{dim}{wanted.bounds[dim]}:{bound}" for dim, bound in found.padded.items())
                print(
                    f"{arch:13} {name:18} {objective:9} {values[0]:10.4g} {values[1]:10.4g} {ratios[-1]:5.3f} "
                    f"{found.provenance.gap:6.1%}  {covered}",
                    flush=True,
                )
            print(f"{arch:13} {'geometric mean':18} {objective:9} {exp(mean(map(log, ratios))):27.3f}", flush=True)


if __name__ == "__main__":
    main()
