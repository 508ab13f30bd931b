"""Reading a command log and charging every clock of the data bus: the compiled part of losses.py.

It knows the constraint table and the log, nothing of the controllers. ``last`` holds for each node of the tree channel
- rank - bank group - bank the edge of the last command of each kind, ``rings`` the last commands of rows with a window.
"""

from cosa.common.compile_cache import compiled, compiled_helper, inlined_helper
from dram import banks_kernel as b
from dram import queues_kernel as q
from dram.queues_kernel import Ints

LONG_AGO = -(1 << 40)

# parameters
(
    RANKS, BANKS, BANKS_PER_GROUP, BURST,
    READ_DELAY,  # read command to first data beat
    WRITE_DELAY,
) = range(6)  # fmt: skip

# classes, in the order of dram.constraints.LOSS_CLASSES as far as they are those of the table
ROW, ACTIVATION, TURNAROUND, BANK_GROUP, REFRESH, DATA, COMMAND_BUS, IDLE, IN_PROGRESS, CLASSES = range(10)

# state
BUS_FREE = 0  # edge up to which the data bus is accounted for
QUIET_SEEN = 1
STATE_SIZE = 2

# per bank: the last ACT, the edges from which each class of rows allowed it, the arrival of its request
ACT_CYCLE, ACT_ROW, ACT_ACTIVATION, ACT_REFRESH, ACT_ARRIVED, ACT_FIELDS = range(6)


@compiled_helper
def _find_bounds(
    command: int, rank_node: int, group_node: int, bank_node: int, params: Ints, rows: Ints, first_row: Ints,
    last: Ints, rings: Ints, bounds: Ints,
) -> None:  # fmt: skip
    """For each class of rows the edge from which it allows the command."""
    for i in range(DATA + 1):
        bounds[i] = LONG_AGO
    for row in range(first_row[command], first_row[command + 1]):
        scope = rows[row, b.SCOPE]
        earlier = rows[row, b.EARLIER]
        window = rows[row, b.WINDOW]
        node = 0
        if scope == b.IN_RANK:
            node = rank_node
        elif scope == b.IN_GROUP:
            node = group_node
        elif scope == b.IN_BANK:
            node = bank_node
        if scope == b.OTHER_RANKS:
            since = LONG_AGO
            for other in range(1, 1 + params[RANKS]):
                if other != rank_node:
                    since = max(since, last[other, earlier])
        elif window > 1:
            since = rings[row, node, rings[row, node, window]]
        else:
            since = last[node, earlier]
        charged = rows[row, b.LOSS_CLASS]
        bounds[charged] = max(bounds[charged], since + rows[row, b.DELAY])


@inlined_helper
def _note(
    t: int, command: int, rank_node: int, group_node: int, bank_node: int, rows: Ints, windowed: Ints, last: Ints,
    rings: Ints,
) -> None:  # fmt: skip
    last[0, command] = t
    last[rank_node, command] = t
    if bank_node >= 0:
        last[group_node, command] = t
        last[bank_node, command] = t
    for i in range(windowed.shape[0]):
        row = windowed[i]
        if rows[row, b.EARLIER] == command:
            node = 0
            if rows[row, b.SCOPE] == b.IN_RANK:
                node = rank_node
            position = rings[row, node, rows[row, b.WINDOW]]
            rings[row, node, position] = t
            rings[row, node, rows[row, b.WINDOW]] = (position + 1) % rows[row, b.WINDOW]


@compiled_helper
def _take(gap: int, start: int, end: int, charged: int, totals: Ints) -> int:
    """Charge what lies between two edges, but no more than is left of the gap; returns what is left then."""
    part = min(max(end - start, 0), gap)
    totals[charged] += part
    return gap - part


