"""The compiled loop of a replay: endpoints, mesh and DRAM stepped together from one event to the next.

In each cycle in which something happens: the mesh stands after its ejections, the endpoints take their turns in
ascending order, the DRAM is clocked and one event passes between it and its endpoint; then the mesh runs on, up to its
next report or the next cycle in which an endpoint or the DRAM has something to do.
"""

from __future__ import annotations

from typing import Any

from cosa.common.compile_cache import compiled, compiled_helper
from dram import queues_kernel as queues
from dram.policies.dramsim2 import kernel as memory
from dram.policies.dramsim2.command_kernel import State
from nocsim.mesh import kernel as k

Ints = k.Int64s
Arrays = tuple[Any, ...]

FIRST_CYCLE = 2
"""Reset ends before the first clock edge of cycle 2, which is the first clock of the DRAM too."""

READ_BASE_ADDRESS = 0x30000
PACKET_BYTES = 32
PACKET_FLITS = 5
NEVER = 1 << 62
READ, WRITE = 0, 1

UNICAST, MULTICAST, COMPUTE = 0, 1, 2

# a transaction, by its place in the list; times are -1 where nothing was measured
OPERATION, ACTOR, SIZE, ROUTE = 0, 1, 2, 3
FIRST_DESTINATION, END_DESTINATION = 4, 5  # rows of `destinations`
FIRST_EDGE, END_EDGE = 6, 7  # rows of `edges`: the transactions that wait for it
OPEN = 8  # transactions it still waits for
DESTINATIONS_LEFT = 9
START, END, READ_START, READ_END, WRITE_START, WRITE_END = 10, 11, 12, 13, 14, 15
WRITES_QUEUED = 16  # packets that have arrived at the DRAM
TRANSACTION_FIELDS = 17

# a destination of a transaction
ENDPOINT, PACKETS_MISSING, DESTINATION_END = 0, 1, 2
DESTINATION_FIELDS = 3

# an edge
DEPENDENT, STRUCK = 0, 1
EDGE_FIELDS = 2

# an endpoint: its transactions that wait for nothing are a heap of places in `ready`
LINK, WAKE, FREE_CYCLE, BUSY, COMPUTING, FIRST_READY, N_READY, ARRIVED = 0, 1, 2, 3, 4, 5, 6, 7
ACTOR_FIELDS = 8

# state: scalars
UNFINISHED, LAST_CYCLE, LAST_ENDPOINT = 0, 1, 2
DRAM_ENDPOINT = 3  # -1 without DRAM
READING, READ_PACKET, PACKET_LEFT = 4, 5, 6  # transfer from the DRAM under way (-1: none)
SEEN = 7  # READ or WRITE: the completion that the endpoint is to see in its next turn; -1: none
N_EVENTS, EVENT_ORDER = 8, 9
QUEUED_HEAD, QUEUED_TAIL = 10, 11  # of the ring `queued`
STATE_SIZE = 12

# an event between the DRAM and its endpoint
STAMP, ORDER, IS_COMPLETION, EVENT_OP, ADDRESS = 0, 1, 2, 3, 4
EVENT_FIELDS = 5

# why a call returns
FINISHED, PAUSED, NEEDS_ROOM, WAITING, DEADLOCK = 0, 1, 2, 3, 4


@compiled_helper
def _push_ready(actors: Ints, ready: Ints, actor: int, place: int) -> None:
    """Add a place to an endpoint's heap."""
    first, i = actors[actor, FIRST_READY], actors[actor, N_READY]
    actors[actor, N_READY] = i + 1
    while i > 0:
        parent = (i - 1) >> 1
        if ready[first + parent] <= place:
            break
        ready[first + i] = ready[first + parent]
        i = parent
    ready[first + i] = place


@compiled_helper
def _pop_ready(actors: Ints, ready: Ints, actor: int) -> int:
    """Take the least place out of an endpoint's heap."""
    first, n = actors[actor, FIRST_READY], actors[actor, N_READY] - 1
    actors[actor, N_READY] = n
    least, last = ready[first], ready[first + n]
    i = 0
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and ready[first + child + 1] < ready[first + child]:
            child += 1
        if last <= ready[first + child]:
            break
        ready[first + i] = ready[first + child]
        i = child
    ready[first + i] = last
    return int(least)


