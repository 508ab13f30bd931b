"""Conditions on points (``pes <= 64``, ``levels.GlobalBuffer.capacity_words >= 4 * noc.fifo_flits``).

A name may have no value at a point: `pes` of an architecture without a mesh, a field that is null. What is computed
from it, or compared by size, is unknown then, and so is what `and`, `or` and `not` cannot tell without it (None below,
as NULL in SQL). A condition that is unknown is not met.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from typing import Any

from cosa.common.errors import InputError
from cosa.interop.expressions import BINARY

_BY_SIZE = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
}
_ALLOWED = "names of axes and fields, numbers, 'text', + - * / // %, comparisons, in, and, or, not"
_MOST_CHARACTERS = 1000

Lookup = Callable[[str], Any]
"""The value of a name at a point; InputError if there is no such name."""


def _compared(op: ast.cmpop, left: Any, right: Any) -> bool | None:
    if isinstance(op, _BY_SIZE) and (left is None or right is None):
        return None
    return bool(_COMPARE[type(op)](left, right))


def _together(parts: Iterable[Any], every: bool) -> bool | None:
    """`and` (`every`) or `or` of parts that may be unknown; those behind one that decides are not looked at."""
    unknown = False
    for part in parts:
        if part is None:
            unknown = True
        elif bool(part) is not every:
            return not every
    return None if unknown else every


class Condition:
    """A condition as it stands in a sweep file, read once; `holds` asks it of a point.

    Raises
    ------
    InputError: the text is not such a condition.
    """

    def __init__(self, text: str, source: str | None, path: str) -> None:
        self._text, self._source, self._path = text, source, path
        try:
            if len(text) > _MOST_CHARACTERS:
                raise ValueError
            self._tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self._error("not a condition", "such as pes <= 64") from None

    def holds(self, lookup: Lookup) -> bool:
        """Whether a point meets it.

        Raises
        ------
        InputError: a name is unknown, or the condition is not true or false.
        """
        try:
            found = self._value(self._tree, lookup)
        except (ArithmeticError, TypeError) as error:
            raise self._error(f"cannot be computed ({error})", None) from None
        if found is None:
            return False
        if not isinstance(found, bool):
            raise self._error(f"neither true nor false but {found!r}", "a comparison, such as pes <= 64")
        return found

    def _value(self, node: ast.expr, lookup: Lookup) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str | None):
            return node.value
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            try:
                return lookup(self._dotted(node))
            except InputError as error:
                message = f"{error.path or 'a name'}: {error.message}"
                raise InputError(
                    message, source=self._source, path=self._path, value=self._text, nearest=error.nearest
                ) from None
        if isinstance(node, ast.BoolOp):
            return _together((self._value(part, lookup) for part in node.values), isinstance(node.op, ast.And))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
            value = self._value(node.operand, lookup)
            if value is None:
                return None
            return not value if isinstance(node.op, ast.Not) else -value
        if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
            left, right = self._value(node.left, lookup), self._value(node.right, lookup)
            if left is None or right is None:
                return None
            if not isinstance(left, int | float) or not isinstance(right, int | float):
                raise TypeError(f"{left!r} or {right!r} is no number")
            return BINARY[type(node.op)](left, right)
        if isinstance(node, ast.List | ast.Tuple):
            return [self._value(part, lookup) for part in node.elts]
        if isinstance(node, ast.Compare) and all(type(op) in _COMPARE for op in node.ops):
            values = [self._value(part, lookup) for part in (node.left, *node.comparators)]
            steps = zip(node.ops, values, values[1:], strict=False)
            return _together((_compared(op, left, right) for op, left, right in steps), True)
        raise self._error("a condition that cannot be read", _ALLOWED)

    def _dotted(self, node: ast.expr) -> str:
        """The path that a name, ``a.b`` or ``a[4].b`` spells."""
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Attribute):
            return f"{self._dotted(node.value)}.{node.attr}"
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is int:
            return f"{self._dotted(node.value)}[{node.slice.value}]"
        raise self._error("a condition that cannot be read", _ALLOWED)

    def _error(self, message: str, allowed: str | None) -> InputError:
        return InputError(message, source=self._source, path=self._path, value=self._text, allowed=allowed)