@inlined_helper
def _charge(t: int, gap: int, quiet: int, arrived: int, bounds: Ints, act: Ints, totals: Ints) -> None:
    """Charge the ``gap`` clocks by which a column command at ``t`` was too late to follow the last data at once.

    Everything is charged by how much earlier the command would have gone without it, the last to hold it back first.
    What remains is the time it takes to close and open a row.
    """
    gap = _take(gap, 0, quiet, IDLE, totals)
    row, turn, group = bounds[ROW], bounds[TURNAROUND], bounds[BANK_GROUP]
    floor = max(row, arrived)
    gap = _take(gap, max(max(turn, group), floor), t, COMMAND_BUS, totals)
    if turn > group:
        gap = _take(gap, max(group, floor), turn, TURNAROUND, totals)
        gap = _take(gap, floor, group, BANK_GROUP, totals)
    else:
        gap = _take(gap, max(turn, floor), group, BANK_GROUP, totals)
        gap = _take(gap, floor, turn, TURNAROUND, totals)
    if row > arrived:
        # it waited for its ACT: what had held that back?
        activation, refresh = act[ACT_ACTIVATION], act[ACT_REFRESH]
        floor = max(act[ACT_ROW], act[ACT_ARRIVED])
        gap = _take(gap, max(max(activation, refresh), floor), act[ACT_CYCLE], COMMAND_BUS, totals)
        if refresh > activation:
            gap = _take(gap, max(activation, floor), refresh, REFRESH, totals)
            gap = _take(gap, floor, activation, ACTIVATION, totals)
        else:
            gap = _take(gap, max(refresh, floor), activation, ACTIVATION, totals)
            gap = _take(gap, floor, refresh, REFRESH, totals)
    totals[ROW] += gap


@compiled
def account(
    log: Ints, start: int, end: int, edge: int, params: Ints, rows: Ints, first_row: Ints, windowed: Ints, state: Ints,
    last: Ints, rings: Ints, acts: Ints, totals: Ints, bounds: Ints,
) -> int:  # fmt: skip
    """Read the log from row ``start``; returns the first row not read: ``end``, or a burst not over by ``edge``."""
    for n in range(start, end):
        t = log[n, q.LOG_CYCLE]
        command = log[n, q.LOG_COMMAND]
        rank = log[n, q.LOG_RANK]
        bank = log[n, q.LOG_BANK]
        rank_node = 1 + rank
        group_node = -1
        bank_node = -1
        bank_index = -1
        if bank >= 0:
            groups = params[BANKS] // params[BANKS_PER_GROUP]
            bank_index = rank * params[BANKS] + bank
            group_node = 1 + params[RANKS] + rank * groups + bank // params[BANKS_PER_GROUP]
            bank_node = 1 + params[RANKS] * (1 + groups) + bank_index
        if command == b.ACT:
            _find_bounds(command, rank_node, group_node, bank_node, params, rows, first_row, last, rings, bounds)
            acts[bank_index, ACT_CYCLE] = t
            acts[bank_index, ACT_ROW] = bounds[ROW]
            acts[bank_index, ACT_ACTIVATION] = bounds[ACTIVATION]
            acts[bank_index, ACT_REFRESH] = bounds[REFRESH]
            acts[bank_index, ACT_ARRIVED] = log[n, q.LOG_ARRIVED]
        elif command >= b.RD and command != b.REF:
            read = (command == b.RD) | (command == b.RDA)
            data = t + (params[READ_DELAY] if read else params[WRITE_DELAY])
            if data + params[BURST] > edge:
                return n
            gap = data - state[BUS_FREE]
            if gap > 0:
                _find_bounds(command, rank_node, group_node, bank_node, params, rows, first_row, last, rings, bounds)
                _charge(
                    t,
                    gap,
                    log[n, q.LOG_QUIET] - state[QUIET_SEEN],
                    log[n, q.LOG_ARRIVED],
                    bounds,
                    acts[bank_index],
                    totals,
                )
            # two ranks may hold the bus at once in DRAMSim2, which does not keep closed banks apart
            free = max(state[BUS_FREE], data + params[BURST])
            totals[DATA] += min(free - state[BUS_FREE], params[BURST])
            state[BUS_FREE] = free
            state[QUIET_SEEN] = log[n, q.LOG_QUIET]
        _note(t, command, rank_node, group_node, bank_node, rows, windowed, last, rings)
    return end
