"""Writing Timeloop files and reading them back; nests of every source as schedules; what cannot be represented."""

from __future__ import annotations

import json
import random
from math import prod
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosa.analytical.footprint import box_words
from cosa.common.errors import InputError
from cosa.interop.convert import converted, read_inputs
from cosa.interop.nests import mapping_nest
from cosa.interop.nouns import architecture_of, schedule_of
from cosa.interop.places import Where
from cosa.interop.problems import CNN_LAYER
from cosa.interop.roles import layer_of
from cosa.interop.timeloop_files import all_constraints, parse_timeloop
from cosa.interop.timeloop_writer import mapping_text, problem_text
from cosa.model.arch import Architecture
from cosa.model.layer import TENSORS, Layer
from cosa.model.schedule import Provenance, Schedule, ScheduleLevel
from cosa.model.validity import extents

SAMPLES = Path(__file__).parent.parent / "data" / "timeloop_files"
ENDTOEND = Path(__file__).parent.parent / "data" / "endtoend" / "mappings"
DIMS = "RSPQCKN"


def machine(fanouts: list[tuple[int, int]], keeps: list[list[str]]) -> Architecture:
    """An architecture with these fan-outs, innermost level first; the outermost keeps everything."""
    levels: list[dict[str, Any]] = [
        {"name": f"L{number}", "keeps": keep, "capacity_words": 2**20, "fanout": {"x": x, "y": y}}
        for number, ((x, y), keep) in enumerate(zip(fanouts, keeps, strict=True))
    ]
    levels[-1] |= {"capacity_words": None, "keeps": list(TENSORS)}
    return Architecture.from_data({"name": "machine", "levels": levels})


def made(layer: Layer, architecture: Architecture, nest: list[dict[str, Any]]) -> Schedule:
    levels = tuple(ScheduleLevel.model_validate_json(json.dumps(level)) for level in nest)
    return Schedule.make(layer, architecture, levels, Provenance(mapper="test", version="1"))


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Any loops at any level: each dimension at most once in a block, y outside of x, unit loops anywhere."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    count = draw(st.integers(2, 6))
    keeps = [chance.sample(TENSORS, chance.randint(1, 3)) for _ in range(count)]
    architecture = machine(
        [(chance.randint(1, 4), chance.randint(1, 4)) for _ in range(count)], [list(k) for k in keeps]
    )
    nest: list[dict[str, Any]] = []
    for level in architecture.levels[::-1]:
        temporal = chance.sample(DIMS, chance.randint(0, 7))
        spatial = chance.sample(DIMS, chance.randint(0, 4))
        along_y = chance.randint(0, len(spatial))
        loops: list[dict[str, Any]] = [{"dim": dim, "bound": chance.randint(1, 4)} for dim in temporal]
        for place, dim in enumerate(spatial):
            axis = "y" if place < along_y else "x"
            loops.append({"dim": dim, "bound": chance.randint(1, 3), "kind": "spatial", "axis": axis})
        kept = [tensor for tensor in TENSORS if tensor in level.keeps and (not nest or chance.random() < 0.7)]
        nest.append({"level": level.name, "keeps": kept, "loops": loops})
    bounds = {
        dim: prod(loop["bound"] for level in nest for loop in level["loops"] if loop["dim"] == dim) for dim in DIMS
    }
    numbers = {name: chance.randint(1, 3) for name in ("stride_w", "stride_h", "dilation_w", "dilation_h")}
    layer = Layer.from_data({"name": "any", **bounds, **numbers})
    for level, entry in zip(nest, architecture.levels[::-1], strict=True):
        if level is nest[0]:
            level["keeps"] = list(entry.keeps)
    return made(layer, architecture, nest)


def without_unit_loops(schedule: Schedule) -> list[tuple[str, set[str], list[tuple[str, int, str | None]]]]:
    return [
        (level.level, set(level.keeps), [(loop.dim, loop.bound, loop.axis) for loop in level.loops if loop.bound > 1])
        for level in schedule.nest
    ]


