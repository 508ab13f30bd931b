"""A schedule chosen by the exact simulator: several objectives solved, the best answers placed in every way, run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from cosa.analytical.constants import Constants
from cosa.common.errors import InputError
from cosa.mappers.program import ProgramOptions
from cosa.mappers.published import PublishedOptions
from cosa.mappers.registry import MapperOptions
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from cosa.model.schedule import Schedule
from nocsim.experiments.portfolio_search import ROUNDS, Judge, Portfolio, PortfolioOptions, run_portfolio

VARIANTS = ("network", "short_steps", "long_steps", "few_reloads", "loads_only", "analytical", "published")
"""Objectives: the network model, with cycles a step a third as heavy, or 30 at least, with reloads of partial sums four
times as heavy, the largest load alone; the analytical model's latency; the published program."""

_STEP_FACTOR, _RELOAD_FACTOR = 3.0, 4.0


def portfolio(
    layer: Layer | str | Path,
    architecture: Architecture | str | Path = "simba_4x4",
    *,
    progress: Callable[[str, int, int], None] | None = None,
    **options: Any,
) -> Portfolio:
    """The best of several schedules of a layer on the exact simulator.

    Parameters
    ----------
    layer, architecture: as `cosa.schedule` takes them.
    progress: called with what is done (``solved`` or ``simulated``), how many are, and of how many.
    options: `variants` (names of `VARIANTS`), `constants` of the network model, `keep`, `gap`, `time_limit_seconds`,
        `seed`, `workers` (`PortfolioOptions`). Rounds end most solves; where time does, another run may find another
        schedule.

    Raises
    ------
    InputError: a name, file or option is wrong, or the architecture cannot be simulated.
    InfeasibleError: the layer does not fit.
    SolverError: no variant has an answer in time.
    """
    from cosa.api import find_architecture, find_layer

    asked = PortfolioOptions.of(options)
    found_layer, found_architecture = find_layer(layer), find_architecture(architecture)
    found_architecture.require_noc()
    found_architecture.require_dram()
    weights = asked.constants or Constants()
    if not isinstance(weights, Constants):
        allowed = "weights of the model network"
        raise InputError("of another model", path="constants.kind", value=weights.kind, allowed=allowed)
    variants = asked.chosen(_variants(weights, asked))
    return run_portfolio(found_layer, found_architecture, variants, _simulator(weights), asked, progress=progress)


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


def _variants(constants: Constants, asked: PortfolioOptions) -> dict[str, MapperOptions]:
    """Every variant as options of its mapper."""
    steps, reloads = constants.cycles_per_step, constants.reloads
    plain = ProgramOptions.of(asked.solving() | {"rounds": ROUNDS, "settle_ties": False, "model": "network"})

    def network(**changes: float) -> ProgramOptions:
        return plain.with_(constants=constants.with_(**changes))

    known: dict[str, MapperOptions] = {
        "network": network(),
        "short_steps": network(cycles_per_step=steps / _STEP_FACTOR),
        "long_steps": network(cycles_per_step=max(steps, 10.0) * _STEP_FACTOR),
        "few_reloads": network(reloads=max(reloads, 0.1) * _RELOAD_FACTOR),
        "loads_only": plain.with_(constants=constants.floor_alone()),
        "analytical": plain.with_(model="analytical"),
        "published": PublishedOptions(time_limit_seconds=asked.time_limit_seconds, seed=asked.seed),
    }
    assert tuple(known) == VARIANTS
    return known
