"""Ground floor: DRAM devices, address mapping and controllers. Imports nothing of the other packages."""

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
