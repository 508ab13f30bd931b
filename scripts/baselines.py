"""Our random and hybrid mappers beside Timeloop's own, layer by layer: are the baselines as good as the originals?

Usage: python scripts/baselines.py [--layers NAME,...] [--seeds N] [--workers N] [--csv FILE]

The file tests/data/analytical/cosa-scheduler-comparison.csv has what Timeloop's mappers found for ten layers of
ResNet-50 on a Simba-like chip whose levels each lie in one row: `simba_4x4` with a mesh of 16x1. Hybrid: 32 logical
threads, 500 valid mappings in a row without a better one. Values are geometric means over seeds. Exit code 1 if our
hybrid needs more than 1.1 times the cycles of Timeloop's, in geometric mean over the layers where Timeloop's was not
cut off by time.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Any

from cosa.api import find_architecture, find_layer
from cosa.common.errors import InputError
from cosa.experiments.pipeline import Point, rows_of
from cosa.mappers.search_mappers import HybridOptions, RandomOptions
from cosa.model.arch import Architecture
from cosa.model.layer import Layer

REFERENCE = Path(__file__).parent.parent / "tests" / "data" / "analytical" / "cosa-scheduler-comparison.csv"
MOST = 1.1
VARIANTS = {"random": RandomOptions(), "hybrid": HybridOptions(), "hybrid_theirs": HybridOptions(as_timeloop=True)}
"""Options of the mappers; `hybrid_theirs` draws and compares as Timeloop's threads do."""


def measure(variant: str, layer: Layer, architecture: Architecture, seeds: int, workers: int) -> dict[str, float]:
    """Geometric mean of the cycles, means of the counts and of the processor time, over seeds."""
    options = [VARIANTS[variant].with_(seed=seed) for seed in range(seeds)]
    rows = rows_of([Point(layer=layer, architecture=architecture, options=one) for one in options], workers=workers)
    result = {f"{variant}_cycles": geometric_mean([row["objective_value"] for row in rows])}
    for name in ("samples_drawn", "samples_walked", "samples_valid"):
        result[f"{variant}_{name}"] = fmean([row[name] or 0 for row in rows])
    return result | {f"{variant}_cpu_seconds": fmean([row["schedule_cpu_seconds"] for row in rows])}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--layers", help="names, separated by commas (all)")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--csv", help="file for all numbers")
    options = parser.parse_args()
    for name in ("seeds", "workers"):
        if getattr(options, name) < 1:
            parser.error(f"--{name}: out of range (found {getattr(options, name)}); allowed: a whole number >= 1")
    with REFERENCE.open(encoding="utf-8") as file:
        theirs = list(csv.DictReader(file))
    names = options.layers.split(",") if options.layers else [row["layer"] for row in theirs]
    architecture = find_architecture("simba_4x4").with_mesh("16x1")
    try:
        layers = {name: find_layer(f"resnet50:{name}") for name in names}
    except InputError as error:
        parser.error(str(error))
    for variant in VARIANTS:  # compiles, or loads what was compiled
        measure(variant, Layer(name="warm", R=1, S=1, P=2, Q=1, C=2, K=1, N=1), architecture, 1, 1)
    rows: list[dict[str, Any]] = []
    print("cycles of random and hybrid, Timeloop's and ours; hybrid: samples walked, valid, processor seconds")
    head = ["layer", "random", "ours", "hybrid", "ours", "ratio", "as T", "walked", "valid", "cpu s"]
    print("{:10}{:>11}{:>11}{:>9}{:>9}{:>6}{:>6}{:>11}{:>8}{:>7}".format(*head))
    for row in theirs:
        if row["layer"] not in layers:
            continue
        ours: dict[str, Any] = {"layer": row["layer"], "hybrid32_cut_off": row["hybrid32_cut_off"]}
        for key in ("cosa_original_cycles", "random_best5_geomean_cycles", "hybrid32_cycles"):
            ours[key] = int(row[key])
        for variant, seeds in (
            ("random", 20 * options.seeds),
            ("hybrid", options.seeds),
            ("hybrid_theirs", options.seeds),
        ):
            ours |= measure(variant, layers[row["layer"]], architecture, seeds, options.workers)
        rows.append(ours)
        ratios = [ours[f"{variant}_cycles"] / ours["hybrid32_cycles"] for variant in ("hybrid", "hybrid_theirs")]
        print(
            f"{ours['layer']:10}{ours['random_best5_geomean_cycles']:>11,}{ours['random_cycles']:>11,.0f}"
            f"{ours['hybrid32_cycles']:>9,}{ours['hybrid_cycles']:>9,.0f}{ratios[0]:>6.2f}{ratios[1]:>6.2f}"
            f"{ours['hybrid_samples_walked']:>11,.0f}{ours['hybrid_samples_valid']:>8,.0f}"
            f"{ours['hybrid_cpu_seconds']:>7.2f}" + (" *" if ours["hybrid32_cut_off"] == "True" else "")
        )
    whole = [row for row in rows if row["hybrid32_cut_off"] == "False"]
    print("* Timeloop's was cut off by time; not in its means\n")

    def against(field: str, base: str, among: list[dict[str, Any]]) -> float:
        return geometric_mean([row[field] / row[base] for row in among])

    code = 0
    if whole:
        ratio = against("hybrid_cycles", "hybrid32_cycles", whole)
        print(f"hybrid, ours / Timeloop's                   {ratio:.2f} (at most {MOST})")
        same = against("hybrid_theirs_cycles", "hybrid32_cycles", whole)
        print(f"hybrid as Timeloop draws and compares       {same:.2f}")
        code = int(ratio > MOST)
    for name, field in (
        ("random, best of 5", "random"),
        ("hybrid", "hybrid"),
        ("hybrid as Timeloop", "hybrid_theirs"),
    ):
        print(f"{name + ', ours / CoSA':44}{against(field + '_cycles', 'cosa_original_cycles', rows):.2f}")
    theirs_random = against("random_best5_geomean_cycles", "cosa_original_cycles", rows)
    print(f"{'random, best of 5, Timeloop / CoSA':44}{theirs_random:.2f}")
    print(f"{'hybrid, Timeloop / CoSA':44}{against('hybrid32_cycles', 'cosa_original_cycles', rows):.2f}")
    if options.csv:
        with Path(options.csv).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return code


if __name__ == "__main__":
    sys.exit(main())
