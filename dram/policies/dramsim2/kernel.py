"""The cycle loop of the ``dramsim2`` policy: one call runs a channel up to a given DRAM edge.

It restates what DRAMSim2 does in one clock call, in the order in which it does it: requests are accepted, a refresh
falls due, at most one command is issued, one request moves from the transaction queue to a command queue, ranks power
down or up. Countdowns of the original are kept as time stamps, so that edges in which nothing can happen are jumped
over: a step in which nothing happened returns the least time stamp it compared the clock with.
"""

from typing import NamedTuple

from cosa.common.compile_cache import compiled, compiled_helper, inlined_helper
from dram import banks_kernel as b
from dram import queues_kernel as q
from dram.queues_kernel import NEVER, Ints

# parameters
(
    OPEN_PAGE, PER_BANK, BANK_FIRST, LOW_POWER, KEEP_REFRESHES, ROW_ACCESS_CAP, POSTED_CAS,
    P_RC, P_RAS,
    P_RCD,  # tRCD - AL
    P_RRD, P_RP, P_RFC, P_FAW, P_XP, P_CKE,
    READ_TO_PRE, READ_AUTO_PRE, WRITE_TO_PRE, WRITE_AUTO_PRE,
    COLUMN_TO_COLUMN, COLUMN_OTHER_RANK, READ_TO_WRITE, WRITE_TO_READ, WRITE_TO_READ_OTHER_RANK,
    PARAMS,
) = range(b.PARAMS, b.PARAMS + 26)  # fmt: skip

# control
(
    NEXT_RANK, NEXT_BANK,  # round robin over the command queues,
    NEXT_RANK_PRE, NEXT_BANK_PRE,  # and over banks to close
    SECOND_OF_PAIR,
    DUE_EDGE, DUE_RANK,
    REFRESHING,  # 1: a refresh waits for REFRESH_RANK
    REFRESH_RANK,
    BACKLOG,  # further refreshes due behind it (only with KEEP_REFRESHES)
    TRANSACTIONS,
    LOST_REFRESHES,
    QUEUED_TOTAL,  # commands in all queues
    OPEN_TOTAL,  # banks with a row open that will not close by itself
    POWER_WAKE,  # before this edge no rank changes its power state
    CONTROL,
) = range(b.CONTROL, b.CONTROL + 16)  # fmt: skip

# banks; OPEN_ROW is -1 also while the row closes by itself
(
    CLOSE_AT,  # with auto-precharge: the row counts as open before this edge
    IDLE_AT, NEXT_ACT, NEXT_READ, NEXT_WRITE, NEXT_PRE, ROW_ACCESSES,
    WAITING,  # requests in the command queues for the bank
    WANTED,  # those among them for the open row
    BANK_FIELDS,
) = range(b.NODE, b.NODE + 10)  # fmt: skip

# ranks; UNCLOSED counts rows that will not close by themselves
(
    QUEUED, WAITS_REFRESH, NEXT_UP, ALL_IDLE_AT,
    PRE_WAKE,  # edge from which a row of the rank may be closed for lack of work; -1: to be found out anew
    FAW_POSITION, FAW_EDGE, _, _, _,
    RANK_FIELDS,
) = range(b.RANK_FIELDS, b.RANK_FIELDS + 11)  # fmt: skip

# command queues: queue_info
LENGTH = 0
QUEUE_WAKE = 1  # before this edge nothing in the queue can be issued
QUEUE_INFO_FIELDS = 2
# an entry of a command queue; a request has two, KIND 0 its ACT and 1 its column command
KIND, ENTRY_BANK, ENTRY_ROW, ENTRY_SLOT, ENTRY_FIELDS = range(5)


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
    queues: Ints
    queue_info: Ints
    transactions: Ints


@inlined_helper
def _ready_at(s: State, rank: int, bank: int, kind: int, row: int, op: int) -> int:
    """Edge from which the queued command may go, as far as is known now; NEVER: another command must come first."""
    index = rank * s.params[b.BANKS] + bank
    if kind == 0:
        if s.banks[index, b.OPEN_ROW] >= 0 or s.ranks[rank, b.DOWN] == 1:
            return NEVER
        fourth_last = s.ranks[rank, FAW_EDGE + s.ranks[rank, FAW_POSITION]]
        ready = max(max(s.banks[index, IDLE_AT], s.banks[index, NEXT_ACT]), fourth_last + s.params[P_FAW])
        return int(ready)
    if s.banks[index, b.OPEN_ROW] != row or s.banks[index, ROW_ACCESSES] >= s.params[ROW_ACCESS_CAP]:
        return NEVER
    return int(s.banks[index, NEXT_WRITE] if op == 1 else s.banks[index, NEXT_READ])


