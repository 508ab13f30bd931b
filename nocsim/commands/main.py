"""The command line ``nocsim``: runs schedules on the simulated machine.

Exit codes: 0 fine, 1 infeasible or deadlocked, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from cosa.commands.work import Work
from cosa.common.errors import InputError
from cosa.common.options import Options, option
from cosa.common.parameters import Given, takes
from cosa.common.progress import Progress
from cosa.common.terminal import application, check_outputs, out, out_json, run
from cosa.mappers.registry import every_mapper
from nocsim.commands import calibrate, compare, mesh, portfolio, sweep, transactions
from nocsim.options import RunOptions

app = application(
    "nocsim", "Simulates schedules on a spatial accelerator cycle by cycle: PEs, global buffer, mesh and DRAM."
)

for _commands in (mesh, compare, sweep, portfolio, calibrate, transactions):
    _commands.register(app)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    return run(app, "nocsim", argv)


class HowToRun(Options):
    """What `nocsim run` runs and writes."""

    schedule: str | None = option(None, "Schedule file, as cosa schedule writes it.", metavar="FILE")
    mapper: str | None = option(
        None,
        "With layers: what makes the schedules (program).",
        metavar="NAME",
        complete="cosa.mappers.registry:mapper_names",
    )
    workers: int = option(1, "With layers: processes at a time.", ge=1, le=1024)
    cache: str | None = option(None, "With layers: where their results are kept.", metavar="FOLDER|none")
    json_file: str | None = option(
        None, "Write the complete result as JSON (- prints it).", flag="--json", metavar="FILE"
    )
    timing: bool = option(True, "Report wall-clock seconds, or leave them out.", off="--no-timing")
    heat: str | None = option(None, mesh.HEAT_HELP, metavar="FILE")


@app.command("run")
@takes(Work, HowToRun, RunOptions, owned={one.name: one.options for one in every_mapper()})
def run_command(given: Given) -> int:
    """Simulate a schedule, or layers with schedules of a mapper, and say where every cycle went.

    --time-limit is of the simulation of a schedule; with layers, of the mapper.
    """
    work, how = given.of(Work), given.of(HowToRun)
    if work.network is not None or work.layer_file is not None:
        from nocsim.commands.whole_network import run_whole_network

        return run_whole_network(work, given, how)
    if how.schedule is None:
        raise InputError("nothing to run", allowed="--schedule FILE, or --network NAME, or --layer-file FILE")
    needless = [name for name in given.owned if name not in RunOptions.model_fields]
    needless += sorted(set(given.values) & {"layer", "mapper", "cache", "workers"})
    if needless:
        with given.flags():
            allowed = "with --network or --layer-file"
            raise InputError(
                "goes with layers only", path=needless[0], value=given.values[needless[0]], allowed=allowed
            )
    return _run_schedule(work, given, how)


def _run_schedule(work: Work, given: Given, how: HowToRun) -> int:
    from nocsim.api import resolve, simulate
    from nocsim.result.report import text

    options = given.of(RunOptions)
    inputs = {"--schedule": how.schedule, "--arch": work.arch}
    check_outputs({"--json": how.json_file, "--heat": how.heat}, inputs)
    if how.heat is not None:
        mesh.check_heat_option(how.heat, inputs, ideal_network=options.ideal_network)
    assert how.schedule is not None
    with given.flags(architecture="--arch"):
        found = resolve(how.schedule, work.arch, work.mesh, options.placement)
    with Progress() as progress:
        result = simulate(found, options, keep_interrupted=True, progress=_watched(progress))
    code = 130 if result.ended == "interrupted" else 0
    if how.heat is not None:
        from nocsim.result.heat import save_run_heat

        save_run_heat(result, found.architecture, how.heat)
    if not how.timing:
        result = result.model_copy(update={"timing": None})
    data = {} if how.timing else {"exclude": {"timing"}}
    if how.json_file == "-":
        out(result.to_json(**data))
        return code
    if how.json_file is not None:
        result.to_file(how.json_file, **data)
    out(text(result))
    for what, path in (("", how.json_file), ("link heat ", how.heat)):
        if path is not None:
            out(f"\n{what}written to {path}\n")
    return code


def _watched(progress: Progress) -> Callable[[float, int], None]:
    """Shows share and cycle. Each round begins anew: whether another one follows nobody knows yet."""
    rounds, last = 1, 0.0

    def show(share: float, cycle: int) -> None:
        nonlocal rounds, last
        if share < last:
            rounds += 1
            progress.restart()
        last = share
        which = f"round {rounds}: " if rounds > 1 else ""
        progress.show(f"{which}{share:.1%} computed, cycle {cycle:,}{progress.left(share, 1.0)}", share)

    return show


@app.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of a result file."""
    from nocsim.result.result import Result

    out_json({"$schema": "https://json-schema.org/draft/2020-12/schema"} | Result.model_json_schema())


if __name__ == "__main__":
    sys.exit(main())
