"""Small cases by hand: every transfer and every step of a 2x1 and a 2x2 mesh, and runs without contention.

Rules that the time lines follow (`docs/reference/mesh.md`): a packet is a header flit and a flit for each 8 bytes, 32
bytes at most; a source sends a flit a cycle, and a message follows the one before it in the next cycle; a flit that is
sent in cycle t is read 1 + 4 x (hops + 1) cycles later. The DRAM is ideal: its data are at the port at once.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nocsim
from cosa.model.arch import Architecture
from cosa.model.layer import TENSORS, Layer
from cosa.model.schedule import Loop, Provenance, Schedule, ScheduleLevel
from nocsim.machine.accelerator import Accelerator
from tests.conftest import spatial, temporal
from tests.nocsim.nests import BIG


def product(
    mesh: str,
    bounds: tuple[int, int, int],
    nest: dict[str, tuple[Loop, ...]],
    fanout: int = 1,
    **blocks: dict[str, Any],
) -> Schedule:
    """A matrix product of P x C x K on PEs with one level of two sets, a global buffer of one set, and DRAM."""
    inner = {"name": "L1", "keeps": list(TENSORS), "capacity_words": BIG, "buffers": 2, "fanout": fanout}
    gb = {"name": "GB", "keeps": list(TENSORS), "capacity_words": BIG, "fanout": "mesh", **blocks.pop("gb", {})}
    data = {
        "name": "product",
        "levels": [inner, gb, {"name": "DRAM", "keeps": list(TENSORS), "capacity_words": None}],
        "noc": {"mesh": mesh, "extra_rows": 1, **blocks.pop("noc", {})},
        "dram": {
            "device": "ddr4_2400_x8",
            "policy": "frfcfs",
            "mapping": "row:rank:bank:column:bankgroup",
            **blocks.pop("dram", {}),
        },
        **blocks,
    }
    architecture = Architecture.from_data(data)
    p, c, k = bounds
    entries = tuple(
        ScheduleLevel(level=level.name, keeps=level.keeps, loops=nest.get(level.name, ()))
        for level in architecture.levels[::-1]
    )
    layer = Layer(R=1, S=1, P=p, Q=1, C=c, K=k, N=1)
    return Schedule.make(layer, architecture, entries, Provenance(mapper="hand", version="1"))


Transfers = list[tuple[str, int, int, int, dict[int, int]]]
Steps = list[tuple[int, int, int]]


def time_line(schedule: Schedule, *, ideal_memory: bool = True) -> tuple[Transfers, Steps, int]:
    """(tensor, source, bytes, cycle given to the network, {destination: arrival}), (PE, start, end) of steps, total."""
    accelerator = Accelerator(schedule, ideal_memory=ideal_memory)
    env, send = accelerator.env, accelerator.network.send
    transfers: Transfers = []
    steps: Steps = []

    def recorded(
        src: int, dsts: tuple[int, ...], tensor: Any, n_bytes: int, on_arrival: Any, *rest: Any, **named: Any
    ) -> Any:
        arrivals: dict[int, int] = {}
        transfers.append((tensor, src, n_bytes, env.now, arrivals))

        def arrived(dst: int) -> None:
            arrivals[dst] = env.now
            on_arrival(dst)

        return send(src, dsts, tensor, n_bytes, arrived, *rest, **named)

    def watch(pe: Any) -> None:
        busy = pe._busy

        def recorded_busy(*args: Any) -> Any:
            start = env.now
            yield from busy(*args)
            steps.append((pe.number, start, env.now))

        pe._busy = recorded_busy

    accelerator.network.send = recorded  # type: ignore[method-assign]
    for pe in accelerator.pes.values():
        watch(pe)
    accelerator.run()
    return transfers, steps, int(env.now)


def test_two_pes_in_a_row() -> None:
    """Routers 0 1 / 2 3; PEs at 0 and 1, the global buffer at 3, the DRAM (endpoint 8) at the south edge of 3.

    P16 C8 K4: K split over the PEs, P in two steps of 8 x 8 x 2 cycles and 3 of pipeline = 131.
    """
    nest = {
        "GB": (temporal("P", 2), spatial("K", 2, "x")),
        "L1": (temporal("P", 8), temporal("C", 8), temporal("K", 2)),
    }
    schedule = product("2x1", (16, 8, 4), nest, pe={"pipeline_latency_cycles": 3})
    transfers, steps, total = time_line(schedule)
    assert transfers == [
        ("weights", 8, 32, 0, {3: 9}),  # 5 flits, sent in cycles 0..4; the same router: 5 cycles
        ("inputs", 8, 128, 0, {3: 29}),  # 20 flits in 5..24
        ("weights", 3, 16, 9, {0: 24}),  # 3 flits in 9..11, 2 hops: 11 + 13
        ("weights", 3, 16, 12, {1: 23}),  # 12..14, 1 hop: 14 + 9
        ("inputs", 3, 64, 29, {1: 47, 0: 51}),  # multicast of the first half of P: 10 flits in 29..38
        ("inputs", 3, 64, 39, {1: 57, 0: 61}),  # the second set: 39..48
        ("outputs", 1, 16, 178, {3: 189}),  # 3 flits in 178..180, 1 hop
        ("outputs", 0, 16, 182, {3: 197}),  # 182..184, 2 hops
        ("outputs", 1, 16, 309, {3: 320}),
        ("outputs", 0, 16, 313, {3: 328}),
        ("outputs", 3, 64, 328, {8: 342}),  # all 16 x 4 words are there: 10 flits in 328..337
    ]
    assert sorted(steps) == [(0, 51, 182), (0, 182, 313), (1, 47, 178), (1, 178, 309)]
    assert total == 342


def test_four_pes_that_add_up() -> None:
    """Routers 0 1 / 2 3 / 4 5; PEs at 0 to 3, the global buffer at 5, the DRAM (endpoint 11) south of it.

    K along the rows, C down the columns: PEs 1 and 3 add, and 0 and 2. One step of 16 x 4 x 2 + 3 = 131 cycles.
    """
    nest = {
        "GB": (spatial("C", 2, "y"), spatial("K", 2, "x")),
        "L1": (temporal("P", 16), temporal("C", 4), temporal("K", 2)),
    }
    schedule = product("2x2", (16, 8, 4), nest, pe={"pipeline_latency_cycles": 3})
    transfers, steps, total = time_line(schedule)
    assert transfers == [
        ("weights", 11, 32, 0, {5: 9}),
        ("inputs", 11, 128, 0, {5: 29}),
        ("weights", 5, 8, 9, {0: 27}),  # 2 flits in 9, 10; 3 hops: 10 + 17
        ("weights", 5, 8, 11, {1: 25}),  # 11, 12; 2 hops
        ("weights", 5, 8, 13, {2: 27}),
        ("weights", 5, 8, 15, {3: 25}),  # 15, 16; 1 hop
        ("inputs", 5, 64, 29, {1: 51, 0: 55}),  # C 0..3 to the upper row: 29..38, 2 and 3 hops
        ("inputs", 5, 64, 39, {3: 57, 2: 61}),  # C 4..7 to the lower one: 39..48
        # Partial sums of 32 words at 24 bits, 15 flits, when the PE below has finished its own part.
        ("outputs", 1, 96, 188, {3: 211}),  # 188..202, 1 hop
        ("outputs", 0, 96, 192, {2: 215}),
        ("outputs", 3, 32, 211, {5: 224}),  # finished, 8 bits: 5 flits in 211..215, 1 hop
        ("outputs", 2, 32, 215, {5: 232}),  # 215..219, 2 hops
        ("outputs", 5, 64, 232, {11: 246}),
    ]
    assert sorted(steps) == [(0, 55, 186), (1, 51, 182), (2, 61, 192), (3, 57, 188)]
    assert total == 246


def test_an_adder_takes_its_time() -> None:
    """As before with 8 words a cycle: 32 words take 4 cycles after the last one."""
    nest = {
        "GB": (spatial("C", 2, "y"), spatial("K", 2, "x")),
        "L1": (temporal("P", 16), temporal("C", 4), temporal("K", 2)),
    }
    pe = {"pipeline_latency_cycles": 3, "adder_words_per_cycle": 8}
    *_, total = time_line(product("2x2", (16, 8, 4), nest, pe=pe))
    assert total == 246 + 4


def test_compute_starts_with_the_first_packet() -> None:
    """The 2x1 case: the first packet of inputs is a message of its own, so PEs start 5 cycles, a packet, earlier."""
    nest = {
        "GB": (temporal("P", 2), spatial("K", 2, "x")),
        "L1": (temporal("P", 8), temporal("C", 8), temporal("K", 2)),
    }
    machine = {"compute_starts": "first_word"}
    schedule = product("2x1", (16, 8, 4), nest, pe={"pipeline_latency_cycles": 3}, machine=machine)
    transfers, steps, total = time_line(schedule)
    inputs = [(sent, arrivals) for tensor, source, _, sent, arrivals in transfers if (tensor, source) == ("inputs", 3)]
    assert inputs == [(29, {1: 42, 0: 46}), (34, {1: 47, 0: 51}), (39, {1: 52, 0: 56}), (44, {1: 57, 0: 61})]
    assert sorted(steps) == [(0, 46, 177), (0, 177, 308), (1, 42, 173), (1, 173, 304)]
    assert total == 337


def test_compute_does_not_end_before_the_last_packet() -> None:
    """One PE of 8 MACs: 256 weights and 256 inputs, 8 packets of 5 flits each, and 32 cycles of compute.

    The global buffer (router 1) has all weights at 0..39 + 5 = 44 and all inputs at 84. Both are sent from then on: the
    weights in 44..83, the inputs in 84..123, 1 hop. Inputs begin to be there at 88 + 9 = 97 and are there at 132; the
    32 cycles from 97 on are over before, so the step ends at 132; with whole tiles it would start there.
    """
    nest = {"L1": (temporal("C", 32), spatial("C", 8, "x"))}
    ended = {}
    for starts in ("first_word", "whole_tile"):
        schedule = product("1x1", (1, 256, 1), nest, fanout=8, machine={"compute_starts": starts})
        transfers, steps, ended[starts] = time_line(schedule)
        store = next(sent for tensor, source, _, sent, _ in transfers if (tensor, source) == ("outputs", 0))
        (step,) = steps
        assert (step[1], store) == {"first_word": (97, 132), "whole_tile": (132, 164)}[starts]
    assert ended["whole_tile"] - ended["first_word"] == 32


# ---- without contention more is never slower
#
# Contention-free: one PE; weights, inputs and outputs each cross the boundary to the DRAM once, one after the other;
# between global buffer and PE only weights and outputs move, in opposite directions. So no resource chooses between two
# that ask for it. The run is over before the DRAM's first refresh, which would be another one that asks. A link of
# twice the width carries packets of the same bytes.

STEPS: dict[str, list[dict[str, dict[str, Any]]]] = {
    "fifo": [{"noc": {"fifo_flits": flits, "flit_bits": 64}} for flits in (5, 10, 20, 40)],
    "link": [
        {
            "noc": {
                "flit_bits": bits,
                "packet_payload_flits": 256 // bits,
                "fifo_flits": 9,
                "multicast_reservation_flits": 9,
            }
        }
        for bits in (32, 64, 128, 256)
    ],
    "read port": [{"gb": {"read_bandwidth_words_per_cycle": rate}} for rate in (0.5, 1, 2, 4, 8, 16)],
    "write port": [{"gb": {"write_bandwidth_words_per_cycle": rate}} for rate in (0.5, 1, 2, 4, 8, 16)],
    "DRAM clock": [{"dram": {"clocks_per_core_cycle": ratio}} for ratio in ("1/2", "1/1", "2/1")],
}


@pytest.mark.parametrize("resource", STEPS)
@pytest.mark.parametrize("starts", ["whole_tile", "first_word"])
@settings(max_examples=8, deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 6), st.integers(1, 4))
def test_twice_as_much_is_never_slower_without_contention(
    resource: str, starts: str, p: int, c: int, k: int, outer: int
) -> None:
    nest = {"GB": (temporal("K", outer),), "L1": (temporal("P", p), temporal("C", c), temporal("K", k))}
    machine = {"compute_starts": starts, "chunk_packets": None}
    totals = []
    for blocks in STEPS[resource]:
        schedule = product("1x1", (p, c, k * outer), nest, machine=machine, **{n: dict(b) for n, b in blocks.items()})
        totals.append(nocsim.simulate(schedule).cycles.total)
    assert totals == sorted(totals, reverse=True)
    assert totals[-1] < 4000  # no refresh: one in 9,360 DRAM clocks
