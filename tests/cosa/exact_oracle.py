"""A brute-force walk of a nest that keeps the words and partial sums of every instance of every level.

It knows nothing of shifts, visits or closed forms. It steps through every temporal iteration, builds the set of words
that each instance touches with its own loops, and compares with what the instance held before. Partial sums are kept as
the number of products that have gone into them, in the instance that has them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise, product

from cosa.model.schedule import Schedule

Words = frozenset[tuple[int, ...]]
MAC = -1


class Walk:
    """Counts of one tensor: `reads`, `fills`, `updates`, `drains` by (level, instance), words by hop."""

    def __init__(self, schedule: Schedule, tensor: str) -> None:
        self.layer, self.tensor = schedule.layer, tensor
        nest = schedule.nest[::-1]
        self.kept = [level for level, entry in enumerate(nest) if tensor in entry.keeps]
        self.halo = schedule.architecture.machine.halo_reuse
        self.loops = []  # outer to inner: level, dim, bound, kind, stride
        strides: dict[str, int] = defaultdict(lambda: 1)
        for level, entry in enumerate(nest):
            for loop in reversed(entry.loops):
                self.loops.append((level, loop.dim, loop.bound, loop.kind, strides[loop.dim]))
                strides[loop.dim] *= loop.bound
        self.loops.reverse()
        self.counts: dict[str, Counter[tuple[int, tuple[int, ...]]]] = defaultdict(Counter)
        self.sent: Counter[tuple[int, int, str]] = Counter()
        self.received: Counter[tuple[int, int, str]] = Counter()
        self.touched: dict[tuple[int, tuple[int, ...]], set[tuple[int, ...]]] = defaultdict(set)
        self.complete = self.layer.R * self.layer.S * self.layer.C
        self._cache: dict[object, Words] = {}
        self._run()

    def _word(self, index: dict[str, int]) -> tuple[int, ...]:
        i = defaultdict(int, index)
        if self.tensor == "weights":
            return i["G"], i["K"], i["C"], i["R"], i["S"]
        if self.tensor == "outputs":
            return i["N"], i["G"], i["K"], i["P"], i["Q"]
        layer = self.layer
        width = i["P"] * layer.stride_w + i["R"] * layer.dilation_w
        height = i["Q"] * layer.stride_h + i["S"] * layer.dilation_h
        return i["N"], i["G"], i["C"], width, height

    def _instances(self, level: int) -> list[tuple[int, ...]]:
        """Instances of a level by the indices of the spatial loops further out."""
        outside = [x[2] for x in self.loops if x[0] > level and x[3] == "spatial"]
        return list(product(*(range(bound) for bound in outside)))

    def _tile(self, level: int, instance: tuple[int, ...], now: tuple[int, ...]) -> Words:
        """Words of an instance while the temporal loops stand at `now`."""
        temporal, spatial = iter(now), iter(instance)
        base: dict[str, int] = defaultdict(int)
        for at, dim, _, kind, stride in self.loops:
            if kind == "temporal":
                index = next(temporal)
                base[dim] += index * stride if at > level else 0
            elif at > level:
                base[dim] += next(spatial) * stride
        key = (level, tuple(sorted(base.items())))
        if key not in self._cache:
            inside = [x for x in self.loops if x[0] <= level]
            found = set()
            for indices in product(*(range(x[2]) for x in inside)):
                index = dict(base)
                for x, value in zip(inside, indices, strict=True):
                    index[x[1]] = index.get(x[1], 0) + value * x[4]
                found.add(self._word(index))
            self._cache[key] = frozenset(found)
        return self._cache[key]

    def _children(self, parent: int, child: int) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
        found = defaultdict(list)
        length = sum(1 for x in self.loops if x[0] > parent and x[3] == "spatial")
        for instance in self._instances(child):
            found[instance[:length]].append(instance)
        return found

    def _run(self) -> None:
        chain = [MAC, *self.kept]
        families = {(parent, child): self._children(parent, child) for child, parent in pairwise(chain)}
        held: dict[tuple[int, tuple[int, ...]], Words] = {}
        values: dict[tuple[int, tuple[int, ...]], Counter[tuple[int, ...]]] = defaultdict(Counter)
        bounds = [x[2] for x in self.loops if x[3] == "temporal"]
        move = self._outputs if self.tensor == "outputs" else self._operands
        for now in product(*(range(bound) for bound in bounds)):
            tiles = {(level, i): self._tile(level, i, now) for level in chain for i in self._instances(level)}
            for (level, i), words in tiles.items():
                self.touched[level, i] |= words
            move(chain, families, held, tiles, values)
            held = tiles
        if self.tensor == "outputs":
            nothing = {key: frozenset() for key in held if key[0] != chain[-1]}
            self._leave(chain, families, held, {**held, **nothing}, values)

    def _operands(self, chain, families, held, tiles, values) -> None:
        for (parent, child), family in families.items():
            for above, instances in family.items():
                groups: dict[Words, Words] = {}
                for i in instances:
                    mine, old = tiles[child, i], held.get((child, i), frozenset())
                    if child == MAC:
                        fresh = mine
                    elif mine == old:
                        fresh = frozenset()
                    else:
                        fresh = mine - old if self.halo else mine
                    assert groups.setdefault(mine, fresh) == fresh
                    self.counts["fills"][child, i] += len(fresh)
                    self.received[parent, child, "fill"] += len(fresh)
                sent = sum(len(fresh) for fresh in groups.values())
                self.counts["reads"][parent, above] += sent
                self.sent[parent, child, "fill"] += sent

    def _leave(self, chain, families, held, tiles, values) -> None:
        """Output tiles that change are given up, from the inside out; a MAC gives up its word every cycle."""
        for child, parent in pairwise(chain):
            for above, instances in families[parent, child].items():
                groups = defaultdict(list)
                for i in instances:
                    old = held.get((child, i))
                    if old and (child == MAC or old != tiles[child, i]):
                        groups[old].append(i)
                for words, members in groups.items():
                    for i in members:
                        self.counts["drains"][child, i] += len(words)
                    added = (len(members) - 1) * len(words)
                    self.sent[child, child, "reduction"] += added
                    self.counts["updates"][parent, above] += len(words)
                    for word in words:
                        total = sum(values[child, i].pop(word, 0) for i in members)
                        values[parent, above][word] = total
                        kind = "final" if total == self.complete else "partial"
                        self.sent[child, parent, kind] += 1

    def _outputs(self, chain, families, held, tiles, values) -> None:
        self._leave(chain, families, held, tiles, values)
        for parent, child in reversed(families):
            for above, instances in families[parent, child].items():
                groups = defaultdict(list)
                for i in instances:
                    if child == MAC or tiles[child, i] != held.get((child, i)):
                        groups[tiles[child, i]].append(i)
                for words, members in groups.items():
                    back = [word for word in words if values[parent, above][word]]
                    root = members[0]
                    for word in back:
                        values[child, root][word] = values[parent, above][word]
                    self.counts["reads"][parent, above] += len(back)
                    self.counts["fills"][child, root] += len(back)
                    self.sent[parent, child, "reload"] += len(back)
        for i in self._instances(MAC):
            (word,) = tiles[MAC, i]
            values[MAC, i][word] += 1
