"""Mappers side by side: a point for each layer and mapper; rows with ratios to the first mapper, and their means."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any, Literal

from cosa.common.errors import InputError
from cosa.common.files import FileModel, Model
from cosa.common.version import version
from cosa.experiments.figures import Row
from cosa.experiments.pipeline import run_points
from cosa.mappers.registry import MapperOptions, every_mapper, find_mapper, options_of, owners_of
from cosa.model.arch import Architecture
from cosa.model.networks import NetworkLayer
from nocsim.experiments.pipeline import FIGURES, SimulatedPoint, require_simulated
from nocsim.options import RunOptions

DEFAULT = "program,random,hybrid"
CANDIDATES = 16
"""Mappings of a search that simulation chooses among."""

SIMULATED = "simulated"
"""The objective by which each search's best mappings are simulated, and the fastest is taken."""

_COMPARED = {"energy": "energy_pj", "edp": "timeloop_edp_pj_cycles"}


class MapperMean(Model):
    """Geometric means over the layers where this mapper and the first have both the figure, and how many these are."""

    entry: str
    layers: int
    ratio: float | None
    simulated_layers: int
    simulated_ratio: float | None


class Comparison(FileModel):
    """Mappers side by side; ratios are to the first one, above 1 is worse.

    `rows`: `layer`, `count`, `entry` (the mapper as it was named), figures of one occurrence, null where the mapper
    found nothing (`error` says why), and the ratios.
    """

    kind: Literal["comparison"] = "comparison"
    schema_version: Literal[2] = 2
    version: str
    network: str | None
    architecture: str
    architecture_hash: str
    objective: str
    max_cycles: int | None = None
    entries: tuple[str, ...]
    rows: tuple[Row, ...]
    means: tuple[MapperMean, ...]
    complete: bool

    def csv(self) -> str:
        """The rows as CSV."""
        text = io.StringIO()
        names = ["layer", "count", "entry", *FIGURES, "ratio", "simulated_ratio", "error"]
        writer = csv.DictWriter(text, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()


@dataclass(frozen=True)
class Entry:
    """A mapper of a comparison with its options, and how it was named."""

    text: str
    options: MapperOptions


def read_entries(names: Sequence[str], given: Mapping[str, Any] | None = None) -> list[Entry]:
    """Mappers by name, with ``:OBJECTIVE`` and, of a program, ``:MODEL`` behind where they have their own.

    Parameters
    ----------
    given: options by name, each for the mappers that know it; an `objective` for those that know it and have none.

    Raises
    ------
    InputError: there is no such mapper, objective, model or option, one is named twice, or no mapper knows an option.
    """
    if not names:
        known = ", ".join(one.name for one in every_mapper())
        raise InputError("no mapper", path="mappers", allowed=known)
    found: list[Entry] = []
    left = dict(given or {})
    for text in names:
        if text in [entry.text for entry in found]:
            raise InputError("named twice", path="mappers", value=text, allowed="each once")
        name, *own = text.split(":")
        try:
            mapper = find_mapper(name)
            own_options = dict(zip(("objective", "model"), own, strict=False))
            if len(own) > 2:
                raise InputError("not a mapper", value=text, allowed="NAME, NAME:OBJECTIVE or NAME:OBJECTIVE:MODEL")
            options = {one: value for one, value in (given or {}).items() if one in mapper.options.model_fields}
            if options.get("objective") not in mapper.objectives():
                options.pop("objective", None)
            left = {one: value for one, value in left.items() if one not in options}
            checked = options_of(name, own_options)
        except InputError as error:
            raise error.at(None, f"mappers.{text}") from None
        found.append(Entry(text, checked.with_(**{n: v for n, v in options.items() if n not in own_options})))
    for name, value in left.items():
        if name != "objective":
            allowed = f"with {' or '.join(owners_of(name))}"
            raise InputError("has no effect here", path=name, value=value, allowed=allowed)
    return found


def compare(
    layers: Sequence[NetworkLayer],
    architecture: Architecture,
    entries: Sequence[Entry],
    *,
    network: str | None = None,
    objective: str = "latency",
    simulation: RunOptions | None = None,
    candidates: int = CANDIDATES,
    workers: int = 1,
    timing: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Map every layer with every mapper. (More than eight parameters: what is compared, and how.)

    Parameters
    ----------
    entries: mappers with their options (`read_entries`).
    objective: by which ratios are told. `simulated`: each search gives its best mappings (`candidates` of them), of
        which the one with the fewest simulated cycles is taken.
    simulation: simulate the schedules found, and how; one that reaches a limit has no simulated cycles.
    workers: points at a time.
    timing: whether seconds are told.
    progress: called with (points done, points in all).

    Returns
    -------
    All rows; after Ctrl-C those until then, with `complete` false.

    Raises
    ------
    InputError: the architecture can't be simulated.
    """
    if objective == SIMULATED:
        simulation = simulation or RunOptions()
    for entry in entries:
        if getattr(entry.options, "remainders", False):
            message = "figures are by Timeloop's counts, which know no smaller last tiles"
            raise InputError(message, path="remainders", value=True, allowed="false")
    if simulation is not None:
        require_simulated(architecture, [entry.options for entry in entries])
    points = [
        SimulatedPoint(
            layer=layer.layer,
            architecture=architecture,
            options=entry.options,
            keep_interrupted=workers == 1,
            simulation=simulation,
            candidates=_candidates(entry.options, candidates) if objective == SIMULATED else 1,
        )
        for layer in layers
        for entry in entries
    ]
    found: dict[int, Row] = {}
    complete = False
    try:
        for number, outcome in run_points(points, workers=workers, progress=progress):
            place = {"layer": points[number].layer.name, "count": layers[number // len(entries)].count}
            figures = outcome.get("figures") or dict.fromkeys(FIGURES)
            if not timing:
                figures = figures | {name: None for name, figure in FIGURES.items() if figure.clock}
            error = {"error": outcome.get("error")}
            found[number] = place | {"entry": entries[number % len(entries)].text} | figures | error
            if figures["stopped_by"] == "interrupted":
                raise KeyboardInterrupt
        complete = True
    except KeyboardInterrupt:
        pass
    rows = [found[number] for number in sorted(found)]
    first = {row["layer"]: row for row in rows if row["entry"] == entries[0].text}
    for row in rows:
        compared = _COMPARED.get(objective, "timeloop_cycles")
        base = first.get(row["layer"])
        row |= {"ratio": _ratio(row, base, compared), "simulated_ratio": _ratio(row, base, "simulated_cycles")}
    return Comparison(
        version=version(),
        network=network,
        architecture=architecture.name,
        architecture_hash=architecture.content_hash,
        objective=objective,
        max_cycles=simulation.max_cycles if simulation else None,
        entries=tuple(entry.text for entry in entries),
        rows=tuple(rows),
        means=tuple(_mean(entry.text, rows) for entry in entries),
        complete=complete,
    )


def _candidates(options: MapperOptions, candidates: int) -> int:
    """All samples of `random` are worth a look."""
    return max(candidates, getattr(options, "samples", None) or 0)


def _ratio(row: Row, base: Row | None, name: str) -> float | None:
    return row[name] / base[name] if row[name] is not None and base and base[name] else None


def _mean(entry: str, rows: Sequence[Row]) -> MapperMean:
    def mean(values: list[float]) -> float | None:
        return exp(sum(map(log, values)) / len(values)) if values else None

    mine = [row for row in rows if row["entry"] == entry]
    ratios, simulated = ([row[name] for row in mine if row[name] is not None] for name in ("ratio", "simulated_ratio"))
    return MapperMean(
        entry=entry,
        layers=len(ratios),
        ratio=mean(ratios),
        simulated_layers=len(simulated),
        simulated_ratio=mean(simulated),
    )
