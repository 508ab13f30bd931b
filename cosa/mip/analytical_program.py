"""The program on the analytical model: cycles and energy of a nest in Timeloop's accounting, as sums of powers.

For a tensor at a level that keeps it, with the next level in that keeps it as its child (or the MACs):

* sent: words fetched by the child, times the groups of instances in between that need different words;
* fills: words that the level itself fetches from further out, of outputs less the distinct words of an instance (a
  first arrival brings no old value);
* outputs come up as updates, as many as were sent; reads are those less the distinct words of an instance, too.

Energy is every access times the energy of a word, over the physical arrays in use. Cycles are the largest of compute
and, for each level with a bandwidth, its words over that bandwidth. See `cosa.analytical.timeloop` and
`cosa.analytical.evaluation` for the rules; what the program does not model (words rounded up to blocks, reads that
neighbours save) and under-estimates (sliding windows, positions shared by outputs and taps) is listed in
`docs/reference/machine-program.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import log2
from typing import Any

from cosa.analytical.energy import mac_energy_pj, vector_access_energy_pj
from cosa.analytical.footprint import box_words, touched_words
from cosa.mip.keeps import Keeps
from cosa.mip.links import Links
from cosa.mip.orders import Orders, Rule
from cosa.mip.powers import Power
from cosa.mip.quantities import Expression
from cosa.mip.space import Space
from cosa.model.arch import Architecture
from cosa.model.keeping import Keeping
from cosa.model.layer import DIMS, RELEVANT, TENSORS, Dim, Layer, Tensor
from cosa.model.mapping_rules import MappingRules

_SHARE_STEPS = (1, 2, 3, 4, 6)
"""Logs of (words / distinct words) from which on what is left of outputs without first arrivals is known better."""

_ROUNDED_READ, _ROUNDED_FILL = 0.5, 1.0
"""Words that rounding an average takes off at most: to the nearest whole number, and down."""

APART = 0.01
"""How far below a step the log of words over distinct words may be without being counted as there. The ratio is a whole
number, and the log of the next smaller one of any step is farther off; the solver's tolerance is far smaller."""


