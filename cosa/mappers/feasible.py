"""A mapping that keeps to everything, or what stands in its way and the smallest change that would let one in."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from cosa.analytical.footprint import box_words
from cosa.common.errors import InfeasibleError, SolverError
from cosa.mappers.neighbours import MappingPoint, Neighbourhood
from cosa.mip.elastic import ElasticSpace, Group
from cosa.mip.solver import solve
from cosa.model.arch import Architecture
from cosa.model.keeping import as_array
from cosa.model.layer import DIMS, TENSORS, Dim, Layer
from cosa.model.mapping_rules import LoopKind

_ROUNDS = 20


def feasible_point(
    layer: Layer,
    architecture: Architecture,
    neighbourhood: Neighbourhood,
    *,
    bounds: Mapping[Dim, Sequence[int]] | None = None,
    time_limit_seconds: float = 60.0,
    seed: int = 0,
) -> MappingPoint:
    """A mapping within capacities, fan-outs, limits and rules; where what levels keep is chosen, it keeps the least.

    Parameters
    ----------
    neighbourhood: of the architecture, with the rules.
    bounds: for a dimension, the bounds it may be padded to.

    Raises
    ------
    InfeasibleError: there is none; the message names what contradicts each other, by how much what is exceeded for
        which tensor, and the smallest change that would let a mapping in.
    SolverError: time was up before either was known.
    """
    search = _Feasibility(layer, architecture, neighbourhood, bounds, time_limit_seconds, seed)
    point = search.least_change()
    needs = search.needs(point)
    if not needs:
        keeping = neighbourhood.keeping
        return neighbourhood.point(point, {}, None if keeping.is_fixed else as_array(keeping.always))
    conflict = search.conflict(set(needs))
    first = "; ".join(search.named(group) for group in conflict)
    changes = "; ".join(needs[group] for group in sorted(needs, key=str))
    rules = f" with {neighbourhood.rules.source}" if neighbourhood.rules.products else ""
    raise InfeasibleError(
        f"layer {layer.name!r} does not fit architecture {architecture.name!r}{rules}: no mapping keeps to all of: "
        f"{first}. Smallest change that lets one in: {changes}"
    )


class _Feasibility:
    """Solves of the elastic space; `needs` says exactly what a mapping exceeds."""

    def __init__(
        self,
        layer: Layer,
        architecture: Architecture,
        neighbourhood: Neighbourhood,
        bounds: Mapping[Dim, Sequence[int]] | None,
        time_limit_seconds: float,
        seed: int,
    ) -> None:
        self.layer, self.architecture, self.rules = layer, architecture, neighbourhood.rules
        self.keeps = neighbourhood.keeping.always
        self.space = ElasticSpace(layer, architecture, bounds, self.rules, self.keeps)
        self._seed, self._deadline = seed, time.perf_counter() + time_limit_seconds

    def least_change(self) -> dict[tuple[int, Dim, LoopKind], int]:
        """Loop bounds that exceed as little as any can, in the sum of the logarithms of the excesses."""
        found = self._solve(list(self.space.stretches), price=True)
        assert found is not None
        return found

    def conflict(self, candidates: set[Group]) -> list[Group]:
        """Groups that can't all be kept, none of which may be left out for that.

        Those that the smallest change does not touch are let go first, so that what it changes is named.
        """
        kept = list(self.space.stretches)
        for group in sorted(kept, key=lambda one: (one in candidates, one[0] == "rule", str(one))):
            rest = [other for other in kept if other != group]
            if self._solve([other for other in self.space.stretches if other not in rest], price=False) is None:
                kept = rest
        return kept

    def _solve(self, free: list[Group], price: bool) -> dict[tuple[int, Dim, LoopKind], int] | None:
        """Loop bounds with some groups free to be exceeded (at a price or not); None: there are none."""
        from pyomo.core import Objective

        space, model = self.space, self.space.model
        for group, variables in space.stretches.items():
            for variable in variables:
                variable.setub(120.0 if group in free else 0.0)
        if model.component("objective") is not None:
            model.del_component("objective")
        cost = sum(variable for variables in space.stretches.values() for variable in variables)
        model.objective = Objective(expr=cost if price else 0.0 * cost)
        for _ in range(_ROUNDS):
            left = self._deadline - time.perf_counter()
            if left <= 0:
                break
            result = solve(model, time_limit_seconds=left, gap=1e-6, seed=self._seed)
            if result.status == "infeasible":
                return None
            if not result.has_solution:
                break
            bounds = space.decode_bounds()
            tight = sum(power.refine() for power in space.powers) == 0
            exceeded = [group for group in self.needs(bounds) if group not in free]
            if (tight and price) or not (exceeded or price):
                return bounds
            if tight:
                space.exclude(bounds)
        raise SolverError(f"layer {self.layer.name!r}: whether anything fits was not known within the time limit")

    def needs(self, bounds: Mapping[tuple[int, Dim, LoopKind], int]) -> dict[Group, str]:
        """What some loop bounds exceed, and the change that would let them in, in words."""
        levels = self.architecture.levels
        array = np.ones((1, 2, len(levels), len(DIMS)), np.int64)
        for (level, dim, kind), bound in bounds.items():
            array[0, int(kind == "spatial"), level, DIMS.index(dim)] = bound
        found: dict[Group, str] = {}
        for level, entry in enumerate(levels):
            used, instances = int(array[0, 1, level].prod()), prod(self.architecture.fanout(level))
            if used > instances:
                loops = " x ".join(
                    f"{dim}{array[0, 1, level, at]}" for at, dim in enumerate(DIMS) if array[0, 1, level, at] > 1
                )
                found["fanout", level] = f"fan-out of {entry.name} from {instances} to {used} instances ({loops})"
            words = self.architecture.usable_words(level)
            if words is None:
                continue
            inside = dict(zip(DIMS, (int(size) for size in array[0, :, : level + 1].prod(axis=(0, 1))), strict=True))
            tiles = {tensor: box_words(self.layer, tensor, inside) for tensor in TENSORS if tensor in self.keeps[level]}
            needed = sum(tiles.values())
            if needed > words:
                parts = ", ".join(f"{tensor} {size:,}" for tensor, size in tiles.items())
                times = f"{needed / words:.3g} times"
                found["capacity", level] = (
                    f"capacity of {entry.name} from {words:,} to {needed:,} words ({times}: {parts})"
                )
        for number, limit in enumerate(self.architecture.limits):
            places = {(self.architecture.level_index(place.level), place.kind) for place in limit.over}
            product = prod(int(array[0, int(kind == "spatial"), level].prod()) for level, kind in places)
            if product > limit.most:
                found["limit", number] = f"limit {limit.name} from {limit.most} to {product}"
        for rule in self.rules.products:
            product = int(rule.product(array)[0])
            if product < rule.least or (rule.most is not None and product > rule.most):
                found["rule", rule.path] = f"{rule}: {product} instead"
        return found

    def named(self, group: Group) -> str:
        """A group as it stands in a message."""
        kind, which = group
        if kind == "rule":
            return ", ".join(dict.fromkeys(str(rule) for rule in self.rules.products if rule.path == which))
        if kind == "limit":
            limit = self.architecture.limits[int(which)]
            return f"limit {limit.name} of {limit.most}"
        entry = self.architecture.levels[int(which)]
        if kind == "fanout":
            return f"fan-out of {entry.name}, {prod(self.architecture.fanout(int(which)))} instances"
        words = self.architecture.usable_words(int(which))
        kept = [tensor for tensor in entry.could_keep if tensor in self.keeps[int(which)]]
        return f"capacity of {entry.name}, {words:,} words for {', '.join(kept)}"
