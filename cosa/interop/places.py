"""Where in a file something stands, so that every error can name it; and notes on what a reader leaves aside."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cosa.common.errors import InputError, nearest_of
from cosa.interop.unused import is_neutral

_MISSING: Any = object()

MAX_WHOLE = 2**62


@dataclass(frozen=True)
class Where:
    """A place in a file: the file's name, the path of the field, and what was collected while reading the file.

    `notes` are for the user; `unused` are keys that carry no meaning here, `uncounted` the paths of those that would
    change a result; `ignored` are keys that the user wants left aside whatever they are.
    """

    source: str
    path: str = ""
    notes: list[str] = field(default_factory=list, compare=False)
    unused: dict[str, None] = field(default_factory=dict, compare=False)
    uncounted: dict[str, Any] = field(default_factory=dict, compare=False)
    ignored: frozenset[str] = frozenset()

    def at(self, key: str | int) -> Where:
        """The place of a key or of an entry of a list."""
        if isinstance(key, int):
            return replace(self, path=f"{self.path}[{key}]")
        return replace(self, path=f"{self.path}.{key}" if self.path else key)

    def error(
        self, message: str, *, value: Any = _MISSING, allowed: str | None = None, nearest: str | None = None
    ) -> InputError:
        """The error to raise for this place."""
        found = {} if value is _MISSING else {"value": value}
        return InputError(
            message, source=self.source, path=self.path or None, allowed=allowed, nearest=nearest, **found
        )

    def note(self, text: str) -> None:
        """Something the user should know though it is no error; said once."""
        line = f"{self.path}: {text}" if self.path else text
        if line not in self.notes:
            self.notes.append(line)

    def leave_aside(self, key: str, value: Any) -> None:
        """A key of this place that is not used; one that would change a result is remembered for whom it concerns."""
        self.unused[key] = None
        if key not in self.ignored and not is_neutral(key, value):
            self.uncounted[self.at(key).path] = value

    def all_notes(self) -> tuple[str, ...]:
        """The notes, and one that names all keys left aside."""
        return (*self.notes, f"not used: {', '.join(self.unused)}") if self.unused else tuple(self.notes)


def mapping_of(value: Any, where: Where) -> dict[str, Any]:
    """`value` as a mapping of keys to values; nothing at all counts as an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise where.error("not a mapping", value=value, allowed="a mapping of keys to values")
    return value


def list_of(value: Any, where: Where) -> list[Any]:
    """`value` as a list; nothing at all counts as an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise where.error("not a list", value=value, allowed="a list")
    return value


def text_of(value: Any, where: Where) -> str:
    """`value` as text; a number stands for its digits (names may be numbers)."""
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        raise where.error("not a name", value=value, allowed="text")
    return str(value).strip()


def names_of(value: Any, where: Where) -> tuple[str, ...]:
    """A list of names; one name alone is a list of one."""
    if isinstance(value, str):
        return tuple(value.replace(",", " ").split())
    return tuple(text_of(entry, where.at(number)) for number, entry in enumerate(list_of(value, where)))


def whole_of(value: Any, where: Where, at_least: int = 1) -> int:
    """A whole number of at least `at_least`; a float without fraction is one."""
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not at_least <= value <= MAX_WHOLE:
        raise where.error("not a whole number in range", value=value, allowed=f"a whole number >= {at_least}")
    return value


def number_of(value: Any, where: Where) -> float:
    """A finite number >= 0 (whole numbers stay whole)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise where.error("not a number in range", value=value, allowed="a number >= 0")
    return value


def check_keys(
    entries: Mapping[str, Any], where: Where, used: Collection[str], unused: Collection[str] = (), what: str = "key"
) -> None:
    """Every key is one that is used, or one of the format's that carries no meaning here, which is noted.

    Raises
    ------
    InputError: a key that the format does not have.
    """
    for key, value in entries.items():
        if key in used:
            continue
        if key not in unused and key not in where.ignored:
            nearest = nearest_of(key, sorted([*used, *unused]))
            raise where.at(key).error(f"unknown {what}", allowed=", ".join(sorted(used)), nearest=nearest)
        where.leave_aside(key, value)


def check_misspelt(entries: Mapping[str, Any], where: Where, known: Collection[str], meaning: Collection[str]) -> None:
    """For places where any key may stand (attributes that Timeloop hands on to its energy estimator).

    Raises
    ------
    InputError: a key that looks like one that counts here, misspelt.
    """
    folded = {key.replace("_", "").lower(): key for key in meaning}
    for key, value in entries.items():
        if key in meaning:
            continue
        where.leave_aside(key, value)
        if key in known or key in where.ignored:
            continue
        near = difflib.get_close_matches(key.replace("_", "").lower(), folded, n=1, cutoff=0.87)
        if near:
            allowed = ", ".join(sorted(meaning))
            raise where.at(key).error("unknown attribute", allowed=allowed, nearest=folded[near[0]])
