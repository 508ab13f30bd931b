"""How many words of a tensor a tile covers, and how many of them a tile next to it covers as well.

Two counts of the same tile. `box_words` is the bounding box of the indices touched, which is what Timeloop and CoSA
hold against a capacity: gaps that a stride leaves between touched rows occupy space. `touched_words` leaves the gaps
out: it is what has to move. Both are products over the axes of the tensor; on a sliding axis of the inputs an output
and a filter loop meet (``P * stride_w + R * dilation_w``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import gcd, prod
from typing import Any

from cosa.model.layer import Dim, Layer, Tensor

Amount = Any
"""A number, or an array of mappings."""


def axes(layer: Layer, tensor: Tensor) -> tuple[dict[Dim, int], ...]:
    """For each axis of a tensor, the loops that walk it and how far one index of each goes."""
    if tensor == "weights":
        return {"G": 1}, {"K": 1}, {"C": 1}, {"R": 1}, {"S": 1}
    if tensor == "outputs":
        return {"N": 1}, {"G": 1}, {"K": 1}, {"P": 1}, {"Q": 1}
    width: dict[Dim, int] = {"P": layer.stride_w, "R": layer.dilation_w}
    height: dict[Dim, int] = {"Q": layer.stride_h, "S": layer.dilation_h}
    return {"N": 1}, {"G": 1}, {"C": 1}, width, height


def span(scales: Iterable[int], extents: Iterable[Amount]) -> Amount:
    """Length of the interval from the first to the last index that loops of these extents touch on an axis."""
    return 1 + sum(scale * (extent - 1) for scale, extent in zip(scales, extents, strict=True))


def coinciding(
    outputs: Amount, taps: Amount, stride: Amount, dilation: Amount, common: Amount, times: int = 1
) -> Amount:
    """Pairs (p, r) of so many outputs and taps with `times` others further on that touch the same index of an axis.

    (p, r) and (p + dilation/g, r - stride/g), g their greatest common divisor `common`, touch the same index and
    nothing else does, so each index is a chain of such pairs. Those of exactly k pairs are as many as the second
    difference of these counts at `times` = k. For numbers, arrays, and compiled.
    """
    ahead, back = outputs - times * (dilation // common), taps - times * (stride // common)
    return ahead * (ahead > 0) * back * (back > 0)


def touched_on_axis(outputs: Amount, taps: Amount, stride: Amount, dilation: Amount) -> Amount:
    """Distinct values of ``p * stride + r * dilation`` for p < outputs and r < taps: pairs less links of their chains.

    Numbers or arrays (of the same kind all four).
    """
    return outputs * taps - coinciding(outputs, taps, stride, dilation, _common(stride, dilation))


def _common(one: Amount, other: Amount) -> Amount:
    """The greatest common divisor, of numbers or arrays."""
    if isinstance(one, int):
        return gcd(one, other)
    import numpy as np

    return np.gcd(one, other)


def shared_on_axis(scales: Sequence[int], extents: Sequence[Amount], shift: Amount) -> Amount:
    """Indices on an axis that a tile and the same tile `shift` >= 0 further on both touch (numbers, or arrays).

    Of two loops, in steps of a and b without a common divisor, the taps whose numbers differ by multiples of a touch
    indices of one residue modulo a. There each of them is a run of as many places as there are outputs, b after the one
    before it. So the runs of two residues, that of an index and that of the index it is moved to, are compared.
    """
    import numpy as np

    if len(scales) == 1:
        step = scales[0]
        return np.maximum(0, extents[0] - shift) if step == 1 else _on_steps(step, extents[0] - shift // step, shift)
    common = gcd(*scales)
    (step, outputs), (apart, taps) = sorted(
        ((scale // common, extent) for scale, extent in zip(scales, extents, strict=True)), key=lambda pair: pair[0]
    )
    moved = shift if common == 1 else shift // common
    if step == 1:
        found = _shared_runs(taps - 1, taps - 1, moved, outputs, apart)
    else:
        inverse, found = pow(apart, -1, step), 0
        for residue in range(min(step, int(np.max(taps, initial=0)))):
            other = (residue + moved * inverse) % step
            ahead = (residue * apart + moved - other * apart) // step
            shared = _shared_runs((taps - 1 - residue) // step, (taps - 1 - other) // step, ahead, outputs, apart)
            found = found + np.where((residue < taps) & (other < taps), shared, 0)
    return found if common == 1 else _on_steps(common, found, shift)


def _on_steps(step: int, shared: Amount, shift: Amount) -> Amount:
    """What tiles in steps share: nothing where they stand between each other."""
    import numpy as np

    return np.where(shift % step == 0, np.maximum(0, shared), 0)


def _shared_runs(last: Amount, other_last: Amount, ahead: Amount, length: Amount, apart: int) -> Amount:
    """Places in both of two rows of runs; the second row is so far ahead.

    They are numbered from 0 to `last` and `other_last`; each begins `apart` behind the one before it.
    """
    import numpy as np

    # Where runs touch they are one.
    joined = np.minimum(last * apart, other_last * apart - ahead) + length - np.maximum(0, -ahead)
    joined = np.maximum(0, joined)
    if apart == 1:
        return joined
    whole = ahead // apart
    rest = ahead - whole * apart
    same = np.minimum(last, other_last - whole) - np.maximum(0, -whole) + 1
    next_one = np.minimum(last, other_last - whole - 1) - np.maximum(0, -whole - 1) + 1
    alone = np.maximum(0, length - rest) * np.maximum(0, same)
    alone = alone + np.maximum(0, length - apart + rest) * np.maximum(0, next_one)
    return np.where(length >= apart, joined, alone)


def _touched(scales: Sequence[int], extents: Sequence[int]) -> int:
    return extents[0] if len(scales) == 1 else touched_on_axis(*extents, *scales)


def _words(layer: Layer, tensor: Tensor, tile: Mapping[Dim, int], on_axis: Callable[[Any, Any], int]) -> int:
    return prod(on_axis(tuple(axis.values()), tuple(tile.get(dim, 1) for dim in axis)) for axis in axes(layer, tensor))


def box_words(layer: Layer, tensor: Tensor, tile: Mapping[Dim, int]) -> int:
    """Words of the bounding box of a tile; `tile` gives the extent of each loop (absent: 1)."""
    return _words(layer, tensor, tile, span)


def touched_words(layer: Layer, tensor: Tensor, tile: Mapping[Dim, int]) -> int:
    """Words of a tile that are really touched."""
    return _words(layer, tensor, tile, _touched)
