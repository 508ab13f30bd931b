"""Tiles cut at the bounds of a layer: counts against a walk that knows only which words and products there are."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from itertools import pairwise, product
from math import prod
from pathlib import Path

import pytest

import cosa
import nocsim
from cosa.analytical.cut import cut
from cosa.analytical.cut_evaluation import evaluate_cut
from cosa.analytical.evaluation import evaluate_exact
from cosa.commands.show import summary
from cosa.common.errors import InputError
from cosa.mappers.least import least
from cosa.model.arch import load_architecture
from cosa.model.keeping import Keeping
from cosa.model.layer import DIMS, RELEVANT, TENSORS, Layer
from cosa.model.schedule import Loop, Provenance, Schedule, ScheduleLevel
from tests.cosa.exact_oracle import MAC, Walk, Words
from tests.cosa.test_analytical_exact import small_schedule
from tests.cosa.test_machine_program import small_architecture, small_layer


class CutWalk(Walk):
    """The walk of a layer that a nest covers: instances without work keep what they hold, and nothing else is there."""

    def __init__(self, schedule: Schedule, tensor: str, bounds: dict[str, int]) -> None:
        self.bounds = bounds
        super().__init__(schedule, tensor)

    def _base(self, level: int, instance: tuple[int, ...], now: tuple[int, ...]) -> dict[str, int]:
        temporal, spatial = iter(now), iter(instance)
        base: dict[str, int] = defaultdict(int)
        for at, dim, _, kind, stride in self.loops:
            if kind == "temporal":
                index = next(temporal)
                base[dim] += index * stride if at > level else 0
            elif at > level:
                base[dim] += next(spatial) * stride
        return base

    def _works(self, level: int, instance: tuple[int, ...], now: tuple[int, ...], dims: object = DIMS) -> bool:
        base = self._base(level, instance, now)
        return all(base[dim] < self.bounds[dim] for dim in dims)  # type: ignore[attr-defined]

    def _cut_tile(self, level: int, instance: tuple[int, ...], now: tuple[int, ...]) -> Words:
        base = self._base(level, instance, now)
        extents: Counter[str] = Counter()
        for dim in DIMS:
            whole = prod(x[2] for x in self.loops if x[0] <= level and x[1] == dim)
            extents[dim] = min(whole, self.bounds[dim] - base[dim])
        dims = [dim for dim in DIMS if dim in RELEVANT[self.tensor]]  # type: ignore[index]
        return frozenset(
            self._word({dim: base[dim] + index for dim, index in zip(dims, indices, strict=True)})
            for indices in product(*(range(extents[dim]) for dim in dims))
        )

    def _run(self) -> None:
        self.complete = prod(self.bounds[dim] for dim in "RSC")
        chain = [MAC, *self.kept]
        families = {(parent, child): self._children(parent, child) for child, parent in pairwise(chain)}
        held: dict[tuple[int, tuple[int, ...]], Words] = {}
        values: dict[tuple[int, tuple[int, ...]], Counter[tuple[int, ...]]] = defaultdict(Counter)
        ranges = [range(x[2]) for x in self.loops if x[3] == "temporal"]
        self.cycles = 0
        self.worked: set[tuple[int, tuple[int, ...]]] = set()
        needs = DIMS if self.tensor != "outputs" else [dim for dim in DIMS if dim in RELEVANT["outputs"]]
        for now in product(*ranges):
            self.now = now
            if not self._works(chain[-1], (), tuple(now)) or not any(
                self._works(MAC, i, now) for i in self._instances(MAC)
            ):
                continue
            self.cycles += 1
            tiles = {}
            self.active = set()
            for level in chain:
                for i in self._instances(level):
                    if self._works(level, i, now):
                        self.active.add((level, i))
                        self.worked.add((level, i))
                        self.touched[level, i] |= self._cut_tile(level, i, now)
                    if self._works(level, i, now, DIMS if level == MAC else needs):
                        tiles[level, i] = self._cut_tile(level, i, now)
                    else:
                        waits = self.tensor != "outputs" and level != MAC
                        tiles[level, i] = held.get((level, i), frozenset()) if waits else frozenset()
            (self._outputs if self.tensor == "outputs" else self._operands)(chain, families, held, tiles, values)
            held = tiles
        if self.tensor == "outputs":
            nothing: dict[tuple[int, tuple[int, ...]], Words] = {
                key: frozenset() for key in held if key[0] != chain[-1]
            }
            self._leave(chain, families, held, {**held, **nothing}, values)

    def _operands(self, chain, families, held, tiles, values) -> None:
        for (parent, child), family in families.items():
            for above, instances in family.items():
                groups: dict[Words, Words] = {}
                for i in instances:
                    if (child, i) not in self.active:
                        continue
                    mine, old = tiles[child, i], held.get((child, i), frozenset())
                    fresh = mine if child == MAC else frozenset() if mine == old else mine - old if self.halo else mine
                    assert groups.setdefault(mine, fresh) == fresh
                    self.counts["fills"][child, i] += len(fresh)
                sent = sum(len(fresh) for fresh in groups.values())
                self.counts["reads"][parent, above] += sent
                self.sent[parent, child, "fill"] += sent

    def _leave(self, chain, families, held, tiles, values) -> None:
        for child, parent in pairwise(chain):
            for above, instances in families[parent, child].items():
                groups = defaultdict(list)
                for i in instances:
                    old = held.get((child, i))
                    if old and (child == MAC or old != tiles[child, i]) and any(w in values[child, i] for w in old):
                        groups[old].append(i)
                for words, members in groups.items():
                    for i in members:
                        self.counts["drains"][child, i] += len(words)
                    self.sent[child, child, "reduction"] += (len(members) - 1) * len(words)
                    self.counts["updates"][parent, above] += len(words)
                    for word in words:
                        total = sum(values[child, i].pop(word, 0) for i in members)
                        values[parent, above][word] = total
                        self.sent[child, parent, "final" if total == self.complete else "partial"] += 1

    def _outputs(self, chain, families, held, tiles, values) -> None:
        self._leave(chain, families, held, tiles, values)
        for parent, child in reversed(families):
            for above, instances in families[parent, child].items():
                groups = defaultdict(list)
                for i in instances:
                    works = (child, i) in self.active
                    if works and (child == MAC or tiles[child, i] != held.get((child, i))):
                        groups[tiles[child, i]].append(i)
                for words, members in groups.items():
                    back = [word for word in words if values[parent, above][word]]
                    for word in back:
                        values[child, members[0]][word] = values[parent, above][word]
                    self.counts["reads"][parent, above] += len(back)
                    self.counts["fills"][child, members[0]] += len(back)
                    self.sent[parent, child, "reload"] += len(back)
        for i in self._instances(MAC):
            for word in tiles[MAC, i]:
                values[MAC, i][word] += 1


def cut_layer(layer: Layer, seed: int) -> Layer:
    """A smaller layer that the same nest covers."""
    rng = random.Random(seed)
    smaller = {dim: rng.randint(max(1, bound // 2), bound) for dim, bound in layer.bounds.items()}
    return layer.model_copy(update=smaller)


def check(seed: int, cuts: bool = True) -> None:
    schedule = small_schedule(seed)
    layer = cut_layer(schedule.layer, seed) if cuts else schedule.layer
    nest, tensors = cut(layer, schedule.nest, schedule.architecture.machine.halo_reuse)
    for tensor in TENSORS:
        walk, ours = CutWalk(schedule, tensor, dict(layer.bounds)), tensors[tensor]
        assert nest.compute_cycles == walk.cycles
        for level, found in ours.levels.items():
            instances = [i for i in walk._instances(level) if (level, i) in walk.worked]
            assert found.instances == len(instances)
            for at, name in enumerate(("reads", "fills", "updates", "drains")):
                counts = [
                    0 if level == walk.kept[-1] and name in ("fills", "drains") else walk.counts[name][level, i]
                    for i in instances
                ]
                assert getattr(found, name) == sum(counts), (tensor, level, name)
                assert found.busiest[at] == max(counts), (tensor, level, name)
            assert found.distinct_words == max(len(walk.touched[level, i]) for i in instances)
        for kind, source, destination, sent, received in ours.hops:
            assert sent == walk.sent[source, destination, kind], (tensor, kind)
            if kind == "fill":
                assert received == sum(walk.counts["fills"][destination, i] for i in walk._instances(destination))


@pytest.mark.parametrize("seed", range(30))
def test_cut_tiles_against_the_walk(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30, 400))
def test_more_cut_tiles_against_the_walk(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", range(100, 110))
def test_where_nothing_is_cut_the_counts_are_those_of_whole_tiles(seed: int) -> None:
    schedule = small_schedule(seed)
    found = evaluate_cut(schedule.layer, schedule.architecture, schedule.nest)
    whole = evaluate_exact(schedule.layer, schedule.architecture, schedule.nest)
    assert (found.cycles, found.compute_cycles, found.macs_used) == (
        whole.cycles,
        whole.compute_cycles,
        whole.macs_used,
    )
    assert found.hops == whole.hops
    for ours, theirs in zip(found.levels, whole.levels, strict=True):
        for tensor, item in ours.tensors.items():
            other = theirs.tensors[tensor]
            assert (item.reads, item.fills, item.updates, item.drains) == (
                other.reads,
                other.fills,
                other.updates,
                other.drains,
            )
            assert (item.tile_words, item.accessed_words) == (other.tile_words, other.accessed_words)


def covering_schedule() -> Schedule:
    """K = 7 in two rounds over four PEs."""
    layer, architecture = Layer(R=1, S=1, P=2, Q=1, C=1, K=7, N=1), load_architecture("simba_4x4")
    rounds, spread = Loop(dim="K", bound=2), Loop(dim="K", bound=4, kind="spatial", axis="x")
    loops = {"DRAM": (Loop(dim="P", bound=2), rounds), "GlobalBuffer": (spread,)}
    nest = tuple(
        ScheduleLevel(level=level.name, keeps=level.keeps, loops=loops.get(level.name, ()))
        for level in architecture.levels[::-1]
    )
    made = Provenance(mapper="hand", version="test")
    return Schedule.make(layer, architecture, nest, made, padded={"K": 8}, remainders=True)


def test_nothing_takes_a_schedule_with_remainders_for_whole_tiles(tmp_path: Path) -> None:
    covering_schedule().save(tmp_path / "cut.json")
    read = Schedule.from_file(tmp_path / "cut.json")
    assert read == covering_schedule() and read.padding_macs == 0
    whole = Schedule.make(read.layer, read.architecture, read.nest, read.provenance, padded=read.padded)
    assert read.content_hash != whole.content_hash and whole.padding_macs == 2
    found = cosa.evaluate(read, "exact")
    assert (found.macs, found.padding_macs, found.compute_cycles) == (14, 0, 4)
    top = found.levels[-1].tensors
    # The fourth PE has no work in the second round of the first column, and still holds its weight for the next one.
    assert (top["weights"].reads, top["outputs"].updates) == (13, 14)
    assert cosa.evaluate(whole, "exact").levels[-1].tensors["weights"].reads == 16
    for refused in (lambda: cosa.evaluate(read), lambda: nocsim.simulate(read), lambda: cosa.breakdown(read)):
        with pytest.raises(InputError, match="remainders"):
            refused()
    assert "loops cover K 7 to 8; the last tiles are smaller" in " ".join(summary(read))
    with pytest.raises(InputError, match="remainders"):
        Schedule.from_data(read.model_dump(mode="json") | {"remainders": True, "padded": {}})


def test_remainders_are_found_where_they_pay() -> None:
    """Five columns on four PEs: five iterations, or two."""
    layer, architecture = small_layer(P=5), small_architecture()
    found = cosa.schedule(layer, architecture, objective="latency", remainders=True, time_limit_seconds=120)
    whole = cosa.schedule(layer, architecture, objective="latency", model="analytical")
    figures = cosa.evaluate(found, "exact")
    assert figures.cycles <= 3 < 5 <= cosa.evaluate(whole, "exact").cycles
    assert found.remainders and figures.cycles == found.provenance.model_cycles == found.provenance.objective_value
    assert found.provenance.bound <= figures.cycles


def test_remainders_go_with_one_schedule_of_the_analytical_model() -> None:
    layer, architecture = Layer(R=1, S=1, P=4, Q=1, C=4, K=4, N=1), load_architecture("simba_4x4")
    with pytest.raises(InputError, match="model: does not go with remainders"):
        cosa.schedule(layer, architecture, model="network", remainders=True)
    with pytest.raises(InputError, match="pad_percent: does not go"):
        cosa.schedule(layer, architecture, pad_percent=5, remainders=True)
    with pytest.raises(InputError, match="remainders: of one schedule"):
        cosa.schedule_pool(layer, architecture, count=3, remainders=True)
    with pytest.raises(InputError, match="remainders: an option of program, not of the mapper published"):
        cosa.schedule(layer, objective="cosa", remainders=True)


def test_no_nest_is_below_the_bound() -> None:
    for seed in range(25):
        schedule = small_schedule(seed)
        layer = cut_layer(schedule.layer, seed)
        kept = tuple(frozenset(entry.keeps) for entry in schedule.innermost_first)
        found = evaluate_cut(layer, schedule.architecture, schedule.nest)
        figures = {"latency": found.cycles, "energy": found.energy_pj, "edp": found.cycles * found.energy_pj}
        for objective, value in figures.items():
            bound = least(layer, schedule.architecture, objective, Keeping(kept, kept, kept))
            assert bound <= value * (1 + 1e-12), (seed, objective)
