"""Every term of the program on the analytical model, where it is the one that counts: none too large, none too small.

`scripts/mutate_bounds.py` changes each term by a fifth, and leaves it out; these tests are what must notice.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.certificate.generator import generate
from tests.cosa.bound_cases import Analytical, Tiles, level, machine, random_tiles, sizes


def without_windows(rng: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """A layer of powers of two on levels of words without blocks, few of which cost anything.

    No axis has both outputs and taps, MACs do not stand side by side, and ports for reads are where no instance counts
    its distinct outputs: what the program only bounds does not occur.
    """
    dims = rng.sample("PQCKNG", rng.choice((2, 3, 3, 4)))
    layer = sizes(" ".join(f"{dim}{rng.choice((2, 4, 8))}" for dim in dims))
    count = rng.choice((2, 3, 3, 4))
    levels, instances = [], 1
    for at in range(count):
        outermost = at == count - 1
        keeps = "wio" if outermost or rng.random() < 0.4 else "".join(rng.sample("wio", rng.choice((1, 2))))
        more: dict[str, Any] = {}
        if not outermost and rng.random() < 0.3:
            more["may_keep"] = "".join(tensor for tensor in "wio" if tensor not in keeps)
        if rng.random() < 0.5:
            more["pj"] = rng.choice((1, 7))
        if rng.random() < 0.3:
            more["write"] = rng.choice((0.3, 1, 2.7))
        if rng.random() < 0.3 and (outermost or "o" not in keeps + more.get("may_keep", "")):
            more["read"] = rng.choice((0.3, 1, 2.7))
        if at and rng.random() < 0.5:
            more["fanout"] = rng.choice((2, 4, {"x": 2, "y": 4}))
        levels.append(level(keeps, None if outermost else rng.choice((8, 20, 64)), **more))
    for entry in reversed(levels):
        if instances > 1 and rng.random() < 0.3:
            entry["cluster_size"] = 2
        instances *= {"4": 4, "2": 2}.get(str(entry.get("fanout", 1)), 8 if "fanout" in entry else 1)
    return layer, machine(*levels)


@pytest.mark.parametrize("first", [0, 12, *(pytest.param(at, marks=pytest.mark.slow) for at in range(24, 240, 12))])
def test_without_windows_a_tiling_costs_what_the_program_says(first: int) -> None:
    for seed in range(first, first + 12):
        rng = random.Random(seed)
        view = Analytical(*without_windows(rng), "chosen")
        for _, tiles in zip(range(4), random_tiles(rng, view, 2000), strict=False):
            seen = view.look(tiles)
            assert seen.program_energy_pj == pytest.approx(seen.energy_pj, rel=1e-5, abs=0.01), (seed, tiles)
            assert seen.program_cycles is not None
            # Cycles are whole.
            assert seen.cycles - 1 - 1e-4 < seen.program_cycles <= seen.cycles + 1e-4, (seed, tiles)


@pytest.mark.parametrize("first", [0, 20, *(pytest.param(at, marks=pytest.mark.slow) for at in range(40, 400, 20))])
def test_no_nest_costs_less_than_the_program_says(first: int) -> None:
    for seed in range(first, first + 20):
        rng, pair = random.Random(seed), generate(seed)
        view = Analytical(pair.layer, pair.architecture, pair.bypass)
        for _, tiles in zip(range(3), random_tiles(rng, view, 1000), strict=False):
            seen = view.look(tiles)
            assert seen.program_cycles is not None and seen.program_energy_pj is not None, (seed, tiles)
            assert seen.program_cycles <= seen.cycles * (1 + 1e-6) + 1e-4, (seed, tiles)
            assert seen.program_energy_pj <= seen.energy_pj * (1 + 1e-6) + 1e-3, (seed, tiles)
