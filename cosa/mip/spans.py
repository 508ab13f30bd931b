"""Extents of the sliding axes of the inputs: exact one-hot tables, and the halo of the published code."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import TYPE_CHECKING, Any

from cosa.analytical.footprint import span, touched_on_axis
from cosa.mip.factors import divisors
from cosa.mip.quantities import Axis, Expression
from cosa.model.mapping_rules import KINDS

if TYPE_CHECKING:
    from cosa.mip.aggregated import Program
    from cosa.mip.space import Space


ExtentTable = dict[tuple[int, int], Any]
"""Binaries by (extent of outputs, extent of taps)."""


def log_span(space: Space, axis: Axis, level: int) -> Expression:
    """Log of the true extent of a sliding axis over the loops of a level and further in.

    From the table of extents, tied to the counts of the primes of both dimensions. An axis on which only one dimension
    moves by steps of 1 needs no table.
    """
    outputs, taps = space.longest(axis.outputs), space.longest(axis.taps)
    if taps == 1 and (axis.stride == 1 or outputs == 1):
        return space.log_extent((axis.outputs,), level)
    if outputs == 1 and axis.dilation == 1:
        return space.log_extent((axis.taps,), level)
    table = space.extents(axis, level)
    return sum(log2(axis_span(axis, *pair)) * binary for pair, binary in table.items() if axis_span(axis, *pair) > 1)


def log_touched(space: Space, axis: Axis, level: int) -> Expression:
    """Log of the different positions of a sliding axis that the loops of a level and further in touch."""
    outputs, taps = space.longest(axis.outputs), space.longest(axis.taps)
    if taps == 1:
        return space.log_extent((axis.outputs,), level)
    if outputs == 1:
        return space.log_extent((axis.taps,), level)
    table = space.extents(axis, level)
    return sum(
        log2(touched_on_axis(*pair, axis.stride, axis.dilation)) * binary
        for pair, binary in table.items()
        if pair != (1, 1)
    )


def axis_span(axis: Axis, outputs: int, taps: int) -> int:
    """Extent of the inputs along an axis for so many outputs and taps."""
    return int(span((axis.stride, axis.dilation), (outputs, taps)))


def extent_table(space: Space, axis: Axis, level: int, limit: int | None) -> ExtentTable:
    """One binary for every (extent of outputs, extent of taps) over the loops of a level and further in.

    Exactly one of them is 1, that of the extents which the counts have. Spans above `limit` words are left out.
    """
    rows: list[tuple[tuple[int, int], Any, tuple[dict[int, int], dict[int, int]]]] = []
    for outputs, output_powers in _extents(space.bounds[axis.outputs]):
        for taps, tap_powers in _extents(space.bounds[axis.taps]):
            if limit is None or axis_span(axis, outputs, taps) <= limit:
                rows.append(((outputs, taps), space.new_variable("binary"), (output_powers, tap_powers)))
    space.require(sum(binary for _, binary, _ in rows) == 1)
    for side, dim in enumerate((axis.outputs, axis.taps)):
        for prime in space.factors[dim]:
            picked = sum(powers[side][prime] * binary for _, binary, powers in rows if powers[side].get(prime))
            space.require(space.count_within(dim, prime, level) == picked)
    return {pair: binary for pair, binary, _ in rows}


def _extents(bounds: Sequence[int]) -> list[tuple[int, dict[int, int]]]:
    """Divisors of any of some bounds, ascending, with their exponents of each prime."""
    return sorted({extent: powers for bound in bounds for extent, powers in divisors(bound)}.items())


def published_halo(program: Program, axis: Axis) -> Expression:
    """Halo of the published code: log of the taps at and inside the ordered level, or one bit for each a factor.

    It is the bits when a factor of the outputs stands below that level (the window slides), else the log. The
    product with that yes or no is written linearly: bits <= halo <= log, and one of them is met. A bound of 1 has the
    one factor 1, which stands where that is best (see `Rules`): of the taps for one bit or none, of the outputs so that
    the window slides or does not.
    """
    ordered, primes = program.order_level, program.factors[axis.taps]
    log_taps = program.log_extent((axis.taps,), ordered)
    largest = sum(multiplicity * (log2(prime) - 1) for prime, multiplicity in primes.items())
    if primes and largest == 0:
        return log_taps
    slides = program.new_variable("binary")
    inside = [(place, 1) for place in program.unit_places(axis)]
    for level in range(ordered):
        for kind in KINDS:
            for prime, multiplicity in program.factors[axis.outputs].items():
                if (level, axis.outputs, prime, kind) in program.counts:
                    inside.append((program.counts[level, axis.outputs, prime, kind], multiplicity))
    for count, most in inside:
        program.require(count <= most * slides)
    if inside:
        program.require(slides <= sum(count for count, _ in inside))
    if not primes:
        halo = program.new_variable("binary")
        program.require(halo <= slides)
        return halo
    bits = sum(program.count_within(axis.taps, prime, ordered) for prime in primes)
    halo = program.new_variable("continuous")
    program.require(halo <= log_taps)
    program.require(halo >= bits)
    program.require(halo >= log_taps - largest * slides)
    program.require(halo <= bits + largest * (1 - slides))
    return halo
