"""The cycle loop of the ``dramsim3`` policy: one call runs a channel up to a given DRAM edge.

It restates what DRAMsim3 does in one clock call, in the order in which it does it: requests are accepted, a refresh
falls due, one command is issued (with dual command a second one of the other kind), one request moves from the
transaction queues to a command queue.

Nothing is looked at before it can have changed: each command queue keeps the edge before which none of its requests can
go (ready times only rise, and the state of a bank changes by a command to that bank alone), and a step in which nothing
happened returns the least such edge, so quiet edges are jumped over.
"""

from typing import NamedTuple

from cosa.common.compile_cache import compiled, compiled_helper, inlined_helper
from dram import banks_kernel as b
from dram import queues_kernel as q
from dram.queues_kernel import NEVER, Ints

# parameters
(
    TRANSACTION_QUEUE, COMMAND_QUEUE, PER_BANK, UNIFIED, CLOSE_PAGE, DUAL, ROW_ACCESSES, DRAIN_ABOVE,
    POSTED_WRITES,  # 1: a write is done one clock after it was accepted, and those too few to be drained stay for ever
    PARAMS,
) = range(b.PARAMS, b.PARAMS + 10)  # fmt: skip

# control
(
    QUEUE_INDEX,  # round robin over the command queues
    DRAINING,  # writes still to move before reads do again
    HELD,  # requests in the transaction queues: reads (or all, if unified),
    WRITES_HELD,
    QUEUED,  # requests in all command queues
    REFRESHING,  # 1: the queues of the rank at the head of the line are passed over
    MOVE_BLOCKED,  # 1: since the last look nothing changed that could let a request move
    SHARED,  # reads served by the DRAM read of an earlier one
    CONTROL,
) = range(b.CONTROL, b.CONTROL + 9)  # fmt: skip

# banks
ACCESSES = b.BANK_FIELDS  # column commands since ACT
BANK_FIELDS = b.BANK_FIELDS + 1

# slots
NEXT_SHARING = b.SLOT_FIELDS  # further reads of the same address
SLOT_FIELDS = b.SLOT_FIELDS + 1

# queue_info
LENGTH, QUEUE_WAKE, QUEUE_INFO_FIELDS = range(3)


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
    queues: Ints
    queue_info: Ints
    transactions: Ints


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
        queue = op if s.params[UNIFIED] == 0 else 0
        held = s.control[HELD + queue]
        if held == s.params[TRANSACTION_QUEUE]:
            return taken > 0, NEVER
        address = s.staged[lane, head, q.STAGED_ADDRESS]
        identity = s.staged[lane, head, q.STAGED_ID]
        tag = s.staged[lane, head, q.STAGED_TAG]
        s.io[q.STAGED_HEAD + 2 * lane] = head + 1
        taken += 1
        if s.io[q.LOGGING] == 1:
            s.request_log[identity, q.ACCEPTED] = t
        forwarded = b.find(s.params, s.slots, s.hashes, address, 1) >= 0
        if forwarded or (op == 1 and s.params[POSTED_WRITES] == 1):
            q.complete(s.io, s.flight, s.request_log, q.NOT_SENT, t, t + 1, tag, identity)
        if forwarded:
            # a waiting write answers the read, or swallows the write
            if s.io[q.LOGGING] == 1:
                s.request_log[identity, q.CAS] = q.NO_CAS
            s.control[b.FORWARDED + op] += 1
            continue
        first = b.find(s.params, s.slots, s.hashes, address, 0) if op == 0 else -1
        slot = b.take_slot(s.control, s.slots, op, tag, identity, t)
        s.slots[slot, NEXT_SHARING] = -1
        if first >= 0:
            while s.slots[first, NEXT_SHARING] >= 0:
                first = s.slots[first, NEXT_SHARING]
            s.slots[first, NEXT_SHARING] = slot
            s.control[SHARED] += 1
            continue
        b.decode(s.params, s.slots, slot, address)
        b.remember(s.params, s.slots, s.hashes, slot)
        s.transactions[queue, held] = slot
        s.control[HELD + queue] = held + 1
        s.control[MOVE_BLOCKED] = 0
    return taken > 0, NEVER


@compiled_helper
def _queue_of(params: Ints, slots: Ints, slot: int) -> int:
    return int(slots[slot, b.BANK_INDEX] if params[PER_BANK] == 1 else slots[slot, b.RANK])


