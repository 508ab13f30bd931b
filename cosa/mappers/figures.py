"""The analytical model as the certified search sees it: exact figures of mappings, descent on them, and its program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cosa.analytical.batch import BatchEvaluator, BatchResult, MappingBatch
from cosa.analytical.constants import Constants, PublishedConstants
from cosa.analytical.network_batch import NetworkEvaluator
from cosa.analytical.published_batch import PublishedEvaluator
from cosa.analytical.published_machine import published_rules, require_published
from cosa.mappers.confirm import figures_of
from cosa.mappers.every import MOST_TILINGS, every_tiling, in_batches
from cosa.mappers.least import Parallel, least_cycles, least_energy_pj, most_parallel
from cosa.mappers.neighbours import INNERMOST, Array, MappingPoint, MappingPoints, Neighbourhood
from cosa.mappers.opening import open_latency
from cosa.mappers.polish import Evaluator, Score, polish
from cosa.mip.analytical_program import AnalyticalProgram
from cosa.mip.factors import prime_factors
from cosa.mip.network_program import NetworkProgram
from cosa.mip.orders import Orders
from cosa.mip.powers import Power
from cosa.mip.published_program import PublishedProgram
from cosa.model.arch import Architecture
from cosa.model.keeping import Bypass, Keeping
from cosa.model.layer import DIMS, Dim, Layer
from cosa.model.mapping_rules import MappingRules
from cosa.model.objectives import OBJECTIVES
from cosa.model.schedule import Schedule


@dataclass(frozen=True)
class Figures:
    """Exact figures of a mapping in a model."""

    cycles: float
    energy_pj: float

    @property
    def edp(self) -> float:
        """Energy times cycles."""
        return self.cycles * self.energy_pj

    def value(self, objective: str) -> tuple[float, float]:
        """What an objective minimises, and what settles ties."""
        one = OBJECTIVES[objective]
        return one.value(self.cycles, self.energy_pj), one.ties(self.cycles, self.energy_pj)


class CostProgram(Protocol):
    """A program whose `cycles` and `energy` never exceed the model's figures; both in their units.

    `floor`: cycles that can't be beaten (where `cycles` is a prediction, apart from it)."""

    model: Any
    orders: Orders
    powers: list[Power]
    counts: dict[Any, Any]
    cycles: Any
    floor: Any
    cycles_unit: float
    energy_unit_pj: float

    @property
    def energy(self) -> Any:
        """Energy in its unit."""

    def require(self, row: Any) -> None:
        """Add a constraint."""

    def decode_bounds(self) -> dict[Any, int]:
        """Bounds of the solution."""

    def decode_keeps(self) -> Any:
        """What levels keep in the solution, bool [level, tensor]; None where that is fixed."""

    def exclude(self, bounds: Any) -> None:
        """Forbid these bounds, with what levels keep in the solution."""


class CostModel(Protocol):
    """What the certified search needs of a model."""

    neighbourhood: Neighbourhood
    compute_bounds_cycles: bool
    """Whether a mapping takes as many cycles as it computes, at least."""

    def figures(self, point: MappingPoint) -> Figures | None:
        """Exact figures, None where the mapping does not fit."""

    def descend(self, point: MappingPoint, score: Score, until: float | None) -> tuple[MappingPoint, int]:
        """A mapping at least as good, and how many were evaluated."""

    def best_nests(self, point: MappingPoint) -> list[MappingPoint] | None:
        """Of all orders and layouts of a mapping's tiles those that no other beats in both cycles and energy; none if
        they do not fit, None if there are too many to look at."""

    def every_tiling(self, most_nests: int) -> list[tuple[float, MappingPoint]] | None:
        """(cycles of compute, mapping) of every tiling that fits, the fewest cycles first; None if there are more nests
        than that, or of one tiling too many to look at all."""

    def candidates(self, point: MappingPoint, score: Score, most: int) -> list[MappingPoint]:
        """The best of a mapping's neighbours that fit, at most so many, each of other tiles."""

    def floor_cycles(self, point: MappingPoint) -> float:
        """Cycles that a mapping cannot run below, predicted or not."""

    def least_cycles(self) -> float:
        """Cycles that no mapping is below, as far as is known without a program (0: nothing is)."""

    def least_energy_pj(self) -> float:
        """Energy that no mapping is below, as far as is known without a program."""

    def keep_loads(self, program: CostProgram, point: MappingPoint) -> None:
        """Fix in a program what a mapping's cycles come from, where it is known which factors that are."""

    def program(self, cycles_unit: float, energy_unit_pj: float) -> CostProgram:
        """The program of the layer."""


