"""The CoSA mapper: one mixed-integer program a layer, its answer checked and turned into a schedule."""

from __future__ import annotations

import time
from collections.abc import Sequence

from cosa.arch import Architecture
from cosa.errors import InfeasibleError, InputError, SolverError, nearest_of
from cosa.mappers.nests import order_free_levels
from cosa.mip.aggregated import Program
from cosa.mip.objective import OBJECTIVES
from cosa.mip.quantities import Rules
from cosa.mip.solver import SolverResult, solve, solver_version
from cosa.mip.space import kept_dims
from cosa.schedule import Provenance, Schedule, ScheduleLevel, ScheduleTiming
from cosa.validity import require_room, violations
from cosa.workload import Layer

MAX_ROUNDS = 25
"""Solves of one layer before the mapper gives up cutting off tiles that do not fit."""


def map_layer(
    layer: Layer,
    architecture: Architecture,
    *,
    objective: str = "cosa",
    as_published: bool = False,
    time_limit_seconds: float = 60.0,
    seed: int = 0,
    threads: int = 1,
    gap: float = 1e-4,
) -> Schedule:
    """Schedule a layer by the mixed-integer program.

    Every schedule returned keeps to the architecture's capacities and fan-outs exactly. The program with true
    footprints does so by itself; the published one has no halo at the global buffer, so its tile may not fit: then that
    tile is cut off and the program solved again.

    Parameters
    ----------
    layer, architecture: what to schedule, and on what.
    objective: a name of `cosa.mip.objective.OBJECTIVES`.
    as_published: halo and stride as in CoSA's public code at first release instead of true footprints.
    time_limit_seconds: for all solves together; a solution found by then is taken, its gap stands in the provenance.
    seed, threads, gap: of the solver; the gap is relative.

    Raises
    ------
    InputError: there is no such objective.
    InfeasibleError: nothing fits the architecture; the message says which level and tensor.
    SolverError: no schedule within the time limit, or the solver failed.
    """
    started = time.perf_counter()
    if objective not in OBJECTIVES:
        raise InputError(
            "no such objective",
            source="--objective",
            value=objective,
            allowed=", ".join(OBJECTIVES),
            nearest=nearest_of(objective, list(OBJECTIVES)),
        )
    require_room(layer, architecture)
    program = Program(layer, architecture, objective=objective, rules=Rules(as_published=as_published))
    build_seconds, solve_seconds, rounds = time.perf_counter() - started, 0.0, 0
    while True:
        rounds += 1
        left = max(0.0, time_limit_seconds - solve_seconds)
        result = solve(program.model, time_limit_seconds=left, gap=gap, seed=seed, threads=threads)
        solve_seconds += result.seconds
        _require_solution(result, program, time_limit_seconds)
        factors = program.decode()
        nest = order_free_levels(layer, architecture, factors)
        misfits = _levels_too_small(layer, architecture, nest)
        if not misfits:
            break
        if rounds == MAX_ROUNDS:
            raise SolverError(
                f"layer {layer.name!r}: {rounds} solves gave no tile that fits {architecture.levels[misfits[0]].name}; "
                "the program with true footprints needs no second solve"
            )
        for level in misfits:
            program.cut_off_tile(factors, level, kept_dims(architecture, level))
    from cosa.version import version

    notes = ["halo and stride as in CoSA's public code, first release"] if as_published else []
    if rounds > 1:
        notes.append(f"{rounds - 1} solutions of the program did not fit the architecture and were cut off")
    provenance = Provenance(
        mapper="cosa",
        version=version(),
        objective=objective,
        seed=seed,
        solver=solver_version(),
        solver_status=result.status,
        objective_value=result.objective,
        bound=result.bound,
        gap=result.gap,
        notes=tuple(notes),
    )
    timing = ScheduleTiming(
        build_seconds=build_seconds, solve_seconds=solve_seconds, total_seconds=time.perf_counter() - started
    )
    return Schedule.make(layer, architecture, nest, provenance, timing)


def _require_solution(result: SolverResult, program: Program, time_limit_seconds: float) -> None:
    if result.has_solution:
        return
    name = program.layer.name
    if result.status == "infeasible":
        raise InfeasibleError(f"layer {name!r} does not fit architecture {program.architecture.name!r}")
    if result.status == "no_solution_in_time":
        raise SolverError(f"layer {name!r}: no schedule found within the time limit of {time_limit_seconds:g} seconds")
    raise SolverError(f"layer {name!r}: the solver ended without a schedule ({result.detail})")


def _levels_too_small(layer: Layer, architecture: Architecture, nest: Sequence[ScheduleLevel]) -> list[int]:
    """Levels whose tiles do not fit, innermost first."""
    broken = {violation.level for violation in violations(layer, architecture, tuple(nest))}
    return [index for index, level in enumerate(architecture.levels) if level.name in broken]
