"""What a machine moves where the last tile of a dimension may be smaller: a nest that covers more than the layer.

The loops of a dimension multiply up to at least its bound. Whatever lies outside the layer is not there: iterations
without work are skipped, tiles at the edge are cut, instances without work wait and keep what they hold. Otherwise the
convention is that of `cosa.analytical.exact`, and where nothing is cut the words are the same.

In closed form. For one instance, a dimension's temporal loops run over all indices below the layer's bound, in order,
so each loop ends earlier on the last iteration of those outside it. Which words are new when loop j advances depends on
the loops outside j and on j; the loops inside have just been at their last valid index and are back at 0. Axes do not
see one another, so a sum over all those iterations is a product of sums over the axes, each of few indices.

A partial sum is sent back to one instance of those that share it, unless no reduction loop has advanced yet. Instances
that share output tiles give them up together, those that have added nothing have nothing to give, and one that has no
work for want of outputs gives up its tile, since the sum is waited for further out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from cosa.analytical.exact import HopKind
from cosa.analytical.footprint import axes, touched_on_axis, touched_words
from cosa.analytical.tiles import StridedLoop, strided_loops
from cosa.model.layer import DIMS, REDUCTION, RELEVANT, Dim, Layer, Tensor
from cosa.model.schedule import ScheduleLevel

Array = npt.NDArray[Any]
Spatial = frozenset[int]
"""Numbers of loops over instances."""


@dataclass(frozen=True)
class Moves:
    """Tiles on a dimension: first index and number of indices now, and before; part of the first that is spatial."""

    start: Array
    count: Array
    held: Array
    before: Array
    beside: Array

    def pick(self, which: Array) -> Moves:
        """Some of them."""
        return Moves(self.start[which], self.count[which], self.held[which], self.before[which], self.beside[which])


@dataclass(frozen=True)
class CutAccesses:
    """Words of a tensor at a level: those of all instances, and of the one that never has less to do than another."""

    tile_words: int
    distinct_words: int
    instances: int
    reads: int
    fills: int
    updates: int
    drains: int
    busiest: tuple[int, int, int, int]
    """Reads, fills, updates and drains of that instance."""


class CutNest:
    """A nest (outermost level first) that covers a layer, with its tiles cut at the layer's bounds."""

    def __init__(self, layer: Layer, nest: tuple[ScheduleLevel, ...], halo_reuse: bool = True) -> None:
        self.layer, self.halo_reuse = layer, halo_reuse
        self.inner = nest[::-1]
        self.loops = strided_loops(self.inner)
        self._spatial = [x.loop.kind == "spatial" for x in self.loops]
        self._of: dict[Dim, list[int]] = {
            dim: [number for number, x in enumerate(self.loops) if x.dim == dim] for dim in DIMS
        }
        self._all_of = {dim: frozenset(numbers) for dim, numbers in self._of.items()}
        self._sums: dict[object, int] = {}
        self._moves_known: dict[object, Moves] = {}

    # Indices

    def extent(self, dim: Dim, store: int) -> int:
        """Indices of a dimension in a whole tile of a level, not more than there are."""
        whole = prod(x.bound for x in self.loops if x.dim == dim and x.level <= store)
        return min(whole, self.layer.bounds[dim])

    def places(self, dim: Dim, loops: Iterable[StridedLoop]) -> Array:
        """First indices of a dimension that loops put a tile at, of those where there is work."""
        found = np.zeros(1, np.int64)
        for x in loops:
            if x.dim == dim:
                found = np.add.outer(found, np.arange(x.bound) * x.stride).reshape(-1)
        return found[found < self.layer.bounds[dim]]

    @property
    def compute_cycles(self) -> int:
        """Iterations of the temporal loops in which there is work."""
        temporal = [x for x in self.loops if x.loop.kind == "temporal"]
        return prod(len(self.places(dim, temporal)) for dim in DIMS)

    def instances(self, level: int) -> int:
        """Instances of a level that have work at some time."""
        spatial = [x for x in self.loops if x.loop.kind == "spatial" and x.level > level]
        return prod(len(self.places(dim, spatial)) for dim in DIMS)

    def tile_words(self, tensor: Tensor, store: int) -> int:
        """Words of the largest tile of a level."""
        return touched_words(self.layer, tensor, {dim: self.extent(dim, store) for dim in DIMS})

    def _moves(self, dim: Dim, store: int, event: int | None, spatial: Spatial, waits: bool) -> Moves:
        """Where a tile is on a dimension, and was before, when a loop advances (None: at first).

        `event`: number of the loop; `spatial`: numbers of the loops over instances that are looked at; at all others
        the instance is number 0. Before: when the instance last had work (`waits`), or one iteration before, where it
        may have had none.
        """
        mine = [number for number in self._of[dim] if self.loops[number].level > store]
        outside = sum(1 for number in mine if event is not None and number < event and not self._spatial[number])
        which = "first" if event is None else str(event) if event in mine else "other"
        key = (dim, store, outside, which, spatial & self._all_of[dim], waits)
        if key not in self._moves_known:
            self._moves_known[key] = self._find_moves(dim, store, event, mine, spatial, waits)
        return self._moves_known[key]

    def _find_moves(
        self, dim: Dim, store: int, event: int | None, mine: list[int], spatial: Spatial, waits: bool
    ) -> Moves:
        bound, extent = self.layer.bounds[dim], prod(x.bound for x in self.loops if x.dim == dim and x.level <= store)
        start, beside = np.zeros(1, np.int64), np.zeros(1, np.int64)
        behind = []
        for number in mine:
            x = self.loops[number]
            if self._spatial[number]:
                steps = np.arange(x.bound if number in spatial else 1)
            elif event is not None and number < event:
                steps = np.arange(x.bound)
            elif number == event:
                steps = np.arange(1, x.bound)
            else:
                steps = np.zeros(1, np.int64)
                if event is not None:
                    behind.append(x)
            ahead = steps * x.stride
            start = np.add.outer(start, ahead).reshape(-1)
            beside = np.add.outer(beside, ahead if self._spatial[number] else 0 * ahead).reshape(-1)
        works = start < bound
        start, beside = start[works], beside[works]
        held = start - (self.loops[event].stride if event in mine and event is not None else 0)
        if not waits:
            held = held - beside
        for x in behind:
            held = held + np.minimum(x.bound - 1, (bound - 1 - held) // x.stride) * x.stride
        if not waits:
            held = held + beside
        return Moves(
            start, np.minimum(extent, bound - start), held, np.maximum(0, np.minimum(extent, bound - held)), beside
        )

    # Sums over the iterations of all instances that are looked at

    def total(self, tensor: Tensor, store: int, spatial: Spatial, merged: Spatial, new: bool) -> int:
        """Words over all visits of a tile (`new`: only those that were not there just before).

        Parameters
        ----------
        store: level of the tile.
        spatial: numbers of the loops over the instances to be summed over; elsewhere the instance is number 0.
        merged: those of them whose instances get equal words at once, which count once.
        """
        key = (tensor, store, spatial, merged, new)
        if key not in self._sums:
            events = [number for number, x in enumerate(self.loops) if x.level > store and not self._spatial[number]]
            self._sums[key] = sum(self._at(tensor, store, spatial, merged, new, event) for event in (None, *events))
        return self._sums[key]

    def _at(self, tensor: Tensor, store: int, spatial: Spatial, merged: Spatial, new: bool, event: int | None) -> int:
        times = 1
        for dim in DIMS:
            if dim not in RELEVANT[tensor]:
                times *= len(self._moves(dim, store, event, spatial, True).start)
        always = event is None or store < 0  # MACs take and give a word in every iteration
        now, kept = 1, 1
        for axis in axes(self.layer, tensor):
            moves = [self._moves(dim, store, event, spatial, tensor != "outputs") for dim in axis]
            if len(moves) == 1:
                sums = _on_plain_axis(moves[0], new and self.halo_reuse)
            else:
                sliding = all(merged & self._all_of[dim] for dim in axis)
                sums = self._on_sliding_axis(axis, moves, merged if sliding else frozenset(), new and self.halo_reuse)
            now, kept = now * sums[0], kept * sums[1]
        return times * (now if always else now - kept)

    def _on_sliding_axis(
        self, axis: Mapping[Dim, int], moves: list[Moves], merged: Spatial, overlaps: bool
    ) -> tuple[int, int]:
        """Sums of the tile's positions on an axis, and of those kept: of overlaps, or of tiles that did not move."""
        scales = tuple(axis.values())
        one, other = np.meshgrid(*(np.arange(len(move.start)) for move in moves), indexing="ij")
        which = [one.reshape(-1), other.reshape(-1)]
        picked = [move.pick(at) for move, at in zip(moves, which, strict=True)]
        first = sum(scale * move.start for scale, move in zip(scales, picked, strict=True))
        shift = first - sum(scale * move.held for scale, move in zip(scales, picked, strict=True))
        still = np.logical_and.reduce([(m.start == m.held) & (m.count == m.before) for m in picked])
        columns = [*(move.count for move in picked), *(move.before for move in picked), shift, still]
        if merged:
            # Instances whose windows coincide count once: told by temporal indices, and by places that are not merged.
            for dim, move in zip(axis, picked, strict=True):
                columns += [move.start - move.beside, self._apart(dim, move.beside, merged)]
            columns.append(first)
        rows, numbers = np.unique(np.stack(columns, axis=1), axis=0, return_counts=True)
        total, kept = 0, 0
        seen: set[object] = set()
        for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
            after, before = (row[0], row[1]), (row[2], row[3])
            if merged:
                mark = (*row[6:], _touched(scales, after))
                if mark in seen:
                    continue
                seen.add(mark)
                number = 1
            size = touched_on_axis(*after, *scales)
            total += number * size
            shared = size if row[5] else _shared_positions(scales, after, before, row[4])
            if row[5] or overlaps or shared == size == touched_on_axis(*before, *scales):
                kept += number * shared
        return total, kept

    def _apart(self, dim: Dim, beside: Array, merged: Spatial) -> Array:
        """What of the place of an instance on a dimension comes from loops that are not merged."""
        found = beside
        for number in sorted(merged & self._all_of[dim]):
            x = self.loops[number]
            found = found - beside // x.stride % x.bound * x.stride
        return found


def _on_plain_axis(moves: Moves, overlaps: bool) -> tuple[int, int]:
    if not overlaps:
        still = (moves.start == moves.held) & (moves.count == moves.before)
        return int(moves.count.sum()), int(moves.count[still].sum())
    end = np.minimum(moves.start + moves.count, moves.held + moves.before)
    return int(moves.count.sum()), int(np.maximum(0, end - np.maximum(moves.start, moves.held)).sum())


@lru_cache(maxsize=4096)
def _touched(scales: tuple[int, ...], counts: tuple[int, ...]) -> frozenset[int]:
    """Positions on an axis that so many steps of each loop touch, from 0."""
    return frozenset(
        sum(scale * index for scale, index in zip(scales, indices, strict=True))
        for indices in product(*map(range, counts))
    )


@lru_cache(maxsize=65536)
def _shared_positions(scales: tuple[int, ...], after: tuple[int, ...], before: tuple[int, ...], shift: int) -> int:
    """Positions that a tile shares with another one of its kind, from which it is `shift` away."""
    earlier = _touched(scales, before)
    return sum(place + shift in earlier for place in _touched(scales, after))


class CutTensor:
    """Everything that moves of one tensor in a cut nest: `levels` by level that keeps it, `hops` between them.

    A hop: its kind, source and destination (levels; -1: the MACs), words sent and received over all instances.
    At levels not in `busiest` (None: all are) the busiest instance is not looked for, and has 0.
    """

    def __init__(self, nest: CutNest, tensor: Tensor, busiest: frozenset[int] | None = None) -> None:
        self.nest, self.tensor = nest, tensor
        self._busiest = frozenset(range(len(nest.inner))) if busiest is None else busiest
        self.kept = [level for level, entry in enumerate(nest.inner) if tensor in entry.keeps]
        self.levels: dict[int, CutAccesses] = {}
        self.hops: list[tuple[HopKind, int, int, int, int]] = []
        returned = 0
        for place in range(len(self.kept) - 1, -1, -1):
            child = self.kept[place - 1] if place else -1
            self.levels[self.kept[place]] = self._level(self.kept[place], child, returned)
            returned = self.levels[self.kept[place]].reads
        self.hops = [hop for hop in self.hops if hop[3]]

    def _spatial(self, above: int, upto: int | None = None) -> Spatial:
        return frozenset(
            number
            for number, x in enumerate(self.nest.loops)
            if x.loop.kind == "spatial" and x.level > above and (upto is None or x.level <= upto)
        )

    def _sum(self, store: int, spatial: Spatial, merged: Spatial = frozenset(), new: bool = False) -> int:
        return self.nest.total(self.tensor, store, spatial, merged, new)

    def _level(self, level: int, child: int, returned: int) -> CutAccesses:
        """Accesses of one level and the hops to its child; `returned`: output words that all its instances are sent."""
        nest, tensor = self.nest, self.tensor
        outermost = level == len(nest.inner) - 1
        every, between = self._spatial(level), self._spatial(child, level)
        shared = frozenset(number for number in between if nest.loops[number].dim not in RELEVANT[tensor])
        below = between - shared
        tile, instances = nest.tile_words(tensor, level), nest.instances(level)
        distinct = nest.tile_words(tensor, len(nest.inner) - 1) if outermost else self._distinct(level)
        nothing: Spatial = frozenset()
        if tensor != "outputs":
            new = child >= 0
            sent = self._sum(child, every | below, below, new)
            fills = 0 if outermost else self._sum(level, every, nothing, True)
            busiest = self._sum(child, below, below, new) if level in self._busiest else 0
            most = 0 if outermost or level not in self._busiest else self._sum(level, nothing, nothing, True)
            received = self._sum(child, every | between, nothing, new)
            self.hops.append(("fill", level, child, sent, received))
            return CutAccesses(tile, distinct, instances, sent, fills, 0, 0, (busiest, most, 0, 0))
        arriving = self._sum(child, every | below)
        added = self._sum(child, every | between) - arriving
        words = nest.tile_words("outputs", len(nest.inner) - 1)
        drains = 0 if outermost else self._sum(level, every)
        # Words of a visit that were not sent back start from nothing: their first arrival reads nothing.
        back = arriving - ((words if outermost else drains) - returned)
        own = mine = to_me = given = 0
        if level in self._busiest:
            mine, given = self._sum(child, below), 0 if outermost else self._sum(level, nothing)
            own = mine - self._sum_distinct(child, below)
            to_me = 0 if outermost else given - self._sum_distinct(level, nothing)
        # Nothing is finished below where others outside add to it.
        outside = [nest.loops[number] for number in every]
        adding = prod(len(nest.places(dim, outside)) for dim in REDUCTION)
        complete = words if adding == 1 else 0
        self.hops += [
            ("reduction", child, child, added, added),
            ("final", child, level, complete, complete),
            ("partial", child, level, arriving - complete, arriving - complete),
            ("reload", level, child, back, back),
        ]
        return CutAccesses(tile, distinct, instances, back, returned, arriving, drains, (own, to_me, mine, given))

    def _sum_distinct(self, store: int, spatial: Spatial) -> int:
        """Output words of the tiles at a level, each once, of the instances that are looked at."""
        nest = self.nest
        loops = [
            x
            for number, x in enumerate(nest.loops)
            if x.level > store and (x.loop.kind == "temporal" or number in spatial)
        ]
        found = 1
        for dim in DIMS:
            if dim in RELEVANT["outputs"]:
                extent = prod(x.bound for x in nest.loops if x.dim == dim and x.level <= store)
                start = nest.places(dim, loops)
                found *= int(np.minimum(extent, nest.layer.bounds[dim] - start).sum())
        return found

    def _distinct(self, level: int) -> int:
        """Different words of the busiest instance over the run."""
        nest = self.nest
        loops = [x for x in nest.loops if x.level <= level or x.loop.kind == "temporal"]
        found = 1
        for axis in axes(nest.layer, self.tensor):
            positions = np.zeros(1, np.int64)
            for dim, scale in axis.items():
                positions = np.add.outer(positions, scale * nest.places(dim, loops)).reshape(-1)
            found *= len(np.unique(positions))
        return found


def cut(
    layer: Layer, nest: tuple[ScheduleLevel, ...], halo_reuse: bool, busiest: frozenset[int] | None = None
) -> tuple[CutNest, dict[Tensor, CutTensor]]:
    """What a nest (outermost level first) that covers a layer moves of each tensor, with tiles cut at its bounds.

    `busiest`: levels whose busiest instance is looked for (None: all)."""
    found = CutNest(layer, nest, halo_reuse)
    tensors: tuple[Tensor, ...] = ("weights", "inputs", "outputs")
    return found, {tensor: CutTensor(found, tensor, busiest) for tensor in tensors}
