"""Loads of many mappings at once on the machine of a mesh (`cosa.analytical.network_machine`).

The counts are those of `cosa.analytical.traffic` (exact convention), vectorised over mappings: flits, with headers and
partly filled ones.
"""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from cosa.analytical.batch import MappingBatch
from cosa.analytical.constants import Constants
from cosa.analytical.loads import flits
from cosa.analytical.network_machine import (
    CHAIN_EXPONENT,
    NetworkLoads,
    floors,
    has_one_buffer,
    predicted,
    waits_for_tiles,
)
from cosa.analytical.routes import busiest_link_share
from cosa.analytical.shapes import Boundary, Shape
from cosa.analytical.traffic import word_bits
from cosa.common.errors import InputError
from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, RELEVANT, TENSORS, Layer, Tensor

Array = npt.NDArray[Any]


def reduction_hops(pes: Array) -> Array:
    """About how many hops a chain of reductions has in a square of so many PEs, along a row and down a column."""
    found: Array = np.where(pes > 1, pes**CHAIN_EXPONENT, 0.0)
    return found


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

    def _boundary(self, shape: Shape, tensor: Tensor, store: int) -> Boundary:
        """What a node (store below the mesh: a PE) fetches of a tensor."""
        instances = range(store + 1, self.mesh)
        return shape.boundary(tensor, store, instances, partial(self.flits, bits=self.bits[tensor]))

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
        kept = {
            tensor: int(max(np.flatnonzero(keeps[: self.mesh, at]), default=-1)) for at, tensor in enumerate(TENSORS)
        }
        stores = {tensor: self.architecture.pe_tile_level(tensor, store) for tensor, store in kept.items()}
        buffered = {tensor: bool(keeps[self.mesh, at]) for at, tensor in enumerate(TENSORS)}
        shape = Shape(self.layer, self.architecture, batch)
        mappings = len(batch)
        zero = np.zeros(mappings)
        gb_out, gb_in, dram_out, dram_in, to_pes, pe_in = (zero.copy() for _ in range(6))
        dram_bytes, first_in, prefetched, weights = (zero.copy() for _ in range(4))
        ports_gb, ports_dram = len(self.noc.global_buffer_ports), len(self.noc.dram_ports)
        start, waits_for_buffer, streams = zero.copy(), zero.copy(), zero.copy()
        steps_of = {tensor: self._steps(shape, tensor, stores[tensor]) for tensor in TENSORS}
        steps = np.maximum.reduce(list(steps_of.values()))
        compute = shape.compute + steps * self.architecture.pe.pipeline_latency_cycles
        for tensor in ("weights", "inputs"):
            bits, store = self.bits[tensor], stores[tensor]
            own = self._boundary(shape, tensor, store)
            groups = shape.groups(tensor, self.mesh)
            sent = groups * own.flits
            to_pes += sent
            pe_in += sent / groups
            first = groups * self.flits(own.tile, bits)
            if buffered[tensor]:
                gb_out += sent
                far = self._boundary(shape, tensor, self.mesh)
                if tensor == "inputs":
                    streams = self._steps(shape, tensor, self.mesh)
                gb_in += far.flits
                dram_out += far.flits
                dram_bytes += far.fetched * bits / 8
                first_far = self.flits(far.tile, bits)
                start += first_far / ports_dram
                first_in += first_far / ports_dram
                waits_for_buffer = np.maximum(waits_for_buffer, first_far / ports_dram + first / ports_gb)
                sets = self.architecture.levels[kept[tensor]].buffers if store >= 0 else 1
                prefetched += (sets * first + first - first / groups) / ports_gb
            else:
                dram_out += sent
                dram_bytes += groups * own.fetched * bits / 8
                start += first / ports_dram
                weights += sent / ports_dram if tensor == "weights" else 0.0
        operands, from_buffer = to_pes.copy(), gb_out / ports_gb
        start = np.maximum(start, waits_for_buffer) * waits_for_tiles(self.architecture)
        store = stores["outputs"]
        own = self._boundary(shape, "outputs", store)
        groups = shape.groups("outputs", self.mesh)
        tile_words, bits = own.tile, self.bits["outputs"]
        all_words = float(np.prod([self.layer.bounds[dim] for dim in DIMS if dim in RELEVANT["outputs"]]))
        pes = shape.spatial[:, self.mesh].prod(axis=1)
        distinct = self._distinct(shape, store)
        tile_flits = self.flits(tile_words, self.partial_bits)
        final = groups * distinct * self.flits(tile_words, bits)
        again = np.maximum(0, own.visits - distinct)
        again_in = groups * again * tile_flits
        reduced = own.visits * tile_flits * np.minimum(1, pes / groups - 1)
        chain = own.visits * tile_flits * reduction_hops(pes / groups)
        pe_in += again_in / groups + reduced
        to_pes += again_in
        step = compute / steps
        last_out, before_writes = zero.copy(), step
        last_of_pe = self.flits(tile_words, min(bits, self.partial_bits))
        if buffered["outputs"]:
            gb_in += final + again_in
            gb_out += again_in
            far = self._boundary(shape, "outputs", self.mesh)
            far_distinct = self._distinct(shape, self.mesh)
            far_final = far_distinct * self.flits(far.tile, bits)
            far_partial = np.maximum(0, far.visits - far_distinct) * self.flits(far.tile, self.partial_bits)
            gb_out += far_final + far_partial
            gb_in += far_partial
            dram_in += far_final + far_partial
            dram_out += far_partial
            spilled = np.maximum(0, far.visits - far_distinct) * far.tile * self.partial_bits / 8
            last_out += self.flits(far.tile, bits) / min(ports_gb, ports_dram)
            # All PEs have finished their part of its first tile.
            before_writes = start + compute / self._steps(shape, "outputs", self.mesh) + last_of_pe
        else:
            dram_in += final + again_in
            dram_out += again_in
            spilled = groups * again * tile_words * self.partial_bits / 8
        dram_bytes += all_words * bits / 8 + 2 * spilled
        return NetworkLoads(
            compute=compute,
            steps=steps,
            step=step,
            gb_out=gb_out / ports_gb,
            gb_in=gb_in / ports_gb,
            dram_out=dram_out / ports_dram,
            dram_in=dram_in / ports_dram,
            pe_in=pe_in,
            to_pes=to_pes / max(ports_gb, ports_dram),
            link=operands * busiest_link_share(self.noc),
            dram_bytes=dram_bytes,
            partial=again_in,
            shared=np.minimum(weights, from_buffer),
            chain=chain,
            late=weights * ((steps_of["weights"] >= 2) & (streams >= 2 * steps_of["weights"])),
            first_in=first_in,
            start=start,
            prefetched=prefetched + again_in / ports_gb if buffered["outputs"] else prefetched,
            before_writes=before_writes,
            last_out=last_out,
            tail=last_of_pe + last_out,
            weights=weights,
            last_weights=compute / steps_of["weights"],
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
        """What no run takes less than: the largest of `floors`."""
        found = floors(loads, waits_for_tiles(self.architecture), dram_bytes_per_cycle)
        return np.asarray(np.maximum.reduce(list(found.values())))

    def predicted_cycles(self, loads: NetworkLoads, constants: Constants) -> Array:
        """Cycles of a run, by the fitted sum."""
        return np.asarray(predicted(self.floor_cycles(loads, constants.dram_bytes_per_cycle), loads, constants))