@compiled_helper
def _remove(
    control: Ints, ranks: Ints, queues: Ints, queue_info: Ints, rank: int, queue: int, first: int, count: int
) -> None:
    """Take commands out of a queue."""
    ranks[rank, QUEUED] -= count
    control[QUEUED_TOTAL] -= count
    length = queue_info[queue, LENGTH]
    for i in range(first + count, length):
        for field in range(ENTRY_FIELDS):
            queues[queue, i - count, field] = queues[queue, i, field]
    queue_info[queue, LENGTH] = length - count


@compiled_helper
def _touch_rank(params: Ints, ranks: Ints, queue_info: Ints, rank: int) -> None:
    """A command went to the rank or it woke up: what was known about its queues no longer holds."""
    ranks[rank, PRE_WAKE] = -1
    if params[PER_BANK] == 1:
        for bank in range(params[b.BANKS]):
            queue_info[rank * params[b.BANKS] + bank, QUEUE_WAKE] = 0
    else:
        queue_info[rank, QUEUE_WAKE] = 0


@inlined_helper
def _issue_column(s: State, t: int, slot: int) -> None:
    rank = s.slots[slot, b.RANK]
    index = s.slots[slot, b.BANK_INDEX]
    bank = index - rank * s.params[b.BANKS]
    s.banks[index, WAITING] -= 1
    s.banks[index, WANTED] -= 1
    is_write = s.slots[slot, b.OP] == 1
    auto = s.params[OPEN_PAGE] == 0
    if is_write:
        to_pre, auto_pre = s.params[WRITE_TO_PRE], s.params[WRITE_AUTO_PRE]
        same_read, same_write = s.params[WRITE_TO_READ], s.params[COLUMN_TO_COLUMN]
        other_read, other_write = s.params[WRITE_TO_READ_OTHER_RANK], s.params[COLUMN_OTHER_RANK]
        command = b.WRA if auto else b.WR
        ring, latency = q.WRITTEN, s.params[b.WRITE_LATENCY]
        s.ranks[rank, b.WRITES] += 1
    else:
        to_pre, auto_pre = s.params[READ_TO_PRE], s.params[READ_AUTO_PRE]
        same_read, same_write = s.params[COLUMN_TO_COLUMN], s.params[READ_TO_WRITE]
        other_read, other_write = s.params[COLUMN_OTHER_RANK], s.params[READ_TO_WRITE]
        command = b.RDA if auto else b.RD
        ring, latency = q.READ_BACK, s.params[b.READ_LATENCY]
        s.ranks[rank, b.READS] += 1

    if auto:
        s.banks[index, NEXT_ACT] = max(s.banks[index, NEXT_ACT], t + auto_pre)
    else:
        s.banks[index, NEXT_PRE] = max(s.banks[index, NEXT_PRE], t + to_pre)
    for r in range(s.params[b.RANKS]):
        base = r * s.params[b.BANKS]
        if r == rank:
            for i in range(base, base + s.params[b.BANKS]):
                s.banks[i, NEXT_READ] = max(s.banks[i, NEXT_READ], t + same_read)
                s.banks[i, NEXT_WRITE] = max(s.banks[i, NEXT_WRITE], t + same_write)
        elif s.ranks[r, b.UNCLOSED] > 0 or t < s.ranks[r, b.ACTIVE_UNTIL]:
            # DRAMSim2 delays other ranks only where a row is open at this moment
            for i in range(base, base + s.params[b.BANKS]):
                if s.banks[i, b.OPEN_ROW] >= 0 or t < s.banks[i, CLOSE_AT]:
                    s.banks[i, NEXT_READ] = max(s.banks[i, NEXT_READ], t + other_read)
                    s.banks[i, NEXT_WRITE] = max(s.banks[i, NEXT_WRITE], t + other_write)
    if auto:
        s.banks[index, NEXT_READ] = s.banks[index, NEXT_ACT]
        s.banks[index, NEXT_WRITE] = s.banks[index, NEXT_ACT]
        b.settle(s.ranks, rank, t)
        s.banks[index, b.OPEN_ROW] = -1
        s.banks[index, CLOSE_AT] = t + to_pre
        s.banks[index, IDLE_AT] = t + to_pre + s.params[P_RP]
        s.ranks[rank, b.UNCLOSED] -= 1
        s.control[OPEN_TOTAL] -= 1
        s.ranks[rank, b.ACTIVE_UNTIL] = max(s.ranks[rank, b.ACTIVE_UNTIL], t + to_pre)
        s.ranks[rank, ALL_IDLE_AT] = max(s.ranks[rank, ALL_IDLE_AT], s.banks[index, IDLE_AT])

    identity = s.slots[slot, b.IDENTITY]
    q.complete(s.io, s.flight, s.request_log, ring, t, t + latency, s.slots[slot, b.TAG], identity)
    if s.io[q.LOGGING] == 1:
        s.request_log[identity, q.CAS] = t
    row, column = s.slots[slot, b.ROW], s.slots[slot, b.COLUMN]
    q.log_command(s.io, s.command_log, t, command, rank, bank, row, column, s.slots[slot, b.ARRIVED])
    b.free_slot(s.control, s.slots, slot)


