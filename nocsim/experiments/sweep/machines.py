"""The architectures of a sweep: what its axes make of its base architectures, with the DRAM device of each."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from cosa.common.errors import InputError
from cosa.common.files import dump_yaml
from cosa.model.arch import Architecture, load_architecture
from nocsim.experiments.sweep.fields import Data, is_bytes, scaled, set_value, value_at
from nocsim.experiments.sweep.spec import SPECIAL_AXES, Sweep
from nocsim.experiments.sweep.values import axis_error, located, naming

if TYPE_CHECKING:
    from cosa.model.schedule import Schedule
    from nocsim.result.result import Result

OPTION = "options."
"""What the names of axes begin with that are options of a mapper."""

Device = dict[str, Any]
"""A DRAM device as plain data."""


@dataclass(frozen=True)
class Machine:
    """An architecture that some axes make: as data, checked, and the values that its fields got.

    `device`: its DRAM device, where that is a file and not one of the package. `content`: what tells it from others.
    """

    data: Data
    architecture: Architecture | None
    device: Device | None
    content: str
    fields: dict[str, Any]
    error: InputError | None


class Machines:
    """The machines of a sweep.

    Raises
    ------
    InputError: a base architecture is wrong, or an axis is no field of it.
    """

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self.fields = [name for name in sweep.axes if name not in SPECIAL_AXES and not name.startswith(OPTION)]
        # Bytes last: they become words, whose size another axis may change.
        self._order = sorted(self.fields, key=is_bytes)
        self._machines: dict[tuple[int, ...], Machine] = {}
        self._devices: dict[tuple[Any, ...], Device | InputError | None] = {}
        values = sweep.values("architecture") if "architecture" in sweep.axes else ["simba_4x4"]
        bases = [self._base(value) for value in values]
        self._bases = [base.model_dump(mode="json") for base in bases]
        self._check_names()
        if not any(name.partition(".")[0] == "dram" for name in self.fields):
            for base, value in zip(bases, values, strict=True):
                with naming(sweep, "architecture", value):
                    self._device(base)

    def at(self, positions: Mapping[str, int]) -> Machine:
        """The machine at a place on the axes."""
        key = (positions.get("architecture", 0), *(positions[name] for name in self._order))
        if key not in self._machines:
            self._machines[key] = self._build(key)
        return self._machines[key]

    def _base(self, value: Any) -> Architecture:
        if isinstance(value, dict):
            return Architecture.from_data(value, source=f"{self._sweep.source}: axes.architecture")
        if not isinstance(value, str):
            allowed = "a packaged name, a file, or an architecture"
            raise axis_error(self._sweep, "architecture", "not an architecture", value=value, allowed=allowed)
        with naming(self._sweep, "architecture", value):
            return load_architecture(located(self._sweep, value))

    def _check_names(self) -> None:
        """Every axis is special or leads to a field of every architecture."""
        others = (*SPECIAL_AXES, f"{OPTION}NAME")
        for name in self.fields:
            for data in self._bases:
                try:
                    value_at(data, name, others)
                except InputError as error:
                    more = {"allowed": error.allowed, "nearest": error.nearest}
                    raise axis_error(self._sweep, name, error.message, **more) from None
            words = name.removesuffix("bytes") + "words"
            if is_bytes(name) and words in self.fields:
                raise axis_error(self._sweep, name, f"says the same as {words}", allowed="one of the two")

    def _build(self, key: tuple[int, ...]) -> Machine:
        base = self._bases[key[0]]
        data = copy.deepcopy(base)
        fields: dict[str, Any] = {}
        found: Architecture | None = None
        device: Device | None = None
        problem: InputError | None = None
        try:
            for name, position in zip(self._order, key[1:], strict=True):
                value = scaled(base, name, copy.deepcopy(self._sweep.values(name)[position]))
                fields[name] = value
                set_value(data, name, value)
            checked = Architecture.from_data(data)
            device = self._device(checked)
            found = checked
        except InputError as error:
            problem = error
        content = found.content_hash if found else json.dumps(data, sort_keys=True)
        return Machine(data, found, device, content, fields, problem)

    def _device(self, architecture: Architecture) -> Device | None:
        """The DRAM device of an architecture if that is a file; either way it is read and checked.

        Raises
        ------
        InputError: there is no such device, it is wrong, or it does not go with the rest of the block.
        """
        block = architecture.dram
        if block is None:
            return None
        key = (block.device, block.policy, block.mapping, block.ranks)
        if key not in self._devices:
            try:
                self._devices[key] = self._read_device(architecture, block.device)
            except InputError as error:
                self._devices[key] = error
        found = self._devices[key]
        if isinstance(found, InputError):
            raise found
        return found

    def _read_device(self, architecture: Architecture, name: str) -> Device | None:
        from dram.devices import device_names, load_device
        from dram.errors import DramConfigError
        from nocsim.machine.dram_setup import dram_config

        packaged = name in device_names()
        place = name if packaged else located(self._sweep, name)
        try:
            device = load_device(place)
        except (DramConfigError, OSError, UnicodeDecodeError) as error:
            raise InputError(str(error).partition("\n")[0], path="dram.device") from None
        dram_config(with_device(architecture, str(place)))
        return None if packaged else device.model_dump(mode="json")


def with_device(architecture: Architecture, device: str) -> Architecture:
    """The architecture with another DRAM device."""
    return architecture.with_(dram={"device": device})


def simulate_with(schedule: Schedule, device: Device | None) -> Result:
    """Simulate a schedule with its architecture's DRAM device, or with one that is given as data.

    So a point runs with the device that its hash covers: its file could change, and another host may not have it.
    """
    from nocsim.api import simulate

    if device is None:
        return simulate(schedule)
    with TemporaryDirectory(prefix="cosa-") as folder:
        file = Path(folder) / "device.yaml"
        file.write_text(dump_yaml(device), encoding="utf-8")
        return simulate(schedule, architecture=with_device(schedule.architecture, str(file)))
