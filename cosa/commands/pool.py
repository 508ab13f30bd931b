"""`cosa schedule --pool` and `--objective pareto`: several schedules of a layer on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosa.api import FRONT_POINTS, MACHINE_OBJECTIVES, PARETO, program_options, schedule_front, schedule_pool
from cosa.commands.listing import table
from cosa.commands.show import layer_line, printable
from cosa.common.errors import InputError
from cosa.common.files import prepared_folder
from cosa.common.terminal import check_output, out_lines
from cosa.mappers.machine import MAX_POOL

if TYPE_CHECKING:
    from cosa.model.arch import Architecture
    from cosa.model.layer import Layer
    from cosa.model.schedule import Schedule

_SUFFIXES = (".json", ".yaml", ".yml")


def check(objective: str, whole_network: bool, pool: int | None, points: int | None) -> None:
    """The options say what several schedules are asked for.

    Raises
    ------
    InputError: they contradict each other, or a number is out of range.
    """
    option, value, least = ("--points", points, 2) if pool is None else ("--pool", pool, 1)
    objectives = MACHINE_OBJECTIVES if pool is not None else (PARETO,)
    if objective not in objectives:
        allowed = f"--objective {' or '.join(objectives)}"
        raise InputError(f"does not go with the objective {objective}", source=option, value=value, allowed=allowed)
    if whole_network:
        option, given = (option, str(value)) if value is not None else ("--objective", objective)
        raise InputError("of one layer", source=option, value=given, allowed="with --layer NAME")
    if value is not None and not least <= value <= MAX_POOL:
        allowed = f"a whole number from {least} to {MAX_POOL}"
        raise InputError("out of range", source=option, value=value, allowed=allowed)


def schedule_several(
    layer: Layer,
    architecture: Architecture,
    program: dict[str, Any],
    pool: int | None,
    points: int | None,
    network: str | None,
    output: str | None,
    timing: bool,
    inputs: dict[str, str | None],
) -> int:
    """Schedule, write the files, print the table; `inputs` are files that the command reads."""
    options = program_options(architecture, **program)
    count = pool or points or FRONT_POINTS
    if output is not None:
        if not output:
            raise InputError("empty", source="-o", value=output, allowed="the name of a file or folder")
        paths = _paths(output, count)
        if Path(output).suffix.lower() not in _SUFFIXES:
            prepared_folder(Path(output), [path.name for path in paths])
        for path in paths:
            check_output("-o", str(path), inputs)
    if pool is not None:
        found = schedule_pool(layer, architecture, count=count, **options)
    else:
        del options["objective"]
        found = schedule_front(layer, architecture, points=count, **options)
    report(found, network, output, timing)
    return 0


def _paths(output: str, count: int) -> list[Path]:
    """``FILE-1.yaml`` and so on for a file, ``schedule-1.json`` and so on in a folder."""
    place = Path(output)
    if place.suffix.lower() in _SUFFIXES:
        return [place.with_name(f"{place.stem}-{number}{place.suffix}") for number in range(1, count + 1)]
    return [place / f"schedule-{number}.json" for number in range(1, count + 1)]


def report(schedules: list[Schedule], network: str | None, output: str | None, timing: bool) -> None:
    """Write the files, print a row for each schedule and what they share."""
    files = [] if output is None else _paths(output, len(schedules))
    for schedule, path in zip(schedules, files, strict=False):
        schedule.save(path, timing=timing)
    out_lines(lines(schedules, network))
    if files:
        last = f" to {files[-1].name}" if len(files) > 1 else ""
        out_lines(["", f"written to {files[0]}{last}"])


def lines(schedules: list[Schedule], network: str | None) -> list[str]:
    """A row a schedule: its figures in the model it was made for, and the proven bound."""
    first = schedules[0]
    layer, made = first.layer, first.provenance
    name = printable(f"{network} {layer.name}" if network else layer.name, 60)
    rows = []
    for number, schedule in enumerate(schedules, start=1):
        its = schedule.provenance
        cycles, energy_pj = its.model_cycles or 0.0, its.model_energy_pj or 0.0
        value, bound = ("" if one is None else f"{one:,.6g}" for one in (its.objective_value, its.bound))
        gap = "" if its.gap is None else f"{its.gap:.2%}"
        rows.append(
            [str(number), f"{cycles:,.0f}", f"{energy_pj / 1e6:,.3f}", f"{cycles * energy_pj:.4g}", value, bound, gap]
        )
    unit = {"latency": "cycles", "edp": "pJ x cycles"}.get(made.objective or "", "pJ")
    heads = ["", "cycles", "uJ", "pJ x cycles", f"value ({unit})", "bound", "gap"]
    return [
        f"layer         {name}: {layer_line(layer)}",
        f"architecture  {printable(first.architecture.name, 34)}",
        f"made by       {made.mapper} {made.version}, objective {made.objective}, model {made.model}",
        "",
        *table(heads, rows),
    ]
