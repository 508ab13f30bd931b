"""The machine of the published network simulator: what its ports and PEs must carry, and how long that will take.

Flits and cycles come as numbers, arrays of mappings, or expressions of a program: everything here is linear in them, so
that the evaluator (`cosa.analytical.published_batch`) and the program (`cosa.mip.published_program`) have one formula.

How that machine works, as far as it decides the time:

* Reads of the DRAM go one after another, a packet each; the packet holds its path from head to tail, so it keeps the
  global buffer's port (inputs) and the links to the PEs (weights) for as long as the read takes.
* A PE computes or sends, never both; outputs leave when all PEs have finished the step. So compute and stores follow
  each other. Partial sums passed from PE to PE hide behind the compute of the next step, every second step at best.
* A run begins with the first inputs and weights from DRAM and ends with the last tile to DRAM.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from cosa.analytical.constants import PublishedConstants
from cosa.analytical.network_machine import has_one_buffer
from cosa.common.errors import InputError
from cosa.model.arch import Architecture
from cosa.model.layer import Dim, Layer, Tensor
from cosa.model.mapping_rules import MappingRules, ProductRule

Amount = Any
"""A number, an array of mappings, or a linear expression."""

MOVED_BY: dict[Tensor, tuple[Dim, ...]] = {
    "weights": ("R", "S", "C", "K"),
    "inputs": ("P", "Q", "C", "N"),
    "outputs": ("P", "Q", "K", "N"),
}
"""Loops outside a PE that the generator takes to move a tensor: R and S move no inputs."""

REDUCTIONS: tuple[Dim, ...] = ("R", "S", "C")

_HOPS_EXPONENT = 0.86


@dataclass(frozen=True)
class PublishedLoads:
    """Loads of a run, in flits unless cycles are named; a multicast counts once.

    steps: number of network steps. compute: cycles of a PE over the run, one to take up each step included;
    step_compute: of one step. inputs_to_buffer, outputs_to_dram, partial_to_buffer (partial sums that come back):
    between DRAM and global buffer. inputs_to_pes, partial_to_pes, weights_to_pes, outputs_to_buffer: of all PEs.
    reduction_chain: what PEs pass on one after another; pe_reductions: what one of them takes in of that. pe_outputs:
    what one PE sends.

    first_inputs: first tile of the global buffer; first_weights, first_tiles: first weights and inputs of all PEs;
    first_tile: inputs of one PE; step_outputs: outputs of all PEs in one step; last_outputs: a tile from the global
    buffer to DRAM.
    """

    steps: Amount
    compute: Amount
    step_compute: Amount
    inputs_to_buffer: Amount
    partial_to_buffer: Amount
    inputs_to_pes: Amount
    partial_to_pes: Amount
    weights_to_pes: Amount
    outputs_to_buffer: Amount
    outputs_to_dram: Amount
    reduction_chain: Amount
    pe_reductions: Amount
    pe_outputs: Amount
    first_inputs: Amount
    first_weights: Amount
    first_tiles: Amount
    first_tile: Amount
    step_outputs: Amount
    last_outputs: Amount

    @property
    def from_dram_to_buffer(self) -> Amount:
        """Flits from DRAM to the global buffer."""
        return self.inputs_to_buffer + self.partial_to_buffer

    @property
    def from_dram(self) -> Amount:
        """Flits out of the DRAM's port."""
        return self.from_dram_to_buffer + self.weights_to_pes

    @property
    def from_buffer_to_pes(self) -> Amount:
        """Flits from the global buffer to PEs."""
        return self.inputs_to_pes + self.partial_to_pes


def packet_flits(architecture: Architecture) -> int:
    """Flits of a packet, its header included."""
    return 1 + architecture.require_noc().packet_payload_flits


def read_factor(architecture: Architecture, cycles_per_packet: float) -> float:
    """Cycles that a flit from DRAM takes: reads go one after another, a packet each (no DRAM: a flit a cycle)."""
    return 1.0 if architecture.dram is None else cycles_per_packet / packet_flits(architecture)


def reduction_hops(log_sharing: Amount) -> Amount:
    """Log of how many hops follow each other where 2^`log_sharing` > 1 PEs share an output tile: 1 of two PEs, 1.8 of
    four (two or three on a mesh, as they lie), 6 of sixteen."""
    return _HOPS_EXPONENT * (log_sharing - 1)


