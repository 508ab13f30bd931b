"""Ground floor: DRAM devices, address mapping and controllers. Imports nothing of the other packages.

The public API; each name is loaded when it is first used, so that reading a device loads no compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dram.config import DramConfig
    from dram.devices import device_names, load_device, parse_device
    from dram.errors import DramConfigError, DramOrderError
    from dram.stats import DramStats
    from dram.system import READ, WRITE, DramSystem

__all__ = [
    "READ",
    "WRITE",
    "DramConfig",
    "DramConfigError",
    "DramOrderError",
    "DramStats",
    "DramSystem",
    "device_names",
    "load_device",
    "parse_device",
]

_HOME = {
    "READ": "dram.system",
    "WRITE": "dram.system",
    "DramConfig": "dram.config",
    "DramConfigError": "dram.errors",
    "DramOrderError": "dram.errors",
    "DramStats": "dram.stats",
    "DramSystem": "dram.system",
    "device_names": "dram.devices",
    "load_device": "dram.devices",
    "parse_device": "dram.devices",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dram' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
