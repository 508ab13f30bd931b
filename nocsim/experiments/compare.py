"""Mappers side by side: the same layers on the same architecture, analytically and, if wanted, simulated."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from math import exp, log
from typing import Literal

from pydantic import Field

from cosa.analytical.evaluation import evaluate_timeloop
from cosa.common.errors import CosaError, InputError, nearest_of
from cosa.common.files import FileModel, Model
from cosa.common.version import version
from cosa.common.worker_pool import worker_processes
from cosa.mappers import Budget
from cosa.mappers.registry import MAPPERS, PROGRAMS, SEARCH_OBJECTIVES, budget_parts, candidates
from cosa.model.arch import Architecture
from cosa.model.layer import Dim
from cosa.model.networks import NetworkLayer
from cosa.model.schedule import Schedule, StoppedBy
from nocsim.experiments.simulated_search import (
    Limit,
    Simulated,
    SimulatedBest,
    machine_bound,
    simulate_all,
    simulate_best,
)

Objective = Literal["latency", "energy", "edp", "simulated"]
OBJECTIVES: tuple[Objective, ...] = ("latency", "energy", "edp", "simulated")
CANDIDATES = 16
"""Mappings of a search that `simulated` chooses among."""


class ComparedMapping(Model):
    """One layer by one mapper; figures of one occurrence of the layer, null where the mapper found nothing."""

    layer: str
    count: int
    mapper: str
    cycles: int | None = None
    energy_pj: float | None = None
    energy_delay_pj_cycles: float | None = None
    ratio: float | None = None
    simulated_cycles: int | None = None
    extrapolated_share: float | None = None
    bound_cycles: int | None = None
    simulated_ratio: float | None = None
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
    seed: int
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
class MapperSpec:
    """A mapper as a comparison names it: ``NAME``, ``NAME:OBJECTIVE``, or, of a program, ``NAME:OBJECTIVE:MODEL``."""

    text: str
    name: str
    objective: str | None = None
    model: str | None = None

    @staticmethod
    def of(text: str) -> MapperSpec:
        """Read it.

        Raises
        ------
        InputError: there is no such mapper, objective or model.
        """
        from cosa.mappers.machine import MODELS
        from cosa.mip.objective import OBJECTIVES as PROGRAM_OBJECTIVES

        name, *rest = text.split(":")
        parts: list[tuple[str, str, tuple[str, ...]]] = [("mapper", name, MAPPERS)]
        if rest:
            known = (*PROGRAM_OBJECTIVES, *SEARCH_OBJECTIVES) if name == "cosa" else SEARCH_OBJECTIVES
            parts.append(("objective", rest[0], known))
        if len(rest) > 1:
            own = name in PROGRAMS and rest[0] in SEARCH_OBJECTIVES and len(rest) == 2
            parts.append(("model", ":".join(rest[1:]), MODELS if own else ()))
        for what, value, choices in parts:
            if value not in choices:
                allowed, nearest = ", ".join(choices) or f"none for {name}:{rest[0]}", nearest_of(value, choices)
                raise InputError(f"no such {what}", source="--mappers", value=text, allowed=allowed, nearest=nearest)
        return MapperSpec(text, name, *rest)


@dataclass
class _Made:
    """What a mapper has made of a layer."""

    mapper: str
    schedule: Schedule | None = None
    seconds: float = 0.0
    best: SimulatedBest | None = None
    error: str | None = None

    @property
    def interrupted(self) -> bool:
        if self.best is not None and self.best.interrupted:
            return True
        search = self.schedule.provenance.search if self.schedule else None
        return search is not None and search.stopped_by == "interrupted"


def compare(
    layers: Sequence[NetworkLayer],
    architecture: Architecture,
    mappers: Sequence[str],
    *,
    network: str | None = None,
    objective: str = "latency",
    budget: Budget | None = None,
    seed: int = 0,
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
    mappers: names, with ``:OBJECTIVE`` and for the program ``:MODEL`` behind where they have their own (`MapperSpec`).
    objective: of the searches; the program keeps its own. `simulated`: each search gives its best mappings by latency
        (`pool_size` of them, all samples of `random`), of which the one with the fewest simulated cycles is
        taken.
    budget, seed, workers: of the mappers; simulations run on so many processes.
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
    specs = [MapperSpec.of(text) for text in mappers]
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
                for spec in specs:
                    if progress:
                        progress(entry.layer.name, spec.text)
                    made.append(_map(spec, entry, architecture, goal, budget, seed, workers, pool_size, pool, limit))
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
        seed=seed,
        max_cycles=limit.max_cycles if limit else None,
        mappers=tuple(mappers),
        mappings=tuple(rows),
        means=tuple(_mean(mapper, rows) for mapper in mappers),
        complete=complete,
    )


def _check(mappers: Sequence[str], objective: str) -> Objective:
    if not mappers:
        raise InputError("no mapper", source="--mappers", allowed=", ".join(MAPPERS))
    for number, mapper in enumerate(mappers):
        if mapper in mappers[:number]:
            raise InputError("named twice", source="--mappers", value=mapper, allowed="each once")
    for name in OBJECTIVES:
        if name == objective:
            return name
    allowed, nearest = ", ".join(OBJECTIVES), nearest_of(objective, OBJECTIVES)
    raise InputError("no such objective", source="--objective", value=objective, allowed=allowed, nearest=nearest)


def _map(
    spec: MapperSpec,
    entry: NetworkLayer,
    architecture: Architecture,
    objective: Objective,
    budget: Budget | None,
    seed: int,
    workers: int,
    most: int,
    pool: ProcessPoolExecutor | None,
    limit: Limit | None,
) -> _Made:
    started = time.perf_counter()
    simulated = objective == "simulated"
    model = spec.model
    if model is None and spec.name == "machine":
        model = "network" if simulated else "analytical"
    if spec.name == "random" and budget is not None and budget.samples is not None:
        most = max(most, budget.samples)
    try:
        found = candidates(
            spec.name,
            entry.layer,
            architecture,
            most=most if simulated else 1,
            objective=spec.objective or (None if spec.name == "cosa" else "latency" if simulated else objective),
            budget=_own(budget, spec.name),
            seed=seed,
            workers=workers,
            keep_interrupted=True,
            **({"model": model} if model else {}),
        )
        best = simulate_best(found, pool, limit) if simulated else None
    except CosaError as error:
        return _Made(spec.text, seconds=time.perf_counter() - started, error=str(error))
    return _Made(spec.text, best.schedule if best else found[0], time.perf_counter() - started, best)


def _own(budget: Budget | None, mapper: str) -> Budget | None:
    """The part of a budget that a mapper knows."""
    return budget and Budget(**{part: getattr(budget, part) for part in budget_parts(mapper)})


def _known(made: Sequence[_Made]) -> dict[str, Simulated | None]:
    """Simulations that searches have made already, by mapper."""
    return {one.mapper: one.best.simulated for one in made if one.best is not None}


def _simulated(made: Sequence[_Made], pool: ProcessPoolExecutor | None, limit: Limit) -> dict[str, Simulated | None]:
    """Simulations by mapper; those that a search has made already are taken from it."""
    others = [(one.mapper, one.schedule) for one in made if one.best is None and one.schedule is not None]
    worth = [(mapper, schedule) for mapper, schedule in others if not limit.excludes(machine_bound(schedule))]
    found = simulate_all([schedule for _, schedule in worth], pool, limit)
    ends = dict(zip((mapper for mapper, _ in worth), found, strict=True))
    return _known(made) | {mapper: ends.get(mapper) for mapper, _ in others}


def _rows(
    entry: NetworkLayer, made: Sequence[_Made], ends: dict[str, Simulated | None], objective: Objective, timing: bool
) -> list[ComparedMapping]:
    rows: list[ComparedMapping] = []
    for one in made:
        seconds = one.seconds if timing else None
        head = {"layer": entry.layer.name, "count": entry.count, "mapper": one.mapper, "seconds": seconds}
        if one.schedule is None:
            rows.append(ComparedMapping.model_validate(head | {"error": one.error}))
            continue
        schedule, search = one.schedule, one.schedule.provenance.search
        result = evaluate_timeloop(
            schedule.padded_layer, schedule.architecture, schedule.nest, padding_macs=schedule.padding_macs
        )
        edp = result.energy_pj * result.cycles
        end = ends.get(one.mapper)
        figures = {
            "cycles": result.cycles,
            "energy_pj": result.energy_pj,
            "energy_delay_pj_cycles": edp,
            "simulated_cycles": end.cycles if end else None,
            "extrapolated_share": end.extrapolated_share if end else None,
            "bound_cycles": machine_bound(schedule) if one.mapper in ends else None,
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


def _with_ratios(row: ComparedMapping, first: ComparedMapping, objective: Objective) -> ComparedMapping:
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
