"""Random small layers, architectures and valid nests for the tests of the simulator."""

from __future__ import annotations

import random
from math import prod
from typing import Any

from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, TENSORS, Layer
from cosa.model.schedule import Loop, Provenance, Schedule, ScheduleLevel

BIG = 1 << 20


def architecture(
    pe_levels: list[list[str]],
    *,
    buffer_keeps: list[str] | None = None,
    mesh: str = "2x2",
    fanouts: list[int] | None = None,
    buffers: int = 2,
    capacity: int = BIG,
    noc: dict[str, Any] | None = None,
    machine: dict[str, Any] | None = None,
    pe: dict[str, Any] | None = None,
    dram: dict[str, Any] | None = None,
) -> Architecture:
    """A small architecture: PE levels innermost first by what they keep, a global buffer, DRAM."""
    fanouts = fanouts or [1] * len(pe_levels)
    levels: list[dict[str, Any]] = [
        {"name": f"L{i}", "keeps": keeps, "capacity_words": capacity, "buffers": buffers, "fanout": fanouts[i]}
        for i, keeps in enumerate(pe_levels)
    ]
    keeps = ["inputs", "outputs"] if buffer_keeps is None else buffer_keeps
    levels.append({"name": "GB", "keeps": keeps, "capacity_words": capacity, "buffers": buffers, "fanout": "mesh"})
    levels.append({"name": "DRAM", "keeps": ["weights", "inputs", "outputs"], "capacity_words": None})
    return _assembled(levels, mesh, noc or {}, machine=machine, pe=pe, dram=dram)


def _assembled(levels: list[dict[str, Any]], mesh: str, noc: dict[str, Any], **blocks: Any) -> Architecture:
    dram = {"device": "ddr4_2400_x8", "policy": "frfcfs", "mapping": "row:rank:bank:column:bankgroup"}
    data = {"name": "small", "levels": levels, "noc": {"mesh": mesh, "extra_rows": 1, **noc}, "dram": dram}
    return Architecture.from_data(data | {name: block for name, block in blocks.items() if block})


def random_architecture(rng: random.Random, **options: Any) -> Architecture:
    """One to three PE levels that keep each tensor somewhere, any bypass at the global buffer."""
    count = rng.randint(1, 3)
    keeps: list[set[str]] = [set() for _ in range(count)]
    for tensor in ("weights", "inputs", "outputs"):
        for level in rng.sample(range(count), rng.randint(1, count)):
            keeps[level].add(tensor)
    keeps = [k for k in keeps if k]
    buffer = [t for t in ("weights", "inputs", "outputs") if rng.random() < 0.7] or ["inputs"]
    fanouts = [rng.choice((1, 2, 3)) for _ in keeps]
    mesh = rng.choice(("2x2", "3x2", "1x3", "4x1"))
    return architecture(
        [sorted(k) for k in keeps],
        buffer_keeps=buffer,
        mesh=mesh,
        fanouts=fanouts,
        buffers=rng.choice((1, 2)),
        **options,
    )


def any_architecture(rng: random.Random, **options: Any) -> Architecture:
    """One to six levels that keep anything or almost nothing, the mesh below any of them, fan-outs inside the PEs.

    Some further levels and the global buffer have ports of few words a cycle; some have a fan-out that stays unused.
    """
    count = rng.randint(1, 6)
    mesh = rng.randrange(count)
    levels: list[dict[str, Any]] = []
    for number in range(count):
        keeps = [tensor for tensor in TENSORS if rng.random() < 0.5] or [rng.choice(TENSORS)]
        level: dict[str, Any] = {"name": f"L{number}", "keeps": keeps, "capacity_words": BIG}
        level["buffers"] = rng.choice((1, 2))
        if number == count - 1:
            level |= {"keeps": list(TENSORS), "capacity_words": None}
        if number < mesh and rng.random() < 0.6:
            level["fanout"] = rng.choice((2, 3, {"x": 2, "y": 2}))
        if number > mesh and rng.random() < 0.1:
            level["fanout"] = 2
        for port in ("read", "write"):
            if mesh <= number < count - 1 and rng.random() < 0.3:
                level[f"{port}_bandwidth_words_per_cycle"] = rng.choice((0.3, 1, 7, 64))
        levels.append(level)
    levels[mesh]["fanout"] = "mesh"
    pes = rng.choice(("1x1", "2x1", "2x2", "3x2", "1x3"))
    noc = options.pop("noc", None) or {}
    if rng.random() < 0.2 and pes[0] != "1":
        noc = {"global_buffer_ports": [{"router": [0, -1]}, {"router": [-1, -1]}], **noc}
    return _assembled(levels, pes, noc, **options)


