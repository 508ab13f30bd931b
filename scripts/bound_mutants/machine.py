"""Terms of the floor of a run, of the least of all mappings and of the machine's bound."""

# ruff: noqa: E501  (passages stand as in the source)

from __future__ import annotations

from bound_mutants.terms import FILE_BATCH, FILE_FOOTPRINT, FILE_FORMULA, FILE_LEAST, FILE_LOADS, Term, sums

FORMULA = (
    *sums(
        FILE_FORMULA,
        (
            "loads.compute + loads.start + loads.tail,",
            "loads.dram_out + waits * loads.step + loads.tail,",
            "loads.link + waits * loads.step + loads.tail,",
            "loads.gb_out + loads.first_in,",
            "loads.gb_in + loads.last_out,",
            "loads.dram_in + loads.before_writes,",
            "loads.pe_in + loads.tail,",
            "loads.weights + waits * loads.last_weights + loads.tail,",
        ),
    ),
    Term(FILE_FORMULA, "amount", "= <<loads.gb_out - loads.prefetched + loads.start>>\n"),
    Term(FILE_FORMULA, "amount", "= loads.gb_out - <<loads.prefetched>> + loads.start\n"),
    Term(FILE_FORMULA, "amount", "= loads.gb_out - loads.prefetched + <<loads.start>>\n"),
    Term(FILE_FORMULA, "amount", "= <<loads.dram_bytes / dram_bytes_per_cycle>>"),
    *(
        Term(FILE_FORMULA, "amount", f'"{name}": <<{term}>>,')
        for name, term in {
            "floor": "floor",
            "compute": "loads.compute",
            "dram_out": "loads.dram_out",
            "dram_in": "loads.dram_in",
            "to_pes": "loads.to_pes",
            "reloads": "loads.partial",
            "reductions": "loads.chain",
            "shared": "loads.shared",
            "late": "loads.late",
            "first_in": "loads.first_in",
            "last_out": "loads.last_out",
            "cycles_per_step": "loads.steps",
        }.items()
    ),
    Term("cosa/analytical/routes.py", "amount", "return <<(noc.pe_columns - 1) / noc.pe_columns>> if column"),
)
"""Floors and prediction of a run, of mappings and in the program."""

