"""The proven bounds of the network model against exact simulations: nothing runs below them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import cosa
import nocsim
from cosa.analytical.batch import MappingBatch
from cosa.analytical.constants import Constants
from cosa.analytical.network_batch import NetworkEvaluator
from cosa.mappers.figures import NetworkModel
from cosa.mappers.neighbours import MappingPoint
from cosa.mappers.opening import outermost_only
from cosa.mappers.polish import SCORES
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from cosa.model.schedule import Provenance, Schedule
from tests.nocsim.nests import random_schedule

LOADS_ONLY = Constants(cycles_per_step=0.0).floor_alone()
"""A prediction that is the floor: descents end where nothing hides an error of it."""

LAYERS = (
    Layer(name="plain", R=1, S=1, P=14, Q=14, C=64, K=64, N=1),
    Layer(name="window", R=3, S=3, P=14, Q=7, C=16, K=32, N=1),
    Layer(name="gaps", R=1, S=1, P=14, Q=14, C=32, K=64, N=1, stride_w=2, stride_h=2),
    Layer(name="weights", R=1, S=1, P=1, Q=7, C=256, K=256, N=1),
)

MACHINES: tuple[dict[str, Any], ...] = (
    {},
    {"compute_starts": "first_word", "reduction": "tree"},
    {"halo_reuse": False, "chunk_packets": 4},
    {"weights_refetch": "published"},
)


def simulated_cycles(schedule: Schedule) -> int:
    """Cycles of an exact run."""
    return nocsim.simulate(schedule, exact=True).cycles.total


def test_no_random_schedule_runs_below_its_floor() -> None:
    rng = random.Random(3)
    for seed in range(60):
        noc = {"partial_packets": "full"} if seed % 3 else {"global_buffer_ports": [{"router": [0, -1]}]}
        schedule = random_schedule(seed, machine=dict(rng.choice(MACHINES)), noc=noc)
        evaluator = NetworkEvaluator(schedule.layer, schedule.architecture)
        floor = evaluator.floor_cycles(evaluator.loads(MappingBatch.of([schedule.nest])))[0]
        assert floor <= simulated_cycles(schedule), seed


def near(model: NetworkModel, rng: random.Random) -> MappingPoint:
    """A mapping a random walk away from one with a low floor."""
    neighbourhood = model.neighbourhood
    point = outermost_only(model.layer, model.architecture, neighbourhood)
    point, _ = model.descend(point, SCORES["latency"], None)
    for _ in range(rng.choice((0, 1, 3))):
        points = neighbourhood.neighbours(point, False)
        result = model.evaluator(point).evaluate(neighbourhood.batch(points), detail=False)
        fits = np.flatnonzero(result.fits)
        at = rng.choice(fits[np.argsort(result.cycles[fits], kind="stable")][:12].tolist())
        point = points[at]
    return point


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_no_schedule_near_the_least_floor_runs_below_its_own(layer: Layer, simba: Architecture) -> None:
    rng = random.Random(9)
    for machine in MACHINES:
        data = simba.model_dump(mode="json")
        data["machine"] |= machine
        architecture = Architecture.from_data(data)
        model = NetworkModel(layer, architecture, constants=LOADS_ONLY)
        point = near(model, rng)
        nest = model.neighbourhood.nest(point)
        schedule = Schedule.make(layer, architecture, nest, Provenance(mapper="test", version="0"))
        assert model.floor_cycles(point) <= simulated_cycles(schedule)


@pytest.mark.parametrize("layer", LAYERS[1:3], ids=lambda layer: layer.name)
def test_no_schedule_of_a_layer_runs_below_the_proven_bound(layer: Layer, simba: Architecture) -> None:
    best = cosa.schedule(layer, simba, settle_ties=False, rounds=1)
    bound = best.provenance.machine_bound_cycles
    assert bound is not None and bound > 0.5 * simulated_cycles(best)
    model = NetworkModel(layer, simba, constants=LOADS_ONLY)
    rng = random.Random(2)
    for _ in range(3):
        nest = model.neighbourhood.nest(near(model, rng))
        schedule = Schedule.make(layer, simba, nest, Provenance(mapper="test", version="0"))
        assert bound <= simulated_cycles(schedule)
