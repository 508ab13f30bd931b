"""Arithmetic in attributes of Timeloop v0.4 (``depth: 2 * banks``): numbers, attribute names, a few functions."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any

from cosa.common.expressions import ARITHMETIC, Language, NotAnExpressionError, read
from cosa.interop.places import Where

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
        tree = read(value, _MAX_LENGTH)
    except NotAnExpressionError:
        raise where.error(
            "neither a number nor an expression", value=value, allowed="such as 64, or 2 * depth"
        ) from None

    def named(name: str) -> Any:
        if name not in names:
            raise where.error(f"no attribute or variable {name!r}", value=value)
        found = evaluate(names[name], names, where, depth + 1)
        if found is None:
            raise TypeError(f"{name} has no value")
        return found

    def power(left: Any, right: Any) -> Any:
        if abs(left) > 2**32 or abs(right) > 64:
            raise where.error("a power too large to compute", value=value)
        return left**right

    try:
        result = Language(named, {**ARITHMETIC, ast.Pow: power}, _FUNCTIONS).value(tree)
    except NotAnExpressionError:
        allowed = f"numbers, attribute names, + - * / // % **, {', '.join(sorted(_FUNCTIONS))}"
        raise where.error("an expression that cannot be read", value=value, allowed=allowed) from None
    except (ArithmeticError, TypeError, ValueError) as error:
        raise where.error(f"cannot be computed ({error})", value=value) from None
    return int(result) if isinstance(result, float) and result.is_integer() else result
