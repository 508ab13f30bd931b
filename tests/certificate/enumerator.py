"""Every nest of a small layer on a small architecture, and the best of them: an oracle for certificates.

The space: every split of every prime factor over levels and kinds (temporal, spatial), every order of a level's
temporal loops, every arrangement of its spatial loops (along x, y or both, in any order, or row by row over the
instances), and every choice of what levels keep where that is chosen. A level has one temporal loop over a dimension,
and one spatial loop over it along an axis. Nests fit the fan-outs, capacities and limits, and keep to the constraints.

What is left out is provably the same as something that is looked at:

* Arrangements of spatial loops matter only where an instance takes words from a neighbour (rule 5 of
  `cosa.analytical.timeloop`). Around the MACs any tensor may. Elsewhere only inputs of which an output and a filter
  loop move the same axis: along an axis that one dimension alone walks, temporal loops outside an array move a tile by
  at least as far as the array reaches, so no instance comes to where another one was; and a tile that does not move at
  all brings no words. Of arrangements that matter one is taken for each set of (place, places of the neighbours) of the
  instances, which is all that the accounting sees of them.
* The order of the temporal loops of the innermost level matters only for MACs that take words from neighbours: every
  step brings a MAC its word. So one order is taken where the level's spatial loops are all 1.

`everything=True` takes all of these too; the tests compare.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import permutations, product
from math import prod
from typing import Any, NamedTuple

from tests.certificate.accounting import (
    DIMS,
    TENSORS,
    Accesses,
    Cost,
    Machine,
    Network,
    Steps,
    Vector,
    Work,
    accesses,
    distinct_words,
    merged,
    neighbours,
    network,
    places,
    strided,
    total,
)
from tests.certificate.rules import Rules

Bounds = tuple[dict[str, int], ...]
"""By level (innermost first) and dimension, 1 left out."""
Nest = tuple[dict[str, Any], ...]
"""Outermost level first, entries as in a schedule file (`ScheduleLevel.model_validate` takes them)."""
OBJECTIVES = ("latency", "energy", "edp")
MOST_NESTS = 60_000


class TooManyNestsError(Exception):
    """The space is larger than asked for."""


class Arrangement(NamedTuple):
    """A level's spatial loops, outer to inner as in a file: (dimension, bound, axis)."""

    loops: tuple[tuple[str, int, str], ...]


@dataclass(frozen=True)
class Tiling:
    """Bounds of loops, and the orders, arrangements and choices of what is kept that they leave."""

    temporal: Bounds
    spatial: Bounds
    orders: tuple[list[tuple[str, ...]], ...]
    arrangements: tuple[list[Arrangement], ...]
    keeps: list[tuple[tuple[int, ...], ...]]
    """Of each tensor the levels that keep it."""

    @property
    def nests(self) -> int:
        """How many nests it has."""
        return prod(map(len, self.orders)) * prod(map(len, self.arrangements)) * len(self.keeps)


