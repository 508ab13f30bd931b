"""The compiled cycle loop of the mesh: kernel, helpers and constants in one file.

One file on purpose: numba keys its on-disk cache on the content of the file that holds the function and does not see
changes in others.

Layout. A flit that was granted an output passes output FIFO, output register, the link's sender and receiver register
and the next router's input register strictly in order. So it is written once, at the grant, into the *ring* of its
link, and read once, at the next grant or at the ejection. The moves between are moves of occupancy bits: each stage is
a *plane* with one bit for each link, 64 links to a word, and one pass over the words advances them all.

All arrays are flat. Indices are converted to uint64 inside the brackets, since numba tests signed ones for being
negative; every other number stays int64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import config, types
from numba import uint64 as u64
from numba.core.options import DefaultOptions
from numba.extending import intrinsic

from cosa.common.compile_cache import kept

Int64s = npt.NDArray[Any]  # int64; Any, since numba and mypy disagree on the types of elements
Function = TypeVar("Function", bound=Callable[..., Any])

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


#: The kernels allocate nothing, so counting references to their arrays is lost time, in compiling above all. Numba has
#: no public switch for that; without this one the kernels are only slower.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True} | (
    {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}
)


def compiled(function: Function) -> Function:
    """Compile at the first call, with a cache on disk where one can be written.

    numba looks beside the source, then in the user's cache folder, and raises RuntimeError if it can write neither.
    """
    return kept(function, **_OPTIONS)


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
    ring_mask = (1 << ring_shift) - 1
    first_ejection = head[FIRST_EJECTION]
    depth_0, depth_1 = head[DEPTH_BIT_0], head[DEPTH_BIT_0 + 1]
    depth_2, depth_3 = head[DEPTH_BIT_0 + 2], head[DEPTH_BIT_0 + 3]
    room_0, room_1 = head[ROOM_BIT_0], head[ROOM_BIT_0 + 1]
    room_2, room_3, room_any = head[ROOM_BIT_0 + 2], head[ROOM_BIT_0 + 3], head[ROOM_ANY]
    depth_4, depth_5 = head[DEPTH_BIT_0 + 4], head[DEPTH_BIT_0 + 5]
    room_4, room_5 = head[ROOM_BIT_0 + 4], head[ROOM_BIT_0 + 5]
    is_deep = head[IS_DEEP] != 0
    sub_pos, sub_end = head[SUB_POS], head[SUB_END]
    n_records, record_limit, head_records = head[N_RECORDS], head[RECORD_LIMIT], head[HEAD_RECORDS]
    free_slot, n_slots_used, n_flits = head[FREE_SLOT], head[N_SLOTS_USED], head[N_FLITS]
    n_still, last_move = head[N_STILL], head[LAST_MOVE]
    stall_limit, stalled = head[STALL_LIMIT], False
    one = np.int64(1)

    while cycle < until and n_records < record_limit:
        # messages whose cycle has come join the queue of their source
        while sub_pos < sub_end:
            s = sub_pos << SUB_SHIFT
            if sub[u64(s + S_CYCLE)] > cycle:
                break
            if n_flits > 0 and cycle - last_move > stall_limit:
                stalled = True
                break
            sub_pos += 1
            new = free_slot
            m = new << SLOT_SHIFT
            free_slot = slot[u64(m + NEXT)]
            n_slots_used += 1
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
                planes[u64(((source >> 6) << PLANE_SHIFT) + ACTIVE)] |= one << (source & 63)
            else:
                slot[u64((queues[u64(q + 1)] << SLOT_SHIFT) + NEXT)] = new
            queues[u64(q + 1)] = new
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
                new = queues[u64(source << 1)]
                m = new << SLOT_SHIFT
                position = slot[u64(m + POSITION)]
                length = slot[u64(m + LENGTH)]
                gate_kind = slot[u64(m + GATE_KIND)]
                if gate_kind != GATE_NONE:
                    gated = 0 if gate_kind == GATE_HEAD else length - 1
                    if position == gated:
                        gate = slot[u64(m + GATE)]
                        if tokens[u64(gate)] == 0:
                            planes[u64(p + ACTIVE)] &= ~(one << j)  # until tokens are released
                            continue
                        tokens[u64(gate)] -= 1
                flit = slot[u64(m + BASE)]
                if position == 0:
                    flit |= HEAD_BIT
                    if head_records != 0:
                        n = n_records << RECORD_SHIFT
                        n_records += 1
                        rec[u64(n)] = HEAD_SENT
                        rec[u64(n + 1)] = slot[u64(m + MESSAGE)]
                        rec[u64(n + 2)] = -1
                        rec[u64(n + 3)] = cycle
                position += 1
                if position == length:
                    flit |= TAIL_BIT
                    position = 0
                    left = slot[u64(m + PACKETS_LEFT)] - 1
                    slot[u64(m + PACKETS_LEFT)] = left
                    each = slot[u64(m + EACH)]
                    if left == 0 or each & EACH_DELIVERED != 0:
                        flit |= LAST_BIT
                    if left == 0 or each & EACH_SENT != 0:
                        n = n_records << RECORD_SHIFT
                        n_records += 1
                        rec[u64(n)] = SENT
                        rec[u64(n + 1)] = slot[u64(m + MESSAGE)]
                        rec[u64(n + 2)] = -1
                        rec[u64(n + 3)] = cycle
                    if left == 1:
                        slot[u64(m + LENGTH)] = slot[u64(m + LAST_FLITS)]
                    elif left == 0:
                        following = slot[u64(m + NEXT)]
                        queues[u64(source << 1)] = following
                        if following < 0:
                            planes[u64(p + ACTIVE)] &= ~(one << j)
                slot[u64(m + POSITION)] = position
                k = source << LINK_SHIFT
                ring[u64((source << ring_shift) | (link[u64(k + WRITE)] & ring_mask))] = flit
                link[u64(k + WRITE)] += 1
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
                flit = ring[u64((source << ring_shift) | (link[u64(k + READ)] & ring_mask))]
                router = link[u64(k + ROUTER)]
                branch: Any = np.int64(routes[u64(((flit >> ROUTE_SHIFT) & ROUTE_MASK) + router)])
                if branch >= 0:
                    o = (branch >> 6) << PLANE_SHIFT
                    b = branch & 63
                    if (planes[u64(o + NOT_FULL + (flit & HEAD_BIT))] >> b) & 1 != 0:
                        link[u64((branch << LINK_SHIFT) + REQUESTS)] |= one << link[u64(k + INPUT)]
                        planes[u64(o + WANTED)] |= one << b
                else:
                    ready = NOT_FULL + ((flit & HEAD_BIT) << 1)
                    granted = True
                    ports = ~branch
                    while ports != 0:
                        output: Any = outputs[u64((router << 3) + lowest_bit(ports))]
                        ports &= ports - 1
                        o = (output >> 6) << PLANE_SHIFT
                        if ((planes[u64(o + ready)] & ~planes[u64(o + PUSHED)]) >> (output & 63)) & 1 == 0:
                            granted = False
                            break
                    if granted:
                        ports = ~branch
                        while ports != 0:
                            output = outputs[u64((router << 3) + lowest_bit(ports))]
                            ports &= ports - 1
                            o = (output >> 6) << PLANE_SHIFT
                            bit = one << (output & 63)
                            planes[u64(o + PUSHED)] |= bit
                            if flit & TAIL_BIT != 0:
                                planes[u64(o + OPEN)] |= bit
                            else:
                                planes[u64(o + OPEN)] &= ~bit
                            k_out = output << LINK_SHIFT
                            ring[u64((output << ring_shift) | (link[u64(k_out + WRITE)] & ring_mask))] = flit
                            link[u64(k_out + WRITE)] += 1
                            n_flits += 1
                        n_flits -= 1
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
                requests = link[u64(k_out + REQUESTS)]
                link[u64(k_out + REQUESTS)] = 0
                if requests & (requests - 1) == 0:
                    port = lowest_bit(requests)
                else:
                    port = winners[u64((link[u64(k_out + LAST_GRANT)] << 5) | requests)]
                link[u64(k_out + LAST_GRANT)] = port
                source = port * n_routers + link[u64(k_out + DRIVER)]
                k = source << LINK_SHIFT
                flit = ring[u64((source << ring_shift) | (link[u64(k + READ)] & ring_mask))]
                link[u64(k + READ)] += 1
                planes[u64(((source >> 6) << PLANE_SHIFT) + IREG)] &= ~(one << (source & 63))
                ring[u64((output << ring_shift) | (link[u64(k_out + WRITE)] & ring_mask))] = flit
                link[u64(k_out + WRITE)] += 1
                is_open = (is_open & ~(one << j)) | (((flit >> 1) & 1) << j)
                n_still = 0
            planes[u64(p + OPEN)] = is_open

        # registers and FIFOs advance (steps 7 to 10), links move, then the endpoints eject in the next cycle
        cycle += 1
        for w in range(n_words):
            p = w << PLANE_SHIFT
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
                continue
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
            not_full = (c0 ^ depth_0) | (c1 ^ depth_1) | (c2 ^ depth_2) | (c3 ^ depth_3)  # 9
            room = room_0 | ~c0
            room = (room_1 & ~c1) | (~(room_1 ^ c1) & room)
            room = (room_2 & ~c2) | (~(room_2 ^ c2) & room)
            room = (room_3 & ~c3) | (~(room_3 ^ c3) & room)
            if is_deep:
                not_full |= (c4 ^ depth_4) | (c5 ^ depth_5)
                room = (room_4 & ~c4) | (~(room_4 ^ c4) & room)
                room = (room_5 & ~c5) | (~(room_5 ^ c5) & room)
            room &= room_any
            is_open = planes[u64(p + OPEN)]
            planes[u64(p + OREG)] = oreg
            planes[u64(p + COUNT_0)] = c0
            planes[u64(p + COUNT_1)] = c1
            planes[u64(p + COUNT_2)] = c2
            planes[u64(p + COUNT_3)] = c3
            planes[u64(p + NOT_FULL)] = not_full
            planes[u64(p + UNICAST_OK)] = not_full & is_open
            planes[u64(p + MULTICAST_OK)] = room & is_open
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
            if bits != 0:
                n_still = 0
                last_move = cycle
            while bits != 0:
                j = lowest_bit(bits)
                bits &= bits - 1
                n_flits -= 1
                output = (w << 6) | j
                k = output << LINK_SHIFT
                flit = ring[u64((output << ring_shift) | (link[u64(k + READ)] & ring_mask))]
                link[u64(k + READ)] += 1
                if flit & LAST_BIT == 0 and (flit & HEAD_BIT == 0 or head_records == 0):
                    continue
                done = flit >> SLOT_OF_FLIT_SHIFT
                m = done << SLOT_SHIFT
                message = slot[u64(m + MESSAGE)]
                if flit & HEAD_BIT != 0 and head_records != 0:
                    n = n_records << RECORD_SHIFT
                    n_records += 1
                    rec[u64(n)] = HEAD_DELIVERED
                    rec[u64(n + 1)] = message
                    rec[u64(n + 2)] = output - first_ejection
                    rec[u64(n + 3)] = cycle
                if flit & LAST_BIT != 0:
                    n = n_records << RECORD_SHIFT
                    n_records += 1
                    rec[u64(n)] = DELIVERED
                    rec[u64(n + 1)] = message
                    rec[u64(n + 2)] = output - first_ejection
                    rec[u64(n + 3)] = cycle
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
