"""Objectives as lists of named terms over the program's quantities. All are sums of logarithms, to be minimised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from cosa.analytical.constants import Fit
from cosa.common.errors import InputError, nearest_of
from cosa.common.files import WHOLE, FileModel
from cosa.mip.quantities import Expression, Quantities, sliding_axes
from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, RELEVANT, TENSORS, Dim, Tensor
from cosa.model.mapping_rules import KINDS

_WEIGHT_BUFFER_BONUS = 1.01
_TRAFFIC_SHADE = 0.99
_DRAM_WEIGHTS_SHADE = 1.01
_INNERMOST_SIZE, _SIZE_STEP = 0.8, 0.04

Weight = Annotated[float, Field(ge=0, le=1e6)]


class Weights(FileModel):
    """What the terms count in the published objectives; defaults are those of CoSA's repository at first release.

    `utilisation` is to be large, so its term is subtracted. `levels`, by name of the level, weigh what a level adds to
    the utilisation; `tensors` weigh what a tensor adds to utilisation and traffic. What is not named counts 1. `fit`:
    the runs that the weights were fitted on, if they were.
    """

    kind: Literal["weights"] = "weights"
    schema_version: Annotated[Literal[1], WHOLE] = 1
    utilisation: Weight = 0.1
    compute: Weight = 10.0
    traffic: Weight = 1.0
    levels: dict[str, Weight] = Field(default_factory=dict)
    tensors: dict[Tensor, Weight] = Field(default_factory=dict)
    fit: Fit | None = None

    def require_levels(self, architecture: Architecture, source: str) -> None:
        """InputError where a weight is for a level that the architecture does not have."""
        names = [level.name for level in architecture.levels]
        for name in self.levels:
            if name not in names:
                raise InputError(
                    f"architecture {architecture.name!r} has no such level",
                    source=source,
                    path="levels",
                    value=name,
                    allowed=", ".join(names),
                    nearest=nearest_of(name, names),
                )


@dataclass(frozen=True)
class Term:
    """A named part of an objective: `weight` times `value`."""

    name: str
    weight: float
    value: Expression

    @property
    def weighted(self) -> Expression:
        """What the term adds to the objective."""
        return self.weight * self.value


@dataclass(frozen=True)
class WeightedSum:
    """What is minimised: the sum of the terms, or (`absolute`) its distance from 0."""

    terms: Callable[[Quantities, Weights], list[Term]]
    absolute: bool = False


def cosa_terms(quantities: Quantities, weights: Weights) -> list[Term]:
    """CoSA's proxy: utilisation, compute and the traffic of each tensor.

    The paper's section III-D gives the three parts; the constants are those of CoSA's public code at first release.
    """
    return [
        Term("utilisation", -weights.utilisation, utilisation(quantities, weights)),
        Term("compute", weights.compute, compute(quantities)),
        *_traffic_terms(quantities, weights, weights.traffic),
    ]


def balance_terms(quantities: Quantities, weights: Weights) -> list[Term]:
    """The paper's alternative: weighted traffic less weighted compute, whose distance from 0 is minimised."""
    return [
        Term("compute", -weights.compute, compute(quantities)),
        *_traffic_terms(quantities, weights, weights.traffic),
    ]


def _traffic_terms(quantities: Quantities, weights: Weights, weight: float) -> list[Term]:
    return [
        Term(f"traffic {tensor}", weight * weights.tensors.get(tensor, 1.0), traffic(quantities, tensor))
        for tensor in TENSORS
    ]


OBJECTIVES: dict[str, WeightedSum] = {
    "cosa": WeightedSum(cosa_terms),
    "utilisation": WeightedSum(lambda found, weights: [Term("utilisation", -1.0, utilisation(found, weights))]),
    "compute": WeightedSum(lambda found, weights: [Term("compute", 1.0, compute(found))]),
    "traffic": WeightedSum(lambda found, weights: _traffic_terms(found, weights, 1.0)),
    "balance": WeightedSum(balance_terms, absolute=True),
}
"""Objectives by the name they have in schedules and on the command line."""


def utilisation(quantities: Quantities, weights: Weights) -> Expression:
    """Log words of all tiles kept below the ordered level. The outermost that keeps weights counts 1.01 fold."""
    architecture, rules = quantities.architecture, quantities.rules
    inner = range(rules.order_level(architecture))
    weight_levels = [level for level in inner if "weights" in architecture.levels[level].keeps]
    total = 0.0
    for level in inner:
        entry = architecture.levels[level]
        bonus = _WEIGHT_BUFFER_BONUS if weight_levels[-1:] == [level] else 1.0
        for tensor in entry.keeps:
            factor = bonus * weights.levels.get(entry.name, 1.0) * weights.tensors.get(tensor, 1.0)
            size = quantities.log_tile(tensor, level) + rules.log_bytes(quantities.layer, tensor)
            total = total + factor * size
    return total


def compute(quantities: Quantities) -> Expression:
    """Log of the product of all temporal loops: the cycles of the MACs."""
    return sum(
        (quantities.log_loops(DIMS, level, ("temporal",)) for level in range(len(quantities.architecture.levels))), 0.0
    )


def traffic(quantities: Quantities, tensor: Tensor) -> Expression:
    """Log of the words (with precision terms: bytes) sent below the ordered level: tile size, instances, iterations.

    Spatial loops and those outside the ordered level count for every tensor, relevant or not, as in the public code.
    """
    ordered, levels = quantities.rules.order_level(quantities.architecture), len(quantities.architecture.levels)
    spatial = sum((quantities.log_loops(DIMS, level, ("spatial",)) for level in range(ordered, levels)), 0.0)
    outside = sum((quantities.log_loops(DIMS, level, ("temporal",)) for level in range(ordered + 1, levels)), 0.0)
    shade = _DRAM_WEIGHTS_SHADE if tensor == "weights" else 1.0
    return (
        _TRAFFIC_SHADE * tile_size(quantities, tensor)
        + _TRAFFIC_SHADE * spatial
        + quantities.log_iterations(tensor)
        + shade * outside
        + quantities.rules.log_bytes(quantities.layer, tensor)
    )


def tile_size(quantities: Quantities, tensor: Tensor) -> Expression:
    """Log words of a tile under the ordered level, in which a factor at level i weighs 0.8 + 0.04 i: inner is cheaper.

    With true footprints the span of a sliding axis takes the place of its factors, at the weight of the outermost of
    these levels; the preference for inner places stays.
    """
    ordered = quantities.rules.order_level(quantities.architecture)
    exact_inputs = tensor == "inputs" and not quantities.rules.as_published
    sliding: tuple[Dim, ...] = ("P", "Q", "R", "S") if exact_inputs else ()
    relevant = quantities.rules.relevant(tensor) if quantities.rules.as_published else RELEVANT[tensor]
    plain = [dim for dim in DIMS if dim in relevant and dim not in sliding]
    total = 0.0
    for level in range(ordered):
        total = total + (_INNERMOST_SIZE + _SIZE_STEP * level) * quantities.log_loops(plain, level, KINDS)
    if exact_inputs and ordered:
        for axis in sliding_axes(quantities.layer):
            total = total + (_INNERMOST_SIZE + _SIZE_STEP * (ordered - 1)) * quantities.log_span(axis, ordered - 1)
        for level in range(ordered - 1):
            steps = ordered - 1 - level
            total = total - _SIZE_STEP * steps * quantities.log_loops(sliding, level, KINDS)
    return total
