"""What a sweep says beyond its rows: Pareto fronts, and what each axis changes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nocsim.experiments.pipeline import FIGURES
from nocsim.experiments.sweep.result import Configuration, SweepResult

WORKLOADS = ("layer", "network")


def better_when_less(figure: str, value: float) -> float:
    """The value, or its negative where more is better."""
    return -value if FIGURES[figure].more_is_better else value


def workloads(result: SweepResult) -> list[tuple[Any, list[Configuration]]]:
    """Configurations that can be compared: those of the same network (all, where networks are no axis)."""
    groups: dict[int, list[Configuration]] = {}
    for configuration in result.configurations:
        groups.setdefault(configuration.positions.get("network", 0), []).append(configuration)
    return [(group[0].axes.get("network"), group) for group in groups.values()]


def placed(configuration: Configuration, x: str, y: str) -> bool:
    """Whether it has both figures."""
    return configuration.figures[x] is not None and configuration.figures[y] is not None


def pareto_front(configurations: Sequence[Configuration], x: str, y: str) -> list[Configuration]:
    """Those that no other one beats: none is as good in both figures and better in one. By falling quality of `x`.

    Equal ones are all on the front; those without figures are not.
    """
    found: list[Configuration] = []
    best = math.inf
    known = [
        (better_when_less(x, c.figures[x] or 0), better_when_less(y, c.figures[y] or 0), number, c)
        for number, c in enumerate(configurations)
        if placed(c, x, y)
    ]
    last: tuple[float, float] | None = None
    for a, b, _, configuration in sorted(known, key=lambda item: item[:3]):
        if b < best or (a, b) == last:
            found.append(configuration)
            best, last = b, (a, b)
    return found


@dataclass(frozen=True)
class Sensitivity:
    """What one value of an axis changes against the first value with figures, all else equal.

    Attributes
    ----------
    axes: the axis, or those that `zip` couples to it
    values: its values, as the sweep gives them
    base: the values compared with
    pairs: pairs of configurations compared
    ratios: geometric mean of figure over figure at the first value, by figure (None where nothing can be compared)
    place, base_place: places of the two values on the axis, from 0
    """

    axes: tuple[str, ...]
    values: tuple[Any, ...]
    base: tuple[Any, ...]
    pairs: int
    ratios: dict[str, float | None]
    place: int
    base_place: int


def sensitivities(result: SweepResult, figures: Sequence[str]) -> list[Sensitivity]:
    """Every further value of every axis with several (layers and networks are no choice)."""
    sweep = result.sweep
    couples = [*sweep.zip, *((name,) for name in sweep.axes if not any(name in group for group in sweep.zip))]
    found = []
    for group in sorted(couples, key=lambda group: list(sweep.axes).index(group[0])):
        axes = tuple(name for name in group if name not in WORKLOADS)
        if not axes or len(axes) < len(group) or len(sweep.values(axes[0])) < 2:
            continue
        at: dict[tuple[tuple[str, int], ...], dict[int, Configuration]] = {}
        for configuration in result.configurations:
            others = tuple((name, place) for name, place in configuration.positions.items() if name not in axes)
            at.setdefault(others, {})[configuration.positions[axes[0]]] = configuration
        complete = [place for cells in at.values() for place, cell in cells.items() if cell.done == cell.layers]
        base = min(complete, default=0)
        for place in range(len(sweep.values(axes[0]))):
            if place == base:
                continue
            pairs = [(cells[base], cells[place]) for cells in at.values() if base in cells and place in cells]
            if not pairs:
                continue  # the conditions leave none of it
            values, first = (tuple(sweep.values(name)[which] for name in axes) for which in (place, base))
            ratios = {figure: _mean_ratio(pairs, figure) for figure in figures}
            found.append(Sensitivity(axes, values, first, len(pairs), ratios, place, base))
    return found


def _mean_ratio(pairs: Sequence[tuple[Configuration, Configuration]], figure: str) -> float | None:
    logarithms = []
    for first, other in pairs:
        before, after = first.figures[figure], other.figures[figure]
        if before and after:
            logarithms.append(math.log(after / before))
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else None
