"""To which larger bounds dimensions may be padded, and when to say that this would pay."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from cosa.common.errors import InputError
from cosa.mip.factors import prime_factors
from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, Dim, Layer
from cosa.model.schedule import ScheduleLevel

_PADDING_CHOICES = 3
_FEW_BUSY = 0.5
_HINT_PERCENT = 15


def padding_choices(layer: Layer, percent: float) -> dict[Dim, tuple[int, ...]]:
    """Bounds that a dimension may have: its own, and the larger ones within `percent` that split best.

    Of those within reach the ones with the smallest largest prime are offered, of equals the smallest.

    Raises
    ------
    InputError: the percentage is out of range.
    """
    if not 0 <= percent <= 100:
        raise InputError("out of range", path="pad_percent", value=percent, allowed="from 0 to 100")
    found: dict[Dim, tuple[int, ...]] = {}
    for dim in DIMS if percent else ():
        bound = layer.bounds[dim]
        largest = max(prime_factors(bound), default=1)
        reach = range(bound + 1, int(bound * (1 + percent / 100)) + 1)
        ranked = sorted(reach, key=lambda size: (max(prime_factors(size)), size))
        better = [size for size in ranked if max(prime_factors(size)) < largest][:_PADDING_CHOICES]
        if better:
            found[dim] = (bound, *sorted(better))
    return found


def padding_hint(layer: Layer, architecture: Architecture, nest: Sequence[ScheduleLevel], cycles: float) -> list[str]:
    """A note where computing takes most of the time, most MAC units have nothing to do, and bounds split badly."""
    compute_cycles = prod(loop.bound for entry in nest for loop in entry.temporal)
    idle = layer.macs < _FEW_BUSY * compute_cycles * architecture.macs
    if not idle or compute_cycles < cycles / 2:
        return []
    dims = ", ".join(f"{dim} {layer.bounds[dim]}" for dim in padding_choices(layer, _HINT_PERCENT))
    return [f"most MAC units are idle: --pad-percent {_HINT_PERCENT} lets {dims} grow where that pays"] if dims else []
