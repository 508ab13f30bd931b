"""Schedules: structure, files, hashes, other architectures; and the exact validity test."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from cosa.commands.show import describe
from cosa.common.errors import InfeasibleError, InputError
from cosa.model.arch import Architecture, load_architecture
from cosa.model.schedule import Schedule
from cosa.model.validity import require_valid, tile_words, violations

Data = dict[str, Any]


@pytest.fixture
def data(schedule: Schedule) -> Data:
    return schedule.model_dump(mode="json")


def refused(data: Data) -> InputError:
    with pytest.raises(InputError) as caught:
        Schedule.from_data(data, source="s.json")
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_a_file_gives_back_the_schedule(schedule: Schedule, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"s.{ending}"
    schedule.save(path)
    assert Schedule.from_file(path) == schedule
    schedule.save(path, timing=False)
    again = Schedule.from_file(path)
    assert again.timing is None
    assert again.nest == schedule.nest
    assert "timing" not in path.read_text()


def test_without_timing_the_same_schedule_has_the_same_bytes(schedule: Schedule, tmp_path: Path) -> None:
    slower = schedule.model_copy(update={"timing": None})
    for number, each in enumerate((schedule, slower)):
        each.save(tmp_path / f"{number}.json", timing=False)
    assert (tmp_path / "0.json").read_bytes() == (tmp_path / "1.json").read_bytes()


def test_loops_must_multiply_up(data: Data) -> None:
    data["nest"][0]["loops"][0]["bound"] = 8
    error = refused(data)
    assert error.path == "nest"
    assert "over P" in error.message
    assert (error.value, error.allowed) == (64, "56, the layer's bound")


def test_a_loop_left_out(data: Data) -> None:
    del data["nest"][3]["loops"][0]
    assert "over R" in refused(data).message


def test_the_embedded_architecture_may_not_be_edited(data: Data) -> None:
    data["architecture"]["levels"][4]["capacity_words"] *= 2
    error = refused(data)
    assert error.path == "architecture_hash"
    assert "--arch" in error.message


@pytest.mark.parametrize(
    ("change", "path", "says"),
    [
        (lambda d: d["nest"].reverse(), "nest", "outermost first"),
        (lambda d: d["nest"].pop(), "nest", "not the levels of the architecture"),
        (lambda d: d["nest"][2].update(level="Inputs"), "nest", "Inputs"),
        (lambda d: d["nest"][1].update(keeps=["weights"]), "nest[1].keeps", "inputs, outputs"),
        (lambda d: d["nest"][0].update(keeps=["weights"]), "nest[0].keeps", "keeps every tensor"),
        (lambda d: d["nest"][1].update(keeps=["inputs", "inputs"]), "nest[1].keeps", "twice"),
        (lambda d: d["nest"][1]["loops"].reverse(), "nest[1].loops", "temporal loops, then its spatial"),
        (lambda d: d["nest"][1]["loops"][2].update(axis=None), "nest[1].loops[2].axis", "row_major"),
        (lambda d: d["nest"][1]["loops"][0].update(axis="x"), "nest[1].loops[0].axis", "temporal loop"),
        (lambda d: d["nest"][1]["loops"][2].update(axis="row_major"), "nest[1].loops", "row_major"),
        (lambda d: d["nest"][1]["loops"][2].update(axis="z"), "nest[1].loops[2].axis", "'row_major'"),
        (lambda d: d["nest"][1]["loops"][2].update(dim="k"), "nest[1].loops[2].dim", "did you mean K?"),
        (lambda d: d["nest"][1]["loops"][2].update(bound=0), "nest[1].loops[2].bound", "from 1 to 16777216"),
        (lambda d: d["nest"][1]["loops"][2].update(kind="parallel"), "nest[1].loops[2].kind", "'spatial'"),
        (lambda d: d["layer"].update(K="64"), "layer.K", "found '64'"),
        (lambda d: d["layer"].update(P=2**24, Q=2**24, C=2**24), "layer", "too large"),
        (lambda d: d["provenance"].pop("mapper"), "provenance.mapper", "missing"),
        (lambda d: d["provenance"].update(gap=float("nan")), "provenance.gap", "finite"),
        (lambda d: d["architecture"]["noc"].update(fifo_flits=2), "architecture.noc.fifo_flits", ">= 5"),
        (
            lambda d: d["architecture"]["levels"][0].update(capacity_words=None),
            "architecture.levels[0].capacity_words",
            "",
        ),
        (lambda d: d.update(nest="x"), "nest", "a list"),
        (lambda d: d.update(architectur={}), "architectur", "did you mean architecture?"),
    ],
)
def test_refused(data: Data, change: Any, path: str, says: str) -> None:
    change(data)
    error = refused(data)
    assert error.path == path
    assert says in str(error)


def test_the_hash_follows_layer_architecture_and_nest_only(schedule: Schedule, data: Data) -> None:
    plain = schedule.content_hash
    assert Schedule.from_data(data).content_hash == plain

    def changed(edit: Any) -> str:
        edited = copy.deepcopy(data)
        edit(edited)
        edited["architecture_hash"] = Architecture.from_data(edited["architecture"]).content_hash
        return Schedule.from_data(edited).content_hash

    same = [
        lambda d: d["layer"].update(name="other", notes=["a note"]),
        lambda d: d["architecture"].update(name="other", description="x"),
        lambda d: d["provenance"].update(seed=7, mapper="other"),
        lambda d: d.update(timing=None),
    ]
    assert {changed(edit) for edit in same} == {plain}
    different = [
        lambda d: d["layer"].update(stride_w=2),
        lambda d: d["layer"].update(stride_h=2),
        lambda d: d["layer"].update(dilation_w=2),
        lambda d: d["layer"].update(dilation_h=2),
        *(
            (lambda d, key=key: d["layer"]["word_bits"].update({key: 16}))
            for key in ("weights", "inputs", "outputs", "partial_sums")
        ),
        lambda d: d["architecture"]["pe"].update(pipeline_latency_cycles=5),
        lambda d: d["nest"][0]["loops"].reverse(),
        lambda d: d["nest"][3]["loops"].reverse(),
        lambda d: d["nest"][1]["loops"][2].update(axis="y"),
        lambda d: d["nest"][1].update(keeps=["inputs"]),
        lambda d: (d["layer"].update(K=128), d["nest"][0]["loops"].append({"dim": "K", "bound": 2})),
    ]
    hashes = {changed(edit) for edit in different}
    assert len(hashes) == len(different)
    assert plain not in hashes


def test_another_architecture(schedule: Schedule) -> None:
    bigger = load_architecture("simba_8x_gbuf")
    moved = schedule.with_architecture(bigger)
    assert moved.nest == schedule.nest
    assert (moved.architecture_name, moved.architecture_hash) == ("simba_8x_gbuf", bigger.content_hash)


def test_another_architecture_with_other_levels(schedule: Schedule, simba: Architecture) -> None:
    data = simba.model_dump(mode="json")
    data["levels"][1]["name"] = "Sums"
    with pytest.raises(InputError, match="does not have the levels"):
        schedule.with_architecture(Architecture.from_data(data))


def test_another_architecture_that_keeps_less_is_an_input_error(schedule: Schedule, simba: Architecture) -> None:
    data = simba.model_dump(mode="json")
    data["levels"][4]["keeps"] = ["inputs"]
    with pytest.raises(InputError, match=r"nest\[1\]\.keeps: more than GlobalBuffer keeps"):
        schedule.with_architecture(Architecture.from_data(data))


def test_tiles(schedule: Schedule) -> None:
    def tiles(level: int, tensor: Any) -> int:
        return tile_words(schedule.layer, schedule.innermost_first, level, tensor)

    assert tiles(0, "weights") == 1
    assert tiles(1, "outputs") == 7
    assert tiles(2, "weights") == 3 * 3 * 8
    assert tiles(3, "inputs") == (4 + 3 - 1) * (7 + 3 - 1) * 32
    assert tiles(4, "inputs") == (8 + 3 - 1) * (14 + 3 - 1) * 64
    assert tiles(4, "outputs") == 8 * 14 * 64
    assert [tiles(5, tensor) for tensor in ("weights", "inputs", "outputs")] == [36864, 58 * 58 * 64, 56 * 56 * 64]


def edited(data: Data, level: int, **changes: Any) -> Schedule:
    data["architecture"]["levels"][level].update(changes)
    data["architecture_hash"] = Architecture.from_data(data["architecture"]).content_hash
    return Schedule.from_data(data)


def test_valid(schedule: Schedule) -> None:
    assert violations(schedule.layer, schedule.architecture, schedule.nest) == []
    require_valid(schedule, "test")


@pytest.mark.parametrize(("level", "needed"), [(1, 7), (2, 72), (3, 1728), (4, 17408)])
def test_a_capacity_binds_exactly(data: Data, level: int, needed: int) -> None:
    require_valid(edited(data, level, capacity_words=needed), "test")
    tight = edited(data, level, capacity_words=needed - 1)
    (found,) = violations(tight.layer, tight.architecture, tight.nest)
    assert (found.level, found.needed, found.available) == (tight.architecture.levels[level].name, needed, needed - 1)
    with pytest.raises(InfeasibleError, match=f"{found.level}: its tiles need {needed}, there are {needed - 1}"):
        require_valid(tight, "test")


def test_shared_halves_count_half(data: Data) -> None:
    data["architecture"]["shared_halves"] = True
    data["architecture"]["levels"][0]["capacity_words"] = 2
    require_valid(edited(data, 4, capacity_words=2 * 17408), "test")
    tight = edited(data, 4, capacity_words=2 * 17408 - 1)
    assert [found.level for found in violations(tight.layer, tight.architecture, tight.nest)] == ["GlobalBuffer"]


@pytest.mark.parametrize(
    ("mesh", "axis", "needed", "has"), [("3x4", "x", 4, 3), ("4x3", "y", 4, 3), ("2x64", "x", 4, 2)]
)
def test_a_mesh_too_small_names_axis_and_need(schedule: Schedule, mesh: str, axis: str, needed: int, has: int) -> None:
    small = schedule.with_architecture(schedule.architecture.with_mesh(mesh))
    (found,) = violations(small.layer, small.architecture, small.nest)
    assert (found.level, found.needed, found.available) == ("GlobalBuffer", needed, has)
    assert f"along {axis}" in found.what
    with pytest.raises(InfeasibleError, match=f"{mesh} mesh of PEs"):
        require_valid(small, "test")


def test_row_major_loops_use_instances_not_axes(data: Data) -> None:
    loops = data["nest"][1]["loops"]
    for loop in loops[2:]:
        loop["axis"] = "row_major"
    require_valid(Schedule.from_data(data), "test")
    narrow = Schedule.from_data(data)
    narrow = narrow.with_architecture(narrow.architecture.with_mesh("8x2"))
    require_valid(narrow, "test")
    with pytest.raises(InfeasibleError, match="need 16, there are 15"):
        require_valid(narrow.with_architecture(narrow.architecture.with_mesh("5x3")), "test")


def test_json_is_plain(schedule: Schedule) -> None:
    assert json.loads(schedule.to_json())["kind"] == "schedule"


ODD: list[Any] = [None, True, 0, -1, 2, 2**63, 10**30, 1.5, float("nan"), "", "x", "K", "4x4", [], {}, [1], {"x": 1}]


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Paths of everything inside plain data."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, inner in pairs for found in ((*path, key), *places(inner, (*path, key)))]


def test_whatever_stands_in_a_field_is_valid_or_a_clear_error(data: Data) -> None:
    draw, errors = random.Random(0), 0
    for path in places(data):
        edited = copy.deepcopy(data)
        inner: Any = edited
        for part in path[:-1]:
            inner = inner[part]
        value = draw.choice(ODD)
        inner[path[-1]] = copy.deepcopy(value)
        try:
            schedule = Schedule.from_data(edited, source="s.json")
        except InputError as error:
            errors += 1
            text = str(error)
            assert text.startswith("s.json: "), (path, value)
            assert error.path
            assert "\n" not in text
        else:
            describe(schedule)
    assert errors > 150
