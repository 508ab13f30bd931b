"""Every certificate against the best of all nests, by an oracle that shares no code with the product.

Stated value: what the file evaluates to. Bound: at most the true best. Value: at most the true best, times 1 plus the
gap stated. Status: optimal only within the gap asked for.
"""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import cosa
from cosa.common.errors import InfeasibleError, InternalError
from cosa.mappers import certified
from cosa.mappers.confirm import confirm
from cosa.model.arch import Architecture
from cosa.model.constraints import Constraints
from cosa.model.layer import Layer
from cosa.model.schedule import Schedule
from tests.certificate.accounting import evaluate
from tests.certificate.enumerator import OBJECTIVES, TooManyNestsError, best
from tests.certificate.generator import KINDS, Pair, generate, pairs, splits

GAP = 0.01
QUICK = 40
ALL = 300
CASES = Path(__file__).parent.parent / "data" / "certificate"


def read(pair: Pair) -> tuple[Layer, Architecture, dict[str, Any]]:
    options: dict[str, Any] = {"bypass": pair.bypass}
    if pair.constraints is not None:
        options["constraints"] = Constraints.from_data(pair.constraints, "constraints")
    return Layer.from_data(pair.layer, "layer"), Architecture.from_data(pair.architecture, "architecture"), options


def stated_and_file(schedule: Schedule, objective: str, pair_layer: Any, pair_architecture: Any) -> tuple[float, float]:
    """What the provenance says, and what the nest of the written file costs by the oracle."""
    data = json.loads(schedule.to_json())
    cost = evaluate(pair_layer, pair_architecture, data["nest"])
    value = {"latency": float(cost.cycles), "energy": cost.energy_pj, "edp": cost.edp}[objective]
    assert schedule.provenance.objective_value is not None
    return schedule.provenance.objective_value, value


def check(schedule: Schedule, objective: str, least: float, pair_layer: Any, pair_architecture: Any) -> float:
    """The gap stated, after everything else that is stated was held against the least there is."""
    stated, value = stated_and_file(schedule, objective, pair_layer, pair_architecture)
    assert stated == pytest.approx(value, rel=1e-9, abs=0)
    provenance = schedule.provenance
    assert provenance.bound is not None and provenance.gap is not None, "a bound is always known"
    assert provenance.bound <= least * (1 + 1e-9)
    assert least * (1 - 1e-9) <= value <= least * (1 + provenance.gap) * (1 + 1e-9)
    assert provenance.gap == pytest.approx(max(0.0, stated / provenance.bound - 1), abs=1e-12)
    assert provenance.solver_status in ("optimal", "time_limit", "relaxed", "failed")
    if provenance.solver_status == "optimal":
        assert provenance.gap <= GAP * (1 + 1e-9)
    return provenance.gap


def check_pairs(count: int, first: int, most: int) -> int:
    """Check so many pairs; how many answers are within the gap asked for."""
    closed = 0
    for pair, _ in islice(pairs(first, most), count):
        layer, architecture, options = read(pair)
        least = best(pair.layer, pair.architecture, pair.constraints, pair.bypass, most)
        for objective in OBJECTIVES:
            schedule = cosa.schedule(
                layer,
                architecture,
                objective=objective,
                model="analytical",
                gap=GAP,
                time_limit_seconds=20,
                **options,
            )
            try:
                gap = check(schedule, objective, least[objective][0], pair.layer, pair.architecture)
            except AssertionError as error:
                raise AssertionError(f"seed {pair.seed}, {objective}: {error}") from error
            closed += gap <= GAP * (1 + 1e-9)
    return closed


def test_certificates_of_small_pairs_are_true() -> None:
    assert check_pairs(QUICK, first=0, most=1500) == QUICK * len(OBJECTIVES)


@pytest.mark.slow
def test_certificates_of_many_pairs_are_true() -> None:
    # On spaces this small every mapping is looked at; a few are beyond what that may take.
    assert check_pairs(ALL, first=1000, most=12_000) >= 0.98 * ALL * len(OBJECTIVES)


