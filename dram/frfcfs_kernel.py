"""The cycle loop of the ``frfcfs`` policy: one call runs a channel up to a given DRAM edge.

Timing constraints are rows of a table (earlier command, scope, later command, delay, window). The state is one ready
time for each node of the tree channel - rank - bank group - bank and each command; a command may go to a bank when the
ready times of all four nodes above it are reached, and issuing it raises only the nodes its rows name.

The requests of a bank stand in a list by age, one for reads and one for writes. Of such a list only two requests can be
the oldest one to go: the first that hits the open row, and the first that does not (with the bank closed: the first).
A bank is looked at again only when its state or list has changed or the edge has come before which nothing of it could
go. A step in which nothing was issued returns the least time that could change that, so quiet edges are jumped over.

Kernel, helpers and constants stand in this one file because the compiled code is cached by file.
"""

import numpy as np
import numpy.typing as npt

from cosa.common.compile_cache import compiled, compiled_helper, inlined_helper

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

CMD_ACT = 0
CMD_PRE = 1
CMD_PREA = 2
CMD_RD = 3
CMD_WR = 4
CMD_REF = 5

# columns of the constraint table
EARLIER = 0
SCOPE = 1
LATER = 2
DELAY = 3
WINDOW = 4
# scopes; the first four are levels of the tree
CHANNEL = 0
RANK = 1
GROUP = 2
BANK = 3
OTHER_RANKS = 4

# params: read only
RANKS = 0
BANKS = 1  # of a rank
BANKS_PER_GROUP = 2
READ_QUEUE = 3
WRITE_QUEUE = 4
DRAIN_ABOVE = 5  # writes held above which writes go first
DRAIN_BELOW = 6  # writes held below which waiting reads go first again
READ_LATENCY = 7
WRITE_LATENCY = 8
FORWARD_LATENCY = 9
P_REFI = 10
P_RFC = 11
SHIFT_RANK = 12
MASK_RANK = 13
SHIFT_GROUP = 14
MASK_GROUP = 15
SHIFT_BANK = 16
MASK_BANK = 17
SHIFT_ROW = 18
MASK_ROW = 19
SHIFT_COLUMN = 20
MASK_COLUMN = 21
OFFSET_BITS = 22
IN_ORDER = 23  # 1: reads and writes come in one lane
REQUESTS_PER_CLOCK = 24
DRAIN_BATCH = 25  # writes in one go after which waiting reads have their turn
PARAMS_SIZE = 26

# control: the scalars that change
WRITE_MODE = 0
READS_HELD = 1
WRITES_HELD = 2
ACTIVE_HELD = 3  # requests whose ACT is issued; at most one a bank
REFRESH_HEAD = 4
REFRESH_TAIL = 5
FORWARDED = 6
MERGED = 7
FREE_SLOTS = 8  # slots on the stack of free ones
SEQUENCE = 9  # requests taken into a queue so far
REFRESH_WAKE = 10  # edge at which the next refresh falls due
DRAINED = 11  # writes since write mode began
READ_TURN = 12  # reads to serve before writes may go first again
CONTROL_SIZE = 13

# ranks
DUE = 0
UNCLOSED = 1
ACTIVE_UNTIL = 2
SETTLED_TO = 3
ACTIVE_CYCLES = 4
STANDBY_CYCLES = 5
ACTS = 6
PRES = 7
REFS = 8
READS = 9
WRITES = 10
MISSES = 11
CONFLICTS = 12
RANK_FIELDS = 13

# banks
OPEN_ROW = 0
ACTIVE_SLOT = 1  # request whose ACT is issued, or -1
CONFLICT = 2
NODE = 3  # rows of the ready times, one for each scope: channel, rank, group, bank
BANK_FIELDS = 7

# lists[queue, bank]: the requests of a bank by age, 0 reads, 1 writes
HEAD = 0
TAIL = 1
FIRST_HIT = 2  # with a row open: the first request for it
FIRST_OTHER = 3  # and the first for another row
LIST_FIELDS = 4

# bounds[queue, bank]: the edge before which none of the list can go; NEVER: it is empty
# active[place]: the active buffer
SLOT = 0
ACTIVE_BOUND = 1  # edge before which its column command cannot go
ACTIVE_FIELDS = 2

