"""Staging of submitted requests, delivery of completions, logs: what a channel and the kernels of policies exchange.

``io`` (int64) holds what Python and the kernels exchange:

==================  ====================================================================================
WAKE                DRAM edge at which something can happen next; everything before it is done
PENDING             requests submitted and not yet delivered
STAGED_HEAD, _TAIL  first and one-past-last row of each of the two staging lanes (lane 1: head + 2, tail + 2)
FLIGHT_HEAD, _TAIL  counters of the three rings of decided completions (writes, reads, never sent to the DRAM)
FIRST_VISIBLE       least core cycle in which a decided completion becomes visible, or NEVER
COMMANDS            rows used in the command log
LOGGING             1: keep the request log
RATIO_NUM, _DEN     DRAM clocks per core cycle
QUIET               DRAM clocks up to QUIET_SINCE in which the controller held no request that may go
QUIET_SINCE         edge from which it holds none, or -1
==================  ====================================================================================
"""

import numpy as np
import numpy.typing as npt

from cosa.common.compile_cache import compiled, compiled_helper, inlined_helper

Ints = npt.NDArray[np.int64]

NEVER = 1 << 62

# io; what has a step of 2 is the same of the following lanes or rings
(
    WAKE, PENDING, STAGED_HEAD, STAGED_TAIL, _, _, FLIGHT_HEAD, FLIGHT_TAIL, _, _, _, _,
    FIRST_VISIBLE, COMMANDS, LOGGING, RATIO_NUM, RATIO_DEN, QUIET, QUIET_SINCE, IO_SIZE,
) = range(20)  # fmt: skip

# columns of a staged request
STAGED_EDGE, STAGED_OP, STAGED_ADDRESS, STAGED_TAG, STAGED_ID, STAGED_FIELDS = range(6)

# columns of the request log
ACCEPTED, CAS, COMPLETED, REQUEST_FIELDS = range(4)
NO_CAS = -2  # a column command that never comes

# columns of the command log; -1 for what does not apply
(
    LOG_CYCLE, LOG_COMMAND, LOG_RANK, LOG_BANK, LOG_ROW, LOG_COLUMN,
    LOG_ARRIVED,  # edge at which the request it is for was accepted
    LOG_QUIET,  # QUIET at that edge
    LOG_FIELDS,
) = range(9)  # fmt: skip

# columns of a decided completion, and rings of them
FLIGHT_VISIBLE, FLIGHT_EDGE, FLIGHT_TAG, FLIGHT_FIELDS = range(4)
WRITTEN, READ_BACK, NOT_SENT, RINGS = range(4)


@compiled
def push(io: Ints, staged: Ints, lane: int, edge: int, op: int, address: int, tag: int, identity: int) -> None:
    """Append one request to a staging lane that has room for it."""
    tail = io[STAGED_TAIL + 2 * lane]
    staged[lane, tail, STAGED_EDGE] = edge
    staged[lane, tail, STAGED_OP] = op
    staged[lane, tail, STAGED_ADDRESS] = address
    staged[lane, tail, STAGED_TAG] = tag
    staged[lane, tail, STAGED_ID] = identity
    io[STAGED_TAIL + 2 * lane] = tail + 1
    io[PENDING] += 1
    if edge < io[WAKE]:
        io[WAKE] = edge


@compiled
def push_many(
    io: Ints, staged: Ints, lane: int, edge: int, op: int, addresses: Ints, tags: Ints, first_identity: int, mask: int
) -> None:
    """Append requests of one direction and one edge to a staging lane that has room for them."""
    tail = io[STAGED_TAIL + 2 * lane]
    for i in range(addresses.shape[0]):
        staged[lane, tail + i, STAGED_EDGE] = edge
        staged[lane, tail + i, STAGED_OP] = op
        staged[lane, tail + i, STAGED_ADDRESS] = addresses[i]
        staged[lane, tail + i, STAGED_TAG] = tags[i]
        staged[lane, tail + i, STAGED_ID] = (first_identity + i) & mask
    io[STAGED_TAIL + 2 * lane] = tail + addresses.shape[0]
    io[PENDING] += addresses.shape[0]
    if edge < io[WAKE]:
        io[WAKE] = edge


