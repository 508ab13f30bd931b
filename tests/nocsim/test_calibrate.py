"""Calibration: least squares that cannot go below zero, fits that find planted weights, files that are read back."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cosa
import nocsim as simulator
from cosa.analytical.batch import MappingBatch
from cosa.analytical.constants import Constants
from cosa.analytical.least_squares import nonnegative_least_squares
from cosa.analytical.network_batch import NetworkEvaluator
from cosa.common.errors import CosaError
from cosa.mip.objective import Weights
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from nocsim.experiments.calibrate import (
    LEAST_RUNS,
    Sample,
    benchmark_layer,
    calibrate,
    calibrate_published,
    dram_rate,
    fitted,
)
from nocsim.experiments.tune_weights import tune_weights
from tests.conftest import Command

SMALL = Layer(name="small", R=3, S=3, P=7, Q=7, C=16, K=16, N=1)


def test_least_squares_satisfy_their_conditions_of_optimality() -> None:
    """No residual is left along a free column, and none that a column at zero could take away."""
    rng = np.random.default_rng(4)
    at_zero = 0
    for _ in range(50):
        matrix = rng.normal(size=(30, 7)) * 10.0 ** rng.uniform(-4, 4, size=7)
        target = rng.normal(size=30)
        weights = nonnegative_least_squares(matrix, target)
        slope = matrix.T @ (target - matrix @ weights) / np.linalg.norm(matrix, axis=0)
        assert (weights >= 0).all()
        assert np.abs(slope[weights > 0]).max(initial=0) < 1e-8
        assert slope[weights == 0].max(initial=0) < 1e-8
        at_zero += int((weights == 0).sum())
    assert 0 < at_zero < 50 * 7


def test_least_squares_of_dependent_and_empty_columns() -> None:
    matrix = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [3.0, 6.0, 0.0]])
    weights = nonnegative_least_squares(matrix, np.array([2.0, 4.0, 6.0]))
    assert matrix @ weights == pytest.approx([2, 4, 6])
    assert weights[2] == 0


def test_planted_weights_are_found() -> None:
    rng = np.random.default_rng(1)
    matrix = rng.uniform(10, 1000, size=(40, 5))
    planted = np.array([0.6, 0.0, 1.5, 30.0, 0.25])
    assert fitted(matrix, matrix @ planted) == pytest.approx(planted, abs=1e-6)


def test_benchmark_layers_are_drawn_alike_and_small() -> None:
    first, second = ([benchmark_layer(random.Random(3), n) for n in range(5)] for _ in range(2))
    assert first == second
    assert all(200_000 <= layer.macs <= 1_000_000 for layer in first)


def test_the_dram_counts_where_it_is_slower_than_its_port(simba: Architecture) -> None:
    """19.2 GB/s at 1 GHz are 19.2 bytes a cycle, the port passes 6.4; a slower clock ratio turns that round."""
    assert dram_rate(simba) is None
    block = simba.require_dram().model_copy(update={"clocks_per_core_cycle": "1/4"})
    slow = simba.model_copy(update={"dram": block})
    assert dram_rate(slow) == pytest.approx(64 / 4 * 0.25)


@pytest.fixture(scope="module", autouse=True)
def small_layers() -> Iterator[None]:
    """Layers that take no time to simulate."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nocsim.experiments.calibrate._LEAST_MACS", 200_000)
        patch.setattr("nocsim.experiments.calibrate._MOST_MACS", 1_000_000)
        yield


@pytest.fixture(scope="module")
def constants() -> Constants:
    return calibrate(cosa.load_architecture("simba_4x4"), runs=LEAST_RUNS, seed=2)


def test_a_fit_beats_the_defaults_on_its_own_runs_and_says_what_it_is(constants: Constants) -> None:
    fit = constants.fit
    assert fit is not None and fit.architecture == "simba_4x4" and len(fit.runs) <= LEAST_RUNS

    def relative_error(weights: Constants) -> float:
        predicted = [sum(getattr(weights, name) * term for name, term in run.terms.items()) for run in fit.runs]
        return sum((value / run.simulated_cycles - 1) ** 2 for value, run in zip(predicted, fit.runs, strict=True))

    assert relative_error(constants) < relative_error(Constants())
    for run in fit.runs:
        predicted = sum(getattr(constants, name) * term for name, term in run.terms.items())
        assert predicted == pytest.approx(run.predicted_cycles, rel=1e-6)
        assert run.residual == pytest.approx(np.log(run.simulated_cycles / predicted), abs=1e-5)
    assert fit.standard_deviation == pytest.approx(np.std([run.residual for run in fit.runs]), abs=1e-5)


