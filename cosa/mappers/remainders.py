"""Schedules whose last tiles may be smaller: the machine program's answer, then a descent over tiles of any size.

The program knows tiles that divide a bound, padded or not. Its answers are where the descent starts: it changes one
factor at a time to any number, lets another loop of the dimension cover the rest, and judges by the exact counts of cut
tiles (`cosa.analytical.cut_evaluation`). Nothing proves that no better tile size is left; the bound stated is that of
any schedule, whatever its tiles.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from math import ceil, prod
from typing import Any

import numpy as np

from cosa.analytical.cut import CutNest
from cosa.analytical.cut_evaluation import evaluate_cut
from cosa.mappers.confirm import confirm, value_of
from cosa.mappers.figures import Figures, padded_size
from cosa.mappers.least import least
from cosa.mappers.neighbours import MappingPoint, Neighbourhood
from cosa.mappers.program import ProgramOptions
from cosa.mappers.registry import Run
from cosa.mip.factors import prime_factors
from cosa.model.arch import Architecture
from cosa.model.keeping import Keeping
from cosa.model.layer import DIMS, TENSORS, Layer
from cosa.model.objectives import OBJECTIVES
from cosa.model.schedule import Provenance, Schedule, ScheduleTiming
from cosa.model.validity import violations

PAD_PERCENT = 15.0
"""By how much the program may pad for the second of the schedules that the descent starts from."""


class CutModel:
    """Exact figures of mappings that cover a layer; with `whole` only of those that leave nothing over."""

    def __init__(self, layer: Layer, neighbourhood: Neighbourhood, whole: bool = False) -> None:
        self.layer, self.neighbourhood, self.whole = layer, neighbourhood, whole
        self.evaluations = 0
        self._known: dict[bytes, Figures | None] = {}

    def figures(self, point: MappingPoint) -> Figures | None:
        """Cycles and energy with tiles cut at the layer's bounds; None where whole tiles do not fit."""
        key = point.tiles + point.orders.tobytes()
        if key not in self._known:
            self._known[key] = self._figures(point)
        return self._known[key]

    def _figures(self, point: MappingPoint) -> Figures | None:
        architecture, padded = self.neighbourhood.architecture, padded_size(self.layer, point)
        if self.whole and padded:
            return None
        nest = self.neighbourhood.nest(point)
        if violations(self.layer.padded_to(padded), architecture, nest):
            return None
        self.evaluations += 1
        found = evaluate_cut(self.layer, architecture, nest, quick=True)
        return Figures(float(found.cycles), found.energy_pj)

    def least_cycles(self, point: MappingPoint) -> int:
        """Cycles of compute."""
        return CutNest(self.layer, self.neighbourhood.nest(point)).compute_cycles

    def neighbours(self, point: MappingPoint, rng: random.Random) -> Iterator[MappingPoint]:
        """Mappings with one factor changed to any number and another loop that covers the rest, or with another order;
        in random order."""
        levels = range(len(self.neighbourhood.architecture.levels))
        places = [(0, level) for level in levels]
        places += [(1, level) for level in levels if prod(self.neighbourhood.architecture.fanout(level)) > 1]
        moves = [
            (dim, place, rest)
            for dim, name in enumerate(DIMS)
            if self.layer.bounds[name] > 1
            for place in places
            for rest in places
            if rest != place and (rest == (0, levels[-1]) or point.bounds[rest[0], rest[1], dim] > 1)
        ]
        orders = [(level, number) for level in levels for number in range(len(self.neighbourhood.innermost))]
        everything: list[tuple[Any, ...]] = [*moves, *orders]
        rng.shuffle(everything)
        for move in everything:
            if len(move) == 2:
                level, number = move
                changed = point.orders.copy()
                changed[level] = number
                yield MappingPoint(point.bounds, changed, point.keeps)
                continue
            dim, place, rest = move
            bound, old = self.layer.bounds[DIMS[dim]], int(point.bounds[place[0], place[1], dim])
            primes = {2, *prime_factors(bound)}
            factors = {old - 1, old + 1, *(old * prime for prime in primes), *(old // prime for prime in primes)}
            for factor in sorted(factors - {0, old}):
                bounds = point.bounds.copy()
                bounds[place[0], place[1], dim] = factor
                bounds[rest[0], rest[1], dim] = 1
                bounds[rest[0], rest[1], dim] = ceil(bound / int(bounds[:, :, dim].prod()))
                yield MappingPoint(bounds, point.orders, point.keeps)


def with_remainders(layer: Layer, architecture: Architecture, options: ProgramOptions, whole: bool = False) -> Schedule:
    """The best schedule found where last tiles may be smaller, by the convention ``exact``.

    Of the time limit an eighth goes to the program without padding, three to that with it, half to the descent.

    Parameters
    ----------
    whole: leave nothing over (what the same search finds without remainders, to compare with).

    Raises
    ------
    As `cosa.mappers.program_task.solve`.
    """
    from cosa.common.version import version
    from cosa.mappers.program_task import solve

    started, objective, seconds = time.perf_counter(), options.objective, options.time_limit_seconds
    found = []
    base = options.with_(remainders=False, model="analytical", settle_ties=objective != "latency", machine_bound=True)
    for percent, share in ((0.0, 1 / 8), (PAD_PERCENT, 3 / 8))[: 1 if whole else 2]:
        limit = seconds * (1 / 2 if whole else share)
        found.append(solve(layer, architecture, base.with_(pad_percent=percent, time_limit_seconds=limit), Run()))
    neighbourhood = Neighbourhood(architecture, keeping=Keeping.of(architecture, "chosen"))
    model, rng = CutModel(layer, neighbourhood, whole), random.Random(options.seed)
    known: list[tuple[tuple[float, float], MappingPoint]] = []
    for schedule in found:
        point = _point(neighbourhood, schedule)
        figures = model.figures(point)
        assert figures is not None
        known.append((figures.value(objective), point))
    first = min(value for value, _ in known)
    until = time.perf_counter() + seconds / 2
    value, point = min((_descend(model, objective, *each, rng, until) for each in known), key=lambda each: each[0])
    padded = padded_size(layer, point)
    figures = model.figures(point)
    assert figures is not None
    bound = least(layer, architecture, objective, Keeping.of(architecture, options.bypass))
    notes = (
        "remainders: the last tile of a dimension may be smaller; counted by the convention exact",
        f"a descent over tiles of any size, {model.evaluations:,} evaluated, from {first[0]:.6g}",
        "the bound holds for any tiles: MACs over MAC units, every word to or from the outermost level once, and what "
        "the innermost levels must give",
    )
    spent = time.perf_counter() - started
    provenance = Provenance(
        mapper="program",
        version=version(),
        objective=objective,
        model="exact",
        bypass="chosen" if options.bypass == "chosen" else None,
        seed=options.seed,
        solver=found[0].provenance.solver,
        solver_status="time_limit" if time.perf_counter() > until else "relaxed",
        objective_value=value[0],
        bound=bound,
        gap=max(0.0, value[0] / bound - 1),
        model_cycles=figures.cycles,
        model_energy_pj=figures.energy_pj,
        notes=notes,
    )
    timing = ScheduleTiming(build_seconds=0.0, solve_seconds=spent, total_seconds=spent)
    schedule = Schedule.make(layer, architecture, neighbourhood.nest(point), provenance, timing, padded, bool(padded))
    return confirm(schedule, {objective: (value[0], value_of(objective, *_exact(schedule)))})


def _exact(schedule: Schedule) -> tuple[float, float]:
    """Cycles and energy (pJ) of a schedule in the exact convention."""
    found = evaluate_cut(schedule.layer, schedule.architecture, schedule.nest)
    return float(found.cycles), found.energy_pj


def _point(neighbourhood: Neighbourhood, schedule: Schedule) -> MappingPoint:
    """A schedule as a mapping, with what its levels keep."""
    point = neighbourhood.of_nest(schedule.nest)
    keeps = np.array([[tensor in entry.keeps for tensor in TENSORS] for entry in schedule.innermost_first], np.bool_)
    return MappingPoint(point.bounds, point.orders, keeps)


def _descend(
    model: CutModel, objective: str, value: tuple[float, float], point: MappingPoint, rng: random.Random, until: float
) -> tuple[tuple[float, float], MappingPoint]:
    """Take whatever is better until nothing is, or time is up."""
    least_energy = least(model.layer, model.neighbourhood.architecture, "energy", model.neighbourhood.keeping)
    each_cycle = OBJECTIVES[objective].each_cycle(least_energy)
    while True:
        for candidate in model.neighbours(point, rng):
            if time.perf_counter() > until:
                return value, point
            if model.least_cycles(candidate) * each_cycle > value[0]:
                continue  # by its compute alone
            figures = model.figures(candidate)
            if figures is not None and figures.value(objective) < value:
                value, point = figures.value(objective), candidate
                break
        else:
            return value, point
