"""The aggregated program: integer counts of equal prime factors for every level, dimension and kind of loop.

CoSA gives each prime factor of each bound a binary variable a level and kind; equal primes are interchangeable, and
that symmetry is what costs a solver its time. Here one integer counts the equal primes, bounds of 1 vanish, and the
loop order at the mesh level is one of three staying modes (see `staying_modes`; no other order is needed). Products of
bounds are sums of logarithms, products of binaries are written linearly. The optimum is that of the published program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log2, prod
from typing import Any

from cosa.arch import Architecture
from cosa.mip.factors import prime_factors
from cosa.mip.objective import OBJECTIVES, Term
from cosa.mip.quantities import (
    KINDS,
    Axis,
    Expression,
    Kind,
    Rules,
    halo_level,
    log_stride,
    sliding_axes,
    staying_modes,
)
from cosa.mip.spans import published_halo, span_table
from cosa.workload import DIMS, RELEVANT, TENSORS, Dim, Layer, Tensor

CountKey = tuple[int, Dim, int, Kind]
"""(level, dimension, prime, kind)"""


@dataclass(frozen=True)
class Factors:
    """A solution: bounds of the loops by (level, dimension, kind), 1 left out; `innermost` orders the mesh level."""

    bounds: dict[tuple[int, Dim, Kind], int]
    innermost: tuple[Dim, ...]

    def extent(self, dim: Dim, level: int) -> int:
        """Extent of a dimension over a level and those further in."""
        return prod(bound for (at, name, _), bound in self.bounds.items() if name == dim and at <= level)


class Program:
    """The program of one layer on one architecture; `model` is the Pyomo model, the rest says what its parts mean.

    Implements `cosa.mip.quantities.Quantities` with expressions of the model's variables.

    Parameters
    ----------
    layer, architecture: what to schedule, and on what.
    objective: a name of `cosa.mip.objective.OBJECTIVES`.
    rules: how tiles, orders and shares are modelled (default: true footprints).
    """

    def __init__(
        self,
        layer: Layer,
        architecture: Architecture,
        *,
        objective: str = "cosa",
        rules: Rules | None = None,
    ) -> None:
        from pyomo.core import ConcreteModel, ConstraintList, Objective

        self.layer, self.architecture, self.rules = layer, architecture, rules or Rules()
        self.modes = staying_modes(self.rules)
        self.factors: dict[Dim, dict[int, int]] = {dim: prime_factors(layer.bounds[dim]) for dim in DIMS}
        self.counts: dict[CountKey, Any] = {}
        self._spans: dict[tuple[Axis, int], Expression] = {}
        self._halos: dict[Axis, Expression] = {}
        self.model = ConcreteModel()
        self.model.rows = ConstraintList()
        self._add_counts()
        self._add_modes()
        self._add_limits()
        self.terms: list[Term] = OBJECTIVES[objective](self)
        self.model.objective = Objective(expr=sum(term.weighted for term in self.terms))

    # Building

    def require(self, row: Any) -> None:
        """Add a constraint. Rows without variables (a dimension of 1) hold trivially and are left out."""
        if row is True or (not isinstance(row, bool) and row.is_constant()):
            return
        self.model.rows.add(row)

    def new_variable(self, kind: str, upper: float | None = None) -> Any:
        """Add a variable >= 0; `kind` is ``binary``, ``integer`` or ``continuous``."""
        from pyomo.core import Binary, NonNegativeIntegers, NonNegativeReals, Var

        domain = {"binary": Binary, "integer": NonNegativeIntegers, "continuous": NonNegativeReals}[kind]
        variable = Var(domain=domain, bounds=(0, 1 if kind == "binary" else upper))
        self.model.add_component(f"v{len(self.model.component_map(Var))}", variable)
        return variable

    def _add_counts(self) -> None:
        for dim, primes in self.factors.items():
            for prime, multiplicity in primes.items():
                placed = []
                for level in range(len(self.architecture.levels)):
                    instances = prod(self.architecture.fanout(level))
                    for kind in KINDS:
                        upper = multiplicity
                        if kind == "spatial":
                            while prime**upper > instances:
                                upper -= 1
                        if upper == 0 or (kind == "spatial" and instances == 1):
                            continue
                        variable = self.new_variable("integer", upper)
                        self.counts[level, dim, prime, kind] = variable
                        placed.append(variable)
                self.require(sum(placed) == multiplicity)

    def _add_modes(self) -> None:
        self.mode_binaries = [self.new_variable("binary") for _ in self.modes]
        self.require(sum(self.mode_binaries) == 1)

    def _add_limits(self) -> None:
        """Fan-outs and shares of capacities, half a unit up: whole numbers within pass, with tolerance to spare."""
        for level, entry in enumerate(self.architecture.levels):
            instances = prod(self.architecture.fanout(level))
            if instances > 1:
                self.require(self.log_loops(DIMS, level, ("spatial",)) <= log2(instances + 0.5))
            for tensor in entry.keeps:
                words = self.rules.share_words(self.architecture, level, tensor)
                if words is not None:
                    self.require(self.log_tile(tensor, level) <= log2(words + 0.5))

    # Quantities

    def log_loops(self, dims: Sequence[Dim], level: int, kinds: Sequence[Kind] = KINDS) -> Expression:
        """See `Quantities`."""
        return self._weighted((level,), dims, kinds, log2)

    def _weighted(self, levels: Iterable[int], dims: Sequence[Dim], kinds: Sequence[Kind], weight: Any) -> Expression:
        parts = [
            weight(prime) * self.counts[level, dim, prime, kind]
            for level in levels
            for dim in dims
            for prime in self.factors[dim]
            for kind in kinds
            if (level, dim, prime, kind) in self.counts
        ]
        return sum(parts, 0.0)

    def count_within(self, dim: Dim, prime: int, level: int) -> Expression:
        """How many factors `prime` of a dimension stand at a level or further in."""
        return sum(
            self.counts[key]
            for key in [(at, dim, prime, kind) for at in range(level + 1) for kind in KINDS]
            if key in self.counts
        )

    def log_extent(self, dims: Sequence[Dim], level: int) -> Expression:
        """Log of the product of the extents of `dims` over a level and those further in."""
        return self._weighted(range(level + 1), dims, KINDS, log2)

    def log_tile(self, tensor: Tensor, level: int) -> Expression:
        """See `Quantities`."""
        if tensor != "inputs":
            return self.log_extent(tuple(dim for dim in DIMS if dim in RELEVANT[tensor]), level)
        axes = sliding_axes(self.layer)
        if not self.rules.as_published:
            return self.log_extent(("C", "N", "G"), level) + sum(self.log_span(axis, level) for axis in axes)
        total = self.log_extent(("P", "Q", "C", "N", "G"), level)
        for axis in axes:
            stride = log_stride(self.layer, axis.outputs)
            total = total + stride * self._weighted(range(level + 1), (axis.outputs,), KINDS, lambda prime: 1.0)
            if level == halo_level(self.architecture):
                if axis not in self._halos:
                    self._halos[axis] = published_halo(self, axis)
                total = total + self._halos[axis]
        return total

    def log_span(self, axis: Axis, level: int) -> Expression:
        """See `Quantities`."""
        if (axis, level) not in self._spans:
            kept = "inputs" in self.architecture.levels[level].keeps
            limit = self.rules.share_words(self.architecture, level, "inputs") if kept else None
            self._spans[axis, level] = span_table(self, axis, level, limit)
        return self._spans[axis, level]

    def log_iterations(self, tensor: Tensor) -> Expression:
        """See `Quantities`. Loops that may stay inside a tile count unless the mode puts them innermost."""
        mesh, relevant = self.architecture.mesh_level, self.rules.relevant(tensor)
        total = self.log_loops([dim for dim in DIMS if dim in relevant], mesh, ("temporal",))
        groups: dict[tuple[int, ...], list[Dim]] = {}
        for dim in DIMS:
            if dim not in relevant and self.factors[dim]:
                skipping = tuple(i for i, mode in enumerate(self.modes) if self._stays(tensor, dim, i))
                groups.setdefault(skipping, []).append(dim)
        for skipping, dims in groups.items():
            longest = log2(prod(self.layer.bounds[dim] for dim in dims))
            counted = self.new_variable("continuous", longest)
            loops = self.log_loops(dims, mesh, ("temporal",))
            self.require(counted >= loops - longest * sum(self.mode_binaries[i] for i in skipping))
            total = total + counted
        return total

    def _stays(self, tensor: Tensor, dim: Dim, mode: int) -> bool:
        """Whether a mode puts `dim` inside the innermost loop that moves a tensor."""
        innermost = self.modes[mode].innermost
        relevant = self.rules.relevant(tensor)
        if dim not in innermost:
            return False
        return all(inner not in relevant for inner in innermost[: innermost.index(dim) + 1])

    # After solving

    def decode(self) -> Factors:
        """The solution that the model's variables hold."""
        bounds: dict[tuple[int, Dim, Kind], int] = {}
        for (level, dim, prime, kind), variable in self.counts.items():
            count = round(variable.value)
            if count:
                bounds[level, dim, kind] = bounds.get((level, dim, kind), 1) * prime**count
        mode = max(range(len(self.modes)), key=lambda i: (self.mode_binaries[i].value, -i))
        return Factors(bounds, self.modes[mode].innermost)

    def cut_off_tile(self, factors: Factors, level: int, dims: Sequence[Dim]) -> None:
        """Forbid every tile at a level whose counts of `dims` are all at least those of `factors`.

        A footprint grows with each count, so this cuts off tiles that are too large, and those only. One of the extents
        must be above 1.
        """
        fewer = []
        for dim in dims:
            for prime, count in prime_factors(factors.extent(dim, level)).items():
                binary = self.new_variable("binary")
                multiplicity = self.factors[dim][prime]
                within = self.count_within(dim, prime, level)
                self.require(within <= multiplicity - (multiplicity - count + 1) * binary)
                fewer.append(binary)
        self.model.rows.add(sum(fewer) >= 1)


def kept_dims(architecture: Architecture, level: int) -> tuple[Dim, ...]:
    """Dimensions that change the words a level holds."""
    kept = [RELEVANT[tensor] for tensor in TENSORS if tensor in architecture.levels[level].keeps]
    return tuple(dim for dim in DIMS if any(dim in dims for dims in kept))
