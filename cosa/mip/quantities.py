"""The vocabulary of the program: which loops move which tensor, and the few expressions objectives are made of.

`Quantities` has two implementations: the program (expressions of Pyomo variables) and a finished nest (numbers). An
objective is written once against it, so that the solver's objective and that of a given nest can't drift apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log2
from typing import Any, Protocol

from cosa.common.errors import InputError, nearest_of
from cosa.model.arch import Architecture, Level
from cosa.model.layer import RELEVANT, Dim, Layer, Tensor
from cosa.model.mapping_rules import KINDS, LoopKind

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
    That code gives a bound of 1 the one factor 1, which stands wherever the program likes: of R or S for a bit of halo
    once the window slides, or for none; of P or Q so that the window slides, for a stride.
    Otherwise the true bounding box wherever inputs are kept, and R and S move them.

    `input_share`: what inputs may take of a level that keeps inputs and outputs (first release: 1/4; since May 2023:
    1/2); outputs get the rest. Other levels with several tensors are split evenly.

    `precision`: the paper's precision terms. Capacities are bytes (words of `word_bits`) that tiles fill with words of
    the layer's widths, outputs as partial sums; utilisation and traffic have the logarithm of a word's bytes on top.
    The public code counts entries. A tile never exceeds the entries either.

    `ordered_level`: name of the level whose loop order is part of the program and under which traffic is counted; None:
    the level with the mesh, without a mesh the one under the outermost.
    """

    as_published: bool = False
    input_share: Fraction = Fraction(1, 4)
    precision: bool = False
    ordered_level: str | None = None

    def order_level(self, architecture: Architecture) -> int:
        """Index of the ordered level.

        Raises
        ------
        InputError: the architecture has no level of that name.
        """
        if self.ordered_level is None:
            return len(architecture.levels) - 2 if architecture.noc is None else architecture.mesh_level
        names = [level.name for level in architecture.levels]
        if self.ordered_level not in names:
            raise InputError(
                f"architecture {architecture.name!r} has no such level",
                path="order_level",
                value=self.ordered_level,
                allowed=", ".join(names),
                nearest=nearest_of(self.ordered_level, names),
            )
        return names.index(self.ordered_level)

    def log_bytes(self, layer: Layer, tensor: Tensor) -> float:
        """The precision term of a tensor: log of the bytes of a word, 0 without precision terms."""
        return log2(tensor_bits(layer, tensor) / 8) if self.precision else 0.0

    def relevant(self, tensor: Tensor) -> frozenset[Dim]:
        """Loops at and outside the mesh level that move a tensor."""
        return RELEVANT[tensor] - {"R", "S"} if self.as_published and tensor == "inputs" else RELEVANT[tensor]

    def share(self, level: Level, tensor: Tensor) -> Fraction:
        """Part of a level's capacity that one of its tensors may take."""
        if set(level.keeps) == {"inputs", "outputs"}:
            return self.input_share if tensor == "inputs" else 1 - self.input_share
        return Fraction(1, len(level.keeps))

    def share_words(self, layer: Layer, architecture: Architecture, level: int, tensor: Tensor) -> int | None:
        """Words of a level that a tensor may take (None: unbounded). Never below 1: a tile has at least one word."""
        words = architecture.usable_words(level)
        if words is None:
            return None
        entry = architecture.levels[level]
        share = words * self.share(entry, tensor)
        if self.precision:
            share = min(share, share * entry.word_bits / tensor_bits(layer, tensor))
        return max(1, int(share))


def tensor_bits(layer: Layer, tensor: Tensor) -> int:
    """Width of a word of a tensor on the way; outputs are unfinished there."""
    bits = layer.word_bits
    return {"weights": bits.weights, "inputs": bits.inputs, "outputs": bits.partial_sums}[tensor]


@dataclass(frozen=True)
class StayingMode:
    """An order of the ordered level's temporal loops, told by the loops innermost: `tensor` stays while they run.

    `needs` and `only` say when the level's loops have this order: one loop of each group of `needs`, and no loops but
    those over `only` (None: any).
    """

    tensor: Tensor | None
    innermost: tuple[Dim, ...]
    needs: tuple[tuple[Dim, ...], ...] = ()
    only: tuple[Dim, ...] | None = None


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


def exact_modes(rules: Rules) -> tuple[StayingMode, ...]:
    """The staying orders and those in which nothing stays, each with the loops it takes to be that order.

    `staying_modes` may be over-estimates (no loop of the innermost group is there, so something else stays), which is
    harmless where iterations are minimised. These count exactly, for objectives that iterations may also make smaller.
    """
    rows: tuple[Dim, ...] = ("P", "Q", "N")
    channels: tuple[Dim, ...] = ("R", "S", "C")
    filters: tuple[Dim, ...] = ("K",)
    if not rules.as_published:
        return (
            StayingMode("weights", rows, (rows,)),
            StayingMode("inputs", filters, (filters,)),
            StayingMode("outputs", channels, (channels,)),
            StayingMode(None, ("G",), (("G",),)),
            StayingMode(None, (), only=()),
        )
    taps: tuple[Dim, ...] = ("R", "S")
    return (
        StayingMode("weights", rows, (rows,)),
        StayingMode("inputs", (*taps, *filters), (filters,)),
        StayingMode("outputs", channels, (("C",),)),
        StayingMode(None, (*taps, *rows, "G"), (taps, (*rows, "G"))),
        StayingMode(None, ("G",), (("G",),)),
        StayingMode(None, taps, only=taps),
    )


def order(dims: Sequence[Dim], innermost: Sequence[Dim]) -> list[Dim]:
    """Dimensions from the outermost loop in: `innermost` (inside out) stand last, the others by `INSIDE_OUT`."""
    inside_out = [*innermost, *(dim for dim in INSIDE_OUT if dim not in innermost)]
    return [dim for dim in reversed(inside_out) if dim in dims]


class Quantities(Protocol):
    """What objectives may speak of; logarithms are to the base 2."""

    layer: Layer
    architecture: Architecture
    rules: Rules

    def log_loops(self, dims: Sequence[Dim], level: int, kinds: Sequence[LoopKind] = KINDS) -> Expression:
        """Log of the product of the loops over `dims` at a level."""

    def log_tile(self, tensor: Tensor, level: int) -> Expression:
        """Log of the words that a level holds of a tensor, as the rules count them."""

    def log_span(self, axis: Axis, level: int) -> Expression:
        """Log of the true extent of a sliding axis over the loops of a level and further in."""

    def log_iterations(self, tensor: Tensor) -> Expression:
        """Log of how often the ordered level's temporal loops send a tensor's tile (its own and those outside them)."""


def halo_level(architecture: Architecture, rules: Rules) -> int | None:
    """The level at which the published code adds the halo: the outermost below the ordered one that keeps inputs."""
    levels = [i for i in range(rules.order_level(architecture)) if "inputs" in architecture.levels[i].keeps]
    return levels[-1] if levels else None


def log_stride(layer: Layer, dim: Dim) -> float:
    """Log of the stride that the published code charges for each prime factor of P or Q."""
    return {"P": log2(layer.stride_w), "Q": log2(layer.stride_h)}.get(dim, 0.0)
