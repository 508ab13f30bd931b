"""Mappers side by side: figures agree with evaluation and simulation, the bound only skips what can't be better."""

from __future__ import annotations

import csv
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import nocsim as api
from cosa.api import evaluate
from cosa.common.pool import Ended, Processes
from cosa.experiments import pipeline
from cosa.experiments.pipeline import Outcome
from cosa.mappers.program import ProgramOptions
from cosa.mappers.registry import MapperOptions, Run, candidates, options_of
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from cosa.model.networks import NetworkLayer
from cosa.model.schedule import Schedule
from nocsim.commands.compare import text
from nocsim.experiments import compare as module
from nocsim.experiments.compare import Comparison, compare, read_entries
from nocsim.experiments.pipeline import SimulatedPoint
from nocsim.experiments.simulated_search import machine_bound, simulate_best
from nocsim.machine.conductor import Conductor
from nocsim.options import RunOptions
from tests.conftest import Command


@pytest.fixture
def small() -> Layer:
    return Layer(name="small", R=3, S=1, P=4, Q=4, C=8, K=16, N=1)


@pytest.fixture
def pool(small: Layer, simba: Architecture) -> list[Schedule]:
    return candidates(small, simba, options_of("random", {"samples": 60, "seed": 4}), Run(most=12))


def test_candidates_are_the_best_of_different_costs(pool: list[Schedule]) -> None:
    values = [schedule.provenance.objective_value for schedule in pool]
    assert len(values) == 12
    assert values == sorted(values)  # type: ignore[type-var]
    assert len({schedule.content_hash for schedule in pool}) == 12


def test_the_bound_is_that_of_a_result(pool: list[Schedule]) -> None:
    for schedule in pool[:3]:
        result = api.simulate(schedule)
        assert machine_bound(schedule).cycles == result.cycles.bound <= result.cycles.total


def test_the_best_by_simulation_is_the_best_of_all_simulated(pool: list[Schedule]) -> None:
    cycles = [api.simulate(schedule).cycles.total for schedule in pool]
    found = simulate_best(pool)
    assert found.cycles == min(cycles)
    assert found.schedule == pool[cycles.index(min(cycles))]
    assert found.simulations + found.skipped == len(pool)
    # Some are not worth a whole simulation, or any.
    assert found.skipped + found.cut_off > 0


