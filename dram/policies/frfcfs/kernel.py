"""The cycle loop of the ``frfcfs`` policy: one call runs a channel up to a given DRAM edge.

The requests of a bank stand in a list by age, one for reads and one for writes. Of such a list only two requests can be
the oldest one to go: the first that hits the open row, and the first that does not (with the bank closed: the first).
A bank is looked at again only when its state or list has changed or the edge has come before which nothing of it could
go. A step in which nothing was issued returns the least time that could change that, so quiet edges are jumped over.
"""

from typing import NamedTuple

from cosa.common.compile_cache import compiled, compiled_helper, inlined_helper
from dram import banks_kernel as b
from dram import queues_kernel as q
from dram.queues_kernel import NEVER, Ints

# parameters
(
    READ_QUEUE, WRITE_QUEUE,
    DRAIN_ABOVE,  # writes held above which writes go first
    DRAIN_BELOW,  # writes held below which waiting reads go first again
    DRAIN_BATCH,  # writes in one go after which waiting reads have their turn
    FORWARD_LATENCY,
    REFRESH_CLOCKS,
    PARAMS,
) = range(b.PARAMS, b.PARAMS + 8)  # fmt: skip

# control
(
    WRITE_MODE, READS_HELD, WRITES_HELD,
    ACTIVE_HELD,  # requests whose ACT is issued; at most one a bank
    SEQUENCE,  # requests taken into a queue so far
    DRAINED,  # writes since write mode began
    READ_TURN,  # reads to serve before writes may go first again
    LAST_READ,  # edge at which the read decided last leaves, or -1
    CONTROL,
) = range(b.CONTROL, b.CONTROL + 9)  # fmt: skip

# banks
ACTIVE_SLOT = b.BANK_FIELDS  # request whose ACT is issued, or -1
BANK_FIELDS = b.BANK_FIELDS + 1

# lists[queue, bank]: the requests of a bank by age, 0 reads, 1 writes
HEAD, TAIL = 0, 1
FIRST_HIT = 2  # with a row open: the first request for it
FIRST_OTHER = 3  # and the first for another row
LIST_FIELDS = 4

# bounds[queue, bank]: the edge before which none of the list can go; NEVER: it is empty
# active[place]: the active buffer
SLOT = 0
ACTIVE_BOUND = 1  # edge before which its column command cannot go
ACTIVE_FIELDS = 2

# slots
NUMBER = b.SLOT_FIELDS  # order of arrival
AFTER = b.SLOT_FIELDS + 1  # the next request of the bank's list
BEFORE = b.SLOT_FIELDS + 2
SLOT_FIELDS = b.SLOT_FIELDS + 3


class State(NamedTuple):
    """The arrays of a channel, in the order of the arguments of `run`."""

    params: Ints
    io: Ints
    staged: Ints
    flight: Ints
    request_log: Ints
    command_log: Ints
    control: Ints
    ranks: Ints
    banks: Ints
    slots: Ints
    hashes: Ints
    ready: Ints
    windows: Ints
    constraints: Ints
    first_row: Ints
    refreshes: Ints
    lists: Ints
    bounds: Ints
    active: Ints


@inlined_helper
def _append(s: State, op: int, slot: int, bank_index: int) -> None:
    """Put a request at the end of the list of its bank."""
    tail = s.lists[op, bank_index, TAIL]
    s.slots[slot, AFTER] = -1
    s.slots[slot, BEFORE] = tail
    s.lists[op, bank_index, TAIL] = slot
    if tail < 0:
        s.lists[op, bank_index, HEAD] = slot
        s.lists[op, bank_index, FIRST_HIT] = -1
        s.lists[op, bank_index, FIRST_OTHER] = -1
    else:
        s.slots[tail, AFTER] = slot
    which = FIRST_HIT if s.banks[bank_index, b.OPEN_ROW] == s.slots[slot, b.ROW] else FIRST_OTHER
    if s.lists[op, bank_index, which] < 0:
        s.lists[op, bank_index, which] = slot
        s.bounds[op, bank_index] = 0


