"""Mappers side by side: the same layers on the same architecture, analytically and, if wanted, simulated."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from math import exp, log
from typing import Any, Literal, cast

from pydantic import Field

from cosa.analytical.evaluation import evaluate_timeloop
from cosa.common.errors import CosaError, InputError, nearest_of
from cosa.common.files import FileModel, Model
from cosa.common.version import version
from cosa.common.worker_pool import worker_processes
from cosa.mappers.registry import MapperOptions, Run, candidates, find_mapper, mapper_names, options_of
from cosa.model.arch import Architecture
from cosa.model.layer import Dim
from cosa.model.networks import NetworkLayer
from cosa.model.objectives import OBJECTIVES, ObjectiveName
from cosa.model.schedule import Schedule, StoppedBy
from nocsim.experiments.simulated_search import (
    Limit,
    Simulated,
    SimulatedBest,
    machine_bound,
    simulate_all,
    simulate_best,
)

Objective = Literal[ObjectiveName, "simulated"]
GOALS = (*OBJECTIVES, "simulated")
CANDIDATES = 16
"""Mappings of a search that `simulated` chooses among."""


class ComparedMapping(Model):
    """One layer by one mapper; figures of one occurrence of the layer, null where the mapper found nothing."""

    layer: str
    count: int
    mapper: str
    objective: str
    model: str | None = None
    seed: int | None = None
    cycles: int | None = None
    energy_pj: float | None = None
    energy_delay_pj_cycles: float | None = None
    ratio: float | None = None
    simulated_cycles: int | None = None
    extrapolated_share: float | None = None
    bound_cycles: int | None = None
    simulated_ratio: float | None = None
    bound: float | None = None
    gap: float | None = None
    evaluations: int | None = None
    samples_drawn: int | None = None
    samples_walked: int | None = None
    samples_valid: int | None = None
    simulations: int | None = None
    simulations_skipped: int | None = None
    stopped_by: StoppedBy | None = None
    padded: dict[Dim, int] = Field(default_factory=dict)
    schedule_hash: str | None = None
    seconds: float | None = None
    error: str | None = None


class MapperMean(Model):
    """Geometric means over the layers where this mapper and the first have both the figure, and how many these are."""

    mapper: str
    layers: int
    ratio: float | None
    simulated_layers: int
    simulated_ratio: float | None


class Comparison(FileModel):
    """Mappers side by side; ratios are to the first mapper, above 1 is worse."""

    kind: Literal["comparison"] = "comparison"
    schema_version: Literal[1] = 1
    version: str
    network: str | None
    architecture: str
    architecture_hash: str
    objective: Objective
    max_cycles: int | None = None
    mappers: tuple[str, ...]
    mappings: tuple[ComparedMapping, ...]
    means: tuple[MapperMean, ...]
    complete: bool

    def csv(self) -> str:
        """The mappings as CSV."""
        text = io.StringIO()
        rows = [mapping.model_dump(mode="json") for mapping in self.mappings]
        writer = csv.DictWriter(text, list(ComparedMapping.model_fields), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            row["padded"] = " ".join(f"{dim}={bound}" for dim, bound in row["padded"].items())
            writer.writerow(row)
        return text.getvalue()


@dataclass(frozen=True)
class Contender:
    """A mapper as a comparison names it (``NAME``, ``NAME:OBJECTIVE``, or, of the program, ``NAME:OBJECTIVE:MODEL``),
    and its options."""

    text: str
    options: MapperOptions

    @staticmethod
    def of(text: str, shared: Mapping[str, Any] | None = None, objective: str | None = None) -> Contender:
        """Read it.

        Parameters
        ----------
        shared: options that all mappers get which have them.
        objective: of mappers that know it and are given none.

        Raises
        ------
        InputError: there is no such mapper, objective or model.
        """
        name, *rest = text.split(":")
        mapper = find_mapper(name)
        fields = mapper.options.model_fields
        given = {one: value for one, value in (shared or {}).items() if one in fields and value is not None}
        if objective in mapper.objectives():
            given["objective"] = objective
        if len(rest) > 2:
            raise InputError("too many parts", path="mapper", value=text, allowed="NAME:OBJECTIVE:MODEL at most")
        own = dict(zip(("objective", "model"), rest, strict=False))
        try:
            return Contender(text, options_of(name, given | own))
        except InputError as error:
            if error.path not in own:
                raise
            message = f"no such {error.path} of the mapper {name}"
            more = {"allowed": error.allowed, "nearest": error.nearest}
            raise InputError(message, path="mapper", value=text, **more) from None


@dataclass
class _Made:
    """What a mapper has made of a layer."""

    contender: Contender
    schedule: Schedule | None = None
    seconds: float = 0.0
    best: SimulatedBest | None = None
    error: str | None = None

    @property
    def interrupted(self) -> bool:
        if self.best is not None and self.best.interrupted:
            return True
        return self.schedule is not None and self.schedule.provenance.interrupted


def compare(
    layers: Sequence[NetworkLayer],
    architecture: Architecture,
    mappers: Sequence[str],
    *,
    network: str | None = None,
    objective: str = "latency",
    options: Mapping[str, Any] | None = None,
    workers: int = 1,
    simulate: bool = False,
    pool_size: int = CANDIDATES,
    limit: Limit | None = None,
    timing: bool = True,
    progress: Callable[[str, str], None] | None = None,
) -> Comparison:
    """Map every layer with every mapper.

    Parameters
    ----------
    mappers: names, with ``:OBJECTIVE`` and for the program ``:MODEL`` behind where they have their own (`Contender`).
    objective: of all mappers that know it and name none. `simulated`: each search gives its best mappings by latency
        (`pool_size` of them, all samples of `random`), of which the one with the fewest simulated cycles is
        taken.
    options: of mappers, by name; each gets those that it has.
    workers: cores of each mapper; simulations run on so many processes.
    simulate: simulate the schedules found.
    limit: of each simulation; one that reaches it has no simulated cycles.
    timing: whether seconds are told.
    progress: called with layer and mapper before each.

    Returns
    -------
    All mappings; after Ctrl-C those until then, with `complete` false. What a mapper could not map has an `error`.

    Raises
    ------
    InputError: no such mapper or objective, or the architecture can't be simulated.
    """
    goal = _check(mappers, objective)
    searched = "latency" if goal == "simulated" else goal
    contenders = [Contender.of(text, options, searched) for text in mappers]
    if simulate or goal == "simulated":
        architecture.require_noc()
        architecture.require_dram()
    rows: list[ComparedMapping] = []
    complete = False
    # Ctrl-C has to leave the block of the worker processes: that ends the simulations that they are at.
    with suppress(KeyboardInterrupt), worker_processes(workers) as pool:
        for entry in layers:
            made: list[_Made] = []
            try:
                for one in contenders:
                    if progress:
                        progress(entry.layer.name, one.text)
                    run = Run(workers, _most(one.options, pool_size) if goal == "simulated" else 1, True)
                    made.append(_map(one, entry, architecture, run, (pool, limit) if goal == "simulated" else None))
                    if made[-1].interrupted:
                        raise KeyboardInterrupt
                cycles = _simulated(made, pool, limit or Limit()) if simulate or goal == "simulated" else {}
            except KeyboardInterrupt:
                rows += _rows(entry, made, _known(made), goal, timing)
                raise
            rows += _rows(entry, made, cycles, goal, timing)
        complete = True
    return Comparison(
        version=version(),
        network=network,
        architecture=architecture.name,
        architecture_hash=architecture.content_hash,
        objective=goal,
        max_cycles=limit.max_cycles if limit else None,
        mappers=tuple(mappers),
        mappings=tuple(rows),
        means=tuple(_mean(mapper, rows) for mapper in mappers),
        complete=complete,
    )


def _check(mappers: Sequence[str], objective: str) -> Objective:
    if not mappers:
        raise InputError("no mapper", path="mappers", allowed=", ".join(mapper_names()))
    for number, mapper in enumerate(mappers):
        if mapper in mappers[:number]:
            raise InputError("named twice", path="mappers", value=mapper, allowed="each once")
    if objective not in GOALS:
        allowed, nearest = ", ".join(GOALS), nearest_of(objective, GOALS)
        raise InputError("no such objective", path="objective", value=objective, allowed=allowed, nearest=nearest)
    return cast(Objective, objective)


def _most(options: MapperOptions, pool_size: int) -> int:
    """How many mappings of a mapper are simulated: all that `random` draws."""
    return max(pool_size, getattr(options, "samples", None) or 0)


def _map(
    contender: Contender,
    entry: NetworkLayer,
    architecture: Architecture,
    run: Run,
    simulations: tuple[ProcessPoolExecutor | None, Limit | None] | None,
) -> _Made:
    started = time.perf_counter()
    try:
        found = candidates(entry.layer, architecture, contender.options, run)
        best = simulate_best(found, *simulations) if simulations else None
    except CosaError as error:
        return _Made(contender, seconds=time.perf_counter() - started, error=str(error))
    return _Made(contender, best.schedule if best else found[0], time.perf_counter() - started, best)


def _known(made: Sequence[_Made]) -> dict[str, Simulated | None]:
    """Simulations that searches have made already, by mapper."""
    return {one.contender.text: one.best.simulated for one in made if one.best is not None}


def _simulated(made: Sequence[_Made], pool: ProcessPoolExecutor | None, limit: Limit) -> dict[str, Simulated | None]:
    """Simulations by mapper; those that a search has made already are taken from it."""
    others = [(one.contender.text, one.schedule) for one in made if one.best is None and one.schedule is not None]
    worth = [(mapper, schedule) for mapper, schedule in others if not limit.excludes(machine_bound(schedule))]
    found = simulate_all([schedule for _, schedule in worth], pool, limit)
    ends = dict(zip((mapper for mapper, _ in worth), found, strict=True))
    return _known(made) | {mapper: ends.get(mapper) for mapper, _ in others}


def _rows(
    entry: NetworkLayer, made: Sequence[_Made], ends: dict[str, Simulated | None], objective: str, timing: bool
) -> list[ComparedMapping]:
    rows: list[ComparedMapping] = []
    for one in made:
        seconds = one.seconds if timing else None
        options = one.contender.options
        head: dict[str, Any] = {"objective": options.made_for, "seed": getattr(options, "seed", None)}
        head |= {"layer": entry.layer.name, "count": entry.count, "mapper": one.contender.text, "seconds": seconds}
        if one.schedule is None:
            rows.append(ComparedMapping.model_validate(head | {"error": one.error}))
            continue
        schedule, search = one.schedule, one.schedule.provenance.search
        result = evaluate_timeloop(
            schedule.padded_layer, schedule.architecture, schedule.nest, padding_macs=schedule.padding_macs
        )
        edp = result.energy_pj * result.cycles
        end = ends.get(one.contender.text)
        figures = {
            "cycles": result.cycles,
            "energy_pj": result.energy_pj,
            "energy_delay_pj_cycles": edp,
            "simulated_cycles": end.cycles if end else None,
            "extrapolated_share": end.extrapolated_share if end else None,
            "bound_cycles": machine_bound(schedule) if one.contender.text in ends else None,
            "model": schedule.provenance.model,
            "bound": schedule.provenance.bound,
            "gap": schedule.provenance.gap,
            "stopped_by": "time" if schedule.provenance.solver_status == "time_limit" else None,
            "padded": dict(schedule.padded),
            "schedule_hash": schedule.content_hash,
        }
        if search is not None:
            counts = {"evaluations", "samples_drawn", "samples_walked", "samples_valid", "stopped_by"}
            figures |= search.model_dump(include=counts)
        if one.best is not None:
            figures |= {"simulations": one.best.simulations, "simulations_skipped": one.best.skipped}
            if one.best.interrupted:
                figures["stopped_by"] = "interrupted"
        rows.append(ComparedMapping.model_validate(head | figures))
    return [_with_ratios(row, rows[0], objective) for row in rows]


def _with_ratios(row: ComparedMapping, first: ComparedMapping, objective: str) -> ComparedMapping:
    field = {"energy": "energy_pj", "edp": "energy_delay_pj_cycles"}.get(objective, "cycles")

    def ratio(name: str) -> float | None:
        mine, base = getattr(row, name), getattr(first, name)
        return mine / base if mine is not None and base else None

    return row.model_copy(update={"ratio": ratio(field), "simulated_ratio": ratio("simulated_cycles")})


def _mean(mapper: str, rows: Sequence[ComparedMapping]) -> MapperMean:
    mine = [row for row in rows if row.mapper == mapper]

    def mean(values: list[float]) -> float | None:
        return exp(sum(map(log, values)) / len(values)) if values else None

    ratios = [row.ratio for row in mine if row.ratio is not None]
    simulated = [row.simulated_ratio for row in mine if row.simulated_ratio is not None]
    return MapperMean(
        mapper=mapper,
        layers=len(ratios),
        ratio=mean(ratios),
        simulated_layers=len(simulated),
        simulated_ratio=mean(simulated),
    )