BATCH = (
    Term(FILE_BATCH, "amount", "compute = <<shape.compute>> + steps * self.architecture.pe.pipeline_latency_cycles"),
    Term(
        FILE_BATCH,
        "amount",
        "compute = shape.compute + <<steps * self.architecture.pe.pipeline_latency_cycles>>",
    ),
    Term(FILE_BATCH, "amount", "sent = groups * <<own.flits>>"),
    Term(FILE_BATCH, "amount", "pe_in += <<sent / groups>>"),
    Term(FILE_BATCH, "amount", "first = groups * <<self.flits(own.tile, bits)>>"),
    Term(FILE_BATCH, "amount", "gb_out += <<sent>>"),
    Term(FILE_BATCH, "amount", "gb_in += <<far.flits>>"),
    Term(FILE_BATCH, "amount", "dram_out += <<far.flits>>"),
    Term(FILE_BATCH, "amount", "dram_bytes += <<far.fetched * bits / 8>>"),
    Term(FILE_BATCH, "amount", "start += <<first_far / ports_dram>>"),
    Term(FILE_BATCH, "amount", "first_in += <<first_far / ports_dram>>"),
    Term(FILE_BATCH, "amount", "np.maximum(waits_for_buffer, <<first_far / ports_dram>> + first / ports_gb)"),
    Term(FILE_BATCH, "amount", "np.maximum(waits_for_buffer, first_far / ports_dram + <<first / ports_gb>>)"),
    Term(FILE_BATCH, "amount", "prefetched += (<<sets * first>> + first - first / groups) / ports_gb"),
    Term(FILE_BATCH, "amount", "prefetched += (sets * first + <<first - first / groups>>) / ports_gb"),
    Term(FILE_BATCH, "amount", "dram_out += <<sent>>"),
    Term(FILE_BATCH, "amount", "dram_bytes += <<groups * own.fetched * bits / 8>>"),
    Term(FILE_BATCH, "amount", "start += <<first / ports_dram>>"),
    Term(FILE_BATCH, "amount", """weights += <<sent / ports_dram>> if tensor == "weights" else 0.0"""),
    Term(FILE_BATCH, "amount", "final = <<groups * distinct>> * self.flits(tile_words, bits)"),
    Term(FILE_BATCH, "amount", "again_in = <<groups * again * tile_flits>>"),
    Term(FILE_BATCH, "amount", "reduced = <<own.visits * tile_flits * np.minimum(1, pes / groups - 1)>>"),
    Term(FILE_BATCH, "amount", "pe_in += <<again_in / groups>> + reduced"),
    Term(FILE_BATCH, "amount", "step = <<compute / steps>>\n        last_out"),
    Term(FILE_BATCH, "amount", "last_of_pe = <<self.flits(tile_words, min(bits, self.partial_bits))>>"),
    Term(FILE_BATCH, "amount", "gb_in += <<final>> + again_in"),
    Term(FILE_BATCH, "amount", "gb_in += final + <<again_in>>"),
    Term(FILE_BATCH, "amount", "gb_out += <<again_in>>"),
    Term(FILE_BATCH, "amount", "far_final = <<far_distinct * self.flits(far.tile, bits)>>"),
    Term(
        FILE_BATCH,
        "amount",
        "far_partial = <<np.maximum(0, far.visits - far_distinct) * self.flits(far.tile, self.partial_bits)>>",
    ),
    Term(FILE_BATCH, "amount", "gb_out += <<far_final>> + far_partial"),
    Term(FILE_BATCH, "amount", "gb_out += far_final + <<far_partial>>"),
    Term(FILE_BATCH, "amount", "gb_in += <<far_partial>>"),
    Term(FILE_BATCH, "amount", "dram_in += <<far_final>> + far_partial"),
    Term(FILE_BATCH, "amount", "dram_in += far_final + <<far_partial>>"),
    Term(FILE_BATCH, "amount", "dram_out += <<far_partial>>"),
    Term(
        FILE_BATCH,
        "amount",
        "spilled = <<np.maximum(0, far.visits - far_distinct) * far.tile * self.partial_bits / 8>>",
    ),
    Term(FILE_BATCH, "amount", "last_out += <<self.flits(far.tile, bits) / min(ports_gb, ports_dram)>>"),
    Term(
        FILE_BATCH,
        "amount",
        """before_writes = start + <<compute / self._steps(shape, "outputs", self.mesh)>> + last_of_pe""",
    ),
    Term(
        FILE_BATCH,
        "amount",
        """before_writes = <<start>> + compute / self._steps(shape, "outputs", self.mesh) + last_of_pe""",
    ),
    Term(
        FILE_BATCH,
        "amount",
        """before_writes = start + compute / self._steps(shape, "outputs", self.mesh) + <<last_of_pe>>""",
    ),
    Term(FILE_BATCH, "amount", "dram_in += <<final>> + again_in"),
    Term(FILE_BATCH, "amount", "dram_in += final + <<again_in>>"),
    Term(FILE_BATCH, "amount", "dram_out += <<again_in>>"),
    Term(FILE_BATCH, "amount", "spilled = <<groups * again * tile_words * self.partial_bits / 8>>"),
    Term(FILE_BATCH, "amount", "dram_bytes += <<all_words * bits / 8>> + 2 * spilled"),
    Term(FILE_BATCH, "amount", "dram_bytes += all_words * bits / 8 + <<2 * spilled>>"),
    Term(FILE_BATCH, "amount", "link=<<operands * busiest_link_share(self.noc)>>,"),
    Term(
        FILE_BATCH,
        "amount",
        "prefetched=prefetched + <<again_in / ports_gb>> if buffered",
    ),
    Term(FILE_BATCH, "amount", """last_weights=<<compute / steps_of["weights"]>>,"""),
    Term(
        FILE_FOOTPRINT,
        "amount",
        "return outputs * taps - <<coinciding(outputs, taps, stride, dilation, _common(stride, dilation))>>",
    ),
    Term("cosa/analytical/shapes.py", "other", "mixed = both & <<(beside > 1)>>", {"never": "False & (beside > 1)"}),
)