@inlined_helper
def _take_out(s: State, op: int, slot: int) -> None:
    """Take a request out of the list of its bank."""
    bank_index = s.slots[slot, b.BANK_INDEX]
    before = s.slots[slot, BEFORE]
    after = s.slots[slot, AFTER]
    if before >= 0:
        s.slots[before, AFTER] = after
    else:
        s.lists[op, bank_index, HEAD] = after
    if after >= 0:
        s.slots[after, BEFORE] = before
    else:
        s.lists[op, bank_index, TAIL] = before
    if s.lists[op, bank_index, FIRST_HIT] == slot:
        row = s.slots[slot, b.ROW]
        while after >= 0 and s.slots[after, b.ROW] != row:
            after = s.slots[after, AFTER]
        s.lists[op, bank_index, FIRST_HIT] = after
    s.bounds[op, bank_index] = NEVER if s.lists[op, bank_index, HEAD] < 0 else 0


@inlined_helper
def _row_opened(s: State, bank_index: int, row: int) -> None:
    """Find the first hit and the first other request of both lists of a bank."""
    for op in range(2):
        head = s.lists[op, bank_index, HEAD]
        if head >= 0:
            hit = head
            other = head
            while hit >= 0 and s.slots[hit, b.ROW] != row:
                hit = s.slots[hit, AFTER]
            while other >= 0 and s.slots[other, b.ROW] == row:
                other = s.slots[other, AFTER]
            s.lists[op, bank_index, FIRST_HIT] = hit
            s.lists[op, bank_index, FIRST_OTHER] = other
            s.bounds[op, bank_index] = 0


@inlined_helper
def _row_closed(s: State, bank_index: int) -> None:
    for op in range(2):
        if s.lists[op, bank_index, HEAD] >= 0:
            s.bounds[op, bank_index] = 0


@inlined_helper
def _read_leaves(s: State, t: int, ready: int, tag: int, identity: int) -> None:
    """Put a read in the line of those that wait for their data: its head leaves once ready, one an edge.

    So also one that the write queue answers leaves behind those before it, as in Ramulator.
    """
    s.control[LAST_READ] = max(ready, s.control[LAST_READ] + 1)
    q.complete(s.io, s.flight, s.request_log, q.READ_BACK, t, s.control[LAST_READ], tag, identity)


@inlined_helper
def _accept(s: State, t: int, lane: int) -> tuple[bool, int]:
    """Take staged requests of a lane. Returns (any taken, next edge to look)."""
    taken = 0
    while s.io[q.STAGED_HEAD + 2 * lane] < s.io[q.STAGED_TAIL + 2 * lane]:
        head = s.io[q.STAGED_HEAD + 2 * lane]
        if s.staged[lane, head, q.STAGED_EDGE] > t:
            return taken > 0, int(s.staged[lane, head, q.STAGED_EDGE])
        if taken == s.params[b.REQUESTS_PER_CLOCK]:
            return True, t + 1
        op = s.staged[lane, head, q.STAGED_OP]
        tag = s.staged[lane, head, q.STAGED_TAG]
        identity = s.staged[lane, head, q.STAGED_ID]
        # two requests of a burst are of one address
        address = s.staged[lane, head, q.STAGED_ADDRESS] >> s.params[b.OFFSET_BITS] << s.params[b.OFFSET_BITS]
        if s.control[WRITES_HELD] > 0 and b.find(s.params, s.slots, s.hashes, address, 1) >= 0:
            # the write queue answers the read, or swallows the write
            ready = t + s.params[FORWARD_LATENCY]
            if op == 1:
                q.complete(s.io, s.flight, s.request_log, q.NOT_SENT, t, ready, tag, identity)
            else:
                _read_leaves(s, t, ready, tag, identity)
            s.control[b.FORWARDED + op] += 1
        elif s.control[READS_HELD + op] < s.params[READ_QUEUE + op]:
            slot = b.take_slot(s.control, s.slots, op, tag, identity, t)
            bank_index = b.decode(s.params, s.slots, slot, address)
            s.slots[slot, NUMBER] = s.control[SEQUENCE]
            s.control[SEQUENCE] += 1
            s.control[READS_HELD + op] += 1
            if op == 1:
                b.remember(s.params, s.slots, s.hashes, slot)
            _append(s, op, slot, bank_index)
        else:
            return taken > 0, NEVER
        s.io[q.STAGED_HEAD + 2 * lane] = head + 1
        taken += 1
        if s.io[q.LOGGING] == 1:
            s.request_log[identity, q.ACCEPTED] = t
    return taken > 0, NEVER