def back(schedule: Schedule, text: str, problem: str) -> Schedule:
    """The mapping read again with the problem read again, on the same architecture."""
    file = parse_timeloop(problem + text, "both.yaml")
    assert file.mapping is not None
    assert file.problem is not None
    layer, roles = layer_of(file.problem, Where("both.yaml"))
    names = [level.name for level in schedule.architecture.levels][::-1]
    nest = mapping_nest(file.mapping, "both.yaml", bounds=file.problem.bounds, dims=CNN_LAYER.dimensions, order=names)
    return schedule_of(nest, layer, schedule.architecture, Where("both.yaml"), roles)


@settings(max_examples=200, deadline=None)
@given(schedule=schedules())
def test_a_mapping_keeps_every_loop_in_its_order(schedule: Schedule) -> None:
    notes: list[str] = []
    again = back(schedule, mapping_text(schedule, "s", notes), problem_text(schedule.layer, "s", notes))
    assert notes == []
    assert without_unit_loops(again) == without_unit_loops(schedule)
    assert again.layer.model_dump(exclude={"name"}) == schedule.layer.model_dump(exclude={"name"})


def test_loops_along_x_outside_of_loops_along_y_change_places_and_a_note_says_so(schedule: Schedule) -> None:
    notes: list[str] = []
    again = back(schedule, mapping_text(schedule, "s", notes), problem_text(schedule.layer, "s", []))
    assert [note.split(":")[0] for note in notes] == ["GlobalBuffer"]
    for ours, theirs in zip(schedule.nest, again.nest, strict=True):
        assert ours.temporal == theirs.temporal
        for axis in "xy":
            assert [loop for loop in ours.spatial if loop.axis == axis] == [
                loop for loop in theirs.spatial if loop.axis == axis
            ]


def test_what_is_written(schedule: Schedule) -> None:
    text = mapping_text(schedule, "s", [])
    assert (
        "- target: GlobalBuffer\n"
        "  type: spatial\n"
        "  factors: R=1 S=1 P=1 Q=2 C=2 K=4 N=1\n"
        "  permutation: KCQRSPN\n"
        "  split: 1\n"
    ) in text
    assert (
        "- target: GlobalBuffer\n  type: datatype\n  keep:\n  - Inputs\n  - Outputs\n  bypass:\n  - Weights\n" in text
    )
    assert "target: WeightBuffer\n  type: spatial" not in text  # no fan-out there, so Timeloop has no such level


@pytest.mark.parametrize(
    ("loops", "parts"),
    [
        ([{"dim": "K", "bound": 6, "kind": "spatial", "axis": "row_major"}], ["L1", "K6", "row_major"]),
        ([{"dim": "K", "bound": 2}, {"dim": "K", "bound": 3}], ["L1", "temporal loops K2, K3"]),
        (
            [
                {"dim": "K", "bound": 2, "kind": "spatial", "axis": "y"},
                {"dim": "K", "bound": 3, "kind": "spatial", "axis": "x"},
            ],
            ["L1", "spatial loops K2, K3"],
        ),
    ],
)
def test_loops_that_a_mapping_cannot_hold(loops: list[dict[str, Any]], parts: list[str]) -> None:
    architecture = machine([(1, 1), (3, 2)], [list(TENSORS)] * 2)
    layer = Layer(R=1, S=1, P=1, Q=1, C=1, K=6, N=1)
    nest = [
        {"level": "L1", "keeps": list(TENSORS), "loops": loops},
        {"level": "L0", "keeps": list(TENSORS), "loops": []},
    ]
    with pytest.raises(InputError) as caught:
        mapping_text(made(layer, architecture, nest), "s.json", [])
    for part in ("s.json", "nest[0]", *parts):
        assert part in str(caught.value)


def test_groups_cannot_be_written() -> None:
    layer = Layer(R=3, S=3, P=4, Q=4, C=2, K=2, N=1, G=8)
    with pytest.raises(InputError, match=r"layer\.G: groups cannot be written.*found 8"):
        problem_text(layer, "l.yaml", [])


# --- problems as layers ---


