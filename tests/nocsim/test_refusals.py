"""What a command can't do is said before it works, by the flag that was given; nothing is left out silently."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cosa
import nocsim
from cosa.common.errors import InputError
from tests.conftest import Command

LAYER = """
name: small
R: 1
S: 1
P: 4
Q: 4
C: 8
K: 8
N: 1
"""


@pytest.fixture
def layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("layer.yaml").write_text(LAYER, encoding="utf-8")
    return "layer.yaml"


def test_one_layer_is_not_the_first_of_several(nocsim: Command, tmp_path: Path) -> None:
    two = ("--network", "dlrm", "--layer", "72,213")
    nocsim("schedule", *two, "-o", tmp_path / "two.json").assert_error("--layer: several layers", "allowed: one")
    nocsim("calibrate", "--tune-weights", *two).assert_error("--layer: several layers")
    assert not (tmp_path / "two.json").exists()


def test_two_outputs_are_two_files(nocsim: Command, cosa: Command, layer: str) -> None:
    cosa("schedule", "--layer-file", layer, "--objective", "cosa", "-o", "s.json")
    nocsim("run", "--schedule", "s.json", "--heat", "h.csv", "--json", "h.csv").assert_error(
        "--heat: also what --json writes to"
    )
    nocsim("schedule", "--layer-file", layer, "-o", "n.json", "--json", "./n.json").assert_error(
        "--json: also what -o writes to"
    )
    assert not Path("h.csv").exists() and not Path("n.json").exists()


def test_what_cannot_be_simulated_is_not_scheduled(nocsim: Command, layer: str) -> None:
    nocsim("run", "--layer-file", layer, "--arch", "gpu_k80").assert_error("gpu_k80", "no mesh of PEs")
    nocsim("run", "--layer-file", layer, "--remainders").assert_error("not simulated")
    nocsim("compare", "--layer-file", layer, "--mappers", "program", "--remainders").assert_error("Timeloop's counts")


def test_contradictions_name_what_was_given(nocsim: Command, layer: str) -> None:
    nocsim("run", "--layer-file", layer, "--max-cycles", "10").assert_error("--layer-file: contradicts --max-cycles")
    nocsim("run", "--network", "dlrm", "--max-cycles", "10").assert_error("--network: contradicts --max-cycles")
    nocsim("run", "--schedule", "s.json", "--workers", "2").assert_error("--workers: goes with layers only")
    nocsim("run", "--network", "dlrm", "--cache", layer).assert_error("--cache: not a folder")
    nocsim("run", "--network", "nope").assert_error("--network: no such network")
    nocsim("run", "--network", "dlrm", "--arch", "simba").assert_error("--arch: no such architecture")


@pytest.mark.parametrize(
    ("call", "path"),
    [
        (lambda: cosa.load_network("nope"), "network"),
        (lambda: cosa.schedule("resnet50"), "layer"),
        (lambda: cosa.load_architecture("nope"), "architecture"),
        (lambda: cosa.load_architecture("simba_4x4").with_mesh("4by4"), "mesh"),
        (lambda: cosa.load_architecture("simba_4x4").with_placement("nowhere"), "placement"),
    ],
)
def test_python_hears_of_no_flags(call: object, path: str) -> None:
    with pytest.raises(InputError) as error:
        call()  # type: ignore[operator]
    assert error.value.path == path and "--" not in str(error.value)


def test_numbers_of_numpy_are_workers() -> None:
    layer = cosa.Layer(name="small", R=1, S=1, P=4, Q=4, C=8, K=8, N=1)
    found = cosa.schedule(layer, mapper="random", samples=3, workers=np.int64(1))  # type: ignore[arg-type]
    assert nocsim.simulate(found).ended == "finished"


def test_a_portfolio_says_how_it_was_made(nocsim: Command, layer: str) -> None:
    made = ("--keep", "2", "--gap", "0.1", "-o", "p.json")
    assert nocsim("schedule", "--layer-file", layer, *made).code == 0
    found = cosa.Schedule.from_file("p.json").provenance
    assert (found.mapper, found.options["keep"], found.options["gap"]) == ("portfolio", 2, 0.1)
