"""A schedule chosen by replaying candidates on the published simulator: the portfolio of its own machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cosa.analytical.constants import PublishedConstants
from cosa.common.errors import SolverError
from cosa.common.options import option, read_by
from cosa.common.pool import require_workers
from cosa.experiments.pipeline import Outcome, Point
from cosa.mappers.program import ProgramOptions
from cosa.mappers.published import PublishedOptions
from cosa.mappers.registry import Gap, MapperOptions
from cosa.model.arch import Architecture
from cosa.model.layer import Dim, Layer
from cosa.model.schedule import Loop, Schedule
from nocsim.experiments.portfolio_search import Judge, Portfolio, VariantOptions, chosen_variants, run_portfolio

PUBLISHED_VARIANTS: dict[str, dict[str, float]] = {
    "machine": {},
    "short_steps": {"cycles_per_step": 0.2},
    "long_steps": {"cycles_per_step": 2.0},
    "longer_steps": {"cycles_per_step": 4.0},
    "largest_load": dict.fromkeys(
        ("compute", "outputs_to_buffer", "outputs_to_dram", "to_pes", "reads_to_buffer", "reads_to_pes", "reductions"),
        0.0,
    ),
    "all_loads": {"largest": 0.5},
    "cheap_compute": {"compute": 0.0},
    "dear_compute": {"compute": 4.0},
    "dear_outputs": {"outputs_to_buffer": 2.0, "outputs_to_dram": 2.0},
    "dear_stores": {"outputs_to_buffer": 3.0},
    "dear_tiles": {"to_pes": 2.5},
    "dear_inputs": {"reads_to_buffer": 2.5},
    "dear_weights": {"reads_to_pes": 2.5},
    "few_reductions": {"reductions": 10.0},
    "cheap_reductions": {"reductions": 0.0},
}
"""What each variant multiplies weights of the prediction by."""

_NEIGHBOURS = 12
"""Of a schedule that are replayed in a step of the polish at the end."""

VARIANTS = (*PUBLISHED_VARIANTS, "published", "true_footprints")
"""Those of the machine, and the published program, as published and with true footprints."""


class PublishedPortfolioOptions(VariantOptions):
    """Of a portfolio on the published simulator."""

    keep: int = option(4, "Schedules, by replayed cycles, to place in every way.", ge=1, le=100)
    gap: Gap = option(0.02, "Gap at which a solve ends.", metavar="RATIO")
    constants: Annotated[
        PublishedConstants | None, read_by("constants", PublishedConstants.from_file, PublishedConstants.from_data)
    ] = option(None, "Weights of the model's prediction, in its variants and for the ranking.")
    physical_only: bool = option(True, "Leave out what gains from its generator's gaps.", off="--any-loops")


def replayed_cycles(schedule: Schedule) -> int:
    """Cycles of a schedule on the published simulator, with DRAMSim2 if its architecture has a DRAM."""
    from nocsim.published.generator import PublishedDataflow
    from nocsim.published.replay import replay_transactions

    columns, rows = schedule.architecture.fanout(schedule.architecture.mesh_level)
    memory = "none" if schedule.architecture.dram is None else "dramsim2"
    return replay_transactions(list(PublishedDataflow(schedule).transactions()), columns, rows + 1, memory).total_cycles


@dataclass(frozen=True, kw_only=True)
class ReplayedPoint(Point):
    """A schedule that is given, replayed."""

    def run(self) -> Outcome:
        """Its cycles."""
        assert self.schedule is not None
        return Outcome(figures={"simulated_cycles": replayed_cycles(self.schedule)})


def published_portfolio(
    layer: Layer | str | Path,
    architecture: Architecture | str | Path = "cosa2021",
    options: PublishedPortfolioOptions | None = None,
    *,
    workers: int = 1,
    progress: Callable[[str, int, int], None] | None = None,
    **given: Any,
) -> Portfolio:
    """The best of several schedules of a layer when their transactions are replayed as the published simulator does.

    Parameters
    ----------
    layer: as `cosa.schedule` takes it.
    architecture: the published machine; without a DRAM its port never waits.
    options, given, workers, progress: as for `nocsim.portfolio`.

    Raises
    ------
    As `nocsim.portfolio`.
    """
    from cosa.analytical.published_machine import published_rules, require_published
    from cosa.api import find_architecture, find_layer
    from cosa.model.mapping_rules import MappingRules

    require_workers(workers)
    found_layer, found_architecture = find_layer(layer), find_architecture(architecture)
    require_published(found_layer, found_architecture)
    how = (options or PublishedPortfolioOptions()).with_(**given)
    constants = how.constants or PublishedConstants()
    rules = published_rules(MappingRules(), found_architecture, how.physical_only)

    def require_fine(schedule: Schedule) -> None:
        if broken := rules.broken(found_architecture, schedule.nest):
            raise SolverError(f"left out: {'; '.join(broken)}")

    return run_portfolio(
        found_layer,
        found_architecture,
        chosen_variants(_variants(how, constants), how.variants),
        _replay(constants, how.physical_only),
        options=how,
        workers=workers,
        progress=progress,
        fine=require_fine if how.physical_only else None,
    )


def _variants(options: PublishedPortfolioOptions, constants: PublishedConstants) -> dict[str, MapperOptions]:
    """Options of the mapper of each variant; the bound is proven once."""
    of_machine = {"model": "published-machine", "physical_only": options.physical_only, "rounds": 1}
    found: dict[str, MapperOptions] = {}
    for name, factors in PUBLISHED_VARIANTS.items():
        changed = {weight: getattr(constants, weight) * factor for weight, factor in factors.items()}
        weights = constants.with_(**changed)
        found[name] = ProgramOptions.of(
            options.common() | of_machine | {"constants": weights, "machine_bound": not found}
        )
    found["published"] = PublishedOptions.of(options.published() | {"as_published": True})
    found["true_footprints"] = PublishedOptions.of(options.published())
    return found


def _replay(constants: PublishedConstants, physical_only: bool) -> Judge:
    """The replay, after the model's prediction."""
    from cosa.analytical.batch import MappingBatch
    from cosa.analytical.published_batch import PublishedEvaluator

    def loads(schedule: Schedule) -> tuple[PublishedEvaluator, Any]:
        evaluator = PublishedEvaluator(schedule.padded_layer, schedule.architecture, constants)
        return evaluator, evaluator.loads(MappingBatch.of([schedule.nest]))

    def predict(schedule: Schedule) -> float:
        evaluator, found = loads(schedule)
        return float(evaluator.predicted_cycles(found)[0])

    def bound(schedule: Schedule) -> int:
        evaluator, found = loads(schedule)
        return int(evaluator.floor_cycles(found)[0])

    def point(schedule: Schedule, _: int | None) -> ReplayedPoint:
        return ReplayedPoint(layer=schedule.layer, architecture=schedule.architecture, schedule=schedule)

    def neighbours(schedule: Schedule) -> list[Schedule]:
        return _neighbours(schedule, constants, physical_only)

    return Judge("published simulator", predict, bound, point, ranks_by_runs=True, neighbours=neighbours)


