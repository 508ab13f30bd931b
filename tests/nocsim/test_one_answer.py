"""The same question has one answer, whoever is asked: a schedule and its run, a network, a comparison, a sweep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import cosa
import nocsim
from cosa.mappers.registry import DEFAULT, options_of
from cosa.model.networks import Network, NetworkLayer
from nocsim.experiments.compare import compare, read_entries
from nocsim.experiments.network import run_network
from nocsim.experiments.pipeline import FIGURES
from nocsim.experiments.sweep.spec import Sweep
from nocsim.options import RunOptions
from tests.conftest import Command

DILATED = {"name": "dilated", "R": 2, "S": 1, "P": 4, "Q": 1, "C": 2, "K": 2, "N": 1, "dilation_w": 2}


@pytest.mark.parametrize("mapper", [None, "published", "random"])
def test_cycles_and_schedule_are_the_same_everywhere(tmp_path: Path, mapper: str | None) -> None:
    layer, architecture = cosa.Layer.from_data(DILATED), cosa.load_architecture("simba_4x4").with_mesh("2x2")
    few: dict[str, Any] = {"rounds": 1} if mapper is None else {}
    schedule = cosa.schedule(layer, architecture, mapper, **few)
    result = nocsim.simulate(schedule)
    made = schedule.provenance.made
    assert result.made == made and made.mapper == (mapper or DEFAULT)

    network = run_network(Network("one", (NetworkLayer(layer, 1),)), architecture, options_of(mapper, few))
    entries = read_entries([mapper or DEFAULT], few)
    comparison = compare([NetworkLayer(layer, 1)], architecture, entries, simulation=RunOptions())
    axes = {"layer": DILATED, "noc.mesh": "2x2"} | ({"mapper": mapper} if mapper else {"options.rounds": 1})
    sweep = Sweep(axes=axes).run(tmp_path / "r.db")
    for row in (network.rows[0], comparison.rows[0], sweep.rows[0]):
        assert (row["schedule_hash"], row["simulated_cycles"]) == (schedule.content_hash, result.cycles.total)
        assert {name: row[name] for name in made.model_dump()} == made.model_dump()
        for name, figure in FIGURES.items():
            assert figure.clock or row[name] == network.rows[0][name], name


def test_the_commands_have_that_default_too(
    tmp_path: Path, nocsim: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    layer, arch = tmp_path / "layer.json", tmp_path / "arch.json"
    layer.write_text(json.dumps(DILATED))
    cosa.load_architecture("simba_4x4").with_mesh("2x2").to_file(arch)
    schedule = cosa.schedule(layer, arch, rounds=1)
    files = ("--layer-file", layer, "--arch", arch, "--rounds", "1")
    assert nocsim("run", *files, "--cache", "none", "--json", tmp_path / "run.json").code == 0
    run = json.loads((tmp_path / "run.json").read_text())["rows"][0]
    made = schedule.provenance.made.model_dump(mode="json")
    assert {name: run[name] for name in made} == made
    assert nocsim("compare", *files, "--mappers", DEFAULT, "--json", tmp_path / "compare.json").code == 0
    assert json.loads((tmp_path / "compare.json").read_text())["rows"][0]["schedule_hash"] == schedule.content_hash
    few = nocsim(
        "run", "--network", "dlrm", "--layer", "72,77", "--mapper", "random", "--samples", "3", "--cache", "none"
    )
    assert few.code == 0 and "by random, objective latency, seed 0" in few.out
    assert "2 of 2 unique layers" in few.out
    nocsim("run", *files[:4], "--samples", "3").assert_error(
        "--samples: an option of random, not of the mapper program"
    )
    nocsim("run", "--schedule", "s.json", "--samples", "3").assert_error("--samples: goes with layers only")
