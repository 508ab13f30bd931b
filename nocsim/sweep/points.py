"""From a sweep to its points: every combination of its axes as a layer, an architecture and a mapper."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from cosa.api import find_layer
from cosa.arch import Architecture, load_architecture
from cosa.errors import InputError, nearest_of
from cosa.mappers.registry import MAPPERS
from cosa.networks import load_network
from cosa.workload import Layer
from nocsim.network_run import inputs_hash
from nocsim.sweep.fields import Data, set_value, value_at
from nocsim.sweep.filters import Condition
from nocsim.sweep.labels import architecture_labels, layer_labels
from nocsim.sweep.size import on_chip_buffer_bytes
from nocsim.sweep.spec import SPECIAL_AXES, Sweep

MOST_POINTS = 1_000_000
DERIVED = ("pes", "mac_units", "buffer_bytes")
"""Names that conditions may use besides axes, fields of the architecture and ``layer.FIELD``."""

_OPTION = "options."


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
    inputs_hash: of all that can change its figures, sources of the package included
    """

    number: int
    axes: dict[str, Any]
    positions: dict[str, int]
    layer: Layer
    count: int
    architecture: Architecture | None
    mapper: str
    options: dict[str, Any]
    simulate: bool
    inputs_hash: str
    error: str | None = None

    def task(self) -> str:
        """What a worker needs to run it, as JSON."""
        assert self.architecture is not None
        data = {
            "layer": self.layer.model_dump(mode="json"),
            "architecture": self.architecture.model_dump(mode="json"),
            "mapper": self.mapper,
            "options": self.options,
            "simulate": self.simulate,
        }
        return json.dumps(data)


