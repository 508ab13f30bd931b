"""Tiles as sets of words: their size, and what two positions of the same tile share.

A tile is a product of index sets, one an axis of the tensor; the input axes W and H are sums of an output and a
filter loop (``P * stride_w + R * dilation_w``). A tile keeps its shape and moves, so what two positions share depends
on their distance alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

import numpy as np

from cosa.analytical.footprint import axes
from cosa.model.layer import Dim, Layer, Tensor
from cosa.model.schedule import Loop, ScheduleLevel

Shift = tuple[int, ...]


@dataclass(frozen=True)
class StridedLoop:
    """A loop of a nest with what one iteration of it advances its dimension by (`stride`, in indices)."""

    level: int
    loop: Loop
    stride: int

    @property
    def dim(self) -> Dim:
        """Its dimension."""
        return self.loop.dim

    @property
    def bound(self) -> int:
        """Its bound."""
        return self.loop.bound


def strided_loops(innermost_first: tuple[ScheduleLevel, ...]) -> list[StridedLoop]:
    """All loops with a bound above 1, outer to inner, each with its stride."""
    stride: dict[Dim, int] = {}
    found = []
    for level, entry in enumerate(innermost_first):
        for loop in reversed(entry.loops):
            if loop.bound > 1:
                found.append(StridedLoop(level, loop, stride.get(loop.dim, 1)))
                stride[loop.dim] = stride.get(loop.dim, 1) * loop.bound
    return found[::-1]


class IndexSet:
    """A finite set of indices on one axis, as an arithmetic progression where it is one."""

    def __init__(self, steps: Iterable[tuple[int, int]]) -> None:
        """All sums of one multiple i * step, i < bound, for each (step, bound)."""
        self._gap, self._count = 1, 1
        self._members: np.ndarray | None = None
        for step, bound in sorted(steps):
            self._widen(step, bound)

    def _widen(self, step: int, bound: int) -> None:
        if bound == 1 or step == 0:
            return
        if self._members is None:
            if self._count == 1:
                self._gap, self._count = step, bound
                return
            if step % self._gap == 0 and step // self._gap <= self._count:
                self._count += (bound - 1) * (step // self._gap)
                return
            self._members = np.arange(self._count, dtype=np.int64) * self._gap
        self._members = np.unique(np.add.outer(np.arange(bound, dtype=np.int64) * step, self._members))

    def __len__(self) -> int:
        return self._count if self._members is None else len(self._members)

    def overlap(self, shift: int) -> int:
        """Indices that the set shares with itself moved by `shift`."""
        if self._members is None:
            return 0 if shift % self._gap else max(0, self._count - abs(shift) // self._gap)
        return len(np.intersect1d(self._members, self._members + shift, assume_unique=True))


class Tile:
    """The words of a tensor that a node holds at once; `inside` are the loops that its buffers cover."""

    def __init__(self, layer: Layer, tensor: Tensor, inside: Iterable[StridedLoop]) -> None:
        loops = list(inside)
        self.tensor = tensor
        self._axes = axes(layer, tensor)
        self._sets = [
            IndexSet((axis[x.dim] * x.stride, x.bound) for x in loops if x.dim in axis) for axis in self._axes
        ]
        self.words = prod(len(indices) for indices in self._sets)
        self._shared: dict[Shift, int] = {}

    def position(self, offsets: dict[Dim, int]) -> Shift:
        """Where a tile lies whose loops stand at `offsets` (indices of each dimension)."""
        return tuple(sum(scale * offsets.get(dim, 0) for dim, scale in axis.items()) for axis in self._axes)

    def shared_words(self, shift: Shift) -> int:
        """Words that the tile shares with itself moved by `shift`."""
        if shift not in self._shared:
            pairs = zip(self._sets, shift, strict=True)
            self._shared[shift] = prod(indices.overlap(distance) for indices, distance in pairs)
        return self._shared[shift]
