"""Who waits for what in a mesh that stands still: text for error reports."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from nocsim.kernel import mesh as k
from nocsim.mesh_state import MeshState
from nocsim.topology import Port


def describe(state: MeshState, reservation_flits: int) -> str:
    """One line for each message that is queued first or in flight: the links it holds and what it waits for."""
    link = state.link.reshape(-1, 1 << k.LINK_SHIFT)
    holders = _holders(state)
    holds: dict[int, list[str]] = defaultdict(list)
    for output, message in holders.items():
        holds[message].append(state.topology.link_name(output))

    waits: dict[int, list[str]] = defaultdict(list)
    for source in np.flatnonzero(state.plane(k.IREG)).tolist():
        flit = state.ring_flit(source, int(link[source, k.READ]))
        reasons = _reasons(state, source, flit, holders, reservation_flits)
        kind = "head" if flit & k.HEAD_BIT else "body"
        place = f"{kind} flit at r{link[source, k.ROUTER]} (from {state.topology.link_name(source)})"
        waits[_message(state, flit >> k.SLOT_OF_FLIT_SHIFT)].append(f"{place} waits for {', '.join(reasons)}")
    active, sender_full = state.plane(k.ACTIVE), state.plane(k.SND)
    for source in np.flatnonzero(state.queues[::2] >= 0).tolist():
        message = _message(state, int(state.queues[2 * source]))
        if not active[source]:
            waits[message].append(f"source waits for a token at {state.topology.link_name(source)}")
        elif sender_full[source]:
            waits[message].append(f"source waits for {state.topology.link_name(source)} (busy)")

    lines = [f"cycle {state.head[k.CYCLE]}: {state.head[k.N_FLITS]} flits in the mesh"]
    for message in sorted(holds.keys() | waits.keys()):
        held = f"holds {', '.join(holds[message])}" if holds[message] else "holds no link"
        lines.append("; ".join([f"message {message} {held}", *waits[message]]))
    return "\n".join(lines)


def _message(state: MeshState, slot: int) -> int:
    return int(state.slot[(slot << k.SLOT_SHIFT) + k.MESSAGE])


def _holders(state: MeshState) -> dict[int, int]:
    """Message that holds each output link which is between a head and a tail flit."""
    link = state.link.reshape(-1, 1 << k.LINK_SHIFT)
    is_output = np.zeros(state.topology.n_links, dtype=np.bool_)
    is_output[state.outputs.reshape(-1, 8)[:, : len(Port)]] = True
    holders = {}
    for output in np.flatnonzero(is_output & ~state.plane(k.OPEN)).tolist():
        newest = state.ring_flit(output, int(link[output, k.WRITE]) - 1)
        holders[output] = _message(state, newest >> k.SLOT_OF_FLIT_SHIFT)
    return holders


def _reasons(state: MeshState, source: int, flit: int, holders: dict[int, int], reservation_flits: int) -> list[str]:
    """What keeps the flit in an input register from its outputs, one text for each output."""
    router = int(state.link[(source << k.LINK_SHIFT) + k.ROUTER])
    branch = int(state.routes[((flit >> k.ROUTE_SHIFT) & k.ROUTE_MASK) + router])
    is_head = bool(flit & k.HEAD_BIT)
    if branch >= 0:
        outputs = [branch]
    else:
        outputs = [int(state.outputs[(router << 3) + port]) for port in Port if ~branch >> port & 1]
    ready = state.plane(k.NOT_FULL + (0 if not is_head else 1 if branch >= 0 else 2))
    reasons = []
    for output in outputs:
        name = state.topology.link_name(output)
        if ready[output]:
            reasons.append(f"{name} (free)")
        elif is_head and output in holders:
            reasons.append(f"{name} (held by message {holders[output]})")
        elif is_head and branch < 0:
            reasons.append(f"{name} (fewer than {reservation_flits} places free)")
        else:
            reasons.append(f"{name} (FIFO full)")
    return reasons
