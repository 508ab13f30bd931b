"""`cosa schedule --mapper`: searches from the command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cosa.model.schedule import Schedule
from tests.conftest import Command

NAMED = ("--network", "resnet50", "--layer", "3356")


@pytest.mark.parametrize("mapper", ["random", "hybrid", "evolutionary"])
def test_a_search_writes_a_schedule(cosa: Command, tmp_path: Path, mapper: str) -> None:
    path = tmp_path / "out.json"
    ran = cosa("schedule", *NAMED, "--mapper", mapper, "--evaluations", "500", "--objective", "edp", "-o", path)
    assert (ran.code, ran.err) == (0, "")
    found = Schedule.from_file(path)
    assert (found.provenance.mapper, found.provenance.objective) == (mapper, "edp")
    assert found.provenance.search is not None
    assert found.provenance.search.evaluations == 500
    assert "500 evaluated, stopped by" in " ".join(ran.out.split())
    assert max(map(len, ran.out.splitlines()[:-1])) <= 80
    shown = cosa("show", path)
    assert shown.code == 0
    assert "search " in shown.out


def test_hybrid_with_a_rule_of_its_own(cosa: Command, tmp_path: Path) -> None:
    counts = []
    for condition in ("20", "200"):
        options = ("--mapper", "hybrid", "--logical-threads", "3", "--victory-condition", condition)
        assert cosa("schedule", *NAMED, *options, "-o", tmp_path / "out.json").code == 0
        search = Schedule.from_file(tmp_path / "out.json").provenance.search
        assert search is not None
        assert (search.logical_threads, search.stopped_by) == (3, "victory_condition")
        counts.append(search.evaluations)
    assert 60 < counts[0] < counts[1]


def test_same_bytes_for_any_number_of_workers(cosa: Command, tmp_path: Path) -> None:
    files = [tmp_path / f"{workers}.json" for workers in (1, 2)]
    for workers, path in zip((1, 2), files, strict=True):
        options = ("--mapper", "hybrid", "--seed", "7", "--workers", str(workers), "--no-timing", "-o", path)
        assert cosa("schedule", *NAMED, *options).code == 0
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (("--mapper", "hybrd"), ("--mapper", "did you mean hybrid")),
        (("--mapper", "hybrid", "--samples", "5"), ("--samples", "an option of random, not of the mapper hybrid")),
        (("--mapper", "random", "--threads", "2"), ("--threads", "an option of program, published, not of the mapper")),
        (("--mapper", "", "--seed", "1"), ("--mapper", "no such mapper")),
        (("--mapper", "random", "--victory-condition", "2"), ("--victory-condition", "an option of hybrid, not of")),
        (("--logical-threads", "2"), ("--logical-threads", "of hybrid, not of the mapper program", "--time-limit")),
        (("--mapper", "hybrid", "--victory-condition", "0"), ("--victory-condition", "a whole number from 1 to")),
        (("--mapper", "hybrid", "--time-limit", "inf"), ("--time-limit", "not a finite number")),
        (("--mapper", "random", "--as-published"), ("--as-published",)),
        (("--evaluations", "2"), ("--evaluations", "not of the mapper program")),
        (("--mapper", "random", "--samples", "0"), ("--samples", "found 0", "a whole number from 1 to")),
        (("--mapper", "random", "--time-limit", "nan"), ("--time-limit",)),
        (("--workers", "2"), ("--workers", "solves one layer on one core, or on --threads")),
        (("--mapper", "random", "--workers", "0"), ("--workers",)),
        (("--mapper", "random", "--objective", "edb"), ("--objective", "did you mean edp")),
        (("--mapper", "exhaustive"), ("tilings alone",)),
    ],
)
def test_bad_options(cosa: Command, tmp_path: Path, options: tuple[str, ...], parts: tuple[str, ...]) -> None:
    path = tmp_path / "out.json"
    cosa("schedule", *NAMED, *options, "-o", path).assert_error(*parts)
    assert not path.exists()


def test_a_layer_that_fits_nowhere(cosa: Command, tmp_path: Path) -> None:
    arch = tmp_path / "arch.yaml"
    text = cosa("archs", "simba_4x4").out
    assert "capacity_words: 65536" in text
    arch.write_text(text.replace("capacity_words: 65536", "capacity_words: 1"))
    ran = cosa("schedule", *NAMED, "--mapper", "random", "--arch", arch)
    ran.assert_error("GlobalBuffer keeps inputs, outputs", code=1)


def test_interrupted(tmp_path: Path) -> None:
    """Ctrl-C: within a second or so the best so far is there, marked."""
    path = tmp_path / "out.json"
    command = [
        sys.executable,
        "-m",
        "cosa.commands.main",
        "schedule",
        *NAMED,
        "--mapper",
        "random",
        "--samples",
        "999999999",
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([*command, "-o", str(path)], stdout=subprocess.PIPE, text=True, env=environment) as process:
        time.sleep(6)
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        out, _ = process.communicate(timeout=30)
    assert time.monotonic() - started < 3
    assert process.returncode == 130
    assert "stopped by interrupted" in " ".join(out.split())
    found = Schedule.from_file(path).provenance.search
    assert found is not None
    assert found.stopped_by == "interrupted"
