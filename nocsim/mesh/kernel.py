"""The compiled cycle loop of the mesh.

Layout. A flit that was granted an output passes output FIFO, output register, the link's sender and receiver register
and the next router's input register strictly in order. So it is written once, at the grant, into the *ring* of its
link, and read once, at the next grant or at the ejection. The moves between are moves of occupancy bits: each stage is
a *plane* with one bit for each link, 64 links to a word, and one pass over the words advances them all.

All arrays are flat. Indices are converted to uint64 inside the brackets, since numba tests signed ones for being
negative; every other number stays int64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import config, types
from numba import uint64 as u64
from numba.extending import intrinsic

from cosa.common.compile_cache import compiled, inlined_helper

Int64s = npt.NDArray[Any]  # int64; Any, since numba and mypy disagree on the types of elements
Bits = tuple[int, int, int, int, int, int]

# head: scalars of the state, one each
(
    CYCLE,  # current cycle: after its ejections, before its injections
    UNTIL,  # horizon of the call
    N_WORDS,  # words of 64 links
    N_ROUTERS,
    RING_SHIFT,  # log2 of the ring size
    FIRST_EJECTION,  # number of the ejection link of endpoint 0
    DEPTH_BIT_0,  # FIFO depth bit by bit, each spread over a word (0 or -1)
    ROOM_BIT_0,  # largest count that leaves room for a multicast, likewise
    IS_DEEP,  # 1 if the FIFO depth needs more than four bits
    ROOM_ANY,  # -1, or 0 if no count does
    SUB_POS,  # next submission to take
    SUB_END,  # end of the submissions
    N_RECORDS,  # records written
    RECORD_LIMIT,  # stop when so many are written (1: stop at the first cycle that reports)
    HEAD_RECORDS,  # also record head flits
    FREE_SLOT,  # first slot of the free list
    N_SLOTS_USED,
    N_FLITS,  # flits in the mesh, copies of multicasts counted each
    N_STILL,  # cycles in a row without injection, grant or ejection
    LAST_MOVE,  # last cycle in which a flit moved at a source or destination
    STALL_LIMIT,  # give up if nothing moves there for so many cycles
    STALLED,  # 1 if given up
) = (0, 1, 2, 3, 4, 5, 6, 12, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31)
HEAD_SIZE = 32

# planes: 32 places side by side for each word, 18 of them in use
SND, RCV, IREG, OREG, COUNT_0, COUNT_1, COUNT_2, COUNT_3 = 0, 1, 2, 3, 4, 5, 6, 7
OPEN = 8
NOT_FULL, UNICAST_OK, MULTICAST_OK = 9, 10, 11  # latched; in this order: NOT_FULL + 1 and + 2 are used for heads
ACTIVE, PUSHED, WANTED, EJECTS = 12, 13, 14, 15
COUNT_4, COUNT_5 = 16, 17  # used by deep FIFOs only
COUNT_PLANES = (COUNT_0, COUNT_1, COUNT_2, COUNT_3, COUNT_4, COUNT_5)
PLANE_SHIFT = 5

# link: 8 numbers (one cache line) for each link
READ, WRITE = 0, 1  # flits taken from and put into the ring since the start; both also serve as counters
ROUTER, INPUT = 2, 3  # router and input port the link feeds
DRIVER = 4  # router that drives the link
REQUESTS, LAST_GRANT = 5, 6  # inputs of DRIVER that ask for it in this cycle; round-robin pointer
LINK_SHIFT = 3

# slot: a message that is queued or in flight
NEXT, BASE, PACKETS_LEFT, FLITS, LAST_FLITS, POSITION, LENGTH, GATE, GATE_KIND, MESSAGE, DSTS_LEFT, TREE = range(12)
EACH = 12  # records for each packet, not for the whole message: a sum of the two below
SLOT_SHIFT = 4
EACH_SENT, EACH_DELIVERED = 1, 2

# sub: a message on its way into a slot
S_CYCLE, S_LINK, S_ROUTE, S_PACKETS, S_FLITS, S_LAST_FLITS, S_GATE, S_GATE_KIND, S_MESSAGE, S_DSTS, S_TREE = range(11)
S_EACH = 11
SUB_SHIFT = 4

# rec: kind, message, destination endpoint, cycle
SENT, DELIVERED, HEAD_SENT, HEAD_DELIVERED = 0, 1, 2, 3
RECORD_SHIFT = 2

GATE_NONE, GATE_HEAD, GATE_TAIL = 0, 1, 2

# flit: slot << 32 | offset of the route's row << 3 | report its ejection << 2 | tail << 1 | head
HEAD_BIT, TAIL_BIT, LAST_BIT = 1, 2, 4
ROUTE_SHIFT, SLOT_OF_FLIT_SHIFT = 3, 32
ROUTE_MASK = (1 << 29) - 1

MAX_FIFO_FLITS = 63  # six count planes
STAGES_AFTER_FIFO = 4  # output, sender, receiver and input register
SETTLED = 16
"""Cycles without injection, grant or ejection after which nothing can move: at most four flits of a link can leave its
FIFO then, in at most ten moves, and each cycle without a move repeats for ever."""


if config.DISABLE_JIT:

    def lowest_bit(word: int) -> int:
        """Number of the lowest set bit of a non-zero word."""
        value = int(word)
        return (value & -value).bit_length() - 1

else:

    @intrinsic  # type: ignore[untyped-decorator]
    def lowest_bit(typingctx: Any, word: Any) -> Any:
        """Number of the lowest set bit of a non-zero word."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

        return types.int64(types.int64), codegen