def test_the_file_is_read_by_the_scheduler(constants: Constants, tmp_path: Path) -> None:
    constants.to_file(tmp_path / "constants.json")
    assert Constants.from_file(tmp_path / "constants.json") == constants
    schedule = cosa.schedule(
        SMALL, objective="latency", constants=tmp_path / "constants.json", gap=0.2, time_limit_seconds=2
    )
    evaluator = NetworkEvaluator(SMALL, schedule.architecture)
    loads = evaluator.loads(MappingBatch.of([schedule.nest]))
    predicted = float(evaluator.predicted_cycles(loads, constants)[0])
    assert schedule.provenance.objective_value == pytest.approx(predicted)


def test_workers_change_nothing(constants: Constants, simba: Architecture) -> None:
    assert calibrate(simba, runs=LEAST_RUNS, seed=2, workers=2) == constants


def test_tuned_weights_are_no_worse_than_the_published(simba: Architecture) -> None:
    tuned = tune_weights(SMALL, simba, runs=6)
    assert tuned.tried <= 6
    assert tuned.cycles <= tuned.published_cycles
    for weights, cycles in ((tuned.weights, tuned.cycles), (Weights(), tuned.published_cycles)):
        schedule = cosa.schedule(SMALL, simba, objective="cosa", weights=weights)
        assert simulator.simulate(schedule).cycles.total == cycles


def test_the_published_weights_are_those_that_the_cycles_were_made_with(
    simba: Architecture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cycles of 2^(objective), another constant a layer: the fit finds the weights up to their scale."""
    rng = random.Random(8)
    samples = []
    for number in range(24):
        terms = {"utilisation": -rng.uniform(5, 20), "compute": rng.uniform(8, 14), "traffic": rng.uniform(30, 60)}
        exponent = 0.2 * terms["utilisation"] + 0.8 * terms["compute"] + 0.1 * terms["traffic"] + number // 4
        samples.append(Sample(f"layer {number // 4}", str(number), {"floor": 1.0}, terms, round(2**exponent * 1000)))
    monkeypatch.setattr("nocsim.experiments.calibrate.simulated", lambda *_, **__: samples)
    weights = calibrate_published(simba)
    assert (weights.utilisation, weights.compute, weights.traffic) == pytest.approx((2.5, 10, 1.25), rel=0.01)
    assert weights.fit is not None and weights.fit.standard_deviation < 0.01
    monkeypatch.setattr(
        "nocsim.experiments.calibrate.simulated", lambda *_, **__: [replace(x, cycles=1000) for x in samples]
    )
    with pytest.raises(CosaError, match="no term"):
        calibrate_published(simba)


def test_the_command_writes_weights_that_the_scheduler_reads(nocsim: Command, tmp_path: Path) -> None:
    SMALL.to_file(tmp_path / "small.yaml")
    tuning = ["calibrate", "--tune-weights", "--layer-file", tmp_path / "small.yaml", "--runs", 3]
    ran = nocsim(*tuning, "-o", tmp_path / "weights.yaml")
    assert ran.code == 0, ran
    assert "cycles with the published weights" in ran.out
    cosa.schedule(SMALL, objective="cosa", weights=tmp_path / "weights.yaml")


def test_errors_name_the_option(nocsim: Command) -> None:
    nocsim("calibrate", "--runs", LEAST_RUNS - 1).assert_error("--runs", f"at least {LEAST_RUNS}")
    nocsim("calibrate", "--layer", "x").assert_error("--layer", "--tune-weights")
    nocsim("calibrate", "--published", "--tune-weights").assert_error("--published")
    nocsim("calibrate", "--arch", "gpu_k80").assert_error("noc")
