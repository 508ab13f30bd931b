"""The contract between the island and its conductor."""

import random
from fractions import Fraction

import numpy as np
import pytest

from dram import queues_kernel as qk
from dram.config import DramConfig
from dram.devices import load_device
from dram.errors import DramConfigError, DramOrderError
from dram.policies.dramsim2 import command_kernel as d2
from dram.policies.dramsim2.channel import Dramsim2Channel
from dram.policies.dramsim3 import kernel as d3
from dram.policies.dramsim3.channel import Dramsim3Channel
from dram.policies.frfcfs import kernel as fr
from dram.policies.frfcfs.channel import FrfcfsChannel
from dram.system import READ, WRITE, DramSystem

RATIOS = [Fraction(1), Fraction(6, 5), Fraction(1, 3), Fraction(7, 2)]
DEVICES = ["ddr2_667_x8", "ddr3_1333_x4", "ddr4_2400_x8", "hbm2_x128"]

Request = tuple[int, int, int, int]


def requests(config: DramConfig, seed: int, count: int, spread: int) -> list[Request]:
    """(core cycle, op, address, tag): bursts and pauses, streams and random addresses, with repeated addresses."""
    rng = random.Random(seed)
    cycle, result, address = 0, [], 0
    for tag in range(count):
        if rng.random() < 0.2:
            cycle += rng.randrange(spread)
        if rng.random() < 0.02:
            cycle += 6000
        address = (
            rng.randrange(1 << 22) * config.request_bytes if rng.random() < 0.3 else address + config.request_bytes
        )
        if rng.random() < 0.1:
            address = rng.randrange(4) * config.request_bytes
        result.append((cycle, WRITE if rng.random() < 0.4 else READ, address, tag))
    return result


def run_at_once(config: DramConfig, ratio: Fraction, trace: list[Request]) -> tuple[list[tuple[int, int]], DramSystem]:
    system = DramSystem(config, ratio, logging=True)
    columns = [np.array(column) for column in zip(*trace, strict=True)]
    system.submit_many(columns[0], columns[1], columns[2], columns[3])
    done = system.advance(trace[-1][0] + 200_000)
    assert system.pending == 0
    return done, system


@pytest.mark.parametrize("name", DEVICES)
def test_smoke(name: str) -> None:
    system = DramSystem(load_device(name))
    assert system.earliest_visible_cycle() is None
    system.submit(5, READ, 0x1000, 42)
    system.submit(5, WRITE, 0x200000, 43)
    assert system.pending == 2
    done = system.advance(300)
    assert sorted(tag for tag, _ in done) == [42, 43]
    assert system.pending == 0
    assert system.earliest_visible_cycle() is None
    stats = system.stats
    assert (stats.reads, stats.writes, stats.activates, stats.total_cycles) == (1, 1, 2, 300)