@compiled_helper
def _may_precharge(
    params: Ints, banks: Ints, queues: Ints, slots: Ints, queue: int, position: int, length: int
) -> bool:
    """A row is closed for the oldest request of the bank, once no hit waits behind it or the row has had its share."""
    bank_index = slots[queues[queue, position], b.BANK_INDEX]
    for i in range(position):
        if slots[queues[queue, i], b.BANK_INDEX] == bank_index:
            return False
    if banks[bank_index, ACCESSES] >= params[ROW_ACCESSES]:
        return True
    for i in range(position + 1, length):
        slot = queues[queue, i]
        if slots[slot, b.BANK_INDEX] == bank_index and slots[slot, b.ROW] == banks[bank_index, b.OPEN_ROW]:
            return False
    return True


@compiled_helper
def _waits_for_read(queues: Ints, slots: Ints, queue: int, position: int) -> bool:
    """An older read of the same place stands in front of this write."""
    write = queues[queue, position]
    for i in range(position):
        slot = queues[queue, i]
        if (
            slots[slot, b.OP] == 0
            and slots[slot, b.ROW] == slots[write, b.ROW]
            and slots[slot, b.COLUMN] == slots[write, b.COLUMN]
            and slots[slot, b.BANK_INDEX] == slots[write, b.BANK_INDEX]
        ):
            return True
    return False


@inlined_helper
def _first_ready(s: State, t: int, queue: int) -> tuple[int, int]:
    """(position, command) of the first request of a queue that can go now, or (-1, _): then QUEUE_WAKE tells when."""
    wake = NEVER
    length = s.queue_info[queue, LENGTH]
    for i in range(length):
        slot = s.queues[queue, i]
        bank_index = s.slots[slot, b.BANK_INDEX]
        open_row = s.banks[bank_index, b.OPEN_ROW]
        if open_row < 0:
            command = b.ACT
        elif open_row != s.slots[slot, b.ROW]:
            command = b.PRE
        else:
            command = b.WR if s.slots[slot, b.OP] == 1 else b.RD
            if s.params[CLOSE_PAGE] == 1:
                command += b.RDA - b.RD
        at = b.ready_at(s, bank_index, command)
        if at >= wake:
            continue
        if command == b.PRE:
            if not _may_precharge(s.params, s.banks, s.queues, s.slots, queue, i, length):
                continue
        elif (command == b.WR) | (command == b.WRA) and _waits_for_read(s.queues, s.slots, queue, i):
            continue
        if at <= t:
            return i, command
        wake = at
    s.queue_info[queue, QUEUE_WAKE] = wake
    return -1, 0


@compiled_helper
def _close(t: int, ranks: Ints, banks: Ints, rank: int, bank_index: int, conflict: int) -> None:
    b.settle(ranks, rank, t)
    ranks[rank, b.UNCLOSED] -= 1
    banks[bank_index, b.OPEN_ROW] = -1
    banks[bank_index, ACCESSES] = 0
    banks[bank_index, b.CONFLICT] = conflict


@inlined_helper
def _issue(s: State, t: int, queue: int, position: int, command: int) -> None:
    """Issue the next command of a request."""
    slot = s.queues[queue, position]
    bank_index = s.slots[slot, b.BANK_INDEX]
    row = s.slots[slot, b.ROW]
    rank = s.slots[slot, b.RANK]
    bank = bank_index - rank * s.params[b.BANKS]
    arrived = s.slots[slot, b.ARRIVED]
    b.apply_constraints(s, t, command, bank_index)
    s.queue_info[queue, QUEUE_WAKE] = 0
    if command == b.ACT:
        b.settle(s.ranks, rank, t)
        s.ranks[rank, b.ACTS] += 1
        s.ranks[rank, b.UNCLOSED] += 1
        s.banks[bank_index, b.OPEN_ROW] = row
        q.log_command(s.io, s.command_log, t, command, rank, bank, row, -1, arrived)
    elif command == b.PRE:
        s.ranks[rank, b.PRES] += 1
        _close(t, s.ranks, s.banks, rank, bank_index, 1)
        q.log_command(s.io, s.command_log, t, command, rank, bank, -1, -1, arrived)
    else:
        if s.banks[bank_index, ACCESSES] == 0:
            if s.banks[bank_index, b.CONFLICT] == 1:
                s.ranks[rank, b.CONFLICTS] += 1
            else:
                s.ranks[rank, b.MISSES] += 1
        s.banks[bank_index, ACCESSES] += 1
        if command >= b.RDA:
            _close(t, s.ranks, s.banks, rank, bank_index, 0)
        q.log_command(s.io, s.command_log, t, command, rank, bank, row, s.slots[slot, b.COLUMN], arrived)
        ring, latency = q.READ_BACK, s.params[b.READ_LATENCY]
        if s.slots[slot, b.OP] == 1:
            ring, latency = q.WRITTEN, s.params[b.WRITE_LATENCY]
            s.ranks[rank, b.WRITES] += 1
        else:
            s.ranks[rank, b.READS] += 1
        length = s.queue_info[queue, LENGTH] - 1
        for i in range(position, length):
            s.queues[queue, i] = s.queues[queue, i + 1]
        s.queue_info[queue, LENGTH] = length
        s.control[QUEUED] -= 1
        s.control[MOVE_BLOCKED] = 0
        b.forget(s.params, s.slots, s.hashes, slot)
        while slot >= 0:
            identity = s.slots[slot, b.IDENTITY]
            if s.io[q.LOGGING] == 1:
                s.request_log[identity, q.CAS] = t
            if ring == q.READ_BACK or s.params[POSTED_WRITES] == 0:
                q.complete(s.io, s.flight, s.request_log, ring, t, t + latency, s.slots[slot, b.TAG], identity)
            following = s.slots[slot, NEXT_SHARING]
            b.free_slot(s.control, s.slots, slot)
            slot = following


