"""The cycle loop of the ``dramsim2`` policy: one call runs a channel up to a given DRAM edge.

It restates what DRAMSim2 does in one clock call, in the order in which it does it: requests are accepted, a refresh
falls due, at most one command is issued, one request moves from the transaction queue to a command queue, ranks power
down or up. Countdowns of the original are kept as time stamps, so that edges in which nothing can happen are jumped
over: a step in which nothing happened returns the least time stamp it compared the clock with.
"""

from cosa.common.compile_cache import compiled, compiled_helper, inlined_helper
from dram import banks_kernel as b
from dram import queues_kernel as q
from dram.policies.dramsim2 import command_kernel as c
from dram.policies.dramsim2.command_kernel import State
from dram.queues_kernel import NEVER, Ints


@compiled_helper
def _advance_pointer(params: Ints, control: Ints, first: int) -> None:
    """Round robin over (rank, bank); ``first`` is the position of the rank in ``control``, its bank follows."""
    if params[c.BANK_FIRST] == 1:
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
    rank = control[c.DUE_RANK]
    if t == control[c.DUE_EDGE]:
        if control[c.REFRESHING] == 1:
            if params[c.KEEP_REFRESHES] == 1:
                control[c.BACKLOG] += 1
            else:
                control[c.LOST_REFRESHES] += 1
                control[c.REFRESH_RANK] = rank
        else:
            control[c.REFRESHING] = 1
            control[c.REFRESH_RANK] = rank
        ranks[rank, c.WAITS_REFRESH] = 1
        # the last rank is followed by the first one of the next period
        interval = params[b.REFRESH_INTERVAL] // params[b.RANKS]
        if rank == params[b.RANKS] - 1:
            control[c.DUE_RANK] = 0
            control[c.DUE_EDGE] = t + params[b.REFRESH_INTERVAL] - interval * (params[b.RANKS] - 1)
        else:
            control[c.DUE_RANK] = rank + 1
            control[c.DUE_EDGE] = t + interval
        return True, t + 1
    if ranks[rank, b.DOWN] == 1 and ranks[rank, c.WAITS_REFRESH] == 0:
        if t >= control[c.DUE_EDGE] - params[c.P_XP]:
            ranks[rank, c.WAITS_REFRESH] = 1
            return True, t + 1
        return False, control[c.DUE_EDGE] - params[c.P_XP]
    return False, control[c.DUE_EDGE]


@inlined_helper
def _refresh_work(s: State, t: int) -> tuple[bool, int]:
    """Bring the rank that waits for its refresh closer to it. Returns (command issued, next edge to look)."""
    rank = s.control[c.REFRESH_RANK]
    base = rank * s.params[b.BANKS]
    for bank in range(s.params[b.BANKS]):
        index = base + bank
        open_row = s.banks[index, b.OPEN_ROW]
        if open_row >= 0:
            queue = index if s.params[c.PER_BANK] == 1 else rank
            close_row = True
            wake = NEVER
            for j in range(s.queue_info[queue, c.LENGTH]):
                if s.queues[queue, j, c.ENTRY_BANK] == bank and s.queues[queue, j, c.ENTRY_ROW] == open_row:
                    if s.queues[queue, j, c.KIND] == 1:
                        close_row = False
                        slot = s.queues[queue, j, c.ENTRY_SLOT]
                        ready = c.ready_at(s, rank, bank, 1, open_row, s.slots[slot, b.OP])
                        if ready <= t:
                            c.remove(s.control, s.ranks, s.queues, s.queue_info, rank, queue, j, 1)
                            c.issue_column(s, t, slot)
                            return True, t + 1
                        wake = min(wake, ready)
                    break
            if s.params[c.OPEN_PAGE] == 1 and close_row:
                if t >= s.banks[index, c.NEXT_PRE]:
                    c.issue_precharge(s, t, rank, bank, 0)
                    return True, t + 1
                wake = min(wake, s.banks[index, c.NEXT_PRE])
            return False, wake
        if t < s.banks[index, c.CLOSE_AT]:
            return False, s.banks[index, c.CLOSE_AT]
        if s.banks[index, c.NEXT_ACT] > t:
            return False, s.banks[index, c.NEXT_ACT]
    if s.ranks[rank, b.DOWN] == 1:
        return False, NEVER  # the power-up is an event of its own
    c.issue_refresh(s, t)
    return True, t + 1


