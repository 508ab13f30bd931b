"""Which constraints tilings break: what to say where a search has found no valid mapping."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cosa.analytical.batch import BatchEvaluator
from cosa.mappers.space import MapSpace, stream
from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, TENSORS, Layer

DRAWS = 20_000
_DRAWS_A_BLOCK = 20_000
_NAMED = 4
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class BrokenShares:
    """How many of `draws` tilings break each constraint; one that breaks several counts in each of them.

    `fanouts`, `capacities`: by level, innermost first, of those with a fan-out and a capacity; `limits`: by name.
    `any_fanout`, `any_capacity`: tilings that break at least one of them; `valid`: those that break nothing.
    """

    draws: int
    fanouts: dict[str, int]
    capacities: dict[str, int]
    limits: dict[str, int]
    any_fanout: int
    any_capacity: int
    valid: int

    def text(self) -> str:
        """The constraints broken most, as a message says it."""
        named = [(f"{level}'s capacity", count) for level, count in self.capacities.items()]
        named += [(f"{level}'s fan-out", count) for level, count in self.fanouts.items()]
        named += [(f"the limit {name}", count) for name, count in self.limits.items()]
        worst = sorted(((what, count) for what, count in named if count), key=lambda entry: -entry[1])[:_NAMED]
        shares = ", ".join(f"{what} in {_percent(count, self.draws)}" for what, count in worst)
        return f"broken most: {shares} of {self.draws:,} tilings drawn; {_percent(self.valid, self.draws)} break none"


def _percent(count: int, of: int) -> str:
    """A share; 0 % and 100 % only where they are exact."""
    share = 100 * count / of
    return f"{share:.0f} %" if share in (0, 100) else f"{min(max(share, 0.1), 99.9):.1f} %"


def broken_shares(layer: Layer, architecture: Architecture, draws: int = DRAWS, seed: int = 0) -> BrokenShares:
    """Draw tilings, uniform over all ordered factorisations of every bound, and count what each breaks.

    A tiling breaks a fan-out if none of the ways to lay its loops along x and y fits, and a capacity if the tiles kept
    there, bounding boxes in words, exceed it together.
    """
    from cosa.mappers import kernel

    space, state = MapSpace.of(BatchEvaluator(layer, architecture)), stream(seed, 0)
    total = Counter[tuple[str, str]]()
    for first in range(0, draws, _DRAWS_A_BLOCK):
        factors = np.ones((min(_DRAWS_A_BLOCK, draws - first), len(DIMS), len(space.slot_level)), np.int64)
        kernel.draw_tilings(state, space.primes, factors)
        found = {
            "fanouts": _fanouts_broken(space, factors),
            "capacities": _capacities_broken(space, factors),
            "limits": _limits_broken(space, factors),
        }
        anything = np.zeros(len(factors), np.bool_)
        for kind, entries in found.items():
            any_of_kind = np.zeros(len(factors), np.bool_)
            for name, broken in entries.items():
                total[kind, name] += int(broken.sum())
                any_of_kind |= broken
            total["any", kind] += int(any_of_kind.sum())
            anything |= any_of_kind
        total["any", "valid"] += int((~anything).sum())

    def by_name(kind: str) -> dict[str, int]:
        return {name: count for (of, name), count in total.items() if of == kind}

    return BrokenShares(
        draws,
        by_name("fanouts"),
        by_name("capacities"),
        by_name("limits"),
        total["any", "fanouts"],
        total["any", "capacities"],
        total["any", "valid"],
    )


def _fanouts_broken(space: MapSpace, factors: Array) -> dict[str, Array]:
    from cosa.mappers.kernel import TEMPORAL

    found = {}
    for slot in np.flatnonzero(space.slot_axis != TEMPORAL):
        level = space.slot_level[slot]
        columns, rows = space.fanouts[level]
        along_x = np.ones((len(factors), 1))  # of every choice of dimensions
        for dim in space.dims:
            along_x = np.concatenate([along_x, along_x * factors[:, dim, slot, np.newaxis]], axis=1)
        along_y = along_x[:, -1:] / along_x
        found[space.architecture.levels[level].name] = ~((along_x <= columns) & (along_y <= rows)).any(axis=1)
    return found


def _capacities_broken(space: MapSpace, factors: Array) -> dict[str, Array]:
    found = {}
    for level, entry in enumerate(space.architecture.levels):
        if space.capacities[level] < 0:
            continue
        extent = factors[:, :, space.slot_level <= level].prod(axis=2)
        words = np.zeros(len(factors))
        for tensor in range(len(TENSORS)):
            if not space.keeps[level, tensor]:
                continue
            size = np.ones(len(factors))
            for dims in space.dims_of[tensor]:
                size *= 1 + sum(space.scale_of[tensor, dim] * (extent[:, dim] - 1) for dim in dims if dim >= 0)
            words += size
        found[entry.name] = words > space.capacities[level]
    return found


def _limits_broken(space: MapSpace, factors: Array) -> dict[str, Array]:
    from cosa.mappers.kernel import TEMPORAL

    found: dict[str, Array] = {}
    for limit in space.architecture.limits:
        product = np.ones(len(factors))
        for level, kind in {(space.architecture.level_index(place.level), place.kind) for place in limit.over}:
            chosen = (space.slot_level == level) & ((space.slot_axis == TEMPORAL) == (kind == "temporal"))
            product *= factors[:, :, chosen].prod(axis=(1, 2), dtype=np.float64)
        found[limit.name] = found.get(limit.name, np.zeros(len(factors), np.bool_)) | (product > limit.most)
    return found
