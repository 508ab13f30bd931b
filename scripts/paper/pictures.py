"""Pictures of the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import ratios

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def bars(
    path: Path,
    groups: Mapping[str, Mapping[str, float]],
    label: str,
    *,
    title: str = "",
    line: float | None = None,
    logarithmic: bool = False,
) -> None:
    """Groups of bars with a legend: {group: {series: height}}."""
    from nocsim.result.pictures import new_figure

    series = list(dict.fromkeys(name for heights in groups.values() for name in heights))
    figure = new_figure(max(6.0, 2.4 + 0.28 * len(groups) * len(series)), 3.6)
    axes = figure.add_subplot()
    width = 0.8 / max(1, len(series))
    for number, name in enumerate(series):
        places = [place + (number - (len(series) - 1) / 2) * width for place in range(len(groups))]
        axes.bar(places, [heights.get(name, 0.0) for heights in groups.values()], width, label=name)
    axes.set_xticks(range(len(groups)), list(groups), rotation=20 if len(groups) < 6 else 75, ha="right", fontsize=8)
    axes.set(ylabel=label, title=title, yscale="log" if logarithmic else "linear")
    if line is not None:
        axes.axhline(line, color="black", linewidth=0.6)
    if len(series) > 1:
        legend_beside(axes)
    save(figure, path)


def legend_beside(axes: Axes) -> None:
    """A legend that covers no bar."""
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)


def save(figure: Figure, path: Path) -> None:
    """Write a picture."""
    from nocsim.result.pictures import save_figure

    path.parent.mkdir(parents=True, exist_ok=True)
    save_figure(figure, path)


def ratio_bars(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    value: str,
    mappers: Sequence[str],
    label: str,
    base: str = "random",
    title: str = "",
) -> None:
    """Bars by network: how much better each mapper is than the base."""
    groups: dict[str, dict[str, float]] = {}
    for mapper in mappers:
        for network, (mean, _) in ratios(rows, base, mapper, value).items():
            groups.setdefault(network, {})[mapper] = mean
    names = sorted(groups, key=lambda name: name == "all")
    bars(path, {name: groups[name] for name in names}, label, title=title, line=1.0)
