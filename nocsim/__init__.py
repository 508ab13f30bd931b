"""Cycle-exact simulation of a schedule on a mesh of PEs. Imports the nouns of cosa, and dram.

The public API; each name is loaded when it is first used, so that ``import nocsim`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nocsim.accelerator import Accelerator, Parts
    from nocsim.api import simulate
    from nocsim.errors import SimulationError
    from nocsim.mesh import Mesh
    from nocsim.packets import Packet
    from nocsim.portfolio_run import portfolio
    from nocsim.replay import replay_packets
    from nocsim.result import Result
    from nocsim.sweep.result import read_results
    from nocsim.sweep.spec import Sweep
    from nocsim.topology import Topology

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
    "Accelerator": "nocsim.accelerator",
    "Mesh": "nocsim.mesh",
    "Packet": "nocsim.packets",
    "Parts": "nocsim.accelerator",
    "Result": "nocsim.result",
    "SimulationError": "nocsim.errors",
    "Sweep": "nocsim.sweep.spec",
    "Topology": "nocsim.topology",
    "portfolio": "nocsim.portfolio_run",
    "read_results": "nocsim.sweep.result",
    "replay_packets": "nocsim.replay",
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
