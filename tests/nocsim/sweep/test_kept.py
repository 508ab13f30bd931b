"""What the file of results keeps besides figures: what searches did, schedules, several sweeps, older files."""

from __future__ import annotations

import csv
import json
import sqlite3
from pathlib import Path

import pytest

import cosa
import nocsim as package
from cosa.common.errors import InputError
from nocsim.experiments.sweep.result import SweepResult, sweeps_in
from nocsim.experiments.sweep.spec import Sweep
from tests.conftest import Command
from tests.nocsim.sweep.conftest import CONV, TOO_SMALL


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> SweepResult:
    """A mapper that searches and one that does not, and a point that fails."""
    axes = {
        "layer": CONV,
        "mapper": ["published", "random"],
        "levels.GlobalBuffer.capacity_words": ["x1", TOO_SMALL],
        "options.seed": 3,
    }
    where = [f"mapper == 'published' or levels.GlobalBuffer.capacity_words > {TOO_SMALL}"]
    path = tmp_path_factory.mktemp("kept") / "r.db"
    return Sweep(axes=axes, where=where, simulate=False).run(path)


def test_what_a_search_did(searched: SweepResult) -> None:
    solved, failed, drawn = searched.rows
    for name in ("samples_drawn", "samples_valid", "evaluations", "stopped_by"):
        assert solved[name] is failed[name] is None
    made = searched.schedule(2).provenance.search
    assert made is not None and drawn["stopped_by"] == made.stopped_by == "samples"
    assert (drawn["samples_drawn"], drawn["samples_valid"]) == (made.samples_drawn, made.samples_valid)
    assert drawn["samples_drawn"] > drawn["samples_valid"] == 5 <= drawn["evaluations"] == made.evaluations


def test_every_row_says_how_it_was_made(searched: SweepResult, tmp_path: Path) -> None:
    searched.to_csv(tmp_path / "r.csv")
    rows = list(csv.DictReader((tmp_path / "r.csv").open()))
    assert [row["mapper"] for row in rows] == ["published", "published", "random"]
    options = [json.loads(row["options"]) for row in rows]
    assert options == [{"seed": 3, "objective": name} for name in ("cosa", "cosa", "latency")]
    assert rows[0]["simulate"] == "False"
    plain = Sweep(axes={"layer": CONV, "objective": "cosa"}, simulate=False)
    assert {"mapper", "options", "simulate"} < set(SweepResult(plain, []).columns())


def test_schedules_are_kept(searched: SweepResult, tmp_path: Path, nocsim: Command) -> None:
    assert searched.path is not None
    for number in (0, 2):
        found = searched.schedule(number)
        assert found.content_hash == searched.rows[number]["schedule_hash"]
        assert found.provenance.mapper == searched.rows[number]["mapper"]
        assert cosa.evaluate(found, "exact").cycles == searched.rows[number]["analytical_cycles"]
    ran = nocsim("sweep-report", searched.path, "--schedule", "2", "-o", tmp_path / "s.json")
    assert ran.code == 0 and ran.out == f"written to {tmp_path / 's.json'}\n"
    assert cosa.Schedule.from_file(tmp_path / "s.json") == searched.schedule(2)
    report = ("sweep-report", searched.path)
    nocsim(*report, "--schedule", "1", "-o", tmp_path / "t.json").assert_error("point 1 is failed", "does not fit")
    nocsim(*report, "--schedule", "3", "-o", tmp_path / "t.json").assert_error("no such point", "from 0 to 2")
    nocsim(*report, "--schedule", "2").assert_error("--schedule", "-o")
    nocsim(*report, "-o", tmp_path / "t.json").assert_error("-o", "--schedule")
    nocsim(*report, "--schedule", "2", "-o", searched.path).assert_error("would overwrite")
    assert not (tmp_path / "t.json").exists()


def test_files_of_an_earlier_version(searched: SweepResult, tmp_path: Path) -> None:
    """They are shown without what they do not hold, and further runs on them hold it."""
    assert searched.path is not None
    old = tmp_path / "old.db"
    old.write_bytes(searched.path.read_bytes())
    base = sqlite3.connect(old)
    base.execute("DROP TABLE schedules")
    base.execute("DROP VIEW results")
    for name in ("evaluations", "samples_drawn", "samples_valid", "stopped_by"):
        base.execute(f"ALTER TABLE points DROP COLUMN {name}")
    base.commit()
    base.close()
    found = package.read_results(old)
    assert found.rows[2]["stopped_by"] is None and found.rows[2]["energy_pj"] == searched.rows[2]["energy_pj"]
    with pytest.raises(InputError, match="no schedule of point 2 is kept"):
        found.schedule(2)
    more = Sweep(axes={"layer": CONV, "mapper": "random"}, simulate=False).run(old)
    assert more.rows[0]["stopped_by"] == "samples" and more.schedule(0).layer.name == "conv"


def test_several_sweeps_in_one_file(tmp_path: Path, nocsim: Command) -> None:
    path = tmp_path / "r.db"
    first = Sweep(name="first", axes={"layer": CONV, "objective": "cosa"}, simulate=False)
    second = Sweep(name="second", axes={"layer": CONV, "objective": "cosa", "noc.fifo_flits": [5, 8]}, simulate=False)
    first.run(path)
    assert "sweeps in" not in nocsim("sweep-report", path).out
    second.run(path)
    assert [(e["sweep"], e["name"], e["points"], e["done"]) for e in sweeps_in(path)] == [
        (1, "first", 1, 1),
        (2, "second", 2, 2),
    ]
    assert package.read_results(path).sweep.name == "second"
    shown = nocsim("sweep-report", path).out
    assert "second: 2 points" in shown and "2 sweeps in" in shown and "--sweep" in shown
    assert package.read_results(path, "first").sweep.name == package.read_results(path, 1).sweep.name == "first"
    for choice in ("first", "1"):
        text = nocsim("sweep-report", path, "--sweep", choice).out
        assert "first: 1 points" in text and "second: 2 points:" not in text
    nocsim("sweep-report", path, "--sweep", "third").assert_error("no such sweep", "1 (first), 2 (second)")
    first.run(path)
    assert package.read_results(path).sweep.name == "first"