@compiled
def push_rows(
    io: Ints, staged: Ints, lanes: int, edges: Ints, ops: Ints, addresses: Ints, tags: Ints, first_identity: int,
    mask: int,
) -> None:  # fmt: skip
    """Append requests in order to the lanes they belong to, which have room for them."""
    for i in range(edges.shape[0]):
        lane = ops[i] if lanes == 2 else 0
        tail = io[STAGED_TAIL + 2 * lane]
        staged[lane, tail, STAGED_EDGE] = edges[i]
        staged[lane, tail, STAGED_OP] = ops[i]
        staged[lane, tail, STAGED_ADDRESS] = addresses[i]
        staged[lane, tail, STAGED_TAG] = tags[i]
        staged[lane, tail, STAGED_ID] = (first_identity + i) & mask
        io[STAGED_TAIL + 2 * lane] = tail + 1
    io[PENDING] += edges.shape[0]


@compiled
def collect(io: Ints, flight: Ints, cycle: int, out: Ints) -> int:
    """Move completions visible at core cycle ``cycle`` or before to ``out`` (rows of tag, cycle); returns how many."""
    mask = flight.shape[1] - 1
    count = 0
    while True:
        best = -1
        best_visible = NEVER
        best_edge = NEVER
        for ring in range(RINGS):
            head = io[FLIGHT_HEAD + 2 * ring]
            if head < io[FLIGHT_TAIL + 2 * ring]:
                visible = flight[ring, head & mask, FLIGHT_VISIBLE]
                edge = flight[ring, head & mask, FLIGHT_EDGE]
                if visible < best_visible or (visible == best_visible and edge < best_edge):
                    best = ring
                    best_visible = visible
                    best_edge = edge
        if best < 0 or best_visible > cycle or count == out.shape[0]:
            io[FIRST_VISIBLE] = best_visible
            break
        head = io[FLIGHT_HEAD + 2 * best]
        out[count, 0] = flight[best, head & mask, FLIGHT_TAG]
        out[count, 1] = best_visible
        io[FLIGHT_HEAD + 2 * best] = head + 1
        count += 1
    io[PENDING] -= count
    return count


@inlined_helper
def complete(
    io: Ints, flight: Ints, request_log: Ints, ring: int, decided: int, completed: int, tag: int, identity: int
) -> None:
    """Put a decided completion on its ring."""
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
        request_log[identity, COMPLETED] = completed


@inlined_helper
def log_command(
    io: Ints, command_log: Ints, t: int, command: int, rank: int, bank: int, row: int, column: int, arrived: int
) -> None:
    """Append a row to the command log."""
    n = io[COMMANDS]
    command_log[n, LOG_CYCLE] = t
    command_log[n, LOG_COMMAND] = command
    command_log[n, LOG_RANK] = rank
    command_log[n, LOG_BANK] = bank
    command_log[n, LOG_ROW] = row
    command_log[n, LOG_COLUMN] = column
    command_log[n, LOG_ARRIVED] = arrived
    command_log[n, LOG_QUIET] = io[QUIET]
    io[COMMANDS] = n + 1


@inlined_helper
def end_quiet(io: Ints, t: int) -> None:
    """Count the edges since the controller held no request that may go."""
    if io[QUIET_SINCE] >= 0:
        io[QUIET] += t - io[QUIET_SINCE]
        io[QUIET_SINCE] = -1


@compiled_helper
def leave(io: Ints, flight: Ints, t: int) -> None:
    """What a kernel leaves behind at the first edge not yet run."""
    io[WAKE] = t
    first = NEVER
    mask = flight.shape[1] - 1
    for ring in range(RINGS):
        head = io[FLIGHT_HEAD + 2 * ring]
        if head < io[FLIGHT_TAIL + 2 * ring]:
            first = min(first, flight[ring, head & mask, FLIGHT_VISIBLE])
    io[FIRST_VISIBLE] = first
