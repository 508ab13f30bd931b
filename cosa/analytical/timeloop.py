"""Access counts as Timeloop reports them (its legacy model, default environment), in closed form.

`timeloop` is the current release, `timeloop-2022` the version of June 2022 that CoSA was evaluated with. They differ in
rule 9 alone.

Rules, numbered for reference:

1. A tile is the bounding box of the indices touched by all loops of its level and further in; gaps that strides leave
   count as words.
2. Loops are not walked: iteration 0, then iteration 1, which stands for all others of that loop.
3. Each tile remembers its box and how it last moved. First visit: the whole box. If it moves as before, or how it
   moved before is not known: the box less the box before it. If it moves otherwise: the whole box again, and how it
   moved is forgotten. A box less a box is nothing, a strip along one axis, or the whole box.
4. Instances below a level whose new words are the same box form a multicast group; words of a group count once.
5. Where an instance needs exactly what a neighbour of the array got one step before, and using all such links leaves
   fewer reads of the parent in that step, those words are link transfers.
6. A level that does not keep a tensor is taken out afterwards, from the inside out: the next level out is charged as
   often as the one taken out, its multicast degrees stay, its link transfers are dropped. Fills are taken before that.
7. Reads are the words sent in, for outputs less the average number of distinct words of an instance (a first arrival
   needs no old value); updates are the outputs that arrive; fills are words that arrive over instances, an average.
   Reads are rounded to the nearest whole number, fills down, link transfers included.
8. Under DRAM outputs cross the network twice, there being no adder.
9. An output's first arrival brings no old value either and is no fill: of the fills of outputs the average number of
   distinct words of an instance is taken off, and they are rounded to the nearest. `timeloop-2022` counts it.

The walk of rules 2 and 3 visits, of m loops, 2^m places, but needs no more than m terms: every second visit advances
the innermost loop, and after it the remembered move is always that loop's. So the innermost loop's visits need the box
less the box before, and those of an outer loop the whole box, unless its move happens to equal the innermost loop's.
(That is the slide over a loop of bound 2 which carries on into the next loop of the same dimension.)

Against `exact` this convention counts gaps, forgets what a tile held when it moves another way, has no credit for
diagonal overlap, takes iteration 1 for the last one where an outer loop advances, averages over instances, and drops
the reuse of a level that is bypassed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor, prod, sqrt
from typing import Literal

import numpy as np

from cosa.analytical.boxes import NestView, group_sizes, new_words
from cosa.analytical.tiles import Shift
from cosa.model.layer import Tensor

Release = Literal["timeloop", "timeloop-2022"]

Entries = dict[tuple[int, int], Fraction | int]
"""{(instances of a multicast group, number of groups): words sent, over all groups and visits}."""


@dataclass(frozen=True)
class Visits:
    """Visits of a tile that bring new words: how many, how many words each, and the move from the visit before.

    `linkable`: the visit before brought a box of the same shape, so an instance may need what a neighbour got.
    """

    count: int
    words: int
    move: Shift | None
    linkable: bool


def visits(view: NestView, tensor: Tensor, child: int) -> list[Visits]:
    """Visits of the tile at level `child` that bring words (rules 2, 3); -1 are the MACs, which remember nothing."""
    box = view.tile_box(tensor, child)
    whole = prod(box)
    outside, moves = view.outside(child), view.moves(tensor, child)
    found = [Visits(1, whole, None, False)]
    if not moves:
        return found
    bounds = [step.bound for step in outside]
    counts = [(bound - 1) * prod(bounds[j + 1 :]) for j, bound in enumerate(bounds)]
    if child < 0:
        return found + [Visits(count, whole, move, True) for count, move in zip(counts, moves, strict=True)]
    strip = new_words(box, moves[0])
    carried = 0
    for count, move in zip(counts[1:], moves[1:], strict=True):
        if move == moves[0]:
            found.append(Visits(count, strip, move, True))
            carried += count
        else:
            found.append(Visits(count, whole, move, strip == whole))
    # An innermost visit follows a whole box, or a strip where an outer loop carried the slide on.
    after_strip = carried * (bounds[0] - 1)
    found.append(Visits(after_strip, strip, moves[0], True))
    found.append(Visits(counts[0] - after_strip, strip, moves[0], strip == whole))
    return [entry for entry in found if entry.words and entry.count]


@dataclass
class LevelNetwork:
    """What level `level` sends to the next level in, for one tensor; words of one instance of the level."""

    level: int
    fanout: int
    entries: Entries
    link_transfers: int = 0
    ingresses: Entries = field(default_factory=dict)
    spatial_reductions: Fraction | int = 0

    @property
    def words(self) -> Fraction | int:
        """Words sent, each multicast once."""
        return sum(self.entries.values())

    @property
    def delivered(self) -> Fraction | int:
        """Words received by all instances below."""
        return sum(words * size for (size, _), words in self.entries.items())

    @property
    def average_hops(self) -> float:
        """Timeloop's estimate of the links a word takes, from its multicast degree and the fan-out."""
        total = sum(self.ingresses.values())
        hops = sum(float(words) * _hops(size, self.fanout) for (size, _), words in self.ingresses.items())
        return hops / float(total) if total else 0.0


