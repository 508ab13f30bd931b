"""How the spatial loops of one level may be laid out over its instances.

Instances are numbered row by row, loops along y outside those along x, whatever the order of the loops; which indices
an instance has follows from that order (`cosa.analytical.boxes.LevelLoops`). Both together decide which instances are
neighbours, and so what Timeloop counts as read from a neighbour; nothing else depends on it. One layout stands for all
that give every number the same indices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, permutations, product
from math import prod

from cosa.mip.factors import divisors
from cosa.model.layer import Dim
from cosa.model.schedule import Axis

Layout = tuple[tuple[Dim, int, Axis], ...]
"""Spatial loops of a level, outer to inner."""

_Loops = tuple[tuple[Dim, int], ...]
_Numbering = tuple[tuple[Dim, int, int], ...]


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
    return [(*_along("y", up), *_along("x", across)) for up in permutations(y) for across in permutations(x)]


@cache
def _arrangements(used: _Loops, columns: int, rows: int) -> tuple[Layout, ...]:
    found: dict[_Numbering, Layout] = {}
    if prod(bound for _, bound in used) <= columns * rows:
        for along_y, along_x in _splits(used, columns, rows):
            for up, across in product(permutations(along_y), permutations(along_x)):
                for layout in _interleaved(_along("y", up), _along("x", across)):
                    found.setdefault(_numbering(layout), layout)
        for loops in permutations(used):
            layout = _along("row_major", loops)
            found.setdefault(_numbering(layout), layout)
    return tuple(found.values())


def _splits(used: _Loops, columns: int, rows: int) -> Iterator[tuple[_Loops, _Loops]]:
    """Every split of the loops into those along y and those along x that fits."""
    choices = [[(bound // along, along) for along, _ in divisors(bound)] for _, bound in used]
    for choice in product(*choices):
        if prod(y for y, _ in choice) <= rows and prod(x for _, x in choice) <= columns:
            parts = [tuple((dim, each[side]) for (dim, _), each in zip(used, choice, strict=True)) for side in (0, 1)]
            yield tuple(one for one in parts[0] if one[1] > 1), tuple(one for one in parts[1] if one[1] > 1)


def _along(axis: Axis, loops: _Loops) -> Layout:
    return tuple((dim, bound, axis) for dim, bound in loops)


def _interleaved(one: Layout, other: Layout) -> Iterator[Layout]:
    """Both in their orders, in every way: a dimension along both axes may be split either way round."""
    if not {dim for dim, _, _ in one} & {dim for dim, _, _ in other}:
        yield (*one, *other)
        return
    for places in combinations(range(len(one) + len(other)), len(one)):
        first, second = iter(one), iter(other)
        yield tuple(next(first) if place in places else next(second) for place in range(len(one) + len(other)))


def _numbering(layout: Layout) -> _Numbering:
    """The loops as instances are numbered, outer to inner, with what one step advances the index by; loops side by side
    that are one range of a dimension's indices as one."""
    steps: dict[Dim, int] = {}
    stepped = []
    for dim, bound, axis in reversed(layout):
        stepped.append((dim, bound, steps.get(dim, 1), axis))
        steps[dim] = steps.get(dim, 1) * bound
    inside_out = sorted(stepped, key=lambda loop: loop[3] == "y")
    found: list[tuple[Dim, int, int]] = []
    for dim, bound, step, _ in inside_out:
        if found and found[-1][0] == dim and found[-1][1] * found[-1][2] == step:
            found[-1] = (dim, found[-1][1] * bound, found[-1][2])
        else:
            found.append((dim, bound, step))
    return tuple(found[::-1])
