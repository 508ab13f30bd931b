"""Packet replay: a list of packets in, the entry and ejection cycle of each head and tail flit out.

The file formats are those of the router-level reference measurements: ``packets.csv`` with the columns packet, kind
(u or m), src, dsts (separated by blanks), inject_cycle, n_flits; ``deliveries.csv`` with the columns packet, dst,
head_in, tail_in, head_out, tail_out, where -1 stands for what never happened.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nocsim.kernel import mesh as k
from nocsim.mesh_state import FOREVER, MeshState
from nocsim.topology import Topology

Int64s = npt.NDArray[np.int64]

PACKET_COLUMNS = ("packet", "kind", "src", "dsts", "inject_cycle", "n_flits")
DELIVERY_COLUMNS = ("packet", "dst", "head_in", "tail_in", "head_out", "tail_out")
STALL_LIMIT_CYCLES = 20_000
_BLOCK = 4096  # packets handed to the kernel at once
_MAX_CYCLE = 1 << 48


class PacketError(ValueError):
    """A packet list that cannot be replayed; the message names file, row and column where there is a file."""


@dataclass(frozen=True)
class Packets:
    """Packets in the order in which each source sends them; all arrays int64 but ``multicast``.

    Attributes
    ----------
    number: packet numbers, any distinct integers, shape (n,)
    multicast: follow the multicast rules, shape (n,), bool
    src: source endpoints, shape (n,)
    inject_cycle: first cycle in which the head flit may enter, shape (n,)
    n_flits: length with the header flit, shape (n,)
    dst_starts: packet i goes to ``dsts[dst_starts[i]:dst_starts[i + 1]]``, shape (n + 1,)
    dsts: destination endpoints
    """

    number: Int64s
    multicast: npt.NDArray[np.bool_]
    src: Int64s
    inject_cycle: Int64s
    n_flits: Int64s
    dst_starts: Int64s
    dsts: Int64s

    def __len__(self) -> int:
        """Number of packets."""
        return int(self.number.size)


@dataclass(frozen=True)
class Deliveries:
    """One entry for each packet and destination, ordered by both; int64 arrays of equal length, times in cycles."""

    packet: Int64s
    dst: Int64s
    head_in: Int64s
    tail_in: Int64s
    head_out: Int64s
    tail_out: Int64s

    def __len__(self) -> int:
        """Number of deliveries."""
        return int(self.packet.size)

    @property
    def complete(self) -> bool:
        """Whether everything arrived."""
        return bool((self.tail_out >= 0).all())

    def lines(self) -> Iterator[str]:
        """Header and lines of a deliveries file, without line ends."""
        yield ",".join(DELIVERY_COLUMNS)
        columns = (self.packet, self.dst, self.head_in, self.tail_in, self.head_out, self.tail_out)
        for row in zip(*(column.tolist() for column in columns), strict=True):
            yield ",".join(map(str, row))

    def write(self, path: str | Path) -> None:
        """Write a deliveries file."""
        with Path(path).open("w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(line + "\n" for line in self.lines())


def read_packets(path: str | Path) -> Packets:
    """Read a packets file. Tolerates a byte-order mark, CRLF, blanks, blank lines, trailing commas, any column order.

    Raises PacketError with file, row (1 is the header) and column; OSError if the file cannot be read.
    """
    path = Path(path)
    numbers: list[int] = []
    multicast: list[bool] = []
    columns: dict[str, list[int]] = {"src": [], "inject_cycle": [], "n_flits": []}
    starts, dsts = [0], list[int]()

    def fail(row: int, column: str, problem: str) -> PacketError:
        return PacketError(f"{path}, row {row}, column {column}: {problem}")

    def integer(text: str, row: int, column: str, least: int | None) -> int:
        try:
            value = int(text)
        except ValueError:
            raise fail(row, column, f"{text!r} is not an integer") from None
        if (least is not None and value < least) or abs(value) > _MAX_CYCLE:
            raise fail(row, column, f"{value} is out of range")
        return value

    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream)
            places: dict[str, int] | None = None
            for fields in reader:
                cells = [field.strip() for field in fields]
                while cells and not cells[-1]:
                    cells.pop()
                row = reader.line_num
                if not cells:
                    continue
                if places is None:
                    places = {name: place for place, name in enumerate(cells)}
                    for column in PACKET_COLUMNS:
                        if column not in places:
                            raise fail(row, column, "no such column in the header")
                    continue
                if len(cells) != len(places):
                    column = PACKET_COLUMNS[min(len(cells), len(PACKET_COLUMNS) - 1)]
                    raise fail(row, column, f"{len(cells)} fields instead of {len(places)}")
                kind = cells[places["kind"]]
                if kind not in ("u", "m"):
                    raise fail(row, "kind", f"{kind!r} is neither u nor m")
                numbers.append(integer(cells[places["packet"]], row, "packet", None))
                multicast.append(kind == "m")
                for column, least in (("src", 0), ("inject_cycle", 0), ("n_flits", 1)):
                    columns[column].append(integer(cells[places[column]], row, column, least))
                dsts.extend(integer(text, row, "dsts", 0) for text in cells[places["dsts"]].split())
                starts.append(len(dsts))
            if places is None:
                raise fail(1, PACKET_COLUMNS[0], "the file is empty")
    except UnicodeDecodeError as error:
        raise PacketError(f"{path}: not a text file in UTF-8 ({error.reason})") from None
    except csv.Error as error:
        raise PacketError(f"{path}, row {reader.line_num}: {error}") from None
    return Packets(
        number=np.array(numbers, dtype=np.int64),
        multicast=np.array(multicast, dtype=np.bool_),
        src=np.array(columns["src"], dtype=np.int64),
        inject_cycle=np.array(columns["inject_cycle"], dtype=np.int64),
        n_flits=np.array(columns["n_flits"], dtype=np.int64),
        dst_starts=np.array(starts, dtype=np.int64),
        dsts=np.array(dsts, dtype=np.int64),
    )


def replay_packets(
    packets: Packets,
    columns: int,
    rows: int,
    fifo_flits: int = 7,
    reservation_flits: int = 5,
    *,
    stall_limit_cycles: int = STALL_LIMIT_CYCLES,
) -> Deliveries:
    """Send packets through a mesh of ``columns`` x ``rows`` routers.

    Each source sends its packets strictly in the given order. The run ends when all have arrived, or when no flit has
    moved at a source or destination for ``stall_limit_cycles`` while some are in the mesh (deadlock).

    Raises PacketError for endpoints outside the mesh and other impossible packets, ValueError for impossible
    parameters.
    """
    topology = Topology(columns, rows)
    n_dsts = np.diff(packets.dst_starts)
    owner = np.repeat(np.arange(len(packets), dtype=np.int64), n_dsts)
    _check(packets, topology, n_dsts, owner)

    # destinations of a packet in ascending order, so that (packet index, destination) is an ascending key
    keys = np.sort(owner * topology.n_endpoints + packets.dsts)
    dsts = keys - owner * topology.n_endpoints
    head_in, tail_in = np.full((2, len(packets)), -1, dtype=np.int64)
    head_out, tail_out = np.full((2, keys.size), -1, dtype=np.int64)

    state = MeshState(
        topology,
        fifo_flits,
        reservation_flits,
        head_records=True,
        stop_at_records=False,
        stall_limit_cycles=stall_limit_cycles,
    )
    cycles = _entry_cycles(packets)
    order = np.argsort(cycles, kind="stable")
    cycles = cycles[order]
    start = 0
    while not state.head[k.STALLED]:
        stop = min(start + _BLOCK, order.size)
        if stop < order.size:  # a block ends where a cycle ends
            stop = int(np.searchsorted(cycles, cycles[stop - 1], side="right"))
        if stop > start:
            _hand_over(state, packets, order[start:stop], cycles[start:stop], n_dsts, dsts)
        horizon = int(cycles[stop]) if stop < order.size else FOREVER
        while True:
            state.step(horizon)
            records = state.records()
            for kind, times in ((k.HEAD_SENT, head_in), (k.SENT, tail_in)):
                found = records[records[:, 0] == kind]
                times[found[:, 1]] = found[:, 3]
            for kind, times in ((k.HEAD_DELIVERED, head_out), (k.DELIVERED, tail_out)):
                found = records[records[:, 0] == kind]
                times[np.searchsorted(keys, found[:, 1] * topology.n_endpoints + found[:, 2])] = found[:, 3]
            if state.head[k.CYCLE] >= horizon or state.head[k.STALLED]:
                break
        start = stop
        if horizon == FOREVER:
            break

    deliveries = (packets.number[owner], dsts, head_in[owner], tail_in[owner], head_out, tail_out)
    by_number = np.argsort(deliveries[0], kind="stable")
    return Deliveries(*(column[by_number] for column in deliveries))


def replay_packets_file(
    path_in: str | Path,
    path_out: str | Path,
    columns: int,
    rows: int,
    fifo_flits: int = 7,
    reservation_flits: int = 5,
    *,
    stall_limit_cycles: int = STALL_LIMIT_CYCLES,
) -> Deliveries:
    """Read a packets file, replay it, write the deliveries file and return its content."""
    packets = read_packets(path_in)
    try:
        deliveries = replay_packets(
            packets, columns, rows, fifo_flits, reservation_flits, stall_limit_cycles=stall_limit_cycles
        )
    except PacketError as error:
        raise PacketError(f"{path_in}: {error}") from None
    deliveries.write(path_out)
    return deliveries


def _check(packets: Packets, topology: Topology, n_dsts: Int64s, owner: Int64s) -> None:
    """Reject what cannot be sent, naming the first packet that is wrong."""

    def reject(wrong: npt.NDArray[np.bool_], column: str, problem: str) -> None:
        if wrong.any():
            number = int(packets.number[int(np.argmax(wrong))])
            raise PacketError(f"packet {number}, column {column}: {problem}")

    def of_packet(wrong: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        return np.bincount(owner[wrong], minlength=len(packets)).astype(np.bool_)

    last = topology.n_endpoints - 1
    numbers, first = np.unique(packets.number, return_index=True)
    repeated = np.ones(len(packets), dtype=np.bool_)
    repeated[first] = False
    reject(repeated & (numbers.size < len(packets)), "packet", "the number occurs twice")
    reject((packets.src < 0) | (packets.src > last), "src", f"not an endpoint of the mesh (0..{last})")
    reject(of_packet((packets.dsts < 0) | (packets.dsts > last)), "dsts", f"not an endpoint of the mesh (0..{last})")
    to_edge = packets.multicast[owner] & (packets.dsts >= topology.n_routers)
    reject(of_packet(to_edge), "dsts", "a multicast reaches local ports only")
    reject(n_dsts == 0, "dsts", "no destination")
    reject(~packets.multicast & (n_dsts != 1), "dsts", "a unicast has one destination")
    keys = np.sort(owner * (last + 1) + packets.dsts)
    twice = np.zeros(keys.size, dtype=np.bool_)
    twice[1:] = keys[1:] == keys[:-1]
    reject(of_packet(twice), "dsts", "a destination occurs twice")
    reject((packets.inject_cycle < 0) | (packets.inject_cycle > _MAX_CYCLE), "inject_cycle", "out of range")
    reject((packets.n_flits < 1) | (packets.n_flits > _MAX_CYCLE), "n_flits", "out of range")


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


def _hand_over(
    state: MeshState, packets: Packets, chosen: Int64s, cycles: Int64s, n_dsts: Int64s, dsts: Int64s
) -> None:
    """Give the packets with indices ``chosen`` to the kernel, each as a message of one packet."""
    state.reserve_submissions(chosen.size)
    state.reserve_slots(chosen.size + int(state.head[k.SUB_END]))
    multicasts = np.flatnonzero(packets.multicast[chosen])
    routes = dsts[packets.dst_starts[chosen]]
    trees = np.full(chosen.size, -1, dtype=np.int64)
    if multicasts.size:
        which = chosen[multicasts]
        rows = state.free_rows(multicasts.size)
        counts = n_dsts[which]
        starts = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))
        places = np.arange(starts[-1], dtype=np.int64) + np.repeat(packets.dst_starts[which] - starts[:-1], counts)
        state.plant(rows, packets.src[which], starts, dsts[places])
        state.tree_uses[rows] = 1
        routes[multicasts] = trees[multicasts] = rows
    first = int(state.head[k.SUB_END])
    sub = state.sub.reshape(-1, 1 << k.SUB_SHIFT)[first : first + chosen.size]
    sub[:, k.S_CYCLE] = cycles
    sub[:, k.S_LINK] = state.injection_links[packets.src[chosen]]
    sub[:, k.S_ROUTE] = routes * state.topology.n_routers
    sub[:, k.S_PACKETS] = 1
    sub[:, k.S_FLITS] = sub[:, k.S_LAST_FLITS] = packets.n_flits[chosen]
    sub[:, k.S_GATE_KIND] = k.GATE_NONE
    sub[:, k.S_MESSAGE] = chosen
    sub[:, k.S_DSTS] = n_dsts[chosen]
    sub[:, k.S_TREE] = trees
    state.head[k.SUB_END] = first + chosen.size
