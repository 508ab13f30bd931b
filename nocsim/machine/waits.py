"""What a wait was for: how far back a thing that came late had itself waited, and for which resource.

Every process that moves data keeps a *time line*: what it waited for, stretch after stretch. So does every source of
the mesh: whether it sent, was held by the mesh, or had nothing to send yet. A transfer is stamped when its sender
wanted to send it, when there was room for it, when it was queued, when its last flit left and when it arrived. When a
PE's wait ends, the transfer that ended it is walked back over these stamps as far as the wait reaches (`Passage`).
Nothing here changes what happens; it is read only when a wait has ended.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from typing import Literal, Protocol, get_args

Resource = Literal["dram", "port", "link", "latency", "buffer_space", "reduction"]
"""What was waited for.

`dram`: data that the DRAM has not read, or room in a DRAM port's write buffer. `port`: a node's port to the mesh, a
port of a memory, or a PE's send engine, which takes its time or serves others. `link`: links in the mesh that others
use. `latency`: the way through an empty mesh. `buffer_space`: room at the receiver. `reduction`: peers and adders.
"""

Cause = Literal["inputs", "weights", "partial_sums", "drain"]
"""What a PE waited for: a tile, a reload of partial sums, or its outputs to leave."""

CAUSES: tuple[Cause, ...] = get_args(Cause)
RESOURCES: tuple[Resource, ...] = get_args(Resource)

Split = list[tuple[Resource, int]]
"""Stretches of cycles, in order of time."""

_MOST_STRETCHES = 4096  # kept of a time line; a wait that reaches further back is charged to the oldest one kept


class Timeline:
    """Consecutive stretches of time from cycle 0 to `end`, each with the resource it is charged to."""

    __slots__ = ("_ends", "_resources", "end")

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._resources: list[Resource] = []
        self.end = 0

    def until(self, cycle: int, resource: Resource) -> None:
        """Charge what is not yet known up to `cycle`."""
        if cycle <= self.end:
            return
        self.end = cycle
        if self._ends and self._resources[-1] == resource:
            self._ends[-1] = cycle
            return
        self._ends.append(cycle)
        self._resources.append(resource)
        if len(self._ends) > 2 * _MOST_STRETCHES:
            del self._ends[:_MOST_STRETCHES], self._resources[:_MOST_STRETCHES]

    def follow(self, split: Split) -> None:
        """Charge the next cycles as somebody else's were."""
        for resource, cycles in split:
            self.until(self.end + cycles, resource)

    def split(self, begin: int, end: int, beyond: Resource = "port") -> Split:
        """The stretches between two cycles; what is not known yet goes to `beyond`."""
        found: Split = []
        at = bisect_right(self._ends, begin)
        while begin < end:
            known = at < len(self._ends)
            stop = min(end, self._ends[at]) if known else end
            found.append((self._resources[at] if known else beyond, stop - begin))
            begin, at = stop, at + 1
        return found


class Outbox:
    """A source of the mesh: its flits go in the order of its messages, one a cycle, when they may.

    `clock` is the cycle up to which it would be busy with what it was given so far. Given more after that, it was
    *starved* in between. What is neither starved nor a flit's own cycle, it was held by the mesh.
    """

    __slots__ = ("_backlog_flits", "_clock", "_starved", "line")

    def __init__(self) -> None:
        self.line = Timeline()
        self._clock = self._backlog_flits = 0
        self._starved: deque[tuple[int, int]] = deque()

    def given(self, cycle: int, flits: int) -> None:
        """So many more flits may go from `cycle` on."""
        if cycle > self._clock:
            self._starved.append((self._clock, cycle))
            self._clock = cycle
        self._clock += flits
        self._backlog_flits += flits

    def sent(self, cycle: int, queued_cycle: int, flits: int, starved_by: Resource) -> None:
        """A message of so many flits, the next in order, has left by `cycle`."""
        if queued_cycle > self.line.end:
            self.line.until(queued_cycle, "port")  # nothing to send: nobody's wait reaches into it
        own = flits
        while self._starved and self._starved[0][0] < cycle:
            begin, end = self._starved[0]
            own -= self._busy(begin, own)
            self.line.until(min(end, cycle), starved_by)
            if end > cycle:
                break
            self._starved.popleft()
        self._busy(cycle, own)
        self._backlog_flits -= flits
        self._clock = max(self._clock, cycle + self._backlog_flits)

    def _busy(self, cycle: int, own_flits: int) -> int:
        """Up to `cycle` it could send; returns the flits' own cycles, the others are the mesh's."""
        cycles = max(0, min(own_flits, cycle - self.line.end))
        self.line.until(self.line.end + cycles, "port")
        if cycle > self.line.end:
            self.line.until(cycle, "link")
        return cycles


