"""From factors to a nest: placing spatial loops on the axes of a fan-out, choosing the loop orders left free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from math import prod
from typing import Literal

from cosa.common.errors import InputError
from cosa.mip.factors import prime_factors
from cosa.mip.quantities import order
from cosa.mip.space import Factors
from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, Dim, Layer
from cosa.model.schedule import Axis, Loop, ScheduleLevel

STAYING_ORDERS: tuple[tuple[Dim, ...], ...] = (("R", "S", "C"), ("P", "Q", "N"), ("K",))
"""Innermost loops that leave outputs, weights or inputs where they are."""

_MAX_COMBINATIONS = 3**6


def split_over_axes(bounds: Mapping[Dim, int], columns: int, rows: int) -> list[tuple[Dim, int, Axis]]:
    """Spatial loops (dimension, bound, axis) whose products fit `columns` along x and `rows` along y.

    Prime factors go to x first, those of the innermost dimensions before the others; where no split fits, all loops run
    row by row over the instances. Outer to inner.
    """
    inside_out = list(reversed(order(list(bounds), ())))
    if rows == 1 and prod(bounds.values()) <= columns:
        return [(dim, bounds[dim], "x") for dim in reversed(inside_out) if bounds[dim] > 1]
    factors = [(dim, prime) for dim in inside_out for prime, n in prime_factors(bounds[dim]).items() for _ in range(n)]
    total = prod(prime for _, prime in factors)

    @cache
    def fill(index: int, along_x: int) -> tuple[Literal["x", "y"], ...] | None:
        if along_x > columns:
            return None
        if index == len(factors):
            return () if total // along_x <= rows else None
        rest = fill(index + 1, along_x * factors[index][1])
        if rest is not None:
            return ("x", *rest)
        rest = fill(index + 1, along_x)
        return None if rest is None else ("y", *rest)

    axes = fill(0, 1)
    if axes is None:
        return [(dim, bounds[dim], "row_major") for dim in reversed(inside_out) if bounds[dim] > 1]
    loops: list[tuple[Dim, int, Axis]] = []
    for dim in reversed(inside_out):
        for axis in ("y", "x"):
            bound = prod(prime for (name, prime), at in zip(factors, axes, strict=True) if (name, at) == (dim, axis))
            if bound > 1:
                loops.append((dim, bound, axis))
    return loops


def build_nest(
    architecture: Architecture, factors: Factors, innermost: Mapping[int, Sequence[Dim]]
) -> tuple[ScheduleLevel, ...]:
    """The nest of factors, outermost level first; `innermost`: temporal loops that stand innermost at a level."""
    nest = []
    for level, entry in enumerate(architecture.levels):
        bounds: dict[str, dict[Dim, int]] = {"temporal": {}, "spatial": {}}
        for (at, dim, kind), bound in factors.bounds.items():
            if at == level:
                bounds[kind][dim] = bound
        temporal = bounds["temporal"]
        loops = [Loop(dim=dim, bound=temporal[dim]) for dim in order(list(temporal), innermost.get(level, ()))]
        columns, rows = architecture.fanout(level)
        for dim, bound, axis in split_over_axes(bounds["spatial"], columns, rows):
            loops.append(Loop(dim=dim, bound=bound, kind="spatial", axis=axis))
        nest.append(ScheduleLevel(level=entry.name, keeps=entry.keeps, loops=tuple(loops)))
    return tuple(reversed(nest))


def order_free_levels(
    layer: Layer, architecture: Architecture, factors: Factors, ordered: int | None = None
) -> tuple[ScheduleLevel, ...]:
    """The nest with the fewest words moved over all orders of the levels that the program leaves free.

    Each free level has three candidates (`STAYING_ORDERS`). Fewest words at DRAM and on the mesh together count, then
    fewest at DRAM, then the earlier candidate. Levels inside the tiles of the PEs move nothing there; they keep CoSA's
    fixed order. Architectures that `cosa.analytical.traffic` does not know, or with too many free levels to try every
    combination: see `_order_any_hierarchy`.

    Parameters
    ----------
    ordered: the level whose order the factors state (None: the one with the mesh).
    """
    from cosa.analytical.traffic import Traffic, words_moved

    if ordered is None:
        ordered = architecture.mesh_level
    try:
        Traffic(layer, architecture, build_nest(architecture, factors, {}))
    except InputError:
        return _order_any_hierarchy(layer, architecture, factors, ordered)
    mesh = architecture.mesh_level
    stores = [
        max((level for level in range(mesh) if tensor in architecture.levels[level].keeps), default=0)
        for tensor in ("weights", "inputs", "outputs")
    ]
    choices: list[list[tuple[Dim, ...]]] = []
    for level in range(len(architecture.levels)):
        dims = [dim for dim in DIMS if (level, dim, "temporal") in factors.bounds]
        orders: dict[tuple[Dim, ...], tuple[Dim, ...]] = {}
        if level == ordered:
            orders[()] = factors.innermost
        elif level <= min(stores):
            orders[()] = ()
        else:
            for innermost in STAYING_ORDERS:
                orders.setdefault(tuple(order(dims, innermost)), innermost)
        choices.append(list(orders.values()))
    if prod(map(len, choices)) > _MAX_COMBINATIONS:
        return _order_any_hierarchy(layer, architecture, factors, ordered)
    best: tuple[tuple[int, int], tuple[ScheduleLevel, ...]] | None = None
    for combination in product(*reversed(choices)):
        nest = build_nest(architecture, factors, dict(enumerate(reversed(combination))))
        words = words_moved(layer, architecture, nest)
        cost = words.total, words.dram_read_words + words.dram_write_words
        if best is None or cost < best[0]:
            best = cost, nest
    assert best is not None
    return best[1]


def _order_any_hierarchy(
    layer: Layer, architecture: Architecture, factors: Factors, ordered: int
) -> tuple[ScheduleLevel, ...]:
    """The nest with good orders at the levels left free, on an architecture of any shape.

    Level by level from the outermost in, the candidate with the fewest words at the outermost level (those a machine
    moves, `cosa.analytical.exact`), then the least energy, then the earlier one. Not all combinations are tried: their
    number is exponential in the levels.
    """
    from cosa.analytical.evaluation import evaluate_exact

    innermost: dict[int, tuple[Dim, ...]] = {ordered: factors.innermost}
    for level in reversed(range(len(architecture.levels))):
        dims = [dim for dim in DIMS if (level, dim, "temporal") in factors.bounds]
        if level == ordered or len(dims) < 2:
            continue
        best: tuple[int, float] | None = None
        for candidate in STAYING_ORDERS:
            nest = build_nest(architecture, factors, innermost | {level: candidate})
            found = evaluate_exact(layer, architecture, nest)
            cost = found.levels[-1].read_words + found.levels[-1].write_words, found.energy_pj
            if best is None or cost < best:
                best, chosen = cost, candidate
        innermost[level] = chosen
    return build_nest(architecture, factors, innermost)