def layer_from(dims: str, spaces: str, instance: str, coefficients: str = "") -> Layer:
    shape = f"name: any, dimensions: [{dims}], coefficients: [{coefficients}], data_spaces: [{spaces}]"
    file = parse_timeloop(f"problem: {{shape: {{{shape}}}, instance: {{{instance}}}}}", "p.yaml")
    assert file.problem is not None
    return layer_of(file.problem, Where("p.yaml"))[0]


def numbers(layer: Layer) -> dict[str, int]:
    return {key: value for key, value in layer.model_dump().items() if isinstance(value, int) and value != 1}


CONV1D = (
    "{name: W, projection: [K, R]}, {name: I, projection: [[[R, d], [P, s]]]}, "
    "{name: O, projection: [K, P], read_write: true}"
)
GEMM = "{name: A, projection: [M, K]}, {name: B, projection: [N, K]}, {name: Z, projection: [M, N], read_write: true}"
GROUPED = (
    "{name: Weights, projection: [G, C, M, R]}, {name: Inputs, projection: [G, C, [[R], [P]]]}, "
    "{name: Outputs, projection: [G, M, P], read_write: true}"
)
SD = "{name: s, default: 2}, {name: d, default: 3}"


@pytest.mark.parametrize(
    ("dims", "spaces", "instance", "coefficients", "expected"),
    [
        ("K, R, P", CONV1D, "K: 4, R: 3, P: 9", SD, {"K": 4, "R": 3, "P": 9, "stride_w": 2, "dilation_w": 3}),
        ("M, N, K", GEMM, "M: 5, N: 6, K: 7", "", {"P": 5, "K": 6, "C": 7}),
        ("K, R, P", CONV1D.replace("[[[R, d], [P, s]]]", "[R, P]"), "K: 4, R: 3, P: 9", "", {"K": 4, "C": 3, "P": 9}),
        ("G, C, M, R, P", GROUPED, "G: 8, C: 2, M: 4, R: 3, P: 9", "", {"G": 8, "C": 2, "K": 4, "R": 3, "P": 9}),
    ],
)
def test_dimensions_by_what_they_do(dims: str, spaces: str, instance: str, coefficients: str, expected: Any) -> None:
    assert numbers(layer_from(dims, spaces, instance, coefficients)) == expected


@pytest.mark.parametrize(
    ("dims", "spaces", "instance", "part"),
    [
        ("K, R, P, X", CONV1D, "K: 4, R: 3, P: 9, X: 2", "dimension X of no tensor"),
        ("M, N, K", GEMM.split(", {name: Z")[0], "M: 5, N: 6, K: 7", "not the tensors of a layer"),
        (
            "M, N, K",
            GEMM.replace(", read_write: true", ""),
            "M: 5, N: 6, K: 7",
            "not exactly one data space is written",
        ),
        ("M, N, K, L", GEMM.replace("[N, K]", "[N, K, L]"), "M: 5, N: 6, K: 7, L: 2", "dimension L of B"),
        ("K, R, P", CONV1D.replace("[K, P]", "[K, P, P]"), "K: 4, R: 3, P: 9", "P stands twice in O"),
        (
            "K, R, P",
            CONV1D.replace("[P, s]", "[P, s], [K]"),
            "K: 4, R: 3, P: 9",
            "an axis of the inputs that no layer has",
        ),
        ("K, R, P", CONV1D.replace("[K, P]", "[[[K], [P]]]"), "K: 4, R: 3, P: 9", "an axis of O slides"),
    ],
)
def test_problems_that_are_no_layer(dims: str, spaces: str, instance: str, part: str) -> None:
    with pytest.raises(InputError) as caught:
        layer_from(dims, spaces, instance, SD)
    assert part in str(caught.value)


# --- architectures and nests as ours ---


def test_each_container_with_a_fanout_is_a_step_of_its_own() -> None:
    file = parse_timeloop((SAMPLES / "eyeriss_like_arch_v04.yaml").read_text(), "eyeriss.yaml")
    assert file.architecture is not None
    found = architecture_of(file.architecture, all_constraints(file), None, Where("eyeriss.yaml"))
    names = [level.name for level in found.levels]
    assert names == ["psum_spad", "weights_spad", "ifmap_spad", "PE", "PE_column", "shared_glb", "DRAM"]
    assert [found.fanout(level) for level in range(7)] == [(1, 1)] * 3 + [(1, 12), (14, 1), (1, 1), (1, 1)]
    assert [level.keeps for level in found.levels[:6]] == [
        ("outputs",),
        ("weights",),
        ("inputs",),
        (),
        (),
        ("inputs", "outputs"),
    ]
    assert found.macs == 168


