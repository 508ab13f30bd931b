"""What the program does with a layer: model of the machine, where to start, search, and what it states of answers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from cosa.analytical.network_machine import has_one_buffer
from cosa.common.errors import InfeasibleError, InputError, SolverError
from cosa.mappers.certified import CertifiedSearch
from cosa.mappers.confirm import confirm, figures_of
from cosa.mappers.feasible import feasible_point
from cosa.mappers.figures import AnalyticalModel, Figures, NetworkModel, PublishedModel, padded_size
from cosa.mappers.neighbours import MappingPoint, Neighbourhood
from cosa.mappers.opening import outermost_only, starting_points
from cosa.mappers.padding import padding_choices, padding_hint
from cosa.mappers.polish import SCORES
from cosa.mappers.program import ProgramOptions
from cosa.mappers.ranking import Answer
from cosa.mappers.registry import Run
from cosa.mip.solver import solver_version
from cosa.model.arch import Architecture
from cosa.model.keeping import as_array, differences
from cosa.model.layer import TENSORS, Dim, Layer
from cosa.model.mapping_rules import MappingRules
from cosa.model.schedule import Provenance, Schedule, ScheduleLevel, ScheduleTiming
from cosa.model.validity import require_room

_NO_PROGRAM = (
    "proven without a program: no mapping keeps more MAC units at work, or moves less than every word of the outermost "
    "level once"
)

MAX_POOL = 1000
"""Schedules that a pool or a front may have."""


@dataclass(frozen=True)
class _Task:
    """What all searches on the program share: the model, the search, and what provenances say of them."""

    layer: Layer
    architecture: Architecture
    options: ProgramOptions
    bounds: Mapping[Dim, Sequence[int]]
    model: AnalyticalModel
    search: CertifiedSearch
    started: float

    def nest(self, answer: Answer) -> tuple[ScheduleLevel, ...]:
        """The nest of a mapping, outermost level first."""
        return self.model.neighbourhood.nest(answer.point)

    def schedule(
        self, answer: Answer, provenance: Provenance, nest: tuple[ScheduleLevel, ...] | None = None
    ) -> Schedule:
        """The schedule of a mapping, whose nest may be known."""
        nest = nest or self.nest(answer)
        if broken := self.model.rules.broken(self.architecture, nest):
            raise InfeasibleError(f"the schedule found does not keep to {self.model.rules.source}: {'; '.join(broken)}")
        seconds = time.perf_counter() - self.started
        timing = ScheduleTiming(build_seconds=0.0, solve_seconds=seconds, total_seconds=seconds)
        figures: dict[str, Any] = {
            "model_cycles": answer.figures.cycles,
            "model_energy_pj": answer.figures.energy_pj,
        }
        if self.options.bypass == "chosen":
            changes = differences(self.architecture, [entry.keeps for entry in nest[::-1]])
            note = f"kept and bypassed by choice: {'; '.join(changes) or 'as the architecture says'}"
            figures |= {"bypass": "chosen", "notes": (*provenance.notes, note)}
        provenance = provenance.model_copy(update=figures)
        padded = padded_size(self.layer, answer.point)
        schedule = Schedule.make(self.layer, self.architecture, nest, provenance, timing, padded)
        found = Figures(self.model.nest_cycles(schedule), figures_of(schedule)[1])
        stated = {
            "cycles": (answer.figures.cycles, found.cycles),
            "energy": (answer.figures.energy_pj, found.energy_pj),
        }
        objective = "energy" if provenance.objective == "pareto" else provenance.objective
        if objective is not None and provenance.objective_value is not None:
            stated[objective] = provenance.objective_value, found.value(objective)[0]
        return confirm(schedule, stated)

    def provenance(
        self, objective: str, stopped_by: str, value: float, bound: float, notes: Sequence[str], solved: bool = True
    ) -> Provenance:
        """Value and bound, with their gap where there is a bound; `solved`: whether the solver had a part in it."""
        from cosa.common.version import version

        gap = max(0.0, value / bound - 1) if bound > 0 else None
        why = {
            "tight": "nothing was left to tighten in the program",
            "slow": "further rounds would hardly have moved the bound",
            "time": "time was up",
            "failed": "the solver ended without an answer",
        }
        stopped = [f"stopped because {why[stopped_by]}"] if stopped_by in why else []
        statuses = {"time": "time_limit", "tight": "relaxed", "slow": "relaxed", "failed": "failed"}
        return Provenance(
            mapper="program",
            version=version(),
            objective=objective,
            model=self.model.name,
            seed=self.options.seed,
            solver=solver_version() if solved else None,
            solver_status=statuses.get(stopped_by, "optimal"),
            objective_value=value,
            bound=bound if bound > 0 else None,
            gap=gap,
            notes=(*notes, *stopped),
        )

    def covers(self) -> str:
        """The space that bounds cover."""
        padding = ", ".join(f"{dim} of {' or '.join(map(str, sizes))}" for dim, sizes in self.bounds.items())
        accounting = {
            "analytical": "Timeloop's accounting",
            "network": "the predicted cycles of the simulated machine, energy in Timeloop's accounting",
            "published-machine": "the predicted cycles of the published simulator's machine and dataflow",
        }[self.model.name]
        if self.model.name == "published-machine":
            accounting += (
                ", without R and S loops outside a PE and C loops at the DRAM" if self.options.physical_only else ""
            ) + ("" if self.architecture.dram else ", a DRAM port that never waits")
        constraints = self.options.constraints
        constrained = f" that keep to {constraints.source}" if constraints else ""
        kept = "every level keeps what the architecture says"
        if self.options.bypass == "chosen":
            could = [
                f"{level.name} any of {' and '.join(tensor for tensor in TENSORS if tensor in free)}"
                for level, most, least in zip(
                    self.architecture.levels, self.model.keeping.may, self.model.keeping.always, strict=True
                )
                if (free := most - least)
            ]
            kept = f"every choice of what levels keep ({', '.join(could)})"
        return (
            f"{accounting}; tile sizes that divide the bounds{f' ({padding})' if padding else ''}{constrained}; all "
            f"loop orders and spatial splits; {kept}"
        )


def _task(layer: Layer, architecture: Architecture, options: ProgramOptions, run: Run, count: int = 1) -> _Task:
    if options.bypass == "fixed":
        require_room(layer, architecture)
    bounds = padding_choices(layer, options.pad_percent)
    constraints = options.constraints
    rules = MappingRules() if constraints is None else constraints.rules(layer, architecture, bounds)
    found_model = _model(layer, architecture, bounds, rules, options)
    # The first evaluations load compiled code, or compile it once an installation: not the search's time.
    anywhere = outermost_only(layer, architecture, found_model.neighbourhood)
    found_model.descend(anywhere, SCORES["latency"], until=0.0)
    started = time.perf_counter()
    plain = constraints is None and options.bypass == "fixed" and not bounds and not architecture.limits
    start: list[MappingPoint] = []
    if found_model.name == "analytical" and options.objective == "latency" and plain and count == 1:
        start = [] if (fastest := found_model.fastest(options.gap)) is None else [fastest]
    if options.settle_ties or not start:
        others = starting_points(layer, architecture, found_model.neighbourhood, bounds)
        start += [point for point in others if found_model.figures(point)]
    if options.bypass == "chosen":
        # What fixed levels reach is within reach, too: in a third of the time, so that a choice never loses to none.
        seconds = options.time_limit_seconds / 3
        fixed = options.with_(bypass="fixed", settle_ties=options.objective != "latency", time_limit_seconds=seconds)
        start += _with_fixed_levels(layer, architecture, found_model.neighbourhood, fixed)
    if not start:
        start = [
            feasible_point(
                layer,
                architecture,
                found_model.neighbourhood,
                bounds=bounds,
                time_limit_seconds=options.time_limit_seconds,
                seed=options.seed,
            )
        ]
    search = CertifiedSearch(
        model=found_model,
        start=start,
        gap=options.gap,
        time_limit_seconds=max(0.0, options.time_limit_seconds - (time.perf_counter() - started)),
        seed=options.seed,
        threads=options.threads,
        rounds=options.rounds,
        settle_ties=options.settle_ties,
        count=count,
        report=run.report,
    )
    return _Task(layer, architecture, options, bounds, found_model, search, started)


def _with_fixed_levels(
    layer: Layer, architecture: Architecture, neighbourhood: Neighbourhood, options: ProgramOptions
) -> list[MappingPoint]:
    """The mapping found where levels keep what the architecture says, as a point of another neighbourhood; none where
    nothing fits so."""
    try:
        task = _task(layer, architecture, options, Run())
        point = task.search.run(options.objective).answer.point
    except (InfeasibleError, SolverError):
        return []
    return [replace(neighbourhood.adopted(point, task.model.neighbourhood), keeps=as_array(task.model.keeping.default))]


def _model(
    layer: Layer,
    architecture: Architecture,
    bounds: Mapping[Dim, Sequence[int]],
    rules: MappingRules,
    options: ProgramOptions,
) -> AnalyticalModel:
    """The model that options name.

    Raises
    ------
    InputError: the constants are of another one, or the machine is not one that it knows.
    """
    if options.model is None:
        options = options.with_(model="network" if has_one_buffer(architecture) else "analytical")
    elif options.model != "analytical":
        architecture.require_noc()
    constants: Any = options.constants  # of this model: the options see to it
    if options.model == "analytical":
        return AnalyticalModel(layer, architecture, bounds, rules, options.bypass)
    if options.model == "network":
        return NetworkModel(layer, architecture, bounds, constants=constants, rules=rules, bypass=options.bypass)
    return PublishedModel(
        layer, architecture, bounds, constants=constants, rules=rules, physical_only=options.physical_only
    )


def solve(layer: Layer, architecture: Architecture, options: ProgramOptions, run: Run) -> Schedule:
    """The best schedule of a layer by the program, and a bound that none of the space is below.

    Raises
    ------
    InputError: the architecture has no mesh for the network model, or constraints name what is not there.
    InfeasibleError: nothing fits the architecture and the constraints; the message says what contradicts what, and the
        smallest change that lets a schedule in.
    SolverError: the solver failed.
    """
    if options.remainders:
        from cosa.mappers.remainders import with_remainders

        return with_remainders(layer, architecture, options)
    objective = options.objective
    task = _task(layer, architecture, options, run)
    proves = options.machine_bound and task.model.name != "analytical" and objective == "latency"
    outcome = task.search.run(objective, floor=proves)
    notes = [f"the bound covers {task.covers()}"] if outcome.bound > 0 else []
    floor = outcome.floor_cycles
    if floor:
        notes.append(f"no schedule of this space runs in less than {floor:.0f} cycles (loads, not the prediction)")
    nest = task.nest(outcome.answer)
    if not options.pad_percent and objective != "energy":
        notes += padding_hint(layer, architecture, nest, outcome.answer.figures.cycles)
    if outcome.tilings_seen is not None:
        notes.append(f"proven by looking at all {outcome.tilings_seen:,} tilings that fit, in every order and layout")
    without_program = outcome.rounds == 0 and outcome.stopped_by == "gap"
    if without_program and outcome.tilings_seen is None:
        notes.append(_NO_PROGRAM)
    provenance = task.provenance(
        objective, outcome.stopped_by, outcome.value, outcome.bound, notes, solved=not without_program
    )
    return task.schedule(outcome.answer, provenance.model_copy(update={"machine_bound_cycles": floor or None}), nest)


def pool(layer: Layer, architecture: Architecture, count: int, options: ProgramOptions) -> list[Schedule]:
    """The best schedules of a layer, each with other factors, in the best of its loop orders; the best first.

    `bound` of each: no schedule that is not listed has a value below it. Fewer than `count` where there are no more.

    Raises
    ------
    As `solve`.
    """
    _check_several("count", count, 1, options)
    objective = options.objective
    task = _task(layer, architecture, options, Run(), count)
    outcome = task.search.run(objective)
    found = []
    for number, answer in enumerate(outcome.answers, start=1):
        value = answer.figures.value(objective)[0]
        listed = f"number {number} of the {len(outcome.answers)} best, each with other factors"
        others = "there are no others" if outcome.bound == inf else "the bound is that of schedules not listed"
        notes = [f"{listed}; {others}", f"the bound covers {task.covers()}"]
        provenance = task.provenance(objective, outcome.stopped_by, value, min(outcome.bound, value), notes)
        found.append(task.schedule(answer, provenance))
    return found


def front(layer: Layer, architecture: Architecture, points: int, options: ProgramOptions) -> list[Schedule]:
    """Schedules from the least cycles to the least energy: the least energy within ever more cycles.

    Objective value and bound are energies (pJ): no schedule in at most as many cycles takes less than the bound. Fewer
    come back where several caps on cycles have one schedule. The objective of the options is not looked at.

    Raises
    ------
    As `solve`.
    """
    _check_several("points", points, 2, options)
    if not options.settle_ties:
        raise InputError("means nothing to the objective pareto", path="settle_ties", value=False, allowed="true")
    task = _task(layer, architecture, options, Run())
    on_front, stopped_by = task.search.front(points)
    found = []
    for number, point in enumerate(on_front, start=1):
        figures = point.answer.figures
        notes = [
            f"point {number} of {len(on_front)}: the bound is of the energy (pJ) of schedules in at most "
            f"{point.most_cycles:,.0f} cycles",
            f"the bound covers {task.covers()}",
        ]
        provenance = task.provenance("pareto", stopped_by, figures.energy_pj, point.bound_pj, notes)
        found.append(task.schedule(point.answer, provenance))
    return found


def _check_several(what: str, count: int, least: int, options: ProgramOptions) -> None:
    """InputError where several schedules can't be asked for so."""
    if not least <= count <= MAX_POOL:
        allowed = f"a whole number from {least} to {MAX_POOL}"
        raise InputError("out of range", path=what, value=count, allowed=allowed)
    if options.remainders:
        raise InputError("of one schedule", path="remainders", value=True, allowed="false with several schedules")
