"""Compiled evaluation of many mappings in Timeloop's convention.

The rules are those of `cosa.analytical.timeloop`, which also says why the closed form holds; names are the same. Counts
are kept as double-precision whole numbers: they are exact up to 2^53, and a mapping with a count above `LIMIT` is only
marked (`status`), for the single evaluation with its Python integers to take.
"""

# Numba compiles at the first call, not at import: importing this module costs only numba itself.

from __future__ import annotations

from math import ceil, floor, gcd
from typing import Any

import numpy as np
import numpy.typing as npt

from cosa.analytical.footprint import coinciding
from cosa.common.compile_cache import compiled_with_arrays, helper_with_arrays

Array = npt.NDArray[Any]

LIMIT = 2.0**50
AXES = 5
DIMS = 8
ENTRIES = 64
OUTPUTS = 2
ROW_BY_ROW = 2
DONE, TOO_LARGE = 0, 1

_coinciding = helper_with_arrays(coinciding)


@helper_with_arrays
def _add_entry(
    sizes: Array, numbers: Array, words: Array, used: Array, level: int, size: int, number: int, sent: float
) -> bool:
    """Add words to the entry (size, number) of a level, entries sorted; False if there is no room."""
    count = used[level]
    at = 0
    while at < count and (sizes[level, at] < size or (sizes[level, at] == size and numbers[level, at] < number)):
        at += 1
    if at < count and sizes[level, at] == size and numbers[level, at] == number:
        words[level, at] += sent
        return True
    if count == ENTRIES:
        return False
    for k in range(count, at, -1):
        sizes[level, k], numbers[level, k] = sizes[level, k - 1], numbers[level, k - 1]
        words[level, k] = words[level, k - 1]
    sizes[level, at], numbers[level, at], words[level, at] = size, number, sent
    used[level] = count + 1
    return True


@helper_with_arrays
def _add_size(sizes: Array, numbers: Array, count: int, size: int, number: int) -> int:
    """Add groups of a size to a histogram; the new length, -1 if there is no room."""
    for k in range(count):
        if sizes[k] == size:
            numbers[k] += number
            return count
    if count == ENTRIES:
        return -1
    sizes[count], numbers[count] = size, number
    return count + 1


@helper_with_arrays
def _box_words(extents: Array, dims_of: Array, scale_of: Array) -> float:
    """Words of the bounding box of a tile with these extents by dimension."""
    size = 1.0
    for axis in range(AXES):
        extent = 1
        for place in range(2):
            dim = dims_of[axis, place]
            if dim >= 0:
                extent += scale_of[dim] * (extents[dim] - 1)
        size *= extent
    return size


@helper_with_arrays
def _same(a: Array, b: Array) -> bool:
    equal = True
    for axis in range(AXES):
        equal = equal and a[axis] == b[axis]
    return equal


@helper_with_arrays
def _add_chains(
    first: int,
    second: int,
    step_first: int,
    step_second: int,
    sizes: Array,
    numbers: Array,
    used: int,
    fresh_sizes: Array,
    fresh_numbers: Array,
) -> int:
    """Multiply a histogram of groups by that of an axis which two dimensions walk; its new length, -1 without room."""
    length, fresh, common = 1, 0, gcd(step_first, step_second)
    pairs, linked = first * second, _coinciding(first, second, step_first, step_second, common, 1)
    while pairs > 0:
        further = _coinciding(first, second, step_first, step_second, common, length + 1)
        chains = pairs - 2 * linked + further
        if chains:
            for k in range(used):
                fresh = _add_size(fresh_sizes, fresh_numbers, fresh, sizes[k] * length, numbers[k] * chains)
                if fresh < 0:
                    return -1
        length, pairs, linked = length + 1, linked, further
    for k in range(fresh):
        sizes[k], numbers[k] = fresh_sizes[k], fresh_numbers[k]
    return fresh


