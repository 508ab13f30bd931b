"""Packet replay: a list of packets in, the entry and ejection cycle of each head and tail flit out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cosa.common.files import whole_file
from nocsim.mesh.stall import Deadlock
from nocsim.mesh.topology import Topology
from nocsim.traffic.packet_files import Block, packet_blocks, read_packets
from nocsim.traffic.packet_stream import BLOCK_PACKETS, STALL_LIMIT_CYCLES, PacketReplay
from nocsim.traffic.packets import (
    DELIVERY_COLUMNS,
    MAX_NUMBER,
    Deliveries,
    Int64s,
    Packet,
    PacketError,
    Packets,
    first_fault,
    repeated_number,
)

__all__ = ["Deliveries", "Packet", "PacketError", "Packets", "read_packets", "replay_packets", "replay_packets_file"]


def replay_packets(
    packets: Packets | Iterable[Packet],
    columns: int,
    rows: int,
    fifo_flits: int = 7,
    reservation_flits: int = 5,
    *,
    stall_limit_cycles: int = STALL_LIMIT_CYCLES,
) -> Deliveries:
    """Send packets through a mesh of ``columns`` x ``rows`` routers.

    Each source sends its packets strictly in the given order. The run ends when all have arrived, or when no flit has
    moved at a source or destination for ``stall_limit_cycles`` while some are in the mesh: a deadlock, described by
    ``Deliveries.deadlock``. Multicasts longer than ``reservation_flits`` can deadlock; with ``reservation_flits``
    above ``fifo_flits`` no multicast ever starts.

    Raises
    ------
    PacketError: an endpoint outside the mesh or another impossible packet.
    ValueError: impossible parameters.

    Examples
    --------
    >>> from nocsim import Packet, replay_packets
    >>> done = replay_packets([Packet(src=0, dsts=15, n_flits=5), Packet(src=5, dsts=(0, 5), inject_cycle=3)], 4, 4)
    >>> print("\\n".join(done.lines()))
    packet,dst,head_in,tail_in,head_out,tail_out
    0,15,0,4,29,33
    1,0,3,7,16,20
    1,5,3,7,8,12
    """
    topology = Topology(columns, rows)
    if not isinstance(packets, Packets):
        packets = Packets.of(packets)
    fault = first_fault(packets, topology) or repeated_number(packets)
    if fault is not None:
        raise fault.at(f"packet {packets.number[fault.index]}")
    replay = PacketReplay(topology, fifo_flits, reservation_flits, stall_limit_cycles=stall_limit_cycles)
    return _replay_whole(packets, replay)


@dataclass(frozen=True)
class Scan:
    """What a look through a packets file tells: ``ascending`` means that numbers and cycles ascend."""

    source: str
    n_packets: int
    ascending: bool
    longest_multicast_flits: int
    first_multicast_row: int | None


@dataclass(frozen=True)
class Summary:
    """What came of the replay of a file. Times in cycles; latency from the head's entry to the tail's ejection."""

    n_packets: int
    n_deliveries: int
    n_delivered: int
    mean_latency_cycles: float
    end_cycle: int
    link_flits: Int64s
    deadlock: Deadlock | None

    @property
    def complete(self) -> bool:
        """Whether everything arrived."""
        return self.n_delivered == self.n_deliveries


def replay_packets_file(
    path_in: str | Path,
    path_out: str | Path,
    columns: int,
    rows: int,
    fifo_flits: int = 7,
    reservation_flits: int = 5,
    *,
    stall_limit_cycles: int = STALL_LIMIT_CYCLES,
    check: Callable[[Scan], None] | None = None,
) -> Summary:
    """Read a packets file, replay it, write the deliveries file, all block by block.

    Memory stays flat while packet numbers and cycles ascend in the file and the mesh keeps up; otherwise the file is
    held whole. ``path_out`` appears whole or not at all. ``check`` sees what was found in the file before the first
    packet is sent and may raise.

    Raises
    ------
    PacketError: a row cannot be read or sent.
    InputError: ``path_out`` cannot be written.
    ValueError: impossible parameters.
    """
    topology = Topology(columns, rows)
    replay = PacketReplay(topology, fifo_flits, reservation_flits, stall_limit_cycles=stall_limit_cycles)
    # a pipe can be read only once
    held = None if Path(path_in).is_file() else list(packet_blocks(path_in))
    scan = _scan(packet_blocks(path_in) if held is None else held, topology, str(path_in))
    if check is not None:
        check(scan)
    tally = _Tally()
    with whole_file(path_out) as stream:
        stream.write((",".join(DELIVERY_COLUMNS) + "\n").encode())
        if scan.ascending:
            for block in packet_blocks(path_in) if held is None else held:
                replay.feed(block.packets)
                if (arrivals := replay.take(everything=replay.stalled)) is not None:
                    stream.writelines(tally.add(arrivals.deliveries()))
            replay.run()
            if (arrivals := replay.take(everything=True)) is not None:
                stream.writelines(tally.add(arrivals.deliveries()))
        else:
            blocks = list(packet_blocks(path_in)) if held is None else held
            packets = Packets.joined(block.packets for block in blocks)
            if (fault := repeated_number(packets)) is not None:
                row = np.concatenate([block.rows for block in blocks])[fault.index]
                raise fault.at(f"row {row}", str(path_in))
            stream.writelines(tally.add(_replay_whole(packets, replay)))
    return Summary(
        n_packets=scan.n_packets,
        n_deliveries=tally.n,
        n_delivered=tally.n_delivered,
        mean_latency_cycles=tally.sum_latency_cycles / max(tally.n_delivered, 1),
        end_cycle=replay.end_cycle,
        link_flits=replay.link_flits(),
        deadlock=replay.deadlock,
    )


def _scan(blocks: Iterable[Block], topology: Topology, source: str) -> Scan:
    """Look through a file. Raises PacketError for the first row that cannot be sent."""
    n_packets, longest = 0, 0
    first_multicast: int | None = None
    number, cycle = -MAX_NUMBER - 1, 0
    ascending = True
    for packets, rows in blocks:
        if (fault := first_fault(packets, topology)) is not None:
            raise fault.at(f"row {rows[fault.index]}", source)
        n_packets += len(packets)
        if packets.multicast.any():
            longest = max(longest, int(packets.n_flits[packets.multicast].max()))
            if first_multicast is None:
                first_multicast = int(rows[np.argmax(packets.multicast)])
        numbers, cycles = packets.number, packets.inject_cycle
        if ascending:
            ascending = bool(
                number < numbers[0]
                and cycle <= cycles[0]
                and (numbers[1:] > numbers[:-1]).all()
                and (cycles[1:] >= cycles[:-1]).all()
            )
            number, cycle = int(numbers[-1]), int(cycles[-1])
    return Scan(source, n_packets, ascending, longest, first_multicast)


def _replay_whole(packets: Packets, replay: PacketReplay) -> Deliveries:
    """Replay packets that are in any order and known to be possible."""
    cycles = _entry_cycles(packets)
    order = np.argsort(cycles, kind="stable")
    for start in range(0, order.size, BLOCK_PACKETS):
        chosen = packets.chosen(order[start : start + BLOCK_PACKETS])
        chosen.inject_cycle[:] = cycles[order[start : start + BLOCK_PACKETS]]
        replay.feed(chosen)
    replay.run()
    arrivals = replay.take(everything=True)
    found = arrivals.deliveries() if arrivals else Deliveries(*np.zeros((6, 0), dtype=np.int64))
    by_number = np.argsort(found.packet, kind="stable")
    return replace(
        found,
        **{column: getattr(found, column)[by_number] for column in DELIVERY_COLUMNS},
        link_flits=replay.link_flits(),
        end_cycle=replay.end_cycle,
        deadlock=replay.deadlock,
    )


def _entry_cycles(packets: Packets) -> Int64s:
    """First cycle in which each packet may enter: its own, but not before that of its predecessor at the source."""
    cycles = packets.inject_cycle
    if cycles.size == 0 or bool((np.diff(cycles) >= 0).all()):
        return cycles
    by_source = np.argsort(packets.src, kind="stable")
    ordered = cycles[by_source]
    starts = np.flatnonzero(np.diff(packets.src[by_source], prepend=-1))
    for start, stop in zip(starts, [*starts[1:], ordered.size], strict=True):
        np.maximum.accumulate(ordered[start:stop], out=ordered[start:stop])
    result = np.empty_like(cycles)
    result[by_source] = ordered
    return result


class _Tally:
    """Counts deliveries on their way into a file."""

    def __init__(self) -> None:
        self.n = self.n_delivered = self.sum_latency_cycles = 0

    def add(self, deliveries: Deliveries) -> Iterator[bytes]:
        """The lines of some deliveries."""
        arrived = deliveries.tail_out >= 0
        self.n += arrived.size
        self.n_delivered += int(np.count_nonzero(arrived))
        self.sum_latency_cycles += int((deliveries.tail_out - deliveries.head_in)[arrived].sum())
        return (block.encode() for block in deliveries.blocks())
