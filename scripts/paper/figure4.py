"""Figure 4: what the spatial mapping onto the mesh is worth, with the same tiles in the PEs.

The paper's layer is not known here. This one is 1x1, 16x16 outputs, 256 -> 1024 channels, with P4 C4 K4 at the global
buffer: what does not run side by side on the 16 PEs runs one after the other (s:P2C4K2 leaves t:P2K2). All six mappings
that use every PE, each in its best order over time, simulated on simba_4x4 and (not with --quick) cosa2021. program:
the machine program's schedule, which is free to choose other tiles.
"""

from __future__ import annotations

import sys
from itertools import permutations, product
from math import prod
from typing import Any

from common import Plan, compare, program_of, schedule_of, start, write_csv
from orders import Factors, by_hand, nest_of, rows_of, splits, spread
from pictures import bars

from cosa.api import find_architecture
from cosa.model.layer import Dim, Layer

LAYER = Layer(name="1x1 of 256 to 1024", R=1, S=1, P=16, Q=16, C=256, K=1024, N=1)
INNER: dict[str, tuple[Factors, Factors]] = {
    "AccumulationBuffer": ({"P": 4, "Q": 8}, {"C": 8}),
    "WeightBuffer": ({"C": 8}, {}),
    "InputBuffer": ({}, {"K": 8}),
}
SHARED: tuple[Dim, ...] = ("P", "C", "K")
BOUND = 4
OUTER: Factors = {"K": 32, "Q": 2}
ARCHITECTURES = ("simba_4x4", "cosa2021")


def work(plan: Plan) -> None:
    rows: list[dict[str, Any]] = []
    ours: dict[str, float] = {}
    groups: dict[str, dict[str, float]] = {}
    for name in ARCHITECTURES[: 1 if plan.quick else 2]:
        architecture = find_architecture(name)
        columns, rows_of_mesh = architecture.fanout(len(architecture.levels) - 2)
        best: list[dict[str, Any]] = []
        fewest: list[int] = []
        for parts in product((1, 2, 4), repeat=len(SHARED)):
            if prod(parts) != columns * rows_of_mesh:
                continue
            side = dict(zip(SHARED, parts, strict=True))
            layout = splits(side, columns, rows_of_mesh)[0]
            left = [(dim, BOUND // part) for dim, part in side.items() if part < BOUND]
            text = "s:" + "".join(f"{dim}{part}" for dim, part in side.items() if part > 1)
            orders = list(permutations(left))
            nests = [nest_of(architecture, INNER, order, layout, OUTER) for order in orders]
            ran = rows_of(plan, [by_hand(LAYER, architecture, nest) for nest in nests])
            found = [
                {"spatial": text, "temporal": "".join(f"{dim}{part}" for dim, part in order), **row}
                for order, row in zip(orders, ran, strict=True)
            ]
            rows += found
            best.append(min(found, key=lambda row: row["simulated_cycles"] or float("inf")))
            fewest.append(min(row["timeloop_cycles"] for row in found))
        ours[f"{name}, analytical: worst / best spatial mapping"] = max(fewest) / min(fewest)
        ratio = spread(best, "simulated_cycles")
        if ratio is not None:
            ours[f"{name}: worst / best spatial mapping"] = ratio
        for row in best:
            groups.setdefault(row["spatial"], {})[name] = row["simulated_cycles"] or 0.0
        fastest = min(best, key=lambda row: row["simulated_cycles"] or float("inf"))
        print(f"{name}: best {fastest['spatial']} with t:{fastest['temporal']}")
        free = {
            "spatial": "program",
            **rows_of(plan, [schedule_of(plan, LAYER, name, program_of(plan, "latency", "network"))])[0],
        }
        rows.append(free)
        if free["simulated_cycles"] and fastest["simulated_cycles"]:
            groups.setdefault("program", {})[name] = free["simulated_cycles"]
            ours[f"{name}: best spatial mapping / program"] = fastest["simulated_cycles"] / free["simulated_cycles"]
    write_csv(plan.out / "figure4_mappings.csv", rows)
    compare(plan, "figure4", ours)
    bars(plan.out / "figure4.png", groups, "simulated cycles")


if __name__ == "__main__":
    sys.exit(start(work, __doc__))
