"""Every mapping of a small space: where there are few enough, looking at all of them is the shortest proof."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import comb, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from cosa.mappers.neighbours import MappingPoint, MappingPoints, Neighbourhood
from cosa.mip.factors import divisors, prime_factors
from cosa.model.keeping import Keeping, as_array
from cosa.model.layer import DIMS, TENSORS, Layer

Array = npt.NDArray[Any]

MOST_TILINGS = 60_000

_A_BATCH = 4096


def every_tiling(layer: Layer, neighbourhood: Neighbourhood, most: int = MOST_TILINGS) -> list[MappingPoint] | None:
    """Every tiling of a layer within fan-outs and rules, with every choice of what levels keep.

    None if there are more than `most` ways to split all bounds over the levels, fan-outs not regarded.
    """
    keeps = _every_choice(neighbourhood.keeping)
    architecture = neighbourhood.architecture
    levels = range(len(architecture.levels))
    places = [(0, level) for level in levels]
    places += [(1, level) for level in levels if prod(architecture.fanout(level)) > 1]
    primes = [count for bound in layer.bounds.values() for count in prime_factors(bound).values()]
    if prod(comb(count + len(places) - 1, count) for count in primes) * len(keeps) > most:
        return None
    found = np.ones((1, 2, len(levels), len(DIMS)), np.int64)
    instances = np.array([prod(architecture.fanout(level)) for level in levels])
    for dim, name in enumerate(DIMS):
        if layer.bounds[name] == 1:
            continue
        parts = np.array(list(_splits(layer.bounds[name], len(places))), np.int64)
        found = np.repeat(found, len(parts), axis=0)
        for number, (kind, level) in enumerate(places):
            found[:, kind, level, dim] = np.tile(parts[:, number], len(found) // len(parts))
        found = found[(found[:, 1].prod(axis=2) <= instances).all(axis=1)]
    found = found[neighbourhood.allows(found)]
    orders = np.zeros(len(levels), np.int64)
    return [MappingPoint(bounds, orders, keep) for bounds in found for keep in keeps]


def _splits(bound: int, places: int) -> Iterator[tuple[int, ...]]:
    """Every way to write a bound as a product of so many factors."""
    if places == 1:
        yield (bound,)
        return
    for first, _ in divisors(bound):
        for rest in _splits(bound // first, places - 1):
            yield (first, *rest)


def _every_choice(keeping: Keeping) -> list[Array | None]:
    """Every choice of what levels keep, bool [level, tensor] each; None where that is fixed."""
    if keeping.is_fixed:
        return [None]
    found: list[Array | None] = []
    for kept in product((False, True), repeat=len(keeping.free)):
        choice = np.array(as_array(keeping.always))
        for (level, tensor), keep in zip(keeping.free, kept, strict=True):
            choice[level, TENSORS.index(tensor)] = keep
        found.append(choice)
    return found


def in_batches(tilings: Sequence[MappingPoint]) -> Iterator[tuple[Sequence[MappingPoint], MappingPoints]]:
    """Tilings, and the same as arrays, so many at a time."""
    for start in range(0, len(tilings), _A_BATCH):
        some = tilings[start : start + _A_BATCH]
        keeps = None if some[0].keeps is None else np.array([point.keeps for point in some])
        yield some, MappingPoints(np.array([p.bounds for p in some]), np.array([p.orders for p in some]), keeps)
