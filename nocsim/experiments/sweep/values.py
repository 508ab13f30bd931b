"""Values of axes: the files that they name, and errors that name the sweep and the axis."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cosa.common.errors import InputError

if TYPE_CHECKING:
    from nocsim.experiments.sweep.spec import Sweep


def located(sweep: Sweep, value: Any) -> Any:
    """The path of a file that stands beside the sweep; any other value as it is."""
    if isinstance(value, str) and sweep.folder is not None and (sweep.folder / value).is_file():
        return sweep.folder / value
    return value


def axis_error(sweep: Sweep, axis: str, message: str, **more: Any) -> InputError:
    """What is wrong with an axis; `more` as `InputError` takes it."""
    return InputError(message, source=sweep.source, path=f"axes.{axis}", **more)


@contextmanager
def naming(sweep: Sweep, axis: str, value: Any) -> Iterator[None]:
    """What is said of a value elsewhere, of a file or of an option of another command, as an error of its axis."""
    try:
        yield
    except InputError as error:
        if error.source is None or error.source.startswith("--"):
            more = {"value": value, "allowed": error.allowed, "nearest": error.nearest}
            raise axis_error(sweep, axis, error.message, **more) from None
        raise axis_error(sweep, axis, str(error)) from None
