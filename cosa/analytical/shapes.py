"""Loops of many mappings at once, and how a tensor's tile at one store changes as they step, vectorised over mappings.

The counts are those of `cosa.analytical.traffic` (exact convention); where a window has both strides and dilations,
shared words are estimated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cosa.analytical.batch import MappingBatch
from cosa.analytical.tiles import axes
from cosa.arch import Architecture
from cosa.workload import DIMS, Layer, Tensor

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Boundary:
    """One tensor at one store, [mapping]: words of the tile, words fetched, tiles held, and flits of what was fetched,
    over the run."""

    tile: Array
    fetched: Array
    visits: Array
    flits: Array


class Shape:
    """The loops of many mappings by level: temporal ones from the inside out, spatial ones by dimension."""

    def __init__(self, layer: Layer, architecture: Architecture, batch: MappingBatch) -> None:
        self.layer, self.architecture = layer, architecture
        mappings, levels = batch.temporal_dims.shape[:2]
        self.dims = batch.temporal_dims[:, :, ::-1].astype(np.int64)
        self.bounds = batch.temporal_bounds[:, :, ::-1].astype(np.float64)
        self.spatial = np.ones((mappings, levels, len(DIMS)))
        self.temporal = np.ones((mappings, levels, len(DIMS)))
        rows = np.arange(mappings)
        for level in range(levels):
            for slot in range(batch.spatial_dims.shape[2]):
                self.spatial[rows, level, batch.spatial_dims[:, level, slot]] *= batch.spatial_bounds[:, level, slot]
            for slot in range(batch.temporal_dims.shape[2]):
                self.temporal[rows, level, batch.temporal_dims[:, level, slot]] *= batch.temporal_bounds[:, level, slot]
        self.both = self.spatial * self.temporal
        # Extent of every dimension over the levels further in than one.
        self.inside = np.concatenate([np.ones((mappings, 1, len(DIMS))), self.both.cumprod(axis=1)], axis=1)
        self.compute = self.temporal.prod(axis=(1, 2))

    def groups(self, tensor: Tensor, levels: range) -> Array:
        """Groups of instances below some levels that need different words (inputs: positions at least)."""
        found = np.ones(len(self.dims))
        for level in levels:
            for axis in axes(self.layer, tensor):
                sides = [self.spatial[:, level, DIMS.index(dim)] for dim in axis]
                if len(sides) == 1:
                    found = found * sides[0]
                else:
                    strides = [scale * self.inside[:, level, DIMS.index(dim)] for dim, scale in axis.items()]
                    same = (strides[0] == strides[1]) & (sides[0] > 1) & (sides[1] > 1)
                    found = found * np.where(same, sides[0] + sides[1] - 1, sides[0] * sides[1])
        return found

    def boundary(self, tensor: Tensor, store: int, inside: Array, flits_of: Callable[[Array], Array]) -> Boundary:
        """The tile of a level and how it changes as the loops outside step; -1: the words of one MAC.

        `inside`: groups of instances that a tile is for; `flits_of` its words.
        """
        layer = self.layer
        tile_extents = self.inside[:, store + 1]
        all_axes = axes(layer, tensor)
        all_extents = [[tile_extents[:, DIMS.index(dim)] for dim in axis] for axis in all_axes]
        touched = [
            shared_positions(list(axis.values()), extents, np.zeros(len(tile_extents)))
            for axis, extents in zip(all_axes, all_extents, strict=True)
        ]
        tile = np.prod(touched, axis=0)
        axis_of = np.full(len(DIMS), -1)
        scale_of = np.zeros(len(DIMS))
        for number, axis in enumerate(all_axes):
            for dim, scale in axis.items():
                axis_of[DIMS.index(dim)], scale_of[DIMS.index(dim)] = number, scale
        halo = self.architecture.machine.halo_reuse
        rows = np.arange(len(self.dims))
        stride = tile_extents.copy()
        behind = [np.zeros(len(rows)) for _ in all_axes]
        inner = np.ones(len(rows))
        total = np.ones(len(rows))
        for level in range(store + 1, self.dims.shape[1]):
            total = total * self.temporal[:, level].prod(axis=1)
        if store < 0:  # every iteration takes new words
            return Boundary(tile * inside, tile * inside * total, total, flits_of(tile * inside) * total)
        fetched, visits, sent = tile.copy(), np.ones(len(rows)), flits_of(tile * inside)
        for level in range(store + 1, self.dims.shape[1]):
            stride = stride * self.spatial[:, level]
            for slot in range(self.dims.shape[2]):
                number_of, bound = self.dims[:, level, slot], self.bounds[:, level, slot]
                if (bound == 1).all():
                    continue
                step = stride[rows, number_of] * scale_of[number_of]
                moved = np.zeros(len(rows), bool)
                shared = np.ones(len(rows))
                for number in range(len(all_axes)):
                    mine = axis_of[number_of] == number
                    shift = np.abs(np.where(mine, step, 0) - behind[number])
                    moved |= shift > 0
                    scales = list(all_axes[number].values())
                    shared = shared * shared_positions(scales, all_extents[number], shift)
                    behind[number] = behind[number] + np.where(mine, (bound - 1) * step, 0)
                times = total / inner * (bound - 1) / bound
                new = np.where(moved, tile - (shared if halo else 0), 0)
                fetched = fetched + times * new
                visits = visits + times * moved * (bound > 1)
                sent = sent + times * flits_of(new * inside)
                inner = inner * bound
                stride[rows, number_of] *= bound
        return Boundary(tile * inside, fetched * inside, visits, sent)


def shared_positions(scales: Sequence[int], extents: Sequence[Array], shift: Array) -> Array:
    """Positions on an axis that a tile and the same tile so far away both touch (shift 0: the tile's positions).

    Exact where one of the two loops of a window goes in steps of 1: the other's steps leave gaps where the first is
    shorter than they are. Else the share of the common span.
    """
    if len(scales) == 1:
        found: Array = np.maximum(0, extents[0] - shift)
        return found
    (coarse, many), (fine, few) = sorted(zip(scales, extents, strict=True), key=lambda pair: -pair[0])
    span = 1 + coarse * (many - 1) + fine * (few - 1)
    common = np.maximum(0, span - shift)
    if fine != 1:
        found = np.round(np.minimum(span, many * few) * common / span)
        return found
    whole, rest = np.divmod(shift, coarse)
    same = np.maximum(0, few - rest) * np.maximum(0, many - whole)
    next_one = np.maximum(0, few - coarse + rest) * np.maximum(0, many - whole - 1)
    found = np.where(few < coarse, same + next_one, common)
    return found
