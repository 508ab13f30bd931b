"""A sweep as text of at most 80 columns, where its names allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from cosa.listing import table
from nocsim.sweep.result import SHORT_NAMES, SweepResult
from nocsim.sweep.tradeoff import pareto_front, sensitivities, workloads

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
    x, y: the two figures (`nocsim.sweep.result.figure_name`).
    points: a row for each point instead of totals over the layers.
    most: rows of the table, 0 for all.
    """
    lines = summary(result)
    varied = [name for name in result.sweep.axes if len(result.sweep.values(name)) > 1]
    fixed = {name: result.sweep.values(name)[0] for name in result.sweep.axes if name not in varied}
    if fixed:
        lines.append("fixed: " + ", ".join(f"{name} = {_text(value)}" for name, value in fixed.items()))
    figures = list(dict.fromkeys((x, y, *_ALWAYS)))
    if points:
        entries = [(row["axes"], row) for row in result.rows]
        lines += ["", *_table([*dict.fromkeys((*varied, "layer"))], figures, entries, most)]
    varied = [name for name in varied if name != "layer"]
    if not points:
        totals = [(found.axes, found.figures) for found in result.configurations]
        layers = max(found.layers for found in result.configurations)
        title = f"totals over {layers} layers:" if layers > 1 else ""
        lines += ["", *([title] if title else []), *_table(varied, figures, totals, most)]
    for network, group in workloads(result):
        front = pareto_front(group, x, y)
        names = f"{axis_label(x).partition(' (')[0]} and {axis_label(y).partition(' (')[0]}"
        of_network = f", {network}" if network and "network" in varied else ""
        lines += ["", f"Pareto front of {names}{of_network}: {len(front)} of {len(group)}"]
        lines += _table(varied, [x, y], [(found.axes, found.figures) for found in front], most)
    return lines + _sensitivity(result, list(dict.fromkeys((x, y, *_ALWAYS))))


def _sensitivity(result: SweepResult, figures: Sequence[str]) -> list[str]:
    found = sensitivities(result, figures)
    if not found:
        return []
    names = [axis_label(name).partition(" (")[0] for name in figures]
    rows = []
    for entry in found:
        axis = " + ".join(entry.axes)
        values, base = (" + ".join(map(_text, given)) for given in (entry.values, entry.base))
        ratios = ["-" if (ratio := entry.ratios[name]) is None else f"x{ratio:.3f}" for name in figures]
        rows.append([axis if len(entry.axes) == 1 else _shortened(entry.axes), values, base, *ratios])
    first = "what each value changes, all else equal (geometric mean of ratios):"
    return ["", first, *table(["axis", "value", "against", *names], rows, left=3)]


def _shortened(axes: Sequence[str]) -> str:
    """Axes that vary together, by the last words of their paths."""
    return " + ".join(name.rpartition(".")[2] for name in axes)


def _table(
    axes: Sequence[str],
    figures: Sequence[str],
    entries: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    most: int,
) -> list[str]:
    shown = entries[:most] if most else entries
    rows = [
        [*(_text(values[name]) for name in axes), *(_number(found[name], name) for name in figures)]
        for values, found in shown
    ]
    header = [*(_header(name, axes) for name in axes), *map(axis_label, figures)]
    lines = table(header, rows, left=len(axes)) if rows else []
    return lines + ([f"and {len(entries) - len(shown)} more rows"] if len(shown) < len(entries) else [])


def _header(name: str, axes: Sequence[str]) -> str:
    """The last word of a path, the whole path where two axes share it."""
    last = name.rpartition(".")[2]
    return last if sum(other.rpartition(".")[2] == last for other in axes) == 1 else name


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


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("name", value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
