"""The machine program: bounds that hold, optima that equal exhaustive search, orders that suffice."""

from __future__ import annotations

import random
from itertools import permutations, product
from math import prod
from typing import Any

import numpy as np
import pytest

import cosa
from cosa.analytical.batch import MappingBatch
from cosa.analytical.constants import Constants
from cosa.analytical.evaluation import evaluate_timeloop
from cosa.analytical.loads import loads
from cosa.analytical.network_batch import NetworkEvaluator
from cosa.analytical.routes import endpoint
from cosa.analytical.traffic import Traffic
from cosa.common.errors import InputError
from cosa.mappers.certified import CertifiedSearch
from cosa.mappers.figures import AnalyticalModel, CostModel, NetworkModel
from cosa.mappers.neighbours import MappingPoint, MappingPoints, Neighbourhood
from cosa.mappers.opening import outermost_only
from cosa.mappers.padding import padding_choices
from cosa.mip.factors import prime_factors
from cosa.model.arch import Architecture, load_architecture
from cosa.model.layer import DIMS, Layer
from cosa.model.networks import load_network
from cosa.model.schedule import Loop, Schedule, ScheduleLevel
from cosa.model.validity import violations
from tests.nocsim.nests import random_architecture


@pytest.fixture(autouse=True)
def program_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spaces as small as these would be looked at whole before a program is stated."""
    monkeypatch.setattr("cosa.mappers.certified.FEW_NESTS", 0)


def small_architecture(**changes: Any) -> Architecture:
    """Three levels: PEs with one store for everything, a shared buffer, DRAM.

    One MAC a PE: side by side under one store, MACs would take words from their neighbours, which no program counts on.
    """
    levels: list[dict[str, Any]] = [
        {"name": "Pe", "keeps": ["weights", "inputs", "outputs"], "capacity_words": 14},
        {"name": "Buffer", "keeps": ["inputs", "outputs"], "capacity_words": 40, "fanout": {"x": 2, "y": 2}},
        {
            "name": "DRAM",
            "keeps": ["weights", "inputs", "outputs"],
            "capacity_words": None,
            "read_bandwidth_words_per_cycle": 2,
            "write_bandwidth_words_per_cycle": 2,
        },
    ]
    return Architecture.from_data({"name": "small", "levels": levels, **changes})


def meshed_architecture() -> Architecture:
    """The same hierarchy with a 2x2 mesh under the buffer."""
    data = small_architecture().model_dump(mode="json")
    data["levels"][1]["fanout"] = "mesh"
    data["noc"] = {"mesh": "2x2", "extra_rows": 1}
    return Architecture.from_data(data)


def splits(bound: int, places: int) -> list[tuple[int, ...]]:
    """Every way to write a bound as a product of `places` factors."""
    if places == 1:
        return [(bound,)]
    return [
        (first, *rest)
        for first in range(1, bound + 1)
        if bound % first == 0
        for rest in splits(bound // first, places - 1)
    ]


def every_tiling(layer: Layer, architecture: Architecture) -> list[np.ndarray]:
    """Bounds [2, level, dimension] of every tiling within fan-outs."""
    levels = len(architecture.levels)
    spread = [level for level in range(levels) if prod(architecture.fanout(level)) > 1]
    dims = [dim for dim in DIMS if layer.bounds[dim] > 1]
    found = []
    for choice in product(*(splits(layer.bounds[dim], levels + len(spread)) for dim in dims)):
        bounds = np.ones((2, levels, len(DIMS)), np.int64)
        for dim, parts in zip(dims, choice, strict=True):
            bounds[0, :, DIMS.index(dim)] = parts[:levels]
            for level, part in zip(spread, parts[levels:], strict=True):
                bounds[1, level, DIMS.index(dim)] = part
        if all(bounds[1, level].prod() <= prod(architecture.fanout(level)) for level in spread):
            found.append(bounds)
    return found


def small_layer(**bounds: int) -> Layer:
    """A layer of these bounds, all others 1."""
    return Layer(name="small", **{**dict.fromkeys(("R", "S", "P", "Q", "C", "K", "N"), 1), **bounds})  # type: ignore[arg-type]


LAYERS = (
    {"P": 4, "R": 3, "C": 2, "K": 2},
    {"P": 6, "R": 3, "stride_w": 2, "K": 2},
    {"P": 2, "Q": 3, "R": 2, "S": 3},
    {"P": 4, "C": 4, "K": 4},
)


def exhaustive(model: AnalyticalModel, layer: Layer, objective: str) -> float:
    """The best value over every tiling and every order of the neighbourhood."""
    neighbourhood = model.neighbourhood
    tilings = np.array(every_tiling(layer, model.architecture))
    best = np.inf
    for orders in product(range(len(neighbourhood.innermost)), repeat=len(model.architecture.levels) - 1):
        numbers = np.tile(np.array((0, *orders)), (len(tilings), 1))
        result = model.evaluator(MappingPoint(tilings[0], numbers[0])).evaluate(
            neighbourhood.batch(MappingPoints(tilings, numbers)), detail=False
        )
        cycles, energy = result.cycles.astype(float), result.energy_pj
        value = {"latency": cycles, "energy": energy, "edp": cycles * energy}[objective]
        best = min(best, float(value[result.fits].min()))
    return best


@pytest.mark.parametrize(
    ("kind", "objective", "bounds"),
    [
        pytest.param(kind, objective, bounds, marks=() if quick else pytest.mark.slow)
        for number, bounds in enumerate(LAYERS)
        for kind in ("analytical", "network")
        for objective in ("latency", "energy", "edp")
        for quick in [(objective == "energy" and number > 0) or (objective == "latency" and number == 3)]
    ],
)
def test_the_answer_is_the_best_of_all_and_the_bound_below_it(
    bounds: dict[str, int], objective: str, kind: str
) -> None:
    layer = small_layer(**bounds)
    model: AnalyticalModel
    if kind == "analytical":
        model = AnalyticalModel(layer, small_architecture())
    else:
        model = NetworkModel(layer, meshed_architecture())
    start = outermost_only(layer, model.architecture, model.neighbourhood)
    outcome = CertifiedSearch(model=model, start=[start], gap=1e-4, time_limit_seconds=60).run(objective)
    best = exhaustive(model, layer, objective)
    assert outcome.value == pytest.approx(best, rel=1e-9)
    assert outcome.bound <= best * (1 + 1e-9)


def nest_of(architecture: Architecture, bounds: np.ndarray, orders: list[tuple[int, ...]]) -> tuple[ScheduleLevel, ...]:
    """A nest with the temporal loops of each level in an order (dimension numbers, outer to inner)."""
    found = []
    for level, entry in enumerate(architecture.levels):
        loops = [Loop(dim=DIMS[dim], bound=int(bounds[0, level, dim])) for dim in orders[level]]
        loops += [
            Loop(dim=DIMS[dim], bound=int(bounds[1, level, dim]), kind="spatial", axis="row_major")
            for dim in np.flatnonzero(bounds[1, level] > 1)
        ]
        found.append(ScheduleLevel(level=entry.name, keeps=entry.keeps, loops=tuple(loops)))
    return tuple(found[::-1])


@pytest.mark.parametrize("bounds", LAYERS[:3], ids=str)
def test_the_orders_of_the_table_are_as_good_as_all_orders(bounds: dict[str, int]) -> None:
    """Every permutation of every level, on random tilings: none has less energy than the best order of the table."""
    layer, architecture = small_layer(**bounds), small_architecture()
    model = AnalyticalModel(layer, architecture)
    neighbourhood = model.neighbourhood
    tilings = every_tiling(layer, architecture)
    rng = random.Random(1)
    for tiling in rng.sample(tilings, 30):
        choices = [
            list(permutations(int(dim) for dim in np.flatnonzero(tiling[0, level] > 1)))
            for level in range(len(architecture.levels))
        ]
        nests = [nest_of(architecture, tiling, list(orders)) for orders in product(*choices)]
        least = min(evaluate_timeloop(layer, architecture, nest).energy_pj for nest in nests)
        table = np.array(
            [(0, *orders) for orders in product(range(len(neighbourhood.innermost)), repeat=len(choices) - 1)]
        )
        batch = neighbourhood.batch(MappingPoints.of(MappingPoint(tiling, table[0]), table))
        found = model.evaluator(MappingPoint(tiling, table[0])).evaluate(batch, detail=False)
        assert float(found.energy_pj.min()) == pytest.approx(least, rel=1e-12)


def fixed(model: AnalyticalModel, point: MappingPoint) -> tuple[float, float, float]:
    """Cycles, energy (pJ) and floor that the program gives one tiling at most, orders free."""
    return at_tiling(model.program(1000.0, 1e5), point)


def at_tiling(program: Any, point: MappingPoint) -> tuple[float, float, float]:
    """Cycles, energy (pJ) and floor of a program in units of 1000 and 1e5, of one tiling at most."""
    from pyomo.core import Objective

    from cosa.mip.solver import solve

    for (level, dim, prime, kind), count in program.counts.items():
        factors = prime_factors(int(point.bounds[int(kind == "spatial"), level, DIMS.index(dim)]))
        program.require(count == factors.get(prime, 0))
    values = []
    for expression, unit in ((program.cycles, 1000.0), (program.energy, 1e5), (program.floor, 1000.0)):
        if program.model.component("objective") is not None:
            program.model.del_component("objective")
        program.model.objective = Objective(expr=expression)
        for _ in range(4):
            result = solve(program.model, gap=1e-9)
            assert result.objective is not None
            if sum(power.refine() for power in program.powers) == 0:
                break
        values.append(result.objective * unit)
    return values[0], values[1], values[2]


@pytest.mark.parametrize(
    ("kind", "name"), (("analytical", "simba_4x4"), ("network", "simba_4x4"), ("network", "cosa2021"))
)
def test_the_program_never_exceeds_the_figures_of_a_mapping(kind: str, name: str) -> None:
    """Real hierarchy, real layers (one whose stride leaves gaps): random mappings with random orders of the table."""
    architecture = load_architecture(name)
    rng = random.Random(5)
    for network, name in (("resnet50", "input.2"), ("resnet50", "input.43"), ("resnet50", "input.132")):
        layer = load_network(network).find(name).layer
        model: AnalyticalModel = (
            AnalyticalModel(layer, architecture) if kind == "analytical" else NetworkModel(layer, architecture)
        )
        point = outermost_only(layer, architecture, model.neighbourhood)
        for _ in range(2):
            for _ in range(12):
                points = model.neighbourhood.neighbours(point, False)
                result = model.evaluator(point).evaluate(model.neighbourhood.batch(points), detail=False)
                point = points[rng.choice(np.flatnonzero(result.fits).tolist())]
            figures = model.figures(point)
            assert figures is not None
            cycles, energy, floor = fixed(model, point)
            assert floor <= model.floor_cycles(point) * (1 + 1e-6)
            assert cycles <= figures.cycles * (1 + 1e-6)
            assert energy <= figures.energy_pj * (1 + 1e-6)


@pytest.mark.parametrize(
    "windows", ({}, {"R": 2, "stride_w": 2}, {"R": 3, "stride_w": 3}, {"S": 3, "dilation_h": 2}), ids=str
)
def test_loads_of_a_batch_equal_those_of_the_transfers(windows: dict[str, int]) -> None:
    """Flits at the ports and bytes at the DRAM, against `cosa.analytical.loads`, for nests on random machines."""
    rng = random.Random(3)
    compared = 0
    for _ in range(60):
        architecture = random_architecture(rng, machine={"weights_refetch": rng.choice(("physical", "published"))})
        layer = small_layer(P=rng.choice((2, 4)), C=rng.choice((2, 4)), K=rng.choice((2, 3, 4)), Q=2, **windows)
        model = AnalyticalModel(layer, architecture)
        point = outermost_only(layer, architecture, model.neighbourhood)
        for _ in range(8):
            points = model.neighbourhood.neighbours(point, False)
            point = points[rng.randrange(len(points))]
        nest = model.neighbourhood.nest(point)
        found = NetworkEvaluator(layer, architecture).loads(MappingBatch.of([nest]))
        traffic = Traffic(layer, architecture, nest)
        exact = loads(traffic)
        by_router = dict(exact.injected_flits)
        noc = architecture.require_noc()
        dram = tuple(endpoint(noc, port) for port in noc.dram_ports)
        buffer = tuple(endpoint(noc, port) for port in noc.global_buffer_ports)
        assert found.dram_out[0] == by_router.get(dram, 0) / len(dram)
        assert found.gb_out[0] == by_router.get(buffer, 0) / len(buffer)
        assert found.gb_in[0] == exact.ejected_flits.get(buffer, 0) / len(buffer)
        assert found.dram_in[0] == exact.ejected_flits.get(dram, 0) / len(dram)
        assert found.steps[0] == traffic.steps
        assert found.link[0] <= exact.link_cycles
        compared += 1
    assert compared == 60


def test_padding_is_taken_where_it_pays_and_told_apart() -> None:
    layer = small_layer(K=17, C=17)
    architecture = load_architecture("simba_4x4")
    plain = cosa.schedule(layer, architecture, objective="latency", model="analytical")
    padded = cosa.schedule(layer, architecture, objective="latency", model="analytical", pad_percent=20)
    assert padded.padded and padded.padding_macs > 0
    assert padded.provenance.objective_value is not None and plain.provenance.objective_value is not None
    assert padded.provenance.objective_value < plain.provenance.objective_value
    assert not violations(padded.padded_layer, architecture, padded.nest)


def test_padding_choices_split_better_than_the_bound() -> None:
    layer = small_layer(K=127, C=64)
    assert padding_choices(layer, 5) == {"K": (127, 128, 130, 132)}
    assert padding_choices(layer, 0) == {}
    with pytest.raises(InputError, match="pad_percent"):
        padding_choices(layer, -1)


def test_latency_takes_the_least_energy_of_the_fastest() -> None:
    """Input.132: other tools burn several times the energy at the same latency."""
    layer = load_network("resnet50").find("input.76").layer
    architecture = load_architecture("simba_4x4")
    fastest = cosa.schedule(layer, architecture, objective="latency", model="analytical")
    least = cosa.schedule(layer, architecture, objective="energy", model="analytical")

    def energy(schedule: Schedule) -> float:
        return evaluate_timeloop(layer, architecture, schedule.nest).energy_pj

    assert energy(fastest) <= energy(least) * 1.01


def test_names_are_checked() -> None:
    layer = small_layer(K=4)
    with pytest.raises(InputError, match="model: not valid"):
        cosa.schedule(layer, load_architecture("simba_4x4"), model="netwrk")
    with pytest.raises(InputError, match="objective: no such objective"):
        cosa.schedule(layer, load_architecture("simba_4x4"), objective="speed")
    with pytest.raises(InputError, match="mesh"):
        cosa.schedule(layer, small_architecture(), model="network")


def test_the_network_model_knows_one_buffer_under_the_dram() -> None:
    """With the mesh elsewhere its loads, and so its proven floor, would be those of another machine."""
    data = meshed_architecture().model_dump(mode="json")
    data["levels"][1]["fanout"], data["levels"][2]["fanout"] = 1, "mesh"
    architecture, layer = Architecture.from_data(data), small_layer(K=4, C=4)
    with pytest.raises(InputError, match="one global buffer"):
        cosa.schedule(layer, architecture, model="network")
    assert cosa.schedule(layer, architecture).provenance.model == "analytical"


def test_compute_from_the_first_word_does_not_wait_for_the_first_tiles() -> None:
    data = load_architecture("simba_4x4").model_dump(mode="json")
    data["machine"]["compute_starts"] = "first_word"
    # All weights of this schedule pass the DRAM port before the last PE begins.
    schedule = cosa.schedule("resnet50:input.76", objective="cosa")
    floors = []
    for architecture in (load_architecture("simba_4x4"), Architecture.from_data(data)):
        evaluator = NetworkEvaluator(schedule.layer, architecture)
        loads = evaluator.loads(MappingBatch.of([schedule.nest]))
        floors.append((evaluator.floor_cycles(loads)[0], loads))
    (waiting, loads), (overlapped, of_overlapped) = floors
    assert loads.start[0] > loads.weights[0] > 0 == of_overlapped.start[0]
    assert waiting >= loads.compute[0] + loads.start[0] + loads.tail[0] > loads.compute[0] + loads.tail[0]
    assert waiting > overlapped


def test_constants_are_part_of_the_prediction() -> None:
    layer, architecture = small_layer(K=4, C=4), load_architecture("simba_4x4")
    point = outermost_only(layer, architecture, Neighbourhood(architecture))
    first: CostModel = NetworkModel(layer, architecture)
    second: CostModel = NetworkModel(layer, architecture, constants=Constants(cycles_per_step=1000))
    one, other = first.figures(point), second.figures(point)
    assert one is not None and other is not None
    assert other.cycles - one.cycles == pytest.approx(16 * (1000 - Constants().cycles_per_step))


def test_who_pads_nothing_is_told_of_idle_macs() -> None:
    layer = Layer(name="primes", R=1, S=1, P=37, Q=1, C=19, K=41, N=1)
    plain = cosa.schedule(layer, load_architecture("simba_4x4"), model="analytical", rounds=1)
    (hint,) = (note for note in plain.provenance.notes if "--pad-percent" in note)
    assert "P 37, C 19, K 41 grow" in hint
    padded = cosa.schedule(layer, load_architecture("simba_4x4"), model="analytical", rounds=1, pad_percent=15)
    assert padded.provenance.model_cycles < plain.provenance.model_cycles / 2
    assert not any("--pad-percent" in note for note in padded.provenance.notes)
