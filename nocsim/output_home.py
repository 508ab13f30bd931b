"""Where outputs of the PEs go: the global buffer where it keeps them, else straight to the DRAM."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import simpy

from cosa.analytical.traffic import Node, Residency, bytes_of
from nocsim.dataflow import Visit, visits
from nocsim.dram_side import DramSide
from nocsim.ledger import FlowKey, Ledger
from nocsim.progress import Counter

if TYPE_CHECKING:
    from nocsim.global_buffer import GlobalBuffer
    from nocsim.pe import ProcessingElement

_LOAD: FlowKey = ("outputs", "dram", "global_buffer", "reload")

Process = Generator[Any, Any, None]


class OutputHome(Protocol):
    """Takes the outputs of the PEs and gives partial sums back."""

    def start(self, roots: list[ProcessingElement]) -> None:
        """Begin; `roots` are the PEs that end up with the sums, one a group."""

    def store(self, pe: ProcessingElement, visit: Visit) -> Process:
        """Take a tile from a PE: returns when it has left the PE."""

    def finished(self) -> Any:
        """An event that fires when the last output is in the DRAM."""


@dataclass(frozen=True)
class OutputWidths:
    """Bytes of an output tile, by whether it is finished."""

    final_bits: int
    partial_bits: int

    def n_bytes(self, words: int, final: bool) -> int:
        """Bytes of so many words."""
        return bytes_of(words, self.final_bits if final else self.partial_bits)


class DirectOutputs:
    """Outputs that pass the global buffer by: every visit is written to the DRAM, partial sums come back from there."""

    def __init__(
        self, env: simpy.Environment, outputs: Residency, dram: DramSide, widths: OutputWidths, ledger: Ledger
    ) -> None:
        self._env, self._outputs, self._dram, self._widths = env, outputs, dram, widths
        self._written = Counter(env)
        self._ledger = ledger
        self._partial: dict[tuple[int, int], Any] = {}
        self._roots: list[ProcessingElement] = []

    def start(self, roots: list[ProcessingElement]) -> None:
        """See `OutputHome`."""
        self._roots = roots
        if self._outputs.visits > self._outputs.distinct_tiles:
            self._env.process(self._reload())

    def _burst(self, visit: Visit, root: ProcessingElement) -> int:
        tile = visit.tile_index * len(self._roots) + self._roots.index(root)
        return self._dram.layout.first_burst("outputs", tile)

    def store(self, pe: ProcessingElement, visit: Visit) -> Process:
        """See `OutputHome`."""
        n_bytes = self._widths.n_bytes(self._outputs.tile.words, visit.final)
        written = self._env.event()
        if not visit.final:
            self._partial[pe.number, visit.number] = written

        key = _leaving("pe", "dram", visit)
        self._ledger.sent(key, self._outputs.tile.words)

        def done() -> None:
            self._ledger.received(key, self._outputs.tile.words)
            self._written.add()
            written.succeed()

        yield from pe.occupied(self._dram.write(pe, "outputs", self._burst(visit, pe), n_bytes, done))

    def _reload(self) -> Process:
        n_bytes = self._widths.n_bytes(self._outputs.tile.words, False)
        for visit in visits(self._outputs):
            if visit.first:
                continue
            for root in self._roots:
                room = root.room_for_visit(visit.number)
                if root.drained.value < room:
                    yield root.drained.reach(room)
                # The set is free only after the earlier visit has left, so its write is known here.
                yield self._partial.pop((root.number, visit.previous))
                arrived = _reloaded(root, self._ledger, "dram", self._outputs.tile.words)
                self._dram.read("partial sums", "outputs", (root,), self._burst(visit, root), n_bytes, arrived)

    def finished(self) -> Any:
        """See `OutputHome`."""
        return self._written.reach(self._outputs.visits * len(self._roots))


class BufferedOutputs:
    """Outputs in the global buffer: it collects the tiles of the PEs, gives partial sums back, and writes to the DRAM.

    Visits of the buffer's own tile hold `per_visit` visits of each PE. A set is open from the moment that an earlier
    visit has left the buffer; a PE's tile is sent only then.
    """

    def __init__(
        self,
        env: simpy.Environment,
        buffer: GlobalBuffer,
        buffers: int,
        pe_outputs: Residency,
        own: Residency,
        dram: DramSide,
        widths: OutputWidths,
        ledger: Ledger,
    ) -> None:
        self._env, self._buffer, self._buffers = env, buffer, buffers
        self._pe_outputs, self._own, self._dram, self._widths = pe_outputs, own, dram, widths
        self._ledger = ledger
        self._per_visit = pe_outputs.visits // own.visits
        self._roots: list[ProcessingElement] = []
        self._received: dict[int, Counter] = {}
        self._missing: dict[int, int] = {}
        self._complete = Counter(env)
        self._left, self._loaded, self._written = Counter(env), Counter(env), Counter(env)
        self._partial: dict[int, Any] = {}

    def start(self, roots: list[ProcessingElement]) -> None:
        """See `OutputHome`."""
        self._roots = roots
        self._received = {root.number: Counter(self._env) for root in roots}
        self._env.process(self._load())
        self._env.process(self._drain())
        if self._pe_outputs.visits > self._pe_outputs.distinct_tiles:
            self._env.process(self._reload())

    def _room_for(self, visit: int) -> int:
        return visit - self._buffers + 1

    def store(self, pe: ProcessingElement, visit: Visit) -> Process:
        """See `OutputHome`."""
        own = visit.number // self._per_visit
        if self._left.value < self._room_for(own):
            yield self._left.reach(self._room_for(own))
        n_bytes = self._widths.n_bytes(self._pe_outputs.tile.words, visit.final)

        key = _leaving("pe", "global_buffer", visit)
        self._ledger.sent(key, self._pe_outputs.tile.words)

        def received(_: int) -> None:
            self._ledger.received(key, self._pe_outputs.tile.words)
            self._received[pe.number].add()
            missing = self._missing.get(own, self._per_visit * len(self._roots)) - 1
            self._missing[own] = missing
            while self._missing.get(self._complete.value) == 0:
                del self._missing[self._complete.value]
                self._complete.add()

        yield from pe.send(self._buffer.port_for(pe), n_bytes, received)

    def _load(self) -> Process:
        """Bring partial sums back from the DRAM before a visit that continues an earlier one."""
        n_bytes = self._widths.n_bytes(self._own.tile.words, False)
        for visit in visits(self._own):
            room = self._room_for(visit.number)
            if self._left.value < room:
                yield self._left.reach(room)
            if not visit.first:
                # A tile never follows itself, so with two sets at most the earlier visit has left the buffer.
                yield self._partial.pop(visit.previous)
                self._ledger.sent(_LOAD, self._own.tile.words)
                arrived = self._env.event()
                burst = self._dram.layout.first_burst("outputs", visit.tile_index)
                self._dram.read("partial sums", "outputs", (self._buffer,), burst, n_bytes, partial(_succeed, arrived))
                yield arrived
                self._ledger.received(_LOAD, self._own.tile.words)
            self._loaded.add()

    def _drain(self) -> Process:
        for visit in visits(self._own):
            if self._complete.value <= visit.number:
                yield self._complete.reach(visit.number + 1)
            written = self._env.event()
            if not visit.final:
                self._partial[visit.number] = written

            key = _leaving("global_buffer", "dram", visit)
            self._ledger.sent(key, self._own.tile.words)

            def done(event: Any = written, key: FlowKey = key) -> None:
                self._ledger.received(key, self._own.tile.words)
                self._written.add()
                event.succeed()

            n_bytes = self._widths.n_bytes(self._own.tile.words, visit.final)
            burst = self._dram.layout.first_burst("outputs", visit.tile_index)
            yield from self._dram.write(self._buffer, "outputs", burst, n_bytes, done)
            self._left.add()

    def _reload(self) -> Process:
        n_bytes = self._widths.n_bytes(self._pe_outputs.tile.words, False)
        for visit in self._reloads():
            own = visit.number // self._per_visit
            if self._loaded.value <= own:
                yield self._loaded.reach(own + 1)
            for number, root in enumerate(self._roots):
                room = root.room_for_visit(visit.number)
                if root.drained.value < room:
                    yield root.drained.reach(room)
                received = self._received[root.number]
                if received.value <= visit.previous:
                    yield received.reach(visit.previous + 1)
                arrived = _reloaded(root, self._ledger, "global_buffer", self._pe_outputs.tile.words)
                yield from self._buffer.send_to("partial sums", "outputs", number, (root,), n_bytes, arrived)

    def _reloads(self) -> Iterator[Visit]:
        return (visit for visit in visits(self._pe_outputs) if not visit.first)

    def finished(self) -> Any:
        """See `OutputHome`."""
        return self._written.reach(self._own.visits)


def _succeed(event: Any, _: int) -> None:
    event.succeed()


def _leaving(source: Node, destination: Node, visit: Visit) -> FlowKey:
    return "outputs", source, destination, "final" if visit.final else "partial"


def _reloaded(root: ProcessingElement, ledger: Ledger, source: Node, words: int) -> Callable[[int], None]:
    """Book a reload of partial sums as sent; the call returned books its arrival at a PE."""
    key: FlowKey = ("outputs", source, "pe", "reload")
    ledger.sent(key, words)

    def arrived(_: int) -> None:
        ledger.received(key, words)
        root.reloaded.add()

    return arrived
