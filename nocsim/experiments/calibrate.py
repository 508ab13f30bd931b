"""Weights fitted on simulated runs: those of the network model, and those of the published objective.

The runs are of made-up layers, small enough to simulate quickly: schedules of the published program, descents of the
network model under constants drawn at random, and random walks away from these. No clock is asked, so the same seed
gives the same file on any number of workers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
import numpy.typing as npt

from cosa.analytical.constants import Constants, Fit, FitRun
from cosa.analytical.least_squares import nonnegative_least_squares
from cosa.common.errors import CosaError, InputError
from cosa.common.pool import call_all, opened
from cosa.common.version import version
from cosa.mip.objective import Weights
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from cosa.model.schedule import Provenance, Schedule

Array = npt.NDArray[Any]

LEAST_RUNS = 16
"""So that enough of them are distinct."""

_LEAST_DISTINCT = 10
"""More than there are weights."""

_RUNS_A_LAYER = 4
_WALK_STEPS = (2, 5)
_MOST_MACS = 40_000_000
_LEAST_MACS = 3_000_000
_SOLVE_SECONDS = 600.0
"""Published solves take a fraction of a second; the limit is only there so that none hangs for ever."""


@dataclass(frozen=True)
class Sample:
    """A simulated schedule with what the weights count."""

    layer: str
    schedule_hash: str
    network_terms: dict[str, float]
    published_terms: dict[str, float]
    cycles: int


def benchmark_layer(rng: random.Random, number: int) -> Layer:
    """A made-up layer: convolution or matrix product, with the strides and windows that networks have."""
    while True:
        window = rng.choice((1, 1, 3, 3, 5))
        size = rng.choice((1, 7, 14, 28, 56))
        stride = rng.choice((1, 1, 2))
        window, stride = (1, 1) if size == 1 else (window, stride)
        channels, outputs = (rng.choice((8, 16, 32, 48, 64, 128, 256, 512, 1024)) for _ in range(2))
        layer = Layer(
            name=f"benchmark {number}",
            R=window,
            S=window,
            P=size,
            Q=size,
            C=channels,
            K=outputs,
            N=1,
            stride_w=stride,
            stride_h=stride,
        )
        if _LEAST_MACS <= layer.macs <= _MOST_MACS:
            return layer


def calibrate(
    architecture: Architecture,
    *,
    runs: int = 60,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Constants:
    """Weights of the network model's prediction, fitted on simulated runs of an architecture.

    They minimise the sum of squares of the relative error, none below 0. Where the DRAM's data bus carries less than
    its port, its rate is set too.

    Parameters
    ----------
    runs: how many schedules to simulate; equal ones count once.
    seed: of layers, constants and walks.
    workers: processes at a time; any number gives the same result.
    progress: called with (runs done, runs in all).

    Raises
    ------
    InputError: too few runs, or the architecture cannot be simulated.
    """
    samples = simulated(architecture, runs=runs, seed=seed, workers=workers, progress=progress)
    rate = dram_rate(architecture)
    names = list(samples[0].network_terms)
    matrix = np.array([[sample.network_terms[name] for name in names] for sample in samples])
    cycles = np.array([sample.cycles for sample in samples], float)
    weights = fitted(matrix, cycles)
    predicted = matrix @ weights
    left_out = _left_out(matrix, cycles, [sample.layer for sample in samples])
    fit = _fit(architecture, seed, samples, [sample.network_terms for sample in samples], predicted, left_out)
    chosen: dict[str, Any] = {name: float(weight) for name, weight in zip(names, weights, strict=True)}
    return Constants(**chosen, dram_bytes_per_cycle=rate, fit=fit)


def calibrate_published(
    architecture: Architecture,
    *,
    runs: int = 60,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Weights:
    """Weights of the published objective's three terms, fitted on the logarithm of simulated cycles.

    Objective and logarithm differ by a constant of the layer, which is taken out: only differences between schedules of
    one layer count. The weights are scaled so that their largest is 10, as in the published ones.

    Raises
    ------
    InputError: too few runs, or the architecture cannot be simulated.
    CosaError: no term has to do with the cycles.
    """
    samples = simulated(architecture, runs=runs, seed=seed, workers=workers, progress=progress)
    names = ("utilisation", "compute", "traffic")
    # A large utilisation is good: its term is negative.
    matrix = np.array([[sample.published_terms[name] for name in names] for sample in samples])
    target = np.log2([sample.cycles for sample in samples])
    layers = [sample.layer for sample in samples]
    weights = nonnegative_least_squares(_without_means(matrix, layers), _without_means(target, layers))
    if not weights.any():
        raise CosaError("no term of the published objective grows with the simulated cycles of these runs")
    offsets = target - matrix @ weights
    predicted = 2 ** (matrix @ weights + offsets - _without_means(offsets, layers))
    fit = _fit(architecture, seed, samples, [sample.published_terms for sample in samples], predicted, None)
    scaled = rounded(weights * 10 / weights.max())
    chosen: dict[str, Any] = {name: float(weight) for name, weight in zip(names, scaled, strict=True)}
    return Weights(**chosen, fit=fit)


def simulated(
    architecture: Architecture,
    *,
    runs: int,
    seed: int,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> list[Sample]:
    """Distinct schedules of made-up layers with their simulated cycles.

    Raises
    ------
    InputError: too few runs, or the architecture cannot be simulated.
    """
    architecture.require_noc()
    architecture.require_dram()
    if runs < LEAST_RUNS:
        raise InputError("too few to fit", path="runs", value=runs, allowed=f"at least {LEAST_RUNS}")
    rng = random.Random(seed)
    layers = [benchmark_layer(rng, number) for number in range(-(-runs // _RUNS_A_LAYER))]
    jobs = [(layers[run // _RUNS_A_LAYER], architecture, run % _RUNS_A_LAYER, rng.random()) for run in range(runs)]
    found: dict[str, Sample] = {}
    with opened(workers) as pool:
        for number, sample in enumerate(call_all(pool, _sample, jobs), start=1):
            found.setdefault(sample.schedule_hash, sample)
            if progress is not None:
                progress(number, runs)
    if len(found) < _LEAST_DISTINCT:
        raise InputError(f"only {len(found)} distinct schedules", path="runs", value=runs, allowed="more runs")
    return list(found.values())


def sample_of(schedule: Schedule) -> Sample:
    """Simulate a schedule, and count what the weights weigh."""
    from cosa.analytical.batch import MappingBatch
    from cosa.analytical.network_batch import NetworkEvaluator
    from cosa.analytical.network_machine import terms
    from cosa.mip.nest import breakdown

    layer, architecture = schedule.padded_layer, schedule.architecture
    evaluator = NetworkEvaluator(layer, architecture)
    loads = evaluator.loads(MappingBatch.of([schedule.nest]))
    weighed = terms(evaluator.floor_cycles(loads, dram_rate(architecture)), loads)
    unit = breakdown(layer, architecture, schedule.nest, weights=Weights(utilisation=1, compute=1, traffic=1))
    return Sample(
        layer=schedule.layer.name,
        schedule_hash=schedule.content_hash,
        network_terms={name: float(term[0]) for name, term in weighed.items()},
        published_terms={
            "utilisation": unit["utilisation"],
            "compute": unit["compute"],
            "traffic": sum(value for name, value in unit.items() if name.startswith("traffic")),
        },
        cycles=simulated_cycles(schedule),
    )


def dram_rate(architecture: Architecture) -> float | None:
    """Bytes a cycle of the DRAM's data buses, where that is less than its ports pass; None where it is not."""
    from nocsim.machine.dram_setup import dram_config, dram_data

    data = dram_data(architecture, dram_config(architecture))
    noc = architecture.require_noc()
    rate = float(data.access_bytes * data.channels / data.cycles_per_access)
    payload = noc.packet_payload_flits / (1 + noc.packet_payload_flits)
    port = noc.flit_bits / 8 * payload * len(noc.dram_ports)
    return rate if rate < port else None


