"""Arithmetic in attributes of Timeloop v0.4 (``depth: 2 * banks``): numbers, attribute names, a few functions."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from cosa.interop.places import Where

BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ceil": math.ceil,
    "floor": math.floor,
    "int": int,
    "log2": math.log2,
    "max": max,
    "min": min,
    "round": round,
    "sqrt": math.sqrt,
}
_MAX_LENGTH, _MAX_DEPTH = 200, 16


def evaluate(value: Any, names: Mapping[str, Any], where: Where, depth: int = 0) -> Any:
    """The number that an attribute stands for; anything but text is returned as it is.

    Raises
    ------
    InputError: text that is neither a number nor such an expression, or an unknown name in it.
    """
    if not isinstance(value, str):
        return value
    if depth > _MAX_DEPTH or len(value) > _MAX_LENGTH:
        raise where.error("an expression that refers to itself, or is too long", value=value)
    try:
        tree = ast.parse(value.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise where.error(
            "neither a number nor an expression", value=value, allowed="such as 64, or 2 * depth"
        ) from None
    try:
        result = _value(tree, names, where, value, depth)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise where.error(f"cannot be computed ({error})", value=value) from None
    return int(result) if isinstance(result, float) and result.is_integer() else result


def _value(node: ast.expr, names: Mapping[str, Any], where: Where, text: str, depth: int) -> Any:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise where.error(f"no attribute or variable {node.id!r}", value=text)
        return evaluate(names[node.id], names, where, depth + 1)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, names, where, text, depth)
    if isinstance(node, ast.BinOp):
        left, right = (_value(side, names, where, text, depth) for side in (node.left, node.right))
        if isinstance(node.op, ast.Pow):
            if abs(left) > 2**32 or abs(right) > 64:
                raise where.error("a power too large to compute", value=text)
            return left**right
        if type(node.op) in BINARY:
            return BINARY[type(node.op)](left, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        function = _FUNCTIONS.get(node.func.id)
        if function is not None:
            return function(*(_value(argument, names, where, text, depth) for argument in node.args))
    allowed = f"numbers, attribute names, + - * / // % **, {', '.join(sorted(_FUNCTIONS))}"
    raise where.error("an expression that cannot be read", value=text, allowed=allowed)
