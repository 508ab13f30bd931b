"""Compiled evaluation of many mappings in Timeloop's convention.

The rules are those of `cosa.analytical.timeloop`, which also says why the closed form holds; names are the same. Counts
are kept as double-precision whole numbers: they are exact up to 2^53, and a mapping with a count above `LIMIT` is only
marked (`status`), for the single evaluation with its Python integers to take.
"""

# Numba compiles at the first call, not at import: importing this module costs only numba itself.

from __future__ import annotations

from math import ceil, floor, gcd
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cosa.analytical.footprint import coinciding
from cosa.common.compile_cache import compiled_helper, compiled_with_arrays, helper_with_arrays, inlined_helper

Array = npt.NDArray[Any]

LIMIT = 2.0**50
AXES = 5
DIMS = 8
ENTRIES = 64
OUTPUTS = 2
ROW_BY_ROW = 2
DONE, TOO_LARGE = 0, 1

_coinciding = compiled_helper(coinciding)


@compiled_helper
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


@compiled_helper
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


@compiled_helper
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


@compiled_helper
def _same(a: Array, b: Array) -> bool:
    equal = True
    for axis in range(AXES):
        equal = equal and a[axis] == b[axis]
    return equal


@compiled_helper
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


@compiled_helper
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


@compiled_helper
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


class Scratch(NamedTuple):
    """Memory for the evaluation of one mapping after the other.

    t_*: temporal loops from the inside out; s_*: spatial loops of each level, those along x first. ext, covered_ext:
    extents inside a level, with and without its temporal loops. sizes, numbers, words: entries of each level's network.
    """

    t_dim: Array
    t_bound: Array
    t_step: Array
    t_times: Array
    t_start: Array
    s_dim: Array
    s_bound: Array
    s_step: Array
    s_count: Array
    fan: Array
    ext: Array
    covered_ext: Array
    above: Array
    sizes: Array
    numbers: Array
    words: Array
    used: Array
    group_size: Array
    group_number: Array
    other_size: Array
    other_number: Array
    move: Array
    first_move: Array
    behind: Array
    span: Array
    along: Array
    along_step: Array
    links: Array
    partition: Array
    tile: Array
    content: Array
    share: Array
    read_demand: Array
    write_demand: Array
    used_words: Array
    table: Array
    linked: Array


