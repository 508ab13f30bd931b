"""A mesh fed with packets block by block: the engine of packet replay and of synthetic traffic.

Packets pass through in the order of their cycles. What is kept is what is queued or in flight, and what has arrived but
comes after it in the order of the output, so memory does not grow with the length of a run below saturation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nocsim.mesh import kernel as k
from nocsim.mesh.stall import Deadlock, find_deadlock
from nocsim.mesh.state import FOREVER, MeshState
from nocsim.mesh.topology import Topology
from nocsim.traffic.packets import Deliveries, Int64s, Packets

STALL_LIMIT_CYCLES = 20_000
"""Cycles without a flit moving at any source or destination after which a run is given up as deadlocked."""
BLOCK_PACKETS = 4096
"""Packets handed to the kernel at once."""

# rows of the window over packets, and over their destinations
_NUMBER, _SRC, _CREATED, _FLITS, _HEAD_IN, _TAIL_IN, _FIRST_DST = range(7)
_KEY, _HEAD_OUT, _TAIL_OUT = range(3)


@dataclass(frozen=True)
class Arrivals:
    """What became of packets: one entry for each packet and destination, in the order in which they were fed.

    ``created`` is the packet's inject_cycle; the other columns are those of `Deliveries`.
    """

    packet: Int64s
    dst: Int64s
    src: Int64s
    created: Int64s
    n_flits: Int64s
    head_in: Int64s
    tail_in: Int64s
    head_out: Int64s
    tail_out: Int64s

    def deliveries(self) -> Deliveries:
        """Without what the packets file tells as well."""
        return Deliveries(self.packet, self.dst, self.head_in, self.tail_in, self.head_out, self.tail_out)


class PacketReplay:
    """A mesh that is fed with packets.

    Parameters
    ----------
    topology: the mesh
    fifo_flits, reservation_flits: as in `nocsim.mesh.mesh.Mesh`
    stall_limit_cycles: give up if no flit moves at a source or destination for so long while some are in the mesh
    """

    def __init__(
        self,
        topology: Topology,
        fifo_flits: int = 7,
        reservation_flits: int = 5,
        *,
        stall_limit_cycles: int = STALL_LIMIT_CYCLES,
    ) -> None:
        self.topology = topology
        self.deadlock: Deadlock | None = None  # by packet numbers
        self.n_fed = self.n_taken = 0
        self._state = MeshState(
            topology,
            fifo_flits,
            reservation_flits,
            head_records=True,
            stop_at_records=False,
            stall_limit_cycles=stall_limit_cycles,
        )
        # places n_gone .. n_fed - 1 of all packets, and their destinations
        self._packets = np.zeros((7, BLOCK_PACKETS), dtype=np.int64)
        self._dsts = np.zeros((3, BLOCK_PACKETS), dtype=np.int64)
        self._n_dsts = 0
        self._n_done = 0  # destinations at the front that have been reached

    # ---- running

    @property
    def now(self) -> int:
        """Current cycle: after its ejections, before its injections."""
        return int(self._state.head[k.CYCLE])

    @property
    def end_cycle(self) -> int:
        """Last cycle in which a flit entered or left."""
        return int(self._state.head[k.LAST_MOVE])

    @property
    def stalled(self) -> bool:
        """Given up: nothing moves any more."""
        return bool(self._state.head[k.STALLED])

    @property
    def n_open(self) -> int:
        """Packets that are fed and not taken."""
        return self.n_fed - self.n_taken

    def feed(self, packets: Packets, until: int | None = None) -> None:
        """Queue packets, in ascending order of their cycles, and run to cycle ``until`` (default: the last one's).

        None of them may be due before the current cycle. Once the mesh is stalled nothing enters any more.
        """
        cycles = packets.inject_cycle
        for start in range(0, len(packets), BLOCK_PACKETS):
            stop = min(start + BLOCK_PACKETS, len(packets))
            block = packets if stop - start == len(packets) else packets.chosen(np.arange(start, stop, dtype=np.int64))
            self._hand_over(block)
            self.run(int(cycles[stop - 1]))
        if until is not None:
            self.run(until)

    def run(self, until: int = FOREVER) -> None:
        """Run to cycle ``until``, or until nothing is left or can move."""
        state = self._state
        while not self.stalled and self.now < until:
            state.step_some(until)
            self._collect(state.records())
            if self.stalled:
                self.deadlock = find_deadlock(state).renamed(self._number_of)

    def link_flits(self) -> Int64s:
        """Flits that crossed each link so far."""
        return self._state.link_flits()

    def source_backlog(self) -> Int64s:
        """Packets fed and due, whose head flit has not entered yet, for each local endpoint (a cost: reads all)."""
        n = self.n_open
        waiting = (self._packets[_HEAD_IN, :n] < 0) & (self._packets[_CREATED, :n] < self.now)
        return np.bincount(self._packets[_SRC, :n][waiting], minlength=self.topology.n_endpoints).astype(np.int64)

    # ---- results

    def take(self, *, everything: bool = False) -> Arrivals | None:
        """Packets that have arrived whole, up to the first that has not; None if there are too few to be worth it.

        With ``everything`` all that is left, -1 for what did not happen.
        """
        n_open = self.n_open
        n = n_open
        if not everything:
            n = self._n_whole()
            if n < min(BLOCK_PACKETS, n_open) or 2 * n < n_open:  # each packet is moved less than twice on average
                return None
        if n == 0:
            return None
        n_dsts = int(self._packets[_FIRST_DST, n]) if n < n_open else self._n_dsts
        packets, dsts = self._packets[:, :n], self._dsts[:, :n_dsts]
        owner = dsts[_KEY] // self.topology.n_endpoints
        place = owner - self.n_taken
        arrivals = Arrivals(
            packet=packets[_NUMBER][place],
            dst=dsts[_KEY] - owner * self.topology.n_endpoints,
            src=packets[_SRC][place],
            created=packets[_CREATED][place],
            n_flits=packets[_FLITS][place],
            head_in=packets[_HEAD_IN][place],
            tail_in=packets[_TAIL_IN][place],
            head_out=dsts[_HEAD_OUT].copy(),
            tail_out=dsts[_TAIL_OUT].copy(),
        )
        # what is left moves to the front
        self._packets[:, : n_open - n] = self._packets[:, n:n_open].copy()
        self._packets[_FIRST_DST] -= n_dsts
        self._dsts[:, : self._n_dsts - n_dsts] = self._dsts[:, n_dsts : self._n_dsts].copy()
        self._n_dsts -= n_dsts
        self._n_done = max(self._n_done - n_dsts, 0)
        self.n_taken += n
        return arrivals

    def first_open_cycle(self) -> int | None:
        """Cycle (inject_cycle) of the first packet that has not arrived whole, None if all have."""
        n = self._n_whole()
        return int(self._packets[_CREATED, n]) if n < self.n_open else None

    # ---- inside

    def _n_whole(self) -> int:
        """Packets at the front of the window that have arrived whole."""
        reached = self._dsts[_TAIL_OUT, self._n_done : self._n_dsts] >= 0
        self._n_done += reached.size if reached.all() else int(np.argmin(reached))
        if self._n_done == self._n_dsts:
            return self.n_open
        return int(self._dsts[_KEY, self._n_done]) // self.topology.n_endpoints - self.n_taken

    def _number_of(self, place: int) -> int:
        """Packet number of a packet that has not been taken."""
        return int(self._packets[_NUMBER, place - self.n_taken])

    def _hand_over(self, packets: Packets) -> None:
        """Give packets to the window and to the kernel, each as a message of one packet."""
        n, n_endpoints = len(packets), self.topology.n_endpoints
        counts = np.diff(packets.dst_starts)
        places = np.arange(self.n_fed, self.n_fed + n, dtype=np.int64)
        owner = np.repeat(places, counts)
        # destinations of a packet in ascending order, so that (place, destination) is an ascending key
        keys = owner * n_endpoints + packets.dsts
        if keys.size > n:
            keys.sort()
        dsts = keys - owner * n_endpoints

        first, first_dst = self.n_open, self._n_dsts
        self._packets = _grown(self._packets, first + n)
        self._dsts = _grown(self._dsts, first_dst + keys.size)
        window = self._packets[:, first : first + n]
        window[_NUMBER], window[_SRC] = packets.number, packets.src
        window[_CREATED], window[_FLITS] = packets.inject_cycle, packets.n_flits
        window[_HEAD_IN : _TAIL_IN + 1] = -1
        window[_FIRST_DST] = packets.dst_starts[:-1] + first_dst
        self._dsts[_KEY, first_dst : first_dst + keys.size] = keys
        self._dsts[_HEAD_OUT:, first_dst : first_dst + keys.size] = -1
        self.n_fed += n
        self._n_dsts += keys.size
        if self.stalled:
            return

        state = self._state
        state.reserve_submissions(n)
        state.reserve_slots(n + int(state.head[k.SUB_END] - state.head[k.SUB_POS]))
        multicasts = np.flatnonzero(packets.multicast)
        routes = dsts[packets.dst_starts[:-1]]
        trees = np.full(n, -1, dtype=np.int64)
        if multicasts.size:
            chosen = packets.chosen(multicasts)
            rows = state.free_rows(multicasts.size)
            state.plant(rows, chosen.src, chosen.dst_starts, chosen.dsts)
            state.tree_uses[rows] = 1
            routes[multicasts] = trees[multicasts] = rows
        end = int(state.head[k.SUB_END])
        sub = state.sub.reshape(-1, 1 << k.SUB_SHIFT)[end : end + n]
        sub[:, k.S_CYCLE] = packets.inject_cycle
        sub[:, k.S_LINK] = state.injection_links[packets.src]
        sub[:, k.S_ROUTE] = routes * self.topology.n_routers
        sub[:, k.S_PACKETS] = 1
        sub[:, k.S_FLITS] = sub[:, k.S_LAST_FLITS] = packets.n_flits
        sub[:, k.S_GATE_KIND] = k.GATE_NONE
        sub[:, k.S_MESSAGE] = places
        sub[:, k.S_DSTS] = counts
        sub[:, k.S_TREE] = trees
        state.head[k.SUB_END] = end + n

    def _collect(self, records: Int64s) -> None:
        """Note the cycles that the kernel reports."""
        if not len(records):
            return
        kind, message, dst, cycle = records.T
        sent, reached = np.flatnonzero(dst < 0), np.flatnonzero(dst >= 0)
        row = np.where(kind[sent] == k.HEAD_SENT, _HEAD_IN, _TAIL_IN)
        self._packets[row, message[sent] - self.n_taken] = cycle[sent]
        row = np.where(kind[reached] == k.HEAD_DELIVERED, _HEAD_OUT, _TAIL_OUT)
        keys = message[reached] * self.topology.n_endpoints + dst[reached]
        self._dsts[row, np.searchsorted(self._dsts[_KEY, : self._n_dsts], keys)] = cycle[reached]


def _grown(window: Int64s, size: int) -> Int64s:
    """A window with room for ``size``, at least doubled if it grows."""
    if size <= window.shape[1]:
        return window
    grown = np.zeros((window.shape[0], max(size, 2 * window.shape[1])), dtype=np.int64)
    grown[:, : window.shape[1]] = window
    return grown