class Sent(Protocol):
    """What a passage reads of a message."""

    queued_cycle: int
    sent_cycle: int
    outbox: Outbox


class Passage:
    """One transfer, from the wish to send it to its arrival.

    `line` is its sender's, `wanted` the cycle from which the sender only waited for room at the receivers, `room` the
    cycle in which there was room. A sender that asks the DRAM goes on at once; it could send no earlier than when the
    transfer before (`after`) had left. `from_dram`: before its messages are queued, the DRAM is asked for its data.
    """

    __slots__ = ("_came", "_left_cycle", "_next", "from_dram", "line", "room", "wanted")

    def __init__(self, line: Timeline, wanted: int, room: int, after: Passage | None = None) -> None:
        self.line, self.wanted, self.room = line, wanted, room
        self.from_dram = False
        self._left_cycle = 0
        self._next: Passage | None = None
        self._came: dict[int, tuple[Sent, int, int]] = {}
        if after is not None:
            after._next = self
            self._free(after._left_cycle)

    def _free(self, cycle: int) -> None:
        self.wanted = max(self.wanted, min(cycle, self.room))

    def left(self, cycle: int) -> None:
        """A message of it has left its source."""
        self._left_cycle = cycle
        if self._next is not None:
            self._next._free(cycle)

    def came(self, message: Sent, endpoint: int, cycle: int, latency_cycles: int) -> None:
        """A message of it has arrived; in an empty mesh its last flit would have been `latency_cycles` on its way."""
        self._came[endpoint] = message, cycle, latency_cycles

    def split(self, since: int, now: int, endpoint: int | None = None) -> Split:
        """What a wait that this transfer ended was for; `endpoint` is where it arrived (None: the last of all).

        With room at once, it would have come `room - wanted` cycles earlier: so much of the wait was for room, even if
        the receiver gave it up only when it began to wait. The rest lies in what the transfer did after that, and
        before that in what its sender did.
        """
        space = min(now - since, self.room - self.wanted)
        rest = now - since - space
        found = self.line.split(since, self.wanted)
        if space:
            found.append(("buffer_space", space))
        return found + self._moving(max(self.room, now - rest), now, endpoint)

    def _moving(self, begin: int, now: int, endpoint: int | None) -> Split:
        last = self._came.get(endpoint) if endpoint is not None else None
        if last is None:
            last = max(self._came.values(), key=lambda came: came[1], default=None)
        if last is None:  # between two memories of one node: nothing but their ports
            return self.line.split(begin, now)
        message, arrived, latency_cycles = last
        found: Split = []
        if begin < message.queued_cycle:
            cycles = message.queued_cycle - begin
            found += [("dram", cycles)] if self.from_dram else self.line.split(begin, message.queued_cycle)
            begin = message.queued_cycle
        if begin < message.sent_cycle:
            found += message.outbox.line.split(begin, message.sent_cycle)
            begin = message.sent_cycle
        marks: tuple[tuple[Resource, int], ...] = (
            ("link", arrived - latency_cycles),
            ("latency", arrived),
            ("port", now),  # of the memory that is written
        )
        for resource, end in marks:
            if begin < end:
                found.append((resource, end - begin))
                begin = end
        return found


class Passages:
    """The last transfers to one slot of a node, by number in the order in which they were sent."""

    __slots__ = ("_added", "_last")

    def __init__(self, buffers: int) -> None:
        # A tile is sent only when the one `buffers` before it has been given up.
        self._last: deque[Passage] = deque(maxlen=buffers + 1)
        self._added = 0

    def add(self, passage: Passage) -> None:
        """The next transfer is on its way."""
        self._last.append(passage)
        self._added += 1

    def split(self, number: int, since: int, now: int, endpoint: int | None = None) -> Split:
        """What a wait for transfer number `number` was for."""
        return self._last[number - self._added].split(since, now, endpoint)


def by_resource(split: Iterable[tuple[Resource, int]]) -> dict[Resource, int]:
    """Cycles by resource, in the order of `RESOURCES`; none without cycles."""
    sums = dict.fromkeys(RESOURCES, 0)
    for resource, cycles in split:
        sums[resource] += cycles
    return {resource: cycles for resource, cycles in sums.items() if cycles}
