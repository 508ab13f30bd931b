"""CoSA's program as its public code at first release states it, on its own machine; nothing of the product is used.

One binary X for each prime factor of each bound, level and kind of loop, where a bound of 1 has the one factor 1. The
global buffer is as many order slots as there are factors, at most one factor a slot, innermost first; Y says whether a
factor that moves a tensor stands at a slot or further in. Whether the window slides is a binary for each axis: a factor
of P (Q) stands inside a PE. Only the products (Y with X in the traffic, sliding with X in the halo) are written as
linear rows, for HiGHS takes none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2
from typing import Any

import highspy

DIMS = "RSPQCKN"
MOVES = {"weights": "RSCK", "inputs": "PQCN", "outputs": "PQKN"}
"""The code's constant A: R and S do not move inputs; their halo is a matter of the input buffer alone."""

REGISTERS, ACCUMULATION, WEIGHT, INPUT, GLOBAL, DRAM = range(6)


@dataclass(frozen=True)
class Machine:
    """Words of the buffers from the registers to the global one, and the instances under each."""

    words: tuple[int, int, int, int, int] = (1, 64, 16384, 4096, 65536)
    fanouts: tuple[int, int, int, int, int] = (1, 8, 1, 8, 16)

    @property
    def room(self) -> dict[tuple[int, str], int]:
        """Words of a buffer that a tensor may take; the code's constant B is what stands here at all."""
        return {
            (REGISTERS, "weights"): self.words[REGISTERS],
            (ACCUMULATION, "outputs"): self.words[ACCUMULATION],
            (WEIGHT, "weights"): self.words[WEIGHT],
            (INPUT, "inputs"): self.words[INPUT],
            (GLOBAL, "inputs"): self.words[GLOBAL] // 4,
            (GLOBAL, "outputs"): self.words[GLOBAL] * 3 // 4,
        }


SIMBA = Machine()


class QuietHighs(highspy.Highs):
    """HiGHS prints a banner unless its output is off before callbacks are set up."""

    def enableCallbacks(self) -> None:  # noqa: N802
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()


def factors_of(bound: int) -> list[int]:
    """Prime factors of a bound; [1] of 1."""
    found, prime = [], 2
    while bound > 1:
        while bound % prime == 0:
            found.append(prime)
            bound //= prime
        prime += 1
    return found or [1]


