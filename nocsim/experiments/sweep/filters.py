"""Conditions on points (``pes <= 64``, ``levels.GlobalBuffer.capacity_words >= 4 * noc.fifo_flits``).

A name may have no value at a point: `pes` of an architecture without a mesh, a field that is null. A condition that
cannot be told without it (`cosa.common.expressions`) is not met.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cosa.common.errors import InputError
from cosa.common.expressions import Language, NotAnExpressionError, read

_ALLOWED = "names of axes and fields, numbers, 'text', + - * / // %, comparisons, in, and, or, not"
_MOST_CHARACTERS = 1000

Lookup = Callable[[str], Any]
"""The value of a name at a point; InputError if there is no such name."""


class Condition:
    """A condition as it stands in a sweep file, read once; `holds` asks it of a point.

    Raises
    ------
    InputError: the text is not such a condition.
    """

    def __init__(self, text: str, source: str | None, path: str) -> None:
        self._text, self._source, self._path = text, source, path
        try:
            self._tree = read(text, _MOST_CHARACTERS)
        except NotAnExpressionError:
            raise self._error("not a condition", "such as pes <= 64") from None

    def holds(self, lookup: Lookup) -> bool:
        """Whether a point meets it.

        Raises
        ------
        InputError: a name is unknown, or the condition is not true or false.
        """
        try:
            found = Language(lookup, conditions=True).value(self._tree)
        except InputError as error:
            message = f"{error.path or 'a name'}: {error.message}"
            raise self._error(message, None, nearest=error.nearest) from None
        except NotAnExpressionError:
            raise self._error("a condition that cannot be read", _ALLOWED) from None
        except (ArithmeticError, TypeError) as error:
            raise self._error(f"cannot be computed ({error})", None) from None
        if found is None:
            return False
        if not isinstance(found, bool):
            raise self._error(f"neither true nor false but {found!r}", "a comparison, such as pes <= 64")
        return found

    def _error(self, message: str, allowed: str | None, nearest: str | None = None) -> InputError:
        return InputError(
            message, source=self._source, path=self._path, value=self._text, allowed=allowed, nearest=nearest
        )
