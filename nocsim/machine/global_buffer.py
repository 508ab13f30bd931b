"""The global buffer: the memories on the chip outside the PEs, together at one or more ports of the mesh."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import simpy

from cosa.analytical.traffic import Node
from cosa.model.arch import Level
from cosa.model.layer import Tensor
from nocsim.machine.delivery import Delivery
from nocsim.machine.dram_side import Nearest
from nocsim.machine.feed import Feed, Part
from nocsim.machine.holder import Holder, Slot
from nocsim.machine.memory_port import MemoryPort
from nocsim.machine.network import Arrival, MachineNetwork
from nocsim.machine.waits import Passage
from nocsim.mesh.mesh import Gate

Process = Generator[Any, Any, None]


class GlobalBuffer:
    """The node: sends tiles to the PEs, one process for each operand and memory (`start`), others for outputs.

    `memories` are the levels on the chip outside the PEs by number: the level with the mesh below it, and those between
    it and the DRAM. They share the ports of the mesh; what moves between two of them does not enter it.

    Streams of one port take turns chunk by chunk, because each has one chunk queued there.

    A group of PEs is served by the port with the fewest hops to them; of equal ones, by the one with fewer groups.
    """

    def __init__(
        self,
        env: simpy.Environment,
        endpoints: tuple[int, ...],
        network: MachineNetwork,
        nearest: Nearest,
        hops: Callable[[int, int], int],
        chunk_packets: int | None,
    ) -> None:
        self.endpoints = endpoints
        self.memories: dict[int, ChipMemory] = {}
        self._env = env
        self._network, self._nearest, self._hops = network, nearest, hops
        self._chunk_bytes = chunk_packets * network.packetiser.payload_bytes if chunk_packets else None
        self._port: dict[tuple[str, int], int] = {}
        self._groups_at = dict.fromkeys(endpoints, 0)

    def add_memory(self, number: int, name: Node, level: Level, slots: dict[Tensor, Slot]) -> None:
        """Put in a level of the architecture."""
        self.memories[number] = ChipMemory(self._env, self, name, level, slots)

    def start(self, feeds: list[Feed]) -> list[Any]:
        """Begin to send operands; returns the processes to wait for."""
        return [self._env.process(feed.run(self._env)) for feed in feeds]

    def port_for(self, source: Holder) -> int:
        """The endpoint that takes what a node sends."""
        return self._nearest(source.endpoints, self.endpoints)[1]

    def _port_to(self, stream: str, group: int, dsts: tuple[Holder, ...]) -> int:
        if (stream, group) not in self._port:

            def cost(port: int) -> tuple[int, int, int]:
                return sum(self._hops(port, dst.endpoints[0]) for dst in dsts), self._groups_at[port], port

            port = min(self.endpoints, key=cost)
            self._port[stream, group] = port
            self._groups_at[port] += 1
        return self._port[stream, group]

    def chunks(self, n_bytes: int, first_apart: bool = False) -> list[int]:
        """A transfer cut into what a stream sends at a turn; with `first_apart` the first packet is one."""
        first = [min(n_bytes, self._network.packetiser.payload_bytes)] if first_apart else []
        n_bytes -= sum(first)
        whole, rest = divmod(n_bytes, self._chunk_bytes or max(1, n_bytes))
        return first + [self._chunk_bytes or n_bytes] * whole + [rest] * bool(rest)

    def send_to(
        self,
        stream: str,
        tensor: Tensor,
        group: int,
        dsts: tuple[Holder, ...],
        n_bytes: int,
        word_bits: int,
        delivery: Delivery,
        reading: MemoryPort | None = None,
    ) -> Process:
        """Send bytes chunk by chunk. A packet leaves when its words have been read through the port `reading`."""
        port = self._port_to(stream, group, dsts)
        endpoints = tuple(dst.endpoints[0] for dst in dsts)
        passage = delivery.passage
        for chunk in self.chunks(n_bytes, delivery.first_apart):
            n_bytes -= chunk
            arrival = delivery.arrival(chunk, last=not n_bytes)
            if reading is None:
                message = self._network.send(port, endpoints, tensor, chunk, arrival, weight=delivery.weight)
                message.passage = passage
            else:
                message = self._network.send(port, endpoints, tensor, chunk, arrival, Gate.HEAD, delivery.weight)
                message.passage = passage
                payload = self._network.packetiser.payload_bytes
                sizes = [min(payload, chunk - at) for at in range(0, chunk, payload)]
                for cycle in [reading.take(size, word_bits) for size in sizes]:
                    if cycle > self._env.now:
                        yield self._env.timeout(cycle - self._env.now)
                    self._network.release(message, 1)
            yield message.sent
            if passage is not None:
                passage.line.follow(message.outbox.line.split(passage.line.end, message.sent_cycle))


class ChipMemory(Holder):
    """One memory of the global buffer's node, with the bandwidths of its level."""

    def __init__(
        self, env: simpy.Environment, node: GlobalBuffer, name: Node, level: Level, slots: dict[Tensor, Slot]
    ) -> None:
        super().__init__(node.endpoints, slots)
        self._env, self.node, self.name, self.buffers = env, node, name, level.buffers
        reads, writes = level.read_bandwidth_words_per_cycle, level.write_bandwidth_words_per_cycle
        self._reading = MemoryPort(env, reads) if reads else None
        self._writing = MemoryPort(env, writes) if writes else None

    def read(self, n_bytes: int, word_bits: int) -> Any | None:
        """See `Holder`."""
        return self._reading.pass_through(n_bytes, word_bits) if self._reading else None

    def delivery(self, word_bits: int, whole: Arrival, weight: int = 1, passage: Passage | None = None) -> Delivery:
        """See `Holder`: what arrives leaves the mesh at once, and is there when it has passed the write port."""
        writing = self._writing
        if writing is None:
            return Delivery(whole, weight=weight, passage=passage)

        def written(endpoint: int) -> None:
            after = writing.pass_through(0, word_bits)
            after.callbacks.append(lambda _: whole(endpoint))

        def piece(_: int, n_bytes: int) -> None:
            writing.take(n_bytes, word_bits)

        return Delivery(written, piece, weight=weight, passage=passage)

    def transfer(
        self, tensor: Tensor, group: int, dsts: tuple[Holder, ...], part: Part, word_bits: int, delivery: Delivery
    ) -> Process:
        """Send a part of a tile to a group of PEs or to a memory further in; returns when it has left."""
        yield from self.send(tensor, tensor, group, dsts, part.n_bytes, word_bits, delivery)

    def send(
        self,
        stream: str,
        tensor: Tensor,
        group: int,
        dsts: tuple[Holder, ...],
        n_bytes: int,
        word_bits: int,
        delivery: Delivery,
    ) -> Process:
        """Send bytes over the mesh, or hand them to another memory of this node; returns when they have left."""
        if not isinstance(dsts[0], ChipMemory):
            yield from self.node.send_to(stream, tensor, group, dsts, n_bytes, word_bits, delivery, self._reading)
            return
        for chunk in self.node.chunks(n_bytes):
            n_bytes -= chunk
            if self._reading:
                yield self._reading.pass_through(chunk, word_bits)
                if delivery.passage is not None:
                    delivery.passage.line.until(self._env.now, "port")
            delivery.arrival(chunk, last=not n_bytes)(self.endpoints[0])