@inlined_helper
def _pick_in_queue(s: State, t: int, queue: int, rank: int) -> int:
    """Position of the command of this queue to issue now, or -1 (then QUEUE_WAKE tells when to look again)."""
    wake = NEVER
    length = s.queue_info[queue, c.LENGTH]
    if s.params[c.OPEN_PAGE] == 0 and s.params[c.PER_BANK] == 1:
        length = 1  # only the front command can go
    for i in range(length):
        kind = s.queues[queue, i, c.KIND]
        if s.params[c.OPEN_PAGE] == 0 and kind == 1 and i > 0 and s.queues[queue, i - 1, c.KIND] == 0:
            continue  # its own ACT is still to come
        bank = s.queues[queue, i, c.ENTRY_BANK]
        row = s.queues[queue, i, c.ENTRY_ROW]
        ready = c.ready_at(s, rank, bank, kind, row, s.slots[s.queues[queue, i, c.ENTRY_SLOT], b.OP])
        if ready == NEVER or ready >= wake:
            continue
        if s.params[c.OPEN_PAGE] == 1:
            blocked = False
            for j in range(i):
                if (
                    s.queues[queue, j, c.KIND] == 1
                    and s.queues[queue, j, c.ENTRY_BANK] == bank
                    and s.queues[queue, j, c.ENTRY_ROW] == row
                ):
                    blocked = True
                    break
            if blocked:
                continue
        if ready <= t:
            return i
        wake = ready
    s.queue_info[queue, c.QUEUE_WAKE] = wake
    return -1


@inlined_helper
def _search_queues(s: State, t: int) -> tuple[bool, int]:
    """Round robin over the command queues. Returns (command issued, next edge to look)."""
    start_rank = s.control[c.NEXT_RANK]
    start_bank = s.control[c.NEXT_BANK]
    wake = NEVER
    while True:
        rank = s.control[c.NEXT_RANK]
        queue = rank * s.params[b.BANKS] + s.control[c.NEXT_BANK] if s.params[c.PER_BANK] == 1 else rank
        if s.queue_info[queue, c.LENGTH] > 0 and not (
            s.control[c.REFRESHING] == 1 and s.control[c.REFRESH_RANK] == rank
        ):
            if s.queue_info[queue, c.QUEUE_WAKE] <= t:
                i = _pick_in_queue(s, t, queue, rank)
                if i >= 0:
                    bank = s.queues[queue, i, c.ENTRY_BANK]
                    row = s.queues[queue, i, c.ENTRY_ROW]
                    slot = s.queues[queue, i, c.ENTRY_SLOT]
                    kind = s.queues[queue, i, c.KIND]
                    if s.params[c.OPEN_PAGE] == 1 and i > 0 and s.queues[queue, i - 1, c.KIND] == 0:
                        # a row hit: the ACT of this request is not needed
                        s.banks[rank * s.params[b.BANKS] + bank, c.ROW_ACCESSES] += 1
                        s.ranks[rank, b.HITS] += 1
                        c.remove(s.control, s.ranks, s.queues, s.queue_info, rank, queue, i - 1, 2)
                    else:
                        c.remove(s.control, s.ranks, s.queues, s.queue_info, rank, queue, i, 1)
                    if kind == 0:
                        c.issue_activate(s, t, rank, bank, row, s.slots[slot, b.ARRIVED])
                    else:
                        c.issue_column(s, t, slot)
                    c.touch_rank(s.params, s.ranks, s.queue_info, rank)
                    return True, t + 1
            wake = min(wake, s.queue_info[queue, c.QUEUE_WAKE])
        if s.params[c.PER_BANK] == 1:
            _advance_pointer(s.params, s.control, c.NEXT_RANK)
        else:
            s.control[c.NEXT_RANK] = (rank + 1) % s.params[b.RANKS]
        if s.control[c.NEXT_RANK] == start_rank and s.control[c.NEXT_BANK] == start_bank:
            return False, wake


