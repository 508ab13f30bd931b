"""What the processes see of the mesh: send bytes, learn when they have left and when they have arrived."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import simpy

from cosa.model.layer import Tensor
from cosa.model.noc import Noc
from nocsim.machine.waits import Outbox, Passage, Resource
from nocsim.mesh.mesh import Gate, Mesh, ReportKind
from nocsim.mesh.routing import zero_load_latency_cycles

Arrival = Callable[[int], None]
"""Called with the endpoint at which a message has arrived whole."""


def ignore_arrival(_: int) -> None:
    """For all parts of a transfer but the last, which alone counts."""


@dataclass
class CarriedLoad:
    """What one kind of transfer put on its route: whole packets, flits with headers, payload bytes."""

    packets: int = 0
    flits: int = 0
    n_bytes: int = 0


class Message:
    """Bytes under way from one endpoint to one or more. `sent` fires when the last flit has left its source.

    It is counted `weight` times (`nocsim.machine.sampling`). `passage` is the transfer it belongs to, if somebody asks
    what waits were for; `waiting_flits` of its `flits` may not go yet.
    """

    __slots__ = (
        "dsts",
        "flits",
        "n_bytes",
        "number",
        "on_arrival",
        "open_tokens",
        "outbox",
        "passage",
        "pending",
        "queued_cycle",
        "sent",
        "sent_cycle",
        "src",
        "tensor",
        "waiting_flits",
        "weight",
    )

    def __init__(
        self,
        src: int,
        dsts: tuple[int, ...],
        tensor: Tensor,
        n_bytes: int,
        sent: Any,
        arrival: Arrival,
        weight: int,
        outbox: Outbox,
    ) -> None:
        self.number = -1  # the mesh gives one
        self.src, self.dsts, self.tensor, self.n_bytes = src, dsts, tensor, n_bytes
        self.sent, self.on_arrival, self.weight = sent, arrival, weight
        self.pending = len(dsts)
        self.open_tokens = self.flits = self.waiting_flits = 0
        self.outbox = outbox
        self.passage: Passage | None = None
        self.queued_cycle = self.sent_cycle = 0


class Packetiser:
    """How a transfer becomes packets: a header flit and up to `payload_flits` data flits each."""

    def __init__(self, noc: Noc) -> None:
        self.flit_bytes = noc.flit_bits // 8
        self.payload_bytes = noc.packet_payload_flits * self.flit_bytes
        self.full_flits = 1 + noc.packet_payload_flits
        self.trims = noc.partial_packets == "trimmed"

    def packets(self, n_bytes: int) -> int:
        """Packets that carry so many bytes."""
        return -(-n_bytes // self.payload_bytes)

    def last_flits(self, n_bytes: int) -> int:
        """Flits of the last packet."""
        rest = n_bytes % self.payload_bytes
        return self.full_flits if not rest or not self.trims else 1 + -(-rest // self.flit_bytes)

    def flits(self, n_bytes: int) -> int:
        """Flits of all packets, headers included."""
        return (self.packets(n_bytes) - 1) * self.full_flits + self.last_flits(n_bytes)


class MachineNetwork(ABC):
    """Moves messages and keeps the books. Replaceable as a whole: `MeshNetwork`, or `IdealNetwork`.

    `loads` has what each (tensor, source, destinations) carried, `received_bytes` what each (tensor, endpoint) got.
    """

    releases_quietly: bool
    """Whether `release` can be called outside SimPy's present, because nothing is heard of before the mesh runs on."""

    def __init__(self, env: simpy.Environment, noc: Noc) -> None:
        self._env = env
        self.packetiser = Packetiser(noc)
        self.loads: dict[tuple[Tensor, int, tuple[int, ...]], CarriedLoad] = {}
        self.received_bytes: dict[tuple[Tensor, int], int] = {}
        self._outboxes: dict[int, Outbox] = {}

    def send(
        self,
        src: int,
        dsts: tuple[int, ...],
        tensor: Tensor,
        n_bytes: int,
        on_arrival: Arrival,
        gate: Gate = Gate.NONE,
        weight: int = 1,
    ) -> Message:
        """Queue a message at its source; a gated one needs `release` for each of its packets."""
        outbox = self._outboxes.get(src)
        if outbox is None:
            outbox = self._outboxes[src] = Outbox()
        message = Message(src, dsts, tensor, n_bytes, self._env.event(), on_arrival, weight, outbox)
        message.queued_cycle = self._env.now
        load = self.loads.setdefault((tensor, src, dsts), CarriedLoad())
        load.packets += self.packetiser.packets(n_bytes) * weight
        flits = message.flits = self.packetiser.flits(n_bytes)
        load.flits += flits * weight
        load.n_bytes += n_bytes * weight
        if gate == Gate.NONE:
            outbox.given(message.queued_cycle, self._busy_cycles(flits))
        else:
            message.waiting_flits = flits
        self._put(message, gate)
        return message

    @abstractmethod
    def _put(self, message: Message, gate: Gate) -> None:
        """Take a new message."""

    def release(self, message: Message, packets: int) -> None:
        """Let so many more packets of a gated message go."""
        flits = min(message.waiting_flits, packets * self.packetiser.full_flits)
        message.waiting_flits -= flits
        message.outbox.given(self._cycle(), self._busy_cycles(flits))
        self._release(message, packets)

    @abstractmethod
    def _release(self, message: Message, packets: int) -> None:
        """Let packets go."""

    def _cycle(self) -> int:
        """The present cycle, also outside SimPy's present."""
        return int(self._env.now)

    @abstractmethod
    def _busy_cycles(self, flits: int) -> int:
        """Cycles that a source needs to send so many flits."""

    @abstractmethod
    def _latency_cycles(self, src: int, dst: int) -> int:
        """Cycles from the end of sending to the arrival in an empty mesh."""

    def _left(self, message: Message) -> None:
        """The last flit has left the source."""
        passage, now = message.passage, self._env.now
        message.sent_cycle = now
        starved_by: Resource = "dram" if passage is not None and passage.from_dram else "port"
        flits = self._busy_cycles(message.flits)
        if passage is not None:
            passage.left(now)
        message.outbox.sent(now, message.queued_cycle, flits, starved_by)
        message.sent.succeed()

    def _arrived(self, message: Message, dst: int) -> None:
        if message.passage is not None:
            message.passage.came(message, dst, self._env.now, self._latency_cycles(message.src, dst))
        key = (message.tensor, dst)
        self.received_bytes[key] = self.received_bytes.get(key, 0) + message.n_bytes * message.weight
        message.on_arrival(dst)


