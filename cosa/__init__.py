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
    from cosa.common.errors import CosaError, InfeasibleError, InputError
    from cosa.model.arch import Architecture, load_architecture
    from cosa.model.constraints import Constraints
    from cosa.model.layer import Layer
    from cosa.model.networks import load_network
    from cosa.model.schedule import Schedule

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
    "Architecture": "cosa.model.arch",
    "Constraints": "cosa.model.constraints",
    "CosaError": "cosa.common.errors",
    "InfeasibleError": "cosa.common.errors",
    "InputError": "cosa.common.errors",
    "Layer": "cosa.model.layer",
    "Schedule": "cosa.model.schedule",
    "breakdown": "cosa.api",
    "evaluate": "cosa.api",
    "load_architecture": "cosa.model.arch",
    "load_network": "cosa.model.networks",
    "schedule": "cosa.api",
    "schedule_front": "cosa.api",
    "schedule_pool": "cosa.api",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from cosa.common.version import version

        return version()
    if name not in _HOME:
        raise AttributeError(f"module 'cosa' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
