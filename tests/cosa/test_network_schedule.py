"""Schedules of a whole network: those of single layers, kept, written as they come, for any number of workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import cosa
from cosa.commands.main import main
from cosa.common.errors import CosaError, InputError
from cosa.common.files import file_stems
from cosa.experiments import pipeline
from cosa.experiments.network import SUMMARY, NetworkSchedules, schedule_network
from cosa.experiments.pipeline import FIGURES, Outcome, Point
from cosa.mappers.program import ProgramOptions
from cosa.mappers.published import PublishedOptions
from cosa.mappers.registry import MapperOptions, options_of
from cosa.model.arch import Architecture
from cosa.model.networks import Network, NetworkLayer
from cosa.model.schedule import Schedule

SIMBA = cosa.load_architecture("simba_4x4")
QUICK = PublishedOptions()
"""Solved in a fraction of a second a layer."""


@pytest.fixture(scope="module")
def small() -> Network:
    """Three small fully connected layers of DLRM, one of which occurs twice."""
    return Network("small", cosa.load_network("dlrm").layers[:3])


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    def scheduled(_: Point) -> Outcome:
        raise AssertionError("scheduled again")

    monkeypatch.setattr(Point, "run", scheduled)


def test_schedules_are_those_of_single_layers(small: Network, tmp_path: Path) -> None:
    result = schedule_network(small, SIMBA, QUICK, folder=tmp_path / "a" / "b")
    assert result.complete
    assert [row["layer"] for row in result.rows] == [entry.layer.name for entry in small.layers]
    for row, layer in zip(result.rows, small.layers, strict=True):
        single = cosa.schedule(layer.layer, mapper=QUICK)
        written = Schedule.from_file(tmp_path / "a" / "b" / row["file"])
        assert written.model_copy(update={"timing": None}) == single.model_copy(update={"timing": None})
        assert (row["count"], row["timeloop_cycles"]) == (layer.count, cosa.evaluate(single).cycles)
        assert row["analytical_cycles"] == row["latency_cycles"] == cosa.evaluate(single, "exact").cycles
        made = single.provenance
        assert (row["mapper"], row["objective"], row["model"], row["seed"]) == ("published", "cosa", None, 0)
        assert (row["objective_value"], row["bound"], row["gap"]) == (made.objective_value, made.bound, made.gap)
    totals = result.totals(FIGURES)
    assert totals["macs"] == small.macs
    assert totals["timeloop_cycles"] == sum(row["timeloop_cycles"] * row["count"] for row in result.rows)
    assert NetworkSchedules.from_file(tmp_path / "a" / "b" / SUMMARY) == result


def test_any_number_of_workers_gives_the_same_bytes(small: Network, tmp_path: Path) -> None:
    for workers in (1, 2):
        schedule_network(small, SIMBA, QUICK, workers=workers, folder=tmp_path / str(workers), timing=False)
    files = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert len(files) == 4
    for name in files:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


@pytest.fixture
def cached(small: Network, tmp_path: Path) -> NetworkSchedules:
    return schedule_network(small, SIMBA, QUICK, cache=tmp_path / "cache")


@pytest.mark.usefixtures("never")
def test_a_second_run_reads_the_cache(small: Network, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="again"):
        schedule_network(small, SIMBA, QUICK, cache=tmp_path / "cache")


def test_a_layer_of_another_name_is_read_back_under_its_own(
    small: Network, cached: NetworkSchedules, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("never")
    other = small.layers[0].layer.model_copy(update={"name": "other"})
    network = Network("other", (NetworkLayer(other, 3), *small.layers[1:]))
    result = schedule_network(network, SIMBA, QUICK, cache=tmp_path / "cache", folder=tmp_path / "out")
    assert [row["schedule_hash"] for row in result.rows] == [row["schedule_hash"] for row in cached.rows]
    assert Schedule.from_file(tmp_path / "out" / "other.json").layer.name == "other"


@pytest.mark.parametrize(
    "options", [PublishedOptions(as_published=True), options_of("random", {"samples": 2}), ProgramOptions(rounds=1)]
)
@pytest.mark.usefixtures("cached")
def test_other_options_are_not_read_back(
    small: Network, tmp_path: Path, options: MapperOptions, request: pytest.FixtureRequest
) -> None:
    before = len(list((tmp_path / "cache").iterdir()))
    result = schedule_network(small, SIMBA, options, cache=tmp_path / "cache")
    assert [row["mapper"] for row in result.rows] == [options.mapper] * 3
    assert len(list((tmp_path / "cache").iterdir())) == before + 3
    request.getfixturevalue("never")
    assert schedule_network(small, SIMBA, options, cache=tmp_path / "cache") == result


def test_what_time_cut_off_is_not_kept(small: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = pipeline.candidates

    def cut_off(*arguments: Any) -> list[Schedule]:
        (found,) = real(*arguments)
        provenance = found.provenance.model_copy(update={"solver_status": "time_limit"})
        return [found.model_copy(update={"provenance": provenance})]

    monkeypatch.setattr(pipeline, "candidates", cut_off)
    rows = schedule_network(small, SIMBA, QUICK, cache=tmp_path / "cache").rows
    assert [row["stopped_by"] for row in rows] == ["time"] * 3
    assert not (tmp_path / "cache").exists()


def test_ctrl_c_keeps_what_is_done(small: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = pipeline.candidates, []

    def interrupted(*arguments: Any) -> list[Schedule]:
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(pipeline, "candidates", interrupted)
    result = schedule_network(small, SIMBA, QUICK, folder=tmp_path / "out", cache=tmp_path / "cache")
    assert (result.complete, len(result.rows)) == (False, 1)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["72.json", SUMMARY]
    assert len(list((tmp_path / "cache").iterdir())) == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_names_the_layer(small: Network, workers: int) -> None:
    data = SIMBA.model_dump(mode="json")
    data["levels"][4]["capacity_words"] = 1
    with pytest.raises(
        CosaError, match="small 72: .*GlobalBuffer" if workers == 1 else "small .*GlobalBuffer"
    ) as caught:
        schedule_network(small, Architecture.from_data(data), QUICK, workers=workers)
    assert caught.value.exit_code == 1


def test_a_folder_that_is_a_file(small: Network, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(InputError, match="cannot be made a folder"):
        schedule_network(small, SIMBA, QUICK, folder=tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == "mine"


def test_file_stems() -> None:
    names = ["a", "A", "a/b", "summary", "..", "a_b"]
    assert file_stems(names, taken=("summary",)) == ["a", "A_2", "a_b", "summary_2", "layer", "a_b_2"]


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["schedule", "--network", "dlrm", "--cache", str(tmp_path / "cache"), "-o", str(tmp_path / "out")]
    assert main([*command, "--objective", "traffic", "--weights", _weights(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert (err, max(map(len, out.splitlines()[:-1])) <= 80) == ("", True)
    data = json.loads((tmp_path / "out" / SUMMARY).read_text())
    assert data["complete"] and {row["objective"] for row in data["rows"]} == {"traffic"}
    assert out.startswith("dlrm on simba_4x4, by published, objective traffic, seed 0, gaps up to 0.0")
    for row in data["rows"]:
        made = Schedule.from_file(tmp_path / "out" / row["file"]).provenance
        assert made.objective == "traffic"
        assert any("compute 3" in note for note in made.notes)


def _weights(folder: Path) -> str:
    (folder / "w.yaml").write_text("compute: 3\n")
    return str(folder / "w.yaml")


def test_some_layers_of_a_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["schedule", "--network", "dlrm", "--layer", "213, 72", "--mapper", "published", "-o", str(tmp_path)]
    assert main([*command, "--cache", "none"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[3:6]] == ["213", "72", "whole"]
    assert {path.name for path in tmp_path.iterdir()} == {"213.json", "72.json", SUMMARY}
    assert main([*command[:4], "72,72"]) == 2
    assert "named twice" in capsys.readouterr().err
