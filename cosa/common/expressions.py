"""Small expressions in files: arithmetic with names, and conditions. One evaluator, over Python's own parser.

A name may have no value (None): what is computed from it, or compared by size, is then unknown (None as well), and so
is what `and`, `or` and `not` cannot tell without it, as NULL in SQL.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Operators = Mapping[type[ast.operator], Callable[[Any, Any], Any]]

ARITHMETIC: Operators = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_BY_SIZE = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
}


class NotAnExpressionError(ValueError):
    """The text cannot be read, or holds what such expressions may not."""


def read(text: str, most_characters: int) -> ast.expr:
    """The expression that a text is.

    Raises
    ------
    NotAnExpressionError: it is none, or longer.
    """
    try:
        if len(text) > most_characters:
            raise ValueError
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise NotAnExpressionError from None


@dataclass(frozen=True)
class Language:
    """What may stand in expressions.

    Attributes
    ----------
    lookup: the value of a name, which may be dotted (``a.b``, ``a[4].b``); its errors pass through.
    operators, functions: those of arithmetic, by Python's node and by name.
    conditions: whether there are texts, lists, comparisons, and, or, not.
    """

    lookup: Callable[[str], Any]
    operators: Operators = field(default_factory=lambda: ARITHMETIC)
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    conditions: bool = False

    def value(self, node: ast.expr) -> Any:
        """What an expression is; None: unknown.

        Raises
        ------
        NotAnExpressionError: something in it is not of this language.
        ArithmeticError, TypeError: it cannot be computed.
        """
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            return self.lookup(_dotted(node))
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self.value(node.operand)
            return None if value is None else -_number(value)
        if isinstance(node, ast.BinOp) and type(node.op) in self.operators:
            left, right = self.value(node.left), self.value(node.right)
            if left is None or right is None:
                return None
            return self.operators[type(node.op)](_number(left), _number(right))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            function = self.functions.get(node.func.id)
            if function is not None:
                return function(*(self.value(argument) for argument in node.args))
        return self._condition(node) if self.conditions else _refuse()

    def _condition(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, bool | str | None):
            return node.value
        if isinstance(node, ast.BoolOp):
            return _together((self.value(part) for part in node.values), isinstance(node.op, ast.And))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            value = self.value(node.operand)
            return None if value is None else not value
        if isinstance(node, ast.List | ast.Tuple):
            return [self.value(part) for part in node.elts]
        if isinstance(node, ast.Compare) and all(type(op) in _COMPARE for op in node.ops):
            values = [self.value(part) for part in (node.left, *node.comparators)]
            steps = zip(node.ops, values, values[1:], strict=False)
            return _together((_compared(op, left, right) for op, left, right in steps), True)
        return _refuse()


def _refuse() -> Any:
    raise NotAnExpressionError


def _number(value: Any) -> Any:
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return value


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


def _dotted(node: ast.expr) -> str:
    """The path that a name, ``a.b`` or ``a[4].b`` spells."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is int:
        return f"{_dotted(node.value)}[{node.slice.value}]"
    raise NotAnExpressionError
