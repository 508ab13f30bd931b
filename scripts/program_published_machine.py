"""The program on the published simulator's own machine, against CoSA's published schedules; both replayed.

Section `published-machine` of `scripts/program.py`, on the ResNet-50 layers of tests/data/cosa/published_cycles.csv,
without DRAM and with DRAMSim2. Cycles of:

* `published`: CoSA's schedules as measured with the published program's own simulator; `published_here`: the published
  program solved here (the same objective value; another of its optima on some layers);
* `single`: the machine program's answer after two rounds, nothing simulated; `physical_single`: likewise,
  without schedules that gain from what the generator leaves out;
* `portfolio` (with `--portfolio`): the replay picks among variants and placements; `replayed` says how many.

`bound`: no schedule takes less; seconds are of the processor. Speed-ups are over `published`.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import cosa
from cosa.model.arch import load_architecture
from cosa.model.networks import load_network
from nocsim.published.portfolio import published_portfolio, replayed_cycles

CYCLES = Path(__file__).parent.parent / "tests" / "data" / "cosa" / "published_cycles.csv"

TARGETS = {
    "none": {"single": 1.15, "portfolio": 1.22, "physical_single": 1.11},
    "dramsim2": {"single": 1.14, "portfolio": 1.17, "physical_single": 1.09},
}
LEAST = 0.98
"""No layer may be slower than by this factor."""


def published_machine(options: argparse.Namespace) -> dict[str, Any]:
    """See the module's text."""
    with CYCLES.open() as file:
        rows = list(csv.DictReader(file))[: options.layers or None]
    machine = load_architecture("cosa2021")
    report: dict[str, Any] = {}
    for memory in options.memories.split(","):
        architecture = machine.with_(dram=None) if memory == "none" else machine
        found = []
        for row in rows:
            layer = load_network("resnet50").find(row["layer"]).layer
            here = cosa.schedule(layer, machine, "published", as_published=True)
            here = here.with_architecture(architecture)
            entry: dict[str, Any] = {
                "layer": layer.name,
                "published": int(row[memory]),
                "published_here": replayed_cycles(here),
            }
            for name, physical_only in (("", False), ("physical_", True)):
                started = time.process_time()
                single = cosa.schedule(
                    layer,
                    architecture,
                    model="published-machine",
                    physical_only=physical_only,
                    rounds=2,
                    settle_ties=False,
                )
                entry[f"{name}single_seconds"] = time.process_time() - started
                entry[f"{name}single"] = replayed_cycles(single)
                entry[f"{name}predicted"] = single.provenance.model_cycles
                entry[f"{name}bound"] = single.provenance.machine_bound_cycles
                if options.portfolio and not physical_only:
                    started = time.process_time()
                    chosen = published_portfolio(layer, architecture, physical_only=physical_only).result
                    entry[f"{name}portfolio_seconds"] = time.process_time() - started
                    entry[f"{name}portfolio"] = chosen.simulated_cycles
                    entry[f"{name}replayed"] = chosen.simulated
            found.append(entry)
            print(memory, entry, file=sys.stderr, flush=True)
        report[memory] = {"layers": found, **_summary(found, TARGETS[memory])}
    return report


def _summary(found: list[dict[str, Any]], targets: dict[str, float]) -> dict[str, Any]:
    """Speed-ups in the geometric mean and on the worst layer, and how far the bounds are."""
    summary: dict[str, Any] = {}
    for name in ("single", "portfolio", "physical_single"):
        if name not in found[0]:
            continue
        gains = [entry["published"] / entry[name] for entry in found]
        bound = name.replace("single", "bound").replace("portfolio", "bound")
        summary[name] = {
            "speed_up": geometric_mean(gains),
            "over_published_here": geometric_mean(entry["published_here"] / entry[name] for entry in found),
            "worst_layer": min(gains),
            "over_bound": geometric_mean(entry[name] / entry[bound] for entry in found),
            "seconds_geomean": geometric_mean(entry[f"{name}_seconds"] for entry in found),
        }
        if name in targets:
            summary[name]["target"] = targets[name]
            worst_met = name.startswith("physical") or min(gains) >= LEAST
            summary[name]["met"] = summary[name]["speed_up"] >= targets[name] and worst_met
    summary["published_over_bound"] = geometric_mean(entry["published"] / entry["bound"] for entry in found)
    return summary
