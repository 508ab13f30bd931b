"""Timeloop's accounting of a nest, by walking it: an oracle that shares no code with the product.

The specification is `docs/reference/evaluation.md` and the rules that the docstring of `cosa.analytical.timeloop`
numbers. Layers, architectures and nests are plain data, as in their files. Nothing is in closed form: the walk of rule
2 is walked, every instance of an array is looked at, and what a neighbour got a step before is found by looking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import ceil, floor, prod
from operator import add, sub
from typing import Any, NamedTuple

DIMS = ("R", "S", "P", "Q", "C", "K", "N", "G")
TENSORS = ("weights", "inputs", "outputs")
Vector = tuple[int, ...]
Steps = tuple[tuple[Vector, int], ...]
"""Temporal loops, outer to inner: how far an iteration moves a tensor along its axes, and the bound."""


def plain(data: Any) -> dict[str, Any]:
    """A file's data, of the dictionary itself or of an object that holds it."""
    return dict(data) if isinstance(data, Mapping) else data.model_dump(mode="json")


class Work:
    """A layer: bounds, and the axes of its tensors with the dimensions that walk them and how far an index goes."""

    def __init__(self, layer: Any) -> None:
        data = plain(layer)
        self.bounds = {dim: int(data.get(dim, 1)) for dim in DIMS}
        self.macs = prod(self.bounds.values())
        width = {"P": data.get("stride_w", 1), "R": data.get("dilation_w", 1)}
        height = {"Q": data.get("stride_h", 1), "S": data.get("dilation_h", 1)}
        axes: dict[str, tuple[dict[str, int], ...]] = {
            "weights": tuple({dim: 1} for dim in "GKCRS"),
            "inputs": ({"N": 1}, {"G": 1}, {"C": 1}, width, height),
            "outputs": tuple({dim: 1} for dim in "NGKPQ"),
        }
        # Axes along which nothing moves are left out.
        self.axes = {
            tensor: tuple(axis for axis in its if any(self.bounds[dim] > 1 for dim in axis))
            for tensor, its in axes.items()
        }
        self.slides = any(self.bounds[out] > 1 and self.bounds[tap] > 1 for out, tap in ("PR", "QS"))
        """Whether output and filter loops move the inputs along one axis."""
        self._boxes: dict[tuple[str, Vector], Vector] = {}

    def extents(self, tensor: str, inside: Mapping[str, int]) -> Vector:
        """Extents of the bounding box of a tile whose loops cover `inside` (rule 1)."""
        key = tensor, tuple(inside.get(dim, 1) for dim in DIMS)
        if key not in self._boxes:
            self._boxes[key] = tuple(
                1 + sum(far * (inside.get(dim, 1) - 1) for dim, far in axis.items()) for axis in self.axes[tensor]
            )
        return self._boxes[key]

    def words(self, tensor: str, inside: Mapping[str, int]) -> int:
        """Words of that box."""
        return prod(self.extents(tensor, inside))

    def offset(self, tensor: str, dim: str, stride: int) -> Vector:
        """How far a tensor's tile moves when a dimension advances by `stride` indices."""
        return tuple(axis.get(dim, 0) * stride for axis in self.axes[tensor])


