"""What the mixed-integer programs reach and how long they take, held against targets; one JSON object.

    python scripts/program.py [--only published] [--runs 3]
    python scripts/program.py --only original [--time-limit 60]      (minutes)
    python scripts/program.py --only paper [--time-limit 60]      (minutes)
    python scripts/program.py --only machine,network [--layers 3] [--portfolio]      (minutes)
    python scripts/program.py --only published-machine [--portfolio] [--memories none,dramsim2]      (half an hour)

Sections:

* `published`: the published objective on the 57 unique layers of the paper's four networks, in the published form
  (halo and stride as in CoSA's first release) and with true footprints; aggregated formulation, HiGHS, one
  thread. CPU seconds, medians of the runs: of HiGHS alone, and with building the model and handing it over. `equal`
  counts layers whose optimum is that of the original program (tests/data/cosa, measured elsewhere) to 1e-5.
* `original`: the original program restated (tests/cosa/original_program.py: a binary for each factor, those of 1 too)
  and solved, on the layers of ResNet-50; `equal` counts those whose optimum in the published form is the same to 1e-5.
  Not run unless asked for.
* `paper`: the same layers in the paper's formulation, published form, against the aggregated one: `equal` of those that
  were solved to the gap within the time limit, and the CPU seconds. Not run unless asked for.
* `machine`, `network`: see `scripts/program_machine.py`; not run unless asked for either.
* `published-machine`: see `scripts/program_published_machine.py`; likewise.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

sys.path.append(str(Path(__file__).parent.parent))

from program_machine import machine, network
from program_published_machine import published_machine

from cosa.mip.aggregated import Program
from cosa.mip.paper import PaperProgram
from cosa.mip.quantities import Rules
from cosa.mip.solver import SolverResult, solve
from cosa.model.arch import load_architecture
from cosa.model.layer import Layer
from cosa.model.networks import load_network

REFERENCE = Path(__file__).parent.parent / "tests" / "data" / "cosa" / "published_objectives.csv"
GAP = 1e-4
EQUAL = 1e-5
"""Largest distance of two optima that count as equal: sums of logarithms of some 200."""

TARGETS = {
    "solve_geomean_cpu_seconds": 0.08,
    "solve_max_cpu_seconds": 0.5,
    "with_model_geomean_cpu_seconds": 0.3,
}


def layers() -> Iterator[tuple[str, Layer, float]]:
    """(name, layer, published optimum) of the unique layers of the paper's networks."""
    with REFERENCE.open() as file:
        for row in csv.DictReader(file):
            layer = load_network(row["network"]).find(row["layer"]).layer
            yield f"{row['network']}:{row['layer']}", layer, float(row["objective"])


def solved(
    kind: type[Program], layer: Layer, rules: Rules, time_limit_seconds: float = 60.0
) -> tuple[SolverResult, float]:
    """A layer's result, and the CPU seconds of building the model, handing it over and solving it."""
    started = time.process_time()
    program = kind(layer, load_architecture("simba_4x4"), rules=rules)
    building = time.process_time() - started
    started = time.process_time()
    result = solve(program.model, gap=GAP, threads=1, time_limit_seconds=time_limit_seconds)
    return result, building + time.process_time() - started


def published(options: argparse.Namespace) -> dict[str, Any]:
    """See the module's text."""
    report: dict[str, Any] = {}
    for name, rules in (("as_published", Rules(as_published=True)), ("true_footprints", Rules())):
        alone, whole, names, equal = [], [], [], 0
        for label, layer, reference in layers():
            runs = [solved(Program, layer, rules) for _ in range(options.runs)]
            names.append(label)
            alone.append(median(result.cpu_seconds for result, _ in runs))
            whole.append(median(seconds for _, seconds in runs))
            objective = runs[0][0].objective
            assert objective is not None
            equal += abs(objective - reference) <= EQUAL
        figures = {
            "layers": len(names),
            "solve_geomean_cpu_seconds": geometric_mean(alone),
            "solve_median_cpu_seconds": median(alone),
            "solve_max_cpu_seconds": max(alone),
            "slowest_layer": names[alone.index(max(alone))],
            "with_model_geomean_cpu_seconds": geometric_mean(whole),
            "with_model_max_cpu_seconds": max(whole),
        }
        report[name] = figures | ({"equal": equal} if rules.as_published else {})
    found = report["as_published"]
    report["targets"] = {name: {"limit": limit, "met": found[name] <= limit} for name, limit in TARGETS.items()}
    return report


