"""What a machine moves, in words, for any hierarchy: between a level that keeps a tensor and the next one that does.

The convention, for each tensor alone:

* An instance fetches the words of its tile that it did not hold just before; only indices that are touched count. With
  `halo_reuse` off it fetches the whole tile whenever the tile changes. Levels that do not keep the tensor are
  transparent: the next kept level in is fed by the next kept level out, over all spatial loops between the two.
* A MAC holds nothing: in every cycle each MAC in use takes a word of each operand and gives a word of outputs.
* Instances below one parent that need the same tile get it in one multicast: the parent reads it once. Tiles that only
  overlap (halos) are sent to each.
* A child gives its output tile up when the tile changes (a `drain`), and the copies of one tile below one parent are
  added on the way: the parent is updated once, the additions are `spatial_reductions`. When a tile comes back, its
  partial sums are read back from the parent, to one child of the group, and only where they exist. The others of the
  group, and whatever lies below them, start from nothing again.
* On a hop a word is as wide as the layer says: finished outputs at the width of outputs (or of partial sums, as the
  machine says), everything unfinished at the width of partial sums. A word is finished when all its products are in.

So instances of one level can differ in what they are sent back. Counts come as the sum over all instances and as that
of the busiest one; bandwidths are held against the busiest.

Against `timeloop`: no gaps between strides, true overlap on every axis, the true last iteration, sums instead of
averages, reuse kept where levels are bypassed, no link transfers, one crossing of outputs under DRAM, no word filled
that does not exist, drains counted, and energies not divided by the occupancy of clusters.

The simulator (`cosa.analytical.traffic`) takes all buffers, or MACs, of a PE that keep a tensor as one: what the PE
holds is the union of their tiles. With `whole_pes` so do the counts here; both agree wherever a PE has one instance.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import prod
from typing import Literal

from cosa.analytical.tiles import Tile, strided_loops
from cosa.analytical.traffic import Residency
from cosa.model.arch import Architecture
from cosa.model.layer import REDUCTION, TENSORS, Layer, Tensor
from cosa.model.schedule import ScheduleLevel

HopKind = Literal["fill", "reload", "partial", "final", "reduction"]


@dataclass(frozen=True)
class Hop:
    """Words of one tensor from one level to another (-1: the MACs), over all instances and the whole run.

    `kind`: fill (operands), reload (partial sums coming back), partial and final (outputs leaving), reduction (copies
    of a partial sum added on the way). A multicast word is sent once and received by each instance.
    """

    tensor: Tensor
    source: int
    destination: int
    kind: HopKind
    sent_words: int
    received_words: int
    word_bits: int

    @property
    def sent_bytes(self) -> int:
        """Bytes sent, rounded up."""
        return -(-self.sent_words * self.word_bits // 8)


@dataclass(frozen=True)
class Words:
    """Scalar accesses: `reads` for what goes inward, `fills` from outside, `updates` from inside, `drains` outward."""

    reads: int = 0
    fills: int = 0
    updates: int = 0
    drains: int = 0


@dataclass(frozen=True)
class ExactAccesses:
    """A tensor at a level that keeps it: tile and distinct words of one instance, and accesses by kind of instance."""

    tile_words: int
    distinct_words: int
    kinds: dict[Words, int]
    """{accesses of an instance over the run: instances that have them}."""

    @property
    def instances(self) -> int:
        """Instances in use."""
        return sum(self.kinds.values())

    @property
    def busiest(self) -> Words:
        """The most of each kind of access that any instance has."""
        return Words(*(max(getattr(words, name) for words in self.kinds) for name in Words.__dataclass_fields__))

    @property
    def total(self) -> Words:
        """Accesses of all instances together."""
        return Words(*(sum(getattr(w, name) * n for w, n in self.kinds.items()) for name in Words.__dataclass_fields__))


class ExactTensor:
    """Everything that moves of one tensor: `levels` by level that keeps it, `hops` between them.

    With `whole_pes` a PE is one instance, at its outermost level that keeps the tensor (-1: its MACs), and what happens
    inside it is left out.
    """

    def __init__(
        self,
        layer: Layer,
        architecture: Architecture,
        nest: tuple[ScheduleLevel, ...],
        tensor: Tensor,
        whole_pes: bool = False,
    ):
        self.layer, self.architecture, self.tensor = layer, architecture, tensor
        self._inner = nest[::-1]
        self._loops = strided_loops(self._inner)
        halo = architecture.machine.halo_reuse
        kept = [level for level, entry in enumerate(self._inner) if tensor in entry.keeps]
        self._residencies = {level: Residency(layer, tensor, self._loops, level, level, halo) for level in kept}
        self._pe = self._pe_top = -1
        if whole_pes:
            self._pe_top = architecture.mesh_level - 1
            self._pe = max((level for level in kept if level <= self._pe_top), default=-1)
            reach = architecture.pe_tile_level(tensor, self._pe)
            self._residencies[self._pe] = Residency(layer, tensor, self._loops, self._pe, self._pe_top, halo, reach)
            kept = [level for level in kept if level > self._pe_top]
        self.levels: dict[int, ExactAccesses] = {}
        self.hops: list[Hop] = []
        self._cycles = prod(x.bound for x in self._loops if x.loop.kind == "temporal")
        # From the outside in: {words an instance is sent back: instances}.
        returned: dict[int, int] = {0: 1}
        for place in range(len(kept) - 1, -1, -1):
            child = kept[place - 1] if place else self._pe
            returned = self._level(kept[place], child, returned)
        self.hops = [hop for hop in self.hops if hop.sent_words]

    def _level(self, level: int, child: int, returned: dict[int, int]) -> dict[int, int]:
        """Accesses of one level and the hops to its child; returns what the child's instances are sent back."""
        here = self._residencies[level]
        below = self._residencies.get(child)
        outermost = level == len(self._inner) - 1
        inside = self._pe_top if child == self._pe else child
        spatial = [x for x in self._loops if inside < x.level <= level and x.loop.kind == "spatial"]
        children = prod(x.bound for x in spatial)
        # Instances with the same tile are one group: as many as there are places of tiles.
        groups = Tile(self.layer, self.tensor, spatial).words
        every = Tile(self.layer, self.tensor, [x for x in self._loops if x.level <= level or x.loop.kind == "temporal"])
        instances = sum(returned.values())
        if self.tensor != "outputs":
            fetched = below.fetched_words if below else self._cycles
            words = Words(reads=groups * fetched, fills=0 if outermost else here.fetched_words)
            self.levels[level] = ExactAccesses(here.tile.words, every.words, {words: instances})
            sent, received = groups * fetched * instances, children * fetched * instances
            self.hops.append(Hop(self.tensor, level, child, "fill", sent, received, self._bits()))
            return {0: instances * children}
        arriving = groups * (below.tile.words * below.visits if below else self._cycles)
        kinds: Counter[Words] = Counter()
        behind: Counter[int] = Counter()
        reloaded = 0
        for fill, count in returned.items():
            # Words of a visit that were not sent back start from nothing: their first arrival reads nothing.
            back = arriving - (here.tile.words * here.visits - fill)
            drains = 0 if outermost else here.tile.words * here.visits
            kinds[Words(reads=back, fills=fill, updates=arriving, drains=drains)] += count
            behind[back // groups] += groups * count
            behind[0] += (children - groups) * count
            reloaded += back * count
        self.levels[level] = ExactAccesses(here.tile.words, every.words, dict(kinds))
        added = (children - groups) * (arriving // groups) * instances
        outside = any(x.level > level and x.loop.kind == "spatial" and x.dim in REDUCTION for x in self._loops)
        complete = 0 if outside else every.words * instances
        unfinished = self.layer.word_bits.partial_sums
        self._hop(child, child, "reduction", added, unfinished)
        self._hop(child, level, "final", complete, self._bits())
        self._hop(child, level, "partial", arriving * instances - complete, unfinished)
        self._hop(level, child, "reload", reloaded, unfinished)
        return dict(+behind)

    def _hop(self, source: int, destination: int, kind: HopKind, words: int, bits: int) -> None:
        self.hops.append(Hop(self.tensor, source, destination, kind, words, words, bits))

    def _bits(self) -> int:
        bits = self.layer.word_bits
        if self.tensor != "outputs":
            return bits.weights if self.tensor == "weights" else bits.inputs
        return bits.outputs if self.architecture.machine.finished_outputs == "quantised" else bits.partial_sums


def exact(
    layer: Layer, architecture: Architecture, nest: tuple[ScheduleLevel, ...], whole_pes: bool = False
) -> dict[Tensor, ExactTensor]:
    """What a nest (outermost level first) moves of each tensor; with `whole_pes` as the simulator's PEs see it."""
    return {tensor: ExactTensor(layer, architecture, nest, tensor, whole_pes) for tensor in TENSORS}
