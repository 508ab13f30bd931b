"""What the actors of a simulation rely on: reports, gates, idling, stalls, recycling."""

from __future__ import annotations

import doctest
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from nocsim.mesh import kernel as kernel
from nocsim.mesh import mesh as mesh_module
from nocsim.mesh import routing, topology
from nocsim.mesh.mesh import Gate, Mesh, Report, ReportKind

SENT, DELIVERED = ReportKind.SENT, ReportKind.DELIVERED
ROOT = Path(__file__).resolve().parents[2]


def drain(mesh: Mesh, until: int = 1 << 40) -> list[Report]:
    reports: list[Report] = []
    while not mesh.idle and mesh.now < until:
        mesh.run(until)
        reports += mesh.take_reports()
    return reports


def test_run_stops_at_each_report() -> None:
    mesh = Mesh(4, 4)
    first = mesh.submit(0, 1, 3, 5)
    second = mesh.submit(0, [1, 2], 1, 5)
    assert (mesh.run(100), mesh.take_reports()) == (15, [(SENT, first, -1, 14)])
    assert (mesh.run(18), mesh.take_reports()) == (18, [])
    assert mesh.run(100) == 20
    assert mesh.take_reports() == [(SENT, second, -1, 19)]
    assert (mesh.run(10**18), mesh.take_reports()) == (23, [(DELIVERED, first, 1, 23)])
    assert (mesh.run(10**18), mesh.take_reports()) == (28, [(DELIVERED, second, 1, 28)])
    assert (mesh.run(10**18), mesh.take_reports()) == (32, [(DELIVERED, second, 2, 32)])
    assert mesh.idle and mesh.run(10**18) == 10**18


def test_an_answer_leaves_in_the_cycle_of_the_report() -> None:
    mesh = Mesh(2, 1)
    mesh.submit(0, 1, 1, 1)
    assert [mesh.run(100), mesh.run(100)] == [1, 9]
    mesh.take_reports()
    answer = mesh.submit(1, 0, 1, 1)
    mesh.run(100)
    assert mesh.take_reports() == [(SENT, answer, -1, 9)]


def test_last_packet_may_be_shorter() -> None:
    mesh = Mesh(4, 4)
    message = mesh.submit(0, 15, 3, 5, 2)
    assert drain(mesh) == [(SENT, message, -1, 11), (DELIVERED, message, 15, 29 + 11)]
    assert mesh.link_flits()[mesh.topology.injection_link(0)] == 12


def test_later_cycles_and_the_order_of_a_source() -> None:
    mesh = Mesh(3, 3)
    late = mesh.submit(4, 4, 1, 1, cycle=50)
    behind = mesh.submit(4, 4, 1, 1, cycle=20)
    other = mesh.submit(0, 0, 1, 1, cycle=10)
    assert not mesh.idle
    assert drain(mesh) == [
        (SENT, other, -1, 10),
        (DELIVERED, other, 0, 15),
        (SENT, late, -1, 50),
        (SENT, behind, -1, 51),
        (DELIVERED, late, 4, 55),
        (DELIVERED, behind, 4, 56),
    ]


def test_submission_when_a_later_one_of_the_same_source_becomes_due() -> None:
    mesh = Mesh(2, 2)
    first = mesh.submit(0, 1, 1, 1, cycle=5)
    mesh.run(5)
    second = mesh.submit(0, 1, 1, 1)
    assert [r[1:] for r in drain(mesh) if r[0] == SENT] == [(first, -1, 5), (second, -1, 6)]


@pytest.mark.parametrize(("gate", "entered"), [(Gate.HEAD, 0), (Gate.TAIL, 4)])
def test_a_gate_holds_the_flit_until_released(gate: Gate, entered: int) -> None:
    mesh = Mesh(4, 4)
    message = mesh.submit(0, 3, 2, 5, gate=gate)
    follower = mesh.submit(0, 3, 1, 1)
    assert mesh.run(1000) == 1000 and mesh.take_reports() == []
    # the flits before the tail have gone through; they hold the path, but none of them is in flight
    assert mesh.link_flits()[mesh.topology.ejection_link(3)] == entered
    assert mesh.flits_in_flight == 0 and not mesh.stalled
    assert mesh.waiting_for_tokens and not mesh.idle
    mesh.release(message)
    mesh.run(2000)
    assert mesh.take_reports() == []
    mesh.release(message)
    reports = drain(mesh)
    sent = 2000 + (4 if gate == Gate.HEAD else 0)
    latency = routing.zero_load_latency_cycles(mesh.topology, 0, 3)
    assert reports == [
        (SENT, message, -1, sent),
        (SENT, follower, -1, sent + 1),
        (DELIVERED, message, 3, sent + latency),
        (DELIVERED, follower, 3, sent + 1 + latency),
    ]
    assert not mesh.waiting_for_tokens
    with pytest.raises(ValueError, match="does not wait"):
        mesh.release(message)


