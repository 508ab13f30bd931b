"""Every term of the program on the network model, where it is the one that counts: none too large, none too small.

The judge is the closed form of a nest's loads, which `tests/nocsim/test_floor_rows.py` compares with its transfers.
"""

from __future__ import annotations

import random

import pytest

from cosa.analytical.constants import Constants
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from tests.cosa.bound_cases import Meshed, Tiles, meshed, sizes
from tests.nocsim.nests import architecture
from tests.nocsim.test_floor_rows import HANDS, by_hand, drawn, floor_cycles

CASES: tuple[tuple[int, int, float, float], ...] = (
    (0, 0, 1.0, 0.976),
    (0, 1, 0.715, 0.721),
    (0, 2, 0.834, 0.821),
    (1, 0, 1.0, 0.943),
    (2, 0, 0.968, 0.87),
    (2, 1, 1.0, 0.972),
    (2, 2, 1.0, 0.93),
    (3, 0, 1.0, 1.0),
    (3, 2, 1.0, 1.0),
    (4, 2, 0.73, 0.732),
    (5, 0, 0.855, 0.896),
    (5, 1, 0.962, 0.911),
    (5, 2, 0.981, 0.972),
    (6, 0, 1.0, 0.991),
    (7, 0, 0.911, 0.928),
    (7, 1, 1.0, 0.982),
    (8, 0, 1.0, 0.957),
    (10, 0, 1.0, 0.927),
    (10, 2, 1.0, 0.975),
    (11, 0, 0.979, 0.954),
    (15, 0, 0.992, 0.989),
    (16, 2, 0.873, 0.919),
    (17, 1, 1.0, 0.94),
)
"""Seed, number of the tiling, and the shares of the least floor and of the least predicted cycles that the program has.

Found with `scripts/mutate_bounds.py`: for each of its mutants one that notices. They are those of `meshed`: where that
changes, others must be found. A program that sees more is better; the shares then become larger.
"""


BINDING: dict[str, tuple[tuple[int | str, float, float], ...]] = {
    "weights": (("weights", 1.0, 1.0),),
    "DRAM out": (
        (7, 1.0, 0.993),
        (9, 1.0, 0.953),
        (75, 0.991, 0.98),
        ("taps side by side in a PE", 0.968, 0.969),
    ),
    "buffer out after the start": (
        (287, 0.973, 0.953),
        (4629, 0.95, 0.921),
    ),
    "buffer out": (
        (3, 1.0, 0.882),
        (38, 0.983, 0.95),
        (4, 0.972, 0.912),
        (64, 0.923, 0.915),
    ),
    "DRAM bytes": (
        (5, 1.0, 0.968),
        (20, 1.0, 0.979),
        (40, 1.0, 0.938),
        (51, 1.0, 0.937),
    ),
    "compute": (
        (6, 0.989, 0.954),
        (27, 0.987, 0.945),
        (25, 0.986, 0.96),
        (33, 0.983, 0.958),
    ),
    "link": (
        (87, 1.0, 0.929),
        (1373, 1.0, 0.96),
        (1476, 1.0, 0.919),
        (1764, 1.0, 0.854),
        (1807, 1.0, 0.99),
        (1836, 1.0, 0.769),
    ),
    "PE in": (
        (266, 1.0, 0.922),
        (289, 1.0, 0.963),
        (314, 1.0, 0.938),
        (338, 1.0, 0.909),
        (341, 1.0, 0.922),
        (491, 1.0, 0.985),
    ),
    "buffer in": (
        (713, 0.956, 0.968),
        (1023, 0.952, 0.933),
        (747, 0.95, 0.947),
        (2489, 0.948, 0.962),
        (1450, 0.942, 0.906),
        (385, 0.941, 0.913),
    ),
    "DRAM in": (
        (4285, 0.996, 0.993),
        (2076, 0.986, 0.884),
        (5845, 0.984, 0.974),
        (5637, 0.973, 0.966),
        (3361, 0.964, 0.758),
        (5506, 0.962, 0.685),
    ),
}
"""By row of the floor: tilings of schedules drawn or made by hand whose best nest it bounds; the shares as above."""


