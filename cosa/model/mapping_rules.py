"""What mappings of one layer on one architecture must keep to, besides capacities and fan-outs.

The program (as rows), the descent (as a filter of neighbours) and the check of a finished nest all read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, TENSORS, Dim, Tensor
from cosa.model.schedule import ScheduleLevel

LoopKind = Literal["temporal", "spatial"]
KINDS: tuple[LoopKind, ...] = ("temporal", "spatial")
Block = tuple[Dim, ...]
"""Loops of a level that stand together, in any order among each other."""


@dataclass(frozen=True)
class ProductRule:
    """The product of some loops is from `least` to `most` (None: any); `path` and `text` name it in messages."""

    path: str
    text: str
    levels: tuple[int, ...]
    dims: tuple[Dim, ...]
    kinds: tuple[LoopKind, ...]
    least: int
    most: int | None

    @property
    def equal(self) -> bool:
        """Whether the product is fixed."""
        return self.least == self.most

    def __str__(self) -> str:
        if self.equal and self.least > 1:
            return f"{self.text} equal to {self.least} ({self.path})"
        parts = [f"at least {self.least}"] if self.least > 1 else []
        parts += [f"at most {self.most}"] if self.most is not None else []
        return f"{self.text} {' and '.join(parts)} ({self.path})"

    def product(self, bounds: Any) -> Any:
        """Products of mappings, whose bounds are an array [n, 2 (temporal, spatial), level, dimension]."""
        import numpy as np

        kinds = [KINDS.index(kind) for kind in self.kinds]
        picked = bounds[:, kinds][:, :, list(self.levels)][:, :, :, [DIMS.index(dim) for dim in self.dims]]
        return np.prod(picked, axis=(1, 2, 3))


@dataclass(frozen=True)
class MappingRules:
    """What mappings must keep to.

    `products`: of loops; `blocks`: by level, loops that stand innermost, block by block from the inside out; `axes`: by
    level, the dimensions that spatial loops have along x and along y; `keeps`: whether a level keeps a tensor.
    """

    source: str = ""
    products: tuple[ProductRule, ...] = ()
    blocks: dict[int, tuple[Block, ...]] = field(default_factory=dict)
    axes: dict[int, tuple[tuple[Dim, ...], tuple[Dim, ...]]] = field(default_factory=dict)
    keeps: dict[tuple[int, Tensor], bool] = field(default_factory=dict)

    def allows(self, bounds: Any) -> Any:
        """Which mappings keep to the products; bounds [n, 2 (temporal, spatial), level, dimension]."""
        import numpy as np

        fine = np.ones(len(bounds), np.bool_)
        for rule in self.products:
            product = rule.product(bounds)
            fine &= product >= rule.least
            if rule.most is not None:
                fine &= product <= rule.most
        return fine

    def named(self, level: int) -> list[Dim]:
        """The loops whose place at a level is stated, from the inside out."""
        return [dim for block in self.blocks.get(level, ()) for dim in block]

    def broken(self, architecture: Architecture, nest: Sequence[ScheduleLevel]) -> list[str]:
        """What a nest (outermost level first) does not keep to, in words."""
        import numpy as np

        if not (self.products or self.blocks or self.axes or self.keeps):
            return []

        bounds = np.ones((1, 2, len(nest), len(DIMS)), np.int64)
        found = []
        for level, entry in enumerate(nest[::-1]):
            name = architecture.levels[level].name
            for loop in entry.loops:
                bounds[0, KINDS.index(loop.kind), level, DIMS.index(loop.dim)] *= loop.bound
            rank = {dim: number for number, block in enumerate(self.blocks.get(level, ())) for dim in block}
            found += [
                f"{tensor} at {name} {'kept' if keep else 'bypassed'}"
                for tensor in TENSORS
                if (keep := self.keeps.get((level, tensor))) is not None and keep != (tensor in entry.keeps)
            ]
            inside_out = [rank.get(loop.dim, len(DIMS)) for loop in reversed(entry.temporal) if loop.bound > 1]
            if inside_out != sorted(inside_out):
                found.append(f"loop order at {name}")
            x, y = self.axes.get(level, (DIMS, DIMS))
            for loop in entry.spatial:
                if (
                    loop.bound > 1
                    and level in self.axes
                    and (loop.axis, loop.dim in x, loop.dim in y)
                    not in (
                        ("x", True, False),
                        ("y", False, True),
                    )
                ):
                    found.append(f"spatial {loop.dim} along {loop.axis} at {name}")
        for rule in self.products:
            product = int(rule.product(bounds)[0])
            if product < rule.least or (rule.most is not None and product > rule.most):
                found.append(str(rule))
        return found