def test_tokens_may_come_early() -> None:
    mesh = Mesh(2, 2)
    gated = mesh.submit(0, 1, 3, 2, gate=Gate.TAIL, cycle=10)
    mesh.release(gated, 3)
    assert drain(mesh)[0] == (SENT, gated, -1, 15)


def test_a_held_path_blocks_others_and_single_flits_are_heads_and_tails() -> None:
    mesh = Mesh(3, 1)
    holder = mesh.submit(0, 2, 1, 2, gate=Gate.TAIL)
    mesh.run(100)
    blocked = mesh.submit(1, 2, 1, 1)
    single = mesh.submit(2, 0, 1, 1, gate=Gate.TAIL)
    mesh.run(200)
    mesh.run(300)
    assert mesh.stalled
    text = mesh.describe_stall()
    assert f"packet {holder} holds r0->r1, r1->r2, r2->local2; its source waits for a token at local0->r0" in text
    assert f"packet {blocked} holds no link; its head flit at r1 waits for r1->r2: held by packet {holder}" in text
    assert f"packet {single} holds no link; its source waits for a token" in text
    mesh.release(single)
    mesh.release(holder)
    assert [r for r in drain(mesh) if r[0] == DELIVERED][-1][1] == blocked


def test_a_deadlock_is_seen_and_skipped() -> None:
    mesh = Mesh(2, 2, fifo_flits=4, reservation_flits=5)
    message = mesh.submit(0, [1, 2], 2, 3)
    started = time.process_time()
    assert mesh.run(10**15) == 10**15
    assert mesh.run(10**16) == 10**16
    assert time.process_time() - started < 5
    assert mesh.stalled and not mesh.idle and not mesh.waiting_for_tokens
    assert f"packet {message} holds" in mesh.describe_stall()
    assert "its FIFO never has the room that a multicast needs" in mesh.describe_stall()
    other = mesh.submit(3, 1, 1, 1)
    mesh.run(10**17)
    assert mesh.take_reports() == [(SENT, other, -1, 10**16)]
    assert mesh.run(10**17) == 10**16 + 9


def test_a_one_destination_multicast_follows_the_multicast_rules() -> None:
    mesh = Mesh(2, 2, fifo_flits=4, reservation_flits=5)
    mesh.submit(0, 1, 1, 1, multicast=True)
    mesh.run(1000)
    mesh.run(1000)
    assert mesh.stalled
    mesh = Mesh(2, 2, fifo_flits=5, reservation_flits=5)
    mesh.submit(0, [1], 1, 1, multicast=True)
    assert len(drain(mesh)) == 2


def random_submissions(mesh: Mesh, rng: random.Random, n: int) -> dict[int, set[int]]:
    expected = {}
    for _ in range(n):
        src = rng.randrange(mesh.topology.n_endpoints)
        if rng.random() < 0.3:
            dsts = rng.sample(range(mesh.topology.n_routers), rng.randint(1, mesh.topology.n_routers))
            number = mesh.submit(src, dsts, rng.randint(1, 3), rng.randint(1, 5), multicast=True)
        else:
            dsts = [rng.randrange(mesh.topology.n_endpoints)]
            number = mesh.submit(src, dsts, rng.randint(1, 3), rng.randint(1, 9))
        expected[number] = set(dsts)
    return expected


def test_thousands_of_queued_messages_all_arrive_and_leave_no_trace() -> None:
    mesh = Mesh(4, 4)
    reset_planes, reset_queues = mesh._state.planes.copy(), mesh._state.queues[::2].copy()
    expected = random_submissions(mesh, random.Random(5), 6000)
    reports = drain(mesh)
    assert {r[1] for r in reports if r[0] == SENT} == set(expected)
    got: dict[int, list[int]] = {}
    for kind, message, dst, _ in reports:
        if kind == DELIVERED:
            got.setdefault(message, []).append(dst)
    assert {m: set(d) for m, d in got.items()} == expected
    assert all(len(d) == len(set(d)) for d in got.values())
    assert [r[3] + (r[0] == SENT) for r in reports] == sorted(r[3] + (r[0] == SENT) for r in reports)

    state = mesh._state
    assert (state.planes == reset_planes).all() and (state.queues[::2] == reset_queues).all()
    links = state.link.reshape(-1, 1 << kernel.LINK_SHIFT)
    assert (links[:, kernel.READ] == links[:, kernel.WRITE]).all() and not links[:, kernel.REQUESTS].any()
    assert (state.tree_uses[mesh.topology.n_endpoints :] == 0).all()
    assert mesh.flits_in_flight == 0 and not mesh.stalled
    assert (mesh.link_flits() == links[:, kernel.WRITE]).all()


def test_memory_follows_what_is_in_flight() -> None:
    mesh = Mesh(3, 3)
    rng = random.Random(6)
    for _ in range(200):
        random_submissions(mesh, rng, 10)
        message = mesh.submit(0, 1, 1, 1, gate=Gate.HEAD)
        mesh.release(message)
        drain(mesh)
    state = mesh._state
    assert state.slot.size >> kernel.SLOT_SHIFT == 64
    assert state.sub.size >> kernel.SUB_SHIFT == 64
    assert state.tokens.size == 16
    assert state.tree_uses.size <= mesh.topology.n_endpoints + 128


