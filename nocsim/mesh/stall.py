"""Who waits for what in a mesh that stands still: the cycle of a deadlock, and text for error reports."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nocsim.mesh import kernel as k
from nocsim.mesh.state import MeshState
from nocsim.mesh.topology import Port


def describe(state: MeshState) -> str:
    """One line for each flit that waits, and for each packet that is held back at its source."""
    waits = [wait for row in _waits(state, for_sources=True).values() for wait in row]
    lines = [f"cycle {state.head[k.CYCLE]}: {state.head[k.N_FLITS]} flits in the mesh", *map(str, waits)]
    held = _held_links(state)
    active, sender_full = state.plane(k.ACTIVE), state.plane(k.SND)
    for source in np.flatnonzero(state.queues[::2] >= 0).tolist():
        if active[source] and not sender_full[source]:
            continue
        packet = _message(state, int(state.queues[2 * source]))
        holds, name = ", ".join(held[packet]) or "no link", state.topology.link_name(source)
        what = f"{name}, which is busy" if active[source] else f"a token at {name}"
        lines.append(f"packet {packet} holds {holds}; its source waits for {what}")
    return "\n".join(lines)


@dataclass(frozen=True)
class Wait:
    """A flit that cannot leave an input register, and one thing it waits for.

    Attributes
    ----------
    packet: message (packet number in a replay) of the flit
    place: link that feeds the input register
    router: router of the register
    is_head: head flit, else body or tail
    output: link it waits for
    reason: ``held`` by another packet, ``full`` FIFO, or too little ``room`` for a multicast
    blocker: packet that must move first, None if nothing can help (room for more flits than the FIFO has)
    holds: links the packet holds, from the passing of its head to that of its tail
    """

    packet: int
    place: str
    router: int
    is_head: bool
    output: str
    reason: str
    blocker: int | None
    holds: tuple[str, ...]

    def __str__(self) -> str:
        """One line for the report."""
        holds = ", ".join(self.holds) or "no link"
        flit = "head" if self.is_head else "body"
        why = {
            "held": f"held by packet {self.blocker}",
            "full": f"its FIFO is full behind packet {self.blocker}",
            "room": f"too little room for a multicast in its FIFO behind packet {self.blocker}",
        }[self.reason]
        if self.blocker is None:
            why = "its FIFO never has the room that a multicast needs"
        return f"packet {self.packet} holds {holds}; its {flit} flit at r{self.router} waits for {self.output}: {why}"


@dataclass(frozen=True)
class Deadlock:
    """Why a mesh stands still.

    Attributes
    ----------
    cycle: last cycle in which a flit moved at a source or destination
    n_flits: flits in the mesh
    n_packets: packets with flits in an input register
    waits: a cycle of packets, each of which waits for the next and the last for the first; or one that waits for what
        will never be
    """

    cycle: int
    n_flits: int
    n_packets: int
    waits: tuple[Wait, ...]

    @property
    def circular(self) -> bool:
        """Whether the waits form a cycle."""
        return bool(self.waits) and all(wait.blocker is not None for wait in self.waits)

    def renamed(self, name: Callable[[int], int]) -> Deadlock:
        """The same with other packet numbers."""
        waits = (
            replace(w, packet=name(w.packet), blocker=None if w.blocker is None else name(w.blocker))
            for w in self.waits
        )
        return replace(self, waits=tuple(waits))

    def lines(self) -> list[str]:
        """The report."""
        first = f"deadlock: nothing moved at any source or destination after cycle {self.cycle}"
        second = f"{self.n_flits} flits of {self.n_packets} packets stand in the mesh"
        packets = list(dict.fromkeys(wait.packet for wait in self.waits))
        if self.circular:
            names = " -> ".join(str(packet) for packet in [*packets, packets[0]])
            second += f"; packets that wait for each other: {names}"
        return [first, second, *(f"  {wait}" for wait in self.waits)]


def find_deadlock(state: MeshState) -> Deadlock:
    """The shortest cycle of waiting packets that a search finds in a mesh in which nothing can move.

    Each input register with a flit waits for others: for the register behind a full FIFO, or for the register in which
    the next flit of the packet that holds the output stands. All that a flit waits for must move before it, so every
    cycle of waits is a deadlock.
    """
    waits = _waits(state)
    found = next(([wait] for row in waits.values() for wait, register in row.items() if register is None), [])
    if not found:
        found = _shortest_cycle(waits)
    packets = {_message(state, state.ring_flit(r, _read(state, r)) >> k.SLOT_OF_FLIT_SHIFT) for r in waits}
    head = state.head
    return Deadlock(int(head[k.LAST_MOVE]), int(head[k.N_FLITS]), len(packets), tuple(found))


def _waits(state: MeshState, for_sources: bool = False) -> dict[int, dict[Wait, int | None]]:
    """For each input register with a flit what it waits for, and the register that must move first (None: none can).

    `for_sources`: also waits that end when a source has a token for its next flit; no register must move for these.
    """
    registers = np.flatnonzero(state.plane(k.IREG)).tolist()
    flits = {register: state.ring_flit(register, _read(state, register)) for register in registers}
    packet_of = {register: _message(state, flit >> k.SLOT_OF_FLIT_SHIFT) for register, flit in flits.items()}
    of_packet: dict[int, list[int]] = defaultdict(list)
    for register, packet in packet_of.items():
        of_packet[packet].append(register)
    holders, holds = _holders(state), _held_links(state)
    never = state.head[k.ROOM_ANY] == 0

    waits: dict[int, dict[Wait, int | None]] = {}
    for register, flit in flits.items():
        is_head = bool(flit & k.HEAD_BIT)
        router = int(state.link[(register << k.LINK_SHIFT) + k.ROUTER])
        row: dict[Wait, int | None] = {}
        for output, ready in _wanted(state, flit, router):
            if ready:
                continue
            blocker: int | None = None
            if is_head and output in holders:
                reason = "held"
                behind = [r for r in of_packet[holders[output]] if _leads_to(state, flits[r], r, output)]
                blocker = behind[-1] if behind else None
                if blocker is None and not for_sources:
                    continue  # its next flit waits at its source, for a token
            else:
                reason = "room" if is_head and _is_tree(state, flit, router) else "full"
                if not (never and reason == "room"):
                    blocker = output if output in flits else None
            wait = Wait(
                packet=packet_of[register],
                place=state.topology.link_name(register),
                router=router,
                is_head=is_head,
                output=state.topology.link_name(output),
                reason=reason,
                blocker=holders[output] if reason == "held" else None if blocker is None else packet_of[blocker],
                holds=tuple(holds[packet_of[register]]),
            )
            row[wait] = blocker
        waits[register] = row
    return waits


def _shortest_cycle(waits: dict[int, dict[Wait, int | None]]) -> list[Wait]:
    """A cycle of waits: the first one met by following any wait, then the shortest through one of its registers."""
    register = next((r for r, row in waits.items() if row), None)
    seen: list[int] = []
    while register is not None and register not in seen:
        seen.append(register)
        register = next(iter(waits.get(register, {}).values()), None)
    if register is None:
        return []
    best: list[Wait] = []
    for start in seen[seen.index(register) :]:
        came: dict[int, tuple[int, Wait]] = {}
        queue = deque([start])
        while queue and start not in came:
            at = queue.popleft()
            for wait, following in waits.get(at, {}).items():
                if following is not None and following not in came:
                    came[following] = (at, wait)
                    queue.append(following)
        path: list[Wait] = []
        at = start
        while not path or at != start:
            at, wait = came[at]
            path.insert(0, wait)
        if not best or len(path) < len(best):
            best = path
    return best


def _wanted(state: MeshState, flit: int, router: int) -> list[tuple[int, bool]]:
    """Outputs that a flit in an input register needs, and whether it could take each."""
    branch = _branch(state, flit, router)
    is_head = bool(flit & k.HEAD_BIT)
    ready = state.plane(k.NOT_FULL + (0 if not is_head else 1 if branch >= 0 else 2))
    return [(output, bool(ready[output])) for output in _outputs(state, branch, router)]


def _branch(state: MeshState, flit: int, router: int) -> int:
    return int(state.routes[((flit >> k.ROUTE_SHIFT) & k.ROUTE_MASK) + router])


def _outputs(state: MeshState, branch: int, router: int) -> list[int]:
    if branch >= 0:
        return [branch]
    return [int(state.outputs[(router << 3) + port]) for port in Port if ~branch >> port & 1]


def _is_tree(state: MeshState, flit: int, router: int) -> bool:
    return _branch(state, flit, router) < 0


def _leads_to(state: MeshState, flit: int, register: int, output: int) -> bool:
    """Whether the way of a flit from an input register on goes through an output link."""
    first_ejection = int(state.head[k.FIRST_EJECTION])
    routers = [int(state.link[(register << k.LINK_SHIFT) + k.ROUTER])]
    while routers:
        router = routers.pop()
        for link in _outputs(state, _branch(state, flit, router), router):
            if link == output:
                return True
            if link < first_ejection:
                routers.append(int(state.link[(link << k.LINK_SHIFT) + k.ROUTER]))
    return False


def _read(state: MeshState, link: int) -> int:
    return int(state.link[(link << k.LINK_SHIFT) + k.READ])


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


def _held_links(state: MeshState) -> dict[int, list[str]]:
    """Names of the links that each message holds."""
    holds: dict[int, list[str]] = defaultdict(list)
    for output, message in _holders(state).items():
        holds[message].append(state.topology.link_name(output))
    return holds
