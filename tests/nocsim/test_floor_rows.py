"""The floor of a run equals what its transfers, one by one, say; each of its rows where it is the largest."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import nocsim
from cosa.analytical.batch import MappingBatch
from cosa.analytical.network_batch import NetworkEvaluator
from cosa.model.layer import Layer
from cosa.model.schedule import Loop, Provenance, Schedule, ScheduleLevel
from nocsim.experiments.calibrate import random_constants
from tests.cosa.bound_cases import LETTERS, sizes
from tests.nocsim.floor_rows import Rows
from tests.nocsim.nests import architecture, random_schedule

NOCS = (
    {},
    {"partial_packets": "full"},
    {"global_buffer_ports": [{"router": [0, -1]}]},
    {"global_buffer_ports": [{"router": [0, -1]}, {"router": [-1, -1]}]},
    {"flit_bits": 128},
)
MACHINES = ({}, {"compute_starts": "first_word"}, {"halo_reuse": False}, {"weights_refetch": "published"})
RARE = (287, 2223, 2417, 4629)
"""Seeds whose global buffer must send much after the start."""


def floor_cycles(schedule: Schedule, dram_bytes_per_cycle: float | None = None) -> float:
    evaluator = NetworkEvaluator(schedule.layer, schedule.architecture)
    loads = evaluator.loads(MappingBatch.of([schedule.nest]))
    return float(evaluator.floor_cycles(loads, dram_bytes_per_cycle)[0])


def drawn(seed: int) -> tuple[Schedule, float | None]:
    """A random schedule on a random machine, and bytes a cycle of its DRAM, if stated."""
    rng = random.Random(seed)
    schedule = random_schedule(seed, machine=dict(rng.choice(MACHINES)), noc=dict(rng.choice(NOCS)))
    return schedule, rng.choice((None, None, 2.0))


def of_loops(text: str) -> Iterator[Loop]:
    """Loops of "C32 K4x": temporal, or spatial along an axis."""
    for word in text.split():
        axis = word[-1] if word[-1] in "xy" else None
        bound = int(word[1:].rstrip("xy"))
        if axis is None:
            yield Loop(dim=word[0], bound=bound)  # type: ignore[arg-type]
        else:
            yield Loop(dim=word[0], bound=bound, kind="spatial", axis=axis)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Hand:
    """A machine and a nest on it: what the levels of a PE and the buffer keep, fan-outs, loops from the DRAM in."""

    layer: str
    loops: tuple[str, ...]
    fanouts: tuple[int, ...]
    pe_levels: tuple[str, ...] = ("wio",)
    buffer_keeps: str = "io"
    mesh: str = "2x2"
    stride_w: int = 1
    dilation_w: int = 1
    payload: int | None = 1
    """Flits of a packet (None: as many as by default); where tiles fill theirs the program's counts are exact."""


NEAR = {
    "weights": Hand("P8 C64 K256", ("K2", "P8 K4x K4y", "C8 K8 C8x"), fanouts=(8,), mesh="4x4", payload=None),
    "taps side by side in a PE": Hand(
        "S3 Q64 C512",
        ("C32", "", "S3x", "Q64 C16x"),
        fanouts=(16, 3),
        pe_levels=("io", "wo"),
        buffer_keeps="o",
        payload=None,
    ),
    "outputs and taps over the mesh": Hand(
        "R3 P4 Q32 C512",
        ("C32", "P4x R3y", "Q32 C16x"),
        fanouts=(16,),
        buffer_keeps="o",
        mesh="4x3",
        stride_w=2,
        payload=None,
    ),
}
"""Schedules whose floor is near what they take."""

