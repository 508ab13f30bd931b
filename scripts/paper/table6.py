"""Table VI: time to solution, samples and evaluations a layer; and the hybrid with 32 K valid schedules.

Seconds are processor seconds of one thread (all mappers run on one), means over the layers; wall-clock seconds are in
the table of layers. Besides CoSA's program (`published`) the machine program's latency: alone (`any fastest`: proven,
ties left open), and with the least energy of the fastest (`program`). The hybrid's samples are all mappings that its
threads walk past, those of tilings that break a fan-out too, as Timeloop counts them; 32 K: each of 32 threads stops
after 1000 instead of 500. Timeloop's own hybrid with 32 threads was measured on ten layers of ResNet-50
(tests/data/analytical; wall-clock seconds on two cores); those that no time limit cut off are compared.

A time is worth what its answer is. Beside the times stand cycles and energy of each mapper's answers over those of
program, on all layers, and the simulated cycles of the machine program's over those of published, on the eight layers
of `--quick` (of the layers given, if none of these is among them, on the first eight): where a simulation is given up
after 120 s, with what it cannot be below; a layer where that is published's is left out.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, geometric_mean
from typing import Any

from common import (
    FASTEST,
    HERE,
    HYBRID,
    PUBLISHED,
    QUICK_LAYERS,
    Mapper,
    Plan,
    by_layer,
    certificates,
    compare,
    measure,
    program_of,
    random_of,
    ratios,
    start,
    write_csv,
)
from pictures import bars

from cosa.mappers.search_mappers import HybridOptions

PATIENCE = 8.0
"""Times the seconds of a simulation that those of the programs may take."""
HYBRID_32K = Mapper("hybrid 32 K", HybridOptions(victory_condition=1000))


def mean(rows: Sequence[Mapping[str, Any]], mapper: str, value: str) -> float:
    return fmean([row[value] for row in rows if row["entry"] == mapper and row.get(value) is not None])


PUBLISHED_EVALUATION_SECONDS = 379.9 / 16_000
"""Table VI of the paper: the hybrid's seconds over its valid mappings."""


TIMELOOP = HERE.parents[1] / "tests" / "data" / "analytical" / "cosa-scheduler-comparison.csv"


def timeloop_seconds() -> dict[tuple[str, str], float]:
    """What Timeloop's own hybrid with 32 threads took, where no time limit ended it."""
    with TIMELOOP.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["hybrid32_cut_off"] == "False"]
    return {("resnet50", row["layer"]): float(row["hybrid32_s"]) for row in rows}


def quality(plan: Plan, rows: Sequence[Mapping[str, Any]]) -> tuple[dict[str, float], dict[str, int]]:
    """What answers cost over those of better ones, and in how many layers each: analytically and simulated."""
    ours, counts = {}, {}
    for mapper in ("random", "hybrid", "published", "any fastest"):
        for what, value in (("cycles", "timeloop_cycles"), ("energy", "energy_pj")):
            name = f"{mapper}: {what} / program {what}"
            ours[name], counts[name] = ratios(rows, mapper, "program", value)["all"]
    sample = [entry for entry in plan.layers if f"{entry[0]}:{entry[1].layer.name}" in QUICK_LAYERS] or plan.layers[:8]
    programs = (PUBLISHED, FASTEST, program_of(plan, "latency", "analytical"))
    patient = [replace(mapper, patience=PATIENCE) for mapper in programs]
    found = measure(plan, "simba_4x4", patient, simulate=True, layers=sample)
    write_csv(plan.out / "table6_simulated.csv", found)
    known = [row for row in found if row["entry"] != "published" or row.get("simulated_cycles")]
    for mapper in ("any fastest", "program"):
        its = ratios(known, mapper, "published", "at_least_cycles").get("all")
        if its:
            name = f"{mapper}: simulated cycles, at least / published cycles"
            ours[name], counts[name] = its
    return ours, counts


def work(plan: Plan) -> None:
    mappers = [random_of(plan), HYBRID, HYBRID_32K, PUBLISHED, FASTEST, program_of(plan, "latency", "analytical")]
    rows = measure(plan, "simba_4x4", mappers)
    for row in rows:
        row["samples"] = row.get("samples_walked") or row.get("samples_drawn")
    write_csv(plan.out / "table6_layers.csv", rows)
    ours = {f"{mapper.name} seconds a layer": mean(rows, mapper.name, "schedule_cpu_seconds") for mapper in mappers}
    lost, counts = quality(plan, rows)

    def beside_times(mapper: str) -> None:
        ours.update({name: value for name, value in lost.items() if name.startswith(f"{mapper}: ")})

    for name in ("random", "hybrid", "hybrid 32 K"):
        beside_times(name)
        ours[f"{name} samples"] = mean(rows, name, "samples")
        ours[f"{name} drawn one by one"] = mean(rows, name, "samples_drawn")
        ours[f"{name} valid"] = mean(rows, name, "samples_valid")
        ours[f"{name} evaluations"] = mean(rows, name, "evaluations")
        microseconds = 1e6 * ours[f"{name} seconds a layer"] / ours[f"{name} evaluations"]
        ours[f"{name} microseconds an evaluation"] = microseconds
    theirs = timeloop_seconds()
    for program in ("published", "any fastest", "program"):
        seconds = ours["hybrid seconds a layer"] / ours[f"{program} seconds a layer"]
        ours[f"hybrid seconds / {program} seconds"] = seconds
        each = ratios(rows, "hybrid", program, "schedule_cpu_seconds")
        ours[f"hybrid seconds / {program} seconds, geometric mean"] = each["all"][0]
        took = {layer: value for layer, value in by_layer(rows, program, "schedule_seconds").items() if layer in theirs}
        if took:
            name = f"Timeloop's hybrid seconds / {program} seconds"
            ours[name] = geometric_mean([theirs[layer] / value for layer, value in took.items()])
            counts[name] = len(took)
        slow = ours["hybrid evaluations"] * PUBLISHED_EVALUATION_SECONDS / ours[f"{program} seconds a layer"]
        ours[f"hybrid at the published time an evaluation / {program} seconds"] = slow
        beside_times(program)
    ours["hybrid 32 K: less latency, %"] = 100 * (
        1 - 1 / ratios(rows, "hybrid", "hybrid 32 K", "timeloop_cycles")["all"][0]
    )
    ours["hybrid 32 K: seconds / hybrid seconds"] = ours["hybrid 32 K seconds a layer"] / ours["hybrid seconds a layer"]
    for mapper in ("published", "any fastest", "program"):
        found = ratios(rows, "hybrid 32 K", mapper, "timeloop_cycles")
        ours[f"speed-up of {mapper} over hybrid 32 K"] = found["all"][0]
    for program in ("any fastest", "program"):
        ours |= certificates(rows, mapper=program)
    compare(plan, "table6", ours, dict.fromkeys(ours, len(plan.layers)) | counts)
    groups = {mapper.name: {"ours": ours[f"{mapper.name} seconds a layer"]} for mapper in mappers}
    bars(plan.out / "table6.png", groups, "processor seconds a layer", logarithmic=True)


if __name__ == "__main__":
    sys.exit(start(work, __doc__))