@inlined_helper
def _issue_activate(s: State, t: int, rank: int, bank: int, row: int, arrived: int) -> None:
    base = rank * s.params[b.BANKS]
    index = base + bank
    b.settle(s.ranks, rank, t)
    s.banks[index, b.OPEN_ROW] = row
    queue = index if s.params[PER_BANK] == 1 else rank
    wanted = 0
    for i in range(s.queue_info[queue, LENGTH]):
        if (
            s.queues[queue, i, KIND] == 1
            and s.queues[queue, i, ENTRY_BANK] == bank
            and s.queues[queue, i, ENTRY_ROW] == row
        ):
            wanted += 1
    s.banks[index, WANTED] = wanted
    s.banks[index, NEXT_ACT] = max(s.banks[index, NEXT_ACT], t + s.params[P_RC])
    s.banks[index, NEXT_PRE] = max(s.banks[index, NEXT_PRE], t + s.params[P_RAS])
    s.banks[index, NEXT_READ] = max(s.banks[index, NEXT_READ], t + s.params[P_RCD])
    s.banks[index, NEXT_WRITE] = max(s.banks[index, NEXT_WRITE], t + s.params[P_RCD])
    for i in range(base, base + s.params[b.BANKS]):
        if i != index:
            s.banks[i, NEXT_ACT] = max(s.banks[i, NEXT_ACT], t + s.params[P_RRD])
    position = s.ranks[rank, FAW_POSITION]
    s.ranks[rank, FAW_EDGE + position] = t
    s.ranks[rank, FAW_POSITION] = (position + 1) & 3
    s.ranks[rank, b.UNCLOSED] += 1
    s.control[OPEN_TOTAL] += 1
    s.ranks[rank, b.ACTS] += 1
    if s.banks[index, b.CONFLICT] == 1:
        s.ranks[rank, b.CONFLICTS] += 1
        s.banks[index, b.CONFLICT] = 0
    else:
        s.ranks[rank, b.MISSES] += 1
    q.log_command(s.io, s.command_log, t, b.ACT, rank, bank, row, -1, arrived)


@inlined_helper
def _issue_precharge(s: State, t: int, rank: int, bank: int, conflict: int) -> None:
    index = rank * s.params[b.BANKS] + bank
    b.settle(s.ranks, rank, t)
    s.banks[index, b.OPEN_ROW] = -1
    s.banks[index, ROW_ACCESSES] = 0
    s.banks[index, IDLE_AT] = t + s.params[P_RP]
    s.banks[index, NEXT_ACT] = max(s.banks[index, NEXT_ACT], t + s.params[P_RP])
    s.banks[index, b.CONFLICT] = conflict
    s.ranks[rank, b.UNCLOSED] -= 1
    s.control[OPEN_TOTAL] -= 1
    s.ranks[rank, ALL_IDLE_AT] = max(s.ranks[rank, ALL_IDLE_AT], t + s.params[P_RP])
    s.ranks[rank, b.PRES] += 1
    q.log_command(s.io, s.command_log, t, b.PRE, rank, bank, -1, -1, -1)


