"""Figure 10: speed-ups over random on the simulator, four networks, on cosa2021 and on simba_4x4.

The searches look for the least analytical latency, as in the paper; their schedules are then simulated. certified is
the machine program for the latency of the simulated machine. Simulations of random and hybrid that reach their time
limit count with what they cannot be below (the cycle reached, or the bound of the schedule): their speed-ups are `at
least` these. The programs' schedules have eight times as long; a layer where such a one is given up all the same is in
no mean of that program. `both simulated`: layers where both simulations came to their end, the fastest ones.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import product
from typing import Any

from common import (
    COSA,
    HYBRID,
    Plan,
    certificates,
    certified,
    compare,
    measure,
    random_of,
    ratios,
    speed_ups,
    start,
    write_csv,
)
from pictures import bars

ARCHITECTURES = ("cosa2021", "simba_4x4")
BASELINES = ("random", "hybrid")
PATIENCE = 8.0
"""A program's schedule that is given up says nothing, and there are few slow ones."""


def work(plan: Plan) -> None:
    rows: list[dict[str, Any]] = []
    ours: dict[str, float] = {}
    counts: dict[str, int] = {}
    draws = replace(random_of(plan), seeds=1)  # simulations of random mappings are what takes the time
    programs = [replace(mapper, patience=PATIENCE) for mapper in (COSA, certified(plan, "latency", "network"))]
    for architecture in ARCHITECTURES:
        found = measure(plan, architecture, [draws, HYBRID, *programs], simulate=True)
        rows += found
        write_csv(plan.out / "figure10_layers.csv", rows)
        known = [row for row in found if row["mapper"] in BASELINES or row.get("simulated_cycles")]
        means, layers = speed_ups(known, "at_least_cycles", f"{architecture}, at least: ")
        ours, counts = ours | means, counts | layers
        groups: dict[str, dict[str, float]] = {}
        for base, mapper in product(BASELINES, ("cosa", "certified")):
            for network, (mean, number) in ratios(known, base, mapper, "at_least_cycles").items():
                groups.setdefault(network, {})[f"{mapper} over {base}"] = mean
                if network != "all":
                    name = f"{architecture}, at least: {network}: {mapper} over {base}"
                    ours[name], counts[name] = mean, number
        means, layers = speed_ups(found, "simulated_cycles", f"{architecture}, both simulated: ")
        ours, counts = ours | means, counts | layers
        for mapper in ("random", "hybrid", "cosa", "certified"):
            its = [row for row in found if row["mapper"] == mapper]
            name = f"{architecture}: simulations of {mapper} given up"
            ours[name] = float(sum(row.get("simulation") == "given up" for row in its))
            counts[name] = len(its)
        ours |= certificates(found, f"{architecture}: ")
        picture = plan.out / f"figure10_{architecture}.png"
        ordered = {name: groups[name] for name in sorted(groups, key=lambda name: name == "all")}
        bars(picture, ordered, "speed-up (simulated, at least)", title=architecture, line=1.0)
    compare(plan, "figure10", ours, counts)


if __name__ == "__main__":
    sys.exit(start(work, __doc__))
