"""Weights of the published objective tuned on one layer, step by step, by simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cosa.mip.objective import Weights
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from nocsim.experiments.calibrate import published_schedule, rounded, simulated_cycles


@dataclass(frozen=True)
class Tuned:
    """Weights of the published objective that suit one layer best, and the simulated cycles before and after."""

    weights: Weights
    cycles: int
    published_cycles: int
    tried: int


def tune_weights(
    layer: Layer,
    architecture: Architecture,
    *,
    runs: int = 20,
    start: Weights | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Tuned:
    """Weights of the published objective, tuned on one layer by simulation, as the paper suggests.

    One weight after the other is doubled or halved, and the step kept if the program's schedule then runs faster; when
    no step helps, steps become smaller (their square root), until they are below 1.2 or the runs are used up.

    Raises
    ------
    InputError: the architecture cannot be simulated.
    InfeasibleError, SolverError: the layer has no schedule.
    """
    best = start or Weights()
    known: dict[str, int] = {}
    tried = 0

    def cycles_of(weights: Weights) -> int:
        nonlocal tried
        schedule = published_schedule(layer, architecture, weights)
        if schedule.content_hash not in known:
            known[schedule.content_hash] = simulated_cycles(schedule)
        tried += 1
        if progress is not None:
            progress(tried, runs)
        return known[schedule.content_hash]

    first = least = cycles_of(best)
    factor = 2.0
    while factor >= 1.2:
        better = False
        for name in ("utilisation", "compute", "traffic"):
            for step in (factor, 1 / factor):
                if tried >= runs:
                    return Tuned(best, least, first, tried)
                changed = best.with_(**{name: float(rounded(getattr(best, name) * step))})
                found = cycles_of(changed)
                if found < least:
                    best, least, better = changed, found, True
                    break
        if not better:
            factor **= 0.5
    return Tuned(best, least, first, tried)
