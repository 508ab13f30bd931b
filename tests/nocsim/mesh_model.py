"""A slow, plain model of the mesh, written from the router rules alone: the oracle of the compiled kernel.

One object for each router with registers and lists for FIFOs; no bit planes, no rings, no jumps. It shares only the
numbering of endpoints (Topology) with the code under test; routes are worked out here.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from nocsim.mesh.topology import Port, Topology


@dataclass
class Message:
    number: int
    src: int
    dsts: frozenset[int]
    lengths: list[int]  # flits of each packet
    multicast: bool
    cycle: int
    gate: str = "none"  # none, head, tail
    tokens: int = 0
    packet: int = 0
    flit: int = 0


@dataclass(frozen=True)
class Flit:
    message: Message
    packet: int
    head: bool
    tail: bool
    dsts: frozenset[int]


@dataclass
class Wire:
    """A link: sender and receiver register."""

    sender: Flit | None = None
    receiver: Flit | None = None
    crossed: int = 0


@dataclass
class Output:
    fifo: deque[Flit] = field(default_factory=deque)
    register: Flit | None = None
    open: bool = True
    not_full: bool = True
    room: bool = True
    last_grant: int = 0


class Model:
    def __init__(self, columns: int, rows: int, fifo_flits: int, reservation_flits: int) -> None:
        self.topology = t = Topology(columns, rows)
        self.fifo_flits, self.reservation_flits = fifo_flits, reservation_flits
        self.now = 0
        self.last_move = 0  # last cycle with an injection or ejection
        self.wires = {number: Wire() for number in range(t.n_links)}
        self.inputs: list[list[Flit | None]] = [[None] * 5 for _ in range(t.n_routers)]
        self.in_progress: list[list[tuple[list[int], bool]]] = [[([], False)] * 5 for _ in range(t.n_routers)]
        self.outputs = [[Output() for _ in range(5)] for _ in range(t.n_routers)]
        for router in self.outputs:
            for output in router:
                output.room = reservation_flits <= fifo_flits
        self.queues: list[deque[Message]] = [deque() for _ in range(t.n_endpoints)]
        self.sent: list[tuple[int, int]] = []  # (message, cycle)
        self.delivered: list[tuple[int, int, int]] = []  # (message, dst, cycle)
        self.times: dict[tuple[int, int, int], list[int]] = {}  # (message, packet, dst or -1): [head, tail]

    @property
    def busy(self) -> bool:
        return any(self.queues) or any(w.sender or w.receiver for w in self.wires.values()) or self._routers_busy()

    def _routers_busy(self) -> bool:
        return any(flit for router in self.inputs for flit in router) or any(
            output.fifo or output.register for router in self.outputs for output in router
        )

    def step(self) -> None:
        """Injections, routers, link moves of this cycle, ejections of the next."""
        for endpoint, queue in enumerate(self.queues):
            if queue:
                self._inject(queue, self.wires[self.topology.injection_link(endpoint)])
        for router in range(self.topology.n_routers):
            self._route(router)
        for wire in self.wires.values():
            if wire.receiver is None and wire.sender is not None:
                wire.receiver, wire.sender = wire.sender, None
                wire.crossed += 1
        self.now += 1
        for endpoint in range(self.topology.n_endpoints):
            wire = self.wires[self.topology.ejection_link(endpoint)]
            if wire.receiver is not None:
                self._eject(wire.receiver, endpoint)
                wire.receiver = None

    def _inject(self, queue: deque[Message], wire: Wire) -> None:
        message = queue[0]
        if wire.sender is not None or message.cycle > self.now:
            return
        head, tail = message.flit == 0, message.flit == message.lengths[message.packet] - 1
        if (message.gate == "head" and head) or (message.gate == "tail" and tail):
            if not message.tokens:
                return
            message.tokens -= 1
        self.last_move = self.now
        wire.sender = Flit(message, message.packet, head, tail, message.dsts)
        times = self.times.setdefault((message.number, message.packet, -1), [-1, -1])
        if head:
            times[0] = self.now
        message.flit += 1
        if tail:
            times[1] = self.now
            message.packet, message.flit = message.packet + 1, 0
            if message.packet == len(message.lengths):
                self.sent.append((message.number, self.now))
                queue.popleft()

    def _eject(self, flit: Flit, endpoint: int) -> None:
        self.last_move = self.now
        times = self.times.setdefault((flit.message.number, flit.packet, endpoint), [-1, -1])
        if flit.head:
            assert flit.dsts == {endpoint}
            times[0] = self.now
        if flit.tail:
            times[1] = self.now
            if flit.packet == len(flit.message.lengths) - 1:
                self.delivered.append((flit.message.number, endpoint, self.now))

    def _port(self, router: int, dst: int) -> int:
        t = self.topology
        target, port = t.attachment(dst)
        (x, y), (dst_x, dst_y) = t.position(router), t.position(target)
        if x != dst_x:
            return Port.EAST if dst_x > x else Port.WEST
        if y != dst_y:
            return Port.SOUTH if dst_y > y else Port.NORTH
        return port

    def _route(self, router: int) -> None:
        inputs, outputs, in_progress = self.inputs[router], self.outputs[router], self.in_progress[router]
        unicast: list[list[int]] = [[] for _ in range(5)]
        multicast: list[tuple[int, list[int]]] = []
        for i, flit in enumerate(inputs):
            if flit is None:
                continue
            if flit.head:
                in_progress[i] = (sorted({self._port(router, dst) for dst in flit.dsts}), flit.message.multicast)
            ports, is_multicast = in_progress[i]
            if is_multicast:
                if flit.head:
                    ready = all(outputs[k].open and outputs[k].room for k in ports)
                else:
                    ready = all(outputs[k].not_full for k in ports)
                if ready:
                    multicast.append((i, ports))
            elif outputs[ports[0]].not_full and (outputs[ports[0]].open or not flit.head):
                unicast[ports[0]].append(i)

        granted: dict[int, int] = {}  # output: input
        for i, ports in multicast:
            if not any(k in granted for k in ports):
                granted.update(dict.fromkeys(ports, i))
        for k in range(5):
            if k not in granted and unicast[k]:
                order = [(outputs[k].last_grant - step) % 5 for step in range(1, 6)]
                outputs[k].last_grant = granted[k] = next(i for i in order if i in unicast[k])
        pushed = {}
        for k, i in granted.items():
            flit = inputs[i]
            assert flit is not None
            mine = frozenset(d for d in flit.dsts if self._port(router, d) == k)
            pushed[k] = Flit(flit.message, flit.packet, flit.head, flit.tail, mine)
        for i in set(granted.values()):
            inputs[i] = None

        for k, output in enumerate(outputs):
            wire = self.wires[self.topology.output_link(router, Port(k))]
            if output.register is not None and wire.sender is None:
                wire.sender, output.register = output.register, None
            if output.fifo and output.register is None:
                output.register = output.fifo.popleft()
            if k in pushed:
                output.fifo.append(pushed[k])
                output.open = pushed[k].tail
            output.not_full = len(output.fifo) < self.fifo_flits
            output.room = self.fifo_flits - len(output.fifo) >= self.reservation_flits
        for i in range(5):
            wire = self.wires[self.topology.input_link(router, Port(i))]
            if inputs[i] is None and wire.receiver is not None:
                inputs[i], wire.receiver = wire.receiver, None
