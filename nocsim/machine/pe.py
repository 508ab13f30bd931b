"""A PE: computes step after step on what has arrived, and sends its outputs away."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Literal

import simpy

from cosa.analytical.traffic import Residency, bytes_of
from cosa.model.arch import Machine, Pe
from nocsim.machine.dataflow import Odometer, ReductionTree, StepTable, Visit, visits
from nocsim.machine.delivery import Delivery
from nocsim.machine.holder import Holder, Slot
from nocsim.machine.ledger import FlowKey, Ledger
from nocsim.machine.network import MachineNetwork
from nocsim.machine.output_home import OutputHome
from nocsim.machine.progress import Counter
from nocsim.machine.sampling import SamplingPlan
from nocsim.machine.waits import CAUSES, RESOURCES, Cause, Passages, Resource, Split, Timeline

if TYPE_CHECKING:
    from nocsim.machine.global_buffer import ChipMemory

_REDUCTION: FlowKey = ("outputs", "pe", "pe", "reduction")

Process = Generator[Any, Any, None]

_MISSING: dict[Cause, str] = {
    "inputs": "its input tile",
    "weights": "its weight tile",
    "partial_sums": "its reload of partial sums",
    "drain": "its output tile to leave,",
}


class ProcessingElement(Holder):
    """One PE in use.

    `computed` counts output visits whose compute has ended, `drained` visits that have left (their set is free),
    `reloaded` visits whose earlier partial sums have come back.
    """

    def __init__(
        self,
        env: simpy.Environment,
        number: int,
        endpoint: int,
        network: MachineNetwork,
        slots: dict[Any, Slot],
        output_buffers: int,
        outputs: Residency,
        steps: StepTable,
        tree: ReductionTree,
        pe: Pe,
        machine: Machine,
        ledger: Ledger,
        plan: SamplingPlan | None = None,
        upstream: Residency | None = None,
    ) -> None:
        """`upstream` is the residency of outputs in the next memory on the chip that keeps them, if one does."""
        super().__init__((endpoint,), slots)
        self._env, self.number, self._network = env, number, network
        self._outputs, self._steps, self._tree, self._pe, self._machine = outputs, steps, tree, pe, machine
        self._ledger, self._plan, self._upstream = ledger, plan, upstream
        self._weight = 1
        self.period_starts: list[int] = []
        """With a plan: the cycles in which the compute of its periods began, and the end of the last one."""
        self.output_buffers = output_buffers
        self.computed, self.drained, self.reloaded = Counter(env), Counter(env), Counter(env)
        self._added = {before: Counter(env) for before in tree.predecessors[number]}
        self._engine = simpy.Resource(env) if machine.send_engine == "shared" else None
        self._adder_free_cycle = 0
        self._waits_for: tuple[Cause, Counter, int] | None = None
        self.reloads = Passages(output_buffers)
        self.line = Timeline()
        """What its outputs waited for to leave."""
        self.computing_cycles = 0
        self.waits: dict[Cause, dict[Resource, int]] = {cause: dict.fromkeys(RESOURCES, 0) for cause in CAUSES}
        """Cycles it waited, by what it waited for and by the resource that kept it waiting."""
        self.computed_cycle = self.finished_cycle = 0

    def start(self, peers: dict[int, ProcessingElement], home: OutputHome, partial_bits: int) -> list[Any]:
        """Begin; `peers` are all PEs in use. Returns the processes to wait for."""
        self._peers, self._home, self._partial_bits = peers, home, partial_bits
        return [self._env.process(self._compute()), self._env.process(self._drain())]

    @property
    def holder(self) -> Holder:
        """See `nocsim.machine.output_home.OutputSource`."""
        return self

    @property
    def is_root(self) -> bool:
        """Whether this PE ends up with the sum of its group."""
        return self._tree.root == self.number

    def room_for_visit(self, visit: int) -> int:
        """Count that `drained` must have reached before output visit number `visit` has a set."""
        return visit - self.output_buffers + 1

    @property
    def state(self) -> str:
        """How far it has come, and what it waits for: for the report on a machine that is stuck."""
        text = f"PE {self.number} ({self.computed.value} tiles computed, {self.drained.value} sent"
        if self._waits_for is None:
            return text + ")"
        cause, counter, count = self._waits_for
        return f"{text}; waits for {_MISSING[cause]} number {count}, {counter.value} came)"

    # ---- compute

    def step_cycles(self) -> int:
        """Cycles that the PE computes in one step."""
        return self._steps.cycles_per_step + self._pe.pipeline_latency_cycles

    @property
    def waiting_cycles(self) -> dict[Cause, int]:
        """Cycles it waited, by what it waited for."""
        return {cause: sum(cycles.values()) for cause, cycles in self.waits.items()}

    def _waited(self, cause: Cause, split: Split) -> None:
        cycles = self.waits[cause]
        for resource, n_cycles in split:
            cycles[resource] += n_cycles * self._weight

    def _wait(self, counter: Counter, count: int, cause: Cause, why: Callable[[int], Split]) -> Process:
        """Wait for a count; `why` then says what the time since a cycle went to."""
        if counter.value < count:
            since, self._waits_for = self._env.now, (cause, counter, count)
            yield counter.reach(count)
            self._waits_for = None
            self._waited(cause, why(since))

    def _wait_for_tile(self, counter: Counter, tile: int, cause: Literal["inputs", "weights"]) -> Process:
        def why(since: int) -> Split:
            return self.slots[cause].passages.split(tile - 1, since, self._env.now, self.endpoints[0])

        yield from self._wait(counter, tile, cause, why)

    def _wait_for_room(self, visit: int) -> Process:
        yield from self._wait(self.drained, self.room_for_visit(visit), "drain", self._drained_since)

    def _drained_since(self, since: int) -> Split:
        return self.line.split(since, self._env.now)

    def _wait_for_reload(self, reloads: int) -> Process:
        def why(since: int) -> Split:
            return self.reloads.split(reloads - 1, since, self._env.now, self.endpoints[0])

        yield from self._wait(self.reloaded, reloads, "partial_sums", why)

    def _compute(self) -> Process:
        weights, inputs = self.slots["weights"], self.slots["inputs"]
        rows = self._steps.rows
        weight_tile = input_tile = output_visit = reloads = 0
        coming = visits(self._outputs, self._upstream, self._plan)
        odometer = Odometer(self._steps.loops, self._plan)
        for j in odometer:
            if odometer.period_begins:
                self._weight = odometer.weight
                self.period_starts.append(self._env.now)
            new_weights, new_inputs, new_outputs = rows[j]
            # Give up everything that is over before waiting for anything: the next tile may need the room.
            if new_weights:
                if weight_tile:
                    weights.released.add()
                weight_tile += 1
            if new_inputs:
                if input_tile:
                    inputs.released.add()
                input_tile += 1
            if new_outputs and output_visit:
                self.computed.add()
            yield from self._wait_for_tile(inputs.usable, input_tile, "inputs")
            yield from self._wait_for_tile(weights.usable, weight_tile, "weights")
            if new_outputs:
                yield from self._wait_for_room(output_visit)
                output_visit += 1
                visit = next(coming)
                if self.is_root and not visit.first:
                    reloads += 1
                    yield from self._wait_for_reload(reloads)
            yield from self._busy(self.step_cycles())
            if inputs.begun or weights.begun:
                # A step that began with the first packets of its tiles does not end before the last ones are there.
                yield from self._wait_for_tile(inputs.arrived, input_tile, "inputs")
                yield from self._wait_for_tile(weights.arrived, weight_tile, "weights")
        weights.released.add()
        inputs.released.add()
        self.computed.add()
        self.computed_cycle = self._env.now
        if self._plan:
            self.period_starts.append(self.computed_cycle)

    def _busy(self, cycles: int) -> Process:
        if self._engine is None:
            yield self._env.timeout(cycles)
        else:
            since = self._env.now
            with self._engine.request() as turn:
                yield turn
                self._waited("drain", self._drained_since(since))
                yield self._env.timeout(cycles)
        self.computing_cycles += cycles * self._weight

    # ---- outputs

    @property
    def tail(self) -> Split:
        """What its last outputs waited for, from the end of its last step until they had left."""
        return self.line.split(self.computed_cycle, max(self.computed_cycle, self.finished_cycle))

    def _waiting_for_peers(self, counter: Counter, count: int) -> Process:
        if counter.value < count:
            yield counter.reach(count)
            self.line.until(self._env.now, "reduction")

    def _drain(self) -> Process:
        successor = self._tree.successor.get(self.number)
        for visit in visits(self._outputs, self._upstream, self._plan):
            done = visit.number + 1
            if self.computed.value < done:
                yield self.computed.reach(done)
                self.line.until(self._env.now, "port")  # nothing to send: no wait reaches into it
            if self._machine.store_waits_for == "all_pes":
                for peer in self._peers.values():
                    yield from self._waiting_for_peers(peer.computed, done)
            for added in self._added.values():
                yield from self._waiting_for_peers(added, done)
            if successor is not None:
                yield from self._pass_on(self._peers[successor], visit)
            else:
                yield from self._home.store(self, visit)
            self.drained.add()
        self.finished_cycle = self._env.now

    def _pass_on(self, successor: ProcessingElement, visit: Visit) -> Process:
        """Send partial sums to the next PE of the reduction, which must have finished its own part."""
        done, weight = visit.number + 1, visit.weight
        yield from self._waiting_for_peers(successor.computed, done)
        tile_bytes = bytes_of(self._outputs.tile.words, self._partial_bits)
        self._ledger.sent(_REDUCTION, self._outputs.tile.words, weight)

        def arrived(_: int) -> None:
            successor.receive_partial_sums(self.number, weight)

        yield from self.send(successor.endpoints[0], tile_bytes, arrived, weight)

    def receive_partial_sums(self, sender: int, weight: int) -> None:
        """Add what has arrived; with a finite adder this takes time after the last word, one tile after another."""
        self._ledger.received(_REDUCTION, self._outputs.tile.words, weight)
        rate = self._pe.adder_words_per_cycle
        added = self._added[sender]
        if rate is None:
            added.add()
        else:
            self._adder_free_cycle = max(self._adder_free_cycle, self._env.now) + -(-self._outputs.tile.words // rate)
            after = self._env.timeout(self._adder_free_cycle - self._env.now)
            after.callbacks.append(lambda _: added.add())

    def hand_over(self, memory: ChipMemory, n_bytes: int, word_bits: int, delivery: Delivery) -> Process:
        """See `nocsim.machine.output_home.OutputSource`."""
        yield from self.send(memory.node.port_for(self), n_bytes, delivery.arrival(n_bytes, last=True), delivery.weight)

    def send(self, dst: int, n_bytes: int, on_arrival: Any, weight: int) -> Process:
        """Send outputs and wait until they have left."""
        yield from self.occupied(self._send(dst, n_bytes, on_arrival, weight))

    def _send(self, dst: int, n_bytes: int, on_arrival: Any, weight: int) -> Process:
        message = self._network.send(self.endpoints[0], (dst,), "outputs", n_bytes, on_arrival, weight=weight)
        yield message.sent
        self.line.follow(message.outbox.line.split(self.line.end, message.sent_cycle))

    def occupied(self, work: Process) -> Process:
        """Do something that takes the send engine; with one engine for both, the PE does not compute meanwhile."""
        if self._engine is None:
            yield from work
            return
        with self._engine.request() as turn:
            yield turn
            self.line.until(self._env.now, "port")
            yield from work
