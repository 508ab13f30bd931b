"""The space of mappings that the searches draw from: slots for loops, prime factors to fill them with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cosa.analytical.batch import BatchEvaluator, MappingBatch
from cosa.mip.factors import prime_factors
from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, TENSORS, Layer

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class MapSpace:
    """Slots of an architecture and prime factors of a layer, as arrays; slots and levels innermost first.

    A level with a fan-out has a slot for spatial loops, then every level one for temporal loops. Each prime factor of
    each bound goes to one slot. What a level keeps is fixed: all that the architecture says.
    """

    layer: Layer
    architecture: Architecture
    slot_level: Array
    slot_axis: Array
    primes: Array
    dims: Array
    fanouts: Array
    keeps: Array
    capacities: Array
    dims_of: Array
    scale_of: Array

    @staticmethod
    def of(evaluator: BatchEvaluator, axes_apart: bool = False) -> MapSpace:
        """The space of an evaluator's layer and architecture.

        With `axes_apart` the two axes of a fan-out, and the numbering of its instances row by row, are slots of their
        own, so that a dimension may run along both axes; else a slot is split: inner loops along x, the others along y.
        """
        from cosa.mappers import kernel

        layer, architecture = evaluator.layer, evaluator.architecture
        slots = []
        for level in range(len(architecture.levels)):
            columns, rows = architecture.fanout(level)
            if axes_apart:
                slots += [(level, kernel.X)] * (columns > 1) + [(level, kernel.Y)] * (rows > 1)
                slots += [(level, kernel.ROWS)] * (columns > 1 and rows > 1)
            elif columns * rows > 1:
                slots.append((level, kernel.SPLIT))
            slots.append((level, kernel.TEMPORAL))
        primes = [
            (DIMS.index(dim), prime, times)
            for dim, bound in layer.bounds.items()
            for prime, times in prime_factors(bound).items()
        ]
        # A layer without groups is a nest of seven loops, as Timeloop knows it.
        dims = [number for number, dim in enumerate(DIMS) if dim != "G" or layer.G > 1]
        return MapSpace(
            layer,
            architecture,
            np.array([level for level, _ in slots], np.int64),
            np.array([axis for _, axis in slots], np.int64),
            np.array(primes, np.int64).reshape(-1, 3),
            np.array(dims, np.int64),
            evaluator.fanouts,
            np.array([[tensor in entry.keeps for tensor in TENSORS] for entry in architecture.levels], np.bool_),
            evaluator.capacities,
            evaluator.dims_of,
            evaluator.scale_of,
        )

    def batch(self, mappings: int) -> MappingBatch:
        """An empty batch for so many mappings of this space."""
        spatial = max(int(np.sum((self.slot_level == level) & (self.slot_axis >= 0))) for level in self.slot_level)
        batch = MappingBatch.empty(mappings, len(self.keeps), len(DIMS), max(1, spatial) * len(DIMS))
        batch.keeps[:] = self.keeps
        return batch

    def tables(self) -> tuple[Array, ...]:
        """Slots and limits in the order that the kernels take them."""
        return (
            self.slot_level,
            self.slot_axis,
            self.fanouts,
            self.keeps,
            self.capacities,
            self.dims_of,
            self.scale_of,
        )


def stream(seed: int, number: int) -> Array:
    """State of the random numbers of one logical thread of a search."""
    return np.random.SeedSequence((seed, number)).generate_state(1, np.uint64)
