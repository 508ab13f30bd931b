"""Figure 7: energy on the analytical model (Timeloop's), four networks, hierarchy of simba_4x4.

The hybrid searches for the least energy, as in the paper; published is CoSA's program, program ours
for the least energy. Positive percentages: less energy than the hybrid.
"""

from __future__ import annotations

import sys
from dataclasses import replace

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
    start,
    write_csv,
)
from pictures import ratio_bars


def work(plan: Plan) -> None:
    mappers = [
        replace(mapper, options=mapper.options.with_(objective="energy"))
        for mapper in (random_of(plan), HYBRID, HYBRID_AS_TIMELOOP)
    ]
    mappers += [PUBLISHED, program_of(plan, "energy", "analytical")]
    rows = measure(plan, "simba_4x4", mappers)
    write_csv(plan.out / "figure7_layers.csv", rows)
    ours, counts = {}, {}
    for mapper in ("published", "program"):
        for base in ("hybrid", "hybrid as Timeloop", "random"):
            for network, (mean, layers) in ratios(rows, base, mapper, "energy_pj").items():
                where = "" if network == "all" else f"{network}: "
                if where and base != "hybrid":
                    continue
                name = f"{where}{mapper}: less energy than {base}, %"
                ours[name], counts[name] = 100 * (1 - 1 / mean), layers
    ours |= certificates(rows)
    compare(plan, "figure7", ours, counts)
    others = ("hybrid", "hybrid as Timeloop", "published", "program")
    ratio_bars(plan.out / "figure7.png", rows, "energy_pj", others, "energy of random over energy")


if __name__ == "__main__":
    sys.exit(start(work, __doc__))
