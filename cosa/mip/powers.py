"""Sums of powers of two in a linear program: each power is bounded below by tangents.

In the program's logarithms a product of bounds is a linear expression t, and words, cycles and energies are sums of
2^t. The function is convex, so every tangent lies below it: `z >= 2^a (1 + ln 2 (t - a))`. The relaxation is exact
where a tangent touches. Tangents on a grid come first; at the counts of an answer exact ones are added (`refine`), and
with them that answer can't be under-estimated again. Valid only for powers that are minimised.
"""

from __future__ import annotations

from functools import cache
from math import log, log2, sqrt
from typing import Any

from cosa.mip.quantities import Expression
from cosa.mip.space import Space

_GRID_ERROR = 0.004
"""What the first tangents leave open at most, in units of the largest value of interest."""

_GRID_TOP = 0.5
_GRID_BOTTOM = -9.0
_LARGEST = 120.0
_FARTHEST = 30.0
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
        self.constant = not has_variables(exponent)
        if self.constant:
            self.value: Any = 2.0 ** (float(_number(exponent)) - self._shift) * given
            return
        self._exponent = Var(domain=Reals, bounds=(-_LARGEST, _LARGEST))
        space.model.add_component(f"t{len(space.model.component_map(Var))}", self._exponent)
        space.model.rows.add(self._exponent == exponent - self._shift)
        self._most = space.upper(exponent) - self._shift if has_variables(given) else 0.0
        self.value = space.new_variable("continuous")
        for at in _grid():
            self.touch(at)

    def touch(self, at: float) -> None:
        """Add the tangent at an exponent (in units of `unit`)."""
        height = 2.0**at
        tangent = height + height * log(2) * (self._exponent - at)
        if has_variables(self._given):
            largest = max(0.0, height + height * log(2) * (self._most - at))
            tangent = tangent - largest * (1 - self._given)
        self._space.model.rows.add(self.value >= tangent)

    def refine(self) -> bool:
        """Add the tangent at the present solution if the relaxation lies below the power there."""
        if self.constant or _number(self._given) < 0.5:
            return False
        at = float(self._exponent.value)
        # Where nothing holds an exponent down, it may be anywhere: no tangents so far out.
        if at > _FARTHEST or 2.0**at - float(self.value.value) <= _TOLERANCE:
            return False
        self.touch(at)
        return True


@cache
def _grid() -> tuple[float, ...]:
    """Exponents of the first tangents: between two of them a power lies above both by an even error, so that they are
    wider apart where the power is small."""
    found = [_GRID_TOP]
    while found[-1] > _GRID_BOTTOM:
        # Half-way between tangents d apart 2^a is above them by about 2^a (d ln 2)^2 / 8.
        found.append(found[-1] - sqrt(8 * _GRID_ERROR / 2 ** found[-1]) / log(2))
    return tuple(found)


def has_variables(expression: Expression) -> bool:
    """Whether an expression is more than a number."""
    return not isinstance(expression, int | float) and not expression.is_constant()


def _number(expression: Expression) -> float:
    from pyomo.core import value

    return float(expression) if isinstance(expression, int | float) else float(value(expression))
