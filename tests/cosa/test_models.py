"""Models made in Python: the same checks and errors as from a file, copies with changes, entrances that check anew."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest

import cosa
import nocsim
from cosa.common.errors import CosaError, InputError
from cosa.common.files import Model
from cosa.mappers.program import ProgramOptions
from cosa.model.arch import Level, Machine
from cosa.model.constraints import Constraints
from cosa.model.schedule import Loop, ScheduleLevel

BOUNDS = {"R": 3, "S": 3, "P": 4, "Q": 4, "C": 8, "K": 16, "N": 1}
ARCHITECTURE = cosa.load_architecture("simba_4x4")


@pytest.fixture(scope="module")
def schedule() -> cosa.Schedule:
    return cosa.schedule(cosa.Layer(**BOUNDS), ARCHITECTURE, "random", seed=1)


@pytest.mark.parametrize(
    "changes",
    [
        {"K": 0},
        {"K": -1, "C": "8"},
        {"K": 2.5},
        {"K": True},
        {"K": None},
        {"K": float("nan")},
        {"K": 10**5000},
        {"k": 3},
        {"kind": "architecture"},
        {"word_bits": {"input": 8}},
        {"word_bits": {"inputs": 0}},
        {"word_bits": 8},
        {"notes": [1]},
        {"notes": {"a"}},
        {"name": "\ud800"},
        {"R": 2**24, "S": 2**24, "P": 2**24},
    ],
)
def test_a_mistake_has_one_text(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError) as in_file:
        cosa.Layer.from_data(BOUNDS | changes, "Layer")
    with pytest.raises(InputError) as in_python:
        cosa.Layer(**BOUNDS | changes)
    with pytest.raises(InputError) as in_copy:
        cosa.Layer(**BOUNDS).with_(**changes)
    with pytest.raises(InputError) as as_argument:
        cosa.schedule(BOUNDS | changes)
    assert str(in_python.value) == str(in_file.value) == str(in_copy.value)
    assert str(as_argument.value) == "layer" + str(in_file.value).removeprefix("Layer")
    assert str(in_python.value).startswith("Layer: ")


def test_the_field_is_named_at_any_depth() -> None:
    data = ARCHITECTURE.model_dump()
    data["levels"][2]["capacity_words"] = -5
    with pytest.raises(
        InputError, match=r"^Architecture: levels\[2\]\.capacity_words: .*found -5.*from 0 to 2147483648"
    ):
        cosa.Architecture(**data)
    with pytest.raises(InputError, match=r"^Loop: axis: does not suit a spatial loop \(found None\); allowed: x, y"):
        Loop(dim="K", bound=2, kind="spatial")
    with pytest.raises(InputError, match=r"^Schedule: layer: missing \[and 5 more\]"):
        cosa.Schedule()
    with pytest.raises(InputError, match=r"^ProgramOptions: gap: not valid .found -1."):
        ProgramOptions(gap=-1)


def test_what_a_file_may_hold_is_taken_in_python() -> None:
    level = ARCHITECTURE.levels[0]
    mixed = [level, *(each.model_dump(mode="json") for each in ARCHITECTURE.levels[1:])]
    made = cosa.Architecture(**ARCHITECTURE.model_dump() | {"levels": mixed})
    assert made == ARCHITECTURE and made.content_hash == ARCHITECTURE.content_hash
    assert isinstance(made.levels, tuple) and isinstance(made.levels[1], Level)


def test_numbers_of_numpy_become_plain_ones() -> None:
    plain = cosa.Layer(**BOUNDS)
    layer = cosa.Layer(**{name: np.array([bound], np.uint16)[0] for name, bound in BOUNDS.items()})
    assert layer == plain and layer.to_json() == plain.to_json() and type(layer.K) is int
    assert cosa.Layer.from_data({name: np.int64(bound) for name, bound in BOUNDS.items()}) == plain
    for clock in (np.float64(1.5), np.float32(1.5)):
        made = ARCHITECTURE.with_(clock_ghz=clock)
        assert type(made.clock_ghz) is float
        assert made.content_hash == ARCHITECTURE.with_(clock_ghz=1.5).content_hash
    assert ProgramOptions(gap=np.float32(0.5)).gap == 0.5
    for wrong in (np.bool_(True), np.float64(16.0), np.array([16, 16])):
        with pytest.raises(InputError, match=r"^Layer: K: not valid"):
            plain.with_(K=wrong)


def test_copies_with_changes() -> None:
    chip = ARCHITECTURE
    assert chip.content_hash  # computed, and not handed on
    tree = chip.with_(name="tree", machine={"reduction": "tree"})
    assert (tree.name, tree.machine.reduction) == ("tree", "tree")
    assert tree.machine.with_(reduction="chain") == chip.machine and tree.content_hash != chip.content_hash
    assert chip.with_(machine=Machine(halo_reuse=False)).machine == Machine(halo_reuse=False)
    assert chip.with_() == chip and chip.with_(dram=None).dram is None
    with pytest.raises(InputError, match=r"machine\.reduction: .*found 'ring'.*'chain' or 'tree'"):
        chip.with_(machine={"reduction": "ring"})
    with pytest.raises(InputError, match=r"machne: unknown key.*did you mean machine\?"):
        chip.with_(machne={"reduction": "tree"})
    with pytest.raises(InputError, match="global_buffer_ports"):
        chip.with_(noc={"global_buffer_ports": [{"router": [9, 9]}]})


def test_a_copy_knows_its_file(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("kind: constraints\n")
    found = Constraints.from_file(path)
    assert found.with_(description="x").source == found.checked().source == str(path)


WRONG: dict[str, Callable[[Any], object]] = {
    "schedule layer": lambda value: cosa.schedule(value),
    "schedule architecture": lambda value: cosa.schedule(BOUNDS, value),
    "schedule_pool": lambda value: cosa.schedule_pool(value, count=2),
    "schedule_front": lambda value: cosa.schedule_front(value),
    "evaluate": lambda value: cosa.evaluate(value),
    "breakdown": lambda value: cosa.breakdown(value),
    "simulate": lambda value: nocsim.simulate(value),
    "portfolio": lambda value: nocsim.portfolio(value),
    "load_network": lambda value: cosa.load_network(value),
    "Schedule.from_file": lambda value: cosa.Schedule.from_file(value),
    "Layer.from_file": lambda value: cosa.Layer.from_file(value),
    "Layer.from_data": lambda value: cosa.Layer.from_data(value),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=list(WRONG))
@pytest.mark.parametrize(
    "value", [5, None, 2.5, True, b"x", [], object(), {}, {"a": 1}], ids=lambda value: repr(value)[:8]
)
def test_other_things_are_refused(call: Callable[[Any], object], value: Any) -> None:
    with pytest.raises(InputError) as caught:
        call(value)
    assert "\n" not in str(caught.value)


def test_what_is_allowed_is_said(schedule: cosa.Schedule) -> None:
    with pytest.raises(
        InputError,
        match=r"^layer: not a layer \(found 5\); allowed: a Layer, its data, network:layer, or the path of its file",
    ):
        cosa.schedule(5)
    with pytest.raises(
        InputError,
        match=r"^schedule: not a schedule \(found None\); allowed: a Schedule, its data, or the path of its file",
    ):
        nocsim.simulate(None)
    with pytest.raises(InputError, match=r"architecture: not an architecture \(found 3\)"):
        cosa.schedule(BOUNDS, 3)
    with pytest.raises(InputError, match=r"not a mesh \(found 4\)"):
        nocsim.simulate(schedule, mesh=4)


def test_mappings_are_as_good_as_models(schedule: cosa.Schedule) -> None:
    data = json.loads(schedule.to_json())
    assert cosa.evaluate(data) == cosa.evaluate(schedule)
    again = cosa.schedule(BOUNDS, ARCHITECTURE.model_dump(), "random", seed=1)
    assert again.content_hash == schedule.content_hash


def copied(model: Model, **changes: Any) -> Any:
    """A copy that nobody checked."""
    return model.model_copy(update=changes)


def levels_with(number: int, **changes: Any) -> dict[str, Any]:
    levels = list(ARCHITECTURE.levels)
    levels[number] = copied(levels[number], **changes)
    return {"levels": tuple(levels)}


UNCHECKED = {
    "negative capacity": (levels_with(1, capacity_words=-1), r"levels\[1\]\.capacity_words"),
    "fan-out of nothing": (levels_with(0, fanout=0), r"levels\[0\]\.fanout"),
    "no mesh at any level": (levels_with(ARCHITECTURE.mesh_level, fanout=16), "levels: exactly one level"),
    "two meshes": (levels_with(0, fanout="mesh"), "levels: exactly one level"),
    "a mesh of 0": ({"noc": copied(ARCHITECTURE.require_noc(), mesh="0x4")}, r"noc\.mesh"),
    "packets of nothing": ({"noc": copied(ARCHITECTURE.require_noc(), packet_payload_flits=0)}, "packet_payload_flits"),
    "FIFOs too small": ({"noc": copied(ARCHITECTURE.require_noc(), fifo_flits=1)}, r"noc\.fifo_flits"),
    "reads": ({"machine": copied(ARCHITECTURE.machine, reads_in_flight=0)}, r"machine\.reads_in_flight"),
    "a clock of 0": ({"clock_ghz": 0.0}, "clock_ghz"),
    "no levels": ({"levels": ()}, "levels"),
    "a level that is none": ({"levels": (object(),)}, "levels"),
}


@pytest.mark.parametrize(("changes", "path"), UNCHECKED.values(), ids=list(UNCHECKED))
def test_an_unchecked_architecture_leads_nowhere(changes: dict[str, Any], path: str, schedule: cosa.Schedule) -> None:
    wrong = copied(ARCHITECTURE, **changes)
    carried = copied(schedule, architecture=wrong)
    started = perf_counter()
    calls: list[Callable[[], object]] = [
        lambda: cosa.schedule(schedule.layer, wrong),
        lambda: cosa.schedule_front(schedule.layer, wrong),
        lambda: cosa.evaluate(carried),
        lambda: nocsim.simulate(carried),
        lambda: nocsim.simulate(schedule, architecture=wrong),
    ]
    for call in calls:
        with pytest.raises(InputError, match=path):
            call()
    assert perf_counter() - started < 10


def test_unchecked_layers_and_schedules_lead_nowhere(schedule: cosa.Schedule) -> None:
    layer, other = schedule.layer, cosa.schedule(cosa.Layer(**BOUNDS | {"K": 8}), ARCHITECTURE, "random", seed=1)
    for name, value in (("K", 0), ("C", -3), ("stride_w", 0), ("P", 2.0), ("name", ""), ("word_bits", None)):
        wrong = copied(layer, **{name: value})
        with pytest.raises(InputError, match=rf"^Layer: {name}: "):
            cosa.schedule(wrong)
        with pytest.raises(InputError, match=rf"^Schedule: layer\.{name}: "):
            nocsim.simulate(copied(schedule, layer=wrong))
    renamed = (copied(schedule.nest[0], level="Attic"), *schedule.nest[1:])
    endless = (copied(schedule.nest[0], loops=(copied(Loop(dim="K", bound=2), bound=0),)), *schedule.nest[1:])
    empty = ScheduleLevel.model_construct(level=schedule.nest[0].level)
    for nest in (
        other.nest,
        renamed,
        endless,
        schedule.nest[:-1],
        schedule.nest[::-1],
        (),
        (empty, *schedule.nest[1:]),
    ):
        wrong = copied(schedule, nest=nest)
        for call in (cosa.evaluate, cosa.breakdown, nocsim.simulate):
            with pytest.raises(InputError, match=r"^Schedule: nest"):
                call(wrong)
    with pytest.raises(InputError, match="architecture_hash"):
        nocsim.simulate(copied(schedule, architecture=ARCHITECTURE.with_(clock_ghz=2.0)))
    with pytest.raises(CosaError):
        nocsim.simulate(cosa.Schedule.model_construct())


def test_numbers_that_only_a_copy_holds_are_made_plain(schedule: cosa.Schedule) -> None:
    layer = copied(schedule.layer, K=np.int64(16))
    assert cosa.schedule(layer, ARCHITECTURE, "random", seed=1).to_json().count('"K": 16') == 1


def test_checking_anew_is_cheap(schedule: cosa.Schedule) -> None:
    """It is a few tenths of a millisecond; the limit leaves room for a busy machine."""
    times = []
    for _ in range(20):
        started = perf_counter()
        assert schedule.checked() == schedule
        times.append(perf_counter() - started)
    assert min(times) < 0.002


def test_help_is_about_the_function() -> None:
    import pydoc

    text = pydoc.plain(pydoc.render_doc(cosa.schedule))
    assert text.startswith("Python Library Documentation: function schedule in module cosa.api\n\nschedule(layer")
    assert (
        "A schedule of a layer on an architecture." in text and "InfeasibleError" in text and "__getattr__" not in text
    )
    whole = pydoc.plain(pydoc.render_doc(cosa))
    assert "Schedules for spatial DNN accelerators" in whole and "FILE" in whole
    assert "schedule(layer: " in whole


@pytest.mark.parametrize("objective", ["latency", "energy", "edp"])
@pytest.mark.parametrize("architecture", ["simba_4x4", "cosa2021", "eyeriss_like", "gpu_k80"])
@pytest.mark.parametrize("options", [{}, {"model": "analytical"}], ids=str)
def test_the_smallest_layer_is_scheduled(
    architecture: str, objective: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One MAC: expressions of the program are constants. Also where the space is not looked at whole."""
    one_mac = cosa.Layer(**dict.fromkeys(BOUNDS, 1))
    for few in (20_000, 0):
        monkeypatch.setattr("cosa.mappers.certified.FEW_NESTS", few)
        made = cosa.schedule(one_mac, architecture, objective=objective, **options).provenance
        assert made.bound is not None and made.objective_value is not None
        assert made.bound <= made.objective_value * (1 + 1e-9)


def test_types_reach_those_who_import_the_packages(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    file = tmp_path / "user.py"
    file.write_text(
        "import cosa, nocsim, dram\n"
        "reveal_type(cosa.schedule('a'))\nreveal_type(nocsim.simulate('a'))\nreveal_type(dram.DramSystem)\n"
    )
    command = [sys.executable, "-m", "mypy", "--no-incremental", "--follow-imports=silent", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    for kind in ("Schedule", "Result", "DramSystem"):
        assert kind in done.stdout, done.stdout
    assert '"Any"' not in done.stdout