def resources(loads: PublishedLoads, reads: float) -> dict[str, Amount]:
    """What each resource is busy with, and what must come before and after; `reads`: cycles a flit from DRAM.

    Predictions: `cosa.analytical.published_machine.floors` has what is certain.
    """
    before = reads * (loads.first_inputs + loads.first_weights)
    after = loads.step_compute + loads.step_outputs
    serial = loads.compute + loads.outputs_to_buffer
    return {
        "PEs in step": before + loads.first_tiles + serial + loads.last_outputs,
        "reduction": before + loads.first_tiles + (serial + loads.reduction_chain) * 0.5 + loads.last_outputs,
        "global buffer out": reads * loads.first_inputs + loads.from_buffer_to_pes + loads.outputs_to_dram + after,
        "global buffer in": reads * loads.from_dram_to_buffer
        + loads.outputs_to_buffer
        + loads.first_tiles
        + loads.step_compute
        + loads.last_outputs,
        "DRAM out": reads * loads.from_dram + loads.first_tiles + after + loads.last_outputs,
        "links to the PEs": reads * (loads.first_inputs + loads.weights_to_pes)
        + loads.from_buffer_to_pes
        + after
        + loads.last_outputs,
    }


def predicted(largest: Amount, loads: PublishedLoads, constants: PublishedConstants, reads: float) -> Amount:
    """Cycles of a run from the largest of `resources`: a fitted sum, no proof."""
    return (
        constants.largest * largest
        + constants.compute * loads.compute
        + constants.outputs_to_buffer * loads.outputs_to_buffer
        + constants.outputs_to_dram * loads.outputs_to_dram
        + constants.to_pes * loads.from_buffer_to_pes
        + constants.reads_to_buffer * reads * loads.from_dram_to_buffer
        + constants.reads_to_pes * reads * loads.weights_to_pes
        + constants.partial_sums * (loads.partial_to_buffer + loads.partial_to_pes)
        + constants.reductions * loads.pe_reductions
        + constants.cycles_per_step * loads.steps
    )


def floors(loads: PublishedLoads, reads: float, share: float) -> dict[str, Amount]:
    """Cycles that no run takes less than; `reads`: the least cycles a flit from DRAM, `share`: of the flits to PEs,
    what the busiest link at the memories' router carries in any placement.

    A PE has nothing to compute before the first inputs have reached the global buffer and it; the buffer has nothing to
    send before. What comes last from DRAM is still computed with.
    """
    first = reads * loads.first_inputs
    return {
        "one PE": first + loads.first_tile + loads.compute + loads.pe_outputs,
        "global buffer out": first + loads.from_buffer_to_pes + loads.outputs_to_dram,
        "global buffer in": loads.from_dram_to_buffer + loads.outputs_to_buffer,
        "DRAM out": reads * loads.from_dram + loads.step_compute,
        "DRAM in": first + loads.first_tile + loads.step_compute + loads.step_outputs + loads.outputs_to_dram,
        "links to the PEs": share * (loads.from_buffer_to_pes + loads.weights_to_pes) + loads.step_compute,
    }