def fitted(matrix: Array, cycles: Array) -> Array:
    """Weights >= 0 with the least squares of relative error, rounded to four digits."""
    return rounded(nonnegative_least_squares(matrix / cycles[:, np.newaxis], np.ones(len(cycles))))


def _sample(layer: Layer, architecture: Architecture, kind: int, seed: float) -> Sample:
    """The published schedule (kind 0), or a descent under random constants, which for odd kinds is walked away from."""
    from cosa.mappers.figures import NetworkModel
    from cosa.mappers.opening import outermost_only
    from cosa.mappers.polish import SCORES

    schedule = published_schedule(layer, architecture, None)
    if kind == 0:
        return sample_of(schedule)
    rng = random.Random(seed)
    model = NetworkModel(layer, architecture, constants=random_constants(rng))
    neighbourhood = model.neighbourhood
    begin = neighbourhood.of_nest(schedule.nest) if kind > 1 else outermost_only(layer, architecture, neighbourhood)
    point, _ = model.descend(begin, SCORES["latency"], None)
    if kind % 2:
        for _ in range(rng.randint(*_WALK_STEPS)):
            point = _neighbour(model, point, rng)
    provenance = Provenance(mapper="calibration", version=version())
    return sample_of(Schedule.make(layer, architecture, neighbourhood.nest(point), provenance))


