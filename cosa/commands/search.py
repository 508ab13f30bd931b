"""`cosa schedule --mapper`: the searches on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from cosa.common.errors import InputError, nearest_of
from cosa.mappers.registry import MAPPERS, PROGRAMS, map_layer

if TYPE_CHECKING:
    from cosa.mappers.search import Budget
    from cosa.model.arch import Architecture
    from cosa.model.layer import Layer
    from cosa.model.schedule import Schedule

SEARCH_ONLY = ("samples", "budget_evaluations", "budget_seconds", "logical_threads", "victory_condition")
HYBRID_ONLY = ("logical_threads", "victory_condition")
PROGRAM_ONLY = (
    "as_published",
    "bypass",
    "constants",
    "constrain",
    "formulation",
    "gap",
    "model",
    "order_level",
    "pad_percent",
    "pad_primes_above",
    "physical_only",
    "points",
    "pool",
    "precision",
    "remainders",
    "settle_ties",
    "threads",
    "time_limit",
    "weights",
)

_SWITCHES = {"physical_only": "--any-loops", "settle_ties": "--any-fastest"}
"""Options that are on unless their opposite is given."""

_OF_SEARCHES = {"time_limit": "--budget-seconds", "threads": "--workers"}
"""What a search has instead of an option of the programs."""


def check_options(context: typer.Context, mapper: str, whole_network: bool = False) -> None:
    """The mapper is known, and what stands on the command line is for it (and for a whole network, if it is one).

    Raises
    ------
    InputError: no such mapper, or an option of another kind of mapper.
    """
    if mapper not in MAPPERS:
        allowed, nearest = ", ".join(MAPPERS), nearest_of(mapper, MAPPERS)
        raise InputError("no such mapper", source="--mapper", value=mapper, allowed=allowed, nearest=nearest)
    foreign: tuple[str, ...] = SEARCH_ONLY if mapper in PROGRAMS else PROGRAM_ONLY
    if not whole_network:
        given = context.get_parameter_source("cache")
        if given is not None and given.name == "COMMANDLINE":
            allowed = "with --network NAME and without --layer"
            raise InputError("for whole networks", source="--cache", value=context.params["cache"], allowed=allowed)
        if mapper in PROGRAMS:
            foreign = (*foreign, "workers")
    if mapper not in (*PROGRAMS, "random"):
        foreign = (*foreign, "samples")
    if mapper not in (*PROGRAMS, "hybrid"):
        foreign = (*foreign, *HYBRID_ONLY)
    for name in foreign:
        source = context.get_parameter_source(name) if name in context.params else None
        if source is not None and source.name == "COMMANDLINE":
            value = context.params[name]
            message = f"the mapper {mapper} has no such option"
            if value is False and name in _SWITCHES:
                raise InputError(message, source=_SWITCHES[name])
            instead = None if mapper in PROGRAMS else _OF_SEARCHES.get(name)
            raise InputError(message, source=f"--{name.replace('_', '-')}", value=value, allowed=instead)


def budget(samples: int | None, evaluations: int | None, seconds: float | None) -> Budget:
    """The budget that the options say.

    Raises
    ------
    InputError: one is out of range.
    """
    from cosa.mappers.search import Budget, check_budget

    for option, value in (("--samples", samples), ("--budget-evaluations", evaluations), ("--budget-seconds", seconds)):
        check_budget(option, value, whole=option != "--budget-seconds")
    return Budget(samples, evaluations, seconds)


def hybrid_options(logical_threads: int | None, victory_condition: int | None) -> dict[str, int]:
    """Options of the mapper hybrid that were given.

    Raises
    ------
    InputError: one is out of range.
    """
    found = {}
    for name, value in (("logical_threads", logical_threads), ("victory_condition", victory_condition)):
        if value is None:
            continue
        if not 1 <= value <= 10**6:
            option = f"--{name.replace('_', '-')}"
            raise InputError("out of range", source=option, value=value, allowed="a whole number from 1 to 1000000")
        found[name] = value
    return found


def search(
    mapper: str,
    layer: Layer,
    architecture: Architecture,
    objective: str | None,
    budget: Budget,
    seed: int,
    workers: int,
    options: dict[str, int],
) -> Schedule:
    """The schedule that a search, with options of its own, finds; Ctrl-C ends it with the best so far."""
    if not 1 <= workers <= 1024:
        raise InputError("out of range", source="--workers", value=workers, allowed="a whole number from 1 to 1024")
    return map_layer(
        mapper,
        layer,
        architecture,
        objective=objective,
        budget=budget,
        seed=seed,
        workers=workers,
        keep_interrupted=True,
        **options,
    )


def exit_code(schedule: Schedule) -> int:
    """130 for what Ctrl-C cut off."""
    found = schedule.provenance.search
    return 130 if found is not None and found.stopped_by == "interrupted" else 0
