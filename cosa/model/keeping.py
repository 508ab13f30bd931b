"""Which tensors the levels keep: as the architecture says, or chosen with the mapping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from cosa.common.errors import InfeasibleError
from cosa.model.arch import Architecture
from cosa.model.layer import TENSORS, Tensor
from cosa.model.mapping_rules import MappingRules

Bypass = Literal["fixed", "chosen"]
BYPASSES: tuple[Bypass, ...] = ("fixed", "chosen")


@dataclass(frozen=True)
class Keeping:
    """What each level (innermost first) keeps in any mapping (`always`) and may keep (`may`, those included)."""

    always: tuple[frozenset[Tensor], ...]
    may: tuple[frozenset[Tensor], ...]
    default: tuple[frozenset[Tensor], ...]

    @classmethod
    def of(cls, architecture: Architecture, bypass: Bypass = "fixed", rules: MappingRules | None = None) -> Keeping:
        """Fixed: each level keeps what the architecture says. Chosen: each but the outermost keeps any of that and of
        its `may_keep`, or none. What the rules say of a level comes first in both.

        Raises
        ------
        InfeasibleError: the rules ask for what a level can't keep, or for a bypass of the outermost.
        """
        stated = dict(rules.keeps) if rules is not None else {}
        source = rules.source if rules is not None else ""
        always, may, default = [], [], []
        for number, level in enumerate(architecture.levels):
            outermost = number == len(architecture.levels) - 1
            could = frozenset(level.could_keep)
            wanted = {tensor for tensor in TENSORS if stated.get((number, tensor)) is True}
            barred = {tensor for tensor in TENSORS if stated.get((number, tensor)) is False}
            if wrong := wanted - could:
                raise InfeasibleError(f"{source}: {level.name} can't keep {', '.join(sorted(wrong))}")
            if outermost and barred:
                raise InfeasibleError(f"{source}: {level.name}, the outermost level, bypasses nothing")
            kept = frozenset(level.keeps) - barred | wanted
            free = bypass == "chosen" and not outermost
            always.append(frozenset(wanted) if free else kept)
            may.append(could - barred if free else kept)
            default.append(kept)
        return cls(tuple(always), tuple(may), tuple(default))

    @cached_property
    def free(self) -> tuple[tuple[int, Tensor], ...]:
        """(level, tensor) of every choice."""
        return tuple(
            (level, tensor)
            for level, most in enumerate(self.may)
            for tensor in TENSORS
            if tensor in most - self.always[level]
        )

    @property
    def is_fixed(self) -> bool:
        """Whether nothing is left to choose."""
        return not self.free


def as_array(keeps: Sequence[frozenset[Tensor]]) -> Any:
    """What levels keep as booleans, [level, tensor]."""
    import numpy as np

    return np.array([[tensor in kept for tensor in TENSORS] for kept in keeps], np.bool_)


def differences(architecture: Architecture, keeps: Sequence[Sequence[Tensor]]) -> list[str]:
    """Where levels (innermost first) keep something else than the architecture says, in words, outermost first."""
    found = []
    for level, kept in reversed(list(zip(architecture.levels, keeps, strict=True))):
        left = [tensor for tensor in TENSORS if tensor in level.keeps and tensor not in kept]
        more = [tensor for tensor in TENSORS if tensor in kept and tensor not in level.keeps]
        parts = [f"bypasses {' and '.join(left)}"] if left else []
        parts += [f"keeps {' and '.join(more)} too"] if more else []
        if parts:
            found.append(f"{level.name} {' and '.join(parts)}")
    return found