@inlined_helper
def _issue_refresh(s: State, t: int) -> None:
    rank = s.control[REFRESH_RANK]
    b.settle(s.ranks, rank, t)
    free_at = t + s.params[P_RFC]
    for i in range(rank * s.params[b.BANKS], (rank + 1) * s.params[b.BANKS]):
        s.banks[i, NEXT_ACT] = free_at  # set, not maximum: DRAMSim2 does so
        s.banks[i, IDLE_AT] = free_at
    s.ranks[rank, ALL_IDLE_AT] = free_at
    s.ranks[rank, b.ACTIVE_UNTIL] = max(s.ranks[rank, b.ACTIVE_UNTIL], free_at)
    s.ranks[rank, WAITS_REFRESH] = 0
    s.ranks[rank, b.REFS] += 1
    if s.control[BACKLOG] > 0:
        s.control[BACKLOG] -= 1
        s.control[REFRESH_RANK] = (rank + 1) % s.params[b.RANKS]
    else:
        s.control[REFRESHING] = 0
        s.control[REFRESH_RANK] = -1
    q.log_command(s.io, s.command_log, t, b.REF, rank, -1, -1, -1, -1)


@compiled_helper
def _advance_pointer(params: Ints, control: Ints, first: int) -> None:
    """Round robin over (rank, bank); ``first`` is the position of the rank in ``control``, its bank follows."""
    if params[BANK_FIRST] == 1:
        control[first + 1] += 1
        if control[first + 1] == params[b.BANKS]:
            control[first + 1] = 0
            control[first] = (control[first] + 1) % params[b.RANKS]
    else:
        control[first] += 1
        if control[first] == params[b.RANKS]:
            control[first] = 0
            control[first + 1] = (control[first + 1] + 1) % params[b.BANKS]


@compiled_helper
def _refresh_due(t: int, params: Ints, ranks: Ints, control: Ints) -> tuple[bool, int]:
    """Start a refresh that falls due now, or wake its rank in time. Returns (something happened, next edge to look)."""
    rank = control[DUE_RANK]
    if t == control[DUE_EDGE]:
        if control[REFRESHING] == 1:
            if params[KEEP_REFRESHES] == 1:
                control[BACKLOG] += 1
            else:
                control[LOST_REFRESHES] += 1
                control[REFRESH_RANK] = rank
        else:
            control[REFRESHING] = 1
            control[REFRESH_RANK] = rank
        ranks[rank, WAITS_REFRESH] = 1
        # the last rank is followed by the first one of the next period
        interval = params[b.REFRESH_INTERVAL] // params[b.RANKS]
        if rank == params[b.RANKS] - 1:
            control[DUE_RANK] = 0
            control[DUE_EDGE] = t + params[b.REFRESH_INTERVAL] - interval * (params[b.RANKS] - 1)
        else:
            control[DUE_RANK] = rank + 1
            control[DUE_EDGE] = t + interval
        return True, t + 1
    if ranks[rank, b.DOWN] == 1 and ranks[rank, WAITS_REFRESH] == 0:
        if t >= control[DUE_EDGE] - params[P_XP]:
            ranks[rank, WAITS_REFRESH] = 1
            return True, t + 1
        return False, control[DUE_EDGE] - params[P_XP]
    return False, control[DUE_EDGE]


@inlined_helper
def _refresh_work(s: State, t: int) -> tuple[bool, int]:
    """Bring the rank that waits for its refresh closer to it. Returns (command issued, next edge to look)."""
    rank = s.control[REFRESH_RANK]
    base = rank * s.params[b.BANKS]
    for bank in range(s.params[b.BANKS]):
        index = base + bank
        open_row = s.banks[index, b.OPEN_ROW]
        if open_row >= 0:
            queue = index if s.params[PER_BANK] == 1 else rank
            close_row = True
            wake = NEVER
            for j in range(s.queue_info[queue, LENGTH]):
                if s.queues[queue, j, ENTRY_BANK] == bank and s.queues[queue, j, ENTRY_ROW] == open_row:
                    if s.queues[queue, j, KIND] == 1:
                        close_row = False
                        slot = s.queues[queue, j, ENTRY_SLOT]
                        ready = _ready_at(s, rank, bank, 1, open_row, s.slots[slot, b.OP])
                        if ready <= t:
                            _remove(s.control, s.ranks, s.queues, s.queue_info, rank, queue, j, 1)
                            _issue_column(s, t, slot)
                            return True, t + 1
                        wake = min(wake, ready)
                    break
            if s.params[OPEN_PAGE] == 1 and close_row:
                if t >= s.banks[index, NEXT_PRE]:
                    _issue_precharge(s, t, rank, bank, 0)
                    return True, t + 1
                wake = min(wake, s.banks[index, NEXT_PRE])
            return False, wake
        if t < s.banks[index, CLOSE_AT]:
            return False, s.banks[index, CLOSE_AT]
        if s.banks[index, NEXT_ACT] > t:
            return False, s.banks[index, NEXT_ACT]
    if s.ranks[rank, b.DOWN] == 1:
        return False, NEVER  # the power-up is an event of its own
    _issue_refresh(s, t)
    return True, t + 1