def _hops(size: int, fanout: int) -> float:
    root, roots = sqrt(size), sqrt(fanout)
    return roots * root + 0.5 * (roots - root) - roots / root + 0.5


def network(view: NestView, tensor: Tensor, level: int) -> LevelNetwork:
    """Words that one instance of a level sends (rules 4, 5), bypassing not yet regarded."""
    loops = view.levels[level]
    result = LevelNetwork(level, loops.fanout, {})
    sizes = group_sizes(view.layer, tensor, loops.spatial)
    groups = sum(sizes.values())
    offsets: np.ndarray | None = None
    span = np.zeros(0, dtype=np.int64)
    for visit in visits(view, tensor, level - 1):
        used = sizes
        if visit.linkable and visit.move is not None and loops.fanout > 1:
            if offsets is None:
                offsets = _offsets(view, tensor, level)
                span = offsets.max(axis=0)
            # Neighbours are at most as far apart as the instances reach.
            if all(abs(distance) <= reach for distance, reach in zip(visit.move, span, strict=True)):
                linked = _linked(offsets, loops.columns, visit.move)
                left = _sizes(offsets[~linked]) if linked.any() else sizes
                if sum(left.values()) < groups:
                    result.link_transfers += int(linked.sum()) * visit.words * visit.count
                    used = left
        for size, number in used.items():
            key = (size, number)
            result.entries[key] = result.entries.get(key, 0) + number * visit.words * visit.count
    return result


def _offsets(view: NestView, tensor: Tensor, level: int) -> np.ndarray:
    """Position of each instance below a level, row by row, along each axis of a tensor."""
    found = np.zeros((1, len(view.box(tensor, {}))), dtype=np.int64)
    for step in view.levels[level].spatial:
        move = np.array(view.offset(tensor, step), dtype=np.int64)
        along = np.arange(step.bound, dtype=np.int64)[:, np.newaxis] * move
        found = (found[:, np.newaxis, :] + along[np.newaxis, :, :]).reshape(-1, found.shape[1])
    return found


def _linked(offsets: np.ndarray, columns: int, move: Shift) -> np.ndarray:
    """Which instances need what a neighbour got one step before."""
    count = len(offsets)
    number = np.arange(count)
    linked = np.zeros(count, dtype=bool)
    for distance, same_row in ((1, True), (columns, False)):
        first = number[: max(0, count - distance)]
        if same_row:
            first = first[first % columns != columns - 1]
        second = first + distance
        apart = offsets[second] - offsets[first]
        linked[first[(apart == move).all(axis=1)]] = True
        linked[second[(-apart == move).all(axis=1)]] = True
    return linked


def _sizes(offsets: np.ndarray) -> dict[int, int]:
    if not len(offsets):
        return {}
    _, counts = np.unique(offsets, axis=0, return_counts=True)
    return dict(Counter(int(count) for count in counts))


