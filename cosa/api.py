"""The Python API: one call from a layer and an architecture to a schedule."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cosa.arch import Architecture, load_architecture
from cosa.networks import load_network, network_names
from cosa.schedule import Schedule
from cosa.validity import require_valid
from cosa.workload import Layer

if TYPE_CHECKING:
    from cosa.analytical.evaluation import Convention, Evaluation


def schedule(
    layer: Layer | str | Path,
    architecture: Architecture | str | Path = "simba_4x4",
    *,
    objective: str = "cosa",
    as_published: bool = False,
    time_limit_seconds: float = 60.0,
    seed: int = 0,
    threads: int = 1,
    gap: float = 1e-4,
) -> Schedule:
    """A schedule of a layer on an architecture, made by the CoSA mixed-integer program.

    Parameters
    ----------
    layer: a layer, the path of a layer file, or ``"network:layer"`` (``"resnet50:input.8"``).
    architecture: an architecture, the name of a packaged one, or the path of an architecture file.
    objective: what the program minimises; so far ``cosa``, the published one.
    as_published: charge halo and stride as the published code does.
    time_limit_seconds: for all solves together; a schedule found by then is taken, with its gap.
    seed, threads: of the solver.
    gap: relative gap at which a solution counts as optimal.

    Returns
    -------
    A schedule that fits the architecture.

    Raises
    ------
    InputError: a name, file, field or option is wrong.
    InfeasibleError: the layer fits nowhere; the message names the binding constraint.
    SolverError: no schedule was found within the time limit.

    Examples
    --------
    >>> import cosa
    >>> cosa.schedule("resnet50:input.8").layer.macs  # doctest: +SKIP
    115605504
    """
    found_layer, found_architecture = find_layer(layer), find_architecture(architecture)
    # Pyomo and HiGHS load here: nothing else of the package needs them.
    from cosa.mappers.cosa_mip import map_layer

    result: Schedule = map_layer(
        found_layer,
        found_architecture,
        objective=objective,
        as_published=as_published,
        time_limit_seconds=time_limit_seconds,
        seed=seed,
        threads=threads,
        gap=gap,
    )
    require_valid(result, "the schedule found")
    return result


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
    return evaluated(found.padded_layer, found.architecture, found.nest, convention, padding_macs=found.padding_macs)


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
