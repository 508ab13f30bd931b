"""Packets and their deliveries as arrays: what goes into a replay and what comes out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cosa.common.errors import InputError
from cosa.common.files import whole_file
from nocsim.mesh.topology import Topology

if TYPE_CHECKING:
    from nocsim.mesh.stall import Deadlock

Int64s = npt.NDArray[np.int64]

DELIVERY_COLUMNS = ("packet", "dst", "head_in", "tail_in", "head_out", "tail_out")
MAX_NUMBER = 1 << 48
"""Largest cycle, length and packet number."""
_LINES_AT_ONCE = 4096
_LINE = "%d,%d,%d,%d,%d,%d\n"


class PacketError(InputError, ValueError):
    """A packet that cannot be sent; the message names the place (file and row, or packet) and the column."""


@dataclass(frozen=True)
class Packet:
    """One packet.

    Attributes
    ----------
    src: source endpoint (0 .. n_routers-1 are the local ports, then the edge ports, see `nocsim.mesh.topology`)
    dsts: destination endpoints; a multicast reaches local ports only, the source may be among them
    inject_cycle: first cycle in which the head flit may enter
    n_flits: length with the header flit
    multicast: follow the multicast rules; by default, if there is more than one destination
    number: name of the packet in the deliveries; by default its place in the list

    Examples
    --------
    >>> Packet(src=0, dsts=(5, 6), inject_cycle=10, n_flits=5).multicast
    True
    >>> Packet(0, 5, 10, 5).dsts
    (5,)
    """

    src: int
    dsts: tuple[int, ...] | int
    inject_cycle: int = 0
    n_flits: int = 5
    multicast: bool | None = None
    number: int | None = None

    def __post_init__(self) -> None:
        """Take one endpoint for a set of one, any iterable for a tuple."""
        dsts = (int(self.dsts),) if isinstance(self.dsts, int | np.integer) else tuple(self.dsts)
        object.__setattr__(self, "dsts", dsts)
        if self.multicast is None:
            object.__setattr__(self, "multicast", len(dsts) > 1)


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

    @classmethod
    def of(cls, packets: Iterable[Packet]) -> Packets:
        """Arrays of a list of packets."""
        found = list(packets)
        sets: list[tuple[int, ...]] = [p.dsts for p in found if isinstance(p.dsts, tuple)]
        numbers = [place if p.number is None else p.number for place, p in enumerate(found)]

        def integers(values: Iterable[Any]) -> Int64s:
            return np.array(list(values), dtype=np.int64)

        return cls(
            number=integers(numbers),
            multicast=np.array([bool(p.multicast) for p in found], dtype=np.bool_),
            src=integers(p.src for p in found),
            inject_cycle=integers(p.inject_cycle for p in found),
            n_flits=integers(p.n_flits for p in found),
            dst_starts=np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(integers(map(len, sets))))),
            dsts=integers(dst for dsts in sets for dst in dsts),
        )

    @classmethod
    def joined(cls, blocks: Iterable[Packets]) -> Packets:
        """Blocks of packets behind each other."""
        found = [cls.of(()), *blocks]
        shifts = np.cumsum([0, *(block.dsts.size for block in found[:-1])])
        starts = [block.dst_starts[1:] + shift for block, shift in zip(found, shifts, strict=True)]

        def column(name: str) -> Any:
            return np.concatenate([getattr(block, name) for block in found])

        return cls(
            number=column("number"),
            multicast=column("multicast"),
            src=column("src"),
            inject_cycle=column("inject_cycle"),
            n_flits=column("n_flits"),
            dst_starts=np.concatenate((found[0].dst_starts, *starts)),
            dsts=column("dsts"),
        )

    def chosen(self, indices: Int64s) -> Packets:
        """Some of the packets, in the order of ``indices``."""
        counts = np.diff(self.dst_starts)[indices]
        starts = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))
        places = np.arange(starts[-1], dtype=np.int64) + np.repeat(self.dst_starts[indices] - starts[:-1], counts)
        return Packets(
            number=self.number[indices],
            multicast=self.multicast[indices],
            src=self.src[indices],
            inject_cycle=self.inject_cycle[indices],
            n_flits=self.n_flits[indices],
            dst_starts=starts,
            dsts=self.dsts[places],
        )


@dataclass(frozen=True)
class Deliveries:
    """One entry for each packet and destination, ordered by both; int64 arrays of equal length, times in cycles.

    -1 stands for what never happened, which only a deadlock brings about.

    Attributes
    ----------
    packet, dst: packet number and destination endpoint
    head_in, tail_in: cycle in which the source wrote the head or tail flit into the link to its router
    head_out, tail_out: cycle in which the destination read it
    link_flits: flits that crossed each link; names in `Topology.link_names`
    end_cycle: last cycle in which a flit entered or left
    deadlock: the packets that wait for each other, if the run ended so
    """

    packet: Int64s
    dst: Int64s
    head_in: Int64s
    tail_in: Int64s
    head_out: Int64s
    tail_out: Int64s
    link_flits: Int64s = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    end_cycle: int = 0
    deadlock: Deadlock | None = None

    def __len__(self) -> int:
        """Number of deliveries."""
        return int(self.packet.size)

    @property
    def complete(self) -> bool:
        """Whether everything arrived."""
        return bool((self.tail_out >= 0).all())

    def blocks(self) -> Iterator[str]:
        """The lines of a deliveries file without its header, many at a time."""
        columns = (self.packet, self.dst, self.head_in, self.tail_in, self.head_out, self.tail_out)
        for start in range(0, len(self), _LINES_AT_ONCE):
            values = np.stack([column[start : start + _LINES_AT_ONCE] for column in columns], axis=1)
            yield _LINE * len(values) % tuple(values.reshape(-1).tolist())

    def lines(self) -> Iterator[str]:
        """Header and lines of a deliveries file, without line ends."""
        yield ",".join(DELIVERY_COLUMNS)
        for block in self.blocks():
            yield from block.split("\n")[:-1]

    def write(self, path: str | Path) -> None:
        """Write a deliveries file; it appears whole or not at all."""
        with whole_file(path) as stream:
            stream.write((",".join(DELIVERY_COLUMNS) + "\n").encode())
            stream.writelines(block.encode() for block in self.blocks())


@dataclass(frozen=True)
class Fault:
    """What is wrong with a packet: its index, the column, and what an `InputError` says."""

    index: int
    column: str
    message: str
    value: Any
    allowed: str

    def at(self, place: str, source: str | None = None) -> PacketError:
        """The error, at a place such as ``row 7``."""
        return PacketError(
            self.message, source=source, path=f"{place}, column {self.column}", value=self.value, allowed=self.allowed
        )


def first_fault(packets: Packets, topology: Topology) -> Fault | None:
    """What makes the first impossible packet impossible; None if all can be sent. Numbers given twice are not seen."""
    n_dsts = np.diff(packets.dst_starts)
    owner = np.repeat(np.arange(len(packets), dtype=np.int64), n_dsts)
    last, last_local = topology.n_endpoints - 1, topology.n_routers - 1
    size = f"{topology.columns}x{topology.rows} mesh"
    faults: list[Fault] = []

    def note(wrong: npt.NDArray[np.bool_], column: str, message: str, values: Int64s | None, allowed: str) -> None:
        """`wrong` has one place for each packet or, for a column of destinations, for each of these."""
        if wrong.any():
            place = int(np.argmax(wrong))
            index = int(owner[place]) if values is packets.dsts else place
            value = _destinations(packets, index) if values is None else int(values[place])
            faults.append(Fault(index, column, message, value, allowed))

    endpoints = f"0..{last}, the endpoints of a {size}"
    note((packets.src < 0) | (packets.src > last), "src", "no such endpoint", packets.src, endpoints)
    note(n_dsts == 0, "dsts", "no destination", None, endpoints)
    note((packets.dsts < 0) | (packets.dsts > last), "dsts", "no such endpoint", packets.dsts, endpoints)
    to_edge = packets.multicast[owner] & (packets.dsts > last_local) & (packets.dsts <= last)
    allowed = f"0..{last_local}, the local ports of a {size}"
    note(to_edge, "dsts", "a multicast reaches local ports only", packets.dsts, allowed)
    several = ~packets.multicast & (n_dsts > 1)
    note(several, "dsts", "a unicast has one destination", None, "one endpoint, or kind m")
    if not faults:
        twice = _repeats(packets, owner, topology)
        note(twice, "dsts", "a destination is given twice", None, "each endpoint once")
    cycles = packets.inject_cycle
    note((cycles < 0) | (cycles > MAX_NUMBER), "inject_cycle", "out of range", cycles, f"0..{MAX_NUMBER}")
    n_flits = packets.n_flits
    note((n_flits < 1) | (n_flits > MAX_NUMBER), "n_flits", "out of range", n_flits, f"1..{MAX_NUMBER}")
    return min(faults, key=lambda fault: fault.index, default=None)


def repeated_number(packets: Packets) -> Fault | None:
    """The first packet whose number was given before."""
    numbers, first = np.unique(packets.number, return_index=True)
    if numbers.size == len(packets):
        return None
    repeated = np.ones(len(packets), dtype=np.bool_)
    repeated[first] = False
    index = int(np.argmax(repeated))
    return Fault(index, "packet", "the number is given twice", int(packets.number[index]), "each number once")


def _repeats(packets: Packets, owner: Int64s, topology: Topology) -> npt.NDArray[np.bool_]:
    """Which packets name a destination twice; all destinations are endpoints."""
    keys = np.sort(owner * topology.n_endpoints + packets.dsts)
    twice = keys[1:][keys[1:] == keys[:-1]] // topology.n_endpoints
    return np.bincount(twice, minlength=len(packets)).astype(np.bool_)


def _destinations(packets: Packets, index: int) -> str:
    dsts = packets.dsts[packets.dst_starts[index] : packets.dst_starts[index + 1]]
    return " ".join(map(str, dsts.tolist()))
