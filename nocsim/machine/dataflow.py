"""The walk from a schedule to transfers: which tile moves when, from where, to which nodes, in how many words.

A schedule is never unrolled: every process walks the outer loops for itself with an `Odometer` and looks up, for the
loop that has just advanced, what has to move (`cosa.analytical.traffic` says how much).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Literal, Protocol

from cosa.analytical.routes import reduction_order
from cosa.analytical.traffic import Residency, Traffic
from cosa.model.layer import REDUCTION, RELEVANT

if TYPE_CHECKING:
    from nocsim.machine.sampling import SamplingPlan


class Bounded(Protocol):
    """What the odometer needs of a loop."""

    @property
    def bound(self) -> int:
        """Its bound."""


@dataclass(frozen=True)
class Range:
    """The least that the odometer takes for a loop."""

    bound: int


class Odometer:
    """Iterates the loops (outer to inner): yields -1 first, then the number of the loop that advanced.

    `indices` holds the loop indices at that moment; all loops inside the one that advanced stand at 0.

    With a `plan` only its periods are walked. At a gap the outermost loop that differs counts as the one that
    advanced; every process that walks the same plan sees the same. `weight` is how many periods the present one
    stands for (1 without a plan), `period_begins` whether this is its first iteration.
    """

    def __init__(self, loops: Sequence[Bounded], plan: SamplingPlan | None = None) -> None:
        self.loops = loops
        self.indices = [0] * len(loops)
        self.weight = 1
        self.period_begins = False
        self._plan = plan

    def __iter__(self) -> Iterator[int]:
        return self._every() if self._plan is None else self._planned(self._plan)

    def _planned(self, plan: SamplingPlan) -> Iterator[int]:
        depth = min(plan.depth, len(self.loops))
        inside = prod(plan.bounds[depth:])
        # The innermost of the plan's loops may go on inside the period.
        share = plan.share if depth == plan.depth else 1
        inner = Odometer([Range(share), *self.loops[depth:]])
        last = None
        for period, weight in plan.periods:
            at = indices_of(period // inside, plan.bounds[:depth])
            if at == last:
                continue  # these loops have not moved
            self.weight, self.period_begins = weight, True
            moved = -1 if last is None else next(j for j, (a, b) in enumerate(zip(at, last, strict=True)) if a != b)
            last = at
            for j in inner:
                self.indices[:depth] = at
                if depth:
                    self.indices[depth - 1] = at[-1] * share + inner.indices[0]
                self.indices[depth:] = inner.indices[1:]
                yield moved if j < 0 else depth - 1 + j
                self.period_begins = False

    def _every(self) -> Iterator[int]:
        indices, bounds = self.indices, [x.bound for x in self.loops]
        yield -1
        while True:
            j = len(bounds) - 1
            while j >= 0 and indices[j] == bounds[j] - 1:
                indices[j] = 0
                j -= 1
            if j < 0:
                return
            indices[j] += 1
            yield j


def indices_of(number: int, bounds: Sequence[int]) -> list[int]:
    """Loop indices of an iteration (outer to inner) by its number in order."""
    indices = [0] * len(bounds)
    for j in range(len(bounds) - 1, -1, -1):
        number, indices[j] = divmod(number, bounds[j])
    return indices


def all_indices(loops: Sequence[Bounded]) -> Iterator[tuple[int, ...]]:
    """The loop indices of every iteration, the last loop fastest."""
    odometer = Odometer(loops)
    for _ in odometer:
        yield tuple(odometer.indices)


@dataclass(frozen=True)
class Fetch:
    """A tile change of an operand at its destination: words to send, and which tile of the tensor it is.

    It stands for `weight` such changes (see `nocsim.machine.sampling`; 1 in an exact run).
    """

    words: int
    tile_index: int
    advances_upstream: bool
    weight: int = 1


def fetches(residency: Residency, upstream: Residency | None, plan: SamplingPlan | None = None) -> Iterator[Fetch]:
    """Every change of an operand's tile, in order; with a memory on the chip upstream also when *its* tile moves on.

    `words` is 0 where only the upstream tile changes.
    """
    moves = [bool(words) for words in residency.changes]
    upstream_moves = [bool(words) for words in upstream.changes] if upstream else []
    last = max(changing_loops(residency), changing_loops(upstream) if upstream else 0)
    weights = _tile_weights(residency, last)
    odometer = Odometer(residency.outer[:last], plan)
    for j in odometer:
        upstream_advances = j < 0 or (j < len(upstream_moves) and upstream_moves[j])
        if j < 0:
            words = residency.tile.words
        elif moves[j] or upstream_advances:
            words = residency.changes[j]
        else:
            continue
        index = sum(i * w for i, w in zip(odometer.indices, weights, strict=True))
        yield Fetch(words, index, upstream is not None and upstream_advances, odometer.weight)


def _tile_weights(residency: Residency, last: int) -> list[int]:
    """Mixed-radix weights that number the tiles of a tensor by the loops it depends on."""
    weights = [0] * last
    size = 1
    for j in range(last - 1, -1, -1):
        if residency.outer[j].dim in RELEVANT[residency.tensor]:
            weights[j], size = size, size * residency.outer[j].bound
    return weights


@dataclass(frozen=True)
class Visit:
    """One stay of an output tile: whether it starts from zero, whether it leaves finished, and the earlier stay.

    `upstream` is the number of the stay of the global buffer's tile that it belongs to. It stands for `weight` stays.
    """

    number: int
    first: bool
    final: bool
    tile_index: int
    previous: int
    upstream: int = 0
    weight: int = 1


def changing_loops(residency: Residency) -> int:
    """How many of the loops outside have to be walked to see every change of the tile."""
    return max((j + 1 for j, words in enumerate(residency.changes) if words), default=0)


def visits(
    residency: Residency, upstream: Residency | None = None, plan: SamplingPlan | None = None
) -> Iterator[Visit]:
    """Every stay of an output tile in a node, in order; `previous` is the number of the tile's last stay.

    That is -1 if there was none, or if it is one that a plan skips (and so long since over).
    """
    last = changing_loops(residency)
    loops = residency.outer[:last]
    outer = changing_loops(upstream) if upstream else 0
    upstream_number = -1
    reductions = [j for j, x in enumerate(loops) if x.dim in REDUCTION]
    weights = _tile_weights(residency, last)
    odometer = Odometer(loops, plan)
    seen: dict[int, int] = {}
    for number, j in enumerate(odometer):
        upstream_number += j < outer
        at = odometer.indices
        first = all(at[j] == 0 for j in reductions)
        final = all(at[j] == loops[j].bound - 1 for j in reductions)
        index = sum(i * w for i, w in zip(at, weights, strict=True))
        previous = -1 if first else seen.get(index, -1)
        if previous == number - 1:
            previous = -1  # a tile follows itself only over a gap
        if final:
            seen.pop(index, None)
        else:
            seen[index] = number
        yield Visit(number, first, final, index, previous, upstream_number, odometer.weight)


class StepTable:
    """What changes in a PE when a step loop advances (index -1: the very first step)."""

    def __init__(self, traffic: Traffic) -> None:
        self.loops = traffic.step_loops
        self._changes = {tensor: self._of(residency) for tensor, residency in traffic.pe.items()}
        self.cycles_per_step = traffic.cycles_per_step

    def _of(self, residency: Residency) -> list[bool]:
        # residency.outer is a prefix of the temporal loops, as step_loops is, so loop numbers agree.
        changes = [bool(words) for words in residency.changes[: len(self.loops)]]
        changes += [False] * (len(self.loops) - len(changes))
        return [*changes, True]  # index -1

    @cached_property
    def rows(self) -> list[tuple[bool, bool, bool]]:
        """(weights, inputs, outputs) change, by the loop that advanced; the last row belongs to index -1."""
        changes = self._changes
        return list(zip(changes["weights"], changes["inputs"], changes["outputs"], strict=True))


@dataclass(frozen=True)
class ReductionTree:
    """How PEs that share an output tile add up: in each row to its last PE, then down to the last row's."""

    root: int
    successor: dict[int, int]
    predecessors: dict[int, tuple[int, ...]]

    @staticmethod
    def of(group: list[int], columns: int, shape: Literal["chain", "tree"] = "chain") -> ReductionTree:
        """The tree of a group of PE numbers on a mesh with so many columns."""
        pairs, root = reduction_order(group, columns, shape)
        successor = dict(pairs)
        predecessors: dict[int, tuple[int, ...]] = dict.fromkeys(group, ())
        for pe, after in sorted(successor.items()):
            predecessors[after] = (*predecessors[after], pe)
        return ReductionTree(root, successor, predecessors)
