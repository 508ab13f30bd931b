"""No command log ever breaks a row of the constraint table; the loss account adds up; nothing asked is left undone."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dram.checker import Violation, row_errors, violations
from dram.config import DramConfig
from dram.constraints import Constraint, table_of
from dram.devices import device_names, load_device
from dram.system import READ, WRITE, DramSystem

CONTROLLERS: dict[str, list[dict[str, Any]]] = {
    "frfcfs": [{}, {"refresh_stagger": True, "read_queue": 5, "write_queue": 4}],
    "dramsim3": [
        {},
        {"page": "close"},
        {"queues": "per_rank", "command_queue": 16},
        {"unified_queue": True, "row_accesses": 2},
        {"leftover_writes": "parked", "refresh_ranks": "first_only"},
    ],
    "dramsim2": [{}, {"page": "close"}, {"queues": "per_bank"}],
}


def with_policy(config: DramConfig, policy: str, variant: int) -> DramConfig:
    """The configuration with another controller; DRAMSim2 knows no bank groups and takes WL = RL - 1."""
    changes: dict[str, Any] = {
        "controller": {"policy": policy} | CONTROLLERS[policy][variant % len(CONTROLLERS[policy])]
    }
    if policy == "dramsim2":
        o, t = config.organization, config.timing
        groupless = {"tRRD_L": None, "tCCD_L": None, "tWTR_L": None, "CWL": t.CL - 1}
        changes["organization"] = o.model_dump() | {"bank_groups": 1, "banks_per_group": o.banks}
        changes["timing"] = t.model_dump() | groupless
        fields = [f for f in config.address_mapping.split(":") if f != "bankgroup"]
        changes["address_mapping"] = ":".join(fields)
    return config.with_changes(**changes)


@st.composite
def traffic(draw: st.DrawFn) -> tuple[DramConfig, list[tuple[int, int, int]], Fraction]:
    """A device under any controller, requests (cycle, op, address) and a clock ratio."""
    name = draw(st.sampled_from(device_names()))
    policy = draw(st.sampled_from(["frfcfs", "dramsim3", "dramsim2"]))
    config = with_policy(load_device(name), policy, draw(st.integers(0, 4)))
    organization = config.organization.model_dump() | {
        "ranks": draw(st.sampled_from([1, 2, 4])), "channels": draw(st.sampled_from([1, 2])),
    }  # fmt: skip
    fields = ["row", "rank", "bank", "column", "channel"]
    if organization["bank_groups"] > 1:
        fields.append("bankgroup")
    mapping = ":".join(draw(st.permutations(fields)))
    timing = config.timing.model_dump()
    if draw(st.booleans()):
        timing["tREFI"] = max(timing["tRFC"] + 60, timing["tREFI"] // 6)
    config = config.with_changes(organization=organization, address_mapping=mapping, timing=timing)
    blocks = config.capacity_bytes // config.request_bytes
    requests, cycle, block = [], 0, 0
    for _ in range(draw(st.integers(1, 160))):
        kind = draw(st.integers(0, 9))
        if kind < 2:
            cycle += draw(st.integers(0, 60))
        if kind == 2:
            cycle += draw(st.integers(0, 9000))
        block = draw(st.integers(0, blocks - 1)) if kind > 6 else (block + draw(st.integers(0, 2))) % blocks
        requests.append((cycle, draw(st.sampled_from([READ, READ, WRITE])), block * config.request_bytes))
    return config, requests, draw(st.sampled_from([Fraction(1), Fraction(6, 5), Fraction(1, 3)]))


@settings(max_examples=120, deadline=None, phases=[Phase.explicit, Phase.generate])  # shrinking takes minutes
@given(traffic())
def test_no_command_breaks_the_table_and_all_clocks_are_accounted_for(
    case: tuple[DramConfig, list[tuple[int, int, int]], Fraction],
) -> None:
    config, requests, ratio = case
    system = DramSystem(config, ratio, logging=True)
    cycles, ops, addresses = (np.array(column) for column in zip(*requests, strict=True))
    system.submit_many(cycles, ops, addresses, np.arange(len(requests)))
    done = system.advance(int(cycles[-1]) + 60_000)
    assert sorted(tag for tag, _ in done) == list(range(len(requests)))
    log = system.command_log()
    dual = getattr(config.controller, "dual_command", False)
    assert violations(table_of(config), log, 2 if dual else 1) == []
    assert row_errors(log) == []
    stats, losses = system.stats, system.losses
    assert losses.total == stats.total_cycles * config.organization.channels
    assert losses.in_progress == 0
    assert min(vars(losses).values()) >= 0
    columns = stats.reads + stats.writes
    if config.controller.policy == "dramsim2":
        assert losses.data <= columns * config.timing.burst_clocks  # ranks may meet on its bus
    else:
        assert losses.data == columns * config.timing.burst_clocks
    served = columns + stats.merged_writes + stats.forwarded_reads
    assert served == len(requests) or getattr(config.controller, "leftover_writes", "") == "parked"


@pytest.mark.parametrize("cycle", [0, 3, 700, 5000, 20_001])
@pytest.mark.parametrize("name", device_names())
def test_losses_add_up_at_any_moment(name: str, cycle: int) -> None:
    config = load_device(name)
    system = DramSystem(config)
    rng = np.random.default_rng(1)
    count = 4000
    addresses = rng.integers(0, 1 << 20, count) * config.request_bytes
    system.submit_many(0, READ, addresses, np.arange(count))
    system.advance(cycle)
    losses = system.losses
    assert losses.total == cycle * config.organization.channels
    assert min(vars(losses).values()) >= 0
    system.advance(cycle + 1)
    assert system.losses.total == (cycle + 1) * config.organization.channels


def test_losses_do_not_depend_on_logging_or_steps() -> None:
    config = load_device("ddr4_2400_x8")
    rng = np.random.default_rng(3)
    count = 9000
    ops = (rng.random(count) < 0.4).astype(np.int64)
    addresses = rng.integers(0, 1 << 22, count) * 64
    found = []
    for logging, step in ((True, 200_000), (False, 200_000), (False, 777)):
        system = DramSystem(config, logging=logging)
        system.submit_many(np.arange(count) * 5, ops, addresses, np.arange(count))
        for cycle in range(step, 200_001, step):
            system.advance(cycle)
            if step == 777:
                assert system.losses.total == cycle
        system.advance(200_001)
        found.append(system.losses)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("constraint", "log", "broken"),
    [
        (Constraint("bank", "ACT", "RD", 5, "tRCD"), [(0, "ACT", 0, 0), (4, "RD", 0, 0)], True),
        (Constraint("bank", "ACT", "RD", 5, "tRCD"), [(0, "ACT", 0, 0), (5, "RD", 0, 0)], False),
        (Constraint("bank", "ACT", "RD", 5, "tRCD"), [(0, "ACT", 0, 0), (1, "RD", 0, 1)], False),
        (Constraint("rank", "ACT", "ACT", 9, "tFAW", 2), [(0, "ACT", 0, 0), (4, "ACT", 0, 1), (8, "ACT", 0, 2)], True),
        (Constraint("rank", "ACT", "ACT", 9, "tFAW", 2), [(0, "ACT", 0, 0), (4, "ACT", 0, 1), (9, "ACT", 0, 2)], False),
        (Constraint("other ranks", "RD", "RD", 6, "tRTRS"), [(0, "RD", 0, 0), (5, "RD", 1, 0)], True),
        (Constraint("other ranks", "RD", "RD", 6, "tRTRS"), [(0, "RD", 0, 0), (5, "RD", 0, 0)], False),
    ],
)
def test_checker_sees_what_is_wrong(constraint: Constraint, log: list[tuple[int, str, int, int]], broken: bool) -> None:
    entries = [{"cycle": c, "cmd": name, "channel": 0, "rank": rank, "bank": bank} for c, name, rank, bank in log]
    found = violations([constraint], entries)
    assert [isinstance(v, Violation) for v in found] == ([True] if broken else [])
    if broken:
        assert constraint.name in str(found[0])


def test_checker_sees_a_crowded_command_bus_and_wrong_rows() -> None:
    entries = [
        {"cycle": 1, "cmd": "ACT", "channel": 0, "rank": 0, "bank": 0, "row": 1},
        {"cycle": 1, "cmd": "ACT", "channel": 0, "rank": 0, "bank": 1, "row": 1},
    ]
    assert len(violations([], entries)) == 1
    assert violations([], entries, commands_per_clock=2) == []
    wrong = [*entries, {"cycle": 9, "cmd": "RD", "channel": 0, "rank": 0, "bank": 0, "row": 2}]
    assert len(row_errors([*wrong, entries[0], {"cycle": 20, "cmd": "REF", "channel": 0, "rank": 0}])) == 3
