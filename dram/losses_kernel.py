"""Reading a command log and charging every clock of the data bus: the compiled part of losses.py.

It knows the constraint table and the log, nothing of the controllers. ``last`` holds for each node of the tree channel
- rank - bank group - bank the edge of the last command of each kind, ``rings`` the last commands of rows with a window.
"""

import numpy as np
import numpy.typing as npt

from cosa.common.compile_cache import compiled, compiled_helper, inlined_helper

Ints = npt.NDArray[np.int64]

LONG_AGO = -(1 << 40)

CMD_ACT = 0
CMD_RD = 3
CMD_WR = 4
CMD_REF = 5
CMD_RDA = 6
CMD_WRA = 7

# columns of the constraint table, sorted by the later command
EARLIER = 0
SCOPE = 1
DELAY = 3
WINDOW = 4
CLASS = 5
# scopes
CHANNEL = 0
RANK = 1
GROUP = 2
BANK = 3
OTHER_RANKS = 4

# columns of the command log
LOG_CYCLE = 0
LOG_COMMAND = 1
LOG_RANK = 2
LOG_BANK = 3
LOG_ARRIVED = 6
LOG_QUIET = 7

# parameters
RANKS = 0
BANKS = 1
BANKS_PER_GROUP = 2
BURST = 3
READ_DELAY = 4  # read command to first data beat
WRITE_DELAY = 5
PARAMS_SIZE = 6

# classes: the first five are those of the table
ROW = 0
ACTIVATION = 1
TURNAROUND = 2
BANK_GROUP = 3
REFRESH = 4
DATA = 5
COMMAND_BUS = 6
IDLE = 7
IN_PROGRESS = 8
CLASSES = 9

# state
BUS_FREE = 0  # edge up to which the data bus is accounted for
QUIET_SEEN = 1
STATE_SIZE = 2

# per bank: the last ACT, the edges from which each class of rows allowed it, the arrival of its request
ACT_CYCLE = 0
ACT_ROW = 1
ACT_ACTIVATION = 2
ACT_REFRESH = 3
ACT_ARRIVED = 4
ACT_FIELDS = 5


@compiled_helper
def _find_bounds(
    command: int, rank_node: int, group_node: int, bank_node: int, params: Ints, rows: Ints, first_row: Ints,
    last: Ints, rings: Ints, bounds: Ints,
) -> None:  # fmt: skip
    """For each class of rows the edge from which it allows the command."""
    for i in range(DATA + 1):
        bounds[i] = LONG_AGO
    for row in range(first_row[command], first_row[command + 1]):
        scope = rows[row, SCOPE]
        earlier = rows[row, EARLIER]
        window = rows[row, WINDOW]
        node = 0
        if scope == RANK:
            node = rank_node
        elif scope == GROUP:
            node = group_node
        elif scope == BANK:
            node = bank_node
        if scope == OTHER_RANKS:
            since = LONG_AGO
            for other in range(1, 1 + params[RANKS]):
                if other != rank_node:
                    since = max(since, last[other, earlier])
        elif window > 1:
            since = rings[row, node, rings[row, node, window]]
        else:
            since = last[node, earlier]
        charged = rows[row, CLASS]
        bounds[charged] = max(bounds[charged], since + rows[row, DELAY])


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
        if rows[row, EARLIER] == command:
            node = 0
            if rows[row, SCOPE] == RANK:
                node = rank_node
            position = rings[row, node, rows[row, WINDOW]]
            rings[row, node, position] = t
            rings[row, node, rows[row, WINDOW]] = (position + 1) % rows[row, WINDOW]


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
        t = log[n, LOG_CYCLE]
        command = log[n, LOG_COMMAND]
        rank = log[n, LOG_RANK]
        bank = log[n, LOG_BANK]
        rank_node = 1 + rank
        group_node = -1
        bank_node = -1
        bank_index = -1
        if bank >= 0:
            groups = params[BANKS] // params[BANKS_PER_GROUP]
            bank_index = rank * params[BANKS] + bank
            group_node = 1 + params[RANKS] + rank * groups + bank // params[BANKS_PER_GROUP]
            bank_node = 1 + params[RANKS] * (1 + groups) + bank_index
        if command == CMD_ACT:
            _find_bounds(command, rank_node, group_node, bank_node, params, rows, first_row, last, rings, bounds)
            acts[bank_index, ACT_CYCLE] = t
            acts[bank_index, ACT_ROW] = bounds[ROW]
            acts[bank_index, ACT_ACTIVATION] = bounds[ACTIVATION]
            acts[bank_index, ACT_REFRESH] = bounds[REFRESH]
            acts[bank_index, ACT_ARRIVED] = log[n, LOG_ARRIVED]
        elif command >= CMD_RD and command != CMD_REF:
            read = (command == CMD_RD) | (command == CMD_RDA)
            data = t + (params[READ_DELAY] if read else params[WRITE_DELAY])
            if data + params[BURST] > edge:
                return n
            gap = data - state[BUS_FREE]
            if gap > 0:
                _find_bounds(command, rank_node, group_node, bank_node, params, rows, first_row, last, rings, bounds)
                _charge(
                    t, gap, log[n, LOG_QUIET] - state[QUIET_SEEN], log[n, LOG_ARRIVED], bounds, acts[bank_index], totals
                )
            # two ranks may hold the bus at once in DRAMSim2, which does not keep closed banks apart
            free = max(state[BUS_FREE], data + params[BURST])
            totals[DATA] += min(free - state[BUS_FREE], params[BURST])
            state[BUS_FREE] = free
            state[QUIET_SEEN] = log[n, LOG_QUIET]
        _note(t, command, rank_node, group_node, bank_node, rows, windowed, last, rings)
    return end
