"""The mapper's options at a place on the axes of a sweep: its own model says what there is and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cosa.common.errors import InputError
from cosa.common.options import is_file
from cosa.mappers.registry import MapperOptions, every_mapper, find_mapper, options_of
from nocsim.experiments.sweep.values import axis_error, located

if TYPE_CHECKING:
    from nocsim.experiments.sweep.spec import Sweep


def option_names(mapper: str) -> list[str]:
    """Names that ``options.NAME`` may have with a mapper."""
    return [name for name in find_mapper(mapper).options.model_fields if name not in ("objective", "threads")]


def checked_options(sweep: Sweep, mapper: str | None, objective: Any, given: Mapping[str, Any]) -> MapperOptions:
    """Options of a mapper, files read (one that stands beside the sweep comes first).

    Parameters
    ----------
    mapper: None if the sweep names none.
    objective, given: as they stand on the axes; None (null in a file) is as if it were not there.

    Raises
    ------
    InputError: no such mapper, objective or option, or a value or file is wrong; the axis is named.
    """
    files = {name for one in every_mapper() for name, field in one.options.model_fields.items() if is_file(field)}
    values = {name: located(sweep, value) if name in files else value for name, value in given.items()}
    if values.get("threads") is not None:
        raise axis_error(sweep, "options.threads", "a point has one core", value=values["threads"], allowed="nothing")
    try:
        return options_of(mapper, {"objective": objective, **values})
    except InputError as error:
        if error.source is None:
            raise of_axis(sweep, error) from None
        read = [one for one in files if values.get(one) is not None and str(values[one]) == error.source]
        raise axis_error(sweep, f"options.{read[0] if read else ''}", str(error)) from None


def of_axis(sweep: Sweep, error: InputError) -> InputError:
    """An error that names an option, as one of its axis."""
    name, _, inner = (error.path or "").partition(".")
    axis = name if name in ("mapper", "objective") else f"options.{name}"
    return error.at(sweep.source, f"axes.{axis}" + (f".{inner}" if inner else ""))
