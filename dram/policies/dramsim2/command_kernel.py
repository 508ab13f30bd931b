"""What the kernel of the ``dramsim2`` policy keeps, and what each command does to it.

Positions in the arrays, the arrays themselves, and for every command the edge from which it may go and its issue.
:mod:`dram.policies.dramsim2.kernel` decides which command goes.
"""

from typing import NamedTuple

from cosa.common.compile_cache import compiled_helper, inlined_helper
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
def ready_at(s: State, rank: int, bank: int, kind: int, row: int, op: int) -> int:
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
def remove(
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
def touch_rank(params: Ints, ranks: Ints, queue_info: Ints, rank: int) -> None:
    """A command went to the rank or it woke up: what was known about its queues no longer holds."""
    ranks[rank, PRE_WAKE] = -1
    if params[PER_BANK] == 1:
        for bank in range(params[b.BANKS]):
            queue_info[rank * params[b.BANKS] + bank, QUEUE_WAKE] = 0
    else:
        queue_info[rank, QUEUE_WAKE] = 0


@inlined_helper
def issue_column(s: State, t: int, slot: int) -> None:
    """Send the read or write of a request, which completes with it."""
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
def issue_activate(s: State, t: int, rank: int, bank: int, row: int, arrived: int) -> None:
    """Open a row, for a request accepted at edge ``arrived``."""
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
def issue_precharge(s: State, t: int, rank: int, bank: int, conflict: int) -> None:
    """Close the open row of a bank; ``conflict`` is 1 if a request waits for another one."""
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
def issue_refresh(s: State, t: int) -> None:
    """Refresh the rank that waits for it, and name the next one if refreshes are kept."""
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
