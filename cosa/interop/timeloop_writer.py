"""Problem and mapping files that Timeloop reads (v0.1 style: one flat problem, one list of directives)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cosa.common.errors import InputError
from cosa.common.files import dump_yaml
from cosa.model.layer import TENSORS, Dim, Layer, Tensor
from cosa.model.schedule import Loop, Schedule, ScheduleLevel

DIMS: tuple[Dim, ...] = ("R", "S", "P", "Q", "C", "K", "N")
"""Dimensions of Timeloop's shape ``cnn-layer``."""

DATA_SPACES: dict[Tensor, str] = {"weights": "Weights", "inputs": "Inputs", "outputs": "Outputs"}


def problem_text(layer: Layer, source: str, notes: list[str]) -> str:
    """A problem file of shape ``cnn-layer``.

    Raises
    ------
    InputError: the layer has groups.
    """
    _require_no_groups(layer, source)
    if layer.word_bits != type(layer.word_bits)():
        notes.append("not kept: word_bits, which Timeloop states at the levels of the architecture")
    coefficients = {
        "Wstride": layer.stride_w,
        "Hstride": layer.stride_h,
        "Wdilation": layer.dilation_w,
        "Hdilation": layer.dilation_h,
    }
    return dump_yaml({"problem": {"shape": "cnn-layer", **{dim: layer.bounds[dim] for dim in DIMS}, **coefficients}})


def _require_no_groups(layer: Layer, source: str) -> None:
    if layer.G > 1:
        raise InputError(
            "groups cannot be written: Timeloop's shape cnn-layer has no such dimension",
            source=source,
            path="layer.G",
            value=layer.G,
            allowed="1",
        )


def mapping_text(schedule: Schedule, source: str, notes: list[str], one_row: bool = False) -> str:
    """A mapping file. Loops of bound 1 are not loops there.

    Spatial loops along y stand outside of those along x, as Timeloop's `split` has it; the two axes are independent, so
    that order means nothing. With `one_row` the mapping is for an architecture that lays every fan-out out as one row
    (as Timeloop does where only `instances` is stated): all spatial loops run along X, and the part of a dimension
    along y becomes one loop with the part along x.

    Raises
    ------
    InputError: loops that directives can't hold: groups, row-major loops, two loops of one dimension in one block.
    """
    _require_no_groups(schedule.layer, source)
    directives: list[dict[str, Any]] = []
    for number, entry in enumerate(schedule.nest):
        if number > 0:
            bypass = [DATA_SPACES[tensor] for tensor in TENSORS if tensor not in entry.keeps]
            keep = [DATA_SPACES[tensor] for tensor in TENSORS if tensor in entry.keeps]
            directives.append({"target": entry.level, "type": "datatype", "keep": keep, "bypass": bypass})
    for number, entry in enumerate(schedule.nest):
        path = f"nest[{number}]"
        temporal = [loop for loop in entry.temporal if loop.bound > 1]
        directives.append(_directive(entry, "temporal", temporal, source, path))
        x, y = schedule.architecture.fanout(len(schedule.nest) - 1 - number)
        spatial = _in_one_row(entry) if one_row else _by_axis(entry, source, path, notes)
        if x * y > 1 or spatial:
            loops = [loop for loop, _ in spatial]
            directive = _directive(entry, "spatial", loops, source, path)
            directives.append(directive | {"split": sum(axis == "x" for _, axis in spatial)})
    return dump_yaml({"mapping": directives})


def _in_one_row(entry: ScheduleLevel) -> list[tuple[Loop, str]]:
    """Spatial loops along one row, y outside of x; neighbours over one dimension are one loop."""
    loops = [loop for loop in entry.spatial if loop.bound > 1]
    ordered = [*(loop for loop in loops if loop.axis == "y"), *(loop for loop in loops if loop.axis != "y")]
    result: list[Loop] = []
    for loop in ordered:
        if result and result[-1].dim == loop.dim:
            loop = loop.with_(bound=result.pop().bound * loop.bound)
        result.append(loop)
    return [(loop, "x") for loop in result]


def _by_axis(entry: ScheduleLevel, source: str, path: str, notes: list[str]) -> list[tuple[Loop, str]]:
    """Spatial loops, those along x last (they are innermost), each with its axis."""
    loops = [loop for loop in entry.spatial if loop.bound > 1]
    for loop in loops:
        if loop.axis == "row_major":
            raise InputError(
                f"{entry.level}: spatial loop {loop.dim}{loop.bound} is row_major, which Timeloop does not have",
                source=source,
                path=path,
                allowed="spatial loops along x and y, or --one-row",
            )
    ordered = [*(loop for loop in loops if loop.axis == "y"), *(loop for loop in loops if loop.axis == "x")]
    if ordered != loops:
        notes.append(f"{entry.level}: loops along y are written outside of those along x (their order means nothing)")
    return [(loop, str(loop.axis)) for loop in ordered]


def _directive(entry: ScheduleLevel, kind: str, loops: Sequence[Loop], source: str, path: str) -> dict[str, Any]:
    """One block; `loops` outer to inner, of which each dimension has at most one."""
    inside_out = [loop.dim for loop in reversed(loops)]
    for dim in inside_out:
        if inside_out.count(dim) > 1:
            twice = ", ".join(f"{loop.dim}{loop.bound}" for loop in loops if loop.dim == dim)
            raise InputError(
                f"{entry.level}: {kind} loops {twice} are two of one dimension, which one directive cannot hold",
                source=source,
                path=path,
                allowed=f"one {kind} loop of each dimension"
                + (" (--one-row joins those along y and x)" if kind == "spatial" else ""),
            )
    bounds = {loop.dim: loop.bound for loop in loops}
    return {
        "target": entry.level,
        "type": kind,
        "factors": " ".join(f"{dim}={bounds.get(dim, 1)}" for dim in DIMS),
        "permutation": "".join([*inside_out, *(dim for dim in DIMS if dim not in bounds)]),
    }
