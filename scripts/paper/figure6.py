"""Figure 6: speed-ups over random on the analytical model (Timeloop's), four networks, hierarchy of simba_4x4.

Mappers: random (best of 5 valid), hybrid (32 threads, 500 valid ones in a row; ours and, as `hybrid as Timeloop`, with
Timeloop's way to draw and compare), cosa (the published program), certified (the machine program, latency).
"""

from __future__ import annotations

import sys

from common import (
    COSA,
    HYBRID,
    HYBRID_AS_TIMELOOP,
    Plan,
    certified,
    compare,
    measure,
    random_of,
    ratio_bars,
    ratios,
    speed_ups,
    start,
    write_csv,
)

OTHERS = ("hybrid", "hybrid as Timeloop", "cosa", "certified")


def work(plan: Plan) -> None:
    mappers = [random_of(plan), HYBRID, HYBRID_AS_TIMELOOP, COSA, certified(plan, "latency", "analytical")]
    rows = measure(plan, "simba_4x4", mappers)
    write_csv(plan.out / "figure6_layers.csv", rows)
    ours, counts = speed_ups(rows, "cycles")
    for network, (mean, layers) in ratios(rows, "random", "certified", "cycles").items():
        if network != "all":
            name = f"{network}: certified over random"
            ours[name], counts[name] = mean, layers
    for network, (mean, layers) in ratios(rows, "hybrid", "certified", "cycles").items():
        if network != "all":
            name = f"{network}: certified over hybrid"
            ours[name], counts[name] = mean, layers
    compare(plan, "figure6", ours, counts)
    ratio_bars(plan.out / "figure6.png", rows, "cycles", OTHERS, "speed-up over random (analytical)")


if __name__ == "__main__":
    sys.exit(start(work, __doc__))
