"""Conversion between files of other tools and ours: what ``cosa convert`` does, as functions.

`read_inputs` finds out what each file is and puts everything together; `converted` makes one thing of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cosa.common.errors import InputError, nearest_of
from cosa.common.file_kinds import another_kind
from cosa.common.files import dump_yaml, file_stems, read_data, read_text, require_writable, write_atomic
from cosa.interop.facts import facts_of
from cosa.interop.nests import mapping_nest
from cosa.interop.nouns import architecture_of, schedule_of
from cosa.interop.places import Where
from cosa.interop.published_runs import is_published_run, read_published_run
from cosa.interop.roles import Roles, layer_of
from cosa.interop.scalesim import ScaleSimConfig, is_config, is_topology, parse_config, parse_topology
from cosa.interop.scalesim_architecture import scalesim_architecture
from cosa.interop.timeloop_files import all_constraints, parse_timeloop, together
from cosa.interop.timeloop_model import Problem, ProblemShape, TimeloopFile
from cosa.interop.timeloop_writer import mapping_text, problem_text
from cosa.model.arch import Architecture, load_architecture
from cosa.model.layer import Layer, padding_line
from cosa.model.schedule import Schedule
from cosa.model.validity import violations

_MAIN_FIELD = {"schedule": "nest", "architecture": "levels", "layer": "R"}

KINDS = ("layer", "layers", "architecture", "schedule", "timeloop-problem", "timeloop-mapping", "facts")


@dataclass
class Inputs:
    """Everything read, by what it is; `sources` says from which file."""

    layers: tuple[Layer, ...] = ()
    architecture: Architecture | None = None
    schedule: Schedule | None = None
    timeloop: TimeloopFile | None = None
    config: ScaleSimConfig | None = None
    sources: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def put(self, part: str, value: Any, source: str) -> None:
        """One part, which may come from one file only."""
        if part in self.sources:
            raise InputError(f"a second {part} (the first one is in {self.sources[part]})", source=source)
        self.sources[part] = source
        setattr(self, part, value)

    def source(self, *parts: str) -> str:
        """Name of the file of the first of these parts that there is."""
        names = [self.sources[part] for part in parts if part in self.sources]
        return names[0] if names else self.timeloop.source if self.timeloop is not None else "input"


def read_inputs(paths: Sequence[str], architecture: str | None = None) -> Inputs:
    """Read files of any kind known here. `architecture` may also be the name of a packaged one.

    Raises
    ------
    InputError: a file that can't be read, or a part that two files have.
    """
    inputs = Inputs()
    texts: list[tuple[str, str]] = []
    for path in paths:
        text = read_text(path)
        if not text.strip():
            raise InputError("the file is empty", source=path)
        if _ours(path, text, inputs):
            continue
        wrong = another_kind(text, path, _READ_HERE, _READ)
        if wrong is not None:
            raise wrong
        if not _scale_sim(path, text, inputs):
            texts.append((path, text))
    if architecture is not None:
        _architecture(architecture, inputs, texts)
    files: list[TimeloopFile] = []
    # Archived nests name dimensions by number: the shape has to be known first.
    for path, text in sorted(texts, key=lambda entry: entry[1].lstrip().startswith("<")):
        problem = next((file.problem for file in files if file.problem is not None), None)
        shape = next((file.shape for file in files if file.shape is not None), None)
        files.append(_timeloop(path, text, problem, shape))
    if files:
        inputs.timeloop = together(files)
        inputs.notes.extend(_noted(file, note) for file in files for note in file.notes)
        for file in files:
            for part in ("problem", "mapping", "nest", "architecture"):
                if getattr(file, part) is not None:
                    inputs.sources.setdefault(f"timeloop {part}", file.source)
    return inputs


def _noted(file: TimeloopFile, note: str) -> str:
    return f"{file.source}: {note}"


def _timeloop(path: str, text: str, problem: Problem | None, shape: ProblemShape | None) -> TimeloopFile:
    if Path(path).suffix.lower() == ".json":
        data = read_data(path)
        if is_published_run(data):
            return read_published_run(data, Where(path))
    return parse_timeloop(text, path, problem, shape)


_READ_HERE = (
    "Timeloop file", "SCALE-Sim topology", "SCALE-Sim configuration", "layer of this package",
    "architecture of this package", "schedule of this package",
)  # fmt: skip
_READ = "files of Timeloop, SCALE-Sim's topologies and configurations, and ours: layer, architecture, schedule"


def _ours(path: str, text: str, inputs: Inputs) -> bool:
    """Whether the file is a layer, an architecture or a schedule of ours, which is then put in."""
    if text.lstrip().startswith("<") or Path(path).suffix.lower() in (".csv", ".cfg", ".txt", ".xml"):
        return False
    try:
        data = read_data(path)
    except InputError:
        return False
    if not isinstance(data, dict):
        return False
    makers: dict[str, Callable[..., Any]] = {
        "layer": Layer.from_data,
        "architecture": Architecture.from_data,
        "schedule": Schedule.from_data,
    }
    kind = data.get("kind")
    if kind is None and not is_published_run(data):
        # The kind of a file may be left out; then its main field tells.
        kind = next((name for name, key in _MAIN_FIELD.items() if key in data), None)
    if not isinstance(kind, str) or kind not in makers:
        return False
    made = makers[kind](data, source=path)
    inputs.put("layers" if kind == "layer" else kind, (made,) if kind == "layer" else made, path)
    return True


def _scale_sim(path: str, text: str, inputs: Inputs) -> bool:
    if is_config(text):
        config = parse_config(text, path)
        inputs.put("config", config, path)
        if config.not_used:
            inputs.notes.append(f"{path}: not used: {', '.join(config.not_used)}")
        return True
    if Path(path).suffix.lower() == ".csv" or ("\n" in text and is_topology(text) and ":" not in text.split("\n")[0]):
        layers = parse_topology(text, path)
        inputs.put("layers", layers, path)
        inputs.notes.extend(f"{path}: {layer.name}: {note}" for layer in layers for note in layer.notes)
        return True
    return False


def _architecture(name: str, inputs: Inputs, texts: list[tuple[str, str]]) -> None:
    """An architecture by packaged name, as a file of ours, or as Timeloop's."""
    if Path(name).suffix and Path(name).is_file():
        text = read_text(name)
        if not _ours(name, text, inputs):
            texts.append((name, text))
        return
    inputs.put("architecture", load_architecture(name), name)


