"""Feeds: one process for each operand and boundary that sends every tile change to whoever holds the tile."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Protocol

import simpy

from cosa.analytical.traffic import Residency, bytes_of
from cosa.model.layer import Tensor
from nocsim.machine.dataflow import Fetch, fetches
from nocsim.machine.delivery import Delivery
from nocsim.machine.holder import Holder, Slot
from nocsim.machine.ledger import FlowKey, Ledger
from nocsim.machine.sampling import SamplingPlan
from nocsim.machine.waits import Passage, Timeline

Process = Generator[Any, Any, None]


class Source(Protocol):
    """Where a feed takes its words: a memory of the global buffer or the DRAM."""

    def transfer(
        self, tensor: Tensor, group: int, dsts: tuple[Holder, ...], part: Part, word_bits: int, delivery: Delivery
    ) -> Process:
        """Send a part of a tile; returns when the next may be given (all of it has left, or is queued in order)."""


@dataclass(frozen=True)
class Part:
    """Bytes of a tile to send: all of it, or what a sliding window adds (then the first `skip_bytes` stay)."""

    tile_index: int
    n_bytes: int
    skip_bytes: int


class Feed:
    """Sends an operand's tile changes in the order of the loops, each once to each group of nodes that share it.

    A part is sent only when every node of its group has room for it, so nodes always sink what comes.
    """

    def __init__(
        self,
        tensor: Tensor,
        residency: Residency,
        groups: list[tuple[Holder, ...]],
        source: Source,
        word_bits: int,
        ledger: Ledger,
        key: FlowKey,
        upstream: tuple[Residency, Slot] | None = None,
        plan: SamplingPlan | None = None,
    ) -> None:
        """`upstream` is the residency and slot of the memory on the chip that the words come from, if they do."""
        self.tensor, self.residency, self.groups, self.source = tensor, residency, groups, source
        self.word_bits = word_bits
        self._ledger, self._key = ledger, key
        self.upstream, self._plan = upstream, plan
        self._line = Timeline()

    def run(self, env: simpy.Environment) -> Process:
        """The process."""
        line = self._line
        passage: Passage | None = None
        upstream, slot = self.upstream if self.upstream else (None, None)
        tile_bytes = bytes_of(self.residency.tile.words, self.word_bits)
        held, sent = 0, 0
        for fetch in fetches(self.residency, upstream, self._plan):
            if slot and fetch.advances_upstream:
                if held:
                    slot.released.add()
                held += 1
                if slot.arrived.value < held:
                    since = env.now
                    yield slot.arrived.reach(held)
                    line.follow(slot.passages.split(held - 1, since, env.now))
            if not fetch.words:
                continue
            part_bytes = bytes_of(fetch.words, self.word_bits)
            for number, group in enumerate(self.groups):
                wanted = env.now
                for node in group:
                    room = node.slots[self.tensor]
                    if room.released.value < room.room_for(sent):
                        yield room.released.reach(room.room_for(sent))
                line.until(env.now, "buffer_space")
                passage = Passage(line, wanted, env.now, passage)
                for node in group:
                    node.slots[self.tensor].passages.add(passage)
                tile = fetch.tile_index * len(self.groups) + number
                self._ledger.sent(self._key, fetch.words, fetch.weight)
                part = Part(tile, part_bytes, tile_bytes - part_bytes)
                delivery = self._delivery(group, sent, fetch, passage)
                yield from self.source.transfer(self.tensor, number, group, part, self.word_bits, delivery)
            sent += 1
        if slot:
            slot.released.add()

    def _delivery(self, group: tuple[Holder, ...], number: int, fetch: Fetch, passage: Passage) -> Delivery:
        by_endpoint = {endpoint: node for node in group for endpoint in node.endpoints}

        def arrived(endpoint: int) -> None:
            self._ledger.received(self._key, fetch.words, fetch.weight)
            by_endpoint[endpoint].slots[self.tensor].whole.add(number)

        if group[0].slots[self.tensor].begun is not None:
            waiting = set(by_endpoint)

            def piece(endpoint: int, _: int) -> None:
                begun = by_endpoint[endpoint].slots[self.tensor].begun
                if endpoint in waiting and begun is not None:
                    waiting.remove(endpoint)
                    begun.add(number)

            return Delivery(arrived, piece, first_apart=True, weight=fetch.weight, passage=passage)
        return group[0].delivery(self.word_bits, arrived, fetch.weight, passage)
