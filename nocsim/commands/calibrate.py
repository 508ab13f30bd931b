"""`nocsim calibrate`: weights fitted on simulated runs, in files that `cosa schedule` reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cosa.common.errors import InputError
from cosa.common.terminal import check_output, out_lines

if TYPE_CHECKING:
    from cosa.analytical.constants import Fit


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("calibrate")(calibrate_command)


def calibrate_command(
    arch: Annotated[str, typer.Option(metavar="NAME|FILE", help="Packaged architecture, or a file.")] = "simba_4x4",
    mesh: Annotated[
        str | None, typer.Option(metavar="COLUMNSxROWS", help="Mesh of PEs instead of the architecture's.")
    ] = None,
    runs: Annotated[int | None, typer.Option(metavar="N", help="Schedules to simulate (60; tuning: 20).")] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Of layers, constants and walks.")] = 0,
    workers: Annotated[int, typer.Option(metavar="N", help="Processes at a time.")] = 1,
    published: Annotated[
        bool, typer.Option("--published", help="Fit the weights of the published objective instead.")
    ] = False,
    tune_weights: Annotated[
        bool, typer.Option("--tune-weights", help="Tune those weights on one layer, step by step.")
    ] = False,
    network: Annotated[str | None, typer.Option(metavar="NAME", help="Tuning: layer table.")] = None,
    layer: Annotated[str | None, typer.Option(metavar="NAME", help="Tuning: layer of that table.")] = None,
    layer_file: Annotated[str | None, typer.Option(metavar="FILE", help="Tuning: file of a layer.")] = None,
    output: Annotated[str | None, typer.Option("-o", "--output", metavar="FILE", help="File to write.")] = None,
) -> None:
    """Fit the network model's constants, or the published objective's weights, on simulated schedules."""
    from cosa.api import find_architecture

    if not 0 <= seed < 2**31:
        raise InputError("out of range", source="--seed", value=seed, allowed=f"a whole number from 0 to {2**31 - 1}")
    if not 1 <= workers <= 1024:
        raise InputError("out of range", source="--workers", value=workers, allowed="a whole number from 1 to 1024")
    if runs is not None and not 1 <= runs <= 10_000:
        raise InputError("out of range", source="--runs", value=runs, allowed="a whole number from 1 to 10000")
    if tune_weights and published:
        raise InputError("contradicts --tune-weights", source="--published", value=True)
    if not tune_weights:
        for option, value in (("--network", network), ("--layer", layer), ("--layer-file", layer_file)):
            if value is not None:
                raise InputError("needs --tune-weights", source=option, value=value)
    if output is not None:
        check_output("-o", output, {"--arch": arch, "--layer-file": layer_file})
    architecture = find_architecture(arch)
    if mesh is not None:
        architecture = architecture.with_mesh(mesh)
    if tune_weights:
        from cosa.commands.layer import chosen_layer
        from nocsim.experiments.tune_weights import tune_weights as tune

        tuned = tune(chosen_layer(network, layer, layer_file), architecture, runs=runs or 20)
        lines = [
            f"{tuned.published_cycles:,} cycles with the published weights, {tuned.cycles:,} with the tuned ones, "
            f"{tuned.tried} tried",
            *_values(tuned.weights.model_dump(include={"utilisation", "compute", "traffic"})),
        ]
        if output is not None:
            tuned.weights.to_file(output)
    else:
        from nocsim.experiments.calibrate import calibrate, calibrate_published

        fit_of = calibrate_published if published else calibrate
        found = fit_of(architecture, runs=runs or 60, seed=seed, workers=workers)
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
