"""Words moved by the simulation equal a brute-force walk of the nest, and the closed form of `Traffic`."""

from __future__ import annotations

import pytest

from cosa.analytical.traffic import Traffic
from nocsim.machine.accelerator import Accelerator
from tests.nocsim.nests import random_schedule
from tests.nocsim.oracle import count_words


@pytest.mark.parametrize("block", range(20))
def test_random_schedules_move_the_words_of_the_oracle(block: int) -> None:
    for seed in range(block * 15, block * 15 + 15):
        machine = {"halo_reuse": seed % 3 != 0, "weights_refetch": ("physical", "published")[seed // 3 % 2]}
        schedule = random_schedule(seed, machine=machine)
        expected = count_words(schedule)
        accelerator = Accelerator(schedule, ideal_network=True, ideal_memory=True)
        accelerator.run()
        simulated = {key: (count.sent_words, count.received_words) for key, count in accelerator.ledger.flows.items()}
        assert simulated == expected, f"seed {seed}"
        traffic = Traffic(schedule.layer, schedule.architecture, schedule.nest)
        closed = {(f.tensor, f.source, f.destination, f.kind): (f.sent_words, f.received_words) for f in traffic.flows}
        assert closed == expected, f"seed {seed}"
