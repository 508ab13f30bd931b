"""`nocsim calibrate`: weights fitted on simulated runs, in files that `cosa schedule` reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from cosa.commands.work import Work
from cosa.common.errors import InputError
from cosa.common.options import Options, option
from cosa.common.parameters import Given, takes
from cosa.common.terminal import check_output, out_lines
from cosa.mappers.registry import Seed

if TYPE_CHECKING:
    from cosa.analytical.constants import Fit


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("calibrate")(calibrate_command)


class HowToCalibrate(Options):
    """What `nocsim calibrate` does."""

    runs: int | None = option(None, "Schedules to simulate (60; tuning: 20).", ge=1, le=10_000)
    seed: Seed = option(0, "Of layers, constants and walks.")
    workers: int = option(1, "Processes at a time.", ge=1, le=1024)
    published: bool = option(False, "Fit the weights of the published objective instead.")
    tune_weights: bool = option(False, "Tune those weights on one layer, step by step.")
    output: str | None = option(None, "File to write.", flag="-o,--output", metavar="FILE")


@takes(Work, HowToCalibrate)
def calibrate_command(given: Given) -> None:
    """Fit the network model's constants, or the published objective's weights, on simulated schedules."""
    work, how = given.of(Work), given.of(HowToCalibrate)
    runs, output = how.runs, how.output
    if how.tune_weights and how.published:
        raise InputError("contradicts --tune-weights", source="--published", value=True)
    if not how.tune_weights:
        named = {"--network": work.network, "--layer": work.layer, "--layer-file": work.layer_file}
        for option_name, value in named.items():
            if value is not None:
                raise InputError("needs --tune-weights", source=option_name, value=value)
    if output is not None:
        check_output("-o", output, work.inputs())
    architecture = work.architecture()
    if how.tune_weights:
        from nocsim.experiments.tune_weights import tune_weights as tune

        tuned = tune(work.one_layer(), architecture, runs=runs or 20)
        lines = [
            f"{tuned.published_cycles:,} cycles with the published weights, {tuned.cycles:,} with the tuned ones, "
            f"{tuned.tried} tried",
            *_values(tuned.weights.model_dump(include={"utilisation", "compute", "traffic"})),
        ]
        if output is not None:
            tuned.weights.to_file(output)
    else:
        from nocsim.experiments.calibrate import calibrate, calibrate_published

        fit_of = calibrate_published if how.published else calibrate
        found = fit_of(architecture, runs=runs or 60, seed=how.seed, workers=how.workers)
        assert found.fit is not None
        lines = [*_fit(found.fit), *_values(found.model_dump(exclude={"kind", "schema_version", "fit"}))]
        if output is not None:
            found.to_file(output)
    out_lines([*lines, *([f"written to {output}"] if output is not None else [])])


def _fit(fit: Fit) -> list[str]:
    left_out = fit.left_out_standard_deviation
    others = "" if left_out is None else f", {left_out:.3f} on layers left out of the fit"
    layers = len({run.layer for run in fit.runs})
    return [
        f"{len(fit.runs)} runs of {layers} layers on {fit.architecture}",
        f"standard deviation of log(simulated / predicted): {fit.standard_deviation:.3f}{others}",
        "",
    ]


def _values(values: dict[str, object]) -> list[str]:
    return [f"{name:24}{value:>12g}" for name, value in values.items() if isinstance(value, int | float)]