def _neighbours(schedule: Schedule, constants: PublishedConstants, physical_only: bool) -> list[Schedule]:
    """The best neighbours of a schedule by prediction, those with its loops over the mesh placed as they are there."""
    import numpy as np

    from cosa.mappers.figures import PublishedModel

    model = PublishedModel(
        schedule.padded_layer, schedule.architecture, constants=constants, physical_only=physical_only
    )
    point = model.neighbourhood.of_nest(schedule.nest)
    points = model.neighbourhood.neighbours(point, True)
    if not len(points):
        return []
    result = model.evaluator(point).evaluate(model.neighbourhood.batch(points), detail=False)
    order = np.lexsort((result.energy_pj, np.where(result.fits, result.cycles, np.inf)))
    place = len(schedule.nest) - 1 - schedule.architecture.mesh_level
    own = schedule.nest[place]
    found: dict[str, Schedule] = {}
    for at in order[: 8 * _NEIGHBOURS]:
        if not result.fits[at] or len(found) == _NEIGHBOURS:
            break
        nest = list(model.neighbourhood.nest(points[at]))
        if _spread(nest[place].spatial) == _spread(own.spatial):
            nest[place] = nest[place].with_(loops=(*nest[place].temporal, *own.spatial))
        # Inside a PE the generator does not look: one of those with the same loops outside it is enough.
        key = str([entry.loops for entry in nest[: place + 1]])
        found.setdefault(key, schedule.with_nest(tuple(nest)))
    return list(found.values())


def _spread(loops: tuple[Loop, ...]) -> dict[Dim, int]:
    """Bounds of spatial loops by dimension."""
    found: dict[Dim, int] = {}
    for loop in loops:
        found[loop.dim] = found.get(loop.dim, 1) * loop.bound
    return found
