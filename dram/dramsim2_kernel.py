"""The cycle loop of the ``dramsim2`` policy: one call runs a channel up to a given DRAM edge.

It restates what DRAMSim2 does in one clock call, in the order in which it does it: requests are accepted, a refresh
falls due, at most one command is issued, one request moves from the transaction queue to a command queue, ranks power
down or up. Countdowns of the original are kept as time stamps, so that edges in which nothing can happen are jumped
over: a step in which nothing happened returns the least time stamp it compared the clock with.

Kernel, helpers and constants stand in this one file because the compiled code is cached by file.
"""

import numpy as np
import numpy.typing as npt

from cosa.common.compile_cache import compiled, compiled_helper

Ints = npt.NDArray[np.int64]

NEVER = 1 << 62

# io, see queues_kernel.py
WAKE = 0
PENDING = 1
STAGED_HEAD = 2
STAGED_TAIL = 3
FLIGHT_HEAD = 6
FLIGHT_TAIL = 7
FIRST_VISIBLE = 12
COMMANDS = 13
LOGGING = 14
RATIO_NUM = 15
RATIO_DEN = 16
QUIET = 17
QUIET_SINCE = 18
STAGED_EDGE = 0
STAGED_OP = 1
STAGED_ADDRESS = 2
STAGED_TAG = 3
STAGED_ID = 4
FLIGHT_VISIBLE = 0
FLIGHT_EDGE = 1
FLIGHT_TAG = 2

# params: read only
RANKS = 0
BANKS = 1
OPEN_PAGE = 2
PER_BANK = 3
BANK_FIRST = 4
LOW_POWER = 5
KEEP_REFRESHES = 6
ROW_ACCESS_CAP = 7
REQUESTS_PER_CLOCK = 8
POSTED_CAS = 9
P_RC = 10
P_RAS = 11
P_RCD = 12  # tRCD - AL
P_RRD = 13
P_RP = 14
P_RFC = 15
P_FAW = 16
P_REFI = 17
P_XP = 18
P_CKE = 19
READ_TO_PRE = 20
READ_AUTO_PRE = 21
WRITE_TO_PRE = 22
WRITE_AUTO_PRE = 23
COLUMN_TO_COLUMN = 24
COLUMN_OTHER_RANK = 25
READ_TO_WRITE = 26
WRITE_TO_READ = 27
WRITE_TO_READ_OTHER_RANK = 28
READ_LATENCY = 29  # column command to completion, edges
WRITE_LATENCY = 30
SHIFT_RANK = 31
MASK_RANK = 32
SHIFT_BANK = 33
MASK_BANK = 34
SHIFT_ROW = 35
MASK_ROW = 36
SHIFT_COLUMN = 37
MASK_COLUMN = 38
PARAMS_SIZE = 39

# control: the scalars that change
NEXT_RANK = 0
NEXT_BANK = 1
NEXT_RANK_PRE = 2
NEXT_BANK_PRE = 3
SECOND_OF_PAIR = 4
DUE_EDGE = 5
DUE_RANK = 6
REFRESHING = 7  # 1: a refresh waits for REFRESH_RANK
REFRESH_RANK = 8
BACKLOG = 9  # further refreshes due behind it (only with KEEP_REFRESHES)
TRANSACTIONS = 10
FREE_SLOTS = 11
ROW_HITS = 12
ROW_MISSES = 13
ROW_CONFLICTS = 14
LOST_REFRESHES = 15
QUEUED_TOTAL = 16  # commands in all queues
OPEN_TOTAL = 17  # banks with a row open that will not close by itself
POWER_WAKE = 18  # before this edge no rank changes its power state
CONTROL_SIZE = 19

# banks
OPEN_ROW = 0  # -1: closed, or closing by itself
CLOSE_AT = 1  # with auto-precharge: the row counts as open before this edge
IDLE_AT = 2
NEXT_ACT = 3
NEXT_READ = 4
NEXT_WRITE = 5
NEXT_PRE = 6
ROW_ACCESSES = 7
CONFLICT = 8  # closed while requests for another row of it waited
WAITING = 9  # requests in the command queues for the bank
WANTED = 10  # those among them for the open row
BANK_FIELDS = 11

