"""The CoSA mapper on a model of the machine: latency, energy or their product, and how far from optimal at most."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from cosa.analytical.constants import Constants
from cosa.arch import Architecture
from cosa.errors import InfeasibleError, InputError, SolverError, nearest_of
from cosa.mappers.certified import MAX_ROUNDS, Outcome, Search
from cosa.mappers.figures import AnalyticalModel, NetworkModel, outermost_only, padded_size
from cosa.mappers.neighbours import Point
from cosa.mip.factors import prime_factors
from cosa.mip.solver import solver_version
from cosa.schedule import Provenance, Schedule, ScheduleTiming
from cosa.validity import require_room
from cosa.workload import DIMS, Dim, Layer

OBJECTIVES = ("latency", "energy", "edp")
MODELS = ("network", "analytical")
ModelName = Literal["network", "analytical"]

_PADDING_CHOICES = 3


def map_layer(
    layer: Layer,
    architecture: Architecture,
    *,
    objective: str = "latency",
    model: str | None = None,
    constants: Constants | None = None,
    pad_percent: float = 0.0,
    gap: float = 0.01,
    time_limit_seconds: float = 60.0,
    rounds: int = MAX_ROUNDS,
    settle_ties: bool = True,
    seed: int = 0,
    threads: int = 1,
    report: Callable[[str, float, float], None] | None = None,
) -> Schedule:
    """Schedule a layer for the least latency, energy or energy times cycles.

    Parameters
    ----------
    layer, architecture: what to schedule, and on what.
    objective: ``latency`` (of the fastest the least energy), ``energy`` (of the least the fastest), ``edp``.
    model: ``network``, the simulated machine, or ``analytical``, Timeloop's accounting (None: network where the
        architecture has a mesh, else analytical).
    constants: weights of the network model's prediction (None: the defaults).
    pad_percent: by how much a dimension may be padded where that pays.
    gap: distance of the answer from the proven bound, in linear units, at which to stop.
    time_limit_seconds: for everything; the best by then is the answer.
    rounds: of solving and tightening, at most; unlike time the same on any machine.
    settle_ties: latency: of the fastest, look for the one with the least energy.
    seed, threads: of the solver.

    Raises
    ------
    InputError: there is no such objective or model, or the architecture has no mesh for the network model.
    InfeasibleError: nothing fits the architecture; the message says which level and tensor.
    SolverError: the solver failed.
    """
    started = time.perf_counter()
    _check_name("--objective", objective, OBJECTIVES)
    name = _model_name(model, architecture)
    require_room(layer, architecture)
    bounds = padding_choices(layer, pad_percent)
    found_model = (
        NetworkModel(layer, architecture, bounds, constants=constants)
        if name == "network"
        else AnalyticalModel(layer, architecture, bounds)
    )
    search = Search(
        model=found_model,
        start=starting_points(layer, architecture, found_model),
        gap=gap,
        time_limit_seconds=time_limit_seconds,
        rounds=rounds,
        settle_ties=settle_ties,
        seed=seed,
        threads=threads,
        report=report,
    )
    outcome = search.run(objective)
    floor = search.floor(outcome) if name == "network" and objective == "latency" else None
    point = outcome.answer.point
    timing = ScheduleTiming(
        build_seconds=0.0, solve_seconds=outcome.seconds, total_seconds=time.perf_counter() - started
    )
    return Schedule.make(
        layer,
        architecture,
        found_model.neighbourhood.nest(point),
        _provenance(outcome, objective, name, floor, bounds, seed),
        timing,
        padded_size(layer, point),
    )


def _check_name(option: str, name: str, allowed: Sequence[str]) -> None:
    if name not in allowed:
        nearest = nearest_of(name, list(allowed))
        raise InputError("no such name", source=option, value=name, allowed=", ".join(allowed), nearest=nearest)


def _model_name(model: str | None, architecture: Architecture) -> ModelName:
    if model is not None:
        _check_name("--model", model, MODELS)
        if model == "network":
            architecture.require_noc()
            return "network"
        return "analytical"
    return "analytical" if architecture.noc is None else "network"


def padding_choices(layer: Layer, percent: float) -> dict[Dim, tuple[int, ...]]:
    """Bounds that a dimension may have: its own, and the larger ones within `percent` that split best.

    Of those within reach the ones with the smallest largest prime are offered, of equals the smallest.

    Raises
    ------
    InputError: the percentage is out of range.
    """
    if not 0 <= percent <= 100:
        raise InputError("out of range", source="--pad-percent", value=percent, allowed="from 0 to 100")
    found: dict[Dim, tuple[int, ...]] = {}
    for dim in DIMS:
        bound = layer.bounds[dim]
        largest = max(prime_factors(bound), default=1)
        reach = range(bound + 1, int(bound * (1 + percent / 100)) + 1)
        ranked = sorted(reach, key=lambda size: (max(prime_factors(size)), size))
        better = [size for size in ranked if max(prime_factors(size)) < largest][:_PADDING_CHOICES]
        if better:
            found[dim] = (bound, *sorted(better))
    return found


def starting_points(layer: Layer, architecture: Architecture, model: AnalyticalModel) -> list[Point]:
    """Where the search begins: the published program's schedule, and every loop at the outermost level."""
    from cosa.mappers.cosa_mip import map_layer as published

    points = [outermost_only(layer, architecture, model.neighbourhood)]
    try:
        schedule = published(layer, architecture, time_limit_seconds=5.0, gap=0.01)
    except (InputError, InfeasibleError, SolverError):
        return points
    return [model.neighbourhood.of_nest(schedule.nest), *points]


def _provenance(
    outcome: Outcome,
    objective: str,
    model: ModelName,
    floor: float | None,
    bounds: Mapping[Dim, Sequence[int]],
    seed: int,
) -> Provenance:
    from cosa.version import version

    padding = ", ".join(f"{dim} of {' or '.join(map(str, sizes))}" for dim, sizes in bounds.items())
    accounting = {
        "analytical": "Timeloop's accounting, words not rounded up to blocks, no reads from neighbours",
        "network": "the predicted cycles of the simulated machine",
    }[model]
    covers = (
        f"{accounting}; tile sizes that divide the bounds{f' ({padding})' if padding else ''}; all loop orders and "
        "spatial splits; every level keeps what the architecture says"
    )
    notes = [f"the bound covers {covers}"]
    if outcome.stopped_by != "gap":
        why = {"tight": "nothing was left to tighten in the program", "time": "time was up"}[outcome.stopped_by]
        notes.append(f"stopped because {why}")
    if floor:
        notes.append(f"no schedule of this space runs in less than {floor:.0f} cycles (loads, not the prediction)")
    return Provenance(
        mapper="cosa",
        version=version(),
        objective=objective,
        model=model,
        seed=seed,
        solver=solver_version(),
        solver_status={"gap": "optimal", "tight": "optimal", "time": "time_limit"}[outcome.stopped_by],
        objective_value=outcome.value,
        bound=outcome.bound or None,
        gap=outcome.gap if outcome.bound else None,
        machine_bound_cycles=floor or None,
        notes=tuple(notes),
    )
