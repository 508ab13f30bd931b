"""Runs that an ideal part makes longer, and what the documentation says why (`docs/concepts.md`, "Ideal parts")."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

import nocsim
from cosa.model.schedule import Schedule
from nocsim.machine.accelerator import Accelerator
from nocsim.machine.dram_port import READ, WRITE
from nocsim.machine.memory import Access
from nocsim.result.result import Result
from tests.test_docs import ROOT

DATA = ROOT / "tests" / "data" / "nocsim"


def simulated(name: str, *ideal: str) -> Result:
    return nocsim.simulate(DATA / f"{name}.json", **{f"ideal_{part}": True for part in ideal})  # type: ignore[arg-type]


def waits(result: Result, cause: str) -> Counter[str]:
    """Cycles that all PEs together waited for something, by resource."""
    found: Counter[str] = Counter()
    for pe in result.pes:
        found.update(
            {str(resource): n for name, parts in pe.waiting.items() if name == cause for resource, n in parts.items()}
        )
    return found


def test_inputs_that_come_early_stand_in_the_way_of_weights() -> None:
    real, ideal = simulated("ideal-memory"), simulated("ideal-memory", "memory")
    assert ideal.cycles.total > real.cycles.total
    assert (waits(real, "inputs").total(), waits(ideal, "inputs").total()) == (10_366, 87)
    assert (waits(real, "weights")["link"], waits(ideal, "weights")["link"]) == (28, 2_875)
    # Nothing can stand in the way in an ideal network.
    network, both = simulated("ideal-memory", "network"), simulated("ideal-memory", "network", "memory")
    assert (network.cycles.total, both.cycles.total) == (2_666, 600)


@pytest.mark.parametrize("ideal", [False, True])
def test_writes_that_come_early_stand_in_front_of_reads(ideal: bool) -> None:
    """A read and a write in the same cycle: without the mesh often, the write first; through the mesh never."""
    accelerator = Accelerator(Schedule.from_file(DATA / "ideal-network.json"), ideal_network=ideal)
    submit, asked = accelerator.memory.submit, list[tuple[int, int]]()

    def noted(channel: int, op: int, address: int, access: Access) -> None:
        asked.append((int(accelerator.env.now), op))
        submit(channel, op, address, access)

    accelerator.memory.submit = noted  # type: ignore[method-assign]
    accelerator.run()
    pairs = [(a[1], b[1]) for a, b in pairwise(asked) if a[0] == b[0]]
    assert pairs.count((READ, WRITE)) == 0
    assert (pairs.count((WRITE, READ)) > 50) == ideal and bool(pairs) == ideal


def test_without_an_order_to_lose_the_network_only_takes_time() -> None:
    real, ideal = simulated("ideal-network"), simulated("ideal-network", "network")
    assert ideal.cycles.total > real.cycles.total
    turnarounds = [result.dram.channels[0].clocks.turnaround for result in (real, ideal)]
    assert turnarounds == [411, 741]
    memory, both = simulated("ideal-network", "memory"), simulated("ideal-network", "memory", "network")
    assert (memory.cycles.total, both.cycles.total) == (3_624, 1_350)
