"""Evaluation of many mappings of one layer on one architecture at once, in Timeloop's convention.

The same results as `cosa.analytical.evaluation.evaluate`, from compiled code. Mappings come as arrays, so that a mapper
can make them without a Python object each; `MappingBatch.of` turns nests into arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cosa.analytical.energy import mac_energy_pj, vector_access_energy_pj
from cosa.analytical.evaluation import Evaluation, evaluate_timeloop
from cosa.analytical.footprint import axes
from cosa.common.errors import InputError
from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, TENSORS, Layer
from cosa.model.schedule import Axis, Loop, ScheduleLevel
from cosa.model.validity import violations

Array = npt.NDArray[Any]
SPATIAL_AXES: tuple[Axis, ...] = ("x", "y", "row_major")


@dataclass(frozen=True)
class MappingBatch:
    """Mappings as arrays; levels innermost first, slots outer to inner, a bound of 1 is an empty slot.

    `temporal_dims`, `spatial_dims`: numbers in `DIMS`, uint8 [mapping, level, slot]; `temporal_bounds`,
    `spatial_bounds`: int64 of the same shape; `spatial_axes`: numbers in `SPATIAL_AXES`, uint8; `keeps`: bool [mapping,
    level, tensor]. Mappings are not checked: bounds must multiply up to the layer, the outermost level keeps all.
    """

    temporal_dims: Array
    temporal_bounds: Array
    spatial_dims: Array
    spatial_bounds: Array
    spatial_axes: Array
    keeps: Array

    def __len__(self) -> int:
        return len(self.temporal_dims)

    @staticmethod
    def empty(mappings: int, levels: int, temporal_slots: int, spatial_slots: int) -> MappingBatch:
        """Mappings without loops that keep everything everywhere, to be filled."""
        temporal, spatial = (mappings, levels, temporal_slots), (mappings, levels, spatial_slots)
        return MappingBatch(
            np.zeros(temporal, np.uint8),
            np.ones(temporal, np.int64),
            np.zeros(spatial, np.uint8),
            np.ones(spatial, np.int64),
            np.zeros(spatial, np.uint8),
            np.ones((mappings, levels, len(TENSORS)), np.bool_),
        )

    @staticmethod
    def of(nests: Sequence[tuple[ScheduleLevel, ...]]) -> MappingBatch:
        """Nests (outermost level first, as schedules have them) as arrays."""
        entries = [entry for nest in nests for entry in nest]
        temporal = max((len(entry.temporal) for entry in entries), default=0)
        spatial = max((len(entry.spatial) for entry in entries), default=0)
        batch = MappingBatch.empty(len(nests), len(nests[0]) if nests else 1, max(1, temporal), max(1, spatial))
        for number, nest in enumerate(nests):
            for level, entry in enumerate(nest[::-1]):
                for slot, loop in enumerate(entry.temporal):
                    batch.temporal_dims[number, level, slot] = DIMS.index(loop.dim)
                    batch.temporal_bounds[number, level, slot] = loop.bound
                for slot, loop in enumerate(entry.spatial):
                    assert loop.axis is not None
                    batch.spatial_dims[number, level, slot] = DIMS.index(loop.dim)
                    batch.spatial_bounds[number, level, slot] = loop.bound
                    batch.spatial_axes[number, level, slot] = SPATIAL_AXES.index(loop.axis)
                batch.keeps[number, level] = [tensor in entry.keeps for tensor in TENSORS]
        return batch

    def loops(self) -> tuple[Array, Array, Array, Array, Array]:
        """The arrays of the loops, in their order."""
        return self.temporal_dims, self.temporal_bounds, self.spatial_dims, self.spatial_bounds, self.spatial_axes

    def first(self, mappings: int) -> MappingBatch:
        """The first so many mappings (the same memory)."""
        return self.rows(slice(mappings))

    def rows(self, which: slice | Array) -> MappingBatch:
        """Some of the mappings."""
        dims, bounds, spatial_dims, spatial_bounds, axes = (loops[which] for loops in self.loops())
        return MappingBatch(dims, bounds, spatial_dims, spatial_bounds, axes, self.keeps[which])

    def nest(self, architecture: Architecture, number: int) -> tuple[ScheduleLevel, ...]:
        """One mapping as a nest, outermost level first."""
        found = []
        for level, entry in enumerate(architecture.levels):
            loops = [
                Loop(dim=DIMS[dim], bound=int(bound))
                for dim, bound in zip(
                    self.temporal_dims[number, level], self.temporal_bounds[number, level], strict=True
                )
                if bound > 1
            ]
            columns = self.spatial_dims, self.spatial_bounds, self.spatial_axes
            for dim, bound, axis in zip(*(column[number, level] for column in columns), strict=True):
                if bound > 1:
                    loops.append(Loop(dim=DIMS[dim], bound=int(bound), kind="spatial", axis=SPATIAL_AXES[axis]))
            keeps = tuple(tensor for tensor, kept in zip(TENSORS, self.keeps[number, level], strict=True) if kept)
            found.append(ScheduleLevel(level=entry.name, keeps=keeps, loops=tuple(loops)))
        return tuple(found[::-1])


@dataclass(frozen=True)
class BatchResult:
    """Results by mapping; counts are scalar words of one instance, [mapping, level, tensor], 0 where not kept.

    `fits`: within capacities and fan-outs (what does not fit is evaluated all the same). Without `detail` the arrays
    from `tile_words` on are None.
    """

    compute_cycles: Array
    cycles: Array
    energy_pj: Array
    utilisation: Array
    fits: Array
    tile_words: Array | None = None
    partition_words: Array | None = None
    reads: Array | None = None
    fills: Array | None = None
    updates: Array | None = None
    level_energy_pj: Array | None = None
    instances: Array | None = None
    level_cycles: Array | None = None


class BatchEvaluator:
    """Evaluates mappings of one layer on one architecture; the first call of a process loads the compiled kernel.

    For those who make mappings: `dims_of` [tensor, axis, 2] are the dimensions that walk an axis of a tensor (-1:
    none), `scale_of` [tensor, dim] how far one index goes on it, `fanouts` [level, 2], `capacities` [level] in words
    (-1: unbounded).
    """

    def __init__(self, layer: Layer, architecture: Architecture) -> None:
        self.layer, self.architecture = layer, architecture
        axis_of = np.full((len(TENSORS), len(DIMS)), -1, np.int64)
        scale_of = np.zeros((len(TENSORS), len(DIMS)), np.int64)
        dims_of = np.full((len(TENSORS), 5, 2), -1, np.int64)
        for number, tensor in enumerate(TENSORS):
            for axis, loops in enumerate(axes(layer, tensor)):
                dims_of[number, axis, : len(loops)] = [DIMS.index(dim) for dim in loops]
                for dim, scale in loops.items():
                    axis_of[number, DIMS.index(dim)], scale_of[number, DIMS.index(dim)] = axis, scale
        levels = range(len(architecture.levels))
        capacities = [architecture.usable_words(level) for level in levels]
        bandwidths = [
            [np.inf if value is None else value for value in values]
            for values in zip(
                *((x.read_bandwidth_words_per_cycle, x.write_bandwidth_words_per_cycle) for x in architecture.levels),
                strict=True,
            )
        ]
        arrays = [
            architecture.instances(level) // entry.cluster_size for level, entry in enumerate(architecture.levels)
        ]
        self.dims_of, self.scale_of = dims_of, scale_of
        self.fanouts = np.array([architecture.fanout(level) for level in levels], np.int64)
        self.capacities = np.array([-1 if words is None else words for words in capacities], np.int64)
        self.tables = (
            axis_of,
            scale_of,
            dims_of,
            self.fanouts,
            self.capacities,
            np.array([entry.block_words for entry in architecture.levels], np.int64),
            np.array(arrays, np.int64),
            np.array(bandwidths[0], np.float64),
            np.array(bandwidths[1], np.float64),
            np.array([vector_access_energy_pj(architecture, level) for level in levels], np.float64),
            float(layer.macs * mac_energy_pj(architecture)),
        )

    def evaluate(self, batch: MappingBatch, detail: bool = True) -> BatchResult:
        """Evaluate every mapping; without `detail` only cycles, energy, utilisation and whether it fits.

        Raises
        ------
        InputError: the arrays have another number of levels, or a count does not fit 64 bits.
        """
        # Loads numba: nothing else of the package needs it.
        from cosa.analytical.batch_kernel import DONE, evaluate_batch

        mappings, levels = batch.temporal_dims.shape[:2]
        if levels != len(self.architecture.levels):
            allowed = f"{len(self.architecture.levels)}, as {self.architecture.name} has"
            raise InputError("another number of levels", source="mappings", value=levels, allowed=allowed)
        rows = mappings if detail else 1
        # Two rows at least where they are scratch, so that one mapping is not taken for a batch with details.
        if not detail and mappings == 1:
            rows = 2
        tiles, partitions, reads, fills, updates = (np.zeros((rows, levels, len(TENSORS)), np.int64) for _ in range(5))
        energies = np.zeros((rows, levels, len(TENSORS)), np.float64)
        instances, level_cycles = (np.zeros((rows, levels), np.int64) for _ in range(2))
        compute, cycles = (np.zeros(mappings, np.int64) for _ in range(2))
        energy, fits = np.zeros(mappings, np.float64), np.zeros(mappings, np.bool_)
        status = np.zeros(mappings, np.uint8)
        counted = (tiles, partitions, instances, reads, fills, updates, energies, level_cycles)
        evaluate_batch(batch.loops(), batch.keeps, self.tables, (*counted, compute, cycles, energy, fits, status))
        details = (tiles, partitions, reads, fills, updates, energies, instances, level_cycles)
        for number in map(int, np.flatnonzero(status != DONE)):
            nest = batch.nest(self.architecture, number)
            found = evaluate_timeloop(self.layer, self.architecture, nest)
            cycles[number], energy[number] = _int64(found.cycles), found.energy_pj
            fits[number] = not violations(self.layer, self.architecture, nest)
            if detail:
                _write(found, number, details)
        for limit in self.architecture.limits:
            product = np.ones(mappings, np.float64)
            for level, kind in {(self.architecture.level_index(place.level), place.kind) for place in limit.over}:
                bounds = batch.temporal_bounds if kind == "temporal" else batch.spatial_bounds
                product *= np.prod(bounds[:, level].astype(np.float64), axis=1)
            fits &= product <= limit.most
        utilisation = self.layer.macs / (cycles.astype(np.float64) * self.architecture.macs)
        if not detail:
            return BatchResult(compute, cycles, energy, utilisation, fits)
        return BatchResult(compute, cycles, energy, utilisation, fits, *details)


def _int64(value: int) -> int:
    if value >= 2**63:
        raise InputError("a count does not fit 64 bits", source="mappings", value=value, allowed="at most 2^63 - 1")
    return value


def _write(found: Evaluation, number: int, details: tuple[Array, ...]) -> None:
    tiles, partitions, reads, fills, updates, energies, instances, level_cycles = details
    for level, item in enumerate(found.levels):
        level_cycles[number, level] = _int64(item.cycles)
        for tensor, name in enumerate(TENSORS):
            for array in (tiles, partitions, reads, fills, updates, energies):
                array[number, level, tensor] = 0
            if (one := item.tensors.get(name)) is not None:
                tiles[number, level, tensor] = _int64(one.tile_words)
                partitions[number, level, tensor] = _int64(one.partition_words)
                reads[number, level, tensor] = _int64(one.reads)
                fills[number, level, tensor] = _int64(one.fills)
                updates[number, level, tensor] = _int64(one.updates)
                energies[number, level, tensor] = one.energy_pj
                instances[number, level] = one.instances
