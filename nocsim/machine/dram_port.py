"""DRAM ports: endpoints of the mesh with one or more DRAM channels behind them, and the address layout of tensors."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import simpy

from cosa.model.arch import Machine
from cosa.model.layer import Tensor
from nocsim.machine.delivery import Delivery
from nocsim.machine.memory import Access, Memory
from nocsim.machine.network import MachineNetwork, Message
from nocsim.machine.progress import Counter
from nocsim.mesh.mesh import Gate

READ, WRITE = 0, 1

Process = Generator[Any, Any, None]


class AddressLayout:
    """Where tiles lie. Each tensor has a region of its own that starts at a new row of every channel and bank.

    Within it each tile is one contiguous run, in the order of the loops that the tensor depends on, as a compiler lays
    tensors out for such a machine; a part of a tile (the new words of a sliding window) is the end of its run. Bursts
    go round robin over the channels. Addresses wrap at the capacity of the DRAM.
    """

    def __init__(self, burst_bytes: int, row_bytes: int, capacity_bytes: int, channels: int) -> None:
        self.burst_bytes = burst_bytes
        self.channels = channels
        self._row_bursts = max(1, row_bytes // burst_bytes) * channels
        self._bursts = max(1, capacity_bytes // burst_bytes) * channels
        self._next_burst = 0
        self._base: dict[str, int] = {}
        self._tile_bursts: dict[str, int] = {}

    def reserve(self, name: str, tiles: int, tile_bytes: int) -> None:
        """A region for so many tiles of one size."""
        bursts = -(-tile_bytes // self.burst_bytes)
        self._base[name], self._tile_bursts[name] = self._next_burst, bursts
        rows = -(-tiles * bursts // self._row_bursts)
        self._next_burst += rows * self._row_bursts

    def first_burst(self, name: str, tile: int, skip_bytes: int = 0) -> int:
        """Number of the burst in which a tile starts, or in which the part after `skip_bytes` of it starts."""
        return self._base[name] + tile * self._tile_bursts[name] + skip_bytes // self.burst_bytes

    def place(self, burst: int) -> tuple[int, int]:
        """(channel, byte address within the channel) of a burst."""
        burst %= self._bursts
        return burst % self.channels, burst // self.channels * self.burst_bytes


@dataclass
class _Read:
    """A transfer that a port still has to read, or a share of it: every `stride`-th burst from `burst` on."""

    tensor: Tensor
    dsts: tuple[int, ...]
    n_bytes: int
    burst: int
    stride: int
    delivery: Delivery
    begun: bool = False


@dataclass
class _Chunk:
    """A message whose packets leave as data come in: bursts finish in any order, packets go in order."""

    message: Message
    packets: int
    done_bytes: int = 0
    released: int = 0


@dataclass
class _ReadBurst:
    """One burst under way to a port."""

    port: DramPort
    chunk: _Chunk
    n_bytes: int
    done: bool = False

    def quietly(self) -> bool:
        """See `nocsim.machine.memory.Access`: most bursts only let a packet go."""
        return self.port.data_quietly(self)

    def finish(self) -> None:
        """See `nocsim.machine.memory.Access`."""
        self.port.data(self)


@dataclass
class _Write:
    """The bursts of a piece that is being written."""

    bursts: int
    written: Callable[[], None]

    def quietly(self) -> bool:
        """See `nocsim.machine.memory.Access`: only the last burst is heard of."""
        if self.bursts == 1:
            return False
        self.bursts -= 1
        return True

    def finish(self) -> None:
        """See `nocsim.machine.memory.Access`."""
        self.bursts -= 1
        if not self.bursts:
            self.written()


class DramPort:
    """One DRAM port: a process that reads for all streams in turn, and a write buffer that always sinks.

    Reads: streams take turns chunk by chunk; up to `reads_in_flight` accesses are under way. A packet leaves when all
    its data are there (`complete`), or its first flits go at once and its tail waits (`holds_path`).
    Writes: a sender first reserves room in the write buffer, so what arrives is always taken.
    """

    def __init__(
        self,
        env: simpy.Environment,
        endpoint: int,
        network: MachineNetwork,
        memory: Memory,
        layout: AddressLayout,
        machine: Machine,
    ) -> None:
        self._env, self.endpoint, self._network, self._memory = env, endpoint, network, memory
        self._layout, self._machine = layout, machine
        self.bursts: dict[tuple[int, int], tuple[int, int]] = {}
        """Accesses by (channel, read or write): each as often as it counts, and once."""
        self._streams: OrderedDict[str, deque[_Read]] = OrderedDict()
        self._work = Counter(env)
        self._taken = 0
        self._issued = 0
        self._completed = Counter(env)
        self._order: deque[_ReadBurst] = deque()
        self._reserved_packets = 0
        self._drained_packets = Counter(env)
        payload = network.packetiser.payload_bytes
        per_burst = max(1, layout.burst_bytes // payload)
        self._first_bytes = per_burst * payload
        self._chunk_bytes = None
        if machine.chunk_packets is not None:
            self._chunk_bytes = -(-machine.chunk_packets // per_burst) * per_burst * payload
        buffer_bytes = machine.dram_write_buffer_packets * payload
        self.write_piece_bytes = max(layout.burst_bytes, min(4 * max(layout.burst_bytes, payload), buffer_bytes))

    def start(self) -> None:
        """Begin to serve reads."""
        self._env.process(self._serve_reads())

    # ---- reads

    def read(
        self,
        stream: str,
        tensor: Tensor,
        dsts: tuple[int, ...],
        n_bytes: int,
        burst: int,
        stride: int,
        delivery: Delivery,
    ) -> None:
        """Queue a read of `n_bytes`, every `stride`-th burst from `burst`."""
        queue = self._streams.setdefault(stream, deque())
        if delivery.passage is not None:
            delivery.passage.from_dram = True
        queue.append(_Read(tensor, dsts, n_bytes, burst, stride, delivery))
        self._work.add()

    def _serve_reads(self) -> Process:
        while True:
            if self._taken == self._work.value:
                yield self._work.reach(self._taken + 1)
            name = next(name for name, queue in self._streams.items() if queue)
            # Its turn is over after one chunk: the stream goes behind all others.
            self._streams.move_to_end(name)
            yield from self._read_chunk(self._streams[name])

    def _read_chunk(self, queue: deque[_Read]) -> Process:
        read = queue[0]
        n_bytes = min(read.n_bytes, self._chunk_bytes or read.n_bytes)
        if read.delivery.first_apart and not read.begun:
            n_bytes = min(n_bytes, self._first_bytes)
        read.begun = True
        read.n_bytes -= n_bytes
        last = not read.n_bytes
        gate = Gate.HEAD if self._machine.dram_packet == "complete" else Gate.TAIL
        arrival, weight = read.delivery.arrival(n_bytes, last), read.delivery.weight
        message = self._network.send(self.endpoint, read.dsts, read.tensor, n_bytes, arrival, gate, weight)
        message.passage = read.delivery.passage
        if last:
            queue.popleft()
            self._taken += 1
        chunk = _Chunk(message, self._network.packetiser.packets(n_bytes))
        limit = self._machine.reads_in_flight
        burst_bytes = self._layout.burst_bytes
        while n_bytes:
            if self._issued - self._completed.value >= limit:
                # With many in flight it goes on when an eighth of them is done: fewer turns, the DRAM stays busy.
                yield self._completed.reach(self._issued - limit + max(1, limit // 8))
            self._issued += 1
            burst = _ReadBurst(self, chunk, min(n_bytes, burst_bytes))
            n_bytes -= burst.n_bytes
            self._order.append(burst)
            channel, address = self._layout.place(read.burst)
            read.burst += read.stride
            self._submit(channel, READ, address, burst, weight)

    def _submit(self, channel: int, op: int, address: int, access: Access, weight: int) -> None:
        weighted, submitted = self.bursts.get((channel, op), (0, 0))
        self.bursts[channel, op] = weighted + weight, submitted + 1
        self._memory.submit(channel, op, address, access)

    def data_quietly(self, burst: _ReadBurst) -> bool:
        """Take a burst's data if that wakes no process."""
        if self._completed.wakes_next or not self._network.releases_quietly:
            return False
        self.data(burst)
        return True

    def data(self, burst: _ReadBurst) -> None:
        """A burst's data are there: packets that are complete may go, in order."""
        burst.done = True
        payload = self._network.packetiser.payload_bytes
        while self._order and self._order[0].done:
            front = self._order.popleft()
            chunk = front.chunk
            chunk.done_bytes += front.n_bytes
            whole = chunk.done_bytes == chunk.message.n_bytes
            packets = chunk.packets if whole else chunk.done_bytes // payload
            if packets > chunk.released:
                self._network.release(chunk.message, packets - chunk.released)
                chunk.released = packets
        self._completed.add()

    # ---- writes

    def reserve(self, packets: int) -> Any | None:
        """Room in the write buffer for so many packets: None if it is there, else an event to wait for."""
        self._reserved_packets += min(packets, self._machine.dram_write_buffer_packets)
        missing = self._reserved_packets - self._machine.dram_write_buffer_packets
        if missing <= self._drained_packets.value:
            return None
        return self._drained_packets.reach(missing)

    def write(
        self, n_bytes: int, burst: int, stride: int, packets: int, on_written: Callable[[], None], weight: int = 1
    ) -> None:
        """Write what has arrived: every `stride`-th burst from `burst`; `on_written` when the last data are out."""

        def written() -> None:
            self._drained_packets.add(min(packets, self._machine.dram_write_buffer_packets))
            on_written()

        access = _Write(-(-n_bytes // self._layout.burst_bytes), written)
        for number in range(access.bursts):
            channel, address = self._layout.place(burst + number * stride)
            self._submit(channel, WRITE, address, access, weight)
