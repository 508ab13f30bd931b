"""Which dimension and which tensor of a Timeloop shape plays which role in a layer.

Told by the projections, so that names do not matter (M for output channels, A, B, Z for the tensors of a matrix
product): a dimension of weights and outputs is K, of weights and inputs C (or R, S where it slides with an output
dimension), of inputs and outputs N, P or Q, of all three G.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from cosa.interop.places import Where
from cosa.interop.timeloop_model import DataSpace, Problem
from cosa.model.layer import TENSORS, Dim, Layer, Tensor

_NAMES: dict[Tensor, re.Pattern[str]] = {
    "weights": re.compile(r"weight|filter|kernel|^w$", re.IGNORECASE),
    "inputs": re.compile(r"input|ifmap|iact|^i$", re.IGNORECASE),
    "outputs": re.compile(r"output|ofmap|oact|psum|^o$", re.IGNORECASE),
}
# (in weights, in inputs, in outputs): dimensions of a layer that are, in order of preference.
_CANDIDATES: dict[tuple[bool, bool, bool], tuple[Dim, ...]] = {
    (True, False, True): ("K",),
    (True, True, False): ("C", "R", "S"),
    (False, True, True): ("N", "P", "Q"),
    (True, True, True): ("G",),
}
_USUAL: dict[str, Dim] = {"R": "R", "S": "S", "P": "P", "Q": "Q", "C": "C", "K": "K", "M": "K", "N": "N", "G": "G"}
_PAIRS: tuple[tuple[Dim, Dim], ...] = (("P", "R"), ("Q", "S"))


@dataclass(frozen=True)
class Roles:
    """Dimension of a layer for each of the problem's, tensor for each data space, and the layer's numbers."""

    dims: Mapping[str, Dim]
    tensors: Mapping[str, Tensor]
    fields: Mapping[str, int]


def tensor_of_name(name: str) -> Tensor | None:
    """The tensor that a data space's name says it is."""
    return next((tensor for tensor in TENSORS if _NAMES[tensor].search(name)), None)


def layer_of(problem: Problem, where: Where) -> tuple[Layer, Roles]:
    """The layer of a problem.

    Raises
    ------
    InputError: a dimension or a tensor that a layer does not have.
    """
    roles = roles_of(problem, where)
    data = {"name": problem.name[:200] or "layer", **roles.fields}
    return Layer.from_data(data, source=where.source), roles


def roles_of(problem: Problem, where: Where) -> Roles:
    """Roles of the dimensions and tensors of a problem."""
    spaces = _spaces(problem, where)
    return _Assignment(problem, spaces, where).roles()


def _spaces(problem: Problem, where: Where) -> dict[Tensor, DataSpace]:
    found = list(problem.shape.data_spaces)
    if len(found) != 3:
        allowed = "three: weights, inputs and outputs"
        raise where.error("not the tensors of a layer", value=[space.name for space in found], allowed=allowed)
    written = [space for space in found if space.read_write]
    if len(written) != 1:
        written = [space for space in found if tensor_of_name(space.name) == "outputs"]
    if len(written) != 1:
        raise where.error(
            "not exactly one data space is written", value=len(written), allowed="read_write: true at one"
        )
    first, second = (space for space in found if space is not written[0])
    slides = [any(len(rank) > 1 for rank in space.projection) for space in (first, second)]
    if slides[0] == slides[1]:
        # Neither slides: by name, else as in A x B, where A brings the rows.
        swapped = tensor_of_name(first.name) == "weights" or tensor_of_name(second.name) == "inputs"
        if slides[0]:
            raise where.error("both operands slide", value=[first.name, second.name])
    else:
        swapped = slides[1]
    inputs, weights = (second, first) if swapped else (first, second)
    return {"weights": weights, "inputs": inputs, "outputs": written[0]}


