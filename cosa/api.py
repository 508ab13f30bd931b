"""The Python API: one call from a layer and an architecture to a schedule."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosa.common.errors import InputError, nearest_of
from cosa.model.arch import Architecture, load_architecture
from cosa.model.layer import Layer
from cosa.model.networks import load_network, network_names
from cosa.model.schedule import Schedule
from cosa.model.validity import require_valid

MACHINE_OBJECTIVES = ("latency", "energy", "edp")
PARETO = "pareto"
FRONT_POINTS = 5

if TYPE_CHECKING:
    from cosa.analytical.constants import Constants, PublishedConstants
    from cosa.analytical.evaluation import Convention, Evaluation
    from cosa.mip.objective import Weights
    from cosa.model.constraints import Constraints


def schedule(
    layer: Layer | str | Path,
    architecture: Architecture | str | Path = "simba_4x4",
    *,
    objective: str | None = None,
    model: str | None = None,
    constants: Constants | PublishedConstants | str | Path | None = None,
    physical_only: bool = True,
    pad_percent: float = 0.0,
    bypass: str = "fixed",
    remainders: bool = False,
    settle_ties: bool = True,
    constraints: Constraints | str | Path | None = None,
    formulation: str = "aggregated",
    as_published: bool = False,
    precision: bool = False,
    weights: Weights | str | Path | None = None,
    order_level: str | None = None,
    pad_primes_above: int | None = None,
    time_limit_seconds: float = 60.0,
    seed: int = 0,
    threads: int = 1,
    gap: float | None = None,
) -> Schedule:
    """A schedule of a layer on an architecture, by CoSA's mixed-integer program or by one that models the machine.

    Parameters
    ----------
    layer: a layer, the path of a layer file, or ``"network:layer"`` (``"resnet50:input.8"``).
    architecture: an architecture, the name of a packaged one, or the path of an architecture file.
    objective: what is minimised (None: latency; with an option of the published program, cosa). Of the machine,
        with a proven bound: ``latency`` (of the fastest the least energy), ``energy`` (of the least the fastest),
        ``edp``. Of the published program: ``cosa``, its weighted sum; its parts
        ``utilisation``, ``compute`` and ``traffic``; ``balance``, the distance between weighted traffic and compute.
    model: for the machine's objectives ``network``, the simulated machine, ``analytical``, Timeloop's accounting, or
        ``published-machine``, the published simulator's machine (None: network where the architecture has a mesh).
    constants: weights of the model's prediction, or the path of a file of them (None: the defaults).
    physical_only: published-machine: without schedules that gain from what its generator leaves out.
    pad_percent: by how much a dimension may be padded where that pays (machine's objectives).
    bypass: ``fixed``: levels keep what the architecture says; ``chosen``: which of the tensors of its `keeps` and
        `may_keep` a level keeps, and which pass it by, is chosen as well (machine's objectives).
    remainders: the last tile of a dimension may be smaller; counted by the convention ``exact``, which alone evaluates
        such schedules (machine's objectives, analytical).
    settle_ties: latency: of the fastest schedules look for the one with the least energy; without, any of them, which
        for the analytical model takes milliseconds where it can be proven without a program.
    constraints: what the schedule must keep to, a packaged name (``weight_stationary``), or the path of a constraints
        file (machine's objectives).
    formulation: ``aggregated``, or ``paper`` for a binary a prime factor; the same optimum in far more time.
    as_published: charge halo and stride as the published code does.
    precision: count capacities and traffic in bytes instead of entries, as the paper does.
    weights: of the terms of the objective, or the path of a weights file (default: as published).
    order_level: name of the level whose loop order is part of the program (default: the one with the mesh, without a
        mesh the one under the outermost).
    pad_primes_above: pad bounds with a larger prime factor to the next bound without one.
    time_limit_seconds: for all solves together; a schedule found by then is taken, with its gap.
    seed, threads: of the solver.
    gap: relative gap at which a solution counts as optimal (None: 0.01 for the machine's objectives, in linear units,
        and 0.0001 for the published one, whose units are logarithms).

    From `formulation` to `pad_primes_above`: of the published program only.

    Returns
    -------
    A schedule that fits the architecture.

    Raises
    ------
    InputError: a name, file, field or option is wrong.
    InfeasibleError: the layer fits nowhere; the message names what binds, and the smallest change that would help.
    SolverError: no schedule was found within the time limit.

    Examples
    --------
    >>> import cosa
    >>> cosa.schedule("resnet50:input.8").layer.macs  # doctest: +SKIP
    115605504
    """
    found_layer, found_architecture = find_layer(layer), find_architecture(architecture)
    options = program_options(
        found_architecture,
        objective=objective,
        model=model,
        constants=constants,
        physical_only=physical_only,
        pad_percent=pad_percent,
        bypass=bypass,
        remainders=remainders,
        settle_ties=settle_ties,
        constraints=constraints,
        formulation=formulation,
        as_published=as_published,
        precision=precision,
        weights=weights,
        order_level=order_level,
        pad_primes_above=pad_primes_above,
        gap=gap,
    )
    if objective == PARETO:
        allowed = "cosa.schedule_front, which returns several schedules"
        raise InputError("has no one schedule", source="objective", value=objective, allowed=allowed)
    from cosa.mappers.registry import map_layer

    result = map_layer(
        "cosa",
        found_layer,
        found_architecture,
        seed=seed,
        workers=threads,
        time_limit_seconds=time_limit_seconds,
        **options,
    )
    require_valid(result, "the schedule found")
    return result


def program_options(
    architecture: Architecture,
    *,
    objective: str | None,
    model: str | None = None,
    constants: Constants | PublishedConstants | str | Path | None = None,
    physical_only: bool = True,
    pad_percent: float = 0.0,
    bypass: str = "fixed",
    remainders: bool = False,
    settle_ties: bool = True,
    constraints: Constraints | str | Path | None = None,
    formulation: str = "aggregated",
    as_published: bool = False,
    precision: bool = False,
    weights: Weights | str | Path | None = None,
    order_level: str | None = None,
    pad_primes_above: int | None = None,
    gap: float | None = None,
    **others: Any,
) -> dict[str, Any]:
    """Options of the program that an objective belongs to, files read; see `schedule`. `others` pass through.

    Raises
    ------
    InputError: there is no such objective, a file is wrong, or an option is of the other program.
    """
    machine = {
        "model": model,
        "constants": find_constants(constants, model),
        "pad_percent": pad_percent,
        "bypass": bypass,
        "remainders": remainders,
        "constraints": find_constraints(constraints),
    }
    published = {
        "formulation": formulation,
        "as_published": as_published,
        "precision": precision,
        "weights": find_weights(weights, architecture),
        "order_level": order_level,
        "pad_primes_above": pad_primes_above,
    }
    if not physical_only and model != "published-machine":
        message, allowed = "is a switch of the published simulator's machine", "--model published-machine"
        raise InputError(message, source="--any-loops", allowed=allowed)
    if objective is None:
        objective = "cosa" if any(map(_given, published.values())) else "latency"
    _check_objective(objective)
    if not settle_ties and objective != "latency":
        raise InputError(f"means nothing to {objective}", source="--any-fastest", allowed="--objective latency")
    if objective in (*MACHINE_OBJECTIVES, PARETO):
        _refuse(published, objective, "an objective of the published program, such as cosa")
        return {
            "objective": objective,
            **machine,
            "physical_only": physical_only,
            "settle_ties": settle_ties,
            "gap": 0.01 if gap is None else gap,
            **others,
        }
    _refuse(machine, objective, "an objective of the machine: " + ", ".join(MACHINE_OBJECTIVES))
    return {"objective": objective, **published, "gap": 1e-4 if gap is None else gap, **others}


def _check_objective(name: str) -> None:
    if name in (*MACHINE_OBJECTIVES, PARETO):
        return
    from cosa.mip.objective import OBJECTIVES

    known = (*MACHINE_OBJECTIVES, PARETO, *OBJECTIVES)
    if name not in known:
        allowed, nearest = ", ".join(known), nearest_of(name, known)
        raise InputError("no such objective", source="--objective", value=name, allowed=allowed, nearest=nearest)


def _given(value: object) -> bool:
    """Whether an option of a program differs from what it is if nobody names it."""
    return value not in (None, False, 0, "aggregated", "fixed")


def _refuse(options: Mapping[str, object], objective: str, needs: str) -> None:
    """Options that the program of an objective does not have must not be given."""
    for name, value in options.items():
        if _given(value):
            option = "--constrain" if name == "constraints" else "--" + name.replace("_", "-")
            raise InputError(f"does not go with the objective {objective}", source=option, value=value, allowed=needs)


def schedule_pool(
    layer: Layer | str | Path,
    architecture: Architecture | str | Path = "simba_4x4",
    *,
    count: int,
    objective: str = "latency",
    **options: Any,
) -> list[Schedule]:
    """The best schedules of a layer for an objective of the machine, each with other factors; the best first.

    Parameters
    ----------
    layer, architecture: as `schedule` takes them.
    count: how many; fewer come back where there are no more.
    objective: ``latency``, ``energy`` or ``edp``.
    options: `model`, `constants`, `physical_only`, `constraints`, `pad_percent`, `bypass`, `gap`,
        `time_limit_seconds`, `seed` and `threads` of `schedule`.

    Returns
    -------
    Schedules; `provenance.bound` of each is below every schedule that is not among them.

    Raises
    ------
    As `schedule`.
    """
    from cosa.mappers.machine import map_pool

    found = find_layer(layer), find_architecture(architecture)
    return _checked(map_pool(*found, count, objective=objective, **_found_files(options)))


def schedule_front(
    layer: Layer | str | Path,
    architecture: Architecture | str | Path = "simba_4x4",
    *,
    points: int = FRONT_POINTS,
    **options: Any,
) -> list[Schedule]:
    """Schedules of a layer from the least cycles to the least energy: the least energy within ever more cycles.

    Parameters
    ----------
    layer, architecture: as `schedule` takes them.
    points: how many; fewer come back where several caps on cycles have one schedule.
    options: as for `schedule_pool`.

    Returns
    -------
    Schedules; objective value and bound of each are energies (pJ) within its cycles.

    Raises
    ------
    As `schedule`.
    """
    from cosa.mappers.machine import map_front

    return _checked(map_front(find_layer(layer), find_architecture(architecture), points, **_found_files(options)))


def _found_files(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options with their files read; those that are None are left out, for None asks for the default."""
    given = {name: value for name, value in options.items() if value is not None}
    if "constants" in given:
        given["constants"] = find_constants(given["constants"], given.get("model"))
    if "constraints" in given:
        given["constraints"] = find_constraints(given["constraints"])
    return given


def _checked(schedules: list[Schedule]) -> list[Schedule]:
    for number, found in enumerate(schedules, start=1):
        require_valid(found, f"schedule {number}")
    return schedules


def find_constraints(constraints: Constraints | str | Path | None) -> Constraints | None:
    """Constraints as given, or read from a packaged or other file."""
    if constraints is None or not isinstance(constraints, str | Path):
        return constraints
    from cosa.model.constraints import load_constraints

    return load_constraints(constraints)


def find_constants(
    constants: Constants | PublishedConstants | str | Path | None, model: str | None = None
) -> Constants | PublishedConstants | None:
    """Constants as given, or read from a file: of the network model, or of the published machine."""
    if constants is None or not isinstance(constants, str | Path):
        return constants
    from cosa.analytical.constants import Constants, PublishedConstants

    return (PublishedConstants if model == "published-machine" else Constants).from_file(constants)


def evaluate(schedule: Schedule | str | Path, convention: Convention = "timeloop") -> Evaluation:
    """Access counts, energy and cycles of a schedule, analytically.

    Parameters
    ----------
    schedule: a schedule, or the path of a schedule file.
    convention: `timeloop` counts as Timeloop does (`cosa.analytical.timeloop` has the rules); `exact` counts the words
        that a machine moves (`cosa.analytical.exact`).

    Returns
    -------
    Cycles, energies (pJ), and accesses (words) by level and tensor.

    Raises
    ------
    InputError: the file is wrong, or there is no such convention.
    InfeasibleError: the schedule does not fit its architecture.

    Examples
    --------
    >>> import cosa
    >>> schedule = cosa.schedule("resnet50:input.8")  # doctest: +SKIP
    >>> cosa.evaluate(schedule).cycles  # doctest: +SKIP
    112896
    """
    from cosa.analytical.evaluation import evaluate as evaluated

    found = schedule if isinstance(schedule, Schedule) else Schedule.from_file(schedule)
    require_valid(found, "evaluation")
    if found.remainders and convention == "exact":
        from cosa.analytical.cut_evaluation import evaluate_cut

        return evaluate_cut(found.layer, found.architecture, found.nest)
    return evaluated(found.padded_layer, found.architecture, found.nest, convention, padding_macs=found.padding_macs)


def breakdown(
    schedule: Schedule | str | Path,
    objective: str = "cosa",
    *,
    as_published: bool = False,
    precision: bool = False,
    weights: Weights | str | Path | None = None,
    order_level: str | None = None,
) -> dict[str, float]:
    """What each term of an objective of the program says of a schedule, wherever that comes from.

    Parameters
    ----------
    schedule: a schedule, or the path of a schedule file (also one converted from another tool).
    objective, as_published, precision, weights, order_level: as `schedule` takes them.

    Returns
    -------
    Weighted terms by name, and the objective as ``total``; sums of logarithms to the base 2, without a unit.

    Raises
    ------
    InputError: a file, name or option is wrong.
    InfeasibleError: the schedule does not fit its architecture.
    """
    from cosa.mip.nest import breakdown as terms
    from cosa.mip.objective import find_objective
    from cosa.mip.quantities import Rules

    found = schedule if isinstance(schedule, Schedule) else Schedule.from_file(schedule)
    require_valid(found, "breakdown")
    find_objective(objective)
    rules = Rules(as_published=as_published, precision=precision, ordered_level=order_level)
    return terms(
        found.padded_layer,
        found.architecture,
        found.nest,
        objective=objective,
        rules=rules,
        weights=find_weights(weights, found.architecture),
    )


def find_weights(weights: Weights | str | Path | None, architecture: Architecture) -> Weights | None:
    """Weights of an objective from a model or a file; None where none are given.

    Raises
    ------
    InputError: the file is wrong, or names a level that the architecture does not have.
    """
    if weights is None:
        return None
    from cosa.mip.objective import Weights

    found = weights if isinstance(weights, Weights) else Weights.from_file(weights)
    found.require_levels(architecture, "weights" if isinstance(weights, Weights) else str(weights))
    return found


def find_layer(layer: Layer | str | Path) -> Layer:
    """A layer from a model, a file, or ``"network:layer"``.

    Raises
    ------
    InputError: no such network, layer or file, or the file is wrong.
    """
    if isinstance(layer, Layer):
        return layer
    network, colon, name = str(layer).partition(":")
    if isinstance(layer, str) and network in network_names() and (colon or not Path(layer).exists()):
        return load_network(network).find(name).layer
    return Layer.from_file(layer)


def find_architecture(architecture: Architecture | str | Path) -> Architecture:
    """An architecture from a model, a packaged name, or a file.

    Raises
    ------
    InputError: no such name or file, or the file is wrong.
    """
    return architecture if isinstance(architecture, Architecture) else load_architecture(architecture)
