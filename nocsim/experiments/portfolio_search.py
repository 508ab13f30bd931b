"""Choosing among schedules by running them: variants solved, the best answers placed on the mesh in every way, run.

What runs them is a `Judge`: the exact simulator (`nocsim.experiments.portfolio_run`) or the replay of the published one
(`nocsim.published.portfolio`). Runs come in waves of a fixed size, and what is skipped depends on earlier waves only,
so that any number of workers gives the same result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from cosa.common.errors import CosaError, InputError, SolverError, nearest_of
from cosa.common.files import FileModel, Model
from cosa.common.options import Options, option
from cosa.common.pool import Pool, opened
from cosa.common.version import version
from cosa.experiments.pipeline import Outcome, Point, Trial, require_done, rows_of, run, run_points, schedule
from cosa.mappers.registry import Gap, MapperOptions, Seconds, Seed
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from cosa.model.schedule import Provenance, Schedule

WAVE = 4
"""Runs that know the same best so far, on any number of workers: so the result does not depend on them."""

ROUNDS = 2
"""Of solving and tightening. What they leave open is less than the prediction is off."""

PUBLISHED_GAP = 1e-4
"""Of logarithms."""

_POLISH_STEPS = 4
"""From neighbour to neighbour at the end, where runs are cheap."""


def _read_names(value: Any) -> Any:
    """Names from a list, or from a text with commas."""
    return tuple(name.strip() for name in value.split(",")) if isinstance(value, str) else tuple(value)


class VariantOptions(Options):
    """Of a portfolio: what is solved, for how long, and what of it is run."""

    variants: Annotated[tuple[str, ...] | None, BeforeValidator(_read_names)] = option(
        None, "Variants to solve, separated by commas.", metavar="NAMES"
    )
    keep: int = option(3, "Schedules to place in every way and run.", ge=1, le=100)
    gap: Gap = option(0.05, "Gap at which a solve ends.", metavar="RATIO")
    time_limit_seconds: Seconds = option(60.0, "Time of each solve; rounds end most of them.", unit="seconds")
    seed: Seed = option(0, "Seed of the solver.")

    def common(self) -> dict[str, Any]:
        """What all solves of programs on a model of the machine have."""
        shared = {name: getattr(self, name) for name in ("gap", "time_limit_seconds", "seed")}
        return shared | {"rounds": ROUNDS, "settle_ties": False}

    def published(self) -> dict[str, Any]:
        """What solves of the published program have."""
        return {"gap": PUBLISHED_GAP, "time_limit_seconds": self.time_limit_seconds, "seed": self.seed}


class Candidate(Model):
    """One placement of one schedule. `outcome`: ``simulated`` to its end; ``stopped`` when it had taken as long as the
    best; ``skipped``, as its bound says that it can't be better."""

    variants: tuple[str, ...]
    schedule_hash: str
    placement: str
    predicted_cycles: float
    bound_cycles: int
    outcome: Literal["simulated", "stopped", "skipped"] = "skipped"
    simulated_cycles: int | None = None

    @property
    def rank(self) -> tuple[bool, int, float]:
        """The best is the least."""
        cycles = self.simulated_cycles
        return cycles is None, cycles or self.bound_cycles, self.predicted_cycles


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
class Judge:
    """What chooses among schedules. `model`: what a schedule says chose it; `predict`: cycles by which they are ranked
    before; `bound`: cycles that no run of a schedule is below; `point`: what runs it, up to so many cycles, and has the
    figure `simulated_cycles`. `ranks_by_runs`: runs are cheap, so those that are placed in every way are the best of
    all as solved, not the best by prediction; `neighbours`: schedules near one that are worth a run, tried at last for
    as long as one of them is better."""

    model: str
    predict: Callable[[Schedule], float]
    bound: Callable[[Schedule], int]
    point: Callable[[Schedule, int | None], Point]
    ranks_by_runs: bool = False
    neighbours: Callable[[Schedule], list[Schedule]] | None = None

    def run(self, schedules: Sequence[Schedule], pool: Pool, most: int | None) -> list[int | None]:
        """Cycles of schedules; None where a run has taken more than `most`."""
        rows = rows_of([self.point(one, most) for one in schedules], pool=pool)
        return [row["simulated_cycles"] for row in rows]


@dataclass(frozen=True, kw_only=True)
class _Solve(Point):
    """A variant: scheduled, and no more."""

    def run(self) -> Outcome:
        return run(Trial(self), (schedule,), {})


Try = tuple[Schedule, Candidate]
"""A schedule to run, with what is known of it before."""


