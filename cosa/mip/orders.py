"""Loop orders in the program: by what is innermost at each level, not by order binaries.

Order matters only through which tensor stays where it is. The loops that a tensor does not depend on are P, Q, N for
weights, K for inputs, and R, S, C for outputs. These groups do not meet, so of all orders of a level only three are not
dominated, told by the group that stands innermost; any other order starts with a loop of one of them and is as good as
that one at most. A tensor's tile stays through the loops of its group, and on through the next level out where none of
its relevant loops stands before.

Where a window slides over the inputs, the innermost loop that moves them decides as well: along its axis only a strip
is new. So a mode names that loop too.

Constraints may state the order of a level, or part of it: blocks of loops that stand innermost, one around the other.
Loops of a block pass a tensor by if all that move it in the blocks further in have a bound of 1; the modes are then
about the loops that are left.

`rule` says who remembers: ``timeloop``: the strip only if the sliding loop is the innermost of all (rule 3 of
`cosa.analytical.timeloop`); ``exact``: if it is the innermost of those that move the inputs.
"""

from __future__ import annotations

from math import log2, prod
from typing import Any, Literal

from cosa.analytical.footprint import shared_on_axis, touched_on_axis
from cosa.mip.quantities import Axis, Expression, sliding_axes
from cosa.mip.space import Space
from cosa.mip.spans import axis_span, log_touched
from cosa.model.layer import DIMS, RELEVANT, TENSORS, Dim, Tensor

GROUPS: dict[Tensor, tuple[Dim, ...]] = {"weights": ("P", "Q", "N"), "inputs": ("K",), "outputs": ("R", "S", "C")}
"""Loops that leave a tensor where it is."""

Rule = Literal["timeloop", "exact"]

_SLOPES = (0.25, 0.5, 0.75)
"""Of the rows that bound what a window saves by the length of its sweeps and the strip that is new at once."""


def _most_above(slope: float, log_gain: float) -> float:
    """The most that a sweep of n steps, one a whole tile and the others strips, saves in logs above `slope` x log n.

    With g tiles in n strips it saves n / (1 + (n - 1) / g), whose log is concave in log n.
    """
    strip = 2.0**-log_gain
    # Where the slope of the log is `slope`: n = (1 - strip) (1 - slope) / (slope x strip), at least 1.
    steps = max(1.0, (1 - strip) * (1 - slope) / (slope * strip))
    return -log2(1 / steps + (1 - 1 / steps) * strip) - slope * log2(steps)


