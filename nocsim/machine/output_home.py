"""Where outputs go from a node: a memory on the chip that keeps them (`nocsim.machine.output_memory`), or the DRAM."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import simpy

from cosa.analytical.traffic import Node, Residency, bytes_of
from nocsim.machine.dataflow import Visit, visits
from nocsim.machine.delivery import Delivery
from nocsim.machine.dram_side import DramSide
from nocsim.machine.holder import Holder
from nocsim.machine.ledger import FlowKey, Ledger
from nocsim.machine.progress import Counter
from nocsim.machine.sampling import SamplingPlan
from nocsim.machine.waits import Passage, Passages, Timeline

if TYPE_CHECKING:
    from nocsim.machine.global_buffer import ChipMemory
    from nocsim.machine.pe import ProcessingElement

Process = Generator[Any, Any, None]


class OutputSource(Protocol):
    """Whose outputs a memory collects: a PE that ends up with a sum, or the memory next in.

    `drained` counts visits that have left, `reloaded` visits whose earlier partial sums have come back. `reloads` are
    the last transfers of these, `line` says what the visits waited for that have left.
    """

    number: int
    drained: Counter
    reloaded: Counter
    reloads: Passages
    line: Timeline

    @property
    def holder(self) -> Holder:
        """The node, or memory of a node, that partial sums are sent back to."""

    def room_for_visit(self, visit: int) -> int:
        """Count that `drained` must have reached before output visit number `visit` has a set."""

    def hand_over(self, memory: ChipMemory, n_bytes: int, word_bits: int, delivery: Delivery) -> Process:
        """Send a tile to a memory of the global buffer; returns when it has left."""


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
    """Widths of an output word, by whether it is finished."""

    final_bits: int
    partial_bits: int

    def bits(self, final: bool) -> int:
        """Bits of a word."""
        return self.final_bits if final else self.partial_bits

    def n_bytes(self, words: int, final: bool) -> int:
        """Bytes of so many words."""
        return bytes_of(words, self.bits(final))


class DirectOutputs:
    """Outputs that no memory on the chip keeps: every visit is written to the DRAM, partial sums are read back."""

    def __init__(
        self,
        env: simpy.Environment,
        outputs: Residency,
        dram: DramSide,
        widths: OutputWidths,
        ledger: Ledger,
        plan: SamplingPlan | None = None,
    ) -> None:
        self._plan = plan
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
        bits = self._widths.bits(visit.final)
        n_bytes = self._widths.n_bytes(self._outputs.tile.words, visit.final)
        written = self._env.event()
        if not visit.final:
            self._partial[pe.number, visit.number] = written

        key = leaving("pe", "dram", visit)
        self._ledger.sent(key, self._outputs.tile.words, visit.weight)

        def done() -> None:
            self._ledger.received(key, self._outputs.tile.words, visit.weight)
            self._written.add()
            written.succeed()

        burst = self._burst(visit, pe)
        yield from pe.occupied(self._dram.write(pe, "outputs", burst, n_bytes, bits, done, visit.weight, pe.line))

    def _reload(self) -> Process:
        bits = self._widths.partial_bits
        n_bytes = self._widths.n_bytes(self._outputs.tile.words, False)
        line, env = Timeline(), self._env
        for visit in visits(self._outputs, plan=self._plan):
            if visit.first:
                continue
            for root in self._roots:
                room = root.room_for_visit(visit.number)
                if root.drained.value < room:
                    yield root.drained.reach(room)
                    line.follow(root.line.split(line.end, env.now))
                if visit.previous >= 0:
                    # The set is free only after the earlier visit has left, so its write is known here.
                    yield self._partial.pop((root.number, visit.previous))
                    line.until(env.now, "dram")
                key: FlowKey = ("outputs", "dram", "pe", "reload")
                passage = Passage(line, env.now, env.now)
                arrived = reload(root, self._ledger, key, self._outputs.tile.words, bits, visit.weight, passage)
                self._dram.read("partial sums", "outputs", (root,), self._burst(visit, root), n_bytes, arrived)

    def finished(self) -> Any:
        """See `OutputHome`."""
        return self._written.reach(visits_walked(self._outputs, self._plan) * len(self._roots))


def visits_walked(residency: Residency, plan: SamplingPlan | None) -> int:
    """How many visits there are, or with a plan how many of them are simulated."""
    return residency.visits if plan is None else sum(1 for _ in visits(residency, plan=plan))


def leaving(source: Node, destination: Node, visit: Visit) -> FlowKey:
    """The flow of a tile that leaves: finished or not."""
    return "outputs", source, destination, "final" if visit.final else "partial"


def reload(
    source: OutputSource, ledger: Ledger, key: FlowKey, words: int, word_bits: int, weight: int, passage: Passage
) -> Delivery:
    """Book a reload of partial sums as sent; the delivery books their arrival where they once came from."""
    source.reloads.add(passage)
    ledger.sent(key, words, weight)

    def arrived(_: int) -> None:
        ledger.received(key, words, weight)
        source.reloaded.add()

    return source.holder.delivery(word_bits, arrived, weight, passage)