@dataclass(frozen=True)
class LevelAccesses:
    """A tensor at a level that keeps it. Counts are scalar words of one instance, averages where instances differ."""

    tile_words: int
    partition_words: int
    instances: int
    reads: int
    fills: int
    updates: int


@dataclass(frozen=True)
class Counts:
    """Every count of one tensor: by level that keeps it, and the network under every level."""

    levels: dict[int, LevelAccesses]
    networks: dict[int, LevelNetwork]


def counts(view: NestView, tensor: Tensor, release: Release = "timeloop") -> Counts:
    """Access counts of a tensor by all rules."""
    number = len(view.levels)
    tiles = [prod(view.tile_box(tensor, level)) for level in range(number)]
    partitions = _partitions(view, tensor, tiles)
    networks = [network(view, tensor, level) for level in range(number)]
    shares = [_share(networks[level + 1]) for level in range(number - 1)] + [0.0]
    kept = [view.keeps(level, tensor) for level in range(number)]
    outermost = max(level for level in range(number) if kept[level])
    content = [item.words for item in networks]
    for level in range(outermost):
        if kept[level]:
            continue
        outer = networks[level + 1]
        wanted, had = content[level] * outer.fanout, outer.delivered
        outer.entries = {key: _ratio(words * wanted, had) for key, words in outer.entries.items()}
        outer.link_transfers = 0
        content[level + 1] = outer.words
    levels = {}
    for level in range(number):
        instances = view.instances_used(level)
        partition = partitions[level] if kept[level] else 0
        _cross(view, tensor, networks[level], partition)
        if not kept[level]:
            continue
        # An instance reads for its peers what it was charged to send them, on average over all instances in use.
        linked = networks[level + 1].link_transfers if level + 1 < number else 0
        first_arrivals = partition if tensor == "outputs" else 0
        filled = shares[level] + linked / instances
        if tensor == "outputs" and release == "timeloop":
            fills = max(0, _round(filled - partition))
        else:
            fills = int(filled)
        levels[level] = LevelAccesses(
            tile_words=tiles[level],
            partition_words=partition,
            instances=instances,
            reads=max(0, _round(content[level] + Fraction(linked, instances) - first_arrivals)),
            fills=0 if level == outermost else fills,
            updates=_round(content[level]) if tensor == "outputs" else 0,
        )
    return Counts(levels, dict(enumerate(networks)))


def _cross(view: NestView, tensor: Tensor, under: LevelNetwork, partition: int) -> None:
    """What crosses a network (rule 8) and what is added in it."""
    under.ingresses = dict(under.entries)
    if tensor != "outputs":
        return
    if view.architecture.is_dram(under.level):
        under.ingresses = {key: 2 * words - partition for key, words in under.entries.items()}
    under.spatial_reductions = under.link_transfers + sum(
        (size - 1) * words for (size, _), words in under.ingresses.items()
    )


def _partitions(view: NestView, tensor: Tensor, tiles: list[int]) -> list[int]:
    """Distinct words of an instance over the run, from the outermost level in, rounded down at each level."""
    found = [tiles[-1]]
    for level in range(len(tiles) - 2, -1, -1):
        outer = view.levels[level + 1]
        covered = prod(view.box(tensor, outer.spatial_extents))
        found.append(found[-1] * tiles[level] // covered)
    return found[::-1]


def _share(outer: LevelNetwork) -> int | float:
    """Words that arrive at one instance below, on average, in double precision as far as that is exact."""
    if outer.delivered >= 2**53:
        return int(outer.delivered // outer.fanout)
    return sum((float(words) * size / outer.fanout for (size, _), words in sorted(outer.entries.items())), 0.0)


def _ratio(numerator: Fraction | int, denominator: Fraction | int) -> Fraction | int:
    value = Fraction(numerator) / Fraction(denominator)
    return value.numerator if value.denominator == 1 else value


def _round(value: Fraction | float) -> int:
    """Half up: as C rounds what is not negative."""
    return value if isinstance(value, int) else floor(value + Fraction(1, 2))
