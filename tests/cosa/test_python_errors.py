"""What Python gets wrong ends as what a file gets wrong: one clear error that says what is allowed."""

from __future__ import annotations

import inspect
import io
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cosa
import nocsim
from cosa.common.errors import InputError
from cosa.mappers.program import ProgramOptions
from cosa.model.arch import Architecture
from cosa.model.layer import Layer

ONES = {"R": 1, "S": 1, "P": 1, "Q": 1, "C": 1, "K": 1, "N": 1}
LAYER = Layer(name="small", R=1, S=1, P=4, Q=4, C=4, K=4, N=1)


def test_a_model_made_in_python_says_what_a_file_says(tmp_path: Path) -> None:
    for change in ({"P": 0}, {"P": True}, {"P": 1.5}, {"strid_w": 2}, {"word_bits": {"inputs": 0}}):
        with pytest.raises(InputError) as of_python:
            Layer(**ONES | change)
        with pytest.raises(InputError) as of_data:
            Layer.from_data(ONES | change, "Layer")
        assert str(of_python.value) == str(of_data.value)
    with pytest.raises(InputError, match=r"^ProgramOptions: gap: not valid .found -1."):
        ProgramOptions(gap=-1)
    with pytest.raises(InputError, match=r"^Architecture: levels: missing"):
        Architecture(name="no levels")  # type: ignore[call-arg]


def test_numbers_of_numpy_are_numbers() -> None:
    layer = Layer(**{name: np.int64(bound) for name, bound in ONES.items()})
    assert layer == Layer(**ONES)
    assert type(layer.K) is int
    assert layer.to_json() == Layer(**ONES).to_json()
    assert ProgramOptions(gap=np.float32(0.5)).gap == 0.5
    assert LAYER.with_(K=np.int32(8)).K == 8


@pytest.mark.parametrize("wrong", [5, None, 1.5, [1]])
@pytest.mark.parametrize("call", [cosa.schedule, cosa.evaluate, cosa.breakdown, nocsim.simulate])
def test_what_is_no_layer_or_schedule(call: Any, wrong: Any) -> None:
    with pytest.raises(InputError, match=r"not a (layer|schedule) .found .*; allowed: a (Layer|Schedule), its data, "):
        call(wrong)


def test_data_is_read_where_a_model_is() -> None:
    schedule = cosa.schedule(LAYER.model_dump(mode="json"), "simba_4x4", "published")
    assert schedule.layer == LAYER
    assert cosa.evaluate(schedule.model_dump(mode="json")) == cosa.evaluate(schedule)
    with pytest.raises(InputError, match=r"^layer: S: missing"):
        cosa.schedule({"R": 1})
    with pytest.raises(InputError, match=r"architecture: not an architecture .found 3."):
        cosa.schedule(LAYER, 3)  # type: ignore[arg-type]


def test_a_copy_that_is_not_valid_leads_nowhere() -> None:
    """`model_copy` checks nothing; `with_` does, and so do the entrances."""
    simba = cosa.load_architecture("simba_4x4")
    buffer = simba.levels[4].model_copy(update={"capacity_words": -1})
    levels = (*simba.levels[:4], buffer, *simba.levels[5:])
    noc = simba.noc.model_copy(update={"flit_bits": 0}) if simba.noc else None
    for changes in ({"levels": levels}, {"levels": simba.levels[:1]}, {"noc": noc}, {"clock_ghz": -1.0}):
        with pytest.raises(InputError, match=r"^Architecture: "):
            cosa.schedule(LAYER, simba.model_copy(update=changes))
    with pytest.raises(InputError, match=r"^Layer: K: not valid .found 0."):
        cosa.schedule(LAYER.model_copy(update={"K": 0}))
    with pytest.raises(InputError, match=r"^Layer: K: not valid .found 0."):
        LAYER.with_(K=0)
    schedule = cosa.schedule(LAYER, simba, "published")
    for changes in ({"nest": schedule.nest[:2]}, {"architecture": simba.model_copy(update={"noc": noc})}):
        for call in (nocsim.simulate, cosa.evaluate):
            with pytest.raises(InputError, match=r"^Schedule: "):
                call(schedule.model_copy(update=changes))
    assert simba.with_(name="mine").name == "mine"


def test_the_package_shows_functions() -> None:
    assert inspect.isfunction(cosa.schedule)
    shown = io.StringIO()
    with redirect_stdout(shown):
        help(cosa.schedule)
    assert "A schedule of a layer on an architecture" in shown.getvalue()
    assert "_task" not in shown.getvalue()


@pytest.mark.parametrize("objective", ["latency", "energy", "edp"])
@pytest.mark.parametrize("architecture", ["simba_4x4", "cosa2021", "eyeriss_like", "gpu_k80"])
@pytest.mark.parametrize("options", [{}, {"model": "analytical"}], ids=str)
def test_the_smallest_layer_is_scheduled(
    architecture: str, objective: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One MAC: expressions of the program are constants. Also where the space is not looked at whole."""
    for few in (20_000, 0):
        monkeypatch.setattr("cosa.mappers.certified.FEW_NESTS", few)
        made = cosa.schedule(Layer(**ONES), architecture, objective=objective, **options).provenance
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