@inlined_helper
def _first_active(s: State, t: int) -> tuple[int, int]:
    """The oldest request with its row open that may go now. Returns (place or -1, next edge to look)."""
    best = -1
    best_arrived = NEVER
    wake = NEVER
    for i in range(s.control[ACTIVE_HELD]):
        at = s.active[i, ACTIVE_BOUND]
        if at <= t:
            slot = s.active[i, SLOT]
            at = b.ready_at(s, s.slots[slot, b.BANK_INDEX], b.WR if s.slots[slot, b.OP] == 1 else b.RD)
            s.active[i, ACTIVE_BOUND] = at
            if at <= t:
                if s.slots[slot, b.ARRIVED] < best_arrived:
                    best = i
                    best_arrived = s.slots[slot, b.ARRIVED]
                continue
        wake = min(wake, at)
    return best, wake


@inlined_helper
def _first_ready(s: State, t: int, op: int) -> tuple[int, int, int]:
    """The oldest read (or write) whose next command may go now.

    Returns (slot or -1, its command, next edge to look). The command may be a PRE that must not go, because an active
    request waits for the row: then nothing goes in this clock, as in Ramulator.
    """
    best = -1
    best_command = -1
    best_number = NEVER
    wake = NEVER
    column = b.WR if op == 1 else b.RD
    for bank_index in range(s.bounds.shape[1]):
        wake = min(wake, s.bounds[op, bank_index])
    if wake > t:
        return best, best_command, wake
    wake = NEVER
    for bank_index in range(s.bounds.shape[1]):
        if s.bounds[op, bank_index] > t:
            continue
        if s.banks[bank_index, b.OPEN_ROW] < 0:
            at = b.ready_at(s, bank_index, b.ACT)
            s.bounds[op, bank_index] = at
            slot = s.lists[op, bank_index, HEAD]
            if at <= t and s.slots[slot, NUMBER] < best_number:
                best = slot
                best_command = b.ACT
                best_number = s.slots[slot, NUMBER]
            continue
        bound = NEVER
        slot = s.lists[op, bank_index, FIRST_HIT]
        if slot >= 0:
            bound = b.ready_at(s, bank_index, column)
            if bound <= t and s.slots[slot, NUMBER] < best_number:
                best = slot
                best_command = column
                best_number = s.slots[slot, NUMBER]
        slot = s.lists[op, bank_index, FIRST_OTHER]
        if slot >= 0:
            at = b.ready_at(s, bank_index, b.PRE)
            if at <= t and s.slots[slot, NUMBER] < best_number:
                best = slot
                best_command = b.PRE
                best_number = s.slots[slot, NUMBER]
            if at > t:
                wake = min(wake, at)
            bound = min(bound, at)
        s.bounds[op, bank_index] = bound
        if bound > t:
            wake = min(wake, bound)
    for bank_index in range(s.bounds.shape[1]):
        at = s.bounds[op, bank_index]
        wake = min(wake, at if at > t else NEVER)
    return best, best_command, wake


