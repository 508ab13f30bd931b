"""`nocsim compare`: mappers side by side on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import typer

from cosa.commands.work import Work
from cosa.common.errors import InputError
from cosa.common.options import Options, option
from cosa.common.parameters import Given, takes
from cosa.common.progress import Progress
from cosa.common.terminal import check_outputs, out, out_lines
from cosa.experiments.figures import made_text
from cosa.mappers.registry import every_mapper
from nocsim.experiments.compare import CANDIDATES, DEFAULT, SIMULATED, Comparison, compare, read_entries

if TYPE_CHECKING:
    from cosa.experiments.figures import Row
    from nocsim.options import RunOptions


class HowToCompare(Options):
    """What `nocsim compare` does besides what mappers are told."""

    mappers: str = option(DEFAULT, "Mappers, NAME[:OBJECTIVE[:MODEL]]; ratios are to the first.", metavar="NAME,...")
    objective: Literal["latency", "energy", "edp", "simulated"] = option(
        "latency", "What mappers minimise that know it; simulated: the fastest by simulation of a search's best."
    )
    simulate: bool = option(False, "Simulate the schedules found.")
    candidates: int = option(CANDIDATES, "Objective simulated: mappings of each search to choose among.", ge=1)
    max_cycles: int | None = option(None, "Give a simulation up at this cycle.", ge=1)
    simulation_time_limit_seconds: float | None = option(
        None, "Give a simulation up after this time.", unit="seconds", gt=0
    )
    workers: int = option(1, "Mappings at a time, each on one processor core.", ge=1, le=1024)
    timing: bool = option(True, "Report seconds to solution, or leave them out.", off="--no-timing")
    json_file: str | None = option(None, "Write the result as JSON (- prints it).", flag="--json", metavar="FILE")
    csv_file: str | None = option(None, "Write the rows as CSV (- prints them).", flag="--csv", metavar="FILE")

    def simulation(self) -> RunOptions | None:
        """How schedules are simulated, if they are.

        Raises
        ------
        InputError: an option would change nothing.
        """
        from nocsim.options import RunOptions

        chosen = self.objective == SIMULATED
        if not chosen and self.candidates != CANDIDATES:
            allowed = "with --objective simulated"
            raise InputError("has no effect here", path="candidates", value=self.candidates, allowed=allowed)
        if chosen or self.simulate:
            return RunOptions(max_cycles=self.max_cycles, time_limit_seconds=self.simulation_time_limit_seconds)
        for name in ("max_cycles", "simulation_time_limit_seconds"):
            if getattr(self, name) is not None:
                allowed = "with --simulate or --objective simulated"
                raise InputError("has no effect here", path=name, value=getattr(self, name), allowed=allowed)
        return None


def register(app: typer.Typer) -> None:
    """Add the command to an application."""
    app.command("compare")(compare_command)


@takes(Work, HowToCompare, owned={one.name: one.options for one in every_mapper()})
def compare_command(given: Given) -> int:
    """Map layers with several mappers; print cycles, energy, simulated cycles, samples and time to solution.

    Options of mappers are for those of them that know them.
    """
    from cosa.common.files import write_atomic

    work, how = given.of(Work), given.of(HowToCompare)
    asked = dict(given.owned)
    asked["objective"] = "latency" if how.objective == SIMULATED else how.objective
    with given.flags():
        simulation = how.simulation()
        entries = read_entries([name.strip() for name in how.mappers.split(",")], asked)
    layers, architecture = work.layers(), work.architecture()
    check_outputs({"--json": how.json_file, "--csv": how.csv_file}, work.inputs() | given.files)
    with Progress("points") as progress:
        result = compare(
            layers,
            architecture,
            entries,
            network=work.network,
            objective=how.objective,
            simulation=simulation,
            candidates=how.candidates,
            workers=how.workers,
            timing=how.timing,
            progress=progress,
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
    return 1 if any(row["error"] for row in result.rows) else 0


def text(result: Comparison) -> list[str]:
    """Who made what, a table for each layer, then the means."""
    from cosa.common.tables import table

    every: list[Row] = [dict(row) for row in result.rows]
    columns = _columns(every)
    lines = [f"{result.architecture}; EDP in uJ x million cycles, both by Timeloop's counts"]
    for entry in result.entries:
        made = made_text([row for row in every if row["entry"] == entry])
        lines.append(f"{entry}: {made}" if ":" in entry else made or entry)
    for name in dict.fromkeys(row["layer"] for row in every):
        rows = [row for row in every if row["layer"] == name]
        cells = [
            [row["entry"], *("-" if row["error"] or cell(row) is None else cell(row) for _, cell in columns)]
            for row in rows
        ]
        head = ["mapper", *(head for head, _ in columns)]
        lines += ["", f"{name} (x {rows[0]['count']})", *table(head, cells)]
        lines += [note for row in rows for note in _notes(row, result.max_cycles)]
    if len({row["layer"] for row in every}) > 1:
        lines += [
            "",
            f"geometric means of the ratios to {result.entries[0]}, each layer once, where both have the figure",
        ]
        simulated = any(row["simulated_cycles"] is not None for row in every)
        header = ["mapper", "analytical", "layers", *(["simulated", "layers"] if simulated else [])]
        cells = []
        for mean in result.means:
            cell = [mean.entry, _ratio(mean.ratio), str(mean.layers)]
            cells.append(cell + ([_ratio(mean.simulated_ratio), str(mean.simulated_layers)] if simulated else []))
        lines += table(header, cells)
    if not result.complete:
        lines += ["", "interrupted: the rest is missing"]
    return lines


def _columns(rows: list[Row]) -> list[tuple[str, Any]]:
    """Those of which something is known."""
    simulated = any(row["simulated_cycles"] is not None for row in rows)

    def plain(name: str, form: str) -> Any:
        return lambda row: None if row[name] is None else format(row[name], form)

    def cycles(row: Row) -> str | None:
        about = "~" if row["extrapolated_share"] else ""
        return None if row["simulated_cycles"] is None else f"{about}{row['simulated_cycles']:,}"

    found: list[tuple[str, Any]] = [
        ("cycles", plain("timeloop_cycles", ",")),
        ("uJ", lambda row: row["energy_pj"] and _figure(row["energy_pj"] / 1e6)),
        ("EDP", lambda row: row["timeloop_edp_pj_cycles"] and _figure(row["timeloop_edp_pj_cycles"] / 1e12)),
        ("simulated", cycles),
        ("ratio", plain("simulated_ratio" if simulated else "ratio", ".2f")),
        ("bound", plain("bound", ",.6g")),
        ("gap", plain("gap", ".1%")),
        ("drawn", plain("samples_drawn", ",")),
        ("valid", plain("samples_valid", ",")),
        ("s", plain("schedule_seconds", ".2f")),
    ]
    always = ("cycles", "uJ", "EDP", "ratio", "drawn", "valid")
    return [(head, cell) for head, cell in found if head in always or any(cell(row) is not None for row in rows)]


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _figure(value: float) -> str:
    """With one digit behind the point; small ones with three that count."""
    return f"{value:,.1f}" if value >= 10 else f"{value:.3g}"


def _notes(row: Row, max_cycles: int | None) -> Iterator[str]:
    """What the figures of a mapping do not say."""
    name = row["entry"]
    if row["error"]:
        yield f"{name}: {row['error']}"
    if row["stopped_by"] in ("time", "interrupted"):
        yield f"{name}: stopped by {row['stopped_by']}"
    if row["extrapolated_share"]:
        yield f"{name}: simulation extrapolated, {row['extrapolated_share']:.1%} of the cycles"
    if row["ended"] and row["simulated_cycles"] is None:
        above = max_cycles is not None and row["bound_cycles"] > max_cycles
        how = "not simulated: its bound is above --max-cycles" if above else "simulation given up"
        yield f"{name}: {how} (at least {row['at_least_cycles']:,} cycles)"