@pytest.mark.parametrize("row", BINDING)
def test_each_row_of_the_floor_where_it_is_the_largest(row: str) -> None:
    for name, least_floor, least_cycles in BINDING[row]:
        schedule, rate = (by_hand(name), None) if isinstance(name, str) else drawn(name)
        view = Meshed(schedule.layer, schedule.architecture, Constants(dram_bytes_per_cycle=rate))
        point = view.model.neighbourhood.of_nest(schedule.nest)
        floor, cycles = view.costs(point)
        says_floor, says_cycles = view.says(point)
        assert says_floor is not None and says_cycles is not None, name
        assert least_floor * floor - 1e-2 <= says_floor <= floor + 1e-2, name
        assert least_cycles * cycles - 1e-2 <= says_cycles <= cycles + 1e-2, name


HAND_SHARES: dict[str, tuple[float, float]] = {
    "weights": (1.0, 1.0),
    "taps side by side in a PE": (0.968, 0.969),
    "outputs and taps over the mesh": (0.45, 0.452),
    "the buffer after the start": (0.991, 0.994),
    "much of the buffer after the start": (0.929, 0.955),
    "sums of PEs back from DRAM": (1.0, 1.0),
    "sums of PEs back from the buffer": (1.0, 1.0),
    "many sums of PEs back from the buffer": (1.0, 1.0),
    "sums of PEs from a buffer that is changed": (1.0, 1.0),
    "sums of the buffer, few": (1.0, 1.0),
    "sums of the buffer, many": (1.0, 1.0),
    "sums from PE to PE": (1.0, 1.0),
    "inputs at the MACs": (1.0, 0.97),
    "outputs side by side around taps": (0.546, 0.559),
    "a window in a PE that spreads something else": (0.997, 0.978),
    "a window that slides once": (0.999, 0.997),
    "a window that slides under channels": (1.0, 0.997),
    "channels inside of a slide": (0.976, 0.986),
    "kernels inside of a slide": (0.991, 0.99),
    "taps inside of a slide": (0.999, 0.957),
    "taps outside of a slide": (1.0, 0.967),
    "a dilated window that slides": (0.999, 0.999),
    "a window with gaps that slides": (0.999, 0.996),
    "a window of few steps": (1.0, 0.999),
    "a wide window of two steps": (1.0, 0.999),
    "a window of two loops": (1.0, 0.999),
    "a window that channels interrupt": (0.999, 0.999),
    "taps inside while outputs stay": (1.0, 0.997),
    "taps side by side between gaps": (1.0, 0.987),
    "much to compute with the last weights": (0.996, 0.996),
    "much to compute before the first outputs": (1.0, 0.993),
    "a window that comes back": (1.0, 0.996),
    "taps inside of kernels while outputs stay": (1.0, 0.999),
    "inputs at MACs side by side": (1.0, 1.0),
    "two windows that come back": (1.0, 0.935),
}
"""The same shares of the schedules made by hand."""


@pytest.mark.parametrize("name", HANDS)
def test_schedules_made_by_hand(name: str) -> None:
    schedule, (least_floor, least_cycles) = by_hand(name), HAND_SHARES[name]
    view = Meshed(schedule.layer, schedule.architecture, Constants())
    point = view.model.neighbourhood.of_nest(schedule.nest)
    floor, cycles = view.costs(point)
    says_floor, says_cycles = view.says(point)
    assert says_floor is not None and says_cycles is not None
    assert least_floor * floor - 1e-2 <= says_floor <= floor + 1e-2
    assert least_cycles * cycles - 1e-2 <= says_cycles <= cycles + 1e-2
    assert floor <= floor_cycles(schedule)


