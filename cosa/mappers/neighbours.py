"""Mappings as small arrays, and all neighbours of one: what searches over mappings step through.

A mapping is the bounds of its temporal and spatial loops, [level, dimension] each, and an order of every level's
temporal loops. Neighbours differ by one prime factor moved between two places, by two factors exchanged, or by one
level's order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from cosa.analytical.batch import SPATIAL_AXES, MappingBatch
from cosa.arch import Architecture
from cosa.keeping import Keeping, as_array
from cosa.mappers.nests import split_over_axes
from cosa.mapping_rules import Block, MappingRules
from cosa.mip.factors import prime_factors
from cosa.mip.quantities import Kind, order
from cosa.schedule import Axis, Loop, ScheduleLevel
from cosa.workload import DIMS, TENSORS, Dim, Tensor

Array = npt.NDArray[Any]

_ROW_MAJOR = SPATIAL_AXES.index("row_major")

INNERMOST: tuple[tuple[Dim, ...], ...] = (
    ("P", "Q", "N"),
    ("Q", "P", "N"),
    ("K",),
    ("K", "P"),
    ("K", "Q"),
    ("R", "S", "C"),
    ("S", "R", "C"),
)
"""Orders worth trying, by their innermost loops from the inside out: what stays, and which way a window slides."""


def _orders_within(blocks: Sequence[Block], innermost: Sequence[Sequence[Dim]]) -> list[tuple[Dim, ...]]:
    """Orders (innermost loops from the inside out) of blocks, with each of their loops innermost once, and around them
    the orders of a table."""
    turned = [[(first, *(dim for dim in block if dim != first)) for first in block] for block in blocks]
    named = [tuple(dim for part in parts for dim in part) for parts in product(*turned)]
    found = [(*inside, *(dim for dim in rest if dim not in inside)) for inside in named for rest in innermost]
    return list(dict.fromkeys(found))


@cache
def _permutation(innermost: tuple[Dim, ...]) -> tuple[int, ...]:
    """Dimension numbers, outer to inner."""
    inside_out = [*innermost, *(dim for dim in reversed(order(DIMS, ())) if dim not in innermost)]
    return tuple(DIMS.index(dim) for dim in reversed(inside_out))


@dataclass(frozen=True)
class Point:
    """One mapping: `bounds` int64 [2 (temporal, spatial), level, dimension], `orders` numbers in a table of orders,
    `keeps` bool [level, tensor] (None: what the neighbourhood's levels keep by default)."""

    bounds: Array
    orders: Array
    keeps: Array | None = None

    @property
    def tiles(self) -> bytes:
        """What tells mappings apart, whatever their orders: factors, and what levels keep."""
        return self.bounds.tobytes() + (b"" if self.keeps is None else self.keeps.tobytes())


@dataclass(frozen=True)
class Points:
    """Several mappings: the arrays of `Point` with a first axis over them."""

    bounds: Array
    orders: Array
    keeps: Array | None = None

    def __len__(self) -> int:
        return len(self.bounds)

    def __getitem__(self, number: int) -> Point:
        return Point(self.bounds[number], self.orders[number], None if self.keeps is None else self.keeps[number])

    @staticmethod
    def of(point: Point, orders: Array | None = None) -> Points:
        """One mapping, or its factors in several orders."""
        orders = point.orders[np.newaxis] if orders is None else orders
        count = len(orders)
        keeps = None if point.keeps is None else np.repeat(point.keeps[np.newaxis], count, axis=0)
        return Points(np.repeat(point.bounds[np.newaxis], count, axis=0), orders, keeps)


class Neighbourhood:
    """Mappings of one architecture, with a table of loop orders.

    Parameters
    ----------
    rules: what mappings must keep to; where they state the order of a level, the table has orders of its own for it.
    keeping: what levels may keep (default: what the architecture and the rules say).
    """

    def __init__(
        self,
        architecture: Architecture,
        innermost: Sequence[Sequence[Dim]] = INNERMOST,
        rules: MappingRules | None = None,
        keeping: Keeping | None = None,
    ) -> None:
        self.architecture, self.rules = architecture, rules or MappingRules()
        self.keeping = keeping or Keeping.of(architecture, rules=self.rules)
        self._default_keeps: Array = as_array(self.keeping.default)
        table = [tuple(dims) for dims in innermost]
        self._choices: list[tuple[int, ...]] = [tuple(range(len(table)))] * len(architecture.levels)
        for level, blocks in self.rules.blocks.items():
            choices = _orders_within(blocks, innermost)
            table += [order for order in choices if order not in table]
            self._choices[level] = tuple(table.index(order) for order in choices)
        self.innermost = tuple(table)
        self.permutations = np.array([_permutation(dims) for dims in self.innermost], np.uint8)
        self._instances = [x * y for x, y in (architecture.fanout(level) for level in self._levels)]

    @cached_property
    def _levels(self) -> range:
        return range(len(self.architecture.levels))

    def point(
        self,
        bounds: Mapping[tuple[int, Dim, Kind], int],
        innermost: Mapping[int, Sequence[Dim]],
        keeps: Array | None = None,
    ) -> Point:
        """A mapping from factors, what stands innermost at each level, and what levels keep (None: by default)."""
        found = np.ones((2, len(self._levels), len(DIMS)), np.int64)
        for (level, dim, kind), bound in bounds.items():
            found[int(kind == "spatial"), level, DIMS.index(dim)] = bound
        orders = [self._order(level, innermost.get(level, ())) for level in self._levels]
        if keeps is None and not self.keeping.is_fixed:
            keeps = self._default_keeps
        return Point(found, np.array(orders, np.int64), keeps)

    def of_nest(self, nest: Sequence[ScheduleLevel]) -> Point:
        """The mapping nearest to a nest (outermost level first): its factors, its orders as the table has them.

        Levels keep what they keep by default, whatever the nest says."""
        bounds: dict[tuple[int, Dim, Kind], int] = {}
        innermost: dict[int, tuple[Dim, ...]] = {}
        for level, entry in enumerate(nest[::-1]):
            for loop in entry.loops:
                bounds[level, loop.dim, loop.kind] = bounds.get((level, loop.dim, loop.kind), 1) * loop.bound
            innermost[level] = tuple(loop.dim for loop in reversed(entry.temporal) if loop.bound > 1)
        return self.point(bounds, innermost)

    def _order(self, level: int, innermost: Sequence[Dim]) -> int:
        """The order of the table for a level that agrees longest with the wish."""

        def agreement(dims: tuple[Dim, ...]) -> int:
            same = 0
            for mine, wanted in zip(dims, innermost, strict=False):
                if mine != wanted:
                    break
                same += 1
            return same

        return max(self._choices[level], key=lambda number: agreement(self.innermost[number]))

    def nest(self, point: Point) -> tuple[ScheduleLevel, ...]:
        """A mapping as a nest, outermost level first; spatial loops run along x and y where they fit so."""
        found = []
        for level, entry in enumerate(self.architecture.levels):
            temporal, spatial = point.bounds[0, level], point.bounds[1, level]
            loops = [
                Loop(dim=DIMS[dim], bound=int(temporal[dim]))
                for dim in self.permutations[point.orders[level]]
                if temporal[dim] > 1
            ]
            along: dict[Dim, int] = {DIMS[dim]: int(spatial[dim]) for dim in np.flatnonzero(spatial > 1)}
            for name, bound, axis in self._placed(level, along):
                loops.append(Loop(dim=name, bound=bound, kind="spatial", axis=axis))
            found.append(ScheduleLevel(level=entry.name, keeps=self._kept(point, level), loops=tuple(loops)))
        return tuple(found[::-1])

    def _kept(self, point: Point, level: int) -> tuple[Tensor, ...]:
        """Tensors that a level keeps, in the architecture's order, then those that it keeps besides."""
        kept = (self._default_keeps if point.keeps is None else point.keeps)[level]
        entry = self.architecture.levels[level]
        return tuple(tensor for tensor in (*entry.keeps, *entry.may_keep) if kept[TENSORS.index(tensor)])

    def _placed(self, level: int, along: dict[Dim, int]) -> list[tuple[Dim, int, Axis]]:
        if not along:
            return []
        if level not in self.rules.axes:
            return split_over_axes(along, *self.architecture.fanout(level))
        x, _ = self.rules.axes[level]
        return [(dim, along[dim], "x" if dim in x else "y") for dim in order(list(along), ())]

    def allows(self, bounds: Array) -> Array:
        """Which mappings keep to the rules; bounds [n, 2, level, dimension]."""
        fine: Array = self.rules.allows(bounds)
        return fine

    def neighbours(self, point: Point, exchanges: bool) -> Points:
        """All neighbours within fan-outs and rules; capacities are not looked at. `exchanges`: pairs of moves, too."""
        moves = self._moves(point)
        moved = [_applied(point.bounds, (move,)) for move in moves]
        if exchanges:
            moved += self._exchanges(point, moves)
        bounds = np.array(moved).reshape(-1, *point.bounds.shape)
        bounds = bounds[self._within_fanouts(bounds) & self.allows(bounds)]
        orders = np.repeat(point.orders[np.newaxis], len(bounds), axis=0)
        other_orders = []
        for level in self._levels:
            if (point.bounds[0, level] > 1).sum() > 0:
                for number in self._choices[level]:
                    if number != point.orders[level]:
                        changed = point.orders.copy()
                        changed[level] = number
                        other_orders.append(changed)
        if other_orders:
            bounds = np.concatenate([bounds, np.repeat(point.bounds[np.newaxis], len(other_orders), axis=0)])
            orders = np.concatenate([orders, np.array(other_orders)])
        if point.keeps is None:
            return Points(bounds, orders)
        changed_keeps = self._other_keeps(point.keeps)
        same = np.repeat(point.keeps[np.newaxis], len(bounds), axis=0)
        count = len(changed_keeps)
        return Points(
            np.concatenate([bounds, np.repeat(point.bounds[np.newaxis], count, axis=0)]),
            np.concatenate([orders, np.repeat(point.orders[np.newaxis], count, axis=0)]),
            np.concatenate([same, changed_keeps]),
        )

    def _other_keeps(self, keeps: Array) -> Array:
        """What levels keep with one choice made the other way, or a tensor at one level instead of at another."""
        free = [(level, TENSORS.index(tensor)) for level, tensor in self.keeping.free]
        found = np.repeat(keeps[np.newaxis], len(free), axis=0)
        for number, (level, tensor) in enumerate(free):
            found[number, level, tensor] ^= True
        pairs = [
            (one, other)
            for at, one in enumerate(free)
            for other in free[at + 1 :]
            if keeps[one] != keeps[other] and (one[0] == other[0] or one[1] == other[1])
        ]
        swapped = np.repeat(keeps[np.newaxis], len(pairs), axis=0)
        for number, (one, other) in enumerate(pairs):
            swapped[number][one] ^= True
            swapped[number][other] ^= True
        return np.concatenate([found, swapped])

    def all_orders(self, point: Point) -> Array:
        """Every combination of orders of the levels that differ for a mapping's loops, [n, level]."""
        choices = []
        for level in self._levels:
            loops = point.bounds[0, level] > 1
            distinct: dict[tuple[int, ...], int] = {}
            for number in self._choices[level]:
                distinct.setdefault(tuple(int(dim) for dim in self.permutations[number] if loops[dim]), number)
            choices.append(list(distinct.values()))
        return np.array(list(product(*choices)), np.int64)

    def _places(self) -> list[tuple[int, int]]:
        return [(kind, level) for level in self._levels for kind in (0, 1) if kind == 0 or self._instances[level] > 1]

    def _moves(self, point: Point) -> list[tuple[int, int, int, int, int, int]]:
        """(dimension, prime, from kind, from level, to kind, to level) of every factor that can move."""
        places = self._places()
        return [
            (dim, prime, kind, level, to_kind, to_level)
            for dim in range(len(DIMS))
            for kind, level in places
            for prime in prime_factors(int(point.bounds[kind, level, dim]))
            for to_kind, to_level in places
            if (to_kind, to_level) != (kind, level)
        ]

    def _exchanges(self, point: Point, moves: list[tuple[int, int, int, int, int, int]]) -> list[Array]:
        """Pairs of moves there and back between the same two places, of different factors."""
        by_ends: dict[tuple[int, int, int, int], list[tuple[int, int, int, int, int, int]]] = {}
        for move in moves:
            by_ends.setdefault(move[2:], []).append(move)
        found = []
        for ends, there in by_ends.items():
            back = by_ends.get((*ends[2:], *ends[:2]), [])
            if ends < (*ends[2:], *ends[:2]):
                found += [
                    _applied(point.bounds, (one, other))
                    for one in there
                    for other in back
                    if (one[0], one[1]) != (other[0], other[1])
                ]
        return found

    def _within_fanouts(self, bounds: Array) -> Array:
        used = bounds[:, 1].prod(axis=2)
        fits: Array = (used <= np.array(self._instances)[np.newaxis]).all(axis=1)
        return fits

    def batch(self, points: Points) -> MappingBatch:
        """Mappings as the batch evaluator takes them; spatial loops run row by row over the instances."""
        mappings, levels, dims = len(points), len(self._levels), len(DIMS)
        temporal_dims = self.permutations[points.orders]
        keeps = self._default_keeps if points.keeps is None else points.keeps
        return MappingBatch(
            np.ascontiguousarray(temporal_dims),
            np.take_along_axis(points.bounds[:, 0], temporal_dims.astype(np.int64), axis=2),
            np.broadcast_to(np.arange(dims, dtype=np.uint8), (mappings, levels, dims)).copy(),
            np.ascontiguousarray(points.bounds[:, 1]),
            np.full((mappings, levels, dims), _ROW_MAJOR, np.uint8),
            np.broadcast_to(keeps, (mappings, levels, len(TENSORS))).copy(),
        )


def _applied(bounds: Array, moves: Sequence[tuple[int, int, int, int, int, int]]) -> Array:
    changed = bounds.copy()
    for dim, prime, kind, level, to_kind, to_level in moves:
        changed[kind, level, dim] //= prime
        changed[to_kind, to_level, dim] *= prime
    return changed