@inlined_helper
def write_record(rec: Int64s, n_records: int, kind: int, message: int, endpoint: int, cycle: int) -> int:
    """Write a record; how many there are."""
    n = n_records << RECORD_SHIFT
    rec[u64(n)] = kind
    rec[u64(n + 1)] = message
    rec[u64(n + 2)] = endpoint
    rec[u64(n + 3)] = cycle
    return n_records + 1


@inlined_helper
def join_queue(sub: Int64s, s: int, slot: Int64s, queues: Int64s, planes: Int64s, new: int) -> Any:
    """Put the submission at `s` into slot `new`, at the end of its source's queue; the next free slot."""
    m = new << SLOT_SHIFT
    free_slot = slot[u64(m + NEXT)]
    slot[u64(m + NEXT)] = -1
    slot[u64(m + BASE)] = (new << SLOT_OF_FLIT_SHIFT) | (sub[u64(s + S_ROUTE)] << ROUTE_SHIFT)
    n_packets = sub[u64(s + S_PACKETS)]
    slot[u64(m + PACKETS_LEFT)] = n_packets
    slot[u64(m + FLITS)] = sub[u64(s + S_FLITS)]
    slot[u64(m + LAST_FLITS)] = sub[u64(s + S_LAST_FLITS)]
    slot[u64(m + POSITION)] = 0
    slot[u64(m + LENGTH)] = sub[u64(s + (S_LAST_FLITS if n_packets == 1 else S_FLITS))]
    slot[u64(m + GATE)] = sub[u64(s + S_GATE)]
    slot[u64(m + GATE_KIND)] = sub[u64(s + S_GATE_KIND)]
    slot[u64(m + MESSAGE)] = sub[u64(s + S_MESSAGE)]
    each = sub[u64(s + S_EACH)]
    slot[u64(m + EACH)] = each
    slot[u64(m + DSTS_LEFT)] = sub[u64(s + S_DSTS)] * (n_packets if each & EACH_DELIVERED != 0 else 1)
    slot[u64(m + TREE)] = sub[u64(s + S_TREE)]
    source = sub[u64(s + S_LINK)]
    q = source << 1
    if queues[u64(q)] < 0:
        queues[u64(q)] = new
        planes[u64(((source >> 6) << PLANE_SHIFT) + ACTIVE)] |= np.int64(1) << (source & 63)
    else:
        slot[u64((queues[u64(q + 1)] << SLOT_SHIFT) + NEXT)] = new
    queues[u64(q + 1)] = new
    return free_slot


@inlined_helper
def take_token(slot: Int64s, m: int, tokens: Int64s) -> bool:
    """Whether the next flit of the message at `m` may go; it takes a token where its gate asks for one."""
    gate_kind = slot[u64(m + GATE_KIND)]
    if gate_kind == GATE_NONE:
        return True
    if slot[u64(m + POSITION)] != (0 if gate_kind == GATE_HEAD else slot[u64(m + LENGTH)] - 1):
        return True
    gate = slot[u64(m + GATE)]
    if tokens[u64(gate)] == 0:
        return False
    tokens[u64(gate)] -= 1
    return True


