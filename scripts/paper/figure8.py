"""Figure 8: terms of the published objective, ResNet-50 3_7_512_512_1 on simba_4x4, schedules of four mappers.

The layer is `resnet50:input.138`. Traffic and compute are to be small, utilisation counts negative; sums of
logarithms to the base 2. Speed-ups are on the analytical model.
"""

from __future__ import annotations

import sys

from common import (
    HYBRID,
    PUBLISHED,
    Plan,
    certificates,
    compare,
    layer_of,
    measure,
    program_of,
    random_of,
    schedule_of,
    speed_ups,
    start,
    write_csv,
)
from pictures import legend_beside, save

import cosa

LAYER, ARCHITECTURE = "resnet50:input.138", "simba_4x4"


def work(plan: Plan) -> None:
    mappers = [random_of(plan), HYBRID, PUBLISHED, program_of(plan, "latency", "analytical")]
    layers = layer_of(LAYER)
    rows = measure(plan, ARCHITECTURE, mappers, simulate=True, layers=layers)
    write_csv(plan.out / "figure8_layers.csv", rows)
    terms = {m.name: cosa.breakdown(schedule_of(plan, layers[0][1].layer, ARCHITECTURE, m)) for m in mappers}
    write_csv(plan.out / "figure8_terms.csv", [{"mapper": name, **found} for name, found in terms.items()])
    ours, _ = speed_ups(rows, "timeloop_cycles")
    simulated, _ = speed_ups(rows, "simulated_cycles", "simulated: ")
    ours |= simulated | certificates(rows) | {f"objective of {name}": found["total"] for name, found in terms.items()}
    compare(plan, "figure8", ours)
    draw(plan, terms)


def draw(plan: Plan, terms: dict[str, dict[str, float]]) -> None:
    from nocsim.result.pictures import new_figure

    figure = new_figure(5.5, 3.6)
    axes = figure.add_subplot()
    up, down = dict.fromkeys(terms, 0.0), dict.fromkeys(terms, 0.0)
    for term in next(iter(terms.values())):
        if term == "total":
            continue
        heights = [found[term] for found in terms.values()]
        bottoms = [(up if height >= 0 else down)[name] for name, height in zip(terms, heights, strict=True)]
        axes.bar(list(terms), heights, bottom=bottoms, label=term)
        for name, height in zip(terms, heights, strict=True):
            (up if height >= 0 else down)[name] += height
    axes.set_ylabel("weighted terms (log2)")
    legend_beside(axes)
    save(figure, plan.out / "figure8.png")


if __name__ == "__main__":
    sys.exit(start(work, __doc__))
