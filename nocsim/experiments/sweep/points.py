"""From a sweep to its points: every combination of its axes as a layer, an architecture and a mapper."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from cosa.api import find_layer
from cosa.common.errors import InputError, nearest_of
from cosa.mappers.registry import MapperOptions
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from cosa.model.networks import load_network, network_names
from nocsim.experiments.network_run import inputs_hash
from nocsim.experiments.sweep.fields import value_at
from nocsim.experiments.sweep.filters import Condition
from nocsim.experiments.sweep.labels import architecture_labels, layer_labels
from nocsim.experiments.sweep.machines import OPTION, Device, Machine, Machines
from nocsim.experiments.sweep.options import checked_options, of_axis
from nocsim.experiments.sweep.size import on_chip_buffer_bytes
from nocsim.experiments.sweep.spec import Sweep
from nocsim.experiments.sweep.values import axis_error, located, naming
from nocsim.experiments.sweep.versions import versions

MOST_POINTS = 1_000_000
DERIVED = ("pes", "mac_units", "buffer_bytes")
"""Names that conditions may use besides axes, fields of the architecture and ``layer.FIELD``."""


@dataclass(frozen=True)
class Point:
    """One point: what is run, and where it stands on the axes.

    Attributes
    ----------
    number: its place in the sweep, from 0
    axes: the value on every axis; for multipliers what came of them
    positions: the place of that value on the axis, from 0
    count: how often the layer occurs in its network (1 without a network)
    architecture: None if the axes do not make a valid one; `error` then says why
    device: its DRAM device, where that is a file
    options: of the mapper
    inputs_hash: of all that can change its figures, sources and versions included
    """

    number: int
    axes: dict[str, Any]
    positions: dict[str, int]
    layer: Layer
    count: int
    architecture: Architecture | None
    device: Device | None
    options: MapperOptions
    simulate: bool
    inputs_hash: str
    error: str | None = None

    def task(self) -> str:
        """What a worker needs to run it, as JSON."""
        assert self.architecture is not None
        data = {
            "layer": self.layer.model_dump(mode="json"),
            "architecture": self.architecture.model_dump(mode="json"),
            "device": self.device,
            "mapper": self.options.mapper,
            "options": self.options.given(),
            "simulate": self.simulate,
        }
        return json.dumps(data)


def expand(sweep: Sweep) -> list[Point]:
    """All points of a sweep.

    Raises
    ------
    InputError: an axis, a value or a condition is wrong, no point is left, or there are more than `MOST_POINTS`. A
        value of a field is wrong if no point with it has a valid architecture.
    """
    return _Expansion(sweep).points()


class _Expansion:
    """What the points of one sweep share."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self._machines = Machines(sweep)
        self._option_axes = [name for name in sweep.axes if name.startswith(OPTION)]
        self._layers = self._all_layers()
        self._labels = {}
        if "architecture" in sweep.axes:
            self._labels["architecture"] = architecture_labels(sweep.values("architecture"))
        if "layer" in sweep.axes:
            names = [layers[0][0].name for layers in self._layers]
            self._labels["layer"] = layer_labels(sweep.values("layer"), names)
        self._conditions = [Condition(text, sweep.source, f"where[{n}]") for n, text in enumerate(sweep.where)]
        self._options: dict[tuple[Any, ...], MapperOptions] = {}

    def _at(self, positions: Mapping[str, int], axis: str) -> Any:
        """The value on an axis; None if there is no such axis."""
        return self._sweep.values(axis)[positions[axis]] if axis in self._sweep.axes else None

    def _all_layers(self) -> list[list[tuple[Layer, int]]]:
        """The layers of each value of the axis, with how often each occurs."""
        if "network" in self._sweep.axes:
            return [self._network(value) for value in self._sweep.values("network")]
        return [[(self._layer(value), 1)] for value in self._sweep.values("layer")]

    def _network(self, value: Any) -> list[tuple[Layer, int]]:
        with naming(self._sweep, "network", value):
            return [(entry.layer, entry.count) for entry in load_network(str(value)).layers]

    def _layer(self, value: Any) -> Layer:
        if isinstance(value, dict):
            return Layer.from_data(value, source=f"{self._sweep.source}: axes.layer")
        if not isinstance(value, str):
            allowed = "network:layer, a file, or a layer"
            raise axis_error(self._sweep, "layer", "not a layer", value=value, allowed=allowed)
        network, colon, _ = value.partition(":")
        if colon and network not in network_names() and not Path(value).exists():
            more = {"allowed": ", ".join(network_names()), "nearest": nearest_of(network, network_names())}
            raise axis_error(self._sweep, "layer", "no such network", value=value, **more)
        with naming(self._sweep, "layer", value):
            return find_layer(located(self._sweep, value))

    def _combinations(self) -> Iterator[dict[str, int]]:
        """Positions on all axes; zipped ones step together, the last axis fastest."""
        groups: list[tuple[str, ...]] = []
        for name in self._sweep.axes:
            group = next((group for group in self._sweep.zip if name in group), (name,))
            if group not in groups:
                groups.append(group)
        lengths = [len(self._sweep.values(group[0])) for group in groups]
        most = prod(lengths) * max(len(layers) for layers in self._layers)
        if most > MOST_POINTS:
            allowed = f"at most {MOST_POINTS:,} points"
            raise InputError(f"up to {most:,} points", source=self._sweep.source, path="axes", allowed=allowed)
        for steps in itertools.product(*map(range, lengths)):
            yield {name: step for group, step in zip(groups, steps, strict=True) for name in group}

    def points(self) -> list[Point]:
        """See `expand`."""
        found: list[Point] = []
        machines: list[Machine] = []
        for positions in self._combinations():
            machine = self._machines.at(positions)
            entries = self._layers[positions.get("network", positions.get("layer", 0))]
            for layer, count in entries:
                axes = {name: self._label(name, positions, machine) for name in self._sweep.axes}
                axes.setdefault("layer", layer.name)
                if self._wanted(axes, layer, machine):
                    found.append(self._point(len(found), axes, positions, machine, layer, count))
                    machines.append(machine)
        if not found:
            raise InputError("no point meets all conditions", source=self._sweep.source, path="where")
        self._require_useful_values(found, machines)
        return found

    def _point(
        self, number: int, axes: dict[str, Any], positions: dict[str, int], machine: Machine, layer: Layer, count: int
    ) -> Point:
        options = self._mapper(positions)
        if machine.architecture is not None:
            try:
                options.require_levels(machine.architecture)
            except InputError as error:
                raise of_axis(self._sweep, error) from None
        inputs = {"simulate": self._sweep.simulate, "device": machine.device, "versions": versions()}
        return Point(
            number=number,
            axes=axes,
            positions=positions,
            layer=layer,
            count=count,
            architecture=machine.architecture,
            device=machine.device,
            options=options,
            simulate=self._sweep.simulate,
            inputs_hash=inputs_hash(layer, machine.content, options, inputs),
            error=str(machine.error) if machine.error else None,
        )

    def _mapper(self, positions: dict[str, int]) -> MapperOptions:
        """The mapper at a place on the axes, as its options."""
        mapper, objective = self._at(positions, "mapper"), self._at(positions, "objective")
        key = tuple(positions.get(name) for name in ("mapper", "objective", *self._option_axes))
        if key not in self._options:
            given = {name.removeprefix(OPTION): self._at(positions, name) for name in self._option_axes}
            self._options[key] = checked_options(self._sweep, mapper, objective, given)
        return self._options[key]

    def _label(self, axis: str, positions: dict[str, int], machine: Machine) -> Any:
        value = self._at(positions, axis)
        if axis in self._machines.fields:
            return machine.fields.get(axis, value)
        return self._labels[axis][positions[axis]] if axis in self._labels else value

    def _wanted(self, axes: dict[str, Any], layer: Layer, machine: Machine) -> bool:
        def lookup(name: str) -> Any:
            head, _, rest = name.partition(".")
            if name in axes and name not in self._machines.fields:
                return axes[name]
            if head == "layer" and rest:
                return value_at(layer.model_dump(mode="json"), rest)
            if name in DERIVED:
                return derived(name, machine.architecture)
            if rest and machine.data.get(head, ...) is None:
                return None  # a block that this architecture does not have, such as noc
            return value_at(machine.data, name, (*axes, *DERIVED, "layer.K"))

        try:
            return all(condition.holds(lookup) for condition in self._conditions)
        except _NoArchitectureError:
            return True  # it becomes a failed point, which says what is wrong

    def _require_useful_values(self, points: list[Point], machines: list[Machine]) -> None:
        """A value that makes no valid architecture anywhere is a mistake in the file."""
        fields = self._machines.fields
        good = {(name, point.positions[name]) for point in points for name in fields if point.architecture is not None}
        for point, machine in zip(points, machines, strict=True):
            for name in fields:
                if machine.error is not None and (name, point.positions[name]) not in good:
                    error, value = machine.error, self._at(point.positions, name)
                    message = error.message if error.path == name else f"{error.path}: {error.message}"
                    more = {"value": value, "allowed": error.allowed, "nearest": error.nearest}
                    raise axis_error(self._sweep, name, message, **more) from None


class _NoArchitectureError(Exception):
    """The axes make no valid architecture, so nothing can be derived from it."""


def derived(name: str, architecture: Architecture | None) -> int | None:
    """One of `DERIVED` of an architecture; None for the PEs of one that has no mesh."""
    if architecture is None:
        raise _NoArchitectureError
    if name == "pes":
        return architecture.noc.pes if architecture.noc is not None else None
    return architecture.macs if name == "mac_units" else on_chip_buffer_bytes(architecture)
