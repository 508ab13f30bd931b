"""Reading DRAM device files, with errors that name file, field, value and what is allowed."""

import difflib
import importlib.resources
from collections.abc import Iterator, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from cosa.common.file_kinds import another_kind
from dram.config import DramConfig
from dram.errors import DramConfigError
from dram.foreign import KINDS, read_device
from dram.policy import controllers


def device_names() -> list[str]:
    """Names of the device files that come with the package."""
    folder = importlib.resources.files("arch_configs") / "dram"
    return sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def load_device(name_or_path: str | Path, notes: list[str] | None = None) -> DramConfig:
    """Read a DRAM configuration by the name of a packaged file or from a path.

    Args:
        name_or_path: a name as in :func:`device_names`, or the path of a device file, or of a configuration of DRAMsim3
            or Ramulator 2. Where both are there, the packaged one counts.
        notes: gets what reading another simulator's configuration assumed, or found without effect.

    Raises:
        DramConfigError: no such file, not YAML, or parameters unknown, missing, wrong or contradictory.
    """
    text = str(name_or_path)
    path = Path(name_or_path)
    if not isinstance(name_or_path, Path) and text in device_names():
        source: Path | Traversable = importlib.resources.files("arch_configs") / "dram" / f"{text}.yaml"
    elif path.is_file():
        source = path
    elif isinstance(name_or_path, Path) or "/" in text or path.suffix:
        raise DramConfigError(f"{text}: no such file")
    else:
        names = device_names()
        near = difflib.get_close_matches(text, names, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise DramConfigError(f"DRAM device {text!r} unknown{hint}; allowed: {', '.join(names)}, or a path")
    try:
        content = source.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = "is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else f"cannot be read: {error.strerror}"
        raise DramConfigError(f"{source}: {reason}") from None
    data = read_device(content, str(source), [] if notes is None else notes)
    wrong = another_kind(content, str(source), KINDS, "a DRAM device file, or a DRAMsim3 or Ramulator 2 configuration")
    if wrong is not None:
        raise DramConfigError(str(wrong))
    if data is None:
        try:
            data = yaml.safe_load(content)
        except yaml.YAMLError as error:
            raise DramConfigError(f"{source}: not YAML: {' '.join(str(error).split())}") from error
    return parse_device(data, str(source))


def parse_device(data: object, source: str = "DRAM configuration") -> DramConfig:
    """Check already read parameters; ``source`` is named in errors.

    Raises:
        DramConfigError: with one line for each parameter at fault.
    """
    if not isinstance(data, Mapping):
        raise DramConfigError(f"{source}: a mapping of parameters is expected, found {type(data).__name__}")
    try:
        return DramConfig.model_validate(dict(data))
    except ValidationError as error:
        entries = error.errors()
        missing = {entry["loc"] for entry in entries if entry["type"] == "missing"}
        lines = [_explain(entry, missing) for entry in entries]
        raise DramConfigError("\n".join(f"{source}: {line}" for line in lines)) from error


def _models_of(annotation: Any) -> Iterator[type[BaseModel]]:
    """The pydantic models inside an annotation such as ``Currents | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_of(part)


def _model_at(location: tuple[int | str, ...]) -> type[BaseModel] | None:
    """The model whose fields stand at this place of the file."""
    found: list[type[BaseModel]] = [DramConfig]
    for step in location:
        if len(found) == 1 and str(step) in found[0].model_fields:
            found = list(_models_of(found[0].model_fields[str(step)].annotation))
        else:  # the tag of a union, which pydantic puts into the location
            found = [model for model in found if _tag_of(model) == step]
    return found[0] if len(found) == 1 else None


def _tag_of(model: type[BaseModel]) -> object:
    field = model.model_fields.get("policy")
    return field.default if field is not None else None


def _nearest(name: str, allowed: list[str], missing: list[str]) -> str:
    """The name most likely meant: letter case apart the same, else one that is missing, else any that looks alike."""
    same = [other for other in allowed if other.lower() == name.lower()]
    alike = difflib.get_close_matches(name, missing, n=1, cutoff=0.5)
    return (same or alike or difflib.get_close_matches(name, allowed, n=1, cutoff=0.5) or [""])[0]


def _explain(entry: Any, missing: set[tuple[int | str, ...]]) -> str:
    location: tuple[int | str, ...] = entry["loc"]
    shown = [str(step) for step in location]
    if len(shown) > 1 and shown[0] == "controller" and shown[1] in controllers():
        del shown[1]
    path = ".".join(shown)
    kind = entry["type"]
    model = _model_at(location[:-1]) if location else None
    if kind == "extra_forbidden":
        names = sorted(model.model_fields) if model else []
        absent = [str(other[-1]) for other in missing if other[:-1] == location[:-1]]
        best = _nearest(str(location[-1]), names, absent)
        hint = f"; did you mean {best}?" if best else ";"
        return f"{path}: unknown parameter (value {entry['input']!r}){hint} allowed: {', '.join(names)}"
    if kind == "missing":
        field = model.model_fields.get(str(location[-1])) if model else None
        meaning = f": {field.description}" if field is not None and field.description else ""
        return f"{path}: missing{meaning}"
    if kind == "union_tag_invalid":
        return f"{path}.policy: {entry['ctx']['tag']!r} unknown; allowed: {entry['ctx']['expected_tags']}"
    if kind == "union_tag_not_found":
        return f"{path}.policy: missing; allowed: {', '.join(map(repr, controllers()))}"
    message = str(entry["msg"]).removeprefix("Value error, ")
    if kind == "value_error":
        return f"{path}: {message}" if path else message
    return f"{path}: value {entry['input']!r}: {message}"
