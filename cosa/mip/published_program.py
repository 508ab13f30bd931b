"""The program on the machine of the published simulator: what its generator's transactions load, as sums of powers.

Loads and formulas are those of `cosa.analytical.published_machine`, never above what `published_batch` counts. How
often a tile is sent depends on three orders of the mesh level and of the DRAM: weights stay (P, Q, N innermost), inputs
stay (R, S, K) or outputs stay (R, S, C). Any other order sends at least as much of everything as one of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2
from typing import Any

from cosa.analytical.constants import PublishedConstants
from cosa.analytical.published_batch import TAKE_UP_CYCLES
from cosa.analytical.published_machine import (
    MOVED_BY,
    REDUCTIONS,
    PublishedLoads,
    floors,
    packet_flits,
    predicted,
    read_factor,
    reduction_hops,
    require_published,
    resources,
)
from cosa.analytical.routes import any_link_share
from cosa.analytical.traffic import word_bits
from cosa.mip.analytical_program import AnalyticalProgram
from cosa.mip.quantities import Expression
from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, Dim, Layer, Tensor
from cosa.model.mapping_rules import KINDS, MappingRules

_NEVER = -60.0

_SKIPPED: dict[tuple[Tensor, Dim], tuple[Tensor, ...]] = {
    ("inputs", "R"): ("inputs", "outputs"),
    ("inputs", "S"): ("inputs", "outputs"),
    ("inputs", "K"): ("inputs",),
    ("outputs", "R"): ("inputs", "outputs"),
    ("outputs", "S"): ("inputs", "outputs"),
    ("outputs", "C"): ("outputs",),
}
"""Orders (by the tensor that stays) in which a loop stands inside all those that move a tensor."""


class PublishedProgram(AnalyticalProgram):
    """Loads of every nest of a layer, under-estimated; `floor` and `cycles` count in `cycles_unit`.

    Parameters
    ----------
    constants: of the prediction and of the bound (None: the defaults).
    """

    def __init__(
        self,
        layer: Layer,
        architecture: Architecture,
        *,
        cycles_unit: float,
        energy_unit_pj: float,
        bounds: Mapping[Dim, Sequence[int]] | None = None,
        constants: PublishedConstants | None = None,
        mapping_rules: MappingRules | None = None,
    ) -> None:
        require_published(layer, architecture)
        self.constants = constants or PublishedConstants()
        self.noc, self.mesh = architecture.require_noc(), architecture.mesh_level
        self._again: dict[int, Any] = {}
        super().__init__(
            layer,
            architecture,
            cycles_unit=cycles_unit,
            energy_unit_pj=energy_unit_pj,
            bounds=bounds,
            mapping_rules=mapping_rules,
        )

    def _cycles(self) -> Any:
        loads = self._loads()
        reads = read_factor(self.architecture, self.constants.cycles_per_dram_packet)
        largest, self.floor = self.new_variable("continuous"), self.new_variable("continuous")
        for busy in resources(loads, reads).values():
            self.require(largest >= busy)
        least = read_factor(self.architecture, self.constants.least_cycles_per_dram_packet)
        for certain in floors(loads, least, any_link_share(self.architecture.require_noc())).values():
            self.require(self.floor >= certain)
        return predicted(largest, loads, self.constants, reads)

    def _loads(self) -> PublishedLoads:
        mesh, top = self.mesh, self.mesh + 1
        memory = self.log_loops(DIMS, top, ("temporal",))
        steps = memory + self.log_loops(DIMS, mesh, ("temporal",))
        groups = {tensor: self.log_loops(MOVED_BY[tensor], mesh, ("spatial",)) for tensor in MOVED_BY}
        inputs, outputs = self._log_visits("inputs", mesh), self._log_visits("outputs", mesh)
        far_inputs, far_outputs = self._log_visits("inputs", top), self._log_visits("outputs", top)
        weights = self.orders.log_visits("weights", mesh - 1)
        number_of_steps = self.power("steps", steps, self.cycles_unit)
        compute = self.power("compute", self.log_compute(), self.cycles_unit)
        stored = outputs + memory
        chain, pe_reductions = self._reductions(stored)
        return PublishedLoads(
            steps=number_of_steps,
            compute=compute + number_of_steps * TAKE_UP_CYCLES,
            step_compute=self.power("one step", self.log_compute() - steps, self.cycles_unit),
            inputs_to_buffer=self._flits("inputs to the buffer", "inputs", mesh, far_inputs),
            partial_to_buffer=self._partial("partial sums to the buffer", mesh, top, 0.0),
            inputs_to_pes=self._flits("inputs to PEs", "inputs", mesh - 1, groups["inputs"] + inputs + memory),
            partial_to_pes=self._partial("partial sums to PEs", mesh - 1, mesh, groups["outputs"] + memory),
            weights_to_pes=self._flits("weights to PEs", "weights", mesh - 1, groups["weights"] + weights),
            outputs_to_buffer=self._flits("outputs to the buffer", "outputs", mesh - 1, groups["outputs"] + stored),
            outputs_to_dram=self._flits("outputs to DRAM", "outputs", mesh, far_outputs),
            reduction_chain=chain,
            pe_reductions=pe_reductions,
            pe_outputs=self._flits("outputs of a PE", "outputs", mesh - 1, stored),
            first_inputs=self._flits("first inputs", "inputs", mesh, 0.0),
            first_weights=self._flits("first weights", "weights", mesh - 1, groups["weights"]),
            first_tiles=self._flits("first tiles", "inputs", mesh - 1, groups["inputs"]),
            first_tile=self._flits("first tile", "inputs", mesh - 1, 0.0),
            step_outputs=self._flits("outputs of a step", "outputs", mesh - 1, groups["outputs"]),
            last_outputs=self._flits("last outputs", "outputs", mesh, 0.0),
        )

    def _log_packets(self, tensor: Tensor, level: int) -> Expression:
        """Log of the packets of a tile of a node whose outermost level is `level`, unless that is less than one."""
        store = max(i for i in range(level + 1) if tensor in self.architecture.levels[i].keeps)
        words = self.log_tile(tensor, store)
        for between in range(store + 1, level + 1):
            words = words + self.log_loops(MOVED_BY[tensor], between, KINDS)
        bits = word_bits(self.layer, self.architecture, tensor)
        return words + log2(bits / (self.noc.packet_payload_flits * self.noc.flit_bits))

    def _flits(self, name: str, tensor: Tensor, level: int, log_times: Expression) -> Any:
        """Flits of a tile sent so often, in the cycles' unit: of its words, and a packet each time at least."""
        each = log2(packet_flits(self.architecture))
        by_words = self.power(f"{name}, words", self._log_packets(tensor, level) + log_times + each, self.cycles_unit)
        by_packets = self.power(f"{name}, packets", log_times + each, self.cycles_unit)
        flits = self.new_variable("continuous")
        self.require(flits >= by_words)
        self.require(flits >= by_packets)
        return flits

    def _log_visits(self, tensor: Tensor, level: int) -> Expression:
        """Log of how often the temporal loops of one level send a tile."""
        total = self.log_loops(MOVED_BY[tensor], level, ("temporal",))
        for skipping in dict.fromkeys(_SKIPPED.values()):
            dims = [dim for (name, dim), orders in _SKIPPED.items() if name == tensor and orders == skipping]
            if dims:
                total = total + self._counted(level, dims, skipping)
        return total

    def _counted(self, level: int, dims: Sequence[Dim], skipping: Sequence[Tensor]) -> Expression:
        """Log of loops that count unless the order of the level puts them innermost."""
        longest = sum(log2(self.longest(dim)) for dim in dims)
        if longest == 0:
            return 0.0
        counted = self.new_variable("continuous", longest)
        loops = self.log_loops(dims, level, ("temporal",))
        if set(dims) & set(self.mapping_rules.named(level)):
            # Where constraints say where these loops stand, they may be inside whatever is there.
            return counted
        skipped = sum(self.orders.modes[level, tensor] for tensor in skipping)
        self.require(counted >= loops - longest * skipped)
        return counted

    def _partial(self, name: str, node: int, level: int, log_others: Expression) -> Any:
        """Flits of partial sums that come back to a node in the loops of a level: half of the tiles sent at least,
        where a reduction loop stands outside a loop that moves outputs."""
        again = self.new_variable("binary")
        found = False
        groups: tuple[tuple[tuple[Dim, ...], tuple[Tensor, ...]], ...] = (
            (("R", "S"), ("inputs", "outputs")),
            (("C",), ("outputs",)),
        )
        for dims, skipping in groups:
            longest = sum(log2(self.longest(dim)) for dim in dims)
            if longest and not set(dims) & set(self.mapping_rules.named(level)):
                skipped = sum(self.orders.modes[level, tensor] for tensor in skipping)
                self.require(self.log_loops(dims, level, ("temporal",)) <= longest * (again + skipped))
                found = True
        if not found:
            return 0.0
        half = self._log_visits("outputs", level) - 1
        return self._flits(name, "outputs", node, half + log_others + _NEVER * (1 - again))

    def _reductions(self, log_times: Expression) -> tuple[Any, Any]:
        """Flits of output tiles that PEs pass on one after another, and that one PE takes in of them."""
        shares = self.new_variable("binary")
        found = False
        for dim in REDUCTIONS:
            for prime, multiplicity in self.factors[dim].items():
                count = self.counts.get((self.mesh, dim, prime, "spatial"))
                if count is not None:
                    self.require(count <= multiplicity * shares)
                    found = True
        if not found:
            return 0.0, 0.0
        hops = reduction_hops(self.log_loops(REDUCTIONS, self.mesh, ("spatial",)))
        log_times = log_times + _NEVER * (1 - shares)
        chain = self._flits("reduction", "outputs", self.mesh - 1, log_times + hops)
        return chain, self._flits("reduction into a PE", "outputs", self.mesh - 1, log_times)
