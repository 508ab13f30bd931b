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

    def _flits(self, name: str, log_words: Expression, log_transfers: Expression, bits: int) -> Any:
        """Flits of transfers in the cycles' unit: of their words, and of as many transfers at least."""
        by_words = self.power(f"{name} words", log_words + log2(self._flits_per_word(bits)), self.cycles_unit)
        by_transfers = self.power(f"{name} transfers", log_transfers + log2(self._least_flits()), self.cycles_unit)
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
            visits = self.power(
                f"{tensor} steps", self.orders.log_visits(tensor, self._store(tensor)), self.cycles_unit
            )
            self.require(steps >= visits)
        for tensor in ("weights", "inputs"):
            bits, store = self._bits(tensor), self._store(tensor)
            inside, groups = self._groups(tensor)
            fetched, visits = self.orders.log_fetched(tensor, store), self.orders.log_visits(tensor, store)
            sent = self._flits(f"{tensor} to PEs", fetched + inside + groups, visits + groups, bits)
            pe_in = pe_in + self._flits(f"{tensor} into a PE", fetched + inside, visits, bits)
            to_pes = to_pes + sent
            log_first = self.log_tile_of(tensor, store) + inside + groups
            if not self._buffered(tensor):
                dram_out = dram_out + sent
                self._add_dram_bytes(tensor, fetched + inside + groups, bits)
                first_in = first_in + self._flits(f"{tensor} first", log_first, groups, bits)
                continue
            first_step = first_step + self._flits(f"{tensor} first to PEs", log_first, groups, bits)
            gb_out = gb_out + sent
            far, far_visits = self.orders.log_fetched(tensor, self.mesh), self.orders.log_visits(tensor, self.mesh)
            moved = self._flits(f"{tensor} to the buffer", far, far_visits, bits)
            gb_in, dram_out = gb_in + moved, dram_out + moved
            self._add_dram_bytes(tensor, far, bits)
            first_in = first_in + self._flits(f"{tensor} first", self.log_tile(tensor, self.mesh), 0.0, bits)
        store = self._store("outputs")
        inside, groups = self._groups("outputs")
        visits = self.orders.log_visits("outputs", store)
        words = visits + self.log_tile_of("outputs", store) + inside
        final, partial = self._outputs("PE outputs", words + groups)
        pe_in = pe_in + self._reduction(words)
        to_pes = to_pes + partial
        log_last = self.log_tile_of("outputs", store) + inside + groups
        first_step = first_step + self._flits("outputs of a step", log_last, groups, self._bits("outputs"))
        dram_in: Expression
        last_out: Expression = 0.0
        if self._buffered("outputs"):
            far = self.orders.log_visits("outputs", self.mesh) + self.log_tile("outputs", self.mesh)
            far_final, far_partial = self._outputs("outputs", far)
            gb_in = gb_in + final + partial + far_partial
            gb_out = gb_out + far_final + far_partial + partial
            dram_in, dram_out = far_final + far_partial, dram_out + far_partial
            last_out = self._flits("last outputs", self.log_tile("outputs", self.mesh), 0.0, self._bits("outputs"))
        else:
            dram_in, dram_out = final + partial, dram_out + partial
        self._dram_bytes = self._dram_bytes + self.output_words() * self._bits("outputs") / 8 / self.cycles_unit
        compute = self.power("compute", self.log_compute(), self.cycles_unit)
        compute = compute + steps * self.architecture.pe.pipeline_latency_cycles
        waits = waits_for_tiles(self.architecture)
        step = self.power("one step", self.log_compute() - self._log_steps_at_most(), self.cycles_unit)
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

    def _store(self, tensor: Tensor) -> int:
        kept = [level for level in range(self.mesh) if tensor in self.architecture.levels[level].keeps]
        return kept[-1] if kept else -1

    def _buffered(self, tensor: Tensor) -> bool:
        return tensor in self.architecture.levels[self.mesh].keeps

    def log_tile_of(self, tensor: Tensor, level: int) -> Expression:
        """Log of the words of a tile; level -1: one word."""
        return 0.0 if level < 0 else self.log_tile(tensor, level)

    def _groups(self, tensor: Tensor) -> tuple[Expression, Expression]:
        """Logs of the groups inside a PE and over the mesh."""
        store = self._store(tensor)
        inside = self.orders.log_groups(tensor, range(store + 1, self.mesh))
        return inside, self.orders.log_groups(tensor, range(self.mesh, self.mesh + 1))

    def _add_dram_bytes(self, tensor: Tensor, log_words: Expression, bits: int) -> None:
        unit = self.cycles_unit * 8 / bits
        self._dram_bytes = self._dram_bytes + self.power(f"{tensor} DRAM", log_words, unit)

    def _outputs(self, name: str, log_sent: Expression) -> tuple[float, Any]:
        """Flits of finished outputs (a constant) and of the partial sums that leave besides, and come back."""
        most = prod(self.longest(dim) for dim in DIMS if dim in RELEVANT["outputs"])
        final = self.output_words() * self._flits_per_word(self._bits("outputs")) / self.cycles_unit
        each = self._flits_per_word(self.layer.word_bits.partial_sums)
        sent = self.power(f"{name} sent", log_sent + log2(each), self.cycles_unit)
        partial = self.new_variable("continuous")
        self.require(partial >= sent - most * each / self.cycles_unit)
        return final, partial

    def _reduction(self, log_words: Expression) -> Any:
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
        return self.power("reduction", exponent, self.cycles_unit)

    def _log_steps_at_most(self) -> Expression:
        """Log of at least the number of steps: all temporal loops outside the innermost store of a PE."""
        first = min(self._store(tensor) for tensor in TENSORS) + 1
        levels = range(first, len(self.architecture.levels))
        return sum((self.log_loops(DIMS, level, ("temporal",)) for level in levels), 0.0)
