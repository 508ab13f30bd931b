"""Where the cycles went: the total and each PE's part in it, for whole runs, partial ones and extrapolated ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from fractions import Fraction
from math import floor
from typing import TypeVar

from cosa.analytical.loads import Bound, bound
from dram.stats import DramStats
from dram.system import DramSystem
from nocsim.machine.accelerator import Accelerator
from nocsim.machine.dram_port import READ, WRITE
from nocsim.machine.dram_setup import dram_data
from nocsim.machine.pe import ProcessingElement
from nocsim.machine.waits import CAUSES, Cause, Resource, by_resource
from nocsim.result.estimate import Error
from nocsim.result.result import DramClocks, Extrapolation, PeCycles

Name = TypeVar("Name", bound=str)


def machine_bound(accelerator: Accelerator) -> Bound:
    """The bound of the machine as it was built: what was made ideal bounds nothing."""
    dram = dram_data(accelerator.architecture, accelerator.dram_config) if accelerator.channels else None
    found = bound(accelerator.traffic, dram)
    return found if accelerator.mesh is not None else replace(found, port_cycles=0, link_cycles=0)


def accounts(accelerator: Accelerator) -> tuple[int, tuple[PeCycles, ...]]:
    """The total in cycles, and every PE's cycles, which add up to it."""
    total = accelerator.end_cycle
    if accelerator.plan is not None:
        total = _whole_cycles(accelerator)
    noc = accelerator.architecture.require_noc()
    found = []
    for number in range(noc.pe_columns * noc.pe_rows):
        pe = accelerator.pes.get(number)
        if pe is None:
            found.append(_pe(number, noc.pe_columns, used=False, idle=total))
            continue
        # Not known of a PE that had not finished when the run was ended.
        tail = max(0, pe.finished_cycle - pe.computed_cycle)
        own: dict[Cause, int] = pe.waiting_cycles
        if accelerator.plan is not None:
            # Each PE's sampled periods say a little something else; the total is the same for all.
            over = max(0, accelerator.end_cycle - pe.finished_cycle) if pe.finished_cycle else 0
            room = total - pe.computing_cycles - tail
            own = scaled(own, max(0, room - over) if accelerator.ended == "finished" else min(room, sum(own.values())))
        known = pe.computing_cycles + sum(own.values()) + tail
        found.append(
            _pe(
                number,
                noc.pe_columns,
                used=True,
                computing=pe.computing_cycles,
                waiting_inputs=own["inputs"],
                waiting_weights=own["weights"],
                waiting_partial_sums=own["partial_sums"],
                drain=own["drain"] + tail,
                idle=total - known,
                waiting=_waiting(pe, own),
            )
        )
    return total, tuple(found)


def _waiting(pe: ProcessingElement, cycles: Mapping[Cause, int]) -> dict[Cause, dict[Resource, int]]:
    """The cycles of each wait by resource, in the proportions in which it waited; the last outputs on top."""
    found = {cause: scaled(pe.waits[cause], cycles[cause]) for cause in CAUSES}
    for resource, n_cycles in pe.tail:
        found["drain"][resource] += n_cycles
    split = {cause: by_resource(cycles.items()) for cause, cycles in found.items()}
    return {cause: cycles for cause, cycles in split.items() if cycles}


def _pe(
    number: int,
    columns: int,
    *,
    used: bool,
    computing: int = 0,
    waiting_inputs: int = 0,
    waiting_weights: int = 0,
    waiting_partial_sums: int = 0,
    drain: int = 0,
    idle: int = 0,
    waiting: dict[Cause, dict[Resource, int]] | None = None,
) -> PeCycles:
    return PeCycles(
        pe=number,
        column=number % columns,
        row=number // columns,
        used=used,
        computing=computing,
        waiting_inputs=waiting_inputs,
        waiting_weights=waiting_weights,
        waiting_partial_sums=waiting_partial_sums,
        drain=drain,
        idle=idle,
        waiting=waiting or {},
    )