@helper_with_arrays
def _scratch(levels: int, slots: int, spatial_slots: int, fanouts: Array) -> Scratch:
    """Fresh memory; instances in use may be more than there are: such mappings do not fit, but are evaluated."""
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
    table, linked = np.empty((most, AXES), np.int64), np.empty(most, np.bool_)
    return Scratch(
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


@inlined_helper
def _read_loops(loops: tuple[Array, ...], mapping: int, fanouts: Array, s: Scratch) -> tuple[int, int, bool]:
    """Loops of a mapping from the inside out, with strides and extents.

    How many temporal ones, compute cycles, and whether the fan-outs have room.
    """
    temporal_dims, temporal_bounds, spatial_dims, spatial_bounds, spatial_axes = loops
    levels, slots = temporal_dims.shape[1], temporal_dims.shape[2]
    spatial_slots = spatial_dims.shape[2]
    count, compute, fits = 0, 1, True
    for dim in range(DIMS):
        s.ext[0, dim] = 1
    for level in range(levels):
        for dim in range(DIMS):
            s.ext[level + 1, dim] = s.ext[level, dim]
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
                s.s_dim[level, number], s.s_bound[level, number] = dim, bound
                s.s_step[level, number] = s.ext[level + 1, dim] if axis != 1 else -s.ext[level + 1, dim]
                s.ext[level + 1, dim] *= bound
                number += 1
        # Instances are numbered row by row: from the inside out first the loops along x, then those along y.
        for k in range(number):
            if s.s_step[level, k] < 0:
                for later in range(k + 1, number):
                    if s.s_step[level, later] > 0:
                        dim, bound, step = s.s_dim[level, later], s.s_bound[level, later], s.s_step[level, later]
                        for at in range(later, k, -1):
                            s.s_dim[level, at] = s.s_dim[level, at - 1]
                            s.s_bound[level, at] = s.s_bound[level, at - 1]
                            s.s_step[level, at] = s.s_step[level, at - 1]
                        s.s_dim[level, k], s.s_bound[level, k], s.s_step[level, k] = dim, bound, step
                        break
        for k in range(number):
            s.s_step[level, k] = abs(s.s_step[level, k])
        s.s_count[level], s.fan[level] = number, along_x * along_y * along_rows
        x, y = fanouts[level, 0], fanouts[level, 1]
        fits = fits and along_x <= x and along_y <= y and along_rows <= x * y
        for dim in range(DIMS):
            s.covered_ext[level, dim] = s.ext[level + 1, dim]
        s.t_start[level] = count
        for slot in range(slots - 1, -1, -1):
            bound = temporal_bounds[mapping, level, slot]
            if bound > 1:
                dim = temporal_dims[mapping, level, slot]
                s.t_dim[count], s.t_bound[count], s.t_step[count] = dim, bound, s.ext[level + 1, dim]
                s.ext[level + 1, dim] *= bound
                compute *= bound
                count += 1
    return count, compute, fits


@inlined_helper
def _count_iterations(count: int, levels: int, s: Scratch) -> int:
    """How often each loop advances (rule 2), and instances of each level; the status."""
    status = DONE
    most = s.linked.shape[0]
    s.t_start[levels] = count
    outer = 1.0
    for j in range(count - 1, -1, -1):
        # How often a loop advances (rule 2).
        s.t_times[j] = (s.t_bound[j] - 1) * outer
        outer *= s.t_bound[j]
    s.above[levels] = 1
    for level in range(levels - 1, -1, -1):
        s.above[level] = s.above[level + 1] * s.fan[level]
        if s.fan[level] > most:
            status = TOO_LARGE  # more instances than the scratch tables hold: it does not fit anyway
    return status


@inlined_helper
def _size_tiles(levels: int, dims_of: Array, scale_of: Array, s: Scratch) -> int:
    """Tiles and partitions of a tensor; the status."""
    status = DONE
    for level in range(levels):
        size = _box_words(s.ext[level + 1], dims_of, scale_of)
        if size > LIMIT:
            status = TOO_LARGE
            size = 1.0
        s.tile[level] = int(size)
    s.partition[levels - 1] = s.tile[levels - 1]
    for level in range(levels - 2, -1, -1):
        if s.s_count[level + 1] == 0:
            s.partition[level] = s.partition[level + 1]
            continue
        size = _box_words(s.covered_ext[level + 1], dims_of, scale_of)
        if size > LIMIT or float(s.partition[level + 1]) * float(s.tile[level]) > 2.0**62:
            status = TOO_LARGE
            size = 1.0
            s.partition[level + 1] = 1
        s.partition[level] = s.partition[level + 1] * s.tile[level] // int(size)
    return status


@inlined_helper
def _group_instances(level: int, axis_of: Array, scale_of: Array, dims_of: Array, s: Scratch) -> int:
    """Groups of instances that need the same words, {size: number}, and how far instances reach on each axis.

    How many sizes there are, -1 if too many.
    """
    plain = 1
    groups_used = 1
    s.group_size[0], s.group_number[0] = 1, 1
    if s.s_count[level]:
        for dim in range(DIMS):
            s.along[dim] = 1
        for axis in range(AXES):
            s.span[axis] = 0
        for k in range(s.s_count[level]):
            dim = s.s_dim[level, k]
            axis = axis_of[dim]
            if axis < 0:
                plain *= s.s_bound[level, k]
            else:
                step = s.s_step[level, k]
                s.span[axis] += scale_of[dim] * step * (s.s_bound[level, k] - 1)
                s.along_step[dim] = step if s.along[dim] == 1 else min(step, s.along_step[dim])
                s.along[dim] *= s.s_bound[level, k]
        s.group_size[0] = plain
        for axis in range(AXES):
            first, second = dims_of[axis, 0], dims_of[axis, 1]
            if first < 0 or second < 0 or s.along[first] == 1 or s.along[second] == 1:
                number = (s.along[first] if first >= 0 else 1) * (s.along[second] if second >= 0 else 1)
                for k in range(groups_used):
                    s.group_number[k] *= number
                continue
            groups_used = _add_chains(
                s.along[first],
                s.along[second],
                s.along_step[first] * scale_of[first],
                s.along_step[second] * scale_of[second],
                s.group_size,
                s.group_number,
                groups_used,
                s.other_size,
                s.other_number,
            )
            if groups_used < 0:
                break
    return groups_used


@inlined_helper
def _visit(
    level: int, fanout: int, columns: int, count: int, groups_used: int, axis_of: Array, scale_of: Array,
    dims_of: Array, s: Scratch,
) -> int:  # fmt: skip
    """What a level sends further in for a tensor, at all visits of the tile below (rules 2, 3); the status."""
    status = DONE
    groups = 0
    for k in range(groups_used):
        groups += s.group_number[k]

    # `off` axes differ between the move of a loop that does not move the tensor and the innermost loop's move.
    start = s.t_start[level]
    whole = float(s.tile[level - 1]) if level else 1.0
    arrived, strip, carried, has_table, off = whole, whole, 0.0, False, 0
    for axis in range(AXES):
        s.behind[axis], s.first_move[axis] = 0, 0
    # The innermost loop's visits come last, when it is known how often the slide was carried on.
    for turn in range(start, count + 2):
        if turn < count:
            axis = axis_of[s.t_dim[turn]]
            step = scale_of[s.t_dim[turn]] * s.t_step[turn] if axis >= 0 else 0
            if turn == start:
                if axis >= 0:
                    s.first_move[axis], s.behind[axis], off = step, step, 1
                if level:
                    strip = 0.0
                    if axis >= 0:
                        extent = 1
                        for place in range(2):
                            dim = dims_of[axis, place]
                            if dim >= 0:
                                extent += scale_of[dim] * (s.ext[level, dim] - 1)
                        strip = whole if step >= extent else floor(whole / extent) * step
                continue
            same = off == 0
            if axis >= 0:
                before = s.behind[axis]
                was_off = 1 if -before != s.first_move[axis] else 0
                same = off == was_off and step - before == s.first_move[axis]
                s.behind[axis] = before + step
                off += (1 if -s.behind[axis] != s.first_move[axis] else 0) - was_off
            times, w, linkable = s.t_times[turn], whole, strip == whole
            if same and level:
                w, linkable = strip, True
                carried += times
        else:
            if count == start or (level == 0 and turn > count):
                break
            after_strip = carried * (s.t_bound[start] - 1) if level else s.t_times[start]
            times = after_strip if turn == count else s.t_times[start] - after_strip
            w, linkable = strip, turn == count or strip == whole
        if w == 0.0 or times == 0.0:
            continue
        if linkable and fanout > 1:
            # Neighbours are at most as far apart as the instances reach.
            near = True
            for other in range(AXES):
                if turn < count:
                    # `behind` holds this loop's own step already.
                    s.move[other] = (2 * step if other == axis else 0) - s.behind[other]
                else:
                    s.move[other] = s.first_move[other]
                near = near and abs(s.move[other]) <= s.span[other]
            if near:
                if not has_table:
                    has_table = True
                    _fill_table(
                        s.table,
                        s.s_dim[level],
                        s.s_bound[level],
                        s.s_step[level],
                        s.s_count[level],
                        axis_of,
                        scale_of,
                    )
                linked_count, left, left_used = _left_groups(
                    s.table, s.linked, fanout, columns, s.move, groups, s.other_size, s.other_number
                )
                if left_used < 0:
                    status = TOO_LARGE
                    break
                if left < groups:
                    s.links[level] += int(linked_count * w * times)
                    for k in range(left_used):
                        sent = s.other_number[k] * w * times
                        if not _add_entry(
                            s.sizes, s.numbers, s.words, s.used, level, s.other_size[k], s.other_number[k], sent
                        ):
                            status = TOO_LARGE
                    continue
        arrived += w * times
    for k in range(groups_used):
        sent = s.group_number[k] * arrived
        if not _add_entry(s.sizes, s.numbers, s.words, s.used, level, s.group_size[k], s.group_number[k], sent):
            status = TOO_LARGE
    s.content[level], delivered = 0.0, 0.0
    for k in range(s.used[level]):
        s.content[level] += s.words[level, k]
        delivered += s.words[level, k] * s.sizes[level, k]
    if delivered > LIMIT:
        status = TOO_LARGE
    return status


@inlined_helper
def _bypass(levels: int, keeps: Array, mapping: int, tensor: int, s: Scratch) -> int:
    """Fills, then bypassing from the inside out (rule 6), of a tensor; the status."""
    status = DONE
    outermost = levels - 1
    for level in range(levels):
        s.share[level] = 0.0
        if level < levels - 1:
            for k in range(s.used[level + 1]):
                s.share[level] += s.words[level + 1, k] * s.sizes[level + 1, k] / s.fan[level + 1]
    for level in range(outermost):
        if keeps[mapping, level, tensor]:
            continue
        delivered = 0.0
        for k in range(s.used[level + 1]):
            delivered += s.words[level + 1, k] * s.sizes[level + 1, k]
        s.content[level + 1] = 0.0
        for k in range(s.used[level + 1]):
            s.words[level + 1, k] = s.words[level + 1, k] * (s.content[level] * s.fan[level + 1]) / delivered
            s.content[level + 1] += s.words[level + 1, k]
        s.links[level + 1] = 0
        if s.content[level + 1] > LIMIT:
            status = TOO_LARGE
    return status


@compiled_helper
def _evaluate(
    loops: tuple[Array, ...], keeps: Array, tables: tuple[Any, ...], out: tuple[Array, ...], s: Scratch
) -> None:
    """See `evaluate_batch`; `s` is memory to work in."""
    axis_of, scale_of, dims_of, fanouts, capacities, blocks, clusters, read_bandwidths, write_bandwidths = tables[:9]
    vector_pj, mac_pj = tables[9:]
    tiles_out, partitions_out, instances_out, reads_out, fills_out, updates_out, energies_out = out[:7]
    level_cycles_out, compute_out, cycles_out, energy_out, fits_out, status_out = out[7:]
    n, levels = loops[0].shape[:2]
    outermost = levels - 1
    detailed = tiles_out.shape[0] == n

    for mapping in range(n):
        row = mapping if detailed else 0
        count, compute, fits = _read_loops(loops, mapping, fanouts, s)
        status = _count_iterations(count, levels, s)
        for level in range(levels):
            s.read_demand[level], s.write_demand[level], s.used_words[level] = 0.0, 0.0, 0.0
        energy = mac_pj

        for tensor in range(3):
            if status != DONE:
                break
            status = _size_tiles(levels, dims_of[tensor], scale_of[tensor], s)
            for level in range(levels):
                s.used[level], s.links[level] = 0, 0
                groups_used = _group_instances(level, axis_of[tensor], scale_of[tensor], dims_of[tensor], s)
                if groups_used < 0:
                    status = TOO_LARGE
                    break
                sent = _visit(
                    level, s.fan[level], fanouts[level, 0], count, groups_used, axis_of[tensor], scale_of[tensor],
                    dims_of[tensor], s,
                )  # fmt: skip
                status = max(status, sent)
                if status != DONE:
                    break
            if status == DONE:
                status = _bypass(levels, keeps, mapping, tensor, s)
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
                instances = s.above[level + 1]
                peers = s.links[level + 1] / instances if level + 1 < levels else 0.0
                reads, filled = s.content[level] + peers, s.share[level] + peers
                updates, fills = 0, int(filled)
                if tensor == OUTPUTS:
                    updates = floor(s.content[level] + 0.5)
                    reads = max(0.0, reads - s.partition[level])
                    fills = max(0, floor(filled - s.partition[level] + 0.5))
                reads = floor(reads + 0.5)
                if level == outermost:
                    fills = 0
                block = blocks[level]
                accesses = -(-reads // block) + -(-fills // block) + -(-updates // block)
                each = accesses * vector_pj[level] / (instances / min(instances, clusters[level]))
                tiles_out[row, level, tensor] = s.tile[level]
                partitions_out[row, level, tensor] = s.partition[level]
                reads_out[row, level, tensor] = reads
                fills_out[row, level, tensor] = fills
                updates_out[row, level, tensor] = updates
                energies_out[row, level, tensor] = each * instances
                s.used_words[level] += s.tile[level]
                s.read_demand[level] += reads / compute
                s.write_demand[level] += (fills + updates) / compute

        # ---- cycles
        compute_out[mapping], status_out[mapping] = compute, status
        cycles = compute
        for level in range(levels):
            fits = fits and (capacities[level] < 0 or s.used_words[level] <= capacities[level])
            slowdown = 1.0
            if s.read_demand[level] > read_bandwidths[level]:
                slowdown = min(slowdown, read_bandwidths[level] / s.read_demand[level])
            if s.write_demand[level] > write_bandwidths[level]:
                slowdown = min(slowdown, write_bandwidths[level] / s.write_demand[level])
            stretched = compute if slowdown == 1.0 else ceil(compute / slowdown)
            level_cycles_out[row, level] = stretched
            instances_out[row, level] = s.above[level + 1]
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