def test_many_gates_and_trees_at_once() -> None:
    mesh = Mesh(3, 3)
    rng = random.Random(7)
    messages = [
        mesh.submit(0, rng.sample(range(9), 4), 1, 3, gate=Gate.TAIL) if i % 2 else mesh.submit(0, 1, 1, 3)
        for i in range(600)
    ]
    for message in messages[1::2]:
        mesh.release(message)
    reports = drain(mesh)
    assert sum(r[0] == SENT for r in reports) == 600
    assert sum(r[0] == DELIVERED for r in reports) == 300 * 5


def test_ten_million_idle_cycles_are_one_jump() -> None:
    mesh = Mesh(8, 8)
    mesh.submit(0, 63, 1, 1)
    drain(mesh)
    times = []
    for i in range(1, 6):
        started = time.perf_counter()
        mesh.run(i * 10_000_000)
        times.append(time.perf_counter() - started)
    assert min(times) < 1e-3


@pytest.mark.parametrize(("columns", "rows"), [(1, 1), (1, 9), (32, 32)])
def test_zero_load_latency(columns: int, rows: int) -> None:
    mesh = Mesh(columns, rows)
    rng = random.Random(8)
    for _ in range(20):
        src, dst = rng.randrange(mesh.topology.n_endpoints), rng.randrange(mesh.topology.n_endpoints)
        start = mesh.now
        message = mesh.submit(src, dst, 1, 4)
        latency = routing.zero_load_latency_cycles(mesh.topology, src, dst, n_flits=4)
        assert (DELIVERED, message, dst, start + latency) in drain(mesh)


def test_compiled_trees_are_the_trees_of_the_routing_module() -> None:
    mesh = Mesh(5, 3)
    rng = random.Random(9)
    for _ in range(50):
        src = rng.randrange(mesh.topology.n_endpoints)
        dsts = tuple(sorted(rng.sample(range(15), rng.randint(1, 15))))
        row = mesh._tree_row(src, dsts) * 15
        expected = routing.multicast_ports(mesh.topology, src, dsts)
        sets = [sum(1 << port for port in expected.get(router, ())) for router in range(15)]
        assert (~mesh._state.routes[row : row + 15]).tolist() == sets


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.submit(32, 0, 1, 1),
        lambda m: m.submit(-1, 0, 1, 1),
        lambda m: m.submit(0, 32, 1, 1),
        lambda m: m.submit(0, [], 1, 1),
        lambda m: m.submit(0, [1, 2], 1, 1, multicast=False),
        lambda m: m.submit(0, [1, 16], 1, 1),
        lambda m: m.submit(0, [1, 1], 1, 1),
        lambda m: m.submit(0, 1, 0, 1),
        lambda m: m.submit(0, 1, 1, 0),
        lambda m: m.submit(0, 1, 1, 5, 6),
        lambda m: m.submit(0, 1, 1, 5, 0),
        lambda m: m.submit(0, 1, 1, 5, cycle=-1),
        lambda m: m.release(0),
        lambda m: m.run(-1),
        lambda m: Mesh(4, 4, fifo_flits=0),
        lambda m: Mesh(4, 4, fifo_flits=64),
        lambda m: Mesh(4, 4, reservation_flits=0),
        lambda m: Mesh(100, 100),
    ],
)
def test_impossible_requests_are_rejected(call: object) -> None:
    mesh = Mesh(4, 4)
    with pytest.raises(ValueError):
        call(mesh)  # type: ignore[operator]
    assert mesh.idle


def test_there_is_one_compiled_signature() -> None:
    mesh = Mesh(4, 4)
    mesh.submit(np.int64(0), np.int32(3), 1, 5, cycle=np.int64(3))
    mesh.submit(0, {1, 2}, 1, 5)
    mesh.run(np.int32(50))
    random_submissions(mesh, random.Random(1), 500)
    drain(mesh)
    assert len(kernel.run_mesh.signatures) == 1  # type: ignore[attr-defined]
    assert len(kernel.plant_trees.signatures) == 1  # type: ignore[attr-defined]


def test_import_compiles_nothing_and_no_cache_location_is_needed(tmp_path: Path) -> None:
    # a locator that finds no place, as with a read-only installation and a read-only home
    code = """
import numba.core.caching as caching
caching.CacheImpl._locator_classes = []
caching.CodeLibraryCacheImpl._locator_classes = []
from nocsim.mesh import kernel as kernel
from nocsim.mesh.mesh import Mesh
assert not kernel.run_mesh.signatures
print("ok")
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert done.stdout == "ok\n", done.stderr


@pytest.mark.parametrize("module", [topology, mesh_module])
def test_examples_in_docstrings(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted > 0 and result.failed == 0
