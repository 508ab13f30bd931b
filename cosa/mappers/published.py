"""The mapper ``published``: CoSA's program as published, its answer checked and turned into a schedule."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Literal

from cosa.common.errors import InfeasibleError, InputError, SolverError
from cosa.common.options import option, read_by
from cosa.mappers.confirm import confirm
from cosa.mappers.nests import order_free_levels
from cosa.mappers.registry import Gap, Mapper, MapperOptions, Run, Seconds, Seed, register
from cosa.mip import solver
from cosa.mip.aggregated import Program
from cosa.mip.factors import smooth_bound
from cosa.mip.nest import breakdown
from cosa.mip.objective import Weights
from cosa.mip.quantities import Rules
from cosa.mip.space import kept_dims
from cosa.model.arch import Architecture
from cosa.model.layer import Dim, Layer
from cosa.model.schedule import Provenance, Schedule, ScheduleLevel, ScheduleTiming
from cosa.model.validity import require_room, violations

_TOLERANCE = 1e-5
MAX_ROUNDS = 25
"""Solves of one layer before the mapper gives up cutting off tiles that do not fit."""


class PublishedTerms(MapperOptions):
    """What the terms of CoSA's published objective count."""

    objective: Literal["cosa", "utilisation", "compute", "traffic", "balance"] = option(
        "cosa", "CoSA's weighted sum, one of its parts, or the distance between weighted traffic and compute."
    )
    as_published: bool = option(False, "Charge halo and stride as CoSA's published code does.")
    precision: bool = option(False, "Count capacities and traffic in bytes instead of entries, as the paper does.")
    weights: Annotated[Weights | None, read_by("weights", Weights.from_file, Weights.from_data)] = option(
        None, "Weights of the objective's terms, without: as published."
    )
    order_level: str | None = option(
        None,
        "Level whose loop order is part of the program; without, the one with the mesh, or under the outermost.",
        metavar="NAME",
    )

    def rules(self) -> Rules:
        """How footprints, traffic and orders are counted."""
        return Rules(as_published=self.as_published, precision=self.precision, ordered_level=self.order_level)

    def require_levels(self, architecture: Architecture) -> None:
        """InputError where an option names a level that the architecture does not have."""
        path = "weights.levels"
        try:
            if self.weights is not None:
                self.weights.require_levels(architecture, "weights")
            path = "order_level"
            self.rules().order_level(architecture)
        except InputError as error:
            raise error.at(None, path) from None


class PublishedOptions(PublishedTerms):
    """Of CoSA's published program: a weighted sum of logarithms, or its parts."""

    formulation: Literal["aggregated", "paper"] = option(
        "aggregated", "Counts of equal primes, or a binary a prime factor: the same optimum in far more time."
    )
    pad_primes_above: int | None = option(
        None, "Pad bounds with a larger prime factor to the next one without.", metavar="PRIME", ge=2, le=10**14
    )
    gap: Gap = option(1e-4, "Relative gap, in logarithms, at which to stop.", metavar="RATIO")
    time_limit_seconds: Seconds = option(60.0, "For all solves; a schedule found by then is taken.", unit="seconds")
    seed: Seed = option(0, "Seed of the solver.")
    threads: int = option(1, "Threads of the solver.", ge=1, le=1024)


def solve(layer: Layer, architecture: Architecture, options: PublishedOptions) -> Schedule:
    """Schedule a layer by the mixed-integer program.

    Every schedule returned keeps to the architecture's capacities and fan-outs exactly. The program with true
    footprints does so by itself; the published one has no halo at the global buffer, so its tile may not fit: then that
    tile is cut off and the program solved again.

    Raises
    ------
    InputError: there is no such level.
    InfeasibleError: nothing fits the architecture; the message says which level and tensor.
    SolverError: no schedule within the time limit, or the solver failed.
    """
    objective, weights, rules, gap = options.objective, options.weights, options.rules(), options.gap
    formulation, time_limit_seconds = options.formulation, options.time_limit_seconds
    options.require_levels(architecture)
    started = time.perf_counter()
    padded = {} if options.pad_primes_above is None else padded_bounds(layer, options.pad_primes_above)
    asked, layer = layer, layer.padded_to(padded)
    require_room(layer, architecture)
    program = _program(formulation)(layer, architecture, objective=objective, rules=rules, weights=weights)
    build_seconds, solve_seconds, rounds = time.perf_counter() - started, 0.0, 0
    while True:
        rounds += 1
        left = max(0.0, time_limit_seconds - solve_seconds)
        result = solver.solve(
            program.model, time_limit_seconds=left, gap=gap, seed=options.seed, threads=options.threads
        )
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

    notes = ["halo and stride as in CoSA's public code, first release"] if options.as_published else []
    if formulation != "aggregated":
        notes.append(f"formulation {formulation}")
    if options.precision:
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
        mapper="published",
        version=version(),
        objective=objective,
        seed=options.seed,
        solver=solver.solver_version(),
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
    """Bounds that a layer is padded to so that no prime factor is larger (that is 2 at least); those which change."""
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


def _require_solution(result: solver.SolverResult, program: Program, time_limit_seconds: float) -> None:
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


def _run(layer: Layer, architecture: Architecture, options: PublishedOptions, run: Run) -> list[Schedule]:
    return [solve(layer, architecture, options)]


register(Mapper("published", PublishedOptions, _run, "CoSA's mixed-integer program as published"))
