"""Objectives as lists of named terms over the program's quantities. All are sums of logarithms, to be minimised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cosa.mip.quantities import KINDS, Expression, Quantities, sliding_axes
from cosa.workload import DIMS, RELEVANT, TENSORS, Dim, Tensor

UTILISATION_WEIGHT, COMPUTE_WEIGHT, TRAFFIC_WEIGHT = -0.1, 10.0, 1.0
"""Weights of CoSA's repository at first release."""

_WEIGHT_BUFFER_BONUS = 1.01
_TRAFFIC_SHADE = 0.99
_DRAM_WEIGHTS_SHADE = 1.01
_INNERMOST_SIZE, _SIZE_STEP = 0.8, 0.04


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


def cosa_terms(quantities: Quantities) -> list[Term]:
    """CoSA's proxy: utilisation, compute and the traffic of each tensor.

    The paper's section III-D gives the three parts; the constants are those of CoSA's public code at first release.
    """
    return [
        Term("utilisation", UTILISATION_WEIGHT, utilisation(quantities)),
        Term("compute", COMPUTE_WEIGHT, compute(quantities)),
        *(Term(f"traffic {tensor}", TRAFFIC_WEIGHT, traffic(quantities, tensor)) for tensor in TENSORS),
    ]


OBJECTIVES: dict[str, Callable[[Quantities], list[Term]]] = {"cosa": cosa_terms}
"""Objectives by the name they have in schedules and on the command line."""


def utilisation(quantities: Quantities) -> Expression:
    """Log words of all tiles kept below the mesh. The outermost level that keeps weights counts 1.01 fold."""
    architecture = quantities.architecture
    inner = range(architecture.mesh_level)
    weight_levels = [level for level in inner if "weights" in architecture.levels[level].keeps]
    total = 0.0
    for level in inner:
        bonus = _WEIGHT_BUFFER_BONUS if weight_levels[-1:] == [level] else 1.0
        for tensor in architecture.levels[level].keeps:
            total = total + bonus * quantities.log_tile(tensor, level)
    return total


def compute(quantities: Quantities) -> Expression:
    """Log of the product of all temporal loops: the cycles of the MACs."""
    return sum(
        (quantities.log_loops(DIMS, level, ("temporal",)) for level in range(len(quantities.architecture.levels))), 0.0
    )


def traffic(quantities: Quantities, tensor: Tensor) -> Expression:
    """Log of the words that the mesh carries of a tensor: tile size, PEs and iterations, with the published shades.

    The spatial loops and those outside the mesh level count for every tensor, relevant or not, as in the public code.
    """
    mesh, levels = quantities.architecture.mesh_level, len(quantities.architecture.levels)
    spatial = sum((quantities.log_loops(DIMS, level, ("spatial",)) for level in range(mesh, levels)), 0.0)
    outside = sum((quantities.log_loops(DIMS, level, ("temporal",)) for level in range(mesh + 1, levels)), 0.0)
    shade = _DRAM_WEIGHTS_SHADE if tensor == "weights" else 1.0
    return (
        _TRAFFIC_SHADE * tile_size(quantities, tensor)
        + _TRAFFIC_SHADE * spatial
        + quantities.log_iterations(tensor)
        + shade * outside
    )


def tile_size(quantities: Quantities, tensor: Tensor) -> Expression:
    """Log words of a PE's tile, in which a factor at level i weighs 0.8 + 0.04 i: inner places look cheaper.

    With true footprints the span of a sliding axis takes the place of its factors, at the weight of the outermost of
    these levels; the preference for inner places stays.
    """
    mesh = quantities.architecture.mesh_level
    exact_inputs = tensor == "inputs" and not quantities.rules.as_published
    sliding: tuple[Dim, ...] = ("P", "Q", "R", "S") if exact_inputs else ()
    relevant = quantities.rules.relevant(tensor) if quantities.rules.as_published else RELEVANT[tensor]
    plain = [dim for dim in DIMS if dim in relevant and dim not in sliding]
    total = 0.0
    for level in range(mesh):
        total = total + (_INNERMOST_SIZE + _SIZE_STEP * level) * quantities.log_loops(plain, level, KINDS)
    if exact_inputs and mesh:
        for axis in sliding_axes(quantities.layer):
            total = total + (_INNERMOST_SIZE + _SIZE_STEP * (mesh - 1)) * quantities.log_span(axis, mesh - 1)
        for level in range(mesh - 1):
            steps = mesh - 1 - level
            total = total - _SIZE_STEP * steps * quantities.log_loops(sliding, level, KINDS)
    return total