Noun = Layer | Architecture | Schedule
Result = Noun | str | dict[str, Layer]


def converted(inputs: Inputs, kind: str, layer: str | None = None, one_row: bool = False) -> Result:
    """The thing asked for: one of our nouns, text of another tool's file, or layers by the names of their files.

    `one_row`: a Timeloop mapping for an architecture whose fan-outs are single rows.

    Raises
    ------
    InputError: the inputs do not have what it takes, or it can't be represented.
    """
    if kind not in KINDS:
        allowed = ", ".join(KINDS)
        raise InputError("no such kind", source="--to", value=kind, allowed=allowed, nearest=nearest_of(kind, KINDS))
    if kind == "facts":
        return _facts(inputs)
    if kind == "layers":
        return _file_names(_layers(inputs))
    if kind == "layer":
        return _layer(inputs, layer)
    if kind == "timeloop-problem":
        problem = _layer(inputs, layer)
        if not inputs.layers and inputs.schedule is not None and inputs.schedule.padded:
            inputs.notes.append(f"padded, as the mapping is: {padding_line(problem, inputs.schedule.padded)}")
            problem = inputs.schedule.padded_layer
        return problem_text(problem, inputs.source("schedule", "layers"), inputs.notes)
    if kind == "architecture":
        return _converted_architecture(inputs, _roles(inputs))
    schedule = _schedule(inputs, layer)
    if kind == "schedule":
        found = violations(schedule.padded_layer, schedule.architecture, schedule.nest)
        inputs.notes.extend(f"does not fit its architecture: {violation}" for violation in found)
        return schedule
    return mapping_text(schedule, inputs.source("schedule", "timeloop mapping", "timeloop nest"), inputs.notes, one_row)


def _facts(inputs: Inputs) -> str:
    facts: Any = {}
    if inputs.timeloop is not None:
        facts = facts_of(inputs.timeloop)
    elif inputs.config is not None:
        facts = {"kind": "scalesim_config", **vars(inputs.config)}
    elif inputs.layers:
        facts = {"kind": "layers", "layers": [layer.model_dump(mode="json") for layer in inputs.layers]}
    else:
        message = "facts are of files of other tools"
        raise InputError(message, source=inputs.source("layers", "architecture", "schedule"))
    return json.dumps(facts, indent=2) + "\n"


def _layers(inputs: Inputs) -> tuple[Layer, ...]:
    if inputs.layers:
        return inputs.layers
    if inputs.schedule is not None:
        return (inputs.schedule.layer,)
    if inputs.timeloop is not None and inputs.timeloop.problem is not None:
        return (_problem_layer(inputs)[0],)
    raise InputError("no layer in the input", source=inputs.source("config", "architecture"), allowed=_LAYER_SOURCES)


_LAYER_SOURCES = "a Timeloop problem, a SCALE-Sim topology, a layer or a schedule"


def _layer(inputs: Inputs, name: str | None) -> Layer:
    layers = _layers(inputs)
    names = [layer.name for layer in layers]
    if name is not None:
        found = [layer for layer in layers if layer.name == name]
        if len(found) != 1:
            message = "no such layer" if not found else f"{len(found)} layers of that name"
            allowed = ", ".join(dict.fromkeys(names))
            raise InputError(message, source="--layer", value=name, allowed=allowed, nearest=nearest_of(name, names))
        return found[0]
    if len(layers) != 1:
        allowed = f"--to layers, or --layer with one of {', '.join(names)}"
        raise InputError(f"{len(layers)} layers in the input", source=inputs.source("layers"), allowed=allowed)
    return layers[0]