@inlined_helper
def next_flit(slot: Int64s, m: int) -> Any:
    """The next flit of the message at `m`, which moves on to the one behind."""
    flit = slot[u64(m + BASE)]
    position = slot[u64(m + POSITION)]
    if position == 0:
        flit |= HEAD_BIT
    position += 1
    if position == slot[u64(m + LENGTH)]:
        flit |= TAIL_BIT
        position = 0
        left = slot[u64(m + PACKETS_LEFT)] - 1
        slot[u64(m + PACKETS_LEFT)] = left
        if left == 0 or slot[u64(m + EACH)] & EACH_DELIVERED != 0:
            flit |= LAST_BIT
        if left == 1:
            slot[u64(m + LENGTH)] = slot[u64(m + LAST_FLITS)]
    slot[u64(m + POSITION)] = position
    return flit


@inlined_helper
def put(ring: Int64s, ring_shift: int, link: Int64s, output: int, flit: int) -> None:
    """Write a flit into the ring of a link."""
    k = output << LINK_SHIFT
    write = link[u64(k + WRITE)]
    ring[u64((output << ring_shift) | (write & ((1 << ring_shift) - 1)))] = flit
    link[u64(k + WRITE)] = write + 1


@inlined_helper
def first(ring: Int64s, ring_shift: int, link: Int64s, source: int) -> Any:
    """The flit that comes first in the ring of a link."""
    read = link[u64((source << LINK_SHIFT) + READ)]
    return ring[u64((source << ring_shift) | (read & ((1 << ring_shift) - 1)))]


@inlined_helper
def grant_tree(
    planes: Int64s, ring: Int64s, ring_shift: int, link: Int64s, outputs: Int64s, row: int, branch: int, flit: int
) -> int:
    """Give a multicast all its outputs behind a router if it may have them; the copies made (0: not granted)."""
    ready = NOT_FULL + ((flit & HEAD_BIT) << 1)
    ports = ~branch
    while ports != 0:
        output: Any = outputs[u64(row + lowest_bit(ports))]
        ports &= ports - 1
        o = (output >> 6) << PLANE_SHIFT
        if ((planes[u64(o + ready)] & ~planes[u64(o + PUSHED)]) >> (output & 63)) & 1 == 0:
            return 0
    copies = 0
    ports = ~branch
    while ports != 0:
        output = outputs[u64(row + lowest_bit(ports))]
        ports &= ports - 1
        o = (output >> 6) << PLANE_SHIFT
        bit = np.int64(1) << (output & 63)
        planes[u64(o + PUSHED)] |= bit
        if flit & TAIL_BIT != 0:
            planes[u64(o + OPEN)] |= bit
        else:
            planes[u64(o + OPEN)] &= ~bit
        put(ring, ring_shift, link, output, flit)
        copies += 1
    return copies


@inlined_helper
def granted_input(link: Int64s, k_out: int, winners: Int64s) -> Any:
    """Which of the inputs that ask for an output gets it, round robin; their requests are over."""
    requests = link[u64(k_out + REQUESTS)]
    link[u64(k_out + REQUESTS)] = 0
    if requests & (requests - 1) == 0:
        port = lowest_bit(requests)
    else:
        port = winners[u64((link[u64(k_out + LAST_GRANT)] << 5) | requests)]
    link[u64(k_out + LAST_GRANT)] = port
    return port


