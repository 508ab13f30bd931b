"""The program as the paper states it: one binary for every prime factor, level or order slot, and kind of loop.

X is `assignment`: a prime factor (equal ones are told apart) stands at exactly one place. The ordered level has a slot
for each prime factor, innermost first, with at most one factor a slot; the slots are the loop order. Y, one binary a
tensor and slot, says whether a loop that moves the tensor stands at that slot or further in; from there on loops count
as iterations. Products of Y and X, and of the halo of the published code, are written linearly, for HiGHS takes none.

Tiles, shares and objectives are those of the aggregated program, written over sums of X. The optimum is the same; the
symmetry between equal primes and between slots makes it much slower to solve.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2, prod
from typing import Any

from cosa.mip.aggregated import Program
from cosa.mip.quantities import Expression
from cosa.mip.space import Factors
from cosa.model.layer import DIMS, TENSORS, Dim, Tensor
from cosa.model.mapping_rules import KINDS, LoopKind


@dataclass(frozen=True)
class Place:
    """Where a prime factor may stand; `slot` counts the order slots of the ordered level, innermost first."""

    level: int
    kind: LoopKind
    slot: int | None = None


class PaperProgram(Program):
    """The paper's program of one layer on one architecture; see `Program` for the parameters.

    `relevance` is the paper's constant A (does a dimension move a tensor), `storage` its constant B (does a level keep
    a tensor); `assignment` is X, keyed by (place, dimension, number of the prime factor), `moving` is Y.
    """

    def _add_counts(self) -> None:
        self.relevance: dict[tuple[Dim, Tensor], bool] = {
            (dim, tensor): dim in self.rules.relevant(tensor) for dim in DIMS for tensor in TENSORS
        }
        self.storage: dict[tuple[int, Tensor], bool] = {
            (level, tensor): tensor in entry.keeps
            for level, entry in enumerate(self.architecture.levels)
            for tensor in TENSORS
        }
        self.prime_factors: dict[Dim, list[int]] = {
            dim: [prime for prime, times in primes.items() for _ in range(times)]
            for dim, primes in self.factors.items()
        }
        self.slots = sum(map(len, self.prime_factors.values()))
        self.assignment: dict[tuple[Place, Dim, int], Any] = {}
        for dim, primes in self.prime_factors.items():
            for number, prime in enumerate(primes):
                places = self._places(prime)
                for place in places:
                    self.assignment[place, dim, number] = self.new_variable("binary")
                self.require(sum(self.assignment[place, dim, number] for place in places) == 1)
        for (place, dim, number), binary in self.assignment.items():
            key = place.level, dim, self.prime_factors[dim][number], place.kind
            self.counts[key] = self.counts[key] + binary if key in self.counts else 0.0 + binary

    def _places(self, prime: int) -> list[Place]:
        found = []
        for level in range(len(self.architecture.levels)):
            for kind in KINDS:
                if kind == "spatial" and prime > prod(self.architecture.fanout(level)):
                    continue
                if kind == "temporal" and level == self.order_level:
                    found += [Place(level, kind, slot) for slot in range(self.slots)]
                else:
                    found.append(Place(level, kind))
        return found

    def _at(self, slot: int) -> list[tuple[Dim, int, Any]]:
        """(dimension, prime, binary) of whatever may stand at a slot."""
        place = Place(self.order_level, "temporal", slot)
        return [
            (dim, prime, self.assignment[place, dim, number])
            for dim, primes in self.prime_factors.items()
            for number, prime in enumerate(primes)
        ]

    def _add_order(self) -> None:
        self.moving: dict[tuple[Tensor, int], Any] = {}
        for slot in range(self.slots):
            here = self._at(slot)
            self.require(sum(binary for _, _, binary in here) <= 1)
            for tensor in TENSORS:
                moves = self.new_variable("binary")
                relevant = sum(binary for dim, _, binary in here if self.relevance[dim, tensor])
                before = self.moving[tensor, slot - 1] if slot else 0
                self.require(moves >= relevant)
                self.require(moves >= before)
                if self.exact_order:
                    self.require(moves <= before + relevant)
                self.moving[tensor, slot] = moves
        if self.exact_order:
            self._add_modes()
            self._keep_to_modes()

    def _keep_to_modes(self) -> None:
        """The slots follow the chosen mode: each prefix of its innermost loops stands inside everything else."""
        for mode, chosen in zip(self.modes, self.mode_binaries, strict=True):
            for length in range(1, len(mode.innermost) + 1):
                prefix = mode.innermost[:length]
                others: Any = None
                for slot in range(self.slots):
                    here = self._at(slot)
                    if others is not None:
                        self.require(sum(binary for dim, _, binary in here if dim in prefix) + others <= 2 - chosen)
                    before, others = others, self.new_variable("binary")
                    self.require(others >= sum(binary for dim, _, binary in here if dim not in prefix))
                    if before is not None:
                        self.require(others >= before)

    def log_iterations(self, tensor: Tensor) -> Expression:
        """See `Quantities`: the loops at slots from the innermost one on that moves the tensor."""
        total: Expression = 0.0
        longest = log2(max((prime for primes in self.prime_factors.values() for prime in primes), default=1))
        for slot in range(self.slots):
            here, moves = self._at(slot), self.moving[tensor, slot]
            bound = sum(log2(prime) * binary for _, prime, binary in here)
            own = sum(log2(prime) * binary for dim, prime, binary in here if self.relevance[dim, tensor])
            counted = self.new_variable("continuous", longest)
            self.require(counted >= own)
            self.require(counted >= bound - longest * (1 - moves))
            if self.exact_order:
                self.require(counted <= bound)
                self.require(counted <= longest * moves)
            total = total + counted
        return total

    def decode(self) -> Factors:
        """The solution that the model's variables hold; factors of one dimension are one loop, at the innermost slot.

        Joining them costs nothing: a loop further out that is joined to one further in moves what that one moves.
        """
        bounds: dict[tuple[int, Dim, LoopKind], int] = {}
        slots: dict[Dim, int] = {}
        for (place, dim, number), binary in self.assignment.items():
            if round(binary.value):
                key = place.level, dim, place.kind
                bounds[key] = bounds.get(key, 1) * self.prime_factors[dim][number]
                if place.slot is not None:
                    slots[dim] = min(place.slot, slots.get(dim, place.slot))
        return Factors(bounds, tuple(sorted(slots, key=lambda dim: slots[dim])))
