"""The exhaustive mapper: every valid mapping of a small space, so its answer is the optimum.

The space: every ordered factorisation of every bound over the levels, their two axes apart, or row by row, and every
order of the loops (around the MACs it does not matter). What a level keeps is fixed.
"""

from __future__ import annotations

from math import comb, prod

import numpy as np
import numpy.typing as npt

from cosa.analytical.batch import BatchEvaluator
from cosa.common.errors import InfeasibleError, InputError, SolverError
from cosa.mappers.registry import Run
from cosa.mappers.search import Found, Stop, Task, costs, run_tasks, schedules_of
from cosa.mappers.search_mappers import ExhaustiveOptions
from cosa.mappers.space import MapSpace
from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, Layer
from cosa.model.objectives import ObjectiveName
from cosa.model.schedule import Schedule

MOST_MAPPINGS = 2_000_000
MOST_TILINGS = 100_000_000
MAPPINGS_A_TURN = 4096
TILINGS_A_TURN = 100_000
"""Between two looks at the clock."""


def search(layer: Layer, architecture: Architecture, options: ExhaustiveOptions, run: Run) -> list[Schedule]:
    """The best (`run.most`) of all valid mappings; `evaluations` is how large the space may be (2 million).

    Raises
    ------
    InputError: the space is larger.
    InfeasibleError: there is no valid mapping.
    SolverError: time ended the search before there was one, or while the space was being counted.
    """
    largest = MOST_MAPPINGS if options.evaluations is None else options.evaluations
    space = MapSpace.of(BatchEvaluator(layer, architecture), axes_apart=True)
    tilings = prod(_ways(int(times), len(space.slot_level)) for times in space.primes[:, 2])
    if tilings > max(largest, MOST_TILINGS):
        raise _too_large(layer, architecture, f"more than {float(tilings):.3g} tilings alone", largest)
    stop = Stop(options.time_limit_seconds)
    size = _count(layer, architecture, space, tilings, largest, stop)
    # A logical thread for every way to place the last prime factor.
    tasks = [_task(parts, options.objective) for parts in _compositions(space)]
    founds = run_tasks(tasks, layer, architecture, run.workers, stop, run.most)
    if not any(found.pool for found in founds) and any(found.stopped_by == "time" for found in founds):
        raise SolverError(f"{_of(layer, architecture)} {size:,.0f} valid mappings, and time ran out before the first")
    founds[0].tilings = tilings
    schedules = schedules_of(founds, layer, architecture, options, run)
    provenance = schedules[0].provenance
    if provenance.search is not None and provenance.search.stopped_by == "exhausted":
        proven = provenance.model_copy(update={"bound": provenance.objective_value, "gap": 0.0})
        schedules[0] = schedules[0].model_copy(update={"provenance": proven})
    return schedules


def _ways(stars: int, slots: int) -> int:
    return comb(stars + slots - 1, slots - 1)


def _of(layer: Layer, architecture: Architecture) -> str:
    return f"exhaustive: layer {layer.name!r} on architecture {architecture.name!r} has"


def _too_large(layer: Layer, architecture: Architecture, size: str, most: int) -> InputError:
    return InputError(
        f"{_of(layer, architecture)} {size}, too many to look at every one",
        allowed=f"a space of at most {most:,} valid mappings (raised by evaluations)",
    )


def _count(layer: Layer, architecture: Architecture, space: MapSpace, tilings: int, largest: int, stop: Stop) -> float:
    """How many valid mappings there are: at least one, at most `largest`; Ctrl-C ends the count at once."""
    from cosa.mappers import kernel
    from cosa.mappers.broken import broken_shares

    parts, size, seen, more = _first_parts(space), 0.0, 0, True
    while more:
        mappings, turn, more = kernel.count_mappings(
            space.primes, parts, len(space.primes), space.tables(), TILINGS_A_TURN
        )
        size, seen = size + mappings, seen + turn
        if more and stop.now() is not None:
            if size > largest:
                raise _too_large(layer, architecture, f"at least {size:,.0f} valid mappings", largest)
            raise SolverError(
                f"{_of(layer, architecture)} at least {size:,.0f} valid mappings, in {seen:,} of {tilings:,} tilings: "
                f"time ran out before all were counted"
            )
    if size > largest:
        raise _too_large(layer, architecture, f"{size:,.0f} valid mappings", largest)
    if not size:
        shares = broken_shares(layer, architecture).text()
        raise InfeasibleError(f"{_of(layer, architecture)} no valid mapping in all {tilings:,} tilings; {shares}")
    return size


def _first_parts(space: MapSpace) -> npt.NDArray[np.int64]:
    parts = np.zeros((len(space.primes), len(space.slot_level)), np.int64)
    parts[:, 0] = space.primes[:, 2]
    return parts


def _compositions(space: MapSpace) -> list[npt.NDArray[np.int64]]:
    """Starts of the tasks: the last prime factor in every place, all others in their first."""
    parts = _first_parts(space)
    if not len(parts):
        return [parts]
    starts, slots = [], len(space.slot_level)
    row = [0] * slots

    def place(slot: int, stars: int) -> None:
        if slot == slots - 1:
            row[slot] = stars
            start = parts.copy()
            start[-1] = row
            starts.append(start)
            return
        for here in range(stars, -1, -1):
            row[slot] = here
            place(slot + 1, stars - here)

    place(0, int(space.primes[-1, 2]))
    return starts


def _task(parts: npt.NDArray[np.int64], objective: ObjectiveName) -> Task:
    def task(evaluator: BatchEvaluator, stop: Stop, found: Found) -> None:
        from cosa.mappers import kernel

        space = MapSpace.of(evaluator, axes_apart=True)
        slots, moving = len(space.slot_level), max(0, len(space.primes) - 1)
        under_way = np.zeros(1, np.bool_)
        factors, orders = np.ones((len(DIMS), slots), np.int64), np.zeros((slots, len(DIMS)), np.int64)
        counts = np.zeros(slots, np.int64)
        batch, more = space.batch(MAPPINGS_A_TURN), True
        while more:
            filled, more = kernel.fill_exhaustive(
                under_way,
                parts,
                moving,
                factors,
                orders,
                counts,
                space.primes,
                space.tables(),
                TILINGS_A_TURN,
                batch.loops(),
            )
            result = evaluator.evaluate(batch.first(filled), detail=False)
            first, second = costs(objective, result)
            first[~result.fits] = np.inf  # breaks a limit of the architecture
            found.evaluations += filled
            found.drawn += filled
            found.valid += int(result.fits.sum())
            found.offer(first, second, batch, space.architecture)
            if more and (early := stop.now()) is not None:
                found.stopped_by = early
                return

    return task