@compiled_helper
def _strike(transactions: Ints, edges: Ints, actors: Ints, ready: Ints, edge: int, cycle: int, endpoint: int) -> None:
    """A dependency is met, seen in `endpoint`'s turn: later endpoints go on in this cycle, earlier ones in the next."""
    if edges[edge, STRUCK] == 1:
        return
    edges[edge, STRUCK] = 1
    dependent = edges[edge, DEPENDENT]
    transactions[dependent, OPEN] -= 1
    if transactions[dependent, OPEN] == 0:
        actor = transactions[dependent, ACTOR]
        _push_ready(actors, ready, actor, dependent)
        if actor != endpoint:  # its own turn goes on and sees it
            actors[actor, WAKE] = min(actors[actor, WAKE], cycle if actor > endpoint else cycle + 1)


@compiled_helper
def _finish(
    state: Ints, transactions: Ints, edges: Ints, actors: Ints, ready: Ints, place: int, cycle: int, endpoint: int
) -> None:
    """A transaction is over: all that depends on it hears of it."""
    transactions[place, END] = cycle
    state[UNFINISHED] -= 1
    state[LAST_CYCLE], state[LAST_ENDPOINT] = cycle, endpoint
    for edge in range(transactions[place, FIRST_EDGE], transactions[place, END_EDGE]):
        _strike(transactions, edges, actors, ready, edge, cycle, endpoint)


@compiled_helper
def _arrive(
    state: Ints, transactions: Ints, edges: Ints, destinations: Ints, actors: Ints, ready: Ints, place: int,
    packets: int, cycle: int, endpoint: int,
) -> None:  # fmt: skip
    """Packets of a transaction count as received at an endpoint, in its turn."""
    row = transactions[place, FIRST_DESTINATION]
    while destinations[row, ENDPOINT] != endpoint:
        row += 1
    destinations[row, PACKETS_MISSING] -= packets
    if destinations[row, PACKETS_MISSING] > 0:
        return
    destinations[row, DESTINATION_END] = cycle
    transactions[place, DESTINATIONS_LEFT] -= 1
    if transactions[place, DESTINATIONS_LEFT] == 0:
        _finish(state, transactions, edges, actors, ready, place, cycle, endpoint)
        return
    # The destination's own waiting transactions go on as soon as its own copy is complete.
    for edge in range(transactions[place, FIRST_EDGE], transactions[place, END_EDGE]):
        if transactions[edges[edge, DEPENDENT], ACTOR] == endpoint:
            _strike(transactions, edges, actors, ready, edge, cycle, endpoint)


@compiled_helper
def _enter(state: Ints, events: Ints, stamp: int, is_completion: int, op: int, address: int) -> None:
    """Queue an event between the DRAM and its endpoint."""
    n = state[N_EVENTS]
    events[n, STAMP] = stamp
    events[n, ORDER] = state[EVENT_ORDER]
    events[n, IS_COMPLETION] = is_completion
    events[n, EVENT_OP] = op
    events[n, ADDRESS] = address
    state[N_EVENTS] = n + 1
    state[EVENT_ORDER] += 1


@compiled_helper
def _read_packet(state: Ints, events: Ints, cycle: int) -> None:
    """The DRAM's endpoint builds the next packet of a transfer: its read is queued."""
    _enter(state, events, cycle, 0, READ, READ_BASE_ADDRESS + PACKET_BYTES * state[READ_PACKET])
    state[READ_PACKET] += 1