def without_looking_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the proof to the program alone, as it is on any real layer."""
    monkeypatch.setattr(certified, "FEW_NESTS", 0)
    monkeypatch.setattr(certified, "MOST_NESTS", 0)


def test_certificates_of_the_program_alone_are_true(monkeypatch: pytest.MonkeyPatch) -> None:
    without_looking_at_all(monkeypatch)
    assert check_pairs(12, first=500, most=1500) >= 0.9 * 12 * len(OBJECTIVES)


@pytest.mark.slow
def test_certificates_of_the_program_alone_are_true_on_many_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    without_looking_at_all(monkeypatch)
    assert check_pairs(30, first=2000, most=3000) >= 0.7 * 30 * len(OBJECTIVES)


@pytest.mark.parametrize("name", ("above_1", "above_2", "above_3", "edp", "err"))
def test_cases_in_which_a_certificate_was_false_or_missing(name: str) -> None:
    """A better nest than the bound, another file than the one scored, no answer at all; `known` is the best of all
    nests."""
    case = json.loads((CASES / f"{name}.json").read_text())
    layer = Layer.from_data(case["layer"], "layer")
    architecture = Architecture.from_data(case["architecture"], "architecture")
    constraints = None
    if case["constraints"] is not None:
        constraints = Constraints.from_data(case["constraints"], "constraints")
    for objective, known in case["known"].items():
        schedule = cosa.schedule(
            layer,
            architecture,
            objective=objective,
            model="analytical",
            constraints=constraints,
            time_limit_seconds=20,
        )
        check(schedule, objective, known, case["layer"], case["architecture"])


def test_the_network_model_states_what_its_schedule_is() -> None:
    """Its cycles are predicted, so its value is held against a second prediction, of the file; its energy is
    Timeloop's."""
    schedule = cosa.schedule("resnet50:input.43", objective="energy", time_limit_seconds=5)
    assert schedule.provenance.model == "network"
    assert schedule.provenance.objective_value == pytest.approx(cosa.evaluate(schedule).energy_pj, rel=1e-9)
    assert schedule.provenance.model_energy_pj == schedule.provenance.objective_value


def test_pools_and_fronts_are_true_as_well() -> None:
    """The bound of a pool is below everything that is not listed, that of a front below all within so many cycles."""
    checked = 0
    for seed in range(200, 260):
        pair = generate(seed)
        if pair.constraints is not None or pair.bypass != "fixed":
            continue
        if next(pairs(seed, 400))[0].seed != seed:
            continue
        layer, architecture, _ = read(pair)
        costs: dict[str, float] = {}
        front: list[tuple[float, float]] = []
        for cost, nest in pair.enumerator().nests():
            tiles = json.dumps(
                [sorted((loop["dim"], loop["bound"], loop["kind"]) for loop in entry["loops"]) for entry in nest]
            )
            costs[tiles] = min(costs.get(tiles, float("inf")), cost.energy_pj)
            front.append((float(cost.cycles), cost.energy_pj))
        options = {"model": "analytical", "time_limit_seconds": 20}
        for schedule in cosa.schedule_front(layer, architecture, points=4, **options):
            provenance = schedule.provenance
            most = float(provenance.notes[0].split("at most ")[1].split(" cycles")[0].replace(",", ""))
            least = min(energy for cycles, energy in front if cycles <= most)
            assert provenance.bound is not None and provenance.bound <= least * (1 + 1e-9)
        pool = cosa.schedule_pool(
            layer, architecture, count=3, objective="energy", model="analytical", time_limit_seconds=20
        )
        assert pool[0].provenance.bound is not None
        listed = sorted(costs.values())
        for schedule, least in zip(pool, listed, strict=False):
            assert schedule.provenance.objective_value is not None
            gap = schedule.provenance.gap or 0.0
            assert schedule.provenance.objective_value <= least * (1 + max(gap, GAP)) * (1 + 1e-9) or (
                schedule.provenance.bound is not None and schedule.provenance.bound <= least * (1 + 1e-9)
            )
        checked += 1
        if checked == 5:
            return
    raise AssertionError("too few pairs are small enough")


def test_an_answer_that_is_not_what_was_scored_is_an_internal_error() -> None:
    schedule = cosa.schedule("resnet50:input.43", objective="cosa", time_limit_seconds=20)
    assert confirm(schedule, {"cycles": (2.0, 2.0)}) is schedule
    with pytest.raises(InternalError, match=r"cycles stated 2\.0, evaluated 3\.0") as error:
        confirm(schedule, {"cycles": (2.0, 3.0)})
    assert error.value.exit_code == 70
    assert '"nest"' in str(error.value) and '"layer"' in str(error.value)


def test_no_nest_and_infeasible_are_the_same() -> None:
    found = 0
    for seed in range(KINDS.index("constraints"), 2000, len(KINDS)):
        pair = generate(seed)
        try:
            if splits(pair) > 1000 or pair.enumerator().spaces(3000):
                continue
        except TooManyNestsError:
            continue
        layer, architecture, options = read(pair)
        with pytest.raises(InfeasibleError):
            cosa.schedule(layer, architecture, objective="energy", model="analytical", time_limit_seconds=20, **options)
        found += 1
        if found == 3:
            return
    raise AssertionError("too few pairs have no nest")