LOOSE: dict[str, dict[str, float]] = {
    "weights": {
        "global buffer in": 0.744,
        "global buffer out, once PEs have begun": 0.958,
    },
    "taps side by side in a PE": {
        "PEs": 0.997,
        "DRAM out": 0.968,
        "links to the PEs": 0.969,
        "DRAM in": 0.291,
        "one PE in": 0.968,
        "last weights": 0.952,
        "global buffer out, once PEs have begun": 0.969,
        "DRAM bytes": 0.971,
    },
    "outputs and taps over the mesh": {
        "PEs": 0.774,
        "DRAM out": 0.45,
        "links to the PEs": 0.451,
        "DRAM in": 0.443,
        "one PE in": 0.994,
        "last weights": 0.86,
        "global buffer out, once PEs have begun": 0.463,
        "DRAM bytes": 0.45,
    },
    "the buffer after the start": {
        "global buffer out, once PEs have begun": 0.991,
    },
    "much of the buffer after the start": {
        "global buffer out, once PEs have begun": 0.929,
    },
    "sums of PEs back from DRAM": {
        "one PE in": 0.576,
        "global buffer out, once PEs have begun": 0.319,
        "DRAM bytes": 0.357,
    },
    "sums of PEs back from the buffer": {
        "one PE in": 0.643,
        "global buffer out, once PEs have begun": 0.564,
    },
    "many sums of PEs back from the buffer": {
        "one PE in": 0.537,
        "global buffer out, once PEs have begun": 0.804,
    },
    "sums of PEs from a buffer that is changed": {
        "one PE in": 0.643,
        "global buffer out, once PEs have begun": 0.484,
    },
    "sums of the buffer, few": {
        "one PE in": 0.707,
        "global buffer out, once PEs have begun": 0.381,
        "DRAM bytes": 0.478,
    },
    "sums of the buffer, many": {
        "one PE in": 0.595,
        "global buffer out, once PEs have begun": 0.46,
        "DRAM bytes": 0.357,
    },
    "sums from PE to PE": {
        "global buffer out, once PEs have begun": 0.864,
    },
    "inputs at the MACs": {
        "PEs": 0.983,
        "DRAM out": 0.859,
        "global buffer out": 0.99,
        "global buffer in": 0.749,
        "DRAM in": 0.72,
        "global buffer out, once PEs have begun": 0.657,
    },
    "outputs side by side around taps": {
        "PEs": 0.948,
        "DRAM out": 0.546,
        "links to the PEs": 0.542,
        "DRAM in": 0.891,
        "one PE in": 0.428,
        "global buffer out, once PEs have begun": 0.866,
        "DRAM bytes": 0.428,
    },
    "a window in a PE that spreads something else": {
        "PEs": 0.997,
        "DRAM out": 0.849,
        "links to the PEs": 0.941,
        "DRAM in": 0.924,
        "one PE in": 0.48,
        "last weights": 0.862,
        "global buffer out, once PEs have begun": 0.954,
        "DRAM bytes": 0.458,
    },
    "a window that slides once": {
        "links to the PEs": 0.983,
        "global buffer out": 0.973,
        "one PE in": 0.96,
        "last weights": 0.954,
        "global buffer out, once PEs have begun": -0.478,
    },
    "a window that slides under channels": {
        "links to the PEs": 0.976,
        "global buffer out": 0.972,
        "DRAM in": 0.952,
        "one PE in": 0.853,
        "global buffer out, once PEs have begun": -0.007,
    },
    "channels inside of a slide": {
        "DRAM out": 0.976,
        "global buffer in": 0.95,
        "global buffer out, once PEs have begun": 0.133,
        "DRAM bytes": 0.974,
    },
    "kernels inside of a slide": {
        "DRAM out": 0.991,
        "links to the PEs": 0.988,
        "global buffer out": 0.966,
        "global buffer in": 0.982,
        "one PE in": 0.966,
        "global buffer out, once PEs have begun": -0.039,
        "DRAM bytes": 0.991,
    },
    "taps inside of a slide": {
        "links to the PEs": 0.885,
        "global buffer out": 0.719,
        "global buffer in": 0.999,
        "one PE in": 0.689,
        "global buffer out, once PEs have begun": -0.877,
        "DRAM bytes": 0.999,
    },
    "taps outside of a slide": {
        "DRAM out": 0.998,
        "links to the PEs": 0.845,
        "global buffer out": 0.814,
        "global buffer in": 0.998,
        "DRAM in": 0.952,
        "one PE in": 0.596,
        "global buffer out, once PEs have begun": -0.368,
        "DRAM bytes": 0.998,
    },
    "a dilated window that slides": {
        "links to the PEs": 0.998,
        "global buffer out": 0.996,
        "one PE in": 0.995,
        "last weights": 0.954,
        "global buffer out, once PEs have begun": -0.338,
    },
    "a window with gaps that slides": {
        "links to the PEs": 0.966,
        "global buffer out": 0.961,
        "one PE in": 0.936,
        "last weights": 0.954,
        "global buffer out, once PEs have begun": -0.441,
    },
    "a window of few steps": {
        "DRAM out": 0.999,
        "links to the PEs": 0.999,
        "global buffer out": 0.998,
        "global buffer in": 0.998,
        "one PE in": 0.998,
        "global buffer out, once PEs have begun": 0.877,
        "DRAM bytes": 0.999,
    },
    "a wide window of two steps": {
        "DRAM out": 0.999,
        "links to the PEs": 0.999,
        "global buffer out": 0.986,
        "global buffer in": 0.977,
        "one PE in": 0.996,
        "global buffer out, once PEs have begun": 0.931,
        "DRAM bytes": 0.999,
    },
    "a window of two loops": {
        "DRAM out": 0.999,
        "links to the PEs": 0.999,
        "one PE in": 0.998,
        "DRAM bytes": 0.999,
    },
    "a window that channels interrupt": {
        "DRAM out": 0.999,
        "links to the PEs": 0.999,
        "one PE in": 0.911,
        "DRAM bytes": 0.999,
    },
    "taps inside while outputs stay": {
        "DRAM out": 0.963,
        "links to the PEs": 0.963,
        "one PE in": 0.591,
        "last weights": 0.5,
        "global buffer out, once PEs have begun": 0.474,
        "DRAM bytes": 0.958,
    },
    "taps side by side between gaps": {
        "global buffer out": 0.5,
        "global buffer in": 0.75,
        "DRAM in": 0.958,
        "one PE in": 0.937,
        "global buffer out, once PEs have begun": 0.928,
        "DRAM bytes": 0.994,
    },
    "much to compute with the last weights": {
        "PEs": 0.996,
        "DRAM out": 0.994,
        "links to the PEs": 0.997,
        "DRAM in": 0.994,
        "one PE in": 0.978,
        "global buffer out, once PEs have begun": 0.982,
    },
    "much to compute before the first outputs": {
        "global buffer out": 0.25,
        "global buffer in": 0.222,
        "DRAM in": 0.95,
        "last weights": 0.943,
        "global buffer out, once PEs have begun": 0.892,
    },
    "a window that comes back": {
        "DRAM out": 0.965,
        "links to the PEs": 0.974,
        "global buffer in": 0.4,
        "one PE in": 0.962,
        "DRAM bytes": 0.988,
    },
    "taps inside of kernels while outputs stay": {
        "DRAM out": 0.999,
        "links to the PEs": 0.999,
        "one PE in": 0.91,
        "last weights": 0.5,
        "global buffer out, once PEs have begun": 0.772,
        "DRAM bytes": 0.987,
    },
    "inputs at MACs side by side": {
        "DRAM in": 0.641,
        "global buffer out, once PEs have begun": 0.92,
    },
    "two windows that come back": {
        "DRAM out": 0.777,
        "links to the PEs": 0.818,
        "global buffer in": 0.4,
        "one PE in": 0.6,
        "DRAM bytes": 0.909,
    },
}
"""Shares of rows of the floor of the schedules made by hand that the program has; of all others it has the whole."""


