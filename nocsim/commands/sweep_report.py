"""`nocsim sweep-report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cosa.common.errors import InputError
from cosa.common.terminal import check_output, out, out_lines

if TYPE_CHECKING:
    from nocsim.experiments.sweep.result import SweepResult

_MOST_SWEEPS = 10


def sweep_report_command(
    results: Annotated[str, typer.Argument(metavar="FILE", help="File of results, as nocsim sweep writes it.")],
    sweep: Annotated[
        str | None, typer.Option(metavar="NUMBER|NAME", help="Which sweep of the file (default: run last).")
    ] = None,
    figures: Annotated[
        str, typer.Option(metavar="X,Y", help="The two figures to trade off: names, or latency, energy, edp, buffer.")
    ] = "latency,energy",
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Draw the trade-off with its Pareto front (png, svg, pdf).")
    ] = None,
    csv_file: Annotated[
        str | None, typer.Option("--csv", metavar="FILE", help="Write every point as CSV; - prints it alone.")
    ] = None,
    parquet: Annotated[str | None, typer.Option(metavar="FILE", help="Write every point as Parquet.")] = None,
    schedule: Annotated[
        int | None, typer.Option(metavar="POINT", help="Write the schedule of a point (column number) to -o, alone.")
    ] = None,
    output: Annotated[str | None, typer.Option("-o", "--output", metavar="FILE", help="Where --schedule goes.")] = None,
    points: Annotated[bool, typer.Option("--points", help="A row for each layer instead of totals.")] = False,
    rows: Annotated[int, typer.Option(metavar="N", help="Most rows of the table; 0: all.")] = 20,
    timing: Annotated[
        bool, typer.Option("--timing/--no-timing", help="Export wall-clock seconds, or leave them out.")
    ] = True,
) -> int:
    """Tables, Pareto front and sensitivity of a sweep; exports, and the schedules found."""
    from nocsim.experiments.sweep.report import report
    from nocsim.experiments.sweep.result import figure_name, read_results

    names = [figure_name(name.strip(), "--figures") for name in figures.split(",")]
    if len(names) != 2 or names[0] == names[1]:
        raise InputError("not two figures", source="--figures", value=figures, allowed="X,Y such as latency,energy")
    if rows < 0:
        raise InputError("out of range", source="--rows", value=rows, allowed="a whole number >= 0")
    given = {"--plot": plot, "--csv": csv_file, "--parquet": parquet, "--output": output}
    outputs = {option: file for option, file in given.items() if file is not None}
    _check_outputs(outputs, results)
    if (schedule is None) != (output is None) or (schedule is not None and len(outputs) > 1):
        allowed = "--schedule POINT -o FILE, without other outputs"
        raise InputError("schedule and file go together", source="--schedule, -o", allowed=allowed)
    result = read_results(results, sweep)
    if schedule is not None and output is not None:
        result.schedule(schedule).save(output, timing=timing)
        out(f"written to {output}\n")
        return 0
    x, y = names
    if plot is not None:
        from nocsim.experiments.sweep.plot import save_trade_off

        save_trade_off(result, x, y, plot)
    if parquet is not None:
        result.to_parquet(parquet, timing=timing)
    if csv_file == "-":
        out(result.csv_text(timing=timing))
        return 0
    if csv_file is not None:
        result.to_csv(csv_file, timing=timing)
    out_lines([*_other_sweeps(results, result), *report(result, x, y, points=points, most=rows)])
    if outputs:
        out(f"\nwritten to {', '.join(outputs.values())}\n")
    return 0


def _check_outputs(outputs: dict[str, str], results: str) -> None:
    """Files that can be written, each for one output."""
    taken: dict[Path, str] = {}
    for option, file in outputs.items():
        if file == "-":
            if option == "--csv":
                continue
            raise InputError(
                "only CSV goes to standard output", source=option, value=file, allowed="the name of a file"
            )
        check_output(option, file, {"FILE": results})
        other = taken.setdefault(Path(file).resolve(), option)
        if other != option:
            raise InputError(f"{other} writes this file", source=option, value=file, allowed="another file")


def _other_sweeps(results: str, shown: SweepResult) -> list[str]:
    """Which sweeps the file holds, if it is more than one."""
    from nocsim.experiments.sweep.result import sweeps_in

    found = sweeps_in(results)
    if len(found) < 2:
        return []
    lines = [f"{len(found)} sweeps in {results}, the last ones run (--sweep NUMBER shows another):"]
    for entry in found[-_MOST_SWEEPS:]:
        mark = " (shown)" if entry["sweep"] == shown.number else ""
        when = entry["last_run"][:16].replace("T", " ")
        lines.append(
            f"  {entry['sweep']} {entry['name']}: {entry['done']} of {entry['points']} points done, {when} UTC{mark}"
        )
    return [*lines, ""]
