"""Whole networks, scheduled and simulated: `nocsim run --network`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from cosa.experiments.network import NetworkRows, about, layer_rows
from cosa.mappers.registry import MapperOptions
from cosa.model.arch import Architecture
from cosa.model.networks import Network
from nocsim.experiments.pipeline import FIGURES, SimulatedPoint, require_simulated
from nocsim.options import RunOptions


class NetworkResult(NetworkRows):
    """A network with the simulated figures of its layers."""

    kind: Literal["network_result"] = "network_result"


def run_network(
    network: Network,
    architecture: Architecture,
    options: MapperOptions,
    simulation: RunOptions | None = None,
    *,
    workers: int = 1,
    cache: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> NetworkResult:
    """Schedule, evaluate and simulate every unique layer of a network.

    Parameters
    ----------
    options: of a mapper.
    simulation: how schedules are run (None: as by default).
    workers: processes at a time.
    cache: folder of earlier results, or None for none.
    progress: called with (layers done, layers in all).

    Returns
    -------
    All layers; after Ctrl-C those that were done, with `complete` false.

    Raises
    ------
    CosaError: a layer cannot be scheduled or simulated; the layer is named.
    """
    how = simulation or RunOptions()
    require_simulated(architecture, [options])
    points = [
        SimulatedPoint(layer=entry.layer, architecture=architecture, options=options, simulation=how)
        for entry in network.layers
    ]
    rows, complete = layer_rows(network, points, FIGURES, workers=workers, cache=cache, progress=progress)
    return NetworkResult(**about(network, architecture), rows=rows, complete=complete)