@inlined_helper
def _issue(s: State, t: int, slot: int, place: int, command: int) -> None:
    """Issue the next command of a request and move it on; ``place`` is its place in the active buffer or -1."""
    bank_index = s.slots[slot, b.BANK_INDEX]
    row = s.slots[slot, b.ROW]
    op = s.slots[slot, b.OP]
    arrived = s.slots[slot, b.ARRIVED]
    rank = s.slots[slot, b.RANK]
    bank = bank_index - rank * s.params[b.BANKS]
    if command == b.ACT:
        b.settle(s.ranks, rank, t)
        s.ranks[rank, b.ACTS] += 1
        s.ranks[rank, b.UNCLOSED] += 1
        if s.banks[bank_index, b.CONFLICT] == 1:
            s.ranks[rank, b.CONFLICTS] += 1
        else:
            s.ranks[rank, b.MISSES] += 1
        s.banks[bank_index, b.CONFLICT] = 0
        s.banks[bank_index, b.OPEN_ROW] = row
        s.banks[bank_index, ACTIVE_SLOT] = slot
        q.log_command(s.io, s.command_log, t, command, rank, bank, row, -1, arrived)
        s.active[s.control[ACTIVE_HELD], SLOT] = slot
        s.active[s.control[ACTIVE_HELD], ACTIVE_BOUND] = 0
        s.control[ACTIVE_HELD] += 1
        s.control[READS_HELD + op] -= 1
        _take_out(s, op, slot)
        if op == 1:
            b.forget(s.params, s.slots, s.hashes, slot)
        _row_opened(s, bank_index, row)
    elif command == b.PRE:
        b.settle(s.ranks, rank, t)
        s.ranks[rank, b.PRES] += 1
        s.ranks[rank, b.UNCLOSED] -= 1
        s.banks[bank_index, b.OPEN_ROW] = -1
        s.banks[bank_index, b.CONFLICT] = 1
        _row_closed(s, bank_index)
        q.log_command(s.io, s.command_log, t, command, rank, bank, -1, -1, arrived)
    else:
        identity = s.slots[slot, b.IDENTITY]
        if s.io[q.LOGGING] == 1:
            s.request_log[identity, q.CAS] = t
        q.log_command(s.io, s.command_log, t, command, rank, bank, row, s.slots[slot, b.COLUMN], arrived)
        tag = s.slots[slot, b.TAG]
        if op == 1:
            s.control[DRAINED] += 1
            s.ranks[rank, b.WRITES] += 1
            q.complete(s.io, s.flight, s.request_log, q.WRITTEN, t, t + s.params[b.WRITE_LATENCY], tag, identity)
        else:
            s.control[READ_TURN] = max(s.control[READ_TURN] - 1, 0)
            s.ranks[rank, b.READS] += 1
            _read_leaves(s, t, t + s.params[b.READ_LATENCY], tag, identity)
        if place >= 0:
            s.banks[bank_index, ACTIVE_SLOT] = -1
            held = s.control[ACTIVE_HELD] - 1
            for i in range(place, held):
                s.active[i, SLOT] = s.active[i + 1, SLOT]
                s.active[i, ACTIVE_BOUND] = s.active[i + 1, ACTIVE_BOUND]
            s.control[ACTIVE_HELD] = held
        else:
            s.control[READS_HELD + op] -= 1
            _take_out(s, op, slot)
            if op == 1:
                b.forget(s.params, s.slots, s.hashes, slot)
        b.free_slot(s.control, s.slots, slot)
    b.apply_constraints(s, t, command, bank_index)


@compiled_helper
def _refresh_work(s: State, t: int) -> tuple[bool, int]:
    """Close the rank at the head of the line, then refresh it. Returns (command issued, next edge to look)."""
    rank = s.refreshes[s.control[b.REFRESH_HEAD] % s.refreshes.shape[0]]
    first = rank * s.params[b.BANKS]
    command = b.REF if s.ranks[rank, b.UNCLOSED] == 0 else b.PREA
    at = max(s.ready[0, command], s.ready[1 + rank, command])
    if at > t:
        return False, int(at)
    if command == b.PREA:
        for bank_index in range(first, first + s.params[b.BANKS]):
            if s.banks[bank_index, ACTIVE_SLOT] >= 0:
                return False, NEVER  # serving that request is an event of its own
        b.settle(s.ranks, rank, t)
        for bank_index in range(first, first + s.params[b.BANKS]):
            if s.banks[bank_index, b.OPEN_ROW] >= 0:
                s.banks[bank_index, b.OPEN_ROW] = -1
                s.banks[bank_index, b.CONFLICT] = 0
                _row_closed(s, bank_index)
        s.ranks[rank, b.UNCLOSED] = 0
        s.ranks[rank, b.PRES] += 1
    else:
        b.settle(s.ranks, rank, t)
        s.ranks[rank, b.REFS] += 1
        s.ranks[rank, b.ACTIVE_UNTIL] = max(s.ranks[rank, b.ACTIVE_UNTIL], t + s.params[REFRESH_CLOCKS])
        s.control[b.REFRESH_HEAD] += 1
    q.log_command(s.io, s.command_log, t, command, rank, -1, -1, -1, -1)
    b.apply_constraints(s, t, command, first)
    return True, t + 1


