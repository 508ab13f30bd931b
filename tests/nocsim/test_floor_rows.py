"""The floor of a run equals what its transfers, one by one, say; each of its rows where it is the largest."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

import nocsim
from cosa.analytical.batch import MappingBatch
from cosa.analytical.network_batch import NetworkEvaluator
from cosa.schedule import Loop, Provenance, Schedule, ScheduleLevel
from cosa.workload import Layer
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


def by_hand(name: str) -> Schedule:
    """Schedules of constructed machines, whose floor is near what they take."""
    if name == "weights":
        arch = architecture([["weights", "inputs", "outputs"]], fanouts=[8], mesh="4x4")
        layer = Layer(name=name, R=1, S=1, P=8, Q=1, C=64, K=256, N=1)
        loops = "K2", "P8 K4x K4y", "C8 K8 C8x"
    elif name == "taps side by side in a PE":
        arch = architecture(
            [["inputs", "outputs"], ["weights", "outputs"]], buffer_keeps=["outputs"], fanouts=[16, 3], mesh="2x2"
        )
        layer = Layer(name=name, R=1, S=3, P=1, Q=64, C=512, K=1, N=1)
        loops = "C32", "", "S3x", "Q64 C16x"
    else:
        arch = architecture([["weights", "inputs", "outputs"]], buffer_keeps=["outputs"], fanouts=[16], mesh="4x3")
        layer = Layer(name=name, R=3, S=1, P=4, Q=32, C=512, K=1, N=1, stride_w=2)
        loops = "C32", "P4x R3y", "Q32 C16x"
    entries = zip(arch.levels[::-1], loops, strict=True)
    nest = tuple(
        ScheduleLevel(level=entry.name, keeps=entry.keeps, loops=tuple(of_loops(text))) for entry, text in entries
    )
    return Schedule.make(layer, arch, nest, Provenance(mapper="hand", version="0"))


BY_HAND = ("weights", "taps side by side in a PE", "outputs and taps over the mesh")


def test_the_floor_is_the_largest_row_of_its_transfers() -> None:
    bound_by: Counter[str | None] = Counter()
    for seed in (*range(400), *RARE):
        schedule, rate = drawn(seed)
        rows = Rows(schedule, rate)
        assert floor_cycles(schedule, rate) == pytest.approx(rows.cycles, rel=1e-9), (seed, rows.rows)
        bound_by[rows.binding] += 1
    for name in BY_HAND:
        rows = Rows(by_hand(name))
        assert floor_cycles(by_hand(name)) == pytest.approx(rows.cycles, rel=1e-9), (name, rows.rows)
        bound_by[rows.binding] += 1
    assert set(bound_by) == {None, *Rows(by_hand("weights"), 1.0).rows}, bound_by


@pytest.mark.slow
@pytest.mark.parametrize("first", range(400, 6400, 1000))
def test_the_floor_of_thousands(first: int) -> None:
    for seed in range(first, first + 1000):
        schedule, rate = drawn(seed)
        assert floor_cycles(schedule, rate) == pytest.approx(Rows(schedule, rate).cycles, rel=1e-9), seed


@pytest.mark.parametrize("name", BY_HAND)
def test_a_run_takes_hardly_more_than_its_floor(name: str) -> None:
    """Side by side, outputs and taps want some of the same words: counted twice the floor was above the run."""
    schedule = by_hand(name)
    simulated = nocsim.simulate(schedule, exact=True).cycles.total
    assert 0.75 * simulated < floor_cycles(schedule) <= simulated
