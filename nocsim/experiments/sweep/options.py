"""The options that each mapper has in a sweep: names, types and ranges, checked before anything runs.

Left out are those that say nothing of the schedule or of a search's rule, such as `threads`: a point has one core.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import Field, model_validator

from cosa.common.errors import FieldError, InputError, nearest_of
from cosa.common.files import FileModel
from cosa.mappers.registry import PROGRAMS, SEARCH_OBJECTIVES
from nocsim.experiments.sweep.values import axis_error, located, naming

if TYPE_CHECKING:
    from cosa.model.arch import Architecture
    from nocsim.experiments.sweep.spec import Sweep

Seconds = Annotated[float, Field(gt=0, le=1e7)]
Seed = Annotated[int, Field(ge=0, lt=2**31)]
Gap = Annotated[float, Field(gt=0, le=10)]
Count = Annotated[int, Field(ge=1, le=10**14)]


class CosaOptions(FileModel):
    """Of the published program; `cosa.schedule` says what each is."""

    objective: Literal["cosa", "utilisation", "compute", "traffic", "balance"] = "cosa"
    formulation: Literal["aggregated", "paper"] = "aggregated"
    as_published: bool = False
    precision: bool = False
    weights: dict[str, Any] | None = None
    order_level: str | None = None
    pad_primes_above: Annotated[int, Field(ge=2, le=10**14)] | None = None
    gap: Gap = 1e-4
    time_limit_seconds: Seconds = 60.0
    seed: Seed = 0


class MachineOptions(FileModel):
    """Of the machine program; `cosa.schedule` and `cosa.mappers.machine.map_layer` say what each is."""

    objective: Literal["latency", "energy", "edp"] = "latency"
    model: Literal["network", "analytical", "published-machine"] | None = None
    constants: dict[str, Any] | None = None
    physical_only: bool = True
    constraints: dict[str, Any] | None = None
    pad_percent: Annotated[float, Field(ge=0, le=100)] = 0.0
    bypass: Literal["fixed", "chosen"] = "fixed"
    remainders: bool = False
    gap: Gap = 0.01
    time_limit_seconds: Seconds = 60.0
    rounds: Count = 100
    settle_ties: bool = True
    machine_bound: bool = True
    seed: Seed = 0

    @model_validator(mode="after")
    def _consistent(self) -> MachineOptions:
        if not self.physical_only and self.model != "published-machine":
            raise FieldError("goes with the model published-machine only", path="physical_only", allowed="true")
        if not self.settle_ties and self.objective != "latency":
            raise FieldError(f"means nothing to the objective {self.objective}", path="settle_ties", allowed="true")
        if self.remainders:
            allowed = {"model": "analytical", "constraints": "null", "constants": "null", "pad_percent": "0"}
            for name, only in allowed.items():
                if getattr(self, name) not in (None, 0, "analytical"):
                    raise FieldError("does not go with options.remainders", path=name, allowed=only)
        return self


class RandomOptions(FileModel):
    """Of the random search: what it finds first, at most so many valid mappings."""

    objective: Literal["latency", "energy", "edp"] = "latency"
    samples: Count | None = None
    evaluations: Count | None = None
    seconds: Seconds | None = None
    seed: Seed = 0


class HybridOptions(FileModel):
    """Of Timeloop's hybrid search."""

    objective: Literal["latency", "energy", "edp"] = "latency"
    evaluations: Count | None = None
    seconds: Seconds | None = None
    logical_threads: Annotated[int, Field(ge=1, le=10**6)] = 32
    victory_condition: Count = 500
    as_timeloop: bool = False
    seed: Seed = 0


class EvolutionaryOptions(FileModel):
    """Of the evolutionary search."""

    objective: Literal["latency", "energy", "edp"] = "latency"
    evaluations: Count | None = None
    seconds: Seconds | None = None
    seed: Seed = 0


class ExhaustiveOptions(FileModel):
    """Of the exhaustive search, which draws nothing; `evaluations`: how large the space may be."""

    objective: Literal["latency", "energy", "edp"] = "latency"
    evaluations: Count | None = None
    seconds: Seconds | None = None


OPTIONS: dict[str, type[FileModel]] = {
    "cosa": CosaOptions,
    "machine": MachineOptions,
    "random": RandomOptions,
    "hybrid": HybridOptions,
    "evolutionary": EvolutionaryOptions,
    "exhaustive": ExhaustiveOptions,
}
"""Options by mapper."""


def option_names(mapper: str) -> list[str]:
    """Names that ``options.NAME`` may have with a mapper; `seconds` is the time limit of a program, too."""
    names = [name for name in OPTIONS[mapper].model_fields if name != "objective"]
    return [*names, "seconds"] if mapper in PROGRAMS else names


def default_mapper(objective: Any) -> str:
    """The mapper of a sweep that names none: the program that the objective belongs to."""
    return "machine" if objective in SEARCH_OBJECTIVES else "cosa"