def require_published(layer: Layer, architecture: Architecture) -> None:
    """InputError unless the architecture is the published simulator's machine and the layer one that it knows.

    Sizes are free: mesh, capacities, fan-outs inside a PE. So is whether there is a DRAM; without one its port never
    waits.
    """
    noc, machine, mesh = architecture.require_noc(), architecture.machine, architecture.mesh_level
    keeps = [set(level.keeps) for level in architecture.levels]
    fine = has_one_buffer(architecture) and keeps[mesh] == {"inputs", "outputs"}
    fine = fine and all(any(tensor in keeps[level] for level in range(mesh)) for tensor in MOVED_BY)
    router = noc.global_buffer_ports[0].router
    at_one_router = len(noc.global_buffer_ports) == len(noc.dram_ports) == 1 and noc.dram_ports[0].router == router
    last_router = router in ((-1, -1), (noc.router_columns - 1, noc.router_rows - 1)) and at_one_router
    wanted: list[tuple[str, bool, str]] = [
        ("levels", fine, "PE levels that keep every tensor, a global buffer with inputs and outputs, DRAM"),
        ("noc.flit_bits", noc.flit_bits * noc.packet_payload_flits == 256, "packets of 256 data bits"),
        ("noc.partial_packets", noc.partial_packets == "full", "full"),
        ("noc.extra_rows", noc.extra_rows == 1, "1"),
        ("noc.global_buffer_ports", last_router, "global buffer and DRAM at the last router, a port each"),
        ("machine.reads_in_flight", machine.reads_in_flight == 1, "1"),
        ("machine.dram_packet", machine.dram_packet == "holds_path", "holds_path"),
        ("machine.send_engine", machine.send_engine == "shared", "shared"),
        ("machine.store_waits_for", machine.store_waits_for == "all_pes", "all_pes"),
        ("machine.finished_outputs", machine.finished_outputs == "partial_sum_width", "partial_sum_width"),
        ("machine.reduction", machine.reduction == "chain", "chain"),
        ("machine.placement", machine.placement == "as_scheduled", "as_scheduled"),
        ("machine.weights_refetch", machine.weights_refetch == "published", "published"),
    ]
    if (dram := architecture.dram) is not None:
        ours = (dram.device, dram.policy, dram.mapping, dram.channels, dram.ranks, dram.clocks_per_core_cycle)
        published = ("ddr2_667_x8", "dramsim2", "scheme2", 1, 16)
        as_published = ours[:5] == published and ours[5] in ("1", "1/1")
        wanted.append(("dram", as_published, "ddr2_667_x8 of 16 ranks, dramsim2, scheme2, 1/1; or no dram block"))
    for path, holds, allowed in wanted:
        if not holds:
            message = "not the machine of the published simulator"
            raise InputError(message, source=architecture.name, path=path, allowed=allowed)
    bits, source = layer.word_bits, f"layer {layer.name!r}"
    if (bits.weights, bits.inputs, bits.partial_sums) != (8, 8, 24):
        allowed = "weights 8, inputs 8, partial_sums 24"
        raise InputError("the published simulator has fixed widths", source=source, path="word_bits", allowed=allowed)
    if layer.G > 1:
        raise InputError("the published simulator knows no groups", source=source, path="G", value=layer.G, allowed="1")


def published_rules(rules: MappingRules, architecture: Architecture, physical_only: bool) -> MappingRules:
    """Rules with what the generator does not see.

    Inside a PE it looks at the tiles of the outermost level only. So that these are tiles that the PE can hold, weights
    do not change outside their buffer, and sums are finished where outputs are kept. `physical_only`: no R and S loops
    outside a PE (they would move no inputs), no temporal C at the DRAM (partial sums would not come back).
    """
    for (level, tensor), kept in rules.keeps.items():
        if kept != (tensor in architecture.levels[level].keeps):
            allowed = "what the architecture says: the generator knows one hierarchy"
            raise InputError("another level keeps a tensor", source=rules.source, path="keeps", allowed=allowed)
    mesh, top = architecture.mesh_level, len(architecture.levels) - 1
    names = [level.name for level in architecture.levels]
    found = list(rules.products)

    def forbid(levels: range, dims: tuple[Dim, ...], kinds: tuple[Any, ...], why: str) -> None:
        for level in levels:
            what = "loops" if len(kinds) > 1 else "temporal loops"
            text = f"{what} over {' '.join(dims)} at {names[level]}"
            found.append(ProductRule(why, text, (level,), dims, kinds, 1, 1))

    def outside(tensor: Tensor) -> range:
        return range(max(i for i in range(mesh) if tensor in architecture.levels[i].keeps) + 1, mesh)

    forbid(outside("weights"), MOVED_BY["weights"], ("temporal",), "a PE's buffers")
    forbid(outside("outputs"), REDUCTIONS, ("temporal",), "a PE's buffers")
    if physical_only:
        forbid(range(mesh, top + 1), ("R", "S"), ("temporal", "spatial"), "physical_only")
        forbid(range(top, top + 1), ("C",), ("temporal",), "physical_only")
    source = rules.source or "the rules of the published machine"
    return replace(rules, source=source, products=tuple(found))
