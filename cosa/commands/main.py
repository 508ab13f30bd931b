"""The command line ``cosa``: schedules, and what there is to schedule.

Exit codes: 0 fine, 1 infeasible or without an answer in time, 2 bad input, 130 interrupted. Whatever a user gets wrong
ends in one line on standard error. Heavy imports stand inside the commands, so that the process starts quickly.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from cosa.commands import files as cli_files
from cosa.commands.work import Work
from cosa.common.errors import InfeasibleError, InputError, nearest_of
from cosa.common.options import Options, option
from cosa.common.parameters import Given, takes
from cosa.common.terminal import application, check_output, out, out_json, out_lines, run
from cosa.mappers.published import PublishedTerms
from cosa.mappers.registry import Run, candidates, every_mapper, find_mapper, options_of

if TYPE_CHECKING:
    from cosa.analytical.evaluation import Convention
    from cosa.mappers.registry import MapperOptions
    from cosa.model.schedule import Schedule

app = application("cosa", "Schedules layers of neural networks on spatial accelerators by mixed-integer programming.")

CONVENTIONS: tuple[Convention, ...] = ("timeloop", "timeloop-2022", "exact")
PARETO = "pareto"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    return run(app, "cosa", argv)


class HowToSchedule(Options):
    """What `cosa schedule` does besides what the mapper is told."""

    mapper: str | None = option(
        None, "What makes the schedule (program).", metavar="NAME", complete="cosa.mappers.registry:mapper_names"
    )
    pool: int | None = option(None, "Of program: the K best schedules, each with other factors.", metavar="K")
    points: int | None = option(None, "Objective pareto, of program: how many schedules (5).")
    workers: int = option(1, "Layers of a network at a time; of one layer, cores of a search.", ge=1, le=1024)
    cache: str | None = option(None, "Where schedules of a network's layers are kept.", metavar="FOLDER|none")
    timing: bool = option(True, "Write wall-clock seconds into the file, or leave them out.", off="--no-timing")
    output: str | None = option(
        None, "Schedule file, YAML or JSON; of a network a folder.", flag="-o,--output", metavar="PATH"
    )


@app.command("schedule")
@takes(Work, HowToSchedule, owned={one.name: one.options for one in every_mapper()})
def schedule_command(given: Given) -> int:
    """Schedule one layer, or all layers of a network, on one architecture."""
    work, how = given.of(Work), given.of(HowToSchedule)
    asked = dict(given.owned)
    front = asked.get("objective") == PARETO
    several = front or how.pool is not None or how.points is not None
    with given.flags():
        if front:
            del asked["objective"]
        options = options_of(how.mapper, asked, flags=True)
        _check_effect(work, how, options, several)
    if several:
        from cosa.commands import pool

        return pool.schedule_several(work, given, options, front, how, work.inputs() | given.files)
    if work.whole_network:
        from cosa.commands.whole_network import schedule_whole_network

        return schedule_whole_network(work, given, options, how)
    layer, architecture = work.one_layer(), work.architecture()
    if how.output is not None:
        check_output("-o", how.output, work.inputs() | given.files)
    with given.flags():
        result = candidates(layer, architecture, options, Run(how.workers, keep_interrupted=True))[0]
    if how.output is not None:
        result.save(how.output, timing=how.timing)
    _print_summary(result if how.timing else result.model_copy(update={"timing": None}), work.network, how.output)
    return 130 if result.provenance.interrupted else 0


def _check_effect(work: Work, how: HowToSchedule, options: MapperOptions, several: bool) -> None:
    """InputError for an option that would change nothing, or that goes with nothing else given."""
    one_layer = not work.whole_network
    if how.cache is not None and one_layer:
        allowed = "with --network and without --layer"
        raise InputError("for whole networks", path="cache", value=how.cache, allowed=allowed)
    if how.workers > 1 and one_layer and not find_mapper(options.mapper).uses_workers:
        message = f"the mapper {options.mapper} solves one layer on one core, or on --threads"
        raise InputError(message, path="workers", value=how.workers, allowed="1, or with a whole network")
    if several and options.mapper != "program":
        path = "objective" if how.pool is None and how.points is None else "pool" if how.pool is not None else "points"
        value = getattr(how, path, PARETO)
        raise InputError(f"not of the mapper {options.mapper}", path=path, value=value, allowed="--mapper program")


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
            metavar="timeloop|timeloop-2022|exact",
            help="Count as Timeloop does (current release, or June 2022), or the words that a machine moves.",
            autocompletion=lambda: list(CONVENTIONS),
        ),
    ] = "timeloop",
    as_json: Annotated[bool, typer.Option("--json", help="The same as data.")] = False,
) -> None:
    """Evaluate a schedule analytically: cycles and what binds them, energy, access counts, utilisation, roofline."""
    known = next((one for one in CONVENTIONS if one == convention), None)
    if known is None:
        allowed, nearest = ", ".join(CONVENTIONS), nearest_of(convention, CONVENTIONS)
        raise InputError(
            "no such convention", source="--convention", value=convention, allowed=allowed, nearest=nearest
        )
    from cosa.api import evaluate
    from cosa.commands.show_evaluation import describe, lines
    from cosa.model.schedule import Schedule

    schedule = Schedule.from_file(file)
    view = describe(schedule, evaluate(schedule, convention=known))
    out_json(view) if as_json else out_lines(lines(view))


@app.command("breakdown")
@takes(PublishedTerms)
def breakdown_command(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Schedule files.")],
    given: Given,
    as_json: Annotated[bool, typer.Option("--json", help="The same as data.")] = False,
) -> None:
    """Print what each term of an objective says of schedules, whoever made them."""
    from cosa.api import breakdown
    from cosa.commands.show_breakdown import describe, lines
    from cosa.model.schedule import Schedule

    schedules = [(file, Schedule.from_file(file)) for file in files]
    with given.flags():
        terms = [breakdown(schedule, **given.values) for _, schedule in schedules]
    view = describe(schedules, terms, given.values.get("objective", "cosa"))
    out_json(view) if as_json else out_lines(lines(view))


cli_files.register(app)  # at the end of the list of commands


if __name__ == "__main__":
    sys.exit(main())
