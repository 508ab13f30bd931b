"""Loops of many mappings at once, and how a tensor's tile at one store changes as they step, vectorised over mappings.

The counts are those of `cosa.analytical.traffic` (exact convention).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from cosa.analytical.batch import MappingBatch
from cosa.analytical.footprint import axes, shared_on_axis, touched_on_axis
from cosa.analytical.tiles import IndexSet
from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, Dim, Layer, Tensor

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

    def groups(self, tensor: Tensor, level: int) -> Array:
        """Groups of instances below a level that need different words: different places on each axis."""
        found = np.ones(len(self.dims))
        for axis in axes(self.layer, tensor):
            sides = [self.spatial[:, level, DIMS.index(dim)] for dim in axis]
            steps = [(scale * self.inside[:, level, DIMS.index(dim)]).astype(np.int64) for dim, scale in axis.items()]
            found = found * (sides[0] if len(sides) == 1 else touched_on_axis(*sides, *steps))
        return found

    def boundary(self, tensor: Tensor, store: int, instances: range, flits_of: Callable[[Array], Array]) -> Boundary:
        """The tile of a level and how it changes as the loops outside step; -1: the words of one MAC.

        `instances`: levels whose spatial loops set instances side by side that one tile is for; `flits_of` words.
        """
        layer = self.layer
        tile_extents = self.inside[:, store + 1]
        all_axes = axes(layer, tensor)
        shared_along = [self._shared_along(axis, store, instances) for axis in all_axes]
        tile = np.prod([shared(np.zeros(len(tile_extents))) for shared in shared_along], axis=0)
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
            return Boundary(tile, tile * total, total, flits_of(tile) * total)
        fetched, visits, sent = tile.copy(), np.ones(len(rows)), flits_of(tile)
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
                    shared = shared * shared_along[number](shift)
                    behind[number] = behind[number] + np.where(mine, (bound - 1) * step, 0)
                times = total / inner * (bound - 1) / bound
                new = np.where(moved, tile - (shared if halo else 0), 0)
                fetched = fetched + times * new
                visits = visits + times * moved * (bound > 1)
                sent = sent + times * flits_of(new)
                inner = inner * bound
                stride[rows, number_of] *= bound
        return Boundary(tile, fetched, visits, sent)

    def _shared_along(self, axis: Mapping[Dim, int], store: int, instances: range) -> Callable[[Array], Array]:
        """Positions of an axis that a tile shares with itself moved so far, as a function of that distance.

        In closed form, but where both loops of a window go in steps, or instances side by side have positions between
        those of others, position by position.
        """
        dims = [DIMS.index(dim) for dim in axis]
        extents = [self.inside[:, store + 1, dim] for dim in dims]
        beside = np.ones(len(self.dims))
        steps = [(np.full(len(self.dims), scale), extent) for scale, extent in zip(axis.values(), extents, strict=True)]
        for level in instances:
            for dim, scale in zip(dims, axis.values(), strict=True):
                bound = self.spatial[:, level, dim]
                steps.append((scale * self.inside[:, level, dim], bound))
                beside = beside * bound
        scales = list(axis.values())
        mixed = np.zeros(len(self.dims), bool)
        if len(dims) == 2:
            both = np.minimum(*(self.inside[:, -1, dim] for dim in dims)) > 1
            mixed = both & (beside > 1)
        one_by_one = [
            (row, tuple((int(step[row]), int(bound[row])) for step, bound in steps if bound[row] > 1))
            for row in np.flatnonzero(mixed)
        ]

        def shared(shift: Array) -> Array:
            found: Array = shared_on_axis(scales, extents, shift) * beside
            for row, its_steps in one_by_one:
                found[row] = _overlap(its_steps, int(shift[row]))
            return found

        return shared


@lru_cache(maxsize=1 << 12)
def _index_set(steps: tuple[tuple[int, int], ...]) -> IndexSet:
    return IndexSet(steps)


@lru_cache(maxsize=1 << 16)
def _overlap(steps: tuple[tuple[int, int], ...], shift: int) -> int:
    return _index_set(steps).overlap(shift)