@inlined_helper
def advance(planes: Int64s, p: int, is_deep: bool, depth: Bits, room: Bits, room_any: int) -> Any:
    """Registers and FIFOs of the 64 links of a word advance (steps 7 to 10), then the links; those that eject.

    depth, room: the FIFO depth, and the largest count that leaves room for a multicast, bit by bit over a word.
    """
    snd, rcv = planes[u64(p + SND)], planes[u64(p + RCV)]
    ireg, oreg = planes[u64(p + IREG)], planes[u64(p + OREG)]
    c0, c1 = planes[u64(p + COUNT_0)], planes[u64(p + COUNT_1)]
    c2, c3 = planes[u64(p + COUNT_2)], planes[u64(p + COUNT_3)]
    c4 = c5 = np.int64(0)
    if is_deep:
        c4, c5 = planes[u64(p + COUNT_4)], planes[u64(p + COUNT_5)]
    push = planes[u64(p + PUSHED)]
    counted = c0 | c1 | c2 | c3 | c4 | c5
    if snd | rcv | oreg | counted | push == 0:
        return 0
    move = oreg & ~snd  # 7a: output register to sender register
    snd |= move
    oreg ^= move
    pop = counted & ~oreg  # 7b: FIFO to output register, before this cycle's pushes
    oreg |= pop
    change = pop ^ push  # 8: count + 1, - 1 or the same
    down = pop & ~push
    carry = change & (c0 ^ down)
    c0 ^= change
    change = carry & (c1 ^ down)
    c1 ^= carry
    carry = change & (c2 ^ down)
    c2 ^= change
    if is_deep:
        change = carry & (c3 ^ down)
        c3 ^= carry
        carry = change & (c4 ^ down)
        c4 ^= change
        c5 ^= carry
        planes[u64(p + COUNT_4)], planes[u64(p + COUNT_5)] = c4, c5
    else:
        c3 ^= carry
    not_full = (c0 ^ depth[0]) | (c1 ^ depth[1]) | (c2 ^ depth[2]) | (c3 ^ depth[3])  # 9
    fits = room[0] | ~c0
    fits = (room[1] & ~c1) | (~(room[1] ^ c1) & fits)
    fits = (room[2] & ~c2) | (~(room[2] ^ c2) & fits)
    fits = (room[3] & ~c3) | (~(room[3] ^ c3) & fits)
    if is_deep:
        not_full |= (c4 ^ depth[4]) | (c5 ^ depth[5])
        fits = (room[4] & ~c4) | (~(room[4] ^ c4) & fits)
        fits = (room[5] & ~c5) | (~(room[5] ^ c5) & fits)
    is_open = planes[u64(p + OPEN)]
    planes[u64(p + OREG)] = oreg
    planes[u64(p + COUNT_0)] = c0
    planes[u64(p + COUNT_1)] = c1
    planes[u64(p + COUNT_2)] = c2
    planes[u64(p + COUNT_3)] = c3
    planes[u64(p + NOT_FULL)] = not_full
    planes[u64(p + UNICAST_OK)] = not_full & is_open
    planes[u64(p + MULTICAST_OK)] = fits & room_any & is_open
    planes[u64(p + PUSHED)] = 0
    ejects = planes[u64(p + EJECTS)]
    move = rcv & ~ireg & ~ejects  # 10: receiver register to input register
    planes[u64(p + IREG)] = ireg | move
    rcv ^= move
    move = snd & ~rcv  # the link itself
    rcv |= move
    planes[u64(p + SND)] = snd ^ move
    bits = rcv & ejects
    planes[u64(p + RCV)] = rcv ^ bits
    return bits


