"""The DRAM beside the mesh: its attributes change what it bounds, its clocks add up, writes do not hold back reads."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
import simpy

import cosa
import nocsim
from cosa.model.arch import Architecture
from cosa.model.schedule import Schedule
from dram.channel import READ, WRITE
from dram.devices import load_device
from dram.system import DramSystem
from nocsim.machine.conductor import Conductor
from nocsim.machine.dram_port import AddressLayout
from nocsim.machine.memory import DramMemory
from nocsim.result import report
from nocsim.result.result import Result


@pytest.fixture(scope="module")
def bound_job() -> Schedule:
    """A fully connected layer: each weight is used once, so the DRAM is the bottleneck."""
    return cosa.schedule(cosa.Layer(name="fc", R=1, S=1, P=1, Q=1, C=512, K=256, N=1), objective="cosa")


def run(job: Schedule, **dram: Any) -> Result:
    """The job with another DRAM block, on a machine that asks for as much as it can."""
    data = job.architecture.model_dump(mode="json")
    data["dram"] |= dram
    return nocsim.simulate(job, architecture=Architecture.from_data(data))


def test_halving_the_bandwidth_costs_a_bound_layer_time(bound_job: Schedule) -> None:
    ratio = Fraction(run(bound_job).dram.clocks_per_core_cycle)
    cycles = [run(bound_job, clocks_per_core_cycle=str(ratio / n)).cycles.total for n in (1, 4, 8, 16)]
    assert cycles == sorted(cycles)
    assert cycles[3] > 1.7 * cycles[2]


def test_device_mapping_ranks_and_channels_change_a_bound_layer(bound_job: Schedule) -> None:
    slow = {"clocks_per_core_cycle": "1/4"}
    usual = run(bound_job, **slow)
    found = {
        "another device": run(bound_job, device="ddr3_1333_x4", policy="dramsim2", mapping="scheme2", ranks=2, **slow),
        "a faster device": run(bound_job, device="ddr4_3200_x8", **slow),
        "the column lowest": run(bound_job, mapping="row:rank:bank:bankgroup:column", **slow),
        "the row lowest": run(bound_job, mapping="column:rank:bank:bankgroup:row", **slow),
        "another policy": run(bound_job, policy="dramsim3", **slow),
    }
    for what, result in found.items():
        assert result.cycles.total != usual.cycles.total, what
    assert found["the row lowest"].cycles.total > 3 * usual.cycles.total
    assert run(bound_job, channels=1).dram.channels[0].reads > 0


def test_two_channels_are_faster_and_share_the_load(bound_job: Schedule) -> None:
    one = run(bound_job, clocks_per_core_cycle="1/8")
    two = run(bound_job, clocks_per_core_cycle="1/8", channels=2)
    assert two.cycles.total < 0.8 * one.cycles.total
    reads = [channel.reads for channel in two.dram.channels]
    assert len(reads) == 2 and abs(reads[0] - reads[1]) <= 0.1 * sum(reads)
    assert sum(reads) == one.dram.channels[0].reads


def test_real_time_is_the_default(bound_job: Schedule) -> None:
    result = run(bound_job)
    clock_ghz = bound_job.architecture.clock_ghz
    period_ps = load_device("ddr4_2400_x8").timing.tCK_ps
    assert Fraction(result.dram.clocks_per_core_cycle) == Fraction(1000) / Fraction(str(period_ps)) / Fraction(
        str(clock_ghz)
    )


@pytest.mark.parametrize("policy", ["frfcfs", "dramsim3"])
def test_clocks_of_a_channel_add_up_and_stand_in_the_report(bound_job: Schedule, policy: str) -> None:
    result = run(bound_job, policy=policy, clocks_per_core_cycle="1/2")
    (channel,) = result.dram.channels
    clocks = channel.clocks.model_dump()
    assert sum(clocks.values()) == -(-result.cycles.total // 2)
    assert clocks["in_progress"] == 0, "every write's data are on the bus before the run ends"
    assert clocks["data"] == (channel.reads + channel.writes) * 4
    energy = channel.energy_pj
    assert energy is not None
    assert energy.total == pytest.approx(energy.background + energy.activate + energy.burst + energy.refresh)
    text = report.text(result)
    assert "its clocks: data" in text and "energy" in text


def test_a_bad_mapping_is_pointed_out_with_a_better_one(bound_job: Schedule) -> None:
    assert run(bound_job).dram.advice is None
    result = run(bound_job, mapping="column:rank:bank:bankgroup:row")
    assert result.dram.advice is not None and "column:bankgroup" in result.dram.advice
    assert "note: address mapping" in report.text(result)


def test_layout_gives_each_tensor_rows_of_its_own_and_channels_in_turn() -> None:
    layout = AddressLayout(burst_bytes=64, row_bytes=1024, capacity_bytes=1 << 20, channels=2)
    layout.reserve("weights", tiles=3, tile_bytes=1000)
    layout.reserve("inputs", tiles=1, tile_bytes=64)
    assert layout.place(layout.first_burst("weights", 0)) == (0, 0)
    assert layout.place(layout.first_burst("weights", 1)) == (0, 512)
    assert [layout.place(burst)[0] for burst in range(4)] == [0, 1, 0, 1]
    channel, address = layout.place(layout.first_burst("inputs", 0))
    assert channel == 0 and address % 1024 == 0 and address >= 3 * 512


class Heard:
    """An access that notes the cycle in which a process hears of it."""

    def __init__(self, what: str, env: simpy.Environment, done: list[tuple[str, int]]) -> None:
        self._what, self._env, self._done = what, env, done

    def quietly(self) -> bool:
        return False

    def finish(self) -> None:
        self._done.append((self._what, self._env.now))


def test_full_write_queue_stalls_writes_only() -> None:
    """Five hundred writes wait; reads that come later go at once, and every call comes when its data are on the bus."""
    env = simpy.Environment()
    conductor = Conductor(env)
    system = DramSystem(load_device("ddr4_2400_x8"), logging=True)
    memory = DramMemory(env, [system], conductor.wake)
    conductor.conduct(None, None, memory)
    done: list[tuple[str, int]] = []
    for number in range(500):
        memory.submit(0, WRITE, number * 64, Heard("write", env, done))

    def reader() -> Any:
        yield env.timeout(30)
        for number in range(4):
            memory.submit(0, READ, (1 << 25) + number * 64, Heard("read", env, done))

    env.process(reader())
    env.run()
    reads = [at for what, at in done if what == "read"]
    writes = [at for what, at in done if what == "write"]
    assert len(reads) == 4 and len(writes) == 500
    assert max(reads) < 500 < 2000 < max(writes)
    times = system.request_log()
    timing = system.config.timing
    assert writes == sorted(writes)
    assert max(writes) == times[:500, 1].max() + timing.write_latency + timing.burst_clocks