def _whole_cycles(accelerator: Accelerator) -> int:
    """Cycles that the sampled periods stand for: the mean over the PEs, and no less than what is certain."""
    end = accelerator.end_cycle
    pes = list(accelerator.pes.values())
    accounted = [pe.computing_cycles + sum(pe.waiting_cycles.values()) for pe in pes]
    if accelerator.ended != "finished":
        return max(1, *accounted)
    totals = [own + end - pe.computed_cycle for own, pe in zip(accounted, pes, strict=True)]
    certain = max(pe.computing_cycles + pe.finished_cycle - pe.computed_cycle for pe in pes)
    return max(sum(totals) // len(totals), certain, machine_bound(accelerator).cycles)


def scaled(parts: Mapping[Name, int], target: int) -> dict[Name, int]:
    """Whole numbers in the same proportions that add up to the target (largest remainders); all 0 stay so."""
    total = sum(parts.values())
    if not total:
        return dict(parts)
    found = {name: part * target // total for name, part in parts.items()}
    rest = target - sum(found.values())
    for name in sorted(parts, key=lambda name: -(parts[name] * target % total))[:rest]:
        found[name] += 1
    return found


def extrapolation(accelerator: Accelerator, total: int, runs: int, error: Error | None) -> Extrapolation | None:
    """How much was simulated, and how sure the rest is; None if all was."""
    plan = accelerator.plan
    if plan is None:
        return None
    return Extrapolation(
        periods=plan.count,
        steps_per_period=plan.steps_per_period,
        kinds=len(plan.counts),
        simulated_periods=len(plan.periods),
        measured_periods=sum(1 for _, weight in plan.periods if weight),
        simulated_steps=plan.simulated_steps,
        simulated_cycles=accelerator.end_cycle,
        extrapolated_share=max(0.0, 1 - accelerator.end_cycle / total),
        standard_error_share=error.standard_error_cycles / total if error else None,
        shift_share=(error.shift_cycles or 0.0) / total if error else None,
        shift_error_share=error.shift_error_cycles / total if error else None,
        margin_share=error.margin_share(total) if error else None,
        runs=runs,
    )


def cycles_of(accelerator: Accelerator) -> dict[int, float]:
    """The cycles of the measured periods by their numbers: means over the PEs. Of a plan that has run to its end."""
    plan = accelerator.plan
    assert plan is not None
    pes = list(accelerator.pes.values())
    sums = [sum(at) for at in zip(*(pe.period_starts for pe in pes), strict=True)]
    return {
        number: (after - begin) / len(pes)
        for (number, _), begin, after in zip(plan.periods, sums[:-1], sums[1:], strict=True)
        if number in plan.kinds
    }


def whole_stats(accelerator: Accelerator, channel: int, stats: DramStats, total: int) -> DramStats:
    """Counts and energy of a channel: accesses as they count, row commands in proportion, the rest by time."""
    if accelerator.plan is None:
        return stats
    counted = [port.bursts.get((channel, op), (0, 0)) for port in accelerator.dram_ports for op in (READ, WRITE)]
    reads, writes = (
        (sum(weighted for weighted, _ in found), sum(submitted for _, submitted in found))
        for found in (counted[::2], counted[1::2])
    )
    # A read that is served from a write still in the queue is no access of the DRAM.
    n_reads, n_writes = (
        done * weighted // max(1, submitted)
        for done, (weighted, submitted) in ((stats.reads, reads), (stats.writes, writes))
    )
    more = Fraction(n_reads + n_writes, max(1, stats.reads + stats.writes))
    config = accelerator.dram_config
    clocks = floor(total * accelerator.clocks_per_core_cycle)
    ranks = scaled(
        {
            "rank_active_cycles": stats.rank_active_cycles,
            "rank_standby_cycles": stats.rank_standby_cycles,
            "rank_powerdown_cycles": stats.rank_powerdown_cycles,
        },
        config.organization.ranks * clocks,
    )
    return replace(
        stats,
        reads=n_reads,
        writes=n_writes,
        row_hits=round(stats.row_hits * more),
        row_misses=round(stats.row_misses * more),
        row_conflicts=round(stats.row_conflicts * more),
        activates=round(stats.activates * more),
        precharges=round(stats.precharges * more),
        refreshes=round(Fraction(stats.refreshes * total, accelerator.end_cycle)),
        bus_busy_cycles=(n_reads + n_writes) * config.timing.burst_clocks,
        total_cycles=clocks,
        **ranks,
    ).with_energy(config)


def whole_clocks(accelerator: Accelerator, channel: DramSystem, stats: DramStats) -> DramClocks:
    """The channel's clocks by what they went to; those without data keep their proportions."""
    clocks = asdict(channel.losses)
    if accelerator.plan is not None:
        data = min(stats.bus_busy_cycles, stats.total_cycles)
        clocks = {"data": data} | scaled(clocks | {"data": 0}, stats.total_cycles - data) | {"data": data}
    return DramClocks(**clocks)
