"""Errors a user can meet, each with the exit code of the command line."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any


class CosaError(Exception):
    """Base of all errors that end a command with one clear message."""

    exit_code = 2


class InputError(CosaError):
    """A file, field or option is wrong.

    Parameters
    ----------
    message: what is wrong.
    source: file (or option) in which it stands.
    path: path of the field, such as ``levels[3].capacity_words``.
    value: the value found; left out of the message when it is not given.
    allowed: what would be valid.
    nearest: the nearest valid thing, where there is one.
    """

    exit_code = 2
    _MISSING = object()

    def __init__(
        self,
        message: str,
        *,
        source: str | None = None,
        path: str | None = None,
        value: Any = _MISSING,
        allowed: str | None = None,
        nearest: str | None = None,
    ) -> None:
        self.message, self.source, self.path, self.allowed, self.nearest = message, source, path, allowed, nearest
        self.value = None if value is InputError._MISSING else value
        parts = [f"{source}: " if source else "", f"{path}: " if path else "", message]
        if value is not InputError._MISSING:
            shown = repr(value)
            parts.append(f" (found {shown if len(shown) <= 80 else shown[:77] + '...'})")
        if allowed:
            parts.append(f"; allowed: {allowed}")
        if nearest:
            parts.append(f"; did you mean {nearest}?")
        super().__init__("".join(parts))


class InfeasibleError(CosaError):
    """No schedule, or not this one, fits the architecture; the message names the binding constraint."""

    exit_code = 1


class SolverError(CosaError):
    """The solver ended without an answer (time limit, interruption or a fault of its own)."""

    exit_code = 1


def nearest_of(word: str, choices: list[str] | tuple[str, ...]) -> str | None:
    """The choice most like `word`, or None when nothing is near."""
    near = get_close_matches(word, choices, n=1, cutoff=0.6)
    return near[0] if near else None
