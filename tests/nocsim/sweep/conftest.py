"""A small sweep that most tests share, and sweeps in processes of their own."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nocsim.experiments.sweep.spec import Sweep

ROOT = Path(__file__).parents[3]

CONV = {"name": "conv", "R": 3, "S": 3, "P": 8, "Q": 8, "C": 16, "K": 16, "N": 1}
TOO_SMALL = 1
"""Words of a global buffer in which nothing fits: such a point fails."""


@pytest.fixture
def sweep() -> Sweep:
    """Six points that are simulated, two of which cannot be scheduled."""
    return Sweep(
        name="small",
        axes={
            "layer": CONV,
            "mapper": "published",
            "noc.mesh": ["2x2", "4x4"],
            "levels.GlobalBuffer.capacity_words": ["x1", TOO_SMALL, "x8"],
        },
    )


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """The file of a sweep of 24 quick points: nothing is simulated."""
    axes = {
        "layer": CONV,
        "mapper": "published",
        "noc.mesh": ["2x2", "4x4", "4x2"],
        "noc.fifo_flits": list(range(5, 13)),
    }
    path = tmp_path / "many.yaml"
    Sweep(name="many", axes=axes, simulate=False).to_file(path)
    return path


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    """`nocsim sweep` in a process of its own."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "nocsim.commands.main", "sweep", *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment)


def finished(results: Path) -> dict[str, tuple[object, ...]]:
    """Rows of the finished points, with the run that made them and its seconds."""
    if not results.exists():
        return {}
    base = sqlite3.connect(f"{results.as_uri()}?mode=ro", uri=True, timeout=10)
    try:
        rows = base.execute("SELECT * FROM points WHERE status = 'done'").fetchall()
    except sqlite3.OperationalError:  # the tables are not there yet
        return {}
    finally:
        base.close()
    return {row[0]: row for row in rows}


def statuses(results: Path) -> list[str]:
    base = sqlite3.connect(results)
    try:
        return [row[0] for row in base.execute("SELECT status FROM points")]
    finally:
        base.close()


def wait_for(results: Path, points: int, process: subprocess.Popen[str], seconds: float = 60) -> None:
    """Until so many points are finished."""
    until = time.monotonic() + seconds
    while len(finished(results)) < points and process.poll() is None:
        assert time.monotonic() < until, f"{len(finished(results))} of {points} points"
        time.sleep(0.02)