@inlined_helper
def _search_rows_to_close(s: State, t: int) -> tuple[bool, int]:
    """Close an open row for which nothing waits or which has had its share. Returns (issued, next edge to look)."""
    banks_in_rank = s.params[b.BANKS]
    wake = NEVER
    for rank in range(s.params[b.RANKS]):
        if s.ranks[rank, b.UNCLOSED] > 0:
            if s.ranks[rank, c.PRE_WAKE] < 0:
                earliest = NEVER
                for index in range(rank * banks_in_rank, (rank + 1) * banks_in_rank):
                    if s.banks[index, b.OPEN_ROW] >= 0 and (
                        s.banks[index, c.WANTED] == 0 or s.banks[index, c.ROW_ACCESSES] == s.params[c.ROW_ACCESS_CAP]
                    ):
                        earliest = min(earliest, s.banks[index, c.NEXT_PRE])
                s.ranks[rank, c.PRE_WAKE] = earliest
            wake = min(wake, s.ranks[rank, c.PRE_WAKE])
    if wake > t:
        return False, wake
    while True:
        rank = s.control[c.NEXT_RANK_PRE]
        bank = s.control[c.NEXT_BANK_PRE]
        if s.ranks[rank, b.UNCLOSED] > 0 and s.ranks[rank, c.PRE_WAKE] <= t:
            index = rank * banks_in_rank + bank
            if (
                s.banks[index, b.OPEN_ROW] >= 0
                and t >= s.banks[index, c.NEXT_PRE]
                and (s.banks[index, c.WANTED] == 0 or s.banks[index, c.ROW_ACCESSES] == s.params[c.ROW_ACCESS_CAP])
            ):
                conflict = 1 if s.banks[index, c.WAITING] > 0 else 0
                c.issue_precharge(s, t, rank, bank, conflict)
                c.touch_rank(s.params, s.ranks, s.queue_info, rank)
                return True, t + 1
        _advance_pointer(s.params, s.control, c.NEXT_RANK_PRE)


@inlined_helper
def _accept(s: State, t: int) -> tuple[bool, int]:
    """Take staged requests into the transaction queue. Returns (any taken, next edge to look)."""
    taken = 0
    while s.io[q.STAGED_HEAD] < s.io[q.STAGED_TAIL] and s.control[c.TRANSACTIONS] < s.transactions.shape[0]:
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
        s.transactions[s.control[c.TRANSACTIONS]] = slot
        s.control[c.TRANSACTIONS] += 1
        if s.io[q.LOGGING] == 1:
            s.request_log[identity, q.ACCEPTED] = t
        s.io[q.STAGED_HEAD] = head + 1
        taken += 1
    return taken > 0, NEVER


