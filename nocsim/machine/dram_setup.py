"""Turns the DRAM block of an architecture into DRAM channels."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from cosa.common.errors import InputError
from cosa.model.arch import Architecture
from dram.config import DramConfig
from dram.devices import load_device, parse_device
from dram.errors import DramConfigError

if TYPE_CHECKING:
    from cosa.analytical.loads import DramData


def dram_config(architecture: Architecture) -> DramConfig:
    """The DRAM of one channel: the device file, with ranks, mapping and policy of the architecture.

    Raises
    ------
    InputError: the device is unknown, or does not go with what the block says.
    """
    block = architecture.require_dram()
    try:
        device = load_device(block.device)
        data = device.model_dump(mode="json")
        data["organization"] |= {"channels": 1, "ranks": block.ranks}
        data["address_mapping"] = block.mapping
        if data["controller"]["policy"] != block.policy:
            data["controller"] = {"policy": block.policy}
        return parse_device(data, f"{architecture.name}: dram")
    except DramConfigError as error:
        raise InputError(str(error).splitlines()[0], source=architecture.name, path="dram") from None


def clocks_per_core_cycle(architecture: Architecture, config: DramConfig) -> Fraction:
    """DRAM clocks in a core cycle; ``real`` is the core's cycle time over the device's clock period."""
    text = architecture.require_dram().clocks_per_core_cycle
    if text != "real":
        return Fraction(text)
    clock_ratio = Fraction(1000) / Fraction(str(config.timing.tCK_ps))
    return clock_ratio / Fraction(str(architecture.clock_ghz))


def dram_data(architecture: Architecture, config: DramConfig) -> DramData:
    """What the data buses of the channels need for an access."""
    from cosa.analytical.loads import DramData

    cycles = config.timing.burst_clocks / clocks_per_core_cycle(architecture, config)
    return DramData(config.request_bytes, cycles, architecture.require_dram().channels)
