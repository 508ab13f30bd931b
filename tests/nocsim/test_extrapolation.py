"""Long schedules: what is extrapolated equals, or nearly equals, the exact run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import floor
from pathlib import Path

import pytest

import cosa
import nocsim
from cosa.analytical.traffic import Traffic
from cosa.model.arch import Architecture
from cosa.model.layer import Dim, Layer
from cosa.model.networks import load_network
from cosa.model.schedule import Loop, Provenance, Schedule, ScheduleLevel
from nocsim.machine.accelerator import Accelerator
from nocsim.machine.dataflow import Odometer, fetches, visits
from nocsim.machine.extrapolate import Simulated, run
from nocsim.machine.limits import Limits
from nocsim.machine.sampling import _SETTLING_LATENCY_CYCLES as SETTLING_LATENCY_CYCLES
from nocsim.machine.sampling import Sampler, SamplingPlan, settling_cycles
from nocsim.result.accounts import accounts, scaled
from nocsim.result.collect import collect
from nocsim.result.estimate import MARGIN, Error, shift, standard_error, windows_for
from nocsim.result.report import text
from nocsim.result.result import Result
from tests.nocsim.nests import architecture, random_schedule

DATA = Path(__file__).parents[1] / "data" / "nocsim"

LAYER = Layer(name="long", R=1, S=1, P=256, Q=16, C=8, K=24, N=1)
BOUNDS: dict[Dim, int] = {"P": 128, "K": 6, "C": 4}
CASES = (("PKC", ["inputs"]), ("PCK", ["inputs", "outputs"]))
"""Outer loops and what the global buffer keeps. Outputs stay, or partial sums leave and come back."""


@pytest.fixture(scope="module", autouse=True)
def settles_soon() -> Iterator[None]:
    """The small machines here fall into step soon, and their schedules are too short to wait for long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nocsim.machine.sampling._SETTLING_LATENCY_CYCLES", 200)
        yield


def _long(order: str, machine: Architecture) -> Schedule:
    """A schedule with nearly all loops at the DRAM level."""
    outermost = sorted((Loop(dim=dim, bound=bound) for dim, bound in BOUNDS.items()), key=lambda x: order.index(x.dim))
    inside = {
        "GB": (Loop(dim="P", bound=2, kind="spatial", axis="x"), Loop(dim="C", bound=2, kind="spatial", axis="y")),
        "L0": (Loop(dim="Q", bound=16), Loop(dim="K", bound=4)),
        "DRAM": tuple(outermost),
    }
    nest = tuple(
        ScheduleLevel(level=level.name, keeps=level.keeps, loops=inside.get(level.name, ()))
        for level in machine.levels[::-1]
    )
    return Schedule.make(LAYER, machine, nest, Provenance(mapper="hand", version="test"))


def _simulate(schedule: Schedule, *, exact: bool = False, ideal_memory: bool = False) -> Result:
    done = run(Simulated(schedule, ideal_memory=ideal_memory), Limits(), None, exact=exact, steps_at_once=0)
    return collect(done.accelerator, None, done.runs, done.error)


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case[0])
def pair(request: pytest.FixtureRequest) -> tuple[Result, Result]:
    """An exact and an extrapolated result; with an ideal memory, since refreshes would ask for a longer schedule."""
    order, keeps = request.param
    schedule = _long(order, architecture([["weights", "inputs", "outputs"]], buffer_keeps=keeps))
    return _simulate(schedule, exact=True, ideal_memory=True), _simulate(schedule, ideal_memory=True)


def test_what_moves_is_exact_and_cycles_nearly(pair: tuple[Result, Result]) -> None:
    exact, found = pair
    assert exact.method == "exact" and exact.extrapolation is None
    assert found.method == "extrapolated" and found.extrapolation is not None
    assert found.flows == exact.flows and found.tensors == exact.tensors and found.nodes == exact.nodes
    assert [link.tensors for link in found.links] == [link.tensors for link in exact.links]
    assert [link.flits for link in found.links] == [link.flits for link in exact.links]
    assert abs(found.cycles.total / exact.cycles.total - 1) <= 0.005


def test_every_cycle_is_accounted_for(pair: tuple[Result, Result]) -> None:
    exact, found = pair
    assert found.cycles.total >= found.cycles.bound
    for pe, same in zip(found.pes, exact.pes, strict=True):
        parts = (pe.waiting_inputs, pe.waiting_weights, pe.waiting_partial_sums, pe.drain, pe.idle)
        assert min(parts) >= 0 and pe.computing + sum(parts) == found.cycles.total
        assert pe.computing == same.computing


