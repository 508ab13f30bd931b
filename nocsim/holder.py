"""What every node that holds operand tiles has: counts of tiles that have arrived and of tiles given up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import simpy

from cosa.workload import Tensor
from nocsim.delivery import Delivery
from nocsim.network import Arrival
from nocsim.progress import Counter


@dataclass(frozen=True)
class Slot:
    """The sets of one operand in one node: tile g may be sent once tile g - `buffers` has been given up."""

    buffers: int
    arrived: Counter
    released: Counter

    @staticmethod
    def of(env: simpy.Environment, buffers: int) -> Slot:
        """A slot with nothing in it."""
        return Slot(buffers, Counter(env), Counter(env))

    def room_for(self, tile: int) -> int:
        """Count that `released` must have reached before tile number `tile` may come."""
        return tile - self.buffers + 1


class Holder:
    """A node with operand slots and an endpoint on the network, or one memory of such a node."""

    def __init__(self, endpoints: tuple[int, ...], slots: dict[Tensor, Slot]) -> None:
        self.endpoints = endpoints
        self.slots = slots

    def delivery(self, word_bits: int, whole: Arrival) -> Delivery:
        """What is to happen when a transfer of words of so many bits comes here; `whole` when it counts as there."""
        return Delivery(whole)

    def read(self, n_bytes: int, word_bits: int) -> Any | None:
        """Read bytes to send them: an event to wait for, or None where reading takes no time."""
        return None
