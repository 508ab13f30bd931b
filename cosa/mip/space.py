"""The space of nests: integer counts of equal prime factors for every level, dimension and kind of loop.

CoSA gives each prime factor of each bound a binary variable a level and kind; equal primes are interchangeable, and
that symmetry is what costs a solver its time. Here one integer counts the equal primes, and bounds of 1 vanish.
Products of bounds are sums of logarithms. What the program is for (objectives, capacities, orders) is built on top.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log2, prod
from typing import Any

from cosa.mip.factors import prime_factors
from cosa.mip.quantities import KINDS, Axis, Expression, Kind, sliding_axes
from cosa.mip.spans import ExtentTable, extent_table, log_span
from cosa.model.arch import Architecture, Limit
from cosa.model.layer import DIMS, RELEVANT, TENSORS, Dim, Layer, Tensor
from cosa.model.mapping_rules import MappingRules, ProductRule

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


class Space:
    """Counts of prime factors of one layer on one architecture; `model` is the Pyomo model.

    Parameters
    ----------
    layer, architecture: what to schedule, and on what.
    bounds: for a dimension, the bounds it may be padded to, the layer's own among them (default: the layer's alone).
        One of them is chosen in the same program.
    mapping_rules: what mappings must keep to besides (default: nothing).
    """

    def __init__(
        self,
        layer: Layer,
        architecture: Architecture,
        bounds: Mapping[Dim, Sequence[int]] | None = None,
        mapping_rules: MappingRules | None = None,
    ) -> None:
        from pyomo.core import ConcreteModel, ConstraintList

        self.layer, self.architecture = layer, architecture
        self.mapping_rules = mapping_rules or MappingRules()
        self.bounds: dict[Dim, tuple[int, ...]] = {
            dim: tuple(sorted(set((bounds or {}).get(dim, (layer.bounds[dim],))))) for dim in DIMS
        }
        self.factors: dict[Dim, dict[int, int]] = {}
        for dim, choices in self.bounds.items():
            most: dict[int, int] = {}
            for choice in choices:
                for prime, multiplicity in prime_factors(choice).items():
                    most[prime] = max(most.get(prime, 0), multiplicity)
            self.factors[dim] = dict(sorted(most.items()))
        self.counts: dict[CountKey, Any] = {}
        self.selectors: dict[tuple[Dim, int], Any] = {}
        self._spans: dict[tuple[Axis, int], Expression] = {}
        self._extents: dict[tuple[Axis, int], ExtentTable] = {}
        self._shares: dict[int, tuple[Any, int]] = {}
        self.model = ConcreteModel()
        self.model.rows = ConstraintList()
        self._variables = 0
        self._add_counts()
        self._add_fanouts()
        self._add_rules()

    # Building

    def require(self, row: Any) -> None:
        """Add a constraint. Rows without variables (a dimension of 1) that hold are left out."""
        if row is True or (not isinstance(row, bool) and row.is_constant()):
            return
        if row is False:
            row = self.new_variable("continuous", 0.0) >= 1
        self.model.rows.add(row)

    def new_variable(self, kind: str, upper: float | None = None) -> Any:
        """Add a variable >= 0; `kind` is ``binary``, ``integer`` or ``continuous``."""
        from pyomo.core import Binary, NonNegativeIntegers, NonNegativeReals, Var

        domain = {"binary": Binary, "integer": NonNegativeIntegers, "continuous": NonNegativeReals}[kind]
        variable = Var(domain=domain, bounds=(0, 1 if kind == "binary" else upper))
        self.model.add_component(f"v{self._variables}", variable)
        self._variables += 1
        return variable

    def longest(self, dim: Dim) -> int:
        """The largest bound that a dimension may have."""
        return self.bounds[dim][-1]

    def require_meeting(self, found: Any, axis: Axis, level: int, reach: float = 1.0) -> None:
        """Let `found` be 1 only where tiles at a level (-1: words) may be moved as far along an axis by its two
        dimensions.

        Whatever is moved over time or apart in space is so by whole tiles. So a tile of t indices of one dimension is
        made up for by those of the other, which are fewer than all there are, times `reach`.
        """
        sides = (axis.outputs, axis.stride), (axis.taps, axis.dilation)
        for (dim, step), (partner, back) in (sides, sides[::-1]):
            room = log2((self.longest(partner) - 0.5) * reach * back / step)
            if room < 0:
                self.require(found <= 0)
            longest = log2(self.longest(dim))
            if level >= 0 and 0 <= room < longest:
                self.require(self.log_extent((dim,), level) <= room + (longest - room) * (1 - found))

    def _add_counts(self) -> None:
        for dim, primes in self.factors.items():
            if len(self.bounds[dim]) > 1:
                for choice in self.bounds[dim]:
                    self.selectors[dim, choice] = self.new_variable("binary")
                self.require(sum(self.selectors[dim, choice] for choice in self.bounds[dim]) == 1)
            for prime, multiplicity in primes.items():
                placed = []
                for level in range(len(self.architecture.levels)):
                    instances = self.most_instances(level)
                    for kind in KINDS:
                        upper = multiplicity
                        if kind == "spatial":
                            while prime**upper > instances:
                                upper -= 1
                        if upper == 0 or (kind == "spatial" and instances == 1):
                            continue
                        variable = self.new_variable("integer", upper)
                        self.counts[level, dim, prime, kind] = variable
                        self._shares[id(variable)] = ((dim, prime), multiplicity)
                        placed.append(variable)
                wanted: Expression = multiplicity
                if len(self.bounds[dim]) > 1:
                    wanted = sum(
                        prime_factors(choice).get(prime, 0) * self.selectors[dim, choice] for choice in self.bounds[dim]
                    )
                self.require(sum(placed) == wanted)

    def most_instances(self, level: int) -> int:
        """Instances that spatial loops of a level may spread over."""
        return prod(self.architecture.fanout(level))

    def _add_fanouts(self) -> None:
        """Fan-outs and limits, half a unit up: whole numbers within pass, with tolerance to spare."""
        for level in range(len(self.architecture.levels)):
            instances = prod(self.architecture.fanout(level))
            if instances > 1:
                self.require(self.log_loops(DIMS, level, ("spatial",)) <= log2(instances + 0.5))
        for limit in self.architecture.limits:
            self.require(self.log_limited(limit) <= log2(limit.most + 0.5))

    def log_limited(self, limit: Limit) -> Expression:
        """Log of the product of loops that a limit is about."""
        places = {(self.architecture.level_index(place.level), place.kind) for place in limit.over}
        return sum((self.log_loops(DIMS, level, (kind,)) for level, kind in sorted(places)), 0.0)

    def _add_rules(self) -> None:
        """Products that mappings must keep to; a factor that is fixed fixes the counts of its primes."""
        for rule in self.mapping_rules.products:
            if rule.equal and len(rule.dims) == 1:
                wanted = prime_factors(rule.least)
                dim = rule.dims[0]
                for prime in {*wanted, *self.factors[dim]}:
                    places = [(level, dim, prime, kind) for level in rule.levels for kind in rule.kinds]
                    placed = sum((self.counts[place] for place in places if place in self.counts), 0)
                    self.require(placed == wanted.get(prime, 0))
                continue
            product = self.log_rule(rule)
            if rule.least > 1:
                self.require(product >= log2(rule.least - 0.5))
            if rule.most is not None:
                self.require(product <= log2(rule.most + 0.5))

    def log_rule(self, rule: ProductRule) -> Expression:
        """Log of the product that a rule is about."""
        return self.weighted(rule.levels, rule.dims, rule.kinds, log2)

    # Quantities

    def log_loops(self, dims: Sequence[Dim], level: int, kinds: Sequence[Kind] = KINDS) -> Expression:
        """Log of the product of the loops over `dims` at a level."""
        return self.weighted((level,), dims, kinds, log2)

    def weighted(self, levels: Iterable[int], dims: Sequence[Dim], kinds: Sequence[Kind], weight: Any) -> Expression:
        """Sum of counts times `weight(prime)`."""
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
        return self.weighted(range(level + 1), dims, KINDS, log2)

    def log_tile(self, tensor: Tensor, level: int) -> Expression:
        """Log of the words of a tile: the bounding box over the loops of a level and further in."""
        if tensor != "inputs":
            return self.log_extent(tuple(dim for dim in DIMS if dim in RELEVANT[tensor]), level)
        axes = sliding_axes(self.layer)
        return self.log_extent(("C", "N", "G"), level) + sum(self.log_span(axis, level) for axis in axes)

    def log_span(self, axis: Axis, level: int) -> Expression:
        """Log of the true extent of a sliding axis over the loops of a level and further in."""
        if (axis, level) not in self._spans:
            self._spans[axis, level] = log_span(self, axis, level)
        return self._spans[axis, level]

    def extents(self, axis: Axis, level: int) -> ExtentTable:
        """One binary for every (extent of outputs, extent of taps) of an axis that fits a level."""
        if (axis, level) not in self._extents:
            limit = self.span_limit(level)
            self._extents[axis, level] = extent_table(self, axis, level, limit)
            for binary in self._extents[axis, level].values():
                self._shares[id(binary)] = ((axis, level), 1)
        return self._extents[axis, level]

    def upper(self, expression: Expression) -> float:
        """What a linear expression can't exceed: counts of a prime share its multiplicity, binaries of a table one."""
        from pyomo.repn import generate_standard_repn

        if isinstance(expression, int | float):
            return float(expression)
        found = generate_standard_repn(expression)
        total, shares = float(found.constant), dict[Any, float]()
        for weight, variable in zip(found.linear_coefs, found.linear_vars, strict=True):
            key, most = self._shares.get(id(variable), (id(variable), 1.0))
            if id(variable) not in self._shares:
                most = variable.ub if weight > 0 else 0.0  # variables are >= 0
            shares[key] = max(shares.get(key, 0.0), weight * most)
        return total + sum(shares.values())

    def span_limit(self, level: int) -> int | None:
        """Words above which a span needs no entry at a level, for nothing that long fits there."""
        return self.architecture.usable_words(level) if "inputs" in self.architecture.levels[level].keeps else None

    # After solving

    def decode_bounds(self) -> dict[tuple[int, Dim, Kind], int]:
        """Bounds of the loops that the model's variables hold, by (level, dimension, kind), 1 left out."""
        bounds: dict[tuple[int, Dim, Kind], int] = {}
        for (level, dim, prime, kind), variable in self.counts.items():
            count = round(variable.value)
            if count:
                bounds[level, dim, kind] = bounds.get((level, dim, kind), 1) * prime**count
        return bounds

    def exclude(self, bounds: Mapping[tuple[int, Dim, Kind], int]) -> None:
        """Forbid one assignment of factors (a no-good cut): some count, or other choice, must differ."""
        differs = self.other_choices()
        for (level, dim, prime, kind), variable in self.counts.items():
            here = prime_factors(bounds.get((level, dim, kind), 1)).get(prime, 0)
            most = round(variable.ub)
            if here < most:
                more = self.new_variable("binary")
                self.require(variable >= (here + 1) * more)
                differs.append(more)
            if here > 0:
                fewer = self.new_variable("binary")
                self.require(variable <= most - (most - here + 1) * fewer)
                differs.append(fewer)
        self.require(sum(differs) >= 1)

    def other_choices(self) -> list[Expression]:
        """Expressions, 0 in the present solution, of which one is 1 where something else than factors differs."""
        return []

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
        self.require(sum(fewer) >= 1)


def kept_dims(architecture: Architecture, level: int) -> tuple[Dim, ...]:
    """Dimensions that change the words a level holds."""
    kept = [RELEVANT[tensor] for tensor in TENSORS if tensor in architecture.levels[level].keeps]
    return tuple(dim for dim in DIMS if any(dim in dims for dims in kept))
