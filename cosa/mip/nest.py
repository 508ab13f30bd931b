"""The quantities of a finished nest as plain numbers: what any objective says of a given schedule.

The published code gives a bound of 1 the one factor 1, and where that stands is its choice, of which a nest says
nothing (see `Rules`). `readings` has the nest with each choice; an objective is the least over those that fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import log2, prod

from cosa.analytical.footprint import box_words, span
from cosa.mip.factors import prime_factors
from cosa.mip.objective import OBJECTIVES, Weights
from cosa.mip.quantities import Axis, Rules, halo_level, log_stride, sliding_axes
from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, Dim, Layer, Tensor
from cosa.model.mapping_rules import KINDS, LoopKind
from cosa.model.schedule import ScheduleLevel


@dataclass(frozen=True)
class Units:
    """Where the factors 1 of an axis stand: of its outputs at level `outputs`, of its taps inside the DRAM or not.

    None and False: where they have no effect, or the bounds are not 1.
    """

    outputs: int | None = None
    taps: bool = False


class NestQuantities:
    """A nest (outermost level first) seen as `cosa.mip.quantities.Quantities`; `units` by axis (default: no effect)."""

    def __init__(
        self,
        layer: Layer,
        architecture: Architecture,
        nest: Sequence[ScheduleLevel],
        rules: Rules,
        units: Mapping[Axis, Units] | None = None,
    ) -> None:
        self.layer, self.architecture, self.rules = layer, architecture, rules
        self.levels = tuple(nest)[::-1]
        self.units = {axis: Units() for axis in sliding_axes(layer)} | dict(units or {})

    def log_loops(self, dims: Sequence[Dim], level: int, kinds: Sequence[LoopKind] = KINDS) -> float:
        """See `Quantities`."""
        return log2(prod(loop.bound for loop in self.levels[level].loops if loop.dim in dims and loop.kind in kinds))

    def extent(self, dim: Dim, level: int) -> int:
        """Extent of a dimension over the loops of a level and further in."""
        return prod(loop.bound for entry in self.levels[: level + 1] for loop in entry.loops if loop.dim == dim)

    def log_tile(self, tensor: Tensor, level: int) -> float:
        """See `Quantities`."""
        if not self.rules.as_published or tensor != "inputs":
            tile = {dim: self.extent(dim, level) for dim in self.layer.bounds}
            return log2(box_words(self.layer, tensor, tile))
        total = sum(log2(self.extent(dim, level)) for dim in DIMS if dim in self.rules.relevant("inputs"))
        for axis, units in self.units.items():
            factors = sum(prime_factors(self.extent(axis.outputs, level)).values())
            factors += units.outputs is not None and units.outputs <= level
            total += log_stride(self.layer, axis.outputs) * factors
            if level == halo_level(self.architecture, self.rules):
                total += self._published_halo(axis, units)
        return total

    def _published_halo(self, axis: Axis, units: Units) -> float:
        ordered = self.rules.order_level(self.architecture)
        taps = self.extent(axis.taps, ordered)
        slides = units.outputs is not None or self.extent(axis.outputs, ordered - 1) > 1
        return float(sum(prime_factors(taps).values()) + units.taps) if slides else log2(taps)

    def inputs_fit(self) -> bool:
        """Whether the tiles of the inputs, as the rules count them, keep to their shares."""
        for level, entry in enumerate(self.architecture.levels):
            words = self.rules.share_words(self.layer, self.architecture, level, "inputs")
            if "inputs" in entry.keeps and words is not None and self.log_tile("inputs", level) > log2(words + 0.5):
                return False
        return True

    def log_span(self, axis: Axis, level: int) -> float:
        """See `Quantities`."""
        outputs, taps = self.extent(axis.outputs, level), self.extent(axis.taps, level)
        return log2(span((axis.stride, axis.dilation), (outputs, taps)))

    def log_iterations(self, tensor: Tensor) -> float:
        """See `Quantities`; counted on the order that the nest has."""
        total, moved = 0.0, False
        for loop in reversed(self.levels[self.rules.order_level(self.architecture)].temporal):
            moved = moved or (loop.bound > 1 and loop.dim in self.rules.relevant(tensor))
            total += log2(loop.bound) if moved else 0.0
        return total


def readings(
    layer: Layer, architecture: Architecture, nest: Sequence[ScheduleLevel], rules: Rules
) -> list[NestQuantities]:
    """A nest with the factors 1 at each place that makes a difference; in the first they make none."""
    plain = NestQuantities(layer, architecture, nest, rules)
    if not rules.as_published or halo_level(architecture, rules) is None:
        return [plain]
    ordered, outermost = rules.order_level(architecture), len(architecture.levels) - 1
    choices = []
    for axis in sliding_axes(layer):
        places: list[int | None] = [None]
        if plain.extent(axis.outputs, outermost) == 1:
            places += range(ordered) if log_stride(layer, axis.outputs) else (ordered - 1,)
        taps = (False, True) if plain.extent(axis.taps, outermost) == 1 else (False,)
        choices.append([Units(*pair) for pair in product(places, taps)])
    found = [dict(zip(sliding_axes(layer), units, strict=True)) for units in product(*choices)]
    return [NestQuantities(layer, architecture, nest, rules, units) for units in found]


def breakdown(
    layer: Layer,
    architecture: Architecture,
    nest: Sequence[ScheduleLevel],
    *,
    objective: str = "cosa",
    rules: Rules | None = None,
    weights: Weights | None = None,
) -> dict[str, float]:
    """What each term adds to an objective for a given nest (outermost level first), and the objective as ``total``.

    Of several `readings` the one with the least total, among those whose inputs fit if any do.
    """
    chosen, found = OBJECTIVES[objective], readings(layer, architecture, nest, rules or Rules())
    values = []
    for numbers in [one for one in found if len(found) == 1 or one.inputs_fit()] or found[:1]:
        parts = {term.name: float(term.weighted) for term in chosen.terms(numbers, weights or Weights())}
        total = sum(parts.values())
        values.append(parts | {"total": abs(total) if chosen.absolute else total})
    return min(values, key=lambda parts: parts["total"])