@pytest.mark.parametrize("name", HANDS)
def test_each_row_of_the_floor_of_schedules_made_by_hand(name: str) -> None:
    """Also rows that are not the largest: in another schedule they may be."""
    schedule = by_hand(name)
    view = Meshed(schedule.layer, schedule.architecture, Constants(dram_bytes_per_cycle=1.0))
    rows = list(view.floors(view.model.neighbourhood.of_nest(schedule.nest)))
    assert len(rows) >= 9
    for row, judged, says in rows:
        assert LOOSE.get(name, {}).get(row, 0.9999) * judged - 1e-2 <= says <= judged + 1e-2, row


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


def test_energy_of_a_window_with_gaps_is_that_of_its_box() -> None:
    """Of six positions in a box of eight four are new with each step of two, and the strip of a box is two."""
    data = architecture([["weights", "inputs", "outputs"]], buffer_keeps=["outputs"]).model_dump(mode="json")
    for at, entry in enumerate(data["levels"]):
        entry["vector_access_energy_pj"] = float(at == 0)
    view = Meshed(Layer.from_data(sizes("P16 R3 K4", dilation_w=3)), Architecture.from_data(data), Constants())
    judged, says = view.energies(Tiles.of("P2 R3", "P8 / K4", "").point())
    assert says is not None
    assert 0.952 * judged <= says <= judged


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


@pytest.mark.parametrize("first", [0, *(pytest.param(at, marks=pytest.mark.slow) for at in range(5, 205, 20))])
def test_no_load_of_a_nest_is_less_than_the_program_says(first: int) -> None:
    """One by one: in the sums a load too large could hide behind one that is too small."""
    for seed in range(first, first + (20 if first else 5)):
        view = meshed(seed)
        for _, point in zip(range(2), view.tilings(random.Random(seed), 1500), strict=False):
            for load, judged, says in view.loads(point):
                assert says <= judged + 1e-2, (seed, load, point)
