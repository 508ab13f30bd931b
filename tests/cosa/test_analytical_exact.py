"""The `exact` convention against a walk over every iteration, and against the simulator's counts."""

from __future__ import annotations

import random
from math import prod

import pytest

from cosa.analytical.exact import exact
from cosa.analytical.traffic import Traffic
from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, TENSORS, Layer
from cosa.model.schedule import Loop, Provenance, Schedule, ScheduleLevel
from tests.cosa.exact_oracle import Walk
from tests.nocsim.nests import random_schedule

PRIMES = (2, 3, 5, 7)


def small_schedule(seed: int) -> Schedule:
    """A random hierarchy without a mesh of 2 to 5 levels, any keeping, X and Y spatial loops, a layer of few MACs."""
    rng = random.Random(seed)
    count = rng.randint(2, 5)
    levels = []
    for level in range(count - 1):
        keeps = [tensor for tensor in TENSORS if rng.random() < 0.6] or [rng.choice(TENSORS)]
        fanout = {"x": rng.choice((1, 1, 2, 3)), "y": rng.choice((1, 1, 2))}
        levels.append({"name": f"L{level}", "keeps": keeps, "capacity_words": 10**6, "fanout": fanout})
    levels.append({"name": "top", "keeps": list(TENSORS), "capacity_words": None, "fanout": {"x": 2, "y": 2}})
    machine = {
        "halo_reuse": rng.random() < 0.75,
        "finished_outputs": rng.choice(("quantised", "partial_sum_width")),
    }
    architecture = Architecture.from_data({"name": "small", "levels": levels, "machine": machine})
    while True:
        pick = rng.choice
        bounds = {dim: pick((1, 1, 2, 3)) for dim in "RSQCKN"} | {"P": pick((1, 2, 3, 4, 6)), "G": pick((1, 1, 2))}
        layer = Layer(
            **bounds,
            stride_w=pick((1, 1, 2, 3)),
            stride_h=pick((1, 2)),
            dilation_w=pick((1, 1, 2)),
            dilation_h=pick((1, 1, 3)),
        )
        if layer.macs <= 600:
            break
    temporal: list[list[Loop]] = [[] for _ in range(count)]
    spatial: list[list[Loop]] = [[] for _ in range(count)]
    for dim in DIMS:
        left = getattr(layer, dim)
        for prime in PRIMES:
            while left % prime == 0:
                left //= prime
                level = rng.randrange(count)
                x, y = architecture.fanout(level)
                axis = rng.choice(("x", "y"))
                used = prod(loop.bound for loop in spatial[level] if loop.axis == axis)
                if used * prime <= (x if axis == "x" else y) and rng.random() < 0.7:
                    spatial[level].append(Loop(dim=dim, bound=prime, kind="spatial", axis=axis))
                else:
                    temporal[level].append(Loop(dim=dim, bound=prime))
    for loops in (*temporal, *spatial):
        rng.shuffle(loops)
    nest = [
        ScheduleLevel(
            level=entry.name,
            keeps=tuple(t for t in entry.keeps if level == count - 1 or rng.random() < 0.9),
            loops=(*temporal[level], *spatial[level]),
        )
        for level, entry in enumerate(architecture.levels)
    ]
    return Schedule.make(layer, architecture, tuple(nest[::-1]), Provenance(mapper="random", version="test"))


def check(seed: int) -> None:
    schedule = small_schedule(seed)
    for tensor, ours in exact(schedule.layer, schedule.architecture, schedule.nest).items():
        walk = Walk(schedule, tensor)
        assert sorted(ours.levels) == walk.kept
        for level, found in ours.levels.items():
            instances = walk._instances(level)
            assert found.instances == len(instances)
            theirs = sorted(
                tuple(walk.counts[name][level, i] for name in ("reads", "fills", "updates", "drains"))
                for i in instances
            )
            expanded = sorted(
                (w.reads, w.fills, w.updates, w.drains) for w, number in found.kinds.items() for _ in range(number)
            )
            assert expanded == theirs, (seed, tensor, level)
            assert found.distinct_words == len(walk.touched[level, instances[0]])
            assert found.tile_words == len(walk._tile(level, instances[0], walk_start(walk)))
        sent = {(hop.source, hop.destination, hop.kind): hop.sent_words for hop in ours.hops}
        assert sent == {key: words for key, words in walk.sent.items() if words}, (seed, tensor)
        if tensor != "outputs":
            received = {(hop.source, hop.destination, hop.kind): hop.received_words for hop in ours.hops}
            assert received == dict(walk.received)


def walk_start(walk: Walk) -> tuple[int, ...]:
    return tuple(0 for x in walk.loops if x[3] == "temporal")


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_equal_to_a_walk_over_every_iteration(first: int) -> None:
    for seed in range(first, first + 50):
        check(seed)


@pytest.mark.slow
def test_equal_to_a_walk_over_every_iteration_on_thousands() -> None:
    for seed in range(1000, 5000):
        check(seed)


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_agrees_with_the_simulator_where_a_pe_has_one_instance(first: int) -> None:
    compared = 0
    for seed in range(first, first + 100):
        schedule = random_schedule(seed)
        traffic = Traffic(schedule.layer, schedule.architecture, schedule.nest)
        mesh = schedule.architecture.mesh_level
        ours = exact(schedule.layer, schedule.architecture, schedule.nest)
        flows = {(f.tensor, f.source, f.destination, f.kind): (f.sent_words, f.received_words) for f in traffic.flows}
        for tensor in TENSORS:
            kept = sorted(ours[tensor].levels)
            store = max(level for level in kept if level < mesh)
            one = all(loop.bound == 1 for entry in schedule.innermost_first[store + 1 : mesh] for loop in entry.spatial)
            names = {store: "pe", mesh: "global_buffer", mesh + 1: "dram"}
            for key, words in flows.items():
                if key[0] != tensor or (not one and "pe" in key[1:3]):
                    continue
                found = {
                    (names[h.source], names[h.destination], h.kind): (h.sent_words, h.received_words)
                    for h in ours[tensor].hops
                    if h.source in names and h.destination in names
                }
                assert found[key[1:]] == words, (seed, key)
                compared += 1
    assert compared > 300


def test_widths_on_each_hop() -> None:
    for seed in range(100):
        schedule = small_schedule(seed)
        bits = schedule.layer.word_bits
        quantised = schedule.architecture.machine.finished_outputs == "quantised"
        for tensor, ours in exact(schedule.layer, schedule.architecture, schedule.nest).items():
            for hop in ours.hops:
                final = bits.outputs if quantised else bits.partial_sums
                wanted = {"fill": getattr(bits, tensor), "final": final}.get(hop.kind, bits.partial_sums)
                assert hop.word_bits == wanted
                assert hop.sent_bytes * 8 >= hop.sent_words * hop.word_bits
