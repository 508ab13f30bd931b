"""Compiled drawing and walking of mappings. One file, because numba keys its disk cache on the content of one file.

Tilings are drawn uniformly over all ordered factorisations of every bound: the equal prime factors of a bound fall on
the slots as stars among bars. Slots stand innermost first; a slot is the temporal loops of a level (`TEMPORAL`) or the
loops over its fan-out. Loops in a slot stand innermost first too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from numba import njit

from cosa.common.compile_cache import kept

Array = npt.NDArray[Any]
Function = TypeVar("Function", bound=Callable[..., Any])

TEMPORAL = -1
X, Y, ROWS, SPLIT = 0, 1, 2, 3
"""Where the loops of a spatial slot run: along one axis, over rows, or the inner ones along x and the rest along y."""

TENSORS, DIMS, AXES = 3, 8, 5


def _compiled(function: Function) -> Function:
    """Compile at the first call; without a writable cache place anew in each process."""
    return kept(function, nogil=True, error_model="numpy")


def _helper(function: Function) -> Function:
    """Compile a function that only functions of this file call."""
    result: Function = njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    return result


@_helper
def _below(state: Array, n: int) -> int:
    """A random whole number from 0 to n - 1 (splitmix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return int(np.float64(z >> np.uint64(11)) * 1.1102230246251565e-16 * n)


@_helper
def _draw_tiling(state: Array, primes: Array, factors: Array) -> None:
    """A uniformly random tiling; `primes` [number, (dim, prime, how often)], `factors` [dim, slot]."""
    slots = factors.shape[1]
    factors[:] = 1
    for k in range(primes.shape[0]):
        dim, prime, stars = primes[k, 0], primes[k, 1], primes[k, 2]
        bars, slot = slots - 1, 0
        while stars > 0:
            if _below(state, stars + bars) < stars:
                factors[dim, slot] *= prime
                stars -= 1
            else:
                bars -= 1
                slot += 1


@_helper
def _ways(stars: int, slots: int) -> int:
    """Ways to put equal stars on slots."""
    ways = 1
    for k in range(1, slots):
        ways = ways * (stars + k) // k
    return ways


@_helper
def _draw_neighbour(state: Array, primes: Array, factors: Array, threads: int, thread: int, low: Array) -> None:
    """The tiling number n * threads + thread, n random: what Timeloop gives to one of its threads.

    Tilings are numbered by their prime factors, those of R varying fastest; `low` [prime] is scratch. Only the lowest
    digits of n decide which tilings are neighbours, so no number is larger than 64 bits.
    """
    factors[:] = 1
    slots, number, space, digits = factors.shape[1], 0, 1, 0
    for k in range(primes.shape[0]):
        ways = _ways(primes[k, 2], slots)
        low[k] = _below(state, ways)
        if space < threads * 4096 and space < (1 << 62) // ways:
            number += low[k] * space
            space *= ways
            digits = k + 1
    number = min(number // threads * threads + thread, space - 1)
    for k in range(primes.shape[0]):
        dim, prime, stars = primes[k, 0], primes[k, 1], primes[k, 2]
        rank = low[k]
        if k < digits:
            ways = _ways(stars, slots)
            rank = number % ways
            number //= ways
        for slot in range(slots):
            here = stars
            if slot < slots - 1:
                # In lexicographic order: all ways with fewer stars here come first.
                here, before = 0, _ways(stars, slots - slot - 1)
                while rank >= before:
                    rank -= before
                    here += 1
                    before = _ways(stars - here, slots - slot - 1)
            for _ in range(here):
                factors[dim, slot] *= prime
            stars -= here


@_helper
def _within_capacities(
    factors: Array, slot_level: Array, keeps: Array, capacities: Array, dims_of: Array, scale_of: Array
) -> bool:
    """Whether the tiles of every level fit."""
    levels, slots = keeps.shape[0], factors.shape[1]
    extent = np.ones(DIMS, np.int64)
    slot = 0
    for level in range(levels):
        while slot < slots and slot_level[slot] == level:
            for dim in range(DIMS):
                extent[dim] *= factors[dim, slot]
            slot += 1
        if capacities[level] < 0:
            continue
        words = 0.0
        for tensor in range(TENSORS):
            if keeps[level, tensor]:
                size = 1.0
                for axis in range(AXES):
                    length = 1
                    for place in range(2):
                        dim = dims_of[tensor, axis, place]
                        if dim >= 0:
                            length += scale_of[tensor, dim] * (extent[dim] - 1)
                    size *= length
                words += size
        if words > capacities[level]:
            return False
    return True


@_helper
def _loops_of(factors: Array, slot: int, order: Array) -> int:
    """Dimensions with loops in a slot, ascending; how many."""
    count = 0
    for dim in range(DIMS):
        if factors[dim, slot] > 1:
            order[count] = dim
            count += 1
    return count


@_helper
def _splittable(factors: Array, slot: int, order: Array, count: int, columns: int, rows: int) -> bool:
    """Whether some of the loops fit along x and all others along y."""
    for chosen in range(1 << count):
        along_x, along_y = 1, 1
        for k in range(count):
            if chosen >> k & 1:
                along_x *= factors[order[k], slot]
            else:
                along_y *= factors[order[k], slot]
        if along_x <= columns and along_y <= rows:
            return True
    return False


@_helper
def _fits_split(factors: Array, slot: int, order: Array, count: int, split: int, columns: int, rows: int) -> bool:
    """Whether the first `split` loops fit along x and the others along y."""
    along_x, along_y = 1, 1
    for k in range(count):
        if k < split:
            along_x *= factors[order[k], slot]
        else:
            along_y *= factors[order[k], slot]
    return along_x <= columns and along_y <= rows


@_helper
def _next_order(order: Array, count: int) -> bool:
    """The next permutation in lexicographic order; False (and sorted again) after the last one."""
    k = count - 2
    while k >= 0 and order[k] > order[k + 1]:
        k -= 1
    low, high = k + 1, count - 1
    if k >= 0:
        other = count - 1
        while order[other] < order[k]:
            other -= 1
        order[k], order[other] = order[other], order[k]
    while low < high:
        order[low], order[high] = order[high], order[low]
        low += 1
        high -= 1
    return k >= 0


@_helper
def _write(
    mapping: int,
    factors: Array,
    orders: Array,
    counts: Array,
    splits: Array,
    slot_level: Array,
    slot_axis: Array,
    loops: tuple[Array, ...],
) -> None:
    """Put a mapping into the arrays of a batch, whose loops stand outer to inner."""
    t_dims, t_bounds, s_dims, s_bounds, s_axes = loops
    t_bounds[mapping] = 1
    s_bounds[mapping] = 1
    for level in range(t_bounds.shape[1]):
        place = 0
        for slot in range(slot_level.shape[0] - 1, -1, -1):
            if slot_level[slot] != level or slot_axis[slot] == TEMPORAL:
                continue
            for k in range(counts[slot] - 1, -1, -1):
                dim, axis = orders[slot, k], slot_axis[slot]
                if axis == SPLIT:
                    axis = X if k < splits[slot] else Y
                s_dims[mapping, level, place], s_bounds[mapping, level, place] = dim, factors[dim, slot]
                s_axes[mapping, level, place] = axis
                place += 1
        for slot in range(slot_level.shape[0]):
            if slot_level[slot] == level and slot_axis[slot] == TEMPORAL:
                for k in range(counts[slot]):
                    dim = orders[slot, counts[slot] - 1 - k]
                    t_dims[mapping, level, k], t_bounds[mapping, level, k] = dim, factors[dim, slot]


@_compiled
def draw_tilings(state: Array, primes: Array, factors: Array) -> None:
    """Fill `factors` [tiling, dim, slot] with random tilings, valid or not."""
    for number in range(factors.shape[0]):
        _draw_tiling(state, primes, factors[number])


@_compiled
def fill_random(
    state: Array,  # uint64 [1]
    primes: Array,  # int64 [number, 3]
    dims: Array,  # int64: dimensions that a draw knows, with bounds of 1
    tables: tuple[Array, ...],  # `MapSpace.tables`
    most_draws: int,
    loops: tuple[Array, ...],  # `MappingBatch.loops`, filled
    drawn_at: Array,  # int64 [mapping]: draws up to and with each mapping
) -> tuple[int, int]:
    """Draw tiling, order of every slot and split of every fan-out until the batch is full; (mappings, draws)."""
    slot_level, slot_axis, fanouts, keeps, capacities, dims_of, scale_of = tables
    slots, wanted = slot_level.shape[0], loops[0].shape[0]
    factors = np.ones((DIMS, slots), np.int64)
    orders, order = np.zeros((slots, DIMS), np.int64), np.empty(DIMS, np.int64)
    counts, splits = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    found, drawn = 0, 0
    while found < wanted and drawn < most_draws:
        drawn += 1
        _draw_tiling(state, primes, factors)
        fits = True
        for slot in range(slots):
            for k in range(dims.shape[0]):
                order[k] = dims[k]
            level, axis = slot_level[slot], slot_axis[slot]
            columns, rows = fanouts[level, 0], fanouts[level, 1]
            # Orders of a fan-out along one axis do not matter: they stay.
            if axis == TEMPORAL or (columns > 1 and rows > 1):
                for k in range(dims.shape[0] - 1, 0, -1):
                    other = _below(state, k + 1)
                    order[k], order[other] = order[other], order[k]
            split = _below(state, dims.shape[0] + 1) if axis == SPLIT else 0
            counts[slot], splits[slot] = 0, 0
            for k in range(dims.shape[0]):
                if factors[order[k], slot] > 1:
                    orders[slot, counts[slot]] = order[k]
                    counts[slot] += 1
                    if k < split:
                        splits[slot] += 1
            if axis == SPLIT:
                good = _fits_split(factors, slot, orders[slot], counts[slot], splits[slot], columns, rows)
                fits = fits and good
        if not fits or not _within_capacities(factors, slot_level, keeps, capacities, dims_of, scale_of):
            continue
        _write(found, factors, orders, counts, splits, slot_level, slot_axis, loops)
        drawn_at[found] = drawn
        found += 1
    return found, drawn


@_helper
def _factorial(n: int) -> float:
    product = 1.0
    for k in range(2, n + 1):
        product *= k
    return product


@_compiled
def fill_hybrid(
    state: Array,  # uint64 [1]
    under_way: Array,  # bool [1]: whether a tiling is being walked
    factors: Array,  # int64 [dim, slot] of that tiling
    orders: Array,  # int64 [slot, place]
    counts: Array,  # int64 [slot]
    splits: Array,  # int64 [slot]
    primes: Array,
    tables: tuple[Array, ...],
    threads: int,  # 1: tilings are independent of those of other threads
    thread: int,
    most_draws: int,
    loops: tuple[Array, ...],
    drawn_at: Array,  # int64 [mapping]: draws up to and with each mapping
    walked_at: Array,  # float64 [mapping]: draws of a walk that looks at every mapping
    tilings_at: Array,  # int64 [mapping]
) -> tuple[int, int, float, int]:
    """Walk random tilings until the batch is full; (mappings, draws, draws of a walk without shortcuts, tilings)."""
    slot_level, slot_axis, fanouts, keeps, capacities, dims_of, scale_of = tables
    slots, wanted = slot_level.shape[0], loops[0].shape[0]
    found, drawn, walked, tilings = 0, 0, 0.0, 0
    weight = 1.0
    fresh = False
    low = np.zeros(primes.shape[0], np.int64)
    while found < wanted and drawn < most_draws:
        if not under_way[0]:
            drawn += 1
            tilings += 1
            if threads == 1:
                _draw_tiling(state, primes, factors)
            else:
                _draw_neighbour(state, primes, factors, threads, thread, low)
            fits, space, in_splits = True, 1.0, 1.0
            for slot in range(slots):
                counts[slot] = _loops_of(factors, slot, orders[slot])
                level = slot_level[slot]
                if slot_axis[slot] == TEMPORAL:
                    if slot > 0:
                        space *= _factorial(counts[slot])
                    continue
                columns, rows = fanouts[level, 0], fanouts[level, 1]
                in_splits *= counts[slot] + 1
                if columns > 1 and rows > 1:
                    space *= _factorial(counts[slot])
                fits = fits and _splittable(factors, slot, orders[slot], counts[slot], columns, rows)
            if not fits:
                # No order and no split mends it: a walk would look at all of them.
                walked += space * in_splits
                continue
            if not _within_capacities(factors, slot_level, keeps, capacities, dims_of, scale_of):
                # The first mapping within the fan-outs shows it, then the walk goes on to the next tiling.
                walked += in_splits
                continue
            for slot in range(slots):
                splits[slot] = 0
            under_way[0] = True
            fresh = True
        weight = 1.0
        for slot in range(slots):
            if slot_axis[slot] == SPLIT:
                level = slot_level[slot]
                if fanouts[level, 1] == 1:
                    splits[slot] = counts[slot]
                if fanouts[level, 0] == 1 or fanouts[level, 1] == 1:
                    weight *= counts[slot] + 1
        if fresh:
            fresh = False
        else:
            drawn += 1
        walked += weight
        good = True
        for slot in range(slots):
            if slot_axis[slot] == SPLIT and good:
                level = slot_level[slot]
                good = _fits_split(
                    factors, slot, orders[slot], counts[slot], splits[slot], fanouts[level, 0], fanouts[level, 1]
                )
        if good:
            _write(found, factors, orders, counts, splits, slot_level, slot_axis, loops)
            drawn_at[found], walked_at[found], tilings_at[found] = drawn, walked, tilings
            found += 1
        # ---- the next mapping: splits first, then orders, innermost slots first
        moved = False
        for slot in range(slots):
            level = slot_level[slot]
            if slot_axis[slot] == SPLIT and fanouts[level, 0] > 1 and fanouts[level, 1] > 1:
                splits[slot] += 1
                if splits[slot] <= counts[slot]:
                    moved = True
                    break
                splits[slot] = 0
        if not moved:
            for slot in range(slots):
                level = slot_level[slot]
                if slot_axis[slot] == SPLIT and (fanouts[level, 0] == 1 or fanouts[level, 1] == 1):
                    continue
                if slot == 0 and slot_axis[slot] == TEMPORAL:
                    continue  # loops around the MACs: their order does not matter
                if _next_order(orders[slot], counts[slot]):
                    moved = True
                    break
        under_way[0] = moved
    return found, drawn, walked, tilings


@_compiled
def count_victory(
    first: Array,  # float64 [mapping]: what is minimised
    second: Array,  # float64: decides between equals
    fits: Array,
    best: Array,  # float64 [2], overwritten
    since: int,
    condition: int,
    tolerance: float,
) -> tuple[int, int, int]:
    """Follow mappings until `condition` in a row are not better: (mappings taken, the last better one or -1, in a row).

    Values whose relative difference is within the tolerance are equal for this; if both values are, the first decides.
    """
    at = -1
    for k in range(first.shape[0]):
        if not fits[k]:
            continue
        better = best[0] == np.inf
        if not better:
            gain, other = (best[0] - first[k]) / best[0], (best[1] - second[k]) / best[1]
            if abs(gain) > tolerance:
                better = gain > 0
            elif abs(other) > tolerance:
                better = other > 0
            else:
                better = gain > 0
        if better:
            best[0], best[1] = first[k], second[k]
            at, since = k, 0
        else:
            since += 1
            if since == condition:
                return k + 1, at, since
    return first.shape[0], at, since


@_helper
def _next_composition(parts: Array) -> bool:
    """The next way to put as many stars on the slots; False (and the first one again) after the last."""
    last = parts.shape[0] - 1
    at = 0
    while at < last and parts[at] == 0:
        at += 1
    stars = parts[at]
    parts[at] = 0
    if at == last:
        parts[0] = stars
        return False
    parts[0] = stars - 1
    parts[at + 1] += 1
    return True


@_helper
def _next_tiling(parts: Array, moving: int) -> bool:
    """Advance the first `moving` prime factors like an odometer; False after the last tiling."""
    for k in range(moving):  # noqa: SIM110 (compiled)
        if _next_composition(parts[k]):
            return True
    return False


@_helper
def _set_factors(primes: Array, parts: Array, factors: Array) -> None:
    factors[:] = 1
    for k in range(primes.shape[0]):
        for slot in range(parts.shape[1]):
            for _ in range(parts[k, slot]):
                factors[primes[k, 0], slot] *= primes[k, 1]


@_helper
def _within_fanouts(factors: Array, slot_level: Array, slot_axis: Array, fanouts: Array) -> bool:
    """Whether every fan-out holds its loops, axes apart."""
    for level in range(fanouts.shape[0]):
        along_x, along_y, along_rows = 1, 1, 1
        for slot in range(slot_level.shape[0]):
            if slot_level[slot] != level or slot_axis[slot] == TEMPORAL:
                continue
            product = 1
            for dim in range(DIMS):
                product *= factors[dim, slot]
            if slot_axis[slot] == X:
                along_x = product
            elif slot_axis[slot] == Y:
                along_y = product
            else:
                along_rows = product
        columns, rows = fanouts[level, 0], fanouts[level, 1]
        if along_x > columns or along_y > rows or along_rows > columns * rows:
            return False
        if along_rows > 1 and (along_x > 1 or along_y > 1):
            return False
    return True


@_compiled
def count_mappings(
    primes: Array, parts: Array, moving: int, tables: tuple[Array, ...], most_tilings: int
) -> tuple[float, int, bool]:
    """Valid mappings: tilings within fan-outs and capacities times the orders of their loops.

    (Mappings, tilings looked at, whether there are more: `parts` then says where to go on.)
    """
    slot_level, slot_axis, fanouts, keeps, capacities, dims_of, scale_of = tables
    slots = slot_level.shape[0]
    factors, order = np.ones((DIMS, slots), np.int64), np.empty(DIMS, np.int64)
    total = 0.0
    for tilings in range(1, most_tilings + 1):
        _set_factors(primes, parts, factors)
        if _within_fanouts(factors, slot_level, slot_axis, fanouts) and _within_capacities(
            factors, slot_level, keeps, capacities, dims_of, scale_of
        ):
            space = 1.0
            for slot in range(slots):
                if slot > 0 or slot_axis[slot] != TEMPORAL:
                    space *= _factorial(_loops_of(factors, slot, order))
            total += space
        if not _next_tiling(parts, moving):
            return total, tilings, False
    return total, most_tilings, True


@_compiled
def fill_exhaustive(
    under_way: Array,  # bool [1]: whether a tiling is being walked
    parts: Array,  # int64 [prime, slot]: where the equal prime factors stand
    moving: int,
    factors: Array,
    orders: Array,
    counts: Array,
    primes: Array,
    tables: tuple[Array, ...],
    most_tilings: int,
    loops: tuple[Array, ...],
) -> tuple[int, bool]:
    """All valid mappings, until the batch is full or so many tilings are done; (mappings, whether there are more)."""
    slot_level, slot_axis, fanouts, keeps, capacities, dims_of, scale_of = tables
    slots, wanted = slot_level.shape[0], loops[0].shape[0]
    found, tilings = 0, 0
    while found < wanted and tilings < most_tilings:
        if not under_way[0]:
            _set_factors(primes, parts, factors)
            for slot in range(slots):
                counts[slot] = _loops_of(factors, slot, orders[slot])
            under_way[0] = _within_fanouts(factors, slot_level, slot_axis, fanouts) and _within_capacities(
                factors, slot_level, keeps, capacities, dims_of, scale_of
            )
        if under_way[0]:
            _write(found, factors, orders, counts, counts, slot_level, slot_axis, loops)
            found += 1
            moved = False
            for slot in range(slots):
                if (slot > 0 or slot_axis[slot] != TEMPORAL) and _next_order(orders[slot], counts[slot]):
                    moved = True
                    break
            under_way[0] = moved
        if not under_way[0]:
            tilings += 1
            if not _next_tiling(parts, moving):
                return found, False
    return found, True


@_helper
def _shuffle(state: Array, order: Array) -> None:
    for k in range(order.shape[0] - 1, 0, -1):
        other = _below(state, k + 1)
        order[k], order[other] = order[other], order[k]


@_compiled
def draw_genomes(
    state: Array, primes: Array, tables: tuple[Array, ...], most_draws: int, factors: Array, orders: Array
) -> tuple[int, int]:
    """Random valid genomes: `factors` [genome, dim, slot], `orders` [genome, slot, place]; (found, draws)."""
    slot_level, slot_axis, fanouts, keeps, capacities, dims_of, scale_of = tables
    found, drawn = 0, 0
    while found < factors.shape[0] and drawn < most_draws:
        drawn += 1
        _draw_tiling(state, primes, factors[found])
        if not _within_fanouts(factors[found], slot_level, slot_axis, fanouts):
            continue
        if not _within_capacities(factors[found], slot_level, keeps, capacities, dims_of, scale_of):
            continue
        for slot in range(slot_level.shape[0]):
            for k in range(DIMS):
                orders[found, slot, k] = k
            _shuffle(state, orders[found, slot])
        found += 1
    return found, drawn


@_helper
def _move_prime(state: Array, dims: Array, factors: Array) -> None:
    """Factorisation mutation: a prime factor of a loop goes to another slot."""
    slots = factors.shape[1]
    dim, start = dims[_below(state, dims.shape[0])], _below(state, slots)
    for k in range(slots):
        slot = (start + k) % slots
        value = factors[dim, slot]
        if value > 1:
            which, prime, rest = 0, 2, value
            while rest > 1:  # as many primes as it has, equal ones counted
                if rest % prime == 0:
                    rest //= prime
                    which += 1
                else:
                    prime += 1
                    if prime * prime > rest:
                        prime = rest
            which, prime, rest = _below(state, which), 2, value
            while True:
                if rest % prime == 0:
                    if which == 0:
                        break
                    which -= 1
                    rest //= prime
                else:
                    prime += 1
                    if prime * prime > rest:
                        prime = rest
            factors[dim, slot] //= prime
            factors[dim, (slot + 1 + _below(state, slots - 1)) % slots] *= prime
            return


@_helper
def _mutate_tile(
    state: Array, dims: Array, bounds: Array, slot_level: Array, slot_axis: Array, fanouts: Array, factors: Array
) -> None:
    """Random mutation: a loop gets any bound, another one as many iterations as then cover the layer, rounded up."""
    slots = factors.shape[1]
    dim, slot = dims[_below(state, dims.shape[0])], _below(state, slots)
    other = (slot + 1 + _below(state, slots - 1)) % slots
    rest = 1
    for k in range(slots):
        if k != slot and k != other:
            rest *= factors[dim, k]
    most = -(-bounds[dim] // rest)
    level = slot_level[slot]
    if slot_axis[slot] == X:
        most = min(most, fanouts[level, 0])
    elif slot_axis[slot] == Y:
        most = min(most, fanouts[level, 1])
    elif slot_axis[slot] == ROWS:
        most = min(most, fanouts[level, 0] * fanouts[level, 1])
    factors[dim, slot] = 1 + _below(state, most)
    factors[dim, other] = -(-bounds[dim] // (rest * factors[dim, slot]))


@_compiled
def breed(
    state: Array,
    dims: Array,  # int64: dimensions with a bound above 1
    bounds: Array,  # int64 [dim]: of the layer
    tables: tuple[Array, ...],
    parents: int,  # genomes in the arrays before the children, best first
    factors: Array,
    orders: Array,
    chances: Array,  # float64: of factorisation mutation, random mutation, crossover, another order
    most_draws: int,
) -> tuple[int, int]:
    """Fill the genomes behind the parents with valid children; (children, draws)."""
    slot_level, slot_axis, fanouts, keeps, capacities, dims_of, scale_of = tables
    slots, scale = slot_level.shape[0], 1 << 30
    found, drawn = parents, 0
    while found < factors.shape[0] and drawn < most_draws:
        drawn += 1
        one = min(_below(state, parents), _below(state, parents))
        factors[found], orders[found] = factors[one], orders[one]
        changed = False
        if _below(state, scale) < chances[2] * scale:
            # Crossover: all factors of one loop of the layer, and nothing else, come from another parent.
            dim, two = dims[_below(state, dims.shape[0])], _below(state, parents)
            factors[found, dim] = factors[two, dim]
            changed = True
        if _below(state, scale) < chances[0] * scale:
            _move_prime(state, dims, factors[found])
            changed = True
        if _below(state, scale) < chances[1] * scale:
            _mutate_tile(state, dims, bounds, slot_level, slot_axis, fanouts, factors[found])
            changed = True
        if not changed or _below(state, scale) < chances[3] * scale:
            slot, first = _below(state, slots), _below(state, DIMS)
            second = (first + 1 + _below(state, DIMS - 1)) % DIMS
            order = orders[found, slot]
            order[first], order[second] = order[second], order[first]
        if not _within_fanouts(factors[found], slot_level, slot_axis, fanouts):
            continue
        if not _within_capacities(factors[found], slot_level, keeps, capacities, dims_of, scale_of):
            continue
        found += 1
    return found - parents, drawn


@_compiled
def write_genomes(
    factors: Array, orders: Array, slot_level: Array, slot_axis: Array, loops: tuple[Array, ...], macs: Array
) -> None:
    """Put genomes into the arrays of a batch; `macs` float64: products of all their bounds."""
    slots = slot_level.shape[0]
    counts, kept = np.zeros(slots, np.int64), np.zeros((slots, DIMS), np.int64)
    for genome in range(factors.shape[0]):
        macs[genome] = 1.0
        for slot in range(slots):
            counts[slot] = 0
            for k in range(DIMS):
                dim = orders[genome, slot, k]
                if factors[genome, dim, slot] > 1:
                    kept[slot, counts[slot]] = dim
                    counts[slot] += 1
                    macs[genome] *= factors[genome, dim, slot]
        _write(genome, factors[genome], kept, counts, counts, slot_level, slot_axis, loops)
