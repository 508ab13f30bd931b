"""The CoSA mapper on a model of the machine: latency, energy or their product, and how far from optimal at most."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal, get_args

from cosa.analytical.constants import Constants, PublishedConstants
from cosa.analytical.network_batch import has_one_buffer
from cosa.common.errors import InfeasibleError, InputError, SolverError, nearest_of
from cosa.mappers.certified import MAX_ROUNDS, Search
from cosa.mappers.confirm import confirm, figures_of
from cosa.mappers.feasible import feasible_point
from cosa.mappers.figures import AnalyticalModel, Figures, NetworkModel, PublishedModel, padded_size
from cosa.mappers.neighbours import Neighbourhood, Point
from cosa.mappers.opening import starting_points
from cosa.mappers.padding import padding_choices, padding_hint
from cosa.mappers.ranking import Answer
from cosa.mip.solver import solver_version
from cosa.model.arch import Architecture
from cosa.model.constraints import Constraints
from cosa.model.keeping import BYPASSES, Bypass, as_array, differences
from cosa.model.layer import TENSORS, Dim, Layer
from cosa.model.mapping_rules import MappingRules
from cosa.model.schedule import Provenance, Schedule, ScheduleLevel, ScheduleTiming
from cosa.model.validity import require_room

OBJECTIVES = ("latency", "energy", "edp")
ModelName = Literal["network", "analytical", "published-machine"]
MODELS: tuple[ModelName, ...] = get_args(ModelName)

_NO_PROGRAM = (
    "proven without a program: no mapping keeps more MAC units at work, or moves less than every word of the outermost "
    "level once"
)

MAX_POOL = 1000
"""Schedules that a pool or a front may have."""


@dataclass(frozen=True)
class _Task:
    """What all searches on the machine program share: the model, the search, and what provenances say of them."""

    layer: Layer
    architecture: Architecture
    name: ModelName
    bounds: Mapping[Dim, Sequence[int]]
    constraints: Constraints | None
    bypass: Bypass
    model: AnalyticalModel
    search: Search
    seed: int
    started: float
    physical_only: bool

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
        if self.bypass == "chosen":
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
            mapper="cosa",
            version=version(),
            objective=objective,
            model=self.name,
            seed=self.seed,
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
        }[self.name]
        if self.name == "published-machine":
            accounting += (
                ", without R and S loops outside a PE and C loops at the DRAM" if self.physical_only else ""
            ) + ("" if self.architecture.dram else ", a DRAM port that never waits")
        constrained = f" that keep to {self.constraints.source}" if self.constraints else ""
        kept = "every level keeps what the architecture says"
        if self.bypass == "chosen":
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


def _task(
    layer: Layer,
    architecture: Architecture,
    *,
    model: str | None = None,
    constants: Constants | PublishedConstants | None = None,
    physical_only: bool = True,
    constraints: Constraints | None = None,
    pad_percent: float = 0.0,
    bypass: Bypass = "fixed",
    gap: float = 0.01,
    time_limit_seconds: float = 60.0,
    rounds: int = MAX_ROUNDS,
    settle_ties: bool = True,
    seed: int = 0,
    threads: int = 1,
    report: Callable[[str, float, float], None] | None = None,
    count: int = 1,
    objective: str = "latency",
) -> _Task:
    started = time.perf_counter()
    name = _model_name(model, architecture)
    _check_name("--bypass", bypass, BYPASSES)
    if bypass == "fixed":
        require_room(layer, architecture)
    bounds = padding_choices(layer, pad_percent)
    rules = MappingRules() if constraints is None else constraints.rules(layer, architecture, bounds)
    found_model = _model(name, layer, architecture, bounds, constants, rules, bypass, physical_only)
    plain = constraints is None and bypass == "fixed" and not bounds and not architecture.limits
    start: list[Point] = []
    if name == "analytical" and objective == "latency" and plain and count == 1:
        start = [] if (fastest := found_model.fastest(gap)) is None else [fastest]
    if settle_ties or not start:
        others = starting_points(layer, architecture, found_model.neighbourhood, bounds)
        start += [point for point in others if found_model.figures(point)]
    if bypass == "chosen":
        # What fixed levels reach is within reach, too: in a third of the time, so that a choice never loses to none.
        fixed = {"model": name, "constants": constants, "constraints": constraints, "pad_percent": pad_percent}
        solver = {"gap": gap, "rounds": rounds, "seed": seed, "threads": threads}
        start += _with_fixed_levels(
            layer,
            architecture,
            objective,
            found_model.neighbourhood,
            time_limit_seconds=time_limit_seconds / 3,
            **fixed,
            **solver,
        )
    if not start:
        neighbourhood = found_model.neighbourhood
        start = [
            feasible_point(
                layer, architecture, neighbourhood, bounds=bounds, time_limit_seconds=time_limit_seconds, seed=seed
            )
        ]
    search = Search(
        model=found_model,
        start=start,
        gap=gap,
        time_limit_seconds=max(0.0, time_limit_seconds - (time.perf_counter() - started)),
        seed=seed,
        threads=threads,
        rounds=rounds,
        settle_ties=settle_ties,
        count=count,
        report=report,
    )
    return _Task(
        layer, architecture, name, bounds, constraints, bypass, found_model, search, seed, started, physical_only
    )


def _with_fixed_levels(
    layer: Layer, architecture: Architecture, objective: str, neighbourhood: Neighbourhood, **options: Any
) -> list[Point]:
    """The mapping found where levels keep what the architecture says, as a point of another neighbourhood; none where
    nothing fits so."""
    try:
        task = _task(layer, architecture, settle_ties=False, **options)
        point = task.search.run(objective).answer.point
    except (InfeasibleError, SolverError):
        return []
    return [replace(neighbourhood.adopted(point, task.model.neighbourhood), keeps=as_array(task.model.keeping.default))]


def _model(
    name: ModelName,
    layer: Layer,
    architecture: Architecture,
    bounds: Mapping[Dim, Sequence[int]],
    constants: Constants | PublishedConstants | None,
    rules: MappingRules,
    bypass: Bypass,
    physical_only: bool,
) -> AnalyticalModel:
    """The model of a name.

    Raises
    ------
    InputError: the constants are of another one, or the machine is not one that it knows.
    """
    if name == "analytical":
        return AnalyticalModel(layer, architecture, bounds, rules, bypass)
    kind = Constants if name == "network" else PublishedConstants
    if constants is not None and not isinstance(constants, kind):
        allowed = f"weights of the model {name}"
        raise InputError("of another model", source="--constants", path="kind", value=constants.kind, allowed=allowed)
    if name == "network":
        assert not isinstance(constants, PublishedConstants)
        return NetworkModel(layer, architecture, bounds, constants=constants, rules=rules, bypass=bypass)
    assert not isinstance(constants, Constants)
    if bypass != "fixed":
        allowed = "fixed: the generator knows one hierarchy"
        raise InputError("not of the model published-machine", source="--bypass", value=bypass, allowed=allowed)
    return PublishedModel(layer, architecture, bounds, constants=constants, rules=rules, physical_only=physical_only)


def map_layer(
    layer: Layer,
    architecture: Architecture,
    *,
    objective: str = "latency",
    model: str | None = None,
    constants: Constants | PublishedConstants | None = None,
    physical_only: bool = True,
    constraints: Constraints | None = None,
    pad_percent: float = 0.0,
    bypass: Bypass = "fixed",
    remainders: bool = False,
    gap: float = 0.01,
    time_limit_seconds: float = 60.0,
    rounds: int = MAX_ROUNDS,
    settle_ties: bool = True,
    machine_bound: bool = True,
    seed: int = 0,
    threads: int = 1,
    report: Callable[[str, float, float], None] | None = None,
) -> Schedule:
    """Schedule a layer for the least latency, energy or energy times cycles.

    Parameters
    ----------
    layer, architecture: what to schedule, and on what.
    objective: ``latency`` (of the fastest the least energy), ``energy`` (of the least the fastest), ``edp``.
    model: ``network``, the simulated machine, ``analytical``, Timeloop's accounting, or ``published-machine``, the
        machine of the published simulator (None: network where the architecture has a mesh, else analytical).
    constants: weights of the prediction (None: the defaults).
    physical_only: published-machine: without schedules that gain from what its generator leaves out.
    constraints: what the schedule must keep to (None: nothing but the architecture).
    pad_percent: by how much a dimension may be padded where that pays.
    bypass: ``fixed``: levels keep what the architecture says; ``chosen``: the solver decides, for every level but the
        outermost, which of the tensors of its `keeps` and `may_keep` it keeps.
    remainders: last tiles may be smaller (`cosa.mappers.remainders`): counted by the convention ``exact``, with a bound
        for any tiles; without a network model, constraints and padding.
    gap: distance of the answer from the proven bound, in linear units, at which to stop.
    time_limit_seconds: for everything; the best by then is the answer.
    rounds: of solving and tightening, at most; unlike time the same on any machine.
    settle_ties: latency: of the fastest, look for the one with the least energy.
    machine_bound: latency of a machine: prove what no schedule can run below, besides the prediction's bound.
    seed, threads: of the solver.

    Raises
    ------
    InputError: there is no such objective or model, the architecture has no mesh for the network model, or constraints
        name what is not there.
    InfeasibleError: nothing fits the architecture and the constraints; the message says what contradicts what, and the
        smallest change that lets a schedule in.
    SolverError: the solver failed.
    """
    _check_name("--objective", objective, OBJECTIVES)
    if remainders:
        from cosa.mappers.remainders import with_remainders

        _check_name("--bypass", bypass, BYPASSES)
        for option, value in (("--model", model), ("--constrain", constraints), ("--constants", constants)):
            if value not in (None, "analytical"):
                raise InputError(
                    "does not go with --remainders",
                    source=option,
                    value=str(value),
                    allowed="the analytical model alone",
                )
        if pad_percent:
            raise InputError("does not go with --remainders", source="--pad-percent", value=pad_percent, allowed="0")
        return with_remainders(
            layer,
            architecture,
            objective=objective,
            bypass=bypass,
            gap=gap,
            time_limit_seconds=time_limit_seconds,
            rounds=rounds,
            settle_ties=settle_ties,
            seed=seed,
            threads=threads,
        )
    task = _task(
        layer,
        architecture,
        model=model,
        constants=constants,
        physical_only=physical_only,
        constraints=constraints,
        pad_percent=pad_percent,
        bypass=bypass,
        gap=gap,
        time_limit_seconds=time_limit_seconds,
        rounds=rounds,
        settle_ties=settle_ties,
        seed=seed,
        threads=threads,
        report=report,
        objective=objective,
    )
    proves = machine_bound and task.name != "analytical" and objective == "latency"
    outcome = task.search.run(objective, floor=proves)
    notes = [f"the bound covers {task.covers()}"]
    floor = outcome.floor_cycles
    if floor:
        notes.append(f"no schedule of this space runs in less than {floor:.0f} cycles (loads, not the prediction)")
    nest = task.nest(outcome.answer)
    if not pad_percent and objective != "energy":
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


def map_pool(
    layer: Layer,
    architecture: Architecture,
    count: int,
    *,
    objective: str = "latency",
    **options: Any,
) -> list[Schedule]:
    """The best schedules of a layer, each with other factors, in the best of its loop orders; the best first.

    `bound` of each: no schedule that is not listed has a value below it. Fewer than `count` where there are no more.

    Parameters
    ----------
    count: how many, 1 to 1000.
    objective: as of `map_layer`.
    options: its other options.

    Raises
    ------
    As `map_layer`.
    """
    _check_name("--objective", objective, OBJECTIVES)
    if not 1 <= count <= MAX_POOL:
        raise InputError("out of range", source="--pool", value=count, allowed=f"a whole number from 1 to {MAX_POOL}")
    task = _task(layer, architecture, count=count, objective=objective, **_without_remainders("--pool", options))
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


def map_front(
    layer: Layer,
    architecture: Architecture,
    points: int,
    **options: Any,
) -> list[Schedule]:
    """Schedules from the least cycles to the least energy: the least energy within ever more cycles.

    Objective value and bound are energies (pJ): no schedule in at most as many cycles takes less than the bound.

    Parameters
    ----------
    points: how many, 2 to 1000; fewer come back where several caps on cycles have one schedule.
    options: those of `map_layer`, without the objective.

    Raises
    ------
    As `map_layer`.
    """
    if not 2 <= points <= MAX_POOL:
        raise InputError(
            "out of range", source="--points", value=points, allowed=f"a whole number from 2 to {MAX_POOL}"
        )
    task = _task(layer, architecture, **_without_remainders("--objective pareto", options))
    front, stopped_by = task.search.front(points)
    found = []
    for number, point in enumerate(front, start=1):
        figures = point.answer.figures
        notes = [
            f"point {number} of {len(front)}: the bound is of the energy (pJ) of schedules in at most "
            f"{point.most_cycles:,.0f} cycles",
            f"the bound covers {task.covers()}",
        ]
        provenance = task.provenance("pareto", stopped_by, figures.energy_pj, point.bound_pj, notes)
        found.append(task.schedule(point.answer, provenance))
    return found


def _without_remainders(option: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of searches that know whole tiles only."""
    if options.get("remainders"):
        raise InputError("does not go with --remainders", source=option, value="given", allowed="one schedule")
    return {name: value for name, value in options.items() if name != "remainders"}


def _check_name(option: str, name: str, allowed: Sequence[str]) -> None:
    if name not in allowed:
        nearest = nearest_of(name, list(allowed))
        raise InputError("no such name", source=option, value=name, allowed=", ".join(allowed), nearest=nearest)


def _model_name(model: str | None, architecture: Architecture) -> ModelName:
    if model is not None:
        _check_name("--model", model, MODELS)
        if model != "analytical":
            architecture.require_noc()
        return next(name for name in MODELS if name == model)
    return "network" if has_one_buffer(architecture) else "analytical"
