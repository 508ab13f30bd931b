"""Reading models from YAML and JSON with errors that name file, field, value and choices; atomic writing."""

from __future__ import annotations

import json
import numbers
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic._internal._model_construction import ModelMetaclass

from cosa.common.errors import FieldError, InputError, nearest_of

ModelT = TypeVar("ModelT", bound="FileModel")

MAX_DEPTH = 64
MAX_ENTRIES = 200_000
MAX_NUMBER_BITS = 10_000


def _not_equal_but_other(value: Any) -> Any:
    if isinstance(value, bool | float):
        raise FieldError("not a whole number")
    return value


WHOLE = BeforeValidator(_not_equal_but_other)
"""For literal whole numbers: a literal compares with ``==``, so it would take true for 1 and 64.0 for 64."""


def _plain_numbers(value: Any) -> Any:
    """Whole and real numbers of other libraries (numpy's) as Python's own."""
    if isinstance(value, dict):
        return {key: _plain_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_plain_numbers, value)) if type(value) in (list, tuple) else value
    if isinstance(value, numbers.Integral) and not isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, numbers.Real) and not isinstance(value, int | float) else value


class _ModelClass(ModelMetaclass):
    """Calling a model, ``Layer(K=0)``, says what is wrong as reading a file does."""

    def __call__(cls, *arguments: Any, **values: Any) -> Any:  # noqa: N805
        try:
            return super().__call__(*arguments, **values)
        except ValidationError:
            values = _plain_numbers(values)  # only here: searches make thousands of loops a second
        try:
            return super().__call__(*arguments, **values)
        except ValidationError as error:
            from cosa.common.explain import input_error

            raise input_error(cls, values, error, cls.__name__) from None  # type: ignore[arg-type]


class Model(BaseModel, metaclass=_ModelClass):
    """Base of every noun: frozen, no unknown keys, no silent conversion."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with changes; what the original has computed from its fields is computed anew."""
        copied = super().model_copy(update=update, deep=deep)
        for name in set(copied.__dict__) - set(type(self).model_fields):
            del copied.__dict__[name]
        return copied


class FileModel(Model):
    """A noun that has a file of its own."""

    def with_(self, **changes: Any) -> Self:
        """The same with other fields, all validated.

        Raises
        ------
        InputError: a field is wrong.
        """
        return type(self).from_data(self.model_dump(mode="json") | _plain_numbers(changes), type(self).__name__)

    def checked(self) -> Self:
        """Itself, validated anew: `model_copy` checks nothing.

        Raises
        ------
        InputError: a field is wrong.
        """
        self.from_data(self.model_dump(mode="json"), type(self).__name__)
        return self

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
        plain = _plain(data, source)
        if not isinstance(plain, dict):
            allowed = f"a mapping of keys to values (a file of kind {kind})"
            raise InputError("not a mapping", source=source, value=plain, allowed=allowed)
        if kind and plain.get("kind", kind) != kind:
            raise InputError("wrong kind of file", source=source, path="kind", value=plain["kind"], allowed=repr(kind))
        try:
            # Through JSON, so that lists become tuples while strict typing stays on.
            return cls.model_validate_json(json.dumps(plain))
        except ValidationError as error:
            from cosa.common.explain import input_error

            raise input_error(cls, plain, error, source) from None

    def to_json(self, **dump: Any) -> str:
        """JSON text, one canonical form (two spaces, field order of the model)."""
        return self.model_dump_json(indent=2, **dump) + "\n"

    def to_file(self, path: str | Path, **dump: Any) -> None:
        """Write YAML or JSON by the file's ending; the file appears whole or not at all."""
        if Path(path).suffix in (".yaml", ".yml"):
            data = self.model_dump(mode="json", **dump)
            write_atomic(path, dump_yaml(data))
        else:
            write_atomic(path, self.to_json(**dump))


def _plain(data: Any, source: str | None) -> Any:
    """`data` as JSON can hold it; InputError where it can't, or where references among YAML nodes make it endless."""
    left = MAX_ENTRIES

    def copy(value: Any, depth: int, path: str) -> Any:
        nonlocal left
        left -= 1
        if depth > MAX_DEPTH or left < 0:
            limit = f"at most {MAX_DEPTH} levels" if depth > MAX_DEPTH else f"at most {MAX_ENTRIES} entries"
            raise InputError("nested too deeply" if depth > MAX_DEPTH else "too large", source=source, allowed=limit)
        if isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                allowed = "Unicode text without lone surrogates"
                raise InputError("not text", source=source, path=path or None, value=value, allowed=allowed) from None
        if isinstance(value, dict):
            for key in value:
                copy(str(key), depth, path)
            return {
                str(key): copy(inner, depth + 1, f"{path}.{key}" if path else str(key)) for key, inner in value.items()
            }
        if isinstance(value, list | tuple):
            return [copy(inner, depth + 1, f"{path}[{index}]") for index, inner in enumerate(value)]
        if isinstance(value, int) and value.bit_length() > MAX_NUMBER_BITS:
            allowed = f"at most {MAX_NUMBER_BITS} bits"
            raise InputError("a number with far too many digits", source=source, path=path, allowed=allowed)
        if value is None or isinstance(value, str | int | float):
            return value
        allowed = "numbers, text, true, false, null, lists and mappings"
        raise InputError("not plain data", source=source, path=path or None, value=value, allowed=allowed)

    return copy(data, 0, "")


