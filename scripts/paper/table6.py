"""Table VI: time to solution, samples and evaluations a layer; and the hybrid with 32 K valid schedules.

Seconds are processor seconds of one thread (all mappers run on one), means over the layers; wall-clock seconds are in
the table of layers. The hybrid's samples are all mappings that its threads walk past, those of tilings that break a
fan-out too, as Timeloop counts them; 32 K: each of 32 threads stops after 1000 instead of 500.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from common import COSA, HYBRID, Mapper, Plan, bars, certified, compare, measure, random_of, ratios, start, write_csv

HYBRID_32K = Mapper("hybrid 32 K", "hybrid", "latency", options={"victory_condition": 1000})


def mean(rows: Sequence[Mapping[str, Any]], mapper: str, value: str) -> float:
    return fmean([row[value] for row in rows if row["mapper"] == mapper and row.get(value) is not None])


PUBLISHED_EVALUATION_SECONDS = 379.9 / 16_000
"""Table VI of the paper: the hybrid's seconds over its valid mappings."""


def work(plan: Plan) -> None:
    mappers = [random_of(plan), HYBRID, HYBRID_32K, COSA, certified(plan, "latency", "analytical")]
    rows = measure(plan, "simba_4x4", mappers)
    for row in rows:
        row["samples"] = row.get("samples_walked") or row.get("samples_drawn")
    write_csv(plan.out / "table6_layers.csv", rows)
    ours = {f"{mapper.name} seconds a layer": mean(rows, mapper.name, "cpu_seconds") for mapper in mappers}
    for name in ("random", "hybrid", "hybrid 32 K"):
        ours[f"{name} samples"] = mean(rows, name, "samples")
        ours[f"{name} drawn one by one"] = mean(rows, name, "samples_drawn")
        ours[f"{name} valid"] = mean(rows, name, "samples_valid")
        ours[f"{name} evaluations"] = mean(rows, name, "evaluations")
        microseconds = 1e6 * ours[f"{name} seconds a layer"] / ours[f"{name} evaluations"]
        ours[f"{name} microseconds an evaluation"] = microseconds
    for program in ("cosa", "certified"):
        seconds = ours["hybrid seconds a layer"] / ours[f"{program} seconds a layer"]
        ours[f"hybrid seconds / {program} seconds"] = seconds
        slow = ours["hybrid evaluations"] * PUBLISHED_EVALUATION_SECONDS / ours[f"{program} seconds a layer"]
        ours[f"hybrid at the published time an evaluation / {program} seconds"] = slow
    ours["hybrid 32 K: less latency, %"] = 100 * (1 - 1 / ratios(rows, "hybrid", "hybrid 32 K", "cycles")["all"][0])
    ours["hybrid 32 K: seconds / hybrid seconds"] = ours["hybrid 32 K seconds a layer"] / ours["hybrid seconds a layer"]
    ours["speed-up of cosa over hybrid 32 K"] = ratios(rows, "hybrid 32 K", "cosa", "cycles")["all"][0]
    ours["speed-up of certified over hybrid 32 K"] = ratios(rows, "hybrid 32 K", "certified", "cycles")["all"][0]
    compare(plan, "table6", ours, dict.fromkeys(ours, len(plan.layers)))
    groups = {mapper.name: {"ours": ours[f"{mapper.name} seconds a layer"]} for mapper in mappers}
    bars(plan.out / "table6.png", groups, "processor seconds a layer")


if __name__ == "__main__":
    sys.exit(start(work, __doc__))
