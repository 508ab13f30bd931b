"""The exact validity test: true footprints against capacities, spatial loops against fan-outs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from cosa.analytical.footprint import box_words
from cosa.common.errors import InfeasibleError
from cosa.model.arch import Architecture
from cosa.model.layer import Dim, Layer, Tensor
from cosa.model.schedule import Loop, Schedule, ScheduleLevel


@dataclass(frozen=True)
class Violation:
    """One constraint that a nest breaks; `needed` and `available` in words or instances."""

    level: str
    what: str
    needed: int
    available: int
    detail: str

    def __str__(self) -> str:
        return f"{self.level}: {self.what} need {self.needed}, there are {self.available} ({self.detail})"


def extents(levels: Iterable[ScheduleLevel]) -> dict[Dim, int]:
    """Extent of each loop over the given levels."""
    result: dict[Dim, int] = {}
    for level in levels:
        for loop in level.loops:
            result[loop.dim] = result.get(loop.dim, 1) * loop.bound
    return result


def tile_words(layer: Layer, innermost_first: tuple[ScheduleLevel, ...], level: int, tensor: Tensor) -> int:
    """Words that one instance of a level holds of a tensor: all loops of that level and further in (bounding box)."""
    return box_words(layer, tensor, extents(innermost_first[: level + 1]))


def fanout_violation(architecture: Architecture, level: int, spatial: tuple[Loop, ...]) -> Violation | None:
    """The fan-out that a level's spatial loops break, or None."""
    x, y = architecture.fanout(level)
    name = architecture.levels[level].name
    place = f"the {x}x{y} mesh of PEs" if architecture.levels[level].fanout == "mesh" else f"its {x}x{y} fan-out"
    for axis, available in (("x", x), ("y", y), ("row_major", x * y)):
        loops = [loop for loop in spatial if loop.axis == axis]
        needed = prod(loop.bound for loop in loops)
        if needed > available:
            text = " x ".join(f"{loop.dim}{loop.bound}" for loop in loops)
            along = {"x": "columns of", "y": "rows of", "row_major": "instances of"}[axis]
            return Violation(name, f"spatial loops {text} along {axis}", needed, available, f"{along} {place}")
    return None


def _limit_violations(architecture: Architecture, inner: tuple[ScheduleLevel, ...]) -> list[Violation]:
    found = []
    for limit in architecture.limits:
        places = dict.fromkeys((architecture.level_index(place.level), place.kind) for place in limit.over)
        loops = [loop for level, kind in places for loop in inner[level].loops if loop.kind == kind]
        needed = prod(loop.bound for loop in loops)
        if needed > limit.most:
            names = ", ".join(f"{place.kind} loops of {place.level}" for place in limit.over)
            found.append(Violation(limit.over[0].level, limit.name, needed, limit.most, names))
    return found


def violations(layer: Layer, architecture: Architecture, nest: tuple[ScheduleLevel, ...]) -> list[Violation]:
    """Every capacity, fan-out and limit that a nest (outermost first) breaks."""
    inner = nest[::-1]
    found = _limit_violations(architecture, inner)
    for index, entry in enumerate(inner):
        fanout = fanout_violation(architecture, index, entry.spatial)
        if fanout:
            found.append(fanout)
        available = architecture.usable_words(index)
        if available is None:
            continue
        tiles = {tensor: tile_words(layer, inner, index, tensor) for tensor in entry.keeps}
        needed = sum(tiles.values())
        if needed > available:
            parts = ", ".join(f"{tensor} {words}" for tensor, words in tiles.items())
            found.append(Violation(entry.level, "its tiles", needed, available, f"words; {parts}"))
    return found


def require_valid(schedule: Schedule, doing: str) -> None:
    """InfeasibleError naming every broken capacity, fan-out and limit, if there is one."""
    found = violations(schedule.covered_layer, schedule.architecture, schedule.nest)
    if found:
        text = "; ".join(str(violation) for violation in found)
        raise InfeasibleError(f"{doing}: does not fit architecture {schedule.architecture.name!r}: {text}")


def require_room(layer: Layer, architecture: Architecture) -> None:
    """Room for one word of every tensor kept. With it some schedule fits: all loops may run at the outermost level.

    Raises
    ------
    InfeasibleError: levels have not even that; the message says what they would need.
    """
    small = []
    for level, entry in enumerate(architecture.levels):
        available = architecture.usable_words(level)
        if available is not None and available < len(entry.keeps):
            # Of two buffers that share the capacity each has half.
            each = architecture.levels[level].buffers if architecture.shared_halves else 1
            needed = len(entry.keeps)
            small.append(
                f"{entry.name} keeps {', '.join(entry.keeps)}, whose smallest tiles need {needed} words, and has "
                f"{available} (smallest change: capacity_words from {entry.capacity_words} to {needed * each})"
            )
    if small:
        name = f"layer {layer.name!r} does not fit architecture {architecture.name!r}"
        raise InfeasibleError(f"{name}: {'; '.join(small)}")
