"""A schedule chosen by simulation: several objectives solved, the best answers placed on the mesh in every way, run.

Simulations run in waves of a fixed size, and what is skipped depends on earlier waves only, so that any number of
workers gives the same result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from cosa.analytical.constants import Constants
from cosa.arch import Architecture
from cosa.errors import CosaError, InputError, SolverError, nearest_of
from cosa.files import FileModel, Model
from cosa.schedule import Provenance, Schedule
from cosa.version import version
from cosa.worker_pool import call_all, worker_processes
from cosa.workload import Layer

VARIANTS = ("network", "short_steps", "long_steps", "few_reloads", "loads_only", "analytical", "published")
"""Objectives: the network model, with cycles a step a third or three times as heavy, with reloads of partial sums four
times as heavy, the largest load alone; the analytical model's latency; the published program."""

_ROUNDS = 2
"""Of solving and tightening. What they leave open is less than the prediction is off."""

_PUBLISHED_GAP = 1e-4
"""Of logarithms."""

_STEP_FACTOR, _RELOAD_FACTOR = 3.0, 4.0

Outcome = Literal["simulated", "stopped", "skipped"]


class Candidate(Model):
    """One placement of one schedule. `outcome`: ``simulated`` to its end; ``stopped`` when it had taken as long as the
    best; ``skipped``, as its bound says that it can't be better."""

    variants: tuple[str, ...]
    schedule_hash: str
    placement: str
    predicted_cycles: float
    bound_cycles: int
    outcome: Outcome
    simulated_cycles: int | None


class PortfolioResult(FileModel):
    """What was tried for a layer, the best first.

    `solved`: variants with an answer; `distinct`: different schedules among these; `placed`: placements of those that
    were kept.
    """

    kind: Literal["portfolio"] = "portfolio"
    schema_version: Literal[1] = 1
    version: str
    layer: str
    architecture: str
    architecture_hash: str
    solved: int
    distinct: int
    placed: int
    simulated: int
    stopped: int
    skipped: int
    simulated_cycles: int
    machine_bound_cycles: float | None
    unsolved: dict[str, str]
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True)
class Portfolio:
    """The best schedule, and the table of all that was tried."""

    schedule: Schedule
    result: PortfolioResult


@dataclass(frozen=True)
class _Try:
    """A schedule to run, with what is known of it before."""

    schedule: Schedule
    variants: tuple[str, ...]
    predicted_cycles: float
    bound_cycles: int


@dataclass
class _Runs:
    """Simulations so far, and the best of them."""

    pool: ProcessPoolExecutor | None
    progress: Callable[[str, int, int], None] | None
    best: tuple[_Try, int] | None = None
    candidates: list[Candidate] = field(default_factory=list)

    def run(self, tries: Sequence[_Try]) -> None:
        """Simulate in order, wave by wave."""
        from nocsim.simulated_search import WAVE, Limit, simulate_all

        for first in range(0, len(tries), WAVE):
            most = None if self.best is None else self.best[1]
            wave = tries[first : first + WAVE]
            worth = [one for one in wave if most is None or one.bound_cycles < most]
            limit = Limit(max_cycles=None if most is None else most - 1, exact=True)
            found = iter(simulate_all([one.schedule for one in worth], self.pool, limit))
            for one in wave:
                if one not in worth:
                    self._note(one, "skipped", None)
                    continue
                cycles = next(found)
                self._note(one, "stopped" if cycles is None else "simulated", cycles)
                if cycles is not None and (self.best is None or cycles < self.best[1]):
                    self.best = one, cycles
            if self.progress is not None:
                self.progress("simulated", first + len(wave), len(tries))

    def _note(self, one: _Try, outcome: Outcome, cycles: int | None) -> None:
        from nocsim.placements import layout

        self.candidates.append(
            Candidate(
                variants=one.variants,
                schedule_hash=one.schedule.content_hash,
                placement=layout(one.schedule),
                predicted_cycles=one.predicted_cycles,
                bound_cycles=one.bound_cycles,
                outcome=outcome,
                simulated_cycles=cycles,
            )
        )


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
    from cosa.validity import require_room

    found_layer, found_architecture = find_layer(layer), find_architecture(architecture)
    found_architecture.require_noc()
    found_architecture.require_dram()
    weights = find_constants(constants) or Constants()
    options = _options(variants, weights)
    if keep < 1:
        raise InputError("out of range", source="--keep", value=keep, allowed="at least 1")
    if workers < 1:
        raise InputError("out of range", source="--workers", value=workers, allowed="at least 1")
    require_room(found_layer, found_architecture)
    with worker_processes(workers) as pool:
        common = {"gap": gap, "time_limit_seconds": time_limit_seconds, "seed": seed}
        jobs = [(found_layer, found_architecture, one | common) for one in options.values()]
        answers: dict[str, Schedule] = {}
        unsolved: dict[str, str] = {}
        for name, answer in zip(options, call_all(pool, _solve, jobs), strict=True):
            if isinstance(answer, Schedule):
                answers[name] = answer
            else:
                unsolved[name] = answer
            if progress is not None:
                progress("solved", len(answers) + len(unsolved), len(options))
        if not answers:
            raise SolverError(f"no variant has an answer: {'; '.join(f'{n}: {text}' for n, text in unsolved.items())}")
        distinct = _distinct(answers, weights)
        kept = [_placed(one) for one in distinct[:keep]]
        runs = _Runs(pool, progress)
        # Each schedule as it was solved first: that gives the others a mark to beat.
        runs.run([tries[0] for tries in kept])
        runs.run([one for tries in kept for one in tries[1:]])
    floors = [x.provenance.machine_bound_cycles for x in answers.values() if x.provenance.machine_bound_cycles]
    return _result(runs, answers, unsolved, len(distinct), max(floors, default=None))


