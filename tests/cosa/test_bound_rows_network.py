"""Every term of the program on the network model, where it is the one that counts: none too large, none too small.

The judge is the closed form of a nest's loads, which `tests/nocsim/test_floor_rows.py` compares with its transfers.
"""

from __future__ import annotations

import random

import pytest

from cosa.analytical.constants import Constants
from tests.cosa.bound_cases import Meshed, meshed
from tests.nocsim.test_floor_rows import BY_HAND, by_hand, floor_cycles

CASES: tuple[tuple[int, int, float, float], ...] = (
    (0, 0, 1.0, 0.976),
    (0, 1, 0.715, 0.721),
    (0, 2, 0.834, 0.821),
    (2, 0, 0.968, 0.87),
    (3, 0, 1.0, 1.0),
    (5, 0, 0.855, 0.896),
    (5, 1, 0.962, 0.911),
    (6, 0, 1.0, 0.991),
    (10, 2, 1.0, 0.975),
    (11, 0, 0.979, 0.954),
)
"""Seed, number of the tiling, and the shares of the least floor and of the least predicted cycles that the program has.

Found with `scripts/mutate_bounds.py`: for each of its mutants one that notices. They are those of `meshed`: where that
changes, others must be found. A program that sees more is better; the shares then become larger.
"""


def test_the_program_sees_what_it_saw_and_not_more_than_there_is() -> None:
    for seed in sorted({seed for seed, *_ in CASES}):
        view, rng = meshed(seed), random.Random(seed)
        tilings = [point for _, point in zip(range(3), view.tilings(rng, 1500), strict=False)]
        for _, number, least_floor, least_cycles in (case for case in CASES if case[0] == seed):
            floor, cycles = view.costs(tilings[number])
            says_floor, says_cycles = view.says(tilings[number])
            assert says_floor is not None and says_cycles is not None, (seed, number)
            assert least_floor * floor - 1e-2 <= says_floor <= floor + 1e-2, (seed, number)
            assert least_cycles * cycles - 1e-2 <= says_cycles <= cycles + 1e-2, (seed, number)


@pytest.mark.parametrize("first", [0, *(pytest.param(at, marks=pytest.mark.slow) for at in range(12, 300, 12))])
def test_no_nest_takes_less_than_the_program_says(first: int) -> None:
    for seed in range(first, first + 12):
        view, rng = meshed(seed), random.Random(seed)
        for _, point in zip(range(3), view.tilings(rng, 1500), strict=False):
            floor, cycles = view.costs(point)
            says_floor, says_cycles = view.says(point)
            assert says_floor is not None and says_cycles is not None, (seed, point)
            assert says_floor <= floor + 1e-2, (seed, point)
            assert says_cycles <= cycles + 1e-2, (seed, point)


@pytest.mark.parametrize("name", BY_HAND)
def test_the_program_is_not_above_the_floor_of_a_nest_that_runs_at_its_floor(name: str) -> None:
    schedule = by_hand(name)
    view = Meshed(schedule.layer, schedule.architecture, Constants())
    floor, _ = view.says(view.model.neighbourhood.of_nest(schedule.nest))
    assert floor is not None
    assert 0.4 * floor_cycles(schedule) < floor <= floor_cycles(schedule) + 1e-2