@compiled_helper
def _submit(state: Ints, transactions: Ints, actors: Ints, head: Ints, sub: Ints, place: int, cycle: int) -> None:
    """Put a transaction's message on the mesh."""
    actor = transactions[place, ACTOR]
    if head[k.SUB_POS] == head[k.SUB_END]:
        head[k.SUB_POS] = head[k.SUB_END] = 0
    s = head[k.SUB_END] << k.SUB_SHIFT
    head[k.SUB_END] += 1
    each, gate = 0, k.GATE_NONE
    if state[DRAM_ENDPOINT] >= 0:
        if actor == state[DRAM_ENDPOINT]:  # only the tail of each packet waits for the memory
            each, gate = each | k.EACH_SENT, k.GATE_TAIL
        if transactions[place, ROUTE] == state[DRAM_ENDPOINT]:
            each |= k.EACH_DELIVERED
    sub[s + k.S_CYCLE] = cycle
    sub[s + k.S_LINK] = actors[actor, LINK]
    sub[s + k.S_ROUTE] = transactions[place, ROUTE] * head[k.N_ROUTERS]
    sub[s + k.S_PACKETS] = transactions[place, SIZE]
    sub[s + k.S_FLITS] = sub[s + k.S_LAST_FLITS] = PACKET_FLITS
    sub[s + k.S_GATE] = 0
    sub[s + k.S_GATE_KIND] = gate
    sub[s + k.S_MESSAGE] = place
    sub[s + k.S_DSTS] = transactions[place, END_DESTINATION] - transactions[place, FIRST_DESTINATION]
    sub[s + k.S_TREE] = -1  # the rows of all trees stay
    sub[s + k.S_EACH] = each


@compiled_helper
def _release(head: Ints, planes: Ints, queue: Ints, tokens: Ints, link: int) -> None:
    """The data of the packet under way from the DRAM are there."""
    tokens[0] += 1
    if queue[2 * link] >= 0:
        planes[((link >> 6) << k.PLANE_SHIFT) + k.ACTIVE] |= 1 << (link & 63)
        head[k.N_STILL] = 0


@compiled_helper
def _dram_turn(
    state: Ints, transactions: Ints, edges: Ints, destinations: Ints, actors: Ints, ready: Ints, queued: Ints,
    events: Ints, mesh: Arrays, cycle: int,
) -> None:  # fmt: skip
    """What the DRAM's endpoint does first in its turn: take in packets to write, and see the DRAM's completion."""
    endpoint = state[DRAM_ENDPOINT]
    place = actors[endpoint, ARRIVED]
    if place >= 0:
        if transactions[place, WRITE_START] < 0:
            # Writing begins with the head flit; the flits of a packet arrive without a gap.
            transactions[place, WRITE_START] = cycle - (PACKET_FLITS - 1)
        number = transactions[place, WRITES_QUEUED]
        transactions[place, WRITES_QUEUED] = number + 1
        queued[state[QUEUED_TAIL] & (queued.size - 1)] = place
        state[QUEUED_TAIL] += 1
        _enter(state, events, cycle, 0, WRITE, PACKET_BYTES * number)
    seen = state[SEEN]
    state[SEEN] = -1
    if seen == WRITE:
        # Completions are credited to packets in the order of their arrival.
        place = queued[state[QUEUED_HEAD] & (queued.size - 1)]
        state[QUEUED_HEAD] += 1
        transactions[place, WRITE_END] = cycle
        _arrive(state, transactions, edges, destinations, actors, ready, place, 1, cycle, endpoint)
    elif seen == READ:
        transactions[state[READING], READ_END] = cycle
        _release(mesh[0], mesh[1], mesh[7], mesh[11], actors[endpoint, LINK])


