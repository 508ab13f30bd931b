"""The Python API: one call from a layer and an architecture to a schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cosa.arch import Architecture, load_architecture
from cosa.networks import load_network, network_names
from cosa.schedule import Schedule
from cosa.validity import require_valid
from cosa.workload import Layer


def schedule(
    layer: Layer | str | Path, architecture: Architecture | str | Path = "simba_4x4", **options: Any
) -> Schedule:
    """A schedule of a layer on an architecture, made by the CoSA mixed-integer program.

    Parameters
    ----------
    layer: a layer, the path of a layer file, or ``"network:layer"`` (``"resnet50:input.8"``).
    architecture: an architecture, the name of a packaged one, or the path of an architecture file.
    options: of the mapper: `objective`, `as_published`, `time_limit_seconds`, `seed`, `threads`, `gap`.

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

    result: Schedule = map_layer(found_layer, found_architecture, **options)
    require_valid(result, "the schedule found")
    return result


def find_layer(layer: Layer | str | Path) -> Layer:
    """A layer from a model, a file, or ``"network:layer"``.

    Raises
    ------
    InputError: no such network, layer or file, or the file is wrong.
    """
    if isinstance(layer, Layer):
        return layer
    network, colon, name = str(layer).partition(":")
    if isinstance(layer, str) and colon and network in network_names():
        return load_network(network).find(name).layer
    return Layer.from_file(layer)


def find_architecture(architecture: Architecture | str | Path) -> Architecture:
    """An architecture from a model, a packaged name, or a file.

    Raises
    ------
    InputError: no such name or file, or the file is wrong.
    """
    return architecture if isinstance(architecture, Architecture) else load_architecture(architecture)