@compiled
def run_mesh(
    head: Int64s,
    planes: Int64s,
    ring: Int64s,
    link: Int64s,
    outputs: Int64s,
    routes: npt.NDArray[Any],
    tree_uses: Int64s,
    queues: Int64s,
    slot: Int64s,
    sub: Int64s,
    rec: Int64s,
    tokens: Int64s,
    winners: Int64s,
) -> None:
    """Step the mesh from head[CYCLE] to head[UNTIL] or the first cycle that fills the records to their limit.

    Cycle order: injections, routers, link moves; then the cycle counter advances and the endpoints eject. Stepping
    stops between ejections and injections, so that whoever reads a report may still submit in that cycle.

    Parameters (all flat and contiguous; strides are the ``*_SHIFT`` constants)
    ----------
    head, planes, link, slot, sub, rec: see the constants above
    ring: flits in the order in which they pass a link, 2**RING_SHIFT places for each link
    outputs: link behind each output port, 8 numbers for each router
    routes: rows of n_routers entries: >= 0 the output link of a unicast, negative ~(set of output ports) of a tree
    tree_uses: for each route row, the number of messages that use it
    queues: first and last slot of the source queue at each injection link (-1: none)
    tokens: permits of each gate
    winners: round-robin winner for [last grant * 32 + set of requests]
    """
    cycle, until = head[CYCLE], head[UNTIL]
    n_words, n_routers, ring_shift = head[N_WORDS], head[N_ROUTERS], head[RING_SHIFT]
    first_ejection = head[FIRST_EJECTION]
    d, r = DEPTH_BIT_0, ROOM_BIT_0
    depth = head[d], head[d + 1], head[d + 2], head[d + 3], head[d + 4], head[d + 5]
    room = head[r], head[r + 1], head[r + 2], head[r + 3], head[r + 4], head[r + 5]
    room_any, is_deep = head[ROOM_ANY], head[IS_DEEP] != 0
    sub_pos, sub_end = head[SUB_POS], head[SUB_END]
    n_records, record_limit, head_records = head[N_RECORDS], head[RECORD_LIMIT], head[HEAD_RECORDS]
    free_slot, n_slots_used, n_flits = head[FREE_SLOT], head[N_SLOTS_USED], head[N_FLITS]
    n_still, last_move = head[N_STILL], head[LAST_MOVE]
    stall_limit, stalled = head[STALL_LIMIT], False
    one = np.int64(1)

    while cycle < until and n_records < record_limit:
        # messages whose cycle has come join the queue of their source
        while sub_pos < sub_end and sub[u64((sub_pos << SUB_SHIFT) + S_CYCLE)] <= cycle:
            if n_flits > 0 and cycle - last_move > stall_limit:
                stalled = True
                break
            free_slot = join_queue(sub, sub_pos << SUB_SHIFT, slot, queues, planes, free_slot)
            sub_pos += 1
            n_slots_used += 1
            n_still = 0
        if stalled:
            break

        # nothing can move before the next submission: jump
        idle = n_flits == 0
        if idle:
            for w in range(n_words):
                if planes[u64((w << PLANE_SHIFT) + ACTIVE)] != 0:
                    idle = False
                    break
        if idle or n_still >= SETTLED:
            target = until
            if sub_pos < sub_end and sub[u64((sub_pos << SUB_SHIFT) + S_CYCLE)] < until:
                target = sub[u64((sub_pos << SUB_SHIFT) + S_CYCLE)]
            if n_flits > 0 and target - last_move > stall_limit:
                stalled = True
                break
            cycle = target
            continue
        n_still += 1

        # sources inject; input registers ask for outputs (steps 1 to 4), multicasts are granted at once
        for w in range(n_words):
            p = w << PLANE_SHIFT
            bits = planes[u64(p + ACTIVE)] & ~planes[u64(p + SND)]
            while bits != 0:
                j = lowest_bit(bits)
                bits &= bits - 1
                source = (w << 6) | j
                m = queues[u64(source << 1)] << SLOT_SHIFT
                if not take_token(slot, m, tokens):
                    planes[u64(p + ACTIVE)] &= ~(one << j)  # until tokens are released
                    continue
                flit = next_flit(slot, m)
                if flit & HEAD_BIT != 0 and head_records != 0:
                    n_records = write_record(rec, n_records, HEAD_SENT, slot[u64(m + MESSAGE)], -1, cycle)
                if flit & TAIL_BIT != 0:
                    left = slot[u64(m + PACKETS_LEFT)]
                    if left == 0 or slot[u64(m + EACH)] & EACH_SENT != 0:
                        n_records = write_record(rec, n_records, SENT, slot[u64(m + MESSAGE)], -1, cycle)
                    if left == 0:
                        following = slot[u64(m + NEXT)]
                        queues[u64(source << 1)] = following
                        if following < 0:
                            planes[u64(p + ACTIVE)] &= ~(one << j)
                put(ring, ring_shift, link, source, flit)
                planes[u64(p + SND)] |= one << j
                n_flits += 1
                n_still = 0
                last_move = cycle

            bits = planes[u64(p + IREG)]
            while bits != 0:
                j = lowest_bit(bits)
                bits &= bits - 1
                source = (w << 6) | j
                k = source << LINK_SHIFT
                flit = first(ring, ring_shift, link, source)
                router = link[u64(k + ROUTER)]
                branch: Any = np.int64(routes[u64(((flit >> ROUTE_SHIFT) & ROUTE_MASK) + router)])
                if branch >= 0:
                    o = (branch >> 6) << PLANE_SHIFT
                    b = branch & 63
                    if (planes[u64(o + NOT_FULL + (flit & HEAD_BIT))] >> b) & 1 != 0:
                        link[u64((branch << LINK_SHIFT) + REQUESTS)] |= one << link[u64(k + INPUT)]
                        planes[u64(o + WANTED)] |= one << b
                else:
                    copies = grant_tree(planes, ring, ring_shift, link, outputs, router << 3, branch, flit)
                    if copies > 0:
                        n_flits += copies - 1
                        link[u64(k + READ)] += 1
                        planes[u64(p + IREG)] &= ~(one << j)
                        n_still = 0

        # unicasts get the outputs that no multicast took (step 5, 6, 8)
        for w in range(n_words):
            p = w << PLANE_SHIFT
            bits = planes[u64(p + WANTED)]
            if bits == 0:
                continue
            planes[u64(p + WANTED)] = 0
            taken = bits & planes[u64(p + PUSHED)]
            bits ^= taken
            while taken != 0:
                output = (w << 6) | lowest_bit(taken)
                taken &= taken - 1
                link[u64((output << LINK_SHIFT) + REQUESTS)] = 0
            planes[u64(p + PUSHED)] |= bits
            is_open = planes[u64(p + OPEN)]
            while bits != 0:
                j = lowest_bit(bits)
                bits &= bits - 1
                output = (w << 6) | j
                k_out = output << LINK_SHIFT
                source = granted_input(link, k_out, winners) * n_routers + link[u64(k_out + DRIVER)]
                flit = first(ring, ring_shift, link, source)
                link[u64((source << LINK_SHIFT) + READ)] += 1
                planes[u64(((source >> 6) << PLANE_SHIFT) + IREG)] &= ~(one << (source & 63))
                put(ring, ring_shift, link, output, flit)
                is_open = (is_open & ~(one << j)) | (((flit >> 1) & 1) << j)
                n_still = 0
            planes[u64(p + OPEN)] = is_open

        # registers, FIFOs and links advance, then the endpoints eject in the next cycle
        cycle += 1
        for w in range(n_words):
            bits = advance(planes, w << PLANE_SHIFT, is_deep, depth, room, room_any)
            if bits != 0:
                n_still = 0
                last_move = cycle
            while bits != 0:
                output = (w << 6) | lowest_bit(bits)
                bits &= bits - 1
                n_flits -= 1
                flit = first(ring, ring_shift, link, output)
                link[u64((output << LINK_SHIFT) + READ)] += 1
                if flit & LAST_BIT == 0 and (flit & HEAD_BIT == 0 or head_records == 0):
                    continue
                done = flit >> SLOT_OF_FLIT_SHIFT
                m = done << SLOT_SHIFT
                message, endpoint = slot[u64(m + MESSAGE)], output - first_ejection
                if flit & HEAD_BIT != 0 and head_records != 0:
                    n_records = write_record(rec, n_records, HEAD_DELIVERED, message, endpoint, cycle)
                if flit & LAST_BIT != 0:
                    n_records = write_record(rec, n_records, DELIVERED, message, endpoint, cycle)
                    left = slot[u64(m + DSTS_LEFT)] - 1
                    slot[u64(m + DSTS_LEFT)] = left
                    if left == 0:
                        tree = slot[u64(m + TREE)]
                        if tree >= 0:
                            tree_uses[u64(tree)] -= 1
                        slot[u64(m + NEXT)] = free_slot
                        free_slot = done
                        n_slots_used -= 1

    head[CYCLE] = cycle
    head[SUB_POS] = sub_pos
    head[N_RECORDS] = n_records
    head[FREE_SLOT], head[N_SLOTS_USED], head[N_FLITS] = free_slot, n_slots_used, n_flits
    head[N_STILL], head[LAST_MOVE] = n_still, last_move
    if stalled:
        head[STALLED] = 1


@compiled
def plant_trees(
    routes: npt.NDArray[Any],
    link: Int64s,
    outputs: Int64s,
    first_ejection: int,
    rows: Int64s,
    roots: Int64s,
    starts: Int64s,
    dsts: Int64s,
) -> None:
    """Write multicast trees into ``routes``.

    Tree t goes into row ``rows[t]``, starts at router ``roots[t]`` and ends at the local endpoints
    ``dsts[starts[t]:starts[t + 1]]``. It is the union of the unicast paths, whose rows come first in ``routes``.
    """
    n_routers = outputs.size >> 3
    for t in range(rows.size):
        row = rows[t] * n_routers
        for router in range(n_routers):
            routes[row + router] = -1
        for d in range(starts[t], starts[t + 1]):
            router = roots[t]
            while True:
                output: Any = np.int64(routes[dsts[d] * n_routers + router])
                for port in range(5):
                    if outputs[(router << 3) + port] == output:
                        routes[row + router] &= ~(1 << port)
                if output >= first_ejection:
                    break
                router = link[(output << LINK_SHIFT) + ROUTER]