class _Assignment:
    """Finds a place for each dimension of the problem."""

    def __init__(self, problem: Problem, spaces: Mapping[Tensor, DataSpace], where: Where) -> None:
        self.problem, self.spaces, self.where = problem, spaces, where
        self.dims: dict[str, Dim] = {}
        self.fields: dict[str, int] = dict.fromkeys(("R", "S", "P", "Q", "C", "K", "N", "G"), 1)
        self.inside = {
            tensor: [dim for rank in space.projection for dim, _ in rank] for tensor, space in spaces.items()
        }

    def roles(self) -> Roles:
        for tensor, dims in self.inside.items():
            twice = next((dim for dim in dims if dims.count(dim) > 1), None)
            if twice is not None:
                raise self.where.error(f"dimension {twice} stands twice in {self.spaces[tensor].name}")
        for tensor in ("weights", "outputs"):
            for rank in self.spaces[tensor].projection:
                if len(rank) > 1 or self.problem.coefficient(rank[0][1]) != 1:
                    raise self.where.error(f"an axis of {self.spaces[tensor].name} slides", value=_text(rank))
        self.slide()
        rest = [dim for dim in self.problem.shape.dimensions if dim not in self.dims]
        for dim in rest:
            usual = _USUAL.get(dim)
            # A filter dimension that slides has its place by now; one that does not is a sum like C.
            if usual is not None and usual not in "RS" and usual in self.candidates(dim) and self.is_free(usual):
                self.assign(dim, usual)
        for dim in rest:
            if dim not in self.dims and self.problem.bounds[dim] > 1:
                self.assign_any(dim)
        self.axis_strides()
        return Roles(self.dims, {space.name: tensor for tensor, space in self.spaces.items()}, self.fields)

    def slide(self) -> None:
        """Ranks of the inputs that add an output dimension and a filter dimension."""
        for rank in self.spaces["inputs"].projection:
            if len(rank) == 1:
                continue
            outputs = [term for term in rank if term[0] in self.inside["outputs"]]
            taps = [term for term in rank if term[0] in self.inside["weights"]]
            if len(rank) != 2 or len(outputs) != 1 or len(taps) != 1 or outputs == taps:
                allowed = "the sum of one dimension of the outputs and one of the weights"
                raise self.where.error("an axis of the inputs that no layer has", value=_text(rank), allowed=allowed)
            named = {_USUAL.get(outputs[0][0]), _USUAL.get(taps[0][0])}
            free = [pair for pair in _PAIRS if self.is_free(pair[0]) and self.is_free(pair[1])]
            pair = next((pair for pair in free if named == set(pair)), free[0] if free else None)
            if pair is None:
                raise self.where.error("more than two sliding axes", value=_text(rank), allowed="width and height")
            self.assign(outputs[0][0], pair[0])
            self.assign(taps[0][0], pair[1])
            axis = "w" if pair == _PAIRS[0] else "h"
            self.coefficient(f"stride_{axis}", *outputs[0])
            self.coefficient(f"dilation_{axis}", *taps[0])

    def axis_strides(self) -> None:
        """Coefficients of inputs' axes with one dimension: a stride of P or Q, or without effect."""
        for rank in self.spaces["inputs"].projection:
            (dim, name), value = rank[0], self.problem.coefficient(rank[0][1])
            if len(rank) > 1 or value == 1 or self.problem.bounds[dim] == 1:
                continue
            key = {"P": "stride_w", "Q": "stride_h", "R": "dilation_w", "S": "dilation_h"}.get(self.dims[dim])
            if key is None:
                raise self.where.error(f"dimension {dim} has a coefficient, which no layer has", value=name)
            self.coefficient(key, dim, name)

    def coefficient(self, key: str, dim: str, name: str | None) -> None:
        """Stride or dilation; what it is does not matter where its dimension has one iteration."""
        value = self.problem.coefficient(name)
        if self.problem.bounds[dim] == 1:
            value = max(value, 1)
        if value < 1:
            raise self.where.error(f"{name} of dimension {dim} is 0", value=value, allowed="at least 1")
        self.fields[key] = value

    def candidates(self, dim: str) -> tuple[Dim, ...]:
        weights, inputs, outputs = (dim in self.inside[tensor] for tensor in TENSORS)
        return _CANDIDATES.get((weights, inputs, outputs), ())

    def is_free(self, dim: Dim) -> bool:
        return dim not in self.dims.values()

    def assign_any(self, dim: str) -> None:
        """A free dimension of the same kind; P and Q, R and S only where nothing would slide that does not."""
        choices = list(self.candidates(dim))
        if not any(len(rank) > 1 for rank in self.spaces["inputs"].projection) and "P" in choices:
            choices = ["P", "Q", "N"]  # a matrix product: P carries the rows
        for choice in choices:
            partner = next((other for pair in _PAIRS for other in pair if choice in pair and other != choice), None)
            if self.is_free(choice) and (partner is None or self.fields[partner] == 1):
                self.assign(dim, choice)
                return
        users = [space.name for tensor, space in self.spaces.items() if dim in self.inside[tensor]]
        raise self.where.error(f"no place in a layer for dimension {dim} of {', '.join(users) or 'no tensor'}")

    def assign(self, dim: str, role: Dim) -> None:
        self.dims[dim] = role
        self.fields[role] = self.problem.bounds[dim]
        for output, tap in _PAIRS:
            together = {name for name, given in self.dims.items() if given in (output, tap) and self.fields[given] > 1}
            if len(together) == 2 and not any(
                together == {name for name, _ in rank} for rank in self.spaces["inputs"].projection
            ):
                raise self.where.error(
                    f"dimensions {' and '.join(sorted(together))} do not slide together in the inputs"
                )


def _text(rank: tuple[tuple[str, str | None], ...]) -> str:
    return " + ".join(dim if name is None else f"{dim}*{name}" for dim, name in rank)
