"""What a constraint file says of nests (`docs/reference/files.md`), from its data; shares no code with the product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, permutations
from math import prod
from typing import Any

from tests.certificate.accounting import TENSORS, Machine, plain

STAYS = {"weights": "PQN", "inputs": "K", "outputs": "RSC"}
"""Loops that leave a tensor where it is."""


class Rules:
    """Constraints on one machine; None: nothing is constrained."""

    def __init__(self, constraints: Any, machine: Machine) -> None:
        data = plain(constraints) if constraints is not None else {}
        self.machine = machine
        self.factors = [(item, self._levels(item["level"])) for item in data.get("factors") or ()]
        self.spatial = [(item, self._levels(item["level"])) for item in data.get("spatial") or ()]
        self._orders = [(item, self._levels(item["level"])) for item in data.get("orders") or ()]
        self._keeps = [(item, self._levels(item["level"])) for item in data.get("keeps") or ()]

    def _levels(self, name: str) -> list[int]:
        """A level by its name, or those that a place means: the array is the level with the largest fan-out."""
        names = self.machine.names
        if name in names:
            return [names.index(name)]
        sizes = [x * y for x, y in self.machine.fanouts]
        array = max(level for level, size in enumerate(sizes) if size == max(sizes))
        every = list(range(len(names)))
        return {
            "every": every,
            "array": [array],
            "inside_array": every[:array],
            "around_array": every[array:],
            "outermost": every[-1:],
        }[name]

    def allows_split(self, dim: str, split: Mapping[tuple[int, str], int]) -> bool:
        """Whether a dimension may be split so over (level, kind): what the file says of factors."""
        for item, levels in self.factors:
            if item["dim"] != dim:
                continue
            kinds = ("temporal", "spatial") if item.get("kind") is None else (item["kind"],)
            found = prod(split.get((level, kind), 1) for level in levels for kind in kinds)
            if item.get("equal") is not None and found != item["equal"]:
                return False
            if item.get("at_least") is not None and found < item["at_least"]:
                return False
            if item.get("at_most") is not None and found > item["at_most"]:
                return False
        return True

    def allows_products(self, temporal: Sequence[Mapping[str, int]], spatial: Sequence[Mapping[str, int]]) -> bool:
        """Whether a level may have these dimensions side by side, along either axis."""
        for item, levels in self.spatial:
            allowed = item["dims"] if item.get("dims") is not None else (*(item.get("x") or ()), *(item.get("y") or ()))
            if any(dim not in allowed for level in levels for dim in spatial[level]):
                return False
        return True

    def allows_axis(self, level: int, dim: str, axis: str) -> bool:
        """Whether a dimension may run along an axis; where axes are stated nothing runs row by row."""
        for item, levels in self.spatial:
            if (
                level in levels
                and item.get("dims") is None
                and (axis == "row_major" or dim not in (item.get(axis) or ()))
            ):
                return False
        return True

    def orders(self, level: int, dims: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Orders (outer to inner) that the loops of a level may have."""
        stated = [item for item, levels in self._orders if level in levels]
        return [order for order in permutations(dims) if all(self._in_order(order, item) for item in stated)]

    @staticmethod
    def _in_order(order: tuple[str, ...], item: Mapping[str, Any]) -> bool:
        """Named loops stand innermost, in their order; those that leave a tensor where it is in any."""
        if item.get("order") is not None:
            named = tuple(dim for dim in item["order"] if dim in order)
            return order[len(order) - len(named) :] == named
        staying = STAYS[item["stays"]]
        inner = sum(dim in staying for dim in order)
        return all(dim in staying for dim in order[len(order) - inner :])

    def kept(self, level: int, bypass: str) -> list[tuple[str, ...]]:
        """What a level may keep: fixed, as the architecture says; chosen, any of that and of `may_keep`, or nothing.

        What the file says comes first. The outermost level keeps everything.
        """
        here = [item for item, levels in self._keeps if level in levels]
        wanted = {tensor for item in here for tensor in item.get("keep") or ()}
        barred = {tensor for item in here for tensor in item.get("bypass") or ()}
        outermost = level == len(self.machine.names) - 1
        usual = set(self.machine.keeps[level])
        if bypass == "fixed" or outermost:
            return [tuple(tensor for tensor in TENSORS if tensor in (usual - barred) | wanted)]
        free = [tensor for tensor in TENSORS if tensor in (usual | set(self.machine.may_keep[level])) - barred - wanted]
        return [
            tuple(tensor for tensor in TENSORS if tensor in wanted or tensor in some)
            for number in range(len(free) + 1)
            for some in combinations(free, number)
        ]