def original(options: argparse.Namespace) -> dict[str, Any]:
    """See the module's text."""
    from tests.cosa.original_program import original_optimum

    seconds, differences = [], {}
    for label, layer, _ in layers():
        if not label.startswith("resnet50:"):
            continue
        started = time.process_time()
        found, bound = original_optimum(
            layer.bounds, (layer.stride_w, layer.stride_h), gap=GAP / 100, seconds=options.time_limit
        )
        seconds.append(time.process_time() - started)
        ours = solved(Program, layer, Rules(as_published=True))[0].objective
        assert ours is not None
        if abs(found - ours) > EQUAL:
            differences[label] = {"original": found, "bound": bound, "published_form": ours}
        print(f"{label} {found:.6f} (bound {bound:.6f}), ours {ours:.6f}", file=sys.stderr, flush=True)
    return {
        "layers": len(seconds),
        "equal": len(seconds) - len(differences),
        "differences": differences,
        "original_geomean_cpu_seconds": geometric_mean(seconds),
        "original_max_cpu_seconds": max(seconds),
    }


def paper(options: argparse.Namespace) -> dict[str, Any]:
    """See the module's text."""
    rules, seconds, equal, unproven = Rules(as_published=True), [], 0, []
    for label, layer, _ in layers():
        of_paper, _ = solved(PaperProgram, layer, rules, options.time_limit)
        aggregated, _ = solved(Program, layer, rules)
        seconds.append(of_paper.cpu_seconds)
        if of_paper.status != "optimal":
            unproven.append({"layer": label, "status": of_paper.status, "gap": of_paper.gap})
        elif of_paper.objective is not None and aggregated.objective is not None:
            equal += abs(of_paper.objective - aggregated.objective) <= GAP * aggregated.objective
        print(f"{label} {of_paper.status} {of_paper.cpu_seconds:.2f} s", file=sys.stderr, flush=True)
    return {
        "layers": len(seconds),
        "equal": equal,
        "not_proven_in_time": unproven,
        "solve_geomean_cpu_seconds": geometric_mean(seconds),
        "solve_median_cpu_seconds": median(seconds),
        "solve_max_cpu_seconds": max(seconds),
    }


SECTIONS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "published": published,
    "original": original,
    "paper": paper,
    "machine": machine,
    "network": network,
    "published-machine": published_machine,
}
DEFAULT = ("published",)


def main() -> int:
    """Run the sections and print what they find."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(DEFAULT), help="sections, separated by commas")
    parser.add_argument("--runs", type=int, default=3, help="runs of each solve")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds of a solve")
    parser.add_argument(
        "--layers", type=int, help="network: layers of each table (3); published-machine: the first so many (all)"
    )
    parser.add_argument("--portfolio", action="store_true", help="network, published-machine: the portfolio too")
    parser.add_argument("--memories", default="none,dramsim2", help="published-machine: which, separated by commas")
    options = parser.parse_args()
    wanted = options.only.split(",")
    unknown = [section for section in wanted if section not in SECTIONS]
    if unknown:
        parser.error(f"no such section: {unknown[0]}; allowed: {', '.join(SECTIONS)}")
    report: dict[str, Any] = {"load_average": os.getloadavg()[0]}
    report |= {section: SECTIONS[section](options) for section in wanted}
    print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
