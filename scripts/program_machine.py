"""The machine program against what other tools reach, and its prediction against the simulator.

Sections of `scripts/program.py`:

* `machine`: the analytical model on the twelve ResNet-50 layers of tests/data/cosa/best_known.csv; cycles (objective
  latency) and energy times cycles (objective edp), beside the floor, which compute and compulsory DRAM traffic set, and
  the best of other mappers; CPU seconds, proven gap (null: time was up before there was a bound).
* `network`: `--layers` layers, spread evenly, of each of the paper's networks, scheduled by the network model (two
  rounds), and by the portfolio with `--portfolio`: exactly simulated cycles over the prediction and over the
  machine's bound.
"""

from __future__ import annotations

import argparse
import csv
import sys
from itertools import product
from math import log
from pathlib import Path
from statistics import geometric_mean, pstdev
from typing import Any

from cosa.experiments.pipeline import Point, rows_of
from cosa.mappers.program import ProgramOptions
from cosa.model.arch import load_architecture
from cosa.model.networks import load_network
from nocsim.experiments.portfolio_run import portfolio

BEST_KNOWN = Path(__file__).parent.parent / "tests" / "data" / "cosa" / "best_known.csv"
NETWORKS = ("alexnet", "resnet50", "resnext50_32x4d", "deepbench_ocr_face")


def machine(options: argparse.Namespace) -> dict[str, Any]:
    """See the module's text."""
    with BEST_KNOWN.open() as file:
        table = list(csv.DictReader(file))
    points = []
    for row, objective in product(table, ("latency", "edp")):
        asked = {"objective": objective, "model": "analytical", "time_limit_seconds": options.time_limit}
        what = {"layer": load_network("resnet50").find(row["layer"]).layer, "options": ProgramOptions.of(asked)}
        points.append(Point(architecture=load_architecture("simba_4x4"), **what))
    rows = rows_of(points)
    found = []
    for row, latency, edp in zip(table, rows[::2], rows[1::2], strict=True):
        entry: dict[str, Any] = {"layer": row["layer"]}
        for objective, figures in (("latency", latency), ("edp", edp)):
            entry[objective] = {
                "cycles": figures["timeloop_cycles"],
                "uj": figures["energy_pj"] / 1e6,
                "edp_uj_mcycles": figures["timeloop_edp_pj_cycles"] / 1e12,
                "gap": figures["gap"],
                "cpu_seconds": figures["schedule_cpu_seconds"],
            }
        entry["cycles_over_floor"] = entry["latency"]["cycles"] / int(row["floor_cycles"])
        floor_edp = int(row["floor_cycles"]) * float(row["floor_uj"]) / 1e6
        entry["edp_over_floor"] = entry["edp"]["edp_uj_mcycles"] / floor_edp
        entry["edp_over_best_known"] = entry["edp"]["edp_uj_mcycles"] / float(row["best_edp_uj_mcycles"])
        found.append(entry)
        print(row["layer"], entry, file=sys.stderr, flush=True)
    return {
        "layers": found,
        "at_the_latency_floor": sum(entry["cycles_over_floor"] <= 1.000001 for entry in found),
        "edp_over_floor_geomean": geometric_mean(entry["edp_over_floor"] for entry in found),
        "edp_not_above_best_known": sum(entry["edp_over_best_known"] <= 1.0001 for entry in found),
        "proven_within_1_percent": sum(
            entry["edp"]["gap"] is not None and entry["edp"]["gap"] <= 0.0101 for entry in found
        ),
    }


def network(options: argparse.Namespace) -> dict[str, Any]:
    """See the module's text."""
    architecture = load_architecture("simba_4x4")
    count = options.layers or 3
    variants = {"network": ("network",)} | ({"portfolio": None} if options.portfolio else {})
    report: dict[str, Any] = {}
    for name, chosen in variants.items():
        found = []
        for table in NETWORKS:
            rows = load_network(table).layers
            for row in rows[:: max(1, len(rows) // count)][:count]:
                extra = {} if chosen is None else {"variants": chosen, "keep": 1}
                result = portfolio(row.layer, architecture, time_limit_seconds=options.time_limit, **extra).result
                own = [one for one in result.candidates if one.simulated_cycles is not None]
                assert result.machine_bound_cycles is not None
                found.append(
                    {
                        "layer": f"{table}:{row.layer.name}",
                        "simulated_cycles": result.simulated_cycles,
                        "over_bound": result.simulated_cycles / result.machine_bound_cycles,
                        "log_simulated_over_predicted": [
                            log(one.simulated_cycles / one.predicted_cycles)
                            for one in own
                            if one.simulated_cycles is not None
                        ],
                    }
                )
                print(name, found[-1], file=sys.stderr, flush=True)
        residuals = [value for one in found for value in one["log_simulated_over_predicted"]]
        report[name] = {
            "layers": found,
            "simulated_over_bound_geomean": geometric_mean(one["over_bound"] for one in found),
            "schedules": len(residuals),
            "prediction_standard_deviation": pstdev(residuals),
        }
    return report
