"""What a machine moves for a schedule, in words, exactly: tile changes, groups of PEs, spills and reloads.

The convention is the machine's, not Timeloop's: a node fetches the words it needs now and did not hold just before
(with `halo_reuse` off: the whole tile whenever it changes), touched indices only; a tile that several PEs share leaves
its source once; partial sums that leave a node come back only where they exist.

A nest changes a tile only when a loop outside the buffer steps. Between two neighbouring iterations exactly one loop
advances and all loops inside it return to 0, so the distance a tile moves depends on that loop alone: counts are sums
over loops, never walks.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, prod
from typing import Literal

from cosa.analytical.placement import Placement
from cosa.analytical.tiles import Shift, StridedLoop, Tile, strided_loops
from cosa.common.errors import InputError
from cosa.model.arch import Architecture
from cosa.model.layer import RELEVANT, TENSORS, Dim, Layer, Tensor
from cosa.model.schedule import ScheduleLevel

Node = str
"""A node, or a memory of one: `pe`, `global_buffer` (the level with the mesh below it), `dram` (the outermost level),
and `chip:NAME` for a level NAME between these two."""


def bytes_of(words: int, bits: int) -> int:
    """Bytes that so many words of so many bits take together."""
    return -(-words * bits // 8)


def word_bits(layer: Layer, architecture: Architecture, tensor: Tensor, *, finished: bool = True) -> int:
    """Width of a word on the network: unfinished outputs, and finished ones not quantised, are partial sums."""
    bits = layer.word_bits
    if tensor != "outputs":
        return bits.weights if tensor == "weights" else bits.inputs
    quantised = finished and architecture.machine.finished_outputs == "quantised"
    return bits.outputs if quantised else bits.partial_sums


class Residency:
    """A tensor in one kind of node: its tile, and how the tile moves when each loop outside steps.

    `changes[j]` belongs to `outer[j]`, the temporal loops outside the buffer, outer to inner: the words to fetch when
    that loop advances and all loops inside it return to 0 (0: the tile stays).

    The tile is that of the loops at `reach` and further in: of the store, or beyond it where a machine takes more at
    once (see `Architecture.pe_tile_level`). Where no level of a PE keeps the tensor (`store` -1) its MACs take words
    directly and hold nothing: the tile is that of the spatial loops inside the PE, all temporal loops are outside, and
    every iteration moves the whole tile.
    """

    def __init__(
        self,
        layer: Layer,
        tensor: Tensor,
        loops: list[StridedLoop],
        store: int,
        node: int,
        halo_reuse: bool,
        reach: int | None = None,
    ) -> None:
        """`store` is the level that keeps the tensor, `node` the outermost level of the node (spatial loops inside).

        `reach`: the store, if not given.
        """
        self.tensor, self.store = tensor, store
        reach = store if reach is None else reach
        self.tile = Tile(
            layer,
            tensor,
            [x for x in loops if x.level <= reach or (x.level <= node and x.loop.kind == "spatial")],
        )
        self.outer = [x for x in loops if x.level > reach and x.loop.kind == "temporal"]
        self.shifts = [self._shift(j) for j in range(len(self.outer))]
        self.changes = [self._words(shift, halo_reuse) for shift in self.shifts]
        if store < 0:
            self.changes = [self.tile.words] * len(self.outer)

    def _shift(self, j: int) -> Shift:
        offsets: dict[Dim, int] = {self.outer[j].dim: self.outer[j].stride}
        for x in self.outer[j + 1 :]:
            offsets[x.dim] = offsets.get(x.dim, 0) - (x.bound - 1) * x.stride
        return self.tile.position(offsets)

    def _words(self, shift: Shift, halo_reuse: bool) -> int:
        if not any(shift):
            return 0
        return self.tile.words - (self.tile.shared_words(shift) if halo_reuse else 0)

    def times(self, j: int) -> int:
        """How often loop j advances in the whole run."""
        return prod(x.bound for x in self.outer[:j]) * (self.outer[j].bound - 1)

    @cached_property
    def visits(self) -> int:
        """How many tiles the node holds one after another (the same tile again later counts again)."""
        return 1 + sum(self.times(j) for j, words in enumerate(self.changes) if words)

    @cached_property
    def fetched_words(self) -> int:
        """Words that come in over the whole run: the first tile and every change."""
        return self.tile.words + sum(self.times(j) * words for j, words in enumerate(self.changes))

    @cached_property
    def distinct_tiles(self) -> int:
        """Different output tiles (an output tile is revisited whole or not at all)."""
        return prod(x.bound for x in self.outer if x.dim in RELEVANT[self.tensor])


@dataclass(frozen=True)
class Flow:
    """Words of one tensor between two kinds of node. A multicast word is sent once and received by each PE.

    `kind`: fill (operands), reload (partial sums coming back), partial, final (outputs leaving), reduction (PE to PE).
    """

    tensor: Tensor
    source: Node
    destination: Node
    kind: Literal["fill", "reload", "partial", "final", "reduction"]
    sent_words: int
    received_words: int


class Traffic:
    """All residencies of a schedule on a mesh of PEs, for any levels inside the PEs and outside the mesh.

    A PE is everything below the level with the mesh. Levels from there on outward, but for the outermost, are memories
    on the chip, all at the node of the global buffer; the outermost is the DRAM.

    Attributes
    ----------
    pe: each tensor in a PE: at the outermost level of the PE that keeps it, or at its MACs where none does
    on_chip: the levels on the chip outside the PEs that keep a tensor, innermost first; none where it passes by all

    Raises
    ------
    InputError: spatial loops outside the mesh, or no mesh.
    """

    def __init__(self, layer: Layer, architecture: Architecture, nest: tuple[ScheduleLevel, ...]) -> None:
        inner = nest[::-1]
        mesh = architecture.mesh_level
        for level in range(mesh + 1, len(inner)):
            if spatial := [loop for loop in inner[level].spatial if loop.bound > 1]:
                raise InputError(
                    f"spatial loops at {inner[level].level}, outside the mesh: the machine has one mesh and one global "
                    "buffer, not several chips",
                    source=architecture.name,
                    path=f"nest[{len(inner) - 1 - level}].loops",
                    value=" ".join(f"{loop.dim}{loop.bound}" for loop in spatial),
                    allowed=f"spatial loops at {architecture.levels[mesh].name} and further in",
                )
        self.layer, self.architecture, self._nest = layer, architecture, nest
        self.loops = strided_loops(inner)
        self.placement = Placement(layer, architecture, self.loops)
        halo = architecture.machine.halo_reuse
        self.pe: dict[Tensor, Residency] = {}
        self.on_chip: dict[Tensor, tuple[Residency, ...]] = {}
        for tensor in TENSORS:
            store = max((level for level in range(mesh) if tensor in inner[level].keeps), default=-1)
            reach = architecture.pe_tile_level(tensor, store)
            self.pe[tensor] = Residency(layer, tensor, self.loops, store, mesh - 1, halo, reach)
            self.on_chip[tensor] = tuple(
                Residency(layer, tensor, self.loops, level, level, halo)
                for level in range(mesh, len(inner) - 1)
                if tensor in inner[level].keeps
            )

    def node(self, level: int) -> Node:
        """The name of a level outside the PEs in `flows`."""
        if level == len(self.architecture.levels) - 1:
            return "dram"
        return (
            "global_buffer" if level == self.architecture.mesh_level else f"chip:{self.architecture.levels[level].name}"
        )

    def outside_dram(self, tensor: Tensor) -> Residency:
        """The residency that exchanges a tensor with the DRAM."""
        return self.on_chip[tensor][-1] if self.on_chip[tensor] else self.pe[tensor]

    def word_bits(self, tensor: Tensor, *, finished: bool = True) -> int:
        """See `word_bits`."""
        return word_bits(self.layer, self.architecture, tensor, finished=finished)

    @cached_property
    def step_loops(self) -> list[StridedLoop]:
        """Temporal loops, outer to inner, whose iterations are the steps: the innermost changes some PE's tile."""
        temporal = [x for x in self.loops if x.loop.kind == "temporal"]
        last = 0
        for residency in self.pe.values():
            for j, words in enumerate(residency.changes):
                if words:
                    last = max(last, j + 1)
        return temporal[:last]

    @cached_property
    def steps(self) -> int:
        """How many times a PE exchanges a tile or more, and computes between."""
        return prod(x.bound for x in self.step_loops)

    @cached_property
    def cycles_per_step(self) -> int:
        """Cycles a PE computes in one step: the temporal loops inside."""
        return self.compute_cycles // self.steps

    @cached_property
    def compute_cycles(self) -> int:
        """Product of all temporal bounds."""
        return prod(x.bound for x in self.loops if x.loop.kind == "temporal")

    @cached_property
    def flows(self) -> tuple[Flow, ...]:
        """Every flow with words in it."""
        flows: list[Flow] = []
        pes = len(self.placement.offsets)
        for tensor in TENSORS:
            pe = self.pe[tensor]
            groups = len(self.placement.groups(pe.tile))
            if tensor == "outputs":
                reduced = (pes - groups) * pe.tile.words * pe.visits
                flows.append(Flow(tensor, "pe", "pe", "reduction", reduced, reduced))
            # From the inside out: who holds the tensor, under which name, how many copies are sent and received.
            held: list[tuple[Residency, Node, int, int]] = [(pe, "pe", groups, pes)]
            held += [(residency, self.node(residency.store), 1, 1) for residency in self.on_chip[tensor]]
            for (residency, node, sent, received), outside in zip(
                held, [*(name for _, name, *_ in held[1:]), "dram"], strict=True
            ):
                if tensor == "outputs":
                    flows += _output_flows(residency, sent, node, outside)
                else:
                    words = residency.fetched_words
                    flows.append(Flow(tensor, outside, node, "fill", sent * words, received * words))
        return tuple(flow for flow in flows if flow.sent_words)

    @property
    def dram_read_words(self) -> int:
        """Words that leave DRAM."""
        return sum(flow.sent_words for flow in self.flows if flow.source == "dram")

    @property
    def dram_write_words(self) -> int:
        """Words that enter DRAM."""
        return sum(flow.received_words for flow in self.flows if flow.destination == "dram")

    @property
    def mesh_words(self) -> int:
        """Words that leave any node over the mesh, each hop of a spatial reduction included."""
        ends = {"pe", "dram"}
        return sum(flow.sent_words for flow in self.flows if {flow.source, flow.destination} & ends)

    @property
    def analytical_cycles(self) -> int:
        """The largest of compute and, for each level with a bandwidth, its words over that bandwidth.

        Words of the outermost level are those of `flows`; further in, those of the busiest instance
        (`cosa.analytical.exact`).
        """
        *inner, outermost = self.architecture.levels
        cycles = self.compute_cycles
        if any(level.read_bandwidth_words_per_cycle or level.write_bandwidth_words_per_cycle for level in inner):
            from cosa.analytical.evaluation import evaluate_exact

            found = evaluate_exact(self.layer, self.architecture, self._nest)
            cycles = max(level.cycles for level in found.levels[:-1])
        for words, bandwidth in (
            (self.dram_read_words, outermost.read_bandwidth_words_per_cycle),
            (self.dram_write_words, outermost.write_bandwidth_words_per_cycle),
        ):
            if bandwidth:
                cycles = max(cycles, ceil(Fraction(words) / Fraction(bandwidth)))
        return cycles


def _output_flows(residency: Residency, groups: int, node: Node, outside: Node) -> list[Flow]:
    final = groups * residency.tile.words * residency.distinct_tiles
    partial = groups * residency.tile.words * residency.visits - final
    return [
        Flow("outputs", node, outside, "final", final, final),
        Flow("outputs", node, outside, "partial", partial, partial),
        Flow("outputs", outside, node, "reload", partial, partial),
    ]


@dataclass(frozen=True)
class WordsMoved:
    """Words of a schedule at the two boundaries that matter for its loop orders."""

    dram_read_words: int
    dram_write_words: int
    mesh_words: int

    @property
    def total(self) -> int:
        """Words at the DRAM and on the mesh together."""
        return self.dram_read_words + self.dram_write_words + self.mesh_words


def words_moved(layer: Layer, architecture: Architecture, nest: tuple[ScheduleLevel, ...]) -> WordsMoved:
    """Words that a nest (outermost first) moves: see the module's text."""
    traffic = Traffic(layer, architecture, nest)
    return WordsMoved(traffic.dram_read_words, traffic.dram_write_words, traffic.mesh_words)
