"""`cosa networks`, `archs`, `convert` and `schema`: files, and what ships with the package."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from cosa.common.errors import InputError, nearest_of
from cosa.common.terminal import check_output, out, out_json, out_lines

SCHEMAS = (
    "layer",
    "architecture",
    "constraints",
    "network_constants",
    "published_constants",
    "schedule",
    "weights",
)
CONVERSIONS = ("layer", "layers", "architecture", "schedule", "timeloop-problem", "timeloop-mapping", "facts")
CONVERT_HELP = f"What to make: {', '.join(CONVERSIONS)}."


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("networks")(networks_command)
    app.command("archs")(archs_command)
    app.command("convert")(convert_command)
    app.command("schema")(schema_command)


def complete_networks() -> list[str]:
    """Names of layer tables, for the shell."""
    from cosa.model.networks import network_names

    return network_names()


def complete_architectures() -> list[str]:
    """Names of packaged architectures, for the shell."""
    from cosa.model.arch import architecture_names

    return architecture_names()


def _complete_conversions() -> list[str]:
    return list(CONVERSIONS)


def networks_command(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Layer table.", autocompletion=complete_networks)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as data.")] = False,
) -> None:
    """List the layer tables that ship with the package, or the layers of one."""
    from cosa.commands import listing

    if name is None:
        data = listing.networks()
        out_json(data) if as_json else out_lines(listing.networks_table(data))
    else:
        data = listing.network(name)
        out_json(data) if as_json else out_lines(listing.network_table(data))


def archs_command(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME|FILE]", help="Architecture.", autocompletion=complete_architectures),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as data.")] = False,
) -> None:
    """List the packaged architectures, or check and print one."""
    from cosa.commands import listing

    if name is None:
        data = listing.architectures()
        out_json(data) if as_json else out_lines(listing.architectures_table(data))
    elif as_json:
        out_json(listing.architecture(name))
    else:
        out(listing.architecture_text(name))


def convert_command(
    to: Annotated[str, typer.Option(metavar="KIND", help=CONVERT_HELP, autocompletion=_complete_conversions)],
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[INPUT]...", help="Files of any kind known, read together.")
    ] = None,
    problem: Annotated[str | None, typer.Option(metavar="FILE", help="Timeloop problem, or a layer file.")] = None,
    arch: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="Timeloop architecture, an architecture file, or a packaged one.",
            autocompletion=complete_architectures,
        ),
    ] = None,
    mapping: Annotated[str | None, typer.Option(metavar="FILE", help="Timeloop mapping, or a nest it printed.")] = None,
    layer: Annotated[str | None, typer.Option(metavar="NAME", help="One layer of several.")] = None,
    one_row: Annotated[
        bool, typer.Option("--one-row", help="Timeloop mapping for an architecture whose fan-outs are single rows.")
    ] = False,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="PATH", help="File to write; for layers a folder.")
    ] = None,
) -> None:
    """Convert between our files and those of Timeloop and SCALE-Sim; what is left aside is noted on standard error."""
    from cosa.interop.convert import converted, read_inputs, text_of_result, write

    paths = [*(files or []), *(path for path in (problem, mapping) if path is not None)]
    if not paths and arch is None:
        raise InputError("nothing to convert", allowed="files, --problem, --arch, --mapping")
    inputs = read_inputs(paths, arch)
    result = converted(inputs, to, layer, one_row)
    if output is None and isinstance(result, dict):
        raise InputError("layers need a folder", source="-o", allowed="-o FOLDER")
    if output is not None and not isinstance(result, dict):
        check_output("-o", output, {path: path for path in [*paths, *([arch] if arch else [])]})
    written = [] if output is None else write(result, output)
    for note in dict.fromkeys(inputs.notes):
        print("note: " + " ".join(note.split()), file=sys.stderr)
    if not isinstance(result, dict) and output is None:
        out(text_of_result(result, None))
    else:
        out_lines([f"written to {path}" for path in written])


def schema_command(
    kind: Annotated[
        str, typer.Argument(metavar="|".join(SCHEMAS), help="Kind of file.", autocompletion=lambda: list(SCHEMAS))
    ],
) -> None:
    """Print the JSON Schema of a kind of file."""
    if kind not in SCHEMAS:
        nearest = nearest_of(kind, SCHEMAS)
        raise InputError("no such kind of file", source="KIND", value=kind, allowed=", ".join(SCHEMAS), nearest=nearest)
    from cosa.analytical.constants import Constants, PublishedConstants
    from cosa.common.files import FileModel
    from cosa.mip.objective import Weights
    from cosa.model.arch import Architecture
    from cosa.model.constraints import Constraints
    from cosa.model.layer import Layer
    from cosa.model.schedule import Schedule

    models: dict[str, type[FileModel]] = {
        "layer": Layer,
        "architecture": Architecture,
        "constraints": Constraints,
        "schedule": Schedule,
        "network_constants": Constants,
        "published_constants": PublishedConstants,
        "weights": Weights,
    }
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"} | models[kind].model_json_schema()
    out_json(schema)
