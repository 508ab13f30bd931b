"""What the processes see of the mesh: send bytes, learn when they have left and when they have arrived."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import simpy

from cosa.arch import Noc
from cosa.workload import Tensor
from nocsim.mesh import Gate, Mesh, ReportKind

Arrival = Callable[[int], None]
"""Called with the endpoint at which a message has arrived whole."""


@dataclass
class Load:
    """What one kind of transfer put on its route: whole packets, flits with headers, payload bytes."""

    packets: int = 0
    flits: int = 0
    n_bytes: int = 0


class Message:
    """Bytes under way from one endpoint to one or more. `sent` fires when the last flit has left its source."""

    __slots__ = ("dsts", "n_bytes", "number", "on_arrival", "open_tokens", "pending", "sent", "src", "tensor")

    def __init__(
        self, number: int, src: int, dsts: tuple[int, ...], tensor: Tensor, n_bytes: int, sent: Any, arrival: Arrival
    ) -> None:
        self.number, self.src, self.dsts, self.tensor, self.n_bytes = number, src, dsts, tensor, n_bytes
        self.sent, self.on_arrival = sent, arrival
        self.pending = len(dsts)
        self.open_tokens = 0


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


class Network(Protocol):
    """Moves messages. Replaceable as a whole: the mesh, or `IdealNetwork` to see what the mesh costs."""

    packetiser: Packetiser
    releases_quietly: bool
    """Whether `release` can be called outside SimPy's present, because nothing is heard of before the mesh runs on."""
    loads: dict[tuple[Tensor, int, tuple[int, ...]], Load]
    received_bytes: dict[tuple[Tensor, int], int]

    def send(
        self,
        src: int,
        dsts: tuple[int, ...],
        tensor: Tensor,
        n_bytes: int,
        on_arrival: Arrival,
        gate: Gate = Gate.NONE,
    ) -> Message:
        """Queue a message at its source; a gated one needs `release` for each of its packets."""

    def release(self, message: Message, packets: int) -> None:
        """Let so many more packets of a gated message go."""


class _Accounts:
    """The books every network keeps: what each (tensor, source, destinations) carried, what each endpoint received."""

    def __init__(self, noc: Noc) -> None:
        self.packetiser = Packetiser(noc)
        self.loads: dict[tuple[Tensor, int, tuple[int, ...]], Load] = {}
        self.received_bytes: dict[tuple[Tensor, int], int] = {}

    def _book_sent(self, src: int, dsts: tuple[int, ...], tensor: Tensor, n_bytes: int) -> None:
        load = self.loads.setdefault((tensor, src, dsts), Load())
        load.packets += self.packetiser.packets(n_bytes)
        load.flits += self.packetiser.flits(n_bytes)
        load.n_bytes += n_bytes

    def _arrived(self, message: Message, dst: int) -> None:
        key = (message.tensor, dst)
        self.received_bytes[key] = self.received_bytes.get(key, 0) + message.n_bytes
        message.on_arrival(dst)


class MeshNetwork(_Accounts):
    """The cycle-exact mesh behind the conductor."""

    releases_quietly = True

    def __init__(self, env: simpy.Environment, mesh: Mesh, noc: Noc, wake: Callable[[], None]) -> None:
        super().__init__(noc)
        self._env, self._mesh, self._wake = env, mesh, wake
        self._messages: dict[int, Message] = {}

    def send(
        self,
        src: int,
        dsts: tuple[int, ...],
        tensor: Tensor,
        n_bytes: int,
        on_arrival: Arrival,
        gate: Gate = Gate.NONE,
    ) -> Message:
        """See `Network`."""
        cut = self.packetiser
        number = self._mesh.submit(
            src, dsts, cut.packets(n_bytes), cut.full_flits, cut.last_flits(n_bytes), gate=gate, cycle=self._env.now
        )
        message = Message(number, src, dsts, tensor, n_bytes, self._env.event(), on_arrival)
        self._messages[number] = message
        self._book_sent(src, dsts, tensor, n_bytes)
        self._wake()
        return message

    def release(self, message: Message, packets: int) -> None:
        """See `Network`."""
        self._mesh.release(message.number, packets)
        self._wake()

    def report(self, kind: int, number: int, dst: int) -> None:
        """Pass on what the mesh reported."""
        message = self._messages[number]
        if kind == ReportKind.SENT:
            message.sent.succeed()
            return
        message.pending -= 1
        if not message.pending:
            del self._messages[number]
        self._arrived(message, dst)


class IdealNetwork(_Accounts):
    """Unlimited bandwidth, zero latency: every message arrives in the cycle in which it is sent."""

    releases_quietly = False

    def __init__(self, env: simpy.Environment, noc: Noc) -> None:
        super().__init__(noc)
        self._env = env
        self._number = 0

    def send(
        self,
        src: int,
        dsts: tuple[int, ...],
        tensor: Tensor,
        n_bytes: int,
        on_arrival: Arrival,
        gate: Gate = Gate.NONE,
    ) -> Message:
        """See `Network`."""
        self._number += 1
        message = Message(self._number, src, dsts, tensor, n_bytes, self._env.event(), on_arrival)
        message.open_tokens = self.packetiser.packets(n_bytes) if gate != Gate.NONE else 0
        self._book_sent(src, dsts, tensor, n_bytes)
        if not message.open_tokens:
            self._deliver(message)
        return message

    def release(self, message: Message, packets: int) -> None:
        """See `Network`."""
        message.open_tokens -= packets
        if not message.open_tokens:
            self._deliver(message)

    def _deliver(self, message: Message) -> None:
        def arrive(_: Any) -> None:
            for dst in message.dsts:
                self._arrived(message, dst)

        message.sent.callbacks.append(arrive)
        message.sent.succeed()
