"""The program on the simulated machine: what its ports must carry, as sums of powers.

The formula is that of `cosa.analytical.network_machine`: `floor` is what no run can beat, `cycles` the prediction with
fitted constants. Loads are from below, so neither exceeds what `cosa.analytical.network_batch` finds of a mapping.
Multicasts count once at their source; headers count; a transfer has whole packets at least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, log2, prod
from typing import Any

from cosa.analytical.constants import Constants
from cosa.analytical.network_machine import (
    CHAIN_EXPONENT,
    NetworkLoads,
    floors,
    predicted,
    waits_for_tiles,
)
from cosa.analytical.routes import busiest_link_share
from cosa.analytical.traffic import word_bits
from cosa.mip.analytical_program import APART, AnalyticalProgram
from cosa.mip.orders import Rule
from cosa.mip.pe_words import PeWords, log_tile
from cosa.mip.powers import has_variables
from cosa.mip.quantities import Expression
from cosa.model.arch import Architecture
from cosa.model.keeping import Keeping
from cosa.model.layer import DIMS, RELEVANT, TENSORS, Dim, Layer, Tensor
from cosa.model.mapping_rules import MappingRules

_NEVER = -60.0
_OFFSET = 8.0
"""Above it logarithms of flits are positive."""

_LEAST_STEP = 3
_LOWEST = 16


@dataclass
class _Sums:
    """Loads as they add up, in flits of all ports together; words as in `NetworkLoads`.

    first_in: first tiles from DRAM, whoever they are for; first_far: those for the global buffer. operands: flits to
    PEs. final: finished outputs of all PEs. from_buffer: of the partial sums that come back to PEs, those from the
    global buffer.
    """

    gb_out: Expression = 0.0
    gb_in: Expression = 0.0
    dram_out: Expression = 0.0
    dram_in: Expression = 0.0
    pe_in: Expression = 0.0
    operands: Expression = 0.0
    first_in: Expression = 0.0
    first_far: Expression = 0.0
    prefetched: Any = 0.0
    weights: Expression = 0.0
    last_weights: Expression = 0.0
    final: Expression = 0.0
    partial: Expression = 0.0
    from_buffer: Expression = 0.0
    chain: Expression = 0.0
    before_writes: Expression = 0.0
    last_out: Expression = 0.0
    tail: Expression = 0.0


class NetworkProgram(AnalyticalProgram):
    """Loads of every nest of a layer on a mesh, under-estimated.

    `loads`, `floors`, the largest of them, `floor`, and the prediction, `cycles`, count in `cycles_unit`.

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
        self._ports_gb, self._ports_dram = len(self.noc.global_buffer_ports), len(self.noc.dram_ports)
        self._waits = waits_for_tiles(architecture)
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
        self.pe_words = PeWords(self, self.orders, self.mesh)
        self._dram_bytes: Expression = 0.0
        loads = self._loads()
        self.floor = self.new_variable("continuous")
        self.floors = floors(loads, self._waits, self.constants.dram_bytes_per_cycle)
        for load in self.floors.values():
            self.require(self.floor >= load)
        shared, late = self._shared()
        self.loads = replace(loads, shared=shared, late=late)
        return predicted(self.floor, self.loads, self.constants)

    def _loads(self) -> NetworkLoads:
        """Loads from below; what is taken off one (`prefetched`) from above. `shared` and `late` are left at 0."""
        log_compute = self.log_compute()
        start, steps = self.new_variable("continuous"), self.new_variable("continuous")
        for tensor in TENSORS:
            for store, given in self._stores(tensor).items():
                visits = self.power(f"{tensor} steps", self.orders.log_visits(tensor, store), self.cycles_unit, given)
                self.require(steps >= visits)
        sums = _Sums()
        for tensor in ("weights", "inputs"):
            self._add_operand(sums, tensor, start, log_compute)
        self.require(start >= sums.first_in * (1 / self._ports_dram))
        self._add_pe_outputs(sums)
        sums.before_writes = step = self._step()
        if "outputs" in self.keeping.may[self.mesh]:
            self._add_buffered_outputs(sums, start, log_compute)
        self._dram_bytes = self._dram_bytes + self.output_words() * self._bits("outputs") / 8 / self.cycles_unit
        compute = self.power("compute", log_compute, self.cycles_unit)
        gb, dram = 1 / self._ports_gb, 1 / self._ports_dram
        known = sums.prefetched is not None
        return NetworkLoads(
            compute=compute + steps * self.architecture.pe.pipeline_latency_cycles,
            steps=steps,
            step=step,
            gb_out=sums.gb_out * gb,
            gb_in=sums.gb_in * gb,
            dram_out=sums.dram_out * dram,
            dram_in=sums.dram_in * dram,
            pe_in=sums.pe_in,
            to_pes=(sums.operands + sums.partial) * min(gb, dram),
            link=sums.operands * busiest_link_share(self.noc),
            dram_bytes=self._dram_bytes,
            partial=sums.partial,
            shared=0.0,
            late=0.0,
            chain=sums.chain,
            first_in=sums.first_far * dram,
            start=self._waits * start,
            prefetched=(sums.prefetched + sums.from_buffer) * gb if known else None,
            before_writes=sums.before_writes,
            last_out=sums.last_out,
            tail=sums.tail,
            weights=sums.weights * dram,
            last_weights=sums.last_weights,
        )

    def _add_operand(self, sums: _Sums, tensor: Tensor, start: Any, log_compute: Expression) -> None:
        """Weights or inputs, wherever they come from; `start`: cycles before the last PE has its first tiles."""
        bits = self._bits(tensor)
        from_dram: Expression = 0.0
        from_memory: Expression = 0.0
        first_to_pes: Expression = 0.0
        for store, buffered, given in self._routes(tensor):
            groups, visits = self._groups(tensor), self.orders.log_visits(tensor, store)
            first_of_pe, fetched = self.pe_words.of(tensor, store)
            transfers = self.orders.log_transfers(tensor, store)
            sent = self._flits(f"{tensor} to PEs", fetched + groups, transfers + groups, bits, given)
            sums.pe_in = sums.pe_in + self._flits(f"{tensor} into a PE", fetched, transfers, bits, given)
            from_memory = from_memory + sent
            log_first = first_of_pe + groups
            if buffered:
                first = self._flits(f"{tensor} first to PEs", log_first, groups, bits, given)
                first_to_pes, sums.gb_out = first_to_pes + first, sums.gb_out + sent
                sums.prefetched = self._with_prefetched(sums.prefetched, tensor, store, given)
                continue
            from_dram = from_dram + sent
            self._add_dram_bytes(tensor, fetched + groups, bits, given)
            sums.first_in = sums.first_in + self._flits(f"{tensor} first", log_first, groups, bits, given)
            if tensor == "weights":
                sums.weights = sums.weights + sent
                last = self.power("last weights", log_compute - visits, self.cycles_unit, given)
                sums.last_weights = sums.last_weights + last
        if tensor in self.keeping.may[self.mesh]:
            given = self.keeps.kept[self.mesh, tensor]
            far, transfers = self.orders.log_fetched(tensor, self.mesh), self.orders.log_transfers(tensor, self.mesh)
            moved = self._flits(f"{tensor} to the buffer", far, transfers, bits, given)
            sums.gb_in, from_dram = sums.gb_in + moved, from_dram + moved
            self._add_dram_bytes(tensor, far, bits, given)
            of_buffer = self._flits(f"{tensor} first", self.orders.log_words(tensor, self.mesh), 0.0, bits, given)
            sums.first_far, sums.first_in = sums.first_far + of_buffer, sums.first_in + of_buffer
            self.require(start >= of_buffer * (1 / self._ports_dram) + first_to_pes * (1 / self._ports_gb))
        sums.dram_out, sums.operands = sums.dram_out + from_dram, sums.operands + from_memory
        for flits in (from_dram, from_memory):
            self.require_all_words(tensor, flits, self._flits_per_word(bits) / self.cycles_unit)

    def _with_prefetched(self, before: Any, tensor: Tensor, store: int, given: Expression) -> Any:
        """What the buffer has sent at most before PEs begin, with that of another operand; None: not known."""
        # Of tiles that are not those of a buffer it is not known how many a PE has at most.
        whole = self.architecture.pe_tile_level(tensor, 0) == 0
        if before is None or not isinstance(given, int) or not whole:
            return None
        sets = self.architecture.levels[store].buffers if store >= 0 else 1
        return before + (sets + 1) * self._first_at_most(tensor, store)

    def _add_pe_outputs(self, sums: _Sums) -> None:
        """What leaves PEs. Finished outputs are as many wherever they are kept; partial sums by where they come back
        from."""
        for store, buffered, given in self._routes("outputs"):
            groups = self._groups("outputs")
            log_last, _ = self.pe_words.of("outputs", store)
            words = self.orders.log_visits("outputs", store) + log_last
            sums.final, again = self._outputs("PE outputs", words + groups, given)
            reduced, hops = self._reduction(words, given)
            sums.pe_in, sums.chain = sums.pe_in + reduced, sums.chain + hops
            sums.partial = sums.partial + again
            if buffered:
                sums.from_buffer = sums.from_buffer + again
            else:
                sums.dram_out = sums.dram_out + again
            narrow = min(self._bits("outputs"), self.layer.word_bits.partial_sums)
            sums.tail = sums.tail + self._flits("last outputs of a PE", log_last, 0.0, narrow, given)
        sums.dram_in = sums.final + sums.partial - sums.from_buffer

    def _add_buffered_outputs(self, sums: _Sums, start: Any, log_compute: Expression) -> None:
        """Outputs in the global buffer, and what goes on to DRAM and comes back."""
        given = self.keeps.kept[self.mesh, "outputs"]
        far_visits = self.orders.log_visits("outputs", self.mesh)
        tile = self.log_tile("outputs", self.mesh)
        _, far_partial = self._outputs("outputs", far_visits + tile, given)
        sums.gb_in = sums.gb_in + sums.final * given + sums.from_buffer + far_partial
        sums.gb_out = sums.gb_out + sums.final * given + far_partial + sums.from_buffer
        sums.dram_in, sums.dram_out = sums.dram_in + far_partial, sums.dram_out + far_partial
        last = self._flits("last outputs", tile, 0.0, self._bits("outputs"), given)
        sums.last_out = last * (1 / min(self._ports_gb, self._ports_dram))
        if isinstance(given, int):
            first_visit = self.power("first outputs", log_compute - far_visits, self.cycles_unit)
            sums.before_writes = self._waits * start + first_visit + sums.tail
        sums.tail = sums.tail + sums.last_out

    def _shared(self) -> tuple[Any, Any]:
        """What weights from DRAM and inputs from the buffer share, and late weights; 0 where routes are chosen."""
        weights, inputs = self._routes("weights"), self._routes("inputs")
        if len(weights) > 1 or len(inputs) > 1 or weights[0][1] or not inputs[0][1]:
            return 0.0, 0.0
        from_dram = self._log_flits("weights", weights[0][0]) - log2(len(self.noc.dram_ports))
        from_buffer = self._log_flits("inputs", inputs[0][0]) - log2(len(self.noc.global_buffer_ports))
        return self._smaller(from_dram, from_buffer), self._late(weights[0][0], from_dram)

    def _log_flits(self, tensor: Tensor, store: int) -> Expression:
        """Log of the flits of an operand to all PEs, of its words alone."""
        each = log2(self._flits_per_word(self._bits(tensor)))
        return self.pe_words.of(tensor, store)[1] + self._groups(tensor) + each

    def _routes(self, tensor: Tensor) -> list[tuple[int, bool, Expression]]:
        """(level of a PE's tiles of a tensor, -1: none kept; whether the buffer keeps it, too; 1 where so)."""
        arcs, tiles_of = self.keeps.arcs[tensor].items(), self.architecture.pe_tile_level
        return [
            (tiles_of(tensor, child), level == self.mesh, arc)
            for (child, level), arc in arcs
            if child < self.mesh <= level
        ]

    def _stores(self, tensor: Tensor) -> dict[int, Expression]:
        """By level of a PE's tiles of a tensor: 1 where it is that."""
        found: dict[int, Expression] = {}
        for store, _, given in self._routes(tensor):
            found[store] = found[store] + given if store in found else given
        return found

    def _groups(self, tensor: Tensor) -> Expression:
        """Log of the groups over the mesh."""
        return self.orders.log_groups(tensor, range(self.mesh, self.mesh + 1))

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

    def _smaller(self, log_one: Expression, log_other: Expression) -> Any:
        """The smaller of two loads, from below: a binary says which one it is."""
        exponent, first = self.new_variable("continuous"), self.new_variable("binary")
        self.require(exponent >= log_one + _OFFSET - _NEVER * (first - 1))
        self.require(exponent >= log_other + _OFFSET + _NEVER * first)
        return self.power("shared", exponent - _OFFSET, self.cycles_unit)

    def _first_at_most(self, tensor: Tensor, store: int) -> Expression:
        """Flits of the first tiles, one for each group of PEs, at most: as if no two instances had a word in common."""
        noc = self.noc
        dims = [dim for dim in DIMS if dim in RELEVANT[tensor]]
        log_groups = self.log_loops(dims, self.mesh, ("spatial",))
        inside = range(store + 1, self.mesh)
        log_words = log_tile(self.orders, tensor, store) + self.weighted(inside, dims, ("spatial",), log2) + log_groups
        words = prod(self.longest(dim) for dim in dims)
        usable = self.architecture.usable_words(store) if store >= 0 else None
        if usable is not None:
            words = min(words, usable * prod(map(self.most_instances, inside)) * noc.pes)
        each = self._flits_per_word(self._bits(tensor))
        # In each transfer, of the last packet: a partly filled flit and a header; or all of it.
        rest = 2 if noc.partial_packets == "trimmed" else 1 + noc.packet_payload_flits
        return self._at_most(log_words + log2(each), words * each) + rest * self._at_most(log_groups, noc.pes)

    def _at_most(self, exponent: Expression, most: float) -> Expression:
        """2^exponent in the cycles' unit, over-estimated by a factor of two at most; it does not exceed `most`.

        The program may not over-estimate a power linearly: one binary for each power of two that may be the next one.
        """
        if not has_variables(exponent):
            return 2.0 ** float(exponent) / self.cycles_unit
        steps = range(_LEAST_STEP, max(_LEAST_STEP, ceil(log2(most))) + 1)
        chosen = {step: self.new_variable("binary") for step in steps}
        self.require(sum(chosen.values()) == 1)
        # Powers below the least step count as that one.
        low = exponent - (_LEAST_STEP - 1) + _LOWEST * chosen[_LEAST_STEP]
        self.require(low >= sum((step - _LEAST_STEP) * chosen[step] for step in steps) - APART)
        return sum(2.0**step * chosen[step] for step in steps) / self.cycles_unit

    def _reduction(self, log_words: Expression, given: Expression) -> tuple[Any, Any]:
        """Flits of partial sums into a PE from another one where PEs share an output tile, and those of all hops."""
        reduces = self.new_variable("binary")
        found = False
        for dim in DIMS:
            for prime, multiplicity in self.factors[dim].items():
                count = self.counts.get((self.mesh, dim, prime, "spatial"))
                if dim not in RELEVANT["outputs"] and count is not None:
                    self.require(count <= multiplicity * reduces)
                    found = True
        if not found:
            return 0.0, 0.0
        each = self._flits_per_word(self.layer.word_bits.partial_sums)
        exponent = log_words + log2(each) + _NEVER - _NEVER * reduces
        dims = [dim for dim in DIMS if dim not in RELEVANT["outputs"]]
        hops = CHAIN_EXPONENT * self.log_loops(dims, self.mesh, ("spatial",))
        reduced = self.power("reduction", exponent, self.cycles_unit, given)
        return reduced, self.power("chain", exponent + hops, self.cycles_unit, given)

    def _late(self, store: int, log_weights: Expression) -> Any:
        """Weights (log of their flits) where they come in two goes or more, and twice as many tiles of inputs or more
        into the global buffer."""
        goes = self.orders.log_visits("weights", store)
        tiles = self.orders.log_visits("inputs", self.mesh)
        several, streams, late = (self.new_variable("binary") for _ in range(3))
        self.require(goes <= 1 - APART - _NEVER * several)
        self.require(tiles - goes <= 1 - APART - _NEVER * streams)
        self.require(late >= several + streams - 1)
        return self.power("late weights", log_weights + _NEVER - _NEVER * late, self.cycles_unit)

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