@compiled_helper
def _turn(
    state: Ints, transactions: Ints, edges: Ints, destinations: Ints, actors: Ints, ready: Ints, queued: Ints,
    events: Ints, mesh: Arrays, cycle: int, endpoint: int,
) -> None:  # fmt: skip
    """An endpoint's turn."""
    is_dram = endpoint == state[DRAM_ENDPOINT]
    if is_dram:
        _dram_turn(state, transactions, edges, destinations, actors, ready, queued, events, mesh, cycle)
    elif actors[endpoint, ARRIVED] >= 0:
        # The mesh reports whole messages, but at the DRAM.
        place = actors[endpoint, ARRIVED]
        size = transactions[place, SIZE]
        _arrive(state, transactions, edges, destinations, actors, ready, place, size, cycle, endpoint)
    actors[endpoint, ARRIVED] = -1
    place = actors[endpoint, COMPUTING]
    if place >= 0:
        over = actors[endpoint, FREE_CYCLE] - 1
        if over > cycle:
            actors[endpoint, WAKE] = over
        else:
            actors[endpoint, COMPUTING] = -1
            actors[endpoint, BUSY] = 0
            _finish(state, transactions, edges, actors, ready, place, cycle, endpoint)
            actors[endpoint, WAKE] = cycle + 1
        return
    if is_dram and state[READING] >= 0:
        if state[PACKET_LEFT] == 1:
            state[PACKET_LEFT] = 0
            _read_packet(state, events, cycle)
        return
    if actors[endpoint, BUSY] == 1 or actors[endpoint, FREE_CYCLE] > cycle or actors[endpoint, N_READY] == 0:
        return
    place = _pop_ready(actors, ready, endpoint)
    transactions[place, START] = cycle
    actors[endpoint, BUSY] = 1
    if transactions[place, OPERATION] == COMPUTE:
        actors[endpoint, COMPUTING] = place
        actors[endpoint, FREE_CYCLE] = cycle + transactions[place, SIZE] + 1
        actors[endpoint, WAKE] = cycle + transactions[place, SIZE]
        return
    _submit(state, transactions, actors, mesh[0], mesh[9], place, cycle)
    if is_dram:
        transactions[place, READ_START] = cycle
        state[READING], state[READ_PACKET], state[PACKET_LEFT] = place, 0, 0
        _read_packet(state, events, cycle)


@compiled_helper
def _sent(state: Ints, transactions: Ints, actors: Ints, place: int, cycle: int) -> None:
    """The last flit of a message, or of a packet from the DRAM, has left in the cycle before."""
    actor = transactions[place, ACTOR]
    actors[actor, WAKE] = min(actors[actor, WAKE], cycle)
    if actor == state[DRAM_ENDPOINT]:
        if state[READ_PACKET] < transactions[place, SIZE]:
            state[PACKET_LEFT] = 1
            return
        state[READING] = -1
    actors[actor, BUSY] = 0


@compiled_helper
def _clock_dram(state: Ints, events: Ints, done: Ints, dram: State, cycle: int) -> None:
    """Clock the DRAM after the turns of a cycle, then take one event out.

    Its completions enter the queue with the time stamp cycle - 2, requests have entered with the cycle; the *newest*
    time stamp comes out first, equal ones in the order in which they came. A request taken out reaches DRAMSim2 in this
    cycle, a completion taken out is seen by the endpoint in its next turn.
    """
    io, staged, flight = dram.io, dram.staged, dram.flight
    if state[N_EVENTS] == 0 and io[queues.PENDING] == 0:
        return
    clock = cycle - FIRST_CYCLE
    while io[queues.WAKE] <= clock:
        io[queues.COMMANDS] = 0  # nobody asks for the commands of a replay
        memory.run_state(clock + 1, dram)
    if io[queues.FIRST_VISIBLE] <= clock:
        for i in range(queues.collect(io, flight, clock, done)):
            _enter(state, events, cycle - 2, 1, done[i, 0], 0)
    n = state[N_EVENTS]
    if n == 0:
        return
    best = 0
    for i in range(1, n):
        if events[i, STAMP] > events[best, STAMP] or (
            events[i, STAMP] == events[best, STAMP] and events[i, ORDER] < events[best, ORDER]
        ):
            best = i
    op = events[best, EVENT_OP]
    if events[best, IS_COMPLETION] == 1:
        state[SEEN] = op
    else:
        queues.push(io, staged, 0, clock + 1, op, events[best, ADDRESS], op, 0)
    state[N_EVENTS] = n - 1
    for field in range(EVENT_FIELDS):
        events[best, field] = events[n - 1, field]


