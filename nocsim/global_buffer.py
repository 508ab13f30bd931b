"""The global buffer: holds operand tiles for the PEs, on one or more ports of the mesh."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import simpy

from cosa.workload import Tensor
from nocsim.dram_side import Nearest
from nocsim.feed import Feed, Part
from nocsim.holder import Holder, Slot
from nocsim.network import Network, ignore_arrival

Process = Generator[Any, Any, None]


class GlobalBuffer(Holder):
    """Sends tiles to the PEs: one process for each operand it keeps (`start`), others for outputs (see `output_home`).

    Streams of one port take turns chunk by chunk, because each has one chunk queued there.

    A group of PEs is served by the port with the fewest hops to them; of equal ones, by the one with fewer groups.
    """

    def __init__(
        self,
        env: simpy.Environment,
        endpoints: tuple[int, ...],
        slots: dict[Tensor, Slot],
        network: Network,
        nearest: Nearest,
        hops: Callable[[int, int], int],
        chunk_packets: int | None,
    ) -> None:
        super().__init__(endpoints, slots)
        self._env = env
        self._network, self._nearest, self._hops = network, nearest, hops
        self._chunk_bytes = chunk_packets * network.packetiser.payload_bytes if chunk_packets else None
        self._port: dict[tuple[str, int], int] = {}
        self._groups_at = dict.fromkeys(endpoints, 0)

    def start(self, feeds: list[Feed]) -> list[Any]:
        """Begin to send operands; returns the processes to wait for."""
        return [self._env.process(feed.run()) for feed in feeds]

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

    def transfer(
        self,
        tensor: Tensor,
        group: int,
        dsts: tuple[Holder, ...],
        part: Part,
        on_arrival: Callable[[int], None],
    ) -> Process:
        """Send a part of a tile to a group of PEs; returns when it has left."""
        yield from self.send_to(tensor, tensor, group, dsts, part.n_bytes, on_arrival)

    def send_to(
        self,
        stream: str,
        tensor: Tensor,
        group: int,
        dsts: tuple[Holder, ...],
        n_bytes: int,
        on_arrival: Callable[[int], None],
    ) -> Process:
        """Send bytes chunk by chunk; `on_arrival` is called for each node when the last chunk is there."""
        port = self._port_to(stream, group, dsts)
        endpoints = tuple(dst.endpoints[0] for dst in dsts)
        while n_bytes:
            chunk = min(n_bytes, self._chunk_bytes or n_bytes)
            n_bytes -= chunk
            message = self._network.send(port, endpoints, tensor, chunk, ignore_arrival if n_bytes else on_arrival)
            yield message.sent
