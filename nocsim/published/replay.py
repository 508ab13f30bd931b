"""Replay of the published network simulator's transactions, cycle by cycle as that simulator runs them.

Endpoints take their turns in ascending number within a cycle and see each other's completions at once: what endpoint m
completes in cycle t lets an endpoint n > m start in t, an endpoint n < m only in t + 1. In its turn an endpoint counts
what has arrived, drops its transaction if that is over, takes the first one of its list that waits for nothing, and
sends or computes. A compute of c cycles taken up in cycle s is over in s + c, and the endpoint takes up its next one in
s + c + 1; a send may be followed by the next one in the cycle after its last flit has left.

Reads of the DRAM go one after another, a packet each, and only a packet's tail waits for them; writes overlap. All
transfers use the same addresses. `nocsim/published/kernel.py` runs all this; here its arrays are filled and read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cosa.common.errors import InputError
from nocsim.errors import SimulationError
from nocsim.mesh.kernel import CYCLE
from nocsim.mesh.stall import describe
from nocsim.mesh.state import MeshState
from nocsim.mesh.topology import Topology
from nocsim.published import kernel as k
from nocsim.published.transactions import Times, Transaction

if TYPE_CHECKING:
    from dram.channel import Channel

_FIFO_FLITS, _RESERVATION_FLITS = 7, 5
_SLICE_CYCLES = 1 << 20
"""Cycles of one compiled call, which does not hear of Ctrl-C."""
_OPERATIONS = {"unicast": k.UNICAST, "multicast": k.MULTICAST, "compute": k.COMPUTE}
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class GeneratorReplay:
    """What a replay measures. `total_cycles` is when endpoint 0 sees that nothing is left."""

    times: dict[int, Times]
    total_cycles: int


class TransactionReplay:
    """One replay; `dram` is the DRAM channel behind its endpoint; without `has_dram` it never waits, and is not asked.

    The DRAM is the endpoint with the number: endpoints - columns - rows (on 4x5 the south edge of the last router).
    """

    def __init__(self, topology: Topology, transactions: list[Transaction], dram: Channel, has_dram: bool) -> None:
        _check(transactions, topology)
        self._topology, self._list, self._dram, self._has_dram = topology, transactions, dram, has_dram
        self._mesh = MeshState(topology, _FIFO_FLITS, _RESERVATION_FLITS)
        self._mesh.reserve_submissions(topology.n_endpoints)
        self._state = np.zeros(k.STATE_SIZE, np.int64)
        self._state[k.UNFINISHED] = len(transactions)
        self._state[k.LAST_CYCLE] = k.FIRST_CYCLE
        self._state[k.READING] = self._state[k.SEEN] = -1
        self._state[k.DRAM_ENDPOINT] = topology.n_endpoints - topology.columns - topology.rows if has_dram else -1
        self._transactions, self._destinations, self._edges = _tables(transactions)
        self._transactions[:, k.ROUTE] = self._routes()
        self._actors, self._ready = self._queues()
        self._queued = np.zeros(64, np.int64)
        self._events = np.zeros((64, k.EVENT_FIELDS), np.int64)

    def _routes(self) -> list[int]:
        """Row of the mesh's route table for each transaction: the destination's own, or one for each tree."""
        trees: dict[tuple[int, tuple[int, ...]], int] = {}
        for x in self._list:
            if x.operation == "multicast":
                trees.setdefault((x.actor, tuple(sorted(x.destinations))), len(trees))
        rows = self._mesh.free_rows(len(trees))
        self._mesh.tree_uses[rows] = 1
        lengths = [0, *(len(destinations) for _, destinations in trees)]
        self._mesh.plant(
            rows,
            np.array([source for source, _ in trees], np.int64),
            np.cumsum(lengths, dtype=np.int64),
            np.array([endpoint for _, destinations in trees for endpoint in destinations], np.int64),
        )
        row_of = rows.tolist()
        return [
            row_of[trees[x.actor, tuple(sorted(x.destinations))]]
            if x.operation == "multicast"
            else (x.destinations[0] if x.destinations else 0)
            for x in self._list
        ]

    def _queues(self) -> tuple[Int64s, Int64s]:
        """The endpoints, each with room for all its transactions in its heap, those that wait for nothing inside."""
        actors = np.zeros((self._topology.n_endpoints, k.ACTOR_FIELDS), np.int64)
        actors[:, k.LINK] = self._mesh.injection_links
        actors[:, k.WAKE] = k.NEVER
        actors[:, k.FREE_CYCLE] = k.FIRST_CYCLE
        actors[:, k.COMPUTING] = actors[:, k.ARRIVED] = -1
        owners = self._transactions[:, k.ACTOR]
        counts = np.bincount(owners, minlength=len(actors))
        actors[1:, k.FIRST_READY] = np.cumsum(counts)[:-1]
        ready = np.zeros(len(self._list), np.int64)
        for endpoint in np.flatnonzero(counts).tolist():
            # Ascending places are a heap.
            places = np.flatnonzero((owners == endpoint) & (self._transactions[:, k.OPEN] == 0))
            first = actors[endpoint, k.FIRST_READY]
            ready[first : first + len(places)] = places
            actors[endpoint, k.N_READY] = len(places)
            if len(places):
                actors[endpoint, k.WAKE] = k.FIRST_CYCLE
        return actors, ready

    def run(self) -> GeneratorReplay:
        """Replay all transactions.

        Raises
        ------
        SimulationError: transactions are left that wait for each other, or the mesh deadlocks.
        """
        reason = k.PAUSED
        while reason != k.FINISHED:
            if reason == k.NEEDS_ROOM:
                self._make_room()
            cycle = int(self._mesh.head[CYCLE])
            reason = self._step(cycle + _SLICE_CYCLES)
            if reason == k.WAITING:
                left = int(self._state[k.UNFINISHED])
                cycle = int(self._mesh.head[CYCLE])
                raise SimulationError(f"{left} transactions wait for each other at cycle {cycle}")
            if reason == k.DEADLOCK:
                raise SimulationError(f"deadlock in the mesh: {describe(self._mesh)}")
        return self._result()

    def _step(self, until_cycle: int) -> int:
        done = np.zeros((len(self._events), 2), np.int64)
        return k.run_replay(
            self._state,
            self._transactions,
            self._edges,
            self._destinations,
            self._actors,
            self._ready,
            self._queued,
            self._events,
            done,
            self._dram.min_latency_edges,
            until_cycle,
            self._mesh.arguments,
            self._dram.kernel_state(),
        )

    def _make_room(self) -> None:
        """Double what may have become too small; all of it is for what is in flight, not for the whole run."""
        self._mesh.reserve_slots(2 * self._topology.n_endpoints)
        if self._has_dram:
            self._dram.kernel_ran(1024)
            head, tail = int(self._state[k.QUEUED_HEAD]), int(self._state[k.QUEUED_TAIL])
            if 2 * (tail - head) >= len(self._queued):
                places = np.arange(head, tail)
                larger = np.zeros(2 * len(self._queued), np.int64)
                larger[places & (len(larger) - 1)] = self._queued[places & (len(self._queued) - 1)]
                self._queued = larger
            if 2 * (int(self._state[k.N_EVENTS]) + 2 + self._dram.pending) >= len(self._events):
                self._events = np.concatenate((self._events, np.zeros_like(self._events)))

    def _result(self) -> GeneratorReplay:
        times = {}
        ends = self._destinations[:, k.DESTINATION_END].tolist()
        for x, row in zip(self._list, self._transactions.tolist(), strict=True):
            first, last = row[k.FIRST_DESTINATION], row[k.END_DESTINATION]
            measured = [None if value < 0 else value for value in row[k.START : k.WRITE_END + 1]]
            times[x.number] = Times(
                start=measured[0],
                end=measured[1],
                destination_ends=dict(zip(x.destinations, ends[first:last], strict=True)) or None,
                dram_read_start=measured[2],
                dram_read_end=measured[3],
                dram_write_start=measured[4],
                dram_write_end=measured[5],
            )
        last_cycle, endpoint = int(self._state[k.LAST_CYCLE]), int(self._state[k.LAST_ENDPOINT])
        return GeneratorReplay(times, last_cycle + (1 if endpoint > 0 else 0))


def _check(transactions: list[Transaction], topology: Topology) -> None:
    for transaction in transactions:
        destinations = transaction.destinations
        if len(set(destinations)) < len(destinations):
            raise InputError(
                f"transaction {transaction.number} names a destination twice", value=" ".join(map(str, destinations))
            )
        for endpoint in (transaction.actor, *destinations):
            local_only = transaction.operation == "multicast" and endpoint != transaction.actor
            limit = topology.n_routers if local_only else topology.n_endpoints
            if not 0 <= endpoint < limit:
                raise InputError(
                    f"transaction {transaction.number} names an endpoint outside the "
                    f"{topology.columns}x{topology.rows} mesh",
                    value=endpoint,
                    allowed=f"0 to {limit - 1}" + (" (a multicast ends at local ports)" if local_only else ""),
                )


def _tables(transactions: list[Transaction]) -> tuple[Int64s, Int64s, Int64s]:
    """Transactions, their destinations, and the edges from each to those that wait for it."""
    place = {transaction.number: at for at, transaction in enumerate(transactions)}
    dependents: list[list[int]] = [[] for _ in transactions]
    for at, transaction in enumerate(transactions):
        for number in set(transaction.dependencies):
            dependents[place[number]].append(at)
    table = np.full((len(transactions), k.TRANSACTION_FIELDS), -1, np.int64)
    table[:, k.OPERATION] = [_OPERATIONS[x.operation] for x in transactions]
    table[:, k.ACTOR] = [x.actor for x in transactions]
    table[:, k.SIZE] = [x.size for x in transactions]
    table[:, k.OPEN] = [len(set(x.dependencies)) for x in transactions]
    table[:, k.DESTINATIONS_LEFT] = lengths = [len(x.destinations) for x in transactions]
    table[:, k.WRITES_QUEUED] = 0
    table[:, k.END_DESTINATION] = np.cumsum(lengths)
    table[:, k.FIRST_DESTINATION] = table[:, k.END_DESTINATION] - lengths
    table[:, k.END_EDGE] = np.cumsum([len(found) for found in dependents])
    table[:, k.FIRST_EDGE] = table[:, k.END_EDGE] - [len(found) for found in dependents]
    destinations = np.full((sum(lengths) + 1, k.DESTINATION_FIELDS), -1, np.int64)
    destinations[:-1, k.ENDPOINT] = [endpoint for x in transactions for endpoint in x.destinations]
    destinations[:-1, k.PACKETS_MISSING] = [x.size for x in transactions for _ in x.destinations]
    edges = np.zeros((sum(map(len, dependents)) + 1, k.EDGE_FIELDS), np.int64)
    edges[:-1, k.DEPENDENT] = [dependent for found in dependents for dependent in found]
    return table, destinations, edges


MEMORIES = ("none", "dramsim2")


def replay_transactions(
    transactions: list[Transaction], columns: int, rows: int, memory: str = "none"
) -> GeneratorReplay:
    """Replay transactions on a mesh of so many routers.

    Parameters
    ----------
    memory: ``none`` (the DRAM endpoint sends and takes a flit a cycle) or ``dramsim2`` (the published set-up: DDR2-667,
        16 ranks, one DRAM clock a cycle).

    Raises
    ------
    InputError: a transaction names an endpoint that the mesh does not have, or one twice.
    SimulationError: transactions wait for each other.
    """
    from dram.devices import load_device
    from dram.system import DramSystem

    dram = DramSystem(load_device("ddr2_667_x8")).channels[0]
    return TransactionReplay(Topology(columns, rows), transactions, dram, memory == "dramsim2").run()
