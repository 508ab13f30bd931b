"""`nocsim schedule`: schedules chosen by the simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cosa.common.errors import InputError, nearest_of
from cosa.common.terminal import check_output, out, out_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from nocsim.experiments.portfolio_search import Portfolio, PortfolioResult

_ROWS = 12
MODELS = ("network", "published-machine")
MEMORIES = ("none", "dramsim2")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("schedule")(schedule_command)


def schedule_command(
    network: Annotated[str | None, typer.Option(metavar="NAME", help="Layer table.")] = None,
    layer: Annotated[str | None, typer.Option(metavar="NAME", help="Layer of that table.")] = None,
    layer_file: Annotated[str | None, typer.Option(metavar="FILE", help="YAML or JSON file of a layer.")] = None,
    arch: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="Packaged architecture, or a file (simba_4x4; published: cosa2021)."),
    ] = None,
    mesh: Annotated[
        str | None, typer.Option(metavar="COLUMNSxROWS", help="Mesh of PEs instead of the architecture's.")
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            metavar="network|published-machine",
            help="Whose machine: ours, or the published simulator's, which replays.",
        ),
    ] = "network",
    memory: Annotated[
        str | None, typer.Option(metavar="none|dramsim2", help="Model published-machine: DRAM behind its port.")
    ] = None,
    physical_only: Annotated[
        bool,
        typer.Option(
            "--physical-only/--any-loops",
            help="Model published-machine: leave out what gains from its generator's gaps.",
        ),
    ] = True,
    portfolio: Annotated[
        bool, typer.Option("--portfolio", help="Solve all variants of the objective, not the network model alone.")
    ] = False,
    variants: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Variants to solve, separated by commas.")
    ] = None,
    constants: Annotated[str | None, typer.Option(metavar="FILE", help="Weights of the model's prediction.")] = None,
    keep: Annotated[int, typer.Option(metavar="N", help="Schedules to place in every way and simulate.")] = 3,
    gap: Annotated[float, typer.Option(metavar="RATIO", help="Gap at which a solve ends.")] = 0.05,
    time_limit: Annotated[float, typer.Option(metavar="SECONDS", help="Time of each solve.")] = 60.0,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the solver.")] = 0,
    workers: Annotated[int, typer.Option(metavar="N", help="Processes at a time.")] = 1,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the table of candidates as JSON (- prints it).")
    ] = None,
    output: Annotated[str | None, typer.Option("-o", "--output", metavar="FILE", help="Schedule file.")] = None,
) -> None:
    """Schedule a layer, place the best answers on the mesh in every way, simulate them, keep the fastest."""
    from cosa.api import find_architecture
    from cosa.commands.layer import chosen_layer
    from nocsim.experiments.portfolio_run import VARIANTS
    from nocsim.experiments.portfolio_run import portfolio as run_portfolio

    published = model == "published-machine"
    if model not in MODELS:
        nearest = nearest_of(model, MODELS)
        raise InputError("no such model", source="--model", value=model, allowed=", ".join(MODELS), nearest=nearest)
    if memory is not None and memory not in MEMORIES:
        nearest = nearest_of(memory, MEMORIES)
        raise InputError(
            "no such memory", source="--memory", value=memory, allowed=", ".join(MEMORIES), nearest=nearest
        )
    for option, given in (("--memory", memory is not None), ("--any-loops", not physical_only)):
        if given and not published:
            raise InputError("does not go with the model network", source=option, allowed="--model published-machine")
    for option, value, fine, allowed in (
        ("--gap", gap, 0 < gap <= 10, "a ratio > 0 and <= 10"),
        ("--time-limit", time_limit, 0 < time_limit <= 1e7, "seconds > 0 and <= 10000000"),
        ("--seed", seed, 0 <= seed < 2**31, f"a whole number from 0 to {2**31 - 1}"),
        ("--keep", keep, 1 <= keep <= 100, "a whole number from 1 to 100"),
        ("--workers", workers, 1 <= workers <= 1024, "a whole number from 1 to 1024"),
    ):
        if not fine:
            raise InputError("out of range", source=option, value=value, allowed=allowed)
    inputs = {"--layer-file": layer_file, "--arch": arch, "--constants": constants}
    for option, path in (("-o", output), ("--json", json_file)):
        if path is not None and not (option == "--json" and path == "-"):
            check_output(option, path, inputs)
    found_layer = chosen_layer(network, layer, layer_file)
    architecture = find_architecture(arch or ("cosa2021" if published else "simba_4x4"))
    if mesh is not None:
        architecture = architecture.with_mesh(mesh)
    options: dict[str, Any] = {
        "constants": constants,
        "keep": keep,
        "gap": gap,
        "time_limit_seconds": time_limit,
        "seed": seed,
        "workers": workers,
    }
    if published:
        from nocsim.published import portfolio as published_run

        if memory == "none":
            architecture = architecture.model_copy(update={"dram": None})
        elif memory == "dramsim2":
            architecture.require_dram()
        run: Callable[..., Portfolio] = published_run.published_portfolio
        known = published_run.VARIANTS
        options["physical_only"] = physical_only
    else:
        run, known = run_portfolio, VARIANTS
    names: tuple[str, ...] = known if portfolio else known[:1]
    if variants is not None:
        names = tuple(name.strip() for name in variants.split(","))
    found = run(found_layer, architecture, variants=names, **options)
    if output is not None:
        found.schedule.save(output)
    if json_file == "-":
        out(found.result.to_json())
        return
    if json_file is not None:
        found.result.to_file(json_file)
    out_lines(lines(found.result))
    for path in (output, json_file):
        if path is not None:
            out(f"written to {path}\n")


def lines(result: PortfolioResult) -> list[str]:
    """The table of candidates, the best first, and how many of each kind there were."""
    found = [
        f"{result.layer} on {result.architecture}: {result.simulated_cycles:,} cycles",
        "",
        f"{'simulated':>12}{'predicted':>12}{'bound':>12}  placement, variants",
    ]
    for one in result.candidates[:_ROWS]:
        cycles = f"{one.simulated_cycles:,}" if one.simulated_cycles is not None else one.outcome
        found.append(
            f"{cycles:>12}{one.predicted_cycles:>12,.0f}{one.bound_cycles:>12,}  {one.placement}; "
            f"{', '.join(one.variants)}"
        )
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
