"""A nest as the analytical conventions see it: levels from the inside out, strides of loops, boxes of tiles.

A box is the extent of a tile along each axis of a tensor. Positions along an axis are sums over its loops, index times
stride times how far one index goes (`cosa.analytical.footprint.axes`), so everything here is a few integers a loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod

from cosa.analytical.footprint import axes, coinciding, span
from cosa.analytical.tiles import Shift
from cosa.model.arch import Architecture
from cosa.model.layer import Dim, Layer, Tensor
from cosa.model.schedule import Axis, ScheduleLevel


@dataclass(frozen=True)
class Step:
    """A loop with a bound above 1: one iteration advances its dimension by `stride` indices."""

    dim: Dim
    bound: int
    stride: int
    axis: Axis | None = None


class LevelLoops:
    """Loops of one level, outer to inner, and the extents that they and everything inside cover."""

    def __init__(self, entry: ScheduleLevel, inside: Mapping[Dim, int], along_x: int) -> None:
        """`inside`: extents of the levels further in; `along_x`: instances that the fan-out has along x."""
        extents = dict(inside)
        self.spatial: list[Step] = []
        self.temporal: list[Step] = []
        for steps, loops in ((self.spatial, entry.spatial), (self.temporal, entry.temporal)):
            for loop in reversed(loops):
                if loop.bound > 1:
                    stride = extents.get(loop.dim, 1)
                    steps.insert(0, Step(loop.dim, loop.bound, stride, loop.axis))
                    extents[loop.dim] = stride * loop.bound
            if steps is self.spatial:
                self.spatial_extents = dict(extents)
        # Instances are numbered row by row, so loops along y stand outside those along x.
        self.spatial.sort(key=lambda step: step.axis != "y")
        self.extents = extents
        self.fanout = prod(step.bound for step in self.spatial)
        self.columns = along_x
        """Instances of one row of the array: the distance between vertical neighbours, as Timeloop numbers them.

        Instances in use are numbered without gaps, so where a row is not filled, neighbours by number are others than
        those by place. A quirk that is kept.
        """


class NestView:
    """A layer's nest on an architecture; levels innermost first.

    Parameters
    ----------
    nest: outermost level first, as a schedule has it.
    """

    def __init__(self, layer: Layer, architecture: Architecture, nest: tuple[ScheduleLevel, ...]) -> None:
        self.layer, self.architecture = layer, architecture
        self.entries = nest[::-1]
        self.levels: list[LevelLoops] = []
        extents: Mapping[Dim, int] = {}
        for level, entry in enumerate(self.entries):
            self.levels.append(LevelLoops(entry, extents, architecture.fanout(level)[0]))
            extents = self.levels[-1].extents

    @cached_property
    def compute_cycles(self) -> int:
        """Product of all temporal bounds."""
        return prod(step.bound for level in self.levels for step in level.temporal)

    @cached_property
    def macs_used(self) -> int:
        """MAC units in use: the product of all spatial bounds."""
        return prod(level.fanout for level in self.levels)

    def instances_used(self, level: int) -> int:
        """Instances of a level in use; level -1 stands for the MAC units."""
        return prod(outer.fanout for outer in self.levels[level + 1 :])

    def keeps(self, level: int, tensor: Tensor) -> bool:
        """Whether the schedule keeps a tensor at a level."""
        return tensor in self.entries[level].keeps

    def outside(self, level: int) -> list[Step]:
        """Temporal loops outside a level's tile, inner to outer."""
        return [step for outer in self.levels[level + 1 :] for step in reversed(outer.temporal)]

    def box(self, tensor: Tensor, extents: Mapping[Dim, int]) -> Shift:
        """Extent of a tile along each axis of a tensor, gaps between strides included."""
        return tuple(span(axis.values(), (extents.get(dim, 1) for dim in axis)) for axis in axes(self.layer, tensor))

    def tile_box(self, tensor: Tensor, level: int) -> Shift:
        """Box of the tile that one instance of a level holds; level -1: the one word of a MAC."""
        return self.box(tensor, self.levels[level].extents if level >= 0 else {})

    def offset(self, tensor: Tensor, step: Step) -> Shift:
        """How far a tile moves along each axis when one loop advances by one."""
        return tuple(axis.get(step.dim, 0) * step.stride for axis in axes(self.layer, tensor))

    def moves(self, tensor: Tensor, level: int) -> list[Shift]:
        """How far a tile moves when each loop of `outside` advances from 0 to 1 and those inside it fall back to 0."""
        found, behind = [], (0,) * len(axes(self.layer, tensor))
        for step in self.outside(level):
            offset = self.offset(tensor, step)
            found.append(tuple(a - b for a, b in zip(offset, behind, strict=True)))
            behind = tuple(a + b for a, b in zip(offset, behind, strict=True))
        return found


def new_words(box: Shift, shift: Shift) -> int:
    """Words of a box that the same box, before it moved by `shift`, did not hold, as Timeloop subtracts boxes.

    Nothing if it did not move; the strip if it moved along one axis by less than its extent; else the whole box.
    """
    words = prod(box)
    moved = [(extent, abs(distance)) for extent, distance in zip(box, shift, strict=True) if distance]
    if not moved:
        return 0
    if len(moved) > 1 or moved[0][1] >= moved[0][0]:
        return words
    return words // moved[0][0] * moved[0][1]


def group_sizes(layer: Layer, tensor: Tensor, spatial: Iterable[Step]) -> dict[int, int]:
    """How many groups of instances need the same words: {instances of a group: number of such groups}.

    Instances share a position where a loop does not move the tensor, and, for inputs, where an output and a filter
    loop move it by the same distance: chains of pairs (`footprint.coinciding`).
    """
    steps = list(spatial)
    sizes = Counter({1: 1})
    for step in steps:
        if not any(step.dim in axis for axis in axes(layer, tensor)):
            sizes = Counter({size * step.bound: count for size, count in sizes.items()})
    for axis in axes(layer, tensor):
        bounds: list[int] = []
        strides: list[int] = []
        for dim, scale in axis.items():
            along = [step for step in steps if step.dim == dim]
            if along:
                # The spatial loops of one level over one dimension are consecutive: together one range of indices.
                bounds.append(prod(step.bound for step in along))
                strides.append(scale * min(step.stride for step in along))
        if len(bounds) < 2:
            sizes = Counter({size: count * prod(bounds) for size, count in sizes.items()})
            continue
        axis_pairs = (bounds[0], bounds[1], strides[0], strides[1], gcd(*strides))
        length, pairs, linked = 1, prod(bounds), coinciding(*axis_pairs)
        sizes_before, sizes = sizes, Counter()
        while pairs:
            further = coinciding(*axis_pairs, length + 1)
            if number := pairs - 2 * linked + further:
                for size, count in sizes_before.items():
                    sizes[size * length] += count * number
            length, pairs, linked = length + 1, linked, further
    return dict(sizes)