class Machine:
    """An architecture; levels innermost first."""

    def __init__(self, architecture: Any) -> None:
        data = plain(architecture)
        self.levels: list[dict[str, Any]] = [dict(level) for level in data["levels"]]
        self.names = [level["name"] for level in self.levels]
        self.fanouts = [self._fanout(level.get("fanout", 1)) for level in self.levels]
        number = len(self.levels)
        self.instances = [prod(x * y for x, y in self.fanouts[level + 1 :]) for level in range(number)]
        halves = bool(data.get("shared_halves", False))
        self.room: list[int | None] = []
        self.keeps, self.may_keep = [], []
        self.block, self.arrays, self.vector_pj = [], [], []
        for at, level in enumerate(self.levels):
            capacity, buffers = level.get("capacity_words"), level.get("buffers", 1)
            self.room.append(capacity // buffers if capacity is not None and halves else capacity)
            self.keeps.append(tuple(tensor for tensor in TENSORS if tensor in level["keeps"]))
            self.may_keep.append(tuple(tensor for tensor in TENSORS if tensor in (level.get("may_keep") or ())))
            self.block.append(level.get("block_words", 1))
            self.arrays.append(self.instances[at] // level.get("cluster_size", 1))
            self.vector_pj.append(self._vector_pj(at))
        self.bandwidths = [
            (level.get("read_bandwidth_words_per_cycle"), level.get("write_bandwidth_words_per_cycle"))
            for level in self.levels
        ]
        mac = data.get("mac") or {}
        stated = mac.get("energy_pj")
        self.mac_pj: float = stated if stated is not None else (mac.get("word_bits", 8) / 16) ** 2
        self.limits = [
            (limit["most"], {(self.names.index(at["level"]), at.get("kind", "spatial")) for at in limit["over"]})
            for limit in data.get("limits") or ()
        ]

    @staticmethod
    def _fanout(value: Any) -> tuple[int, int]:
        if isinstance(value, str):
            raise ValueError(f"fan-out {value!r}: the oracle knows numbers only")
        return (value, 1) if isinstance(value, int) else (value.get("x", 1), value.get("y", 1))

    def _vector_pj(self, at: int) -> float:
        """Energy of one vector access: as stated, else the estimate for its technology."""
        level = self.levels[at]
        if level.get("capacity_words", 0) == 0:
            return 0.0
        if level.get("vector_access_energy_pj") is not None:
            return float(level["vector_access_energy_pj"])
        bits, block, cluster = level.get("word_bits", 8), level.get("block_words", 1), level.get("cluster_size", 1)
        technology = level.get("technology") or ("DRAM" if at == len(self.levels) - 1 else "SRAM")
        if technology == "DRAM" or level.get("capacity_words") is None:
            return 200 * bits * block / 16
        wide = bits * block * cluster
        kilobytes = wide * ceil(Fraction(level["capacity_words"], block)) / 8192
        return (1 + (kilobytes - 0.5) * 5 / 99.5) * wide / 16 / cluster


# one tensor on one network


@lru_cache(maxsize=200_000)
def walk(extents: Vector, steps: Steps, remembers: bool) -> tuple[tuple[tuple[int, Vector | None], int], ...]:
    """((words, shift), visits) of a tile under temporal loops (rules 2, 3).

    Iteration 0 of each loop, and iteration 1, which stands for all others. `shift`: how far the box of new words lies
    from the one that came the step before, None where none came or one of another shape. What remembers nothing, a
    MAC, gets its box every step.
    """
    found: Counter[tuple[int, Vector | None]] = Counter()
    before: Vector | None = None
    moved: Vector | None = None
    last: tuple[Vector, Vector] | None = None
    visited = [(1, (0,) * len(extents))]
    for offset, bound in steps:
        visited = [
            (visits * times, tuple(map(add, at, offset)) if index else at)
            for visits, at in visited
            for index, times in enumerate((1, bound - 1))
        ]
    for visits, here in visited:
        new: tuple[Vector, Vector] | None = (here, extents)
        if remembers and before is not None:
            move = tuple(map(sub, here, before))
            if moved is None or move == moved:
                new, moved = _less(here, before, extents), move
            else:
                moved = None
        if new is not None:
            low, size = new
            alike = last is not None and last[1] == size
            shift = tuple(map(sub, low, last[0])) if alike and last else None
            found[prod(size), shift] += visits
        before, last = here, new
    return tuple(found.items())


def _less(here: Vector, before: Vector, extents: Vector) -> tuple[Vector, Vector] | None:
    """A box less the same box elsewhere: nothing, a strip along one axis, or the whole box (rule 3)."""
    apart = [axis for axis, (a, b) in enumerate(zip(here, before, strict=True)) if a != b]
    if not apart:
        return None
    axis = apart[0]
    distance = here[axis] - before[axis]
    if len(apart) > 1 or abs(distance) >= extents[axis]:
        return here, extents
    low, size = list(here), list(extents)
    size[axis] = abs(distance)
    if distance > 0:
        low[axis] = before[axis] + extents[axis]
    return tuple(low), tuple(size)


def merged(steps: Steps) -> Steps:
    """The same steps with neighbouring loops that leave the tensor in place as one: their visits are the same."""
    found: list[tuple[Vector, int]] = []
    for offset, bound in steps:
        if found and not any(offset) and not any(found[-1][0]):
            bound *= found.pop()[1]
        found.append((offset, bound))
    return tuple(found)


class Network(NamedTuple):
    """Words that an instance sends inward, by (instances of a multicast group, groups); words between neighbours."""

    entries: tuple[tuple[tuple[int, int], int], ...]
    links: int


def neighbours(number: int, count: int, columns: int) -> list[int]:
    """Instances beside one, above and below; instances in use are numbered row by row without gaps."""
    beside = [at for at in (number - 1, number + 1) if at // columns == number // columns]
    return [at for at in (*beside, number - columns, number + columns) if 0 <= at < count]


@lru_cache(maxsize=200_000)
def network(extents: Vector, steps: Steps, remembers: bool, places: tuple[Vector, ...], columns: int) -> Network:
    """What goes to the instances at `places` below one instance (rules 4, 5)."""
    everyone = Counter(places)
    beside = [neighbours(number, len(places), columns) for number in range(len(places))]
    entries: Counter[tuple[int, int]] = Counter()
    links = 0
    for (words, shift), visits in walk(extents, steps, remembers):
        wanting = everyone
        if shift is not None:
            # A neighbour had this box a step before if it lay, then, where this instance's lies now.
            linked = [
                any(
                    tuple(a + b for a, b in zip(place, shift, strict=True)) == places[other] for other in beside[number]
                )
                for number, place in enumerate(places)
            ]
            left = Counter(place for place, served in zip(places, linked, strict=True) if not served)
            if len(left) < len(everyone):
                links += sum(linked) * words * visits
                wanting = left
        for size, number in Counter(wanting.values()).items():
            entries[size, number] += number * words * visits
    return Network(tuple(sorted(entries.items())), links)


class Accesses(NamedTuple):
    """Words of one instance."""

    reads: int
    fills: int
    updates: int


def accesses(
    tensor: str,
    networks: Sequence[Network],
    fanouts: Sequence[int],
    instances: Sequence[int],
    distinct: Sequence[int],
    kept: Iterable[int],
) -> dict[int, Accesses]:
    """A tensor's accesses at the levels that keep it (rules 6, 7); `fanouts` and `instances` are those in use."""
    levels = set(kept)
    outermost = max(levels)
    entries: list[dict[tuple[int, int], Fraction | int]] = [dict(item.entries) for item in networks]
    arriving = [
        sum(Fraction(words * size) / fanouts[level] for (size, _), words in item.entries)
        for level, item in enumerate(networks)
    ]
    for level in range(outermost):
        if level not in levels:  # taken out: the next level out sends as often as this one did
            sent = sum(entries[level].values())
            delivered = sum(words * size for (size, _), words in entries[level + 1].items())
            ratio = Fraction(sent * fanouts[level + 1]) / delivered
            entries[level + 1] = {key: words * ratio for key, words in entries[level + 1].items()}
    found = {}
    for level in sorted(levels):
        sent = sum(entries[level].values())
        peers = Fraction(networks[level + 1].links, instances[level]) if level + 1 < len(networks) else 0
        first = distinct[level] if tensor == "outputs" else 0
        fills = 0 if level == outermost else arriving[level + 1] + peers
        found[level] = Accesses(
            reads=max(0, half_up(sent + peers - first)),
            fills=max(0, half_up(fills - first)) if tensor == "outputs" else floor(fills),
            updates=half_up(sent) if tensor == "outputs" else 0,
        )
    return found


def half_up(value: Fraction | int) -> int:
    """The nearest integer, halves away from zero."""
    if isinstance(value, int):
        return value
    return floor(value + Fraction(1, 2)) if value >= 0 else -floor(-value + Fraction(1, 2))


# from words to cycles and energy


def energy_pj(machine: Machine, level: int, instances: int, words: Accesses) -> float:
    """Energy of a tensor's words at all instances in use of a level."""
    vectors = sum(-(-count // machine.block[level]) for count in words)
    clusters = min(instances, machine.arrays[level])
    return vectors * machine.vector_pj[level] / (instances / clusters) * instances


def level_cycles(machine: Machine, level: int, compute: int, words: Sequence[Accesses]) -> int:
    """Compute cycles, stretched until the words of one instance fit through a level's bandwidths.

    Double precision, operation by operation as documented: it decides the last cycle.
    """
    slowdown = 1.0
    reads, writes = [item.reads for item in words], [item.fills + item.updates for item in words]
    for bandwidth, counts in zip(machine.bandwidths[level], (reads, writes), strict=True):
        demand = 0.0
        for count in counts:
            demand += count / compute
        if bandwidth is not None and demand > bandwidth:
            slowdown = min(slowdown, bandwidth / demand)
    return compute if slowdown == 1.0 else ceil(compute / slowdown)


class Cost(NamedTuple):
    """What a nest costs."""

    cycles: int
    energy_pj: float

    @property
    def edp(self) -> float:
        """Energy x cycles."""
        return self.energy_pj * self.cycles


def total(
    work: Work, machine: Machine, compute: int, instances: Sequence[int], words: Sequence[dict[int, Accesses]]
) -> Cost:
    """Cycles and energy from the accesses of each tensor (in the order of `TENSORS`) by level."""
    cycles, energy = compute, work.macs * machine.mac_pj
    for level in range(len(machine.levels)):
        here = [item[level] for item in words if level in item]
        cycles = max(cycles, level_cycles(machine, level, compute, here))
        for item in here:
            energy += energy_pj(machine, level, instances[level], item)
    return Cost(cycles, energy)


# a nest from a file


def evaluate(layer: Any, architecture: Any, nest: Sequence[Any]) -> Cost:
    """Cycles and energy of a nest (outermost level first, entries with `keeps` and `loops`); limits are not checked."""
    work, machine = Work(layer), Machine(architecture)
    entries = [plain(entry) for entry in nest][::-1]
    inside: dict[str, int] = {}
    spatial: list[list[tuple[str, int, int]]] = []
    temporal: list[list[tuple[str, int, int]]] = []
    arrays, tiles = [], []
    for entry in entries:
        for kind, into in (("spatial", spatial), ("temporal", temporal)):
            loops = [(loop["dim"], loop["bound"], loop["axis"]) for loop in entry["loops"] if loop["kind"] == kind]
            into.append(strided(loops, inside))
            if kind == "spatial":
                arrays.append(dict(inside))
        tiles.append(dict(inside))
    fanouts = [prod(bound for _, bound, _ in loops) for loops in spatial]
    instances = [prod(fanouts[level + 1 :]) for level in range(len(entries))]
    compute = prod(bound for loops in temporal for _, bound, _ in loops)
    words = []
    for tensor in TENSORS:
        networks = []
        for level in range(len(entries)):
            steps = tuple(
                (work.offset(tensor, dim, stride), bound)
                for loops in temporal[level:][::-1]
                for dim, bound, stride in loops
            )
            extents = work.extents(tensor, tiles[level - 1] if level else {})
            where = places(work, tensor, spatial[level])
            networks.append(network(extents, steps, level > 0, where, machine.fanouts[level][0]))
        distinct = distinct_words(work, tensor, tiles, arrays)
        kept = [level for level, entry in enumerate(entries) if tensor in entry["keeps"]]
        words.append(accesses(tensor, networks, fanouts, instances, distinct, kept))
    return total(work, machine, compute, instances, words)


def strided(loops: Sequence[tuple[str, int, str | None]], inside: dict[str, int]) -> list[tuple[str, int, int]]:
    """(dimension, bound, stride) of loops (dimension, bound, axis) of a level and kind, those along y first.

    Instances are numbered row by row, so loops along y stand outside of others. `inside` grows by what the loops cover.
    """
    found = []
    for dim, bound, axis in reversed(loops):
        if bound > 1:
            stride = inside.get(dim, 1)
            found.append((axis != "y", (dim, bound, stride)))
            inside[dim] = stride * bound
    found.reverse()
    return [step for _, step in sorted(found, key=lambda item: item[0])]


def places(work: Work, tensor: str, spatial: Sequence[tuple[str, int, int]]) -> tuple[Vector, ...]:
    """Where each instance's tile lies, in the order of their numbers; loops (dimension, bound, stride) outer first."""
    found = []
    for indices in product(*(range(bound) for _, bound, _ in spatial)):
        at = (0,) * len(work.axes[tensor])
        for index, (dim, _, stride) in zip(indices, spatial, strict=True):
            at = tuple(a + b for a, b in zip(at, work.offset(tensor, dim, stride * index), strict=True))
        found.append(at)
    return tuple(found)


def distinct_words(
    work: Work, tensor: str, tiles: Sequence[Mapping[str, int]], arrays: Sequence[Mapping[str, int]]
) -> list[int]:
    """Different words of an instance over the run, an average rounded down at each level from the outermost in.

    `tiles` are what the loops of a level and those inside it cover, `arrays` the same without its temporal loops.
    """
    found = [work.words(tensor, tiles[-1])]
    for level in range(len(tiles) - 2, -1, -1):
        found.append(found[-1] * work.words(tensor, tiles[level]) // work.words(tensor, arrays[level + 1]))
    return found[::-1]
