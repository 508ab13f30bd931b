"""Whole networks: totals, workers, cache, errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cosa
import nocsim
from cosa.common.errors import CosaError
from cosa.mappers.program import ProgramOptions
from cosa.mappers.published import PublishedOptions
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from cosa.model.networks import Network
from nocsim.commands.main import main
from nocsim.commands.whole_network import text
from nocsim.experiments import network_run
from nocsim.experiments.network_run import NetworkResult, inputs_hash, run_network
from nocsim.machine.conductor import Conductor

OPTIONS = PublishedOptions()
"""Of the mapper: solved in a fraction of a second a layer."""


@pytest.fixture(scope="module")
def small() -> Network:
    """Three small fully connected layers of DLRM, one of which occurs twice."""
    return Network("small", cosa.load_network("dlrm").layers[:3])


@pytest.fixture(scope="module")
def whole(small: Network) -> NetworkResult:
    return run_network(small, cosa.load_architecture("simba_4x4"), options=OPTIONS)


def test_layers_are_those_of_single_runs(small: Network, whole: NetworkResult) -> None:
    assert whole.complete and [run.layer for run in whole.layers] == [entry.layer.name for entry in small.layers]
    for run, entry in zip(whole.layers, small.layers, strict=True):
        single = nocsim.simulate(cosa.schedule(entry.layer, mapper=OPTIONS))
        assert run.simulated_cycles == single.cycles.total
        assert run.count == entry.count


def test_totals_count_occurrences(small: Network, whole: NetworkResult) -> None:
    assert whole.total("macs") == small.macs
    assert any(entry.count > 1 for entry in small.layers)
    assert whole.mac_utilisation == pytest.approx(small.macs / (whole.total("simulated_cycles") * 1024))


def test_a_margin_is_called_estimated(whole: NetworkResult) -> None:
    first, *others = whole.layers
    part = first.model_copy(update={"method": "extrapolated", "extrapolated_share": 0.5, "margin_share": 0.004})
    network = whole.model_copy(update={"layers": (part, *others)})
    share = 0.004 * first.simulated_cycles * first.count / whole.total("simulated_cycles")
    assert f"estimated margin of the total {share:.2%}" in text(network, len(network.layers))
    assert "margin" not in text(whole, len(whole.layers))


def test_any_number_of_workers_gives_the_same_bytes(small: Network, whole: NetworkResult) -> None:
    assert (
        run_network(small, cosa.load_architecture("simba_4x4"), options=OPTIONS, workers=2).to_json() == whole.to_json()
    )


def test_a_second_run_reads_the_cache(
    small: Network, whole: NetworkResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arch = cosa.load_architecture("simba_4x4")
    assert run_network(small, arch, options=OPTIONS, cache=tmp_path) == whole

    def never(*_: Any) -> dict[str, Any]:
        raise AssertionError("run again")

    monkeypatch.setattr(network_run, "run_layer", never)
    assert run_network(small, arch, options=OPTIONS, cache=tmp_path) == whole
    spoilt = next(tmp_path.glob("*.json"))
    spoilt.write_text("{")
    with pytest.raises(AssertionError, match="run again"):
        run_network(small, arch, options=OPTIONS, cache=tmp_path)


def test_what_the_cache_key_depends_on(small: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, arch = small.layers[0].layer, cosa.load_architecture("simba_4x4")

    def key(layer: Layer = layer, arch: Architecture = arch, **options: Any) -> str:
        return inputs_hash(layer, arch.content_hash, PublishedOptions.of(options))

    first = key()
    assert key(layer.model_copy(update={"name": "other"})) == first
    data = arch.model_dump(mode="json")
    data["pe"]["pipeline_latency_cycles"] += 1
    others = [
        key(layer.model_copy(update={"K": layer.K + 1})),
        key(arch=Architecture.from_data(data)),
        key(seed=1),
        inputs_hash(layer, arch.content_hash, ProgramOptions()),
    ]
    monkeypatch.setattr(network_run, "source_digest", lambda: "other sources")
    others.append(key())
    assert len({first, *others}) == 6


def test_an_error_names_the_layer(small: Network) -> None:
    data = cosa.load_architecture("simba_4x4").model_dump(mode="json")
    data["levels"][4]["capacity_words"] = 1
    with pytest.raises(CosaError, match="small 72: ") as caught:
        run_network(small, Architecture.from_data(data), options=OPTIONS)
    assert caught.value.exit_code == 1


def test_interrupted_runs_keep_what_is_done(small: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = network_run.run_layer, []

    def interrupted(*arguments: Any) -> dict[str, Any]:
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(network_run, "run_layer", interrupted)
    result = run_network(small, cosa.load_architecture("simba_4x4"), options=OPTIONS)
    assert not result.complete and len(result.layers) == 1


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
    result = run_network(small, cosa.load_architecture("simba_4x4"), options=OPTIONS, cache=tmp_path)
    assert not result.complete and not result.layers and not list(tmp_path.iterdir())


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["run", "--network", "dlrm", "--objective", "cosa", "--workers", "2", "--cache", str(tmp_path / "cache")]
    assert main([*options, "--json", str(tmp_path / "r.json")]) == 0
    text = capsys.readouterr().out
    assert "whole network" in text and max(map(len, text.splitlines())) <= 80
    data = json.loads((tmp_path / "r.json").read_text())
    assert data["kind"] == "network_result" and len(data["layers"]) == 7
    assert len(list((tmp_path / "cache").iterdir())) == len({json.dumps(x) for x in data["layers"]})


@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        (["--network", "resnet51"], "did you mean resnet50?"),
        (["--network", "dlrm", "--schedule", "s.json"], "contradicts --schedule"),
        (["--network", "dlrm", "--ideal-memory"], "contradicts --ideal-memory"),
        (["--network", "dlrm", "--mapper", "best"], "no such mapper"),
        (["--network", "dlrm", "--workers", "0"], "--workers"),
        (["--network", "dlrm", "--arch", "nosuch"], "no such architecture"),
        ([], "nothing to run"),
    ],
)
def test_bad_options(arguments: list[str], phrase: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *arguments]) == 2
    captured = capsys.readouterr()
    assert phrase in captured.err and captured.err.count("\n") == 1


def test_a_run_from_the_cache_loads_no_compiler() -> None:
    """Else a second run would take seconds: its keys hash the sources of packages that it must not import."""
    code = (
        "import sys; from nocsim.experiments import network_run; network_run.source_digest();"
        "print({'numba', 'numpy', 'simpy', 'pyomo', 'highspy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
