"""Sums of powers of two in a linear program: each power is bounded below by tangents.

In the program's logarithms a product of bounds is a linear expression t, and words, cycles and energies are sums of
2^t. The function is convex, so every tangent lies below it: `z >= 2^a (1 + ln 2 (t - a))`. The relaxation is exact
where a tangent touches. Tangents on a grid come first; at the counts of an answer exact ones are added (`refine`), and
with them that answer can't be under-estimated again. Valid only for powers that are minimised.
"""

from __future__ import annotations

from math import log, log2
from typing import Any

from cosa.mip.quantities import Expression
from cosa.mip.space import Space

_GRID_STEP = 0.5
_GRID_SPAN = 9.0
_LARGEST = 120.0
_TOLERANCE = 1e-6


class Power:
    """A variable `value` >= 2^(t) / `unit` where `given` is 1, >= 0 where it is 0; `unit` near the largest value of
    interest.

    Where `given` is an expression, each tangent is lowered by its own largest height as that falls to 0: as tight as
    the exponent's largest value allows.
    """

    def __init__(self, space: Space, name: str, exponent: Expression, unit: float, given: Expression = 1) -> None:
        from pyomo.core import Reals, Var

        self.name, self._space, self._given = name, space, given
        self._shift = log2(unit)
        self.constant = not _has_variables(exponent)
        if self.constant:
            self.value: Any = 2.0 ** (float(_number(exponent)) - self._shift) * given
            return
        self._exponent = Var(domain=Reals, bounds=(-_LARGEST, _LARGEST))
        space.model.add_component(f"t{len(space.model.component_map(Var))}", self._exponent)
        space.model.rows.add(self._exponent == exponent - self._shift)
        self._most = space.upper(exponent) - self._shift if _has_variables(given) else 0.0
        self.value = space.new_variable("continuous")
        steps = int(_GRID_SPAN / _GRID_STEP)
        for step in range(steps + 1):
            self.touch(_GRID_STEP * (1 - step))

    def touch(self, at: float) -> None:
        """Add the tangent at an exponent (in units of `unit`)."""
        height = 2.0**at
        tangent = height + height * log(2) * (self._exponent - at)
        if _has_variables(self._given):
            largest = max(0.0, height + height * log(2) * (self._most - at))
            tangent = tangent - largest * (1 - self._given)
        self._space.model.rows.add(self.value >= tangent)

    def refine(self) -> bool:
        """Add the tangent at the present solution if the relaxation lies below the power there."""
        if self.constant or _number(self._given) < 0.5:
            return False
        at = float(self._exponent.value)
        if 2.0**at - float(self.value.value) <= _TOLERANCE:
            return False
        self.touch(at)
        return True


def _has_variables(expression: Expression) -> bool:
    return not isinstance(expression, int | float) and not expression.is_constant()


def _number(expression: Expression) -> float:
    from pyomo.core import value

    return float(expression) if isinstance(expression, int | float) else float(value(expression))