def test_idle_read_latency_of_the_cosa_memory() -> None:
    """Acceptance to data: 1 + tRCD + tCMD + RL + BL/2 and tXP - 1 to wake the rank (measured with DRAMSim2: 13)."""
    system = DramSystem(load_device("ddr2_667_x8"))
    system.submit(100, READ, 0x300000, 7)
    assert system.advance(112) == []
    assert system.advance(113) == [(7, 113)]


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("seed", range(3))
def test_small_steps_equal_one_big_step(name: str, ratio: Fraction, seed: int) -> None:
    config = load_device(name)
    trace = requests(config, seed, 600, 100)
    expected, whole = run_at_once(config, ratio, trace)

    rng = random.Random(seed)
    system = DramSystem(config, ratio, logging=True)
    done: list[tuple[int, int]] = []
    cycle = position = 0
    while position < len(trace) or system.pending:
        while position < len(trace) and trace[position][0] <= cycle:
            system.submit(*trace[position])
            position += 1
        bound = system.earliest_visible_cycle()
        assert bound is None or bound > cycle
        next_cycle = cycle + rng.choice([1, 1, 2, 3, 10, 50])
        if position < len(trace):
            next_cycle = min(next_cycle, trace[position][0]) if trace[position][0] > cycle else next_cycle
        new = system.advance(next_cycle)
        for _, visible in new:
            assert cycle < visible <= next_cycle
            assert bound is not None
            assert bound <= visible
        done += new
        cycle = next_cycle
    assert done == expected
    assert (system.request_log() == whole.request_log()).all()
    system.advance(whole.stats.total_cycles * 3 * ratio.denominator // ratio.numerator)
    whole.advance(whole.stats.total_cycles * 3 * ratio.denominator // ratio.numerator)
    assert system.command_log() == whole.command_log()
    assert system.stats == whole.stats


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("name", DEVICES)
def test_conductor_that_jumps_from_bound_to_bound(name: str, ratio: Fraction) -> None:
    config = load_device(name)
    trace = requests(config, 5, 800, 300)
    expected, _ = run_at_once(config, ratio, trace)
    system = DramSystem(config, ratio)
    done: list[tuple[int, int]] = []
    cycle = position = steps = 0
    while position < len(trace) or system.pending:
        while position < len(trace) and trace[position][0] <= cycle:
            system.submit(*trace[position])
            position += 1
        stops = [trace[position][0]] if position < len(trace) else []
        bound = system.earliest_visible_cycle()
        if bound is not None:
            stops.append(bound)
        cycle = min(stops)
        new = system.advance(cycle)
        # nothing became visible before the cycle the conductor was allowed to go to
        assert all(visible == cycle for _, visible in new)
        done += new
        steps += 1
    assert done == expected
    assert steps < 6 * len(trace)


VARIANTS: list[tuple[str, dict[str, object], dict[str, object]]] = [
    ("ddr2_667_x8", {}, {}),
    ("ddr2_667_x8", {"queues": "per_bank", "order": "bank_then_rank", "command_queue": 6}, {}),
    ("ddr2_667_x8", {"page": "close", "low_power": False}, {"AL": 2}),
    ("ddr3_1333_x4", {"order": "bank_then_rank", "row_accesses": 1, "refresh_backlog": "kept"}, {"AL": 3}),
    ("ddr3_1333_x4", {"page": "close", "queues": "per_bank"}, {"tREFI": 400}),
    ("ddr3_1333_x4", {"transaction_queue": 1, "command_queue": 2}, {"tREFI": 200}),
    ("ddr4_2400_x8", {}, {"tREFI": 700}),
    ("ddr4_2400_x8", {"drain_below": 0, "drain_above": 1}, {}),
    ("ddr4_2400_x8", {"policy": "dramsim3"}, {"tREFI": 700}),
    ("ddr4_2400_x8", {"policy": "dramsim3", "page": "close", "queues": "per_rank", "dual_command": True}, {}),
    ("ddr4_2400_x8", {"policy": "dramsim3", "unified_queue": True, "command_queue": 3, "row_accesses": 1}, {}),
    ("ddr4_2400_x8", {"policy": "dramsim3", "leftover_writes": "parked", "transaction_queue": 12}, {}),
    ("ddr4_2400_x8", {"read_queue": 3, "write_queue": 2, "forward_clocks": 0}, {}),
]


@pytest.mark.parametrize(("name", "controller", "timing"), VARIANTS)
def test_jumping_over_quiet_edges_changes_nothing(
    name: str, controller: dict[str, object], timing: dict[str, object]
) -> None:
    config = load_device(name)
    if "policy" not in controller:
        controller = config.controller.model_dump() | controller
    config = config.with_changes(controller=controller, timing=config.timing.model_dump() | timing)
    trace = requests(config, 11, 500, 60)
    expected, jumping = run_at_once(config, Fraction(1), trace)
    plain = DramSystem(config, logging=True)
    columns = [np.array(column) for column in zip(*trace, strict=True)]
    plain.submit_many(columns[0], columns[1], columns[2], columns[3])
    channel = plain.channels[0]
    done: list[tuple[int, int]] = []
    end = expected[-1][1] + 1000
    for edge in range(end):
        # forget all that is known about when to look again
        channel._wake = edge
        channel.io[qk.WAKE] = edge
        if isinstance(channel, Dramsim2Channel):
            channel.queue_info[:, d2.QUEUE_WAKE] = 0
            channel.ranks[:, d2.PRE_WAKE] = -1
            channel.control[d2.POWER_WAKE] = 0
        elif isinstance(channel, Dramsim3Channel):
            channel.queue_info[:, d3.QUEUE_WAKE] = 0
            channel.control[d3.MOVE_BLOCKED] = 0
        elif isinstance(channel, FrfcfsChannel):
            channel.bounds[channel.bounds < fr.NEVER] = 0
            channel.active[:, fr.ACTIVE_BOUND] = 0
        done += plain.advance(edge + 1)
    assert done == expected
    assert (plain.request_log() == jumping.request_log()).all()
    log = plain.command_log()
    assert log == jumping.command_log()[: len(log)]


def test_visible_cycles_follow_the_clock_ratio() -> None:
    config = load_device("ddr4_2400_x8")
    system = DramSystem(config, Fraction(6, 5), logging=True)
    system.submit(10, READ, 0, 1)
    assert system.advance(100) == [(1, -(-(12 + 17 + 17 + 4) * 5 // 6))]
    assert system.request_log().tolist() == [[12, 29, 50]]


def test_a_full_write_queue_does_not_hold_back_reads() -> None:
    config = load_device("ddr4_2400_x8")
    system = DramSystem(config, logging=True)
    system.submit_many(0, WRITE, np.arange(500) * 64, np.arange(500))
    system.submit(0, READ, 1 << 25, 1000)
    done = system.advance(5000)
    order = [tag for tag, _ in done]
    assert len(order) == 501
    assert order.index(1000) < 60
    assert system.request_log()[500, 0] == 0


def test_reads_have_their_turn_while_writes_never_end() -> None:
    config = load_device("ddr4_2400_x8")
    unlimited = config.with_changes(controller=config.controller.model_dump() | {"drain_batch": None})
    order = {}
    for name, variant in (("limited", config), ("unlimited", unlimited)):
        system = DramSystem(variant)
        system.submit_many(0, WRITE, np.arange(2000) * 64, np.arange(2000))
        done = [tag for tag, _ in system.advance(100)]
        system.submit_many(100, READ, (1 << 25) + np.arange(40) * 64, 5000 + np.arange(40))
        done += [tag for tag, _ in system.advance(20_000)]
        assert len(done) == 2040
        order[name] = max(done.index(5000 + number) for number in range(40))
    assert order["limited"] < 300
    assert order["unlimited"] > 1900, "as Ramulator has it"


def test_read_of_a_waiting_write_is_forwarded_and_writes_merge() -> None:
    config = load_device("ddr4_2400_x8")
    system = DramSystem(config)
    # reads keep the controller from draining the writes
    system.submit_many(0, READ, (1 << 24) + np.arange(30) * 64, np.arange(30))
    for tag in (100, 101):
        system.submit(1, WRITE, 0x40, tag)
    system.submit(40, READ, 0x40, 102)
    done = dict(system.advance(2000))
    assert len(done) == 33
    stats = system.stats
    assert (stats.merged_writes, stats.forwarded_reads) == (1, 1)
    assert done[102] == 37 + 21 + 1, "behind the read of 37, whose data come 21 clocks later"


@pytest.mark.parametrize(("forward_clocks", "first_two"), [(0, [57, 58]), (9, [57, 58]), (20, [60, 61])])
def test_forwarded_reads_leave_in_line_one_a_clock(forward_clocks: int, first_two: list[int]) -> None:
    """Reads of one row and bank group: column commands at 17, 23, 29, ..., data 21 clocks later.

    Nine reads that a waiting write answers are taken from 40 on, one a clock. Those before were read by 35 and leave by
    56. The one of 41 is due at 62 and behind two of the nine, the one of 47 is due at 68 and behind eight.
    """
    config = load_device("ddr4_2400_x8")
    config = config.with_changes(controller=config.controller.model_dump() | {"forward_clocks": forward_clocks})
    system = DramSystem(config)
    system.submit_many(0, READ, (1 << 24) + np.arange(30) * 256, np.arange(30))
    system.submit(1, WRITE, 0x40, 100)
    system.submit_many(40, READ, np.full(9, 0x40), 200 + np.arange(9))
    done = dict(system.advance(2000))
    assert [done[tag] for tag in range(7)] == [38, 44, 50, 56, 62, 69, 74]
    assert [done[200 + tag] for tag in range(9)] == [*first_two, 63, 64, 65, 66, 67, 68, 70]
    assert system.stats.forwarded_reads == 9


def test_two_channels_share_the_load() -> None:
    config = load_device("ddr3_1333_x4")
    organization = config.organization.model_dump() | {"channels": 2}
    config = config.with_changes(organization=organization, address_mapping="scheme7")
    one = DramSystem(load_device("ddr3_1333_x4"))
    two = DramSystem(config)
    for system in (one, two):
        system.submit_many(0, READ, np.arange(2000) * 64, np.arange(2000))
        assert system.pending == 2000
    last = [max(cycle for _, cycle in system.advance(50_000)) for system in (one, two)]
    assert last[1] < 0.6 * last[0]
    assert two.stats.reads == 2000


def test_refreshes_are_kept_if_asked_for() -> None:
    config = load_device("ddr2_667_x8")
    kept = config.with_changes(controller=config.controller.model_dump() | {"refresh_backlog": "kept"})
    # many rows of every bank of every rank wait at once, so that a rank is long in closing its banks
    order = np.arange(20_000)
    address_map = config.address_map()
    addresses = (order % 8 << address_map.shifts["bank"]) | (order // 8 % 16 << address_map.shifts["rank"])
    addresses |= order // 128 << address_map.shifts["column"]
    results = []
    for variant in (config, kept):
        system = DramSystem(variant)
        system.submit_many(0, READ, addresses, np.arange(20_000))
        system.advance(60_000)
        results.append(system.stats)
    assert results[0].lost_refreshes > 0
    assert results[1].lost_refreshes == 0
    due = 60_000 // 2600 * 16 + 60_000 % 2600 // 162
    assert results[1].refreshes == due
    assert results[0].refreshes + results[0].lost_refreshes == due


def test_idle_time_is_cheap_and_refreshed() -> None:
    system = DramSystem(load_device("ddr4_2400_x8"))
    system.advance(100_000_000)
    assert system.stats.refreshes == 100_000_000 // 9364


def test_calls_out_of_order_are_errors() -> None:
    system = DramSystem(load_device("ddr2_667_x8"))
    system.advance(100)
    with pytest.raises(DramOrderError, match="cycle 99, but the DRAM stands at cycle 100"):
        system.submit(99, READ, 0, 0)
    with pytest.raises(DramOrderError):
        system.advance(99)
    with pytest.raises(DramOrderError):
        system.submit_many(np.array([200, 150]), READ, np.array([0, 0]), np.array([0, 1]))
    with pytest.raises(DramConfigError, match="must be greater than 0"):
        DramSystem(load_device("ddr2_667_x8"), Fraction(0))


@pytest.mark.parametrize("name", DEVICES)
def test_stream_statistics_and_bandwidth(name: str) -> None:
    config = load_device(name)
    system = DramSystem(config)
    count = 4000
    system.submit_many(0, READ, np.arange(count) * config.request_bytes, np.arange(count))
    last = max(cycle for _, cycle in system.advance(100_000))
    stats = system.stats
    assert stats.reads == count
    assert stats.row_hits + stats.row_misses + stats.row_conflicts == count
    assert stats.activates == stats.row_misses + stats.row_conflicts
    assert stats.bus_busy_cycles == count * config.timing.burst_clocks
    assert stats.total_cycles == 100_000
    assert stats.bus_busy_cycles / (last * len(system.channels)) > (0.7 if name == "ddr2_667_x8" else 0.9)
    states = stats.rank_active_cycles + stats.rank_standby_cycles + stats.rank_powerdown_cycles
    assert states == stats.total_cycles * config.organization.ranks * len(system.channels)
