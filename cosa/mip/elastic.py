"""Elastic form of the space: every limit may be stretched, at a price, to find what stands in the way of a mapping.

A stretch is the logarithm of a factor: a capacity, fan-out, limit or constraint that holds 2^s times what is stated.
The sum of stretches is what is minimised: doubling a buffer costs as much as doubling a fan-out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2, prod
from typing import Any

from cosa.mip.powers import Power
from cosa.mip.space import Space
from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, Dim, Layer, Tensor
from cosa.model.mapping_rules import MappingRules

_LARGEST_FANOUT = 2**24

Group = tuple[str, int | str]
"""What is stretched: (``capacity`` or ``fanout``, level), (``limit``, number), or (``rule``, path)."""


class ElasticSpace(Space):
    """The space of a layer with a stretch, a variable >= 0, for each row of `stretches`; tiles by tangents.

    `keeps`: by level, innermost first, the tensors that it keeps."""

    def __init__(
        self,
        layer: Layer,
        architecture: Architecture,
        bounds: Mapping[Dim, Sequence[int]] | None,
        rules: MappingRules,
        keeps: Sequence[frozenset[Tensor]],
    ) -> None:
        self._keeps = keeps
        self.stretches: dict[Group, list[Any]] = {}
        self.powers: list[Power] = []
        super().__init__(layer, architecture, bounds, rules)
        self._add_capacities()

    def most_instances(self, level: int) -> int:
        """See `Space`: here a fan-out may be made larger."""
        return _LARGEST_FANOUT

    def span_limit(self, level: int) -> int | None:
        """See `Space`: here a capacity may be made larger."""
        return None

    def new_stretch(self, group: Group) -> Any:
        """A further variable of a group."""
        variable = self.new_variable("continuous", 120.0)
        self.stretches.setdefault(group, []).append(variable)
        return variable

    def _add_fanouts(self) -> None:
        for level in range(len(self.architecture.levels)):
            used = self.log_loops(DIMS, level, ("spatial",))
            instances = prod(self.architecture.fanout(level))
            self.require(used <= log2(instances + 0.5) + self.new_stretch(("fanout", level)))
        for number, limit in enumerate(self.architecture.limits):
            stretch = self.new_stretch(("limit", number))
            self.require(self.log_limited(limit) <= log2(limit.most + 0.5) + stretch)

    def _add_rules(self) -> None:
        for rule in self.mapping_rules.products:
            product = self.log_rule(rule)
            if rule.least > 1:
                self.require(product >= log2(rule.least - 0.5) - self.new_stretch(("rule", rule.path)))
            if rule.most is not None:
                self.require(product <= log2(rule.most + 0.5) + self.new_stretch(("rule", rule.path)))

    def _add_capacities(self) -> None:
        for level, entry in enumerate(self.architecture.levels):
            words = self.architecture.usable_words(level)
            if words is None:
                continue
            stretch = self.new_stretch(("capacity", level))
            parts: list[Any] = []
            for tensor in entry.could_keep:
                if tensor not in self._keeps[level]:
                    continue
                power = Power(self, f"{level} {tensor}", self.log_tile(tensor, level) - stretch, words)
                self.powers.append(power)
                parts.append(power.value)
            self.require(sum(parts) <= 1 + 0.5 / words)
