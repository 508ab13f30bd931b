"""Replay of the published network simulator's transactions, cycle by cycle as that simulator runs them.

Endpoints take their turns in ascending number within a cycle and see each other's completions at once: what endpoint m
completes in cycle t lets an endpoint n > m start in t, an endpoint n < m only in t + 1. In its turn an endpoint counts
what has arrived, drops its transaction if that is over, takes the first one of its list that waits for nothing, and
sends or computes. A compute of c cycles taken up in cycle s is over in s + c, and the endpoint takes up its next one in
s + c + 1; a send may be followed by the next one in the cycle after its last flit has left.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from heapq import heappop, heappush

from cosa.errors import InputError
from nocsim.errors import SimulationError
from nocsim.mesh import Gate, Mesh, ReportKind
from nocsim.published.dram_coupling import FIRST_CYCLE, PACKET_FLITS, PublishedDram
from nocsim.published.transactions import Times, Transaction
from nocsim.topology import Topology


@dataclass(frozen=True)
class Replay:
    """What a replay measures. `total_cycles` is when endpoint 0 sees that nothing is left."""

    times: dict[int, Times]
    total_cycles: int


class _Actor:
    """An endpoint: transactions that wait for nothing (by place in the list), and whether it is busy."""

    def __init__(self) -> None:
        self.ready: list[int] = []
        self.free_cycle = FIRST_CYCLE
        self.busy = False


class TransactionReplay:
    """One replay; `dram` is the DRAM behind its endpoint, or None for one that never waits.

    The DRAM is the endpoint with the number: endpoints - columns - rows (on 4x5 the south edge of the last router).
    """

    def __init__(self, mesh: Mesh, transactions: list[Transaction], dram: PublishedDram | None = None) -> None:
        self._mesh, self._dram = mesh, dram
        topology = mesh.topology
        self._dram_endpoint = topology.n_endpoints - topology.columns - topology.rows
        if dram is not None:
            dram.attach(self)
        self._check(transactions, topology)
        self._list = transactions
        self._place = {transaction.number: place for place, transaction in enumerate(transactions)}
        self.times = [Times() for _ in transactions]
        self._actors: dict[int, _Actor] = defaultdict(_Actor)
        self._open = [len(set(transaction.dependencies)) for transaction in transactions]
        self._dependents: list[list[int]] = [[] for _ in transactions]
        self._wakes: list[tuple[int, int]] = []
        self._computing: dict[int, int] = {}
        self._message: dict[int, tuple[int, int]] = {}
        self._missing: dict[tuple[int, int], int] = {}
        self._struck: set[tuple[int, int]] = set()
        self._unfinished = len(transactions)
        self._last: tuple[int, int] = (FIRST_CYCLE, 0)
        for place, transaction in enumerate(transactions):
            for number in set(transaction.dependencies):
                self._dependents[self._place[number]].append(place)
            if not self._open[place]:
                heappush(self._actors[transaction.actor].ready, place)
                self._wake(FIRST_CYCLE, transaction.actor)

    def _check(self, transactions: list[Transaction], topology: Topology) -> None:
        for transaction in transactions:
            for endpoint in (transaction.actor, *transaction.destinations):
                local_only = transaction.operation == "multicast" and endpoint != transaction.actor
                limit = topology.n_routers if local_only else topology.n_endpoints
                if not 0 <= endpoint < limit:
                    raise InputError(
                        f"transaction {transaction.number} names an endpoint outside the "
                        f"{topology.columns}x{topology.rows} mesh",
                        value=endpoint,
                        allowed=f"0 to {limit - 1}" + (" (a multicast ends at local ports)" if local_only else ""),
                    )

    def _wake(self, cycle: int, endpoint: int) -> None:
        heappush(self._wakes, (cycle, endpoint))

    # ---- completions

    def _finish(self, place: int, cycle: int, endpoint: int) -> None:
        """A transaction is over, seen in `endpoint`'s turn: dependents of other actors hear of it."""
        self.times[place].end = cycle
        self._unfinished -= 1
        self._last = (cycle, endpoint)
        for dependent in self._dependents[place]:
            self._resolve(dependent, place, cycle, endpoint)

    def _resolve(self, dependent: int, place: int, cycle: int, endpoint: int) -> None:
        """Strike one dependency off, once."""
        if (dependent, place) in self._struck:
            return
        self._struck.add((dependent, place))
        self._open[dependent] -= 1
        if not self._open[dependent]:
            actor = self._list[dependent].actor
            heappush(self._actors[actor].ready, dependent)
            self._wake(cycle if actor >= endpoint else cycle + 1, actor)

    def _arrive(self, place: int, destination: int, packets: int, cycle: int) -> None:
        """Packets of a transaction count as received at a destination, in that endpoint's turn."""
        transaction, times = self._list[place], self.times[place]
        left = self._missing.setdefault((place, destination), transaction.size) - packets
        self._missing[place, destination] = left
        if left:
            return
        del self._missing[place, destination]
        ends = times.destination_ends = times.destination_ends or {}
        ends[destination] = cycle
        # The destination's own waiting transactions go on as soon as its own copy is complete.
        for dependent in self._dependents[place]:
            if self._list[dependent].actor == destination:
                self._resolve(dependent, place, cycle, destination)
        if len(ends) == len(transaction.destinations):
            self._finish(place, cycle, destination)

    # ---- a turn

    def _turn(self, endpoint: int, cycle: int, arrived: list[tuple[int, int]]) -> None:
        for place, packets in arrived:
            if self._dram is not None and endpoint == self._dram_endpoint:
                self._dram.write_arrived(place, cycle, self.times[place])
            else:
                self._arrive(place, endpoint, packets, cycle)
        if self._dram is not None and endpoint == self._dram_endpoint:
            for place in self._dram.written(cycle):
                self.times[place].dram_write_end = cycle
                self._arrive(place, endpoint, 1, cycle)
            self._dram.release_read(cycle)
        actor = self._actors.get(endpoint)
        if actor is None:
            return
        computed = self._computing.get(endpoint)
        if computed is not None and actor.free_cycle == cycle + 1:
            del self._computing[endpoint]
            actor.busy = False
            self._finish(computed, cycle, endpoint)
            self._wake(cycle + 1, endpoint)
            return
        if self._dram is not None and endpoint == self._dram_endpoint and self._dram.continue_read(cycle):
            return
        if actor.busy or actor.free_cycle > cycle or not actor.ready:
            return
        self._start(heappop(actor.ready), endpoint, cycle, actor)

    def _start(self, place: int, endpoint: int, cycle: int, actor: _Actor) -> None:
        transaction = self._list[place]
        self.times[place].start = cycle
        actor.busy = True
        if transaction.operation == "compute":
            self._computing[endpoint] = place
            actor.free_cycle = cycle + transaction.size + 1
            self._wake(cycle + transaction.size, endpoint)
            return
        multicast = transaction.operation == "multicast"
        if self._dram is not None and endpoint == self._dram_endpoint:
            self._dram.begin_read(place, transaction, cycle, self.times[place])
            return
        # Each packet is a message of its own where the DRAM counts packets.
        to_dram = self._dram is not None and self._dram_endpoint in transaction.destinations
        pieces = transaction.size if to_dram else 1
        for piece in range(pieces):
            number = self._mesh.submit(
                endpoint,
                transaction.destinations,
                transaction.size // pieces,
                PACKET_FLITS,
                multicast=multicast,
                cycle=cycle,
            )
            self._message[number] = (place, -1 if piece < pieces - 1 else endpoint)

    # ---- the run

    def run(self) -> Replay:
        """Replay all transactions.

        Raises
        ------
        SimulationError: transactions are left that wait for each other, or the mesh deadlocks.
        """
        mesh, dram = self._mesh, self._dram
        cycle = mesh.now
        while self._unfinished or not mesh.idle:
            candidates = [self._wakes[0][0]] if self._wakes else []
            if dram is not None and (next_cycle := dram.next_cycle(cycle)) is not None:
                candidates.append(next_cycle)
            if mesh.idle:
                if not candidates:
                    raise SimulationError(f"{self._unfinished} transactions wait for each other at cycle {cycle}")
                cycle = mesh.run(min(candidates))
            else:
                until = min(candidates, default=2**62)
                cycle = mesh.run(until)
                if cycle >= 2**62:
                    raise SimulationError(f"deadlock in the mesh: {mesh.describe_stall()}")
            self._cycle(cycle)
            if dram is not None:
                dram.end_of_cycle(cycle)
        last_cycle, endpoint = self._last
        total = last_cycle + (1 if endpoint > 0 else 0)
        return Replay({x.number: t for x, t in zip(self._list, self.times, strict=True)}, total)

    def _cycle(self, cycle: int) -> None:
        """All turns of a cycle, in ascending order of endpoints."""
        arrived: dict[int, list[tuple[int, int]]] = {}
        for kind, number, destination, _ in self._mesh.take_reports():
            place, sender = self._message[number]
            if kind == ReportKind.SENT:
                if self._dram is not None and sender == self._dram_endpoint:
                    self._dram.packet_left(cycle)
                    self._wake(cycle, sender)
                elif sender >= 0:
                    self._actors[sender].busy = False
                    self._wake(cycle, sender)
                continue
            transaction = self._list[place]
            whole = self._dram is None or not (
                self._dram_endpoint in transaction.destinations or transaction.actor == self._dram_endpoint
            )
            arrived.setdefault(destination, []).append((place, transaction.size if whole else 1))
        if self._dram is not None and self._dram.has_news(cycle):
            self._wake(cycle, self._dram_endpoint)
        for destination in arrived:
            self._wake(cycle, destination)
        done: set[int] = set()
        while self._wakes and self._wakes[0][0] <= cycle:
            _, endpoint = heappop(self._wakes)
            if endpoint not in done:
                done.add(endpoint)
                self._turn(endpoint, cycle, arrived.get(endpoint, []))

    def send_read_packet(self, place: int, transaction: Transaction, cycle: int) -> int:
        """Used by the DRAM: put one packet of a read on the mesh, its tail waiting for the memory."""
        number = self._mesh.submit(
            self._dram_endpoint,
            transaction.destinations,
            1,
            PACKET_FLITS,
            multicast=transaction.operation == "multicast",
            gate=Gate.TAIL,
            cycle=cycle,
        )
        self._message[number] = (place, self._dram_endpoint)
        return number

    def release_read_packet(self, number: int) -> None:
        """Used by the DRAM: the data of a packet are there."""
        self._mesh.release(number)

    def read_over(self) -> None:
        """Used by the DRAM: the last packet of a read has left."""
        self._actors[self._dram_endpoint].busy = False


MEMORIES = ("none", "dramsim2")


def replay_transactions(transactions: list[Transaction], columns: int, rows: int, memory: str = "none") -> Replay:
    """Replay transactions on a mesh of so many routers.

    Parameters
    ----------
    memory: ``none`` (the DRAM endpoint sends and takes a flit a cycle) or ``dramsim2`` (the published set-up: DDR2-667,
        16 ranks, one DRAM clock a cycle).

    Raises
    ------
    InputError: a transaction names an endpoint that the mesh does not have.
    SimulationError: transactions wait for each other.
    """
    dram = None
    if memory == "dramsim2":
        from dram.devices import load_device
        from dram.system import DramSystem
        from nocsim.published.dram_coupling import PublishedDram

        dram = PublishedDram(DramSystem(load_device("ddr2_667_x8")))
    return TransactionReplay(Mesh(columns, rows), transactions, dram).run()
