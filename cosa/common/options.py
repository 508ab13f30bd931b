"""Options as types: a model whose fields say name, default, unit, range and one sentence of help, once.

Command lines (`cosa.common.parameters`), the Python API, axes of sweeps, provenance and the tables of the documentation
are made from the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin

from pydantic import BeforeValidator, Field
from pydantic.fields import FieldInfo

from cosa.common.errors import InputError
from cosa.common.files import FileModel, Model


def option(
    default: Any,
    help: str,
    *,
    unit: str | None = None,
    flag: str | None = None,
    off: str | None = None,
    metavar: str | None = None,
    complete: str | None = None,
    **limits: Any,
) -> Any:
    """A field of `Options`.

    Parameters
    ----------
    help: one sentence.
    unit: of a number.
    flag: on the command line, where it is not the field's name with dashes (several: separated by commas).
    off: the flag that switches off what is on by default.
    metavar: what stands for the value in the help of a command (default: from the type).
    complete: ``module:function`` that lists values for the shell's completion.
    limits: as `pydantic.Field` takes them (``ge``, ``gt``, ``le``, ``lt``).
    """
    extra = {"unit": unit, "flag": flag, "off": off, "metavar": metavar, "complete": complete}
    return Field(default, description=help, json_schema_extra={k: v for k, v in extra.items() if v}, **limits)


def read_by(
    name: str, from_path: Callable[[str | Path], Any], from_data: Callable[[dict[str, Any]], Any]
) -> BeforeValidator:
    """For the field of that name whose value stands in a file: it may be given as a path, as data, or as it is."""

    def read(value: Any) -> Any:
        if isinstance(value, str | Path):
            return from_path(value)
        if isinstance(value, Model):
            return value.checked(name)
        if not isinstance(value, dict):
            return value
        try:
            return from_data(value)
        except InputError as error:
            raise error.at(error.source, f"{name}.{error.path}" if error.path else name) from None

    return BeforeValidator(read)


class Options(Model):
    """Options of one thing. None means "as by default" wherever a caller gives it."""

    @classmethod
    def of(cls, values: Mapping[str, Any], source: str | None = None) -> Self:
        """Options from what was given; files named by fields are read.

        Raises
        ------
        InputError: an unknown name, or a wrong value; its `path` is the option.
        """
        given = {name: value for name, value in values.items() if value is not None}
        try:
            return cls.from_fields(given, source)
        except InputError as error:
            if error.source != source:  # in a file that an option names
                raise
            # None is what is not given; nobody has to be told that it is allowed.
            error.allowed = error.allowed and error.allowed.removesuffix(" or null")
            raise error.at(source, error.path) from None

    def with_(self, **changes: Any) -> Self:
        """The same options with changes, validated."""
        return type(self).of({name: getattr(self, name) for name in type(self).model_fields} | changes)

    def given(self) -> dict[str, Any]:
        """What differs from the defaults, as plain data; `of` makes the same options of it."""
        whole = self.model_dump(mode="json")
        return {
            name: whole[name] for name, field in type(self).model_fields.items() if getattr(self, name) != field.default
        }


def details(field: FieldInfo) -> dict[str, Any]:
    """What `option` was told of a field besides help, default and limits."""
    extra = field.json_schema_extra
    return dict(extra) if isinstance(extra, dict) else {}


def flags_of(name: str, field: FieldInfo) -> tuple[str, ...]:
    """The options of a command line: ``--gap``, ``--time-limit`` (units are left to the help)."""
    unit = details(field).get("unit", "")
    plain = name.removesuffix(f"_{unit}") if unit else name
    return tuple(str(details(field).get("flag") or "--" + plain.replace("_", "-")).split(","))


def flag_of(name: str, field: FieldInfo) -> str:
    """The first of `flags_of`."""
    return flags_of(name, field)[0]


def plain_type(annotation: Any) -> Any:
    """The type of a field without None, constraints and the forms that only files have: what a command line takes."""
    if get_origin(annotation) is Annotated:
        return plain_type(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return plain_type(next(arg for arg in get_args(annotation) if arg is not NoneType))
    return annotation


def choices_of(field: FieldInfo) -> tuple[str, ...]:
    """The words that a field allows; none for numbers, switches and files."""
    kind = plain_type(field.annotation)
    return tuple(map(str, get_args(kind))) if get_origin(kind) is Literal else ()


def is_file(field: FieldInfo) -> bool:
    """Whether the value stands in a file of its own."""
    kind = plain_type(field.annotation)
    return isinstance(kind, type) and issubclass(kind, FileModel)


def unit_and_range(model: type[Options], name: str) -> str:
    """Values that a field allows, with their unit, for tables."""
    from cosa.common.explain import allowed_values

    field = model.model_fields[name]
    words = ", ".join(choices_of(field)) or ("a file" if is_file(field) else allowed_values(model, name))
    unit = details(field).get("unit")
    return f"{words}, {unit}" if unit else words


def option_table(model: type[Options]) -> list[str]:
    """The options of a model as a Markdown table."""
    lines = ["| option | in Python, on an axis | default | values | meaning |", "|---|---|---|---|---|"]
    for name, field in model.model_fields.items():
        flags = [*flags_of(name, field), *([details(field)["off"]] if "off" in details(field) else [])]
        default = "" if field.default is None else str(field.default)
        default = default.lower() if isinstance(field.default, bool) else default
        cells = [", ".join(f"`{flag}`" for flag in flags), f"`{name}`", default, unit_and_range(model, name)]
        lines.append(f"| {' | '.join(cells)} | {field.description} |")
    return lines


@contextmanager
def flags(*models: type[Options], **others: str) -> Iterator[None]:
    """Errors that name options of the models name their flags instead; `others`: flags of further names."""
    try:
        yield
    except InputError as error:
        if error.source is None and error.path in others:
            raise error.at(others[error.path], None) from None
        raise named_by_flag(error, *models) from None


def named_by_flag(error: InputError, *models: type[Options]) -> InputError:
    """The same error as a command line says it: the option's flag in place of the field's path."""
    name, dot, rest = (error.path or "").partition(".")
    for model in models:
        field = model.model_fields.get(name)
        if field is None or error.source is not None:
            continue
        off = details(field).get("off")
        if off and error.value is False:
            return InputError(error.message, source=off, allowed=error.allowed, nearest=error.nearest)
        return error.at(flag_of(name, field), rest if dot else None)
    return error
