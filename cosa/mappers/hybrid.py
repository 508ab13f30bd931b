"""Timeloop's hybrid mapper: random tilings, the orders and spatial splits of each walked one after the other.

Each of 32 logical threads draws a tiling, passes over it if it breaks a fan-out or a capacity, and else walks all its
mappings: first the places up to which loops of a fan-out run along x, then the orders of the loops with a bound above
1, innermost level first, each from R S P Q C K N on. It stops after 500 valid mappings in a row that are not better
than its best (the victory condition). Timeloop's walk looks at every mapping of a tiling that breaks a fan-out, one by
one; here they are passed over together and only counted (`samples_walked`).
"""

from __future__ import annotations

import numpy as np

from cosa.analytical.batch import BatchEvaluator
from cosa.mappers.registry import Run
from cosa.mappers.search import Found, Stop, Task, best_of, costs, draws_in_vain, shares
from cosa.mappers.search_mappers import HybridOptions
from cosa.mappers.space import MapSpace, stream
from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, Layer
from cosa.model.schedule import Schedule

TOLERANCE = 0.001
"""Of Timeloop: relative gains up to this are none."""
MAPPINGS_A_TURN = 256
DRAWS_A_TURN = 50_000


def search(layer: Layer, architecture: Architecture, options: HybridOptions, run: Run) -> list[Schedule]:
    """The best mappings (`run.most`) that the logical threads find until each has met its victory condition.

    A limit of evaluations is shared out evenly among the threads. With `as_timeloop` they draw as Timeloop's do (all
    the same random numbers, but each a tiling next to that of the thread before it), and a mapping counts as better
    only by 0.1 % or more.

    Raises
    ------
    InfeasibleError: no valid mapping was found.
    """
    limits = shares(options.evaluations, options.logical_threads)
    tasks = [_task(options, number, len(limits), limit) for number, limit in enumerate(limits)]
    return best_of(tasks, layer, architecture, options, run)


def _task(options: HybridOptions, number: int, logical_threads: int, most: int | None) -> Task:
    condition, neighbours = options.victory_condition, options.logical_threads if options.as_timeloop else 1

    def task(evaluator: BatchEvaluator, stop: Stop, found: Found) -> None:
        from cosa.mappers import kernel

        space, tolerance = MapSpace.of(evaluator), TOLERANCE if neighbours > 1 else 0.0
        slots = len(space.slot_level)
        state, under_way = stream(options.seed, 0 if neighbours > 1 else number), np.zeros(1, np.bool_)
        factors, orders = np.ones((len(DIMS), slots), np.int64), np.zeros((slots, len(DIMS)), np.int64)
        counts, splits = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
        best, since, barren = np.full(2, np.inf), 0, 0
        batch = space.batch(MAPPINGS_A_TURN)
        drawn_at, tilings_at = (np.zeros(MAPPINGS_A_TURN, np.int64) for _ in range(2))
        walked_at = np.zeros(MAPPINGS_A_TURN)
        while True:
            patience = draws_in_vain(found, logical_threads)
            filled, drawn, walked, tilings = kernel.fill_hybrid(
                state,
                under_way,
                factors,
                orders,
                counts,
                splits,
                space.primes,
                space.tables(),
                neighbours,
                number,
                min(DRAWS_A_TURN, patience - barren),
                batch.loops(),
                drawn_at,
                walked_at,
                tilings_at,
            )
            barren = 0 if filled else barren + drawn
            if filled:
                taken = filled if most is None else min(filled, most - found.evaluations)
                result = evaluator.evaluate(batch.first(taken), detail=False)
                first, second = costs(options.objective, result)
                used, at, since = kernel.count_victory(first, second, result.fits, best, since, condition, tolerance)
                found.evaluations += used
                found.valid += int(result.fits[:used].sum())
                if at >= 0 or found.most > 1 or tolerance:
                    first[~result.fits] = np.inf
                    found.offer(first[:used], second[:used], batch, space.architecture)
                if since == condition:
                    found.stopped_by = "victory_condition"
                elif found.evaluations == most:
                    found.stopped_by = "evaluations"
                if since == condition or found.evaluations == most:
                    drawn, walked, tilings = int(drawn_at[used - 1]), walked_at[used - 1], int(tilings_at[used - 1])
            if barren >= patience:
                found.stopped_by = "no_valid_mapping"
            found.drawn, found.walked, found.tilings = (
                found.drawn + drawn,
                found.walked + walked,
                found.tilings + tilings,
            )
            if found.stopped_by != "exhausted":
                return
            if (early := stop.now()) is not None:
                found.stopped_by = early
                return

    return task
