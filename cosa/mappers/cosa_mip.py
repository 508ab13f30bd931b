"""The CoSA mapper: one mixed-integer program a layer, its answer checked and turned into a schedule."""

from __future__ import annotations

import time
from collections.abc import Sequence

from cosa.common.errors import InfeasibleError, InputError, SolverError, nearest_of
from cosa.mappers.confirm import confirm
from cosa.mappers.nests import order_free_levels
from cosa.mip.aggregated import Program
from cosa.mip.factors import smooth_bound
from cosa.mip.nest import breakdown
from cosa.mip.objective import Weights, find_objective
from cosa.mip.quantities import Rules
from cosa.mip.solver import SolverResult, solve, solver_version
from cosa.mip.space import kept_dims
from cosa.model.arch import Architecture
from cosa.model.layer import Dim, Layer
from cosa.model.schedule import Provenance, Schedule, ScheduleLevel, ScheduleTiming
from cosa.model.validity import require_room, violations

FORMULATIONS = ("aggregated", "paper")
_TOLERANCE = 1e-5
MAX_ROUNDS = 25
"""Solves of one layer before the mapper gives up cutting off tiles that do not fit."""


def map_layer(
    layer: Layer,
    architecture: Architecture,
    *,
    objective: str = "cosa",
    formulation: str = "aggregated",
    as_published: bool = False,
    precision: bool = False,
    weights: Weights | None = None,
    order_level: str | None = None,
    pad_primes_above: int | None = None,
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
    formulation: ``aggregated`` counts equal prime factors; ``paper`` has a binary for each, as the paper states it. The
        optimum is the same, the second takes far longer.
    as_published: halo and stride as in CoSA's public code at first release instead of true footprints.
    precision: the paper's precision terms: capacities and traffic in bytes instead of entries.
    weights: what the terms of the objective count (default: as published).
    order_level: name of the level whose loop order is part of the program (default: the one with the mesh, without a
        mesh the one under the outermost).
    pad_primes_above: bounds with a larger prime factor are padded to the next bound without one (None: no padding).
    time_limit_seconds: for all solves together; a solution found by then is taken, its gap stands in the provenance.
    seed, threads, gap: of the solver; the gap is relative.

    Raises
    ------
    InputError: there is no such objective, formulation or level.
    InfeasibleError: nothing fits the architecture; the message says which level and tensor.
    SolverError: no schedule within the time limit, or the solver failed.
    """
    started = time.perf_counter()
    find_objective(objective)
    if formulation not in FORMULATIONS:
        raise InputError(
            "no such formulation",
            source="--formulation",
            value=formulation,
            allowed=", ".join(FORMULATIONS),
            nearest=nearest_of(formulation, FORMULATIONS),
        )
    padded = {} if pad_primes_above is None else padded_bounds(layer, pad_primes_above)
    asked, layer = layer, layer.padded_to(padded)
    require_room(layer, architecture)
    rules = Rules(as_published=as_published, precision=precision, ordered_level=order_level)
    program = _program(formulation)(layer, architecture, objective=objective, rules=rules, weights=weights)
    build_seconds, solve_seconds, rounds = time.perf_counter() - started, 0.0, 0
    while True:
        rounds += 1
        left = max(0.0, time_limit_seconds - solve_seconds)
        result = solve(program.model, time_limit_seconds=left, gap=gap, seed=seed, threads=threads)
        solve_seconds += result.seconds
        _require_solution(result, program, time_limit_seconds)
        factors = program.decode()
        nest = order_free_levels(layer, architecture, factors, program.order_level)
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
    from cosa.common.version import version

    notes = ["halo and stride as in CoSA's public code, first release"] if as_published else []
    if formulation != "aggregated":
        notes.append(f"formulation {formulation}")
    if precision:
        notes.append("precision terms: capacities and traffic in bytes")
    if weights is not None:
        notes.append(f"weights: {_told(weights)}")
    if rounds > 1:
        notes.append(f"{rounds - 1} solutions of the program did not fit the architecture and were cut off")
    assert result.objective is not None
    value = breakdown(layer, architecture, nest, objective=objective, rules=rules, weights=weights)["total"]
    found_gap = result.gap
    if result.bound is not None and abs(value - result.objective) > _TOLERANCE * max(1.0, abs(value)):
        found_gap = abs(value - result.bound) / max(abs(value), 1e-12)
    provenance = Provenance(
        mapper="cosa",
        version=version(),
        objective=objective,
        seed=seed,
        solver=solver_version(),
        solver_status=result.status,
        objective_value=value,
        bound=result.bound,
        gap=found_gap,
        notes=tuple(notes),
    )
    timing = ScheduleTiming(
        build_seconds=build_seconds, solve_seconds=solve_seconds, total_seconds=time.perf_counter() - started
    )
    schedule = Schedule.make(asked, architecture, nest, provenance, timing, padded)
    # The solver keeps its rows within a tolerance, and may leave free what would not change an answer within the gap.
    close = abs(value - result.objective) <= _TOLERANCE * max(1.0, abs(value)) + gap * abs(result.objective)
    return confirm(schedule, {objective: (result.objective, value)} if not close else {})


def padded_bounds(layer: Layer, largest_prime: int) -> dict[Dim, int]:
    """Bounds to which a layer is padded so that no prime factor is larger than that; only those which change.

    Raises
    ------
    InputError: no prime is that small.
    """
    if largest_prime < 2:
        raise InputError("out of range", source="--pad-primes-above", value=largest_prime, allowed="at least 2")
    found = {dim: smooth_bound(bound, largest_prime) for dim, bound in layer.bounds.items()}
    return {dim: bound for dim, bound in found.items() if bound != layer.bounds[dim]}


def _program(formulation: str) -> type[Program]:
    if formulation == "aggregated":
        return Program
    from cosa.mip.paper import PaperProgram

    return PaperProgram


def _told(weights: Weights) -> str:
    """Weights in a line of a schedule's notes."""
    parts = [f"{name} {getattr(weights, name):g}" for name in ("utilisation", "compute", "traffic")]
    parts += [f"{name} {weight:g}" for name, weight in (*weights.levels.items(), *weights.tensors.items())]
    return ", ".join(parts)


def _require_solution(result: SolverResult, program: Program, time_limit_seconds: float) -> None:
    if result.has_solution:
        return
    name = program.layer.name
    if result.status == "infeasible":
        # Fan-outs and capacities leave a way, with all loops at the outermost level; only limits can close it.
        limits = "; ".join(f"{limit.name}: at most {limit.most:,}" for limit in program.architecture.limits)
        why = f": no schedule keeps to all its limits ({limits})" if limits else ""
        raise InfeasibleError(f"layer {name!r} does not fit architecture {program.architecture.name!r}{why}")
    if result.status == "no_solution_in_time":
        raise SolverError(f"layer {name!r}: no schedule found within the time limit of {time_limit_seconds:g} seconds")
    raise SolverError(f"layer {name!r}: the solver ended without a schedule ({result.detail})")


def _levels_too_small(layer: Layer, architecture: Architecture, nest: Sequence[ScheduleLevel]) -> list[int]:
    """Levels whose tiles do not fit, innermost first."""
    broken = {violation.level for violation in violations(layer, architecture, tuple(nest))}
    return [index for index, level in enumerate(architecture.levels) if level.name in broken]