def _options(variants: Sequence[str], constants: Constants) -> dict[str, dict[str, Any]]:
    """What `cosa.schedule` takes for each variant."""
    steps, reloads = constants.cycles_per_step, constants.reloads

    def network(**changes: float) -> dict[str, Any]:
        return {"objective": "latency", "model": "network", "constants": constants.model_copy(update=changes)}

    known: dict[str, dict[str, Any]] = {
        "network": network(),
        "short_steps": network(cycles_per_step=steps / _STEP_FACTOR),
        "long_steps": network(cycles_per_step=steps * _STEP_FACTOR),
        "few_reloads": network(reloads=max(reloads, 0.1) * _RELOAD_FACTOR),
        "loads_only": network(
            floor=1.0, compute=0.0, dram_out=0.0, dram_in=0.0, to_pes=0.0, reloads=0.0, first_step=0.0, last_out=0.0
        ),
        "analytical": {"objective": "latency", "model": "analytical"},
        "published": {"objective": "cosa"},
    }
    assert tuple(known) == VARIANTS
    for name in variants:
        if name not in known:
            nearest = nearest_of(name, VARIANTS)
            raise InputError(
                "no such variant", source="--variants", value=name, allowed=", ".join(VARIANTS), nearest=nearest
            )
    if not variants:
        raise InputError("empty", source="--variants", value="", allowed=", ".join(VARIANTS))
    return {name: known[name] for name in known if name in variants}


def _solve(layer: Layer, architecture: Architecture, options: dict[str, Any]) -> Schedule | str:
    """A schedule, or why there is none in time."""
    from cosa.mappers import cosa_mip, machine

    try:
        if options["objective"] == "cosa":
            return cosa_mip.map_layer(layer, architecture, **options | {"gap": _PUBLISHED_GAP})
        return machine.map_layer(layer, architecture, **options, rounds=_ROUNDS, settle_ties=False)
    except SolverError as error:
        return str(error)


def _distinct(answers: dict[str, Schedule], constants: Constants) -> list[_Try]:
    """Different schedules, the one with the fewest predicted cycles first; bounds are of the machine."""
    from cosa.analytical.batch import MappingBatch
    from cosa.analytical.network_batch import NetworkEvaluator
    from nocsim.simulated_search import machine_bound

    names: dict[str, list[str]] = {}
    schedules: dict[str, Schedule] = {}
    for name, answer in answers.items():
        names.setdefault(answer.content_hash, []).append(name)
        schedules.setdefault(answer.content_hash, answer)
    found = []
    for key, schedule in schedules.items():
        evaluator = NetworkEvaluator(schedule.padded_layer, schedule.architecture)
        loads = evaluator.loads(MappingBatch.of([schedule.nest]))
        predicted = float(evaluator.predicted_cycles(loads, constants)[0])
        found.append(_Try(schedule, tuple(names[key]), predicted, machine_bound(schedule)))
    return sorted(found, key=lambda one: one.predicted_cycles)


def _placed(one: _Try) -> list[_Try]:
    """A schedule in all its placements, its own first."""
    from nocsim.placements import placements
    from nocsim.simulated_search import machine_bound

    return [_Try(x, one.variants, one.predicted_cycles, machine_bound(x)) for x in placements(one.schedule)]


def _result(
    runs: _Runs, answers: dict[str, Schedule], unsolved: dict[str, str], distinct: int, floor: float | None
) -> Portfolio:
    if runs.best is None:
        raise CosaError("no candidate could be run")
    best, cycles = runs.best
    outcomes = Counter(one.outcome for one in runs.candidates)
    schedule = best.schedule
    result = PortfolioResult(
        version=version(),
        layer=schedule.layer.name,
        architecture=schedule.architecture_name,
        architecture_hash=schedule.architecture_hash,
        solved=len(answers),
        distinct=distinct,
        placed=len(runs.candidates),
        simulated=outcomes["simulated"],
        stopped=outcomes["stopped"],
        skipped=outcomes["skipped"],
        simulated_cycles=cycles,
        machine_bound_cycles=floor,
        unsolved=unsolved,
        candidates=tuple(sorted(runs.candidates, key=_rank)),
    )
    late = sorted(name for name, x in answers.items() if x.provenance.solver_status == "time_limit")
    notes = [
        f"{result.solved} variants solved, {distinct} distinct schedules, {result.placed} placements; "
        f"{result.simulated} simulated to the end, {result.stopped} stopped when they had taken as long as the best, "
        f"{result.skipped} skipped by their bound",
        f"the best is of {', '.join(best.variants)}",
    ]
    if late:
        notes.append(f"time was up for {', '.join(late)}")
    solved = schedule.provenance
    provenance = Provenance(
        mapper="portfolio",
        version=version(),
        objective="latency",
        model="simulator",
        seed=next(iter(answers.values())).provenance.seed,
        solver=solved.solver,
        solver_status="time_limit" if late else "optimal",
        objective_value=cycles,
        bound=floor,
        gap=None if floor is None else cycles / floor - 1,
        machine_bound_cycles=floor,
        notes=tuple(notes),
    )
    made = Schedule.make(schedule.layer, schedule.architecture, schedule.nest, provenance, padded=schedule.padded)
    return Portfolio(made, result)


def _rank(candidate: Candidate) -> tuple[bool, int, float]:
    cycles = candidate.simulated_cycles
    return cycles is None, cycles or candidate.bound_cycles, candidate.predicted_cycles
