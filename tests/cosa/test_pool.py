"""Pools and fronts: the K best of all, nothing better left out, and bounds that hold for what is not listed."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import cosa
from cosa.commands.main import main
from cosa.common.errors import InputError
from cosa.mappers.figures import AnalyticalModel
from cosa.mappers.neighbours import MappingPoint, MappingPoints
from cosa.model.layer import Layer
from cosa.model.schedule import Schedule
from tests.cosa.test_constraints import write_small
from tests.cosa.test_machine_program import every_tiling, small_architecture, small_layer

LAYER = {"P": 6, "C": 5, "K": 2}


def every_figure(layer: Layer) -> tuple[np.ndarray, np.ndarray]:
    """Cycles and energy of every tiling that fits, in every order of the table: [order, tiling]."""
    model = AnalyticalModel(layer, small_architecture())
    tilings = np.array(every_tiling(layer, model.architecture))
    cycles, energies = [], []
    for orders in product(range(len(model.neighbourhood.innermost)), repeat=len(model.architecture.levels) - 1):
        numbers = np.tile(np.array((0, *orders)), (len(tilings), 1))
        batch = model.neighbourhood.batch(MappingPoints(tilings, numbers))
        result = model.evaluator(MappingPoint(tilings[0], numbers[0])).evaluate(batch, detail=False)
        cycles.append(np.where(result.fits, result.cycles, np.inf))
        energies.append(np.where(result.fits, result.energy_pj, np.inf))
    return np.array(cycles), np.array(energies)


def factors(schedule: Schedule) -> tuple[tuple[str, str, int, str], ...]:
    """What tells the factors of a schedule from others."""
    return tuple(
        sorted((entry.level, loop.dim, loop.bound, loop.kind) for entry in schedule.nest for loop in entry.loops)
    )


@pytest.mark.parametrize("objective", ("latency", "edp"))
def test_the_pool_has_the_best_of_all(objective: str) -> None:
    layer = small_layer(**LAYER)
    pool = cosa.schedule_pool(layer, small_architecture(), count=6, objective=objective, gap=1e-3)
    cycles, energy = every_figure(layer)
    values = {"latency": cycles, "edp": cycles * energy}[objective]
    best = np.sort(values.min(axis=0))
    found = [schedule.provenance.objective_value for schedule in pool]
    assert found == pytest.approx(best[:6].tolist())
    assert len({factors(schedule) for schedule in pool}) == 6
    # What is not listed is not below the bound, and the last one is within its gap of it.
    for schedule in pool:
        assert schedule.provenance.bound is not None and schedule.provenance.bound <= best[6] * (1 + 1e-9)
    assert pool[0].provenance.gap == pytest.approx(0, abs=2e-3)


def test_values_that_differ_come_in_their_order_with_a_proof() -> None:
    """Energies of the seven best are not all alike, so a bound that stopped at the first would not do."""
    layer = small_layer(**LAYER)
    pool = cosa.schedule_pool(layer, small_architecture(), count=7, objective="energy", gap=1e-3)
    values = [schedule.provenance.objective_value or 0.0 for schedule in pool]
    assert values == sorted(values)
    _, energy = every_figure(layer)
    assert values == pytest.approx(np.sort(energy.min(axis=0))[:7].tolist())
    last = pool[-1].provenance
    assert values[-1] > values[0] * 1.001
    assert last.gap is not None and last.gap <= 1e-3
    assert (last.bound or 0) > values[0]


@pytest.mark.parametrize("objective", ("energy", "edp"))
def test_a_pool_may_be_all_there_is(objective: str) -> None:
    layer = small_layer(K=2)
    pool = cosa.schedule_pool(layer, small_architecture(), count=50, objective=objective)
    _, energy = every_figure(layer)
    assert len(pool) == np.isfinite(energy.min(axis=0)).sum() < 50
    assert all("there are no others" in schedule.provenance.notes[0] for schedule in pool)
    assert all(schedule.provenance.gap == 0 for schedule in pool)


def test_the_front_has_the_least_energy_within_its_cycles() -> None:
    layer = small_layer(**LAYER)
    front = cosa.schedule_front(layer, small_architecture(), points=4, gap=1e-4)
    cycles, energy = every_figure(layer)
    figures = [(entry.provenance.model_cycles or 0.0, entry.provenance.model_energy_pj or 0.0) for entry in front]
    assert len(figures) > 1
    assert figures[0][0] == cycles.min()
    assert figures[-1][1] == pytest.approx(energy.min())
    assert figures == sorted(figures) and [pj for _, pj in figures] == sorted((pj for _, pj in figures), reverse=True)
    for (most, least), schedule in zip(figures, front, strict=True):
        exact = float(energy[cycles <= most].min())
        assert least == pytest.approx(exact)
        assert schedule.provenance.bound is not None and schedule.provenance.bound <= exact * (1 + 1e-9)
        assert schedule.provenance.objective == "pareto"


def test_numbers_and_names_are_checked() -> None:
    layer = small_layer(K=2)
    with pytest.raises(InputError, match="count: out of range"):
        cosa.schedule_pool(layer, small_architecture(), count=0)
    with pytest.raises(InputError, match="points: out of range"):
        cosa.schedule_front(layer, small_architecture(), points=1)
    with pytest.raises(InputError, match="schedule_front"):
        cosa.schedule(layer, small_architecture(), objective="pareto")


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = write_small(tmp_path)
    output = tmp_path / "best.yaml"
    assert main([*command, "--objective", "energy", "--pool", "3", "--no-timing", "-o", str(output)]) == 0
    shown = capsys.readouterr().out
    assert "best-1.yaml to best-3.yaml" in shown
    pool = [Schedule.from_file(tmp_path / f"best-{number}.yaml") for number in (1, 2, 3)]
    layer, architecture = tmp_path / "layer.yaml", tmp_path / "arch.yaml"
    again = cosa.schedule_pool(layer, architecture, count=3, objective="energy")
    assert [entry.nest for entry in pool] == [entry.nest for entry in again]
    folder = tmp_path / "front"
    assert main([*command, "--objective", "pareto", "--points", "3", "-o", str(folder)]) == 0
    assert "bound" in capsys.readouterr().out
    written = sorted(path.name for path in folder.iterdir())
    assert written[0] == "schedule-1.json" and len(written) <= 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--pool", "3", "--objective", "cosa"], "--pool"),
        (["--pool", "0", "--objective", "edp"], "from 1"),
        (["--pool", "2", "--objective", "pareto"], "--pool"),
        (["--points", "3", "--objective", "edp"], "--points"),
        (["--pool", "2", "--mapper", "random"], "--pool"),
    ],
)
def test_options_that_do_not_go_together(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*write_small(tmp_path), *arguments]) == 2
    assert words in capsys.readouterr().err


def test_pools_are_of_one_layer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", "--network", "alexnet", "--objective", "edp", "--pool", "2"]) == 2
    assert "--layer NAME" in capsys.readouterr().err
