"""What waits were for: cases with a known cause, by hand, and sums on random machines."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import nocsim
from cosa.model.schedule import Loop, Schedule
from nocsim.machine.accelerator import Accelerator
from nocsim.machine.sampling import SamplingPlan
from nocsim.machine.waits import CAUSES, Outbox, Passage, Passages, Timeline, by_resource
from nocsim.result.accounts import accounts
from nocsim.result.report import text
from nocsim.result.result import PeCycles, Result
from tests.conftest import spatial, temporal
from tests.nocsim.nests import any_schedule, random_schedule
from tests.nocsim.test_time_lines import product

PE_LOOPS = (temporal("P", 8), temporal("C", 8), temporal("K", 2))


def sums(result: Result) -> Counter[str]:
    """Cycles of all PEs by resource."""
    found: Counter[str] = Counter()
    for pe in result.pes:
        for cycles in pe.waiting.values():
            found.update({str(resource): n for resource, n in cycles.items()})
    return found


def check(pes: tuple[PeCycles, ...], total: int) -> None:
    """Every cycle of every PE is one of computing, waiting for a resource, idle."""
    for pe in pes:
        fields = (pe.waiting_inputs, pe.waiting_weights, pe.waiting_partial_sums, pe.drain)
        by_cause = {cause: sum(pe.waiting.get(cause, {}).values()) for cause in CAUSES}
        assert tuple(by_cause.values()) == fields
        assert all(n > 0 for cycles in pe.waiting.values() for n in cycles.values())
        assert pe.computing + sum(by_cause.values()) + pe.idle == total


# ---- by hand


def test_two_pes_by_hand() -> None:
    """The first case of `test_time_lines`: all waits are ports, one flit a cycle, and the way.

    Inputs leave the DRAM in 5..24, behind the weights, and need 4 cycles to the global buffer; from there in 29..38,
    12 cycles to PE 0 and 8 to PE 1. The outputs of 32 bytes, 3 flits for each PE, leave at the end.
    """
    nest = {"GB": (temporal("P", 2), spatial("K", 2, "x")), "L1": PE_LOOPS}
    schedule = product("2x1", (16, 8, 4), nest, pe={"pipeline_latency_cycles": 3})
    result = nocsim.simulate(schedule, ideal_memory=True)
    far, near = (pe.waiting for pe in result.pes)
    assert far == {"inputs": {"port": 25 + 10, "latency": 4 + 12}, "drain": {"port": 3}}
    assert near == {"inputs": {"port": 25 + 10, "latency": 4 + 8}, "drain": {"port": 3}}
    check(result.pes, result.cycles.total)
    assert "waiting for, because of" in text(result)


def test_a_slow_dram() -> None:
    nest = {"DRAM": (temporal("P", 4),), "GB": (spatial("K", 2, "x"),), "L1": PE_LOOPS}
    waits = []
    for ratio in ("1/16", "1/1"):
        schedule = product("2x1", (32, 8, 4), nest, gb={"buffers": 2}, dram={"clocks_per_core_cycle": ratio})
        result = nocsim.simulate(schedule)
        check(result.pes, result.cycles.total)
        waits.append(sums(result))
    slow, fast = waits
    assert slow["dram"] > 0.8 * slow.total() and slow["dram"] > 10 * fast["dram"]


def test_one_port_for_many() -> None:
    """Each of 4 PEs gets weights of its own, 64 words in 10 flits, in the order of their numbers; then they compute."""
    schedule = product("2x2", (1, 64, 4), {"GB": (spatial("K", 4, "row_major"),), "L1": (temporal("C", 64),)})
    result = nocsim.simulate(schedule, ideal_memory=True)
    check(result.pes, result.cycles.total)
    found = sums(result)
    assert found["port"] > 0.7 * found.total() and set(found) == {"port", "latency"}
    weights = [pe.waiting_weights for pe in result.pes]
    assert weights == sorted(weights) and weights[-1] > weights[0]


def _with_buffers(buffers: int) -> Result:
    data = product("2x1", (64, 8, 4), {"GB": (temporal("P", 8), spatial("K", 2, "x")), "L1": PE_LOOPS})
    level = data.architecture.levels[0].model_copy(update={"buffers": buffers})
    architecture = data.architecture.model_copy(update={"levels": (level, *data.architecture.levels[1:])})
    return nocsim.simulate(Schedule.make(data.layer, architecture, data.nest, data.provenance), ideal_memory=True)


def test_one_set_of_buffers() -> None:
    """What waiting is put down to room is exactly what a second set saves."""
    one, two = _with_buffers(1), _with_buffers(2)
    for result in (one, two):
        check(result.pes, result.cycles.total)
    saved = one.cycles.total - two.cycles.total
    assert saved > 100
    for single, double in zip(one.pes, two.pes, strict=True):
        assert single.waiting["inputs"]["buffer_space"] == saved
        assert "buffer_space" not in double.waiting["inputs"]


def test_a_slow_adder() -> None:
    """Of each pair of PEs one adds 128 words after its only step, at a word a cycle, before it can send the sums on."""
    nest: dict[str, tuple[Loop, ...]] = {
        "GB": (spatial("C", 2, "y"), spatial("K", 2, "x")),
        "L1": (temporal("P", 16), temporal("K", 8)),
    }
    found = {}
    for rate in (None, 1):
        result = nocsim.simulate(
            product("2x2", (16, 2, 16), nest, pe={"adder_words_per_cycle": rate}), ideal_memory=True
        )
        check(result.pes, result.cycles.total)
        found[rate] = sums(result)
    assert found[1].most_common(1)[0][0] == "reduction"
    assert found[1]["reduction"] - found[None]["reduction"] == 2 * 128
    assert found[1] - Counter(reduction=found[1]["reduction"]) == found[None] - Counter(
        reduction=found[None]["reduction"]
    )


def test_a_link_that_four_ports_share() -> None:
    """Four DRAM ports along the lower row send to PE 0: each has a quarter of the flits, the last link has all."""
    noc = {"dram_ports": [{"router": [column, -1], "side": "south"} for column in range(4)]}
    nest = {"DRAM": (temporal("K", 4),), "L1": (temporal("K", 4), temporal("C", 64), spatial("C", 64, "x"))}
    found = []
    for ports in (4, 1):
        some = {"dram_ports": noc["dram_ports"][:ports]}
        schedule = product(
            "4x1", (1, 4096, 16), nest, fanout=64, noc=some, dram={"channels": 4}, gb={"keeps": ["outputs"]}
        )
        result = nocsim.simulate(schedule, ideal_memory=True)
        check(result.pes, result.cycles.total)
        found.append(sums(result))
    shared, alone = found
    assert shared["link"] > 0.6 * shared.total()
    assert alone["port"] > 0.6 * alone.total() and alone["link"] < 0.1 * alone.total()


# ---- sums


MACHINES: list[dict[str, Any]] = [
    {},
    {"machine": {"send_engine": "shared", "reads_in_flight": 1, "dram_packet": "holds_path"}},
    {"machine": {"store_waits_for": "all_pes", "compute_starts": "first_word", "dram_write_buffer_packets": 1}},
    {"machine": {"chunk_packets": None, "reduction": "tree"}, "pe": {"adder_words_per_cycle": 1}},
]


@pytest.mark.parametrize("seed", range(40))
def test_every_cycle_has_a_cause(seed: int) -> None:
    options = MACHINES[seed % 4]
    schedule = (any_schedule if seed % 3 else random_schedule)(seed, **options)
    result = nocsim.simulate(schedule, ideal_network=seed % 7 == 3, ideal_memory=seed % 5 == 2)
    check(result.pes, result.cycles.total)
    part = nocsim.simulate(schedule, max_cycles=max(1, result.cycles.total // 2))
    check(part.pes, part.cycles.total)


@pytest.mark.parametrize("seed", range(6))
def test_weighted_periods_too(seed: int) -> None:
    """All periods but the last count three times: waits are scaled and still add up."""
    schedule = random_schedule(seed)
    accelerator = Accelerator(schedule)
    bounds = tuple(x.bound for x in accelerator.traffic.step_loops)[:2]
    plan = SamplingPlan(bounds, 1, (), {}, (), 1)
    periods = tuple((number, 3 if number < plan.count - 1 else 1) for number in range(plan.count))
    accelerator = Accelerator(schedule, plan=SamplingPlan(bounds, 1, periods, {}, (), 1))
    accelerator.run()
    total, pes = accounts(accelerator)
    check(pes, total)


# ---- the parts


def test_time_line() -> None:
    line = Timeline()
    assert line.split(3, 7) == [("port", 4)] and line.split(3, 3) == []
    line.until(10, "dram")
    line.until(8, "link")
    line.until(15, "port")
    line.until(20, "port")
    assert line.end == 20 and line.split(0, 20) == [("dram", 10), ("port", 10)]
    assert line.split(10, 12) == [("port", 2)] and line.split(9, 11) == [("dram", 1), ("port", 1)]
    assert line.split(18, 25, beyond="link") == [("port", 2), ("link", 5)]
    line.follow([("link", 3), ("port", 1)])
    assert by_resource(line.split(0, 24)) == {"dram": 10, "port": 11, "link": 3}


def test_a_time_line_forgets_but_adds_up() -> None:
    line = Timeline()
    for cycle in range(1, 20_001):
        line.until(cycle, "link" if cycle % 2 else "dram")
    assert sum(cycles for _, cycles in line.split(0, 20_000)) == 20_000
    assert by_resource(line.split(19_000, 20_000)) == {"dram": 500, "link": 500}


def test_a_source_is_starved_busy_or_held() -> None:
    box = Outbox()
    box.given(10, 5)  # packets of 5 flits: data in cycles 10 and 20
    box.given(20, 5)
    box.sent(30, 0, 10, "dram")  # 5 cycles later than an empty mesh would have it
    assert box.line.split(0, 30) == [("dram", 10), ("port", 5), ("dram", 5), ("port", 5), ("link", 5)]
    box.given(30, 4)  # the next two have everything, and wait for each other only
    box.given(30, 4)
    box.sent(34, 30, 4, "port")
    box.sent(38, 30, 4, "port")
    assert box.line.split(30, 38) == [("port", 8)]


def test_a_source_that_the_mesh_holds_is_not_starved() -> None:
    """The mesh takes a flit every other cycle, and so does the DRAM bring them: only the mesh's first flits wait."""
    box = Outbox()
    for number in range(4):
        box.given(10 * number, 5)
        box.sent(10 * number + 10, 10 * number, 5, "dram")
    assert box.line.split(0, 40) == [("port", 5), ("link", 5)] * 4


