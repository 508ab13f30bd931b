"""The trade-off of two figures as a picture: every configuration, and the Pareto front of each network."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosa.common.errors import CosaError
from cosa.common.tables import table
from nocsim.experiments.sweep.absent import nothing_to_draw
from nocsim.experiments.sweep.report import axis_label, axis_unit
from nocsim.experiments.sweep.result import Configuration, SweepResult
from nocsim.experiments.sweep.shown import AxisTexts, short_names
from nocsim.experiments.sweep.tradeoff import pareto_front, placed, workloads
from nocsim.result.pictures import DOTS_PER_INCH, new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

_MOST_LABELS = 24
"""Configurations of fronts that get a number and a line in the key."""
_LOG_RATIO = 30.0
"""Largest over smallest value from which an axis is logarithmic."""
_LARGE = 10_000
_MARKERS = "osD^vP*X<>"
_WIDTH, _HEIGHT = 7.0, 5.0
_POINTS_PER_INCH = 72
_LABEL_POINTS, _KEY_POINTS = 7.0, 6.5
_KEY_LINE_INCHES = 1.25 * _KEY_POINTS / _POINTS_PER_INCH
_KEY_LETTER_INCHES = 0.61 * _KEY_POINTS / _POINTS_PER_INCH
_OFFSETS = [(r * x, r * y) for r in (7, 14, 22, 32) for x, y in ((1, 1), (-1, -1), (1, -1), (-1, 1), (1, 0), (0, 1))]
"""Where the number of a marker may stand, in points from its middle; the first free place is taken."""

Place = tuple[float, float]


class NothingToDrawError(CosaError):
    """No configuration has both figures."""

    exit_code = 1


def save_trade_off(result: SweepResult, x: str, y: str, path: str | Path) -> None:
    """Draw it. Configurations on a front are numbered; a key below says what they are.

    Raises
    ------
    InputError: the ending is not one of a picture, or the file can't be written.
    NothingToDrawError: the picture would be empty.
    """
    reason = nothing_to_draw(result, x, y)
    if reason is not None:
        raise NothingToDrawError(f"{path}: not drawn: {reason}")
    units = axis_unit(x), axis_unit(y)

    def place(found: Configuration) -> Place:
        return (found.figures[x] or 0) / units[0], (found.figures[y] or 0) / units[1]

    groups = [(network, [found for found in group if placed(found, x, y)]) for network, group in workloads(result)]
    fronts = [pareto_front(group, x, y) for _, group in groups]
    key = _key(AxisTexts(result), fronts)
    figure, axes = _canvas(key)
    for number, ((network, group), front) in enumerate(zip(groups, fronts, strict=True)):
        if not front:
            continue
        colour, marker = f"C{number % 10}", _MARKERS[number % len(_MARKERS)]
        name = "" if network is None else f", {network}"
        best = {id(found) for found in front}
        behind = [place(found) for found in group if id(found) not in best]
        if behind:
            style: dict[str, Any] = {
                "s": 22,
                "facecolors": "none",
                "edgecolors": colour,
                "linewidths": 0.8,
                "alpha": 0.55,
            }
            axes.scatter(*zip(*behind, strict=True), marker=marker, label=f"dominated{name}", **style)
        on = [place(found) for found in front]
        line: dict[str, Any] = {"color": colour, "lw": 1.2, "drawstyle": "steps-post", "marker": marker, "ms": 6}
        axes.plot(*zip(*on, strict=True), label=f"Pareto front{name}", **line)
    axes.margins(0.08)
    everywhere = [place(found) for _, group in groups for found in group]
    _scale(axes.xaxis, axes.set_xscale, [at[0] for at in everywhere])
    _scale(axes.yaxis, axes.set_yscale, [at[1] for at in everywhere])
    axes.set_xlabel(axis_label(x))
    axes.set_ylabel(axis_label(y))
    axes.set_title(result.sweep.name)
    axes.grid(linewidth=0.3, which="both")
    axes.legend(fontsize=8)
    _number_places(figure, axes, [place(found) for front in fronts for found in front])
    save_figure(figure, path)


def _scale(axis: Axis, set_scale: Callable[[str], None], values: Sequence[float]) -> None:
    """Logarithmic where values are far apart; large numbers as 20k and 3M."""
    from matplotlib.ticker import EngFormatter

    if min(values) > 0 and max(values) / min(values) > _LOG_RATIO:
        set_scale("log")
    if max(values) >= _LARGE:
        axis.set_major_formatter(EngFormatter(sep=""))


def _key(texts: AxisTexts, fronts: Sequence[Sequence[Configuration]]) -> list[str]:
    """The configurations on the fronts as a table, numbered from 1."""
    every = [found for front in fronts for found in front]
    rows = [
        [str(number), *(texts.shown(name, found.axes, found.positions) for name in texts.varied)]
        for number, found in enumerate(every[:_MOST_LABELS], start=1)
    ]
    if not texts.varied:
        return []
    more = [f"and {len(every) - len(rows)} more, without numbers"] if len(every) > len(rows) else []
    header = ["front", *short_names(texts.varied).values()]
    legend = texts.legend()
    return [*table(header, rows, left=len(header)), *more, *([""] if legend else []), *legend]


def _canvas(key: Sequence[str]) -> tuple[Figure, Axes]:
    """A figure with room for the key below, and its axes."""
    if not key:
        figure = new_figure(_WIDTH, _HEIGHT)
        return figure, figure.add_subplot()
    height = len(key) * _KEY_LINE_INCHES
    width = max(_WIDTH, 0.4 + max(map(len, key)) * _KEY_LETTER_INCHES)
    figure = new_figure(width, _HEIGHT + height + 0.1)
    top, bottom = figure.subplots(2, 1, height_ratios=[_HEIGHT, height])
    bottom.axis("off")
    style: dict[str, Any] = {"family": "monospace", "fontsize": _KEY_POINTS, "linespacing": 1.2}
    bottom.text(0, 1, "\n".join(key), transform=bottom.transAxes, va="top", **style)
    return figure, top


def _number_places(figure: Figure, axes: Axes, places: Sequence[Place]) -> None:
    """A number at each place, from 1: one label for places that nearly coincide, no label over another or a marker."""
    figure.draw_without_rendering()
    scale = DOTS_PER_INCH / _POINTS_PER_INCH
    found = [axes.transData.transform(where) / scale for where in places[:_MOST_LABELS]]
    dots = [(float(at[0]), float(at[1])) for at in found]
    clusters: list[list[int]] = []
    for number, at in enumerate(dots):
        if clusters and math.dist(at, dots[clusters[-1][0]]) < _LABEL_POINTS:
            clusters[-1].append(number)
        else:
            clusters.append([number])
    taken = [_box(at, (6.0, 6.0)) for at in dots]
    for cluster in clusters:
        first = dots[cluster[0]]
        text = str(cluster[0] + 1) if len(cluster) == 1 else f"{cluster[0] + 1}-{cluster[-1] + 1}"
        size = (0.65 * _LABEL_POINTS * len(text) + 1, 1.1 * _LABEL_POINTS)
        boxes = {offset: _box((first[0] + offset[0], first[1] + offset[1]), size) for offset in _OFFSETS}
        free = [offset for offset, box in boxes.items() if not any(_overlap(box, other) for other in taken)]
        # Where markers are close, a number stands nearer to its own than to any other.
        others = [at for number, at in enumerate(dots) if number not in cluster]
        clear = [offset for offset in free if _nearest(offset, first, others)]
        for offset in (clear or free)[:1]:
            taken.append(boxes[offset])
            style: dict[str, Any] = {
                "ha": "center",
                "va": "center",
                "fontsize": _LABEL_POINTS,
                "textcoords": "offset points",
            }
            axes.annotate(text, places[cluster[0]], xytext=offset, **style)


def _nearest(offset: Place, own: Sequence[float], others: Iterable[Sequence[float]]) -> bool:
    at = own[0] + offset[0], own[1] + offset[1]
    return all(math.dist(at, other) > math.hypot(*offset) for other in others)


Box = tuple[float, float, float, float]


def _box(middle: Sequence[float], size: Place) -> Box:
    return (
        middle[0] - size[0] / 2,
        middle[1] - size[1] / 2,
        middle[0] + size[0] / 2,
        middle[1] + size[1] / 2,
    )


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
