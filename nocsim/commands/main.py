"""The command line ``nocsim``: runs schedules on the simulated machine.

Exit codes: 0 fine, 1 infeasible or deadlocked, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from cosa.common.errors import InputError
from cosa.common.terminal import application, check_output, out, out_json, run
from nocsim.commands import calibrate as cli_calibrate
from nocsim.commands import compare as cli_compare
from nocsim.commands import mesh as cli_network
from nocsim.commands import portfolio as cli_portfolio
from nocsim.commands import sweep as cli_sweep
from nocsim.commands import transactions as published_cli

app = application(
    "nocsim", "Simulates schedules on a spatial accelerator cycle by cycle: PEs, global buffer, mesh and DRAM."
)

cli_network.register(app)
cli_compare.register(app)
cli_sweep.register(app)
cli_portfolio.register(app)
cli_calibrate.register(app)
published_cli.register(app)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    return run(app, "nocsim", argv)


@app.command("run")
def run_command(
    schedule: Annotated[
        str | None, typer.Option(metavar="FILE", help="Schedule file, as cosa schedule writes it.")
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Layer table: schedule and simulate all its layers instead of one schedule."),
    ] = None,
    mesh: Annotated[
        str | None, typer.Option(metavar="COLUMNSxROWS", help="Mesh of PEs instead of the architecture's.")
    ] = None,
    placement: Annotated[
        str | None,
        typer.Option(metavar="ORDER", help="How spatial loops lie on the mesh, instead of machine.placement."),
    ] = None,
    arch: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE", help="Architecture instead of the one in the schedule (--network: simba_4x4)."
        ),
    ] = None,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the complete result as JSON (- prints it).")
    ] = None,
    ideal_network: Annotated[bool, typer.Option("--ideal-network", help="No mesh: zero latency, no limit.")] = False,
    ideal_memory: Annotated[bool, typer.Option("--ideal-memory", help="No DRAM: zero latency, no limit.")] = False,
    timing: Annotated[
        bool, typer.Option("--timing/--no-timing", help="Report wall-clock seconds, or leave them out.")
    ] = True,
    heat: cli_network.Heat = None,
    max_cycles: Annotated[int | None, typer.Option(metavar="N", help="End the run at this cycle.")] = None,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="End the run after this time.")] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Simulate every step, also of a schedule with very many of them.")
    ] = False,
    mapper: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --network: what makes the schedules.")
    ] = None,
    objective: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --network: what the mapper minimises (latency).")
    ] = None,
    workers: Annotated[int, typer.Option(metavar="N", help="With --network: processes at a time.")] = 1,
    cache: Annotated[
        str | None, typer.Option(metavar="FOLDER|none", help="With --network: where results of layers are kept.")
    ] = None,
) -> int:
    """Simulate a schedule, or a whole network, and say where every cycle went."""
    if network is not None:
        contradictions: dict[str, object] = {"--schedule": schedule, "--heat": heat, "--max-cycles": max_cycles}
        contradictions |= {"--ideal-network": ideal_network or None, "--ideal-memory": ideal_memory or None}
        contradictions |= {"--time-limit": time_limit, "--exact": exact or None}
        for option, value in contradictions.items():
            if value is not None:
                raise InputError(f"contradicts {option}", source="--network", value=network)
        from nocsim.commands.whole_network import run_whole_network

        return run_whole_network(
            network,
            arch=arch,
            mesh=mesh,
            placement=placement,
            mapper=mapper,
            objective=objective,
            workers=workers,
            cache=cache,
            json_file=json_file,
        )
    if schedule is None:
        raise InputError("nothing to run", allowed="--schedule FILE, or --network NAME")
    from nocsim.api import resolve, simulate
    from nocsim.machine.limits import ProgressLine
    from nocsim.result.report import text

    if json_file not in (None, "-"):
        check_output("--json", json_file, {"--schedule": schedule, "--arch": arch})
    if heat is not None:
        cli_network.check_heat_option(heat, {"--schedule": schedule, "--arch": arch}, ideal_network=ideal_network)
    found = resolve(schedule, arch, mesh, placement)
    for option, limit in (("--max-cycles", max_cycles), ("--time-limit", time_limit)):
        if limit is not None and not limit > 0:
            raise InputError("out of range", source=option, value=limit, allowed="> 0")
    line = ProgressLine()
    result = simulate(
        found,
        ideal_network=ideal_network,
        ideal_memory=ideal_memory,
        max_cycles=max_cycles,
        time_limit_seconds=time_limit,
        keep_interrupted=True,
        progress=line,
        exact=exact,
    )
    line.end()
    code = 130 if result.ended == "interrupted" else 0
    if heat is not None:
        from nocsim.result.heat import save_run_heat

        save_run_heat(result, found.architecture, heat)
    if not timing:
        result = result.model_copy(update={"timing": None})
    data = {} if timing else {"exclude": {"timing"}}
    if json_file == "-":
        out(result.to_json(**data))
        return code
    if json_file is not None:
        result.to_file(json_file, **data)
    out(text(result))
    if json_file is not None:
        out(f"\nwritten to {json_file}\n")
    if heat is not None:
        out(f"\nlink heat written to {heat}\n")
    return code


@app.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of a result file."""
    from nocsim.result.result import Result

    out_json({"$schema": "https://json-schema.org/draft/2020-12/schema"} | Result.model_json_schema())


if __name__ == "__main__":
    sys.exit(main())