# slots: the requests held
BANK_INDEX = 0
ROW = 1
COLUMN = 2
BLOCK = 3
TAG = 4
IDENTITY = 5
ARRIVED = 6
OP = 7
NUMBER = 8  # order of arrival
NEXT = 9
PREVIOUS = 10
NEXT_HASHED = 11
FREE = 12  # column used as the stack of free slots
SLOT_FIELDS = 13

HASH_SIZE = 256

LOG_ACCEPTED = 0
LOG_CAS = 1
LOG_COMPLETED = 2


@compiled_helper
def _settle(ranks: Ints, rank: int, edge: int) -> None:
    """Charge the edges before ``edge`` to the power state the rank has been in."""
    start = ranks[rank, SETTLED_TO]
    cycles = edge - start
    if cycles > 0:
        ranks[rank, SETTLED_TO] = edge
        if ranks[rank, UNCLOSED] > 0:
            ranks[rank, ACTIVE_CYCLES] += cycles
        else:
            active = min(max(ranks[rank, ACTIVE_UNTIL] - start, 0), cycles)
            ranks[rank, ACTIVE_CYCLES] += active
            ranks[rank, STANDBY_CYCLES] += cycles - active


@compiled
def settle_all(ranks: Ints, edge: int) -> None:
    """Bring the power state counters of all ranks up to ``edge``."""
    for rank in range(ranks.shape[0]):
        _settle(ranks, rank, edge)


@inlined_helper
def _raise_ready(ready: Ints, windows: Ints, constraints: Ints, row: int, node: int, t: int) -> None:
    later = constraints[row, LATER]
    window = constraints[row, WINDOW]
    since = t
    if window > 1:
        position = windows[row, node, window]
        windows[row, node, position] = t
        position += 1
        if position == window:
            position = 0
        windows[row, node, window] = position
        since = windows[row, node, position]  # the window-th last one
    ready[node, later] = max(ready[node, later], since + constraints[row, DELAY])


@inlined_helper
def _apply_constraints(
    t: int, params: Ints, ready: Ints, windows: Ints, constraints: Ints, first_row: Ints, command: int, banks: Ints,
    bank_index: int,
) -> None:  # fmt: skip
    """Raise the ready times the issued command names. Rank-wide commands have rows of scope rank and wider only."""
    for row in range(first_row[command], first_row[command + 1]):
        scope = constraints[row, SCOPE]
        if scope == OTHER_RANKS:
            for node in range(1, 1 + params[RANKS]):
                if node != banks[bank_index, NODE + RANK]:
                    _raise_ready(ready, windows, constraints, row, node, t)
        else:
            _raise_ready(ready, windows, constraints, row, banks[bank_index, NODE + scope], t)


