"""Mappers by name: what makes a schedule of a layer on an architecture, with options of a type of its own.

A mapper registers in its own file: ``register(Mapper(name, Options, run, summary))``. Those of this package are found
in `cosa.mappers.NAME`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, ClassVar

from pydantic import Field

from cosa.common.errors import InputError, nearest_of
from cosa.common.options import Options, choices_of, flag_of
from cosa.common.pool import require_workers
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from cosa.model.schedule import Schedule, ScheduleTiming

DEFAULT = "program"
"""Who names no mapper gets this one, everywhere;"""

DEFAULTS = (DEFAULT, "published")
"""or the other program, where an option or objective is of that one alone."""

PACKAGED = {
    "program": "program",
    "published": "published",
    "random": "search_mappers",
    "hybrid": "search_mappers",
    "evolutionary": "search_mappers",
    "exhaustive": "search_mappers",
}

_FORMER = {"machine": "program", "cosa": "published"}
"""Names that mappers had before; for the hint in the error."""

Seconds = Annotated[float, Field(gt=0, le=1e7)]
Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]
Gap = Annotated[float, Field(gt=0, le=10)]
Count = Annotated[int, Field(ge=1, le=10**14)]


class MapperOptions(Options):
    """Options of a mapper. Each has its own `objective`, `seed` and time limit among them, as far as it knows them."""

    mapper: ClassVar[str]

    @property
    def made_for(self) -> str:
        """The objective."""
        return str(getattr(self, "objective", ""))

    @property
    def text(self) -> str:
        """As rows of results have them: those that differ from the defaults, the objective in any case; JSON."""
        return json.dumps({"objective": self.made_for} | self.given(), sort_keys=True)

    def require_levels(self, architecture: Architecture) -> None:
        """InputError where an option names a level that the architecture does not have."""


@dataclass(frozen=True)
class Run:
    """How a mapper runs; nothing here changes what it finds, but `most` and Ctrl-C.

    workers: processor cores to use.
    most: schedules wanted, of different costs, the best first; programs make one.
    keep_interrupted: Ctrl-C ends a search with the best so far (`provenance.search.stopped_by` says so) instead of
        raising KeyboardInterrupt.
    report: called by the program with objective, value and bound as they get better.
    """

    workers: int = 1
    most: int = 1
    keep_interrupted: bool = False
    report: Callable[[str, float, float], None] | None = None

    def __post_init__(self) -> None:
        require_workers(self.workers)


@dataclass(frozen=True)
class Mapper:
    """A mapper: its name, the type of its options, what runs it, and a sentence on it.

    `uses_workers`: whether it works on one layer with several cores.
    """

    name: str
    options: type[MapperOptions]
    run: Callable[[Layer, Architecture, Any, Run], list[Schedule]]
    summary: str
    uses_workers: bool = False

    def objectives(self) -> tuple[str, ...]:
        """What it can minimise."""
        return choices_of(self.options.model_fields["objective"])


_registered: dict[str, Mapper] = {}


def register(mapper: Mapper) -> None:
    """Make a mapper known by its name."""
    mapper.options.mapper = mapper.name
    _registered[mapper.name] = mapper


def mapper_names() -> list[str]:
    """All names, those of this package first."""
    return list(dict.fromkeys((*PACKAGED, *_registered)))


def find_mapper(name: str) -> Mapper:
    """The mapper of that name.

    Raises
    ------
    InputError: there is none; its path is ``mapper``.
    """
    if name not in _registered and name in PACKAGED:
        import_module(f"cosa.mappers.{PACKAGED[name]}")
    if name not in _registered:
        names = mapper_names()
        nearest = _FORMER.get(name) or nearest_of(str(name), names)
        raise InputError("no such mapper", path="mapper", value=name, allowed=", ".join(names), nearest=nearest)
    return _registered[name]


def every_mapper() -> list[Mapper]:
    """All mappers, those of this package first."""
    return [find_mapper(name) for name in mapper_names()]


def chosen_mapper(name: str | None, given: Mapping[str, Any]) -> Mapper:
    """The mapper of that name; where none is named, the first of the `DEFAULTS` that knows all that is asked for.

    Raises
    ------
    InputError: there is no such mapper.
    """
    if name is not None:
        return find_mapper(name)
    known = [one for one in map(find_mapper, DEFAULTS) if given.get("objective") in (None, *one.objectives())]
    whole = [one for one in known if set(given) <= set(one.options.model_fields)]
    return next(iter((*whole, *known)), find_mapper(DEFAULT))


def options_of(mapper: str | None, given: Mapping[str, Any], flags: bool = False) -> MapperOptions:
    """Options of a mapper from what was given by name; None counts as not given.

    Parameters
    ----------
    mapper: its name (None: see `chosen_mapper`).
    flags: name options in errors as the command line does.

    Raises
    ------
    InputError: there is no such mapper, it has no such option (whose it is then is said), or a value is wrong.
    """
    values = {name: value for name, value in given.items() if value is not None}
    found = chosen_mapper(mapper, values)
    for name, value in values.items():
        _require_option(found, name, value, flags)
    if "objective" in values:
        _require_objective(found, values["objective"], named=mapper is not None)
    return found.options.of(values)


def owners_of(option: str) -> list[str]:
    """The mappers that have an option."""
    return [one.name for one in every_mapper() if option in one.options.model_fields]


def _require_option(mapper: Mapper, name: str, value: Any, flags: bool) -> None:
    fields = mapper.options.model_fields
    if name in fields:
        return
    owners = owners_of(name)
    shown = {one: flag_of(one, field) if flags else one for one, field in fields.items()}
    near = None if owners else nearest_of(name, list(fields))
    raise InputError(
        (f"an option of {', '.join(owners)}, not" if owners else "not an option") + f" of the mapper {mapper.name}",
        path=name,
        value=value,
        allowed=", ".join(shown.values()),
        nearest=shown[near] if near else None,
    )


def _require_objective(mapper: Mapper, objective: Any, named: bool) -> None:
    known = mapper.objectives() if named else tuple(one for name in DEFAULTS for one in find_mapper(name).objectives())
    if objective in mapper.objectives():
        return
    others = [one.name for one in every_mapper() if objective in one.objectives()]
    allowed = ", ".join(known) + (f" ({objective} is one of {', '.join(others)})" if others else "")
    nearest = nearest_of(objective, known) if isinstance(objective, str) else None
    message = f"not an objective of the mapper {mapper.name}" if named else "no such objective"
    raise InputError(message, path="objective", value=objective, allowed=allowed, nearest=nearest)


def candidates(
    layer: Layer, architecture: Architecture, options: MapperOptions, run: Run | None = None
) -> list[Schedule]:
    """The best schedules of a layer on an architecture, best first, by the mapper whose options these are.

    Every schedule is valid, says in `provenance` who made it with what (`options`: those that differ from the
    defaults), and how long that took.

    Raises
    ------
    InputError: an option does not go with this layer or architecture.
    InfeasibleError: no valid schedule; the message names the binding, or the most violated, constraint.
    SolverError: the program, or `exhaustive`, found none in time.
    """
    started = time.perf_counter()
    options.require_levels(architecture)
    found = find_mapper(options.mapper).run(layer, architecture, options, run or Run())
    seconds = time.perf_counter() - started
    return [signed(schedule, options, seconds) for schedule in found]


def signed(schedule: Schedule, options: MapperOptions, seconds: float | None = None) -> Schedule:
    """A valid schedule that says by which mapper and options it was made, and in how many seconds.

    Raises
    ------
    InfeasibleError: it does not fit its architecture.
    """
    from cosa.model.validity import require_valid

    require_valid(schedule, "the schedule found")
    made = {"mapper": options.mapper, "options": options.given()}
    changes: dict[str, Any] = {"provenance": schedule.provenance.model_copy(update=made)}
    if seconds is not None:
        timing = schedule.timing or ScheduleTiming(total_seconds=seconds)
        changes["timing"] = timing.model_copy(update={"total_seconds": seconds})
    return schedule.model_copy(update=changes)
