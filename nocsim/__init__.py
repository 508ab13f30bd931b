"""Cycle-exact simulation of a schedule on a mesh of PEs. Imports the nouns of cosa, and dram.

The public API; each name is loaded when it is first used, so that ``import nocsim`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nocsim.api import simulate
    from nocsim.errors import SimulationError
    from nocsim.experiments.portfolio_run import portfolio
    from nocsim.experiments.sweep.result import read_results
    from nocsim.experiments.sweep.spec import Sweep
    from nocsim.machine.accelerator import Accelerator, Parts
    from nocsim.mesh.mesh import Mesh
    from nocsim.mesh.topology import Topology
    from nocsim.result.result import Result
    from nocsim.traffic.packets import Packet
    from nocsim.traffic.replay import replay_packets

__all__ = [
    "Accelerator",
    "Mesh",
    "Packet",
    "Parts",
    "Result",
    "SimulationError",
    "Sweep",
    "Topology",
    "portfolio",
    "read_results",
    "replay_packets",
    "simulate",
]

_HOME = {
    "Accelerator": "nocsim.machine.accelerator",
    "Mesh": "nocsim.mesh.mesh",
    "Packet": "nocsim.traffic.packets",
    "Parts": "nocsim.machine.accelerator",
    "Result": "nocsim.result.result",
    "SimulationError": "nocsim.errors",
    "Sweep": "nocsim.experiments.sweep.spec",
    "Topology": "nocsim.mesh.topology",
    "portfolio": "nocsim.experiments.portfolio_run",
    "read_results": "nocsim.experiments.sweep.result",
    "replay_packets": "nocsim.traffic.replay",
    "simulate": "nocsim.api",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'nocsim' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
