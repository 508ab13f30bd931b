"""The random mapper: the best of n valid mappings, drawn as Timeloop's `random` draws them.

A draw is a tiling (uniform over all ordered factorisations of every bound), an order of the loops of every level, and
for every fan-out a place up to which the loops run along x, the others along y. Along an axis of one instance only
loops of bound 1 fit, and in a fan-out along one axis the loops stand in the fixed order R S P Q C K N: so draws with
little spatial parallelism are valid far more often than others. The published numbers were made with that rule.
"""

from __future__ import annotations

import time

import numpy as np

from cosa.analytical.batch import BatchEvaluator
from cosa.mappers.search import (
    Budget,
    Found,
    Objective,
    Stop,
    Task,
    costs,
    draws_in_vain,
    finish,
    prepare,
    run_tasks,
)
from cosa.mappers.space import MapSpace, stream
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from cosa.model.schedule import Schedule, StoppedBy

SAMPLES = 5
SAMPLES_A_TURN = 2000
DRAWS_A_TURN = 20_000
"""Valid mappings, and draws, between two looks at the clock."""
MOST_TASKS = 256


def search(
    layer: Layer,
    architecture: Architecture,
    *,
    objective: str = "latency",
    budget: Budget | None = None,
    seed: int = 0,
    workers: int = 1,
    keep_interrupted: bool = False,
    most: int = 1,
) -> list[Schedule]:
    """The best (`most` of them) of `budget.samples` (5) valid mappings drawn at random.

    Raises
    ------
    InputError: there is no such objective.
    InfeasibleError: no valid mapping was found.
    """
    started = time.perf_counter()
    goal = prepare(layer, architecture, objective, workers)
    budget = budget or Budget()
    wanted, reason = _samples(budget)
    each = max(SAMPLES_A_TURN, -(-wanted // MOST_TASKS))
    sizes = [min(each, wanted - first) for first in range(0, wanted, each)]
    tasks = [_task(seed, number, len(sizes), size, goal, reason) for number, size in enumerate(sizes)]
    founds = run_tasks(tasks, layer, architecture, workers, Stop(budget.seconds), most)
    return finish("random", layer, architecture, goal, seed, founds, started, keep_interrupted)


def _samples(budget: Budget) -> tuple[int, StoppedBy]:
    """How many valid mappings, and why the search will have stopped with them."""
    if budget.samples is None and budget.evaluations is None:
        # A budget of time alone: as many as come by then.
        return (SAMPLES, "samples") if budget.seconds is None else (10**9, "samples")
    if budget.evaluations is not None and (budget.samples is None or budget.evaluations < budget.samples):
        return budget.evaluations, "evaluations"
    assert budget.samples is not None
    return budget.samples, "samples"


def _task(seed: int, number: int, logical_threads: int, samples: int, objective: Objective, reason: StoppedBy) -> Task:
    def task(evaluator: BatchEvaluator, stop: Stop, found: Found) -> None:
        from cosa.mappers import kernel

        space, state = MapSpace.of(evaluator), stream(seed, number)
        barren, whole = 0, space.batch(min(SAMPLES_A_TURN, samples))
        while True:
            patience = draws_in_vain(found, logical_threads)
            batch = whole.first(samples - found.valid)
            drawn_at = np.zeros(len(batch), np.int64)
            filled, drawn = kernel.fill_random(
                state,
                space.primes,
                space.dims,
                space.tables(),
                min(DRAWS_A_TURN, patience - barren),
                batch.loops(),
                drawn_at,
            )
            found.drawn += drawn
            batch = batch.first(filled)
            result = evaluator.evaluate(batch, detail=False)
            # What was filled keeps to fan-outs and capacities; limits of the architecture are looked at here.
            found.evaluations += filled
            valid = int(result.fits.sum())
            found.valid += valid
            barren = 0 if valid else barren + drawn
            first, second = costs(objective, result)
            first[~result.fits] = np.inf
            found.offer(first, second, batch, space.architecture)
            if found.valid >= samples:
                found.stopped_by = reason
                return
            if barren >= patience:
                found.stopped_by = "no_valid_mapping"
                return
            if (early := stop.now()) is not None:
                found.stopped_by = early
                return

    return task
