"""What no mapping of a layer is below, known without a search: MAC units at work at most, every word moved once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import ceil, prod

from cosa.analytical.energy import mac_energy_pj, vector_access_energy_pj
from cosa.analytical.footprint import touched_words
from cosa.mip.factors import prime_factors
from cosa.model.arch import Architecture
from cosa.model.keeping import Keeping
from cosa.model.layer import TENSORS, Layer
from cosa.model.objectives import OBJECTIVES


@dataclass(frozen=True)
class Parallel:
    """The most MAC units that tiles of whole factors keep at work, and the prime factors that do: by level."""

    units: int
    factors: dict[int, dict[int, int]]


def most_parallel(layer: Layer, architecture: Architecture) -> Parallel:
    """The largest product of prime factors of a layer's bounds that fan-outs have room for, each factor used once."""
    found: dict[int, int] = {}
    for bound in layer.bounds.values():
        for prime, count in prime_factors(bound).items():
            found[prime] = found.get(prime, 0) + count
    primes = sorted(found)
    levels = [level for level in range(len(architecture.levels)) if prod(architecture.fanout(level)) > 1]
    levels.sort(key=lambda level: -prod(architecture.fanout(level)))
    rooms = [prod(architecture.fanout(level)) for level in levels]

    @cache
    def best(number: int, left: tuple[int, ...]) -> tuple[int, tuple[tuple[int, ...], ...]]:
        if number == len(levels):
            return 1, ()
        most, factors = 0, tuple[tuple[int, ...], ...]()
        outside = prod(rooms[number + 1 :])
        for product, used in _products(primes, left, rooms[number]):
            if product * outside <= most:
                break
            inner, others = best(number + 1, tuple(have - taken for have, taken in zip(left, used, strict=True)))
            if product * inner > most:
                most, factors = product * inner, (used, *others)
        return most, factors

    units, chosen = best(0, tuple(found[prime] for prime in primes))
    factors = [dict(zip(primes, used, strict=True)) for used in chosen]
    return Parallel(units, dict(zip(levels, factors, strict=True)))


def _products(primes: list[int], left: tuple[int, ...], room: int) -> list[tuple[int, tuple[int, ...]]]:
    """All products of the primes left that there is room for, the largest first, with how often each prime is in it."""
    found: list[tuple[int, tuple[int, ...]]] = [(1, ())]
    for prime, have in zip(primes, left, strict=True):
        found = [
            (product * prime**count, (*used, count))
            for product, used in found
            for count in range(have + 1)
            if product * prime**count <= room
        ]
    return sorted(found, reverse=True)


def least_cycles(layer: Layer, architecture: Architecture, units: int) -> float:
    """Cycles of the analytical model that no mapping is below if at most so many MAC units work at once.

    Compute, and every word to or from the outermost level once over its bandwidth: in Timeloop's convention (with the
    `units` of `most_parallel`) and in the convention ``exact`` (with all of the architecture).
    """
    top = architecture.levels[-1]
    words = {tensor: touched_words(layer, tensor, layer.bounds) for tensor in TENSORS}
    cycles = float(ceil(layer.macs / units))
    if top.read_bandwidth_words_per_cycle:
        cycles = max(cycles, (words["weights"] + words["inputs"]) / top.read_bandwidth_words_per_cycle)
    if top.write_bandwidth_words_per_cycle:
        cycles = max(cycles, words["outputs"] / top.write_bandwidth_words_per_cycle)
    return cycles


def least_energy_pj(layer: Layer, architecture: Architecture) -> float:
    """Energy that no mapping is below in Timeloop's convention: every MAC, every word at the outermost level once."""
    outermost = len(architecture.levels) - 1
    each = vector_access_energy_pj(architecture, outermost) / architecture.levels[outermost].block_words
    words = sum(touched_words(layer, tensor, layer.bounds) for tensor in TENSORS)
    return layer.macs * mac_energy_pj(architecture) + words * each


def least(layer: Layer, architecture: Architecture, objective: str, keeping: Keeping) -> float:
    """What no schedule is below in cycles, pJ or their product by the convention ``exact``, whatever its tiles."""
    top = architecture.levels[-1]
    words = {tensor: touched_words(layer, tensor, layer.bounds) for tensor in TENSORS}
    cycles = least_cycles(layer, architecture, architecture.macs)
    energy = layer.macs * mac_energy_pj(architecture)
    for tensor in TENSORS:
        # The outermost level: each word once. The innermost keeper: one for all of its MACs in every cycle.
        inner = next((level for level, most in enumerate(keeping.may) if tensor in most), None)
        outermost = len(architecture.levels) - 1
        energy += words[tensor] * vector_access_energy_pj(architecture, outermost) / top.block_words
        if inner is None or inner == outermost or tensor not in keeping.always[inner]:
            continue
        below = prod(prod(architecture.fanout(level)) for level in range(inner + 1))
        energy += (
            layer.macs / below * vector_access_energy_pj(architecture, inner) / architecture.levels[inner].block_words
        )
    return float(OBJECTIVES[objective].value(cycles, energy))
