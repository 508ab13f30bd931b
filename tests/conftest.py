"""What all tests of the command lines share: running a command in this process, and a schedule made by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cosa.model.arch import Architecture, load_architecture
from cosa.model.layer import Layer
from cosa.model.schedule import Loop, Provenance, Schedule, ScheduleLevel, ScheduleTiming


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    def assert_error(self, *parts: str, code: int = 2) -> None:
        """One line on standard error that holds all parts, nothing on standard output, the exit code."""
        assert self.code == code, self
        assert self.out == ""
        assert self.err.startswith("error: ")
        assert self.err.count("\n") == 1, self.err
        for part in parts:
            assert part in self.err


Command = Callable[..., Ran]
"""A program as a function of its arguments."""


def command(main: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]) -> Command:
    """A program run in this process."""

    def run(*argv: str | Path) -> Ran:
        capsys.readouterr()
        code = main([str(word) for word in argv])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


@pytest.fixture
def cosa(capsys: pytest.CaptureFixture[str]) -> Command:
    from cosa.commands.main import main

    return command(main, capsys)


@pytest.fixture
def nocsim(capsys: pytest.CaptureFixture[str]) -> Command:
    from nocsim.commands.main import main

    return command(main, capsys)


@pytest.fixture
def simba() -> Architecture:
    return load_architecture("simba_4x4")


@pytest.fixture
def layer() -> Layer:
    """ResNet-50's 3x3 layer of 56x56 outputs, 64 channels to 64."""
    return Layer(name="input.8", R=3, S=3, P=56, Q=56, C=64, K=64, N=1)


def temporal(dim: str, bound: int) -> Loop:
    return Loop.model_validate({"dim": dim, "bound": bound})


def spatial(dim: str, bound: int, axis: str) -> Loop:
    return Loop.model_validate({"dim": dim, "bound": bound, "kind": "spatial", "axis": axis})


@pytest.fixture
def schedule(layer: Layer, simba: Architecture) -> Schedule:
    """A full use of the 1024 MACs, written by hand; tile sizes are small enough to check on paper."""
    nest = (
        ScheduleLevel(level="DRAM", keeps=("weights", "inputs", "outputs"), loops=(temporal("P", 7), temporal("Q", 4))),
        ScheduleLevel(
            level="GlobalBuffer",
            keeps=("inputs", "outputs"),
            loops=(
                temporal("P", 2),
                temporal("K", 2),
                spatial("K", 4, "x"),
                spatial("Q", 2, "y"),
                spatial("C", 2, "y"),
            ),
        ),
        ScheduleLevel(level="InputBuffer", keeps=("inputs",), loops=(temporal("C", 4), spatial("K", 8, "x"))),
        ScheduleLevel(
            level="WeightBuffer",
            keeps=("weights",),
            loops=(temporal("R", 3), temporal("S", 3), temporal("P", 4)),
        ),
        ScheduleLevel(level="AccumulationBuffer", keeps=("outputs",), loops=(temporal("Q", 7), spatial("C", 8, "x"))),
        ScheduleLevel(level="Registers", keeps=("weights",)),
    )
    provenance = Provenance(
        mapper="hand",
        version="1",
        objective="none",
        seed=0,
        solver="paper",
        solver_status="optimal",
        objective_value=1.5,
        bound=1.5,
        gap=0.0,
    )
    return Schedule.make(layer, simba, nest, provenance, ScheduleTiming(total_seconds=0.25))


@pytest.fixture
def schedule_file(schedule: Schedule, tmp_path: Path) -> Path:
    path = tmp_path / "schedule.json"
    schedule.save(path)
    return path
