"""Values of axes as a reader meets them: short, and told apart."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from cosa.common.tables import WIDTH
from nocsim.experiments.sweep.result import SweepResult
from nocsim.experiments.sweep.tradeoff import WORKLOADS

_SHORT = 16
"""Characters of a list or block that still stands in a table as it is."""
_LABELLED = ("layer", "architecture")
"""Axes whose blocks go by names."""


class AxisTexts:
    """How the values of the axes of a sweep are shown.

    Lists and blocks are ``#1``, ``#2`` and so on, by their place on the axis, and of axes that vary together one stands
    for all; `legend` says what these mean.

    Attributes
    ----------
    varied: axes to show: with several values, `layer` not among them, one of those zipped together
    """

    def __init__(self, result: SweepResult) -> None:
        sweep = result.sweep
        self._values = {name: sweep.values(name) for name in sweep.axes}
        self._followers = dict(filter(None, map(self._led, sweep.zip)))
        hidden = {name for names in self._followers.values() for name in names} | {"layer"}
        self.varied = [name for name, values in self._values.items() if len(values) > 1 and name not in hidden]
        self._blocks = {name for name, values in self._values.items() if name not in _LABELLED and _is_long(values)}
        self._labels = {
            (name, row["positions"][name]): row["axes"][name]
            for name in _LABELLED
            if name in sweep.axes
            for row in result.rows
        }

    def _led(self, group: Sequence[str]) -> tuple[str, list[str]] | None:
        """Of axes that vary together the one by which the others are known, and those; None if there is none."""
        if any(name in WORKLOADS for name in group):
            return None
        for lead in group:
            values = [flow(value) for value in self._values[lead]]
            if 1 < len(values) == len(set(values)):
                return lead, [name for name in group if name != lead]
        return None

    def shown(self, axis: str, axes: Mapping[str, Any], positions: Mapping[str, int]) -> str:
        """The value at a point or configuration; of a multiplier what came of it."""
        if axis in self._blocks and len(self._values[axis]) > 1:
            return f"#{positions[axis] + 1}"
        return flow(axes[axis])

    def given(self, axis: str, place: int) -> str:
        """The value as the sweep gives it: a multiplier stays one."""
        if (axis, place) in self._labels and not (axis == "layer" and isinstance(self._values[axis][place], str)):
            return str(self._labels[axis, place])
        if axis in self._blocks and len(self._values[axis]) > 1:
            return f"#{place + 1}"
        return flow(self._values[axis][place])

    def fixed(self) -> list[str]:
        """Axes with one value, in a line or a few."""
        names = [name for name, values in self._values.items() if len(values) == 1]
        parts = [f"{name} = {self.given(name, 0)}" for name in names]
        return textwrap.wrap("fixed: " + ", ".join(parts), WIDTH, subsequent_indent="  ", **_WHOLE) if parts else []

    def legend(self) -> list[str]:
        """What each ``#`` stands for (of blocks only the fields in which they differ), and what goes with a value."""
        lines = []
        for lead in self.varied:
            followers = self._followers.get(lead, [])
            for axis in (lead, *followers):
                if axis in self._blocks:
                    texts = enumerate(_differences(self._values[axis]), start=1)
                    lines += [f"{axis} #{number} = {text}" for number, text in texts]
            for place in range(len(self._values[lead]) if followers else 0):
                others = ", ".join(f"{name} {self.given(name, place)}" for name in followers)
                lines.append(f"{lead} {self.given(lead, place)} goes with {others}")
        return [part for line in lines for part in textwrap.wrap(line, WIDTH, subsequent_indent="  ", **_WHOLE)]


_WHOLE: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}


def short_names(axes: Sequence[str]) -> dict[str, str]:
    """For each axis the last word of its path, or the whole path where two share it."""
    last = [name.rpartition(".")[2] for name in axes]
    return {name: word if last.count(word) == 1 else name for name, word in zip(axes, last, strict=True)}


def flow(value: Any) -> str:
    """Plain data on one line, as YAML writes it without quotes; whole numbers with commas."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value:,}" if isinstance(value, int) else str(value)


def _is_long(values: Sequence[Any]) -> bool:
    return any(isinstance(value, dict | list) and len(flow(value)) > _SHORT for value in values)


def _differences(values: Sequence[Any]) -> list[str]:
    if not all(isinstance(value, dict) for value in values):
        return [flow(value) for value in values]
    keys = list(dict.fromkeys(key for value in values for key in value))
    differ = [key for key in keys if any(value.get(key) != values[0].get(key) for value in values)]
    found = []
    for value in values:
        text = flow({key: value[key] for key in differ if key in value})[1:-1]
        found.append(text or "the defaults")
    return found
