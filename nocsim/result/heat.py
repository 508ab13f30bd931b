"""The link heat of a simulated schedule, from its result."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cosa.common.errors import InputError
from cosa.model.arch import Architecture
from cosa.model.noc import Noc, NodePort
from nocsim.mesh.heat import LinkHeat
from nocsim.mesh.topology import Port, Topology
from nocsim.result.result import Result


def run_heat(result: Result, noc: Noc) -> LinkHeat:
    """Flits of every link over the whole run.

    Parameters
    ----------
    result: of a run with a mesh
    noc: the mesh it ran on

    Raises
    ------
    InputError: the run had an ideal network, so there are no links.
    """
    if result.ideal_network:
        raise InputError("an ideal network has no links", source="--heat", allowed="a run without --ideal-network")
    topology = Topology(noc.router_columns, noc.router_rows)
    number = {name: place for place, name in enumerate(topology.link_names())}
    flits = np.zeros(topology.n_links, dtype=np.int64)
    for link in result.links:
        flits[number[link.link]] = link.flits
    return LinkHeat(topology, flits, result.cycles.total)


def save_run_heat(result: Result, architecture: Architecture, path: str | Path) -> None:
    """Write it as a picture or table (see `LinkHeat.save`), with the names of the global buffer and the DRAM ports."""
    noc = architecture.noc
    assert noc is not None  # it has run
    heat = run_heat(result, noc)
    buffered = architecture.mesh_level < len(architecture.levels) - 1
    names = {_endpoint(heat.topology, port): "GB" for port in noc.global_buffer_ports if buffered}
    names |= {_endpoint(heat.topology, port): "DRAM" for port in noc.dram_ports}
    title = f"{result.layer} on {result.architecture}, {result.cycles.total:,} cycles\nschedule by {result.made.text}"
    heat.save(path, title=title, names=names)


def _endpoint(topology: Topology, port: NodePort) -> int:
    column, row = port.router[0] % topology.columns, port.router[1] % topology.rows
    return topology.endpoint_at(topology.router_at(column, row), Port[port.side.upper()])