class _Loader(yaml.SafeLoader):
    """Safe loader that refuses a key given twice (plain YAML keeps the last one in silence)."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be text", problem_mark=key_node.start_mark)
            if key_node.value in seen:
                problem = f"key {key_node.value!r} is given twice"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key_node.start_mark)
            seen.add(key_node.value)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """Safe dumper that quotes the texts which `_Loader` would take for numbers."""


# Dates stay the text they are, and 1e-3 is a number as in JSON and YAML 1.2 (YAML 1.1 wants 1.0e-3).
_Loader.yaml_implicit_resolvers = {
    letter: [entry for entry in entries if entry[0] != "tag:yaml.org,2002:timestamp"]
    for letter, entries in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _side in (_Loader, _Dumper):
    _side.add_implicit_resolver(
        "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
    )


def dump_yaml(data: Any) -> str:
    """YAML text of plain data, keys in their order."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)


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
        raise InputError("no such file", source=str(path), nearest=_neighbour(Path(path))) from None
    except UnicodeDecodeError:
        raise InputError("cannot be read: not UTF-8 text", source=str(path)) from None
    except OSError as error:
        raise InputError(f"cannot be read: {_reason(error)}", source=str(path)) from None


def _neighbour(path: Path) -> str | None:
    """Name of the file in the same folder that is most like the one asked for."""
    try:
        return nearest_of(path.name, [entry.name for entry in path.parent.iterdir()])
    except OSError:
        return None


def _reason(error: OSError) -> str:
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]


def read_data(path: str | Path) -> Any:
    """Plain data of a YAML or JSON file."""
    text, source = read_text(path), str(path)
    if not text.strip():
        raise InputError("the file is empty", source=source)
    kind = "JSON" if Path(path).suffix.lower() == ".json" else "YAML"
    try:
        if kind == "JSON":
            return json.loads(text, object_pairs_hook=_unique_pairs)
        return yaml.load(text, Loader=_Loader)
    except json.JSONDecodeError as error:
        where = f"at line {error.lineno}, column {error.colno}"
        raise InputError(f"not valid JSON {where}: {error.msg}", source=source) from None
    except RecursionError:
        allowed = f"at most {MAX_DEPTH} levels"
        raise InputError("nested too deeply", source=source, allowed=allowed) from None
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        if "integer string conversion" in problem:
            problem = "a number with far too many digits"
        raise InputError(f"not valid {kind}{where}: {' '.join(str(problem).split())}", source=source) from None


def require_writable(path: str | Path) -> None:
    """InputError when `write_atomic` could not write there; call it before work that would be lost. Leaves no trace."""
    try:
        target = _final(path)
        if target.exists() and not target.is_file():
            _require_not_folder(target)
            return
        _require_not_protected(target)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".cosa-", suffix=".tmp")
        os.close(handle)
        Path(temporary).unlink()
    except OSError as error:
        raise _unwritable(path, error) from None


def prepared_folder(folder: Path, names: Sequence[str]) -> Path:
    """The folder, made if need be, in which all these files can be written.

    Raises
    ------
    InputError: it can't be made, or a file can't be written there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be made a folder: {_reason(error)}", source=str(folder)) from None
    for name in names:
        require_writable(folder / name)
    return folder


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """A stream for a file that appears whole or not at all, also when it is too large to be held in memory.

    It goes into a temporary file beside `path`, which takes its place at the end of the block. If the block raises,
    `path` is left as it was. Pipes and devices are written as they are, a symbolic link stays one.

    Raises
    ------
    InputError: the place can't be written.
    """
    try:
        target = _final(path)
        if target.exists() and not target.is_file():
            # A pipe or /dev/stdout can't be replaced by renaming.
            _require_not_folder(target)
            with target.open("wb") as stream:
                yield stream
            return
        _require_not_protected(target)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".cosa-", suffix=".tmp")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as stream:
                yield stream
            # mkstemp makes private files; give the result the usual mode.
            mask = os.umask(0)
            os.umask(mask)
            temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~mask)
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _unwritable(path, error) from None


def write_atomic(path: str | Path, text: str) -> None:
    """Write `text` so that the file appears whole or not at all.

    Raises
    ------
    InputError: the place can't be written.
    """
    with whole_file(path) as stream:
        stream.write(text.encode())


def file_stems(names: Sequence[str], taken: Sequence[str] = ()) -> list[str]:
    """A stem of a file for each name: the name where that is one, all different (in any case) and none of `taken`."""
    found: list[str] = []
    used = {stem.lower() for stem in taken}
    for name in names:
        first = stem = re.sub(r"[^A-Za-z0-9._+-]+", "_", name).strip("._")[:100] or "layer"
        number = 2
        while stem.lower() in used:
            stem, number = f"{first}_{number}", number + 1
        used.add(stem.lower())
        found.append(stem)
    return found


def _final(path: str | Path) -> Path:
    """The file behind a symbolic link, so that writing keeps the link."""
    target = Path(path)
    return (
        Path(os.path.realpath(target)) if target.is_symlink() and (target.is_file() or not target.exists()) else target
    )


def _require_not_folder(target: Path) -> None:
    if target.is_dir():
        raise IsADirectoryError(0, "it is a folder")


def _require_not_protected(target: Path) -> None:
    """Renaming over a write-protected file would succeed, which is not what its owner meant."""
    if target.exists() and not (target.stat().st_mode & 0o222 and os.access(target, os.W_OK)):
        raise PermissionError(0, "the file is write-protected")


def _unwritable(path: str | Path, error: OSError) -> InputError:
    reason = "its folder does not exist" if isinstance(error, FileNotFoundError) else _reason(error)
    return InputError(f"cannot be written: {reason}", source=str(path))