EXACT = {
    "the buffer after the start": Hand(
        "P64 C480 K160", ("P16", "P2x P2y", "K10 C480x K16x"), fanouts=(7680,), payload=20
    ),
    "much of the buffer after the start": Hand(
        "P64 C64 K64", ("P16", "P2x P2y", "K4 C64x K16x"), fanouts=(1024,), payload=None
    ),
    "sums of PEs back from DRAM": Hand("P4 C32 K32", ("C4", "P4 K2x K2y", "C8x K8x"), fanouts=(64,), buffer_keeps="i"),
    "sums of PEs back from the buffer": Hand(
        "P4 C32 K32", ("", "C4 K2x K2y", "P4", "C8x K8x"), fanouts=(64, 1), pe_levels=("io", "w")
    ),
    "many sums of PEs back from the buffer": Hand(
        "P4 C128 K32", ("", "C16 K2x K2y", "P4", "C8x K8x"), fanouts=(64, 1), pe_levels=("io", "w")
    ),
    "sums of PEs from a buffer that is changed": Hand("P4 C32 K32", ("C4", "P4 K2x K2y", "C8x K8x"), fanouts=(64,)),
    "sums of the buffer, few": Hand("P4 C16 K32", ("C2 P4", "K2x K2y", "C8x K8x"), fanouts=(64,)),
    "sums of the buffer, many": Hand("P4 C32 K32", ("C4 P4", "K2x K2y", "C8x K8x"), fanouts=(64,)),
    "sums from PE to PE": Hand(
        "P32 C64 K16", ("P32", "C4x", "C16x K16x"), fanouts=(256,), buffer_keeps="i", mesh="4x1"
    ),
    "inputs at the MACs": Hand("P8 R4 C8 K2", ("C8", "K2x", "P4 R2 P2x R2x"), fanouts=(4,), pe_levels=("wo",)),
    "inputs at MACs side by side": Hand(
        "P8 R4 C64 K2", ("C8", "K2x", "P4 R4 P2x C8x"), fanouts=(16,), pe_levels=("wo",)
    ),
    "outputs side by side around taps": Hand(
        "P16 R3 C64", ("C8 P2", "", "P8x", "R3 C8x"), fanouts=(8, 8), pe_levels=("wio", "wo"), buffer_keeps="o"
    ),
    "a window in a PE that spreads something else": Hand(
        "P16 R3 C8 K4", ("P4 C8", "", "K4x", "P4 R3"), fanouts=(1, 4), pe_levels=("wio", "wo"), buffer_keeps="o"
    ),
    "a window of few steps": Hand("P8 R3 C16 K64", ("P4", "K4x K2y", "P2 R3 C16x K8x"), fanouts=(128,), mesh="4x2"),
    "a wide window of two steps": Hand("P2 R32 C16 K64", ("P2", "K4x K2y", "R32 C16x K8x"), fanouts=(128,), mesh="4x2"),
    "a window of two loops": Hand(
        "P8 R3 C16 K64", ("P2", "P2 K4x K2y", "P2 R3 C16x K8x"), fanouts=(128,), buffer_keeps="o", mesh="4x2"
    ),
    "a window that channels interrupt": Hand(
        "P16 R3 C32 K64", ("P4", "C2 P2 K4x K2y", "P2 R3 C16x K8x"), fanouts=(128,), buffer_keeps="o", mesh="4x2"
    ),
    "taps inside while outputs stay": Hand(
        "P8 R4 C32 K64", ("", "P4 C2 R2 K4x K2y", "P2 R2 C16x K8x"), fanouts=(128,), buffer_keeps="w", mesh="4x2"
    ),
    "a window that comes back": Hand(
        "P16 R2 K4", ("", "K2x", "P16 R2", "K2"), fanouts=(1, 1), pe_levels=("io", "w"), buffer_keeps="o", mesh="2x1"
    ),
    "two windows that come back": Hand(
        "P2 R2 Q2 S2 K4",
        ("", "K2x", "P2 R2 Q2 S2", "K2"),
        fanouts=(1, 1),
        pe_levels=("io", "w"),
        buffer_keeps="o",
        mesh="2x1",
    ),
    "taps inside of kernels while outputs stay": Hand(
        "P2 R4 C16 K256", ("", "K4 R2 K4x K2y", "P2 R2 C16x K8x"), fanouts=(128,), buffer_keeps="w", mesh="4x2"
    ),
    "taps side by side between gaps": Hand(
        "P2 R6 K2", ("", "R2 R3x", "P2 K2"), fanouts=(1,), buffer_keeps="o", mesh="3x1", stride_w=3
    ),
    "much to compute with the last weights": Hand(
        "P64 R3 K4", ("K2", "K2x", "P64 R3"), fanouts=(1,), buffer_keeps="o", mesh="2x1"
    ),
    "much to compute before the first outputs": Hand(
        "P2 C64 K4", ("P2 K2", "K2x", "C64"), fanouts=(1,), buffer_keeps="o", mesh="2x1"
    ),
}
"""Schedules of which the program says all, or more than of others."""