@compiled_helper
def _dram_cycle(state: Ints, cycle: int, min_latency: int, io: Ints) -> int:
    """The next cycle in which the DRAM or its endpoint may have something to do with each other."""
    if state[N_EVENTS] > 0 or state[SEEN] >= 0:
        return cycle + 1
    if io[queues.PENDING] == 0:
        return NEVER
    # A completion not yet decided is at least the shortest latency away.
    undecided = io[queues.WAKE] + min_latency
    return int(max(cycle + 1, min(io[queues.FIRST_VISIBLE], undecided) + FIRST_CYCLE))


@compiled_helper
def _has_room(state: Ints, actors: Ints, events: Ints, queued: Ints, head: Ints, slot: Ints, dram: State) -> bool:
    """Whether nothing can run out of space in the next cycle."""
    if head[k.N_SLOTS_USED] + actors.shape[0] > slot.size >> k.SLOT_SHIFT:
        return False
    if state[DRAM_ENDPOINT] < 0:
        return True
    io, staged, flight = dram.io, dram.staged, dram.flight
    return bool(
        state[N_EVENTS] + 2 + io[queues.PENDING] <= events.shape[0]
        and state[QUEUED_TAIL] - state[QUEUED_HEAD] < queued.size
        and io[queues.STAGED_TAIL] < staged.shape[1]
        and io[queues.PENDING] + 1 < flight.shape[1]
    )


@compiled
def run_replay(
    state: Ints, transactions: Ints, edges: Ints, destinations: Ints, actors: Ints, ready: Ints, queued: Ints,
    events: Ints, done: Ints, min_latency: int, until: int, mesh: Arrays, dram: State,
) -> int:  # fmt: skip
    """Run a replay up to cycle `until`, or until it is over or needs something; returns why.

    Parameters
    ----------
    state, transactions, edges, destinations, actors: see the constants of this file
    ready: room for the heaps of the endpoints
    queued: ring of transactions, one for each packet that is being written to the DRAM
    events: events between the DRAM and its endpoint; done: completions handed over by the DRAM
    min_latency: clocks that the DRAM needs at least
    mesh, dram: arguments of `run_mesh`, and the state of the DRAM
    """
    head, slot, rec = mesh[0], mesh[8], mesh[10]
    has_dram = state[DRAM_ENDPOINT] >= 0
    n_endpoints = actors.shape[0]
    while state[UNFINISHED] > 0:
        if not _has_room(state, actors, events, queued, head, slot, dram):
            return NEEDS_ROOM
        cycle = head[k.CYCLE]
        following = NEVER
        for endpoint in range(n_endpoints):
            following = min(following, actors[endpoint, WAKE])
        if has_dram:
            following = min(following, _dram_cycle(state, cycle, min_latency, dram.io))
        if following == NEVER:
            if head[k.N_SLOTS_USED] == 0 and head[k.SUB_POS] == head[k.SUB_END]:
                return WAITING
            if head[k.N_FLITS] > 0 and head[k.N_STILL] >= k.SETTLED:
                return DEADLOCK
        if cycle >= until:
            return PAUSED
        head[k.UNTIL] = min(following, until)
        k.run_mesh(*mesh)
        cycle = head[k.CYCLE]
        for n in range(head[k.N_RECORDS]):
            r = n << k.RECORD_SHIFT
            place, endpoint = rec[r + 1], rec[r + 2]
            if rec[r] == k.SENT:
                _sent(state, transactions, actors, place, cycle)
            else:
                actors[endpoint, ARRIVED] = place
                actors[endpoint, WAKE] = cycle
        head[k.N_RECORDS] = 0
        if state[SEEN] >= 0:
            actors[state[DRAM_ENDPOINT], WAKE] = cycle
        for endpoint in range(n_endpoints):
            if actors[endpoint, WAKE] <= cycle:
                actors[endpoint, WAKE] = NEVER
                _turn(state, transactions, edges, destinations, actors, ready, queued, events, mesh, cycle, endpoint)
        if has_dram:
            _clock_dram(state, events, done, dram, cycle)
    return FINISHED
