"""Figure 6: speed-ups over random on the analytical model (Timeloop's), four networks, hierarchy of simba_4x4.

Mappers: random (best of 5 valid), hybrid (32 threads, 500 valid ones in a row; ours and, as `hybrid as Timeloop`, with
Timeloop's way to draw and compare), published (CoSA's program), program (ours, latency).
"""

from __future__ import annotations

import sys
from itertools import product

from common import (
    HYBRID,
    HYBRID_AS_TIMELOOP,
    PUBLISHED,
    Plan,
    certificates,
    compare,
    measure,
    program_of,
    random_of,
    ratios,
    speed_ups,
    start,
    write_csv,
)
from pictures import ratio_bars

OTHERS = ("hybrid", "hybrid as Timeloop", "published", "program")


def work(plan: Plan) -> None:
    mappers = [random_of(plan), HYBRID, HYBRID_AS_TIMELOOP, PUBLISHED, program_of(plan, "latency", "analytical")]
    rows = measure(plan, "simba_4x4", mappers)
    write_csv(plan.out / "figure6_layers.csv", rows)
    ours, counts = speed_ups(rows, "timeloop_cycles")
    for mapper, base in product(("published", "program"), ("random", "hybrid")):
        for network, (mean, layers) in ratios(rows, base, mapper, "timeloop_cycles").items():
            if network != "all":
                name = f"{network}: {mapper} over {base}"
                ours[name], counts[name] = mean, layers
    ours |= certificates(rows)
    compare(plan, "figure6", ours, counts)
    ratio_bars(plan.out / "figure6.png", rows, "timeloop_cycles", OTHERS, "speed-up over random (analytical)")


if __name__ == "__main__":
    sys.exit(start(work, __doc__))
