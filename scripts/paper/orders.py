"""Nests that figures 3 and 4 vary: fixed tiles in the PEs, loops at the global buffer in some order and place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from common import Plan, simulated

from cosa.common.version import version
from cosa.model.arch import Architecture
from cosa.model.layer import Dim, Layer
from cosa.model.schedule import Axis, Loop, Provenance, Schedule, ScheduleLevel
from cosa.model.validity import require_valid

Factors = Mapping[Dim, int]
MESH_LEVEL = "GlobalBuffer"


def nest_of(
    architecture: Architecture,
    inner: Mapping[str, tuple[Factors, Factors]],
    temporal: Sequence[tuple[Dim, int]],
    spatial: Sequence[tuple[Dim, int, Axis]],
    outer: Factors,
) -> tuple[ScheduleLevel, ...]:
    """A nest, outermost level first.

    Parameters
    ----------
    inner: temporal and spatial (along the first axis) factors of the levels in a PE, by name.
    temporal, spatial: loops at the global buffer, outermost first.
    outer: factors at the outermost level.
    """
    levels = []
    for number, entry in reversed(list(enumerate(architecture.levels))):
        if entry.name == MESH_LEVEL:
            loops = [Loop(dim=dim, bound=bound) for dim, bound in temporal if bound > 1]
            loops += [Loop(dim=d, bound=b, kind="spatial", axis=axis) for d, b, axis in spatial if b > 1]
        elif number == len(architecture.levels) - 1:
            loops = [Loop(dim=dim, bound=bound) for dim, bound in outer.items() if bound > 1]
        else:
            over_time, over_space = inner.get(entry.name, ({}, {}))
            loops = [Loop(dim=dim, bound=bound) for dim, bound in over_time.items() if bound > 1]
            axis: Axis = "x" if architecture.fanout(number)[0] > 1 else "y"
            loops += [Loop(dim=d, bound=b, kind="spatial", axis=axis) for d, b in over_space.items() if b > 1]
        levels.append(ScheduleLevel(level=entry.name, keeps=tuple(entry.keeps), loops=tuple(loops)))
    return tuple(levels)


def splits(parts: Factors, columns: int, rows: int) -> list[tuple[tuple[Dim, int, Axis], ...]]:
    """All ways to lay spatial factors (products of powers of two) out on the columns and rows of the mesh."""
    found: list[tuple[tuple[Dim, int, Axis], ...]] = []
    choices = [[part for part in range(1, bound + 1) if bound % part == 0] for bound in parts.values()]
    for along_x in product(*choices):
        along_y = [bound // part for bound, part in zip(parts.values(), along_x, strict=True)]
        if prod(along_x) <= columns and prod(along_y) <= rows:
            loops = [(dim, part, "x") for dim, part in zip(parts, along_x, strict=True)]
            loops += [(dim, part, "y") for dim, part in zip(parts, along_y, strict=True)]
            found.append(tuple((dim, part, "x" if axis == "x" else "y") for dim, part, axis in loops if part > 1))
    return found


def by_hand(layer: Layer, architecture: Architecture, nest: tuple[ScheduleLevel, ...]) -> Schedule:
    """A schedule made by hand.

    Raises
    ------
    CosaError: it does not fit.
    """
    schedule = Schedule.make(layer, architecture, nest, Provenance(mapper="by hand", version=version()))
    require_valid(schedule, "a figure")
    return schedule


def rows_of(plan: Plan, schedules: Sequence[Schedule]) -> list[dict[str, Any]]:
    """Analytical and simulated figures of schedules, the last one that of a program, whose tiles are its own."""
    rows = simulated(plan, schedules, [1.0] * len(schedules))
    names = [schedule.architecture.name for schedule in schedules]
    return [{"architecture": name} | row for name, row in zip(names, rows, strict=True)]


def spread(rows: Sequence[Mapping[str, Any]], value: str) -> float | None:
    """Worst over best of a value; None if one is missing."""
    values = [row[value] for row in rows]
    return max(values) / min(values) if values and all(values) else None
