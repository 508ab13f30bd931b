"""Outputs in a memory on the chip: it collects tiles from further in, gives partial sums back, sends its own out."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

import simpy

from cosa.analytical.traffic import Node, Residency
from nocsim.machine.dataflow import Visit, visits
from nocsim.machine.delivery import Delivery
from nocsim.machine.dram_side import DramSide
from nocsim.machine.holder import Holder
from nocsim.machine.ledger import FlowKey, Ledger
from nocsim.machine.output_home import OutputSource, OutputWidths, leaving, reload, visits_walked
from nocsim.machine.progress import Counter
from nocsim.machine.sampling import SamplingPlan
from nocsim.machine.waits import Passage, Passages, Timeline

if TYPE_CHECKING:
    from nocsim.machine.global_buffer import ChipMemory

Process = Generator[Any, Any, None]


class BufferedOutputs:
    """Outputs in one memory on the chip; `outer` is the next one out that keeps them (None: the DRAM comes next).

    A visit of the memory's own tile holds some visits of each source. A set is open from the moment that an
    earlier visit has left the memory; a source's tile is sent only then.
    """

    number = 0

    def __init__(
        self,
        env: simpy.Environment,
        memory: ChipMemory,
        sources: tuple[Node, Residency],
        own: Residency,
        dram: DramSide,
        widths: OutputWidths,
        ledger: Ledger,
        outer: BufferedOutputs | None = None,
        plan: SamplingPlan | None = None,
    ) -> None:
        """`sources` are the name and residency of what sends its outputs here: PEs, or the memory next in."""
        self._env, self.memory, self._outer = env, memory, outer
        (self._from, self._theirs), self._own, self._dram, self._widths = sources, own, dram, widths
        self._ledger, self._plan = ledger, plan
        self._sizes = self._own_visit_sizes()
        self._sources: list[OutputSource] = []
        self._received: dict[int, Counter] = {}
        self._missing: dict[int, int] = {}
        self._complete = Counter(env)
        self.drained, self.reloaded = Counter(env), Counter(env)
        self.line = Timeline()
        self.reloads = Passages(memory.buffers)
        self._loading = Timeline()
        self._loaded, self._written = Counter(env), Counter(env)
        self._partial: dict[int, Any] = {}

    def start(self, sources: list[Any]) -> None:
        """See `OutputHome`; also begins what is further out."""
        self._sources = sources
        self._received = {source.number: Counter(self._env) for source in sources}
        self._env.process(self._load())
        self._env.process(self._drain())
        if self._theirs.visits > self._theirs.distinct_tiles:
            self._env.process(self._reload())
        if self._outer is not None:
            self._outer.start([self])

    # ---- as a source of the memory next out

    @property
    def holder(self) -> Holder:
        """See `OutputSource`."""
        return self.memory

    def room_for_visit(self, visit: int) -> int:
        """See `OutputSource`."""
        return visit - self.memory.buffers + 1

    def hand_over(self, memory: ChipMemory, n_bytes: int, word_bits: int, delivery: Delivery) -> Process:
        """See `OutputSource`."""
        yield from self.memory.send("outputs", "outputs", 0, (memory,), n_bytes, word_bits, delivery)

    # ---- from further in, and back

    def store(self, source: OutputSource, visit: Visit) -> Process:
        """Take a tile: returns when it has left its source."""
        line = source.line
        own = visit.upstream
        room = self.room_for_visit(own)
        if self.drained.value < room:
            yield self.drained.reach(room)
            line.until(self._env.now, "buffer_space")
        words, bits = self._theirs.tile.words, self._widths.bits(visit.final)
        key = leaving(self._from, self.memory.name, visit)
        self._ledger.sent(key, words, visit.weight)

        def received(_: int) -> None:
            self._ledger.received(key, words, visit.weight)
            self._received[source.number].add()
            while own not in self._missing:
                number, size = next(self._sizes)
                self._missing[number] = size * len(self._sources)
            self._missing[own] -= 1
            while self._missing.get(self._complete.value) == 0:
                del self._missing[self._complete.value]
                self._complete.add()

        delivery = self.memory.delivery(bits, received, visit.weight)
        yield from source.hand_over(self.memory, self._widths.n_bytes(words, visit.final), bits, delivery)

    def _own_visit_sizes(self) -> Iterator[tuple[int, int]]:
        """(number, visits of one source in it) of every visit of the own tile, in order."""
        if self._plan is None:
            size = self._theirs.visits // self._own.visits
            yield from ((number, size) for number in range(self._own.visits))
            return
        for number, inside in groupby(visits(self._theirs, self._own, self._plan), lambda visit: visit.upstream):
            yield number, sum(1 for _ in inside)

    def _reload(self) -> Process:
        words, bits = self._theirs.tile.words, self._widths.partial_bits
        n_bytes = self._widths.n_bytes(words, False)
        key: FlowKey = ("outputs", self.memory.name, self._from, "reload")
        line, env = Timeline(), self._env
        for visit in visits(self._theirs, self._own, self._plan):
            if visit.first:
                continue
            own = visit.upstream
            if self._loaded.value <= own:
                yield self._loaded.reach(own + 1)
                line.follow(self._loading.split(line.end, env.now))
            for number, source in enumerate(self._sources):
                room = source.room_for_visit(visit.number)
                if source.drained.value < room:
                    yield source.drained.reach(room)
                    line.follow(source.line.split(line.end, env.now))
                received = self._received[source.number]
                if received.value <= visit.previous:
                    yield received.reach(visit.previous + 1)
                    line.until(env.now, "latency")  # it has left and is on its way
                passage = Passage(line, env.now, env.now)
                delivery = reload(source, self._ledger, key, words, bits, visit.weight, passage)
                yield from self.memory.send(
                    "partial sums", "outputs", number, (source.holder,), n_bytes, bits, delivery
                )

    # ---- outward, and back from there

    def _load(self) -> Process:
        """Have partial sums brought back before a visit that continues an earlier one."""
        words, bits = self._own.tile.words, self._widths.partial_bits
        n_bytes = self._widths.n_bytes(words, False)
        key: FlowKey = ("outputs", "dram", self.memory.name, "reload")
        reloads = 0
        line, env = self._loading, self._env
        for visit in visits(self._own, plan=self._plan):
            room = self.room_for_visit(visit.number)
            if self.drained.value < room:
                yield self.drained.reach(room)
                line.follow(self.line.split(line.end, env.now))
            if not visit.first:
                reloads += 1
                if self._outer is None:
                    # A tile never follows itself, so with two sets at most the earlier visit has left the buffer.
                    if visit.previous >= 0:
                        yield self._partial.pop(visit.previous)
                        line.until(env.now, "dram")
                    burst = self._dram.layout.first_burst("outputs", visit.tile_index)
                    passage = Passage(line, env.now, env.now)
                    delivery = reload(self, self._ledger, key, words, bits, visit.weight, passage)
                    self._dram.read("partial sums", "outputs", (self.memory,), burst, n_bytes, delivery)
                if self.reloaded.value < reloads:
                    since = env.now
                    yield self.reloaded.reach(reloads)
                    line.follow(self.reloads.split(reloads - 1, since, env.now))
            self._loaded.add()

    def _drain(self) -> Process:
        outer = self._outer._own if self._outer is not None else None
        for visit in visits(self._own, outer, self._plan):
            if self._complete.value <= visit.number:
                yield self._complete.reach(visit.number + 1)
                self.line.until(self._env.now, "buffer_space")  # the set holds what is still being computed
            if self._outer is None:
                yield from self._write(visit)
            else:
                yield from self._outer.store(self, visit)
            self.drained.add()

    def _write(self, visit: Visit) -> Process:
        """Send a tile to the DRAM; returns when it has left."""
        words, bits = self._own.tile.words, self._widths.bits(visit.final)
        written = self._env.event()
        if not visit.final:
            self._partial[visit.number] = written
        key = leaving(self.memory.name, "dram", visit)
        self._ledger.sent(key, words, visit.weight)

        def done() -> None:
            self._ledger.received(key, words, visit.weight)
            self._written.add()
            written.succeed()

        burst = self._dram.layout.first_burst("outputs", visit.tile_index)
        n_bytes = self._widths.n_bytes(words, visit.final)
        yield from self._dram.write(self.memory, "outputs", burst, n_bytes, bits, done, visit.weight, self.line)

    def finished(self) -> Any:
        """See `OutputHome`."""
        if self._outer is not None:
            return self._outer.finished()
        return self._written.reach(visits_walked(self._own, self._plan))