@dataclass
class Enumerator:
    """All nests of a layer on an architecture.

    Parameters
    ----------
    layer, architecture, constraints: data of the files (or objects with `model_dump`).
    bypass: ``fixed`` or ``chosen``.
    everything: leave out nothing.
    """

    layer: Any
    architecture: Any
    constraints: Any = None
    bypass: str = "fixed"
    everything: bool = False
    looked_at: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.work, self.machine = Work(self.layer), Machine(self.architecture)
        self.rules = Rules(self.constraints, self.machine)
        self.levels = len(self.machine.levels)
        self._kept = [self.rules.kept(level, self.bypass) for level in range(self.levels)]
        self._arranged: dict[Any, list[Arrangement]] = {}

    # tilings

    def tilings(self) -> Iterator[Tiling]:
        """Every tiling that has a nest."""
        slots = [(level, "temporal") for level in range(self.levels)]
        slots += [(level, "spatial") for level in range(self.levels) if prod(self.machine.fanouts[level]) > 1]
        dims = [dim for dim in DIMS if self.work.bounds[dim] > 1]
        splits = []
        for dim in dims:
            ways = [dict(zip(slots, way, strict=True)) for way in _factorisations(self.work.bounds[dim], len(slots))]
            splits.append([way for way in ways if self.rules.allows_split(dim, way)])
        empty = tuple({} for _ in range(self.levels)), tuple({} for _ in range(self.levels))
        for temporal, spatial in self._split(list(zip(dims, splits, strict=True)), *empty):
            tiling = self.tiling(temporal, spatial)
            if tiling is not None and tiling.nests:
                yield tiling

    def _split(
        self, splits: list[tuple[str, list[dict[tuple[int, str], int]]]], temporal: Bounds, spatial: Bounds
    ) -> Iterator[tuple[Bounds, Bounds]]:
        """All splits of the dimensions left, in what fits: a nest only grows with another dimension."""
        fanouts = self.machine.fanouts
        if any(prod(spatial[level].values()) > prod(fanouts[level]) for level in range(self.levels)):
            return
        tiles, _ = self._covered(temporal, spatial)
        if not all(self._fitting(level, tiles[level]) for level in range(self.levels)):
            return
        if not splits:
            yield temporal, spatial
            return
        dim, ways = splits[0]
        for way in ways:
            grown = []
            for kind, bounds in (("temporal", temporal), ("spatial", spatial)):
                new = [way.get((level, kind), 1) for level in range(self.levels)]
                grown.append(
                    tuple({**old, dim: bound} if bound > 1 else old for old, bound in zip(bounds, new, strict=True))
                )
            yield from self._split(splits[1:], grown[0], grown[1])

    def tiling(self, temporal: Bounds, spatial: Bounds) -> Tiling | None:
        """A tiling within the fan-outs; None where limits, rules or axes allow no nest of it."""
        if not self._within_limits(temporal, spatial) or not self.rules.allows_products(temporal, spatial):
            return None
        tiles, _ = self._covered(temporal, spatial)
        arrangements = []
        for level in range(self.levels):
            found = self._arrangements(level, spatial[level], tiles[level - 1] if level else {})
            if not found:
                return None
            arrangements.append(found)
        orders = []
        for level in range(self.levels):
            allowed = self.rules.orders(level, tuple(temporal[level]))
            fixed = level == 0 and not spatial[0] and not self.everything
            orders.append(allowed[:1] if fixed else allowed)
        return Tiling(temporal, spatial, tuple(orders), tuple(arrangements), self._keeps(tiles))

    def _covered(self, temporal: Bounds, spatial: Bounds) -> tuple[list[dict[str, int]], list[dict[str, int]]]:
        """What the loops of each level and those inside it cover; the same without the level's temporal loops."""
        inside: dict[str, int] = {}
        tiles, arrays = [], []
        for level in range(self.levels):
            for kind, into in ((spatial, arrays), (temporal, tiles)):
                for dim, bound in kind[level].items():
                    inside[dim] = inside.get(dim, 1) * bound
                into.append(dict(inside))
        return tiles, arrays

    def _within_limits(self, temporal: Bounds, spatial: Bounds) -> bool:
        kinds = {"temporal": temporal, "spatial": spatial}
        return all(
            prod(prod(kinds[kind][level].values()) for level, kind in places) <= most
            for most, places in self.machine.limits
        )

    def _keeps(self, tiles: list[dict[str, int]]) -> list[tuple[tuple[int, ...], ...]]:
        """For each choice of what levels keep that their capacities have room for: levels by tensor."""
        choices = [self._fitting(level, tile) for level, tile in enumerate(tiles)]
        return [
            tuple(tuple(level for level in range(self.levels) if tensor in kept[level]) for tensor in TENSORS)
            for kept in product(*choices)
        ]

    def _fitting(self, level: int, tile: Mapping[str, int]) -> list[tuple[str, ...]]:
        """What a level may keep and has room for."""
        room, found = self.machine.room[level], self._kept[level]
        if room is None:
            return found
        return [kept for kept in found if sum(self.work.words(tensor, tile) for tensor in kept) <= room]

    # arrangements of spatial loops

    def _arrangements(self, level: int, bounds: dict[str, int], inside: Mapping[str, int]) -> list[Arrangement]:
        if not bounds:
            return [Arrangement(())]
        key = level, tuple(bounds.items()), tuple(inside.get(dim, 1) for dim in bounds)
        if key not in self._arranged:
            found: dict[Any, Arrangement] = {}
            tensors = TENSORS if level == 0 else ("inputs",) if self.work.slides else ()
            for arrangement in self._all_arrangements(level, bounds):
                if self.everything:
                    found[arrangement] = arrangement
                    continue
                seen = tuple(self._seen(level, arrangement, inside, tensor) for tensor in tensors)
                found.setdefault(seen, arrangement)
            self._arranged[key] = list(found.values())
        return self._arranged[key]

    def _all_arrangements(self, level: int, bounds: Mapping[str, int]) -> Iterator[Arrangement]:
        columns, rows = self.machine.fanouts[level]
        for along_x in product(*(_divisors(bound) for bound in bounds.values())):
            split = list(zip(bounds.items(), along_x, strict=True))
            loops = [(dim, x, "x") for (dim, _), x in split if x > 1]
            loops += [(dim, bound // x, "y") for (dim, bound), x in split if bound > x]
            if prod(along_x) <= columns and prod(bounds.values()) // prod(along_x) <= rows:
                yield from self._permitted(level, loops)
        yield from self._permitted(level, [(dim, bound, "row_major") for dim, bound in bounds.items()])

    def _permitted(self, level: int, loops: list[tuple[str, int, str]]) -> Iterator[Arrangement]:
        if all(self.rules.allows_axis(level, dim, axis) for dim, _, axis in loops):
            yield from (Arrangement(order) for order in permutations(loops))

    def _seen(self, level: int, arrangement: Arrangement, inside: Mapping[str, int], tensor: str) -> Any:
        """What the accounting can see of an arrangement: of each instance its place and those of its neighbours."""
        where = self._places(arrangement, inside, tensor)
        columns = self.machine.fanouts[level][0]
        return tuple(
            sorted(
                (place, tuple(sorted({where[other] for other in neighbours(number, len(where), columns)})))
                for number, place in enumerate(where)
            )
        )

    def _places(self, arrangement: Arrangement, inside: Mapping[str, int], tensor: str) -> tuple[Vector, ...]:
        return places(self.work, tensor, strided(arrangement.loops, dict(inside)))

    # nests of a tiling

    def costs(self, tiling: Tiling) -> Iterator[tuple[Cost, Any]]:
        """(cost, what `nest` needs) of every nest of a tiling."""
        tiles, arrays = self._covered(tiling.temporal, tiling.spatial)
        fanouts = [prod(bounds.values()) for bounds in tiling.spatial]
        instances = [prod(fanouts[level + 1 :]) for level in range(self.levels)]
        compute = prod(prod(bounds.values()) for bounds in tiling.temporal)
        inside = [tiles[level - 1] if level else {} for level in range(self.levels)]
        distinct = [distinct_words(self.work, tensor, tiles, arrays) for tensor in TENSORS]
        extents = [[self.work.extents(tensor, inside[level]) for tensor in TENSORS] for level in range(self.levels)]
        where = [
            [[self._places(item, inside[level], tensor) for tensor in TENSORS] for item in tiling.arrangements[level]]
            for level in range(self.levels)
        ]
        moves = [
            {
                (tensor, dim): (self.work.offset(tensor, dim, arrays[level].get(dim, 1)), bound)
                for dim, bound in tiling.temporal[level].items()
                for tensor in TENSORS
            }
            for level in range(self.levels)
        ]
        known: dict[Any, dict[int, Accesses]] = {}

        def words(tensor: int, networks: tuple[Network, ...], kept: tuple[int, ...]) -> dict[int, Accesses]:
            key = tensor, kept, *map(id, networks)  # the networks of a tiling live as long as `held`
            if key not in known:
                known[key] = accesses(TENSORS[tensor], networks, fanouts, instances, distinct[tensor], kept)
            return known[key]

        held: dict[Any, Network] = {}

        def descend(
            level: int, steps: tuple[Steps, ...], networks: tuple[tuple[Network, ...], ...], chosen: tuple[Any, ...]
        ) -> Iterator[tuple[Cost, Any]]:
            if level < 0:
                for kept in tiling.keeps:
                    by_tensor = [words(number, networks[number], kept[number]) for number in range(len(TENSORS))]
                    yield total(self.work, self.machine, compute, instances, by_tensor), (tiling, chosen, kept)
                return
            columns = self.machine.fanouts[level][0]
            for order in tiling.orders[level]:
                outside = tuple(
                    merged((*steps[number], *(moves[level][tensor, dim] for dim in order)))
                    for number, tensor in enumerate(TENSORS)
                )
                for number, arrangement in enumerate(tiling.arrangements[level]):
                    under = []
                    for tensor in range(len(TENSORS)):
                        key = level, tensor, number, outside[tensor]
                        if key not in held:
                            args = extents[level][tensor], outside[tensor], level > 0, where[level][number][tensor]
                            held[key] = network(*args, columns)
                        under.append(held[key])
                    deeper = tuple((new, *old) for new, old in zip(under, networks, strict=True))
                    yield from descend(level - 1, outside, deeper, ((order, arrangement), *chosen))

        yield from descend(self.levels - 1, ((), (), ()), ((), (), ()), ())

    def nest(self, what: Any) -> Nest:
        """The nest, as in a file, of what `costs` gives."""
        tiling, chosen, kept = what
        entries = []
        for level, (order, arrangement) in enumerate(chosen):
            loops: list[dict[str, Any]] = [
                {"dim": dim, "bound": tiling.temporal[level][dim], "kind": "temporal", "axis": None} for dim in order
            ]
            loops += [
                {"dim": dim, "bound": bound, "kind": "spatial", "axis": axis} for dim, bound, axis in arrangement.loops
            ]
            keeps = tuple(tensor for number, tensor in enumerate(TENSORS) if level in kept[number])
            entries.append({"level": self.machine.names[level], "keeps": keeps, "loops": tuple(loops)})
        return tuple(entries[::-1])

    def spaces(self, most: int = MOST_NESTS) -> list[Tiling]:
        """All tilings, whose nests are looked at.

        Raises
        ------
        TooManyNestsError: they have more than `most` nests.
        """
        found, nests = [], 0
        for tiling in self.tilings():
            found.append(tiling)
            nests += tiling.nests
            if nests > most:
                raise TooManyNestsError(f"more than {most:,} nests")
        return found

    def nests(self) -> Iterator[tuple[Cost, Nest]]:
        """Every nest with its cost."""
        for tiling in self.tilings():
            for cost, what in self.costs(tiling):
                yield cost, self.nest(what)

    def best(self, most: int = MOST_NESTS) -> dict[str, tuple[float, Nest]]:
        """See the function of this name."""
        self.looked_at = 0
        found: dict[str, tuple[tuple[float, float], Any]] = {}
        for tiling in self.spaces(most):
            for cost, what in self.costs(tiling):
                self.looked_at += 1
                keys = (cost.cycles, cost.energy_pj), (cost.energy_pj, cost.cycles), (cost.edp, cost.cycles)
                for objective, key in zip(OBJECTIVES, keys, strict=True):
                    if objective not in found or key < found[objective][0]:
                        found[objective] = key, what
        return {objective: (key[0], self.nest(what)) for objective, (key, what) in found.items()}


def best(
    layer: Any, architecture: Any, constraints: Any = None, bypass: str = "fixed", most: int = MOST_NESTS
) -> dict[str, tuple[float, Nest]]:
    """The least cycles (``latency``), picojoules (``energy``) and their product (``edp``), each with a nest.

    Of the fastest the one with the least energy, of the least the fastest. Empty where no nest fits.

    Raises
    ------
    TooManyNestsError: there are more than `most` nests.
    """
    return Enumerator(layer, architecture, constraints, bypass).best(most)


@cache
def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def _factorisations(number: int, slots: int) -> Iterator[tuple[int, ...]]:
    """Every way to write a number as an ordered product of `slots` factors."""
    if slots == 1:
        yield (number,)
        return
    for divisor in _divisors(number):
        for rest in _factorisations(number // divisor, slots - 1):
            yield (divisor, *rest)
