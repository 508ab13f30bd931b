"""What all searches share: objective, logical threads, the best mapping so far, and why a search stopped.

A search is a number of logical threads, each with random numbers of its own. Workers take them in turn, so the result
does not depend on the number of workers. Threads of the operating system do: all the work is compiled code that runs
without Python's lock.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cosa.analytical.batch import BatchEvaluator, BatchResult, MappingBatch
from cosa.common.errors import InfeasibleError
from cosa.mappers.confirm import confirm, figures_of, value_of
from cosa.mappers.registry import Run
from cosa.mappers.search_mappers import SearchOptions
from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, Dim, Layer
from cosa.model.objectives import OBJECTIVES, ObjectiveName
from cosa.model.schedule import Provenance, Schedule, ScheduleLevel, Search, StoppedBy
from cosa.model.validity import extents

Array = npt.NDArray[Any]
Cost = tuple[float, float]
Nest = tuple[ScheduleLevel, ...]
MOST_DRAWS_IN_A_ROW = 20_000_000
"""Mappings drawn without a valid one before a search gives up, those of all its logical threads together."""


def costs(objective: ObjectiveName, result: BatchResult) -> tuple[Array, Array]:
    """What is minimised, and what decides between equals."""
    goal, cycles = OBJECTIVES[objective], result.cycles.astype(np.float64)
    return goal.value(cycles, result.energy_pj), goal.ties(cycles, result.energy_pj)


class Stop:
    """Whether a search has to end before its rule says so: by time, or by Ctrl-C.

    The clock starts at the first look: searches look after a turn, and the first one loads, or compiles, the kernels.
    `spent`: seconds that went by before.
    """

    def __init__(self, seconds: float | None, spent: float = 0.0) -> None:
        self._left = None if seconds is None else seconds - spent
        self._deadline: float | None = None
        self.interrupted = False

    def now(self) -> StoppedBy | None:
        """The reason to end now, if there is one."""
        if self.interrupted:
            return "interrupted"
        if self._left is None:
            return None
        if self._deadline is None:
            self._deadline = time.monotonic() + self._left
        return "time" if time.monotonic() >= self._deadline else None


@dataclass
class Found:
    """What one logical thread has found so far; `pool`: the best mappings of different costs, `most` at most."""

    most: int = 1
    pool: list[tuple[Cost, Nest]] = field(default_factory=list)
    drawn: int = 0
    valid: int = 0
    evaluations: int = 0
    walked: float = 0.0
    tilings: int = 0
    stopped_by: StoppedBy = "exhausted"

    def offer(self, first: Array, second: Array, batch: MappingBatch, architecture: Architecture) -> bool:
        """Keep what is good enough for the pool of mappings with these costs (infinite: do not fit).

        Returns whether one is better than all before; of equally good ones the earliest counts.
        """
        before = self.pool[0][0] if self.pool else None
        for number in map(int, np.lexsort((second, first))):
            cost = float(first[number]), float(second[number])
            if not np.isfinite(cost[0]) or (len(self.pool) == self.most and cost >= self.pool[-1][0]):
                break
            costs_kept = [kept for kept, _ in self.pool]
            if cost not in costs_kept:
                self.pool.insert(bisect_left(costs_kept, cost), (cost, batch.nest(architecture, number)))
                del self.pool[self.most :]
        return bool(self.pool) and self.pool[0][0] != before


Task = Callable[[BatchEvaluator, Stop, Found], None]
"""One logical thread: works on what it is given until its rule, or `Stop`, ends it."""


def best_of(
    tasks: Sequence[Task],
    layer: Layer,
    architecture: Architecture,
    options: SearchOptions,
    run: Run,
    *,
    spent_seconds: float = 0.0,
    notes: tuple[str, ...] = (),
) -> list[Schedule]:
    """The best schedules (`run.most`) that logical threads find, best first.

    Parameters
    ----------
    spent_seconds: of the time limit, before.
    notes: for `provenance`.

    Raises
    ------
    InfeasibleError, KeyboardInterrupt: see `schedules_of`.
    """
    stop = Stop(options.time_limit_seconds, spent_seconds)
    founds = run_tasks(tasks, layer, architecture, run.workers, stop, run.most)
    return schedules_of(founds, layer, architecture, options, run, notes)


def run_tasks(
    tasks: Sequence[Task], layer: Layer, architecture: Architecture, workers: int, stop: Stop, most: int = 1
) -> list[Found]:
    """Run logical threads on so many workers; what each found.

    Raises
    ------
    KeyboardInterrupt: Ctrl-C came before anything was found.
    """
    founds = [Found(most) for _ in tasks]
    left = iter(range(len(tasks)))
    lock, errors = threading.Lock(), list[BaseException]()
    threads = max(1, min(workers, len(tasks)))

    def work(done: threading.Event) -> None:
        try:
            evaluator = BatchEvaluator(layer, architecture)
            while not errors:
                with lock:
                    number = next(left, None)
                if number is None:
                    return
                # The first look at the clock comes after a turn of the first tasks: no search ends before it began.
                reason = None if number < threads else stop.now()
                if reason is None:
                    tasks[number](evaluator, stop, founds[number])
                else:
                    founds[number].stopped_by = reason
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    # Events, not joins: a join that Ctrl-C breaks takes the thread for finished (Python 3.11).
    ends = [threading.Event() for _ in range(threads)]
    for end in ends:
        threading.Thread(target=work, args=(end,), daemon=True).start()
    try:
        for end in ends:
            while not end.wait(0.1):
                pass
    except KeyboardInterrupt:
        stop.interrupted = True
        if not any(found.pool for found in founds):
            raise
        for end in ends:
            end.wait()
    if errors:
        raise errors[0]
    return founds


_FIRST = ("interrupted", "time", "evaluations")
"""Reasons that end a search early: one logical thread that gives them gives them to the whole search."""


def schedules_of(
    founds: Sequence[Found],
    layer: Layer,
    architecture: Architecture,
    options: SearchOptions,
    run: Run,
    notes: tuple[str, ...] = (),
) -> list[Schedule]:
    """The schedules of the best that logical threads have found, best first, earlier threads first among equals.

    Raises
    ------
    InfeasibleError: there is none; the message names the constraints that tilings break most.
    KeyboardInterrupt: Ctrl-C ended the search, and the caller does not want what was found until then.
    """
    from cosa.common.version import version

    # What a logical thread without a mapping says is the answer only if none has one.
    reasons = [found.stopped_by for found in sorted(founds, key=lambda found: not found.pool)]
    stopped_by = next((reason for reason in _FIRST if reason in reasons), reasons[0])
    if stopped_by == "interrupted" and not run.keep_interrupted:
        raise KeyboardInterrupt
    pool: dict[Cost, Nest] = {}
    for cost, nest in sorted((entry for found in founds for entry in found.pool), key=lambda entry: entry[0]):
        pool.setdefault(cost, nest)
    drawn = sum(found.drawn for found in founds)
    if not pool:
        raise InfeasibleError(_none_found(options.mapper, layer, architecture, drawn, stopped_by))
    walked = sum(found.walked for found in founds)
    search = Search(
        stopped_by=stopped_by,
        evaluations=sum(found.evaluations for found in founds),
        samples_drawn=drawn,
        samples_valid=sum(found.valid for found in founds),
        samples_walked=round(walked) if walked else None,
        tilings=sum(found.tilings for found in founds) or None,
        logical_threads=len(founds),
    )
    objective, schedules = options.objective, []
    for cost, nest in list(pool.items())[: run.most]:
        provenance = Provenance(
            mapper=options.mapper,
            version=version(),
            objective=objective,
            seed=getattr(options, "seed", 0),
            objective_value=cost[0],
            search=search,
            notes=notes,
        )
        schedule = Schedule.make(layer, architecture, nest, provenance, padded=_padding(layer, nest))
        schedules.append(confirm(schedule, {objective: (cost[0], value_of(objective, *figures_of(schedule)))}))
    return schedules


def _padding(layer: Layer, nest: tuple[ScheduleLevel, ...]) -> dict[Dim, int]:
    """Bounds that a nest has above the layer's."""
    bounds = extents(nest)
    return {dim: bounds.get(dim, 1) for dim in DIMS if bounds.get(dim, 1) != layer.bounds[dim]}


def _none_found(mapper: str, layer: Layer, architecture: Architecture, drawn: int, stopped_by: StoppedBy) -> str:
    from cosa.mappers.broken import broken_shares

    text = f"layer {layer.name!r} on architecture {architecture.name!r}: {mapper} found no valid mapping"
    text += f" in {drawn:,} samples (stopped by {stopped_by})"
    return f"{text}; {broken_shares(layer, architecture).text()}"


def shares(evaluations: int | None, logical_threads: int) -> list[int | None]:
    """A budget of evaluations shared out evenly: those who get none are left out; None: no limit."""
    if evaluations is None:
        return [None] * logical_threads
    each, rest = divmod(evaluations, logical_threads)
    return [each + (number < rest) for number in range(logical_threads) if each + (number < rest)]


def draws_in_vain(found: Found, logical_threads: int) -> int:
    """Draws in a row without a valid mapping after which one of so many logical threads gives up.

    One that has had none at all has its share of those that the whole search may draw in vain.
    """
    return MOST_DRAWS_IN_A_ROW if found.valid else -(-MOST_DRAWS_IN_A_ROW // logical_threads)