class MeshNetwork(MachineNetwork):
    """The cycle-exact mesh behind the conductor."""

    releases_quietly = True

    def __init__(self, env: simpy.Environment, mesh: Mesh, noc: Noc, wake: Callable[[], None]) -> None:
        super().__init__(env, noc)
        self._mesh, self._wake = mesh, wake
        self._messages: dict[int, Message] = {}
        self._latencies: dict[tuple[int, int], int] = {}

    def _put(self, message: Message, gate: Gate) -> None:
        cut, n_bytes = self.packetiser, message.n_bytes
        message.number = self._mesh.submit(
            message.src,
            message.dsts,
            cut.packets(n_bytes),
            cut.full_flits,
            cut.last_flits(n_bytes),
            gate=gate,
            cycle=self._env.now,
        )
        self._messages[message.number] = message
        self._wake()

    def _release(self, message: Message, packets: int) -> None:
        self._mesh.release(message.number, packets)
        self._wake()

    def _cycle(self) -> int:
        return max(int(self._env.now), self._mesh.now)

    def _busy_cycles(self, flits: int) -> int:
        return flits

    def _latency_cycles(self, src: int, dst: int) -> int:
        found = self._latencies.get((src, dst))
        if found is None:
            # Heard of one cycle after the flit has entered, a message is sent.
            found = self._latencies[src, dst] = zero_load_latency_cycles(self._mesh.topology, src, dst) - 1
        return found

    def report(self, kind: int, number: int, dst: int) -> None:
        """Pass on what the mesh reported."""
        message = self._messages[number]
        if kind == ReportKind.SENT:
            self._left(message)
            return
        message.pending -= 1
        if not message.pending:
            del self._messages[number]
        self._arrived(message, dst)


class IdealNetwork(MachineNetwork):
    """Unlimited bandwidth, zero latency: every message arrives in the cycle in which it is sent."""

    releases_quietly = False

    def _put(self, message: Message, gate: Gate) -> None:
        if gate == Gate.NONE:
            self._deliver(message)
        else:
            message.open_tokens = self.packetiser.packets(message.n_bytes)

    def _release(self, message: Message, packets: int) -> None:
        message.open_tokens -= packets
        if not message.open_tokens:
            self._deliver(message)

    def _busy_cycles(self, flits: int) -> int:
        return 0

    def _latency_cycles(self, src: int, dst: int) -> int:
        return 0

    def _deliver(self, message: Message) -> None:
        def arrive(_: Any) -> None:
            for dst in message.dsts:
                self._arrived(message, dst)

        message.sent.callbacks.append(arrive)
        self._left(message)
