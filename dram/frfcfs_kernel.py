"""The cycle loop of the ``frfcfs`` policy: one call runs a channel up to a given DRAM edge.

Timing constraints are rows of a table (earlier command, scope, later command, delay, window). The state is one ready
time for each node of the tree channel - rank - bank group - bank and each command; a command may go to a bank when the
ready times of all four nodes above it are reached, and issuing it raises only the nodes its rows name.

A step in which nothing could be issued returns the least time that could change that, so quiet edges are jumped over.

Kernel, helpers and constants stand in this one file because the compiled code is cached by file.
"""

import numpy as np
import numpy.typing as npt

from dram.compile import compiled, compiled_helper

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
COMMAND_KINDS = 6

# columns of the constraint table
EARLIER = 0
SCOPE = 1
LATER = 2
DELAY = 3
WINDOW = 4
CONSTRAINT_FIELDS = 5
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
PARAMS_SIZE = 23

# control: the scalars that change
WRITE_MODE = 0
READS_HELD = 1
WRITES_HELD = 2
ACTIVE_HELD = 3  # requests whose ACT is issued; at most one a bank
REFRESH_HEAD = 4
REFRESH_TAIL = 5
FORWARDED = 6
MERGED = 7
WAIT_FROM = 8  # edge from which the next wait is charged
WAIT_REASON = 9  # position in WAITS, or -1: a command was issued
WAITS = 10  # clocks waited: for each row of the constraint table, then the three below
FOR_REFRESH = 0  # a refresh is being made ready
FOR_REQUESTS = 1  # the controller holds none
FOR_OTHERS = 2
WAITS_EXTRA = 3

# planes of ready
TIME = 0
CAUSE = 1  # row of the constraint table that set the time

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
HELD_OPEN = 1  # requests in the active buffer for this bank
CONFLICT = 2
BANK_FIELDS = 3

# a held request; queues[0] reads, [1] writes, [2] active
BANK_INDEX = 0
ROW = 1
COLUMN = 2
BLOCK = 3
TAG = 4
IDENTITY = 5
ARRIVED = 6
OP = 7
RANK_NODE = 8  # rows of the ready times; kept because working them out takes divisions
GROUP_NODE = 9
BANK_NODE = 10
HELD_FIELDS = 11

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


@compiled_helper
def _raise_ready(ready: Ints, windows: Ints, constraints: Ints, row: int, node: int, t: int) -> None:
    later = constraints[row, LATER]
    window = constraints[row, WINDOW]
    since = t
    if window > 1:
        position = windows[row, node, window]
        windows[row, node, position] = t
        position = (position + 1) % window
        windows[row, node, window] = position
        since = windows[row, node, position]  # the window-th last one
    at = since + constraints[row, DELAY]
    if at > ready[TIME, node, later]:
        ready[TIME, node, later] = at
        ready[CAUSE, node, later] = row


@compiled_helper
def _apply_constraints(
    t: int, params: Ints, ready: Ints, windows: Ints, constraints: Ints, first_row: Ints, command: int,
    rank_node: int, group_node: int, bank_node: int,
) -> None:  # fmt: skip
    """Raise the ready times the issued command names. Rank-wide commands have rows of scope rank and wider only."""
    for row in range(first_row[command], first_row[command + 1]):
        scope = constraints[row, SCOPE]
        if scope == OTHER_RANKS:
            for node in range(1, 1 + params[RANKS]):
                if node != rank_node:
                    _raise_ready(ready, windows, constraints, row, node, t)
        else:
            node = 0
            if scope == RANK:
                node = rank_node
            elif scope == GROUP:
                node = group_node
            elif scope == BANK:
                node = bank_node
            _raise_ready(ready, windows, constraints, row, node, t)


@compiled_helper
def _needed_command(banks: Ints, bank_index: int, row: int, op: int) -> int:
    """The command that brings the request one step further: ACT, PRE or the column command."""
    open_row = banks[bank_index, OPEN_ROW]
    if open_row < 0:
        return CMD_ACT
    if open_row != row:
        return CMD_PRE
    return CMD_WR if op == 1 else CMD_RD