@inlined_helper
def _search_queues(s: State, t: int, first_command: int) -> tuple[int, int]:
    """Round robin over the command queues. Returns (command issued or -1, next edge to look).

    ``first_command`` is the command already issued in this clock, or -1: then only one of the other kind goes.
    """
    count = s.queue_info.shape[0]
    blocked_from = blocked_to = -1
    if s.control[REFRESHING] == 1:
        rank = s.refreshes[s.control[b.REFRESH_HEAD] % s.refreshes.shape[0]]
        width = s.params[b.BANKS] if s.params[PER_BANK] == 1 else 1
        blocked_from, blocked_to = rank * width, (rank + 1) * width
    wake = NEVER
    index = s.control[QUEUE_INDEX]
    for _ in range(count):
        index += 1
        if index == count:
            index = 0
        if s.queue_info[index, LENGTH] == 0 or (blocked_from <= index and index < blocked_to):
            continue
        if s.queue_info[index, QUEUE_WAKE] <= t:
            position, command = _first_ready(s, t, index)
            if position >= 0:
                s.control[QUEUE_INDEX] = index
                if first_command >= 0:
                    # the search stops at the first request that can go, be it of the wrong kind
                    first_column = first_command >= b.RD and first_command != b.REF
                    if first_column == (command >= b.RD):
                        return -1, t + 1
                _issue(s, t, index, position, command)
                return command, t + 1
        wake = min(wake, s.queue_info[index, QUEUE_WAKE])
    return -1, wake


@compiled_helper
def _refresh_work(s: State, t: int) -> tuple[int, int]:
    """Close a bank of the rank at the head of the line, or refresh it. Returns (command or -1, next edge to look)."""
    rank = s.refreshes[s.control[b.REFRESH_HEAD] % s.refreshes.shape[0]]
    s.control[REFRESHING] = 1
    if s.ranks[rank, b.UNCLOSED] > 0:
        wake = NEVER
        for bank in range(s.params[b.BANKS]):
            bank_index = rank * s.params[b.BANKS] + bank
            if s.banks[bank_index, b.OPEN_ROW] < 0:
                continue
            at = b.ready_at(s, bank_index, b.PRE)
            if at <= t:
                s.ranks[rank, b.PRES] += 1
                _close(t, s.ranks, s.banks, rank, bank_index, 0)
                s.queue_info[bank_index if s.params[PER_BANK] == 1 else rank, QUEUE_WAKE] = 0
                q.log_command(s.io, s.command_log, t, b.PRE, rank, bank, -1, -1, -1)
                b.apply_constraints(s, t, b.PRE, bank_index)
                return b.PRE, t + 1
            wake = min(wake, at)
        return -1, wake
    at = max(s.ready[0, b.REF], s.ready[1 + rank, b.REF])
    if at > t:
        return -1, int(at)
    s.ranks[rank, b.REFS] += 1
    s.control[b.REFRESH_HEAD] += 1
    s.control[REFRESHING] = 0
    q.log_command(s.io, s.command_log, t, b.REF, rank, -1, -1, -1, -1)
    b.apply_constraints(s, t, b.REF, rank * s.params[b.BANKS])
    return b.REF, t + 1