def random_layer(rng: random.Random) -> Layer:
    """Bounds up to 6, strides and dilations up to 3, some groups and batches."""
    pick = rng.choice
    return Layer(
        name="random",
        R=pick((1, 1, 2, 3)),
        S=pick((1, 1, 2, 3)),
        P=pick((1, 2, 3, 4, 6)),
        Q=pick((1, 2, 3, 4)),
        C=pick((1, 2, 3, 4)),
        K=pick((1, 2, 4, 6)),
        N=pick((1, 1, 2)),
        G=pick((1, 1, 1, 2)),
        stride_w=pick((1, 1, 2, 3)),
        stride_h=pick((1, 2)),
        dilation_w=pick((1, 1, 2)),
        dilation_h=pick((1, 1, 3)),
    )


def _primes(value: int) -> list[int]:
    found, p = [], 2
    while value > 1:
        while value % p == 0:
            found.append(p)
            value //= p
        p += 1
    return found


def random_nest(rng: random.Random, layer: Layer, arch: Architecture) -> tuple[ScheduleLevel, ...]:
    """Every prime factor at a random level, spatial where there is room but not outside the mesh; random orders."""
    count = len(arch.levels)
    temporal: list[list[Loop]] = [[] for _ in range(count)]
    spatial: list[list[Loop]] = [[] for _ in range(count)]
    row_major = rng.random() < 0.4
    for dim in DIMS:
        for prime in _primes(getattr(layer, dim)):
            level = rng.randrange(count)
            if rng.random() < 0.5:
                level = rng.choice([i for i in range(count) if arch.fanout(i) != (1, 1)] or [level])
            x, y = arch.fanout(level)
            axes = (("row_major", x * y),) if row_major and level == arch.mesh_level else (("x", x), ("y", y))
            room = [
                axis
                for axis, size in axes
                if prod(loop.bound for loop in spatial[level] if loop.axis == axis) * prime <= size
            ]
            if room and rng.random() < 0.7 and level <= arch.mesh_level:
                spatial[level].append(Loop(dim=dim, bound=prime, kind="spatial", axis=rng.choice(room)))
            else:
                temporal[level].append(Loop(dim=dim, bound=prime))
    nest = []
    for index, level in enumerate(arch.levels):
        rng.shuffle(temporal[index])
        rng.shuffle(spatial[index])
        nest.append(ScheduleLevel(level=level.name, keeps=level.keeps, loops=tuple(temporal[index] + spatial[index])))
    return tuple(nest[::-1])


def random_schedule(seed: int, **options: Any) -> Schedule:
    """A random layer on a random architecture with a global buffer as a random valid nest."""
    rng = random.Random(seed)
    return _scheduled(rng, random_architecture(rng, **options), random_layer(rng))


def any_schedule(seed: int, max_macs: int = 2000, **options: Any) -> Schedule:
    """A random layer of few MACs on any architecture, some levels passed by that could keep a tensor."""
    rng = random.Random(seed)
    arch = any_architecture(rng, **options)
    layer = random_layer(rng)
    while layer.macs > max_macs:
        layer = random_layer(rng)
    schedule = _scheduled(rng, arch, layer)
    nest = [
        level.model_copy(update={"keeps": tuple(t for t in level.keeps if not number or rng.random() < 0.9)})
        for number, level in enumerate(schedule.nest)
    ]
    return Schedule.make(layer, arch, tuple(nest), schedule.provenance)


def _scheduled(rng: random.Random, arch: Architecture, layer: Layer) -> Schedule:
    return Schedule.make(layer, arch, random_nest(rng, layer, arch), Provenance(mapper="random", version="test"))
