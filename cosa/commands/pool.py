"""`cosa schedule --pool` and `--objective pareto`: several schedules of a layer on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cosa.api import FRONT_POINTS, schedule_front, schedule_pool
from cosa.common.errors import InputError
from cosa.common.files import prepared_folder
from cosa.common.tables import printable, table
from cosa.common.terminal import check_output, out_lines
from cosa.model.layer import layer_line
from cosa.model.objectives import OBJECTIVES

if TYPE_CHECKING:
    from cosa.commands.main import HowToSchedule
    from cosa.commands.work import Work
    from cosa.common.parameters import Given
    from cosa.mappers.registry import MapperOptions
    from cosa.model.schedule import Schedule

_SUFFIXES = (".json", ".yaml", ".yml")


def schedule_several(
    work: Work, given: Given, options: MapperOptions, front: bool, how: HowToSchedule, inputs: dict[str, str | None]
) -> int:
    """Schedule, write the files, print the table; `inputs` are files that the command reads."""
    if not front and how.points is not None:
        message = f"does not go with the objective {options.made_for}"
        raise InputError(message, source="--points", value=how.points, allowed="--objective pareto")
    if front and how.pool is not None:
        allowed = "--objective latency or energy or edp"
        raise InputError("does not go with the objective pareto", source="--pool", value=how.pool, allowed=allowed)
    if work.whole_network:
        option, value = ("--objective", "pareto") if front else ("--pool", how.pool)
        raise InputError("of one layer", source=option, value=value, allowed="with --layer NAME")
    layer, architecture = work.one_layer(), work.architecture()
    count = next(one for one in (how.pool, how.points, FRONT_POINTS) if one is not None)
    if how.output is not None:
        if not how.output:
            raise InputError("empty", source="-o", value=how.output, allowed="the name of a file or folder")
        paths = _paths(how.output, count)
        if Path(how.output).suffix.lower() not in _SUFFIXES:
            prepared_folder(Path(how.output), [path.name for path in paths])
        for path in paths:
            check_output("-o", str(path), inputs)
    with given.flags(count="--points" if front else "--pool"):
        if front:
            found = schedule_front(layer, architecture, options, points=count)
        else:
            found = schedule_pool(layer, architecture, options, count=count)
    report(found, work.network, how.output, how.timing)
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
    unit = OBJECTIVES[made.objective].unit if made.objective in OBJECTIVES else "pJ"
    heads = ["", "cycles", "uJ", "pJ x cycles", f"value ({unit})", "bound", "gap"]
    return [
        f"layer         {name}: {layer_line(layer)}",
        f"architecture  {printable(first.architecture.name, 34)}",
        f"made by       {made.mapper} {made.version}, objective {made.objective}, model {made.model}",
        "",
        *table(heads, rows),
    ]