@inlined_helper
def _pick_in_queue(s: State, t: int, queue: int, rank: int) -> int:
    """Position of the command of this queue to issue now, or -1 (then QUEUE_WAKE tells when to look again)."""
    wake = NEVER
    length = s.queue_info[queue, LENGTH]
    if s.params[OPEN_PAGE] == 0 and s.params[PER_BANK] == 1:
        length = 1  # only the front command can go
    for i in range(length):
        kind = s.queues[queue, i, KIND]
        if s.params[OPEN_PAGE] == 0 and kind == 1 and i > 0 and s.queues[queue, i - 1, KIND] == 0:
            continue  # its own ACT is still to come
        bank = s.queues[queue, i, ENTRY_BANK]
        row = s.queues[queue, i, ENTRY_ROW]
        ready = _ready_at(s, rank, bank, kind, row, s.slots[s.queues[queue, i, ENTRY_SLOT], b.OP])
        if ready == NEVER or ready >= wake:
            continue
        if s.params[OPEN_PAGE] == 1:
            blocked = False
            for j in range(i):
                if (
                    s.queues[queue, j, KIND] == 1
                    and s.queues[queue, j, ENTRY_BANK] == bank
                    and s.queues[queue, j, ENTRY_ROW] == row
                ):
                    blocked = True
                    break
            if blocked:
                continue
        if ready <= t:
            return i
        wake = ready
    s.queue_info[queue, QUEUE_WAKE] = wake
    return -1


@inlined_helper
def _search_queues(s: State, t: int) -> tuple[bool, int]:
    """Round robin over the command queues. Returns (command issued, next edge to look)."""
    start_rank = s.control[NEXT_RANK]
    start_bank = s.control[NEXT_BANK]
    wake = NEVER
    while True:
        rank = s.control[NEXT_RANK]
        queue = rank * s.params[b.BANKS] + s.control[NEXT_BANK] if s.params[PER_BANK] == 1 else rank
        if s.queue_info[queue, LENGTH] > 0 and not (s.control[REFRESHING] == 1 and s.control[REFRESH_RANK] == rank):
            if s.queue_info[queue, QUEUE_WAKE] <= t:
                i = _pick_in_queue(s, t, queue, rank)
                if i >= 0:
                    bank = s.queues[queue, i, ENTRY_BANK]
                    row = s.queues[queue, i, ENTRY_ROW]
                    slot = s.queues[queue, i, ENTRY_SLOT]
                    kind = s.queues[queue, i, KIND]
                    if s.params[OPEN_PAGE] == 1 and i > 0 and s.queues[queue, i - 1, KIND] == 0:
                        # a row hit: the ACT of this request is not needed
                        s.banks[rank * s.params[b.BANKS] + bank, ROW_ACCESSES] += 1
                        s.ranks[rank, b.HITS] += 1
                        _remove(s.control, s.ranks, s.queues, s.queue_info, rank, queue, i - 1, 2)
                    else:
                        _remove(s.control, s.ranks, s.queues, s.queue_info, rank, queue, i, 1)
                    if kind == 0:
                        _issue_activate(s, t, rank, bank, row, s.slots[slot, b.ARRIVED])
                    else:
                        _issue_column(s, t, slot)
                    _touch_rank(s.params, s.ranks, s.queue_info, rank)
                    return True, t + 1
            wake = min(wake, s.queue_info[queue, QUEUE_WAKE])
        if s.params[PER_BANK] == 1:
            _advance_pointer(s.params, s.control, NEXT_RANK)
        else:
            s.control[NEXT_RANK] = (rank + 1) % s.params[b.RANKS]
        if s.control[NEXT_RANK] == start_rank and s.control[NEXT_BANK] == start_bank:
            return False, wake


