"""The searches as mappers: `random`, `hybrid`, `evolutionary`, `exhaustive`, with their options."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from cosa.common.options import option
from cosa.mappers.registry import Count, Mapper, MapperOptions, Run, Seconds, Seed, register
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from cosa.model.objectives import ObjectiveName
from cosa.model.schedule import Schedule

SAMPLES = 5
"""Valid mappings that `random` draws if nothing else is said."""


class SearchOptions(MapperOptions):
    """Of every search: what is minimised, analytically in Timeloop's convention, and how much it may do."""

    objective: ObjectiveName = option("latency", "What is minimised, in Timeloop's convention.")
    evaluations: Count | None = option(None, "Stop after so many mappings evaluated; the same on any machine.")
    time_limit_seconds: Seconds | None = option(
        None, "Stop after this time; what is found then depends on the machine.", unit="seconds"
    )


class RandomOptions(SearchOptions):
    """Of the random search: the best of so many valid mappings."""

    samples: Count | None = option(None, f"Valid mappings to draw; without a limit of any kind {SAMPLES}.")
    seed: Seed = option(0, "Seed of the search.")


class HybridOptions(SearchOptions):
    """Of Timeloop's hybrid search."""

    logical_threads: int = option(32, "Independent searches.", ge=1, le=10**6)
    victory_condition: Count = option(500, "Valid mappings in a row without a better one after which one ends.")
    as_timeloop: bool = option(False, "Draw as Timeloop's threads do, and count gains up to 0.1 % as none.")
    seed: Seed = option(0, "Seed of the search.")


class EvolutionaryOptions(SearchOptions):
    """Of the evolutionary search, which starts from the published program's schedule."""

    seed: Seed = option(0, "Seed of the search.")


class ExhaustiveOptions(SearchOptions):
    """Of the exhaustive search, which draws nothing; `evaluations` is how large the space may be (2 million)."""


def _run(module: str) -> Any:
    def run(layer: Layer, architecture: Architecture, options: SearchOptions, how: Run) -> list[Schedule]:
        from cosa.model.validity import require_room

        require_room(layer, architecture)
        found: list[Schedule] = import_module(f"cosa.mappers.{module}").search(layer, architecture, options, how)
        return found

    return run


for _mapper in (
    Mapper(
        "random", RandomOptions, _run("random"), "the best of n valid mappings drawn as Timeloop's random mapper draws"
    ),
    Mapper("hybrid", HybridOptions, _run("hybrid"), "Timeloop's hybrid mapper: random tilings, each walked", True),
    Mapper("evolutionary", EvolutionaryOptions, _run("evolutionary"), "a population that crosses and mutates", True),
    Mapper("exhaustive", ExhaustiveOptions, _run("exhaustive"), "every valid mapping of a small space", True),
):
    register(_mapper)