@inlined_helper
def _move_transaction(s: State) -> bool:
    """Move the first transaction whose command queue has room for its ACT and its column command."""
    for i in range(s.control[c.TRANSACTIONS]):
        slot = s.transactions[i]
        rank = s.slots[slot, b.RANK]
        index = s.slots[slot, b.BANK_INDEX]
        row = s.slots[slot, b.ROW]
        queue = index if s.params[c.PER_BANK] == 1 else rank
        length = s.queue_info[queue, c.LENGTH]
        if s.queues.shape[1] - length < 2:
            continue
        for kind in range(2):
            s.queues[queue, length + kind, c.KIND] = kind
            s.queues[queue, length + kind, c.ENTRY_BANK] = index - rank * s.params[b.BANKS]
            s.queues[queue, length + kind, c.ENTRY_ROW] = row
            s.queues[queue, length + kind, c.ENTRY_SLOT] = slot
        s.queue_info[queue, c.LENGTH] = length + 2
        s.queue_info[queue, c.QUEUE_WAKE] = 0
        s.ranks[rank, c.QUEUED] += 2
        s.ranks[rank, c.PRE_WAKE] = -1
        s.control[c.QUEUED_TOTAL] += 2
        s.banks[index, c.WAITING] += 1
        if s.banks[index, b.OPEN_ROW] == row:
            s.banks[index, c.WANTED] += 1
        s.control[c.TRANSACTIONS] -= 1
        for j in range(i, s.control[c.TRANSACTIONS]):
            s.transactions[j] = s.transactions[j + 1]
        return True
    return False


@inlined_helper
def _power(s: State, t: int) -> tuple[bool, int]:
    """Power ranks down that have nothing to do, and up that have. Returns (something happened, next edge to look)."""
    changed = False
    wake = NEVER
    for rank in range(s.params[b.RANKS]):
        needed = s.ranks[rank, c.QUEUED] > 0 or s.ranks[rank, c.WAITS_REFRESH] == 1
        if s.ranks[rank, b.DOWN] == 1:
            if needed:
                if t >= s.ranks[rank, c.NEXT_UP]:
                    b.settle(s.ranks, rank, t)
                    s.ranks[rank, b.DOWN] = 0
                    for i in range(rank * s.params[b.BANKS], (rank + 1) * s.params[b.BANKS]):
                        s.banks[i, c.NEXT_ACT] = t + s.params[c.P_XP]
                    c.touch_rank(s.params, s.ranks, s.queue_info, rank)
                    changed = True
                else:
                    wake = min(wake, s.ranks[rank, c.NEXT_UP])
        elif not needed and s.ranks[rank, b.UNCLOSED] == 0:
            if t >= s.ranks[rank, c.ALL_IDLE_AT]:
                b.settle(s.ranks, rank, t)
                s.ranks[rank, b.DOWN] = 1
                s.ranks[rank, c.NEXT_UP] = t + s.params[c.P_CKE]
                changed = True
            else:
                wake = min(wake, s.ranks[rank, c.ALL_IDLE_AT])
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
        asked = control[c.TRANSACTIONS] + control[c.QUEUED_TOTAL] > 0
        happened, edge = _refresh_due(t, params, ranks, control)
        acted |= happened
        wake = min(wake, edge)

        issued = False
        if control[c.REFRESHING] == 1:
            rank = control[c.REFRESH_RANK]
            issued, edge = _refresh_work(s, t)
            if issued:
                c.touch_rank(params, ranks, queue_info, rank)
            wake = min(wake, edge)
        if not issued and control[c.QUEUED_TOTAL] > 0:
            issued, edge = _search_queues(s, t)
            wake = min(wake, edge)
        if not issued and params[c.OPEN_PAGE] == 1 and control[c.OPEN_TOTAL] > 0:
            issued, edge = _search_rows_to_close(s, t)
            wake = min(wake, edge)
        if issued:
            acted = True
            if params[c.POSTED_CAS] == 1 and control[c.SECOND_OF_PAIR] == 0:
                control[c.SECOND_OF_PAIR] = 1
            else:
                control[c.SECOND_OF_PAIR] = 0
                _advance_pointer(params, control, c.NEXT_RANK)

        if control[c.TRANSACTIONS] > 0:
            acted |= _move_transaction(s)
        if params[c.LOW_POWER] == 1:
            if acted or t >= control[c.POWER_WAKE]:
                happened, edge = _power(s, t)
                acted |= happened
                control[c.POWER_WAKE] = t + 1 if happened else edge
            wake = min(wake, control[c.POWER_WAKE])
        if control[c.TRANSACTIONS] + control[c.QUEUED_TOTAL] == 0:
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
