"""The portfolio: placements are all there and compute the same, the best is the best, workers change nothing."""

from __future__ import annotations

import random
from math import prod
from pathlib import Path

import pytest

import nocsim
from cosa.common.errors import InputError
from cosa.model.arch import Architecture
from cosa.model.layer import Dim, Layer
from cosa.model.schedule import Axis, Loop, Provenance, Schedule, ScheduleLevel
from cosa.model.validity import violations
from nocsim.experiments.placements import MAX_PLACEMENTS, layout, placements
from nocsim.experiments.portfolio_run import VARIANTS, Portfolio, portfolio
from tests.conftest import Command

SMALL = Layer(name="small", R=3, S=3, P=7, Q=7, C=16, K=16, N=1)


def spread(architecture: Architecture, *loops: tuple[Dim, int, Axis]) -> Schedule:
    """A layer that is as large as its spatial loops over the mesh."""
    bounds = {dim: prod(n for name, n, _ in loops if name == dim) for dim in ("P", "Q", "C", "K")}
    layer = Layer(name="spread", R=1, S=1, N=1, **bounds)
    spatial = tuple(Loop(dim=dim, bound=bound, kind="spatial", axis=axis) for dim, bound, axis in loops)
    nest = tuple(
        ScheduleLevel(level=level.name, keeps=level.keeps, loops=spatial if number == architecture.mesh_level else ())
        for number, level in reversed(list(enumerate(architecture.levels)))
    )
    return Schedule.make(layer, architecture, nest, Provenance(mapper="hand", version="1"))


def test_placements_of_two_dimensions(simba: Architecture) -> None:
    """Four Ks and four Qs: whole along one side, or two of each along both, in either order."""
    found = placements(spread(simba, ("K", 4, "x"), ("Q", 4, "y")))
    assert layout(found[0]) == "x K4, y Q4"
    assert sorted(map(layout, found)) == sorted(
        ["x K4, y Q4", "x Q4, y K4"] + [f"x {x}, y {y}" for x in ("K2 Q2", "Q2 K2") for y in ("K2 Q2", "Q2 K2")]
    )


def test_placements_of_three_dimensions_are_distinct_and_fit(simba: Architecture) -> None:
    own = spread(simba, ("K", 2, "x"), ("Q", 2, "x"), ("C", 4, "y"))
    found = placements(own)
    assert found[0] == own
    assert len({layout(one) for one in found}) == len(found)
    # Along x: K and Q (two orders), both Cs (two orders of the others along y), K and C, or Q and C (two by two each).
    assert len(found) == 2 + 2 + 4 + 4
    for one in found:
        assert not violations(one.layer, one.architecture, one.nest)
        assert prod(loop.bound for entry in one.nest for loop in entry.spatial) == 16


def test_placements_where_no_side_fits(simba: Architecture) -> None:
    """Thirteen PEs are numbered row by row; with a second loop, in both orders."""
    assert list(map(layout, placements(spread(simba, ("K", 13, "row_major"))))) == ["row_major K13"]
    found = placements(spread(simba, ("K", 7, "row_major"), ("Q", 2, "row_major")))
    assert list(map(layout, found)) == ["row_major K7 Q2", "row_major Q2 K7"]


def test_placements_are_limited_and_one_where_the_machine_places(simba: Architecture) -> None:
    large = simba.with_mesh("8x8")
    many = spread(large, ("K", 4, "x"), ("Q", 2, "x"), ("C", 4, "y"), ("P", 2, "y"))
    assert len(placements(many)) == MAX_PLACEMENTS
    fixed = spread(simba.with_placement("row_major"), ("K", 4, "x"), ("Q", 4, "y"))
    assert placements(fixed) == [fixed]


def test_placements_move_the_same_words(schedule: Schedule) -> None:
    """Nothing that an analytical model counts depends on the placement: only links do."""
    from cosa.analytical.evaluation import evaluate_exact

    counts = {
        (found.cycles, round(found.energy_pj, 3))
        for found in (
            evaluate_exact(one.layer, one.architecture, one.nest)
            for one in random.Random(1).sample(placements(schedule), 6)
        )
    }
    assert len(counts) == 1


@pytest.fixture(scope="module")
def found() -> Portfolio:
    return portfolio(SMALL, variants=("network", "analytical", "published"), keep=2, time_limit_seconds=60)


def test_the_best_is_kept(found: Portfolio) -> None:
    result = found.result
    assert result.solved == 3 and not result.unsolved
    assert result.simulated + result.stopped + result.skipped == result.placed == len(result.candidates)
    assert len({(one.schedule_hash, one.placement) for one in result.candidates}) == result.placed
    finished = [one.simulated_cycles for one in result.candidates if one.simulated_cycles is not None]
    assert result.simulated_cycles == min(finished) == found.schedule.provenance.objective_value
    assert nocsim.simulate(found.schedule).cycles.total == result.simulated_cycles
    for one in result.candidates:
        assert one.simulated_cycles is None or one.bound_cycles <= one.simulated_cycles
    assert result.machine_bound_cycles is not None and result.machine_bound_cycles <= result.simulated_cycles
    assert f"{result.simulated} simulated to the end" in found.schedule.provenance.notes[0]


def test_placing_is_never_worse(found: Portfolio) -> None:
    import cosa

    single = cosa.schedule(SMALL, objective="cosa")
    assert found.result.simulated_cycles <= nocsim.simulate(single).cycles.total


def test_workers_change_nothing(found: Portfolio) -> None:
    again = portfolio(SMALL, variants=("network", "analytical", "published"), keep=2, time_limit_seconds=60, workers=2)
    assert again.result == found.result
    assert again.schedule == found.schedule


def test_the_command_writes_schedule_and_table(nocsim: Command, tmp_path: Path) -> None:
    SMALL.to_file(tmp_path / "small.yaml")
    args = ["schedule", "--layer-file", tmp_path / "small.yaml", "--variants", "published", "--keep", 1]
    ran = nocsim(*args, "-o", tmp_path / "best.json", "--json", tmp_path / "table.json")
    assert ran.code == 0, ran
    schedule = Schedule.from_file(tmp_path / "best.json")
    assert f"{schedule.provenance.objective_value:,.0f} cycles" in ran.out
    assert "1 variants solved, 1 distinct schedules" in ran.out
    assert (tmp_path / "table.json").read_text().startswith('{\n  "kind": "portfolio"')


def test_errors_name_the_option(nocsim: Command) -> None:
    layer = ["--network", "resnet50", "--layer", "3356"]
    nocsim("schedule", *layer, "--variants", "netwrk").assert_error("--variants", "'netwrk'", *VARIANTS)
    nocsim("schedule", *layer, "--keep", 0).assert_error("--keep")
    nocsim("schedule", *layer, "--arch", "gpu_k80").assert_error("noc")
    nocsim("schedule").assert_error("no layer given")
    with pytest.raises(InputError, match="variants: empty"):
        portfolio(SMALL, variants=())
