"""Figure 1: cycles of valid random schedules of the layer 3x3, 256 -> 256 channels, 14x14 outputs; share invalid.

The layer is `resnet50:input.83` on simba_4x4. Schedules are drawn as Timeloop's random mapper draws them
(`cosa.mappers.random`) and evaluated on the analytical model. Shares of what is broken are of ten times as many
tilings: a fan-out is broken where no way to lay loops along its axes fits, and one that breaks a fan-out and a buffer
counts in both. Valid draws use few of the MACs, so the spread is also given among those that use some of them.
program: the schedule of the mapper of that name, proven to be the best within 1 %.
"""

from __future__ import annotations

import sys
from typing import Any

from common import Plan, compare, kept, layer_of, program_of, schedule_of, start, write_csv
from pictures import save

from cosa.api import evaluate, find_architecture
from cosa.mappers.broken import broken_shares
from cosa.model.layer import Layer

LAYER, ARCHITECTURE, BLOCK = "resnet50:input.83", "simba_4x4", 1000


def draw_block(layer: Layer, number: int, wanted: int) -> dict[str, Any]:
    """Cycles and MACs in use of so many valid draws; and how many were drawn."""
    import numpy as np

    from cosa.analytical.batch import BatchEvaluator
    from cosa.mappers import kernel
    from cosa.mappers.space import MapSpace, stream

    architecture = find_architecture(ARCHITECTURE)
    evaluator = BatchEvaluator(layer, architecture)
    space = MapSpace.of(evaluator)
    batch, places = space.batch(wanted), np.zeros(wanted, np.int64)
    filled, drawn = kernel.fill_random(
        stream(0, number), space.primes, space.dims, space.tables(), 10**9, batch.loops(), places
    )
    assert filled == wanted
    result = evaluator.evaluate(batch, detail=False)
    used = layer.macs // result.compute_cycles
    return {"cycles": result.cycles.tolist(), "macs_used": used.tolist(), "drawn": drawn}


def what_breaks(layer: Layer, tilings: int) -> dict[str, float]:
    """Shares of tilings drawn that break a buffer, a fan-out, both or neither."""
    found = broken_shares(layer, find_architecture(ARCHITECTURE), tilings)
    alone = found.draws - found.any_fanout
    return {
        "share of samples that break a buffer": found.any_capacity / found.draws,
        "the same of those that keep to the fan-outs": 1 - found.valid / alone if alone else 0.0,
        "share of samples that break a fan-out": found.any_fanout / found.draws,
    }


def work(plan: Plan) -> None:
    layer = layer_of(LAYER)[0][1].layer
    blocks = []
    for number, first in enumerate(range(0, plan.samples, BLOCK)):
        size = min(BLOCK, plan.samples - first)
        blocks.append(kept(plan.results, ["figure1", number, size], lambda n=number, s=size: draw_block(layer, n, s)))
    cycles = [value for block in blocks for value in block["cycles"]]
    used = [value for block in blocks for value in block["macs_used"]]
    rows = [{"cycles": a, "macs_used": b} for a, b in zip(cycles, used, strict=True)]
    write_csv(plan.out / "figure1_samples.csv", rows)
    drawn = sum(block["drawn"] for block in blocks)
    macs = find_architecture(ARCHITECTURE).macs
    ours = {"worst / best": max(cycles) / min(cycles), "valid": float(len(cycles)), "drawn": float(drawn)}
    for name, share in (("1/64", 1 / 64), ("1/4", 1 / 4), ("1/2", 1 / 2)):
        among = [value for value, busy in zip(cycles, used, strict=True) if busy >= share * macs]
        if among:
            ours[f"worst / best where {name} of the MACs work"] = max(among) / min(among)
            ours[f"valid where {name} of the MACs work"] = float(len(among))
    ours |= kept(plan.results, ["figure1", "broken", plan.samples], lambda: what_breaks(layer, 10 * plan.samples))
    best = evaluate(schedule_of(plan, layer, ARCHITECTURE, program_of(plan, "latency", "analytical"))).cycles
    ours |= {"worst / program": max(cycles) / best, "best / program": min(cycles) / best}
    compare(plan, "figure1", ours)
    from nocsim.result.pictures import new_figure

    figure = new_figure(5.5, 3.4)
    axes = figure.add_subplot()
    lowest = min(cycles)
    edges = [lowest * (max(cycles) / lowest) ** (place / 40) for place in range(41)]
    axes.hist(cycles, bins=edges)
    axes.axvline(best, color="black", linewidth=0.8, label="program")
    axes.legend(frameon=False)
    axes.set(xscale="log", xlabel="cycles (analytical)", ylabel="valid schedules")
    save(figure, plan.out / "figure1.png")


if __name__ == "__main__":
    sys.exit(start(work, __doc__))
