"""What the machine of a mesh must carry for many mappings at once, and how long that will take.

The counts are those of `cosa.analytical.traffic` (exact convention), vectorised over mappings; where a window has both
strides and dilations, or an output and a filter loop stand side by side over PEs, shared words are estimated.
Loads are in flits, headers and partly filled flits counted; compute in cycles. Two figures follow:

* `floor_cycles`: the largest load, each with what must come before or after it; no run takes less.
* `predicted_cycles`: a sum with fitted weights (`Constants`), no proof: floor, single loads, one step, the last tile,
  and every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from cosa.analytical.batch import MappingBatch
from cosa.analytical.constants import Constants
from cosa.analytical.loads import flits
from cosa.analytical.tiles import axes
from cosa.analytical.traffic import word_bits
from cosa.arch import Architecture
from cosa.errors import InputError
from cosa.workload import DIMS, RELEVANT, TENSORS, Layer, Tensor

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class NetworkLoads:
    """Loads of every mapping, float64 [mapping].

    compute: cycles, pipeline latency of every step included. gb_out, gb_in, dram_out, dram_in, pe_in: flits at ports of
    the global buffer, the DRAM and the busiest PE. to_pes: flits from the memories to PEs, which share the links at
    the memories' router. dram_bytes: bytes at the DRAM. partial: flits of partial sums that come back to a PE.
    first_in: flits of the first tiles from DRAM, before which nothing can be computed. first_step: one step: its inputs
    to the PEs, its compute, its outputs away. last_out: the last tile from the global buffer to DRAM. steps: number.
    """

    compute: Array
    steps: Array
    gb_out: Array
    gb_in: Array
    dram_out: Array
    dram_in: Array
    pe_in: Array
    to_pes: Array
    dram_bytes: Array
    partial: Array
    first_in: Array
    first_step: Array
    last_out: Array


@dataclass(frozen=True)
class Boundary:
    """One tensor at one store, [mapping]: words of the tile, words fetched and tiles held over the run."""

    tile: Array
    fetched: Array
    visits: Array


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

    def boundary(self, tensor: Tensor, store: int) -> Boundary:
        """The tile of a level and how it changes as the loops outside step; -1: the words of one MAC."""
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
            return Boundary(tile, tile * total, total)
        fetched, visits = tile.copy(), np.ones(len(rows))
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
                inner = inner * bound
                stride[rows, number_of] *= bound
        return Boundary(tile, fetched, visits)


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


def has_one_buffer(architecture: Architecture) -> bool:
    """Whether the mesh lies under the level next to the DRAM: the machine whose loads are counted here."""
    return architecture.noc is not None and architecture.mesh_level == len(architecture.levels) - 2


def waits_for_tiles(architecture: Architecture) -> int:
    """1 where a step is computed after all of its tiles are there, 0 where it overlaps their arrival."""
    return int(architecture.machine.compute_starts == "whole_tile")


class NetworkEvaluator:
    """Loads of mappings of one layer on one architecture with a mesh under the level next to the DRAM.

    Raises
    ------
    InputError: the architecture has no mesh, or one elsewhere.
    """

    def __init__(self, layer: Layer, architecture: Architecture) -> None:
        if architecture.require_noc() and not has_one_buffer(architecture):
            raise InputError(
                "the network model knows a mesh under one global buffer under the DRAM only",
                source=architecture.name,
                path="levels",
                allowed="`fanout: mesh` at the last level but one, or the analytical model",
            )
        self.layer, self.architecture = layer, architecture
        self.noc, self.mesh = architecture.require_noc(), architecture.mesh_level
        self.bits: dict[Tensor, int] = {tensor: word_bits(layer, architecture, tensor) for tensor in TENSORS}
        self.partial_bits = word_bits(layer, architecture, "outputs", finished=False)

    def flits(self, words: Array, bits: int) -> Array:
        """Flits of a transfer of so many words, headers included."""
        found: Array = flits(self.noc, np.ceil(words * bits / 8))
        return found

    def _sent(self, boundary: Boundary, groups: Array, bits: int) -> Array:
        """Flits of all transfers of an operand; strips are taken to be alike."""
        first = self.flits(boundary.tile, bits)
        later = np.maximum(boundary.visits - 1, 1)
        each = self.flits((boundary.fetched - boundary.tile) / later, bits)
        found: Array = groups * (first + np.where(boundary.visits > 1, (boundary.visits - 1) * each, 0))
        return found

    def loads(self, batch: MappingBatch) -> NetworkLoads:
        """Loads of every mapping."""
        if not len(batch):
            return self._loads(batch, np.ones(batch.keeps.shape[1:], np.bool_))
        patterns, which = np.unique(batch.keeps.reshape(len(batch), -1), axis=0, return_inverse=True)
        if len(patterns) == 1:
            return self._loads(batch, batch.keeps[0])
        found = {field.name: np.empty(len(batch)) for field in fields(NetworkLoads)}
        for number in range(len(patterns)):
            rows = np.flatnonzero(which.reshape(-1) == number)
            part = self._loads(batch.rows(rows), batch.keeps[rows[0]])
            for name, values in found.items():
                values[rows] = getattr(part, name)
        return NetworkLoads(**found)

    def _loads(self, batch: MappingBatch, keeps: Array) -> NetworkLoads:
        """Loads of mappings whose levels keep the same tensors, bool [level, tensor]."""
        stores = {
            tensor: int(max(np.flatnonzero(keeps[: self.mesh, at]), default=-1)) for at, tensor in enumerate(TENSORS)
        }
        buffered = {tensor: bool(keeps[self.mesh, at]) for at, tensor in enumerate(TENSORS)}
        shape = Shape(self.layer, self.architecture, batch)
        mappings = len(batch)
        zero = np.zeros(mappings)
        gb_out, gb_in, dram_out, dram_in, to_pes, pe_in = (zero.copy() for _ in range(6))
        dram_bytes, first_in, first_step = zero.copy(), zero.copy(), zero.copy()
        steps = np.ones(mappings)
        for tensor in ("weights", "inputs"):
            bits, store = self.bits[tensor], stores[tensor]
            own = shape.boundary(tensor, store)
            inside = shape.groups(tensor, range(store + 1, self.mesh))
            tile = Boundary(own.tile * inside, own.fetched * inside, own.visits)
            groups = shape.groups(tensor, range(self.mesh, self.mesh + 1))
            sent = self._sent(tile, groups, bits)
            steps = np.maximum(steps, self._steps(shape, tensor, store))
            to_pes += sent
            pe_in += sent / groups
            first = groups * self.flits(tile.tile, bits)
            if buffered[tensor]:
                gb_out += sent
                first_step += first
                far = shape.boundary(tensor, self.mesh)
                moved = self._sent(far, np.ones(mappings), bits)
                gb_in += moved
                dram_out += moved
                dram_bytes += far.fetched * bits / 8
                first_in += self.flits(far.tile, bits)
            else:
                dram_out += sent
                dram_bytes += groups * tile.fetched * bits / 8
                first_in += first
        store = stores["outputs"]
        own = shape.boundary("outputs", store)
        inside = shape.groups("outputs", range(store + 1, self.mesh))
        groups = shape.groups("outputs", range(self.mesh, self.mesh + 1))
        steps = np.maximum(steps, self._steps(shape, "outputs", store))
        tile_words, bits = own.tile * inside, self.bits["outputs"]
        all_words = float(np.prod([self.layer.bounds[dim] for dim in DIMS if dim in RELEVANT["outputs"]]))
        pes = shape.spatial[:, self.mesh].prod(axis=1)
        distinct = self._distinct(shape, store)
        final = groups * distinct * self.flits(tile_words, bits)
        again = np.maximum(0, own.visits - distinct)
        partial = groups * again * self.flits(tile_words, self.partial_bits)
        reduced = own.visits * self.flits(tile_words, self.partial_bits) * np.minimum(1, pes / groups - 1)
        pe_in += partial / groups + reduced
        to_pes += partial
        first_step += shape.compute / steps + groups * self.flits(tile_words, bits)
        last_out = zero.copy()
        if buffered["outputs"]:
            gb_in += final + partial
            gb_out += partial
            far = shape.boundary("outputs", self.mesh)
            far_distinct = self._distinct(shape, self.mesh)
            far_final = far_distinct * self.flits(far.tile, bits)
            far_partial = np.maximum(0, far.visits - far_distinct) * self.flits(far.tile, self.partial_bits)
            gb_out += far_final + far_partial
            gb_in += far_partial
            dram_in += far_final + far_partial
            dram_out += far_partial
            spilled = np.maximum(0, far.visits - far_distinct) * far.tile * self.partial_bits / 8
            last_out += self.flits(far.tile, bits)
        else:
            dram_in += final + partial
            dram_out += partial
            spilled = groups * again * tile_words * self.partial_bits / 8
        dram_bytes += all_words * bits / 8 + 2 * spilled
        compute = shape.compute + steps * self.architecture.pe.pipeline_latency_cycles
        ports = {"gb": len(self.noc.global_buffer_ports), "dram": len(self.noc.dram_ports)}
        return NetworkLoads(
            compute=compute,
            steps=steps,
            gb_out=gb_out / ports["gb"],
            gb_in=gb_in / ports["gb"],
            dram_out=dram_out / ports["dram"],
            dram_in=dram_in / ports["dram"],
            pe_in=pe_in,
            to_pes=to_pes / max(ports.values()),
            dram_bytes=dram_bytes,
            partial=partial,
            first_in=first_in / ports["dram"],
            first_step=first_step,
            last_out=last_out / ports["gb"],
        )

    def _steps(self, shape: Shape, tensor: Tensor, store: int) -> Array:
        """Iterations of the loops at and outside the innermost one that moves a tensor's tile."""
        rows = np.arange(len(shape.dims))
        relevant = np.array([dim in RELEVANT[tensor] for dim in DIMS])
        moving = np.full(len(rows), store < 0)
        steps = np.ones(len(rows))
        for level in range(store + 1, shape.dims.shape[1]):
            for slot in range(shape.dims.shape[2]):
                bound = shape.bounds[:, level, slot]
                moving |= relevant[shape.dims[:, level, slot]] & (bound > 1)
                steps = steps * np.where(moving, bound, 1)
        return steps

    def _distinct(self, shape: Shape, store: int) -> Array:
        """Different output tiles of one instance of a level."""
        relevant = [DIMS.index(dim) for dim in DIMS if dim in RELEVANT["outputs"]]
        found: Array = shape.temporal[:, store + 1 :, relevant].prod(axis=(1, 2))
        return found

    def floor_cycles(self, loads: NetworkLoads, dram_bytes_per_cycle: float | None = None) -> Array:
        """What no run takes less than: the largest load, with what must come before it or after it.

        All PEs wait for their first tiles, and the last of those to come has passed the DRAM port after all the others:
        only then that PE begins (where compute starts with the first word, it need not wait). What comes last from DRAM
        is still computed with; what comes last into the global buffer still goes on to DRAM.
        """
        waits = waits_for_tiles(self.architecture)
        step = loads.compute / loads.steps
        candidates = [
            loads.compute + waits * loads.first_in,
            loads.dram_out + waits * step,
            loads.gb_out,
            loads.gb_in,
            loads.dram_in + step,
            loads.pe_in,
        ]
        if dram_bytes_per_cycle is not None:
            candidates.append(loads.dram_bytes / dram_bytes_per_cycle)
        found: Array = np.maximum.reduce(candidates)
        return found

    def predicted_cycles(self, loads: NetworkLoads, constants: Constants) -> Array:
        """Cycles of a run, by the fitted sum."""
        terms = self.terms(loads, constants.dram_bytes_per_cycle)
        found: Array = sum(
            (getattr(constants, name) * term for name, term in terms.items()), np.zeros(len(loads.steps))
        )
        return found

    def terms(self, loads: NetworkLoads, dram_bytes_per_cycle: float | None = None) -> dict[str, Array]:
        """What the weights of `Constants` count, by the weight's name."""
        return {
            "floor": self.floor_cycles(loads, dram_bytes_per_cycle),
            "compute": loads.compute,
            "dram_out": loads.dram_out,
            "dram_in": loads.dram_in,
            "to_pes": loads.to_pes,
            "reloads": loads.partial,
            "first_step": loads.first_step,
            "last_out": loads.last_out,
            "cycles_per_step": loads.steps,
        }