class AnalyticalProgram(Space):
    """Cycles and energy of every nest of a layer, under-estimated; `cycles` and `energy` are linear expressions.

    Parameters
    ----------
    layer, architecture, bounds, mapping_rules: as for `Space`.
    cycles_unit, energy_unit_pj: near the values of interest; `cycles` and `energy` count in them.
    keeping: what levels may keep (default: what the architecture and the rules say).
    """

    rule: Rule = "timeloop"

    def __init__(
        self,
        layer: Layer,
        architecture: Architecture,
        *,
        cycles_unit: float,
        energy_unit_pj: float,
        bounds: Mapping[Dim, Sequence[int]] | None = None,
        mapping_rules: MappingRules | None = None,
        keeping: Keeping | None = None,
    ) -> None:
        super().__init__(layer, architecture, bounds, mapping_rules)
        self.keeping = keeping or Keeping.of(architecture, rules=self.mapping_rules)
        self.orders = Orders(self, self.rule)
        self.links = Links(self, self.orders)
        self.keeps = Keeps(self, self.keeping)
        self.cycles_unit, self.energy_unit_pj = cycles_unit, energy_unit_pj
        self.powers: list[Power] = []
        self._arrays: dict[int, Expression] = {}
        self._levels = range(len(architecture.levels))
        self._add_capacities()
        self.cycles = self._cycles()

    def power(self, name: str, exponent: Expression, unit: float, given: Expression = 1) -> Any:
        """A new term 2^exponent / unit where `given` is 1."""
        power = Power(self, name, exponent, unit, given)
        self.powers.append(power)
        return power.value

    def span_limit(self, level: int) -> int | None:
        """See `Space`: no limit where inputs may pass the level by."""
        return self.architecture.usable_words(level) if "inputs" in self.keeping.always[level] else None

    def other_choices(self) -> list[Expression]:
        """See `Space`: another level keeps or bypasses a tensor."""
        found = []
        for choice in self.keeping.free:
            kept = self.keeps.kept[choice]
            found.append(1 - kept if kept.value > 0.5 else kept)
        return found

    def decode_keeps(self) -> Any:
        """See `CostProgram`."""
        return self.keeps.decode()

    def _add_capacities(self) -> None:
        """True sums of footprints; a tensor alone exactly, several by tangents."""
        for level in self._levels:
            words = self.architecture.usable_words(level)
            always = self.keeping.always[level]
            may = [tensor for tensor in self._in_order(level) if tensor in self.keeping.may[level]]
            if words is None:
                continue
            for tensor in may:
                kept, tile = self.keeps.kept[level, tensor], self.log_tile(tensor, level)
                room = log2(words - len(always - {tensor}) + 0.5)
                if tensor in always:
                    self.require(tile <= room)
                elif (excess := self.upper(tile) - room) > 0:
                    self.require(tile <= room + excess * (1 - kept))
            if len(may) > 1:
                parts = [
                    self.power(
                        f"{level} {tensor} tile", self.log_tile(tensor, level), words, self.keeps.kept[level, tensor]
                    )
                    for tensor in may
                ]
                self.require(sum(parts) <= 1 + 0.5 / words)

    def _in_order(self, level: int) -> tuple[Tensor, ...]:
        entry = self.architecture.levels[level]
        return entry.could_keep

    # Words

    def log_sent(self, tensor: Tensor, child: int, level: int) -> Expression:
        """Log of the words that one instance of a level sends inward (outputs: receives), to `child`."""
        groups = self.orders.log_groups(tensor, range(child + 1, level + 1))
        fetched = self.links.log_mac_visits(tensor) if child < 0 else self.orders.log_fetched(tensor, child)
        return fetched + groups - self.links.log_saved(tensor, child, level)

    def log_filled(self, tensor: Tensor, level: int) -> Expression:
        """Log of the words that arrive at one instance of a level from further out."""
        return self.orders.log_fetched(tensor, level) - self.links.log_filled(tensor, level)

    def log_spatial(self, dims: Sequence[Dim], above: int) -> Expression:
        """Log of the spatial loops of `dims` at all levels further out than one."""
        outside = range(above + 1, len(self.architecture.levels))
        return sum((self.log_loops(dims, level, ("spatial",)) for level in outside), 0.0)

    def log_compute(self) -> Expression:
        """Log of all temporal loops."""
        return sum((self.log_loops(DIMS, level, ("temporal",)) for level in self._levels), 0.0)

    def output_words(self) -> float:
        """Words of the outputs without padding: the least that any padded layer has."""
        return float(box_words(self.layer, "outputs", self.layer.bounds))

    def require_all_words(self, tensor: Tensor, moved: Expression, each: float) -> None:
        """What is exchanged of a tensor, `each` a word, is all of its words at least.

        Where what levels keep is chosen, half a choice can make every term small; this can't be undercut.
        """
        if not self.keeping.is_fixed:
            self.require(moved >= touched_words(self.layer, tensor, self.layer.bounds) * each * (1 - 1e-9))

    # Energy

    @cached_property
    def energy(self) -> Expression:
        """Energy in its unit."""
        macs = self.layer.macs * mac_energy_pj(self.architecture)
        total: Expression = macs / self.energy_unit_pj
        keepers = [(tensor, level) for tensor in TENSORS for level in self._levels if tensor in self.keeping.may[level]]
        for tensor, level in keepers:
            entry = self.architecture.levels[level]
            per_word = vector_access_energy_pj(self.architecture, level) / entry.block_words
            if per_word == 0:
                continue
            arrays = self._log_arrays(level)
            most_arrays = self.architecture.instances(level) // entry.cluster_size
            unit = self.energy_unit_pj / per_word
            name = f"{level} {tensor}"
            sent = []
            for child, arc in self.keeps.into(tensor, level):
                words = self.log_sent(tensor, child, level) + arrays
                sent.append((words, self.power(f"{name} sent", words, unit, arc), arc))
                total = total - self.links.words_rounded(
                    tensor, range(child + 2, level + 1), _ROUNDED_READ * most_arrays / unit, arc
                )
            moved = sum(each for _, each, _ in sent)
            if level == self._levels[-1]:
                self.require_all_words(tensor, moved, 1 / unit)
            total = total + moved
            if level != self._levels[-1]:
                words, kept = self.log_filled(tensor, level) + arrays, self.keeps.kept[level, tensor]
                fills = self.power(f"{name} fills", words, unit, kept)
                total = total + (
                    self._but_first(f"{name} old", level, words, fills, kept, unit) if tensor == "outputs" else fills
                )
                network = range(level + 1, level + 2)
                total = total - self.links.words_rounded(tensor, network, _ROUNDED_FILL * most_arrays / unit, kept)
            if tensor == "outputs":
                total = total + sum(
                    self._but_first(f"{name} reads", level, words, moved, arc, unit) for words, moved, arc in sent
                )
        return total

    def _log_arrays(self, level: int) -> Expression:
        """Log of the physical arrays in use: the instances, at most one for each cluster there is.

        One variable for all that is said of a level: nothing holds it down but what the accesses of the arrays cost.
        """
        if level not in self._arrays:
            self._arrays[level] = self._make_log_arrays(level)
        return self._arrays[level]

    def _make_log_arrays(self, level: int) -> Expression:
        used = self.log_spatial(DIMS, level)
        cluster = self.architecture.levels[level].cluster_size
        if cluster == 1:
            return used
        most = log2(self.architecture.instances(level) // cluster)
        arrays, full = self.new_variable("continuous", most), self.new_variable("binary")
        longest = log2(self.architecture.instances(level) + 0.5)
        # The smaller of the two: all arrays, or the instances in use where those are fewer.
        self.require(arrays >= most * full)
        self.require(arrays >= used - longest * full)
        self.require(used >= most * full)
        return arrays

    def _holds_all_outputs(self, level: int) -> bool:
        """Whether one instance holds all outputs, so that its distinct words are a constant."""
        return self.architecture.instances(level) == 1 and not self.selectors

    def _log_distinct(self, level: int) -> Expression:
        """Log of the distinct output words of one instance."""
        relevant = [dim for dim in DIMS if dim in RELEVANT["outputs"]]
        return self.log_extent(relevant, self._levels[-1]) - self.log_spatial(relevant, level)

    def _log_longest(self) -> float:
        """Log of the largest count of iterations that there can be."""
        return sum(log2(self.longest(dim)) for dim in DIMS)

    def _but_first(
        self, name: str, level: int, log_words: Expression, words: Any, given: Expression, unit: float
    ) -> Expression:
        """Words of outputs that move at a level less the distinct ones of an instance, which bring no old value."""
        if self._holds_all_outputs(level):
            return words - self.output_words() / unit * given
        # log2(1 - 1 / r) of r = words / distinct words, from below by steps.
        ratio = log_words - self._log_arrays(level) - self._log_distinct(level)
        longest = self._log_longest()
        share: Expression = -60.0
        previous = -60.0
        for step in _SHARE_STEPS:
            reached = self.new_variable("binary")
            self.require(ratio <= step - APART + longest * reached)
            here = log2(1 - 2.0**-step)
            share = share + (here - previous) * reached
            previous = here
        return self.power(name, log_words + share, unit, given)

    # Cycles

    def _cycles(self) -> Any:
        cycles = self.new_variable("continuous")
        self.model.rows.add(cycles >= self.power("compute", self.log_compute(), self.cycles_unit))
        for level in self._levels:
            entry = self.architecture.levels[level]
            kept = [tensor for tensor in TENSORS if tensor in self.keeping.may[level]]
            for direction, bandwidth in (
                ("read", entry.read_bandwidth_words_per_cycle),
                ("write", entry.write_bandwidth_words_per_cycle),
            ):
                if bandwidth is None:
                    continue
                unit = self.cycles_unit * bandwidth
                words: Expression = 0.0
                for tensor in kept:
                    words = words + self._words(tensor, level, direction, unit)
                self.require(cycles >= words)
        self.floor = cycles
        return cycles

    def _words(self, tensor: Tensor, level: int, direction: str, unit: float) -> Expression:
        """Words of one instance in a direction, in `unit`."""
        name = f"{level} {tensor} {direction}"
        sent = [(self.log_sent(tensor, child, level), arc) for child, arc in self.keeps.into(tensor, level)]
        total: Expression = 0.0
        if direction == "read":
            for child, arc in self.keeps.into(tensor, level):
                networks = range(child + 2, level + 1)
                total = total - self.links.words_rounded(tensor, networks, _ROUNDED_READ / unit, arc)
        if direction == "write":
            if level != self._levels[-1]:
                fills, kept = self.log_filled(tensor, level), self.keeps.kept[level, tensor]
                total = total + self._moved(f"{name} fills", tensor, level, fills, unit, kept)
                network = range(level + 1, level + 2)
                total = total - self.links.words_rounded(tensor, network, _ROUNDED_FILL / unit, kept)
            if tensor == "outputs":
                total = total + sum(self.power(name, words, unit, arc) for words, arc in sent)
            return total
        return total + sum(self._moved(name, tensor, level, words, unit, arc) for words, arc in sent)

    def _moved(
        self, name: str, tensor: Tensor, level: int, words: Expression, unit: float, given: Expression
    ) -> Expression:
        """Words read or filled of those that move, of outputs without first arrivals."""
        if tensor != "outputs":
            return self.power(name, words, unit, given)
        if self._holds_all_outputs(level):
            return self.power(name, words, unit, given) - self.output_words() / unit * given
        # Without a constant to take off, whether any move again is what is counted: half of the words at least.
        again = self.new_variable("binary")
        self.require(words - self._log_distinct(level) <= 1 - APART + self._log_longest() * again)
        return self.power(name, words - 1 - 60 * (1 - again), unit, given)
