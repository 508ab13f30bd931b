"""`nocsim sweep`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cosa.common.progress import Progress, duration
from cosa.common.terminal import check_output, out, out_lines
from nocsim.commands.sweep_report import sweep_report_command

if TYPE_CHECKING:
    from nocsim.experiments.sweep.spec import Sweep, SweepCounts


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("sweep")(sweep_command)
    app.command("sweep-report")(sweep_report_command)


def sweep_command(
    sweep: Annotated[str, typer.Argument(metavar="NAME|FILE", help="Packaged sweep, or a sweep file.")],
    results: Annotated[
        str | None, typer.Option(metavar="FILE", help="SQLite file of results (default: NAME.db of the sweep).")
    ] = None,
    workers: Annotated[int, typer.Option(metavar="N", help="Processes at a time.")] = 1,
    scheduler: Annotated[
        str | None, typer.Option(metavar="dask://HOST:PORT", help="Run on a dask.distributed cluster instead.")
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Run points that failed once more.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say how many points and how long, and run none.")] = False,
) -> int:
    """Schedule, evaluate and simulate every point of a sweep; what is finished stays finished."""
    from cosa.common.pool import require_workers
    from nocsim.experiments.sweep.run import run_sweep
    from nocsim.experiments.sweep.spec import load_sweep

    require_workers(workers, "--workers")
    found = load_sweep(sweep)
    file = f"{found.name}.db" if results is None else results
    if dry_run:
        return _dry_run(found, file, workers, retry_failed)
    check_output("--results", file, {"sweep": sweep})
    with Progress("points", log_seconds=60.0) as bar:

        def watch(counts: SweepCounts) -> None:
            bar(counts.done + counts.failed, counts.points, counts.failed)

        result = run_sweep(found, file, workers=workers, scheduler=scheduler, retry_failed=retry_failed, watch=watch)
    from nocsim.experiments.sweep.report import summary

    out_lines([*summary(result), "", f"results in {file}"])
    return 1 if result.failed else 0


def _dry_run(sweep: Sweep, results: str, workers: int, retry_failed: bool) -> int:
    from nocsim.experiments.sweep.estimate import estimate
    from nocsim.experiments.sweep.points import expand

    found = estimate(expand(sweep), results, retry_failed=retry_failed)
    counts = found.counts
    out(f"{counts.points} points: {counts.done} done, {counts.failed} failed, {counts.left} left\n")
    if counts.left:
        about = "more than" if found.at_least else "about"
        time = "time unknown" if found.seconds is None else f"{about} {duration(found.seconds / workers)}"
        out(f"{time} with {workers} worker{'s' if workers > 1 else ''}, an estimate from {found.basis}\n")
    return 0
