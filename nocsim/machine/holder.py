"""What every node that holds operand tiles has: counts of tiles that have arrived and of tiles given up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import simpy

from cosa.model.layer import Tensor
from nocsim.machine.delivery import Delivery
from nocsim.machine.network import Arrival
from nocsim.machine.progress import Counter
from nocsim.machine.waits import Passage, Passages


class InOrder:
    """Counts tiles in the order in which they were sent, although those from several ports may overtake each other."""

    def __init__(self, env: simpy.Environment) -> None:
        self.counter = Counter(env)
        self._early: set[int] = set()

    def add(self, tile: int) -> None:
        """It has happened to tile number `tile`."""
        self._early.add(tile)
        while self.counter.value in self._early:
            self._early.remove(self.counter.value)
            self.counter.add()


@dataclass(frozen=True)
class Slot:
    """The sets of one operand in one node: tile g may be sent once tile g - `buffers` has been given up.

    `begun` counts tiles of which a packet has arrived, where somebody wants to know (else None). `passages` are the
    last transfers to it.
    """

    buffers: int
    whole: InOrder
    begun: InOrder | None
    released: Counter
    passages: Passages

    @staticmethod
    def of(env: simpy.Environment, buffers: int, begins: bool = False) -> Slot:
        """A slot with nothing in it; `begins`: it counts what has begun to arrive as well."""
        return Slot(buffers, InOrder(env), InOrder(env) if begins else None, Counter(env), Passages(buffers))

    @property
    def arrived(self) -> Counter:
        """Counts tiles that have arrived."""
        return self.whole.counter

    @property
    def usable(self) -> Counter:
        """Counts tiles that a step may start with."""
        return (self.begun or self.whole).counter

    def room_for(self, tile: int) -> int:
        """Count that `released` must have reached before tile number `tile` may come."""
        return tile - self.buffers + 1


class Holder:
    """A node with operand slots and an endpoint on the network, or one memory of such a node."""

    def __init__(self, endpoints: tuple[int, ...], slots: dict[Tensor, Slot]) -> None:
        self.endpoints = endpoints
        self.slots = slots

    def delivery(self, word_bits: int, whole: Arrival, weight: int = 1, passage: Passage | None = None) -> Delivery:
        """What is to happen when a transfer of words of so many bits comes here; `whole` when it counts as there."""
        return Delivery(whole, weight=weight, passage=passage)

    def read(self, n_bytes: int, word_bits: int) -> Any | None:
        """Read bytes to send them: an event to wait for, or None where reading takes no time."""
        return None
