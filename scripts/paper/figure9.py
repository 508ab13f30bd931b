"""Figure 9: speed-ups on the analytical model on larger chips: simba_8x8 and simba_8x_gbuf.

`published` is CoSA's program with its default weights; `published calibrated` has weights found for each architecture:
of a small grid those with the least cycles (geometric mean) on six layers of ResNet-50, as the paper sets them by
micro-benchmarks. `program` is ours (latency).
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import product
from statistics import geometric_mean

from common import (
    HYBRID,
    HYBRID_AS_TIMELOOP,
    PUBLISHED,
    Mapper,
    Plan,
    by_layer,
    certificates,
    chosen_layers,
    compare,
    measure,
    program_of,
    random_of,
    speed_ups,
    start,
    write_csv,
)
from pictures import ratio_bars

from cosa.mappers.published import PublishedOptions
from cosa.mip.objective import Weights

ARCHITECTURES = ("simba_8x8", "simba_8x_gbuf")
CALIBRATION = tuple(
    f"resnet50:{name}" for name in ("input.2", "input.8", "input.43", "input.76", "input.83", "input.128")
)
UTILISATION, TRAFFIC = (0.1, 1.0), (1.0, 0.5, 2.0, 5.0)
"""Weights tried, the published ones first: they stay where no others are better. That of compute stays at 10."""


def calibrated(plan: Plan, architecture: str) -> tuple[Mapper, list[dict[str, object]]]:
    """The program with the best weights, and what each pair of weights gave."""
    tried = []
    for utilisation, traffic in product(UTILISATION, TRAFFIC):
        weights = Weights(utilisation=utilisation, compute=10.0, traffic=traffic)
        tried.append(Mapper(f"{utilisation:g}/{traffic:g}", PublishedOptions(weights=weights)))
    rows = measure(plan, architecture, tried, layers=chosen_layers(CALIBRATION))
    table = []
    for mapper in tried:
        cycles = by_layer(rows, mapper.name, "timeloop_cycles")
        mean = geometric_mean(cycles.values()) if len(cycles) == len(CALIBRATION) else None
        table.append({"architecture": architecture, **_told(mapper), "geomean_cycles": mean})
    means = [row["geomean_cycles"] or float("inf") for row in table]
    return replace(tried[means.index(min(means))], name="published calibrated"), table


def _told(mapper: Mapper) -> dict[str, float]:
    assert isinstance(mapper.options, PublishedOptions) and mapper.options.weights is not None
    return {name: getattr(mapper.options.weights, name) for name in ("utilisation", "compute", "traffic")}


def work(plan: Plan) -> None:
    rows, tables, ours, counts = [], [], {}, {}
    for architecture in ARCHITECTURES:
        weighted, table = calibrated(plan, architecture)
        tables += table
        mappers = [random_of(plan), HYBRID, HYBRID_AS_TIMELOOP, PUBLISHED, weighted]
        found = measure(plan, architecture, [*mappers, program_of(plan, "latency", "analytical")])
        rows += found
        names = ("published", "published calibrated", "program")
        means, layers = speed_ups(found, "timeloop_cycles", f"{architecture}: ", names)
        ours, counts = ours | means | certificates(found, f"{architecture}: "), counts | layers
        picture = plan.out / f"figure9_{architecture}.png"
        others = ("hybrid", "hybrid as Timeloop", *names)
        ratio_bars(picture, found, "timeloop_cycles", others, "speed-up over random (analytical)", title=architecture)
    write_csv(plan.out / "figure9_layers.csv", rows)
    write_csv(plan.out / "figure9_weights.csv", tables)
    compare(plan, "figure9", ours, counts)


if __name__ == "__main__":
    sys.exit(start(work, __doc__))
