"""The vocabulary of the program: which loops move which tensor, and the few expressions objectives are made of.

`Quantities` has two implementations: the program (expressions of Pyomo variables) and a finished nest (numbers). An
objective is written once against it, so that the solver's objective and that of a given nest can't drift apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log2
from typing import Any, Literal, Protocol

from cosa.arch import Architecture, Level
from cosa.workload import RELEVANT, Dim, Layer, Tensor

Kind = Literal["temporal", "spatial"]
KINDS: tuple[Kind, ...] = ("temporal", "spatial")

INSIDE_OUT: tuple[Dim, ...] = ("R", "S", "P", "Q", "C", "K", "N", "G")
"""CoSA's fixed loop order, innermost first; orders that cost the same are settled by it."""

Expression = Any
"""A linear Pyomo expression or a number."""


@dataclass(frozen=True)
class Axis:
    """A sliding axis of the inputs: `outputs` steps by `stride`, `taps` by `dilation`."""

    outputs: Dim
    taps: Dim
    stride: int
    dilation: int


def sliding_axes(layer: Layer) -> tuple[Axis, Axis]:
    """The width and the height axis of the inputs."""
    return (
        Axis("P", "R", layer.stride_w, layer.dilation_w),
        Axis("Q", "S", layer.stride_h, layer.dilation_h),
    )


@dataclass(frozen=True)
class Rules:
    """How tiles, orders and shares are modelled.

    `as_published`: as CoSA's public code at first release counts inputs: the stride once for each prime factor of P and
    Q, the halo at one level only and there as a bit for each tap once the window slides, and R and S never move them.
    Otherwise the true bounding box wherever inputs are kept, and R and S move them. (That code also gives loops of
    bound 1 a halo of one bit; this is modelled in neither.)

    `input_share`: what inputs may take of a level that keeps inputs and outputs (first release: 1/4; since May 2023:
    1/2); outputs get the rest. Other levels with several tensors are split evenly.
    """

    as_published: bool = False
    input_share: Fraction = Fraction(1, 4)

    def relevant(self, tensor: Tensor) -> frozenset[Dim]:
        """Loops at and outside the mesh level that move a tensor."""
        return RELEVANT[tensor] - {"R", "S"} if self.as_published and tensor == "inputs" else RELEVANT[tensor]

    def share(self, level: Level, tensor: Tensor) -> Fraction:
        """Part of a level's capacity that one of its tensors may take."""
        if set(level.keeps) == {"inputs", "outputs"}:
            return self.input_share if tensor == "inputs" else 1 - self.input_share
        return Fraction(1, len(level.keeps))

    def share_words(self, architecture: Architecture, level: int, tensor: Tensor) -> int | None:
        """Words of a level that a tensor may take (None: unbounded). Never below 1: a tile has at least one word."""
        words = architecture.usable_words(level)
        return None if words is None else max(1, int(words * self.share(architecture.levels[level], tensor)))


@dataclass(frozen=True)
class StayingMode:
    """An order of the mesh level's temporal loops, told by the loops innermost: `tensor` stays while they run."""

    tensor: Tensor
    innermost: tuple[Dim, ...]


def staying_modes(rules: Rules) -> tuple[StayingMode, ...]:
    """The three orders that are not dominated.

    Every loop but G leaves at least one tensor where it is, and loops that leave different tensors exclude each other
    as innermost loops; so an order is as good as the one of the three that starts with the same group. As published,
    R and S leave both inputs and outputs where they are, and so stand innermost in both modes.
    """
    taps: tuple[Dim, ...] = ("R", "S") if rules.as_published else ()
    return (
        StayingMode("weights", ("P", "Q", "N")),
        StayingMode("inputs", (*taps, "K")),
        StayingMode("outputs", ("R", "S", "C")),
    )


def order(dims: Sequence[Dim], innermost: Sequence[Dim]) -> list[Dim]:
    """Dimensions from the outermost to the innermost loop: those of `innermost` last, ties by `INSIDE_OUT`."""
    inside_out = [dim for dim in INSIDE_OUT if dim in innermost] + [dim for dim in INSIDE_OUT if dim not in innermost]
    return [dim for dim in reversed(inside_out) if dim in dims]


class Quantities(Protocol):
    """What objectives may speak of; logarithms are to the base 2."""

    layer: Layer
    architecture: Architecture
    rules: Rules

    def log_loops(self, dims: Sequence[Dim], level: int, kinds: Sequence[Kind] = KINDS) -> Expression:
        """Log of the product of the loops over `dims` at a level."""

    def log_tile(self, tensor: Tensor, level: int) -> Expression:
        """Log of the words that a level holds of a tensor, as the rules count them."""

    def log_span(self, axis: Axis, level: int) -> Expression:
        """Log of the true extent of a sliding axis over the loops of a level and further in."""

    def log_iterations(self, tensor: Tensor) -> Expression:
        """Log of how often the mesh level's temporal loops send a tensor's tile (its own and those outside them)."""


def halo_level(architecture: Architecture) -> int | None:
    """The level at which the published code adds the halo: the outermost below the mesh that keeps inputs."""
    levels = [i for i in range(architecture.mesh_level) if "inputs" in architecture.levels[i].keeps]
    return levels[-1] if levels else None


def log_stride(layer: Layer, dim: Dim) -> float:
    """Log of the stride that the published code charges for each prime factor of P or Q."""
    return {"P": log2(layer.stride_w), "Q": log2(layer.stride_h)}.get(dim, 0.0)
