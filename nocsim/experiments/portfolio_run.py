"""A schedule chosen by the exact simulator: several objectives solved, the best answers placed in every way, run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from cosa.analytical.constants import Constants
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from cosa.model.schedule import Schedule
from nocsim.experiments.portfolio_search import Judge, Portfolio, chosen_variants, run_portfolio

VARIANTS = ("network", "short_steps", "long_steps", "few_reloads", "loads_only", "analytical", "published")
"""Objectives: the network model, with cycles a step a third as heavy, or 30 at least, with reloads of partial sums four
times as heavy, the largest load alone; the analytical model's latency; the published program."""

_STEP_FACTOR, _RELOAD_FACTOR = 3.0, 4.0


def portfolio(
    layer: Layer | str | Path,
    architecture: Architecture | str | Path = "simba_4x4",
    *,
    variants: Sequence[str] = VARIANTS,
    constants: Constants | str | Path | None = None,
    keep: int = 3,
    gap: float = 0.05,
    time_limit_seconds: float = 60.0,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[str, int, int], None] | None = None,
) -> Portfolio:
    """The best of several schedules of a layer on the exact simulator.

    Parameters
    ----------
    layer, architecture: as `cosa.schedule` takes them.
    variants: objectives to solve, names of `VARIANTS`.
    constants: of the network model, in its variants and for the prediction (None: the defaults).
    keep: how many of the distinct schedules, by predicted cycles, are placed in every way and run.
    gap, time_limit_seconds: of each solve. Rounds end most solves; where time does,
        another run may find another schedule.
    seed: of the solver.
    workers: processes at a time; any number gives the same result.
    progress: called with what is done (``solved`` or ``simulated``), how many are, and of how many.

    Raises
    ------
    InputError: a name, file or option is wrong, or the architecture cannot be simulated.
    InfeasibleError: the layer does not fit.
    SolverError: no variant has an answer in time.
    """
    from cosa.api import find_architecture, find_constants, find_layer

    found_layer, found_architecture = find_layer(layer), find_architecture(architecture)
    found_architecture.require_noc()
    found_architecture.require_dram()
    weights = find_constants(constants) or Constants()
    assert isinstance(weights, Constants)
    return run_portfolio(
        found_layer,
        found_architecture,
        chosen_variants(_options(weights), variants),
        _simulator(weights),
        keep=keep,
        gap=gap,
        time_limit_seconds=time_limit_seconds,
        seed=seed,
        workers=workers,
        progress=progress,
    )


def _simulator(constants: Constants) -> Judge:
    """The exact simulator, after the network model's prediction."""
    from cosa.analytical.batch import MappingBatch
    from cosa.analytical.network_batch import NetworkEvaluator
    from nocsim.experiments.simulated_search import Limit, machine_bound, simulate_all

    def predict(schedule: Schedule) -> float:
        evaluator = NetworkEvaluator(schedule.padded_layer, schedule.architecture)
        loads = evaluator.loads(MappingBatch.of([schedule.nest]))
        return float(evaluator.predicted_cycles(loads, constants)[0])

    def run(schedules: Sequence[Schedule], pool: ProcessPoolExecutor | None, most: int | None) -> list[int | None]:
        ends = simulate_all(schedules, pool, Limit(max_cycles=most, exact=True))
        return [end.cycles if end else None for end in ends]

    return Judge("simulator", predict, machine_bound, run)


def _options(constants: Constants) -> dict[str, dict[str, Any]]:
    """What `cosa.schedule` takes for each variant."""
    steps, reloads = constants.cycles_per_step, constants.reloads

    def weighted(weights: Constants) -> dict[str, Any]:
        return {"objective": "latency", "model": "network", "constants": weights}

    def network(**changes: float) -> dict[str, Any]:
        return weighted(constants.model_copy(update=changes))

    known: dict[str, dict[str, Any]] = {
        "network": network(),
        "short_steps": network(cycles_per_step=steps / _STEP_FACTOR),
        "long_steps": network(cycles_per_step=max(steps, 10.0) * _STEP_FACTOR),
        "few_reloads": network(reloads=max(reloads, 0.1) * _RELOAD_FACTOR),
        "loads_only": weighted(constants.floor_alone()),
        "analytical": {"objective": "latency", "model": "analytical"},
        "published": {"objective": "cosa"},
    }
    assert tuple(known) == VARIANTS
    return known
