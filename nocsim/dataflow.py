"""The walk from a schedule to transfers: which tile moves when, from where, to which nodes, in how many words.

A schedule is never unrolled: every process walks the outer loops for itself with an `Odometer` and looks up, for the
loop that has just advanced, what has to move (`cosa.analytical.traffic` says how much).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

from cosa.analytical.routes import reduction_order
from cosa.analytical.traffic import Residency, Traffic
from cosa.workload import REDUCTION, RELEVANT


class Bounded(Protocol):
    """What the odometer needs of a loop."""

    @property
    def bound(self) -> int:
        """Its bound."""


class Odometer:
    """Iterates the loops (outer to inner): yields -1 first, then the number of the loop that advanced.

    `indices` holds the loop indices at that moment; all loops inside the one that advanced stand at 0.
    """

    def __init__(self, loops: Sequence[Bounded]) -> None:
        self.loops = loops
        self.indices = [0] * len(loops)

    def __iter__(self) -> Iterator[int]:
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


def all_indices(loops: Sequence[Bounded]) -> Iterator[tuple[int, ...]]:
    """The loop indices of every iteration, the last loop fastest."""
    odometer = Odometer(loops)
    for _ in odometer:
        yield tuple(odometer.indices)


@dataclass(frozen=True)
class Fetch:
    """A tile change of an operand at its destination: words to send, and which tile of the tensor it is."""

    words: int
    tile_index: int
    advances_upstream: bool


def fetches(residency: Residency, upstream: Residency | None) -> Iterator[Fetch]:
    """Every change of an operand's tile, in order; with a memory on the chip upstream also when *its* tile moves on.

    `words` is 0 where only the upstream tile changes.
    """
    moves = [bool(words) for words in residency.changes]
    upstream_moves = [bool(words) for words in upstream.changes] if upstream else []
    last = max(
        (j + 1 for j in range(len(moves)) if moves[j] or (j < len(upstream_moves) and upstream_moves[j])), default=0
    )
    weights = _tile_weights(residency, last)
    odometer = Odometer(residency.outer[:last])
    for j in odometer:
        upstream_advances = j < 0 or (j < len(upstream_moves) and upstream_moves[j])
        if j < 0:
            words = residency.tile.words
        elif moves[j] or upstream_advances:
            words = residency.changes[j]
        else:
            continue
        index = sum(i * w for i, w in zip(odometer.indices, weights, strict=True))
        yield Fetch(words, index, upstream is not None and upstream_advances)


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
    """One stay of an output tile: whether it starts from zero, whether it leaves finished, and the earlier stay."""

    number: int
    first: bool
    final: bool
    tile_index: int
    previous: int


def visits(residency: Residency) -> Iterator[Visit]:
    """Every stay of an output tile in a node, in order; `previous` is the number of the tile's last stay, or -1."""
    last = max((j + 1 for j, words in enumerate(residency.changes) if words), default=0)
    loops = residency.outer[:last]
    reductions = [j for j, x in enumerate(loops) if x.dim in REDUCTION]
    weights = _tile_weights(residency, last)
    odometer = Odometer(loops)
    seen: dict[int, int] = {}
    for number, _ in enumerate(odometer):
        at = odometer.indices
        first = all(at[j] == 0 for j in reductions)
        final = all(at[j] == loops[j].bound - 1 for j in reductions)
        index = sum(i * w for i, w in zip(at, weights, strict=True))
        previous = -1 if first else seen[index]
        if final:
            seen.pop(index, None)
        else:
            seen[index] = number
        yield Visit(number, first, final, index, previous)


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
