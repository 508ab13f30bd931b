"""Loads of many mappings at once on the published simulator's machine: its generator's transactions in closed form.

The generator (`nocsim transactions --dataflow cosa2021`) cuts a mapping at the loops of the mesh level, *network
steps*, and those of the DRAM, *memory steps*. Its rules, quirks included, are counted exactly: the flits of a class are
those of all transactions of that class in its list. Loops of bound 1 that a mapping spells out are taken as absent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cosa.analytical.batch import MappingBatch
from cosa.analytical.constants import PublishedConstants
from cosa.analytical.footprint import axes
from cosa.analytical.published_machine import (
    MOVED_BY,
    REDUCTIONS,
    PublishedLoads,
    floors,
    packet_flits,
    predicted,
    read_factor,
    reduction_hops,
    require_published,
    resources,
)
from cosa.analytical.routes import any_link_share
from cosa.analytical.shapes import Shape
from cosa.analytical.traffic import word_bits
from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, TENSORS, Dim, Layer, Tensor

Array = npt.NDArray[Any]

TAKE_UP_CYCLES = 1
"""A PE takes up its next job a cycle after a compute has ended."""


class PublishedEvaluator:
    """Loads of mappings of one layer.

    Parameters
    ----------
    constants: of the prediction and of the bound (None: the defaults).

    Raises
    ------
    InputError: the layer or the architecture is not one that the published simulator knows.
    """

    def __init__(self, layer: Layer, architecture: Architecture, constants: PublishedConstants | None = None) -> None:
        require_published(layer, architecture)
        self.layer, self.architecture = layer, architecture
        self.constants = constants or PublishedConstants()
        self.mesh = architecture.mesh_level
        noc = architecture.require_noc()
        self._packet_bits = noc.packet_payload_flits * noc.flit_bits

    def loads(self, batch: MappingBatch) -> PublishedLoads:
        """Loads of every mapping, float64 [mapping]."""
        shape = Shape(self.layer, self.architecture, batch)
        mesh, top = self.mesh, self.mesh + 1
        temporal = shape.temporal.prod(axis=2)
        memory = temporal[:, top]
        steps = temporal[:, mesh] * memory
        step_compute = temporal[:, :mesh].prod(axis=1)
        groups = {tensor: _product(shape.spatial[:, mesh], MOVED_BY[tensor]) for tensor in TENSORS}
        sharing = shape.spatial[:, mesh].prod(axis=1) / groups["outputs"]
        near = {tensor: self._tile(shape, tensor, mesh - 1) for tensor in TENSORS}
        far = {tensor: self._tile(shape, tensor, mesh) for tensor in ("inputs", "outputs")}
        inputs, _ = _visits(shape, "inputs", (mesh,))
        outputs, partial = _visits(shape, "outputs", (mesh,))
        weights, _ = _visits(shape, "weights", (mesh, top))
        far_inputs, _ = _visits(shape, "inputs", (top,))
        far_outputs, far_partial = _visits(shape, "outputs", (top,))
        stored = near["outputs"] * outputs * memory
        return PublishedLoads(
            steps=steps,
            compute=steps * (step_compute + TAKE_UP_CYCLES),
            step_compute=step_compute,
            inputs_to_buffer=far["inputs"] * far_inputs,
            partial_to_buffer=far["outputs"] * far_partial,
            inputs_to_pes=near["inputs"] * groups["inputs"] * inputs * memory,
            partial_to_pes=near["outputs"] * groups["outputs"] * partial * memory,
            weights_to_pes=near["weights"] * groups["weights"] * weights,
            outputs_to_buffer=stored * groups["outputs"],
            outputs_to_dram=far["outputs"] * far_outputs,
            reduction_chain=np.where(sharing > 1, stored * 2 ** reduction_hops(np.log2(sharing)), 0.0),
            pe_reductions=np.where(sharing > 1, stored, 0.0),
            pe_outputs=stored,
            first_inputs=far["inputs"],
            first_weights=near["weights"] * groups["weights"],
            first_tiles=near["inputs"] * groups["inputs"],
            first_tile=near["inputs"],
            step_outputs=near["outputs"] * groups["outputs"],
            last_outputs=far["outputs"],
        )

    def _tile(self, shape: Shape, tensor: Tensor, level: int) -> Array:
        """Flits of a tile of a node whose outermost level is `level`: the bounding box where the tensor is kept, times
        the loops in between that move it, in whole packets."""
        store = max(i for i in range(level + 1) if tensor in self.architecture.levels[i].keeps)
        extents = shape.inside[:, store + 1]
        words = np.ones(len(extents))
        for axis in axes(self.layer, tensor):
            words = words * (1 + sum(scale * (extents[:, DIMS.index(dim)] - 1) for dim, scale in axis.items()))
        for between in range(store + 1, level + 1):
            words = words * _product(shape.both[:, between], MOVED_BY[tensor])
        bits = word_bits(self.layer, self.architecture, tensor)
        found: Array = np.ceil(words * bits / self._packet_bits) * packet_flits(self.architecture)
        return found

    def predicted_cycles(self, loads: PublishedLoads) -> Array:
        """Cycles of a run: a fitted sum, no proof."""
        reads = read_factor(self.architecture, self.constants.cycles_per_dram_packet)
        largest = np.maximum.reduce(list(resources(loads, reads).values()))
        found: Array = predicted(largest, loads, self.constants, reads)
        return found

    def floor_cycles(self, loads: PublishedLoads) -> Array:
        """What no run takes less than, in any placement."""
        reads = read_factor(self.architecture, self.constants.least_cycles_per_dram_packet)
        found: Array = np.maximum.reduce(
            list(floors(loads, reads, any_link_share(self.architecture.require_noc())).values())
        )
        return found


def _product(bounds: Array, dims: Sequence[Dim]) -> Array:
    found: Array = bounds[:, [DIMS.index(dim) for dim in dims]].prod(axis=1)
    return found


def _visits(shape: Shape, tensor: Tensor, levels: Sequence[int]) -> tuple[Array, Array]:
    """Tiles sent one after another over the temporal loops of some levels, and how many of these come back (outputs):
    those at which the innermost reduction loop around the tensor's own loops is not at its first index."""
    moves = np.array([dim in MOVED_BY[tensor] for dim in DIMS])
    reduces = np.array([dim in REDUCTIONS for dim in DIMS])
    moving = np.zeros(len(shape.dims), bool)
    visits, reduction = np.ones(len(shape.dims)), np.ones(len(shape.dims))
    for level in levels:
        for slot in range(shape.dims.shape[2]):
            dims, bounds = shape.dims[:, level, slot], shape.bounds[:, level, slot]
            here = bounds > 1
            reduction = np.where(moving & here & reduces[dims] & (reduction == 1), bounds, reduction)
            moving |= here & moves[dims]
            visits = visits * np.where(moving, bounds, 1)
    return visits, visits - visits / reduction
