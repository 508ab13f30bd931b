"""What the kernels of the policies are made of: parameters, ranks, banks, requests held, ready times, due refreshes.

A policy's own parameters and columns follow the shared ones. The state of timing is one ready time for each node of the
tree channel - rank - bank group - bank and each command: a command may go to a bank when the ready times of all four
nodes above it are reached, and issuing it raises those that the rows of the constraint table name.
"""

from typing import Any

from cosa.common.compile_cache import compiled, compiled_helper, inlined_helper
from dram.queues_kernel import NEVER, Ints

# commands, in the order of dram.constraints.COMMANDS
ACT, PRE, PREA, RD, WR, REF, RDA, WRA = range(8)

# columns of the constraint table
EARLIER, SCOPE, LATER, DELAY, WINDOW, LOSS_CLASS = range(6)
# scopes, in the order of dram.constraints.SCOPES; the first four are levels of the tree
IN_CHANNEL, IN_RANK, IN_GROUP, IN_BANK, OTHER_RANKS = range(5)

# parameters: read only
(
    RANKS,
    BANKS,  # of a rank
    BANKS_PER_GROUP,
    SHIFT_RANK, MASK_RANK, SHIFT_GROUP, MASK_GROUP, SHIFT_BANK, MASK_BANK,
    SHIFT_ROW, MASK_ROW, SHIFT_COLUMN, MASK_COLUMN,
    OFFSET_BITS,
    READ_LATENCY,  # column command to completion
    WRITE_LATENCY,
    IN_ORDER,  # 1: reads and writes come in one lane
    REQUESTS_PER_CLOCK,
    REFRESH_INTERVAL,  # of a rank
    PARAMS,
) = range(20)  # fmt: skip

# control: the scalars that change
(
    FORWARDED,  # requests answered without the DRAM: reads,
    MERGED,  # and writes
    FREE_SLOT,  # head of the list of free slots, -1: none
    SLOTS_USED,  # slots from here on were never used
    REFRESH_HEAD, REFRESH_TAIL,  # of the line of ranks that wait for their refresh
    REFRESH_WAKE,  # edge at which the next one falls due
    CONTROL,
) = range(8)  # fmt: skip

# ranks
(
    DUE,  # edge of the next refresh
    UNCLOSED,  # banks with a row open
    DOWN,  # 1: powered down
    ACTIVE_UNTIL,  # counts as active before this edge without an open row
    SETTLED_TO, ACTIVE_CYCLES, DOWN_CYCLES, STANDBY_CYCLES,
    ACTS, PRES, REFS, READS, WRITES,
    HITS, MISSES, CONFLICTS,  # of rows
    RANK_FIELDS,
) = range(17)  # fmt: skip

# banks
OPEN_ROW = 0  # -1: none
CONFLICT = 1  # closed for another row
NODE = 2  # rows of the ready times, one for each level of the tree
BANK_FIELDS = 6

# slots: the requests held
(
    OP, RANK, BANK_INDEX, ROW, COLUMN,
    ADDRESS,
    TAG, IDENTITY,
    ARRIVED,  # edge at which the request was accepted
    NEXT,  # further requests with the same hash value; also the list of free slots
    SLOT_FIELDS,
) = range(11)  # fmt: skip


@compiled_helper
def settle(ranks: Ints, rank: int, edge: int) -> None:
    """Charge the edges before ``edge`` to the power state the rank has been in."""
    start = ranks[rank, SETTLED_TO]
    cycles = edge - start
    if cycles > 0:
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
        settle(ranks, rank, edge)


@inlined_helper
def take_slot(control: Ints, slots: Ints, op: int, tag: int, identity: int, t: int) -> int:
    """A free slot, for a request accepted now."""
    slot = control[FREE_SLOT]
    if slot >= 0:
        control[FREE_SLOT] = slots[slot, NEXT]
    else:
        slot = control[SLOTS_USED]
        control[SLOTS_USED] = slot + 1
    slots[slot, OP] = op
    slots[slot, TAG] = tag
    slots[slot, IDENTITY] = identity
    slots[slot, ARRIVED] = t
    return int(slot)


@inlined_helper
def free_slot(control: Ints, slots: Ints, slot: int) -> None:
    """Give a slot back."""
    slots[slot, NEXT] = control[FREE_SLOT]
    control[FREE_SLOT] = slot


