"""Who hears of a transfer's arrival: of the whole, and where it matters of each of its messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nocsim.machine.network import Arrival, ignore_arrival
from nocsim.machine.waits import Passage


@dataclass(frozen=True)
class Delivery:
    """What to call, with the endpoint reached, when a transfer has arrived.

    `whole` is called once a node, when all of it is there; `piece` (None: nobody asks) with the bytes of every message.
    `first_apart`: the first packet (or those that the first DRAM burst fills) is to be a message of its own.
    The transfer is counted `weight` times (`nocsim.machine.sampling`); `passage` takes its stamps (None: nobody waits
    for it).
    """

    whole: Arrival
    piece: Callable[[int, int], None] | None = None
    first_apart: bool = False
    weight: int = 1
    passage: Passage | None = None

    def arrival(self, n_bytes: int, last: bool) -> Arrival:
        """What to call for one message of the transfer, of so many bytes."""
        piece = self.piece
        if piece is None:
            return self.whole if last else ignore_arrival

        def arrived(endpoint: int) -> None:
            piece(endpoint, n_bytes)
            if last:
                self.whole(endpoint)

        return arrived
