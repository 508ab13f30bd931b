"""The fastest mapping without a program: the bound holds, what is found meets it, and nothing else is claimed."""

from __future__ import annotations

import random
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

import cosa
from cosa.analytical.batch import BatchEvaluator
from cosa.analytical.evaluation import evaluate_timeloop
from cosa.api import find_architecture
from cosa.commands.main import app
from cosa.common.errors import InputError
from cosa.mappers.figures import AnalyticalModel
from cosa.mappers.least import least_cycles, most_parallel
from cosa.mappers.opening import outermost_only
from cosa.mip.factors import prime_factors
from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, Layer
from cosa.model.networks import load_network
from cosa.model.validity import violations
from tests.cosa.test_machine_program import LAYERS, exhaustive, small_architecture, small_layer

ANY_FASTEST: dict[str, Any] = {"objective": "latency", "model": "analytical", "settle_ties": False}


def by_trying(layer: Layer, architecture: Architecture) -> int:
    """The most MAC units over every way to give each prime factor to a fan-out or to none."""
    rooms = [room for level in range(len(architecture.levels)) if (room := prod(architecture.fanout(level))) > 1]
    primes = [prime for bound in layer.bounds.values() for prime, n in prime_factors(bound).items() for _ in range(n)]
    best = 1
    for places in product(range(len(rooms) + 1), repeat=len(primes)):
        used = [prod(p for p, at in zip(primes, places, strict=True) if at == place) for place in range(len(rooms))]
        if all(have <= room for have, room in zip(used, rooms, strict=True)):
            best = max(best, prod(used))
    return best


@pytest.mark.parametrize(
    "bounds",
    [
        {"P": 6, "K": 5},
        {"P": 7, "C": 9, "K": 4},
        {"Q": 15, "C": 7},
        {"N": 2},
        {"R": 3, "K": 14},
        {"K": 26, "Q": 5, "P": 21},
    ],
)
@pytest.mark.parametrize("fanouts", [(4, 8), (6, 6), (5, 16), (1, 9), (14, 6)])
def test_the_most_mac_units_are_those_of_all_ways(bounds: dict[str, int], fanouts: tuple[int, int]) -> None:
    data = small_architecture().model_dump(mode="json")
    for level, fanout in zip(data["levels"][:2], fanouts, strict=True):
        level["fanout"] = fanout
    architecture, layer = Architecture.from_data(data), small_layer(**bounds)
    found = most_parallel(layer, architecture)
    assert found.units == by_trying(layer, architecture)
    for level, factors in found.factors.items():
        assert prod(prime**count for prime, count in factors.items()) <= prod(architecture.fanout(level))
    assert found.units == prod(prime**n for factors in found.factors.values() for prime, n in factors.items())


@pytest.mark.parametrize("bounds", LAYERS)
def test_no_mapping_is_below_the_bound(bounds: dict[str, int]) -> None:
    layer, architecture = small_layer(**bounds), small_architecture()
    model = AnalyticalModel(layer, architecture)
    assert 0 < model.least_cycles() <= exhaustive(model, layer, "latency")


@pytest.mark.parametrize("name", ["simba_4x4", "simba_8x_gbuf", "eyeriss_like", "tpu_128x128", "gpu_k80"])
def test_no_random_mapping_is_below_the_bound(name: str) -> None:
    architecture = find_architecture(name)
    rng = random.Random(name)
    for seed in range(12):
        layer = Layer(
            name="drawn",
            R=rng.choice((1, 3, 5)),
            S=rng.choice((1, 1, 3)),
            P=rng.choice((1, 7, 12, 28)),
            Q=rng.choice((1, 5, 14)),
            C=rng.choice((1, 3, 16, 50)),
            K=rng.choice((1, 8, 22)),
            N=rng.choice((1, 2)),
            G=rng.choice((1, 1, 3)),
            stride_w=rng.choice((1, 2, 4)),
            dilation_h=rng.choice((1, 2)),
        )
        least = least_cycles(layer, architecture, most_parallel(layer, architecture).units)
        best = cosa.schedule(layer, architecture, "random", seed=seed, samples=400)
        assert evaluate_timeloop(layer, architecture, best.nest).cycles >= least


@pytest.mark.parametrize("name", ["simba_4x4", "simba_8x8", "simba_8x_gbuf"])
def test_real_layers_meet_the_bound_without_a_program(name: str) -> None:
    architecture = find_architecture(name)
    for entry in load_network("resnet50").layers:
        layer = entry.layer
        found = cosa.schedule(layer, architecture, **ANY_FASTEST)
        least = least_cycles(layer, architecture, most_parallel(layer, architecture).units)
        assert not violations(layer, architecture, found.nest)
        assert least <= evaluate_timeloop(layer, architecture, found.nest).cycles <= least * 1.01
        assert found.provenance.bound == pytest.approx(least)
        assert found.provenance.solver is None
        assert "without a program" in found.provenance.notes[-1]


