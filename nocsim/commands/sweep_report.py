"""`nocsim sweep-report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cosa.common.errors import InputError
from cosa.common.options import Options, option
from cosa.common.parameters import Given, takes
from cosa.common.terminal import check_output, out, out_lines

if TYPE_CHECKING:
    from nocsim.experiments.sweep.result import SweepResult

_MOST_SWEEPS = 10


class HowToReport(Options):
    """What `nocsim sweep-report` shows and writes."""

    sweep: str | None = option(None, "Which sweep of the file (default: run last).", metavar="NUMBER|NAME")
    figures: str = option(
        "latency,energy", "The two figures to trade off: names, or latency, energy, edp, buffer.", metavar="X,Y"
    )
    plot: str | None = option(None, "Draw the trade-off with its Pareto front (png, svg, pdf).", metavar="FILE")
    csv_file: str | None = option(None, "Write every point as CSV; - prints it alone.", flag="--csv", metavar="FILE")
    parquet: str | None = option(None, "Write every point as Parquet.", metavar="FILE")
    schedule: int | None = option(None, "Write the schedule of a point (column number) to -o, alone.", metavar="POINT")
    output: str | None = option(None, "Where --schedule goes.", flag="-o,--output", metavar="FILE")
    points: bool = option(False, "A row for each layer instead of totals.")
    rows: int = option(20, "Most rows of the table; 0: all.", ge=0)
    timing: bool = option(True, "Export wall-clock seconds, or leave them out.", off="--no-timing")


@takes(HowToReport)
def sweep_report_command(
    results: Annotated[str, typer.Argument(metavar="FILE", help="File of results, as nocsim sweep writes it.")],
    given: Given,
) -> int:
    """Tables, Pareto front and sensitivity of a sweep; exports, and the schedules found."""
    from nocsim.experiments.sweep.report import report
    from nocsim.experiments.sweep.result import figure_name, read_results

    how = given.of(HowToReport)
    names = [figure_name(name.strip(), "--figures") for name in how.figures.split(",")]
    if len(names) != 2 or names[0] == names[1]:
        raise InputError("not two figures", source="--figures", value=how.figures, allowed="X,Y such as latency,energy")
    files = {"--plot": how.plot, "--csv": how.csv_file, "--parquet": how.parquet, "--output": how.output}
    outputs = {flag: file for flag, file in files.items() if file is not None}
    _check_outputs(outputs, results)
    if (how.schedule is None) != (how.output is None) or (how.schedule is not None and len(outputs) > 1):
        allowed = "--schedule POINT -o FILE, without other outputs"
        raise InputError("schedule and file go together", source="--schedule, -o", allowed=allowed)
    result = read_results(results, how.sweep)
    if how.schedule is not None and how.output is not None:
        result.schedule(how.schedule).save(how.output, timing=how.timing)
        out(f"written to {how.output}\n")
        return 0
    x, y = names
    if how.plot is not None:
        from nocsim.experiments.sweep.plot import save_trade_off

        save_trade_off(result, x, y, how.plot)
    if how.parquet is not None:
        result.to_parquet(how.parquet, timing=how.timing)
    if how.csv_file == "-":
        out(result.csv_text(timing=how.timing))
        return 0
    if how.csv_file is not None:
        result.to_csv(how.csv_file, timing=how.timing)
    out_lines([*_other_sweeps(results, result), *report(result, x, y, points=how.points, most=how.rows)])
    if outputs:
        out(f"\nwritten to {', '.join(outputs.values())}\n")
    return 0


def _check_outputs(outputs: dict[str, str], results: str) -> None:
    """Files that can be written, each for one output."""
    taken: dict[Path, str] = {}
    for flag, file in outputs.items():
        if file == "-":
            if flag == "--csv":
                continue
            raise InputError("only CSV goes to standard output", source=flag, value=file, allowed="the name of a file")
        check_output(flag, file, {"FILE": results})
        other = taken.setdefault(Path(file).resolve(), flag)
        if other != flag:
            raise InputError(f"{other} writes this file", source=flag, value=file, allowed="another file")


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
