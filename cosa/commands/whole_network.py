"""`cosa schedule --network NAME`: all layers of a network on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cosa.common.progress import Progress
from cosa.common.result_cache import chosen_cache
from cosa.common.tables import printable, table
from cosa.common.terminal import out_lines
from cosa.experiments.network_schedule import SUMMARY, NetworkSchedules, schedule_network

if TYPE_CHECKING:
    from cosa.commands.main import HowToSchedule
    from cosa.commands.work import Work
    from cosa.common.parameters import Given
    from cosa.mappers.registry import MapperOptions


def schedule_whole_network(work: Work, given: Given, options: MapperOptions, how: HowToSchedule) -> int:
    """Schedule it, print the table; 130 if it was interrupted (what is done is reported and written)."""
    from cosa.model.networks import load_network

    network, architecture = load_network(work.network or ""), work.architecture()
    with given.flags(), Progress("layers") as progress:
        result = schedule_network(
            network,
            architecture,
            options,
            workers=how.workers,
            folder=how.output,
            timing=how.timing,
            cache=chosen_cache(how.cache),
            progress=progress,
        )
    out_lines(lines(result, len(network.layers)))
    if how.output is not None:
        out_lines(["", f"written to {how.output}: {len(result.layers)} schedules and {SUMMARY}"])
    return 0 if result.complete else 130


def lines(result: NetworkSchedules, layers: int) -> list[str]:
    """A row a unique layer, then totals over all occurrences; cycles and energy by Timeloop's counts."""
    rows = []
    for entry in result.layers:
        objective = "" if entry.objective_value is None else f"{entry.objective_value:,.6g}"
        gap = "" if entry.gap is None else f"{entry.gap:.2%}"
        cycles = [f"{entry.compute_cycles:,}", f"{entry.cycles:,}", f"{entry.utilisation:.1%}"]
        rows.append(
            [printable(entry.layer, 16), str(entry.count), *cycles, f"{entry.energy_pj / 1e6:,.1f}", objective, gap]
        )
    if result.layers:
        count = str(sum(entry.count for entry in result.layers))
        sums = [f"{round(result.total(field)):,}" for field in ("compute_cycles", "cycles")]
        rows.append(["whole network", count, *sums, "", f"{result.total('energy_pj') / 1e6:,.1f}", "", ""])
    heads = ["layer", "x", "compute", "cycles", "MACs", "uJ", "objective", "gap"]
    objective = f", objective {result.objective}" if result.objective else ""
    found = [f"{result.network} on {printable(result.architecture, 34)}, mapper {result.mapper}{objective}", ""]
    found += table(heads, rows)
    if padding := result.total("padding_macs"):
        found += ["", f"MACs {result.total('macs'):,.0f}, and {padding:,.0f} of padding"]
    if not result.complete:
        found += ["", f"interrupted: {len(result.layers)} of {layers} unique layers"]
    return found
