"""The random mapper: the best of n valid mappings, drawn as Timeloop's `random` draws them.

A draw is a tiling (uniform over all ordered factorisations of every bound), an order of the loops of every level, and
for every fan-out a place up to which the loops run along x, the others along y. Along an axis of one instance only
loops of bound 1 fit, and in a fan-out along one axis the loops stand in the fixed order R S P Q C K N: so draws with
little spatial parallelism are valid far more often than others. The published numbers were made with that rule.
"""

from __future__ import annotations

import numpy as np

from cosa.analytical.batch import BatchEvaluator
from cosa.mappers.registry import Run
from cosa.mappers.search import Found, Stop, Task, best_of, costs, draws_in_vain
from cosa.mappers.search_mappers import SAMPLES, RandomOptions
from cosa.mappers.space import MapSpace, stream
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from cosa.model.schedule import Schedule, StoppedBy

SAMPLES_A_TURN = 2000
DRAWS_A_TURN = 20_000
"""Valid mappings, and draws, between two looks at the clock."""
MOST_TASKS = 256


def search(layer: Layer, architecture: Architecture, options: RandomOptions, run: Run) -> list[Schedule]:
    """The best (`run.most` of them) of so many valid mappings drawn at random.

    Raises
    ------
    InfeasibleError: no valid mapping was found.
    """
    wanted, reason = _samples(options)
    each = max(SAMPLES_A_TURN, -(-wanted // MOST_TASKS))
    sizes = [min(each, wanted - first) for first in range(0, wanted, each)]
    tasks = [_task(options, number, len(sizes), size, reason) for number, size in enumerate(sizes)]
    return best_of(tasks, layer, architecture, options, run)


def _samples(options: RandomOptions) -> tuple[int, StoppedBy]:
    """How many valid mappings, and why the search will have stopped with them."""
    samples, evaluations = options.samples, options.evaluations
    if samples is None and evaluations is None:
        # With a limit of time alone: as many as come by then.
        return (SAMPLES if options.time_limit_seconds is None else 10**9), "samples"
    if evaluations is not None and (samples is None or evaluations < samples):
        return evaluations, "evaluations"
    assert samples is not None
    return samples, "samples"


def _task(options: RandomOptions, number: int, logical_threads: int, samples: int, reason: StoppedBy) -> Task:
    def task(evaluator: BatchEvaluator, stop: Stop, found: Found) -> None:
        from cosa.mappers import kernel

        space, state = MapSpace.of(evaluator), stream(options.seed, number)
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
            first, second = costs(options.objective, result)
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