def test_the_result_says_how_much(pair: tuple[Result, Result]) -> None:
    exact, found = pair
    part = found.extrapolation
    assert part is not None
    assert part.periods * part.steps_per_period == found.cycles.steps
    assert part.simulated_steps == part.simulated_periods * part.steps_per_period < found.cycles.steps
    assert 0 < part.measured_periods <= part.simulated_periods
    assert part.extrapolated_share == 1 - part.simulated_cycles / found.cycles.total
    assert part.standard_error_share is not None and part.shift_share is not None and part.margin_share is not None
    assert part.shift_error_share is not None
    error = Error(part.standard_error_share, part.shift_share, part.shift_error_share)
    assert part.margin_share == pytest.approx(max(0.0025, MARGIN * error.cycles)) and part.margin_share <= 0.005
    assert abs(found.cycles.total / exact.cycles.total - 1) <= part.margin_share + 1e-5
    assert f", estimated margin {part.margin_share:.2%}" in text(found)
    assert f"EXTRAPOLATED: {part.simulated_steps:,} of {found.cycles.steps:,} steps" in text(found)
    assert "EXTRAPOLATED" not in text(exact)


@pytest.mark.parametrize("seed", range(12))
def test_a_plan_of_all_periods_is_the_exact_run(seed: int) -> None:
    schedule = random_schedule(seed)
    exact = _simulate(schedule, exact=True)
    loops = Traffic(schedule.layer, schedule.architecture, schedule.nest).step_loops
    for depth in range(1, len(loops) + 1):
        bounds = tuple(x.bound for x in loops[:depth])
        share = bounds[-1] if seed % 2 else 1
        plan = SamplingPlan((*bounds[:-1], bounds[-1] // share), share, (), {}, (), 1)
        plan = replace(plan, periods=tuple((number, 1) for number in range(plan.count)))
        accelerator = Accelerator(schedule, plan=plan)
        accelerator.load_kernels()
        accelerator.run()
        assert accelerator.end_cycle == exact.cycles.total
        total, pes = accounts(accelerator)
        assert (total, pes) == (exact.cycles.total, exact.pes)


@pytest.mark.parametrize("seed", range(40))
def test_any_gaps_run_to_the_end(seed: int) -> None:
    """Whatever is left out: no process waits for something that nobody sends."""
    schedule = random_schedule(seed)
    loops = Traffic(schedule.layer, schedule.architecture, schedule.nest).step_loops
    depth = (len(loops) + 1) // 2
    bounds = tuple(x.bound for x in loops[:depth])
    share = max(x for x in range(1, 4) if not depth or bounds[-1] % x == 0) if seed % 2 and depth else 1
    plan = SamplingPlan((*bounds[:-1], bounds[-1] // share) if depth else (), share, (), {}, (), 1)
    chosen = tuple((number, 1) for number in range(plan.count) if number * (seed + 2) % 7 < 4)
    accelerator = Accelerator(schedule, plan=replace(plan, periods=chosen))
    accelerator.run()
    assert accelerator.ended == "finished"


def test_all_processes_skip_the_same() -> None:
    schedule = _long("CPK", architecture([["weights", "inputs", "outputs"]]))
    traffic = Traffic(schedule.layer, schedule.architecture, schedule.nest)
    plan = Sampler(traffic, 4 * traffic.compute_cycles).plan()
    assert plan is not None
    walked = sum(1 for _ in Odometer(traffic.step_loops, plan))
    assert walked == plan.simulated_steps < traffic.steps
    pe, own = traffic.pe["outputs"], traffic.on_chip["outputs"][0]
    stays = list(visits(own, plan=plan))
    inside = list(visits(pe, own, plan))
    assert [visit.number for visit in stays] == sorted({visit.upstream for visit in inside})
    for residency in (pe, own):
        found = list(visits(residency, plan=plan))
        assert sum(visit.weight for visit in found) == residency.visits
        assert sum(visit.weight for visit in found if visit.final) == residency.distinct_tiles
    for residency in (traffic.pe["inputs"], traffic.pe["weights"], traffic.on_chip["inputs"][0]):
        assert sum(x.words * x.weight for x in fetches(residency, None, plan)) == residency.fetched_words


def test_short_schedules_are_exact(small_job: Schedule) -> None:
    assert nocsim.simulate(small_job).method == "exact"


def test_no_plan_where_little_would_be_saved(small_job: Schedule) -> None:
    traffic = Traffic(small_job.layer, small_job.architecture, small_job.nest)
    assert Sampler(traffic, traffic.compute_cycles).plan() is None
    assert _simulate(small_job).method == "exact"


def test_uncertain_runs_end_in_the_exact_one() -> None:
    """Periods differ so much here that more than half of them would be needed."""
    schedule = _long("PCK", architecture([["weights", "inputs", "outputs"]], buffer_keeps=["inputs"]))
    sure = run(Simulated(schedule, ideal_memory=True), Limits(), None, exact=False, steps_at_once=0)
    assert sure.runs > 1 and sure.accelerator.plan is None and sure.error is None
    exact = run(Simulated(schedule, ideal_memory=True), Limits(), None, exact=True)
    assert sure.accelerator.end_cycle == exact.accelerator.end_cycle


def test_rounds_measure_what_the_ones_before_did_and_more() -> None:
    schedule = _long("CPK", architecture([["weights", "inputs", "outputs"]]))
    traffic = Traffic(schedule.layer, schedule.architecture, schedule.nest)
    sampler = Sampler(traffic, 4 * traffic.compute_cycles)
    first = sampler.plan()
    assert first is not None
    more = sampler.refined(first, first.windows + 8, 2)
    assert more is not None and more.settling == 2 and more.windows == first.windows + 8
    head = min(number for number in more.kinds)
    assert {number for number in first.kinds if number >= head} - set(more.kinds) <= set(
        range(first.count - head, first.count)
    )
    for plan in (first, more):
        simulated = {number for number, _ in plan.periods}
        warm = next(number for number in range(plan.count) if number in plan.kinds) // plan.settling
        for number in plan.kinds:
            assert {number - warm * plan.settling, number - 1, number + 1} <= simulated
        weights = dict(plan.periods)
        for kind, count in enumerate(plan.counts):
            assert sum(weights[number] for number, own in plan.kinds.items() if own == kind) == count


def test_a_memory_that_is_slower_than_a_port_settles_later() -> None:
    schedule = _long("CPK", architecture([["weights", "inputs", "outputs"]]))
    traffic = Traffic(schedule.layer, schedule.architecture, schedule.nest)
    assert settling_cycles(traffic, 0.5) > settling_cycles(traffic) > 200


PLAN = SamplingPlan((30,), 1, tuple((n, 1) for n in range(12)), {1: 0, 2: 0, 5: 0, 6: 0, 8: 1, 9: 1}, (20, 8), 1, 3)
"""Windows of periods 1 and 2, 5 and 6, 8 and 9."""


def test_standard_error_of_alike_and_different_periods() -> None:
    alike = {1: 10.0, 2: 10.0, 5: 10.0, 6: 10.0, 8: 5.0, 9: 5.0}
    assert standard_error(PLAN, alike) == 0
    # Windows of a slow period and a fast one say more than two slow ones and two fast ones.
    even = standard_error(PLAN, alike | {1: 12.0, 2: 8.0, 5: 12.0, 6: 8.0})
    uneven = standard_error(PLAN, alike | {1: 12.0, 2: 12.0, 5: 8.0, 6: 8.0})
    assert 0 < even < uneven
    # A single kind: by the textbook, with the periods of a window as one.
    whole = SamplingPlan((24,), 1, (), dict.fromkeys(range(1, 5), 0), (20,), 1, 1)
    alone = replace(whole, kinds={1: 0, 3: 0, 5: 0, 7: 0})
    cycles = {1: 12.0, 3: 8.0, 5: 12.0, 7: 8.0}
    assert standard_error(alone, cycles) == pytest.approx((20 * 16 * (16 / 3) / 4) ** 0.5, rel=0.03)


def test_shift_and_windows() -> None:
    before = {1: 10.0, 5: 10.0, 8: 5.0}
    now = {1: 11.0, 2: 50.0, 5: 12.0, 6: 50.0, 8: 5.0, 9: 70.0}
    # By windows 10, 20 and 0 cycles: 200 in squares around their mean.
    assert shift(PLAN, now, before) == (pytest.approx(30), pytest.approx((200 * 3 / 2) ** 0.5))
    assert shift(PLAN, {1: 12.0}, {1: 10.0}) == (40, 40)  # one window says nothing of how they differ
    assert Error(3.0, 4.0).cycles == pytest.approx(5.0) and Error(3.0, None).cycles == 3.0
    assert Error(2.0, 6.0, 3.0).cycles == pytest.approx(7.0)
    assert Error(2.0, 6.0, 3.0).margin_share(1000) == pytest.approx(0.035)
    assert Error(2.0, 6.0, 3.0).margin_share(10**6) == 0.0025
    assert windows_for(PLAN, Error(10.0, None), 100.0) == 1
    assert windows_for(PLAN, Error(6.0, 0.0, 8.0), 5.0) == windows_for(PLAN, Error(10.0, None), 5.0)
    assert 3 < windows_for(PLAN, Error(10.0, None), 5.0) < windows_for(PLAN, Error(10.0, None), 1.0) <= 3 * 5


def test_scaled_parts_keep_their_sum() -> None:
    assert scaled({"a": 1, "b": 1, "c": 1}, 4) == {"a": 2, "b": 1, "c": 1}
    assert scaled({"a": 0, "b": 3}, 10) == {"a": 0, "b": 10}
    assert scaled({"a": 0}, 5) == {"a": 0}


def _interrupt(share: float, _: int) -> None:
    assert 0 <= share <= 1
    raise KeyboardInterrupt


def test_limits_make_partial_results() -> None:
    schedule = _long("PCK", architecture([["weights", "inputs", "outputs"]]))
    done = run(Simulated(schedule, ideal_memory=True), Limits(time_limit_seconds=0), None, exact=False, steps_at_once=0)
    found = collect(done.accelerator, None, done.runs, done.error)
    assert found.ended == "time_limit" and found.method == "extrapolated" and found.simulated_over_bound is None
    for pe in found.pes:
        parts = (pe.computing, pe.waiting_inputs, pe.waiting_weights, pe.waiting_partial_sums, pe.drain, pe.idle)
        assert min(parts) >= 0 and sum(parts) == found.cycles.total
    done = run(
        Simulated(schedule, ideal_memory=True), Limits(keep_interrupted=True), _interrupt, exact=False, steps_at_once=0
    )
    found = collect(done.accelerator, None, done.runs, done.error)
    assert found.ended == "interrupted" and found.extrapolation is not None and found.extrapolation.margin_share is None
    assert "margin" not in text(found)
    limited = nocsim.simulate(schedule, max_cycles=3000)
    assert limited.method == "exact" and limited.cycles.total == 3000


@pytest.mark.parametrize("seed", range(3))
def test_the_dram_counts_what_was_asked_of_it(seed: int) -> None:
    """Every other period counts twice: accesses and clocks add up."""
    schedule = _long("CPK", architecture([["weights", "inputs", "outputs"]]))
    traffic = Traffic(schedule.layer, schedule.architecture, schedule.nest)
    plan = SamplingPlan((4, 16), 8, tuple((number, 1 + seed) for number in range(0, 64, 8)), {}, (), 48)
    accelerator = Accelerator(schedule, plan=plan)
    accelerator.run()
    result = collect(accelerator, None)
    assert traffic.steps == plan.count * plan.steps_per_period
    for channel, own in zip(result.dram.channels, accelerator.channels, strict=True):
        assert (channel.reads, channel.writes) == (own.stats.reads * (1 + seed), own.stats.writes * (1 + seed))
        clocks = floor(result.cycles.total * accelerator.clocks_per_core_cycle)
        assert sum(channel.clocks.model_dump().values()) == clocks
        assert channel.clocks.data == (channel.reads + channel.writes) * 4
        assert channel.row_hit_rate == pytest.approx(own.stats.row_hit_rate, abs=1e-3)
        assert channel.energy_pj is not None and channel.energy_pj.burst == pytest.approx(
            own.stats.energy_burst_pj * (1 + seed)
        )


@pytest.fixture
def settles_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nocsim.machine.sampling._SETTLING_LATENCY_CYCLES", SETTLING_LATENCY_CYCLES)


@pytest.mark.slow
@pytest.mark.usefixtures("settles_as_usual")
def test_a_machine_that_works_in_another_rhythm_after_a_gap() -> None:
    """Up to 60 periods long: with windows that settled for two or four it was 0.89 % off, with a margin of 0.49 %."""
    found = nocsim.simulate(DATA / "long-rhythm.json")
    part = found.extrapolation
    margin_share = (part.margin_share or 0) if part else 0
    assert abs(found.cycles.total / 2_688_965 - 1) <= margin_share  # the exact run takes so many cycles


@pytest.mark.slow
@pytest.mark.usefixtures("settles_as_usual")
@pytest.mark.parametrize(("layer", "seed"), [("input.40", 0), ("input.15", 2)])
def test_random_schedules_of_resnet50(layer: str, seed: int) -> None:
    found = next(entry.layer for entry in load_network("resnet50").layers if entry.layer.name == layer)
    schedule = cosa.schedule(found, "simba_4x4", "random", samples=1, seed=seed)
    exact, extrapolated = nocsim.simulate(schedule, exact=True), nocsim.simulate(schedule)
    assert extrapolated.flows == exact.flows and extrapolated.tensors == exact.tensors
    assert abs(extrapolated.cycles.total / exact.cycles.total - 1) <= 0.005
