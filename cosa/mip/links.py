"""What neighbours may save in Timeloop's accounting, at most: words read from one another instead of from the parent.

An instance below a level takes a word from its neighbour where it needs just what that one got a step before (rule 5 of
`cosa.analytical.timeloop`): where the move of its tile equals the distance of the two. A program can't follow that
instance by instance. It counts as saved what can be saved at most, where it can be at all:

* On an axis that one dimension walks a tile moves by the extent of its instances at least, and two instances are nearer
  than that. So only inputs have such links, on an axis where an output loop and a filter loop meet: one of them spatial
  at the level, the other temporal at it or further out.
* Along such a move positions are chains; the last of each has no neighbour to ask. A chain is no longer than the axis
  has instances, so at most that factor is saved, of the words sent and of the words that arrive.
* Where another dimension moves the inputs there is no such neighbour, and that happens for each of its indices once.
* A tile that comes back to where it was (an output and a filter loop that undo each other) has all its words at a
  neighbour with the same position. The loop inside has as many visits at least, so at most half is saved.
* The word of a MAC stays while the loops innermost of all do not move it, and is taken to be read each time; where a
  neighbour has the same word it is not.
* Outside a level that keeps nothing of the tensor, links change only how many instances a word is for, on average.
  Where outputs and taps share positions, groups have fewer instances than the largest of them by a factor of 9/4 on an
  axis at most (`MOST_UNEVEN`).
* Averages are rounded: reads to the next whole number, arrivals down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log2, prod
from typing import Any

from cosa.mip.orders import GROUPS, Orders
from cosa.mip.quantities import Axis, Expression, sliding_axes
from cosa.mip.space import Space
from cosa.model.layer import DIMS, RELEVANT, Dim, Tensor
from cosa.model.mapping_rules import LoopKind

MOST_UNEVEN = 9 / 4
"""Instances of the largest group over those of an average one, on one axis, at most.

