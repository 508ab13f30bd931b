"""Padded bounds: the machine computes the padded layer, MACs and utilisation stay those of the layer asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cosa
from cosa.commands.main import main
from cosa.commands.show import describe
from cosa.common.errors import InputError
from cosa.model.arch import load_architecture
from cosa.model.layer import Layer
from cosa.model.schedule import Schedule

BIG = Layer(name="small", R=3, S=3, P=8, Q=7, C=8, K=12, N=1, stride_w=2)
SMALL = BIG.model_copy(update={"P": 7, "K": 11})


@pytest.fixture(scope="module")
def big() -> Schedule:
    return cosa.schedule(BIG, "simba_4x4", objective="cosa", time_limit_seconds=20)


@pytest.fixture
def small(big: Schedule) -> Schedule:
    """The same nest for a layer that needs less."""
    return Schedule.make(SMALL, big.architecture, big.nest, big.provenance, padded={"P": 8, "K": 12})


def refused(schedule: Schedule, change: Callable[[dict[str, Any]], object]) -> InputError:
    data = schedule.model_dump(mode="json")
    change(data)
    with pytest.raises(InputError) as caught:
        Schedule.from_data(data, source="s.json")
    return caught.value


def test_the_padded_layer_is_what_the_machine_computes(small: Schedule) -> None:
    assert small.padded_layer == BIG
    assert small.layer.macs == 3 * 3 * 7 * 7 * 8 * 11
    assert small.padding_macs == BIG.macs - SMALL.macs


@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_it_stands_in_the_file_and_in_the_hash(big: Schedule, small: Schedule, tmp_path: Path, ending: str) -> None:
    small.save(tmp_path / f"s.{ending}")
    again = Schedule.from_file(tmp_path / f"s.{ending}")
    assert again == small
    assert again.content_hash == small.content_hash != big.content_hash
    assert small.with_architecture(load_architecture("cosa2021")).padded == small.padded


def test_without_it_the_nest_does_not_multiply_up(small: Schedule) -> None:
    error = refused(small, lambda data: data["padded"].pop("K"))
    assert (error.path, error.value, error.allowed) == ("nest", 12, "11, the layer's bound")
    error = refused(small, lambda data: data["padded"].update(K=13))
    assert (error.path, error.value, error.allowed) == ("nest", 12, "13, the padded bound")


@pytest.mark.parametrize(
    ("padded", "path"), [({"P": 7}, "padded.P"), ({"P": 6}, "padded.P"), ({"X": 8}, "padded.X"), ({"P": 0}, "padded.P")]
)
def test_padding_that_is_none(small: Schedule, padded: dict[str, int], path: str) -> None:
    assert refused(small, lambda data: data.update(padded=padded)).path == path


def test_padding_beyond_what_counters_hold(small: Schedule) -> None:
    error = refused(small, lambda data: data.update(padded={"P": 2**24, "Q": 2**24, "K": 2**24}))
    assert error.path == "padded"


@pytest.mark.parametrize("convention", ["timeloop", "exact"])
def test_evaluation_is_that_of_the_padded_layer_but_for_macs(big: Schedule, small: Schedule, convention: Any) -> None:
    of_big, of_small = cosa.evaluate(big, convention), cosa.evaluate(small, convention)
    assert of_small.levels == of_big.levels
    assert (of_small.cycles, of_small.energy_pj) == (of_big.cycles, of_big.energy_pj)
    assert (of_small.macs, of_small.padding_macs) == (SMALL.macs, BIG.macs - SMALL.macs)
    assert of_big.padding_macs == 0
    share = SMALL.macs / BIG.macs
    assert of_small.utilisation == pytest.approx(of_big.utilisation * share)
    assert of_small.roofline.attained_macs_per_cycle == pytest.approx(of_big.roofline.attained_macs_per_cycle * share)


def test_show_and_evaluate_say_it(small: Schedule, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "s.json")
    small.save(file)
    line = "P 7 to 8, K 11 to 12: 9,576 more MACs (24.7%)"
    for command in (["show", file], ["evaluate", file]):
        assert main(command) == 0
        assert line in " ".join(capsys.readouterr().out.split())
    view = describe(small)
    assert view["totals"]["padding_macs"] == 9576
    assert view["totals"]["utilisation"] < describe(small.model_copy(update={"layer": BIG}))["totals"]["utilisation"]


def test_a_timeloop_problem_is_padded_as_the_mapping_is(
    small: Schedule, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "s.json")
    small.save(file)
    assert main(["convert", "--to", "timeloop-problem", file]) == 0
    out, notes = capsys.readouterr()
    assert "P: 8" in out
    assert "K: 12" in out
    assert "padded" in notes
    assert main(["convert", "--to", "layer", file]) == 0
    assert "P: 7" in capsys.readouterr().out