class Orders:
    """Modes of every level of a space, and the logs of visits and fetched words that follow from them."""

    def __init__(self, space: Space, rule: Rule) -> None:
        self.space, self.rule = space, rule
        # Around the MACs order matters only where one of several may have another's word (`cosa.mip.links`).
        self._levels = range(0 if space.most_instances(0) > 1 else 1, len(space.architecture.levels))
        self._axes = [
            axis
            for axis in sliding_axes(space.layer)
            if space.longest(axis.taps) > 1 and space.longest(axis.outputs) > 1
        ]
        self.modes: dict[tuple[int, Tensor], Any] = {}
        self.sliding: dict[tuple[int, Dim], Any] = {}
        self._clear: dict[tuple[int, frozenset[Dim]], Any] = {}
        self._slides: dict[int, Expression] = {}
        self._visits: dict[tuple[Tensor, int], Expression] = {}
        self._credits: dict[int, Expression] = {}
        self._touched: dict[int, Expression] = {}
        self._back: dict[int, Expression] = {}
        self._windowed: dict[int, Expression] = {}
        for level in self._levels:
            for tensor in TENSORS:
                self.modes[level, tensor] = space.new_variable("binary")
            space.require(sum(self.modes[level, tensor] for tensor in TENSORS) == 1)
            if level > 0:
                self._add_sliding(level)

    def _add_sliding(self, level: int) -> None:
        dims = [dim for axis in self._axes for dim in (axis.outputs, axis.taps)]
        named = self.space.mapping_rules.named(level)
        for dim in dims:
            self.sliding[level, dim] = self.space.new_variable("binary")
            inside = self._inside(level, dim)
            if self.rule == "exact":
                inside &= RELEVANT["inputs"]
            if inside:
                self.space.require(self.sliding[level, dim] <= self.clear(level, inside))
            if dim in named:
                continue
            blocking: tuple[Tensor, ...] = ("outputs",) if dim in GROUPS["weights"] else ("weights",)
            if self.rule == "timeloop":
                blocking = (*blocking, "inputs")
            self.space.require(self.sliding[level, dim] <= 1 - sum(self.modes[level, tensor] for tensor in blocking))
        if dims:
            self.space.require(sum(self.sliding[level, dim] for dim in dims) <= 1)

    def _inside(self, level: int, dim: Dim) -> frozenset[Dim]:
        """The loops that constraints put inside one over `dim`."""
        inside: list[Dim] = []
        for block in self.space.mapping_rules.blocks.get(level, ()):
            if dim in block:
                break
            inside += block
        return frozenset(inside)

    def clear(self, level: int, dims: frozenset[Dim]) -> Any:
        """A binary that may be 1 only where a level has no temporal loop over any of these dimensions."""
        if (level, dims) not in self._clear:
            binary = self.space.new_variable("binary")
            for dim in DIMS:
                for prime, multiplicity in self.space.factors[dim].items():
                    count = self.space.counts.get((level, dim, prime, "temporal"))
                    if dim in dims and count is not None:
                        self.space.require(count <= multiplicity - multiplicity * binary)
            self._clear[level, dims] = binary
        return self._clear[level, dims]

    def log_visits(self, tensor: Tensor, child: int) -> Expression:
        """Log of how many tiles a level holds one after another; `child` -1: the words of a MAC, which holds none."""
        if (tensor, child) not in self._visits:
            self._visits[tensor, child] = self.log_mac_visits(tensor) if child < 0 else self._log_visits(tensor, child)
        return self._visits[tensor, child]

    def log_mac_visits(self, tensor: Tensor, shared: Expression | None = None) -> Expression:
        """Log of the words that a MAC takes; where `shared` is 1 not again while the innermost loops leave them."""
        if shared is not None:
            return self._log_visits(tensor, -1, shared)
        outside = range(len(self.space.architecture.levels))
        return sum((self.space.log_loops(DIMS, level, ("temporal",)) for level in outside), 0.0)

    def _log_visits(self, tensor: Tensor, child: int, given: Expression | None = None) -> Expression:
        """Loops that leave a tile where it is are skipped where that is innermost, and `given`, if stated, is 1."""
        space, total = self.space, 0.0
        outside = range(child + 1, len(space.architecture.levels))
        moving = [dim for dim in DIMS if dim in RELEVANT[tensor]]
        for level in outside:
            total = total + space.log_loops(moving, level, ("temporal",))
            for staying, inside, free in self._staying(level, tensor):
                longest = sum(log2(space.longest(dim)) for dim in staying)
                if longest == 0:
                    continue
                loops = space.log_loops(staying, level, ("temporal",))
                counted, skipped = space.new_variable("continuous", longest), space.new_variable("binary")
                space.require(counted >= loops - longest * skipped)
                space.require(counted <= loops)
                if inside:
                    space.require(skipped <= self.clear(level, inside))
                if free:
                    space.require(skipped <= self.modes[level, tensor] + self.clear(level, RELEVANT[tensor]))
                for inner in range(child + 1, level):
                    space.require(skipped <= self.clear(inner, RELEVANT[tensor]))
                if given is not None:
                    space.require(skipped <= given)
                total = total + counted
        return total

    def _staying(self, level: int, tensor: Tensor) -> list[tuple[tuple[Dim, ...], frozenset[Dim], bool]]:
        """Loops of a level that leave a tensor where it is: those of a block, which loops that move it stand inside of
        them, and whether their place is free."""
        named = self.space.mapping_rules.named(level)
        free = tuple(dim for dim in GROUPS[tensor] if dim not in named)
        found = [(free, frozenset(named) & RELEVANT[tensor], True)]
        for block in self.space.mapping_rules.blocks.get(level, ()):
            dims = tuple(dim for dim in block if dim in GROUPS[tensor])
            if dims:
                found.append((dims, self._inside(level, dims[0]) & RELEVANT[tensor], False))
        return found

    def log_fetched(self, tensor: Tensor, child: int) -> Expression:
        """Log of the words that one instance of a level fetches (at most so many where a window slides)."""
        tile = 0.0 if child < 0 else self.log_words(tensor, child)
        fetched = self.log_visits(tensor, child) + tile
        return fetched - self._credit(child) if tensor == "inputs" and child >= 0 else fetched

    def log_words(self, tensor: Tensor, level: int) -> Expression:
        """Log of the words of a tile that are moved: its box, or what is touched of it where the rule is exact."""
        space = self.space
        if tensor != "inputs" or self.rule == "timeloop":
            return space.log_tile(tensor, level)
        if level not in self._touched:
            self._touched[level] = space.log_extent(("C", "N", "G"), level) + sum(
                log_touched(space, axis, level) for axis in sliding_axes(space.layer)
            )
        return self._touched[level]

    def _credit(self, child: int) -> Expression:
        """Log of what sliding windows save: the whole tile over the strip that is new."""
        if child not in self._credits:
            space, total = self.space, 0.0
            allowed = []
            for axis in self._axes:
                table = space.extents(axis, child)
                for dim in (axis.outputs, axis.taps):
                    gains = {pair: log2(self._gain(axis, dim, pair, 1)) for pair in table}
                    largest = max(gains.values())
                    if largest == 0:
                        continue
                    gain, slides = space.new_variable("continuous", largest), space.new_variable("binary")
                    allowed.append(slides)
                    space.require(gain <= largest * slides)
                    space.require(gain <= sum(gains[pair] * table[pair] for pair in table if gains[pair]))
                    sweep = self._log_sweep(axis, dim, child)
                    space.require(gain <= sweep)
                    for slope in _SLOPES:
                        offsets = {pair: _most_above(slope, log_gain) for pair, log_gain in gains.items() if log_gain}
                        offset = sum(offsets[pair] * table[pair] for pair in offsets)
                        space.require(gain <= slope * sweep + offset)
                    self._add_spread(axis, dim, child, table, gain, largest, self._add_slide(child, dim, slides))
                    total = total + gain
            back = self._back_and_forth(child)
            if allowed:
                space.require(sum(allowed) + (back if self.rule == "timeloop" else 0) <= 1)
            self._credits[child] = total + back
        return self._credits[child]

    def _log_sweep(self, axis: Axis, dim: Dim, child: int) -> Expression:
        """Log of how many visits there are at most for each that brings a whole tile, where a loop over `dim` slides.

        With the exact rule only the loops inside the innermost one over C, N or G: where that or one further out
        advances, everything is new. With Timeloop's only the sliding loop's own visits, and such where a loop over the
        axis' other dimension happens to move the tile on by as much, less what the sliding loop, at most half of its
        dimension, falls back.
        """
        space, outside = self.space, range(child + 1, len(self.space.architecture.levels))
        if self.rule == "exact":
            return self._log_windowed(child)
        own = space.weighted(outside, (dim,), ("temporal",), log2)
        partner = axis.taps if dim == axis.outputs else axis.outputs
        goes_on = space.new_variable("binary")
        for one in (dim, partner):
            space.require(goes_on <= space.weighted(outside, (one,), ("temporal",), lambda prime: 1))
        space.require_meeting(goes_on, axis, child, reach=1.5)
        return own + log2(space.longest(partner)) * goes_on

    def _log_windowed(self, child: int) -> Expression:
        """Log of the loops outside a tile and inside the innermost one over C, N or G, at most."""
        if child not in self._windowed:
            space, total = self.space, 0.0
            for level in range(child + 1, len(space.architecture.levels)):
                loops = space.log_loops(("P", "Q", "R", "S", "K"), level, ("temporal",))
                most = sum(log2(space.longest(dim)) for dim in ("P", "Q", "R", "S", "K"))
                here = space.new_variable("continuous", most)
                space.require(here <= loops)
                for inner in range(child + 1, level):
                    space.require(here <= most * self.clear(inner, frozenset(("C", "N", "G"))))
                if not space.mapping_rules.named(level):
                    # Outputs stay where R, S and C stand inside all that moves them.
                    own = space.log_loops(("R", "S"), level, ("temporal",))
                    other = 1 - self.modes[level, "outputs"] + self.clear(level, frozenset(("C",)))
                    space.require(here <= own + most * other)
                total = total + here
            self._windowed[child] = total
        return self._windowed[child]

    def log_transfers(self, tensor: Tensor, child: int) -> Expression:
        """Log of how many tiles of a level bring words: a tile that is where it was brings none."""
        visits = self.log_visits(tensor, child)
        return visits - self._back_and_forth(child) if tensor == "inputs" and child >= 0 else visits

    def _back_and_forth(self, child: int) -> Expression:
        """Log of what is saved besides where an output and a filter loop undo each other: 1 at most.

        While the innermost loop that moves the inputs advances, a strip at least is new each time. Where a loop of its
        axis' other dimension advances, it may be less, or nothing. The innermost loop has as many visits at least. With
        Timeloop's rule nothing is new if that move, none, is the innermost loop's as well.
        """
        if child in self._back:
            return self._back[child]
        space, found = self.space, []
        outside = range(child + 1, len(space.architecture.levels))
        for axis in self._axes:
            both = space.new_variable("binary")
            for dim in (axis.outputs, axis.taps):
                space.require(both <= space.weighted(outside, (dim,), ("temporal",), lambda prime: 1))
            if self.rule == "timeloop":
                space.require(both <= sum(self._stays_innermost(child, level) for level in outside))
                space.require_meeting(both, axis, child)
            found.append(both)
        if len(found) > 1:
            space.require(sum(found) <= 1)
        self._back[child] = sum(found, 0.0)
        return self._back[child]

    def _stays_innermost(self, child: int, level: int) -> Any:
        """A binary that may be 1 only where a level's loops over K are the innermost outside `child`."""
        space, here = self.space, self.space.new_variable("binary")
        space.require(here <= space.weighted((level,), GROUPS["inputs"], ("temporal",), lambda prime: 1))
        if "K" not in space.mapping_rules.named(level):
            space.require(here <= self.modes[level, "inputs"])
        for inner in range(child + 1, level):
            space.require(here <= self.clear(inner, RELEVANT["inputs"]))
        return here

    def _add_slide(self, child: int, dim: Dim, slides: Any) -> dict[int, Any]:
        """`slides` needs a level whose innermost moving loop is over `dim`, and nothing that moves further in: binaries
        by level of where that is."""
        moving = frozenset(DIMS) if self.rule == "timeloop" else RELEVANT["inputs"]
        at = {}
        for level in range(child + 1, len(self.space.architecture.levels)):
            here = self.space.new_variable("binary")
            self.space.require(here <= self.sliding[level, dim])
            self.space.require(here <= self.space.weighted((level,), (dim,), ("temporal",), lambda prime: 1))
            for inner in range(child + 1, level):
                self.space.require(here <= self.clear(inner, moving))
            at[level] = here
        self.space.require(slides <= sum(at.values()))
        return at

    def _add_spread(
        self,
        axis: Axis,
        dim: Dim,
        child: int,
        table: dict[tuple[int, int], Any],
        gain: Any,
        largest: float,
        slides_at: dict[int, Any],
    ) -> None:
        """Instances side by side along the axis make each step longer: at least twice as long, where there are two.

        Those below the level whose loop slides the window, and of that level: further out they are of no concern.
        """
        space = self.space
        spread = space.new_variable("binary")
        found = False
        for level in range(child + 1, len(space.architecture.levels)):
            further_in = sum(here for at, here in slides_at.items() if at < level)
            for prime, multiplicity in space.factors[dim].items():
                count = space.counts.get((level, dim, prime, "spatial"))
                if count is not None:
                    space.require(count <= multiplicity * (spread + further_in))
                    found = True
        if found:
            gains = {pair: log2(self._gain(axis, dim, pair, 2)) for pair in table}
            saved = sum((gains[pair] * table[pair] for pair in table if gains[pair]), 0.0)
            space.require(gain <= saved + largest * (1 - spread))

    def log_groups(self, tensor: Tensor, levels: range) -> Expression:
        """Log of how many groups of instances below some levels need different words (inputs: at least).

        An output and a filter loop over instances move the inputs along the same axis; positions that coincide are at
        most so many that the longer loop's are left.
        """
        space, total = self.space, 0.0
        for level in levels:
            if tensor != "inputs":
                dims = [dim for dim in DIMS if dim in RELEVANT[tensor]]
                total = total + space.log_loops(dims, level, ("spatial",))
                continue
            total = total + space.log_loops(("C", "N", "G"), level, ("spatial",))
            for axis in sliding_axes(space.layer):
                sides = [
                    dim
                    for dim in (axis.outputs, axis.taps)
                    if any((level, dim, prime, "spatial") in space.counts for prime in space.factors[dim])
                ]
                if len(sides) < 2:
                    total = total + space.log_loops(sides, level, ("spatial",))
                    continue
                longer = space.new_variable("continuous", log2(prod(space.architecture.fanout(level)) + 0.5))
                for dim in sides:
                    space.require(longer >= space.log_loops((dim,), level, ("spatial",)))
                total = total + longer
        return total

    def _gain(self, axis: Axis, dim: Dim, pair: tuple[int, int], side_by_side: int) -> float:
        """Words of a tile along an axis over those that a step along `dim` brings at least: past so many instances."""
        outputs, taps = pair
        step = outputs * axis.stride if dim == axis.outputs else taps * axis.dilation
        span = axis_span(axis, outputs, taps)
        if self.rule == "timeloop":
            return max(1.0, span / (step * side_by_side))
        words: int = touched_on_axis(outputs, taps, axis.stride, axis.dilation)
        # With gaps a longer way may meet more of them again.
        ways = range(side_by_side, max(side_by_side, -(-span // step)) + 1)
        scales = axis.stride, axis.dilation
        new = min(words - int(shared_on_axis(scales, pair, way * step)) for way in ways)
        # Energy is counted by Timeloop's boxes, whose strip may be less than the positions that are new in it.
        return words / min(new, step * side_by_side)

    # After solving

    def innermost(self) -> dict[int, tuple[Dim, ...]]:
        """The loops that the solution puts innermost at each level, from the inside out."""
        found: dict[int, tuple[Dim, ...]] = {}
        for level in self._levels:
            tensor = max(TENSORS, key=lambda name: self.modes[level, name].value)
            slides = [dim for (at, dim), binary in self.sliding.items() if at == level and binary.value > 0.5]
            named = self.space.mapping_rules.named(level)
            group = tuple(dim for dim in GROUPS[tensor] if dim not in named)
            if self.rule == "timeloop" or not slides or slides[0] in group or slides[0] in named:
                free = (*slides, *(dim for dim in group if dim not in slides))
            else:
                free = (*group, *slides)
            for block in self.space.mapping_rules.blocks.get(level, ()):
                found[level] = (*found.get(level, ()), *sorted(block, key=lambda dim: dim not in slides))
            found[level] = (*found.get(level, ()), *(dim for dim in free if dim not in named))
        return found
