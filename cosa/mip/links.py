"""What neighbours may save in Timeloop's accounting, at most: words read from one another instead of from the parent.

An instance below a level takes a word from its neighbour where it needs just what that one got a step before (rule 5 of
`cosa.analytical.timeloop`): where the move of its tile equals the distance of the two. A program can't follow that
instance by instance. It counts as saved what can be saved at most, where it can be at all:

* On an axis that one dimension walks a tile moves by the extent of its instances at least, and two instances are nearer
  than that. So only inputs have such links, on an axis where an output loop and a filter loop meet: one of them spatial
  at the level, the other temporal at it or further out.
* Along such a move positions are chains; the last of each has no neighbour to ask. A chain is no longer than the axis
  has instances, so at most that factor is saved, of the words sent and of the words that arrive.
* A tile that comes back to where it was (an output and a filter loop that undo each other) has all its words at a
  neighbour with the same position. The loop inside has as many visits at least, so at most half is saved.
* The word of a MAC stays while the loops innermost of all do not move it, and is taken to be read each time; where a
  neighbour has the same word it is not.
* Outside a level that keeps nothing of the tensor, links change only how many instances a word is for, on average.
  Where outputs and taps share positions, groups have fewer instances than the largest of them by a factor of 9/4 on an
  axis at most (`MOST_UNEVEN`).
* Averages are rounded, and a first visit brings a word at least, so rounding halves a count at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log2, prod
from typing import Any

from cosa.mip.orders import GROUPS, Orders
from cosa.mip.quantities import Axis, Expression, Kind, sliding_axes
from cosa.mip.space import Space
from cosa.workload import Dim, Tensor

MOST_UNEVEN = 9 / 4
"""Instances of the largest group over those of an average one, on one axis, at most.

