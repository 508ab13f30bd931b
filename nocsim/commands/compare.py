"""`nocsim compare`: mappers side by side on the command line."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cosa.common.errors import InputError
from cosa.common.terminal import check_output, out, out_lines

if TYPE_CHECKING:
    from cosa.model.networks import NetworkLayer
    from nocsim.experiments.compare import ComparedMapping, Comparison


def register(app: typer.Typer) -> None:
    """Add the command to an application."""
    app.command("compare")(compare_command)


def compare_command(
    context: typer.Context,
    network: Annotated[str | None, typer.Option(metavar="NAME", help="Layer table.")] = None,
    layer: Annotated[
        str | None, typer.Option(metavar="NAME[,NAME...]", help="Layers of that table; all without this.")
    ] = None,
    layer_file: Annotated[str | None, typer.Option(metavar="FILE", help="YAML or JSON file of a layer.")] = None,
    arch: Annotated[str, typer.Option(metavar="NAME|FILE", help="Packaged architecture, or a file.")] = "simba_4x4",
    mesh: Annotated[
        str | None, typer.Option(metavar="COLUMNSxROWS", help="Mesh of PEs instead of the architecture's.")
    ] = None,
    mappers: Annotated[
        str, typer.Option(metavar="NAME,NAME...", help="Mappers; ratios are to the first.")
    ] = "cosa,random,hybrid",
    objective: Annotated[
        str, typer.Option(metavar="latency|energy|edp|simulated", help="What the searches minimise.")
    ] = "latency",
    simulate: Annotated[bool, typer.Option("--simulate", help="Simulate the schedules found.")] = False,
    candidates: Annotated[
        int, typer.Option(metavar="N", help="Objective simulated: mappings of each search to choose among.")
    ] = 16,
    max_cycles: Annotated[int | None, typer.Option(metavar="N", help="Give a simulation up at this cycle.")] = None,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="Give a simulation up then.")] = None,
    samples: Annotated[int | None, typer.Option(metavar="N", help="Mapper random: valid mappings to draw (5).")] = None,
    budget_evaluations: Annotated[
        int | None, typer.Option(metavar="N", help="Searches: stop after so many mappings evaluated.")
    ] = None,
    budget_seconds: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Each mapper: stop after this time.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of every mapper.")] = 0,
    workers: Annotated[int, typer.Option(metavar="N", help="Processor cores.")] = 1,
    timing: Annotated[
        bool, typer.Option("--timing/--no-timing", help="Report seconds to solution, or leave them out.")
    ] = True,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON (- prints it).")
    ] = None,
    csv_file: Annotated[
        str | None, typer.Option("--csv", metavar="FILE", help="Write the mappings as CSV (- prints them).")
    ] = None,
) -> int:
    """Map layers with several mappers; print cycles, energy, simulated cycles, samples and time to solution."""
    if not 1 <= workers <= 1024:
        raise InputError("out of range", source="--workers", value=workers, allowed="a whole number from 1 to 1024")
    if not 0 <= seed < 2**31:
        raise InputError("out of range", source="--seed", value=seed, allowed=f"a whole number from 0 to {2**31 - 1}")
    if candidates < 1:
        raise InputError("out of range", source="--candidates", value=candidates, allowed="a whole number >= 1")
    from cosa.api import find_architecture
    from cosa.commands.search import budget
    from cosa.common.files import write_atomic
    from nocsim.experiments.compare import compare
    from nocsim.experiments.simulated_search import Limit

    for option, value in (("--max-cycles", max_cycles), ("--time-limit", time_limit)):
        if value is not None and not value > 0:
            raise InputError("out of range", source=option, value=value, allowed="> 0")

    names = [name.strip() for name in mappers.split(",")]
    _check_effect(context, names, simulate, objective)
    layers = _layers(network, layer, layer_file)
    architecture = find_architecture(arch)
    if mesh is not None:
        architecture = architecture.with_mesh(mesh)
    for option, file in (("--json", json_file), ("--csv", csv_file)):
        if file is not None and file != "-":
            check_output(option, file, {"--layer-file": layer_file, "--arch": arch})
    if json_file is not None and csv_file is not None and Path(json_file).resolve() == Path(csv_file).resolve():
        raise InputError("also what --json writes to", source="--csv", value=csv_file, allowed="another file")
    line = _Line()
    result = compare(
        layers,
        architecture,
        names,
        network=network,
        objective=objective,
        budget=budget(samples, budget_evaluations, budget_seconds),
        seed=seed,
        workers=workers,
        simulate=simulate,
        pool_size=candidates,
        limit=Limit(max_cycles, time_limit),
        timing=timing,
        progress=line,
    )
    line.end()
    if csv_file is not None and csv_file != "-":
        write_atomic(csv_file, result.csv())
    if json_file is not None and json_file != "-":
        result.to_file(json_file)
    if "-" in (json_file, csv_file):
        out(result.to_json() if json_file == "-" else result.csv())
    else:
        out_lines(text(result))
    if not result.complete:
        return 130
    return 1 if any(mapping.error for mapping in result.mappings) else 0


def _check_effect(context: typer.Context, mappers: list[str], simulate: bool, objective: str) -> None:
    """InputError for an option on the command line that would change nothing."""
    from cosa.mappers.registry import SEARCHES
    from nocsim.experiments.compare import MapperSpec

    names = {MapperSpec.of(mapper).name for mapper in mappers}
    searches, simulations = names & set(SEARCHES), simulate or objective == "simulated"
    for name, useful, allowed in (
        ("samples", "random" in names, "with the mapper random"),
        ("budget_evaluations", bool(searches), f"with one of the mappers {', '.join(SEARCHES)}"),
        ("candidates", objective == "simulated", "with --objective simulated"),
        ("max_cycles", simulations, "with --simulate or --objective simulated"),
        ("time_limit", simulations, "with --simulate or --objective simulated; of mappers: --budget-seconds"),
    ):
        source = context.get_parameter_source(name)
        if not useful and source is not None and source.name == "COMMANDLINE":
            option = "--" + name.replace("_", "-")
            raise InputError("has no effect here", source=option, value=context.params[name], allowed=allowed)


def _layers(network: str | None, layer: str | None, layer_file: str | None) -> list[NetworkLayer]:
    from cosa.model.layer import Layer
    from cosa.model.networks import NetworkLayer, load_network

    if layer_file is not None:
        if network is not None or layer is not None:
            raise InputError("contradicts --network and --layer", source="--layer-file", value=layer_file)
        return [NetworkLayer(Layer.from_file(layer_file), 1)]
    if network is None:
        raise InputError("no layer given", allowed="--network NAME, with --layer NAME or without, or --layer-file FILE")
    table = load_network(network)
    if layer is None:
        return list(table.layers)
    chosen = [table.find(name.strip()) for name in layer.split(",")]
    for number, entry in enumerate(chosen):
        if entry in chosen[:number]:
            raise InputError("named twice", source="--layer", value=entry.layer.name, allowed="each once")
    return chosen


class _Line:
    """A line on standard error with what is under way; only on a terminal, only after two seconds."""

    def __init__(self) -> None:
        self._started, self._shown = time.monotonic(), False

    def __call__(self, layer: str, mapper: str) -> None:
        if time.monotonic() - self._started > 2 and sys.stderr.isatty():
            self._shown = True
            print(f"\r{layer}: {mapper}".ljust(61), end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Wipe the line."""
        if self._shown:
            print("\r" + " " * 61 + "\r", end="", file=sys.stderr, flush=True)


def text(result: Comparison) -> list[str]:
    """A table for each layer, then the means."""
    from cosa.commands.listing import table

    simulated = any(row.simulated_cycles is not None for row in result.mappings)
    timed = any(row.seconds is not None for row in result.mappings)
    proven = any(row.gap is not None for row in result.mappings)
    header = ["mapper", "cycles", "uJ", "EDP", *(["simulated"] if simulated else []), "ratio"]
    header += [*(["gap"] if proven else []), "drawn", "valid", *(["s"] if timed else [])]
    what = {"edp": "energy x cycles"}.get(result.objective, result.objective)
    lines = [f"{result.architecture}, searches minimise {what}; EDP in uJ x million cycles"]
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
