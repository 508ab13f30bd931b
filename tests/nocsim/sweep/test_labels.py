"""Layers and architectures of equal names can be told apart in every output."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import cosa
from nocsim.experiments.sweep.labels import distinct, layer_labels
from nocsim.experiments.sweep.spec import Sweep
from tests.conftest import Command
from tests.nocsim.sweep.conftest import CONV


def test_names_that_collide() -> None:
    assert distinct(["a", "b", "a", "a#2", "a"]) == ["a", "b", "a#2", "a#2#2", "a#3"]
    assert layer_labels(["dlrm:x", "x.yaml", {"name": "x"}], ["x", "x", "x"]) == ["dlrm:x", "x", "x#2"]


def test_layers_of_two_networks(tmp_path: Path, nocsim: Command) -> None:
    """And the report by points, which looked for the layer on an axis of configurations."""
    names = ["resnet50:input.8", "resnext50_32x4d:input.8"]
    axes = {"layer": names, "objective": "cosa", "noc.fifo_flits": [5, 8]}
    result = Sweep(axes=axes, simulate=False).run(tmp_path / "r.db")
    assert [row["axes"]["layer"] for row in result.rows] == [names[0], names[0], names[1], names[1]]
    assert list(result.frame()["layer"].unique()) == names
    ran = nocsim("sweep-report", tmp_path / "r.db", "--points", "--csv", tmp_path / "r.csv")
    assert ran.code == 0
    table = [line.split()[:2] for line in ran.out.splitlines() if ":input.8 " in line]
    assert table == [[name, flits] for name in names for flits in ("5", "8")]
    assert "Pareto front of latency and energy: 2 of 2" in ran.out
    assert [row["layer"] for row in csv.DictReader((tmp_path / "r.csv").open())] == [names[0], names[0], *names[1:] * 2]


def test_models_of_one_name(tmp_path: Path) -> None:
    base = cosa.load_architecture("simba_4x4").model_dump(mode="json")
    slow = cosa.Architecture.from_data(base | {"clock_ghz": 0.5})
    fast = cosa.Architecture.from_data(base | {"clock_ghz": 2.0})
    layers: list[Any] = [CONV, CONV | {"K": 32}]
    axes = {"layer": layers, "objective": "cosa", "architecture": ["simba_4x4", slow, fast]}
    result = Sweep(axes=axes, simulate=False).run(tmp_path / "r.db")
    frame = result.frame()
    assert list(frame["architecture"]) == ["simba_4x4", "simba_4x4#2", "simba_4x4#3"] * 2
    assert list(frame["layer"]) == ["conv"] * 3 + ["conv#2"] * 3
    assert len({(row["layer"], row["architecture"]) for row in frame.to_dict("records")}) == 6
