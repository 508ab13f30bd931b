"""Extents of the sliding axes of the inputs: exact one-hot tables, and the halo of the published code."""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING

from cosa.analytical.footprint import window_span
from cosa.mip.factors import divisors
from cosa.mip.quantities import KINDS, Axis, Expression

if TYPE_CHECKING:
    from cosa.mip.aggregated import Program


def span_table(program: Program, axis: Axis, level: int, limit: int | None) -> Expression:
    """Log of the true extent of a sliding axis over the loops of a level and further in.

    One binary for every (extent of outputs, extent of taps), tied to the counts of the primes of both. Entries longer
    than `limit` words are left out. An axis on which only one dimension moves by steps of 1 needs no table.
    """
    bounds = program.layer.bounds
    if bounds[axis.taps] == 1 and (axis.stride == 1 or bounds[axis.outputs] == 1):
        return program.log_extent((axis.outputs,), level)
    if bounds[axis.outputs] == 1 and axis.dilation == 1:
        return program.log_extent((axis.taps,), level)
    chosen = []
    for outputs, output_powers in divisors(bounds[axis.outputs]):
        for taps, tap_powers in divisors(bounds[axis.taps]):
            span = window_span(outputs, taps, axis.stride, axis.dilation)
            if limit is None or span <= limit:
                chosen.append((program.new_variable("binary"), log2(span), (output_powers, tap_powers)))
    program.require(sum(binary for binary, _, _ in chosen) == 1)
    for side, dim in enumerate((axis.outputs, axis.taps)):
        for prime in program.factors[dim]:
            picked = sum(powers[side][prime] * binary for binary, _, powers in chosen if powers[side][prime])
            program.require(program.count_within(dim, prime, level) == picked)
    return sum(log_span * binary for binary, log_span, _ in chosen if log_span)


def published_halo(program: Program, axis: Axis) -> Expression:
    """Halo of the published code: log of the taps at and inside the mesh level, or one bit for each of their primes.

    It is the bits when a factor of the outputs stands below the mesh level (the window slides), else the log. The
    product with that yes or no is written linearly: bits <= halo <= log, and one of them is met.
    """
    mesh, primes = program.architecture.mesh_level, program.factors[axis.taps]
    log_taps = program.log_extent((axis.taps,), mesh)
    largest = sum(multiplicity * (log2(prime) - 1) for prime, multiplicity in primes.items())
    if not program.factors[axis.outputs] or largest == 0:
        return log_taps
    bits = sum(program.count_within(axis.taps, prime, mesh) for prime in primes)
    slides, halo = program.new_variable("binary"), program.new_variable("continuous")
    inside = []
    for level in range(mesh):
        for kind in KINDS:
            for prime, multiplicity in program.factors[axis.outputs].items():
                if (level, axis.outputs, prime, kind) in program.counts:
                    count = program.counts[level, axis.outputs, prime, kind]
                    program.require(count <= multiplicity * slides)
                    inside.append(count)
    program.require(slides <= sum(inside))
    program.require(halo <= log_taps)
    program.require(halo >= bits)
    program.require(halo >= log_taps - largest * slides)
    program.require(halo <= bits + largest * (1 - slides))
    return halo
