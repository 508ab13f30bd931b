"""The layer: a loop nest over R S P Q C K N and groups G, and how its three tensors depend on the loops."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from cosa.common.errors import FieldError
from cosa.common.files import WHOLE, FileModel, Model

Dim = Literal["R", "S", "P", "Q", "C", "K", "N", "G"]
Tensor = Literal["weights", "inputs", "outputs"]
DIMS: tuple[Dim, ...] = get_args(Dim)
TENSORS: tuple[Tensor, ...] = get_args(Tensor)

RELEVANT: dict[Tensor, frozenset[Dim]] = {
    "weights": frozenset(("R", "S", "C", "K", "G")),
    "inputs": frozenset(("R", "S", "P", "Q", "C", "N", "G")),
    "outputs": frozenset(("P", "Q", "K", "N", "G")),
}
"""Loops that change which words of a tensor are touched. Groups touch all three; R and S move the input window."""

REDUCTION: frozenset[Dim] = frozenset(("R", "S", "C"))
"""Loops that add into the same output word."""

MAX_BOUND = 2**24
MAX_MACS = 2**62

Bound = Annotated[int, Field(ge=1, le=MAX_BOUND)]
Bits = Annotated[int, Field(ge=1, le=64)]


class WordBits(Model):
    """Width of one word of each tensor, in bits; `partial_sums` is the width of unfinished outputs."""

    weights: Bits = 8
    inputs: Bits = 8
    outputs: Bits = 8
    partial_sums: Bits = 24


class Layer(FileModel):
    """One layer. Filter R x S, output P x Q, C input and K output channels (per group), batch N, G groups.

    The width axis of the inputs is touched at ``P * stride_w + R * dilation_w``, the height axis at
    ``Q * stride_h + S * dilation_h``. A matrix product is a layer with R = S = Q = 1 and P carrying the rows.
    """

    kind: Literal["layer"] = "layer"
    schema_version: Annotated[Literal[1], WHOLE] = 1
    name: str = Field(default="layer", min_length=1, max_length=200)
    R: Bound
    S: Bound
    P: Bound
    Q: Bound
    C: Bound
    K: Bound
    N: Bound
    G: Bound = 1
    stride_w: Bound = 1
    stride_h: Bound = 1
    dilation_w: Bound = 1
    dilation_h: Bound = 1
    word_bits: WordBits = WordBits()
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _countable(self) -> Layer:
        if self.macs > MAX_MACS:
            allowed = f"at most {MAX_MACS}, which counters hold"
            raise FieldError("the product of all bounds, its MACs, is too large", value=self.macs, allowed=allowed)
        return self

    @property
    def bounds(self) -> dict[Dim, int]:
        """Bound of every loop."""
        return {dim: getattr(self, dim) for dim in DIMS}

    @property
    def macs(self) -> int:
        """Multiply-accumulates: the product of all bounds."""
        return prod(self.bounds.values())

    def padded_to(self, bounds: Mapping[Dim, int]) -> Layer:
        """The layer with other (larger) bounds of some dimensions; name and all else stay."""
        return self.model_copy(update={str(dim): bound for dim, bound in bounds.items()}) if bounds else self

    def tensor_words(self, tensor: Tensor) -> int:
        """Words of a tensor that the layer touches (input gaps between strides are not counted)."""
        from cosa.analytical.footprint import touched_words

        return touched_words(self, tensor, self.bounds)


def layer_line(layer: Layer) -> str:
    """The bounds of a layer, and stride, dilation and groups where they are not 1."""
    parts = [f"{dim}{bound}" for dim, bound in layer.bounds.items() if dim != "G" or bound > 1]
    for name in ("stride", "dilation"):
        along = (getattr(layer, f"{name}_w"), getattr(layer, f"{name}_h"))
        if along != (1, 1):
            parts.append(f"{name} {along[0]}x{along[1]}")
    return " ".join(parts)


def padding_line(layer: Layer, padded: Mapping[Dim, int], remainders: bool = False) -> str:
    """The bounds that are padded, and the MACs that this adds; or that are covered, and left over."""
    parts = ", ".join(f"{dim} {layer.bounds[dim]:,} to {bound:,}" for dim, bound in padded.items())
    if remainders:
        return f"loops cover {parts}; the last tiles are smaller"
    more = layer.padded_to(padded).macs - layer.macs
    return f"{parts}: {more:,} more MACs ({more / layer.macs:.1%})"
