"""Staging of submitted requests and delivery of completions: the parts both controllers share.

The compiled code of this file is cached on disk, and the cache sees changes of this file only. That is why the
positions inside ``io`` are written out again in each kernel file; a test checks that they agree.

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

from cosa.common.compile_cache import compiled

Ints = npt.NDArray[np.int64]

NEVER = 1 << 62
WAKE = 0
PENDING = 1
STAGED_HEAD = 2  # and 4 for lane 1
STAGED_TAIL = 3  # and 5
FLIGHT_HEAD = 6  # and 8, 10
FLIGHT_TAIL = 7  # and 9, 11
FIRST_VISIBLE = 12
COMMANDS = 13
LOGGING = 14
RATIO_NUM = 15
RATIO_DEN = 16
QUIET = 17
QUIET_SINCE = 18
IO_SIZE = 19

# columns of a staged request
STAGED_EDGE = 0
STAGED_OP = 1
STAGED_ADDRESS = 2
STAGED_TAG = 3
STAGED_ID = 4
STAGED_FIELDS = 5

# columns of the command log; -1 for what does not apply
LOG_CYCLE = 0
LOG_COMMAND = 1
LOG_RANK = 2
LOG_BANK = 3
LOG_ROW = 4
LOG_COLUMN = 5
LOG_ARRIVED = 6  # edge at which the request it is for was accepted
LOG_QUIET = 7  # QUIET at that edge
LOG_FIELDS = 8

# columns of a decided completion
FLIGHT_VISIBLE = 0
FLIGHT_EDGE = 1
FLIGHT_TAG = 2
FLIGHT_FIELDS = 3


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
        for ring in range(3):
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