@helper_with_arrays
def _fill_table(
    table: Array, dims: Array, bounds: Array, steps: Array, count: int, axis_of: Array, scale_of: Array
) -> None:
    """Position of every instance, row by row, along each axis of a tensor; loops from the inside out."""
    filled = 1
    for axis in range(AXES):
        table[0, axis] = 0
    for k in range(count):
        axis = axis_of[dims[k]]
        for index in range(1, bounds[k]):
            for i in range(filled):
                for other in range(AXES):
                    table[index * filled + i, other] = table[i, other]
                if axis >= 0:
                    table[index * filled + i, axis] += index * scale_of[dims[k]] * steps[k]
        filled *= bounds[k]


@helper_with_arrays
def _left_groups(
    offsets: Array, linked: Array, fanout: int, columns: int, move: Array, groups: int, sizes: Array, numbers: Array
) -> tuple[int, int, int]:
    """(instances linked to a neighbour, groups left, sizes of those in use); the last is -1 without room."""
    count = 0
    for i in range(fanout):
        linked[i] = False
    for i in range(fanout):
        for vertical in range(2):
            j = i + (columns if vertical else 1)
            if j >= fanout or (not vertical and i % columns == columns - 1):
                continue
            forward, backward = True, True
            for axis in range(AXES):
                apart = offsets[j, axis] - offsets[i, axis]
                forward = forward and apart == move[axis]
                backward = backward and -apart == move[axis]
            if forward:
                linked[i] = True
            if backward:
                linked[j] = True
    for i in range(fanout):
        count += linked[i]
    if count == 0:
        return 0, groups, 0
    # From here on `linked` also marks those already in a group.
    groups, used = 0, 0
    for i in range(fanout):
        if linked[i]:
            continue
        size = 1
        for j in range(i + 1, fanout):
            if not linked[j] and _same(offsets[i], offsets[j]):
                linked[j] = True
                size += 1
        groups += 1
        used = _add_size(sizes, numbers, used, size, 1)
        if used < 0:
            return count, groups, -1
    return count, groups, used


@helper_with_arrays
def _scratch(levels: int, slots: int, spatial_slots: int, fanouts: Array) -> tuple[Array, ...]:
    """Memory for the evaluation of one mapping after the other."""
    most = 1
    for level in range(levels):
        most = max(most, fanouts[level, 0] * fanouts[level, 1])
    t_dim, t_bound = np.empty(levels * slots, np.int64), np.empty(levels * slots, np.int64)
    t_step, t_times = np.empty(levels * slots, np.int64), np.empty(levels * slots, np.float64)
    t_start = np.empty(levels + 1, np.int64)
    s_dim, s_bound = np.empty((levels, spatial_slots), np.int64), np.empty((levels, spatial_slots), np.int64)
    s_step = np.empty((levels, spatial_slots), np.int64)
    s_count, fan = np.empty(levels, np.int64), np.empty(levels, np.int64)
    ext, covered_ext = np.empty((levels + 1, DIMS), np.int64), np.empty((levels, DIMS), np.int64)
    above = np.empty(levels + 1, np.int64)
    sizes, numbers = np.empty((levels, ENTRIES), np.int64), np.empty((levels, ENTRIES), np.int64)
    words = np.empty((levels, ENTRIES), np.float64)
    used = np.empty(levels, np.int64)
    group_size, group_number = np.empty(ENTRIES, np.int64), np.empty(ENTRIES, np.int64)
    other_size, other_number = np.empty(ENTRIES, np.int64), np.empty(ENTRIES, np.int64)
    move, first_move = np.empty(AXES, np.int64), np.empty(AXES, np.int64)
    behind, span = np.empty(AXES, np.int64), np.empty(AXES, np.int64)
    along, along_step = np.empty(DIMS, np.int64), np.empty(DIMS, np.int64)
    links, partition, tile = np.empty(levels, np.int64), np.empty(levels, np.int64), np.empty(levels, np.int64)
    content, share = np.empty(levels, np.float64), np.empty(levels, np.float64)
    read_demand, write_demand = np.empty(levels, np.float64), np.empty(levels, np.float64)
    used_words = np.empty(levels, np.float64)
    # Instances in use may be more than there are: such mappings do not fit, but are evaluated all the same.
    table, linked = np.empty((most, AXES), np.int64), np.empty(most, np.bool_)
    return (
        t_dim,
        t_bound,
        t_step,
        t_times,
        t_start,
        s_dim,
        s_bound,
        s_step,
        s_count,
        fan,
        ext,
        covered_ext,
        above,
        sizes,
        numbers,
        words,
        used,
        group_size,
        group_number,
        other_size,
        other_number,
        move,
        first_move,
        behind,
        span,
        along,
        along_step,
        links,
        partition,
        tile,
        content,
        share,
        read_demand,
        write_demand,
        used_words,
        table,
        linked,
    )


