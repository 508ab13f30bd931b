"""Schedules for spatial DNN accelerators. Imports neither nocsim nor dram.

The small public API; each name is loaded when it is first used, so that ``import cosa`` costs nothing.

>>> from cosa import Layer
>>> Layer(R=3, S=3, P=56, Q=56, C=64, K=64, N=1).macs
115605504
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cosa.api import breakdown, evaluate, schedule, schedule_front, schedule_pool
    from cosa.arch import Architecture, load_architecture
    from cosa.constraints import Constraints
    from cosa.errors import CosaError, InfeasibleError, InputError
    from cosa.networks import load_network
    from cosa.schedule import Schedule
    from cosa.workload import Layer

__all__ = [
    "Architecture",
    "Constraints",
    "CosaError",
    "InfeasibleError",
    "InputError",
    "Layer",
    "Schedule",
    "breakdown",
    "evaluate",
    "load_architecture",
    "load_network",
    "schedule",
    "schedule_front",
    "schedule_pool",
]

_HOME = {
    "Architecture": "cosa.arch",
    "Constraints": "cosa.constraints",
    "CosaError": "cosa.errors",
    "InfeasibleError": "cosa.errors",
    "InputError": "cosa.errors",
    "Layer": "cosa.workload",
    "Schedule": "cosa.schedule",
    "breakdown": "cosa.api",
    "evaluate": "cosa.api",
    "load_architecture": "cosa.arch",
    "load_network": "cosa.networks",
    "schedule_front": "cosa.api",
    "schedule_pool": "cosa.api",
}


def __getattr__(name: str) -> Any:
    if name == "schedule":
        # Importing the module `cosa.schedule` puts it under this name whatever stands here; it is callable (see there).
        return import_module("cosa.schedule")
    if name == "__version__":
        from cosa.version import version

        return version()
    if name not in _HOME:
        raise AttributeError(f"module 'cosa' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
