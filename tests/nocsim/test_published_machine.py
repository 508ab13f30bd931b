"""The model of the published simulator's machine: loads are its generator's, bounds hold, answers replay fast."""

from __future__ import annotations

import csv
import random
from collections import Counter
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import cosa
from cosa.analytical.batch import MappingBatch
from cosa.analytical.constants import Constants, PublishedConstants
from cosa.analytical.loads import transfers
from cosa.analytical.published_batch import PublishedEvaluator
from cosa.analytical.published_machine import PublishedLoads, require_published
from cosa.analytical.traffic import Traffic
from cosa.common.errors import InfeasibleError, InputError
from cosa.mappers.figures import PublishedModel
from cosa.mappers.program import ProgramOptions
from cosa.model.arch import Architecture, load_architecture
from cosa.model.layer import Layer
from cosa.model.networks import load_network
from cosa.model.schedule import Loop, Provenance, Schedule
from nocsim.experiments.portfolio_search import Portfolio
from nocsim.published.generator import PublishedDataflow
from nocsim.published.portfolio import VARIANTS, published_portfolio, replayed_cycles
from tests.conftest import Command
from tests.nocsim.nests import random_nest

PUBLISHED_CYCLES = Path(__file__).parents[1] / "data" / "cosa" / "published_cycles.csv"
SMALL = Layer(name="small", R=3, S=1, P=4, Q=2, C=8, K=16, N=1)

CLASSES = {
    "inputs_dram_to_gb": "inputs_to_buffer",
    "psums_dram_to_gb": "partial_to_buffer",
    "inputs_gb_to_pe": "inputs_to_pes",
    "psums_gb_to_pe": "partial_to_pes",
    "weights_dram_to_pe": "weights_to_pes",
    "outputs_pe_to_gb": "outputs_to_buffer",
    "outputs_gb_to_dram": "outputs_to_dram",
}


@pytest.fixture(scope="module")
def machine() -> Architecture:
    return load_architecture("cosa2021")


def without_dram(machine: Architecture) -> Architecture:
    return machine.model_copy(update={"dram": None})


def random_schedules(machine: Architecture, count: int, seed: int) -> list[Schedule]:
    """Random small layers as random nests with nine temporal loops in ten outside the PEs."""
    rng = random.Random(seed)
    found: list[Schedule] = []
    while len(found) < count:
        pick = rng.choice
        bounds = {"R": pick((1, 3)), "S": pick((1, 2)), "P": pick((1, 4, 6)), "Q": pick((1, 2))}
        bounds |= {"C": pick((1, 4, 12)), "K": pick((1, 8, 6)), "N": pick((1, 1, 2))}
        layer = Layer(name="random", stride_w=pick((1, 2)), dilation_h=pick((1, 2)), **bounds)
        nest = list(random_nest(rng, layer, machine))
        temporal: list[list[Loop]] = [[] for _ in nest]
        for entry in nest:
            for loop in entry.temporal:
                temporal[pick((0, 1, 1)) if rng.random() < 0.9 else 3].append(loop)
        for at, loops in enumerate(temporal):
            rng.shuffle(loops)
            nest[at] = nest[at].model_copy(update={"loops": (*loops, *nest[at].spatial)})
        found.append(Schedule.make(layer, machine, tuple(nest), Provenance(mapper="random", version="test")))
    return found


def loads_of(schedule: Schedule) -> tuple[PublishedEvaluator, PublishedLoads]:
    evaluator = PublishedEvaluator(schedule.layer, schedule.architecture)
    return evaluator, evaluator.loads(MappingBatch.of([schedule.nest]))


def test_loads_are_those_of_the_generators_list(machine: Architecture) -> None:
    """Flits of every class, to the flit; compute of a PE, its own sends; first and last transfers."""
    partial = reduced = 0
    for schedule in random_schedules(machine, 50, seed=1):
        _, loads = loads_of(schedule)
        flits: Counter[str] = Counter()
        sends: Counter[int] = Counter()
        compute = steps = 0
        for transaction in PublishedDataflow(schedule).transactions():
            name = dict(transaction.labels)["class"]
            if name != "compute":
                flits[name] += 5 * transaction.size
                sends[transaction.actor] += 5 * transaction.size
            elif transaction.actor == 0:
                compute, steps = compute + transaction.size, steps + 1
        for name, field in CLASSES.items():
            assert flits[name] == getattr(loads, field)[0], (name, schedule.nest)
        assert (steps, compute + steps) == (loads.steps[0], loads.compute[0])
        pes = range(16)
        assert max(sends[pe] for pe in pes) == loads.pe_outputs[0]
        assert sum(sends[pe] for pe in pes) == flits["outputs_pe_to_gb"] + flits["psums_pe_to_pe"]
        assert (loads.reduction_chain[0] > 0) == (flits["psums_pe_to_pe"] > 0)
        partial += flits["psums_gb_to_pe"] > 0
        reduced += flits["psums_pe_to_pe"] > 0
    assert partial > 10 and reduced > 10