With n outputs and m taps that meet every a outputs and b taps, x = min(n / a, m / b): for x <= 2 groups have at most 2;
else the largest has at most k = ceil(x), of 1 - (1 - 1 / x)^2 of all as many groups: k (2 / x - 1 / x^2), which for
k - 1 < x <= k is below (k - 1 + 1) (2 / (k - 1) - 1 / (k - 1)^2), largest at k = 3.
"""

_ROUNDED = 1.0
"""Log of what rounding an average takes off at most."""


@dataclass(frozen=True)
class _Network:
    """Logs of what links under one level save at most: `saved` of words, `rounded` on top where averages are rounded,
    `uneven` where only the size of groups counts."""

    saved: Expression
    rounded: Expression
    uneven: Expression


class Links:
    """Logs of what neighbours save, for the levels of a space; variables are made where they are asked for."""

    def __init__(self, space: Space, orders: Orders) -> None:
        self.space, self.orders = space, orders
        self._networks: dict[int, _Network] = {}
        self._mac_visits: dict[Tensor, Expression] = {}

    def log_mac_visits(self, tensor: Tensor) -> Expression:
        """Log of how many words one MAC takes, one after another, from its parent."""
        if tensor not in self._mac_visits:
            shared: Expression = None
            if self.space.most_instances(0) > 1:
                shared = self._sharing(0, tensor)
            self._mac_visits[tensor] = self.orders.log_mac_visits(tensor, shared)
        return self._mac_visits[tensor]

    def log_saved(self, tensor: Tensor, child: int, level: int) -> Expression:
        """Log of what the words that a level sends to `child` are fewer by, at most."""
        if tensor != "inputs":
            return 0.0
        total = self._network(child + 1).saved
        for outer in range(child + 2, level + 1):
            network = self._network(outer)
            total = total + network.uneven + network.rounded
        return total

    def log_filled(self, tensor: Tensor, child: int) -> Expression:
        """Log of what the words that arrive at `child` are fewer by, at most."""
        if tensor != "inputs":
            return 0.0
        network = self._network(child + 1)
        return network.saved + network.rounded

    def _network(self, level: int) -> _Network:
        if level not in self._networks:
            self._networks[level] = self._make(level)
        return self._networks[level]

    def _make(self, level: int) -> _Network:
        space = self.space
        if space.most_instances(level) == 1 or not self._axes:
            return _Network(0.0, 0.0, 0.0)
        most = log2(prod(space.architecture.fanout(level)) + 0.5)
        saved: Expression = 0.0
        uneven: Expression = 0.0
        linked: list[Any] = []
        for axis in self._axes:
            ways = [
                self._meeting((still, "spatial", level), (moving, "temporal", level), axis, (moving,))
                for still, moving in ((axis.taps, axis.outputs), (axis.outputs, axis.taps))
            ]
            way = space.new_variable("binary")
            space.require(way <= sum(ways))
            here = space.new_variable("continuous", most)
            space.require(here <= space.log_loops((axis.outputs, axis.taps), level, ("spatial",)))
            space.require(here <= most * way)
            saved = saved + here
            linked.append(way)
            both = self._both((axis.outputs, "spatial", level), (axis.taps, "spatial", level))
            uneven = uneven + log2(MOST_UNEVEN) * both
        space.require(sum(linked) <= 1)
        returns = space.new_variable("binary")
        space.require(returns <= self._sharing(level, "inputs"))
        undone = [
            self._meeting((a.outputs, "temporal", level), (a.taps, "temporal", level), a, (a.outputs, a.taps))
            for a in self._axes
        ]
        space.require(returns <= sum(undone))
        active = space.new_variable("binary")
        space.require(active <= sum(linked) + returns)
        return _Network(saved + returns, _ROUNDED * active, uneven)

    @cached_property
    def _axes(self) -> list[Axis]:
        """Axes that an output and a filter loop walk."""
        space = self.space
        return [axis for axis in sliding_axes(space.layer) if space.meets(axis)]

    def _sharing(self, level: int, tensor: Tensor) -> Expression:
        """At least 1 where two instances below a level may need the same words."""
        found = self._loops(GROUPS[tensor], "spatial", level)
        if tensor == "inputs":
            found = found + sum(
                self._both((axis.outputs, "spatial", level), (axis.taps, "spatial", level)) for axis in self._axes
            )
        return found

    def _meeting(
        self, one: tuple[Dim, Kind, int], other: tuple[Dim, Kind, int], axis: Axis, moving: Sequence[Dim]
    ) -> Any:
        """`_both`, where loops over the dimensions `moving` go as far along the axis as loops over its other one can.

        A tile of t indices moves by t of them at least, more than instances side by side are apart; in positions that
        must be what the other dimension makes up for, which is less than all of its indices.
        """
        found, space = self._both(one, other), self.space
        level = min(one[2], other[2])
        for dim in moving:
            (far, each), (partner, back) = (
                ((axis.outputs, axis.stride), (axis.taps, axis.dilation))
                if dim == axis.outputs
                else ((axis.taps, axis.dilation), (axis.outputs, axis.stride))
            )
            room = log2((space.longest(partner) - 0.5) * back / each)
            longest = log2(space.longest(far))
            if level > 0 and longest > room:
                space.require(space.log_extent((far,), level - 1) <= room + (longest - room) * (1 - found))
        return found

    def _both(self, one: tuple[Dim, Kind, int], other: tuple[Dim, Kind, int]) -> Any:
        """A binary that may be 1 only where there are two loops, each of a dimension and kind: spatial at a level,
        temporal at it or further out."""
        found = self.space.new_variable("binary")
        for dim, kind, level in (one, other):
            self.space.require(found <= self._loops((dim,), kind, level))
        return found

    def _loops(self, dims: Sequence[Dim], kind: Kind, level: int) -> Expression:
        """How many prime factors of some dimensions are spatial at a level, or temporal at it or further out."""
        levels = range(level, level + 1 if kind == "spatial" else len(self.space.architecture.levels))
        return self.space.weighted(levels, dims, (kind,), lambda prime: 1)