# ranks
QUEUED = 0
WAITS_REFRESH = 1
DOWN = 2
NEXT_UP = 3
UNCLOSED = 4  # banks with a row open that will not close by itself
ALL_IDLE_AT = 5
ACTIVE_UNTIL = 6
SETTLED_TO = 7
ACTIVE_CYCLES = 8
DOWN_CYCLES = 9
STANDBY_CYCLES = 10
PRE_WAKE = 11  # edge from which a row of the rank may be closed for lack of work; -1: to be found out anew
FAW_POSITION = 12
FAW_EDGE = 13  # to 16
ACTS = 17
PRES = 18
REFS = 19
READS = 20
WRITES = 21
RANK_FIELDS = 22

# command queues: queue_info
LENGTH = 0
QUEUE_WAKE = 1  # before this edge nothing in the queue can be issued
QUEUE_INFO_FIELDS = 2
# an entry of a command queue
KIND = 0  # 0 ACT, 1 column command
ENTRY_BANK = 1
ENTRY_ROW = 2
ENTRY_SLOT = 3
ENTRY_FIELDS = 4
# a slot: the request behind a pair of entries; also the columns of a transaction
SLOT_OP = 0
SLOT_COLUMN = 1
SLOT_TAG = 2
SLOT_ID = 3
SLOT_RANK = 4
SLOT_BANK = 5
SLOT_ROW = 6
SLOT_ARRIVED = 7
SLOT_FREE = 8  # column used as the stack of free slots
SLOT_FIELDS = 9

LOG_ACCEPTED = 0
LOG_CAS = 1
LOG_COMPLETED = 2

CMD_ACT = 0
CMD_PRE = 1
CMD_RD = 3
CMD_WR = 4
CMD_REF = 5
CMD_RDA = 6
CMD_WRA = 7


@compiled_helper
def _settle(ranks: Ints, rank: int, edge: int) -> None:
    """Charge the edges before ``edge`` to the power state the rank has been in."""
    start = ranks[rank, SETTLED_TO]
    cycles = edge - start
    if cycles <= 0:
        return
    ranks[rank, SETTLED_TO] = edge
    if ranks[rank, UNCLOSED] > 0:
        ranks[rank, ACTIVE_CYCLES] += cycles
    elif ranks[rank, DOWN] == 1:
        ranks[rank, DOWN_CYCLES] += cycles
    else:
        active = min(max(ranks[rank, ACTIVE_UNTIL] - start, 0), cycles)
        ranks[rank, ACTIVE_CYCLES] += active
        ranks[rank, STANDBY_CYCLES] += cycles - active


@compiled
def settle_all(ranks: Ints, edge: int) -> None:
    """Bring the power state counters of all ranks up to ``edge``."""
    for rank in range(ranks.shape[0]):
        _settle(ranks, rank, edge)


@compiled_helper
def _ready_at(params: Ints, ranks: Ints, banks: Ints, rank: int, bank: int, kind: int, row: int, op: int) -> int:
    """Edge from which the queued command may go, as far as is known now; NEVER: another command must come first."""
    index = rank * params[BANKS] + bank
    if kind == 0:
        if banks[index, OPEN_ROW] >= 0 or ranks[rank, DOWN] == 1:
            return NEVER
        fourth_last = ranks[rank, FAW_EDGE + ranks[rank, FAW_POSITION]]
        ready = max(max(banks[index, IDLE_AT], banks[index, NEXT_ACT]), fourth_last + params[P_FAW])
        return int(ready)
    if banks[index, OPEN_ROW] != row or banks[index, ROW_ACCESSES] >= params[ROW_ACCESS_CAP]:
        return NEVER
    return int(banks[index, NEXT_WRITE] if op == 1 else banks[index, NEXT_READ])


@compiled_helper
def _remove(queues: Ints, queue_info: Ints, queue: int, first: int, count: int) -> None:
    length = queue_info[queue, LENGTH]
    for i in range(first + count, length):
        for field in range(ENTRY_FIELDS):
            queues[queue, i - count, field] = queues[queue, i, field]
    queue_info[queue, LENGTH] = length - count


@compiled_helper
def _log_command(
    io: Ints, command_log: Ints, edge: int, command: int, rank: int, bank: int, row: int, column: int, arrived: int
) -> None:
    n = io[COMMANDS]
    command_log[n, 0] = edge
    command_log[n, 1] = command
    command_log[n, 2] = rank
    command_log[n, 3] = bank
    command_log[n, 4] = row
    command_log[n, 5] = column
    command_log[n, 6] = arrived
    command_log[n, 7] = io[QUIET]
    io[COMMANDS] = n + 1


