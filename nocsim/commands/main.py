"""The command line ``nocsim``: runs schedules on the simulated machine.

Exit codes: 0 fine, 1 infeasible or deadlocked, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from cosa.commands.work import Work
from cosa.common.errors import InputError
from cosa.common.options import Options, flag_of, option
from cosa.common.parameters import Given, takes
from cosa.common.progress import Progress
from cosa.common.terminal import application, check_output, out, out_json, run
from cosa.mappers.registry import every_mapper
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


class HowToRun(Options):
    """What `nocsim run` does."""

    schedule: str | None = option(None, "Schedule file, as cosa schedule writes it.", metavar="FILE")
    placement: str | None = option(
        None, "How spatial loops lie on the mesh, instead of machine.placement.", metavar="ORDER"
    )
    json_file: str | None = option(
        None, "Write the complete result as JSON (- prints it).", flag="--json", metavar="FILE"
    )
    mapper: str | None = option(
        None,
        "With layers instead of a schedule: what makes the schedules (program).",
        metavar="NAME",
        complete="cosa.mappers.registry:mapper_names",
    )
    workers: int = option(1, "With layers: processes at a time.", ge=1, le=1024)
    cache: str | None = option(None, "With layers: where results are kept.", metavar="FOLDER|none")


class OfOneRun(Options):
    """Of the run of one schedule. Its time limit has the name that those of mappers have."""

    ideal_network: bool = option(False, "No mesh: zero latency, no limit.")
    ideal_memory: bool = option(False, "No DRAM: zero latency, no limit.")
    timing: bool = option(True, "Report wall-clock seconds, or leave them out.", off="--no-timing")
    heat: str | None = option(None, cli_network.HEAT_HELP, metavar="FILE")
    max_cycles: int | None = option(None, "End the run at this cycle.", gt=0)
    time_limit_seconds: float | None = option(None, "End the run, or the mapper, then.", gt=0, unit="seconds")
    exact: bool = option(False, "Simulate every step, also of a schedule with very many of them.")


_SHARED = "time_limit_seconds"


@app.command("run")
@takes(HowToRun, Work, OfOneRun, owned={one.name: one.options for one in every_mapper()})
def run_command(given: Given) -> int:
    """Simulate a schedule, or schedule and simulate layers, and say where every cycle went."""
    how, work = given.of(HowToRun), given.of(Work)
    of_mapper = given.without(HowToRun, Work, OfOneRun)
    if work.network is not None or work.layer is not None or work.layer_file is not None:
        first = "--network" if work.network is not None else "--layer-file"
        if how.schedule is not None:
            raise InputError("contradicts --schedule", source=first, value=work.network or work.layer_file)
        for name in OfOneRun.model_fields:
            if name in given.values and name != _SHARED:
                flag = flag_of(name, OfOneRun.model_fields[name])
                raise InputError(f"contradicts {flag}", source=first, value=work.network or work.layer_file)
        if _SHARED in given.values:
            of_mapper[_SHARED] = given.values[_SHARED]
        from nocsim.commands.whole_network import run_layers_named

        return run_layers_named(work, given, of_mapper, how)
    if how.schedule is None:
        raise InputError("nothing to run", allowed="--schedule FILE, or layers: --network NAME or --layer-file FILE")
    for name in ("mapper", "workers", "cache", *of_mapper):
        if name in given.values:
            with given.flags():
                allowed = "with --network or --layer-file"
                raise InputError("does not go with --schedule", path=name, value=given.values[name], allowed=allowed)
    return _run_one(how.schedule, work, how, given.of(OfOneRun))


def _run_one(schedule: str, work: Work, how: HowToRun, asked: OfOneRun) -> int:
    from nocsim.api import resolve, simulate
    from nocsim.result.report import text

    inputs = {"--schedule": schedule, "--arch": work.arch}
    if how.json_file not in (None, "-"):
        check_output("--json", how.json_file or "", inputs)
    if asked.heat is not None:
        cli_network.check_heat_option(asked.heat, inputs, ideal_network=asked.ideal_network)
    found = resolve(schedule, work.arch, work.mesh, how.placement)
    with Progress() as progress:
        result = simulate(
            found,
            ideal_network=asked.ideal_network,
            ideal_memory=asked.ideal_memory,
            max_cycles=asked.max_cycles,
            time_limit_seconds=asked.time_limit_seconds,
            keep_interrupted=True,
            progress=_watched(progress),
            exact=asked.exact,
        )
    code = 130 if result.ended == "interrupted" else 0
    if asked.heat is not None:
        from nocsim.result.heat import save_run_heat

        save_run_heat(result, found.architecture, asked.heat)
    if not asked.timing:
        result = result.model_copy(update={"timing": None})
    data = {} if asked.timing else {"exclude": {"timing"}}
    if how.json_file == "-":
        out(result.to_json(**data))
        return code
    if how.json_file is not None:
        result.to_file(how.json_file, **data)
    out(text(result))
    if how.json_file is not None:
        out(f"\nwritten to {how.json_file}\n")
    if asked.heat is not None:
        out(f"\nlink heat written to {asked.heat}\n")
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
