"""Where a certified search begins, and the fastest mapping where it can be had, and proven, without a program.

In the analytical model no mapping keeps more MAC units at work than whole factors let it, or moves a word of the
outermost level less than once (`cosa.mappers.least`). A mapping that needs no more cycles than that is optimal.
`open_latency` looks for one: it starts with the most MAC units at work and every other loop at the outermost level, and
descends from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from cosa.common.errors import InfeasibleError, InputError, SolverError
from cosa.mappers.least import Parallel
from cosa.mappers.neighbours import Array, MappingPoint, Neighbourhood
from cosa.mip.factors import prime_factors
from cosa.model.arch import Architecture
from cosa.model.keeping import as_array
from cosa.model.layer import DIMS, Dim, Layer

if TYPE_CHECKING:
    from cosa.analytical.batch import BatchEvaluator

EVALUATIONS = 3000
"""Of one descent at most; those that reach their target need some fifty."""

_REDUCED: tuple[Dim, ...] = ("C", "K", "P", "Q", "N", "R", "S", "G")
_CHANNELS: tuple[Dim, ...] = ("K", "C", "P", "Q", "N", "R", "S", "G")
_POSITIONS: tuple[Dim, ...] = ("P", "Q", "K", "C", "N", "R", "S", "G")
SPLITS = (
    (_CHANNELS, _CHANNELS, _REDUCED),
    (_CHANNELS, _REDUCED, _CHANNELS),
    (_CHANNELS, _CHANNELS, _CHANNELS),
    (_POSITIONS, _CHANNELS, _REDUCED),
    (_REDUCED, _REDUCED, _REDUCED),
)
"""Which dimensions give their factors to a fan-out first: innermost fan-out first, then round again."""


def open_latency(
    evaluator: BatchEvaluator, neighbourhood: Neighbourhood, parallel: Parallel, target_cycles: float
) -> MappingPoint | None:
    """A mapping of at most so many cycles, None where no descent finds one."""
    from cosa.analytical.batch_kernel import descend

    layer, architecture = evaluator.layer, evaluator.architecture
    primes = np.array(sorted({prime for bound in layer.bounds.values() for prime in prime_factors(bound)}), np.int64)
    keeps = as_array(neighbourhood.keeping.default)
    for split in SPLITS:
        bounds, orders = _start(layer, architecture, parallel, split), np.zeros(len(architecture.levels), np.int64)
        _, cycles = descend(
            bounds,
            orders,
            neighbourhood.permutations,
            primes,
            keeps[np.newaxis],
            evaluator.tables,
            target_cycles,
            EVALUATIONS,
        )
        if 0 <= cycles <= target_cycles:
            return MappingPoint(bounds, orders)
    return None


def _start(layer: Layer, architecture: Architecture, parallel: Parallel, split: tuple[tuple[Dim, ...], ...]) -> Array:
    """Bounds [2 (temporal, spatial), level, dimension] with these factors at the fan-outs, the rest outermost."""
    bounds = np.ones((2, len(architecture.levels), len(DIMS)), np.int64)
    left = {dim: prime_factors(bound) for dim, bound in layer.bounds.items()}
    for number, (level, factors) in enumerate(sorted(parallel.factors.items())):
        for prime, count in factors.items():
            for _ in range(count):
                dim = next(dim for dim in split[number % len(split)] if left[dim].get(prime))
                left[dim][prime] -= 1
                bounds[1, level, DIMS.index(dim)] *= prime
    for dim, factors in left.items():
        for prime, count in factors.items():
            bounds[0, -1, DIMS.index(dim)] *= prime**count
    return bounds


def starting_points(
    layer: Layer, architecture: Architecture, neighbourhood: Neighbourhood, bounds: Mapping[Dim, Sequence[int]]
) -> list[MappingPoint]:
    """Where the search begins: the published program's schedules, and every loop at the outermost level.

    It schedules the layer, and where `bounds` let dimensions grow also the one in which all have what splits best.
    """
    from cosa.mappers.published import PublishedOptions, solve

    sizes = {dim: min(choices, key=lambda size: (max(prime_factors(size)), size)) for dim, choices in bounds.items()}
    points = []
    for each in (layer, layer.padded_to(sizes)) if sizes else (layer,):
        with suppress(InputError, InfeasibleError, SolverError):
            schedule = solve(each, architecture, PublishedOptions(time_limit_seconds=5.0, gap=0.01))
            points.append(neighbourhood.of_nest(schedule.nest))
    return [*points, outermost_only(layer, architecture, neighbourhood)]


def outermost_only(layer: Layer, architecture: Architecture, neighbourhood: Neighbourhood) -> MappingPoint:
    """The mapping that always fits: every loop at the outermost level, and no tensor kept that need not be."""
    top = len(architecture.levels) - 1
    bounds = {(top, dim, "temporal"): bound for dim, bound in layer.bounds.items() if bound > 1}
    keeping = neighbourhood.keeping
    keeps = None if keeping.is_fixed else as_array(keeping.always)
    return neighbourhood.point(bounds, {}, keeps)  # type: ignore[arg-type]
