"""The `timeloop` convention: measured records, and its closed form against a walk by the rules."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from cosa.analytical.boxes import NestView, group_sizes, new_words
from cosa.analytical.reference import analytical_cases, first_difference
from cosa.analytical.timeloop import counts, network, visits
from cosa.model.layer import TENSORS, Layer
from tests.cosa.test_analytical_exact import small_schedule
from tests.nocsim.nests import random_schedule

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "analytical"


def test_every_record_equals_the_measurement() -> None:
    results = dict(analytical_cases(DATA))
    assert len(results) == 310
    assert {name: difference for name, difference in results.items() if difference} == {}


def test_a_wrong_record_is_told_by_its_first_differing_field() -> None:
    assert first_difference({"a": {"reads": 1}}, {"a": {"reads": 2}}) == "a.reads: reference 1, computed 2"
    assert first_difference({"a": 1}, {}) == "a: not computed"
    assert first_difference({"energy_pj": 1.0}, {"energy_pj": 1.0 + 1e-10}) is None
    assert first_difference({"energy_pj": 1.0}, {"energy_pj": 1.0 + 1e-8}) is not None


def test_the_command_counts_records(tmp_path: Path) -> None:
    for name in ("architectures", "mapper"):
        (tmp_path / f"{name}.json.gz").write_bytes((DATA / f"{name}.json.gz").read_bytes())
    script = [sys.executable, ROOT / "scripts" / "check_reference.py", "analytical", tmp_path]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "25 of 25 records equal\n")


def walk(view: NestView, tensor: str, child: int) -> Counter[tuple[int, bool]]:
    """{(words, whole box): visits} of a tile, stepping through iterations 0 and 1 of every loop by the rules."""
    outside = view.outside(child)[::-1]
    box = view.tile_box(tensor, child)
    before: tuple[int, ...] | None = None
    moved: tuple[int, ...] | None = None
    found: Counter[tuple[int, bool]] = Counter()
    for indices in product(*(range(2) for _ in outside)):
        weight, at = 1, [0] * len(box)
        for step, index in zip(outside, indices, strict=True):
            if index:
                weight *= step.bound - 1
                at = [a + b for a, b in zip(at, view.offset(tensor, step), strict=True)]
        here, words = tuple(at), 1
        for extent in box:
            words *= extent
        if before is not None and child >= 0:
            move = tuple(a - b for a, b in zip(here, before, strict=True))
            if moved is None or move == moved:
                words, moved = new_words(box, move), move
            else:
                moved = None
        before = here
        if words:
            found[words, False] += weight
    return found


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_visits_equal_a_walk_over_iterations_0_and_1(first: int) -> None:
    for seed in range(first, first + 20):
        schedule = random_schedule(seed)
        view = NestView(schedule.layer, schedule.architecture, schedule.nest)
        for tensor in TENSORS:
            for child in range(-1, len(view.levels)):
                ours: Counter[tuple[int, bool]] = Counter()
                for entry in visits(view, tensor, child):
                    ours[entry.words, False] += entry.count
                assert ours == walk(view, tensor, child), (seed, tensor, child)


Box = tuple[tuple[int, int], ...]
"""From and to (exclusive) on each axis."""


def less(now: Box, before: Box) -> Box | None:
    """A box less a box: nothing, a strip where they differ along one axis and overlap, else the whole box."""
    differing = [axis for axis, pair in enumerate(zip(now, before, strict=True)) if pair[0] != pair[1]]
    if not differing:
        return None
    axis = differing[0]
    (low, high), (old_low, old_high) = now[axis], before[axis]
    if len(differing) > 1 or low >= old_high or old_low >= high:
        return now
    strip = (old_high, high) if low > old_low else (low, old_low)
    return (*now[:axis], strip, *now[axis + 1 :])


def walk_network(view: NestView, tensor: str, level: int) -> tuple[dict[tuple[int, int], int], int]:
    """Words by (group size, groups) and link transfers, from the boxes that every instance receives."""
    child, loops = level - 1, view.levels[level]
    outside, extents = view.outside(child)[::-1], view.tile_box(tensor, child)
    places = []
    for indices in product(*(range(step.bound) for step in loops.spatial)):
        place = [0] * len(extents)
        for step, index in zip(loops.spatial, indices, strict=True):
            place = [a + index * b for a, b in zip(place, view.offset(tensor, step), strict=True)]
        places.append(place)
    columns = view.architecture.fanout(level)[0]
    entries: Counter[tuple[int, int]] = Counter()
    links = 0
    before: Box | None = None
    moved: tuple[int, ...] | None = None
    previous: list[Box | None] = [None] * len(places)
    for indices in product(*(range(2) for _ in outside)):
        weight, at = 1, [0] * len(extents)
        for step, index in zip(outside, indices, strict=True):
            if index:
                weight *= step.bound - 1
                at = [a + b for a, b in zip(at, view.offset(tensor, step), strict=True)]
        now = tuple((low, low + extent) for low, extent in zip(at, extents, strict=True))
        delta: Box | None = now
        if before is not None and child >= 0:
            move = tuple(a[0] - b[0] for a, b in zip(now, before, strict=True))
            if moved is None or move == moved:
                delta, moved = less(now, before), move
            else:
                moved = None
        before = now
        got = [
            None if delta is None else tuple((a + p, b + p) for (a, b), p in zip(delta, place, strict=True))
            for place in places
        ]
        if delta is not None:
            words = 1
            for low, high in delta:
                words *= high - low
            linked = set()
            for i, box in enumerate(got):
                for j in (i - 1, i + 1, i - columns, i + columns):
                    beside = abs(i - j) == columns or i // columns == j // columns
                    if 0 <= j < len(got) and beside and previous[j] == box and loops.fanout > 1:
                        linked.add(i)
            all_groups = Counter(got)
            left = Counter(box for i, box in enumerate(got) if i not in linked)
            if len(left) < len(all_groups):
                links += len(linked) * words * weight
            else:
                left = all_groups
            for size, number in Counter(left.values()).items():
                entries[size, number] += number * words * weight
        previous = got
    return {key: words for key, words in entries.items() if words}, links


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_networks_equal_a_walk_with_every_instance(first: int) -> None:
    linked = 0
    for seed in range(first, first + 50):
        schedule = random_schedule(seed) if seed % 2 else small_schedule(seed)
        view = NestView(schedule.layer, schedule.architecture, schedule.nest)
        for tensor in TENSORS:
            for level in range(len(view.levels)):
                ours = network(view, tensor, level)
                theirs, links = walk_network(view, tensor, level)
                entries = {key: words for key, words in ours.entries.items() if words}
                assert (entries, ours.link_transfers) == (theirs, links), (seed, tensor, level)
                linked += links > 0
    assert linked > 3


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_group_sizes_equal_counting_positions(first: int) -> None:
    for seed in range(first, first + 100):
        schedule = random_schedule(seed)
        view = NestView(schedule.layer, schedule.architecture, schedule.nest)
        for tensor in TENSORS:
            for level in view.levels:
                places: Counter[tuple[int, ...]] = Counter()
                moves = [view.offset(tensor, step) for step in level.spatial]
                for indices in product(*(range(step.bound) for step in level.spatial)):
                    at = (0,) * len(view.box(tensor, {}))
                    for index, move in zip(indices, moves, strict=True):
                        at = tuple(a + index * b for a, b in zip(at, move, strict=True))
                    places[at] += 1
                assert group_sizes(schedule.layer, tensor, level.spatial) == Counter(places.values())


def test_new_words() -> None:
    assert new_words((4, 5), (0, 0)) == 0
    assert new_words((4, 5), (1, 0)) == 5
    assert new_words((4, 5), (0, -2)) == 8
    assert new_words((4, 5), (4, 0)) == 20
    assert new_words((4, 5), (1, 1)) == 20


@pytest.mark.parametrize("seed", range(100))
def test_counts_are_consistent(seed: int) -> None:
    schedule = random_schedule(seed)
    layer: Layer = schedule.layer
    view = NestView(layer, schedule.architecture, schedule.nest)
    for tensor in TENSORS:
        found = counts(view, tensor)
        innermost = min(found.levels)
        assert set(found.levels) == {i for i, entry in enumerate(schedule.innermost_first) if tensor in entry.keeps}
        for level in found.levels.values():
            assert min(level.tile_words, level.partition_words, level.instances) >= 1
            assert min(level.reads, level.fills, level.updates) >= 0
        if innermost == 0 and view.levels[0].fanout == 1:
            sent = found.levels[0].updates if tensor == "outputs" else found.levels[0].reads
            assert sent >= view.compute_cycles
