"""Errors a user can meet, each with the exit code of the command line."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

_MISSING: Any = object()


def shown(value: Any, width: int = 80) -> str:
    """A value as it stands in a message: one line, cut to `width`, and never a failure of its own."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested deeper, or a number longer, than Python prints
        text = f"a {type(value).__name__}"
    return text if len(text) <= width else text[: width - 3] + "..."


class FieldError(ValueError):
    """For validators of models: the field at `path`, seen from that model, is wrong. Becomes an `InputError`."""

    def __init__(self, message: str, *, path: str = "", value: Any = _MISSING, allowed: str | None = None) -> None:
        self.message, self.path, self.allowed = message, path, allowed
        self.found = {} if value is _MISSING else {"value": value}
        super().__init__(str(InputError(message, path=path, allowed=allowed, **self.found)))


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
        self.value = None if value is _MISSING else value
        self._found = {} if value is _MISSING else {"value": value}
        parts = [f"{source}: " if source else "", f"{path}: " if path else "", message]
        if value is not _MISSING:
            parts.append(f" (found {shown(value)})")
        if allowed:
            parts.append(f"; allowed: {allowed}")
        if nearest:
            parts.append(f"; did you mean {nearest}?")
        super().__init__("".join(parts))

    def at(self, source: str | None, path: str | None) -> InputError:
        """The same error of a place that goes by another name."""
        return InputError(
            self.message, source=source, path=path, allowed=self.allowed, nearest=self.nearest, **self._found
        )


class InfeasibleError(CosaError):
    """No schedule, or not this one, fits the architecture; the message names the binding constraint."""

    exit_code = 1


class SolverError(CosaError):
    """The solver ended without an answer (time limit, interruption or a fault of its own)."""

    exit_code = 1


class InternalError(CosaError):
    """The program contradicts itself: a fault of this package, never of the input; the message has what to report."""

    exit_code = 70  # EX_SOFTWARE of sysexits.h


def nearest_of(word: str, choices: list[str] | tuple[str, ...]) -> str | None:
    """The choice most like `word` (case counts last), or None when nothing is near."""
    word = str(word)
    near = get_close_matches(word, choices, n=1, cutoff=0.6)
    if near:
        return near[0]
    folded = {choice.lower(): choice for choice in choices}
    near = get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    return folded[near[0]] if near else None
