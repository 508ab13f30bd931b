"""Random messages through the compiled mesh and through the plain model, cycle by cycle equal."""

from __future__ import annotations

import random

import numpy as np
import pytest

from nocsim.mesh.mesh import Gate, Mesh, ReportKind
from nocsim.traffic.replay import Packets, replay_packets
from tests.nocsim.mesh_model import Message, Model

SHAPES = [(1, 1), (1, 4), (5, 1), (2, 2), (3, 5), (4, 4), (2, 7)]
DEEP = 40
"""From this seed on FIFOs are deeper than the fifteen flits that the kernel counts in its first four planes."""
GATES = {"none": Gate.NONE, "head": Gate.HEAD, "tail": Gate.TAIL}


def random_lengths(rng: random.Random, longest: int) -> list[int]:
    length = rng.randint(1, longest)
    return [length] * rng.randint(0, 3) + [rng.randint(1, length)]


@pytest.mark.parametrize("seed", range(55))
def test_random_messages_with_gates_match_the_model(seed: int) -> None:
    rng = random.Random(seed)
    columns, rows = rng.choice(SHAPES)
    fifo_flits, reservation_flits = (
        (rng.randint(1, 15), rng.randint(1, 9)) if seed < DEEP else (rng.randint(16, 63), rng.randint(1, 40))
    )
    mesh = Mesh(columns, rows, fifo_flits=fifo_flits, reservation_flits=reservation_flits)
    model = Model(columns, rows, fifo_flits, reservation_flits)
    n_local, n_endpoints = columns * rows, mesh.topology.n_endpoints
    load, gated_share, multicast_share = rng.choice([0.02, 0.1, 0.4]), rng.choice([0, 0.3]), rng.choice([0, 0.2, 1])
    longest = rng.choice([1, 5, min(reservation_flits, 9), 9]) if seed < DEEP else rng.choice([5, 20, 40])
    waiting: list[Message] = []
    sent: list[tuple[int, int]] = []
    delivered: list[tuple[int, int, int]] = []
    for _ in range(100):
        while rng.random() < load:
            src = rng.randrange(n_endpoints)
            multicast = rng.random() < multicast_share
            pool = n_local if multicast else n_endpoints
            dsts = rng.sample(range(pool), rng.randint(1, min(n_local, 6)) if multicast else 1)
            lengths = random_lengths(rng, longest)
            gate = rng.choice(["head", "tail"]) if rng.random() < gated_share else "none"
            cycle = mesh.now + (rng.randint(0, 30) if rng.random() < 0.3 else 0)
            number = mesh.submit(
                src, dsts, len(lengths), lengths[0], lengths[-1], multicast=multicast, gate=GATES[gate], cycle=cycle
            )
            message = Message(number, src, frozenset(dsts), lengths, multicast, cycle, gate)
            model.queues[src].append(message)
            if gate != "none":
                waiting.append(message)
        for message in [m for m in waiting if rng.random() < 0.1]:
            tokens = min(rng.randint(1, 2), len(message.lengths) - message.tokens - message.packet)
            if tokens > 0 and message.packet < len(message.lengths):
                mesh.release(message.number, tokens)
                message.tokens += tokens
            else:
                waiting.remove(message)
        target = mesh.now + rng.choice([1, 1, 2, 5, 20])
        while mesh.now < target:
            mesh.run(target)
            for kind, message_number, dst, cycle in mesh.take_reports():
                if kind == ReportKind.SENT:
                    sent.append((message_number, cycle))
                    assert dst == -1
                else:
                    delivered.append((message_number, dst, cycle))
            while model.now < mesh.now:
                model.step()
            assert len(sent) == len(model.sent) and len(delivered) == len(model.delivered)
    assert sorted(sent) == sorted(model.sent)
    assert sorted(delivered) == sorted(model.delivered)
    assert mesh.idle == (not model.busy)
    crossed = [model.wires[link].crossed for link in range(mesh.topology.n_links)]
    assert mesh.link_flits().tolist() == crossed


def random_packets(
    rng: random.Random, columns: int, rows: int, n: int, span: int, longest: int, share: float
) -> Packets:
    n_local = columns * rows
    n_endpoints = n_local + 2 * (columns + rows)
    multicast = [rng.random() < share for _ in range(n)]
    dsts = [
        rng.sample(range(n_local), rng.randint(1, n_local)) if m else [rng.randrange(n_endpoints)] for m in multicast
    ]
    return Packets(
        number=np.arange(n),
        multicast=np.array(multicast, dtype=np.bool_),
        src=np.array([rng.randrange(n_endpoints) for _ in range(n)]),
        inject_cycle=np.array([rng.randrange(span) for _ in range(n)]),
        n_flits=np.array([rng.randint(1, longest) for _ in range(n)]),
        dst_starts=np.cumsum([0, *map(len, dsts)]),
        dsts=np.array([d for some in dsts for d in some]),
    )


@pytest.mark.parametrize("seed", range(55))
def test_random_packets_in_any_order_match_the_model(seed: int) -> None:
    rng = random.Random(1000 + seed)
    columns, rows = rng.choice(SHAPES)
    fifo_flits, reservation_flits = (
        (rng.randint(1, 15), rng.randint(1, 9)) if seed < DEEP else (rng.randint(16, 63), rng.randint(1, 40))
    )
    packets = random_packets(
        rng, columns, rows, rng.randint(1, 250), rng.choice([1, 100, 1000]), rng.choice([5, 9]), rng.choice([0, 0.3])
    )
    deliveries = replay_packets(packets, columns, rows, fifo_flits, reservation_flits, stall_limit_cycles=1500)
    model = Model(columns, rows, fifo_flits, reservation_flits)
    for i in range(len(packets)):
        dsts = frozenset(packets.dsts[packets.dst_starts[i] : packets.dst_starts[i + 1]].tolist())
        src, length, cycle = int(packets.src[i]), int(packets.n_flits[i]), int(packets.inject_cycle[i])
        model.queues[src].append(Message(i, src, dsts, [length], bool(packets.multicast[i]), cycle))
    # the model has no notion of a deadlock: it stops when nothing has happened at the endpoints for long
    while model.busy and (model.now < 1000 or model.now - model.last_move < 200):
        model.step()
    for packet, dst, *times in zip(
        *(getattr(deliveries, c).tolist() for c in ("packet", "dst", "head_in", "tail_in", "head_out", "tail_out")),
        strict=True,
    ):
        assert times == model.times.get((packet, 0, -1), [-1, -1]) + model.times.get((packet, 0, dst), [-1, -1])
    assert deliveries.complete == (not model.busy)