@dataclass(frozen=True)
class _Machine:
    """An architecture that some axes make: as data, checked, and the values that its fields got."""

    data: Data
    architecture: Architecture | None
    content: str
    fields: dict[str, Any]
    error: InputError | None


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
        self._sweep, self._folder, self._source = sweep, sweep.folder, sweep.source
        self._fields = [name for name in sweep.axes if name not in SPECIAL_AXES and not name.startswith(_OPTION)]
        self._bases = [self._architecture(value) for value in self._values("architecture", "simba_4x4")]
        self._base_data = [base.model_dump(mode="json") for base in self._bases]
        self._check_names()
        self._layers = self._all_layers()
        self._labels = {"architecture": architecture_labels(self._values("architecture", "simba_4x4"))}
        if "layer" in sweep.axes:
            names = [layers[0][0].name for layers in self._layers]
            self._labels["layer"] = layer_labels(sweep.values("layer"), names)
        self._conditions = [Condition(text, sweep.source, f"where[{n}]") for n, text in enumerate(sweep.where)]
        self._machines: dict[tuple[int, ...], _Machine] = {}

    def _values(self, axis: str, default: Any) -> list[Any]:
        return self._sweep.values(axis) if axis in self._sweep.axes else [default]

    def _at(self, positions: Mapping[str, int], axis: str, default: Any) -> Any:
        return self._values(axis, default)[positions.get(axis, 0)]

    def _in_folder(self, value: Any) -> Any:
        """A file that stands beside the sweep."""
        if isinstance(value, str) and self._folder is not None and (self._folder / value).is_file():
            return self._folder / value
        return value

    def _architecture(self, value: Any) -> Architecture:
        if isinstance(value, dict):
            return Architecture.from_data(value, source=f"{self._source}: axes.architecture")
        if not isinstance(value, str):
            allowed = "a packaged name, a file, or an architecture"
            raise self._error("not an architecture", "architecture", value, allowed=allowed)
        return load_architecture(self._in_folder(value))

    def _all_layers(self) -> list[list[tuple[Layer, int]]]:
        """The layers of each value of the axis, with how often each occurs."""
        if "network" in self._sweep.axes:
            networks = [load_network(str(name)) for name in self._sweep.values("network")]
            return [[(entry.layer, entry.count) for entry in network.layers] for network in networks]
        layers = []
        for value in self._sweep.values("layer"):
            if isinstance(value, dict):
                layers.append(Layer.from_data(value, source=f"{self._source}: axes.layer"))
            elif isinstance(value, str):
                layers.append(find_layer(self._in_folder(value)))
            else:
                allowed = "network:layer, a file, or a layer"
                raise self._error("not a layer", "layer", value, allowed=allowed)
        return [[(layer, 1)] for layer in layers]

    def _check_names(self) -> None:
        """Every axis is special or leads to a field of every architecture; mappers exist."""
        others = (*SPECIAL_AXES, f"{_OPTION}NAME")
        for name in self._fields:
            for data in self._base_data:
                try:
                    value_at(data, name, others)
                except InputError as error:
                    raise self._error(error.message, name, allowed=error.allowed, nearest=error.nearest) from None
        for mapper in self._values("mapper", "cosa"):
            if mapper not in MAPPERS:
                nearest = nearest_of(str(mapper), MAPPERS)
                raise self._error("no such mapper", "mapper", mapper, allowed=", ".join(MAPPERS), nearest=nearest)

    def _error(self, message: str, axis: str, *value: Any, **more: Any) -> InputError:
        found = {"value": value[0]} if value else {}
        return InputError(message, source=self._source, path=f"axes.{axis}", **found, **more)

    def _combinations(self) -> Iterator[dict[str, int]]:
        """Positions on all axes; zipped ones step together, the last axis fastest."""
        groups: list[tuple[str, ...]] = []
        for name in self._sweep.axes:
            group = next((group for group in self._sweep.zip if name in group), (name,))
            if group not in groups:
                groups.append(group)
        lengths = [len(self._sweep.values(group[0])) for group in groups]
        most = max(len(layers) for layers in self._layers)
        if prod(lengths) * most > MOST_POINTS:
            allowed = f"at most {MOST_POINTS:,} points"
            raise InputError(
                f"up to {prod(lengths) * most:,} points", source=self._source, path="axes", allowed=allowed
            )
        for steps in itertools.product(*map(range, lengths)):
            yield {name: step for group, step in zip(groups, steps, strict=True) for name in group}

    def _machine(self, positions: dict[str, int]) -> _Machine:
        key = (positions.get("architecture", 0), *(positions[name] for name in self._fields))
        if key not in self._machines:
            self._machines[key] = self._build(key)
        return self._machines[key]

    def _build(self, key: tuple[int, ...]) -> _Machine:
        data = copy.deepcopy(self._base_data[key[0]])
        fields, found = {}, None
        problem: InputError | None = None
        try:
            for name, position in zip(self._fields, key[1:], strict=True):
                fields[name] = set_value(data, name, copy.deepcopy(self._sweep.values(name)[position]))
            found = Architecture.from_data(data)
        except InputError as error:
            problem = error
        content = found.content_hash if found else json.dumps(data, sort_keys=True)
        return _Machine(data, found, content, fields, problem)

    def points(self) -> list[Point]:
        """See `expand`."""
        found: list[Point] = []
        machines: list[_Machine] = []
        for positions in self._combinations():
            machine = self._machine(positions)
            entries = self._layers[positions.get("network", positions.get("layer", 0))]
            for layer, count in entries:
                point = self._point(len(found), positions, machine, layer, count)
                if self._wanted(point, machine):
                    found.append(point)
                    machines.append(machine)
        if not found:
            raise InputError("no point meets all conditions", source=self._source, path="where")
        self._require_useful_values(found, machines)
        return found

    def _point(self, number: int, positions: dict[str, int], machine: _Machine, layer: Layer, count: int) -> Point:
        options = {
            name.removeprefix(_OPTION): self._at(positions, name, None)
            for name in self._sweep.axes
            if name.startswith(_OPTION)
        }
        if "objective" in self._sweep.axes:
            options["objective"] = self._at(positions, "objective", None)
        mapper = self._at(positions, "mapper", "cosa")
        axes = {name: self._label(name, positions, machine) for name in self._sweep.axes}
        axes.setdefault("layer", layer.name)
        inputs = options | {"simulate": self._sweep.simulate}
        return Point(
            number=number,
            axes=axes,
            positions=positions,
            layer=layer,
            count=count,
            architecture=machine.architecture,
            mapper=mapper,
            options=options,
            simulate=self._sweep.simulate,
            inputs_hash=inputs_hash(layer, machine.content, mapper, inputs),
            error=str(machine.error) if machine.error else None,
        )

    def _label(self, axis: str, positions: dict[str, int], machine: _Machine) -> Any:
        value = self._at(positions, axis, None)
        if axis in self._fields:
            return machine.fields.get(axis, value)
        return self._labels[axis][positions[axis]] if axis in self._labels else value

    def _wanted(self, point: Point, machine: _Machine) -> bool:
        def lookup(name: str) -> Any:
            head, _, rest = name.partition(".")
            if name in point.axes and name not in self._fields:
                return point.axes[name]
            if head == "layer" and rest:
                return value_at(point.layer.model_dump(mode="json"), rest)
            if name in DERIVED:
                return derived(name, point)
            return value_at(machine.data, name, (*point.axes, *DERIVED, "layer.K"))

        try:
            return all(condition.holds(lookup) for condition in self._conditions)
        except _NoArchitectureError:
            return True  # it becomes a failed point, which says what is wrong

    def _require_useful_values(self, points: list[Point], machines: list[_Machine]) -> None:
        """A value that makes no valid architecture anywhere is a mistake in the file."""
        good = {
            (name, point.positions[name]) for point in points for name in self._fields if point.architecture is not None
        }
        for point, machine in zip(points, machines, strict=True):
            for name in self._fields:
                if machine.error is not None and (name, point.positions[name]) not in good:
                    error, value = machine.error, self._sweep.values(name)[point.positions[name]]
                    message = error.message if error.path == name else f"{error.path}: {error.message}"
                    raise self._error(message, name, value, allowed=error.allowed, nearest=error.nearest) from None


class _NoArchitectureError(Exception):
    """The axes make no valid architecture, so nothing can be derived from it."""


def derived(name: str, point: Point) -> int:
    """One of `DERIVED` at a point."""
    if point.architecture is None:
        raise _NoArchitectureError
    if name == "pes":
        return point.architecture.require_noc().pes
    return point.architecture.macs if name == "mac_units" else on_chip_buffer_bytes(point.architecture)