@inlined_helper
def _search_rows_to_close(s: State, t: int) -> tuple[bool, int]:
    """Close an open row for which nothing waits or which has had its share. Returns (issued, next edge to look)."""
    banks_in_rank = s.params[b.BANKS]
    wake = NEVER
    for rank in range(s.params[b.RANKS]):
        if s.ranks[rank, b.UNCLOSED] > 0:
            if s.ranks[rank, PRE_WAKE] < 0:
                earliest = NEVER
                for index in range(rank * banks_in_rank, (rank + 1) * banks_in_rank):
                    if s.banks[index, b.OPEN_ROW] >= 0 and (
                        s.banks[index, WANTED] == 0 or s.banks[index, ROW_ACCESSES] == s.params[ROW_ACCESS_CAP]
                    ):
                        earliest = min(earliest, s.banks[index, NEXT_PRE])
                s.ranks[rank, PRE_WAKE] = earliest
            wake = min(wake, s.ranks[rank, PRE_WAKE])
    if wake > t:
        return False, wake
    while True:
        rank = s.control[NEXT_RANK_PRE]
        bank = s.control[NEXT_BANK_PRE]
        if s.ranks[rank, b.UNCLOSED] > 0 and s.ranks[rank, PRE_WAKE] <= t:
            index = rank * banks_in_rank + bank
            if (
                s.banks[index, b.OPEN_ROW] >= 0
                and t >= s.banks[index, NEXT_PRE]
                and (s.banks[index, WANTED] == 0 or s.banks[index, ROW_ACCESSES] == s.params[ROW_ACCESS_CAP])
            ):
                conflict = 1 if s.banks[index, WAITING] > 0 else 0
                _issue_precharge(s, t, rank, bank, conflict)
                _touch_rank(s.params, s.ranks, s.queue_info, rank)
                return True, t + 1
        _advance_pointer(s.params, s.control, NEXT_RANK_PRE)


@inlined_helper
def _accept(s: State, t: int) -> tuple[bool, int]:
    """Take staged requests into the transaction queue. Returns (any taken, next edge to look)."""
    taken = 0
    while s.io[q.STAGED_HEAD] < s.io[q.STAGED_TAIL] and s.control[TRANSACTIONS] < s.transactions.shape[0]:
        head = s.io[q.STAGED_HEAD]
        if s.staged[0, head, q.STAGED_EDGE] > t:
            return taken > 0, s.staged[0, head, q.STAGED_EDGE]
        if taken == s.params[b.REQUESTS_PER_CLOCK]:
            return True, t + 1
        identity = s.staged[0, head, q.STAGED_ID]
        slot = b.take_slot(
            s.control, s.slots, s.staged[0, head, q.STAGED_OP], s.staged[0, head, q.STAGED_TAG], identity, t
        )
        b.decode(s.params, s.slots, slot, s.staged[0, head, q.STAGED_ADDRESS])
        s.transactions[s.control[TRANSACTIONS]] = slot
        s.control[TRANSACTIONS] += 1
        if s.io[q.LOGGING] == 1:
            s.request_log[identity, q.ACCEPTED] = t
        s.io[q.STAGED_HEAD] = head + 1
        taken += 1
    return taken > 0, NEVER


@inlined_helper
def _move_transaction(s: State) -> bool:
    """Move the first transaction whose command queue has room for its ACT and its column command."""
    for i in range(s.control[TRANSACTIONS]):
        slot = s.transactions[i]
        rank = s.slots[slot, b.RANK]
        index = s.slots[slot, b.BANK_INDEX]
        row = s.slots[slot, b.ROW]
        queue = index if s.params[PER_BANK] == 1 else rank
        length = s.queue_info[queue, LENGTH]
        if s.queues.shape[1] - length < 2:
            continue
        for kind in range(2):
            s.queues[queue, length + kind, KIND] = kind
            s.queues[queue, length + kind, ENTRY_BANK] = index - rank * s.params[b.BANKS]
            s.queues[queue, length + kind, ENTRY_ROW] = row
            s.queues[queue, length + kind, ENTRY_SLOT] = slot
        s.queue_info[queue, LENGTH] = length + 2
        s.queue_info[queue, QUEUE_WAKE] = 0
        s.ranks[rank, QUEUED] += 2
        s.ranks[rank, PRE_WAKE] = -1
        s.control[QUEUED_TOTAL] += 2
        s.banks[index, WAITING] += 1
        if s.banks[index, b.OPEN_ROW] == row:
            s.banks[index, WANTED] += 1
        s.control[TRANSACTIONS] -= 1
        for j in range(i, s.control[TRANSACTIONS]):
            s.transactions[j] = s.transactions[j + 1]
        return True
    return False


