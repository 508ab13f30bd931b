"""The quantities of a finished nest as plain numbers: what any objective says of a given schedule."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2, prod

from cosa.analytical.footprint import box_words, window_span
from cosa.arch import Architecture
from cosa.mip.factors import prime_factors
from cosa.mip.objective import OBJECTIVES, Weights
from cosa.mip.quantities import KINDS, Axis, Kind, Rules, halo_level, log_stride, sliding_axes
from cosa.schedule import ScheduleLevel
from cosa.workload import DIMS, Dim, Layer, Tensor


class NestQuantities:
    """A nest (outermost level first) seen as `cosa.mip.quantities.Quantities`."""

    def __init__(self, layer: Layer, architecture: Architecture, nest: Sequence[ScheduleLevel], rules: Rules) -> None:
        self.layer, self.architecture, self.rules = layer, architecture, rules
        self.levels = tuple(nest)[::-1]

    def log_loops(self, dims: Sequence[Dim], level: int, kinds: Sequence[Kind] = KINDS) -> float:
        """See `Quantities`."""
        return log2(prod(loop.bound for loop in self.levels[level].loops if loop.dim in dims and loop.kind in kinds))

    def _extent(self, dim: Dim, level: int) -> int:
        return prod(loop.bound for entry in self.levels[: level + 1] for loop in entry.loops if loop.dim == dim)

    def log_tile(self, tensor: Tensor, level: int) -> float:
        """See `Quantities`."""
        if not self.rules.as_published or tensor != "inputs":
            tile = {dim: self._extent(dim, level) for dim in self.layer.bounds}
            return log2(box_words(self.layer, tensor, tile))
        total = 0.0
        relevant = self.rules.relevant("inputs")
        for dim in [dim for dim in DIMS if dim in relevant]:
            extent = self._extent(dim, level)
            total += log2(extent) + log_stride(self.layer, dim) * sum(prime_factors(extent).values())
        if level == halo_level(self.architecture, self.rules):
            total += sum(self._published_halo(axis) for axis in sliding_axes(self.layer))
        return total

    def _published_halo(self, axis: Axis) -> float:
        ordered = self.rules.order_level(self.architecture)
        taps = self._extent(axis.taps, ordered)
        slides = self._extent(axis.outputs, ordered - 1) > 1
        return float(sum(prime_factors(taps).values())) if slides else log2(taps)

    def log_span(self, axis: Axis, level: int) -> float:
        """See `Quantities`."""
        outputs, taps = self._extent(axis.outputs, level), self._extent(axis.taps, level)
        return log2(window_span(outputs, taps, axis.stride, axis.dilation))

    def log_iterations(self, tensor: Tensor) -> float:
        """See `Quantities`; counted on the order that the nest has."""
        total, moved = 0.0, False
        for loop in reversed(self.levels[self.rules.order_level(self.architecture)].temporal):
            moved = moved or (loop.bound > 1 and loop.dim in self.rules.relevant(tensor))
            total += log2(loop.bound) if moved else 0.0
        return total


def breakdown(
    layer: Layer,
    architecture: Architecture,
    nest: Sequence[ScheduleLevel],
    *,
    objective: str = "cosa",
    rules: Rules | None = None,
    weights: Weights | None = None,
) -> dict[str, float]:
    """What each term adds to an objective for a given nest (outermost level first), and the objective as ``total``."""
    chosen = OBJECTIVES[objective]
    parts = {
        term.name: float(term.weighted)
        for term in chosen.terms(NestQuantities(layer, architecture, nest, rules or Rules()), weights or Weights())
    }
    total = sum(parts.values())
    return parts | {"total": abs(total) if chosen.absolute else total}
