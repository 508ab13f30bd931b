"""`nocsim schedule`: schedules chosen by the simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import typer

from cosa.commands.work import Work
from cosa.common.errors import InputError
from cosa.common.options import Options, option
from cosa.common.parameters import Given, takes
from cosa.common.tables import table
from cosa.common.terminal import check_output, check_outputs, out, out_lines
from nocsim.experiments.portfolio_run import PortfolioOptions
from nocsim.published.portfolio import PublishedPortfolioOptions

if TYPE_CHECKING:
    from nocsim.experiments.portfolio_search import Portfolio, PortfolioResult

_ROWS = 12

OWNED: dict[str, type[PortfolioOptions | PublishedPortfolioOptions]] = {
    "network": PortfolioOptions,
    "published-machine": PublishedPortfolioOptions,
}


class HowToChoose(Options):
    """What `nocsim schedule` does besides what portfolios are told."""

    model: Literal["network", "published-machine"] = option(
        "network", "Whose machine: ours, or the published simulator's, which replays."
    )
    memory: Literal["none", "dramsim2"] | None = option(None, "Model published-machine: DRAM behind its port.")
    portfolio: bool = option(False, "Solve all variants of the objective, not the network model alone.")
    workers: int = option(1, "Processes at a time.", ge=1, le=1024)
    json_file: str | None = option(
        None, "Write the table of candidates as JSON (- prints it).", flag="--json", metavar="FILE"
    )
    output: str | None = option(None, "Schedule file.", flag="-o,--output", metavar="FILE")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("schedule")(schedule_command)


@takes(Work, HowToChoose, owned=OWNED)
def schedule_command(given: Given) -> None:
    """Schedule a layer, place the best answers on the mesh in every way, simulate them, keep the fastest."""
    work, how = given.of(Work), given.of(HowToChoose)
    published = how.model == "published-machine"
    for name in ("memory", "physical_only"):
        if name in given.values and not published:
            flag = "--any-loops" if given.values[name] is False else "--" + name.replace("_", "-")
            raise InputError("does not go with the model network", source=flag, allowed="--model published-machine")
    with given.flags():
        options = OWNED[how.model].of(given.owned)
    inputs = work.inputs() | given.files
    if how.output is not None:
        check_output("-o", how.output, inputs)
    check_outputs({"-o": how.output, "--json": how.json_file}, inputs)
    with given.flags():
        found = _chosen(work, how, options)
    if how.output is not None:
        found.schedule.save(how.output)
    if how.json_file == "-":
        out(found.result.to_json())
        return
    if how.json_file is not None:
        found.result.to_file(how.json_file)
    out_lines(lines(found.result))
    for path in (how.output, how.json_file):
        if path is not None:
            out(f"written to {path}\n")


def _chosen(work: Work, how: HowToChoose, options: PortfolioOptions | PublishedPortfolioOptions) -> Portfolio:
    from nocsim.experiments.portfolio_run import VARIANTS, portfolio
    from nocsim.published import portfolio as published

    layer = work.one_layer()
    known = published.VARIANTS if isinstance(options, PublishedPortfolioOptions) else VARIANTS
    if options.variants is None and not how.portfolio:
        options = options.with_(variants=known[:1])
    if isinstance(options, PortfolioOptions):
        return portfolio(layer, work.architecture(), options, workers=how.workers)
    architecture = work.architecture("cosa2021")
    if how.memory == "none":
        architecture = architecture.with_(dram=None)
    elif how.memory == "dramsim2":
        architecture.require_dram()
    return published.published_portfolio(layer, architecture, options, workers=how.workers)


def lines(result: PortfolioResult) -> list[str]:
    """The table of candidates, the best first, and how many of each kind there were."""
    found = [
        f"{result.layer} on {result.architecture}: {result.simulated_cycles:,} cycles",
        "",
    ]
    rows = [
        [
            f"{one.simulated_cycles:,}" if one.simulated_cycles is not None else one.outcome,
            f"{one.predicted_cycles:,.0f}",
            f"{one.bound_cycles:,}",
            f" {one.placement}; {', '.join(one.variants)}",
        ]
        for one in result.candidates[:_ROWS]
    ]
    header = ["simulated", "predicted", "bound", " placement, variants"]
    found += table(header, rows, left=(3,), widths=(12, 11, 11, 0))
    if len(result.candidates) > _ROWS:
        found.append(f"{'...':>12}  {len(result.candidates) - _ROWS} more")
    found += [
        "",
        f"{result.solved} variants solved, {result.distinct} distinct schedules, {result.placed} placements: "
        f"{result.simulated} simulated to the end, {result.stopped} stopped, {result.skipped} skipped",
    ]
    found += [f"{name}: {why}" for name, why in result.unsolved.items()]
    if result.machine_bound_cycles is not None:
        ratio = result.simulated_cycles / result.machine_bound_cycles
        found.append(f"no schedule runs below {result.machine_bound_cycles:,.0f} cycles: {ratio:.2f} times that")
    return found
