"""Whole networks: totals, workers, cache, errors."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cosa
import nocsim
from cosa.common.errors import CosaError
from cosa.experiments import pipeline
from cosa.experiments.pipeline import Outcome, point_key
from cosa.mappers.published import PublishedOptions
from cosa.model.arch import Architecture
from cosa.model.networks import Network
from nocsim.commands.main import main
from nocsim.commands.whole_network import text
from nocsim.experiments.network import NetworkResult, run_network
from nocsim.experiments.pipeline import FIGURES, SimulatedPoint
from nocsim.machine.conductor import Conductor
from nocsim.options import RunOptions

OPTIONS = PublishedOptions()
"""Solved in a fraction of a second a layer."""


@pytest.fixture(scope="module")
def small() -> Network:
    """Three small fully connected layers of DLRM, one of which occurs twice."""
    return Network("small", cosa.load_network("dlrm").layers[:3])


@pytest.fixture(scope="module")
def whole(small: Network) -> NetworkResult:
    return run_network(small, cosa.load_architecture("simba_4x4"), OPTIONS)


def test_layers_are_those_of_single_runs(small: Network, whole: NetworkResult) -> None:
    assert whole.complete and [row["layer"] for row in whole.rows] == [entry.layer.name for entry in small.layers]
    for row, entry in zip(whole.rows, small.layers, strict=True):
        single = nocsim.simulate(cosa.schedule(entry.layer, mapper=OPTIONS))
        assert row["simulated_cycles"] == single.cycles.total
        assert row["count"] == entry.count
        assert (row["mapper"], row["objective"], row["seed"]) == ("published", "cosa", 0) and row["gap"] is not None


def test_totals_count_occurrences(small: Network, whole: NetworkResult) -> None:
    totals = whole.totals(FIGURES)
    assert totals["macs"] == small.macs
    assert any(entry.count > 1 for entry in small.layers)
    assert totals["mac_utilisation"] == pytest.approx(small.macs / (totals["simulated_cycles"] * 1024))


def test_a_margin_is_called_estimated(whole: NetworkResult) -> None:
    first, *others = whole.rows
    part = first | {"extrapolated_share": 0.5, "margin_share": 0.004}
    network = whole.model_copy(update={"rows": (part, *others)})
    share = 0.004 * first["simulated_cycles"] * first["count"] / whole.totals(FIGURES)["simulated_cycles"]
    assert f"estimated margin of the total {share:.2%}" in text(network, 3)[-1]
    assert "margin" not in "".join(text(whole, 3))


def test_any_number_of_workers_gives_the_same_bytes(small: Network, whole: NetworkResult) -> None:
    assert run_network(small, cosa.load_architecture("simba_4x4"), OPTIONS, workers=2).to_json() == whole.to_json()


def test_a_second_run_reads_the_cache(
    small: Network, whole: NetworkResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arch = cosa.load_architecture("simba_4x4")
    assert run_network(small, arch, OPTIONS, cache=tmp_path) == whole

    def never(_: SimulatedPoint) -> Outcome:
        raise AssertionError("run again")

    monkeypatch.setattr(SimulatedPoint, "run", never)
    assert run_network(small, arch, OPTIONS, cache=tmp_path) == whole
    spoilt = next(tmp_path.glob("*.json"))
    spoilt.write_text("{")
    with pytest.raises(AssertionError, match="run again"):
        run_network(small, arch, OPTIONS, cache=tmp_path)


def test_what_the_cache_key_depends_on(small: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, arch = small.layers[0].layer, cosa.load_architecture("simba_4x4")
    point = SimulatedPoint(layer=layer, architecture=arch, options=OPTIONS)
    key = point_key(point)
    assert point_key(replace(point, layer=layer.model_copy(update={"name": "other"}))) == key
    data = arch.model_dump(mode="json")
    data["pe"]["pipeline_latency_cycles"] += 1
    changes: list[dict[str, Any]] = [
        {"layer": layer.model_copy(update={"K": layer.K + 1})},
        {"architecture": Architecture.from_data(data)},
        {"options": PublishedOptions(seed=1)},
        {"simulation": RunOptions(exact=True)},
        {"simulation": None},
        {"device": {}},
        {"candidates": 2},
        {"options": None, "schedule": cosa.schedule(layer, mapper=OPTIONS)},
    ]
    others = [point_key(replace(point, **change)) for change in changes]
    monkeypatch.setattr(pipeline, "versions", lambda: {"highspy": "0"})
    others.append(point_key(point))
    monkeypatch.setattr(pipeline, "source_digest", lambda _: "other sources")
    others.append(point_key(point))
    assert len({key, *others}) == 11


def test_an_error_names_the_layer(small: Network) -> None:
    data = cosa.load_architecture("simba_4x4").model_dump(mode="json")
    data["levels"][4]["capacity_words"] = 1
    with pytest.raises(CosaError, match="small 72: ") as caught:
        run_network(small, Architecture.from_data(data), OPTIONS)
    assert caught.value.exit_code == 1


def test_interrupted_runs_keep_what_is_done(small: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = SimulatedPoint.run, []

    def interrupted(point: SimulatedPoint) -> Outcome:
        calls.append(point)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(point)

    monkeypatch.setattr(SimulatedPoint, "run", interrupted)
    result = run_network(small, cosa.load_architecture("simba_4x4"), OPTIONS)
    assert not result.complete and len(result.rows) == 1


def test_an_interrupt_within_a_simulation_leaves_the_layer_out(
    small: Network, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real, turns = Conductor._turn, []

    def interrupted(self: Conductor, event: Any) -> None:
        turns.append(event)
        if len(turns) == 20:
            raise KeyboardInterrupt
        real(self, event)

    monkeypatch.setattr(Conductor, "_turn", interrupted)
    result = run_network(small, cosa.load_architecture("simba_4x4"), OPTIONS, cache=tmp_path)
    assert not result.complete and not result.rows and not list(tmp_path.iterdir())


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["run", "--network", "dlrm", "--objective", "cosa", "--workers", "2", "--cache", str(tmp_path / "cache")]
    assert main([*options, "--json", str(tmp_path / "r.json")]) == 0
    text = capsys.readouterr().out
    assert "whole network" in text and max(map(len, text.splitlines())) <= 80
    data = json.loads((tmp_path / "r.json").read_text())
    assert data["kind"] == "network_result" and len(data["rows"]) == 7
    assert len(list((tmp_path / "cache").iterdir())) == len({json.dumps(x) for x in data["rows"]})


def test_any_mapper_some_layers_or_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "layer.yaml"
    file.write_text("{name: small, R: 1, S: 1, P: 2, Q: 1, C: 4, K: 4, N: 1}\n")
    for work, layers in (
        (["--network", "dlrm", "--layer", "213,72"], ["213", "72"]),
        (["--layer-file", str(file)], ["small"]),
    ):
        command = [
            "run",
            *work,
            "--mapper",
            "random",
            "--samples",
            "2",
            "--seed",
            "3",
            "--cache",
            "none",
            "--json",
            "-",
        ]
        assert main(command) == 0
        rows = json.loads(capsys.readouterr().out)["rows"]
        assert [row["layer"] for row in rows] == layers
        assert {(row["mapper"], row["seed"], row["samples_valid"]) for row in rows} == {("random", 3, 2)}


@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        (["--network", "resnet51"], "did you mean resnet50?"),
        (["--network", "dlrm", "--schedule", "s.json"], "contradicts --schedule"),
        (["--network", "dlrm", "--ideal-memory"], "contradicts --ideal-memory"),
        (["--network", "dlrm", "--mapper", "best"], "no such mapper"),
        (["--network", "dlrm", "--workers", "0"], "--workers"),
        (["--network", "dlrm", "--arch", "nosuch"], "no such architecture"),
        (["--network", "dlrm", "--mapper", "hybrid", "--samples", "3"], "--samples: an option of random, not"),
        (["--network", "dlrm", "--time-limit", "-1"], "--time-limit"),
        (["--schedule", "s.json", "--samples", "3"], "--samples: goes with layers only"),
        (["--schedule", "s.json", "--mapper", "program"], "--mapper: goes with layers only"),
        (["--layer", "72"], "nothing to run"),
        ([], "nothing to run"),
    ],
)
def test_bad_options(arguments: list[str], phrase: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *arguments]) == 2
    captured = capsys.readouterr()
    assert phrase in captured.err and captured.err.count("\n") == 1


def test_a_run_from_the_cache_loads_no_compiler(tmp_path: Path) -> None:
    """Else a second run would take seconds: its keys hash the sources of packages that it must not import."""
    code = (
        "import sys; from nocsim.commands.main import main;"
        "main(['run', '--network', 'dlrm', '--mapper', 'published', '--layer', '72', '--cache', sys.argv[1]]);"
        "print({'numba', 'numpy', 'simpy', 'pyomo', 'highspy'} & set(sys.modules))"
    )
    first, second = (
        subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert first.splitlines()[:-1] == second.splitlines()[:-1]
    assert "numba" in first.splitlines()[-1] and second.splitlines()[-1] == "set()"
