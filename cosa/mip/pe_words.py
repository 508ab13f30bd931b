"""Words of a PE's tiles, of all its instances below the mesh, and what it fetches: logs, under-estimated.

Instances side by side have different words, but along an axis that an output and a filter loop walk. There the words of
one may be between those of others, or be theirs: all have the positions of one at least, those of the outputs and those
of the taps that they have alone. What is new as such tiles move is not known; a whole tile is whenever a loop advances
that no window slides along.
"""

from __future__ import annotations

from math import log2

from cosa.mip.orders import Orders
from cosa.mip.quantities import Expression, sliding_axes
from cosa.mip.space import Space
from cosa.mip.spans import log_touched
from cosa.model.layer import DIMS, RELEVANT, Dim, Tensor

_NEVER = -60.0


def log_tile(orders: Orders, tensor: Tensor, level: int) -> Expression:
    """Log of the words of a tile of one instance; level -1: one word."""
    return 0.0 if level < 0 else orders.log_words(tensor, level)


class PeWords:
    """Tiles of the PEs of a space; `mesh` is the level over whose instances PEs are spread.

    Variables are made where they are asked for.
    """

    def __init__(self, space: Space, orders: Orders, mesh: int) -> None:
        self.space, self.orders, self.mesh = space, orders, mesh
        self._axes = [
            axis for axis in sliding_axes(space.layer) if min(space.longest(axis.outputs), space.longest(axis.taps)) > 1
        ]
        self._found: dict[tuple[Tensor, int], tuple[Expression, Expression]] = {}

    def of(self, tensor: Tensor, store: int) -> tuple[Expression, Expression]:
        """Logs of the words of a PE's tile at a level (-1: at its MACs), and of what the PE fetches in all."""
        if (tensor, store) not in self._found:
            self._found[tensor, store] = self._make(tensor, store)
        return self._found[tensor, store]

    def _make(self, tensor: Tensor, store: int) -> tuple[Expression, Expression]:
        space, levels = self.space, range(store + 1, self.mesh)
        sliding = self._axes if tensor == "inputs" else []
        mixed = [dim for axis in sliding for dim in (axis.outputs, axis.taps)]
        apart = [dim for dim in DIMS if dim in RELEVANT[tensor] and dim not in mixed]
        beside = self._side_by_side(levels, apart)
        first = log_tile(self.orders, tensor, store) + beside
        fetched = self.orders.log_fetched(tensor, store) + beside
        counts = {
            key: count
            for key, count in space.counts.items()
            if key[0] in levels and key[1] in mixed and key[3] == "spatial"
        }
        if not counts:
            return first, fetched
        for axis in sliding:
            most = log2(space.longest(axis.outputs) * space.longest(axis.taps))
            wider = space.new_variable("continuous", most)
            of_one = log_touched(space, axis, store) if store >= 0 else 0.0
            for dim in (axis.outputs, axis.taps):
                own = space.log_extent((dim,), store) + self._side_by_side(levels, [dim])
                space.require(wider >= own - of_one)
            first = first + wider
        outside = range(store + 1, len(space.architecture.levels))
        if store < 0:
            # Every step takes new words.
            return first, space.weighted(outside, DIMS, ("temporal",), log2) + first
        most = space.upper(first) + sum(log2(space.longest(dim)) for dim in DIMS)
        between, known = space.new_variable("binary"), space.new_variable("continuous", most)
        space.require(between <= sum(counts.values()))
        space.require(known >= first + space.weighted(outside, apart, ("temporal",), log2))
        space.require(known >= fetched + _NEVER * between)
        return first, known

    def _side_by_side(self, levels: range, dims: list[Dim]) -> Expression:
        """Log of the spatial loops over some dimensions."""
        return self.space.weighted(levels, dims, ("spatial",), log2)