def test_passage() -> None:
    class Message:
        queued_cycle, sent_cycle = 30, 40
        outbox = Outbox()

    Message.outbox.given(30, 10)
    Message.outbox.sent(40, 30, 10, "port")
    line = Timeline()
    line.until(20, "dram")
    passage = Passage(line, 20, 26)
    line.until(30, "buffer_space")
    passage.came(Message(), 3, 55, 8)
    late = [("link", 7), ("latency", 8), ("port", 2)]  # written 2 cycles after its arrival
    # A wait of 4 cycles would not have been, had there been room at 20 instead of 26.
    assert passage.split(53, 57, 3) == [("buffer_space", 4)]
    assert passage.split(41, 57, 3) == [("buffer_space", 6), *late[-2:]]
    assert passage.split(30, 57, 3)[-4:] == [("port", 4), *late]
    whole = passage.split(0, 57, 3)
    assert whole == [("dram", 20), ("buffer_space", 6), ("buffer_space", 4), ("port", 10), *late]
    assert passage.split(0, 57) == whole
    passage.from_dram = True
    assert passage.split(0, 57) == [("dram", 20), ("buffer_space", 6), ("dram", 4), ("port", 10), *late]
    last = Passages(1)
    last.add(Passage(line, 0, 0))
    last.add(passage)
    assert last.split(1, 53, 57, 3) == [("buffer_space", 4)]