DUMMY = """
arch:
  arithmetic: {instances: 16, meshX: 4}
  storage:
  - {name: Regs, entries: 8, instances: 16, meshX: 4}
  - {name: Dummy, entries: 0, instances: 4, meshX: 4}
  - {name: Buffer, entries: 512, instances: 1, multiple_buffering: 2}
  - {name: DRAM, technology: DRAM, instances: 1}
mapspace:
  constraints:
  - {target: Dummy, type: bypass, bypass: [Weights, Inputs, Outputs]}
problem: {R: 1, S: 1, P: 4, Q: 4, C: 4, K: 4, N: 1}
mapping:
- {target: DRAM, type: temporal, factors: P4}
- {target: Buffer, type: spatial, factors: K4, permutation: K, split: 1}
- {target: Dummy, type: spatial, factors: C4, permutation: C, split: 0}
- {target: Regs, type: temporal, factors: Q4}
"""


def inputs_of(tmp_path: Path, text: str) -> Any:
    (tmp_path / "all.yaml").write_text(text)
    return read_inputs([str(tmp_path / "all.yaml")])


@pytest.mark.parametrize("entries", [0, 8])
def test_a_memory_that_keeps_nothing_is_a_step_that_may_have_loops(tmp_path: Path, entries: int) -> None:
    text = DUMMY.replace("entries: 0", f"entries: {entries}").replace("temporal, factors: P4", "temporal, factors: P2")
    text += "- {target: Dummy, type: temporal, factors: P2}\n"
    schedule = converted(inputs_of(tmp_path, text), "schedule")
    assert isinstance(schedule, Schedule)
    assert [level.name for level in schedule.architecture.levels] == ["Regs", "Dummy", "Buffer", "DRAM"]
    assert [schedule.architecture.fanout(level) for level in (1, 2)] == [(1, 4), (4, 1)]
    assert schedule.architecture.levels[1].keeps == schedule.nest[2].keeps == ()
    assert schedule.architecture.usable_words(2) == 256
    loops = [[(loop.dim, loop.kind) for loop in entry.loops] for entry in schedule.nest]
    assert loops == [
        [("P", "temporal")],
        [("K", "spatial")],
        [("P", "temporal"), ("C", "spatial")],
        [("Q", "temporal")],
    ]


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("factors: Q4", "factors: 'Q=4,3'", "Regs: a residue"),
        ("multiple_buffering: 2", "multiple_buffering: 3", "Buffer: multiple_buffering"),
        ("factors: P4", "factors: P2", "over P multiply up wrongly"),
        ("bypass: [Weights, Inputs, Outputs]", "bypass: [Weights, Things]", "not a tensor of the problem"),
    ],
)
def test_what_our_nouns_cannot_hold(tmp_path: Path, old: str, new: str, part: str) -> None:
    with pytest.raises(InputError) as caught:
        converted(inputs_of(tmp_path, DUMMY.replace(old, new)), "schedule")
    assert part in str(caught.value)


@pytest.mark.parametrize("path", sorted(ENDTOEND.glob("*.json")), ids=lambda path: path.stem)
def test_published_runs_give_schedules_with_their_tiles(path: Path) -> None:
    data = json.loads(path.read_text())
    if "mapping_levels_outer_to_inner" not in data:
        pytest.skip("not a run")
    inputs = read_inputs([str(path)], "simba_4x4")
    schedule = converted(inputs, "schedule")
    assert isinstance(schedule, Schedule)
    for number, level in enumerate(data["mapping_levels_outer_to_inner"]):
        inside = extents(schedule.nest[number:])
        for tensor in schedule.nest[number].keeps:
            assert box_words(schedule.layer, tensor, inside) == level["tile_words"][tensor]