@inlined_helper
def _power(s: State, t: int) -> tuple[bool, int]:
    """Power ranks down that have nothing to do, and up that have. Returns (something happened, next edge to look)."""
    changed = False
    wake = NEVER
    for rank in range(s.params[b.RANKS]):
        needed = s.ranks[rank, QUEUED] > 0 or s.ranks[rank, WAITS_REFRESH] == 1
        if s.ranks[rank, b.DOWN] == 1:
            if needed:
                if t >= s.ranks[rank, NEXT_UP]:
                    b.settle(s.ranks, rank, t)
                    s.ranks[rank, b.DOWN] = 0
                    for i in range(rank * s.params[b.BANKS], (rank + 1) * s.params[b.BANKS]):
                        s.banks[i, NEXT_ACT] = t + s.params[P_XP]
                    _touch_rank(s.params, s.ranks, s.queue_info, rank)
                    changed = True
                else:
                    wake = min(wake, s.ranks[rank, NEXT_UP])
        elif not needed and s.ranks[rank, b.UNCLOSED] == 0:
            if t >= s.ranks[rank, ALL_IDLE_AT]:
                b.settle(s.ranks, rank, t)
                s.ranks[rank, b.DOWN] = 1
                s.ranks[rank, NEXT_UP] = t + s.params[P_CKE]
                changed = True
            else:
                wake = min(wake, s.ranks[rank, ALL_IDLE_AT])
    return changed, wake


@compiled_helper
def run_state(until: int, s: State) -> int:
    """See `run`."""
    params, io, flight, command_log = s.params, s.io, s.flight, s.command_log
    control, ranks, queue_info = s.control, s.ranks, s.queue_info
    t = int(io[q.WAKE])
    while t < until and io[q.COMMANDS] < command_log.shape[0]:
        q.end_quiet(io, t)
        acted, wake = _accept(s, t)
        asked = control[TRANSACTIONS] + control[QUEUED_TOTAL] > 0
        happened, edge = _refresh_due(t, params, ranks, control)
        acted |= happened
        wake = min(wake, edge)

        issued = False
        if control[REFRESHING] == 1:
            rank = control[REFRESH_RANK]
            issued, edge = _refresh_work(s, t)
            if issued:
                _touch_rank(params, ranks, queue_info, rank)
            wake = min(wake, edge)
        if not issued and control[QUEUED_TOTAL] > 0:
            issued, edge = _search_queues(s, t)
            wake = min(wake, edge)
        if not issued and params[OPEN_PAGE] == 1 and control[OPEN_TOTAL] > 0:
            issued, edge = _search_rows_to_close(s, t)
            wake = min(wake, edge)
        if issued:
            acted = True
            if params[POSTED_CAS] == 1 and control[SECOND_OF_PAIR] == 0:
                control[SECOND_OF_PAIR] = 1
            else:
                control[SECOND_OF_PAIR] = 0
                _advance_pointer(params, control, NEXT_RANK)

        if control[TRANSACTIONS] > 0:
            acted |= _move_transaction(s)
        if params[LOW_POWER] == 1:
            if acted or t >= control[POWER_WAKE]:
                happened, edge = _power(s, t)
                acted |= happened
                control[POWER_WAKE] = t + 1 if happened else edge
            wake = min(wake, control[POWER_WAKE])
        if control[TRANSACTIONS] + control[QUEUED_TOTAL] == 0:
            io[q.QUIET_SINCE] = t + 1 if asked else t  # nothing is waited for
        t = t + 1 if acted else max(wake, t + 1)
    q.leave(io, flight, t)
    return t


@compiled
def run(
    until: int, params: Ints, io: Ints, staged: Ints, flight: Ints, request_log: Ints, command_log: Ints, control: Ints,
    ranks: Ints, banks: Ints, slots: Ints, queues: Ints, queue_info: Ints, transactions: Ints,
) -> int:  # fmt: skip
    """Run all DRAM edges before ``until``. Stops early (WAKE < until) when the command log is full.

    Returns WAKE, the first edge not yet run at which something can happen.
    """
    state = State(
        params, io, staged, flight, request_log, command_log, control, ranks, banks, slots, queues, queue_info,
        transactions,
    )  # fmt: skip
    return int(run_state(until, state))