With n outputs and m taps that meet every a outputs and b taps, x = min(n / a, m / b): for x <= 2 groups have at most 2;
else the largest has at most k = ceil(x), of 1 - (1 - 1 / x)^2 of all as many groups: k (2 / x - 1 / x^2), which for
k - 1 < x <= k is below (k - 1 + 1) (2 / (k - 1) - 1 / (k - 1)^2), largest at k = 3.
"""


@dataclass(frozen=True)
class _Network:
    """Links under one level: logs of what they save at most, of words (`saved`), and where only the size of groups
    counts (`uneven`); `active` is a binary, 1 where there are links (None: there are none)."""

    saved: Expression
    uneven: Expression
    active: Any


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
        return self._network(child + 1).saved + sum(self._network(at).uneven for at in range(child + 2, level + 1))

    def log_filled(self, tensor: Tensor, child: int) -> Expression:
        """Log of what the words that arrive at `child` are fewer by, at most."""
        return self._network(child + 1).saved if tensor == "inputs" else 0.0

    def words_rounded(self, tensor: Tensor, networks: range, most: float, given: Expression) -> Expression:
        """Words, `most` at most, that rounding takes off an average over instances below some levels; 0 where `given`
        is."""
        active = [network.active for network in map(self._network, networks) if network.active is not None]
        if tensor != "inputs" or not active:
            return 0.0
        rounded = self.space.new_variable("binary")
        self.space.require(rounded <= sum(active))
        self.space.require(rounded <= given)
        return most * rounded

    def _network(self, level: int) -> _Network:
        if level not in self._networks:
            self._networks[level] = self._make(level)
        return self._networks[level]

    def _make(self, level: int) -> _Network:
        space = self.space
        if space.most_instances(level) == 1 or not self._axes:
            return _Network(0.0, 0.0, None)
        active = space.new_variable("binary")
        ways = {axis: self._binary(self._ways(axis, level)) for axis in self._axes}
        undone = {axis: self._undone(axis, level) for axis in self._axes}
        returns = self._binary(sum(undone.values()))
        space.require(returns <= self._sharing(level, "inputs"))
        space.require(active <= sum(ways.values()) + returns)
        saved: Expression = returns
        uneven: Expression = 0.0
        chosen = []
        for axis, way in ways.items():
            one = self._binary(way)
            chosen.append(one)
            saved = saved + self._saved_along(
                axis, level, one, {a: ways[a] + undone[a] for a in self._axes if a != axis}
            )
            both = self._binary(self._both((axis.outputs, "spatial", level), (axis.taps, "spatial", level)))
            space.require(both <= active)
            uneven = uneven + log2(MOST_UNEVEN) * both
        # Not all visits have their links along one axis; the axis that saves most is more than any mixture.
        space.require(sum(chosen) <= 1)
        return _Network(saved, uneven, active)

    def _saved_along(self, axis: Axis, level: int, given: Any, others: dict[Axis, Expression]) -> Any:
        """Log of what links along an axis save of the words sent from a level; `others`: whether another axis has links
        as well, or comes back to where it was."""
        space = self.space
        most = log2(prod(space.architecture.fanout(level)) + 0.5)
        saved = space.new_variable("continuous", most)
        space.require(saved <= most * given)
        space.require(saved <= space.log_loops((axis.outputs, axis.taps), level, ("spatial",)))
        visits = self.log_mac_visits("inputs") if level == 0 else self.orders.log_visits("inputs", level - 1)
        outside = range(level, len(space.architecture.levels))
        alone = [dim for dim in DIMS if dim in RELEVANT["inputs"] and dim not in (axis.outputs, axis.taps)]
        slack: Expression = 0.0
        for other, possible in others.items():
            slack = slack + possible * log2(space.longest(other.outputs) * space.longest(other.taps))
        space.require(saved <= visits - space.weighted(outside, alone, ("temporal",), log2) + slack)
        return saved

    def _ways(self, axis: Axis, level: int) -> Expression:
        """At least 1 where a loop over time and one over instances move the inputs along an axis as far."""
        pair = (axis.taps, axis.outputs)
        return sum(
            self._meeting((still, "spatial", level), (moving, "temporal", level), axis)
            for still, moving in (pair, pair[::-1])
        )

    def _undone(self, axis: Axis, level: int) -> Any:
        """1 where two loops over time may move the inputs back and forth as far along an axis."""
        return self._meeting((axis.outputs, "temporal", level), (axis.taps, "temporal", level), axis)

    def _binary(self, most: Expression) -> Any:
        """A binary of at most so much."""
        found = self.space.new_variable("binary")
        self.space.require(found <= most)
        return found

    @cached_property
    def _axes(self) -> list[Axis]:
        """Axes that an output and a filter loop walk."""
        space = self.space
        axes = sliding_axes(space.layer)
        return [axis for axis in axes if min(space.longest(axis.outputs), space.longest(axis.taps)) > 1]

    def _sharing(self, level: int, tensor: Tensor) -> Expression:
        """At least 1 where two instances below a level may need the same words."""
        found = self._loops(GROUPS[tensor], "spatial", level)
        if tensor == "inputs":
            found = found + sum(
                self._both((axis.outputs, "spatial", level), (axis.taps, "spatial", level)) for axis in self._axes
            )
        return found

    def _meeting(self, one: tuple[Dim, LoopKind, int], other: tuple[Dim, LoopKind, int], axis: Axis) -> Any:
        """`_both`, where the two dimensions of an axis may move the tiles below a level as far."""
        found = self._both(one, other)
        self.space.require_meeting(found, axis, min(one[2], other[2]) - 1)
        return found

    def _both(self, one: tuple[Dim, LoopKind, int], other: tuple[Dim, LoopKind, int]) -> Any:
        """A binary that may be 1 only where there are two loops, each of a dimension and kind: spatial at a level,
        temporal at it or further out."""
        found = self.space.new_variable("binary")
        for dim, kind, level in (one, other):
            self.space.require(found <= self._loops((dim,), kind, level))
        return found

    def _loops(self, dims: Sequence[Dim], kind: LoopKind, level: int) -> Expression:
        """How many prime factors of some dimensions are spatial at a level, or temporal at it or further out."""
        levels = range(level, level + 1 if kind == "spatial" else len(self.space.architecture.levels))
        return self.space.weighted(levels, dims, (kind,), lambda prime: 1)