def test_weights_move_as_the_generator_sends_them(machine: Architecture) -> None:
    """Packets of weights to PEs: those of `cosa2021`; a machine that refetches sends more where its buffer changes."""
    data = machine.model_dump(mode="json")
    data["machine"]["weights_refetch"] = "physical"
    physical, more = Architecture.from_data(data), 0
    for schedule in random_schedules(machine, 60, seed=4):
        schedule = with_loops_inside(schedule)
        listed = PublishedDataflow(schedule).transactions()
        wanted = sum(x.size for x in listed if dict(x.labels)["class"] == "weights_dram_to_pe")
        assert weight_packets(schedule) == wanted, schedule.nest
        refetched = weight_packets(schedule.with_architecture(physical))
        assert refetched >= wanted
        more += refetched > wanted
    assert more > 10


def with_loops_inside(schedule: Schedule) -> Schedule:
    """The schedule with its temporal loops at the global buffer moved to the level under it, outside the weights'."""
    nest = list(schedule.nest)
    moved = nest[1].temporal
    nest[1] = nest[1].model_copy(update={"loops": nest[1].spatial})
    nest[2] = nest[2].model_copy(update={"loops": (*moved, *nest[2].loops)})
    return Schedule.make(schedule.layer, schedule.architecture, tuple(nest), schedule.provenance)


