"""How many words of a tensor a tile covers.

Two counts of the same tile. `box_words` is the bounding box of the indices touched, which is what Timeloop and CoSA
hold against a capacity: gaps that a stride leaves between touched rows occupy space. `touched_words` leaves the gaps
out: it is what has to move.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from cosa.model.layer import Dim, Layer, Tensor

PLAIN_AXES: dict[Tensor, tuple[Dim, ...]] = {
    "weights": ("G", "K", "C", "R", "S"),
    "inputs": ("N", "G", "C"),
    "outputs": ("N", "G", "K", "P", "Q"),
}
"""Axes of a tensor that one loop each walks; inputs have two sliding axes besides, (P, R) and (Q, S)."""


def touched_on_axis(outputs: int, taps: int, stride: int, dilation: int) -> int:
    """Distinct values of ``p * stride + r * dilation`` for p < outputs and r < taps.

    (p, r) and (p + dilation/g, r - stride/g), g their greatest common divisor, touch the same index and nothing else
    does, so each index is a chain of such pairs: distinct = pairs - links between neighbours in a chain.
    """
    common = gcd(stride, dilation)
    links = max(0, outputs - dilation // common) * max(0, taps - stride // common)
    return outputs * taps - links


def window_span(outputs: int, taps: int, stride: int, dilation: int) -> int:
    """Length of the interval from the first to the last index touched on a sliding axis."""
    return (outputs - 1) * stride + (taps - 1) * dilation + 1


def _words(layer: Layer, tensor: Tensor, tile: Mapping[Dim, int], box: bool) -> int:
    count = 1
    for dim in PLAIN_AXES[tensor]:
        count *= tile.get(dim, 1)
    if tensor == "inputs":
        on_axis = window_span if box else touched_on_axis
        count *= on_axis(tile.get("P", 1), tile.get("R", 1), layer.stride_w, layer.dilation_w)
        count *= on_axis(tile.get("Q", 1), tile.get("S", 1), layer.stride_h, layer.dilation_h)
    return count


def box_words(layer: Layer, tensor: Tensor, tile: Mapping[Dim, int]) -> int:
    """Words of the bounding box of a tile; `tile` gives the extent of each loop (absent: 1)."""
    return _words(layer, tensor, tile, box=True)


def touched_words(layer: Layer, tensor: Tensor, tile: Mapping[Dim, int]) -> int:
    """Words of a tile that are really touched."""
    return _words(layer, tensor, tile, box=False)