SLIDING = {
    "a window that slides once": Hand("P16 R3 C8 K4", ("", "P2 K2x K2y", "P8 R3 C8x"), fanouts=(8,)),
    "a window that slides under channels": Hand("P16 R3 C16 K4", ("C2", "P2 K2x K2y", "P8 R3 C8x"), fanouts=(8,)),
    "channels inside of a slide": Hand("P16 R3 C16 K4", ("P2", "C2 K2x K2y", "P8 R3 C8x"), fanouts=(8,)),
    "kernels inside of a slide": Hand("P16 R3 C8 K16", ("P2", "K4 K2x K2y", "P8 R3 C8x"), fanouts=(8,)),
    "taps inside of a slide": Hand("P16 R6 C8 K4", ("P2", "R2 K2x K2y", "P8 R3 C8x"), fanouts=(8,)),
    "taps outside of a slide": Hand("P16 R6 C8 K4", ("R2", "P2 K2x K2y", "P8 R3 C8x"), fanouts=(8,)),
    "a dilated window that slides": Hand("P16 R3 C8 K4", ("", "P2 K2x K2y", "P8 R3 C8x"), fanouts=(8,), dilation_w=2),
    "a window with gaps that slides": Hand(
        "P16 R3 C8 K4", ("", "P2 K2x K2y", "P8 R3 C8x"), fanouts=(8,), stride_w=2, dilation_w=3
    ),
}
"""Schedules that want much of what they have had before once more."""

HANDS = NEAR | EXACT | SLIDING


def by_hand(name: str) -> Schedule:
    """One of the schedules above."""
    hand = HANDS[name]
    levels = [[LETTERS[letter] for letter in keeps] for keeps in hand.pe_levels]
    keeps = [LETTERS[letter] for letter in hand.buffer_keeps]
    noc = (
        {}
        if hand.payload is None
        else {
            "packet_payload_flits": hand.payload,
            "multicast_reservation_flits": hand.payload + 4,
            "fifo_flits": hand.payload + 6,
        }
    )
    arch = architecture(levels, buffer_keeps=keeps, fanouts=list(hand.fanouts), mesh=hand.mesh, noc=noc)
    layer = Layer.from_data(sizes(hand.layer, stride_w=hand.stride_w, dilation_w=hand.dilation_w))
    nest = tuple(
        ScheduleLevel(level=entry.name, keeps=entry.keeps, loops=tuple(of_loops(text)))
        for entry, text in zip(arch.levels[::-1], hand.loops, strict=True)
    )
    return Schedule.make(layer, arch, nest, Provenance(mapper="hand", version="0"))


def test_the_floor_is_the_largest_row_of_its_transfers() -> None:
    bound_by: Counter[str | None] = Counter()
    for seed in (*range(400), *RARE):
        schedule, rate = drawn(seed)
        rows = Rows(schedule, rate)
        assert floor_cycles(schedule, rate) == pytest.approx(rows.cycles, rel=1e-9), (seed, rows.rows)
        bound_by[rows.binding] += 1
    for name in HANDS:
        rows = Rows(by_hand(name))
        assert floor_cycles(by_hand(name)) == pytest.approx(rows.cycles, rel=1e-9), (name, rows.rows)
        bound_by[rows.binding] += 1
    assert set(bound_by) == {None, *Rows(by_hand("weights"), 1.0).rows}, bound_by


def test_the_prediction_is_the_sum_over_its_transfers() -> None:
    """With weights drawn, so that each term counts; every term is there in some schedule."""
    for name in (*range(150), *HANDS):
        schedule, rate = (by_hand(name), None) if isinstance(name, str) else drawn(name)
        constants = random_constants(random.Random(str(name))).with_(dram_bytes_per_cycle=rate)
        evaluator = NetworkEvaluator(schedule.layer, schedule.architecture)
        loads = evaluator.loads(MappingBatch.of([schedule.nest]))
        found = evaluator.predicted_cycles(loads, constants)[0]
        assert found == pytest.approx(Rows(schedule, rate).predicted(constants), rel=1e-9), name


@pytest.mark.slow
@pytest.mark.parametrize("first", range(400, 6400, 1000))
def test_the_floor_of_thousands(first: int) -> None:
    for seed in range(first, first + 1000):
        schedule, rate = drawn(seed)
        assert floor_cycles(schedule, rate) == pytest.approx(Rows(schedule, rate).cycles, rel=1e-9), seed


@pytest.mark.parametrize("name", NEAR)
def test_a_run_takes_hardly_more_than_its_floor(name: str) -> None:
    """Side by side, outputs and taps want some of the same words: counted twice the floor was above the run."""
    schedule = by_hand(name)
    simulated = nocsim.simulate(schedule, exact=True).cycles.total
    assert 0.75 * simulated < floor_cycles(schedule) <= simulated