MOST_NESTS = 20_000
"""Nests of the same tiles up to which all are evaluated."""


def _front(cycles: Array, energy_pj: Array) -> list[tuple[float, float, int]]:
    """(cycles, energy, number) of those that no other beats in both."""
    found, least = [], np.inf
    for at in map(int, np.lexsort((energy_pj, cycles))):
        if energy_pj[at] < least:
            least = float(energy_pj[at])
            found.append((float(cycles[at]), least, at))
    return found


class AnalyticalModel:
    """Timeloop's accounting of one layer on one architecture.

    Parameters
    ----------
    bounds: for a dimension, the bounds it may be padded to, the layer's own among them.
    rules: what mappings must keep to.
    bypass: whether what levels keep is fixed or chosen.
    """

    name = "analytical"
    compute_bounds_cycles = True

    def __init__(
        self,
        layer: Layer,
        architecture: Architecture,
        bounds: Mapping[Dim, Sequence[int]] | None = None,
        rules: MappingRules | None = None,
        bypass: Bypass = "fixed",
    ) -> None:
        self.layer, self.architecture, self.bounds = layer, architecture, dict(bounds or {})
        self.rules = rules or MappingRules()
        self.keeping = Keeping.of(architecture, bypass, self.rules)
        self.neighbourhood = Neighbourhood(architecture, rules=self.rules, keeping=self.keeping)
        self._evaluators: dict[tuple[int, ...], Evaluator] = {}

    def evaluator(self, point: MappingPoint) -> Evaluator:
        """The evaluator of the layer as a mapping pads it."""
        sizes = tuple(int(size) for size in point.bounds.prod(axis=(0, 1)))
        if sizes not in self._evaluators:
            self._evaluators[sizes] = self.make_evaluator(self.layer.padded_to(padded_size(self.layer, point)))
        return self._evaluators[sizes]

    def fastest(self, gap: float) -> MappingPoint | None:
        """A mapping known to be within a gap of the least cycles, if it is easily found; without padding and rules."""
        evaluator = BatchEvaluator(self.layer, self.architecture)
        self._evaluators[tuple(self.layer.bounds.values())] = evaluator
        return open_latency(evaluator, self.neighbourhood, self.parallel, self.least_cycles() * (1 + gap))

    def make_evaluator(self, layer: Layer) -> Evaluator:
        """An evaluator of one layer, padded or not."""
        return BatchEvaluator(layer, self.architecture)

    def figures(self, point: MappingPoint) -> Figures | None:
        """See `CostModel`."""
        batch = self.neighbourhood.batch(MappingPoints.of(point))
        result = self.evaluator(point).evaluate(batch, detail=False)
        if not result.fits[0] or not self.neighbourhood.allows(point.bounds[np.newaxis])[0]:
            return None
        return Figures(float(result.cycles[0]), float(result.energy_pj[0]))

    def descend(self, point: MappingPoint, score: Score, until: float | None) -> tuple[MappingPoint, int]:
        """See `CostModel`."""
        found = polish(self.evaluator(point), self.neighbourhood, point, score, until=until)
        return found.point, found.evaluations

    def best_nests(self, point: MappingPoint) -> list[MappingPoint] | None:
        """See `CostModel`."""
        if self.neighbourhood.count_nests(point) > MOST_NESTS:
            return None
        found: list[tuple[float, float, MappingPoint]] = []
        for points in self.neighbourhood.every_nest(point):
            result = self.evaluator(point).evaluate(self.neighbourhood.batch(points), detail=False)
            if not result.fits[0]:
                return []
            found += [(cycles, energy, points[at]) for cycles, energy, at in _front(result.cycles, result.energy_pj)]
        return [found[at][2] for *_, at in _front(*(np.array(column) for column in list(zip(*found, strict=True))[:2]))]

    def every_tiling(self, most_nests: int) -> list[tuple[float, MappingPoint]] | None:
        """See `CostModel`: without padding."""
        most = min(most_nests, MOST_TILINGS)
        tilings = None if self.bounds else every_tiling(self.layer, self.neighbourhood, most)
        found: list[tuple[float, MappingPoint]] = []
        nests = 0
        for some, points in in_batches(tilings or []):
            result = self.evaluator(some[0]).evaluate(self.neighbourhood.batch(points), detail=False)
            fitting = [(float(result.compute_cycles[at]), some[at]) for at in map(int, np.flatnonzero(result.fits))]
            counts = [self.neighbourhood.count_nests(point) for _, point in fitting]
            nests += sum(counts)
            if nests > most_nests or max(counts, default=0) > MOST_NESTS:
                return None
            found += fitting
        return None if tilings is None else sorted(found, key=lambda each: each[0])

    def candidates(self, point: MappingPoint, score: Score, most: int) -> list[MappingPoint]:
        """See `CostModel`."""
        points = self.neighbourhood.neighbours(point, True)
        if not len(points):
            return []
        result = self.evaluator(point).evaluate(self.neighbourhood.batch(points), detail=False)
        first, second = score(result)
        first = np.where(result.fits, first, np.inf)
        found: dict[bytes, MappingPoint] = {}
        for at in np.lexsort((second, first)):
            if len(found) == most or not np.isfinite(first[at]):
                break
            found.setdefault(points[at].tiles, points[at])
        return list(found.values())

    def floor_cycles(self, point: MappingPoint) -> float:
        """See `CostModel`."""
        figures = self.figures(point)
        assert figures is not None
        return figures.cycles

    @cached_property
    def parallel(self) -> Parallel:
        """The most MAC units that can be at work, without padding."""
        return most_parallel(self.layer, self.architecture)

    def least_cycles(self) -> float:
        """See `CostModel`: without padding, which could let more MAC units work."""
        return 0.0 if self.bounds else least_cycles(self.layer, self.architecture, self.parallel.units)

    def least_energy_pj(self) -> float:
        """See `CostModel`."""
        return least_energy_pj(self.layer, self.architecture)

    def nest_cycles(self, schedule: Schedule) -> float:
        """Cycles of a schedule in this model."""
        return figures_of(schedule)[0]

    def keep_loads(self, program: CostProgram, point: MappingPoint) -> None:
        """See `CostModel`: cycles may come from any level."""

    def program(self, cycles_unit: float, energy_unit_pj: float) -> CostProgram:
        """See `CostModel`."""
        return self._stated(AnalyticalProgram, cycles_unit, energy_unit_pj, keeping=self.keeping)

    def _stated(
        self, kind: Callable[..., CostProgram], cycles_unit: float, energy_unit_pj: float, **more: Any
    ) -> CostProgram:
        """A program of the model's space."""
        return kind(
            self.layer,
            self.architecture,
            cycles_unit=cycles_unit,
            energy_unit_pj=energy_unit_pj,
            bounds=self.bounds,
            mapping_rules=self.rules,
            **more,
        )


