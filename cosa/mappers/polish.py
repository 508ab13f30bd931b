"""Steepest descent over the neighbours of a mapping, on the exact evaluator."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cosa.analytical.batch import BatchResult, MappingBatch
from cosa.mappers.neighbours import MappingPoint, MappingPoints, Neighbourhood
from cosa.mappers.search import costs
from cosa.model.objectives import OBJECTIVES

Array = npt.NDArray[Any]


class Evaluator(Protocol):
    """What evaluates mappings."""

    def evaluate(self, batch: MappingBatch, detail: bool = True) -> BatchResult:
        """Figures of every mapping."""


Score = Callable[[BatchResult], tuple[Array, Array]]
"""What to minimise of every mapping, and what settles ties."""


SCORES: dict[str, Score] = {name: partial(costs, goal.name) for name, goal in OBJECTIVES.items()}


@dataclass(frozen=True)
class Polished:
    """Where a descent ended: value, what settles ties, and how many mappings were evaluated. `fits` is false only
    where no neighbour of the start fits."""

    point: MappingPoint
    value: float
    second: float
    evaluations: int
    fits: bool


def polish(
    evaluator: Evaluator,
    neighbourhood: Neighbourhood,
    start: MappingPoint,
    score: Score,
    *,
    until: float | None = None,
) -> Polished:
    """Descend from a mapping until no neighbour is better; `until`: a time of `time.perf_counter` at which to stop.

    Moves are tried before exchanges, which are many more.
    """
    evaluations = 0

    def look(points: MappingPoints) -> tuple[Array, Array, Array]:
        nonlocal evaluations
        evaluations += len(points)
        result = evaluator.evaluate(neighbourhood.batch(points), detail=False)
        first, second = score(result)
        fits = result.fits & neighbourhood.allows(points.bounds)
        return np.where(fits, first, np.inf), second, fits

    first, second, fits = look(MappingPoints.of(start))
    best = Polished(start, float(first[0]), float(second[0]), 1, bool(fits[0]))
    exchanges = False
    while True:
        points = neighbourhood.neighbours(best.point, exchanges)
        if len(points):
            first, second, fits = look(points)
            at = int(np.lexsort((second, first))[0])
            if fits[at] and (first[at], second[at]) < (best.value, best.second):
                best = Polished(points[at], float(first[at]), float(second[at]), 0, True)
                exchanges = False
                if until is None or time.perf_counter() < until:
                    continue
        if exchanges or (until is not None and time.perf_counter() >= until):
            return Polished(best.point, best.value, best.second, evaluations, best.fits)
        exchanges = True