LEAST = (
    Term(FILE_LEAST, "amount", "cycles = float(ceil(<<layer.macs>> / units))"),
    Term(
        FILE_LEAST,
        "amount",
        """cycles = max(cycles, <<(words["weights"] + words["inputs"])>> / top.read_bandwidth_words_per_cycle)""",
    ),
    Term(FILE_LEAST, "amount", """cycles = max(cycles, (<<words["weights"]>> + words["inputs"]) / top"""),
    Term(FILE_LEAST, "amount", """cycles = max(cycles, (words["weights"] + <<words["inputs"]>>) / top"""),
    Term(FILE_LEAST, "amount", """cycles = max(cycles, <<words["outputs"]>> / top.write_bandwidth_words_per_cycle)"""),
    Term(FILE_LEAST, "amount", "return <<layer.macs * mac_energy_pj(architecture)>> + words * each"),
    Term(FILE_LEAST, "amount", "return layer.macs * mac_energy_pj(architecture) + <<words * each>>"),
    Term(FILE_LEAST, "amount", "energy = <<layer.macs * mac_energy_pj(architecture)>>"),
    Term(
        FILE_LEAST,
        "amount",
        "energy += <<words[tensor] * vector_access_energy_pj(architecture, outermost) / top.block_words>>",
    ),
    Term(
        FILE_LEAST,
        "amount",
        "<<layer.macs / below>> * vector_access_energy_pj(architecture, inner)",
    ),
    Term(FILE_LEAST, "other", "or <<tensor not in keeping.always[inner]>>:", {"always": "False"}),
    Term(FILE_LEAST, "amount", "if <<product * outside>> <= most:", only=("/ 1.2",)),
    Term(FILE_LEAST, "amount", "if <<product * inner>> > most:", only=("/ 1.2",)),
)

LOADS = (
    Term(FILE_LOADS, "amount", "number = <<flits(noc, item.n_bytes)>> * item.count"),
    Term(FILE_LOADS, "amount", "injected[item.source] += <<number>>"),
    Term(FILE_LOADS, "amount", "ejected[ports] += <<number>>"),
    Term(FILE_LOADS, "amount", "links[link] += <<number>>"),
    Term(FILE_LOADS, "amount", "<<-(-item.n_bytes // access_bytes)>> * item.count"),
    Term(
        FILE_LOADS,
        "other",
        """(item.kind == "fill" and item.source == dram)<< or (item.kind == "final" and item.destinations == (dram,))>>""",
        {"reads alone": ""},
    ),
    Term(FILE_LOADS, "amount", "cycles = max(cycles, <<ceil(words / Fraction(bandwidth))>>)"),
    Term(FILE_LOADS, "amount", "read = <<sum(flow.sent_words for flow in traffic.flows if flow.source == node)>>"),
    Term(
        FILE_LOADS,
        "amount",
        "written = <<sum(flow.received_words for flow in traffic.flows if flow.destination == node)>>",
    ),
    Term(FILE_LOADS, "amount", "latency = <<traffic.steps * traffic.architecture.pe.pipeline_latency_cycles>>"),
    Term(FILE_LOADS, "amount", "compute = <<traffic.compute_cycles>> + latency"),
    Term(FILE_LOADS, "amount", "dram_cycles = <<ceil(each * dram.cycles_per_access)>>"),
    Term(FILE_LOADS, "amount", "each = <<-(-dram_accesses(traffic, dram.access_bytes) // dram.channels)>>"),
)