def original_optimum(
    bounds: Mapping[str, int],
    strides: Sequence[int] = (1, 1),
    machine: Machine = SIMBA,
    *,
    gap: float = 0.0,
    seconds: float = 60.0,
) -> tuple[float, float]:
    """Least objective found and the proven bound; `strides` are those of P and Q.

    `gap` is relative; a run that is cut off by the time limit has the two apart.
    """
    model = QuietHighs()
    for option, setting in (("threads", 1), ("mip_rel_gap", gap), ("time_limit", seconds)):
        model.setOptionValue(option, setting)
    for tolerance in ("mip_abs_gap", "mip_feasibility_tolerance"):  # a loop counts tenfold: 1e-6 is seen in the optimum
        model.setOptionValue(tolerance, 1e-9)
    factors = [(dim, factor) for dim in DIMS for factor in factors_of(bounds.get(dim, 1))]
    slots = len(factors)
    levels = DRAM + slots  # the global buffer's slots stand for it
    outermost = levels - 1
    level_of = [*range(GLOBAL), *[GLOBAL] * slots, DRAM]
    stride_of = dict(zip("PQ", strides, strict=True))
    x: dict[tuple[int, int, str], Any] = {}
    for number in range(len(factors)):
        for place in range(levels):
            for kind in ("spatial", "temporal"):
                x[place, number, kind] = model.addBinary()
        model.addConstr(sum(x[place, number, kind] for place in range(levels) for kind in ("spatial", "temporal")) == 1)

    def total(places: Sequence[int], kinds: Sequence[str], weight: Any) -> Any:
        """Sum of `weight(dimension, factor)` over what stands at some places."""
        terms = [
            weight(dim, factor) * x[place, number, kind]
            for number, (dim, factor) in enumerate(factors)
            if weight(dim, factor)
            for place in places
            for kind in kinds
        ]
        return sum(terms, 0.0 * x[0, 0, "spatial"])

    def log(dim: str, factor: int) -> float:
        return log2(factor)

    both = ("spatial", "temporal")
    ordered = range(GLOBAL, GLOBAL + slots)
    for slot in ordered:
        model.addConstr(sum(x[slot, number, kind] for number in range(len(factors)) for kind in both) <= 1)
    for level in range(DRAM + 1):
        places = [place for place in range(levels) if level_of[place] == level]
        model.addConstr(total(places, ("spatial",), log) <= log2((*machine.fanouts, 1)[level]) + 1e-6)

    # Tiles: P and Q count their stride once for each factor; the halo is the input buffer's alone.
    halos = []
    for taps, outputs in (("R", "P"), ("S", "Q")):
        inside = [
            x[place, number, kind]
            for number, (dim, _) in enumerate(factors)
            if dim == outputs
            for place in range(GLOBAL)
            for kind in both
        ]
        slides = model.addBinary()
        for one in inside:
            model.addConstr(slides >= one)
        model.addConstr(slides <= sum(inside))
        for number, (dim, factor) in enumerate(factors):
            if dim != taps:
                continue
            below_dram = sum(x[place, number, kind] for place in range(outermost) for kind in both)
            product = model.addBinary()  # slides times below_dram
            model.addConstr(product <= slides)
            model.addConstr(product <= below_dram)
            model.addConstr(product >= slides + below_dram - 1)
            halos.append(log2(factor) * below_dram + (1 - log2(factor)) * product)

    def tile(level: int, tensor: str) -> Any:
        def words(dim: str, factor: int) -> float:
            stride = stride_of.get(dim, 1) if tensor == "inputs" else 1
            return log2(stride * factor) if dim in MOVES[tensor] else 0.0

        found = total([place for place in range(levels) if level_of[place] <= level], both, words)
        return found + sum(halos) if (level, tensor) == (INPUT, "inputs") else found

    utilisation: Any = 0.0
    for (level, tensor), room in machine.room.items():
        model.addConstr(tile(level, tensor) <= log2(room) + 1e-6)
        if level < GLOBAL:
            utilisation = utilisation + (1.01 if level == WEIGHT else 1.0) * tile(level, tensor)

    traffic: Any = 0.0
    for tensor, moving in MOVES.items():
        size = sum(
            (0.8 + 0.04 * level) * total([level], both, lambda dim, factor: log2(factor) * (dim in moving))  # noqa: B023
            for level in range(GLOBAL)
        )
        iterations: Any = 0.0
        before: Any = None
        for slot in ordered:
            here = sum(x[slot, number, "temporal"] for number, (dim, _) in enumerate(factors) if dim in moving)
            moves = model.addBinary()
            model.addConstr(moves >= here)
            if before is not None:
                model.addConstr(moves >= before)
            before = moves
            longest = log2(max(factor for _, factor in factors)) or 1.0
            counted = model.addVariable(lb=0.0, ub=longest)  # the slot's loop times `moves`; minimised
            model.addConstr(counted >= total([slot], ("temporal",), lambda dim, f: log2(f) * (dim in moving)))  # noqa: B023
            model.addConstr(counted >= total([slot], ("temporal",), log) - longest * (1 - moves))
            iterations = iterations + counted
        outside = total([outermost], ("temporal",), log)
        traffic = traffic + 0.99 * size + 0.99 * total(list(ordered), ("spatial",), log) + iterations
        traffic = traffic + (1.01 if tensor == "weights" else 1.0) * outside
    compute = total(list(range(levels)), ("temporal",), log)
    model.minimize(10 * compute + traffic - 0.1 * utilisation)
    info = model.getInfo()
    return info.objective_function_value, info.mip_dual_bound