def checked_options(sweep: Sweep, mapper: str | None, objective: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a mapper as plain data: files read, what is as by default left out, the objective always there.

    Parameters
    ----------
    mapper: None if the sweep names none.
    objective, given: as they stand on the axes; None (null in a file) is as if it were not there.

    Raises
    ------
    InputError: the mapper has no such objective or option, or a value or file is wrong; the axis is named.
    """
    name = mapper or default_mapper(objective)
    _check_objective(sweep, mapper, name, objective)
    values = {option: value for option, value in given.items() if value is not None}
    for option, value in values.items():
        _check_name(sweep, name, option, value)
    if name in PROGRAMS and "seconds" in values:
        if "time_limit_seconds" in values:
            raise axis_error(sweep, "options.seconds", "says the same as options.time_limit_seconds")
        values["time_limit_seconds"] = values.pop("seconds")
    values = {option: _read(sweep, option, value, values) for option, value in values.items()}
    if objective is not None:
        values["objective"] = objective
    try:
        found = OPTIONS[name].from_data(values)
    except InputError as error:
        option = (error.path or "").partition(".")[0].partition("[")[0]
        seconds = option == "time_limit_seconds" and option not in given
        more = {"value": values.get(option), "allowed": error.allowed, "nearest": error.nearest}
        raise axis_error(sweep, f"options.{'seconds' if seconds else option}", error.message, **more) from None
    data = found.model_dump(mode="json")
    return found.model_dump(mode="json", exclude_defaults=True) | {"objective": data["objective"]}


def require_levels(sweep: Sweep, options: Mapping[str, Any], architecture: Architecture) -> None:
    """InputError where options name levels that the architecture does not have."""
    if "order_level" in options:
        from cosa.mip.quantities import Rules

        with naming(sweep, "options.order_level", options["order_level"]):
            Rules(ordered_level=options["order_level"]).order_level(architecture)
    if "weights" in options:
        from cosa.mip.objective import Weights

        weights = Weights.from_data(options["weights"])
        weights.require_levels(architecture, f"{sweep.source}: axes.options.weights")


def arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """`checked_options` as `cosa.mappers.registry.map_layer` takes them."""
    from cosa.mappers.search import Budget

    found = dict(options)
    for name in _MODELS:
        if name in found:
            found[name] = _model(name, found[name]).from_data(found[name], source=f"options.{name}")
    budget = {field.name: found.pop(field.name) for field in fields(Budget) if field.name in found}
    return found | {"budget": Budget(**budget)} if budget else found


def _check_objective(sweep: Sweep, mapper: str | None, name: str, objective: Any) -> None:
    def known(mapper: str) -> tuple[str, ...]:
        return get_args(OPTIONS[mapper].model_fields["objective"].annotation)

    choices = known(name) if mapper else (*known("machine"), *known("cosa"))
    if objective is None or objective in choices:
        return
    allowed = ", ".join(choices)
    if others := [other for other in OPTIONS if objective in known(other)]:
        allowed += f" ({objective} is one of {', '.join(others)})"
    message = f"not an objective of the mapper {mapper}" if mapper else "no such objective"
    nearest = nearest_of(objective, choices) if isinstance(objective, str) else None
    raise axis_error(sweep, "objective", message, value=objective, allowed=allowed, nearest=nearest)


def _check_name(sweep: Sweep, mapper: str, option: str, value: Any) -> None:
    names = option_names(mapper)
    if option in names:
        return
    owners = [other for other in OPTIONS if option in option_names(other)]
    message = f"an option of {', '.join(owners)}, not" if owners else "not an option"
    message += f" of the mapper {mapper}"
    nearest = None if owners else nearest_of(option, names)
    allowed = ", ".join(names)
    raise axis_error(sweep, f"options.{option}", message, value=value, allowed=allowed, nearest=nearest)


_MODELS = ("weights", "constraints", "constants")
"""Options that are a file, or what would stand in one."""


def _read(sweep: Sweep, option: str, value: Any, values: Mapping[str, Any]) -> Any:
    """An option that is a file as checked data, so that the point's hash covers it: a file could change."""
    if option not in _MODELS or not isinstance(value, str | dict):
        return value
    kind = _model(option, {"kind": "published_constants"} if values.get("model") == "published-machine" else {})
    if isinstance(value, dict):
        found = kind.from_data(value, source=f"{sweep.source}: axes.options.{option}")
    else:
        with naming(sweep, f"options.{option}", value):
            found = _load(option, kind, located(sweep, value))
    return found.model_dump(mode="json")


def _load(option: str, kind: type[FileModel], file: str | Path) -> FileModel:
    if option == "constraints":
        from cosa.model.constraints import load_constraints

        return load_constraints(file)
    return kind.from_file(file)


def _model(option: str, data: Mapping[str, Any]) -> type[FileModel]:
    """The model of an option that is a file; of constants its kind says which."""
    if option == "weights":
        from cosa.mip.objective import Weights

        return Weights
    if option == "constraints":
        from cosa.model.constraints import Constraints

        return Constraints
    from cosa.analytical.constants import Constants, PublishedConstants

    return PublishedConstants if data.get("kind") == "published_constants" else Constants