@helper_with_arrays
def _evaluate(
    loops: tuple[Array, ...], keeps: Array, tables: tuple[Any, ...], out: tuple[Array, ...], scratch: tuple[Array, ...]
) -> None:
    """See `evaluate_batch`; `scratch` is memory to work in."""
    temporal_dims, temporal_bounds, spatial_dims, spatial_bounds, spatial_axes = loops
    axis_of, scale_of, dims_of, fanouts, capacities, blocks, clusters, read_bandwidths, write_bandwidths = tables[:9]
    vector_pj, mac_pj = tables[9:]
    tiles_out, partitions_out, instances_out, reads_out, fills_out, updates_out, energies_out = out[:7]
    level_cycles_out, compute_out, cycles_out, energy_out, fits_out, status_out = out[7:]
    n, levels, slots = temporal_dims.shape
    spatial_slots = spatial_dims.shape[2]
    detailed = tiles_out.shape[0] == n
    (
        t_dim,
        t_bound,
        t_step,
        t_times,
        t_start,
        s_dim,
        s_bound,
        s_step,
        s_count,
        fan,
        ext,
        covered_ext,
        above,
        sizes,
        numbers,
        words,
        used,
        group_size,
        group_number,
        other_size,
        other_number,
        move,
        first_move,
        behind,
        span,
        along,
        along_step,
        links,
        partition,
        tile,
        content,
        share,
        read_demand,
        write_demand,
        used_words,
        table,
        linked,
    ) = scratch
    most = linked.shape[0]

    for mapping in range(n):
        row = mapping if detailed else 0
        status = DONE
        # ---- loops from the inside out, with strides and extents
        count, compute, fits = 0, 1, True
        for dim in range(DIMS):
            ext[0, dim] = 1
        for level in range(levels):
            for dim in range(DIMS):
                ext[level + 1, dim] = ext[level, dim]
            along_x, along_y, along_rows, number = 1, 1, 1, 0
            for slot in range(spatial_slots - 1, -1, -1):
                bound = spatial_bounds[mapping, level, slot]
                if bound > 1:
                    dim, axis = spatial_dims[mapping, level, slot], spatial_axes[mapping, level, slot]
                    if axis == 0:
                        along_x *= bound
                    elif axis == 1:
                        along_y *= bound
                    else:
                        along_rows *= bound
                    s_dim[level, number], s_bound[level, number] = dim, bound
                    s_step[level, number] = ext[level + 1, dim] if axis != 1 else -ext[level + 1, dim]
                    ext[level + 1, dim] *= bound
                    number += 1
            # Instances are numbered row by row: from the inside out first the loops along x, then those along y.
            for k in range(number):
                if s_step[level, k] < 0:
                    for later in range(k + 1, number):
                        if s_step[level, later] > 0:
                            dim, bound, step = s_dim[level, later], s_bound[level, later], s_step[level, later]
                            for at in range(later, k, -1):
                                s_dim[level, at] = s_dim[level, at - 1]
                                s_bound[level, at] = s_bound[level, at - 1]
                                s_step[level, at] = s_step[level, at - 1]
                            s_dim[level, k], s_bound[level, k], s_step[level, k] = dim, bound, step
                            break
            for k in range(number):
                s_step[level, k] = abs(s_step[level, k])
            s_count[level], fan[level] = number, along_x * along_y * along_rows
            x, y = fanouts[level, 0], fanouts[level, 1]
            fits = fits and along_x <= x and along_y <= y and along_rows <= x * y
            for dim in range(DIMS):
                covered_ext[level, dim] = ext[level + 1, dim]
            t_start[level] = count
            for slot in range(slots - 1, -1, -1):
                bound = temporal_bounds[mapping, level, slot]
                if bound > 1:
                    dim = temporal_dims[mapping, level, slot]
                    t_dim[count], t_bound[count], t_step[count] = dim, bound, ext[level + 1, dim]
                    ext[level + 1, dim] *= bound
                    compute *= bound
                    count += 1
        t_start[levels] = count
        outer = 1.0
        for j in range(count - 1, -1, -1):
            # How often a loop advances (rule 2).
            t_times[j] = (t_bound[j] - 1) * outer
            outer *= t_bound[j]
        above[levels] = 1
        for level in range(levels - 1, -1, -1):
            above[level] = above[level + 1] * fan[level]
            if fan[level] > most:
                status = TOO_LARGE  # more instances than the scratch tables hold: it does not fit anyway
        for level in range(levels):
            read_demand[level], write_demand[level], used_words[level] = 0.0, 0.0, 0.0
        energy = mac_pj

        for tensor in range(3):
            if status != DONE:
                break
            # ---- tiles and partitions
            for level in range(levels):
                size = _box_words(ext[level + 1], dims_of[tensor], scale_of[tensor])
                if size > LIMIT:
                    status = TOO_LARGE
                    size = 1.0
                tile[level] = int(size)
            partition[levels - 1] = tile[levels - 1]
            for level in range(levels - 2, -1, -1):
                if s_count[level + 1] == 0:
                    partition[level] = partition[level + 1]
                    continue
                size = _box_words(covered_ext[level + 1], dims_of[tensor], scale_of[tensor])
                if size > LIMIT or float(partition[level + 1]) * float(tile[level]) > 2.0**62:
                    status = TOO_LARGE
                    size = 1.0
                    partition[level + 1] = 1
                partition[level] = partition[level + 1] * tile[level] // int(size)

            # ---- networks
            for level in range(levels):
                used[level], links[level] = 0, 0
                # Groups of instances: {size: number}; how far instances reach on each axis.
                plain = 1
                groups_used = 1
                group_size[0], group_number[0] = 1, 1
                if s_count[level]:
                    for dim in range(DIMS):
                        along[dim] = 1
                    for axis in range(AXES):
                        span[axis] = 0
                    for k in range(s_count[level]):
                        dim = s_dim[level, k]
                        axis = axis_of[tensor, dim]
                        if axis < 0:
                            plain *= s_bound[level, k]
                        else:
                            step = s_step[level, k]
                            span[axis] += scale_of[tensor, dim] * step * (s_bound[level, k] - 1)
                            along_step[dim] = step if along[dim] == 1 else min(step, along_step[dim])
                            along[dim] *= s_bound[level, k]
                    group_size[0] = plain
                    for axis in range(AXES):
                        first, second = dims_of[tensor, axis, 0], dims_of[tensor, axis, 1]
                        if first < 0 or second < 0 or along[first] == 1 or along[second] == 1:
                            number = (along[first] if first >= 0 else 1) * (along[second] if second >= 0 else 1)
                            for k in range(groups_used):
                                group_number[k] *= number
                            continue
                        groups_used = _add_chains(
                            along[first],
                            along[second],
                            along_step[first] * scale_of[tensor, first],
                            along_step[second] * scale_of[tensor, second],
                            group_size,
                            group_number,
                            groups_used,
                            other_size,
                            other_number,
                        )
                        if groups_used < 0:
                            status = TOO_LARGE
                            break
                    if status != DONE:
                        break
                groups = 0
                for k in range(groups_used):
                    groups += group_number[k]

                # Visits of the tile below (rules 2, 3): `off` axes differ between the move of a loop that does not
                # move the tensor and the innermost loop's move.
                columns, fanout = fanouts[level, 0], fan[level]
                start = t_start[level]
                whole = float(tile[level - 1]) if level else 1.0
                arrived, strip, carried, has_table, off = whole, whole, 0.0, False, 0
                for axis in range(AXES):
                    behind[axis], first_move[axis] = 0, 0
                # The innermost loop's visits come last, when it is known how often the slide was carried on.
                for turn in range(start, count + 2):
                    if turn < count:
                        axis = axis_of[tensor, t_dim[turn]]
                        step = scale_of[tensor, t_dim[turn]] * t_step[turn] if axis >= 0 else 0
                        if turn == start:
                            if axis >= 0:
                                first_move[axis], behind[axis], off = step, step, 1
                            if level:
                                strip = 0.0
                                if axis >= 0:
                                    extent = 1
                                    for place in range(2):
                                        dim = dims_of[tensor, axis, place]
                                        if dim >= 0:
                                            extent += scale_of[tensor, dim] * (ext[level, dim] - 1)
                                    strip = whole if step >= extent else floor(whole / extent) * step
                            continue
                        same = off == 0
                        if axis >= 0:
                            before = behind[axis]
                            was_off = 1 if -before != first_move[axis] else 0
                            same = off == was_off and step - before == first_move[axis]
                            behind[axis] = before + step
                            off += (1 if -behind[axis] != first_move[axis] else 0) - was_off
                        times, w, linkable = t_times[turn], whole, strip == whole
                        if same and level:
                            w, linkable = strip, True
                            carried += times
                    else:
                        if count == start or (level == 0 and turn > count):
                            break
                        after_strip = carried * (t_bound[start] - 1) if level else t_times[start]
                        times = after_strip if turn == count else t_times[start] - after_strip
                        w, linkable = strip, turn == count or strip == whole
                    if w == 0.0 or times == 0.0:
                        continue
                    if linkable and fanout > 1:
                        # Neighbours are at most as far apart as the instances reach.
                        near = True
                        for other in range(AXES):
                            if turn < count:
                                # `behind` holds this loop's own step already.
                                move[other] = (2 * step if other == axis else 0) - behind[other]
                            else:
                                move[other] = first_move[other]
                            near = near and abs(move[other]) <= span[other]
                        if near:
                            if not has_table:
                                has_table = True
                                _fill_table(
                                    table,
                                    s_dim[level],
                                    s_bound[level],
                                    s_step[level],
                                    s_count[level],
                                    axis_of[tensor],
                                    scale_of[tensor],
                                )
                            linked_count, left, left_used = _left_groups(
                                table, linked, fanout, columns, move, groups, other_size, other_number
                            )
                            if left_used < 0:
                                status = TOO_LARGE
                                break
                            if left < groups:
                                links[level] += int(linked_count * w * times)
                                for k in range(left_used):
                                    sent = other_number[k] * w * times
                                    if not _add_entry(
                                        sizes, numbers, words, used, level, other_size[k], other_number[k], sent
                                    ):
                                        status = TOO_LARGE
                                continue
                    arrived += w * times
                for k in range(groups_used):
                    sent = group_number[k] * arrived
                    if not _add_entry(sizes, numbers, words, used, level, group_size[k], group_number[k], sent):
                        status = TOO_LARGE
                content[level], delivered = 0.0, 0.0
                for k in range(used[level]):
                    content[level] += words[level, k]
                    delivered += words[level, k] * sizes[level, k]
                if delivered > LIMIT:
                    status = TOO_LARGE
                if status != DONE:
                    break
            if status != DONE:
                break

            # ---- fills, then bypassing from the inside out (rule 6)
            outermost = levels - 1
            for level in range(levels):
                share[level] = 0.0
                if level < levels - 1:
                    for k in range(used[level + 1]):
                        share[level] += words[level + 1, k] * sizes[level + 1, k] / fan[level + 1]
            for level in range(outermost):
                if keeps[mapping, level, tensor]:
                    continue
                delivered = 0.0
                for k in range(used[level + 1]):
                    delivered += words[level + 1, k] * sizes[level + 1, k]
                content[level + 1] = 0.0
                for k in range(used[level + 1]):
                    words[level + 1, k] = words[level + 1, k] * (content[level] * fan[level + 1]) / delivered
                    content[level + 1] += words[level + 1, k]
                links[level + 1] = 0
                if content[level + 1] > LIMIT:
                    status = TOO_LARGE
            if status != DONE:
                break

            # ---- counts and energy
            for level in range(levels):
                tiles_out[row, level, tensor] = 0
                partitions_out[row, level, tensor] = 0
                reads_out[row, level, tensor] = 0
                fills_out[row, level, tensor] = 0
                updates_out[row, level, tensor] = 0
                energies_out[row, level, tensor] = 0.0
                if not keeps[mapping, level, tensor]:
                    continue
                instances = above[level + 1]
                peers = links[level + 1] // instances if level + 1 < levels else 0
                arrivals = floor(content[level] + 0.5)
                reads = floor(content[level] + 0.5) + peers
                updates = 0
                if tensor == OUTPUTS:
                    reads, updates = max(0, reads - partition[level]), arrivals
                fills = 0 if level == outermost else int(share[level]) + peers
                block = blocks[level]
                accesses = -(-reads // block) + -(-fills // block) + -(-updates // block)
                each = accesses * vector_pj[level] / (instances / min(instances, clusters[level]))
                tiles_out[row, level, tensor] = tile[level]
                partitions_out[row, level, tensor] = partition[level]
                reads_out[row, level, tensor] = reads
                fills_out[row, level, tensor] = fills
                updates_out[row, level, tensor] = updates
                energies_out[row, level, tensor] = each * instances
                used_words[level] += tile[level]
                read_demand[level] += reads / compute
                write_demand[level] += (fills + updates) / compute

        # ---- cycles
        compute_out[mapping], status_out[mapping] = compute, status
        cycles = compute
        for level in range(levels):
            fits = fits and (capacities[level] < 0 or used_words[level] <= capacities[level])
            slowdown = 1.0
            if read_demand[level] > read_bandwidths[level]:
                slowdown = min(slowdown, read_bandwidths[level] / read_demand[level])
            if write_demand[level] > write_bandwidths[level]:
                slowdown = min(slowdown, write_bandwidths[level] / write_demand[level])
            stretched = compute if slowdown == 1.0 else ceil(compute / slowdown)
            level_cycles_out[row, level] = stretched
            instances_out[row, level] = above[level + 1]
            cycles = max(cycles, stretched)
            for tensor in range(3):
                energy += energies_out[row, level, tensor]
        cycles_out[mapping], energy_out[mapping], fits_out[mapping] = cycles, energy, fits


@compiled_with_arrays
def evaluate_batch(loops: tuple[Array, ...], keeps: Array, tables: tuple[Any, ...], out: tuple[Array, ...]) -> None:
    """Evaluate every mapping.

    Parameters
    ----------
    loops: temporal_dims uint8 and temporal_bounds int64 [mapping, level, slot], outer to inner; spatial_dims,
        spatial_bounds, and spatial_axes uint8 (0 x, 1 y, 2 row by row) alike: `MappingBatch.loops`.
    keeps: bool [mapping, level, tensor].
    tables: `BatchEvaluator.tables`: axis_of int64 [tensor, dim], the axis of the tensor that a dimension walks (-1
        none); scale_of int64 [tensor, dim], how far one index goes on it; dims_of int64 [tensor, axis, 2], dimensions
        that walk an axis (-1 none); fanouts int64 [level, 2]; capacities int64 [level] (-1 unbounded); blocks int64
        [level]; clusters int64 [level], physical arrays on the chip; read_bandwidths and write_bandwidths float64
        [level] (infinite if none); vector_pj float64 [level]; mac_pj float.
    out: tiles, partitions int64 [mapping, level, tensor]; instances int64 [mapping, level]; reads, fills, updates int64
        and energies float64 [mapping, level, tensor]; level_cycles int64 [mapping, level]; compute, cycles int64,
        energy float64, fits bool, status uint8 [mapping]. Those with levels are scratch, not results, if their first
        axis is not that of the mappings.
    """
    slots, spatial_slots = loops[0].shape[2], loops[2].shape[2]
    _evaluate(loops, keeps, tables, out, _scratch(loops[0].shape[1], slots, spatial_slots, tables[3]))


@helper_with_arrays
def _move(bounds: Array, dim: int, prime: int, kind: int, level: int, to_kind: int, to_level: int) -> None:
    """Move a prime factor from a place to another."""
    bounds[kind, level, dim] //= prime
    bounds[to_kind, to_level, dim] *= prime


@helper_with_arrays
def _overflows(
    bounds: Array, from_level: int, to_level: int, keeps: Array, dims_of: Array, scale_of: Array, capacities: Array
) -> bool:
    """Whether tiles of the levels from one to before another outgrow their level; bounds [2, level, dimension]."""
    extents = np.ones(DIMS, np.int64)
    for level in range(to_level):
        for dim in range(DIMS):
            extents[dim] *= bounds[0, level, dim] * bounds[1, level, dim]
        if level < from_level or capacities[level] < 0:
            continue
        words = 0.0
        for tensor in range(3):
            if keeps[0, level, tensor]:
                words += _box_words(extents, dims_of[tensor], scale_of[tensor])
        if words > capacities[level]:
            return True
    return False


@compiled_with_arrays
def descend(
    bounds: Array,  # int64 [2 (temporal, spatial), level, dim]: a mapping, changed in place
    orders: Array,  # int64 [level]: of its temporal loops, rows of `permutations`, changed in place
    permutations: Array,  # uint8 [order, dim], outer to inner
    primes: Array,  # int64: all that divide a bound
    keeps: Array,  # bool [1, level, tensor]
    tables: tuple[Any, ...],  # as of `evaluate_batch`
    target: float,
    most: int,
) -> tuple[int, int]:
    """Take one change after the other that gives fewer cycles, or as many and less energy; (evaluated, cycles).

    A change moves a prime factor from one place to another, or takes another order for a level. It ends when cycles are
    at most `target`, when no change is better, or when `most` mappings are evaluated. Cycles are -1 if nothing fits.
    """
    scale_of, dims_of, fanouts, capacities = tables[1], tables[2], tables[3], tables[4]
    levels = bounds.shape[1]
    one, by_tensor, by_level = (1, levels, DIMS), (2, levels, 3), (2, levels)
    temporal_dims, temporal_bounds = np.zeros(one, np.uint8), np.ones(one, np.int64)
    spatial_dims, spatial_bounds = np.zeros(one, np.uint8), np.ones(one, np.int64)
    loops = temporal_dims, temporal_bounds, spatial_dims, spatial_bounds, np.full(one, ROW_BY_ROW, np.uint8)
    cycles, energy = np.zeros(1, np.int64), np.zeros(1, np.float64)
    fits, status = np.zeros(1, np.bool_), np.zeros(1, np.uint8)
    out = (
        np.zeros(by_tensor, np.int64),
        np.zeros(by_tensor, np.int64),
        np.zeros(by_level, np.int64),
        np.zeros(by_tensor, np.int64),
        np.zeros(by_tensor, np.int64),
        np.zeros(by_tensor, np.int64),
        np.zeros(by_tensor, np.float64),
        np.zeros(by_level, np.int64),
        np.zeros(1, np.int64),
        cycles,
        energy,
        fits,
        status,
    )
    scratch = _scratch(levels, DIMS, DIMS, fanouts)

    # Places of factors: temporal at every level, spatial where there is a fan-out.
    places = 0
    place_kind, place_level = np.empty(2 * levels, np.int64), np.empty(2 * levels, np.int64)
    for kind in range(2):
        for level in range(levels):
            if kind == 0 or fanouts[level, 0] * fanouts[level, 1] > 1:
                place_kind[places], place_level[places] = kind, level
                places += 1
    steps = 1
    for level in range(levels):
        for dim in range(DIMS):
            steps *= bounds[0, level, dim]
            spatial_dims[0, level, dim] = dim

    pairs = places * places
    moves = DIMS * pairs * len(primes)
    changes = moves + levels * len(permutations)
    best_cycles, best_energy, evaluated = -1, np.inf, 0
    change, tried = -1, 0
    while evaluated < most and tried <= changes:
        level, dim, source, goal, prime, before, steps_before = -1, -1, 0, 0, 1, 0, steps
        if change >= moves:
            level, order = (change - moves) // len(permutations), (change - moves) % len(permutations)
            before = orders[level]
            ordered = 0
            for each in range(DIMS):
                ordered += bounds[0, level, each] > 1
            if order == before or ordered < 2:
                level = -1
            else:
                orders[level] = order
        elif change >= 0:
            prime, pair = primes[change % len(primes)], change // len(primes) % pairs
            dim, source, goal = change // len(primes) // pairs, pair // places, pair % places
            from_kind, from_level = place_kind[source], place_level[source]
            to_kind, to_level = place_kind[goal], place_level[goal]
            possible = source != goal and bounds[from_kind, from_level, dim] % prime == 0
            if possible and to_kind == 1:
                used = prime
                for each in range(DIMS):
                    used *= bounds[1, to_level, each]
                possible = used <= fanouts[to_level, 0] * fanouts[to_level, 1]
            if possible and from_kind != to_kind:
                steps = steps * prime if from_kind else steps // prime
                possible = best_cycles < 0 or steps <= best_cycles
            if possible:
                _move(bounds, dim, prime, from_kind, from_level, to_kind, to_level)
                low, high = min(from_level, to_level), max(from_level, to_level)
                # A spatial loop is inside the tile of its own level.
                if _overflows(bounds, low, high + 1, keeps, dims_of, scale_of, capacities):
                    _move(bounds, dim, prime, to_kind, to_level, from_kind, from_level)
                    possible = False
            if not possible:
                dim, steps = -1, steps_before
        better = False
        if change < 0 or level >= 0 or dim >= 0:
            for each in range(levels):
                for slot in range(DIMS):
                    loop = permutations[orders[each], slot]
                    temporal_dims[0, each, slot], temporal_bounds[0, each, slot] = loop, bounds[0, each, loop]
                    spatial_bounds[0, each, slot] = bounds[1, each, slot]
            _evaluate(loops, keeps, tables, out, scratch)
            evaluated += 1
            better = fits[0] and status[0] == DONE
            if better and best_cycles >= 0:
                better = cycles[0] < best_cycles or (cycles[0] == best_cycles and energy[0] < best_energy * (1 - 1e-12))
        if better:
            best_cycles, best_energy, tried = cycles[0], energy[0], 0
            if best_cycles <= target:
                break
        elif level >= 0:
            orders[level] = before
        elif dim >= 0:
            _move(bounds, dim, prime, to_kind, to_level, from_kind, from_level)
            steps = steps_before
        tried += 1
        change = (change + 1) % changes
    return evaluated, best_cycles