@compiled_helper
def _enqueue(
    which: int, position: int, queue: int, control: Ints, transactions: Ints, queues: Ints, queue_info: Ints
) -> None:
    """Move a request from a transaction queue to the end of a command queue."""
    length = queue_info[queue, LENGTH]
    queues[queue, length] = transactions[which, position]
    queue_info[queue, LENGTH] = length + 1
    queue_info[queue, QUEUE_WAKE] = 0
    control[QUEUED] += 1
    control[HELD + which] -= 1
    for i in range(position, control[HELD + which]):
        transactions[which, i] = transactions[which, i + 1]


@inlined_helper
def _move_request(s: State) -> bool:
    """Move the first request of the queue whose turn it is to a command queue that has room."""
    begun = False
    if s.params[UNIFIED] == 0 and s.control[DRAINING] == 0:
        begun = True
        writes = s.control[WRITES_HELD]
        enough = writes > s.params[DRAIN_ABOVE] or (s.params[POSTED_WRITES] == 0 and s.control[HELD] == 0)
        if writes >= s.params[TRANSACTION_QUEUE] or (enough and s.control[QUEUED] == 0):
            s.control[DRAINING] = writes
    which = 1 if s.control[DRAINING] > 0 else 0
    for i in range(s.control[HELD + which]):
        slot = s.transactions[which, i]
        queue = _queue_of(s.params, s.slots, slot)
        if s.queue_info[queue, LENGTH] == s.params[COMMAND_QUEUE]:
            continue
        if which == 1:
            if b.find(s.params, s.slots, s.hashes, s.slots[slot, b.ADDRESS], 0) >= 0:
                if s.params[POSTED_WRITES] == 0:
                    continue  # it must wait for the read, others need not
                s.control[DRAINING] = 0
                return not begun  # reads may have their turn in the next clock
            s.control[DRAINING] -= 1
        _enqueue(which, i, queue, s.control, s.transactions, s.queues, s.queue_info)
        return True
    if which == 1 and s.params[POSTED_WRITES] == 0 and s.control[QUEUED] == 0:
        # all writes wait for reads that have not moved yet
        s.control[DRAINING] = 0
        if s.control[HELD] > 0:
            queue = _queue_of(s.params, s.slots, s.transactions[0, 0])
            _enqueue(0, 0, queue, s.control, s.transactions, s.queues, s.queue_info)
            return True
    return False


@compiled
def run(
    until: int, params: Ints, io: Ints, staged: Ints, flight: Ints, request_log: Ints, command_log: Ints, control: Ints,
    ranks: Ints, banks: Ints, slots: Ints, hashes: Ints, ready: Ints, windows: Ints, constraints: Ints,
    first_row: Ints, refreshes: Ints, queues: Ints, queue_info: Ints, transactions: Ints,
) -> int:  # fmt: skip
    """Run all DRAM edges before ``until``. Stops early (WAKE < until) when the command log is full.

    Returns WAKE, the first edge not yet run at which something can happen.
    """
    s = State(
        params, io, staged, flight, request_log, command_log, control, ranks, banks, slots, hashes, ready, windows,
        constraints, first_row, refreshes, queues, queue_info, transactions,
    )  # fmt: skip
    t = int(io[q.WAKE])
    while t < until and io[q.COMMANDS] + 2 <= command_log.shape[0]:
        q.end_quiet(io, t)
        acted = False
        wake = NEVER
        for lane in range(2 - params[b.IN_ORDER]):
            taken, edge = _accept(s, t, lane)
            acted |= taken
            wake = min(wake, edge)
        asked = control[QUEUED] + control[HELD] + control[DRAINING] > 0
        asked |= params[POSTED_WRITES] == 0 and control[WRITES_HELD] > 0
        if t >= control[b.REFRESH_WAKE]:
            b.refreshes_due(t, params, control, ranks, refreshes)
        wake = min(wake, control[b.REFRESH_WAKE])

        command = -1
        if control[b.REFRESH_HEAD] < control[b.REFRESH_TAIL]:
            command, edge = _refresh_work(s, t)
            wake = min(wake, edge)
        acted |= command >= 0
        for _ in range(1 + params[DUAL]):
            if control[QUEUED] > 0 and (command < 0 or params[DUAL] == 1):
                second, edge = _search_queues(s, t, command)
                wake = min(wake, edge)
                acted |= second >= 0
                if command >= 0 or second < 0:
                    break
                command = second
        if control[MOVE_BLOCKED] == 0:
            if _move_request(s):
                acted = True
            else:
                control[MOVE_BLOCKED] = 1
        if control[QUEUED] == 0 and control[HELD] == 0 and control[DRAINING] == 0:
            io[q.QUIET_SINCE] = t + 1 if asked else t  # nothing waits that may go
        t = t + 1 if acted else max(wake, t + 1)
    q.leave(io, flight, t)
    return t