@inlined_helper
def _complete(
    io: Ints, flight: Ints, request_log: Ints, ring: int, decided: int, completed: int, tag: int, identity: int
) -> None:
    visible = completed
    after_decision = decided + 1
    if io[RATIO_DEN] != io[RATIO_NUM]:
        visible = -((-completed * io[RATIO_DEN]) // io[RATIO_NUM])
        after_decision = decided * io[RATIO_DEN] // io[RATIO_NUM] + 1
    at = io[FLIGHT_TAIL + 2 * ring] & (flight.shape[1] - 1)
    flight[ring, at, FLIGHT_VISIBLE] = max(visible, after_decision)
    flight[ring, at, FLIGHT_EDGE] = completed
    flight[ring, at, FLIGHT_TAG] = tag
    io[FLIGHT_TAIL + 2 * ring] += 1
    if io[LOGGING] == 1:
        request_log[identity, LOG_COMPLETED] = completed


@inlined_helper
def _log_command(
    io: Ints, command_log: Ints, t: int, command: int, rank: int, bank: int, row: int, column: int, arrived: int
) -> None:
    n = io[COMMANDS]
    command_log[n, 0] = t
    command_log[n, 1] = command
    command_log[n, 2] = rank
    command_log[n, 3] = bank
    command_log[n, 4] = row
    command_log[n, 5] = column
    command_log[n, 6] = arrived
    command_log[n, 7] = io[QUIET]
    io[COMMANDS] = n + 1


@compiled_helper
def _hash(block: int) -> int:
    return int((block ^ (block >> 8) ^ (block >> 16)) & (HASH_SIZE - 1))


@compiled_helper
def _write_waits(hashes: Ints, slots: Ints, block: int) -> bool:
    slot = hashes[_hash(block)]
    while slot >= 0 and slots[slot, BLOCK] != block:
        slot = slots[slot, NEXT_HASHED]
    return bool(slot >= 0)


@compiled_helper
def _forget_write(hashes: Ints, slots: Ints, slot: int) -> None:
    place = _hash(slots[slot, BLOCK])
    other = hashes[place]
    if other == slot:
        hashes[place] = slots[slot, NEXT_HASHED]
        return
    while slots[other, NEXT_HASHED] != slot:
        other = slots[other, NEXT_HASHED]
    slots[other, NEXT_HASHED] = slots[slot, NEXT_HASHED]


@inlined_helper
def _append(op: int, slot: int, banks: Ints, lists: Ints, bounds: Ints, slots: Ints, bank_index: int, row: int) -> None:
    """Put a request at the end of the list of its bank."""
    tail = lists[op, bank_index, TAIL]
    slots[slot, NEXT] = -1
    slots[slot, PREVIOUS] = tail
    lists[op, bank_index, TAIL] = slot
    if tail < 0:
        lists[op, bank_index, HEAD] = slot
        lists[op, bank_index, FIRST_HIT] = -1
        lists[op, bank_index, FIRST_OTHER] = -1
    else:
        slots[tail, NEXT] = slot
    which = FIRST_HIT if banks[bank_index, OPEN_ROW] == row else FIRST_OTHER
    if lists[op, bank_index, which] < 0:
        lists[op, bank_index, which] = slot
        bounds[op, bank_index] = 0


@inlined_helper
def _take_out(op: int, slot: int, lists: Ints, bounds: Ints, slots: Ints) -> None:
    """Take a request out of the list of its bank."""
    bank_index = slots[slot, BANK_INDEX]
    before = slots[slot, PREVIOUS]
    after = slots[slot, NEXT]
    if before >= 0:
        slots[before, NEXT] = after
    else:
        lists[op, bank_index, HEAD] = after
    if after >= 0:
        slots[after, PREVIOUS] = before
    else:
        lists[op, bank_index, TAIL] = before
    if lists[op, bank_index, FIRST_HIT] == slot:
        row = slots[slot, ROW]
        while after >= 0 and slots[after, ROW] != row:
            after = slots[after, NEXT]
        lists[op, bank_index, FIRST_HIT] = after
    bounds[op, bank_index] = NEVER if lists[op, bank_index, HEAD] < 0 else 0


@inlined_helper
def _row_opened(bank_index: int, row: int, lists: Ints, bounds: Ints, slots: Ints) -> None:
    """Find the first hit and the first other request of both lists of a bank."""
    for op in range(2):
        head = lists[op, bank_index, HEAD]
        if head >= 0:
            hit = head
            other = head
            while hit >= 0 and slots[hit, ROW] != row:
                hit = slots[hit, NEXT]
            while other >= 0 and slots[other, ROW] == row:
                other = slots[other, NEXT]
            lists[op, bank_index, FIRST_HIT] = hit
            lists[op, bank_index, FIRST_OTHER] = other
            bounds[op, bank_index] = 0


@inlined_helper
def _row_closed(bank_index: int, lists: Ints, bounds: Ints) -> None:
    for op in range(2):
        if lists[op, bank_index, HEAD] >= 0:
            bounds[op, bank_index] = 0


@inlined_helper
def _accept(
    t: int, lane: int, params: Ints, io: Ints, control: Ints, banks: Ints, lists: Ints, bounds: Ints, slots: Ints,
    hashes: Ints, staged: Ints, flight: Ints, request_log: Ints,
) -> tuple[bool, int]:  # fmt: skip
    """Take staged requests of a lane. Returns (any taken, next edge to look)."""
    taken = 0
    while io[STAGED_HEAD + 2 * lane] < io[STAGED_TAIL + 2 * lane]:
        head = io[STAGED_HEAD + 2 * lane]
        if staged[lane, head, STAGED_EDGE] > t:
            return taken > 0, int(staged[lane, head, STAGED_EDGE])
        if taken == params[REQUESTS_PER_CLOCK]:
            return True, t + 1
        op = staged[lane, head, STAGED_OP]
        address = staged[lane, head, STAGED_ADDRESS]
        block = address >> params[OFFSET_BITS]
        identity = staged[lane, head, STAGED_ID]
        if control[WRITES_HELD] > 0 and _write_waits(hashes, slots, block):
            # the write queue answers the read, or swallows the write
            tag = staged[lane, head, STAGED_TAG]
            _complete(io, flight, request_log, 2, t, t + params[FORWARD_LATENCY], tag, identity)
            control[FORWARDED + op] += 1
        elif control[READS_HELD + op] < params[READ_QUEUE + op]:
            rank = (address >> params[SHIFT_RANK]) & params[MASK_RANK]
            group = (address >> params[SHIFT_GROUP]) & params[MASK_GROUP]
            bank = (address >> params[SHIFT_BANK]) & params[MASK_BANK]
            bank_index = rank * params[BANKS] + group * params[BANKS_PER_GROUP] + bank
            row = (address >> params[SHIFT_ROW]) & params[MASK_ROW]
            free = control[FREE_SLOTS] - 1
            control[FREE_SLOTS] = free
            slot = slots[free, FREE]
            slots[slot, BANK_INDEX] = bank_index
            slots[slot, ROW] = row
            slots[slot, COLUMN] = (address >> params[SHIFT_COLUMN]) & params[MASK_COLUMN]
            slots[slot, BLOCK] = block
            slots[slot, TAG] = staged[lane, head, STAGED_TAG]
            slots[slot, IDENTITY] = identity
            slots[slot, ARRIVED] = t
            slots[slot, OP] = op
            slots[slot, NUMBER] = control[SEQUENCE]
            control[SEQUENCE] += 1
            control[READS_HELD + op] += 1
            if op == 1:
                place = _hash(block)
                slots[slot, NEXT_HASHED] = hashes[place]
                hashes[place] = slot
            _append(op, slot, banks, lists, bounds, slots, bank_index, row)
        else:
            return taken > 0, NEVER
        io[STAGED_HEAD + 2 * lane] = head + 1
        taken += 1
        if io[LOGGING] == 1:
            request_log[identity, LOG_ACCEPTED] = t
    return taken > 0, NEVER


@compiled_helper
def _refresh_due(t: int, params: Ints, control: Ints, ranks: Ints, refreshes: Ints) -> None:
    """Put refreshes that fall due in line."""
    wake = NEVER
    for rank in range(params[RANKS]):
        if t >= ranks[rank, DUE]:
            refreshes[control[REFRESH_TAIL] % refreshes.shape[0]] = rank
            control[REFRESH_TAIL] += 1
            ranks[rank, DUE] += params[P_REFI]
        wake = min(wake, ranks[rank, DUE])
    control[REFRESH_WAKE] = wake


@inlined_helper
def _ready_at(ready: Ints, banks: Ints, bank_index: int, command: int) -> int:
    return int(
        max(
            max(ready[0, command], ready[banks[bank_index, NODE + RANK], command]),
            max(ready[banks[bank_index, NODE + GROUP], command], ready[banks[bank_index, NODE + BANK], command]),
        )
    )


@inlined_helper
def _first_active(t: int, control: Ints, ready: Ints, banks: Ints, slots: Ints, active: Ints) -> tuple[int, int]:
    """The oldest request with its row open that may go now. Returns (place or -1, next edge to look)."""
    best = -1
    best_arrived = NEVER
    wake = NEVER
    for i in range(control[ACTIVE_HELD]):
        at = active[i, ACTIVE_BOUND]
        if at <= t:
            slot = active[i, SLOT]
            at = _ready_at(ready, banks, slots[slot, BANK_INDEX], CMD_WR if slots[slot, OP] == 1 else CMD_RD)
            active[i, ACTIVE_BOUND] = at
            if at <= t:
                if slots[slot, ARRIVED] < best_arrived:
                    best = i
                    best_arrived = slots[slot, ARRIVED]
                continue
        wake = min(wake, at)
    return best, wake


@inlined_helper
def _first_ready(
    t: int, op: int, ready: Ints, banks: Ints, lists: Ints, bounds: Ints, slots: Ints
) -> tuple[int, int, int]:
    """The oldest read (or write) whose next command may go now.

    Returns (slot or -1, its command, next edge to look). The command may be a PRE that must not go, because an active
    request waits for the row: then nothing goes in this clock, as in Ramulator.
    """
    best = -1
    best_command = -1
    best_number = NEVER
    wake = NEVER
    column = CMD_WR if op == 1 else CMD_RD
    for bank_index in range(bounds.shape[1]):
        wake = min(wake, bounds[op, bank_index])
    if wake > t:
        return best, best_command, wake
    wake = NEVER
    for bank_index in range(bounds.shape[1]):
        if bounds[op, bank_index] > t:
            continue
        if banks[bank_index, OPEN_ROW] < 0:
            at = _ready_at(ready, banks, bank_index, CMD_ACT)
            bounds[op, bank_index] = at
            slot = lists[op, bank_index, HEAD]
            if at <= t and slots[slot, NUMBER] < best_number:
                best = slot
                best_command = CMD_ACT
                best_number = slots[slot, NUMBER]
            continue
        bound = NEVER
        slot = lists[op, bank_index, FIRST_HIT]
        if slot >= 0:
            bound = _ready_at(ready, banks, bank_index, column)
            if bound <= t and slots[slot, NUMBER] < best_number:
                best = slot
                best_command = column
                best_number = slots[slot, NUMBER]
        slot = lists[op, bank_index, FIRST_OTHER]
        if slot >= 0:
            at = _ready_at(ready, banks, bank_index, CMD_PRE)
            if at <= t and slots[slot, NUMBER] < best_number:
                best = slot
                best_command = CMD_PRE
                best_number = slots[slot, NUMBER]
            if at > t:
                wake = min(wake, at)
            bound = min(bound, at)
        bounds[op, bank_index] = bound
        if bound > t:
            wake = min(wake, bound)
    for bank_index in range(bounds.shape[1]):
        at = bounds[op, bank_index]
        wake = min(wake, at if at > t else NEVER)
    return best, best_command, wake


@inlined_helper
def _issue(
    t: int, slot: int, place: int, command: int, params: Ints, io: Ints, control: Ints, ranks: Ints, banks: Ints,
    lists: Ints, bounds: Ints, slots: Ints, hashes: Ints, active: Ints, ready: Ints, windows: Ints, constraints: Ints,
    first_row: Ints, flight: Ints, request_log: Ints, command_log: Ints,
) -> None:  # fmt: skip
    """Issue the next command of a request and move it on; ``place`` is its place in the active buffer or -1."""
    bank_index = slots[slot, BANK_INDEX]
    row = slots[slot, ROW]
    op = slots[slot, OP]
    arrived = slots[slot, ARRIVED]
    rank = banks[bank_index, NODE + RANK] - 1
    bank = bank_index - rank * params[BANKS]
    if command == CMD_ACT:
        _settle(ranks, rank, t)
        ranks[rank, ACTS] += 1
        ranks[rank, UNCLOSED] += 1
        if banks[bank_index, CONFLICT] == 1:
            ranks[rank, CONFLICTS] += 1
        else:
            ranks[rank, MISSES] += 1
        banks[bank_index, CONFLICT] = 0
        banks[bank_index, OPEN_ROW] = row
        banks[bank_index, ACTIVE_SLOT] = slot
        _log_command(io, command_log, t, command, rank, bank, row, -1, arrived)
        active[control[ACTIVE_HELD], SLOT] = slot
        active[control[ACTIVE_HELD], ACTIVE_BOUND] = 0
        control[ACTIVE_HELD] += 1
        control[READS_HELD + op] -= 1
        _take_out(op, slot, lists, bounds, slots)
        if op == 1:
            _forget_write(hashes, slots, slot)
        _row_opened(bank_index, row, lists, bounds, slots)
    elif command == CMD_PRE:
        _settle(ranks, rank, t)
        ranks[rank, PRES] += 1
        ranks[rank, UNCLOSED] -= 1
        banks[bank_index, OPEN_ROW] = -1
        banks[bank_index, CONFLICT] = 1
        _row_closed(bank_index, lists, bounds)
        _log_command(io, command_log, t, command, rank, bank, -1, -1, arrived)
    else:
        identity = slots[slot, IDENTITY]
        if io[LOGGING] == 1:
            request_log[identity, LOG_CAS] = t
        _log_command(io, command_log, t, command, rank, bank, row, slots[slot, COLUMN], arrived)
        tag = slots[slot, TAG]
        if op == 1:
            control[DRAINED] += 1
            ranks[rank, WRITES] += 1
            _complete(io, flight, request_log, 0, t, t + params[WRITE_LATENCY], tag, identity)
        else:
            control[READ_TURN] = max(control[READ_TURN] - 1, 0)
            ranks[rank, READS] += 1
            _complete(io, flight, request_log, 1, t, t + params[READ_LATENCY], tag, identity)
        if place >= 0:
            banks[bank_index, ACTIVE_SLOT] = -1
            held = control[ACTIVE_HELD] - 1
            for i in range(place, held):
                active[i, SLOT] = active[i + 1, SLOT]
                active[i, ACTIVE_BOUND] = active[i + 1, ACTIVE_BOUND]
            control[ACTIVE_HELD] = held
        else:
            control[READS_HELD + op] -= 1
            _take_out(op, slot, lists, bounds, slots)
            if op == 1:
                _forget_write(hashes, slots, slot)
        slots[control[FREE_SLOTS], FREE] = slot
        control[FREE_SLOTS] += 1
    _apply_constraints(t, params, ready, windows, constraints, first_row, command, banks, bank_index)


@compiled_helper
def _refresh_work(
    t: int, params: Ints, io: Ints, control: Ints, ranks: Ints, banks: Ints, lists: Ints, bounds: Ints, ready: Ints,
    windows: Ints, constraints: Ints, first_row: Ints, refreshes: Ints, command_log: Ints,
) -> tuple[bool, int]:  # fmt: skip
    """Close the rank at the head of the line, then refresh it. Returns (command issued, next edge to look)."""
    rank = refreshes[control[REFRESH_HEAD] % refreshes.shape[0]]
    first = rank * params[BANKS]
    command = CMD_REF if ranks[rank, UNCLOSED] == 0 else CMD_PREA
    at = max(ready[0, command], ready[1 + rank, command])
    if at > t:
        return False, int(at)
    if command == CMD_PREA:
        for bank_index in range(first, first + params[BANKS]):
            if banks[bank_index, ACTIVE_SLOT] >= 0:
                return False, NEVER  # serving that request is an event of its own
        _settle(ranks, rank, t)
        for bank_index in range(first, first + params[BANKS]):
            if banks[bank_index, OPEN_ROW] >= 0:
                banks[bank_index, OPEN_ROW] = -1
                banks[bank_index, CONFLICT] = 0
                _row_closed(bank_index, lists, bounds)
        ranks[rank, UNCLOSED] = 0
        ranks[rank, PRES] += 1
    else:
        _settle(ranks, rank, t)
        ranks[rank, REFS] += 1
        ranks[rank, ACTIVE_UNTIL] = max(ranks[rank, ACTIVE_UNTIL], t + params[P_RFC])
        control[REFRESH_HEAD] += 1
    _log_command(io, command_log, t, command, rank, -1, -1, -1, -1)
    _apply_constraints(t, params, ready, windows, constraints, first_row, command, banks, first)
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
    until: int, params: Ints, io: Ints, control: Ints, ranks: Ints, banks: Ints, lists: Ints, bounds: Ints,
    slots: Ints, hashes: Ints, active: Ints, ready: Ints, windows: Ints, constraints: Ints, first_row: Ints,
    refreshes: Ints, staged: Ints, flight: Ints, request_log: Ints, command_log: Ints,
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
        acted = False
        wake = NEVER
        for lane in range(2 - params[IN_ORDER]):
            taken, edge = _accept(
                t, lane, params, io, control, banks, lists, bounds, slots, hashes, staged, flight, request_log
            )
            acted |= taken
            wake = min(wake, edge)
        if t >= control[REFRESH_WAKE]:
            _refresh_due(t, params, control, ranks, refreshes)
        wake = min(wake, control[REFRESH_WAKE])

        asked = control[READS_HELD] + control[WRITES_HELD] + control[ACTIVE_HELD] > 0
        place, edge = _first_active(t, control, ready, banks, slots, active)
        wake = min(wake, edge)
        slot = -1
        command = -1
        if place >= 0:
            slot = active[place, SLOT]
            command = CMD_WR if slots[slot, OP] == 1 else CMD_RD
        elif control[REFRESH_HEAD] < control[REFRESH_TAIL]:
            issued, edge = _refresh_work(
                t, params, io, control, ranks, banks, lists, bounds, ready, windows, constraints, first_row,
                refreshes, command_log,
            )  # fmt: skip
            acted |= issued
            wake = min(wake, edge)
        else:
            _set_write_mode(params, control)
            slot, command, edge = _first_ready(t, control[WRITE_MODE], ready, banks, lists, bounds, slots)
            wake = min(wake, edge)
        if slot >= 0 and not (command == CMD_PRE and banks[slots[slot, BANK_INDEX], ACTIVE_SLOT] >= 0):
            _issue(
                t, slot, place, command, params, io, control, ranks, banks, lists, bounds, slots, hashes, active, ready,
                windows, constraints, first_row, flight, request_log, command_log,
            )  # fmt: skip
            acted = True
        if control[READS_HELD] + control[WRITES_HELD] + control[ACTIVE_HELD] == 0:
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
