"""What must hold for any traffic, with no reference at hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nocsim.mesh import kernel as kernel
from nocsim.mesh.mesh import Mesh, ReportKind
from nocsim.mesh.routing import multicast_tree, unicast_route, zero_load_latency_cycles
from nocsim.mesh.state import MeshState
from nocsim.mesh.topology import Port, Topology
from nocsim.traffic.replay import Deliveries, Packet, replay_packets

MAX_SIDE = 5


@dataclass(frozen=True)
class Case:
    """A mesh and packets that cannot deadlock: every multicast is at most the reservation, which fits the FIFO."""

    topology: Topology
    fifo_flits: int
    reservation_flits: int
    packets: tuple[Packet, ...]

    def run(self) -> Deliveries:
        t = self.topology
        return replay_packets(self.packets, t.columns, t.rows, self.fifo_flits, self.reservation_flits)

    def links(self, packet: Packet) -> frozenset[int]:
        assert isinstance(packet.dsts, tuple)
        if packet.multicast:
            return multicast_tree(self.topology, packet.src, packet.dsts)
        return frozenset(unicast_route(self.topology, packet.src, packet.dsts[0]))


@st.composite
def cases(draw: st.DrawFn, *, one_source: bool = False) -> Case:
    topology = Topology(draw(st.integers(1, MAX_SIDE)), draw(st.integers(1, MAX_SIDE)))
    fifo_flits = draw(st.integers(1, 20))
    reservation_flits = draw(st.integers(1, fifo_flits))
    source = draw(st.integers(0, topology.n_endpoints - 1))
    span = draw(st.sampled_from([0, 30, 300]))
    locals_ = st.integers(0, topology.n_routers - 1)
    endpoints = st.integers(0, topology.n_endpoints - 1)
    packets = []
    for _ in range(draw(st.integers(1, 40))):
        src = source if one_source else draw(endpoints)
        cycle = draw(st.integers(0, span))
        if draw(st.booleans()):
            dsts = tuple(draw(st.sets(locals_, min_size=1)))
            packets.append(Packet(src, dsts, cycle, draw(st.integers(1, reservation_flits)), multicast=True))
        else:
            packets.append(Packet(src, draw(endpoints), cycle, draw(st.integers(1, 25))))
    return Case(topology, fifo_flits, reservation_flits, tuple(packets))


@given(cases())
def test_flits_are_conserved_on_every_link(case: Case) -> None:
    flits = np.zeros(case.topology.n_links, dtype=np.int64)
    for packet in case.packets:
        flits[list(case.links(packet))] += packet.n_flits
    assert case.run().link_flits.tolist() == flits.tolist()


@given(cases())
def test_each_destination_gets_each_packet_once_and_no_other(case: Case) -> None:
    # through the message interface, whose reports say who received what
    t = case.topology
    mesh = Mesh(t.columns, t.rows, fifo_flits=case.fifo_flits, reservation_flits=case.reservation_flits)
    expected = []
    for packet in case.packets:
        assert isinstance(packet.dsts, tuple)
        cycle = packet.inject_cycle
        number = mesh.submit(packet.src, packet.dsts, 1, packet.n_flits, multicast=packet.multicast, cycle=cycle)
        expected += [(number, dst) for dst in packet.dsts]
    got = []
    while not mesh.idle:
        mesh.run(1 << 40)
        got += [(number, dst) for kind, number, dst, _ in mesh.take_reports() if kind == ReportKind.DELIVERED]
    assert sorted(got) == sorted(expected)


@given(cases())
def test_nothing_deadlocks_while_multicasts_fit_the_reservation(case: Case) -> None:
    done = case.run()
    assert done.complete and done.deadlock is None


@given(cases())
def test_times_are_in_order_and_no_packet_is_faster_than_in_an_empty_mesh(case: Case) -> None:
    for packet, dst, *times in columns_of(case.run()):
        head_in, tail_in, head_out, tail_out = times
        sent = case.packets[packet]
        assert head_in >= sent.inject_cycle
        assert tail_in - head_in >= sent.n_flits - 1
        assert tail_out - head_out >= sent.n_flits - 1
        assert head_out - head_in >= zero_load_latency_cycles(case.topology, sent.src, dst)
        assert tail_out - tail_in >= zero_load_latency_cycles(case.topology, sent.src, dst)


@given(cases())
def test_packets_between_two_endpoints_keep_their_order_and_do_not_mix(case: Case) -> None:
    last: dict[tuple[int, int], int] = {}
    entered: dict[int, int] = {}
    for packet, dst, head_in, tail_in, head_out, tail_out in columns_of(case.run()):
        src = case.packets[packet].src
        assert head_out > last.get((src, dst), -1)
        last[src, dst] = tail_out
        if entered.get(src, -1) != tail_in:  # another packet than the line before
            assert head_in > entered.get(src, -1)
            entered[src] = tail_in
    ejected: dict[int, list[tuple[int, int]]] = {}
    for _, dst, _, _, head_out, tail_out in columns_of(case.run()):
        ejected.setdefault(dst, []).append((head_out, tail_out))
    for spans in ejected.values():  # a destination reads packets whole, one after the other
        spans.sort()
        assert all(before[1] < after[0] for before, after in pairwise(spans))


def columns_of(done: Deliveries) -> list[tuple[int, ...]]:
    """Lines of the deliveries, by packet, which is also the order in which each source sends."""
    names = ("packet", "dst", "head_in", "tail_in", "head_out", "tail_out")
    return list(zip(*(getattr(done, name).tolist() for name in names), strict=True))


def mirrored(case: Case) -> Case:
    """The same turned by 180 degrees, which mirrors both axes."""
    turn = {endpoint: turned(case.topology, endpoint) for endpoint in range(case.topology.n_endpoints)}
    packets = []
    for packet in case.packets:
        assert isinstance(packet.dsts, tuple)
        packets.append(replace(packet, src=turn[packet.src], dsts=tuple(turn[dst] for dst in packet.dsts)))
    return replace(case, packets=tuple(packets))


def turned(topology: Topology, endpoint: int) -> int:
    router, port = topology.attachment(endpoint)
    column, row = topology.position(router)
    opposite = topology.router_at(topology.columns - 1 - column, topology.rows - 1 - row)
    return topology.endpoint_at(opposite, port if port == Port.LOCAL else port.opposite)


def times_by_destination(done: Deliveries, topology: Topology, *, turn: bool) -> list[tuple[int, ...]]:
    return sorted((packet, turned(topology, dst) if turn else dst, *times) for packet, dst, *times in columns_of(done))


@given(cases(one_source=True))
def test_a_single_source_gives_mirrored_results_in_the_mirrored_mesh(case: Case) -> None:
    """Packets of one source follow each other on a tree, so no two inputs ever ask for the same output.

    Where they do, results need not be mirrored: the router serves unicasts round robin in the order of its port
    numbers (local, north, east, south, west, downwards) and multicasts in ascending order. Turning the mesh exchanges
    north with south and east with west, and that is no rotation of the order. The test below shows it.
    """
    straight = times_by_destination(case.run(), case.topology, turn=True)
    assert straight == times_by_destination(mirrored(case).run(), case.topology, turn=False)


def test_arbitration_is_not_symmetric() -> None:
    """Two packets that come from the north and the south and leave to the local port: the south goes first."""
    topology = Topology(1, 3)
    case = Case(topology, 7, 5, (Packet(0, 1, 0, 1), Packet(2, 1, 0, 1)))
    assert [line[-1] for line in columns_of(case.run())] == [10, 9]
    assert [line[-1] for line in columns_of(mirrored(case).run())] == [9, 10]


@given(cases())
def test_a_drained_mesh_is_as_after_reset_but_for_the_round_robin_pointers(case: Case) -> None:
    """The pointers stay where the last grant left them, as in the router; all else is as new."""
    t = case.topology
    mesh = Mesh(t.columns, t.rows, fifo_flits=case.fifo_flits, reservation_flits=case.reservation_flits)
    for packet in case.packets:
        assert isinstance(packet.dsts, tuple)
        mesh.submit(packet.src, packet.dsts, 1, packet.n_flits, multicast=packet.multicast, cycle=packet.inject_cycle)
    while not mesh.idle:
        mesh.run(1 << 40)
        mesh.take_reports()
    state, new = mesh._state, MeshState(t, case.fifo_flits, case.reservation_flits)
    assert (state.planes == new.planes).all()
    assert (state.queues[::2] == -1).all()
    links = state.link.reshape(-1, 1 << kernel.LINK_SHIFT)
    assert (links[:, kernel.READ] == links[:, kernel.WRITE]).all()
    assert not links[:, kernel.REQUESTS].any()
    kept = [kernel.ROUTER, kernel.INPUT, kernel.DRIVER]
    assert (links[:, kept] == new.link.reshape(links.shape)[:, kept]).all()
    assert (state.tree_uses[t.n_endpoints :] == 0).all()
    assert state.head[kernel.N_SLOTS_USED] == state.head[kernel.N_FLITS] == 0


@settings(max_examples=25)
@given(cases(), st.integers(1, 1000))
def test_the_same_later_is_the_same(case: Case, delay: int) -> None:
    late = replace(case, packets=tuple(replace(p, inject_cycle=p.inject_cycle + delay) for p in case.packets))
    for column in ("head_in", "tail_in", "head_out", "tail_out"):
        assert (getattr(late.run(), column) == getattr(case.run(), column) + delay).all()