def test_a_limit_gives_simulations_up(pool: list[Schedule], monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that can end in time by their bound are tried, the others are not."""
    bounds = sorted(machine_bound(schedule).cycles for schedule in pool)
    most = (simulate_best(pool).cycles or 0) - 1
    found = simulate_best(pool, RunOptions(max_cycles=most))
    within = sum(bound <= most for bound in bounds)
    assert found.cycles is None
    assert 0 < within < len(pool)
    assert found.cut_off == found.simulations == within
    assert found.skipped == len(pool) - within
    assert machine_bound(found.schedule).cycles == bounds[0]
    monkeypatch.setattr("nocsim.api.simulate", None)
    found = simulate_best(pool, RunOptions(max_cycles=50))
    assert (found.cycles, found.simulations, found.skipped) == (None, 0, len(pool))
    assert machine_bound(found.schedule).cycles == bounds[0]


def test_means_say_over_how_many_layers(small: Layer, simba: Architecture) -> None:
    """The simulated mean of a mapper that was given up on a layer is not one over both."""
    large = small.model_copy(update={"name": "large", "P": 56, "Q": 56})
    layers, entries = [NetworkLayer(small, 1), NetworkLayer(large, 1)], read_entries(["published", "random"])
    whole = compare(layers[:1], simba, entries, simulation=RunOptions())
    fast, slow = (row["simulated_cycles"] for row in whole.rows)
    result = compare(layers, simba, entries, simulation=RunOptions(max_cycles=slow))
    assert result.max_cycles == slow
    by_layer = {(row["layer"], row["entry"]): row for row in result.rows}
    given_up = by_layer["large", "random"]
    assert given_up["simulated_cycles"] is None
    assert given_up["at_least_cycles"] == given_up["bound_cycles"] > slow
    mean = result.means[1]
    assert (mean.layers, mean.simulated_layers) == (2, 1)
    assert mean.simulated_ratio == pytest.approx(slow / fast)
    lines = text(result)
    assert "random: not simulated: its bound is above --max-cycles (at least" in " ".join(lines)
    assert lines[-1].split() == ["random", f"{mean.ratio:.2f}", "2", f"{mean.simulated_ratio:.2f}", "1"]


def test_programs_say_how_far_they_came(small: Layer, simba: Architecture, monkeypatch: pytest.MonkeyPatch) -> None:
    real = candidates(small, simba, ProgramOptions())[0]
    provenance = real.provenance.model_copy(update={"solver_status": "time_limit", "gap": 0.25})
    cut = real.model_copy(update={"provenance": provenance})
    for found, stopped_by, gap in ((real, None, real.provenance.gap), (cut, "time", 0.25)):
        monkeypatch.setattr(pipeline, "candidates", lambda *_, found=found: [found])
        result = compare([NetworkLayer(small, 1)], simba, read_entries(["program"]))
        row, lines = result.rows[0], text(result)
        assert (row["stopped_by"], row["gap"], row["bound"]) == (stopped_by, gap, provenance.bound)
        assert ("program: stopped by time" in lines) == (stopped_by == "time")
        assert lines[1] == f"program, objective latency, network model, seed 0, gaps up to {gap:.2%}"
        assert f"{gap:.1%}" in lines[5].split()


def test_figures_are_those_of_the_schedules(small: Layer, simba: Architecture) -> None:
    other = small.model_copy(update={"name": "other", "K": 8})
    layers = [NetworkLayer(small, 2), NetworkLayer(other, 1)]
    given = {"samples": 3, "evaluations": 4000, "seed": 1}
    entries = read_entries(["published", "random", "hybrid"], given)
    result = compare(layers, simba, entries, simulation=RunOptions())
    assert result.complete
    assert [(row["layer"], row["entry"]) for row in result.rows[:4]] == [
        ("small", "published"),
        ("small", "random"),
        ("small", "hybrid"),
        ("other", "published"),
    ]
    row = result.rows[1]
    schedule = candidates(small, simba, options_of("random", given))[0]
    assert row["schedule_hash"] == schedule.content_hash
    evaluation, run = evaluate(schedule), api.simulate(schedule)
    assert (row["timeloop_cycles"], row["energy_pj"], row["simulated_cycles"]) == (
        evaluation.cycles,
        evaluation.energy_pj,
        run.cycles.total,
    )
    assert (row["bound_cycles"], row["samples_valid"], row["count"]) == (run.cycles.bound, 3, 2)
    assert (row["mapper"], row["objective"], row["seed"]) == ("random", "latency", 1)
    first = result.rows[0]
    assert row["ratio"] == evaluation.cycles / first["timeloop_cycles"]
    assert first["ratio"] == first["simulated_ratio"] == 1.0
    ratios = [row["ratio"] for row in result.rows if row["entry"] == "random"]
    mean = result.means[1]
    assert mean.ratio == pytest.approx(math.sqrt(math.prod(ratios)))
    assert (mean.entry, mean.layers) == ("random", 2)


def test_simulated_search_is_never_worse_and_workers_change_nothing(small: Layer, simba: Architecture) -> None:
    def run(objective: str, workers: int) -> Comparison:
        entries = read_entries(["published", "random", "evolutionary"], {"samples": 10, "evaluations": 1500})
        layers = [NetworkLayer(small, 1)]
        how: dict[str, Any] = {"objective": objective, "simulation": RunOptions(), "workers": workers, "timing": False}
        return compare(layers, simba, entries, **how)

    plain, simulated = run("latency", 1), run("simulated", 1)
    for before, after in zip(plain.rows, simulated.rows, strict=True):
        assert after["simulated_cycles"] <= before["simulated_cycles"]
        assert after["simulations"] is not None
    assert simulated == run("simulated", 2)


def test_mappers_with_objectives_of_their_own(small: Layer, simba: Architecture) -> None:
    names = ["published", "program:latency:analytical", "random:energy", "random"]
    result = compare([NetworkLayer(small, 1)], simba, read_entries(names, {"samples": 20}))
    assert [row["entry"] for row in result.rows] == names
    assert [row["mapper"] for row in result.rows] == ["published", "program", "random", "random"]
    published, fast, frugal, quick = result.rows
    assert fast["model"] == "analytical" and frugal["objective"] == "energy"
    assert fast["timeloop_cycles"] <= published["timeloop_cycles"]
    # The same samples, the best by energy and by latency.
    assert frugal["samples_drawn"] == quick["samples_drawn"]
    assert frugal["energy_pj"] <= quick["energy_pj"]
    assert frugal["schedule_hash"] != quick["schedule_hash"]


def test_options_are_for_those_that_know_them() -> None:
    given = {"objective": "edp", "seed": 4, "samples": 9}
    published, program, drawn = read_entries(["published", "program:energy", "random"], given)
    assert published.options.given() == {"seed": 4}
    assert program.options.given() == {"objective": "energy", "seed": 4}
    assert drawn.options.given() == given


def test_a_mapper_without_an_answer_does_not_end_the_comparison(small: Layer, simba: Architecture) -> None:
    result = compare([NetworkLayer(small, 1)], simba, read_entries(["exhaustive", "random"]))
    assert "tilings alone" in result.rows[0]["error"]
    assert result.rows[0]["timeloop_cycles"] is None
    assert result.rows[1]["timeloop_cycles"] is not None
    assert result.rows[1]["ratio"] is None
    assert result.means[1].ratio is None


def test_an_interrupt_keeps_what_is_there(small: Layer, simba: Architecture, monkeypatch: pytest.MonkeyPatch) -> None:
    real = pipeline.candidates

    def broken(layer: Layer, architecture: Architecture, options: MapperOptions, how: Run) -> list[Schedule]:
        if options.mapper == "hybrid":
            raise KeyboardInterrupt
        return real(layer, architecture, options, how)

    monkeypatch.setattr(pipeline, "candidates", broken)
    result = compare([NetworkLayer(small, 1)] * 2, simba, read_entries(["random", "hybrid"]))
    assert not result.complete
    assert [row["entry"] for row in result.rows] == ["random"]


def test_an_interrupt_within_a_simulation_keeps_the_mapping(
    small: Layer, simba: Architecture, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = Conductor._turn

    def interrupted(self: Conductor, event: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Conductor, "_turn", interrupted)
    result = compare([NetworkLayer(small, 1)], simba, read_entries(["random", "hybrid"]), simulation=RunOptions())
    assert turn is not interrupted and not result.complete
    (row,) = result.rows
    assert (row["entry"], row["simulated_cycles"], row["stopped_by"]) == ("random", None, "interrupted")
    assert row["timeloop_cycles"] is not None


def test_an_interrupt_does_not_wait_for_other_processes(
    small: Layer, simba: Architecture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is done until then is there at once."""
    interrupted: list[float] = []
    real = Processes.wait

    def wait(self: Processes, seconds: float) -> list[Ended]:
        if any(busy):
            interrupted.append(time.monotonic())
            raise KeyboardInterrupt
        found = real(self, seconds)
        busy.extend(found)
        return found

    busy: list[Ended] = []
    monkeypatch.setattr(Processes, "wait", wait)
    monkeypatch.setattr(module, "SimulatedPoint", SlowPoint)
    result = compare([NetworkLayer(small, 1)], simba, read_entries(["random", "hybrid"]), workers=2)
    assert time.monotonic() - interrupted[0] < 5
    assert not result.complete
    assert [row["entry"] for row in result.rows] == ["random"]


@dataclass(frozen=True, kw_only=True)
class SlowPoint(SimulatedPoint):
    """Where it is searched, it takes half a minute."""

    def run(self) -> Outcome:
        if self.options is not None and self.options.mapper == "hybrid":
            time.sleep(30)
        return super().run()


def test_the_command(nocsim: Command, tmp_path: Path) -> None:
    layer, table, data = tmp_path / "layer.yaml", tmp_path / "out.csv", tmp_path / "out.json"
    layer.write_text("{name: small, R: 1, S: 1, P: 4, Q: 4, C: 8, K: 16, N: 1}\n")
    options = ("--mappers", "published,random", "--samples", "4", "--simulate", "--no-timing")
    ran = nocsim("compare", "--layer-file", layer, *options, "--csv", table, "--json", data)
    assert (ran.code, ran.err) == (0, "")
    assert ["mapper", "cycles"] in [line.split()[:2] for line in ran.out.splitlines()]
    assert "\npublished, objective cosa, seed 0, gaps up to 0.00%\n" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80
    result = Comparison.from_file(data)
    rows = list(csv.DictReader(table.open()))
    assert [row["mapper"] for row in rows] == [row["entry"] for row in rows] == ["published", "random"]
    assert [int(row["simulated_cycles"]) for row in rows] == [row["simulated_cycles"] for row in result.rows]
    printed = nocsim("compare", "--layer-file", layer, *options, "--json", "-")
    assert json.loads(printed.out) == json.loads(data.read_text())
    assert nocsim("compare", "--layer-file", layer, *options, "--csv", "-").out == table.read_text()
    assert nocsim("compare", "--layer-file", layer, "--mappers", "random,exhaustive").code == 1
    small = nocsim("compare", "--layer-file", layer, "--mappers", "random").out.splitlines()[-1].split()
    assert 0 < float(small[3]) < 0.05  # energy x cycles, not rounded to nothing
    same = ("--json", tmp_path / "one", "--csv", str(tmp_path / "." / "one"))
    nocsim("compare", "--layer-file", layer, *options, *same).assert_error("--csv", "--json")
    nocsim("compare", "--layer-file", layer, *options, "--json", "-", "--csv", "-").assert_error("--csv", "--json")


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ((), ("no layer given",)),
        (("--network", "resnet50", "--layer", "input.8", "--mappers", "program,hybrd"), ("--mappers", "mean hybrid")),
        (("--network", "resnet50", "--layer", "input.8", "--mappers", "program,program"), ("--mappers", "named twice")),
        (
            ("--network", "resnet50", "--mappers", "program:latncy"),
            ("--mappers", "not an objective of", "mean latency"),
        ),
        (
            ("--network", "resnet50", "--mappers", "program:edp:nework"),
            ("--mappers", "not valid (found 'nework')", "mean network"),
        ),
        (
            ("--network", "resnet50", "--mappers", "hybrid:edp:network"),
            ("--mappers", "an option of program, not of the mapper hybrid"),
        ),
        (("--network", "resnet50", "--layer", "input.8,nothing"), ("--layer", "no such layer")),
        (("--network", "resnet50", "--objective", "speed"), ("--objective", "simulated")),
        (("--network", "resnet50", "--workers", "0"), ("--workers",)),
        (("--network", "resnet50", "--candidates", "0"), ("--candidates",)),
        (("--network", "resnet50", "--simulate", "--simulation-time-limit", "0"), ("--simulation-time-limit",)),
        (("--network", "resnet50", "--time-limit", "0"), ("--time-limit",)),
        (("--network", "resnet50", "--mappers", "cosa"), ("--mappers", "mean published")),
        (("--network", "resnet50", "--samples", "-1"), ("--samples",)),
        (("--network", "resnet50", "--csv", "missing/out.csv"), ("missing",)),
        (("--network", "resnet50", "--layer", "3356,3356"), ("--layer", "named twice")),
        (("--network", "resnet50", "--mappers", "program,hybrid", "--samples", "4"), ("--samples", "with random")),
        (
            ("--network", "resnet50", "--mappers", "program", "--evaluations", "4"),
            ("--evaluations", "hybrid"),
        ),
        (("--network", "resnet50", "--simulate", "--candidates", "4"), ("--candidates", "--objective simulated")),
        (("--network", "resnet50", "--max-cycles", "4"), ("--max-cycles", "--simulate")),
        (("--network", "resnet50", "--simulation-time-limit", "4"), ("--simulation-time-limit", "--simulate")),
        (("--network", "resnet50", "--samples", "99999999999999999999"), ("--samples",)),
        (("--network", "resnet50", "--time-limit", "inf"), ("--time-limit",)),
    ],
)
def test_bad_options(nocsim: Command, options: tuple[str, ...], parts: tuple[str, ...]) -> None:
    nocsim("compare", *options).assert_error(*parts)
