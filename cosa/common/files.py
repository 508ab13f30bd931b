"""Reading models from YAML and JSON with errors that name file, field, value and choices; atomic writing."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Self

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from cosa.common.errors import FieldError, InputError, nearest_of

MAX_DEPTH = 64
MAX_ENTRIES = 200_000
MAX_NUMBER_BITS = 10_000


def _not_equal_but_other(value: Any) -> Any:
    if isinstance(value, bool | float):
        raise FieldError("not a whole number")
    return value


WHOLE = BeforeValidator(_not_equal_but_other)
"""For literal whole numbers: a literal compares with ``==``, so it would take true for 1 and 64.0 for 64."""


class Model(BaseModel):
    """Base of every noun: frozen, no unknown keys, no silent conversion.

    In Python it takes what its file may hold as well: lists, mappings for the models inside, and numbers of numpy. What
    is wrong ends in the same error.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def __init__(self, /, **fields: Any) -> None:
        self.from_fields(fields, type(self).__name__, self)

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # validation does the same, and need not call it

    @classmethod
    def from_fields(cls, fields: dict[str, Any], source: str | None = None, instance: Self | None = None) -> Self:
        """What the constructor makes of `fields`; `source` is named in errors, `instance` is what is filled.

        Raises
        ------
        InputError: with the first field that is wrong.
        """
        try:
            made: Self = cls.__pydantic_validator__.validate_python(fields, self_instance=instance)
            return made
        except ValidationError:
            return cls._of_plain(fields, source, instance)

    @classmethod
    def from_data(cls, data: Any, source: str | None = None) -> Self:
        """Validate plain data (as YAML or JSON gives it); `source` is named in errors.

        Raises
        ------
        InputError: with the first field that is wrong.
        """
        return cls._of_plain(data, source)

    @classmethod
    def _of_plain(cls, data: Any, source: str | None, instance: Self | None = None) -> Self:
        kind = getattr(cls.model_fields.get("kind"), "default", None) if issubclass(cls, FileModel) else None
        plain = plain_data(data, source)
        if not isinstance(plain, dict):
            allowed = "a mapping of keys to values" + (f" (a file of kind {kind})" if kind else "")
            raise InputError("not a mapping", source=source, value=plain, allowed=allowed)
        if kind and plain.get("kind", kind) != kind:
            raise InputError("wrong kind of file", source=source, path="kind", value=plain["kind"], allowed=repr(kind))
        try:
            # Through JSON, so that lists become tuples while strict typing stays on.
            made: Self = cls.__pydantic_validator__.validate_json(json.dumps(plain), self_instance=instance)
            return made
        except ValidationError as error:
            from cosa.common.explain import input_error

            raise input_error(cls, plain, error, source) from None

    def with_(self, **changes: Any) -> Self:
        """A copy with other fields, validated as a whole.

        A mapping for a field that is a model changes what it names and leaves the rest of that model:
        ``architecture.with_(machine={"reduction": "tree"})``.

        Raises
        ------
        InputError: no such field, or the copy would break a rule.
        """
        fields = self._fields() | changes
        for name, value in changes.items():
            if isinstance(value, Mapping) and isinstance(part := getattr(self, name, None), Model):
                fields[name] = part._fields() | dict(value)
        return self._hand_on(type(self)(**fields))

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in type(self).model_fields}

    def checked(self, source: str | None = None) -> Self:
        """The same validated anew, for entrances: `model_copy` and `model_construct` make copies that nobody checked.

        Raises
        ------
        InputError: it breaks a rule.
        """
        try:
            copy = self.model_validate_json(self.model_dump_json(warnings=False))
        except ValueError:
            copy = self.from_data(self.model_dump(warnings=False), source or type(self).__name__)
        return self._hand_on(copy)

    def _hand_on(self, copy: Self) -> Self:
        """The copy, with what is known of the original besides its fields: the file it stood in."""
        if self.__pydantic_private__:
            object.__setattr__(copy, "__pydantic_private__", dict(self.__pydantic_private__))
        return copy

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with changes that are not validated (see `with_`); what was computed of fields is computed anew."""
        copied = super().model_copy(update=update, deep=deep)
        for name in set(copied.__dict__) - set(type(self).model_fields):
            del copied.__dict__[name]
        return copied


class FileModel(Model):
    """A noun that has a file of its own."""

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read a YAML (``.yaml``, ``.yml``) or JSON file.

        Raises
        ------
        InputError: the file is missing, is not YAML or JSON, or a field is wrong.
        """
        return cls.from_data(read_data(path), source=str(path))

    @classmethod
    def from_argument(cls, value: Any, read: Callable[[str | Path], Self] | None = None, or_by: str = "") -> Self:
        """A noun as a caller gives it: itself (checked anew), its data, or a path.

        Parameters
        ----------
        read: what makes one of a name or path (None: `from_file`); `or_by` says what else it takes.

        Raises
        ------
        InputError: none of these, or what it says is wrong.
        """
        if isinstance(value, cls):
            return value.checked()
        name = cls.__name__.lower()
        if isinstance(value, Mapping):
            return cls.from_data(value, name)
        if isinstance(value, str | os.PathLike):
            return (read or cls.from_file)(value if isinstance(value, str) else Path(value))
        article = "an" if name[0] in "aeiou" else "a"
        allowed = f"{article} {cls.__name__}, its data, {or_by}or the path of its file"
        raise InputError(f"not {article} {name}", path=name, value=value, allowed=allowed)

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


def plain_data(data: Any, source: str | None, path: str = "") -> Any:
    """`data` as JSON can hold it: models, paths, numbers and arrays of numpy, any sequence.

    Raises
    ------
    InputError: it can't be, or references among YAML nodes make it endless; `path` is where it stands.
    """
    left = MAX_ENTRIES

    def copy(value: Any, depth: int, path: str) -> Any:
        nonlocal left
        left -= 1
        if depth > MAX_DEPTH or left < 0:
            limit = f"at most {MAX_DEPTH} levels" if depth > MAX_DEPTH else f"at most {MAX_ENTRIES} entries"
            raise InputError("nested too deeply" if depth > MAX_DEPTH else "too large", source=source, allowed=limit)
        if isinstance(value, str):
            try:
                value.encode()
            except UnicodeEncodeError:
                allowed = "Unicode text without lone surrogates"
                raise InputError("not text", source=source, path=path or None, value=value, allowed=allowed) from None
            return value
        if isinstance(value, int) and value.bit_length() > MAX_NUMBER_BITS:
            allowed = f"at most {MAX_NUMBER_BITS} bits"
            raise InputError("a number with far too many digits", source=source, path=path, allowed=allowed)
        if value is None or isinstance(value, int | float):
            return value
        if isinstance(value, Mapping):
            for key in value:
                copy(str(key), depth, path)
            return {
                str(key): copy(inner, depth + 1, f"{path}.{key}" if path else str(key)) for key, inner in value.items()
            }
        if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
            return [copy(inner, depth + 1, f"{path}[{index}]") for index, inner in enumerate(value)]
        if isinstance(value, Model):
            return copy(value.model_dump(warnings=False), depth, path)
        if isinstance(value, os.PathLike):
            return copy(os.fspath(value), depth, path)
        if hasattr(value, "tolist"):  # of numpy, which need not be loaded to be told
            return copy(value.tolist(), depth, path)
        allowed = "numbers, text, true, false, null, lists and mappings"
        raise InputError("not plain data", source=source, path=path or None, value=value, allowed=allowed)

    return copy(data, 0, path)


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
    if not isinstance(path, str | os.PathLike):
        raise InputError("not a file", value=path, allowed="its path")
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
