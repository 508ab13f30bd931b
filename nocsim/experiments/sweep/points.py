"""From a sweep to its points: every combination of its axes as a layer, an architecture and options of a mapper."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from cosa.api import find_layer
from cosa.common.errors import InputError, nearest_of
from cosa.common.options import is_file
from cosa.common.result_cache import content_key
from cosa.experiments.figures import on_chip_buffer_bytes
from cosa.experiments.pipeline import point_key
from cosa.mappers.registry import MapperOptions, every_mapper, options_of
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from cosa.model.networks import load_network, network_names
from nocsim.experiments.pipeline import SimulatedPoint
from nocsim.experiments.sweep.fields import value_at
from nocsim.experiments.sweep.filters import Condition
from nocsim.experiments.sweep.labels import architecture_labels, layer_labels
from nocsim.experiments.sweep.machines import OPTION, Machines, SweptMachine
from nocsim.experiments.sweep.spec import Sweep
from nocsim.experiments.sweep.values import axis_error, located, naming
from nocsim.options import RunOptions

MOST_POINTS = 1_000_000
DERIVED = ("pes", "mac_units", "buffer_bytes")
"""Names that conditions may use besides axes, fields of the architecture and ``layer.FIELD``."""


@dataclass(frozen=True)
class SweepPoint:
    """A point, and where it stands on the axes.

    Attributes
    ----------
    number: its place in the sweep, from 0
    axes: the value on every axis; for multipliers what came of them
    positions: the place of that value on the axis, from 0
    count: how often the layer occurs in its network (1 without a network)
    point: what is run; None if the axes do not make a valid architecture: `error` then says why
    inputs_hash: of all that can change its figures, sources and versions included
    """

    number: int
    axes: dict[str, Any]
    positions: dict[str, int]
    layer: Layer
    count: int
    options: MapperOptions
    point: SimulatedPoint | None
    inputs_hash: str
    error: str | None = None

    @property
    def architecture(self) -> Architecture | None:
        """That of the point."""
        return self.point.architecture if self.point else None


def expand(sweep: Sweep) -> list[SweepPoint]:
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
        self._simulation = RunOptions() if sweep.simulate else None

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

    def points(self) -> list[SweepPoint]:
        """See `expand`."""
        found: list[SweepPoint] = []
        machines: list[SweptMachine] = []
        for positions in self._combinations():
            machine = self._machines.at(positions)
            entries = self._layers[positions.get("network", positions.get("layer", 0))]
            for layer, count in entries:
                axes = {name: self._label(name, positions, machine) for name in self._sweep.axes}
                axes.setdefault("layer", layer.name)
                if self._wanted(axes, layer, machine):
                    found.append(self._point(len(found), axes, positions, machine, (layer, count)))
                    machines.append(machine)
        if not found:
            raise InputError("no point meets all conditions", source=self._sweep.source, path="where")
        self._require_useful_values(found, machines)
        return found

    def _point(
        self,
        number: int,
        axes: dict[str, Any],
        positions: dict[str, int],
        machine: SweptMachine,
        entry: tuple[Layer, int],
    ) -> SweepPoint:
        options = self._options_at(positions)
        layer, count = entry
        point = None
        if machine.architecture is not None:
            try:
                options.require_levels(machine.architecture)
            except InputError as error:
                raise _of_axis(self._sweep, error) from None
            point = SimulatedPoint(
                layer=layer,
                architecture=machine.architecture,
                options=options,
                simulation=self._simulation,
                device=machine.device,
            )
        return SweepPoint(
            number=number,
            axes=axes,
            positions=positions,
            layer=layer,
            count=count,
            options=options,
            point=point,
            inputs_hash=point_key(point) if point else content_key([layer.name, machine.content, axes]),
            error=str(machine.error) if machine.error else None,
        )

    def _options_at(self, positions: dict[str, int]) -> MapperOptions:
        """The options of the mapper at a place on the axes, files read, so that the point's hash covers them."""
        key = tuple(positions.get(name) for name in ("mapper", "objective", *self._option_axes))
        if key not in self._options:
            mapper = self._at(positions, "mapper")
            given = {name.removeprefix(OPTION): self._at(positions, name) for name in self._option_axes}
            given["objective"] = self._at(positions, "objective")
            self._options[key] = _checked_options(self._sweep, mapper, given)
        return self._options[key]

    def _label(self, axis: str, positions: dict[str, int], machine: SweptMachine) -> Any:
        value = self._at(positions, axis)
        if axis in self._machines.fields:
            return machine.fields.get(axis, value)
        return self._labels[axis][positions[axis]] if axis in self._labels else value

    def _wanted(self, axes: dict[str, Any], layer: Layer, machine: SweptMachine) -> bool:
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

    def _require_useful_values(self, points: list[SweepPoint], machines: list[SweptMachine]) -> None:
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


def _checked_options(sweep: Sweep, mapper: str | None, given: Mapping[str, Any]) -> MapperOptions:
    """Options of a mapper (None: the sweep names none) from the axes, files read (those beside the sweep first).

    Raises
    ------
    InputError: there is no such mapper, objective or option, or a value or file is wrong; the axis is named.
    """
    files = {name for one in every_mapper() for name, field in one.options.model_fields.items() if is_file(field)}
    values = {name: located(sweep, value) if name in files else value for name, value in given.items()}
    if values.get("threads") is not None:
        raise axis_error(sweep, "options.threads", "a point has one core", value=values["threads"], allowed="nothing")
    try:
        return options_of(mapper, values)
    except InputError as error:
        if error.source is None:
            raise _of_axis(sweep, error) from None
        read = next((name for name in files if str(values.get(name)) == error.source), "")
        raise axis_error(sweep, OPTION + read, str(error)) from None


def _of_axis(sweep: Sweep, error: InputError) -> InputError:
    """An error that names an option, as one of its axis."""
    name, dot, inner = (error.path or "").partition(".")
    axis = name if name in ("mapper", "objective") else OPTION + name
    return error.at(sweep.source, f"axes.{axis}{dot}{inner}")


class _NoArchitectureError(Exception):
    """The axes make no valid architecture, so nothing can be derived from it."""


def derived(name: str, architecture: Architecture | None) -> int | None:
    """One of `DERIVED` of an architecture; None for the PEs of one that has no mesh."""
    if architecture is None:
        raise _NoArchitectureError
    if name == "pes":
        return architecture.noc.pes if architecture.noc is not None else None
    return architecture.macs if name == "mac_units" else on_chip_buffer_bytes(architecture)
