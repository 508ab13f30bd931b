"""The evolutionary mapper: a population of mappings that crosses and mutates, started from the program's schedule.

A genome is a bound for every dimension and slot, and an order of the loops of every slot. Children come by crossover
(all factors of one loop of the layer from another parent), factorisation mutation (a prime factor goes to another
slot) and random mutation (a loop gets any bound, another one as many iterations as then cover the layer, rounded up).
So tiles need not divide the layer: its bounds are then padded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cosa.analytical.batch import SPATIAL_AXES, BatchEvaluator, BatchResult
from cosa.analytical.energy import mac_energy_pj
from cosa.common.errors import CosaError, InputError
from cosa.mappers.registry import Run
from cosa.mappers.search import Found, Stop, Task, best_of, costs, draws_in_vain, shares
from cosa.mappers.search_mappers import EvolutionaryOptions
from cosa.mappers.space import MapSpace, stream
from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, Layer
from cosa.model.objectives import ObjectiveName
from cosa.model.schedule import Schedule

POPULATION = 256
ISLANDS = 4
"""Populations that do not mix: the logical threads."""
GENERATIONS = 60
"""In a row without a better mapping, after which a population stops."""
CHANCES = (0.4, 0.2, 0.4, 0.4)
"""Of factorisation mutation, random mutation, crossover and another order, for each child."""
DRAWS_A_TURN = 50_000
FIRST_DRAWS = 50_000
"""For the rest of a first population that has schedules to start from."""
Genes = npt.NDArray[np.int64]


def search(
    layer: Layer,
    architecture: Architecture,
    options: EvolutionaryOptions,
    run: Run,
    *,
    seeds: Sequence[Schedule] | None = None,
) -> list[Schedule]:
    """The best mappings (`run.most`) of some populations; a limit of evaluations is shared out evenly among them.

    `seeds` are schedules of this layer on this architecture to start from (None: the program's; if it finds none,
    random mappings).

    Raises
    ------
    InputError: a seed is of another layer or architecture.
    InfeasibleError: no valid mapping was found.
    """
    notes: tuple[str, ...] = ()
    spent_seconds = 0.0
    if seeds is None:
        seeds, notes = _program(layer, architecture, options.seed)
        spent_seconds = sum(found.timing.total_seconds for found in seeds if found.timing)
    else:
        _check_seeds(layer, architecture, seeds)
    starts = [_genome(MapSpace.of(BatchEvaluator(layer, architecture), axes_apart=True), found) for found in seeds]
    limits = shares(options.evaluations, ISLANDS)
    tasks = [_task(options, number, len(limits), limit, starts) for number, limit in enumerate(limits)]
    return best_of(tasks, layer, architecture, options, run, spent_seconds=spent_seconds, notes=notes)


def _check_seeds(layer: Layer, architecture: Architecture, seeds: Sequence[Schedule]) -> None:
    for number, schedule in enumerate(seeds):
        source = f"seeds[{number}]"
        if schedule.layer.model_copy(update={"name": layer.name}) != layer:
            allowed = f"schedules of {layer.name!r}, whose bounds or strides are others"
            raise InputError("of another layer", source=source, value=schedule.layer.name, allowed=allowed)
        if schedule.architecture.content_hash != architecture.content_hash:
            value, allowed = schedule.architecture.name, f"schedules on {architecture.name!r} as it is given"
            raise InputError("on another architecture", source=source, value=value, allowed=allowed)


def _program(layer: Layer, architecture: Architecture, seed: int) -> tuple[list[Schedule], tuple[str, ...]]:
    from cosa.mappers.published import PublishedOptions, solve

    try:
        return [solve(layer, architecture, PublishedOptions(seed=seed))], ("started from the program's schedule",)
    except CosaError as error:
        return [], (f"started at random, since the program has no schedule: {error}",)


def _genome(space: MapSpace, schedule: Schedule) -> tuple[Genes, Genes]:
    """Factors and orders of a schedule; loops over the same dimension in a slot become one, at the inner place."""
    slots = list(zip(space.slot_level.tolist(), space.slot_axis.tolist(), strict=True))
    factors = np.ones((len(DIMS), len(slots)), np.int64)
    orders = np.zeros((len(slots), len(DIMS)), np.int64)
    for number, (level, axis) in enumerate(slots):
        entry = schedule.innermost_first[level]
        wanted = None if axis < 0 else SPATIAL_AXES[axis]
        inner = [loop for loop in reversed(entry.loops) if loop.axis == wanted and loop.bound > 1]
        order = list(dict.fromkeys(DIMS.index(loop.dim) for loop in inner))
        orders[number] = order + [dim for dim in range(len(DIMS)) if dim not in order]
        for loop in inner:
            factors[DIMS.index(loop.dim), number] *= loop.bound
    return factors, orders


def _task(
    options: EvolutionaryOptions,
    number: int,
    logical_threads: int,
    most: int | None,
    starts: Sequence[tuple[Genes, Genes]],
) -> Task:
    def task(evaluator: BatchEvaluator, stop: Stop, found: Found) -> None:
        state = stream(options.seed, number)
        _Island(evaluator, state, logical_threads, most, starts, options.objective, found).live(stop)

    return task


class _Island:
    """One population."""

    def __init__(
        self,
        evaluator: BatchEvaluator,
        state: npt.NDArray[np.uint64],
        logical_threads: int,
        most: int | None,
        starts: Sequence[tuple[Genes, Genes]],
        objective: ObjectiveName,
        found: Found,
    ) -> None:
        self.logical_threads = logical_threads
        self.evaluator, self.state, self.most, self.objective, self.found = evaluator, state, most, objective, found
        self.space = space = MapSpace.of(evaluator, axes_apart=True)
        self.dims = np.array([k for k, dim in enumerate(DIMS) if space.layer.bounds[dim] > 1], np.int64)
        self.bounds = np.array([space.layer.bounds[dim] for dim in DIMS], np.int64)
        slots = len(space.slot_level)
        # Parents stand before their children.
        self.factors = np.ones((2 * POPULATION, len(DIMS), slots), np.int64)
        self.orders = np.zeros((2 * POPULATION, slots, len(DIMS)), np.int64)
        self.orders[:] = np.arange(len(DIMS))
        self.cost = np.full((2 * POPULATION, 2), np.inf)
        self.batch = space.batch(POPULATION)
        self.starts = list(starts)

    def live(self, stop: Stop) -> None:
        """Generations until the rule, the budget or `stop` ends them."""
        from cosa.mappers import kernel

        parents, without = self._settle(stop), 0
        if parents == 0:
            self.found.stopped_by = stop.now() or "no_valid_mapping"
            return
        while True:
            if self.found.evaluations == self.most:
                self.found.stopped_by = "evaluations"
                return
            if not len(self.dims):  # nothing to vary
                return
            if without == GENERATIONS:
                self.found.stopped_by = "generations"
                return
            room = POPULATION if self.most is None else min(POPULATION, self.most - self.found.evaluations)
            children, drawn = kernel.breed(
                self.state,
                self.dims,
                self.bounds,
                self.space.tables(),
                parents,
                self.factors[: parents + room],
                self.orders[: parents + room],
                np.array(CHANCES),
                DRAWS_A_TURN,
            )
            self.found.drawn += drawn
            without = 0 if self._evaluate(parents, children) else without + 1
            parents = self._select(parents + children)
            if (early := stop.now()) is not None:
                self.found.stopped_by = early
                return

    def _settle(self, stop: Stop) -> int:
        """The first population: the schedules to start from, the rest at random; how many."""
        from cosa.mappers import kernel

        given = min(len(self.starts), POPULATION)
        for place, (factors, orders) in enumerate(self.starts[:given]):
            self.factors[place], self.orders[place] = factors, orders
        room = POPULATION if self.most is None else min(POPULATION, max(given, self.most))
        left = FIRST_DRAWS if given else draws_in_vain(self.found, self.logical_threads)
        genomes = given
        self.found.drawn += given
        while genomes < room and left:
            drawn_genomes, drawn = kernel.draw_genomes(
                self.state,
                self.space.primes,
                self.space.tables(),
                min(DRAWS_A_TURN, left),
                self.factors[genomes:room],
                self.orders[genomes:room],
            )
            genomes, left = genomes + drawn_genomes, left - drawn
            self.found.drawn += drawn
            if genomes < room and left and stop.now() is not None:
                break
        self._evaluate(0, genomes)
        return self._select(genomes)

    def _evaluate(self, first: int, genomes: int) -> bool:
        """Costs of so many genomes from the first on; whether one is better than all before."""
        from cosa.mappers import kernel

        if not genomes:
            return False
        space, batch, last = self.space, self.batch.first(genomes), first + genomes
        macs = np.ones(genomes)
        kernel.write_genomes(
            self.factors[first:last], self.orders[first:last], space.slot_level, space.slot_axis, batch.loops(), macs
        )
        result = self.evaluator.evaluate(batch, detail=False)
        # The evaluator charges the MACs of the layer; padding costs as much for each.
        energy = result.energy_pj + (macs - space.layer.macs) * mac_energy_pj(space.architecture)
        padded = BatchResult(result.compute_cycles, result.cycles, energy, result.utilisation, result.fits)
        one, two = costs(self.objective, padded)
        one[~result.fits] = np.inf
        self.cost[first:last, 0], self.cost[first:last, 1] = one, two
        self.found.evaluations += genomes
        self.found.valid += int(result.fits.sum())
        return self.found.offer(one, two, batch, space.architecture)

    def _select(self, genomes: int) -> int:
        """Keep the best, of equally good ones the earliest; how many."""
        cost = self.cost[:genomes]
        order = np.lexsort((cost[:, 1], cost[:, 0]))
        order = order[np.isfinite(cost[order, 0])]
        if len(order) > 1:
            sorted_cost = cost[order]
            order = order[np.r_[True, (sorted_cost[1:] != sorted_cost[:-1]).any(axis=1)]]
        order = order[:POPULATION]
        for array in (self.factors, self.orders, self.cost):
            array[: len(order)] = array[order]
        return len(order)
