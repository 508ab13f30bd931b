"""The published program in aggregated form: CoSA's objective over counts of equal prime factors (`Space`).

The loop order at the mesh level is one of three staying modes (see `staying_modes`; no other order is needed). Products
of binaries are written linearly. The optimum is that of the published program.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2, prod
from typing import Any

from cosa.mip.objective import OBJECTIVES, Term, Weights
from cosa.mip.quantities import (
    Axis,
    Expression,
    Rules,
    exact_modes,
    halo_level,
    log_stride,
    sliding_axes,
    staying_modes,
)
from cosa.mip.space import Factors, Space
from cosa.mip.spans import published_halo
from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, Dim, Layer, Tensor
from cosa.model.mapping_rules import KINDS


class Program(Space):
    """The program of one layer on one architecture; `model` is the Pyomo model, the rest says what its parts mean.

    Implements `cosa.mip.quantities.Quantities` with expressions of the model's variables.

    Parameters
    ----------
    layer, architecture: what to schedule, and on what.
    objective: a name of `cosa.mip.objective.OBJECTIVES`.
    rules: how tiles, orders and shares are modelled (default: true footprints).
    weights: what the terms count (default: as published).

    Raises
    ------
    InputError: rules or weights name a level that the architecture does not have.
    """

    def __init__(
        self,
        layer: Layer,
        architecture: Architecture,
        *,
        objective: str = "cosa",
        rules: Rules | None = None,
        weights: Weights | None = None,
    ) -> None:
        from pyomo.core import Objective

        self.rules = rules or Rules()
        self.order_level = self.rules.order_level(architecture)
        weights = weights or Weights()
        weights.require_levels(architecture, "weights")
        self.exact_order = OBJECTIVES[objective].absolute
        super().__init__(layer, architecture)
        self.modes = exact_modes(self.rules) if self.exact_order else staying_modes(self.rules)
        self._halos: dict[Axis, Expression] = {}
        self._units: dict[Axis, list[Any]] = {}
        self._add_order()
        self._add_shares()
        self.terms: list[Term] = OBJECTIVES[objective].terms(self, weights)
        total = sum(term.weighted for term in self.terms)
        if OBJECTIVES[objective].absolute:
            distance = self.new_variable("continuous")
            self.require(distance >= total)
            self.require(distance >= -total)
            total = distance
        self.model.objective = Objective(expr=total)

    def _add_order(self) -> None:
        self._add_modes()

    def _add_modes(self) -> None:
        self.mode_binaries = [self.new_variable("binary") for _ in self.modes]
        self.require(sum(self.mode_binaries) == 1)
        for mode, binary in zip(self.modes, self.mode_binaries, strict=True):
            for group in mode.needs:
                self.require(sum(self._ordered_counts(group)) >= binary)
            if mode.only is not None:
                for dim in DIMS:
                    if dim not in mode.only:
                        most = sum(self.factors[dim].values())
                        self.require(sum(self._ordered_counts((dim,))) <= most * (1 - binary))

    def _ordered_counts(self, dims: Sequence[Dim]) -> list[Expression]:
        """Counts of temporal loops at the ordered level."""
        return [
            self.counts[self.order_level, dim, prime, "temporal"]
            for dim in dims
            for prime in self.factors[dim]
            if (self.order_level, dim, prime, "temporal") in self.counts
        ]

    def _add_shares(self) -> None:
        """Shares of capacities, half a unit up: whole numbers within pass, with tolerance to spare."""
        for level, entry in enumerate(self.architecture.levels):
            for tensor in entry.keeps:
                words = self.rules.share_words(self.layer, self.architecture, level, tensor)
                if words is not None:
                    self.require(self.log_tile(tensor, level) <= log2(words + 0.5))

    def log_tile(self, tensor: Tensor, level: int) -> Expression:
        """See `Quantities`."""
        if tensor != "inputs" or not self.rules.as_published:
            return super().log_tile(tensor, level)
        total = self.log_extent(("P", "Q", "C", "N", "G"), level)
        for axis in sliding_axes(self.layer):
            stride = log_stride(self.layer, axis.outputs)
            total = total + stride * self.weighted(range(level + 1), (axis.outputs,), KINDS, lambda prime: 1.0)
            total = total + stride * sum(self.unit_places(axis)[: level + 1], 0.0)
            if level == halo_level(self.architecture, self.rules):
                if axis not in self._halos:
                    self._halos[axis] = published_halo(self, axis)
                total = total + self._halos[axis]
        return total

    def unit_places(self, axis: Axis) -> list[Any]:
        """A binary for each level below the ordered one: whether the factor 1 of the axis' outputs stands there.

        None of them is 1 if it stands further out. Empty where nothing depends on the level: the outputs have primes,
        or the stride is 1, or no halo is charged.
        """
        if axis not in self._units:
            matters = log_stride(self.layer, axis.outputs) > 0 and halo_level(self.architecture, self.rules) is not None
            self._units[axis] = []
            if matters and not self.factors[axis.outputs]:
                self._units[axis] = [self.new_variable("binary") for _ in range(self.order_level)]
                self.require(sum(self._units[axis]) <= 1)
        return self._units[axis]

    def span_limit(self, level: int) -> int | None:
        """See `Space`: here inputs have a fixed share of a level."""
        kept = "inputs" in self.architecture.levels[level].keeps
        return self.rules.share_words(self.layer, self.architecture, level, "inputs") if kept else None

    def log_iterations(self, tensor: Tensor) -> Expression:
        """See `Quantities`. Loops that may stay inside a tile count unless the mode puts them innermost.

        An upper estimate that a minimised objective pulls down to the value, unless the order has to be exact.
        """
        level, relevant = self.order_level, self.rules.relevant(tensor)
        total = self.log_loops([dim for dim in DIMS if dim in relevant], level, ("temporal",))
        groups: dict[tuple[int, ...], list[Dim]] = {}
        for dim in DIMS:
            if dim not in relevant and self.factors[dim]:
                skipping = tuple(i for i, mode in enumerate(self.modes) if self._stays(tensor, dim, i))
                groups.setdefault(skipping, []).append(dim)
        for skipping, dims in groups.items():
            longest = log2(prod(self.layer.bounds[dim] for dim in dims))
            counted = self.new_variable("continuous", longest)
            loops = self.log_loops(dims, level, ("temporal",))
            skipped = sum(self.mode_binaries[i] for i in skipping)
            self.require(counted >= loops - longest * skipped)
            if self.exact_order:
                self.require(counted <= loops)
                self.require(counted <= longest * (1 - skipped))
            total = total + counted
        return total

    def _stays(self, tensor: Tensor, dim: Dim, mode: int) -> bool:
        """Whether a mode puts `dim` inside the innermost loop that moves a tensor."""
        innermost = self.modes[mode].innermost
        relevant = self.rules.relevant(tensor)
        if dim not in innermost:
            return False
        return all(inner not in relevant for inner in innermost[: innermost.index(dim) + 1])

    def decode(self) -> Factors:
        """The solution that the model's variables hold."""
        mode = max(range(len(self.modes)), key=lambda i: (self.mode_binaries[i].value, -i))
        return Factors(self.decode_bounds(), self.modes[mode].innermost)
