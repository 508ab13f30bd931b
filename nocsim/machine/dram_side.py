"""The DRAM as a node: transfers cut over its ports, and writes that reserve room before they start."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any

import simpy

from cosa.model.layer import Tensor
from nocsim.machine.delivery import Delivery
from nocsim.machine.dram_port import AddressLayout, DramPort
from nocsim.machine.feed import Feed, Part
from nocsim.machine.holder import Holder
from nocsim.machine.network import MachineNetwork, Message
from nocsim.machine.waits import Resource, Timeline

Process = Generator[Any, Any, None]
Nearest = Callable[[tuple[int, ...], tuple[int, ...]], tuple[int, int]]
"""Of some sources and some destinations, the pair with the fewest hops."""


@dataclass
class _Lane:
    """A write's share for one port: what is left, and the piece sent last."""

    port: DramPort
    src: int
    burst: int
    n_bytes: int
    message: Message | None = None


class DramSide:
    """All DRAM ports together. A tile's bursts go round robin over the ports, so each carries an equal share."""

    def __init__(
        self,
        env: simpy.Environment,
        ports: list[DramPort],
        layout: AddressLayout,
        network: MachineNetwork,
        nearest: Nearest,
        chunked: bool,
    ) -> None:
        self._env = env
        self.ports, self.layout = ports, layout
        self._network, self._nearest, self._chunked = network, nearest, chunked

    def start(self, feeds: list[Feed]) -> list[Any]:
        """Begin to serve and to send operands; returns the processes to wait for."""
        for port in self.ports:
            port.start()
        return [self._env.process(feed.run(self._env)) for feed in feeds]

    def _shares(self, burst: int, n_bytes: int) -> list[tuple[DramPort, int, int]]:
        """(port, first burst, bytes) of each port that has a share of a run of bytes."""
        size, count = self.layout.burst_bytes, len(self.ports)
        bursts = -(-n_bytes // size)
        padding = bursts * size - n_bytes
        shares = []
        for offset in range(min(count, bursts)):
            own = -(-(bursts - offset) // count)
            last = (bursts - 1 - offset) % count == 0
            port = self.ports[(burst + offset) % count]
            shares.append((port, burst + offset, own * size - (padding if last else 0)))
        return shares

    def transfer(
        self, tensor: Tensor, group: int, dsts: tuple[Holder, ...], part: Part, word_bits: int, delivery: Delivery
    ) -> Process:
        """Read a part of a tile and send it to a group of nodes. Returns at once: the ports keep the order."""
        burst = self.layout.first_burst(tensor, part.tile_index, part.skip_bytes)
        self.read(tensor, tensor, dsts, burst, part.n_bytes, delivery)
        return
        yield

    def read(
        self,
        stream: str,
        tensor: Tensor,
        dsts: tuple[Holder, ...],
        burst: int,
        n_bytes: int,
        delivery: Delivery,
    ) -> None:
        """Queue a read; `delivery` is told once a node, with its first endpoint, when all shares are there."""
        shares = self._shares(burst, n_bytes)
        missing = {node.endpoints[0]: len(shares) for node in dsts}
        for port, first, share_bytes in shares:
            targets = {self._nearest((port.endpoint,), node.endpoints)[1]: node.endpoints[0] for node in dsts}

            def arrived(endpoint: int, targets: dict[int, int] = targets) -> None:
                node = targets[endpoint]
                missing[node] -= 1
                if not missing[node]:
                    delivery.whole(node)

            share = Delivery(arrived, delivery.piece, delivery.first_apart, delivery.weight, delivery.passage)
            port.read(stream, tensor, tuple(targets), share_bytes, first, len(self.ports), share)

    def write(
        self,
        source: Holder,
        tensor: Tensor,
        burst: int,
        n_bytes: int,
        word_bits: int,
        on_written: Callable[[], None],
        weight: int = 1,
        line: Timeline | None = None,
    ) -> Process:
        """Send bytes from a node to the DRAM; returns when they have left it, `on_written` when they are written.

        A piece is read at its source while the one before it leaves. All is counted `weight` times. Waits are charged
        to `line`, the sender's.
        """
        shares = self._shares(burst, n_bytes)
        open_pieces = 1

        def written() -> None:
            nonlocal open_pieces
            open_pieces -= 1
            if not open_pieces:
                on_written()

        lanes = [
            _Lane(port, self._nearest(source.endpoints, (port.endpoint,))[0], first, share_bytes)
            for port, first, share_bytes in shares
        ]
        stride = len(self.ports)

        def left(message: Message) -> Process:
            yield message.sent
            if line is not None:
                line.follow(message.outbox.line.split(line.end, message.sent_cycle))

        def waited(event: Any, resource: Resource) -> Process:
            yield event
            if line is not None:
                line.until(self._env.now, resource)

        while lanes:
            for lane in lanes:
                port, piece = lane.port, min(lane.n_bytes, lane.port.write_piece_bytes)
                reading = source.read(piece, word_bits)
                if lane.message is not None and self._chunked:
                    yield from left(lane.message)
                packets = self._network.packetiser.packets(piece)
                room = port.reserve(packets)
                if room is not None:
                    yield from waited(room, "dram")
                if reading is not None:
                    yield from waited(reading, "port")
                open_pieces += 1
                arrived = partial(_write, port, piece, lane.burst, stride, packets, written, weight)
                lane.message = self._network.send(lane.src, (port.endpoint,), tensor, piece, arrived, weight=weight)
                lane.burst += piece // self.layout.burst_bytes * stride
                lane.n_bytes -= piece
            finished = [lane for lane in lanes if not lane.n_bytes]
            lanes = [lane for lane in lanes if lane.n_bytes]
            for lane in finished:
                assert lane.message is not None
                yield from left(lane.message)
        written()


def _write(
    port: DramPort,
    n_bytes: int,
    burst: int,
    stride: int,
    packets: int,
    written: Callable[[], None],
    weight: int,
    _: int,
) -> None:
    port.write(n_bytes, burst, stride, packets, written, weight)
