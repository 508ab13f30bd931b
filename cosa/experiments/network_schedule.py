"""Schedules of a whole network: its unique layers in parallel processes, kept between runs, one file a layer.

What is kept is found again by a hash of layer (but its name), architecture, mapper with its options, version and
sources of the package. Any number of workers gives the same schedules.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from cosa.analytical.evaluation import evaluate_timeloop
from cosa.common.files import WHOLE, FileModel, Model, file_stems, prepared_folder
from cosa.common.result_cache import content_key, read_cached, source_digest, write_cached
from cosa.common.version import version
from cosa.experiments.layer_pool import run_layers
from cosa.mappers.registry import MapperOptions, candidates
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from cosa.model.networks import Network
from cosa.model.schedule import Schedule

SUMMARY = "summary.json"
"""Name of the summary in the folder of the schedules."""


class LayerSchedule(Model):
    """One unique layer: how often it occurs, and what its schedule is worth (one occurrence).

    `cycles` and `energy_pj` are by Timeloop's counts; `file` is the schedule's name in the folder, if it was written.
    """

    layer: str
    count: int
    file: str | None
    schedule_hash: str
    macs: int
    padding_macs: int
    compute_cycles: int
    cycles: int
    energy_pj: float
    utilisation: float
    objective_value: float | None
    solver_status: str | None
    gap: float | None


class NetworkSchedules(FileModel):
    """The schedules of a network, layer after layer; totals count every occurrence."""

    kind: Literal["network_schedules"] = "network_schedules"
    schema_version: Annotated[Literal[1], WHOLE] = 1
    version: str
    network: str
    architecture: str
    architecture_hash: str
    mapper: str
    objective: str | None
    layers: tuple[LayerSchedule, ...]
    complete: bool

    def total(self, field: str) -> float:
        """Sum of a field over all occurrences of all layers."""
        return sum(float(getattr(entry, field)) * entry.count for entry in self.layers)


def schedule_layer(layer: Layer, architecture: Architecture, options: MapperOptions) -> dict[str, Any]:
    """The schedule of one layer as data."""
    return candidates(layer, architecture, options)[0].model_dump(mode="json")


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
    """Schedule every unique layer of a network.

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
    keys = [_key(entry.layer, architecture, options) for entry in network.layers]
    found: dict[int, LayerSchedule] = {}

    def keep(number: int, schedule: Schedule) -> None:
        entry = network.layers[number]
        # A kept result may be of a layer of another name.
        schedule = schedule.with_(layer=entry.layer)
        if place is not None:
            schedule.save(place / names[number], timing=timing)
        file = None if place is None else names[number]
        found[number] = _entry(schedule, entry.layer.name, entry.count, file)
        if progress:
            progress(len(found), len(keys))

    complete = True
    try:
        if progress:
            progress(0, len(keys))
        for number, key in enumerate(keys):
            known = read_cached(cache, key)
            if known is not None:
                keep(number, Schedule.from_data(known, source="cache"))
        missing = [number for number in range(len(keys)) if number not in found]
        for number, data in run_layers(network, missing, schedule_layer, (architecture, options), workers):
            schedule = Schedule.from_data(data)
            keep(number, schedule)
            if schedule.provenance.repeatable:
                write_cached(cache, keys[number], data)
    except KeyboardInterrupt:
        complete = False
    result = NetworkSchedules(
        version=version(),
        network=network.name,
        architecture=architecture.name,
        architecture_hash=architecture.content_hash,
        mapper=options.mapper,
        objective=options.made_for,
        layers=tuple(found[number] for number in sorted(found)),
        complete=complete,
    )
    if place is not None:
        result.to_file(place / SUMMARY)
    return result


def _key(layer: Layer, architecture: Architecture, options: MapperOptions) -> str:
    return content_key(
        {
            "layer": layer.model_dump(mode="json", exclude={"name", "notes"}),
            # The file has names and descriptions too, so those must agree as well.
            "architecture": architecture.model_dump(mode="json"),
            "mapper": options.mapper,
            "options": options.given(),
            "version": version(),
            "sources": source_digest(("cosa",)),
        }
    )


def _entry(schedule: Schedule, layer: str, count: int, file: str | None) -> LayerSchedule:
    evaluation = evaluate_timeloop(schedule.padded_layer, schedule.architecture, schedule.nest, schedule.padding_macs)
    return LayerSchedule(
        layer=layer,
        count=count,
        file=file,
        schedule_hash=schedule.content_hash,
        macs=evaluation.macs,
        padding_macs=evaluation.padding_macs,
        compute_cycles=evaluation.compute_cycles,
        cycles=evaluation.cycles,
        energy_pj=evaluation.energy_pj,
        utilisation=evaluation.utilisation,
        objective_value=schedule.provenance.objective_value,
        solver_status=schedule.provenance.solver_status,
        gap=schedule.provenance.gap,
    )
