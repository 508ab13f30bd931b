"""Mappings as small arrays, and all neighbours of one: what searches over mappings step through.

A mapping is the bounds of its temporal and spatial loops, [level, dimension] each, an order of every level's temporal
loops and a layout of its spatial ones. Neighbours differ by one prime factor moved between two places, by two factors
exchanged, or by one level's order; their spatial loops are laid out anew. What is evaluated (`Neighbourhood.batch`) and
what is written (`Neighbourhood.nest`) are made from one layout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import islice, permutations, product
from math import factorial, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from cosa.analytical.batch import SPATIAL_AXES, MappingBatch
from cosa.mappers.arrangements import Layout, arrangements
from cosa.mappers.nests import split_over_axes
from cosa.mip.factors import prime_factors
from cosa.mip.quantities import order
from cosa.model.arch import Architecture
from cosa.model.keeping import Keeping, as_array
from cosa.model.layer import DIMS, TENSORS, Dim, Tensor
from cosa.model.mapping_rules import Block, LoopKind, MappingRules
from cosa.model.schedule import Loop, ScheduleLevel

Array = npt.NDArray[Any]

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
class MappingPoint:
    """One mapping: `bounds` int64 [2 (temporal, spatial), level, dimension], `orders` numbers in a table of orders,
    `keeps` bool [level, tensor] (None: what the neighbourhood's levels keep by default), `layouts` of the spatial loops
    by level (None: as the neighbourhood lays them out)."""

    bounds: Array
    orders: Array
    keeps: Array | None = None
    layouts: tuple[Layout, ...] | None = None

    @property
    def tiles(self) -> bytes:
        """What tells mappings apart, whatever their orders and layouts: factors, and what levels keep."""
        return self.bounds.tobytes() + (b"" if self.keeps is None else self.keeps.tobytes())


@dataclass(frozen=True)
class MappingPoints:
    """Several mappings: the arrays of `MappingPoint` with a first axis over them; `layouts` is that of all."""

    bounds: Array
    orders: Array
    keeps: Array | None = None
    layouts: tuple[Layout, ...] | None = None

    def __len__(self) -> int:
        return len(self.bounds)

    def __getitem__(self, number: int) -> MappingPoint:
        keeps = None if self.keeps is None else self.keeps[number]
        return MappingPoint(self.bounds[number], self.orders[number], keeps, self.layouts)

    @staticmethod
    def of(point: MappingPoint, orders: Array | None = None) -> MappingPoints:
        """One mapping, or its factors in several orders."""
        orders = point.orders[np.newaxis] if orders is None else orders
        count = len(orders)
        keeps = None if point.keeps is None else np.repeat(point.keeps[np.newaxis], count, axis=0)
        return MappingPoints(np.repeat(point.bounds[np.newaxis], count, axis=0), orders, keeps, point.layouts)


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
        self._numbers = {tuple(map(int, order)): number for number, order in enumerate(self.permutations)}
        self._instances = [x * y for x, y in (architecture.fanout(level) for level in self._levels)]
        self._layouts: dict[tuple[int, bytes], Layout] = {}

    @cached_property
    def _levels(self) -> range:
        return range(len(self.architecture.levels))

    def point(
        self,
        bounds: Mapping[tuple[int, Dim, LoopKind], int],
        innermost: Mapping[int, Sequence[Dim]],
        keeps: Array | None = None,
    ) -> MappingPoint:
        """A mapping from factors, what stands innermost at each level, and what levels keep (None: by default)."""
        found = np.ones((2, len(self._levels), len(DIMS)), np.int64)
        for (level, dim, kind), bound in bounds.items():
            found[int(kind == "spatial"), level, DIMS.index(dim)] = bound
        orders = [self._order(level, innermost.get(level, ())) for level in self._levels]
        if keeps is None and not self.keeping.is_fixed:
            keeps = self._default_keeps
        return MappingPoint(found, np.array(orders, np.int64), keeps)

    def of_nest(self, nest: Sequence[ScheduleLevel]) -> MappingPoint:
        """The mapping nearest to a nest (outermost level first): its factors, its orders as the table has them.

        Levels keep what they keep by default, whatever the nest says."""
        bounds: dict[tuple[int, Dim, LoopKind], int] = {}
        innermost: dict[int, tuple[Dim, ...]] = {}
        for level, entry in enumerate(nest[::-1]):
            for loop in entry.loops:
                bounds[level, loop.dim, loop.kind] = bounds.get((level, loop.dim, loop.kind), 1) * loop.bound
            innermost[level] = tuple(loop.dim for loop in reversed(entry.temporal) if loop.bound > 1)
        return self.point(bounds, innermost)

    def adopted(self, point: MappingPoint, other: Neighbourhood) -> MappingPoint:
        """A mapping of another neighbourhood with its orders as this one's table numbers them."""
        orders = [self._number_of(tuple(map(int, other.permutations[number]))) for number in point.orders]
        return replace(point, orders=np.array(orders, np.int64))

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

    def nest(self, point: MappingPoint) -> tuple[ScheduleLevel, ...]:
        """A mapping as a nest, outermost level first; spatial loops run along x and y where they fit so."""
        found = []
        for level, entry in enumerate(self.architecture.levels):
            temporal, spatial = point.bounds[0, level], point.bounds[1, level]
            loops = [
                Loop(dim=DIMS[dim], bound=int(temporal[dim]))
                for dim in self.permutations[point.orders[level]]
                if temporal[dim] > 1
            ]
            layout = self._layout(level, spatial) if point.layouts is None else point.layouts[level]
            loops += [Loop(dim=name, bound=bound, kind="spatial", axis=axis) for name, bound, axis in layout]
            found.append(ScheduleLevel(level=entry.name, keeps=self._kept(point, level), loops=tuple(loops)))
        return tuple(found[::-1])

    def _kept(self, point: MappingPoint, level: int) -> tuple[Tensor, ...]:
        """Tensors that a level keeps, in the architecture's order, then those that it keeps besides."""
        kept = (self._default_keeps if point.keeps is None else point.keeps)[level]
        entry = self.architecture.levels[level]
        return tuple(tensor for tensor in entry.could_keep if kept[TENSORS.index(tensor)])

    def _layout(self, level: int, spatial: Array) -> Layout:
        """Where spatial loops (bounds by dimension) run at a level: along x and y where they fit so."""
        key = level, spatial.tobytes()
        if key not in self._layouts:
            along: dict[Dim, int] = {DIMS[dim]: int(spatial[dim]) for dim in np.flatnonzero(spatial > 1)}
            if level in self.rules.axes:
                x, _ = self.rules.axes[level]
                laid: Layout = tuple((dim, along[dim], "x" if dim in x else "y") for dim in order(list(along), ()))
            else:
                laid = tuple(split_over_axes(along, *self.architecture.fanout(level))) if along else ()
            self._layouts[key] = laid
        return self._layouts[key]

    def allows(self, bounds: Array) -> Array:
        """Which mappings keep to the rules; bounds [n, 2, level, dimension]."""
        fine: Array = self.rules.allows(bounds)
        return fine

    def neighbours(self, point: MappingPoint, exchanges: bool) -> MappingPoints:
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
            return MappingPoints(bounds, orders)
        changed_keeps = self._other_keeps(point.keeps)
        same = np.repeat(point.keeps[np.newaxis], len(bounds), axis=0)
        count = len(changed_keeps)
        return MappingPoints(
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

    def count_nests(self, point: MappingPoint) -> int:
        """How many nests `every_nest` has, at most."""
        orders = (
            factorial(int((point.bounds[0, level] > 1).sum())) if self._order_matters(level) else 1
            for level in self._levels
        )
        return prod(orders) * prod(len(choices) for choices in self._layout_choices(point))

    def every_nest(self, point: MappingPoint, most: int = 4096) -> Iterator[MappingPoints]:
        """The factors of a mapping in every order of every level, and every layout that can change a count, in batches
        of at most so many."""
        choices = [self._order_choices(level, point) for level in self._levels]
        for layouts in product(*self._layout_choices(point)):
            every = product(*choices)
            while orders := list(islice(every, most)):
                yield MappingPoints.of(
                    MappingPoint(point.bounds, point.orders, point.keeps, layouts), np.array(orders, np.int64)
                )

    def _order_matters(self, level: int) -> bool:
        """Around the MACs order matters only where a MAC has neighbours to take words from."""
        return level > 0 or self._instances[0] > 1

    def _order_choices(self, level: int, point: MappingPoint) -> list[int]:
        """Numbers of all orders of a level that differ for a mapping's loops and keep to the rules."""
        if not self._order_matters(level):
            return [int(point.orders[level])]
        loops = [int(dim) for dim in np.flatnonzero(point.bounds[0, level] > 1)]
        blocks = [[DIMS.index(dim) for dim in block] for block in self.rules.blocks.get(level, ())]
        named = [dim for block in blocks for dim in block]
        parts = [[dim for dim in loops if dim not in named]]
        parts += [[dim for dim in loops if dim in block] for block in reversed(blocks)]
        others = [dim for dim in range(len(DIMS)) if dim not in loops]
        return [
            self._number_of((*others, *(dim for part in chosen for dim in part)))
            for chosen in product(*(permutations(part) for part in parts))
        ]

    def _number_of(self, outer_to_inner: tuple[int, ...]) -> int:
        """The number of an order; one that the table does not have is added to it."""
        if outer_to_inner not in self._numbers:
            self._numbers[outer_to_inner] = len(self.permutations)
            self.permutations = np.concatenate([self.permutations, np.array([outer_to_inner], np.uint8)])
        return self._numbers[outer_to_inner]

    def _layout_choices(self, point: MappingPoint) -> list[list[Layout]]:
        """By level, the layouts that can change a count: all where neighbours may have each other's words."""
        found = []
        for level in self._levels:
            spatial = point.bounds[1, level]
            choices = [self._layout(level, spatial)]
            if self._may_link(point, level):
                along = {DIMS[dim]: int(spatial[dim]) for dim in np.flatnonzero(spatial > 1)}
                every = arrangements(along, *self.architecture.fanout(level), self.rules.axes.get(level))
                choices += [layout for layout in every if layout != choices[0]]
            found.append(choices)
        return found

    def _may_link(self, point: MappingPoint, level: int) -> bool:
        """Whether instances below a level may take words from neighbours in Timeloop's accounting.

        Words of a MAC can stay where they are, and its neighbour have them. Elsewhere words can be a neighbour's only
        on an axis of the inputs that both an output and a filter loop walk, one of them over time (`cosa.mip.links`).
        """
        spatial = {DIMS[dim] for dim in np.flatnonzero(point.bounds[1, level] > 1)}
        if not spatial or level == 0:
            return bool(spatial)
        temporal = {DIMS[dim] for dim in np.flatnonzero((point.bounds[0, level:] > 1).any(axis=0))}
        return any(
            one in temporal and (other in spatial or other in temporal)
            for pair in (("P", "R"), ("Q", "S"))
            for one, other in (pair, pair[::-1])
        )

    def _places(self) -> list[tuple[int, int]]:
        return [(kind, level) for level in self._levels for kind in (0, 1) if kind == 0 or self._instances[level] > 1]

    def _moves(self, point: MappingPoint) -> list[tuple[int, int, int, int, int, int]]:
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

    def _exchanges(self, point: MappingPoint, moves: list[tuple[int, int, int, int, int, int]]) -> list[Array]:
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

    def batch(self, points: MappingPoints) -> MappingBatch:
        """Mappings as the batch evaluator takes them, with the spatial loops laid out as `nest` writes them."""
        mappings, levels = len(points), len(self._levels)
        temporal_dims = self.permutations[points.orders]
        keeps = self._default_keeps if points.keeps is None else points.keeps
        spatial = (mappings, levels, 2 * len(DIMS))
        dims: Array = np.zeros(spatial, np.uint8)
        bounds: Array = np.ones(spatial, np.int64)
        axes: Array = np.zeros(spatial, np.uint8)
        widest = 1
        for level in self._levels:
            if self._instances[level] == 1:
                continue
            for layout, rows in self._laid_out(points, level):
                widest = max(widest, len(layout))
                for slot, (dim, bound, axis) in enumerate(layout):
                    dims[rows, level, slot] = DIMS.index(dim)
                    bounds[rows, level, slot] = bound
                    axes[rows, level, slot] = SPATIAL_AXES.index(axis)
        dims, bounds, axes = (np.ascontiguousarray(array[:, :, :widest]) for array in (dims, bounds, axes))
        return MappingBatch(
            np.ascontiguousarray(temporal_dims),
            np.take_along_axis(points.bounds[:, 0], temporal_dims.astype(np.int64), axis=2),
            dims,
            bounds,
            axes,
            np.broadcast_to(keeps, (mappings, levels, len(TENSORS))).copy(),
        )

    def _laid_out(self, points: MappingPoints, level: int) -> list[tuple[Layout, Any]]:
        """The layouts of a level that mappings have, each with the numbers of those mappings."""
        if points.layouts is not None:
            return [(points.layouts[level], slice(None))]
        spatial, found = points.bounds[:, 1, level], dict[Layout, list[int]]()
        # Most neighbours of a mapping have its spatial loops.
        first = spatial[:1]
        others = np.flatnonzero((spatial != first).any(axis=1))
        for number in map(int, others):
            found.setdefault(self._layout(level, spatial[number]), []).append(number)
        same = np.ones(len(spatial), np.bool_)
        same[others] = False
        return [*((self._layout(level, row), same) for row in first), *found.items()]


def _applied(bounds: Array, moves: Sequence[tuple[int, int, int, int, int, int]]) -> Array:
    changed = bounds.copy()
    for dim, prime, kind, level, to_kind, to_level in moves:
        changed[kind, level, dim] //= prime
        changed[to_kind, to_level, dim] *= prime
    return changed