@compiled_helper
def _set_write_mode(params: Ints, control: Ints) -> None:
    if control[WRITE_MODE] == 0:
        full = control[WRITES_HELD] > params[DRAIN_ABOVE] and control[READ_TURN] == 0
        if full or control[READS_HELD] == 0:
            control[WRITE_MODE] = 1
            control[DRAINED] = 0
            control[READ_TURN] = 0
    elif control[READS_HELD] != 0:
        if control[WRITES_HELD] < params[DRAIN_BELOW]:
            control[WRITE_MODE] = 0
        elif control[DRAINED] >= params[DRAIN_BATCH]:
            control[WRITE_MODE] = 0
            control[READ_TURN] = control[READS_HELD]


@compiled
def run(
    until: int, params: Ints, io: Ints, staged: Ints, flight: Ints, request_log: Ints, command_log: Ints, control: Ints,
    ranks: Ints, banks: Ints, slots: Ints, hashes: Ints, ready: Ints, windows: Ints, constraints: Ints,
    first_row: Ints, refreshes: Ints, lists: Ints, bounds: Ints, active: Ints,
) -> int:  # fmt: skip
    """Run all DRAM edges before ``until``. Stops early (WAKE < until) when the command log is full.

    Returns WAKE, the first edge not yet run at which something can happen.
    """
    s = State(
        params, io, staged, flight, request_log, command_log, control, ranks, banks, slots, hashes, ready, windows,
        constraints, first_row, refreshes, lists, bounds, active,
    )  # fmt: skip
    t = int(io[q.WAKE])
    while t < until and io[q.COMMANDS] < command_log.shape[0]:
        q.end_quiet(io, t)
        acted = False
        wake = NEVER
        for lane in range(2 - params[b.IN_ORDER]):
            taken, edge = _accept(s, t, lane)
            acted |= taken
            wake = min(wake, edge)
        if t >= control[b.REFRESH_WAKE]:
            b.refreshes_due(t, params, control, ranks, refreshes)
        wake = min(wake, control[b.REFRESH_WAKE])

        asked = control[READS_HELD] + control[WRITES_HELD] + control[ACTIVE_HELD] > 0
        place, edge = _first_active(s, t)
        wake = min(wake, edge)
        slot = -1
        command = -1
        if place >= 0:
            slot = active[place, SLOT]
            command = b.WR if slots[slot, b.OP] == 1 else b.RD
        elif control[b.REFRESH_HEAD] < control[b.REFRESH_TAIL]:
            issued, edge = _refresh_work(s, t)
            acted |= issued
            wake = min(wake, edge)
        else:
            _set_write_mode(params, control)
            slot, command, edge = _first_ready(s, t, control[WRITE_MODE])
            wake = min(wake, edge)
        if slot >= 0 and not (command == b.PRE and banks[slots[slot, b.BANK_INDEX], ACTIVE_SLOT] >= 0):
            _issue(s, t, slot, place, command)
            acted = True
        if control[READS_HELD] + control[WRITES_HELD] + control[ACTIVE_HELD] == 0:
            io[q.QUIET_SINCE] = t + 1 if asked else t  # nothing is waited for
        t = t + 1 if acted else max(wake, t + 1)
    q.leave(io, flight, t)
    return t
