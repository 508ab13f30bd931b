"""Figure 3: what the order of the loops at the global buffer is worth, with the same tiles.

The paper's layer is not known here. This is `resnet50:input.83` (3x3, 256 -> 256 channels, 14x14) in a fixed tiling
with the loops P2, C4 and K4 at the global buffer; all six orders, analytically and simulated on simba_4x4 and (not with
--quick) cosa2021. PCK: P outermost. program: that mapper's schedule, which is free to choose other tiles.
"""

from __future__ import annotations

import sys
from itertools import permutations
from typing import Any

from common import Plan, compare, layer_of, program_of, schedule_of, start, write_csv
from orders import Factors, by_hand, nest_of, rows_of, spread
from pictures import bars

from cosa.api import find_architecture
from cosa.model.layer import Dim

LAYER = "resnet50:input.83"
INNER: dict[str, tuple[Factors, Factors]] = {
    "AccumulationBuffer": ({"P": 7, "Q": 7}, {"C": 8}),
    "WeightBuffer": ({"R": 3, "S": 3, "C": 2}, {}),
    "InputBuffer": ({}, {"K": 8}),
}
ORDERED: tuple[tuple[Dim, int], ...] = (("P", 2), ("C", 4), ("K", 4))
OUTER: Factors = {"K": 2, "Q": 2}
ARCHITECTURES = ("simba_4x4", "cosa2021")


def work(plan: Plan) -> None:
    layer = layer_of(LAYER)[0][1].layer
    rows: list[dict[str, Any]] = []
    ours: dict[str, float] = {}
    groups: dict[str, dict[str, float]] = {}
    for name in ARCHITECTURES[: 1 if plan.quick else 2]:
        architecture = find_architecture(name)
        orders = list(permutations(ORDERED))
        spatial = (("K", 4, "x"), ("C", 4, "y"))
        schedules = [
            by_hand(layer, architecture, nest_of(architecture, INNER, order, spatial, OUTER)) for order in orders
        ]
        schedules.append(schedule_of(plan, layer, name, program_of(plan, "latency", "network")))
        names = ["".join(dim for dim, _ in order) for order in orders]
        *found, free = (
            {"order": order, **row} for order, row in zip((*names, "program"), rows_of(plan, schedules), strict=True)
        )
        rows += [*found, free]
        for value, text in (("timeloop_cycles", "analytical"), ("simulated_cycles", name)):
            ratio = spread(found, value)
            if ratio is not None:
                ours[f"{text}: worst / best order"] = ratio
        for row in found:
            if row["simulated_cycles"]:
                groups.setdefault(row["order"], {})[name] = row["simulated_cycles"]
        best = min(found, key=lambda row: row["simulated_cycles"] or float("inf"))
        print(f"{name}: best order {best['order']}")
        if free["simulated_cycles"] and best["simulated_cycles"]:
            groups.setdefault("program", {})[name] = free["simulated_cycles"]
            ours[f"{name}: best order / program"] = best["simulated_cycles"] / free["simulated_cycles"]
    write_csv(plan.out / "figure3_orders.csv", rows)
    compare(plan, "figure3", ours)
    bars(plan.out / "figure3.png", groups, "simulated cycles")


if __name__ == "__main__":
    sys.exit(start(work, __doc__))
