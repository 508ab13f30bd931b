"""The pipeline: figures are whole entries, points may have their schedule, simulations may be given up."""

from __future__ import annotations

import pytest

import cosa
import nocsim as api
from cosa.experiments.figures import ANALYTICAL, figure_table, totals
from cosa.model.layer import Layer
from nocsim.experiments.pipeline import FIGURES, SimulatedPoint
from nocsim.options import RunOptions

DILATED = Layer(name="dilated", R=3, S=3, P=4, Q=4, C=4, K=6, N=1, dilation_w=2, dilation_h=2)
MESH = "6x6"


def test_figures_say_what_they_are() -> None:
    assert list(FIGURES)[: len(ANALYTICAL)] == [figure.name for figure in ANALYTICAL]
    for name, figure in FIGURES.items():
        assert figure.help and not figure.help.endswith(".")
        assert bool(figure.unit) == name.endswith(
            ("_cycles", "_pj", "_bytes", "_words", "_share", "seconds", "_rate")
        ) or (name in ("edp_pj_cycles", "milliseconds", "mac_utilisation", "gap"))
    assert len(figure_table(FIGURES)) == len(FIGURES) + 2
    short = [figure.short for figure in FIGURES.values() if figure.short]
    assert len(set(short)) == len(short) and not set(short) & set(FIGURES)


def test_a_point_with_a_schedule_is_not_mapped_again(simba: cosa.Architecture) -> None:
    schedule = cosa.schedule(DILATED, simba, "random", seed=5)
    outcome = SimulatedPoint(layer=DILATED, architecture=simba, schedule=schedule).run()
    figures = outcome["figures"]
    assert figures["schedule_hash"] == schedule.content_hash and figures["seed"] == 5
    assert figures["schedule_seconds"] is None and figures["simulated_cycles"] == api.simulate(schedule).cycles.total
    assert SimulatedPoint(layer=DILATED, architecture=simba).schedule_of(outcome) == schedule


def test_what_is_given_up_says_what_it_is_not_below(simba: cosa.Architecture) -> None:
    schedule = cosa.schedule(DILATED, simba, "random")
    whole = api.simulate(schedule).cycles
    for most, reached in (
        (whole.bound - 1, whole.bound),
        (whole.total - 1, whole.total - 1),
        (whole.total, whole.total),
    ):
        simulation = RunOptions(max_cycles=most)
        point = SimulatedPoint(layer=DILATED, architecture=simba, schedule=schedule, simulation=simulation)
        row = point.run()["figures"]
        assert row["at_least_cycles"] == reached
        assert row["simulated_cycles"] == (whole.total if most == whole.total else None)
        assert row["ended"] == ("finished" if most == whole.total else "max_cycles")


def test_totals_by_their_rules() -> None:
    def row(count: int, **figures: object) -> dict[str, object]:
        return {"count": count, **dict.fromkeys(FIGURES), **figures}

    rows = [
        row(
            2,
            latency_cycles=10,
            energy_pj=3.0,
            mac_utilisation=0.5,
            pes=16,
            evaluations=7,
            gap=0.1,
            seed=0,
            bound_by="x",
        ),
        row(
            1,
            latency_cycles=30,
            energy_pj=1.0,
            mac_utilisation=0.1,
            pes=16,
            evaluations=5,
            gap=0.2,
            seed=1,
            bound_by="x",
        ),
    ]
    found = totals(rows, FIGURES)
    expected = {
        "latency_cycles": 50,
        "energy_pj": 7.0,
        "edp_pj_cycles": 350.0,
        "mac_utilisation": pytest.approx((0.5 * 20 + 0.1 * 30) / 50),
        "pes": 16,
        "evaluations": 12,
        "gap": None,
        "seed": None,
        "bound_by": None,
        "simulated_cycles": None,
    }
    assert {name: found[name] for name in expected} == expected
    assert totals(rows[:1], FIGURES)["gap"] == 0.1 and totals(rows[:1], FIGURES)["latency_cycles"] == 20
    assert totals([rows[1]], FIGURES) == {name: rows[1][name] for name in FIGURES}
