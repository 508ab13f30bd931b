"""A sweep as text of at most 80 columns, where its names allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from cosa.common.tables import table
from nocsim.experiments.sweep.absent import unfinished, without_values
from nocsim.experiments.sweep.result import SHORT_NAMES, Configuration, SweepResult
from nocsim.experiments.sweep.shown import AxisTexts, short_names
from nocsim.experiments.sweep.tradeoff import pareto_front, placed, sensitivities, workloads

_ALWAYS = ("latency_cycles", "energy_pj")
_TITLES = {name: short for short, name in SHORT_NAMES.items()}
_TITLES |= {
    "latency_cycles": "latency (cycles)",
    "energy_pj": "energy (uJ)",
    "buffer_bytes": "buffers (KB)",
    "edp_pj_cycles": "EDP (uJ x Mcycles)",
}
_UNITS: dict[str, float] = {"energy_pj": 1e6, "exact_energy_pj": 1e6, "buffer_bytes": 1000, "edp_pj_cycles": 1e12}


def summary(result: SweepResult) -> list[str]:
    """What came of a sweep, in a few lines: points, failures by kind, time."""
    sweep, rows = result.sweep, result.rows
    states = Counter(row["status"] for row in rows)
    parts = [f"{states[name]} {name}" for name in ("done", "failed", "running", "pending") if states[name]]
    seconds = sum({row["inputs_hash"]: row["seconds"] or 0.0 for row in rows}.values())
    lines = [f"{sweep.name}: {len(rows)} points: {', '.join(parts)}; {seconds:.1f} s of work"]
    errors = Counter(row["error_kind"] for row in result.failed)
    first = {row["error_kind"]: row["error"] for row in reversed(result.failed)}
    return lines + [f"  {count} x {kind}, the first: {first[kind]}" for kind, count in errors.most_common()]


def report(result: SweepResult, x: str, y: str, *, points: bool = False, most: int = 20) -> list[str]:
    """Summary, table, Pareto front by two figures, sensitivity.

    Parameters
    ----------
    x, y: the two figures (`nocsim.experiments.sweep.result.figure_name`).
    points: a row for each point instead of totals over the layers.
    most: rows of the table, 0 for all.
    """
    texts = AxisTexts(result)
    lines = [*summary(result), *texts.fixed(), *texts.legend()]
    figures = list(dict.fromkeys((x, y, *_ALWAYS)))
    if points:
        varied = [name for name in result.sweep.axes if name in texts.varied or name == "layer"]
        varied = list(dict.fromkeys((*varied, "layer")))
        rows = [
            [*(texts.shown(name, row["axes"], row["positions"]) for name in varied), *_numbers(row, figures)]
            for row in result.rows
        ]
        lines += ["", *_table(_headers(varied), figures, rows, most)]
    else:
        lines += ["", *_totals(result, texts, figures, most), *unfinished(result)]
        lines += without_values(result, figures)
    names = f"{_short(x)} and {_short(y)}"
    for network, group in workloads(result):
        front = pareto_front(group, x, y)
        of_network = f", {network}" if network and "network" in texts.varied else ""
        title = f"Pareto front of {names}{of_network}: "
        known = sum(placed(found, x, y) for found in group)
        if not front:
            lines += ["", f"{title}none of {len(group)} has both figures"]
            continue
        rest = f" with figures ({len(group)} in all)" if known < len(group) else ""
        rows = [[*_values(texts, found), *_numbers(found.figures, [x, y])] for found in front]
        lines += ["", f"{title}{len(front)} of {known}{rest}", *_table(_headers(texts.varied), [x, y], rows, most)]
    return lines + _sensitivity(result, texts, figures)


def _totals(result: SweepResult, texts: AxisTexts, figures: Sequence[str], most: int) -> list[str]:
    """The table of configurations; how many layers each has stands on top if it is the same for all."""
    configurations = result.configurations
    layers = {found.layers for found in configurations}
    title = [f"totals over {max(layers)} layers:"] if len(layers) == 1 and max(layers) > 1 else []
    column = len(layers) > 1
    rows = [
        [
            *_values(texts, found),
            *([f"{found.layers}"] if column else []),
            *_numbers(found.figures, figures),
        ]
        for found in configurations
    ]
    headers = _headers(texts.varied)
    return [*(["totals over all layers:"] if column else title), *_table(headers, figures, rows, most, column)]


def _sensitivity(result: SweepResult, texts: AxisTexts, figures: Sequence[str]) -> list[str]:
    found = sensitivities(result, figures)
    if not found:
        return []
    rows = []
    for entry in found:
        shown = [name for name in entry.axes if name in texts.varied]
        axis = shown[0] if len(shown) == 1 else " + ".join(short_names(shown).values())
        values, base = (
            " + ".join(texts.given(name, place) for name in shown) for place in (entry.place, entry.base_place)
        )
        ratios = ["-" if (ratio := entry.ratios[name]) is None else f"x{ratio:.3f}" for name in figures]
        rows.append([axis, values, base, *ratios])
    first = "what each value changes, all else equal (geometric mean of ratios):"
    return ["", first, *table(["axis", "value", "against", *map(_short, figures)], rows, left=3)]


def _values(texts: AxisTexts, found: Configuration) -> list[str]:
    return [texts.shown(name, found.axes, found.positions) for name in texts.varied]


def _numbers(found: Mapping[str, Any], figures: Sequence[str]) -> list[str]:
    return [_number(found[name], name) for name in figures]


def _headers(axes: Sequence[str]) -> list[str]:
    return list(short_names(axes).values())


def _table(
    axes: Sequence[str], figures: Sequence[str], rows: list[list[str]], most: int, layers: bool = False
) -> list[str]:
    shown = rows[:most] if most else rows
    header = [*axes, *(["layers"] if layers else []), *map(axis_label, figures)]
    lines = table(header, shown, left=len(axes)) if shown else []
    return lines + ([f"and {len(rows) - len(shown)} more rows"] if len(shown) < len(rows) else [])


def _short(figure: str) -> str:
    """The label of a figure without its unit."""
    return axis_label(figure).partition(" (")[0]


def axis_label(figure: str) -> str:
    """A figure with its unit, as tables and pictures name it."""
    return _TITLES.get(figure, figure)


def axis_unit(figure: str) -> float:
    """How many of the figure's own units one shown unit is."""
    return _UNITS.get(figure, 1)


def _number(value: float | None, figure: str) -> str:
    if value is None:
        return "-"
    if figure in _UNITS:
        value = value / _UNITS[figure]
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
