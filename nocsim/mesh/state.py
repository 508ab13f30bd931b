"""The arrays behind one mesh: made, grown and read here, stepped by ``nocsim.mesh.kernel``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nocsim.mesh import kernel as k
from nocsim.mesh.routing import output_link_table, unicast_link_table
from nocsim.mesh.topology import N_PORTS, Topology

_SLICE_CYCLES = 1 << 22
"""Busy cycles of one compiled call: about a second on a large mesh."""

FOREVER = 1 << 61
"""A cycle that is never reached."""
_MAX_LINKS = 1 << 15  # link numbers are stored as int16 in the route rows
_MAX_ROUTE_ENTRIES = k.ROUTE_MASK + 1


@dataclass(frozen=True)
class Views:
    """Some of the arrays for single elements: Python reads a memoryview several times faster than an array."""

    tokens: memoryview
    queues: memoryview
    slot: memoryview
    planes: memoryview


class MeshState:
    """State of a mesh as the compiled loop sees it.

    Parameters
    ----------
    topology: the mesh
    fifo_flits: depth of the output FIFOs, 1..63
    reservation_flits: free places a multicast head needs in every output FIFO on its way, at least 1. More than
        ``fifo_flits`` is allowed and means that no multicast ever moves
    head_records: record also the entry and ejection of head flits
    stop_at_records: return from ``step`` at the first cycle with a record, else only when the record array is full
    stall_limit_cycles: give up if no flit moves at a source or destination for so long while some are in the mesh
    """

    def __init__(
        self,
        topology: Topology,
        fifo_flits: int,
        reservation_flits: int,
        *,
        head_records: bool = False,
        stop_at_records: bool = True,
        stall_limit_cycles: int = FOREVER,
    ) -> None:
        if not 1 <= fifo_flits <= k.MAX_FIFO_FLITS:
            raise ValueError(f"fifo_flits must be in 1..{k.MAX_FIFO_FLITS}, not {fifo_flits}")
        if reservation_flits < 1:
            raise ValueError(f"reservation_flits must be at least 1, not {reservation_flits}")
        if topology.n_links > _MAX_LINKS:
            raise ValueError(f"a {topology.columns}x{topology.rows} mesh has more than {_MAX_LINKS} links")
        self.topology = topology
        n_links, n_routers, n_endpoints = topology.n_links, topology.n_routers, topology.n_endpoints
        n_words = (n_links + 63) // 64

        head = np.zeros(k.HEAD_SIZE, dtype=np.int64)
        head[k.N_WORDS] = n_words
        head[k.N_ROUTERS] = n_routers
        head[k.RING_SHIFT] = (fifo_flits + k.STAGES_AFTER_FIFO - 1).bit_length()
        head[k.FIRST_EJECTION] = topology.first_ejection_link
        room_count = fifo_flits - reservation_flits
        for bit in range(len(k.COUNT_PLANES)):
            head[k.DEPTH_BIT_0 + bit] = -(fifo_flits >> bit & 1)
            head[k.ROOM_BIT_0 + bit] = -(room_count >> bit & 1)
        head[k.IS_DEEP] = int(fifo_flits > 15)
        head[k.ROOM_ANY] = -int(room_count >= 0)
        head[k.HEAD_RECORDS] = int(head_records)
        head[k.FREE_SLOT] = -1
        head[k.STALL_LIMIT] = stall_limit_cycles
        # in one cycle each source and each destination writes at most two records
        spare_records = 4 * n_endpoints
        n_records = spare_records if stop_at_records else spare_records + 8192
        head[k.RECORD_LIMIT] = 1 if stop_at_records else 8192

        self.head = head
        self.planes = np.zeros(n_words << k.PLANE_SHIFT, dtype=np.int64)
        self.ring = np.zeros(n_links << int(head[k.RING_SHIFT]), dtype=np.int64)
        self.link = np.zeros(n_links << k.LINK_SHIFT, dtype=np.int64)
        self.outputs = np.zeros(n_routers * 8, dtype=np.int64)
        self.queues = np.full(2 * n_links, -1, dtype=np.int64)
        self.slot = np.zeros(0, dtype=np.int64)
        self.sub = np.zeros(64 << k.SUB_SHIFT, dtype=np.int64)
        self.rec = np.zeros(n_records << k.RECORD_SHIFT, dtype=np.int64)
        self.tokens = np.zeros(16, dtype=np.int64)

        output_links = output_link_table(topology)
        self.outputs.reshape(n_routers, 8)[:, :N_PORTS] = output_links
        rows = self.link.reshape(n_links, 1 << k.LINK_SHIFT)
        inputs = np.arange(topology.first_ejection_link, dtype=np.int64)
        rows[: inputs.size, k.INPUT], rows[: inputs.size, k.ROUTER] = np.divmod(inputs, n_routers)
        rows[output_links.reshape(-1), k.DRIVER] = np.repeat(np.arange(n_routers, dtype=np.int64), N_PORTS)

        is_output = np.zeros(n_words * 64, dtype=np.bool_)
        is_output[output_links.reshape(-1)] = True
        ejects = np.zeros(n_words * 64, dtype=np.bool_)
        ejects[topology.first_ejection_link : n_links] = True
        planes = self.planes.reshape(n_words, 1 << k.PLANE_SHIFT)
        planes[:, k.NOT_FULL] = -1
        planes[:, k.OPEN] = planes[:, k.UNICAST_OK] = _words_of(is_output)
        if room_count >= 0:
            planes[:, k.MULTICAST_OK] = _words_of(is_output)
        planes[:, k.EJECTS] = _words_of(ejects)

        self.injection_links = np.array([topology.injection_link(e) for e in range(n_endpoints)], dtype=np.int64)
        self.roots = np.array([topology.attachment(e)[0] for e in range(n_endpoints)], dtype=np.int64)
        self.routes = unicast_link_table(topology).astype(np.int16).reshape(-1)
        self.tree_uses = np.ones(n_endpoints, dtype=np.int64)  # unicast rows are never free
        self._winners = _round_robin_winners()
        self._slice_cycles = _SLICE_CYCLES
        self._view = memoryview(self.head.data)
        self._args: tuple[Any, ...] = ()
        self.bind()
        self.reserve_slots(64)

    # ---- what happens

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Arguments of ``run_mesh``, for a compiled loop that calls it; valid until an array grows."""
        return self._args

    def step(self, until_cycle: int) -> None:
        """Run the compiled loop up to ``until_cycle`` or the first stop."""
        self.head[k.UNTIL] = until_cycle
        k.run_mesh(*self._args)

    def step_some(self, until_cycle: int) -> None:
        """The same, but at most some seconds of work: compiled code does not hear of Ctrl-C, its caller does.

        Callers repeat it until they are where they want to be.
        """
        view = self._view
        end = view[k.CYCLE] + self._slice_cycles
        if until_cycle <= end:
            view[k.UNTIL] = until_cycle
            k.run_mesh(*self._args)
            self._slice_cycles = _SLICE_CYCLES
            return
        view[k.UNTIL] = end
        k.run_mesh(*self._args)
        # Quiet time is jumped over, so its slices may grow without bound.
        quiet = view[k.N_FLITS] == 0 or view[k.N_STILL] >= k.SETTLED
        self._slice_cycles = min(self._slice_cycles * 2, FOREVER) if quiet else _SLICE_CYCLES

    def records(self) -> npt.NDArray[np.int64]:
        """Records since the last call, a copy of shape (n, 4): kind, message, destination (-1: source), cycle."""
        n_records = int(self.head[k.N_RECORDS])
        self.head[k.N_RECORDS] = 0
        return self.rec[: n_records << k.RECORD_SHIFT].reshape(n_records, 4).copy()

    # ---- growth

    def bind(self) -> None:
        """Take up arrays that were replaced; the argument types never change, so nothing is compiled anew."""
        self.n_slots = self.slot.size >> k.SLOT_SHIFT
        self.n_sub = self.sub.size >> k.SUB_SHIFT
        self.sub_bytes = self.sub.data.cast("B")
        self.views = Views(self.tokens.data, self.queues.data, self.slot.data, self.planes.data)
        self._args = (
            self.head,
            self.planes,
            self.ring,
            self.link,
            self.outputs,
            self.routes,
            self.tree_uses,
            self.queues,
            self.slot,
            self.sub,
            self.rec,
            self.tokens,
            self._winners,
        )

    def reserve_slots(self, n_messages: int) -> None:
        """Make room for ``n_messages`` beside those that are queued or in flight."""
        n_slots = self.n_slots
        needed = int(self.head[k.N_SLOTS_USED]) + n_messages
        if needed > n_slots:
            n_grown = max(needed, 2 * n_slots)
            grown = np.zeros(n_grown << k.SLOT_SHIFT, dtype=np.int64)
            grown[: self.slot.size] = self.slot
            chain = np.arange(n_slots + 1, n_grown + 1, dtype=np.int64)
            chain[-1] = self.head[k.FREE_SLOT]
            grown.reshape(n_grown, -1)[n_slots:, k.NEXT] = chain
            self.head[k.FREE_SLOT] = n_slots
            self.slot = grown
            self.bind()

    def reserve_submissions(self, n_messages: int) -> None:
        """Make room for ``n_messages`` more submissions; those already taken are dropped."""
        head = self.head
        if int(head[k.SUB_END]) + n_messages <= self.n_sub and head[k.SUB_POS] < head[k.SUB_END]:
            return
        start, end = int(head[k.SUB_POS]) << k.SUB_SHIFT, int(head[k.SUB_END]) << k.SUB_SHIFT
        left = self.sub[start:end].copy()
        needed = left.size + (n_messages << k.SUB_SHIFT)
        if needed > self.sub.size:
            self.sub = np.zeros(max(needed, 2 * self.sub.size), dtype=np.int64)
            self.bind()
        self.sub[: left.size] = left
        head[k.SUB_POS], head[k.SUB_END] = 0, left.size >> k.SUB_SHIFT

    def free_rows(self, n_rows: int) -> npt.NDArray[np.int64]:
        """Numbers of ``n_rows`` route rows that no message uses; the table grows if there are too few."""
        free = np.flatnonzero(self.tree_uses == 0)
        if free.size < n_rows:
            n_routers, n_old = self.topology.n_routers, self.tree_uses.size
            n_grown = n_old + max(n_rows - free.size, n_old // 2)
            if n_grown * n_routers > _MAX_ROUTE_ENTRIES:
                raise MemoryError("too many different multicast trees are in flight")
            routes = np.full(n_grown * n_routers, -1, dtype=np.int16)
            routes[: self.routes.size] = self.routes
            uses = np.zeros(n_grown, dtype=np.int64)
            uses[:n_old] = self.tree_uses
            self.routes, self.tree_uses = routes, uses
            self.bind()
            free = np.flatnonzero(uses == 0)
        return free[:n_rows].astype(np.int64)

    def plant(
        self,
        rows: npt.NDArray[np.int64],
        srcs: npt.NDArray[np.int64],
        starts: npt.NDArray[np.int64],
        dsts: npt.NDArray[np.int64],
    ) -> None:
        """Write multicast trees into route rows: tree t goes from ``srcs[t]`` to ``dsts[starts[t]:starts[t + 1]]``."""
        first = self.topology.first_ejection_link
        k.plant_trees(self.routes, self.link, self.outputs, first, rows, self.roots[srcs], starts, dsts)

    # ---- reading

    def plane(self, plane: int) -> npt.NDArray[np.bool_]:
        """One plane as an array with a place for each link."""
        words = self.planes.reshape(-1, 1 << k.PLANE_SHIFT)[:, plane]
        bits = np.unpackbits(np.ascontiguousarray(words).astype("<i8").view(np.uint8), bitorder="little")
        return bits[: self.topology.n_links].astype(np.bool_)

    def fifo_counts(self) -> npt.NDArray[np.int64]:
        """Flits in the output FIFO in front of each link."""
        counts = np.zeros(self.topology.n_links, dtype=np.int64)
        for bit, plane in enumerate(k.COUNT_PLANES):
            counts += self.plane(plane).astype(np.int64) << bit
        return counts

    def link_flits(self) -> npt.NDArray[np.int64]:
        """Flits that crossed each link since the start, from its sender to its receiver register."""
        written = self.link.reshape(-1, 1 << k.LINK_SHIFT)[:, k.WRITE]
        before = self.fifo_counts() + self.plane(k.OREG) + self.plane(k.SND)
        return np.asarray(written - before)

    def ring_flit(self, link: int, place: int) -> int:
        """Flit with running number ``place`` on a link (it must not have been overwritten)."""
        shift = int(self.head[k.RING_SHIFT])
        return int(self.ring[(link << shift) | (place & ((1 << shift) - 1))])


def _words_of(bits: Sequence[bool] | npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Pack a multiple of 64 booleans into words, first one lowest."""
    return np.packbits(bits, bitorder="little").view("<i8").astype(np.int64)


def _round_robin_winners() -> npt.NDArray[np.int64]:
    """Winner for [last grant * 32 + set of requests]; search goes downwards (Matchlib HybridRouter, cycle step 5)."""
    table = np.zeros(N_PORTS * 32, dtype=np.int64)
    for last in range(N_PORTS):
        for requests in range(1, 32):
            order = ((last - step) % N_PORTS for step in range(1, N_PORTS + 1))
            table[last * 32 + requests] = next(port for port in order if requests >> port & 1)
    return table
