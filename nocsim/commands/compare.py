"""`nocsim compare`: mappers side by side on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cosa.commands.work import Work
from cosa.common.errors import InputError
from cosa.common.files import write_atomic
from cosa.common.options import Options, option
from cosa.common.parameters import Given, takes
from cosa.common.progress import Progress
from cosa.common.terminal import check_output, out, out_lines
from cosa.mappers.registry import every_mapper, find_mapper
from cosa.model.objectives import OBJECTIVES
from cosa.model.schedule import Made, made_together

if TYPE_CHECKING:
    from nocsim.experiments.compare import ComparedMapping, Comparison


def register(app: typer.Typer) -> None:
    """Add the command to an application."""
    app.command("compare")(compare_command)


class HowToCompare(Options):
    """What `nocsim compare` does besides what the mappers are told."""

    mappers: str = option("program,random,hybrid", "Mappers; ratios are to the first.", metavar="NAME,NAME...")
    objective: str = option("latency", "What mappers that know it minimise.", metavar="latency|energy|edp|simulated")
    simulate: bool = option(False, "Simulate the schedules found.")
    candidates: int | None = option(None, "Objective simulated: mappings of each search to choose among (16).", ge=1)
    max_cycles: int | None = option(None, "Give a simulation up at this cycle.", gt=0)
    simulation_seconds: float | None = option(
        None, "Give a simulation up then.", flag="--simulation-time-limit", unit="seconds", gt=0
    )
    workers: int = option(1, "Processor cores.", ge=1, le=1024)
    timing: bool = option(True, "Report seconds to solution, or leave them out.", off="--no-timing")
    json_file: str | None = option(None, "Write the result as JSON (- prints it).", flag="--json", metavar="FILE")
    csv_file: str | None = option(None, "Write the mappings as CSV (- prints them).", flag="--csv", metavar="FILE")


@takes(Work, HowToCompare, owned={one.name: one.options for one in every_mapper()})
def compare_command(given: Given) -> int:
    """Map layers with several mappers; print cycles, energy, simulated cycles, samples and time to solution."""
    from nocsim.experiments.compare import CANDIDATES, compare
    from nocsim.experiments.simulated_search import Limit

    work, how = given.of(Work), given.of(HowToCompare)
    options = given.without(Work, HowToCompare)
    names = [name.strip() for name in how.mappers.split(",")]
    with given.flags(mapper="--mappers"):
        _check_effect(how, names, options)
    layers, architecture = work.layers(), work.architecture()
    for option_name, file in (("--json", how.json_file), ("--csv", how.csv_file)):
        if file is not None and file != "-":
            check_output(option_name, file, work.inputs())
    both = [Path(file).resolve() for file in (how.json_file, how.csv_file) if file is not None]
    if len(both) > len(set(both)):
        raise InputError("also what --json writes to", source="--csv", value=how.csv_file, allowed="another file")
    with given.flags(mapper="--mappers"), Progress() as line:
        result = compare(
            layers,
            architecture,
            names,
            network=work.network,
            objective=how.objective,
            options=options,
            workers=how.workers,
            simulate=how.simulate,
            pool_size=how.candidates or CANDIDATES,
            limit=Limit(how.max_cycles, how.simulation_seconds),
            timing=how.timing,
            progress=lambda layer, mapper: line.show(f"{layer}: {mapper}"),
        )
    if how.csv_file is not None and how.csv_file != "-":
        write_atomic(how.csv_file, result.csv())
    if how.json_file is not None and how.json_file != "-":
        result.to_file(how.json_file)
    if "-" in (how.json_file, how.csv_file):
        out(result.to_json() if how.json_file == "-" else result.csv())
    else:
        out_lines(text(result))
    if not result.complete:
        return 130
    return 1 if any(mapping.error for mapping in result.mappings) else 0


def _check_effect(how: HowToCompare, mappers: list[str], options: dict[str, Any]) -> None:
    """InputError for an option on the command line that would change nothing."""
    models = [find_mapper(name.partition(":")[0]).options for name in mappers]
    for name, value in options.items():
        if not any(name in model.model_fields for model in models):
            owners = ", ".join(one.name for one in every_mapper() if name in one.options.model_fields)
            raise InputError("has no effect here", path=name, value=value, allowed=f"with one of the mappers {owners}")
    simulations = how.simulate or how.objective == "simulated"
    for name, useful, allowed in (
        ("candidates", how.objective == "simulated", "with --objective simulated"),
        ("max_cycles", simulations, "with --simulate or --objective simulated"),
        ("simulation_seconds", simulations, "with --simulate or --objective simulated"),
    ):
        value = getattr(how, name)
        if value is not None and not useful:
            raise InputError("has no effect here", path=name, value=value, allowed=allowed)


def text(result: Comparison) -> list[str]:
    """A table for each layer, then the means."""
    from cosa.common.tables import table

    simulated = any(row.simulated_cycles is not None for row in result.mappings)
    timed = any(row.seconds is not None for row in result.mappings)
    proven = any(row.gap is not None for row in result.mappings)
    header = ["mapper", "cycles", "uJ", "EDP", *(["simulated"] if simulated else []), "ratio"]
    header += [*(["gap"] if proven else []), "drawn", "valid", *(["s"] if timed else [])]
    what = OBJECTIVES[result.objective].text if result.objective in OBJECTIVES else "simulated cycles"
    lines = [f"{result.architecture}, mappers minimise {what}; EDP in uJ x million cycles"]
    for mapper in result.mappers:
        made = (
            Made(**row.model_dump(include=set(Made.model_fields))) for row in result.mappings if row.mapper == mapper
        )
        lines.append(made_together(made))
    for name in dict.fromkeys(row.layer for row in result.mappings):
        rows = [row for row in result.mappings if row.layer == name]
        cells = []
        for row in rows:
            if row.cycles is None or row.energy_pj is None or row.energy_delay_pj_cycles is None:
                cells.append([row.mapper, *["-"] * (len(header) - 1)])
                continue
            cell = [
                row.mapper,
                f"{row.cycles:,}",
                *map(_figure, (row.energy_pj / 1e6, row.energy_delay_pj_cycles / 1e12)),
            ]
            if simulated:
                about = "~" if row.extrapolated_share else ""
                cell.append("-" if row.simulated_cycles is None else f"{about}{row.simulated_cycles:,}")
            cell.append(_ratio(row.simulated_ratio if simulated else row.ratio))
            if proven:
                cell.append("-" if row.gap is None else f"{row.gap:.1%}")
            cell += ["-" if count is None else f"{count:,}" for count in (row.samples_drawn, row.samples_valid)]
            cells.append(cell + ([f"{row.seconds:.2f}"] if timed and row.seconds is not None else []))
        lines += ["", f"{name} (x {rows[0].count})", *table(header, cells)]
        lines += [note for row in rows for note in _notes(row, result.max_cycles)]
    if len({row.layer for row in result.mappings}) > 1:
        lines += [
            "",
            f"geometric means of the ratios to {result.mappers[0]}, each layer once, where both have the figure",
        ]
        header = ["mapper", "analytical", "layers", *(["simulated", "layers"] if simulated else [])]
        cells = []
        for mean in result.means:
            cell = [mean.mapper, _ratio(mean.ratio), str(mean.layers)]
            cells.append(cell + ([_ratio(mean.simulated_ratio), str(mean.simulated_layers)] if simulated else []))
        lines += table(header, cells)
    if not result.complete:
        lines += ["", "interrupted: the rest is missing"]
    return lines


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _figure(value: float) -> str:
    """With one digit behind the point; small ones with three that count."""
    return f"{value:,.1f}" if value >= 10 else f"{value:.3g}"


def _notes(row: ComparedMapping, max_cycles: int | None) -> Iterator[str]:
    """What the figures of a mapping do not say."""
    if row.error:
        yield f"{row.mapper}: {row.error}"
    if row.stopped_by in ("time", "interrupted"):
        yield f"{row.mapper}: stopped by {row.stopped_by}"
    if row.extrapolated_share:
        yield f"{row.mapper}: simulation extrapolated, {row.extrapolated_share:.1%} of the cycles"
    if row.bound_cycles is not None and row.simulated_cycles is None:
        above = max_cycles is not None and row.bound_cycles > max_cycles
        how = "not simulated: its bound is above --max-cycles" if above else "simulation given up"
        yield f"{row.mapper}: {how} (at least {row.bound_cycles:,} cycles)"
