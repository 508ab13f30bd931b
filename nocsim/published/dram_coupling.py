"""The DRAM coupling of the published network simulator: one event a cycle between the endpoint and DRAMSim2."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from dram.system import READ, WRITE, DramSystem
from nocsim.published.transactions import Times, Transaction

if TYPE_CHECKING:
    from nocsim.published.replay import TransactionReplay

FIRST_CYCLE = 2
"""Reset ends before the first clock edge of cycle 2, which is the first clock of the DRAM too."""

READ_BASE_ADDRESS = 0x30000
PACKET_BYTES = 32
PACKET_FLITS = 5


class PublishedDram:
    """Reads one after another, a packet each; writes overlap. All transfers use the same addresses.

    After the endpoint's turn of a cycle the DRAM is clocked once; its completions enter an event queue with the time
    stamp cycle - 2, requests with the cycle; then one entry is taken out, the *newest* time stamp first, equal ones in
    the order in which they came. A request taken out reaches DRAMSim2 in that cycle, a completion taken out is seen by
    the endpoint in its next turn.
    """

    def __init__(self, system: DramSystem) -> None:
        self._system = system
        self._replay: TransactionReplay
        self._events: list[tuple[int, int, int, int, int]] = []  # -stamp, order, kind, op, address
        self._order = 0
        self._arrived: deque[int] = deque()
        self._seen: list[tuple[int, int]] = []  # (cycle, op) of completions the endpoint is to see
        self._early: list[tuple[int, int]] = []
        self._reading: tuple[int, Transaction, Times] | None = None
        self._packet = 0
        self._message = -1
        self._left = False
        self._write_packet: dict[int, int] = {}

    def attach(self, replay: TransactionReplay) -> None:
        """Take the replay whose packets this DRAM sends."""
        self._replay = replay

    # ---- the endpoint's side

    def has_news(self, cycle: int) -> bool:
        """Whether the endpoint has a completion to see in this cycle."""
        return any(at <= cycle for at, _ in self._seen)

    def write_arrived(self, place: int, cycle: int, times: Times) -> None:
        """A packet's tail has arrived: a write is queued."""
        if times.dram_write_start is None:
            # Writing begins with the head flit; the flits of a packet arrive without a gap.
            times.dram_write_start = cycle - (PACKET_FLITS - 1)
        number = self._write_packet.get(place, 0)
        self._write_packet[place] = number + 1
        self._arrived.append(place)
        self._enter(cycle, WRITE, PACKET_BYTES * number)

    def written(self, cycle: int) -> list[int]:
        """Transactions credited with a packet in this cycle: arrived packets in the order of arrival."""
        count = sum(1 for at, op in self._seen if at <= cycle and op == WRITE)
        self._seen = [(at, op) for at, op in self._seen if not (at <= cycle and op == WRITE)]
        return [self._arrived.popleft() for _ in range(count)]

    def release_read(self, cycle: int) -> None:
        """Let the tail of the present packet go if its data are there."""
        reads = [entry for entry in self._seen if entry[0] <= cycle and entry[1] == READ]
        for entry in reads:
            self._seen.remove(entry)
            assert self._reading is not None
            self._reading[2].dram_read_end = entry[0]
            self._replay.release_read_packet(self._message)

    def begin_read(self, place: int, transaction: Transaction, cycle: int, times: Times) -> None:
        """Take up a transfer from the DRAM."""
        times.dram_read_start = cycle
        self._reading, self._packet, self._left = (place, transaction, times), 0, False
        self._build(cycle)

    def _build(self, cycle: int) -> None:
        assert self._reading is not None
        place, transaction, _ = self._reading
        self._message = self._replay.send_read_packet(place, transaction, cycle)
        self._enter(cycle, READ, READ_BASE_ADDRESS + PACKET_BYTES * self._packet)
        self._packet += 1

    def packet_left(self, cycle: int) -> None:
        """The last flit of the present packet has left in the cycle before."""
        assert self._reading is not None
        if self._packet < self._reading[1].size:
            self._left = True
        else:
            self._reading = None
            self._replay.read_over()

    def continue_read(self, cycle: int) -> bool:
        """Build the next packet if the last one has left; True while a transfer is under way."""
        if self._left:
            self._left = False
            self._build(cycle)
        return self._reading is not None

    # ---- the memory's side

    def _enter(self, stamp: int, op: int, address: int, completion: bool = False) -> None:
        self._order += 1
        self._events.append((-stamp, self._order, int(completion), op, address))

    def next_cycle(self, cycle: int) -> int | None:
        """The next cycle in which the DRAM side has something to do."""
        if self._events or self._early:
            return cycle + 1
        if self._seen:
            return min(at for at, _ in self._seen)
        earliest = self._system.earliest_visible_cycle()
        return None if earliest is None else max(cycle + 1, earliest + FIRST_CYCLE)

    def end_of_cycle(self, cycle: int) -> None:
        """Clock the DRAM, then take one event out."""
        if not (self._events or self._early or self._system.pending):
            return
        clock = cycle - FIRST_CYCLE
        known = [*self._early, *self._system.advance(clock + 1)]
        for op, at in known:
            if at <= clock:
                self._enter(cycle - 2, op, 0, completion=True)
        self._early = [entry for entry in known if entry[1] > clock]
        if not self._events:
            return
        event = min(self._events)
        self._events.remove(event)
        _, _, completion, op, address = event
        if completion:
            self._seen.append((cycle + 1, op))
        else:
            self._system.submit(clock + 1, op, address, op)
