"""Searches for schedules: what they return is valid and is what they say, and workers change nothing."""

from __future__ import annotations

import pytest

from cosa.analytical.evaluation import evaluate
from cosa.arch import Architecture
from cosa.errors import InfeasibleError, InputError
from cosa.mappers import MAPPERS, Budget, map_layer
from cosa.validity import violations
from cosa.workload import Layer


@pytest.fixture
def small() -> Layer:
    """Small, strided, with a bound that is no power of two."""
    return Layer(name="small", R=3, S=1, P=6, Q=4, C=8, K=4, N=1, stride_w=2)


@pytest.mark.parametrize("objective", ["latency", "energy", "edp"])
def test_random_returns_what_it_claims(small: Layer, simba: Architecture, objective: str) -> None:
    found = map_layer("random", small, simba, objective=objective, budget=Budget(samples=50), seed=3)
    assert violations(small, simba, found.nest) == []
    result = evaluate(small, simba, found.nest)
    value = {"latency": result.cycles, "energy": result.energy_pj, "edp": result.cycles * result.energy_pj}[objective]
    assert found.provenance.objective_value == pytest.approx(value, rel=1e-12)
    search = found.provenance.search
    assert search is not None
    assert (search.stopped_by, search.samples_valid, search.evaluations) == ("samples", 50, 50)
    assert search.samples_drawn > 50


def test_more_samples_are_never_worse(small: Layer, simba: Architecture) -> None:
    values = [
        map_layer("random", small, simba, budget=Budget(samples=n), seed=5).provenance.objective_value
        for n in (1, 10, 100, 1000)
    ]
    assert None not in values
    assert values == sorted(values, reverse=True)  # type: ignore[type-var]
    assert values[0] != values[-1]


def test_workers_change_nothing(small: Layer, simba: Architecture) -> None:
    one, three = (
        map_layer("random", small, simba, budget=Budget(samples=9000), seed=1, workers=n).model_copy(
            update={"timing": None}
        )
        for n in (1, 3)
    )
    assert one == three
    assert one.provenance.search is not None
    assert one.provenance.search.logical_threads == 5


def test_seeds_differ(small: Layer, simba: Architecture) -> None:
    hashes = {map_layer("random", small, simba, seed=seed).content_hash for seed in range(4)}
    assert len(hashes) > 1


def test_names_and_options_are_checked(small: Layer, simba: Architecture) -> None:
    assert {"cosa", "random"} <= set(MAPPERS)
    with pytest.raises(InputError, match="did you mean random"):
        map_layer("randm", small, simba)
    with pytest.raises(InputError, match="did you mean latency"):
        map_layer("random", small, simba, objective="latencies")
    with pytest.raises(InputError, match="no such option"):
        map_layer("random", small, simba, gap=0.1)
    with pytest.raises(InputError, match="budget of samples"):
        Budget(samples=0)


def test_no_room_names_the_level(small: Layer, simba: Architecture) -> None:
    data = simba.model_dump(mode="json")
    data["levels"][4]["capacity_words"] = 1
    with pytest.raises(InfeasibleError, match="GlobalBuffer keeps inputs, outputs"):
        map_layer("random", small, Architecture.from_data(data))