def random_constants(rng: random.Random) -> Constants:
    """The default weights, each times a factor from a third to three."""
    usual = Constants()
    names = [name for name, value in usual.model_dump().items() if isinstance(value, float)]
    changes = {name: getattr(usual, name) * 3 ** rng.uniform(-1, 1) for name in names}
    return usual.with_(**changes)


def _neighbour(model: Any, point: Any, rng: random.Random) -> Any:
    """A neighbour that fits, taken at random among the best tenth of the predictions."""
    points = model.neighbourhood.neighbours(point, False)
    result = model.evaluator(point).evaluate(model.neighbourhood.batch(points), detail=False)
    fits = np.flatnonzero(result.fits)
    if not len(fits):
        return point
    ranked = fits[np.lexsort((fits, result.cycles[fits]))]
    at = ranked[rng.randrange(max(1, len(ranked) // 10))]
    return points[at]


def published_schedule(layer: Layer, architecture: Architecture, weights: Weights | None) -> Schedule:
    """The schedule of the published program."""
    from cosa.mappers.published import PublishedOptions
    from cosa.mappers.registry import candidates

    return candidates(layer, architecture, PublishedOptions(weights=weights, time_limit_seconds=_SOLVE_SECONDS))[0]


def simulated_cycles(schedule: Schedule) -> int:
    """Cycles of a whole run."""
    from nocsim.api import simulate

    return simulate(schedule, exact=True).cycles.total


def _without_means(values: Array, layers: Sequence[str]) -> Array:
    """Values less the mean of their layer."""
    found = np.array(values, float)
    for layer in dict.fromkeys(layers):
        rows = [number for number, name in enumerate(layers) if name == layer]
        found[rows] -= found[rows].mean(axis=0)
    return found


def _left_out(matrix: Array, cycles: Array, layers: Sequence[str]) -> float | None:
    """Standard deviation of log(simulated / predicted), every layer predicted by a fit on the others."""
    names = list(dict.fromkeys(layers))
    if len(names) < 4:
        return None
    residuals = np.zeros(len(cycles))
    for name in names:
        inside = np.array([layer == name for layer in layers])
        weights = fitted(matrix[~inside], cycles[~inside])
        residuals[inside] = np.log(cycles[inside] / np.maximum(matrix[inside] @ weights, 1.0))
    return float(rounded(residuals.std()))


def _fit(
    architecture: Architecture,
    seed: int,
    samples: Sequence[Sample],
    terms: Sequence[Mapping[str, float]],
    predicted: Array,
    left_out: float | None,
) -> Fit:
    residuals = [log(sample.cycles / max(float(value), 1.0)) for sample, value in zip(samples, predicted, strict=True)]
    runs = tuple(
        FitRun(
            layer=sample.layer,
            schedule_hash=sample.schedule_hash,
            terms=dict(of_sample),
            simulated_cycles=sample.cycles,
            predicted_cycles=float(rounded(value, 9)),
            residual=float(rounded(residual, 6)),
        )
        for sample, of_sample, value, residual in zip(samples, terms, predicted, residuals, strict=True)
    )
    return Fit(
        architecture=architecture.name,
        architecture_hash=architecture.content_hash,
        version=version(),
        seed=seed,
        standard_deviation=float(rounded(np.std(residuals), 6)),
        left_out_standard_deviation=left_out,
        runs=runs,
    )


def rounded(values: Any, digits: int = 4) -> Array:
    """Values to so many significant digits, so that files do not show the noise of another processor's rounding."""
    found: Array = np.array([float(f"{value:.{digits}g}") for value in np.ravel(values)])
    return found.reshape(np.shape(values))