class _PredictedModel(AnalyticalModel):
    """A model whose cycles are predicted."""

    compute_bounds_cycles = False

    def nest_cycles(self, schedule: Schedule) -> float:
        """See `AnalyticalModel`."""
        evaluator = self.make_evaluator(schedule.padded_layer)
        return float(evaluator.evaluate(MappingBatch.of([schedule.nest]), detail=False).cycles[0])

    def least_cycles(self) -> float:
        """See `CostModel`: what is predicted may be less than what is possible."""
        return 0.0


class NetworkModel(_PredictedModel):
    """The simulated machine: cycles are predicted from its loads, energies are those of the analytical model.

    Parameters
    ----------
    constants: weights of the prediction.
    """

    name = "network"

    def __init__(
        self,
        layer: Layer,
        architecture: Architecture,
        bounds: Mapping[Dim, Sequence[int]] | None = None,
        *,
        constants: Constants | None = None,
        rules: MappingRules | None = None,
        bypass: Bypass = "fixed",
    ) -> None:
        super().__init__(layer, architecture, bounds, rules, bypass)
        self.constants = constants or Constants()

    def make_evaluator(self, layer: Layer) -> _Predicted:
        """See `AnalyticalModel`."""
        network, constants = NetworkEvaluator(layer, self.architecture), self.constants
        return _Predicted(
            layer, self.architecture, lambda batch: network.predicted_cycles(network.loads(batch), constants)
        )

    def floor_cycles(self, point: MappingPoint) -> float:
        """See `CostModel`."""
        batch = self.neighbourhood.batch(MappingPoints.of(point))
        layer = self.layer.padded_to(padded_size(self.layer, point))
        network = NetworkEvaluator(layer, self.architecture)
        return float(network.floor_cycles(network.loads(batch), self.constants.dram_bytes_per_cycle)[0])

    def keep_loads(self, program: CostProgram, point: MappingPoint) -> None:
        """See `CostModel`: the loops from the mesh on outward; ties are settled by those inside a PE."""
        fix_counts(program, point, self.architecture.mesh_level)

    def program(self, cycles_unit: float, energy_unit_pj: float) -> CostProgram:
        """See `CostModel`."""
        return self._stated(NetworkProgram, cycles_unit, energy_unit_pj, constants=self.constants, keeping=self.keeping)