def weight_packets(schedule: Schedule) -> int:
    """Packets of weights that the simulated machine sends, each partly filled one as a full one."""
    found = transfers(Traffic(schedule.layer, schedule.architecture, schedule.nest))
    return sum(-(-x.n_bytes // 32) * x.count for x in found if x.tensor == "weights")


@pytest.mark.parametrize("dram", [False, True])
def test_no_replay_is_below_the_floor(machine: Architecture, dram: bool) -> None:
    architecture = machine if dram else without_dram(machine)
    ratios = []
    for schedule in random_schedules(architecture, 20, seed=2):
        evaluator, loads = loads_of(schedule)
        ratios.append(replayed_cycles(schedule) / evaluator.floor_cycles(loads)[0])
    assert min(ratios) >= 1
    # Bound by its weights from DRAM: little is left between floor and replay.
    dense = cosa.schedule("resnet50:3356", architecture, objective="cosa")
    evaluator, loads = loads_of(dense)
    assert 1 <= replayed_cycles(dense) / evaluator.floor_cycles(loads)[0] < 1.1


def test_program_and_evaluator_have_one_formula(machine: Architecture) -> None:
    """The program's bounds hold for every mapping that keeps to the rules, and are met."""
    for architecture, physical_only in ((machine, True), (without_dram(machine), False)):
        options = {"physical_only": physical_only, "rounds": 3, "settle_ties": False}
        schedule = cosa.schedule(SMALL, architecture, model="published-machine", **options)
        made = schedule.provenance
        assert made.bound is not None and made.machine_bound_cycles is not None and made.model_cycles is not None
        assert made.model == "published-machine" and made.gap is not None and made.gap < 0.2
        model = PublishedModel(SMALL, architecture, physical_only=physical_only)
        evaluator = PublishedEvaluator(SMALL, architecture)
        rng = random.Random(3)
        point = model.neighbourhood.of_nest(schedule.nest)
        for _ in range(6):
            points = model.neighbourhood.neighbours(point, False)
            batch = model.neighbourhood.batch(points)
            found = model.evaluator(point).evaluate(batch, detail=False)
            loads = evaluator.loads(batch)
            assert (found.cycles[found.fits] >= made.bound * (1 - 1e-9)).all()
            assert (evaluator.floor_cycles(loads)[found.fits] >= made.machine_bound_cycles * (1 - 1e-9)).all()
            assert np.allclose(found.cycles, evaluator.predicted_cycles(loads))
            at = rng.choice(list(np.flatnonzero(found.fits)))
            point = points[at]


def test_a_layer_is_replayed_faster_than_the_published_schedule(machine: Architecture) -> None:
    layer = load_network("resnet50").find("input.76").layer
    with PUBLISHED_CYCLES.open() as file:
        published = next(row for row in csv.DictReader(file) if row["layer"] == "input.76")
    schedule = cosa.schedule(layer, without_dram(machine), model="published-machine")
    bound = schedule.provenance.machine_bound_cycles
    assert bound is not None
    assert bound <= replayed_cycles(schedule) <= int(published["none"]) / 1.1
    assert any("a DRAM port that never waits" in note for note in schedule.provenance.notes)


def test_physical_only_leaves_out_what_the_generator_does_not_see(machine: Architecture) -> None:
    layer = Layer(name="deep", R=3, S=3, P=4, Q=4, C=512, K=64, N=1)
    for entry in cosa.schedule(layer, machine, model="published-machine").nest[:2]:
        dims = {loop.dim for loop in entry.loops if loop.bound > 1}
        assert not dims & {"R", "S"}
        assert entry.level != "DRAM" or "C" not in dims
    wide = Layer(name="wide", R=131, S=131, P=1, Q=1, C=1, K=1, N=1)
    with pytest.raises(InfeasibleError, match="physical_only"):
        cosa.schedule(wide, machine, model="published-machine")
    free = cosa.schedule(wide, machine, model="published-machine", physical_only=False)
    assert any(loop.dim in ("R", "S") for entry in free.nest[:2] for loop in entry.loops)


def test_what_is_not_that_machine_is_refused(machine: Architecture, cosa: Command) -> None:
    for name, layer, architecture in (
        ("levels|noc|machine", SMALL, load_architecture("simba_4x4")),
        ("G", SMALL.model_copy(update={"G": 2}), machine),
        ("word_bits", Layer.model_validate(SMALL.model_dump() | {"word_bits": {"weights": 16}}), machine),
        ("dram", SMALL, machine.model_copy(update={"dram": machine.require_dram().model_copy(update={"ranks": 1})})),
    ):
        with pytest.raises(InputError, match=name):
            require_published(layer, architecture)
    for model, constants in (("published-machine", Constants()), ("network", PublishedConstants())):
        with pytest.raises(InputError, match=r"constants\.kind"):
            ProgramOptions.of({"model": model, "constants": constants})
    layer_options = ("--network", "resnet50", "--layer", "3356")
    cosa("schedule", *layer_options, "--any-loops").assert_error("--any-loops", "published-machine")
    cosa("schedule", *layer_options, "--model", "published-machine").assert_error("simba_4x4", "allowed")


@pytest.fixture(scope="module")
def found(machine: Architecture) -> Portfolio:
    return published_portfolio(SMALL, machine, variants=("machine", "all_loads", "published"), keep=1)


def test_the_portfolio_keeps_what_replays_fastest(found: Portfolio) -> None:
    result = found.result
    finished = [one.simulated_cycles for one in result.candidates if one.simulated_cycles is not None]
    assert result.solved + len(result.unsolved) == 3 and result.simulated == len(finished)
    assert result.simulated_cycles == min(finished) == replayed_cycles(found.schedule)
    assert all(one.bound_cycles <= (one.simulated_cycles or one.bound_cycles) for one in result.candidates)
    assert result.machine_bound_cycles is not None and result.machine_bound_cycles <= min(finished)
    assert f"{result.simulated} simulated to the end" in found.schedule.provenance.notes[0]
    assert found.schedule.provenance.model == "published simulator"


def test_the_command_replays_without_dram(nocsim: Command, tmp_path: Path) -> None:
    SMALL.to_file(tmp_path / "small.yaml")
    constants = PublishedConstants(cycles_per_step=70.0)
    constants.to_file(tmp_path / "constants.yaml")
    args = ("schedule", "--layer-file", tmp_path / "small.yaml", "--model", "published-machine", "--memory", "none")
    ran = nocsim(
        *args, "--any-loops", "--keep", 1, "--constants", tmp_path / "constants.yaml", "-o", tmp_path / "o.json"
    )
    assert ran.code == 0, ran
    schedule = Schedule.from_file(tmp_path / "o.json")
    assert schedule.architecture.dram is None
    assert replayed_cycles(schedule) == schedule.provenance.objective_value
    nocsim(*args, "--variants", "machin").assert_error("--variants", "'machin'", *VARIANTS)
    nocsim(*args[:3], "--memory", "none").assert_error("--memory", "published-machine")
    nocsim(*args[:3], "--model", "publishd").assert_error("--model", "published-machine")
    nocsim(*args[:5], "--memory", "ddr").assert_error("--memory", "dramsim2")


def test_loads_have_names_that_formulas_use() -> None:
    """Each load counts in a prediction or a bound: one that is left at 0 would go unseen."""
    from cosa.analytical.published_machine import floors, predicted, resources

    names = [field.name for field in fields(PublishedLoads)]
    for name in names:
        loads = PublishedLoads(**{other: float(other == name) for other in names})
        largest = max(resources(loads, 3.4).values())
        assert predicted(largest, loads, PublishedConstants(), 3.4) > 0 or max(floors(loads, 3.2, 0.5).values()) > 0


def test_rules_go_with_constraints(machine: Architecture) -> None:
    from cosa.model.constraints import Constraints

    base = cosa.schedule(SMALL, machine, model="published-machine")
    fixed = cosa.schedule(SMALL, machine, model="published-machine", constraints=Constraints.of_nest(base.nest))
    assert fixed.nest == base.nest