@compiled_helper
def _complete(
    io: Ints, flight: Ints, request_log: Ints, ring: int, decided: int, completed: int, tag: int, identity: int
) -> None:
    visible = -((-completed * io[RATIO_DEN]) // io[RATIO_NUM])
    after_decision = decided * io[RATIO_DEN] // io[RATIO_NUM] + 1
    at = io[FLIGHT_TAIL + 2 * ring] & (flight.shape[1] - 1)
    flight[ring, at, FLIGHT_VISIBLE] = max(visible, after_decision)
    flight[ring, at, FLIGHT_EDGE] = completed
    flight[ring, at, FLIGHT_TAG] = tag
    io[FLIGHT_TAIL + 2 * ring] += 1
    if io[LOGGING] == 1:
        request_log[identity, LOG_COMPLETED] = completed


@compiled_helper
def _log_command(
    io: Ints, command_log: Ints, t: int, command: int, rank: int, bank: int, row: int, column: int
) -> None:
    if io[LOGGING] == 1:
        n = io[COMMANDS]
        command_log[n, 0] = t
        command_log[n, 1] = command
        command_log[n, 2] = rank
        command_log[n, 3] = bank
        command_log[n, 4] = row
        command_log[n, 5] = column
        io[COMMANDS] = n + 1


@compiled_helper
def _accept(
    t: int, lane: int, params: Ints, io: Ints, control: Ints, queues: Ints, staged: Ints, flight: Ints,
    request_log: Ints,
) -> tuple[bool, int]:  # fmt: skip
    """Take at most one staged request of a lane (0 reads, 1 writes). Returns (taken, next edge to look)."""
    head = io[STAGED_HEAD + 2 * lane]
    if head >= io[STAGED_TAIL + 2 * lane]:
        return False, NEVER
    if staged[lane, head, STAGED_EDGE] > t:
        return False, int(staged[lane, head, STAGED_EDGE])
    address = staged[lane, head, STAGED_ADDRESS]
    block = address >> params[OFFSET_BITS]
    identity = staged[lane, head, STAGED_ID]
    held = control[READS_HELD + lane]
    waiting_write = False
    for i in range(control[WRITES_HELD]):
        if queues[1, i, BLOCK] == block:
            waiting_write = True
            break
    if waiting_write:
        # the write queue answers the read, or swallows the write
        _complete(io, flight, request_log, 2, t, t + params[FORWARD_LATENCY], staged[lane, head, STAGED_TAG], identity)
        control[FORWARDED + lane] += 1
    elif held < params[READ_QUEUE + lane]:
        rank = (address >> params[SHIFT_RANK]) & params[MASK_RANK]
        group = (address >> params[SHIFT_GROUP]) & params[MASK_GROUP]
        bank = (address >> params[SHIFT_BANK]) & params[MASK_BANK]
        groups = params[BANKS] // params[BANKS_PER_GROUP]
        bank_index = rank * params[BANKS] + group * params[BANKS_PER_GROUP] + bank
        queues[lane, held, BANK_INDEX] = bank_index
        queues[lane, held, RANK_NODE] = 1 + rank
        queues[lane, held, GROUP_NODE] = 1 + params[RANKS] + rank * groups + group
        queues[lane, held, BANK_NODE] = 1 + params[RANKS] * (1 + groups) + bank_index
        queues[lane, held, ROW] = (address >> params[SHIFT_ROW]) & params[MASK_ROW]
        queues[lane, held, COLUMN] = (address >> params[SHIFT_COLUMN]) & params[MASK_COLUMN]
        queues[lane, held, BLOCK] = block
        queues[lane, held, TAG] = staged[lane, head, STAGED_TAG]
        queues[lane, held, IDENTITY] = identity
        queues[lane, held, ARRIVED] = t
        queues[lane, held, OP] = lane
        control[READS_HELD + lane] = held + 1
    else:
        return False, NEVER
    io[STAGED_HEAD + 2 * lane] = head + 1
    if io[LOGGING] == 1:
        request_log[identity, LOG_ACCEPTED] = t
    return True, t + 1


@compiled_helper
def _refresh_due(t: int, params: Ints, control: Ints, ranks: Ints, refreshes: Ints) -> int:
    """Put refreshes that fall due in line. Returns the next edge at which one falls due."""
    wake = NEVER
    for rank in range(params[RANKS]):
        if t >= ranks[rank, DUE]:
            refreshes[control[REFRESH_TAIL] % refreshes.shape[0]] = rank
            control[REFRESH_TAIL] += 1
            ranks[rank, DUE] += params[P_REFI]
        wake = min(wake, ranks[rank, DUE])
    return wake


@compiled_helper
def _first_ready(t: int, ready: Ints, banks: Ints, queues: Ints, which: int, held: int) -> tuple[int, int, int, int]:
    """The oldest request of a queue whose next command may go now.

    Returns (position or -1, its command, next edge to look, constraint that keeps the first command from going until
    then). The command may be a PRE that must not go, because a request of the active buffer waits for the row: then
    nothing goes in this clock, as in Ramulator.
    """
    best = -1
    best_command = -1
    best_arrived = NEVER
    wake = NEVER
    cause = -1
    for i in range(held):
        bank_index = queues[which, i, BANK_INDEX]
        command = _needed_command(banks, bank_index, queues[which, i, ROW], queues[which, i, OP])
        node = 0
        at = ready[TIME, 0, command]
        for level in range(RANK_NODE, BANK_NODE + 1):
            other = queues[which, i, level]
            if ready[TIME, other, command] > at:
                node = other
                at = ready[TIME, other, command]
        if at <= t:
            if queues[which, i, ARRIVED] < best_arrived:
                best = i
                best_command = command
                best_arrived = queues[which, i, ARRIVED]
                if which != 2:
                    break  # reads and writes stand in order of arrival
        elif at < wake:
            wake = at
            cause = ready[CAUSE, node, command]
    return best, best_command, wake, cause


@compiled_helper
def _remove(queues: Ints, control: Ints, which: int, position: int) -> None:
    held = control[READS_HELD + which]
    for i in range(position + 1, held):
        for field in range(HELD_FIELDS):
            queues[which, i - 1, field] = queues[which, i, field]
    control[READS_HELD + which] = held - 1


@compiled_helper
def _issue(
    t: int, which: int, position: int, command: int, params: Ints, io: Ints, control: Ints, ranks: Ints, banks: Ints,
    queues: Ints, ready: Ints, windows: Ints, constraints: Ints, first_row: Ints, flight: Ints, request_log: Ints,
    command_log: Ints,
) -> None:  # fmt: skip
    """Issue the next command of a request and move the request on."""
    bank_index = queues[which, position, BANK_INDEX]
    row = queues[which, position, ROW]
    rank_node = queues[which, position, RANK_NODE]
    group_node = queues[which, position, GROUP_NODE]
    bank_node = queues[which, position, BANK_NODE]
    rank = rank_node - 1
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
        banks[bank_index, HELD_OPEN] = 1
        _log_command(io, command_log, t, command, rank, bank, row, -1)
        held = control[ACTIVE_HELD]
        for field in range(HELD_FIELDS):
            queues[2, held, field] = queues[which, position, field]
        control[ACTIVE_HELD] = held + 1
        _remove(queues, control, which, position)
    elif command == CMD_PRE:
        _settle(ranks, rank, t)
        ranks[rank, PRES] += 1
        ranks[rank, UNCLOSED] -= 1
        banks[bank_index, OPEN_ROW] = -1
        banks[bank_index, CONFLICT] = 1
        _log_command(io, command_log, t, command, rank, bank, -1, -1)
    else:
        identity = queues[which, position, IDENTITY]
        if io[LOGGING] == 1:
            request_log[identity, LOG_CAS] = t
        _log_command(io, command_log, t, command, rank, bank, row, queues[which, position, COLUMN])
        tag = queues[which, position, TAG]
        if command == CMD_WR:
            ranks[rank, WRITES] += 1
            _complete(io, flight, request_log, 0, t, t + params[WRITE_LATENCY], tag, identity)
        else:
            ranks[rank, READS] += 1
            _complete(io, flight, request_log, 1, t, t + params[READ_LATENCY], tag, identity)
        if which == 2:
            banks[bank_index, HELD_OPEN] = 0
        _remove(queues, control, which, position)
    _apply_constraints(t, params, ready, windows, constraints, first_row, command, rank_node, group_node, bank_node)


@compiled_helper
def _refresh_work(
    t: int, params: Ints, io: Ints, control: Ints, ranks: Ints, banks: Ints, ready: Ints, windows: Ints,
    constraints: Ints, first_row: Ints, refreshes: Ints, command_log: Ints,
) -> tuple[bool, int]:  # fmt: skip
    """Close the rank at the head of the line, then refresh it. Returns (command issued, next edge to look)."""
    rank = refreshes[control[REFRESH_HEAD] % refreshes.shape[0]]
    first = rank * params[BANKS]
    command = CMD_REF if ranks[rank, UNCLOSED] == 0 else CMD_PREA
    at = max(ready[TIME, 0, command], ready[TIME, 1 + rank, command])
    if at > t:
        return False, int(at)
    if command == CMD_PREA:
        for bank_index in range(first, first + params[BANKS]):
            if banks[bank_index, HELD_OPEN] == 1:
                return False, NEVER  # serving that request is an event of its own
        _settle(ranks, rank, t)
        for bank_index in range(first, first + params[BANKS]):
            if banks[bank_index, OPEN_ROW] >= 0:
                banks[bank_index, OPEN_ROW] = -1
                banks[bank_index, CONFLICT] = 0
        ranks[rank, UNCLOSED] = 0
        ranks[rank, PRES] += 1
    else:
        _settle(ranks, rank, t)
        ranks[rank, REFS] += 1
        ranks[rank, ACTIVE_UNTIL] = max(ranks[rank, ACTIVE_UNTIL], t + params[P_RFC])
        control[REFRESH_HEAD] += 1
    _log_command(io, command_log, t, command, rank, -1, -1, -1)
    _apply_constraints(t, params, ready, windows, constraints, first_row, command, 1 + rank, 0, 0)
    return True, t + 1


@compiled_helper
def _set_write_mode(params: Ints, control: Ints) -> None:
    if control[WRITE_MODE] == 0:
        if control[WRITES_HELD] > params[DRAIN_ABOVE] or control[READS_HELD] == 0:
            control[WRITE_MODE] = 1
    elif control[WRITES_HELD] < params[DRAIN_BELOW] and control[READS_HELD] != 0:
        control[WRITE_MODE] = 0


@compiled
def run(
    until: int, params: Ints, io: Ints, control: Ints, ranks: Ints, banks: Ints, queues: Ints, ready: Ints,
    windows: Ints, constraints: Ints, first_row: Ints, refreshes: Ints, staged: Ints, flight: Ints,
    request_log: Ints, command_log: Ints,
) -> int:  # fmt: skip
    """Run all DRAM edges before ``until``. Stops early (WAKE < until) when the command log is full.

    Returns WAKE, the first edge not yet run at which something can happen.
    """
    t = int(io[WAKE])
    extra = WAITS + constraints.shape[0]
    while t < until:
        if io[LOGGING] == 1 and io[COMMANDS] >= command_log.shape[0]:
            break
        if control[WAIT_REASON] >= 0:
            control[control[WAIT_REASON]] += t - control[WAIT_FROM]
        acted, wake = _accept(t, 0, params, io, control, queues, staged, flight, request_log)
        taken, edge = _accept(t, 1, params, io, control, queues, staged, flight, request_log)
        acted |= taken
        wake = min(wake, edge)
        wake = min(wake, _refresh_due(t, params, control, ranks, refreshes))

        which = 2
        issued = False
        position, command, edge, cause = _first_ready(t, ready, banks, queues, 2, control[ACTIVE_HELD])
        wake = min(wake, edge)
        reason = extra + FOR_OTHERS
        if position < 0:
            if control[REFRESH_HEAD] < control[REFRESH_TAIL]:
                reason = extra + FOR_REFRESH
                issued, edge = _refresh_work(
                    t, params, io, control, ranks, banks, ready, windows, constraints, first_row, refreshes, command_log
                )
                wake = min(wake, edge)
            else:
                _set_write_mode(params, control)
                which = control[WRITE_MODE]
                active_edge = edge
                position, command, edge, other = _first_ready(
                    t, ready, banks, queues, which, control[READS_HELD + which]
                )
                wake = min(wake, edge)
                if edge < active_edge:
                    cause = other
                if cause >= 0:
                    reason = WAITS + cause
                elif control[READS_HELD] + control[WRITES_HELD] + control[ACTIVE_HELD] == 0:
                    reason = extra + FOR_REQUESTS
        if position >= 0 and not (command == CMD_PRE and banks[queues[which, position, BANK_INDEX], HELD_OPEN] == 1):
            _issue(
                t, which, position, command, params, io, control, ranks, banks, queues, ready, windows, constraints,
                first_row, flight, request_log, command_log,
            )  # fmt: skip
            issued = True
        control[WAIT_FROM] = t
        control[WAIT_REASON] = -1 if issued else reason
        acted |= issued
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
