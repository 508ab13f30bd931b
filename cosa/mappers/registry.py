"""Every mapper by name, behind one call."""

from __future__ import annotations

import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from cosa.common.errors import InputError, nearest_of

if TYPE_CHECKING:
    from cosa.mappers.search import Budget
    from cosa.model.arch import Architecture
    from cosa.model.layer import Layer
    from cosa.model.schedule import Schedule

SEARCHES = ("random", "hybrid", "evolutionary", "exhaustive")
PROGRAMS = ("cosa", "machine")
MAPPERS = (*PROGRAMS, *SEARCHES)
SEARCH_OBJECTIVES = ("latency", "energy", "edp")


def budget_parts(name: str) -> tuple[str, ...]:
    """The parts of a `Budget` that the mapper of that name knows."""
    if name in PROGRAMS:
        return ("seconds",)
    return ("samples", "evaluations", "seconds") if name == "random" else ("evaluations", "seconds")


def program_objective(name: str | None, objective: str | None) -> str | None:
    """What the program of that name minimises if asked for `objective`; None leaves it to `cosa.schedule`.

    Who names no program gets the one that the objective belongs to.

    Raises
    ------
    InputError: `machine` is to minimise what only the published program knows.
    """
    if name == "machine":
        known = (*SEARCH_OBJECTIVES, "pareto")
        if objective is not None and objective not in known:
            allowed, nearest = ", ".join(known), nearest_of(objective, known)
            message = "no such objective of the mapper machine"
            raise InputError(message, source="--objective", value=objective, allowed=allowed, nearest=nearest)
        return objective or "latency"
    return objective or name


def map_layer(
    name: str,
    layer: Layer,
    architecture: Architecture,
    *,
    objective: str | None = None,
    budget: Budget | None = None,
    seed: int = 0,
    workers: int = 1,
    keep_interrupted: bool = False,
    **options: Any,
) -> Schedule:
    """A schedule of a layer on an architecture by the mapper of that name; `candidates` has the parameters.

    Raises
    ------
    InputError: there is no such mapper, objective or option.
    InfeasibleError: no valid mapping; the message names the binding, or the most violated, constraint.
    SolverError: the program, or `exhaustive`, found none in time.
    """
    return candidates(
        name,
        layer,
        architecture,
        objective=objective,
        budget=budget,
        seed=seed,
        workers=workers,
        keep_interrupted=keep_interrupted,
        **options,
    )[0]


def candidates(
    name: str,
    layer: Layer,
    architecture: Architecture,
    *,
    most: int = 1,
    objective: str | None = None,
    budget: Budget | None = None,
    seed: int = 0,
    workers: int = 1,
    keep_interrupted: bool = False,
    **options: Any,
) -> list[Schedule]:
    """The best schedules of a layer on an architecture by the mapper of that name, best first, of different costs.

    Parameters
    ----------
    name: one of `MAPPERS`.
    most: how many; the program makes one.
    objective: `latency`, `energy` or `edp` (None: latency): of a search analytically in Timeloop's convention, of the
        machine program in its option `model`. Of the published program, `cosa`, a name that it knows (None: `cosa`);
        those of the machine lead to the machine program.
    budget: how much a search may do (None: by its own rule; `budget_parts` says which parts); of the program its
        seconds count.
    seed: same seed, same schedule on any number of workers, unless time or Ctrl-C stops the search.
    workers: processor cores to use.
    keep_interrupted: Ctrl-C ends a search with the best so far (`provenance.search.stopped_by` says so) instead of
        raising KeyboardInterrupt.
    options: further ones of that mapper.

    Raises
    ------
    InputError: there is no such mapper, objective or option.
    InfeasibleError: no valid mapping; the message names the binding, or the most violated, constraint.
    SolverError: the program, or `exhaustive`, found none in time.
    """
    if name not in MAPPERS:
        allowed, nearest = ", ".join(MAPPERS), nearest_of(name, MAPPERS)
        raise InputError("no such mapper", source="--mapper", value=name, allowed=allowed, nearest=nearest)
    if not isinstance(seed, int) or seed < 0:
        raise InputError("out of range", source="--seed", value=seed, allowed="a whole number >= 0")
    for part in ("samples", "evaluations"):
        value = None if budget is None else getattr(budget, part)
        if value is not None and part not in budget_parts(name):
            message, allowed = f"the mapper {name} has no such budget", ", ".join(budget_parts(name))
            raise InputError(message, source=f"budget of {part}", value=value, allowed=allowed)
    if objective is not None:
        options["objective"] = objective
    if name in PROGRAMS:
        if budget is not None and budget.seconds is not None:
            options["time_limit_seconds"] = budget.seconds
        options["threads"] = workers
        machine = name == "machine" or objective in SEARCH_OBJECTIVES
        module, function = ("machine" if machine else "cosa_mip"), "map_layer"
    else:
        options |= {"budget": budget, "workers": workers, "keep_interrupted": keep_interrupted, "most": most}
        module, function = name, "search"
    # Programs and searches load here: each needs heavy packages that the others do not.
    mapper = getattr(import_module(f"cosa.mappers.{module}"), function)
    started = time.perf_counter()
    try:
        found = mapper(layer, architecture, seed=seed, **options)
    except TypeError as error:
        unknown = next((option for option in options if f"{option!r}" in str(error)), None)
        if unknown is None or "unexpected keyword" not in str(error):
            raise
        raise InputError(f"the mapper {name} has no such option", source=unknown, value=options[unknown]) from None
    schedules: list[Schedule] = found if isinstance(found, list) else [found]
    seconds = {"total_seconds": time.perf_counter() - started}
    return [
        schedule.model_copy(update={"timing": schedule.timing.model_copy(update=seconds)})
        if schedule.timing
        else schedule
        for schedule in schedules
    ]
