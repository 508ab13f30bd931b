"""A mesh that stands still says who waits for whom, and the waits are real."""

from __future__ import annotations

import random
from pathlib import Path

from nocsim.mesh.routing import multicast_tree, unicast_route
from nocsim.mesh.topology import Topology
from nocsim.traffic.replay import Deliveries, Packet, replay_packets


def long_multicasts(seed: int) -> tuple[list[Packet], int, int]:
    rng = random.Random(seed)
    columns, rows = rng.choice([(4, 4), (3, 5), (6, 2), (5, 5)])
    n = columns * rows
    packets = []
    for cycle in range(0, 600, 2):
        n_dsts = rng.randint(2, n)
        if rng.random() < 0.7:
            packets.append(
                Packet(rng.randrange(n), tuple(rng.sample(range(n), n_dsts)), cycle, rng.choice([6, 12, 20]))
            )
        else:
            packets.append(Packet(rng.randrange(n), rng.randrange(n), cycle, rng.randint(1, 9)))
    return packets, columns, rows


def check_waits(packets: list[Packet], columns: int, rows: int, done: Deliveries) -> None:
    """The waits form a cycle of packets on their way, each at links of its own tree, held and wanted."""
    topology = Topology(columns, rows)
    names = topology.link_names()
    deadlock = done.deadlock
    assert deadlock is not None and deadlock.circular and len(deadlock.waits) >= 2
    missing = set(done.packet[done.tail_out < 0].tolist())
    started = set(done.packet[done.head_in >= 0].tolist())
    following = [*deadlock.waits[1:], deadlock.waits[0]]
    for wait, after in zip(deadlock.waits, following, strict=True):
        assert wait.blocker == after.packet
        assert wait.packet in missing & started
        packet = packets[wait.packet]
        dsts = packet.dsts
        assert isinstance(dsts, tuple)
        tree = (
            multicast_tree(topology, packet.src, dsts)
            if packet.multicast
            else unicast_route(topology, packet.src, dsts[0])
        )
        links = {names[link] for link in tree}
        assert {wait.place, wait.output, *wait.holds} <= links
        assert wait.is_head or wait.output in wait.holds
        if wait.reason == "held":
            assert wait.output in after.holds or any(w.packet == after.packet for w in deadlock.waits)
    assert deadlock.n_flits > 0 and deadlock.n_packets >= len({wait.packet for wait in deadlock.waits})


def test_multicasts_longer_than_the_reservation_deadlock_in_a_cycle() -> None:
    found = 0
    for seed in range(12):
        packets, columns, rows = long_multicasts(seed)
        done = replay_packets(packets, columns, rows)
        assert (done.deadlock is None) == done.complete
        if done.deadlock is not None:
            found += 1
            check_waits(packets, columns, rows, done)
    assert found >= 6


def test_the_report_names_packets_and_links() -> None:
    packets, columns, rows = long_multicasts(0)
    numbered = [Packet(p.src, p.dsts, p.inject_cycle, p.n_flits, p.multicast, 1000 + i) for i, p in enumerate(packets)]
    done = replay_packets(numbered, columns, rows)
    assert done.deadlock is not None
    lines = done.deadlock.lines()
    assert lines[0].startswith(f"deadlock: nothing moved at any source or destination after cycle {done.end_cycle}")
    cycle = [wait.packet for wait in done.deadlock.waits]
    assert f"wait for each other: {cycle[0]} -> " in lines[1] and lines[1].endswith(f" -> {cycle[0]}")
    for wait, line in zip(done.deadlock.waits, lines[2:], strict=True):
        assert line.startswith(f"  packet {wait.packet} holds ") and f"waits for {wait.output}: " in line
        assert wait.packet >= 1000


def test_a_reservation_beyond_the_fifo_is_no_cycle_but_a_wait_for_ever() -> None:
    done = replay_packets([Packet(0, (1, 2), 0, 1)], 2, 2, 4, 5)
    assert done.deadlock is not None and not done.deadlock.circular
    assert done.deadlock.lines()[-1].strip() == (
        "packet 0 holds no link; its head flit at r0 waits for r0->r1: "
        "its FIFO never has the room that a multicast needs"
    )


def test_partial_results_are_written(tmp_path: Path) -> None:
    packets, columns, rows = long_multicasts(0)
    done = replay_packets(packets, columns, rows)
    done.write(tmp_path / "out.csv")
    text = (tmp_path / "out.csv").read_text(encoding="utf-8")
    assert ",-1,-1" in text and text.count("\n") == 1 + len(done)
