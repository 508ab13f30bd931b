"""`nocsim compare`: mappers side by side on the command line."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from cosa.errors import InputError
from cosa.terminal import check_output, out, out_lines

if TYPE_CHECKING:
    from cosa.networks import NetworkLayer
    from nocsim.compare import Comparison


def register(app: typer.Typer) -> None:
    """Add the command to an application."""
    app.command("compare")(compare_command)


def compare_command(
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
    csv_file: Annotated[str | None, typer.Option("--csv", metavar="FILE", help="Write the mappings as CSV.")] = None,
) -> int:
    """Map layers with several mappers; print cycles, energy, simulated cycles, samples and time to solution."""
    if not 1 <= workers <= 1024:
        raise InputError("out of range", source="--workers", value=workers, allowed="a whole number from 1 to 1024")
    if not 0 <= seed < 2**31:
        raise InputError("out of range", source="--seed", value=seed, allowed=f"a whole number from 0 to {2**31 - 1}")
    if candidates < 1:
        raise InputError("out of range", source="--candidates", value=candidates, allowed="a whole number >= 1")
    from cosa.api import find_architecture
    from cosa.cli_search import budget
    from cosa.files import write_atomic
    from nocsim.compare import compare
    from nocsim.simulated_search import Limit

    for option, value in (("--max-cycles", max_cycles), ("--time-limit", time_limit)):
        if value is not None and not value > 0:
            raise InputError("out of range", source=option, value=value, allowed="> 0")

    layers = _layers(network, layer, layer_file)
    architecture = find_architecture(arch)
    if mesh is not None:
        architecture = architecture.with_mesh(mesh)
    for option, file in (("--json", json_file), ("--csv", csv_file)):
        if file is not None and (option, file) != ("--json", "-"):
            check_output(option, file, {"--layer-file": layer_file, "--arch": arch})
    line = _Line()
    result = compare(
        layers,
        architecture,
        [name.strip() for name in mappers.split(",")],
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
    if csv_file is not None:
        write_atomic(csv_file, result.csv())
    if json_file == "-":
        out(result.to_json())
    else:
        if json_file is not None:
            result.to_file(json_file)
        out_lines(text(result))
    if not result.complete:
        return 130
    return 1 if any(mapping.error for mapping in result.mappings) else 0


def _layers(network: str | None, layer: str | None, layer_file: str | None) -> list[NetworkLayer]:
    from cosa.networks import NetworkLayer, load_network
    from cosa.workload import Layer

    if layer_file is not None:
        if network is not None or layer is not None:
            raise InputError("contradicts --network and --layer", source="--layer-file", value=layer_file)
        return [NetworkLayer(Layer.from_file(layer_file), 1)]
    if network is None:
        raise InputError("no layer given", allowed="--network NAME, with --layer NAME or without, or --layer-file FILE")
    table = load_network(network)
    return list(table.layers) if layer is None else [table.find(name.strip()) for name in layer.split(",")]


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
    from cosa.listing import table

    simulated = any(row.simulated_cycles is not None for row in result.mappings)
    timed = any(row.seconds is not None for row in result.mappings)
    header = ["mapper", "cycles", "uJ", "EDP", *(["simulated"] if simulated else []), "ratio", "drawn", "valid"]
    header += ["s"] if timed else []
    what = {"edp": "energy x cycles"}.get(result.objective, result.objective)
    lines = [f"{result.architecture}, searches minimise {what}; EDP in uJ x million cycles"]
    for name in dict.fromkeys(row.layer for row in result.mappings):
        rows = [row for row in result.mappings if row.layer == name]
        cells = []
        for row in rows:
            if row.cycles is None or row.energy_pj is None or row.energy_delay_pj_cycles is None:
                cells.append([row.mapper, *["-"] * (len(header) - 1)])
                continue
            ratio = row.simulated_ratio if simulated else row.ratio
            edp = row.energy_delay_pj_cycles / 1e12
            cell = [row.mapper, f"{row.cycles:,}", f"{row.energy_pj / 1e6:,.1f}", f"{edp:,.1f}"]
            if simulated:
                about = "~" if row.extrapolated_share else ""
                cell.append("-" if row.simulated_cycles is None else f"{about}{row.simulated_cycles:,}")
            cell.append("-" if ratio is None else f"{ratio:.2f}")
            cell += ["-" if count is None else f"{count:,}" for count in (row.samples_drawn, row.samples_valid)]
            cells.append(cell + ([f"{row.seconds:.2f}"] if timed and row.seconds is not None else []))
        lines += ["", f"{name} (x {rows[0].count})", *table(header, cells)]
        lines += [f"{row.mapper}: {row.error}" for row in rows if row.error]
        early = [row for row in rows if row.stopped_by in ("time", "interrupted")]
        lines += [f"{row.mapper}: stopped by {row.stopped_by}" for row in early]
        lines += [
            f"{row.mapper}: simulation extrapolated, {row.extrapolated_share:.1%} of the cycles"
            for row in rows
            if row.extrapolated_share
        ]
        over = [row for row in rows if row.bound_cycles is not None and row.simulated_cycles is None]
        lines += [f"{row.mapper}: simulation given up (at least {row.bound_cycles:,} cycles)" for row in over]
    if len({row.layer for row in result.mappings}) > 1:
        lines += ["", f"geometric mean of the ratios to {result.mappers[0]}, each layer once"]
        cells = []
        for mean in result.means:
            cell = [mean.mapper, str(mean.layers), "-" if mean.ratio is None else f"{mean.ratio:.2f}"]
            if simulated:
                cell.append("-" if mean.simulated_ratio is None else f"{mean.simulated_ratio:.2f}")
            cells.append(cell)
        lines += table(["mapper", "layers", "analytical", *(["simulated"] if simulated else [])], cells)
    if not result.complete:
        lines += ["", "interrupted: the rest is missing"]
    return lines
