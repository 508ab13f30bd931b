"""The cycle loop of the ``dramsim3`` policy: one call runs a channel up to a given DRAM edge.

It restates what DRAMsim3 does in one clock call, in the order in which it does it: requests are accepted, a refresh
falls due, one command is issued (with dual command a second one of the other kind), one request moves from the
transaction queues to a command queue. Ready times are one integer for each node of the tree channel - rank - bank
group - bank and each command; the rows of the constraint table raise them.

Nothing is looked at before it can have changed: each command queue keeps the edge before which none of its requests can
go (ready times only rise, and the state of a bank changes by a command to that bank alone), and a step in which nothing
happened returns the least such edge, so quiet edges are jumped over.

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
CMD_RD = 3
CMD_WR = 4
CMD_REF = 5
CMD_RDA = 6
CMD_WRA = 7

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
TRANSACTION_QUEUE = 3
COMMAND_QUEUE = 4
PER_BANK = 5
UNIFIED = 6
CLOSE_PAGE = 7
DUAL = 8
ROW_ACCESSES = 9
DRAIN_ABOVE = 10
WRITE_LEFTOVERS = 11
REFRESH_INTERVAL = 12
FIRST_RANK_ONLY = 13
READ_LATENCY = 14
WRITE_LATENCY = 15
IN_ORDER = 16  # 1: reads and writes come in one lane
REQUESTS_PER_CLOCK = 17
POSTED_WRITES = 29  # 1: a write is done one clock after it was accepted
SHIFT_RANK = 18
MASK_RANK = 19
SHIFT_GROUP = 20
MASK_GROUP = 21
SHIFT_BANK = 22
MASK_BANK = 23
SHIFT_ROW = 24
MASK_ROW = 25
SHIFT_COLUMN = 26
MASK_COLUMN = 27
OFFSET_BITS = 28
PARAMS_SIZE = 30

# control: the scalars that change
QUEUE_INDEX = 0  # round robin over the command queues
DRAINING = 1  # writes still to move before reads do again
HELD = 2  # requests in the transaction queues: reads (or all, if unified), writes next
WRITES_HELD = 3
QUEUED = 4  # requests in all command queues
REFRESH_HEAD = 5
REFRESH_TAIL = 6
REFRESHING = 7  # 1: the queues of the rank at the head of the line are passed over
NEXT_REFRESH = 8  # edge of the next one
NEXT_RANK = 9
FREE_SLOT = 10  # head of the list of free slots, -1: none
SLOTS_USED = 11  # slots from here on were never used
MOVE_BLOCKED = 12  # 1: since the last look nothing changed that could let a request move
FORWARDED = 13
MERGED = 14
SHARED = 15  # reads served by the DRAM read of an earlier one
CONTROL_SIZE = 16

# ranks
UNCLOSED = 0
SETTLED_TO = 1
ACTIVE_CYCLES = 2
STANDBY_CYCLES = 3
ACTS = 4
PRES = 5
REFS = 6
READS = 7
WRITES = 8
MISSES = 9
CONFLICTS = 10
RANK_FIELDS = 11

# banks
OPEN_ROW = 0
ACCESSES = 1  # column commands since ACT
CONFLICT = 2  # closed for another row
BANK_FIELDS = 3

# slots: the requests held
ADDRESS = 0
OP = 1
BANK_INDEX = 2
ROW = 3
COLUMN = 4
TAG = 5
IDENTITY = 6
ARRIVED = 7
RANK_NODE = 8
GROUP_NODE = 9
BANK_NODE = 10
NEXT_HASHED = 11  # further requests with the same hash value; also the list of free slots
NEXT_SHARING = 12  # further reads of the same address
SLOT_FIELDS = 13

# queue_info
LENGTH = 0
QUEUE_WAKE = 1
QUEUE_INFO_FIELDS = 2

HASH_SIZE = 4096

LOG_ACCEPTED = 0
LOG_CAS = 1
LOG_COMPLETED = 2
NO_CAS = -2  # it never reaches the DRAM


@compiled_helper
def _settle(ranks: Ints, rank: int, edge: int) -> None:
    """Charge the edges before ``edge`` to the power state the rank has been in."""
    cycles = edge - ranks[rank, SETTLED_TO]
    if cycles > 0:
        ranks[rank, SETTLED_TO] = edge
        if ranks[rank, UNCLOSED] > 0:
            ranks[rank, ACTIVE_CYCLES] += cycles
        else:
            ranks[rank, STANDBY_CYCLES] += cycles


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
        position = (position + 1) % window
        windows[row, node, window] = position
        since = windows[row, node, position]  # the window-th last one
    ready[node, later] = max(ready[node, later], since + constraints[row, DELAY])


@inlined_helper
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
def _hash(address: int, params: Ints) -> int:
    block = address >> params[OFFSET_BITS]
    return int((block ^ (block >> 12) ^ (block >> 24)) & (HASH_SIZE - 1))


@compiled_helper
def _find(params: Ints, slots: Ints, hashes: Ints, address: int, op: int) -> int:
    """Slot of the request under way with this address and direction, or -1."""
    slot = hashes[_hash(address, params)]
    while slot >= 0 and not (slots[slot, ADDRESS] == address and slots[slot, OP] == op):
        slot = slots[slot, NEXT_HASHED]
    return int(slot)


@compiled_helper
def _forget(params: Ints, slots: Ints, hashes: Ints, slot: int) -> None:
    """Take a request out of the address table."""
    place = _hash(slots[slot, ADDRESS], params)
    other = hashes[place]
    if other == slot:
        hashes[place] = slots[slot, NEXT_HASHED]
        return
    while slots[other, NEXT_HASHED] != slot:
        other = slots[other, NEXT_HASHED]
    slots[other, NEXT_HASHED] = slots[slot, NEXT_HASHED]


@compiled_helper
def _free(control: Ints, slots: Ints, slot: int) -> None:
    slots[slot, NEXT_HASHED] = control[FREE_SLOT]
    control[FREE_SLOT] = slot


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


@inlined_helper
def _accept(
    t: int, lane: int, params: Ints, io: Ints, control: Ints, transactions: Ints, slots: Ints, hashes: Ints,
    staged: Ints, flight: Ints, request_log: Ints,
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
        queue = op if params[UNIFIED] == 0 else 0
        held = control[HELD + queue]
        if held == params[TRANSACTION_QUEUE]:
            return taken > 0, NEVER
        address = staged[lane, head, STAGED_ADDRESS]
        identity = staged[lane, head, STAGED_ID]
        tag = staged[lane, head, STAGED_TAG]
        io[STAGED_HEAD + 2 * lane] = head + 1
        taken += 1
        if io[LOGGING] == 1:
            request_log[identity, LOG_ACCEPTED] = t
        if _find(params, slots, hashes, address, 1) >= 0:
            # a waiting write answers the read, or swallows the write
            _complete(io, flight, request_log, 2, t, t + 1, tag, identity)
            if io[LOGGING] == 1:
                request_log[identity, LOG_CAS] = NO_CAS
            control[FORWARDED + op] += 1
            continue
        first = _find(params, slots, hashes, address, 0) if op == 0 else -1
        slot = control[FREE_SLOT]
        if slot >= 0:
            control[FREE_SLOT] = slots[slot, NEXT_HASHED]
        else:
            slot = control[SLOTS_USED]
            control[SLOTS_USED] = slot + 1
        slots[slot, TAG] = tag
        slots[slot, IDENTITY] = identity
        slots[slot, ARRIVED] = t
        slots[slot, NEXT_SHARING] = -1
        if first >= 0:
            while slots[first, NEXT_SHARING] >= 0:
                first = slots[first, NEXT_SHARING]
            slots[first, NEXT_SHARING] = slot
            control[SHARED] += 1
            continue
        rank = (address >> params[SHIFT_RANK]) & params[MASK_RANK]
        group = (address >> params[SHIFT_GROUP]) & params[MASK_GROUP]
        bank = (address >> params[SHIFT_BANK]) & params[MASK_BANK]
        groups = params[BANKS] // params[BANKS_PER_GROUP]
        bank_index = rank * params[BANKS] + group * params[BANKS_PER_GROUP] + bank
        slots[slot, ADDRESS] = address
        slots[slot, OP] = op
        slots[slot, BANK_INDEX] = bank_index
        slots[slot, ROW] = (address >> params[SHIFT_ROW]) & params[MASK_ROW]
        slots[slot, COLUMN] = (address >> params[SHIFT_COLUMN]) & params[MASK_COLUMN]
        slots[slot, RANK_NODE] = 1 + rank
        slots[slot, GROUP_NODE] = 1 + params[RANKS] + rank * groups + group
        slots[slot, BANK_NODE] = 1 + params[RANKS] * (1 + groups) + bank_index
        if op == 1 and params[POSTED_WRITES] == 1:
            _complete(io, flight, request_log, 2, t, t + 1, tag, identity)
        place = _hash(address, params)
        slots[slot, NEXT_HASHED] = hashes[place]
        hashes[place] = slot
        transactions[queue, held] = slot
        control[HELD + queue] = held + 1
        control[MOVE_BLOCKED] = 0
    return taken > 0, NEVER


@compiled_helper
def _queue_of(params: Ints, slots: Ints, slot: int) -> int:
    return int(slots[slot, BANK_INDEX] if params[PER_BANK] == 1 else slots[slot, RANK_NODE] - 1)


@inlined_helper
def _ready_at(ready: Ints, slots: Ints, slot: int, command: int) -> int:
    return int(
        max(
            max(ready[0, command], ready[slots[slot, RANK_NODE], command]),
            max(ready[slots[slot, GROUP_NODE], command], ready[slots[slot, BANK_NODE], command]),
        )
    )


@compiled_helper
def _may_precharge(
    params: Ints, banks: Ints, queues: Ints, slots: Ints, queue: int, position: int, length: int
) -> bool:
    """A row is closed for the oldest request of the bank, once no hit waits behind it or the row has had its share."""
    bank_index = slots[queues[queue, position], BANK_INDEX]
    for i in range(position):
        if slots[queues[queue, i], BANK_INDEX] == bank_index:
            return False
    if banks[bank_index, ACCESSES] >= params[ROW_ACCESSES]:
        return True
    for i in range(position + 1, length):
        slot = queues[queue, i]
        if slots[slot, BANK_INDEX] == bank_index and slots[slot, ROW] == banks[bank_index, OPEN_ROW]:
            return False
    return True


@compiled_helper
def _waits_for_read(queues: Ints, slots: Ints, queue: int, position: int) -> bool:
    """An older read of the same place stands in front of this write."""
    write = queues[queue, position]
    for i in range(position):
        slot = queues[queue, i]
        if (
            slots[slot, OP] == 0
            and slots[slot, ROW] == slots[write, ROW]
            and slots[slot, COLUMN] == slots[write, COLUMN]
            and slots[slot, BANK_INDEX] == slots[write, BANK_INDEX]
        ):
            return True
    return False


@inlined_helper
def _first_ready(
    t: int, params: Ints, ready: Ints, banks: Ints, queues: Ints, queue_info: Ints, slots: Ints, queue: int
) -> tuple[int, int]:
    """(position, command) of the first request of a queue that can go now, or (-1, _): then QUEUE_WAKE tells when."""
    wake = NEVER
    length = queue_info[queue, LENGTH]
    for i in range(length):
        slot = queues[queue, i]
        bank_index = slots[slot, BANK_INDEX]
        open_row = banks[bank_index, OPEN_ROW]
        if open_row < 0:
            command = CMD_ACT
        elif open_row != slots[slot, ROW]:
            command = CMD_PRE
        else:
            command = CMD_WR if slots[slot, OP] == 1 else CMD_RD
            if params[CLOSE_PAGE] == 1:
                command += CMD_RDA - CMD_RD
        at = _ready_at(ready, slots, slot, command)
        if at >= wake:
            continue
        if command == CMD_PRE:
            if not _may_precharge(params, banks, queues, slots, queue, i, length):
                continue
        elif (command == CMD_WR) | (command == CMD_WRA) and _waits_for_read(queues, slots, queue, i):
            continue
        if at <= t:
            return i, command
        wake = at
    queue_info[queue, QUEUE_WAKE] = wake
    return -1, 0


@compiled_helper
def _close(t: int, ranks: Ints, banks: Ints, rank: int, bank_index: int, conflict: int) -> None:
    _settle(ranks, rank, t)
    ranks[rank, UNCLOSED] -= 1
    banks[bank_index, OPEN_ROW] = -1
    banks[bank_index, ACCESSES] = 0
    banks[bank_index, CONFLICT] = conflict


@inlined_helper
def _issue(
    t: int, queue: int, position: int, command: int, params: Ints, io: Ints, control: Ints, ranks: Ints, banks: Ints,
    queues: Ints, queue_info: Ints, slots: Ints, hashes: Ints, ready: Ints, windows: Ints, constraints: Ints,
    first_row: Ints, flight: Ints, request_log: Ints, command_log: Ints,
) -> None:  # fmt: skip
    """Issue the next command of a request."""
    slot = queues[queue, position]
    bank_index = slots[slot, BANK_INDEX]
    row = slots[slot, ROW]
    rank_node = slots[slot, RANK_NODE]
    rank = rank_node - 1
    bank = bank_index - rank * params[BANKS]
    _apply_constraints(
        t, params, ready, windows, constraints, first_row, command, rank_node, slots[slot, GROUP_NODE],
        slots[slot, BANK_NODE],
    )  # fmt: skip
    queue_info[queue, QUEUE_WAKE] = 0
    if command == CMD_ACT:
        _settle(ranks, rank, t)
        ranks[rank, ACTS] += 1
        ranks[rank, UNCLOSED] += 1
        banks[bank_index, OPEN_ROW] = row
        _log_command(io, command_log, t, command, rank, bank, row, -1, slots[slot, ARRIVED])
    elif command == CMD_PRE:
        ranks[rank, PRES] += 1
        _close(t, ranks, banks, rank, bank_index, 1)
        _log_command(io, command_log, t, command, rank, bank, -1, -1, slots[slot, ARRIVED])
    else:
        if banks[bank_index, ACCESSES] == 0:
            if banks[bank_index, CONFLICT] == 1:
                ranks[rank, CONFLICTS] += 1
            else:
                ranks[rank, MISSES] += 1
        banks[bank_index, ACCESSES] += 1
        if command >= CMD_RDA:
            _close(t, ranks, banks, rank, bank_index, 0)
        _log_command(io, command_log, t, command, rank, bank, row, slots[slot, COLUMN], slots[slot, ARRIVED])
        ring, latency = 1, params[READ_LATENCY]
        if slots[slot, OP] == 1:
            ring, latency = 0, params[WRITE_LATENCY]
            ranks[rank, WRITES] += 1
        else:
            ranks[rank, READS] += 1
        length = queue_info[queue, LENGTH] - 1
        for i in range(position, length):
            queues[queue, i] = queues[queue, i + 1]
        queue_info[queue, LENGTH] = length
        control[QUEUED] -= 1
        control[MOVE_BLOCKED] = 0
        _forget(params, slots, hashes, slot)
        while slot >= 0:
            identity = slots[slot, IDENTITY]
            if io[LOGGING] == 1:
                request_log[identity, LOG_CAS] = t
            if ring == 1 or params[POSTED_WRITES] == 0:
                _complete(io, flight, request_log, ring, t, t + latency, slots[slot, TAG], identity)
            following = slots[slot, NEXT_SHARING]
            _free(control, slots, slot)
            slot = following


@inlined_helper
def _search_queues(
    t: int, first_command: int, params: Ints, io: Ints, control: Ints, ranks: Ints, banks: Ints, queues: Ints,
    queue_info: Ints, slots: Ints, hashes: Ints, ready: Ints, windows: Ints, constraints: Ints, first_row: Ints,
    refreshes: Ints, flight: Ints, request_log: Ints, command_log: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Round robin over the command queues. Returns (command issued or -1, next edge to look).

    ``first_command`` is the command already issued in this clock, or -1: then only one of the other kind goes.
    """
    count = queue_info.shape[0]
    blocked_from = blocked_to = -1
    if control[REFRESHING] == 1:
        rank = refreshes[control[REFRESH_HEAD] % refreshes.shape[0]]
        width = params[BANKS] if params[PER_BANK] == 1 else 1
        blocked_from, blocked_to = rank * width, (rank + 1) * width
    wake = NEVER
    index = control[QUEUE_INDEX]
    for _ in range(count):
        index += 1
        if index == count:
            index = 0
        if queue_info[index, LENGTH] == 0 or (blocked_from <= index and index < blocked_to):
            continue
        if queue_info[index, QUEUE_WAKE] <= t:
            position, command = _first_ready(t, params, ready, banks, queues, queue_info, slots, index)
            if position >= 0:
                control[QUEUE_INDEX] = index
                if first_command >= 0:
                    # the search stops at the first request that can go, be it of the wrong kind
                    first_column = first_command >= CMD_RD and first_command != CMD_REF
                    if first_column == (command >= CMD_RD):
                        return -1, t + 1
                _issue(
                    t, index, position, command, params, io, control, ranks, banks, queues, queue_info, slots, hashes,
                    ready, windows, constraints, first_row, flight, request_log, command_log,
                )  # fmt: skip
                return command, t + 1
        wake = min(wake, queue_info[index, QUEUE_WAKE])
    return -1, wake


