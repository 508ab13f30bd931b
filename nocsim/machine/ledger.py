"""The ledger: words that really moved, counted by the processes as transfers leave and arrive."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from cosa.analytical.traffic import Node
from cosa.model.layer import Tensor

FlowKind = Literal["fill", "reload", "partial", "final", "reduction"]
FlowKey = tuple[Tensor, Node, Node, FlowKind]


@dataclass
class FlowCount:
    """Transfers and words of one flow; a multicast word is sent once and received by each of its nodes.

    In an extrapolated run a transfer counts as often as the period in which it happens (`nocsim.machine.sampling`).
    """

    transfers: int = 0
    sent_words: int = 0
    received_words: int = 0


@dataclass
class Ledger:
    """Counts by (tensor, source, destination, kind)."""

    flows: dict[FlowKey, FlowCount] = field(default_factory=dict)

    def sent(self, key: FlowKey, words: int, weight: int) -> None:
        """A transfer of so many words, which stands for `weight` transfers, was given to the network."""
        count = self.flows.setdefault(key, FlowCount())
        count.transfers += weight
        count.sent_words += words * weight

    def received(self, key: FlowKey, words: int, weight: int) -> None:
        """A node has all words of a transfer."""
        self.flows[key].received_words += words * weight
