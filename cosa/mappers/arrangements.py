"""How the spatial loops of one level may be laid out over its instances.

Instances are numbered row by row, loops along y outside those along x (`cosa.analytical.boxes.LevelLoops`). Which
instance has which number decides which are neighbours, and so what Timeloop counts as read from a neighbour; nothing
else depends on it. One layout stands for all that number the instances alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import permutations, product
from math import prod

from cosa.mip.factors import divisors
from cosa.schedule import Axis
from cosa.workload import Dim

Layout = tuple[tuple[Dim, int, Axis], ...]
"""Spatial loops of a level, outer to inner."""

_Loops = tuple[tuple[Dim, int], ...]


def arrangements(
    bounds: Mapping[Dim, int], columns: int, rows: int, axes: tuple[Sequence[Dim], Sequence[Dim]] | None = None
) -> list[Layout]:
    """Layouts of spatial loops on `columns` x `rows` instances that number them differently, each dimension at most
    once along an axis.

    Parameters
    ----------
    bounds: of the spatial loops, by dimension.
    axes: dimensions that must run along x and along y (None: any).
    """
    used = tuple((dim, bound) for dim, bound in bounds.items() if bound > 1)
    if axes is None:
        return list(_arrangements(used, columns, rows))
    x, y = (tuple((dim, bound) for dim, bound in used if dim in along) for along in axes)
    return [_laid(up, across) for up in permutations(y) for across in permutations(x)]


@cache
def _arrangements(used: _Loops, columns: int, rows: int) -> tuple[Layout, ...]:
    found: dict[_Loops, Layout] = {}
    if prod(bound for _, bound in used) <= columns * rows:
        for along_y, along_x in _splits(used, columns, rows):
            for up, across in product(permutations(along_y), permutations(along_x)):
                found.setdefault(_merged((*up, *across)), _laid(up, across))
        for loops in permutations(used):
            found.setdefault(loops, tuple((dim, bound, "row_major") for dim, bound in loops))
    return tuple(found.values())


def _splits(used: _Loops, columns: int, rows: int) -> Iterator[tuple[_Loops, _Loops]]:
    """Every split of the loops into those along y and those along x that fits."""
    choices = [[(bound // along, along) for along, _ in divisors(bound)] for _, bound in used]
    for choice in product(*choices):
        if prod(y for y, _ in choice) <= rows and prod(x for _, x in choice) <= columns:
            parts = [tuple((dim, each[side]) for (dim, _), each in zip(used, choice, strict=True)) for side in (0, 1)]
            yield tuple(one for one in parts[0] if one[1] > 1), tuple(one for one in parts[1] if one[1] > 1)


def _laid(up: _Loops, across: _Loops) -> Layout:
    return (*((dim, bound, "y") for dim, bound in up), *((dim, bound, "x") for dim, bound in across))


def _merged(loops: _Loops) -> _Loops:
    """Loops with those over one dimension that stand side by side as one: they number alike."""
    found: list[tuple[Dim, int]] = []
    for dim, bound in loops:
        if found and found[-1][0] == dim:
            found[-1] = (dim, found[-1][1] * bound)
        else:
            found.append((dim, bound))
    return tuple(found)
