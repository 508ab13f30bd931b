"""The program on the simulated machine: what its ports must carry, as sums of powers.

The terms are those of `cosa.analytical.network_batch`: `floor` is what no run can beat (the largest load, with what
must come before or after it), `cycles` the prediction with fitted constants. Neither exceeds that module's figures.
Multicasts count once at their source; headers count; a transfer has whole packets at least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2, prod
from typing import Any

from cosa.analytical.constants import Constants
from cosa.analytical.network_batch import waits_for_tiles
from cosa.analytical.traffic import word_bits
from cosa.arch import Architecture
from cosa.keeping import Keeping
from cosa.mapping_rules import MappingRules
from cosa.mip.analytical_program import AnalyticalProgram
from cosa.mip.orders import Rule
from cosa.mip.quantities import Expression
from cosa.workload import DIMS, RELEVANT, TENSORS, Dim, Layer, Tensor

_NEVER = -60.0


class NetworkProgram(AnalyticalProgram):
    """Loads of every nest of a layer on a mesh, under-estimated; `floor` and `cycles` count in `cycles_unit`.

    Parameters
    ----------
    constants: weights of the prediction.
    """

    rule: Rule = "exact"

    def __init__(
        self,
        layer: Layer,
        architecture: Architecture,
        *,
        cycles_unit: float,
        energy_unit_pj: float,
        bounds: Mapping[Dim, Sequence[int]] | None = None,
        constants: Constants | None = None,
        mapping_rules: MappingRules | None = None,
        keeping: Keeping | None = None,
    ) -> None:
        self.constants = constants or Constants()
        self.noc, self.mesh = architecture.require_noc(), architecture.mesh_level
        super().__init__(
            layer,
            architecture,
            cycles_unit=cycles_unit,
            energy_unit_pj=energy_unit_pj,
            bounds=bounds,
            mapping_rules=mapping_rules,
            keeping=keeping,
        )

    # Flits

    def _bits(self, tensor: Tensor) -> int:
        return word_bits(self.layer, self.architecture, tensor)

    def _flits_per_word(self, bits: int) -> float:
        """Flits of a word in a long transfer, its share of headers included."""
        payload = self.noc.packet_payload_flits
        return bits / self.noc.flit_bits * (1 + 1 / payload)

    def _least_flits(self) -> int:
        """Flits of the shortest transfer."""
        return 1 + self.noc.packet_payload_flits if self.noc.partial_packets == "full" else 2

    def _flits(
        self, name: str, log_words: Expression, log_transfers: Expression, bits: int, given: Expression = 1
    ) -> Any:
        """Flits of transfers in the cycles' unit: of their words, and of as many transfers at least."""
        by_words = self.power(f"{name} words", log_words + log2(self._flits_per_word(bits)), self.cycles_unit, given)
        fewest = log_transfers + log2(self._least_flits())
        by_transfers = self.power(f"{name} transfers", fewest, self.cycles_unit, given)
        flits = self.new_variable("continuous")
        self.require(flits >= by_words)
        self.require(flits >= by_transfers)
        return flits

    # Terms

    def _cycles(self) -> Any:
        ports_gb, ports_dram = len(self.noc.global_buffer_ports), len(self.noc.dram_ports)
        gb_out: Expression = 0.0
        gb_in: Expression = 0.0
        dram_out: Expression = 0.0
        first_in: Expression = 0.0
        first_step: Expression = 0.0
        to_pes: Expression = 0.0
        pe_in: Expression = 0.0
        self._dram_bytes: Expression = 0.0
        steps = self.new_variable("continuous")
        for tensor in TENSORS:
            for store, given in self._stores(tensor).items():
                visits = self.power(f"{tensor} steps", self.orders.log_visits(tensor, store), self.cycles_unit, given)
                self.require(steps >= visits)
        for tensor in ("weights", "inputs"):
            bits = self._bits(tensor)
            from_dram: Expression = 0.0
            from_memory: Expression = 0.0
            for store, buffered, given in self._routes(tensor):
                inside, groups = self._groups(tensor, store)
                fetched, visits = self.orders.log_fetched(tensor, store), self.orders.log_visits(tensor, store)
                sent = self._flits(f"{tensor} to PEs", fetched + inside + groups, visits + groups, bits, given)
                pe_in = pe_in + self._flits(f"{tensor} into a PE", fetched + inside, visits, bits, given)
                from_memory = from_memory + sent
                log_first = self.log_tile_of(tensor, store) + inside + groups
                if buffered:
                    first = self._flits(f"{tensor} first to PEs", log_first, groups, bits, given)
                    first_step, gb_out = first_step + first, gb_out + sent
                    continue
                from_dram = from_dram + sent
                self._add_dram_bytes(tensor, fetched + inside + groups, bits, given)
                first_in = first_in + self._flits(f"{tensor} first", log_first, groups, bits, given)
            if tensor in self.keeping.may[self.mesh]:
                given = self.keeps.kept[self.mesh, tensor]
                far, far_visits = self.orders.log_fetched(tensor, self.mesh), self.orders.log_visits(tensor, self.mesh)
                moved = self._flits(f"{tensor} to the buffer", far, far_visits, bits, given)
                gb_in, from_dram = gb_in + moved, from_dram + moved
                self._add_dram_bytes(tensor, far, bits, given)
                first = self._flits(f"{tensor} first", self.log_tile(tensor, self.mesh), 0.0, bits, given)
                first_in = first_in + first
            dram_out, to_pes = dram_out + from_dram, to_pes + from_memory
            for flits in (from_dram, from_memory):
                self.require_all_words(tensor, flits, self._flits_per_word(bits) / self.cycles_unit)
        # Finished outputs are as many wherever they are kept; partial sums by where they come back from.
        partial: Expression = 0.0
        from_buffer: Expression = 0.0
        final: Expression = 0.0
        for store, buffered, given in self._routes("outputs"):
            inside, groups = self._groups("outputs", store)
            visits = self.orders.log_visits("outputs", store)
            words = visits + self.log_tile_of("outputs", store) + inside
            final, again = self._outputs("PE outputs", words + groups, given)
            pe_in = pe_in + self._reduction(words, given)
            to_pes, partial = to_pes + again, partial + again
            from_buffer = from_buffer + again if buffered else from_buffer
            dram_out = dram_out if buffered else dram_out + again
            log_last = self.log_tile_of("outputs", store) + inside + groups
            first_step = first_step + self._flits("outputs of a step", log_last, groups, self._bits("outputs"), given)
        dram_in: Expression = final + partial - from_buffer
        last_out: Expression = 0.0
        if "outputs" in self.keeping.may[self.mesh]:
            given = self.keeps.kept[self.mesh, "outputs"]
            far = self.orders.log_visits("outputs", self.mesh) + self.log_tile("outputs", self.mesh)
            _, far_partial = self._outputs("outputs", far, given)
            gb_in = gb_in + final * given + from_buffer + far_partial
            gb_out = gb_out + final * given + far_partial + from_buffer
            dram_in, dram_out = dram_in + far_partial, dram_out + far_partial
            tile = self.log_tile("outputs", self.mesh)
            last_out = self._flits("last outputs", tile, 0.0, self._bits("outputs"), given)
        self._dram_bytes = self._dram_bytes + self.output_words() * self._bits("outputs") / 8 / self.cycles_unit
        compute = self.power("compute", self.log_compute(), self.cycles_unit)
        compute = compute + steps * self.architecture.pe.pipeline_latency_cycles
        waits = waits_for_tiles(self.architecture)
        step = self._step()
        floor = self.new_variable("continuous")
        for load in (
            compute + first_in * (waits / ports_dram),
            dram_out * (1 / ports_dram) + waits * step,
            dram_in * (1 / ports_dram) + step,
            gb_out * (1 / ports_gb),
            gb_in * (1 / ports_gb),
            pe_in,
        ):
            self.require(floor >= load)
        rate = self.constants.dram_bytes_per_cycle
        if rate is not None:
            self.require(floor >= self._dram_bytes * (1 / rate))
        self.floor = floor
        weights = self.constants
        return (
            weights.floor * floor
            + weights.compute * compute
            + weights.dram_out / ports_dram * dram_out
            + weights.dram_in / ports_dram * dram_in
            + weights.to_pes / max(ports_gb, ports_dram) * to_pes
            + weights.reloads * partial
            + weights.first_step * (first_step + step)
            + weights.last_out / ports_gb * last_out
            + weights.cycles_per_step * steps
        )

    def _routes(self, tensor: Tensor) -> list[tuple[int, bool, Expression]]:
        """(outermost level of a PE that keeps a tensor, -1: none; whether the buffer keeps it, too; 1 where so)."""
        arcs = self.keeps.arcs[tensor].items()
        return [(child, level == self.mesh, arc) for (child, level), arc in arcs if child < self.mesh <= level]

    def _stores(self, tensor: Tensor) -> dict[int, Expression]:
        """By outermost level of a PE that keeps a tensor: 1 where it is that."""
        found: dict[int, Expression] = {}
        for store, _, given in self._routes(tensor):
            found[store] = found[store] + given if store in found else given
        return found

    def log_tile_of(self, tensor: Tensor, level: int) -> Expression:
        """Log of the words of a tile; level -1: one word."""
        return 0.0 if level < 0 else self.log_tile(tensor, level)

    def _groups(self, tensor: Tensor, store: int) -> tuple[Expression, Expression]:
        """Logs of the groups inside a PE and over the mesh."""
        inside = self.orders.log_groups(tensor, range(store + 1, self.mesh))
        return inside, self.orders.log_groups(tensor, range(self.mesh, self.mesh + 1))

    def _add_dram_bytes(self, tensor: Tensor, log_words: Expression, bits: int, given: Expression) -> None:
        unit = self.cycles_unit * 8 / bits
        self._dram_bytes = self._dram_bytes + self.power(f"{tensor} DRAM", log_words, unit, given)

    def _outputs(self, name: str, log_sent: Expression, given: Expression) -> tuple[float, Any]:
        """Flits of finished outputs (a constant) and of the partial sums that leave besides, and come back."""
        most = prod(self.longest(dim) for dim in DIMS if dim in RELEVANT["outputs"])
        final = self.output_words() * self._flits_per_word(self._bits("outputs")) / self.cycles_unit
        each = self._flits_per_word(self.layer.word_bits.partial_sums)
        sent = self.power(f"{name} sent", log_sent + log2(each), self.cycles_unit, given)
        partial = self.new_variable("continuous")
        self.require(partial >= sent - most * each / self.cycles_unit * given)
        return final, partial

    def _reduction(self, log_words: Expression, given: Expression) -> Any:
        """Flits of partial sums into a PE from another one, where PEs share an output tile."""
        reduces = self.new_variable("binary")
        found = False
        for dim in DIMS:
            for prime, multiplicity in self.factors[dim].items():
                count = self.counts.get((self.mesh, dim, prime, "spatial"))
                if dim not in RELEVANT["outputs"] and count is not None:
                    self.require(count <= multiplicity * reduces)
                    found = True
        if not found:
            return 0.0
        each = self._flits_per_word(self.layer.word_bits.partial_sums)
        exponent = log_words + log2(each) + _NEVER - _NEVER * reduces
        return self.power("reduction", exponent, self.cycles_unit, given)

    def _step(self) -> Any:
        """Cycles of a step at least: compute over all temporal loops outside the innermost store of a PE.

        Where stores are chosen, one term for each level that may be the innermost: it counts unless one further in is.
        """
        stores = {tensor: self._stores(tensor) for tensor in TENSORS}
        candidates = sorted({store for found in stores.values() for store in found})
        terms = []
        for first in candidates:
            further_in = [given for found in stores.values() for store, given in found.items() if store < first]
            if any(isinstance(given, int) for given in further_in):
                break
            outside = range(first + 1, len(self.architecture.levels))
            steps = sum((self.log_loops(DIMS, level, ("temporal",)) for level in outside), 0.0)
            given: Expression = 1
            if further_in:
                given = self.new_variable("continuous", 1.0)
                self.require(given >= 1 - sum(further_in))
            terms.append(self.power("one step", self.log_compute() - steps, self.cycles_unit, given))
        if len(terms) == 1:
            return terms[0]
        step = self.new_variable("continuous")
        for term in terms:
            self.require(step >= term)
        return step
