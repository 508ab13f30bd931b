"""The simulated machine of a mesh: what its ports and PEs must carry, and how long that takes. One formula.

Flits and cycles come as numbers, arrays of mappings, or expressions of a program: everything here is linear in them, so
that the evaluator (`cosa.analytical.network_batch`) and the program (`cosa.mip.network_program`) have one formula.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cosa.analytical.constants import Constants
from cosa.model.arch import Architecture

Amount = Any
"""A number, an array of mappings, or a linear expression."""

CHAIN_EXPONENT = 0.65
"""Hops of a chain of n PEs are about this power of n: 2.5 of 4, 6 of 16, 15 of 64."""


@dataclass(frozen=True)
class NetworkLoads:
    """Loads of a run, headers and partly filled flits counted; a port's flits are those of one of several alike.

    compute: cycles, pipeline latency of every step included. steps: number. step: cycles of one. gb_out, gb_in,
    dram_out, dram_in, pe_in: flits at ports of the global buffer, the DRAM and the busiest PE. to_pes: flits from the
    memories to PEs, which share the links at the memories' router. link: those of operands that one of these links
    carries at least. dram_bytes: bytes at the DRAM. shared: flits of weights from DRAM and of operands from the global
    buffer that go to PEs, the smaller of the two: as many of each want the same links at a time. late: flits of weights
    where they come in several goes while inputs stream through the global buffer: those wait behind them at the DRAM
    port. partial: flits of partial sums that come back to a PE. chain: flits of partial sums from PE to PE, one hop
    after the other.

    Filling: first_in: flits of the first tiles from DRAM to the global buffer, before which it sends none. start:
    cycles before the last PE has its first tiles, 0 where it need not wait for them. prefetched: flits that the global
    buffer has sent by then at most, None: not known. before_writes: cycles before the first output goes to DRAM.
    Draining: last_out: the last tile from the global buffer to DRAM. tail: the last outputs of a PE, and last_out.
    weights: flits of weights from DRAM (0 where the global buffer keeps them); last_weights: cycles computed with the
    last ones.
    """

    compute: Amount
    steps: Amount
    step: Amount
    gb_out: Amount
    gb_in: Amount
    dram_out: Amount
    dram_in: Amount
    pe_in: Amount
    to_pes: Amount
    link: Amount
    dram_bytes: Amount
    partial: Amount
    shared: Amount
    late: Amount
    chain: Amount
    first_in: Amount
    start: Amount
    prefetched: Amount | None
    before_writes: Amount
    last_out: Amount
    tail: Amount
    weights: Amount
    last_weights: Amount


def floors(loads: NetworkLoads, waits: int, dram_bytes_per_cycle: float | None = None) -> dict[str, Amount]:
    """Cycles that no run takes less than: each load, with what must come before it or after it.

    * All PEs wait for their first tiles, and the last of those to come has passed the DRAM port after all the others:
      only then that PE begins. It computes everything, sends its outputs, and the global buffer sends its last tile
      when it is whole.
    * What comes last from DRAM is still computed with; what comes last into a PE or the global buffer goes on.
    * Before the last PE has begun, no tile of outputs in the global buffer is whole, so none has left; of inputs, that
      PE has room for its sets only, and feeds serve all PEs in turn.

    Parameters
    ----------
    waits: see `waits_for_tiles`.
    dram_bytes_per_cycle: of the DRAM at most; None: not asked.
    """
    found = {
        "PEs": loads.compute + loads.start + loads.tail,
        "DRAM out": loads.dram_out + waits * loads.step + loads.tail,
        "links to the PEs": loads.link + waits * loads.step + loads.tail,
        "global buffer out": loads.gb_out + loads.first_in,
        "global buffer in": loads.gb_in + loads.last_out,
        "DRAM in": loads.dram_in + loads.before_writes,
        "one PE in": loads.pe_in + loads.tail,
        "last weights": loads.weights + waits * loads.last_weights + loads.tail,
    }
    if loads.prefetched is not None:
        found["global buffer out, once PEs have begun"] = loads.gb_out - loads.prefetched + loads.start
    if dram_bytes_per_cycle is not None:
        found["DRAM bytes"] = loads.dram_bytes / dram_bytes_per_cycle
    return found


def terms(floor: Amount, loads: NetworkLoads) -> dict[str, Amount]:
    """What the weights of `Constants` count, by the weight's name; `floor`: the largest of `floors`."""
    return {
        "floor": floor,
        "compute": loads.compute,
        "dram_out": loads.dram_out,
        "dram_in": loads.dram_in,
        "to_pes": loads.to_pes,
        "reloads": loads.partial,
        "reductions": loads.chain,
        "shared": loads.shared,
        "late": loads.late,
        "first_in": loads.first_in,
        "last_out": loads.last_out,
        "cycles_per_step": loads.steps,
    }


def predicted(floor: Amount, loads: NetworkLoads, constants: Constants) -> Amount:
    """Cycles of a run: a fitted sum, no proof."""
    return sum(getattr(constants, name) * term for name, term in terms(floor, loads).items())


def has_one_buffer(architecture: Architecture) -> bool:
    """Whether the mesh lies under the level next to the DRAM: the machine whose loads are counted here."""
    return architecture.noc is not None and architecture.mesh_level == len(architecture.levels) - 2


def waits_for_tiles(architecture: Architecture) -> int:
    """1 where a step is computed after all of its tiles are there, 0 where it overlaps their arrival."""
    return int(architecture.machine.compute_starts == "whole_tile")
