"""Solve, evaluate exactly, tighten, repeat: the best mapping found and a bound that no mapping of the space is below.

A round solves the program, whose value is a bound; evaluates the mapping it names exactly; descends from there on the
exact evaluator; and touches every power at the answer, so that the program can't under-estimate that mapping again.
Where nothing is left to touch, a small program sets the tiles it names aside, after every order and layout of them has
been evaluated. The rounds end when bound and best meet within the gap, when nothing is left to do, when time is up, or
when the solver fails: the best mapping and the bound proven until then are the answer.

Energy times cycles is not convex in the two. It is bounded over an interval of cycles by two chords: the logarithm is
concave, so between its ends it lies above the chord. What the chords lose is a third of a per cent at most on intervals
of a ratio of 1.2.

With a `count` above 1 the same rounds go on until the bound meets the last of so many mappings: what is among them is
cut off from the program, so that the bound is of all that is not listed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from math import exp, inf, log
from typing import Any

import numpy as np

from cosa.common.errors import SolverError
from cosa.mappers.figures import CostModel, CostProgram, fix_counts, free_counts
from cosa.mappers.neighbours import MappingPoint
from cosa.mappers.polish import SCORES, Score
from cosa.mappers.ranking import Answer, Front, FrontPoint, Kept, Ranking, SearchOutcome
from cosa.mip.quantities import Expression
from cosa.mip.solver import SolverResult, solve
from cosa.model.objectives import OBJECTIVES

_FEASIBILITY = 1e-6
"""HiGHS keeps rows within this; a bound gives away as much for every power of a sum."""

_LATENCY_SHARE = 0.6
"""Of the time limit, where a floor is to be proven as well."""

_EDP_ENERGY_SHARE, _EDP_LATENCY_SHARE = 0.4, 0.2
"""Of the time limit, for the ends of the intervals that energy times cycles is bounded on."""

_INTERVAL_RATIO = 1.2
MAX_ROUNDS = 100
_LARGE_ROUNDS = 12
"""Of a program that does not set tiles aside: what is not tight by then hardly gets so."""

_TIE_GAP = 0.02
"""Of what settles ties (energy at the least latency): worth one solve, not a proof."""

_SMALL_COUNTS = 40
"""Counts up to which tiles are set aside one by one where the program has nothing left to tighten. A large program has
too many equal ones for that to lift its bound."""


FEW_NESTS, MOST_NESTS = 20_000, 400_000
"""Nests up to which all are looked at: at once, and where the program has nothing left to tighten."""

_PATIENCE = 3
"""Further rounds that may be needed for the gap at the pace of the last one; where it is more, rounds end."""

_ROUNDS_EACH = 4
"""More of them for each further mapping asked for."""


class _AllSeen(Exception):  # noqa: N818  (not an error: the search is over)
    """Every mapping of the space has been looked at."""


@dataclass
class CertifiedSearch:
    """One search over the mappings of a model.

    Parameters
    ----------
    model: what evaluates mappings and states their program.
    start: mappings to begin with; one at least must fit.
    gap: relative distance of best and bound at which to stop.
    time_limit_seconds: for everything; the best by then is the answer.
    rounds: of each program at most; unlike time the same on any machine.
    settle_ties: latency: of the fastest, look for the one with the least energy.
    count: how many mappings are asked for.
    """

    model: CostModel
    start: list[MappingPoint]
    gap: float = 0.005
    time_limit_seconds: float = 60.0
    rounds: int = MAX_ROUNDS
    settle_ties: bool = True
    seed: int = 0
    threads: int = 1
    count: int = 1
    report: Callable[[str, float, float], None] | None = None
    _rankings: dict[str, Ranking] = field(default_factory=dict)
    _front: Front = field(default_factory=Front)
    _widened: set[bytes] = field(default_factory=set)
    _floor_cycles: float | None = None
    _least_cycles: float = 0.0
    _main: str = ""
    _main_floor: bool = False
    _set_aside: bool = False
    _may_see_all: bool = False
    _tilings_seen: int | None = None
    _rounds: int = 0
    _evaluations: int = 0
    _started: float = 0.0
    _deadline: float = 0.0
    _first_seconds: float = 0.0

    def run(self, objective: str, floor: bool = False) -> SearchOutcome:
        """Minimise ``latency`` (then energy), ``energy`` (then cycles) or ``edp``.

        Parameters
        ----------
        floor: latency: prove as well what no mapping can run below, whatever is predicted.

        Raises
        ------
        SolverError: no mapping within the time limit, or the solver failed.
        """
        self._main_floor = floor
        self._begin(objective)
        if self._is_least(objective) and not self.settle_ties:
            bound, stopped = self._least_cycles, "gap"
        else:
            bound, stopped = self._search(objective, floor)
        entries, value = self._rankings[objective].entries, self._rankings[objective].best
        if stopped == "gap" and bound < inf and value > bound * (1 + self.gap) * (1 + 1e-9):
            stopped = "tight"
        return SearchOutcome(
            answers=[entry.answer for entry in entries],
            value=value,
            bound=bound,
            rounds=self._rounds,
            evaluations=self._evaluations,
            seconds=self._elapsed(),
            first_seconds=self._first_seconds,
            best_seconds=entries[0].seconds,
            stopped_by=stopped,
            floor_cycles=self._floor_cycles,
            tilings_seen=self._tilings_seen,
        )

    def _search(self, objective: str, floor: bool) -> tuple[float, str]:
        """Bound, and why the search stopped."""
        self._may_see_all = self.count == 1
        program: CostProgram | None = None
        try:
            # Of a tiny space all is seen before a program is even stated.
            self._see_all(FEW_NESTS)
            program = self._program(objective)
            bound, stopped = {"latency": self._latency, "energy": self._energy, "edp": self._edp}[objective](program)
        except _AllSeen:
            bound, stopped = self._rankings[objective].best, "gap"
        self._may_see_all = False
        if floor:
            self._deadline = self._started + self.time_limit_seconds
            self._floor_cycles = self._floor(program or self._program(objective))
        if objective == "latency" and self.settle_ties and self._tilings_seen is None:
            assert program is not None
            self._settle_ties(program)
        return bound, stopped

    def _program(self, objective: str) -> CostProgram:
        """The program of the model, in units of the best known."""
        first = self._rankings[objective].entries[0].answer.figures
        return self.model.program(first.cycles, first.energy_pj)

    def front(self, points: int) -> tuple[list[FrontPoint], str]:
        """The least energy within ever more cycles, from the least cycles there are to those of the least energy.

        The caps in between are spread evenly over the logarithm of cycles. Fewer points where several caps have one
        mapping. Also why the last rounds that did not meet the gap stopped (``gap``: all did).

        Raises
        ------
        SolverError: no mapping within the time limit, or the solver failed.
        """
        self._begin("latency")
        program = self._program("latency")
        reasons = []

        def until(phases: int) -> None:
            self._until(phases / (points + 2))

        until(1)
        _, stopped = self._minimise(program, program.cycles, program.cycles_unit, "latency")
        reasons.append(stopped)
        until(2)
        least_energy, stopped = self._minimise(program, program.energy, program.energy_unit_pj, "energy")
        reasons.append(stopped)
        low, high = self._rankings["latency"].best, self._rankings["energy"].entries[0].answer.figures.cycles
        caps = [low * (high / low) ** (number / (points - 1)) for number in range(points - 1)]
        bounds = [(inf, least_energy)]
        for number, cap in enumerate(caps):
            until(3 + number)
            rows = len(program.model.rows)
            program.require(program.cycles <= cap / program.cycles_unit * (1 + 1e-9) + _FEASIBILITY)
            bound, stopped = self._minimise(
                program, program.energy, program.energy_unit_pj, "energy", at_most_cycles=cap
            )
            reasons.append(stopped)
            program.model.rows[rows + 1].deactivate()
            bounds.append((cap, bound))
        kept = [self._front.within(cap) for cap in (*caps, inf)]
        answers = {(one.answer.figures.cycles, one.answer.figures.energy_pj): one.answer for one in kept if one}
        found = []
        for answer in sorted(answers.values(), key=lambda one: one.figures.cycles):
            bound, cap = max((bound, cap) for cap, bound in bounds if cap >= answer.figures.cycles)
            most = answer.figures.cycles if cap == inf else cap
            found.append(FrontPoint(answer, most, min(bound, answer.figures.energy_pj)))
        return found, _worst(reasons)

    def _begin(self, objective: str) -> None:
        self._started = time.perf_counter()
        self._deadline = self._started + self.time_limit_seconds
        self._main = objective
        self._rankings = {name: Ranking(name, self.count if name == objective else 1) for name in SCORES}
        self._least_cycles = self.model.least_cycles()
        for point in self.start:
            self._keep(point)
        if self.settle_ties or not self._is_least(objective):
            for point in self.start:
                self._consider(point, SCORES[objective])
        if not self._rankings[objective].entries:
            raise SolverError("none of the mappings to start from fits the architecture")
        self._first_seconds = self._elapsed()

    def _is_least(self, objective: str) -> bool:
        """Whether the best is known to be optimal without a program."""
        best = self._rankings[objective].best
        return objective == "latency" and self.count == 1 and best <= self._least_cycles * (1 + self.gap)

    def _until(self, share: float) -> None:
        """Let the phase that follows end after a share of the time limit."""
        self._deadline = self._started + share * self.time_limit_seconds

    def _elapsed(self) -> float:
        return time.perf_counter() - self._started

    # Objectives

    def _latency(self, program: CostProgram) -> tuple[float, str]:
        if self._is_least("latency"):
            return self._least_cycles, "gap"
        if self._main_floor:
            self._until(_LATENCY_SHARE)
        self._touch_at(program, program.cycles, self._best("latency"))
        bound, stopped = self._minimise(program, program.cycles, program.cycles_unit, "latency")
        return max(bound, self._least_cycles), stopped

    def _settle_ties(self, program: CostProgram) -> None:
        """Of the fastest mappings look for the one with the least energy."""
        cycles = self._rankings["latency"].best
        program.require(program.cycles <= cycles / program.cycles_unit * (1 + 1e-9) + _FEASIBILITY)
        self.model.keep_loads(program, self._best("latency"))
        self._minimise(program, program.energy, program.energy_unit_pj, "latency", _TIE_GAP, cycles, rounds=1)

    def _floor(self, program: CostProgram) -> float:
        """Cycles that no mapping of the space can run below (network model: whatever is predicted).

        One solve; the bound holds at whatever gap time leaves.
        """
        if self._set_aside:
            # What was cut off may have a low floor.
            program = self.model.program(program.cycles_unit, program.energy_unit_pj)
        least = self.model.floor_cycles(self._best("latency")) / program.cycles_unit
        self._touch_at(program, program.floor, self._best("latency"))
        bound, _ = self._rounds_of(program, program.floor, lambda: least, "latency", self.gap, rounds=1)
        return min(bound, least) * program.cycles_unit

    def _best(self, objective: str) -> MappingPoint:
        return self._rankings[objective].entries[0].answer.point

    def _energy(self, program: CostProgram) -> tuple[float, str]:
        bound, stopped = self._minimise(program, program.energy, program.energy_unit_pj, "energy")
        return max(bound, self.model.least_energy_pj()), stopped

    def _edp(self, program: CostProgram) -> tuple[float, str]:
        gap = self.gap
        if self._edp_value() == inf:
            # Fewer mappings than asked for are known: name further ones by their energy until there are no others.
            def missing() -> float:
                return inf if self._edp_value() == inf else 0.0

            found, stopped = self._rounds_of(program, program.energy, missing, "edp", gap)
            if self._edp_value() == inf:
                return found if found == inf else self._least_cycles * self.model.least_energy_pj(), stopped
        whole = self._deadline
        self._until(_EDP_ENERGY_SHARE)
        least_energy, of_energy = self._minimise(program, program.energy, program.energy_unit_pj, "energy", gap / 4)
        least_energy = max(least_energy, self.model.least_energy_pj())
        self._until(_EDP_ENERGY_SHARE + _EDP_LATENCY_SHARE)
        least_cycles, of_cycles = self._minimise(program, program.cycles, program.cycles_unit, "latency", gap / 4)
        self._deadline = whole
        reasons = {of_energy, of_cycles}
        # Every mapping takes a cycle at least.
        low, bound = max(least_cycles, self._least_cycles, 1.0), inf
        while low * least_energy < self._edp_value() / (1 + gap):
            if self._time_is_up():
                return min(bound, low * least_energy), "time"
            most = self._edp_value() / least_energy
            high = min(most, low * _INTERVAL_RATIO)
            found, stopped = self._chords(program, low, high, least_energy)
            reasons.add(stopped)
            bound, low = min(bound, found), high
            if high >= most:
                break
        else:
            bound = min(bound, low * least_energy)
        return bound, "gap" if self._edp_value() <= bound * (1 + gap) else _worst(reasons)

    def _edp_value(self) -> float:
        return self._value("edp")

    def _chords(self, program: CostProgram, low: float, high: float, least_energy: float) -> tuple[float, str]:
        """Bound of energy times cycles for cycles from `low` to `high`."""
        most_energy = max(self._edp_value() / low, least_energy * (1 + 1e-6))
        rows = len(program.model.rows)
        cycles, energy = program.cycles * program.cycles_unit, program.energy * program.energy_unit_pj
        program.require(program.cycles <= high / program.cycles_unit)
        program.require(program.cycles >= low / program.cycles_unit)
        slope_cycles = log(high / low) / (high - low) if high > low else 1 / low
        slope_energy = log(most_energy / least_energy) / (most_energy - least_energy)
        # One is added so that relative and absolute gap are alike.
        chords = 1 + slope_cycles * (cycles - low) + slope_energy * (energy - least_energy)
        offset = log(low) + log(least_energy) - 1

        def value() -> float:
            return log(self._edp_value()) - offset

        bound, stopped = self._rounds_of(program, chords, value, "edp", self.gap / 2)
        for index in (rows + 1, rows + 2):
            if index in program.model.rows:
                program.model.rows[index].deactivate()
        return exp(min(bound, value()) + offset), stopped

    # Rounds

    def _minimise(
        self,
        program: CostProgram,
        expression: Expression,
        unit: float,
        objective: str,
        gap: float | None = None,
        at_most_cycles: float | None = None,
        rounds: int | None = None,
    ) -> tuple[float, str]:
        """Bound of an expression of the program, and why the rounds stopped; with a cap on cycles, of the energy."""

        def value() -> float:
            if at_most_cycles is None:
                return self._value(objective) / unit
            kept = self._front.within(at_most_cycles)
            return inf if kept is None else kept.answer.figures.energy_pj / unit

        bound, stopped = self._rounds_of(program, expression, value, objective, gap or self.gap, at_most_cycles, rounds)
        return bound * unit, stopped

    def _rounds_of(
        self,
        program: CostProgram,
        expression: Expression,
        value: Callable[[], float],
        objective: str,
        gap: float,
        at_most_cycles: float | None = None,
        rounds: int | None = None,
    ) -> tuple[float, str]:
        self._set_objective(program, expression)
        score = SCORES[objective] if at_most_cycles is None else _energy_within(at_most_cycles)
        bound, margin = 0.0, _FEASIBILITY * (len(program.powers) + 10)
        large = len(program.counts) > _SMALL_COUNTS
        most = min(self.rounds, _LARGE_ROUNDS) if large else self.rounds
        for _ in range(rounds or most + _ROUNDS_EACH * (self.count - 1)):
            if self._time_is_up():
                return bound, "time"
            result = self._better_than(program, expression, value(), gap)
            self._rounds += 1
            best, before = value(), bound
            if result.bound is not None:
                proven = result.bound - margin
                # What was set aside is not below the best known.
                bound = max(bound, min(proven, value()) if self._set_aside else proven)
            if not result.has_solution:
                # Infeasible: nothing is better than the best known, or than the mapping that the rows were made from.
                if result.status == "infeasible":
                    return max(bound, value()), "gap"
                return bound, "time" if result.status == "no_solution_in_time" else "failed"
            factors = program.decode_bounds()
            point = self.model.neighbourhood.point(factors, program.orders.innermost(), program.decode_keeps())
            self._consider(point, score)
            if self.count > 1:
                self._widen()
            if self.report is not None:
                self.report(objective, value(), bound)
            if value() <= bound * (1 + gap):
                return bound, "gap"
            refined = sum(power.refine() for power in program.powers)
            listed = self.count > 1 and objective == self._main and self._rankings[objective].holds(point)
            if refined == 0 or listed:
                if result.status != "optimal" and not listed:
                    return bound, "time"
                if not listed and large:
                    return bound, "tight"
                if not listed:
                    self._see_all(MOST_NESTS)
                # The program is exact up to what it under-estimates, or has named what is on the list already: set
                # these tiles aside, once the best of all their orders and layouts is known.
                if not self._consider_all_nests(point) and not listed:
                    return bound, "tight"
                program.exclude(factors)
                self._set_aside = True
            elif large and self.count == 1 and value() == best and before > 0:
                needed = value() / (1 + gap) - bound
                if needed > _PATIENCE * (bound - before):
                    return bound, "slow"
        return bound, "tight"

    def _touch_at(self, program: CostProgram, expression: Expression, point: MappingPoint) -> None:
        """Add the tangents at a mapping: its counts are fixed for one solve, which leaves the program little to do."""
        self._set_objective(program, expression)
        fix_counts(program, point)
        if not self._time_is_up() and self._solve(program, self.gap).has_solution:
            for power in program.powers:
                power.refine()
        free_counts(program)

    def _set_objective(self, program: CostProgram, expression: Expression) -> None:
        from pyomo.core import Objective

        if program.model.component("objective") is not None:
            program.model.del_component("objective")
        program.model.objective = Objective(expr=expression)

    def _better_than(self, program: CostProgram, expression: Expression, value: float, gap: float) -> SolverResult:
        """Solve for what is no worse than a value: mappings that are need no proof. Infeasible: there is none."""
        rows = len(program.model.rows)
        if value < inf and self.count == 1:
            program.require(expression <= value * (1 + 1e-9) + _FEASIBILITY)
        result = self._solve(program, gap)
        for index in range(rows + 1, len(program.model.rows) + 1):
            program.model.rows[index].deactivate()
        return result

    def _solve(self, program: CostProgram, gap: float) -> SolverResult:
        """Solve; what presolve makes of a program, within its tolerances, is not the last word."""
        for presolve in (True, False):
            result = solve(
                program.model,
                time_limit_seconds=max(0.05, self._deadline - time.perf_counter()),
                gap=gap / 4,
                seed=self.seed,
                threads=self.threads,
                restarts=False,  # costs more than it saves on programs of this size
                presolve=presolve,
            )
            if result.status not in ("failed", "unbounded", "infeasible"):
                break
        return result

    def _consider(self, point: MappingPoint, score: Score) -> None:
        """Evaluate a mapping, descend from it, and keep whatever is better than what is known."""
        found, evaluations = self.model.descend(point, score, self._deadline)
        self._evaluations += evaluations
        for candidate in (found, point):
            self._keep(candidate)

    def _keep(self, candidate: MappingPoint) -> None:
        figures = self.model.figures(candidate)
        if figures is None:
            return
        kept = Kept(Answer(candidate, figures), self._elapsed())
        for ranking in self._rankings.values():
            ranking.offer(kept)
        self._front.offer(kept)

    def _see_all(self, most_nests: int) -> None:
        """Where the space has so few nests, look at every mapping that could be better: then the best known is best.

        Raises
        ------
        _AllSeen: all have been looked at.
        """
        tilings = self.model.every_tiling(most_nests) if self._may_see_all else None
        if tilings is None:
            return
        self._may_see_all = False
        ranking = self._rankings[self._main]
        # Tilings whose compute alone takes longer need no look.
        each_cycle = OBJECTIVES[self._main].each_cycle(self.model.least_energy_pj())
        each_cycle *= self.model.compute_bounds_cycles
        for compute_cycles, point in tilings:
            if self._time_is_up():
                return
            if compute_cycles * each_cycle <= ranking.best:
                self._consider_all_nests(point)
        self._tilings_seen = len(tilings)
        raise _AllSeen

    def _consider_all_nests(self, point: MappingPoint) -> bool:
        """Keep the best of a mapping's tiles over all orders and layouts, whatever is minimised later; False if there
        are too many to look at."""
        nests = self.model.best_nests(point)
        for nest in nests or ():
            self._keep(nest)
        return nests is not None

    def _widen(self) -> None:
        """Look at the neighbours of all mappings on the list, in the best of their orders."""
        ranking, score = self._rankings[self._main], SCORES[self._main]
        while not self._time_is_up():
            entry = next((entry for entry in ranking.entries if entry.tiles not in self._widened), None)
            if entry is None:
                return
            self._widened.add(entry.tiles)
            for candidate in self.model.candidates(entry.answer.point, score, self.count):
                self._keep(candidate)
                if ranking.holds(candidate):
                    self._consider_all_nests(candidate)

    def _value(self, objective: str) -> float:
        """What a bound has to meet: the best, of the objective asked for the last on the list."""
        ranking = self._rankings[objective]
        return ranking.last if objective == self._main else ranking.best

    def _time_is_up(self) -> bool:
        return time.perf_counter() >= self._deadline


def _worst(reasons: Collection[str]) -> str:
    """Why a search in several parts stopped short, of their reasons."""
    return next((reason for reason in ("failed", "time", "slow", "tight") if reason in reasons), "gap")


def _energy_within(cycles: float) -> Score:
    def score(result: Any) -> tuple[Any, Any]:
        return np.where(result.cycles <= cycles, result.energy_pj, inf), result.cycles.astype(np.float64)

    return score