@compiled_helper
def _refresh_work(
    t: int, params: Ints, io: Ints, control: Ints, ranks: Ints, banks: Ints, queue_info: Ints, ready: Ints,
    windows: Ints, constraints: Ints, first_row: Ints, refreshes: Ints, command_log: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Close a bank of the rank at the head of the line, or refresh it. Returns (command or -1, next edge to look)."""
    rank = refreshes[control[REFRESH_HEAD] % refreshes.shape[0]]
    control[REFRESHING] = 1
    groups = params[BANKS] // params[BANKS_PER_GROUP]
    if ranks[rank, UNCLOSED] > 0:
        wake = NEVER
        for bank in range(params[BANKS]):
            bank_index = rank * params[BANKS] + bank
            if banks[bank_index, OPEN_ROW] < 0:
                continue
            group_node = 1 + params[RANKS] + rank * groups + bank // params[BANKS_PER_GROUP]
            bank_node = 1 + params[RANKS] * (1 + groups) + bank_index
            at = max(
                max(ready[0, CMD_PRE], ready[1 + rank, CMD_PRE]),
                max(ready[group_node, CMD_PRE], ready[bank_node, CMD_PRE]),
            )
            if at <= t:
                ranks[rank, PRES] += 1
                _close(t, ranks, banks, rank, bank_index, 0)
                queue_info[bank_index if params[PER_BANK] == 1 else rank, QUEUE_WAKE] = 0
                _log_command(io, command_log, t, CMD_PRE, rank, bank, -1, -1, -1)
                _apply_constraints(
                    t, params, ready, windows, constraints, first_row, CMD_PRE, 1 + rank, group_node, bank_node
                )
                return CMD_PRE, t + 1
            wake = min(wake, at)
        return -1, wake
    at = max(ready[0, CMD_REF], ready[1 + rank, CMD_REF])
    if at > t:
        return -1, int(at)
    ranks[rank, REFS] += 1
    control[REFRESH_HEAD] += 1
    control[REFRESHING] = 0
    _log_command(io, command_log, t, CMD_REF, rank, -1, -1, -1, -1)
    _apply_constraints(t, params, ready, windows, constraints, first_row, CMD_REF, 1 + rank, 0, 0)
    return CMD_REF, t + 1


@inlined_helper
def _move_request(
    params: Ints, control: Ints, transactions: Ints, queues: Ints, queue_info: Ints, slots: Ints, hashes: Ints
) -> bool:
    """Move the first request of the queue whose turn it is to a command queue that has room."""
    begun = False
    if params[UNIFIED] == 0 and control[DRAINING] == 0:
        begun = True
        writes = control[WRITES_HELD]
        enough = writes > params[DRAIN_ABOVE] or (params[WRITE_LEFTOVERS] == 1 and control[HELD] == 0)
        if writes >= params[TRANSACTION_QUEUE] or (enough and control[QUEUED] == 0):
            control[DRAINING] = writes
    which = 1 if control[DRAINING] > 0 else 0
    for i in range(control[HELD + which]):
        slot = transactions[which, i]
        queue = _queue_of(params, slots, slot)
        length = queue_info[queue, LENGTH]
        if length == params[COMMAND_QUEUE]:
            continue
        if which == 1:
            if _find(params, slots, hashes, slots[slot, ADDRESS], 0) >= 0:
                if params[WRITE_LEFTOVERS] == 1:
                    continue  # it must wait for the read, others need not
                control[DRAINING] = 0
                return not begun  # reads may have their turn in the next clock
            control[DRAINING] -= 1
        queues[queue, length] = slot
        queue_info[queue, LENGTH] = length + 1
        queue_info[queue, QUEUE_WAKE] = 0
        control[QUEUED] += 1
        for j in range(i + 1, control[HELD + which]):
            transactions[which, j - 1] = transactions[which, j]
        control[HELD + which] -= 1
        return True
    if which == 1 and params[WRITE_LEFTOVERS] == 1 and control[QUEUED] == 0:
        # all writes wait for reads that have not moved yet
        control[DRAINING] = 0
        for i in range(control[HELD]):
            slot = transactions[0, i]
            queue = _queue_of(params, slots, slot)
            queues[queue, 0] = slot
            queue_info[queue, LENGTH] = 1
            queue_info[queue, QUEUE_WAKE] = 0
            control[QUEUED] += 1
            for j in range(i + 1, control[HELD]):
                transactions[0, j - 1] = transactions[0, j]
            control[HELD] -= 1
            return True
    return False


@compiled
def run(
    until: int, params: Ints, io: Ints, control: Ints, ranks: Ints, banks: Ints, queues: Ints, queue_info: Ints,
    transactions: Ints, slots: Ints, hashes: Ints, ready: Ints, windows: Ints, constraints: Ints, first_row: Ints,
    refreshes: Ints, staged: Ints, flight: Ints, request_log: Ints, command_log: Ints,
) -> int:  # fmt: skip
    """Run all DRAM edges before ``until``. Stops early (WAKE < until) when the command log is full.

    Returns WAKE, the first edge not yet run at which something can happen.
    """
    t = int(io[WAKE])
    while t < until:
        if io[COMMANDS] + 2 > command_log.shape[0]:
            break
        if io[QUIET_SINCE] >= 0:
            io[QUIET] += t - io[QUIET_SINCE]
            io[QUIET_SINCE] = -1
        acted = False
        wake = NEVER
        for lane in range(2 - params[IN_ORDER]):
            taken, edge = _accept(
                t, lane, params, io, control, transactions, slots, hashes, staged, flight, request_log
            )
            acted |= taken
            wake = min(wake, edge)
        asked = control[QUEUED] + control[HELD] + control[DRAINING] > 0
        asked |= params[WRITE_LEFTOVERS] == 1 and control[WRITES_HELD] > 0
        if t >= control[NEXT_REFRESH]:
            refreshes[control[REFRESH_TAIL] % refreshes.shape[0]] = control[NEXT_RANK]
            control[REFRESH_TAIL] += 1
            control[NEXT_REFRESH] += params[REFRESH_INTERVAL]
            if params[FIRST_RANK_ONLY] == 0:
                control[NEXT_RANK] = (control[NEXT_RANK] + 1) % params[RANKS]
        wake = min(wake, control[NEXT_REFRESH])

        command = -1
        if control[REFRESH_HEAD] < control[REFRESH_TAIL]:
            command, edge = _refresh_work(
                t, params, io, control, ranks, banks, queue_info, ready, windows, constraints, first_row, refreshes,
                command_log,
            )  # fmt: skip
            wake = min(wake, edge)
        acted |= command >= 0
        for _ in range(1 + params[DUAL]):
            if control[QUEUED] > 0 and (command < 0 or params[DUAL] == 1):
                second, edge = _search_queues(
                    t, command, params, io, control, ranks, banks, queues, queue_info, slots, hashes, ready, windows,
                    constraints, first_row, refreshes, flight, request_log, command_log,
                )  # fmt: skip
                wake = min(wake, edge)
                acted |= second >= 0
                if command >= 0 or second < 0:
                    break
                command = second
        if control[MOVE_BLOCKED] == 0:
            if _move_request(params, control, transactions, queues, queue_info, slots, hashes):
                acted = True
            else:
                control[MOVE_BLOCKED] = 1
        if control[QUEUED] == 0 and control[HELD] == 0 and control[DRAINING] == 0:
            io[QUIET_SINCE] = t + 1 if asked else t  # nothing waits that may go
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