@inlined_helper
def decode(params: Ints, slots: Ints, slot: int, address: int) -> int:
    """Note where an address lies; returns the number of its bank in the channel."""
    rank = (address >> params[SHIFT_RANK]) & params[MASK_RANK]
    group = (address >> params[SHIFT_GROUP]) & params[MASK_GROUP]
    bank = (address >> params[SHIFT_BANK]) & params[MASK_BANK]
    bank_index = rank * params[BANKS] + group * params[BANKS_PER_GROUP] + bank
    slots[slot, ADDRESS] = address
    slots[slot, RANK] = rank
    slots[slot, BANK_INDEX] = bank_index
    slots[slot, ROW] = (address >> params[SHIFT_ROW]) & params[MASK_ROW]
    slots[slot, COLUMN] = (address >> params[SHIFT_COLUMN]) & params[MASK_COLUMN]
    return int(bank_index)


@compiled_helper
def hashed(params: Ints, hashes: Ints, address: int) -> int:
    """Place of an address in a table of a power of two of places."""
    block = address >> params[OFFSET_BITS]
    return int((block ^ (block >> 12) ^ (block >> 24)) & (hashes.shape[0] - 1))


@compiled
def find(params: Ints, slots: Ints, hashes: Ints, address: int, op: int) -> int:
    """Slot of the request held with this address and direction, or -1."""
    slot = hashes[hashed(params, hashes, address)]
    while slot >= 0 and not (slots[slot, ADDRESS] == address and slots[slot, OP] == op):
        slot = slots[slot, NEXT]
    return int(slot)


@inlined_helper
def remember(params: Ints, slots: Ints, hashes: Ints, slot: int) -> None:
    """Put a request into the table of addresses."""
    place = hashed(params, hashes, slots[slot, ADDRESS])
    slots[slot, NEXT] = hashes[place]
    hashes[place] = slot


@compiled_helper
def forget(params: Ints, slots: Ints, hashes: Ints, slot: int) -> None:
    """Take a request out of the table of addresses."""
    place = hashed(params, hashes, slots[slot, ADDRESS])
    other = hashes[place]
    if other == slot:
        hashes[place] = slots[slot, NEXT]
        return
    while slots[other, NEXT] != slot:
        other = slots[other, NEXT]
    slots[other, NEXT] = slots[slot, NEXT]


@inlined_helper
def ready_at(s: Any, bank_index: int, command: int) -> int:
    """Edge from which the command may go to the bank; ``s`` is the state of a policy that has ready times."""
    return int(
        max(
            max(s.ready[0, command], s.ready[s.banks[bank_index, NODE + IN_RANK], command]),
            max(
                s.ready[s.banks[bank_index, NODE + IN_GROUP], command],
                s.ready[s.banks[bank_index, NODE + IN_BANK], command],
            ),
        )
    )


@inlined_helper
def raise_ready(s: Any, row: int, node: int, t: int) -> None:
    """A row of the table holds back the node's later command; with a window, from the window-th last command on."""
    later = s.constraints[row, LATER]
    window = s.constraints[row, WINDOW]
    since = t
    if window > 1:
        position = s.windows[row, node, window]
        s.windows[row, node, position] = t
        position += 1
        if position == window:
            position = 0
        s.windows[row, node, window] = position
        since = s.windows[row, node, position]
    s.ready[node, later] = max(s.ready[node, later], since + s.constraints[row, DELAY])


@inlined_helper
def apply_constraints(s: Any, t: int, command: int, bank_index: int) -> None:
    """Raise the ready times the issued command names. Rank-wide commands have rows of scope rank and wider only."""
    for row in range(s.first_row[command], s.first_row[command + 1]):
        scope = s.constraints[row, SCOPE]
        if scope == OTHER_RANKS:
            for node in range(1, 1 + s.params[RANKS]):
                if node != s.banks[bank_index, NODE + IN_RANK]:
                    raise_ready(s, row, node, t)
        else:
            raise_ready(s, row, s.banks[bank_index, NODE + scope], t)


@compiled_helper
def refreshes_due(t: int, params: Ints, control: Ints, ranks: Ints, refreshes: Ints) -> None:
    """Put refreshes that fall due in line."""
    wake = NEVER
    for rank in range(params[RANKS]):
        if t >= ranks[rank, DUE]:
            refreshes[control[REFRESH_TAIL] % refreshes.shape[0]] = rank
            control[REFRESH_TAIL] += 1
            ranks[rank, DUE] += params[REFRESH_INTERVAL]
        wake = min(wake, ranks[rank, DUE])
    control[REFRESH_WAKE] = wake