@compiled_helper
def _touch_rank(params: Ints, ranks: Ints, queue_info: Ints, rank: int) -> None:
    """A command went to the rank or it woke up: what was known about its queues no longer holds."""
    ranks[rank, PRE_WAKE] = -1
    if params[PER_BANK] == 1:
        for bank in range(params[BANKS]):
            queue_info[rank * params[BANKS] + bank, QUEUE_WAKE] = 0
    else:
        queue_info[rank, QUEUE_WAKE] = 0


@compiled_helper
def _issue_column(
    t: int, params: Ints, io: Ints, ranks: Ints, banks: Ints, slots: Ints, control: Ints, slot: int,
    flight: Ints, request_log: Ints, command_log: Ints,
) -> None:  # fmt: skip
    rank = slots[slot, SLOT_RANK]
    bank = slots[slot, SLOT_BANK]
    index = rank * params[BANKS] + bank
    banks[index, WAITING] -= 1
    banks[index, WANTED] -= 1
    is_write = slots[slot, SLOT_OP] == 1
    auto = params[OPEN_PAGE] == 0
    if is_write:
        to_pre, auto_pre = params[WRITE_TO_PRE], params[WRITE_AUTO_PRE]
        same_read, same_write = params[WRITE_TO_READ], params[COLUMN_TO_COLUMN]
        other_read, other_write = params[WRITE_TO_READ_OTHER_RANK], params[COLUMN_OTHER_RANK]
        command = CMD_WRA if auto else CMD_WR
        latency = params[WRITE_LATENCY]
        ranks[rank, WRITES] += 1
    else:
        to_pre, auto_pre = params[READ_TO_PRE], params[READ_AUTO_PRE]
        same_read, same_write = params[COLUMN_TO_COLUMN], params[READ_TO_WRITE]
        other_read, other_write = params[COLUMN_OTHER_RANK], params[READ_TO_WRITE]
        command = CMD_RDA if auto else CMD_RD
        latency = params[READ_LATENCY]
        ranks[rank, READS] += 1

    if auto:
        banks[index, NEXT_ACT] = max(banks[index, NEXT_ACT], t + auto_pre)
    else:
        banks[index, NEXT_PRE] = max(banks[index, NEXT_PRE], t + to_pre)
    for r in range(params[RANKS]):
        base = r * params[BANKS]
        if r == rank:
            for i in range(base, base + params[BANKS]):
                banks[i, NEXT_READ] = max(banks[i, NEXT_READ], t + same_read)
                banks[i, NEXT_WRITE] = max(banks[i, NEXT_WRITE], t + same_write)
        elif ranks[r, UNCLOSED] > 0 or t < ranks[r, ACTIVE_UNTIL]:
            # DRAMSim2 delays other ranks only where a row is open at this moment
            for i in range(base, base + params[BANKS]):
                if banks[i, OPEN_ROW] >= 0 or t < banks[i, CLOSE_AT]:
                    banks[i, NEXT_READ] = max(banks[i, NEXT_READ], t + other_read)
                    banks[i, NEXT_WRITE] = max(banks[i, NEXT_WRITE], t + other_write)
    if auto:
        banks[index, NEXT_READ] = banks[index, NEXT_ACT]
        banks[index, NEXT_WRITE] = banks[index, NEXT_ACT]
        _settle(ranks, rank, t)
        banks[index, OPEN_ROW] = -1
        banks[index, CLOSE_AT] = t + to_pre
        banks[index, IDLE_AT] = t + to_pre + params[P_RP]
        ranks[rank, UNCLOSED] -= 1
        control[OPEN_TOTAL] -= 1
        ranks[rank, ACTIVE_UNTIL] = max(ranks[rank, ACTIVE_UNTIL], t + to_pre)
        ranks[rank, ALL_IDLE_AT] = max(ranks[rank, ALL_IDLE_AT], banks[index, IDLE_AT])

    completed = t + latency
    ring = 0 if is_write else 1
    mask = flight.shape[1] - 1
    at = io[FLIGHT_TAIL + 2 * ring] & mask
    flight[ring, at, FLIGHT_VISIBLE] = -((-completed * io[RATIO_DEN]) // io[RATIO_NUM])
    flight[ring, at, FLIGHT_EDGE] = completed
    flight[ring, at, FLIGHT_TAG] = slots[slot, SLOT_TAG]
    io[FLIGHT_TAIL + 2 * ring] += 1
    if io[LOGGING] == 1:
        request_log[slots[slot, SLOT_ID], LOG_CAS] = t
        request_log[slots[slot, SLOT_ID], LOG_COMPLETED] = completed
    _log_command(
        io, command_log, t, command, rank, bank, slots[slot, SLOT_ROW], slots[slot, SLOT_COLUMN],
        slots[slot, SLOT_ARRIVED],
    )  # fmt: skip
    free = control[FREE_SLOTS]
    slots[free, SLOT_FREE] = slot
    control[FREE_SLOTS] = free + 1


@compiled_helper
def _issue_activate(
    t: int, params: Ints, io: Ints, ranks: Ints, banks: Ints, control: Ints, rank: int, bank: int, row: int,
    queues: Ints, queue_info: Ints, command_log: Ints, arrived: int,
) -> None:  # fmt: skip
    base = rank * params[BANKS]
    index = base + bank
    _settle(ranks, rank, t)
    banks[index, OPEN_ROW] = row
    queue = index if params[PER_BANK] == 1 else rank
    wanted = 0
    for i in range(queue_info[queue, LENGTH]):
        if queues[queue, i, KIND] == 1 and queues[queue, i, ENTRY_BANK] == bank and queues[queue, i, ENTRY_ROW] == row:
            wanted += 1
    banks[index, WANTED] = wanted
    banks[index, NEXT_ACT] = max(banks[index, NEXT_ACT], t + params[P_RC])
    banks[index, NEXT_PRE] = max(banks[index, NEXT_PRE], t + params[P_RAS])
    banks[index, NEXT_READ] = max(banks[index, NEXT_READ], t + params[P_RCD])
    banks[index, NEXT_WRITE] = max(banks[index, NEXT_WRITE], t + params[P_RCD])
    for i in range(base, base + params[BANKS]):
        if i != index:
            banks[i, NEXT_ACT] = max(banks[i, NEXT_ACT], t + params[P_RRD])
    position = ranks[rank, FAW_POSITION]
    ranks[rank, FAW_EDGE + position] = t
    ranks[rank, FAW_POSITION] = (position + 1) & 3
    ranks[rank, UNCLOSED] += 1
    control[OPEN_TOTAL] += 1
    ranks[rank, ACTS] += 1
    if banks[index, CONFLICT] == 1:
        control[ROW_CONFLICTS] += 1
        banks[index, CONFLICT] = 0
    else:
        control[ROW_MISSES] += 1
    _log_command(io, command_log, t, CMD_ACT, rank, bank, row, -1, arrived)


@compiled_helper
def _issue_precharge(
    t: int, params: Ints, io: Ints, ranks: Ints, banks: Ints, control: Ints, rank: int, bank: int, conflict: int,
    command_log: Ints,
) -> None:  # fmt: skip
    index = rank * params[BANKS] + bank
    _settle(ranks, rank, t)
    banks[index, OPEN_ROW] = -1
    banks[index, ROW_ACCESSES] = 0
    banks[index, IDLE_AT] = t + params[P_RP]
    banks[index, NEXT_ACT] = max(banks[index, NEXT_ACT], t + params[P_RP])
    banks[index, CONFLICT] = conflict
    ranks[rank, UNCLOSED] -= 1
    control[OPEN_TOTAL] -= 1
    ranks[rank, ALL_IDLE_AT] = max(ranks[rank, ALL_IDLE_AT], t + params[P_RP])
    ranks[rank, PRES] += 1
    _log_command(io, command_log, t, CMD_PRE, rank, bank, -1, -1, -1)


@compiled_helper
def _issue_refresh(t: int, params: Ints, io: Ints, ranks: Ints, banks: Ints, control: Ints, command_log: Ints) -> None:
    rank = control[REFRESH_RANK]
    _settle(ranks, rank, t)
    free_at = t + params[P_RFC]
    for i in range(rank * params[BANKS], (rank + 1) * params[BANKS]):
        banks[i, NEXT_ACT] = free_at  # set, not maximum: DRAMSim2 does so
        banks[i, IDLE_AT] = free_at
    ranks[rank, ALL_IDLE_AT] = free_at
    ranks[rank, ACTIVE_UNTIL] = max(ranks[rank, ACTIVE_UNTIL], free_at)
    ranks[rank, WAITS_REFRESH] = 0
    ranks[rank, REFS] += 1
    if control[BACKLOG] > 0:
        control[BACKLOG] -= 1
        control[REFRESH_RANK] = (rank + 1) % params[RANKS]
    else:
        control[REFRESHING] = 0
        control[REFRESH_RANK] = -1
    _log_command(io, command_log, t, CMD_REF, rank, -1, -1, -1, -1)


@compiled_helper
def _advance_pointer(params: Ints, control: Ints, first: int) -> None:
    """Round robin over (rank, bank); ``first`` is the position of the rank in ``control``, its bank follows."""
    if params[BANK_FIRST] == 1:
        control[first + 1] += 1
        if control[first + 1] == params[BANKS]:
            control[first + 1] = 0
            control[first] = (control[first] + 1) % params[RANKS]
    else:
        control[first] += 1
        if control[first] == params[RANKS]:
            control[first] = 0
            control[first + 1] = (control[first + 1] + 1) % params[BANKS]


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
        # the ranks are due REFI // ranks apart; the last one is followed by the first of the next period
        if rank == params[RANKS] - 1:
            control[DUE_RANK] = 0
            control[DUE_EDGE] = t - (params[P_REFI] // params[RANKS]) * (params[RANKS] - 1) + params[P_REFI]
        else:
            control[DUE_RANK] = rank + 1
            control[DUE_EDGE] = t + params[P_REFI] // params[RANKS]
        return True, t + 1
    if ranks[rank, DOWN] == 1 and ranks[rank, WAITS_REFRESH] == 0:
        if t >= control[DUE_EDGE] - params[P_XP]:
            ranks[rank, WAITS_REFRESH] = 1
            return True, t + 1
        return False, control[DUE_EDGE] - params[P_XP]
    return False, control[DUE_EDGE]


@compiled_helper
def _refresh_work(
    t: int, params: Ints, io: Ints, ranks: Ints, banks: Ints, control: Ints, queues: Ints, queue_info: Ints,
    slots: Ints, flight: Ints, request_log: Ints, command_log: Ints,
) -> tuple[bool, int]:  # fmt: skip
    """Bring the rank that waits for its refresh closer to it. Returns (command issued, next edge to look)."""
    rank = control[REFRESH_RANK]
    base = rank * params[BANKS]
    for bank in range(params[BANKS]):
        index = base + bank
        if banks[index, OPEN_ROW] >= 0:
            queue = index if params[PER_BANK] == 1 else rank
            close_row = True
            wake = NEVER
            for j in range(queue_info[queue, LENGTH]):
                if queues[queue, j, ENTRY_BANK] == bank and queues[queue, j, ENTRY_ROW] == banks[index, OPEN_ROW]:
                    if queues[queue, j, KIND] == 1:
                        close_row = False
                        slot = queues[queue, j, ENTRY_SLOT]
                        ready = _ready_at(
                            params, ranks, banks, rank, bank, 1, banks[index, OPEN_ROW], slots[slot, SLOT_OP]
                        )
                        if ready <= t:
                            _remove(queues, queue_info, queue, j, 1)
                            ranks[rank, QUEUED] -= 1
                            control[QUEUED_TOTAL] -= 1
                            _issue_column(
                                t, params, io, ranks, banks, slots, control, slot, flight, request_log, command_log
                            )
                            return True, t + 1
                        wake = min(wake, ready)
                    break
            if params[OPEN_PAGE] == 1 and close_row:
                if t >= banks[index, NEXT_PRE]:
                    _issue_precharge(t, params, io, ranks, banks, control, rank, bank, 0, command_log)
                    return True, t + 1
                wake = min(wake, banks[index, NEXT_PRE])
            return False, wake
        if t < banks[index, CLOSE_AT]:
            return False, banks[index, CLOSE_AT]
        if banks[index, NEXT_ACT] > t:
            return False, banks[index, NEXT_ACT]
    if ranks[rank, DOWN] == 1:
        return False, NEVER  # the power-up is an event of its own
    _issue_refresh(t, params, io, ranks, banks, control, command_log)
    return True, t + 1


@compiled_helper
def _pick_in_queue(
    t: int, params: Ints, ranks: Ints, banks: Ints, queues: Ints, queue_info: Ints, slots: Ints, queue: int, rank: int
) -> int:
    """Position of the command of this queue to issue now, or -1 (then QUEUE_WAKE tells when to look again)."""
    wake = NEVER
    length = queue_info[queue, LENGTH]
    if params[OPEN_PAGE] == 0 and params[PER_BANK] == 1:
        length = 1  # only the front command can go
    for i in range(length):
        kind = queues[queue, i, KIND]
        if params[OPEN_PAGE] == 0 and kind == 1 and i > 0 and queues[queue, i - 1, KIND] == 0:
            continue  # its own ACT is still to come
        bank = queues[queue, i, ENTRY_BANK]
        row = queues[queue, i, ENTRY_ROW]
        ready = _ready_at(params, ranks, banks, rank, bank, kind, row, slots[queues[queue, i, ENTRY_SLOT], SLOT_OP])
        if ready == NEVER or ready >= wake:
            continue
        if params[OPEN_PAGE] == 1:
            blocked = False
            for j in range(i):
                if (
                    queues[queue, j, KIND] == 1
                    and queues[queue, j, ENTRY_BANK] == bank
                    and queues[queue, j, ENTRY_ROW] == row
                ):
                    blocked = True
                    break
            if blocked:
                continue
        if ready <= t:
            return i
        wake = ready
    queue_info[queue, QUEUE_WAKE] = wake
    return -1


@compiled_helper
def _search_queues(
    t: int, params: Ints, io: Ints, ranks: Ints, banks: Ints, control: Ints, queues: Ints, queue_info: Ints,
    slots: Ints, flight: Ints, request_log: Ints, command_log: Ints,
) -> tuple[bool, int]:  # fmt: skip
    """Round robin over the command queues. Returns (command issued, next edge to look)."""
    start_rank = control[NEXT_RANK]
    start_bank = control[NEXT_BANK]
    wake = NEVER
    while True:
        rank = control[NEXT_RANK]
        queue = rank * params[BANKS] + control[NEXT_BANK] if params[PER_BANK] == 1 else rank
        if queue_info[queue, LENGTH] > 0 and not (control[REFRESHING] == 1 and control[REFRESH_RANK] == rank):
            if queue_info[queue, QUEUE_WAKE] <= t:
                i = _pick_in_queue(t, params, ranks, banks, queues, queue_info, slots, queue, rank)
                if i >= 0:
                    bank = queues[queue, i, ENTRY_BANK]
                    row = queues[queue, i, ENTRY_ROW]
                    slot = queues[queue, i, ENTRY_SLOT]
                    kind = queues[queue, i, KIND]
                    if params[OPEN_PAGE] == 1 and i > 0 and queues[queue, i - 1, KIND] == 0:
                        # a row hit: the ACT of this request is not needed
                        banks[rank * params[BANKS] + bank, ROW_ACCESSES] += 1
                        control[ROW_HITS] += 1
                        _remove(queues, queue_info, queue, i - 1, 2)
                        ranks[rank, QUEUED] -= 2
                        control[QUEUED_TOTAL] -= 2
                    else:
                        _remove(queues, queue_info, queue, i, 1)
                        ranks[rank, QUEUED] -= 1
                        control[QUEUED_TOTAL] -= 1
                    if kind == 0:
                        _issue_activate(
                            t, params, io, ranks, banks, control, rank, bank, row, queues, queue_info, command_log,
                            slots[slot, SLOT_ARRIVED],
                        )  # fmt: skip
                    else:
                        _issue_column(
                            t, params, io, ranks, banks, slots, control, slot, flight, request_log, command_log
                        )
                    _touch_rank(params, ranks, queue_info, rank)
                    return True, t + 1
            wake = min(wake, queue_info[queue, QUEUE_WAKE])
        if params[PER_BANK] == 1:
            _advance_pointer(params, control, NEXT_RANK)
        else:
            control[NEXT_RANK] = (rank + 1) % params[RANKS]
        if control[NEXT_RANK] == start_rank and control[NEXT_BANK] == start_bank:
            return False, wake


@compiled_helper
def _search_rows_to_close(
    t: int, params: Ints, io: Ints, ranks: Ints, banks: Ints, control: Ints, queue_info: Ints, command_log: Ints,
) -> tuple[bool, int]:  # fmt: skip
    """Close an open row for which nothing waits or which has had its share. Returns (issued, next edge to look)."""
    banks_in_rank = params[BANKS]
    wake = NEVER
    for rank in range(params[RANKS]):
        if ranks[rank, UNCLOSED] > 0:
            if ranks[rank, PRE_WAKE] < 0:
                earliest = NEVER
                for index in range(rank * banks_in_rank, (rank + 1) * banks_in_rank):
                    if banks[index, OPEN_ROW] >= 0 and (
                        banks[index, WANTED] == 0 or banks[index, ROW_ACCESSES] == params[ROW_ACCESS_CAP]
                    ):
                        earliest = min(earliest, banks[index, NEXT_PRE])
                ranks[rank, PRE_WAKE] = earliest
            wake = min(wake, ranks[rank, PRE_WAKE])
    if wake > t:
        return False, wake
    while True:
        rank = control[NEXT_RANK_PRE]
        bank = control[NEXT_BANK_PRE]
        if ranks[rank, UNCLOSED] > 0 and ranks[rank, PRE_WAKE] <= t:
            index = rank * banks_in_rank + bank
            if (
                banks[index, OPEN_ROW] >= 0
                and t >= banks[index, NEXT_PRE]
                and (banks[index, WANTED] == 0 or banks[index, ROW_ACCESSES] == params[ROW_ACCESS_CAP])
            ):
                conflict = 1 if banks[index, WAITING] > 0 else 0
                _issue_precharge(t, params, io, ranks, banks, control, rank, bank, conflict, command_log)
                _touch_rank(params, ranks, queue_info, rank)
                return True, t + 1
        _advance_pointer(params, control, NEXT_RANK_PRE)


@compiled_helper
def _accept(
    t: int, params: Ints, io: Ints, control: Ints, staged: Ints, transactions: Ints, request_log: Ints
) -> tuple[bool, int]:
    """Take staged requests into the transaction queue. Returns (any taken, next edge to look)."""
    taken = 0
    while io[STAGED_HEAD] < io[STAGED_TAIL] and control[TRANSACTIONS] < transactions.shape[0]:
        head = io[STAGED_HEAD]
        if staged[0, head, STAGED_EDGE] > t:
            return taken > 0, staged[0, head, STAGED_EDGE]
        if taken == params[REQUESTS_PER_CLOCK]:
            return True, t + 1
        n = control[TRANSACTIONS]
        address = staged[0, head, STAGED_ADDRESS]
        transactions[n, SLOT_OP] = staged[0, head, STAGED_OP]
        transactions[n, SLOT_TAG] = staged[0, head, STAGED_TAG]
        transactions[n, SLOT_ID] = staged[0, head, STAGED_ID]
        transactions[n, SLOT_RANK] = (address >> params[SHIFT_RANK]) & params[MASK_RANK]
        transactions[n, SLOT_BANK] = (address >> params[SHIFT_BANK]) & params[MASK_BANK]
        transactions[n, SLOT_ROW] = (address >> params[SHIFT_ROW]) & params[MASK_ROW]
        transactions[n, SLOT_ARRIVED] = t
        transactions[n, SLOT_COLUMN] = (address >> params[SHIFT_COLUMN]) & params[MASK_COLUMN]
        if io[LOGGING] == 1:
            request_log[staged[0, head, STAGED_ID], LOG_ACCEPTED] = t
        control[TRANSACTIONS] = n + 1
        io[STAGED_HEAD] = head + 1
        taken += 1
    return taken > 0, NEVER


@compiled_helper
def _move_transaction(
    params: Ints, ranks: Ints, banks: Ints, control: Ints, queues: Ints, queue_info: Ints, transactions: Ints,
    slots: Ints,
) -> bool:  # fmt: skip
    """Move the first transaction whose command queue has room for its ACT and its column command."""
    count = control[TRANSACTIONS]
    for i in range(count):
        rank = transactions[i, SLOT_RANK]
        bank = transactions[i, SLOT_BANK]
        queue = rank * params[BANKS] + bank if params[PER_BANK] == 1 else rank
        length = queue_info[queue, LENGTH]
        if queues.shape[1] - length < 2:
            continue
        free = control[FREE_SLOTS] - 1
        control[FREE_SLOTS] = free
        slot = slots[free, SLOT_FREE]
        for field in range(SLOT_FREE):
            slots[slot, field] = transactions[i, field]
        for kind in range(2):
            queues[queue, length + kind, KIND] = kind
            queues[queue, length + kind, ENTRY_BANK] = bank
            queues[queue, length + kind, ENTRY_ROW] = transactions[i, SLOT_ROW]
            queues[queue, length + kind, ENTRY_SLOT] = slot
        queue_info[queue, LENGTH] = length + 2
        queue_info[queue, QUEUE_WAKE] = 0
        ranks[rank, QUEUED] += 2
        ranks[rank, PRE_WAKE] = -1
        control[QUEUED_TOTAL] += 2
        index = rank * params[BANKS] + bank
        banks[index, WAITING] += 1
        if banks[index, OPEN_ROW] == transactions[i, SLOT_ROW]:
            banks[index, WANTED] += 1
        for j in range(i + 1, count):
            for field in range(SLOT_FREE):
                transactions[j - 1, field] = transactions[j, field]
        control[TRANSACTIONS] = count - 1
        return True
    return False


@compiled_helper
def _power(t: int, params: Ints, ranks: Ints, banks: Ints, queue_info: Ints) -> tuple[bool, int]:
    """Power ranks down that have nothing to do, and up that have. Returns (something happened, next edge to look)."""
    changed = False
    wake = NEVER
    for rank in range(params[RANKS]):
        needed = ranks[rank, QUEUED] > 0 or ranks[rank, WAITS_REFRESH] == 1
        if ranks[rank, DOWN] == 1:
            if needed:
                if t >= ranks[rank, NEXT_UP]:
                    _settle(ranks, rank, t)
                    ranks[rank, DOWN] = 0
                    for i in range(rank * params[BANKS], (rank + 1) * params[BANKS]):
                        banks[i, NEXT_ACT] = t + params[P_XP]
                    _touch_rank(params, ranks, queue_info, rank)
                    changed = True
                else:
                    wake = min(wake, ranks[rank, NEXT_UP])
        elif not needed and ranks[rank, UNCLOSED] == 0:
            if t >= ranks[rank, ALL_IDLE_AT]:
                _settle(ranks, rank, t)
                ranks[rank, DOWN] = 1
                ranks[rank, NEXT_UP] = t + params[P_CKE]
                changed = True
            else:
                wake = min(wake, ranks[rank, ALL_IDLE_AT])
    return changed, wake


@compiled
def run(
    until: int, params: Ints, io: Ints, control: Ints, ranks: Ints, banks: Ints, queues: Ints, queue_info: Ints,
    transactions: Ints, slots: Ints, staged: Ints, flight: Ints, request_log: Ints, command_log: Ints,
) -> int:  # fmt: skip
    """Run all DRAM edges before ``until``. Stops early (WAKE < until) when the command log is full.

    Returns WAKE, the first edge not yet run at which something can happen.
    """
    t = int(io[WAKE])
    while t < until:
        if io[COMMANDS] >= command_log.shape[0]:
            break
        if io[QUIET_SINCE] >= 0:
            io[QUIET] += t - io[QUIET_SINCE]
            io[QUIET_SINCE] = -1
        acted, wake = _accept(t, params, io, control, staged, transactions, request_log)
        asked = control[TRANSACTIONS] + control[QUEUED_TOTAL] > 0
        happened, edge = _refresh_due(t, params, ranks, control)
        acted |= happened
        wake = min(wake, edge)

        issued = False
        if control[REFRESHING] == 1:
            rank = control[REFRESH_RANK]
            issued, edge = _refresh_work(
                t, params, io, ranks, banks, control, queues, queue_info, slots, flight, request_log, command_log
            )
            if issued:
                _touch_rank(params, ranks, queue_info, rank)
            wake = min(wake, edge)
        if not issued and control[QUEUED_TOTAL] > 0:
            issued, edge = _search_queues(
                t, params, io, ranks, banks, control, queues, queue_info, slots, flight, request_log, command_log
            )
            wake = min(wake, edge)
        if not issued and params[OPEN_PAGE] == 1 and control[OPEN_TOTAL] > 0:
            issued, edge = _search_rows_to_close(t, params, io, ranks, banks, control, queue_info, command_log)
            wake = min(wake, edge)
        if issued:
            acted = True
            if params[POSTED_CAS] == 1 and control[SECOND_OF_PAIR] == 0:
                control[SECOND_OF_PAIR] = 1
            else:
                control[SECOND_OF_PAIR] = 0
                _advance_pointer(params, control, NEXT_RANK)

        if control[TRANSACTIONS] > 0:
            acted |= _move_transaction(params, ranks, banks, control, queues, queue_info, transactions, slots)
        if params[LOW_POWER] == 1:
            if acted or t >= control[POWER_WAKE]:
                happened, edge = _power(t, params, ranks, banks, queue_info)
                acted |= happened
                control[POWER_WAKE] = t + 1 if happened else edge
            wake = min(wake, control[POWER_WAKE])
        if control[TRANSACTIONS] + control[QUEUED_TOTAL] == 0:
            io[QUIET_SINCE] = t + 1 if asked else t  # nothing is waited for
        t = t + 1 if acted else max(wake, t + 1)
    io[WAKE] = t
    first = NEVER
    mask = flight.shape[1] - 1
    for ring in range(3):
        head = io[FLIGHT_HEAD + 2 * ring]
        if head < io[FLIGHT_TAIL + 2 * ring]:
            first = min(first, flight[ring, head & mask, FLIGHT_VISIBLE])
    io[FIRST_VISIBLE] = first
    return t
