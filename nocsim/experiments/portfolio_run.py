"""A schedule chosen by the exact simulator: several objectives solved, the best answers placed in every way, run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from cosa.analytical.constants import Constants
from cosa.common.options import option, read_by
from cosa.common.pool import require_workers
from cosa.mappers.program import ProgramOptions
from cosa.mappers.published import PublishedOptions
from cosa.mappers.registry import MapperOptions
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from cosa.model.schedule import Schedule
from nocsim.experiments.pipeline import SimulatedPoint
from nocsim.experiments.portfolio_search import Judge, Portfolio, VariantOptions, chosen_variants, run_portfolio
from nocsim.options import RunOptions

VARIANTS = ("network", "short_steps", "long_steps", "few_reloads", "loads_only", "analytical", "published")
"""Objectives: the network model, with cycles a step a third as heavy, or 30 at least, with reloads of partial sums four
times as heavy, the largest load alone; the analytical model's latency; the published program."""

_STEP_FACTOR, _RELOAD_FACTOR = 3.0, 4.0


class PortfolioOptions(VariantOptions):
    """Of a portfolio on the exact simulator."""

    constants: Annotated[Constants | None, read_by("constants", Constants.from_file, Constants.from_data)] = option(
        None, "Weights of the model's prediction, in its variants and for the ranking."
    )


def portfolio(
    layer: Layer | str | Path,
    architecture: Architecture | str | Path = "simba_4x4",
    options: PortfolioOptions | None = None,
    *,
    workers: int = 1,
    progress: Callable[[str, int, int], None] | None = None,
    **given: Any,
) -> Portfolio:
    """The best of several schedules of a layer on the exact simulator.

    Parameters
    ----------
    layer, architecture: as `cosa.schedule` takes them.
    options, given: options, or some of them by name (`variants` are names of `VARIANTS`). Rounds end most solves; where
        time does, another run may find another schedule.
    workers: processes at a time; any number gives the same result.
    progress: called with what is done (``solved`` or ``simulated``), how many are, and of how many.

    Raises
    ------
    InputError: a name, file or option is wrong, or the architecture cannot be simulated.
    InfeasibleError: the layer does not fit.
    SolverError: no variant has an answer in time.
    """
    from cosa.api import find_architecture, find_layer

    require_workers(workers)
    found_layer, found_architecture = find_layer(layer), find_architecture(architecture)
    found_architecture.require_noc()
    found_architecture.require_dram()
    how = (options or PortfolioOptions()).with_(**given)
    constants = how.constants or Constants()
    variants = chosen_variants(_variants(how, constants), how.variants)
    judge = _simulator(constants)
    return run_portfolio(
        found_layer, found_architecture, variants, judge, options=how, workers=workers, progress=progress
    )


def _simulator(constants: Constants) -> Judge:
    """The exact simulator, after the network model's prediction."""
    from cosa.analytical.batch import MappingBatch
    from cosa.analytical.network_batch import NetworkEvaluator
    from nocsim.experiments.simulated_search import machine_bound

    def predict(schedule: Schedule) -> float:
        evaluator = NetworkEvaluator(schedule.padded_layer, schedule.architecture)
        loads = evaluator.loads(MappingBatch.of([schedule.nest]))
        return float(evaluator.predicted_cycles(loads, constants)[0])

    def point(schedule: Schedule, most: int | None) -> SimulatedPoint:
        return SimulatedPoint(
            layer=schedule.layer,
            architecture=schedule.architecture,
            schedule=schedule,
            simulation=RunOptions(max_cycles=most, exact=True),
        )

    return Judge("simulator", predict, lambda schedule: machine_bound(schedule).cycles, point)


def _variants(options: PortfolioOptions, constants: Constants) -> dict[str, MapperOptions]:
    """Options of the mapper of each variant."""

    def program(weights: Constants | None, model: str = "network") -> MapperOptions:
        return ProgramOptions.of(options.common() | {"model": model, "constants": weights})

    def network(**changes: float) -> MapperOptions:
        return program(constants.with_(**changes))

    steps, reloads = constants.cycles_per_step, constants.reloads
    known = {
        "network": network(),
        "short_steps": network(cycles_per_step=steps / _STEP_FACTOR),
        "long_steps": network(cycles_per_step=max(steps, 10.0) * _STEP_FACTOR),
        "few_reloads": network(reloads=max(reloads, 0.1) * _RELOAD_FACTOR),
        "loads_only": program(constants.floor_alone()),
        "analytical": program(None, "analytical"),
        "published": PublishedOptions.of(options.published()),
    }
    assert tuple(known) == VARIANTS
    return known