class _Predicted:
    """A batch evaluator whose cycles are predicted ones."""

    def __init__(
        self, layer: Layer, architecture: Architecture, predict: Callable[[MappingBatch], npt.NDArray[Any]]
    ) -> None:
        self._analytical = BatchEvaluator(layer, architecture)
        self._predict = predict

    def evaluate(self, batch: MappingBatch, detail: bool = True) -> BatchResult:
        """See `BatchEvaluator.evaluate`."""
        return replace(self._analytical.evaluate(batch, detail), cycles=self._predict(batch))


class PublishedModel(_PredictedModel):
    """The machine of the published simulator: cycles of its replay are predicted from its generator's transactions,
    energies are those of the analytical model.

    Parameters
    ----------
    constants: weights of the prediction.
    physical_only: without mappings that gain from what the generator leaves out (`published_rules`).
    """

    name = "published-machine"

    def __init__(
        self,
        layer: Layer,
        architecture: Architecture,
        bounds: Mapping[Dim, Sequence[int]] | None = None,
        *,
        constants: PublishedConstants | None = None,
        rules: MappingRules | None = None,
        physical_only: bool = True,
    ) -> None:
        require_published(layer, architecture)
        rules = published_rules(rules or MappingRules(), architecture, physical_only)
        super().__init__(layer, architecture, bounds, rules)
        # Innermost K leaves the inputs where they are, and so do R and S inside it here.
        self.neighbourhood = Neighbourhood(architecture, (*INNERMOST, ("R", "S", "K")), rules, self.keeping)
        self.constants = constants or PublishedConstants()

    def floor_cycles(self, point: MappingPoint) -> float:
        """See `CostModel`: not known apart from the prediction."""
        return inf

    def make_evaluator(self, layer: Layer) -> _Predicted:
        """See `AnalyticalModel`."""
        machine = PublishedEvaluator(layer, self.architecture, self.constants)
        return _Predicted(layer, self.architecture, lambda batch: machine.predicted_cycles(machine.loads(batch)))

    def program(self, cycles_unit: float, energy_unit_pj: float) -> CostProgram:
        """See `CostModel`."""
        return self._stated(PublishedProgram, cycles_unit, energy_unit_pj, constants=self.constants)


def fix_counts(program: CostProgram, point: MappingPoint, from_level: int = 0) -> None:
    """Fix the factors of a mapping in a program, from a level on outward."""
    for (level, dim, prime, kind), count in program.counts.items():
        if level >= from_level:
            here = int(point.bounds[int(kind == "spatial"), level, DIMS.index(dim)])
            count.fix(prime_factors(here).get(prime, 0))


def free_counts(program: CostProgram) -> None:
    """Let go of all factors of a program."""
    for count in program.counts.values():
        count.unfix()


def padded_size(layer: Layer, point: MappingPoint) -> dict[Dim, int]:
    """Bounds that a mapping pads, by dimension."""
    sizes = point.bounds.prod(axis=(0, 1))
    return {dim: int(size) for dim, size in zip(DIMS, sizes, strict=True) if int(size) != layer.bounds[dim]}