@pytest.mark.parametrize("bounds", LAYERS)
def test_where_the_bound_is_out_of_reach_the_program_answers(
    bounds: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cosa.mappers.certified.FEW_NESTS", 0)  # else all of a space so small are looked at
    data = small_architecture().model_dump(mode="json")
    # Hardly more than a word of each tensor has room, and words come slowly: all words once is not enough.
    data["levels"][0]["capacity_words"], data["levels"][1]["capacity_words"] = 3, 8
    data["levels"][2]["read_bandwidth_words_per_cycle"] = 0.5
    architecture, layer = Architecture.from_data(data), small_layer(**bounds)
    model = AnalyticalModel(layer, architecture)
    best = exhaustive(model, layer, "latency")
    assert best > model.least_cycles() * 1.01
    found = cosa.schedule(layer, architecture, **ANY_FASTEST)
    assert found.provenance.model_cycles == best
    assert found.provenance.solver is not None
    assert "without a program" not in " ".join(found.provenance.notes)


def test_a_descent_gives_what_its_mapping_evaluates_to_and_never_more_than_the_start() -> None:
    from cosa.analytical.batch_kernel import descend
    from cosa.mappers.neighbours import MappingPoint, MappingPoints

    for bounds in LAYERS:
        layer, architecture = small_layer(**bounds), small_architecture()
        model, evaluator = AnalyticalModel(layer, architecture), BatchEvaluator(layer, architecture)
        start = outermost_only(layer, architecture, model.neighbourhood)
        primes = np.array([2, 3, 5], np.int64)
        keeps = np.array([[[True] * 3, [False, True, True], [True] * 3]])
        values = []
        for most in (1, 10, 1000):
            point = MappingPoint(start.bounds.copy(), start.orders.copy())
            looked, cycles = descend(
                point.bounds,
                point.orders,
                model.neighbourhood.permutations,
                primes,
                keeps,
                evaluator.tables,
                0.0,
                most,
            )
            result = evaluator.evaluate(model.neighbourhood.batch(MappingPoints.of(point)))
            assert looked <= most
            assert result.fits[0]
            assert cycles == result.cycles[0]
            assert tuple(point.bounds.prod(axis=(0, 1))) == tuple(layer.bounds[dim] for dim in DIMS)
            values.append(cycles)
        assert values == sorted(values, reverse=True)
        assert values[-1] < values[0]


def test_a_descent_from_what_fits_nowhere_says_so() -> None:
    from cosa.analytical.batch_kernel import descend

    layer = small_layer(P=4, K=2)
    data = small_architecture().model_dump(mode="json")
    data["levels"][0]["capacity_words"] = 2  # three tensors, one word each
    architecture = Architecture.from_data(data)
    model, evaluator = AnalyticalModel(layer, architecture), BatchEvaluator(layer, architecture)
    start = outermost_only(layer, architecture, model.neighbourhood)
    keeps = np.array([[[True] * 3, [False, True, True], [True] * 3]])
    primes = np.array([2], np.int64)
    tables = model.neighbourhood.permutations, primes, keeps, evaluator.tables
    assert descend(start.bounds, start.orders, *tables, 0.0, 1000)[1] == -1


def test_settled_ties_cost_no_cycles_and_save_energy() -> None:
    layer = "resnet50:input.43"
    fastest = cosa.schedule(layer, **ANY_FASTEST)
    settled = cosa.schedule(layer, objective="latency", model="analytical", time_limit_seconds=20)
    assert settled.provenance.model_cycles == fastest.provenance.model_cycles
    assert (settled.provenance.model_energy_pj or 0) < (fastest.provenance.model_energy_pj or 0)
    assert settled.provenance.bound == fastest.provenance.bound


def test_any_fastest_is_of_latency_alone() -> None:
    with pytest.raises(InputError, match="settle_ties: means nothing to the objective energy"):
        cosa.schedule("resnet50:input.43", objective="energy", settle_ties=False)
    for wrong in (["--objective", "edp"], ["--mapper", "random"], ["--objective", "pareto"]):
        with pytest.raises(InputError, match="--any-fastest"):
            app(["schedule", "--network", "resnet50", "--layer", "input.43", "--any-fastest", *wrong])
