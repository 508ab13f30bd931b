"""All ways to lay a schedule's spatial loops out over the mesh: which run along a row, which along a column, and in
what order. No load of a port depends on it, but the time does: neighbours share links, and multicasts their trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod

from cosa.mip.factors import prime_factors
from cosa.model.layer import DIMS, Dim
from cosa.model.schedule import Axis, Loop, Schedule

MAX_PLACEMENTS = 24

_Run = tuple[tuple[Dim, int], ...]
"""Loops along one axis, outer to inner; no two neighbours of the same dimension."""

_Runs = tuple[tuple[Axis, _Run], ...]


def placements(schedule: Schedule) -> list[Schedule]:
    """The schedule with its mesh laid out in every way, itself first; at most `MAX_PLACEMENTS`, fewest loops first.

    Spatial loops are split into prime factors, each of which may run along a row or a column. Where no split fits the
    sides of the mesh, the loops run row by row in every order. Where the architecture places loops in a way of its own
    (`machine.placement`), there is the one placement only.

    Raises
    ------
    InputError: the architecture has no mesh.
    """
    level = schedule.architecture.mesh_level
    if schedule.architecture.machine.placement != "as_scheduled":
        return [schedule]
    place = len(schedule.nest) - 1 - level
    entry = schedule.nest[place]
    own = _runs_of(entry.spatial)
    columns, rows = schedule.architecture.fanout(level)
    factors = Counter((loop.dim, prime) for loop in entry.spatial for prime in _primes(loop.bound))
    others: set[_Runs] = {runs for runs in _splits(factors, columns, rows) if runs != own}
    if not others and any(loop.axis == "row_major" for loop in entry.spatial):
        numbered: list[_Runs] = [(("row_major", _merged(order)),) for order in _orders(factors)]
        others = set(numbered) - {own}
    ranked = sorted(others, key=lambda runs: (sum(len(run) for _, run in runs), runs))
    found = [schedule]
    for runs in ranked[: MAX_PLACEMENTS - 1]:
        loops = tuple(Loop(dim=dim, bound=bound, kind="spatial", axis=axis) for axis, run in runs for dim, bound in run)
        nest = list(schedule.nest)
        nest[place] = entry.with_(loops=(*entry.temporal, *loops))
        found.append(schedule.with_nest(tuple(nest)))
    return found


def layout(schedule: Schedule) -> str:
    """The spatial loops of the mesh, outer to inner, by axis: ``x K2 P2, y C4``."""
    entry = schedule.nest[len(schedule.nest) - 1 - schedule.architecture.mesh_level]
    runs = _runs_of(entry.spatial)
    return ", ".join(f"{axis} {' '.join(f'{dim}{bound}' for dim, bound in run)}" for axis, run in runs) or "one PE"


def _primes(bound: int) -> list[int]:
    return [prime for prime, multiplicity in prime_factors(bound).items() for _ in range(multiplicity)]


def _runs_of(loops: tuple[Loop, ...]) -> _Runs:
    axes: tuple[Axis, ...] = ("row_major", "x", "y")
    found = []
    for axis in axes:
        along = [(loop.dim, loop.bound) for loop in loops if loop.axis == axis and loop.bound > 1]
        if along:
            found.append((axis, _merged(along)))
    return tuple(found)


def _merged(loops: list[tuple[Dim, int]]) -> _Run:
    """Neighbours of the same dimension are one loop."""
    found: list[tuple[Dim, int]] = []
    for dim, bound in loops:
        if found and found[-1][0] == dim:
            found[-1] = dim, found[-1][1] * bound
        else:
            found.append((dim, bound))
    return tuple(found)


def _splits(factors: Counter[tuple[Dim, int]], columns: int, rows: int) -> Iterator[_Runs]:
    """Every distinct choice of what runs along x and along y, in every order."""
    kinds = sorted(factors, key=lambda factor: (DIMS.index(factor[0]), factor[1]))

    def choose(index: int, along_x: Counter[tuple[Dim, int]]) -> Iterator[Counter[tuple[Dim, int]]]:
        if index == len(kinds):
            yield along_x
            return
        for count in range(factors[kinds[index]] + 1):
            yield from choose(index + 1, along_x + Counter({kinds[index]: count}))

    for along_x in choose(0, Counter()):
        along_y = factors - along_x
        if _product(along_x) > columns or _product(along_y) > rows:
            continue
        for on_x in {_merged(order) for order in _orders(along_x)}:
            for on_y in {_merged(order) for order in _orders(along_y)}:
                runs: list[tuple[Axis, _Run]] = [("x", on_x), ("y", on_y)]
                yield tuple(run for run in runs if run[1])


def _product(factors: Counter[tuple[Dim, int]]) -> int:
    return prod(prime for _, prime in factors.elements())


def _orders(factors: Counter[tuple[Dim, int]]) -> Iterator[list[tuple[Dim, int]]]:
    """Every distinct order of a multiset, primes of one dimension in one order: which comes first makes no difference
    to the product of a run, and hardly any to its neighbours."""
    left = sorted(factors.elements(), key=lambda factor: (DIMS.index(factor[0]), factor[1]))
    dims = Counter(dim for dim, _ in left)

    def walk(dims: Counter[Dim], done: list[Dim]) -> Iterator[list[Dim]]:
        if not dims:
            yield done
        for dim in sorted(dims, key=DIMS.index):
            yield from walk(dims - Counter({dim: 1}), [*done, dim])

    for order in walk(dims, []):
        primes = {dim: iter([prime for name, prime in left if name == dim]) for dim in dims}
        yield [(dim, next(primes[dim])) for dim in order]
