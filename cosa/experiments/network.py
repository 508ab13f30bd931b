"""Whole networks: a point a unique layer, rows weighted by how often the layers occur; schedules as files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cosa.common.files import WHOLE, FileModel, file_stems, prepared_folder
from cosa.common.version import version
from cosa.experiments.figures import Figures, Row, totals
from cosa.experiments.pipeline import FIGURES, Outcome, Point, require_done, run_points
from cosa.mappers.registry import MapperOptions
from cosa.model.arch import Architecture
from cosa.model.networks import Network

SUMMARY = "summary.json"
"""Name of the summary in the folder of the schedules."""

Keep = Callable[[int, Outcome], dict[str, Any]]
"""Called with the number of a layer and its outcome; what the row says besides."""


class NetworkRows(FileModel):
    """A network, a row of figures a unique layer (of one occurrence), with `layer` and `count`."""

    schema_version: Annotated[Literal[2], WHOLE] = 2
    version: str
    network: str
    architecture: str
    architecture_hash: str
    rows: tuple[Row, ...]
    complete: bool

    def totals(self, figures: Figures) -> Row:
        """Figures over all occurrences of all layers; none without layers."""
        return totals(self.rows, figures) if self.rows else {}


class NetworkSchedules(NetworkRows):
    """The schedules of a network; `file` of a row is the schedule's name in the folder, if it was written."""

    kind: Literal["network_schedules"] = "network_schedules"


def schedule_network(
    network: Network,
    architecture: Architecture,
    options: MapperOptions,
    *,
    workers: int = 1,
    folder: str | Path | None = None,
    timing: bool = True,
    cache: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> NetworkSchedules:
    """Schedule and evaluate every unique layer of a network.

    Parameters
    ----------
    options: of a mapper.
    workers: processes at a time.
    folder: where each schedule is written as soon as it is there, and a summary at the end; made if it does not exist.
    timing: whether these files have wall-clock seconds.
    cache: folder of earlier results, or None for none.
    progress: called with (layers done, layers in all).

    Returns
    -------
    All layers; after Ctrl-C those that were done, with `complete` false.

    Raises
    ------
    CosaError: a layer cannot be scheduled, and is named; or a file cannot be written.
    """
    names = [f"{stem}.json" for stem in file_stems([entry.layer.name for entry in network.layers], taken=("summary",))]
    place = None if folder is None else prepared_folder(Path(folder), [*names, SUMMARY])
    points = [Point(layer=entry.layer, architecture=architecture, options=options) for entry in network.layers]

    def keep(number: int, outcome: Outcome) -> dict[str, Any]:
        if place is None:
            return {"file": None}
        points[number].schedule_of(outcome).save(place / names[number], timing=timing)
        return {"file": names[number]}

    rows, complete = layer_rows(network, points, FIGURES, workers=workers, cache=cache, progress=progress, keep=keep)
    result = NetworkSchedules(**about(network, architecture), rows=rows, complete=complete)
    if place is not None:
        result.to_file(place / SUMMARY)
    return result


def layer_rows(
    network: Network,
    points: Sequence[Point],
    figures: Figures,
    *,
    workers: int,
    cache: Path | None,
    progress: Callable[[int, int], None] | None,
    keep: Keep | None = None,
) -> tuple[tuple[Row, ...], bool]:
    """Rows of the points of a network's layers, without what a clock says, and whether they are all there.

    Raises
    ------
    CosaError: of a layer; its name is put in front.
    """
    rows: dict[int, Row] = {}
    complete = False
    try:
        for number, outcome in run_points(points, workers=workers, cache=cache, progress=progress):
            entry = network.layers[number]
            require_done(outcome, f"{network.name} {entry.layer.name}: ")
            told = {name: outcome["figures"][name] for name, figure in figures.items() if not figure.clock}
            more = keep(number, outcome) if keep else {}
            rows[number] = {"layer": entry.layer.name, "count": entry.count, **more, **told}
        complete = True
    except KeyboardInterrupt:
        pass
    return tuple(rows[number] for number in sorted(rows)), complete


def about(network: Network, architecture: Architecture) -> dict[str, Any]:
    """What `NetworkRows` says besides rows."""
    return {
        "version": version(),
        "network": network.name,
        "architecture": architecture.name,
        "architecture_hash": architecture.content_hash,
    }
