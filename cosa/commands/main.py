"""The command line ``cosa``: schedules, and what there is to schedule.

Exit codes: 0 fine, 1 infeasible or without an answer in time, 2 bad input, 130 interrupted. Whatever a user gets wrong
ends in one line on standard error. Heavy imports stand inside the commands, so that the process starts quickly.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cosa.commands import files as cli_files
from cosa.commands.files import complete_architectures, complete_networks
from cosa.commands.layer import chosen_layer
from cosa.common.errors import InfeasibleError, InputError, nearest_of
from cosa.common.terminal import application, check_output, out, out_json, out_lines, run

if TYPE_CHECKING:
    from cosa.model.schedule import Schedule

app = application("cosa", "Schedules layers of neural networks on spatial accelerators by mixed-integer programming.")

CONVENTIONS = ("timeloop", "exact")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    return run(app, "cosa", argv)


def _complete_objectives() -> list[str]:
    from cosa.mip.objective import OBJECTIVES

    return list(OBJECTIVES)


def _complete_all_objectives() -> list[str]:
    return [*_complete_objectives(), "latency", "energy", "edp", "pareto"]


def _complete_constraints() -> list[str]:
    from cosa.model.constraints import constraint_names

    return constraint_names()


AsPublished = Annotated[
    bool, typer.Option("--as-published", help="Charge halo and stride as CoSA's published code does.")
]
PhysicalOnly = Annotated[
    bool,
    typer.Option(
        "--physical-only/--any-loops", help="Model published-machine: leave out what gains from its generator's gaps."
    ),
]
Precision = Annotated[
    bool, typer.Option("--precision", help="Count capacities and traffic in bytes instead of entries.")
]
WeightsFile = Annotated[str | None, typer.Option(metavar="FILE", help="Weights of the objective's terms.")]
OrderLevel = Annotated[str | None, typer.Option(metavar="NAME", help="Level whose loop order is part of the program.")]


def _complete_mappers() -> list[str]:
    from cosa.mappers.registry import MAPPERS

    return list(MAPPERS)


@app.command("schedule")
def schedule_command(
    context: typer.Context,
    network: Annotated[
        str | None, typer.Option(metavar="NAME", help="Layer table.", autocompletion=complete_networks)
    ] = None,
    layer: Annotated[str | None, typer.Option(metavar="NAME", help="Layer of that table.")] = None,
    layer_file: Annotated[str | None, typer.Option(metavar="FILE", help="YAML or JSON file of a layer.")] = None,
    arch: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE", help="Packaged architecture, or a file.", autocompletion=complete_architectures
        ),
    ] = "simba_4x4",
    mesh: Annotated[
        str | None, typer.Option(metavar="COLUMNSxROWS", help="Mesh of PEs instead of the architecture's.")
    ] = None,
    mapper: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What makes the schedule.", autocompletion=_complete_mappers),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What is minimised.", autocompletion=_complete_all_objectives),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="network|analytical|published-machine",
            help="Of latency, energy, edp: the simulated machine, Timeloop's, or the published simulator's.",
        ),
    ] = None,
    constants: Annotated[str | None, typer.Option(metavar="FILE", help="Weights of the model's prediction.")] = None,
    physical_only: PhysicalOnly = True,
    pad_percent: Annotated[
        float, typer.Option(metavar="PERCENT", help="Pad dimensions by up to so much where that pays.")
    ] = 0.0,
    bypass: Annotated[
        str, typer.Option(metavar="fixed|chosen", help="Levels keep what the architecture says, or what pays.")
    ] = "fixed",
    remainders: Annotated[
        bool, typer.Option("--remainders", help="Last tiles may be smaller; evaluated by the convention exact.")
    ] = False,
    settle_ties: Annotated[
        bool,
        typer.Option(
            "--settle-ties/--any-fastest", help="Latency: of the fastest the one with the least energy, or any."
        ),
    ] = True,
    constrain: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="What the schedule must keep to: packaged constraints, or a file.",
            autocompletion=_complete_constraints,
        ),
    ] = None,
    pool: Annotated[
        int | None, typer.Option(metavar="K", help="The K best schedules, each with other factors.")
    ] = None,
    points: Annotated[int | None, typer.Option(metavar="N", help="Objective pareto: how many schedules (5).")] = None,
    gap: Annotated[
        float | None, typer.Option(metavar="RATIO", help="Distance from the proven bound at which to stop (0.01).")
    ] = None,
    formulation: Annotated[
        str, typer.Option(metavar="aggregated|paper", help="Counts of equal primes, or a binary a prime factor.")
    ] = "aggregated",
    as_published: AsPublished = False,
    precision: Precision = False,
    weights: WeightsFile = None,
    order_level: OrderLevel = None,
    pad_primes_above: Annotated[
        int | None,
        typer.Option(metavar="PRIME", help="Pad bounds with a larger prime factor to the next one without."),
    ] = None,
    time_limit: Annotated[float, typer.Option(metavar="SECONDS", help="Stop the solver after this time.")] = 60.0,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the solver, or of the search.")] = 0,
    threads: Annotated[int, typer.Option(metavar="N", help="Threads of the solver.")] = 1,
    samples: Annotated[int | None, typer.Option(metavar="N", help="Mapper random: valid mappings to draw (5).")] = None,
    budget_evaluations: Annotated[
        int | None, typer.Option(metavar="N", help="Searches: stop after so many mappings evaluated.")
    ] = None,
    budget_seconds: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Searches: stop after this time.")
    ] = None,
    logical_threads: Annotated[
        int | None, typer.Option(metavar="N", help="Mapper hybrid: independent searches (32).")
    ] = None,
    victory_condition: Annotated[
        int | None, typer.Option(metavar="N", help="Mapper hybrid: valid mappings in a row without a better one (500).")
    ] = None,
    workers: Annotated[
        int, typer.Option(metavar="N", help="Layers of a network at a time; of one layer, cores of a search.")
    ] = 1,
    cache: Annotated[
        str | None, typer.Option(metavar="FOLDER|none", help="Where schedules of a network's layers are kept.")
    ] = None,
    timing: Annotated[
        bool, typer.Option("--timing/--no-timing", help="Write wall-clock seconds into the file, or leave them out.")
    ] = True,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="PATH", help="Schedule file, YAML or JSON; of a network a folder."),
    ] = None,
) -> int:
    """Schedule one layer, or all layers of a network, on one architecture."""
    from cosa.commands import search as cli_search
    from cosa.mappers.registry import PROGRAMS, program_objective

    named, mapper = mapper, "cosa" if mapper is None else mapper
    whole = network is not None and layer is None and layer_file is None
    cli_search.check_options(context, mapper, whole)
    if mapper in PROGRAMS:
        objective = program_objective(named, objective)
    _check_range("--time-limit", time_limit, 0 < time_limit <= 1e7, "seconds > 0 and <= 10000000")
    _check_range("--seed", seed, 0 <= seed < 2**31, f"a whole number from 0 to {2**31 - 1}")
    _check_range("--gap", gap or 0.01, 0 < (gap or 0.01) <= 10, "a ratio > 0 and <= 10")
    _check_range("--threads", threads, 1 <= threads <= 1024, "a whole number from 1 to 1024")
    from cosa.api import PARETO, find_architecture, program_options, schedule

    if not whole:
        found_layer = chosen_layer(network, layer, layer_file)
    architecture = find_architecture(arch)
    if mesh is not None:
        architecture = architecture.with_mesh(mesh)
    program: dict[str, Any] = {
        "objective": objective,
        "model": model,
        "constants": constants,
        "physical_only": physical_only,
        "pad_percent": pad_percent,
        "bypass": bypass,
        "remainders": remainders,
        "settle_ties": settle_ties,
        "constraints": constrain,
        "gap": gap,
        "formulation": formulation,
        "as_published": as_published,
        "precision": precision,
        "weights": weights,
        "order_level": order_level,
        "pad_primes_above": pad_primes_above,
        "time_limit_seconds": time_limit,
        "seed": seed,
    }
    if mapper in PROGRAMS and (pool is not None or points is not None or objective == PARETO):
        from cosa.commands import pool as cli_pool

        program["objective"] = objective or "latency"
        cli_pool.check(program["objective"], whole, pool, points)
        inputs = {"--layer-file": layer_file, "--arch": arch, "--constants": constants, "--constrain": constrain}
        return cli_pool.schedule_several(
            found_layer, architecture, program | {"threads": threads}, pool, points, network, output, timing, inputs
        )
    if whole:
        if remainders:
            raise InputError("does not go with whole networks", source="--remainders", value=True, allowed="--layer")
        from cosa.commands.whole_network import schedule_whole_network

        if mapper in PROGRAMS:
            options = program_options(architecture, **program) | {"workers": threads}
        else:
            budget = cli_search.budget(samples, budget_evaluations, budget_seconds)
            options = {"objective": objective, "budget": budget, "seed": seed}
            options |= cli_search.hybrid_options(logical_threads, victory_condition)
        return schedule_whole_network(
            network or "", architecture, mapper, options, workers=workers, output=output, timing=timing, cache=cache
        )
    if output is not None:
        inputs = {"--layer-file": layer_file, "--arch": arch, "--weights": weights, "--constrain": constrain}
        check_output("-o", output, inputs)
    if mapper not in PROGRAMS:
        budget = cli_search.budget(samples, budget_evaluations, budget_seconds)
        options = cli_search.hybrid_options(logical_threads, victory_condition)
        result = cli_search.search(mapper, found_layer, architecture, objective, budget, seed, workers, options)
        if output is not None:
            result.save(output, timing=timing)
        _print_summary(result if timing else result.model_copy(update={"timing": None}), network, output)
        return cli_search.exit_code(result)
    result = schedule(found_layer, architecture, threads=threads, **program)
    if output is not None:
        result.save(output, timing=timing)
    _print_summary(result if timing else result.model_copy(update={"timing": None}), network, output)
    return 0


def _check_range(option: str, value: float, fine: bool, allowed: str) -> None:
    if not fine:
        raise InputError("out of range", source=option, value=value, allowed=allowed)


def _print_summary(result: Schedule, network: str | None, output: str | None) -> None:
    from cosa.commands.show import summary

    lines = summary(result, network)
    if output is not None:
        lines += ["", f"written to {output}"]
    out_lines(lines)


@app.command("show")
def show_command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Schedule file.")],
    as_json: Annotated[bool, typer.Option("--json", help="The same as data.")] = False,
) -> None:
    """Print a schedule: the loop nest level by level, tile sizes, buffer fill, totals."""
    from cosa.commands.show import describe, text
    from cosa.model.schedule import Schedule

    view = describe(Schedule.from_file(file))
    out_json(view) if as_json else out(text(view))
    if view["violations"]:
        raise InfeasibleError(f"{file}: does not fit its architecture: {'; '.join(view['violations'])}")


@app.command("evaluate")
def evaluate_command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Schedule file.")],
    convention: Annotated[
        str,
        typer.Option(
            metavar="timeloop|exact",
            help="Count as Timeloop does, or the words that a machine moves.",
            autocompletion=lambda: list(CONVENTIONS),
        ),
    ] = "timeloop",
    as_json: Annotated[bool, typer.Option("--json", help="The same as data.")] = False,
) -> None:
    """Evaluate a schedule analytically: cycles and what binds them, energy, access counts, utilisation, roofline."""
    if convention not in CONVENTIONS:
        allowed, nearest = ", ".join(CONVENTIONS), nearest_of(convention, CONVENTIONS)
        raise InputError(
            "no such convention", source="--convention", value=convention, allowed=allowed, nearest=nearest
        )
    from cosa.api import evaluate
    from cosa.commands.show_evaluation import describe, lines
    from cosa.model.schedule import Schedule

    schedule = Schedule.from_file(file)
    view = describe(schedule, evaluate(schedule, convention="exact" if convention == "exact" else "timeloop"))
    out_json(view) if as_json else out_lines(lines(view))


@app.command("breakdown")
def breakdown_command(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Schedule files.")],
    objective: Annotated[
        str, typer.Option(metavar="NAME", help="Objective of the program.", autocompletion=_complete_objectives)
    ] = "cosa",
    as_published: AsPublished = False,
    precision: Precision = False,
    weights: WeightsFile = None,
    order_level: OrderLevel = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as data.")] = False,
) -> None:
    """Print what each term of an objective says of schedules, whoever made them."""
    from cosa.api import breakdown
    from cosa.commands.show_breakdown import describe, lines
    from cosa.model.schedule import Schedule

    schedules = [(file, Schedule.from_file(file)) for file in files]
    terms = [
        breakdown(
            schedule,
            objective,
            as_published=as_published,
            precision=precision,
            weights=weights,
            order_level=order_level,
        )
        for _, schedule in schedules
    ]
    view = describe(schedules, terms, objective)
    out_json(view) if as_json else out_lines(lines(view))


cli_files.register(app)  # at the end of the list of commands


if __name__ == "__main__":
    sys.exit(main())