def _problem_layer(inputs: Inputs) -> tuple[Layer, Roles]:
    assert inputs.timeloop is not None and inputs.timeloop.problem is not None
    source = inputs.source("timeloop problem")
    where = Where(source, "problem")
    result = layer_of(inputs.timeloop.problem, where)
    inputs.notes.extend(f"{source}: {note}" for note in where.notes)
    return result


def _roles(inputs: Inputs) -> Roles | None:
    if inputs.timeloop is None or inputs.timeloop.problem is None:
        return None
    return _problem_layer(inputs)[1]


def _converted_architecture(inputs: Inputs, roles: Roles | None) -> Architecture:
    file = inputs.timeloop
    ours = inputs.architecture
    if ours is None and inputs.schedule is not None and (file is None or file.architecture is None):
        ours = inputs.schedule.architecture
    if ours is None and inputs.config is not None and (file is None or file.architecture is None):
        ours = scalesim_architecture(inputs.config, inputs.source("config"), inputs.notes)
    if ours is not None:
        return ours
    if file is None or file.architecture is None:
        allowed = "a Timeloop architecture, a SCALE-Sim configuration, or --arch"
        raise InputError("no architecture in the input", source=inputs.source("layers", "config"), allowed=allowed)
    where = Where(inputs.source("timeloop architecture"))
    result = architecture_of(file.architecture, all_constraints(file), roles.tensors if roles else None, where)
    inputs.notes.extend(f"{where.source}: {note}" for note in where.notes)
    return result


def _schedule(inputs: Inputs, layer_name: str | None) -> Schedule:
    """A schedule of ours as it is, or problem, architecture and mapping put together."""
    file = inputs.timeloop
    has_nest = file is not None and (file.mapping is not None or file.nest is not None)
    if inputs.schedule is not None and not has_nest:
        if inputs.architecture is None and (file is None or file.architecture is None):
            return inputs.schedule
        return inputs.schedule.with_architecture(_converted_architecture(inputs, None))
    if file is None or not has_nest:
        allowed = "a schedule, or a Timeloop mapping with its problem and architecture"
        raise InputError("no mapping in the input", source=inputs.source("layers", "architecture"), allowed=allowed)
    source = inputs.source("timeloop mapping", "timeloop nest")
    roles: Roles | None = None
    bounds: Mapping[str, int] | None = None
    dims: Sequence[str] | None = None
    if file.problem is not None:
        layer, roles = _problem_layer(inputs)
        bounds, dims = file.problem.bounds, file.problem.shape.dimensions
    elif inputs.layers or inputs.schedule is not None:
        layer = _layer(inputs, layer_name)
        bounds = {str(dim): bound for dim, bound in layer.bounds.items()}
        dims = tuple(bounds)
    else:
        raise InputError("the mapping needs its problem", source=source, allowed="--problem FILE, or a layer file")
    architecture = _converted_architecture(inputs, roles)
    where = Where(source)
    nest = file.nest
    if file.mapping is not None:
        # A level that the file calls by number counts among the memories of its own architecture.
        own = file.architecture if file.architecture is not None and inputs.architecture is None else None
        order = [level.name for level in architecture.levels][::-1] if own is None else None
        nest = mapping_nest(file.mapping, source, bounds=bounds, dims=dims, architecture=own, order=order)
    assert nest is not None
    schedule = schedule_of(nest, layer, architecture, where, roles)
    inputs.notes.extend(f"{source}: {note}" for note in where.notes)
    return schedule


def _file_names(layers: Sequence[Layer]) -> dict[str, Layer]:
    """A file name for each layer: its own name where that is one, different in any case."""
    stems = file_stems([layer.name for layer in layers])
    return {f"{stem}.yaml": layer for stem, layer in zip(stems, layers, strict=True)}


def text_of_result(result: Noun | str, output: str | None) -> str:
    """Text for a file of that name: a noun as JSON or YAML by its ending, a schedule as JSON where it says neither."""
    if isinstance(result, str):
        return result
    ending = Path(output or "").suffix.lower()
    if ending == ".json" or (isinstance(result, Schedule) and ending not in (".yaml", ".yml")):
        return result.to_json()
    return dump_yaml(result.model_dump(mode="json"))


def write(result: Result, output: str) -> list[str]:
    """Write what was converted; returns the files. A folder of layers is made if it is not there.

    Raises
    ------
    InputError: a file can't be written; then none is, as far as can be told before.
    """
    if not isinstance(result, dict):
        write_atomic(output, text_of_result(result, output))
        return [output]
    folder = Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"cannot be made a folder: {reason}", source=output) from None
    files = {str(folder / name): layer for name, layer in result.items()}
    for file in files:
        require_writable(file)
    for file, layer in files.items():
        write_atomic(file, text_of_result(layer, file))
    return list(files)
