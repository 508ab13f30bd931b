"""Reading models from YAML and JSON with errors that name file, field, value and choices; atomic writing."""

from __future__ import annotations

import json
import os
import tempfile
import typing
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from cosa.errors import InputError, nearest_of

ModelT = TypeVar("ModelT", bound="FileModel")


class Model(BaseModel):
    """Base of every noun: frozen, no unknown keys, no silent conversion."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class FileModel(Model):
    """A noun that has a file of its own."""

    @classmethod
    def from_file(cls: type[ModelT], path: str | Path) -> ModelT:
        """Read a YAML (``.yaml``, ``.yml``) or JSON file.

        Raises
        ------
        InputError: the file is missing, is not YAML or JSON, or a field is wrong.
        """
        return cls.from_data(read_data(path), source=str(path))

    @classmethod
    def from_data(cls: type[ModelT], data: Any, source: str | None = None) -> ModelT:
        """Validate plain data (as YAML or JSON gives it); `source` is named in errors."""
        kind = getattr(cls.model_fields.get("kind"), "default", None)
        if not isinstance(data, dict):
            raise InputError("not a mapping of keys to values", source=source, allowed=f"a {kind} file")
        if kind and data.get("kind", kind) != kind:
            raise InputError("wrong kind of file", source=source, path="kind", value=data["kind"], allowed=repr(kind))
        try:
            # Through JSON, so that lists become tuples while strict typing stays on.
            return cls.model_validate_json(json.dumps(data, default=str))
        except ValidationError as error:
            raise _input_error(cls, error, source) from None

    def to_json(self, **dump: Any) -> str:
        """JSON text, one canonical form (two spaces, field order of the model)."""
        return self.model_dump_json(indent=2, **dump) + "\n"

    def to_file(self, path: str | Path, **dump: Any) -> None:
        """Write YAML or JSON by the file's ending; the file appears whole or not at all."""
        if Path(path).suffix in (".yaml", ".yml"):
            data = self.model_dump(mode="json", **dump)
            write_atomic(path, yaml.safe_dump(data, sort_keys=False, width=120))
        else:
            write_atomic(path, self.to_json(**dump))


class _UniqueKeyLoader(yaml.SafeLoader):
    """Safe loader that refuses a key given twice (plain YAML keeps the last one in silence)."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                key = str(key)
            if key in seen:
                raise yaml.MarkedYAMLError(problem=f"key {key!r} is given twice", problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {twice!r} is given twice")
    return data


def read_text(path: str | Path) -> str:
    """Text of a file; InputError when it can't be read."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        folder = Path(path).parent
        names = [p.name for p in folder.iterdir()] if folder.is_dir() else []
        raise InputError("no such file", source=str(path), nearest=nearest_of(Path(path).name, names)) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise InputError(f"cannot be read: {reason}", source=str(path)) from None


def read_data(path: str | Path) -> Any:
    """Plain data of a YAML or JSON file."""
    text = read_text(path)
    try:
        if Path(path).suffix == ".json":
            return json.loads(text, object_pairs_hook=_unique_pairs)
        return yaml.load(text, Loader=_UniqueKeyLoader)
    except json.JSONDecodeError as error:
        raise InputError(
            f"not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}", source=str(path)
        ) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise InputError(f"not valid YAML or JSON{where}: {problem}", source=str(path)) from None


def write_atomic(path: str | Path, text: str) -> None:
    """Write `text` so that the file appears whole or not at all.

    Raises
    ------
    InputError: the place can't be written.
    """
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            # A pipe or /dev/stdout can't be replaced by renaming.
            if target.is_dir():
                raise IsADirectoryError(0, "it is a folder")
            target.write_text(text, encoding="utf-8")
            return
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
            # mkstemp makes private files; give the result the usual mode.
            mask = os.umask(0)
            os.umask(mask)
            Path(temporary).chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~mask)
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", source=str(path)) from None


def _dotted(location: tuple[int | str, ...]) -> str:
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else (f".{part}" if path else part)
    return path


def _known_keys(model: Any, location: tuple[int | str, ...]) -> list[str]:
    """Field names valid at `location` inside `model` (empty when that can't be told)."""
    for part in location:
        if isinstance(part, int):
            continue
        field = getattr(model, "model_fields", {}).get(part)
        if field is None:
            continue
        model = _inner_model(field.annotation)
    return list(getattr(model, "model_fields", {}))


def _inner_model(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in typing.get_args(annotation):
        found = _inner_model(argument)
        if found is not None:
            return found
    return None


def _allowed(item: ErrorDetails) -> str | None:
    context = item.get("ctx", {})
    kind = item["type"]
    if kind == "literal_error":
        return str(context["expected"])
    limits = {"greater_than_equal": ("ge", ">="), "greater_than": ("gt", ">")}
    limits |= {"less_than_equal": ("le", "<="), "less_than": ("lt", "<")}
    if kind in limits:
        key, sign = limits[kind]
        return f"{sign} {context[key]}"
    words = {"int": "a whole number", "float": "a number", "string": "text", "bool": "true or false"}
    for name, word in words.items():
        if kind.startswith(name + "_"):
            return word
    if kind in ("tuple_type", "list_type"):
        return "a list"
    return None


def _input_error(model: type[Model], error: ValidationError, source: str | None) -> InputError:
    items = error.errors(include_url=False)
    item = items[0]
    # Union branches add their own names to the location; a field path holds only keys and numbers.
    location = tuple(part for part in item["loc"] if isinstance(part, int) or "[" not in part)
    allowed, nearest = _allowed(item), None
    kwargs: dict[str, Any] = {}
    if item["type"] == "extra_forbidden":
        known = _known_keys(model, location[:-1])
        message = "unknown key"
        allowed = ", ".join(known) if known else None
        nearest = nearest_of(str(location[-1]), known)
    elif item["type"] == "missing":
        message = "missing"
    else:
        message = item["msg"].removeprefix("Value error, ")
        if location:
            kwargs["value"] = item["input"]
        if allowed:
            message = "not valid"
    if len(items) > 1:
        message += f" [and {len(items) - 1} more]"
    path = _dotted(location) or None
    return InputError(message, source=source, path=path, allowed=allowed, nearest=nearest, **kwargs)
