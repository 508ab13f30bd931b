"""The dataflow of the published network simulator: a mapping as a list of transactions, quirks included.

That generator cuts a mapping at two levels: the loops at the global buffer are *network steps*, the loops at the DRAM
*memory steps*; everything inside a PE only makes tiles larger and compute longer. What it does that a machine would
not is kept, because it is here for comparison:

* R and S do not count as loops that move inputs, so a halo moved by an outer R or S loop costs no traffic.
* Loops of bound 1 count as loops: Timeloop prints ``for N in [0:1)`` in empty levels, which touches inputs and outputs.
* Loops outside the innermost relevant one always cause a resend.
* Partial sums are loaded only if the first reduction loop at or outside the outputs' own loop is not at its first
  index; with two such loops some loads are missed, and a reduction loop without an outputs' loop inside loads nothing.
* All PEs of the mesh compute, also those that the mapping does not use.
* A compute waits for partial sums that *arrived* at its PE two network steps before, not for those that left it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

from cosa.analytical.footprint import box_words
from cosa.common.errors import InputError
from cosa.model.layer import TENSORS, Dim, Tensor
from cosa.model.schedule import Loop, Schedule
from cosa.model.validity import extents
from nocsim.machine.dataflow import ReductionTree, all_indices
from nocsim.published.transactions import Operation, Transaction

RELEVANT: dict[Tensor, frozenset[Dim]] = {
    "weights": frozenset(("R", "S", "C", "K")),
    "inputs": frozenset(("P", "Q", "C", "N")),
    "outputs": frozenset(("P", "Q", "K", "N")),
}
REDUCTIONS = frozenset(("R", "S", "C"))
BITS: dict[Tensor, int] = {"weights": 8, "inputs": 8, "outputs": 24}
PACKET_BITS = 256
PLACEHOLDER = Loop(dim="N", bound=1)

Indices = tuple[int, ...]


@dataclass(frozen=True)
class _Steps:
    """The temporal loops of one or two levels, outer to inner, and what their indices say about a tensor."""

    loops: tuple[Loop, ...]

    def innermost(self, tensor: Tensor) -> int:
        """Place of the innermost loop that touches a tensor, or -1."""
        return max((i for i, loop in enumerate(self.loops) if loop.dim in RELEVANT[tensor]), default=-1)

    def at_first(self, tensor: Tensor, indices: Indices) -> bool:
        """Whether all loops inside the innermost one that touches the tensor stand at their first index."""
        return all(index == 0 for index in indices[self.innermost(tensor) + 1 :])

    def at_last(self, tensor: Tensor, indices: Indices) -> bool:
        """The same for the last index."""
        inside = self.innermost(tensor) + 1
        pairs = zip(self.loops[inside:], indices[inside:], strict=True)
        return all(index == loop.bound - 1 for loop, index in pairs)

    def loads_partial_sums(self, indices: Indices) -> bool:
        """Whether outputs sent before come back (see the module's text)."""
        own = self.innermost("outputs")
        reductions = [i for i in range(own + 1) if self.loops[i].dim in REDUCTIONS]
        return bool(reductions) and indices[reductions[-1]] > 0 and self.at_first("outputs", indices)

    def __iter__(self) -> Iterator[Indices]:
        return all_indices(self.loops)

    def __len__(self) -> int:
        return prod(loop.bound for loop in self.loops)


@dataclass
class _Step:
    """Numbers of a network step's transactions that later ones wait for."""

    computes: list[int] = field(default_factory=list)
    sends: dict[tuple[Tensor, int], int] = field(default_factory=dict)
    arrivals: dict[int, list[int]] = field(default_factory=dict)
    reductions: list[int] = field(default_factory=list)
    stores: dict[int, int] = field(default_factory=dict)

    def sent_to(self, pe: int) -> list[int]:
        """What was sent to a PE, tensor by tensor."""
        return [self.sends[tensor, pe] for tensor in TENSORS if (tensor, pe) in self.sends]


class PublishedDataflow:
    """Transactions of a schedule on a mesh with the global buffer and the DRAM at its last router.

    Raises
    ------
    InputError: the schedule has not the levels that the generator knows, or more PEs than the mesh.
    """

    def __init__(self, schedule: Schedule) -> None:
        architecture, inner = schedule.architecture, schedule.innermost_first
        mesh = architecture.mesh_level
        if mesh != len(inner) - 2 or "weights" in inner[mesh].keeps or set(inner[mesh].keeps) != {"inputs", "outputs"}:
            raise InputError(
                "the published generator knows one hierarchy only",
                source=architecture.name,
                path="levels",
                allowed="PE levels, a global buffer that keeps inputs and outputs, DRAM",
            )
        self._schedule, self._inner, self._mesh = schedule, inner, mesh
        self._columns, self._rows = architecture.fanout(mesh)
        self._pes = self._columns * self._rows
        routers = self._columns * (self._rows + 1)
        self.buffer = routers - 1
        self.dram = routers + self._columns + self._rows + 1
        self.network = _Steps(inner[mesh].temporal or (PLACEHOLDER,))
        self.memory = _Steps(inner[mesh + 1].temporal or (PLACEHOLDER,))
        self.both = _Steps(self.memory.loops + self.network.loops)
        self.compute_cycles = prod(loop.bound for level in inner[:mesh] for loop in level.temporal)
        self._spatial = inner[mesh].spatial
        if prod(loop.bound for loop in self._spatial) > self._pes:
            raise InputError("more PEs than the mesh has", source="nest", path=inner[mesh].level)
        self._groups = {tensor: self._group(tensor) for tensor in TENSORS}

    # ---- sizes and groups

    def _tile_words(self, tensor: Tensor, level: int) -> int:
        """Words of a tensor that a node whose outermost level is `level` takes at once."""
        store = max(i for i in range(level + 1) if tensor in self._inner[i].keeps)
        words = box_words(self._schedule.padded_layer, tensor, extents(self._inner[: store + 1]))
        between = [loop for entry in self._inner[store + 1 : level + 1] for loop in entry.loops]
        return words * prod(loop.bound for loop in between if loop.dim in RELEVANT[tensor])

    def packets(self, tensor: Tensor, level: int) -> int:
        """Packets of that tile; a partly filled one costs a full one."""
        return -(-self._tile_words(tensor, level) * BITS[tensor] // PACKET_BITS)

    def _group(self, tensor: Tensor) -> list[list[int]]:
        """PEs with equal indices of the spatial loops that touch a tensor; PEs without work belong to none."""
        groups: dict[Indices, list[int]] = {}
        for indices in all_indices(self._spatial):
            pairs = zip(self._spatial, indices, strict=True)
            key = tuple(index for loop, index in pairs if loop.dim in RELEVANT[tensor])
            groups.setdefault(key, []).append(self._number(indices))
        return sorted(sorted(group) for group in groups.values())

    def _number(self, indices: Indices) -> int:
        """PE of some spatial indices: innermost fastest along its axis (published mappings are row-major)."""
        place, size = {"x": 0, "y": 0, "row_major": 0}, {"x": 1, "y": 1, "row_major": 1}
        for loop, index in zip(reversed(self._spatial), reversed(indices), strict=True):
            assert loop.axis is not None
            place[loop.axis] += index * size[loop.axis]
            size[loop.axis] *= loop.bound
        return place["row_major"] + place["x"] + place["y"] * self._columns

    # ---- the list

    def transactions(self) -> Iterator[Transaction]:
        """All transactions in order, one after another as they are needed (a stream: steps are never all kept)."""
        writer = _Writer()
        loaded: dict[Tensor, list[int]] = {"inputs": [], "outputs": []}
        ends: list[list[int]] = []  # computes of the last network step of the last two memory steps
        for memory_step, memory in enumerate(self.memory):
            before = ends[0] if len(ends) == 2 else []
            needs: list[tuple[Tensor, str, bool]] = [
                ("outputs", "psums_dram_to_gb", self.memory.loads_partial_sums(memory)),
                ("inputs", "inputs_dram_to_gb", self.memory.at_first("inputs", memory)),
            ]
            for tensor, label, needed in needs:
                if needed:
                    size = self.packets(tensor, self._mesh)
                    yield writer.add(self.dram, "unicast", size, (self.buffer,), before, (label, memory_step, None))
                    loaded[tensor].append(writer.last)
            steps: list[_Step] = []
            stores: list[int] = []
            for network_step, network in enumerate(self.network):
                step = _Step()
                yield from self._network_step(writer, loaded, steps, step, memory, network, memory_step, network_step)
                stores = list(step.stores.values()) or stores
                steps = [*steps[-1:], step]
            ends = [*ends[-1:], steps[-1].computes]
            if self.memory.at_last("outputs", memory) and stores:
                size = self.packets("outputs", self._mesh)
                labels = ("outputs_gb_to_dram", memory_step, None)
                yield writer.add(self.buffer, "unicast", size, (self.dram,), stores, labels)

    def _network_step(
        self,
        writer: _Writer,
        loaded: dict[Tensor, list[int]],
        earlier: list[_Step],
        step: _Step,
        memory: Indices,
        network: Indices,
        memory_step: int,
        network_step: int,
    ) -> Iterator[Transaction]:
        two_before = earlier[-2] if len(earlier) == 2 else None

        def send(source: int, tensor: Tensor, label: str, first: list[int]) -> Iterator[Transaction]:
            size = self.packets(tensor, self._mesh - 1)
            for group in self._groups[tensor]:
                waits = [two_before.computes[pe] for pe in group] if two_before is not None else []
                waits += first
                operation: Operation = "multicast" if len(group) > 1 else "unicast"
                labels = (label, memory_step, network_step)
                yield writer.add(source, operation, size, tuple(group), waits, labels)
                step.sends.update(((tensor, pe), writer.last) for pe in group)

        if self.network.loads_partial_sums(network):
            yield from send(self.buffer, "outputs", "psums_gb_to_pe", loaded["outputs"])
        if self.network.at_first("inputs", network):
            yield from send(self.buffer, "inputs", "inputs_gb_to_pe", loaded["inputs"])
        if self.both.at_first("weights", memory + network):
            yield from send(self.dram, "weights", "weights_dram_to_pe", [])
        for pe in range(self._pes):
            waits = step.sent_to(pe)
            if two_before is not None:
                waits += two_before.arrivals.get(pe, [])
                waits += [two_before.stores[pe]] if pe in two_before.stores else []
            if earlier:
                waits += earlier[0].sent_to(pe)
            labels = ("compute", memory_step, network_step)
            yield writer.add(pe, "compute", self.compute_cycles, (), waits, labels)
            step.computes.append(writer.last)
        if self.network.at_last("outputs", network):
            yield from self._reduce_and_store(writer, earlier, step, memory_step, network_step)

    def _reduce_and_store(
        self, writer: _Writer, earlier: list[_Step], step: _Step, memory_step: int, network_step: int
    ) -> Iterator[Transaction]:
        """Add up group by group, along each row, then down the column; the last PE of each sends the tile."""
        size = self.packets("outputs", self._mesh - 1)
        trees = [ReductionTree.of(group, self._columns) for group in self._groups["outputs"]]
        for pe, after in (hop for tree in trees for hop in tree.successor.items()):
            waits = [step.computes[pe], *step.arrivals.get(pe, [])]
            yield writer.add(pe, "unicast", size, (after,), waits, ("psums_pe_to_pe", memory_step, network_step))
            step.arrivals.setdefault(after, []).append(writer.last)
            step.reductions.append(writer.last)
        waits = step.computes + step.reductions + (list(earlier[-1].stores.values()) if earlier else [])
        for root in (tree.root for tree in trees):
            labels = ("outputs_pe_to_gb", memory_step, network_step)
            yield writer.add(root, "unicast", size, (self.buffer,), waits, labels)
            step.stores[root] = writer.last


class _Writer:
    """Numbers transactions in the order in which they are made."""

    def __init__(self) -> None:
        self.last = -1

    def add(
        self,
        actor: int,
        operation: Operation,
        size: int,
        destinations: tuple[int, ...],
        waits: list[int],
        labels: tuple[str, int, int | None],
    ) -> Transaction:
        """The next transaction."""
        self.last += 1
        name, memory_step, network_step = labels
        within = "" if network_step is None else str(network_step)
        columns = (("class", name), ("mem_step", str(memory_step)), ("noc_step", within))
        return Transaction(self.last, actor, operation, size, destinations, tuple(waits), columns)
