"""The cycle-exact mesh: messages in, reports out, stepped by whoever conducts the simulation."""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterable
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from nocsim.mesh import kernel as k
from nocsim.mesh.routing import multicast_destinations
from nocsim.mesh.stall import describe
from nocsim.mesh.state import FOREVER, MeshState
from nocsim.mesh.topology import Topology

_ROWS_AT_ONCE = 64
_MAX_FLITS = 1 << 40
_SUBMISSION = struct.Struct("=11q")


class Gate(IntEnum):
    """Which flit of each packet of a message waits for a token at its source."""

    NONE = k.GATE_NONE
    HEAD = k.GATE_HEAD
    TAIL = k.GATE_TAIL


class ReportKind(IntEnum):
    """What a report says."""

    SENT = k.SENT
    DELIVERED = k.DELIVERED


Report = tuple[int, int, int, int]
"""kind (ReportKind), message, destination endpoint (-1 for SENT), cycle."""


class Mesh:
    """A mesh of Matchlib HybridRouters, one virtual channel, X-Y routing, wormhole unicast, cut-through multicast.

    The state between calls is always *after the ejections and before the injections* of cycle ``now``, so what is
    submitted or released then takes effect in that same cycle.

    Parameters
    ----------
    columns, rows: size of the mesh
    fifo_flits: depth of each router's output FIFOs, 1..63
    reservation_flits: free places that a multicast head needs in every output FIFO it forks into. Multicast packets of
        more flits are sent, but can deadlock; with ``reservation_flits > fifo_flits`` no multicast ever moves

    Examples
    --------
    >>> mesh = Mesh(4, 4)
    >>> message = mesh.submit(src=0, dsts=15, n_packets=2, flits_per_packet=5)
    >>> mesh.run(until=1000), mesh.take_reports() == [(ReportKind.SENT, message, -1, 9)]
    (10, True)
    >>> mesh.run(until=1000), mesh.take_reports() == [(ReportKind.DELIVERED, message, 15, 38)]
    (38, True)
    >>> mesh.idle, mesh.run(until=1000)
    (True, 1000)
    """

    def __init__(self, columns: int, rows: int, *, fifo_flits: int = 7, reservation_flits: int = 5) -> None:
        self.topology = Topology(columns, rows)
        self.fifo_flits = fifo_flits
        self.reservation_flits = reservation_flits
        self._state = MeshState(self.topology, fifo_flits, reservation_flits)
        self._head = self._state.head.data
        self._n_endpoints = self.topology.n_endpoints
        self._injection_links: list[int] = self._state.injection_links.tolist()
        self._reports: list[Report] = []
        self._n_messages = 0
        # messages that may not enter before a later cycle: (cycle, message, row for the kernel)
        self._later: list[tuple[int, int, tuple[int, ...]]] = []
        self._last_cycle = [0] * self._n_endpoints  # of the last submission of each source
        self._gates: dict[int, tuple[int, int]] = {}  # message: (gate, injection link)
        self._free_gates: list[int] = list(range(self._state.tokens.size))
        self._trees: dict[tuple[int, tuple[int, ...]], int] = {}  # (source, destinations): route row
        self._free_rows: list[int] = []

    # ---- the interface of an island

    @property
    def now(self) -> int:
        """Current cycle."""
        return self._head[k.CYCLE]

    @property
    def idle(self) -> bool:
        """Nothing queued or in flight."""
        head = self._head
        return head[k.N_SLOTS_USED] == 0 and head[k.SUB_POS] == head[k.SUB_END] and not self._later

    def submit(
        self,
        src: int,
        dsts: int | Iterable[int],
        n_packets: int,
        flits_per_packet: int,
        last_packet_flits: int | None = None,
        *,
        multicast: bool | None = None,
        gate: Gate = Gate.NONE,
        cycle: int | None = None,
    ) -> int:
        """Queue a message of ``n_packets`` packets at its source and return its number.

        Messages of one source go strictly in the order of submission, one flit a cycle, without a gap between packets
        or messages as long as the link takes them and the gate does not hold them.

        Parameters
        ----------
        src: any endpoint
        dsts: one endpoint, or several local endpoints for a multicast (``src`` may be among them)
        n_packets: at least 1
        flits_per_packet: length of each packet, header flit included
        last_packet_flits: length of the last packet if it is shorter
        multicast: follow the multicast rules; by default, if there is more than one destination
        gate: which flit of each packet waits for a token (see ``release``); a single flit is head and tail
        cycle: first cycle in which a flit may enter (default: now)

        Raises ValueError for endpoints outside the mesh, destinations a multicast cannot reach, lengths below 1 and
        cycles in the past.
        """
        targets = (dsts,) if isinstance(dsts, int | np.integer) else tuple(dsts)
        if multicast is None:
            multicast = len(targets) > 1
        last = flits_per_packet if last_packet_flits is None else last_packet_flits
        if n_packets < 1 or not 1 <= last <= flits_per_packet <= _MAX_FLITS:
            raise ValueError(f"{n_packets} packets of {flits_per_packet} flits, the last of {last}, make no message")
        now = self._head[k.CYCLE]
        if cycle is None:
            cycle = now
        elif not now <= cycle <= FOREVER:
            raise ValueError(f"cycle {cycle} is not in {now}..{FOREVER}")
        if not 0 <= src < self._n_endpoints:
            raise ValueError(f"source {src} is not in 0..{self._n_endpoints - 1}")
        tree = -1
        if multicast:
            route = tree = self._tree_row(int(src), targets)
        elif len(targets) == 1 and 0 <= targets[0] < self._n_endpoints:
            route = targets[0]
        else:
            raise ValueError(f"a unicast needs one destination in 0..{self._n_endpoints - 1}, not {targets}")

        message = self._n_messages
        self._n_messages += 1
        link = self._injection_links[src]
        gate_number = self._new_gate(message, link) if gate != Gate.NONE else 0
        cycle = max(cycle, self._last_cycle[src])
        self._last_cycle[src] = cycle
        row = (
            cycle,
            link,
            int(route) * self._head[k.N_ROUTERS],
            n_packets,
            flits_per_packet,
            last,
            gate_number,
            int(gate),
            message,
            len(targets),
            tree,
        )
        if cycle > now:
            heapq.heappush(self._later, (cycle, message, row))
        else:
            self._hand_over(row)
        return message

    def release(self, message: int, tokens: int = 1) -> None:
        """Give a gated message permits for ``tokens`` more packets, effective from the injections of cycle ``now``.

        Tokens may come at any time before the message is sent, also before it is its turn. Raises ValueError for a
        message without a gate or already sent.
        """
        if tokens < 1:
            raise ValueError(f"tokens must be at least 1, not {tokens}")
        if message not in self._gates:
            raise ValueError(f"message {message} does not wait for tokens")
        gate, link = self._gates[message]
        view = self._state.views
        view.tokens[gate] += tokens
        first = view.queues[2 * link]
        if first >= 0 and view.slot[(first << k.SLOT_SHIFT) + k.MESSAGE] == message:
            bit = link & 63
            view.planes[((link >> 6) << k.PLANE_SHIFT) + k.ACTIVE] |= 1 << bit if bit < 63 else -1 << 63
            self._head[k.N_STILL] = 0

    def run(self, until: int) -> int:
        """Step to the first cycle up to ``until`` in which there is something to report and return that cycle.

        Returns ``until`` if nothing is reported before, at once if nothing can move. Raises ValueError if ``until`` is
        in the past.
        """
        head, later = self._head, self._later
        if until < head[k.CYCLE]:
            raise ValueError(f"cannot run back from cycle {head[k.CYCLE]} to {until}")
        until = min(until, FOREVER)
        while True:
            self._state.step_some(min(until, later[0][0]) if later else until)
            now = head[k.CYCLE]
            while later and later[0][0] <= now:
                self._hand_over(heapq.heappop(later)[2])
            if head[k.N_RECORDS]:
                self._collect()
                return now
            if now >= until:
                return now

    def take_reports(self) -> list[Report]:
        """Reports since the last call, in the order of their cycles.

        SENT: the message's last flit entered the network in ``cycle``; ``run`` stops for it at ``cycle + 1``, so that
        its sender may go on then. DELIVERED: ``dst`` read the message's last flit in ``cycle``, and so all before it.
        """
        reports, self._reports = self._reports, []
        return reports

    # ---- looking inside

    @property
    def flits_in_flight(self) -> int:
        """Flits between injection and ejection, each copy of a multicast counted."""
        return self._head[k.N_FLITS]

    @property
    def stalled(self) -> bool:
        """Flits are in flight and none can move unless something is submitted or released.

        Known once ``run`` has seen it, which takes 16 cycles without any movement.
        """
        return self._head[k.N_STILL] >= k.SETTLED and self._head[k.N_FLITS] > 0

    @property
    def waiting_for_tokens(self) -> bool:
        """Some source has a packet whose flit waits for a token (so a stalled mesh need not be deadlocked)."""
        return bool(self._blocked_sources().any())

    def describe_stall(self) -> str:
        """One line for each waiting flit or packet (numbered as messages): the links it holds and what it waits for."""
        return describe(self._state)

    def link_flits(self) -> npt.NDArray[np.int64]:
        """Flits that crossed each link so far, shape (n_links,); names: ``topology.link_names()``."""
        return self._state.link_flits()

    # ---- inside

    def _hand_over(self, row: tuple[int, ...]) -> None:
        """Give one submission to the kernel."""
        state, head = self._state, self._head
        if head[k.SUB_POS] == head[k.SUB_END]:
            head[k.SUB_POS] = head[k.SUB_END] = 0
        end = head[k.SUB_END]
        if end >= state.n_sub:
            state.reserve_submissions(1)
            end = head[k.SUB_END]
        if head[k.N_SLOTS_USED] + end - head[k.SUB_POS] >= state.n_slots:
            state.reserve_slots(end - head[k.SUB_POS] + 1)
        _SUBMISSION.pack_into(state.sub_bytes, end << k.SUB_SHIFT + 3, *row)
        head[k.SUB_END] = end + 1

    def _collect(self) -> None:
        """Turn records into reports and free the gates of sent messages."""
        flat = iter(self._state.rec[: self._head[k.N_RECORDS] << k.RECORD_SHIFT].tolist())
        self._head[k.N_RECORDS] = 0
        reports: list[Report] = list(zip(flat, flat, flat, flat, strict=True))
        self._reports += reports
        if self._gates:
            for kind, message, _, _ in reports:
                if kind == k.SENT and message in self._gates:
                    gate, _ = self._gates.pop(message)
                    self._free_gates.append(gate)

    def _new_gate(self, message: int, link: int) -> int:
        """A gate without tokens for a message."""
        if not self._free_gates:
            old = self._state.tokens
            self._state.tokens = np.concatenate((old, np.zeros_like(old)))
            self._state.bind()
            self._free_gates.extend(range(old.size, 2 * old.size))
        gate = self._free_gates.pop()
        self._state.tokens[gate] = 0
        self._gates[message] = (gate, link)
        return gate

    def _tree_row(self, src: int, dsts: tuple[int, ...]) -> int:
        """Route row of a multicast tree; rows that no message uses are kept until others need their place."""
        row = self._trees.get((src, dsts))
        if row is None:
            ordered = multicast_destinations(self.topology, dsts)
            row = self._trees.get((src, ordered))
            if row is None:
                row = self._plant(src, ordered)
            self._trees[src, ordered] = self._trees[src, dsts] = row
        self._state.tree_uses[row] += 1
        return row

    def _plant(self, src: int, dsts: tuple[int, ...]) -> int:
        """Make a new route row, in the place of one that no message uses."""
        state = self._state
        if not self._free_rows:
            self._trees = {tree: row for tree, row in self._trees.items() if state.tree_uses[row] > 0}
            self._free_rows = state.free_rows(max(_ROWS_AT_ONCE, len(self._trees))).tolist()
        row = self._free_rows.pop()
        state.plant(
            np.array([row], dtype=np.int64),
            np.array([src], dtype=np.int64),
            np.array([0, len(dsts)], dtype=np.int64),
            np.array(dsts, dtype=np.int64),
        )
        return row

    def _blocked_sources(self) -> npt.NDArray[np.bool_]:
        """Injection links whose queue waits for a token, one place for each link."""
        return (self._state.queues[::2] >= 0) & ~self._state.plane(k.ACTIVE)