@dataclass
class _Runs:
    """Simulations so far, and the best of them."""

    judge: Judge
    pool: Pool
    progress: Callable[[str, int, int], None] | None
    best: Try | None = None
    candidates: list[Candidate] = field(default_factory=list)

    def before(self, schedule: Schedule, variants: Sequence[str], predicted_cycles: float | None = None) -> Try:
        """What is known of a schedule; one that is placed otherwise is predicted the same."""
        from nocsim.experiments.placements import layout

        candidate = Candidate(
            variants=tuple(variants),
            schedule_hash=schedule.content_hash,
            placement=layout(schedule),
            predicted_cycles=self.judge.predict(schedule) if predicted_cycles is None else predicted_cycles,
            bound_cycles=self.judge.bound(schedule),
        )
        return schedule, candidate

    def run(self, tries: Sequence[Try]) -> None:
        """Simulate in order, wave by wave."""
        for first in range(0, len(tries), WAVE):
            most = None if self.best is None else self.best[1].simulated_cycles
            wave = tries[first : first + WAVE]
            worth = [chosen for chosen, one in wave if most is None or one.bound_cycles < most]
            found = iter(self.judge.run(worth, self.pool, None if most is None else most - 1))
            for chosen, one in wave:
                if chosen in worth:
                    cycles = next(found)
                    outcome = "stopped" if cycles is None else "simulated"
                    one = one.model_copy(update={"outcome": outcome, "simulated_cycles": cycles})
                    if cycles is not None and (self.best is None or cycles < (self.best[1].simulated_cycles or 0)):
                        self.best = chosen, one
                self.candidates.append(one)
            if self.progress is not None:
                self.progress("simulated", first + len(wave), len(tries))

    def polish(self, neighbours: Callable[[Schedule], list[Schedule]]) -> None:
        """Step to the best of the neighbours of the best, while that is better."""
        for _ in range(_POLISH_STEPS):
            assert self.best is not None
            before, known = self.best, {one.schedule_hash for one in self.candidates}
            variants = tuple(dict.fromkeys((*before[1].variants, "polish")))
            found = [one for one in neighbours(before[0]) if one.content_hash not in known]
            self.run([self.before(one, variants) for one in found])
            if self.best is before:
                return

    def ranked(self, tries: Sequence[Try]) -> list[Try]:
        """Tries by their cycles; those that did not end come last."""
        cycles = {one.schedule_hash: one.simulated_cycles for one in self.candidates}

        def rank(one: Try) -> tuple[bool, float]:
            found = cycles.get(one[1].schedule_hash)
            return found is None, found or one[1].predicted_cycles

        return sorted(tries, key=rank)


def run_portfolio(
    layer: Layer,
    architecture: Architecture,
    variants: Mapping[str, MapperOptions],
    judge: Judge,
    *,
    options: VariantOptions,
    workers: int,
    progress: Callable[[str, int, int], None] | None = None,
    fine: Callable[[Schedule], None] | None = None,
) -> Portfolio:
    """Solve variants, place the best answers in every way, let a judge run them; see `portfolio`.

    Parameters
    ----------
    variants: options of mappers, by name of the variant.
    options: those of the portfolio, as the schedule's provenance has them.
    fine: raises a `SolverError` for an answer that must not be taken.
    """
    from cosa.model.validity import require_room
    from nocsim.experiments.placements import placements

    require_room(layer, architecture)
    names = list(variants)
    points = [_Solve(layer=layer, architecture=architecture, options=options) for options in variants.values()]
    with opened(workers) as pool:
        answers: dict[str, Schedule] = {}
        unsolved: dict[str, str] = {}
        for number, outcome in run_points(points, pool=pool):
            try:
                require_done(outcome)
                answer = points[number].schedule_of(outcome)
                if fine is not None:
                    fine(answer)
                answers[names[number]] = answer
            except SolverError as error:
                unsolved[names[number]] = str(error)
            if progress is not None:
                progress("solved", len(answers) + len(unsolved), len(names))
        answers = {name: answers[name] for name in names if name in answers}
        unsolved = {name: unsolved[name] for name in names if name in unsolved}
        if not answers:
            raise SolverError(f"no variant has an answer: {'; '.join(f'{n}: {text}' for n, text in unsolved.items())}")
        runs = _Runs(judge, pool, progress)
        found: dict[str, list[str]] = {}
        for name, answer in answers.items():
            found.setdefault(answer.content_hash, []).append(name)
        tries = [runs.before(answers[same[0]], same) for same in found.values()]
        distinct = sorted(tries, key=lambda one: one[1].predicted_cycles)
        # Each schedule as it was solved first: that gives the others a mark to beat.
        if judge.ranks_by_runs:
            runs.run(distinct)
            kept = runs.ranked(distinct)[: options.keep]
        else:
            kept = distinct[: options.keep]
            runs.run(kept)
        runs.run(
            [
                runs.before(placed, one.variants, one.predicted_cycles)
                for schedule, one in kept
                for placed in placements(schedule)[1:]
            ]
        )
        if judge.neighbours is not None:
            runs.polish(judge.neighbours)
    floors = [x.provenance.machine_bound_cycles for x in answers.values() if x.provenance.machine_bound_cycles]
    found_best = _result(runs, answers, unsolved, len(distinct), max(floors, default=None))
    made = found_best.schedule.provenance.model_copy(update={"options": options.given()})
    return replace(found_best, schedule=found_best.schedule.model_copy(update={"provenance": made}))


def chosen_variants(known: Mapping[str, MapperOptions], names: Sequence[str] | None) -> dict[str, MapperOptions]:
    """Options of the variants of these names (None: all).

    Raises
    ------
    InputError: there is no such variant, or none is named.
    """
    if names is None:
        return dict(known)
    for name in names:
        if name not in known:
            allowed, nearest = ", ".join(known), nearest_of(name, list(known))
            raise InputError("no such variant", path="variants", value=name, allowed=allowed, nearest=nearest)
    if not names:
        raise InputError("empty", path="variants", value="", allowed=", ".join(known))
    return {name: known[name] for name in known if name in names}


def _result(
    runs: _Runs, answers: dict[str, Schedule], unsolved: dict[str, str], distinct: int, floor: float | None
) -> Portfolio:
    if runs.best is None:
        raise CosaError("no candidate could be run")
    schedule, best = runs.best
    cycles = best.simulated_cycles
    assert cycles is not None
    outcomes = Counter(one.outcome for one in runs.candidates)
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
        candidates=tuple(sorted(runs.candidates, key=lambda one: one.rank)),
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
        model=runs.judge.model,
        seed=next(iter(answers.values())).provenance.seed,
        solver=solved.solver,
        solver_status="time_limit" if late else "optimal",
        objective_value=cycles,
        bound=floor,
        gap=None if floor is None else cycles / floor - 1,
        machine_bound_cycles=floor,
        notes=tuple(notes),
    )
    return Portfolio(schedule.with_nest(schedule.nest, provenance), result)
