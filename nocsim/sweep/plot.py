"""The trade-off of two figures as a picture: every configuration, and the Pareto front of each network."""

from __future__ import annotations

from pathlib import Path

from nocsim.pictures import new_figure, save_figure
from nocsim.sweep.report import axis_label, axis_unit
from nocsim.sweep.result import SweepResult
from nocsim.sweep.tradeoff import pareto_front, workloads

_MOST_LABELS = 12


def save_trade_off(result: SweepResult, x: str, y: str, path: str | Path) -> None:
    """Draw it.

    Raises
    ------
    InputError: the ending is not one of a picture, or the file can't be written.
    """
    figure = new_figure(7.0, 5.0)
    axes = figure.add_subplot()
    unit_x, unit_y = axis_unit(x), axis_unit(y)
    varied = [name for name in result.sweep.axes if len(result.sweep.values(name)) > 1 and name != "layer"]
    for number, (network, group) in enumerate(workloads(result)):
        colour = f"C{number}"
        placed = [c for c in group if c.figures[x] is not None and c.figures[y] is not None]
        front = pareto_front(group, x, y)
        axes.scatter(
            [(c.figures[x] or 0) / unit_x for c in placed],
            [(c.figures[y] or 0) / unit_y for c in placed],
            color=colour,
            s=18,
            label=str(network or "configurations"),
        )
        axes.step(
            [(c.figures[x] or 0) / unit_x for c in front],
            [(c.figures[y] or 0) / unit_y for c in front],
            where="post",
            color=colour,
            linewidth=1,
            label="Pareto front" if network is None else f"Pareto front, {network}",
        )
        if len(front) <= _MOST_LABELS:
            labels: dict[tuple[float, float], str] = {}
            for c in front:
                place = ((c.figures[x] or 0) / unit_x, (c.figures[y] or 0) / unit_y)
                text = ", ".join(str(c.axes[name]) for name in varied if name != "network")
                labels[place] = f"{labels[place]} ..." if place in labels else text
            for place, text in labels.items():
                axes.annotate(
                    text.partition(" ...")[0] + (" ..." if "..." in text else ""),
                    place,
                    xytext=(4, 4),
                    textcoords="offset points",
                    fontsize=7,
                )
    axes.margins(x=0.15)
    axes.set_xlabel(axis_label(x))
    axes.set_ylabel(axis_label(y))
    axes.set_title(result.sweep.name)
    axes.grid(linewidth=0.3)
    axes.legend(fontsize=8)
    save_figure(figure, path)
