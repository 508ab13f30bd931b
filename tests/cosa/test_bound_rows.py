"""Every term of the program on the analytical model, where it is the one that counts: none too large, none too small.

`scripts/mutate_bounds.py` changes each term by a fifth, and leaves it out; these tests are what must notice.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.certificate.generator import generate
from tests.cosa.bound_cases import Analytical, Tiles, level, machine, random_tiles, sizes, windows


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


WINDOWS: tuple[tuple[int, int, float, float], ...] = (
    (1, 0, 0.967, 1.0),
    (3, 0, 1.0, 0.609),
    (3, 2, 1.0, 0.655),
    (3, 3, 1.0, 1.0),
    (4, 0, 1.0, 0.991),
    (5, 0, 1.0, 0.741),
    (5, 1, 1.0, 0.635),
    (5, 2, 1.0, 0.686),
    (7, 1, 0.499, 0.599),
    (7, 3, 1.0, 0.941),
    (8, 1, 0.997, 1.0),
    (8, 3, 0.907, 0.934),
    (10, 2, 1.0, 1.0),
    (10, 3, 1.0, 0.92),
    (11, 0, 0.897, 0.875),
    (12, 0, 1.0, 0.7),
    (15, 2, 0.952, 1.0),
    (17, 0, 0.961, 0.982),
    (19, 3, 0.796, 0.817),
    (24, 2, 1.0, 0.998),
    (28, 1, 0.751, 0.834),
    (35, 0, 0.927, 0.612),
    (43, 2, 1.0, 0.9),
    (47, 0, 0.663, 1.0),
    (49, 1, 0.983, 0.616),
    (52, 0, 1.0, 0.905),
    (62, 3, 1.0, 0.794),
    (63, 1, 1.0, 1.0),
    (116, 2, 0.512, 1.0),
    (191, 0, 0.918, 0.442),
)
"""Seed, number of the tiling, and the shares of the least cycles and of the least energy that the program sees.

Found with `scripts/mutate_bounds.py`: for each of its mutants one that notices. They are those of `windows`: where that
changes, others must be found. A program that sees more is better; the shares then become larger.
"""


def test_with_windows_the_program_sees_what_it_saw_and_not_more_than_there_is() -> None:
    for seed in sorted({seed for seed, *_ in WINDOWS}):
        view, rng = windows(seed), random.Random(seed)
        tilings = [tiles for _, tiles in zip(range(4), random_tiles(rng, view, 600), strict=False)]
        for _, number, cycles, energy in (case for case in WINDOWS if case[0] == seed):
            seen = view.look(tilings[number])
            assert seen.program_cycles is not None and seen.program_energy_pj is not None, (seed, number)
            assert cycles * seen.cycles - 1e-3 <= seen.program_cycles <= seen.cycles + 1e-3, (seed, number)
            assert energy * seen.energy_pj - 1e-2 <= seen.program_energy_pj <= seen.energy_pj + 1e-2, (seed, number)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 400, 40))
def test_no_nest_of_a_window_costs_less_than_the_program_says(first: int) -> None:
    for seed in range(first, first + 40):
        view, rng = windows(seed), random.Random(seed)
        for _, tiles in zip(range(4), random_tiles(rng, view, 600), strict=False):
            seen = view.look(tiles)
            assert seen.program_cycles is not None and seen.program_energy_pj is not None, (seed, tiles)
            assert seen.program_cycles <= seen.cycles + 1e-3, (seed, tiles)
            assert seen.program_energy_pj <= seen.energy_pj + 1e-2, (seed, tiles)


def test_arrays_that_are_clusters_are_counted_once() -> None:
    """Two instances of 16 hold outputs, clusters of two: of four sums of an output three need an old value."""
    outputs = level("o", 8, pj=7, cluster_size=2)
    middle = level("wio", 20, fanout=4)
    view = Analytical(sizes("C4 K2"), machine(outputs, middle, level(fanout={"x": 2, "y": 4})))
    seen = view.look(Tiles.of("C2", "C2", "/K2"))
    assert seen.program_energy_pj == pytest.approx(seen.energy_pj, rel=1e-6)
    assert seen.energy_pj == 7 * 2 * (4 + 3)


@pytest.mark.parametrize(("reduced", "share"), [(3, 4.5 / 5), (7, 12.25 / 13), (15, 28.125 / 29), (64, 1.0)])
def test_output_reads_are_known_by_steps(reduced: int, share: float) -> None:
    """Of n sums of an output n - 1 need the old value; the program knows the share at n = 2, 4, 8, 16 and 64."""
    architecture = machine(level("o", 8, pj=1), level(fanout=2))
    seen = Analytical(sizes(f"C{reduced} K2"), architecture).look(Tiles.of(f"C{reduced}", "/K2"))
    assert seen.energy_pj == 2 * (reduced + (reduced - 1))
    assert seen.program_energy_pj == pytest.approx(share * seen.energy_pj, rel=1e-5)
    alone = Analytical(sizes(f"C{reduced} K2"), machine(level("o", 8, pj=1), level())).look(
        Tiles.of(f"K2 C{reduced}", "")
    )
    assert alone.program_energy_pj == pytest.approx(alone.energy_pj, rel=1e-6)


@pytest.mark.parametrize(("reduced", "share"), [(1, 1.0), (2, 1.0), (4, 2 / 3)])
def test_a_port_that_outputs_are_read_from_has_half_of_the_sums_where_there_are_several(
    reduced: int, share: float
) -> None:
    architecture = machine(level("o", 8, read=0.01), level(fanout=2))
    seen = Analytical(sizes(f"C{reduced} K2"), architecture).look(Tiles.of(f"C{reduced}", "/K2"))
    assert seen.cycles == max(reduced, 100 * (reduced - 1))
    assert seen.program_cycles == pytest.approx(share * seen.cycles, rel=1e-5)


def test_macs_cost_what_they_cost() -> None:
    architecture = machine(level(words=99), level(), mac={"word_bits": 16, "energy_pj": 3.0})
    assert Analytical(sizes("K4 C3"), architecture).says(Tiles.of("K4", "C3"))[1] == pytest.approx(36.0)


@pytest.mark.parametrize("keeps", ["w", "i", "o", "wo", "wio"])
def test_tiles_that_fit_are_allowed_and_no_larger_ones(keeps: str) -> None:
    """A tile of K weights and outputs and one input, to the word."""
    largest = 6
    words = sum({"w": largest, "i": 1, "o": largest}[tensor] for tensor in keeps)
    for bound, fits in ((largest, True), (7, keeps == "i")):
        view = Analytical(sizes(f"K{bound}"), machine(level(keeps, words, pj=1.0), level()))
        assert (view.says(Tiles.of(f"K{bound}", ""))[1] is not None) == fits
        optional = level("i" if keeps != "i" else "w", words + 20, may_keep="o", pj=1.0)
        chosen = Analytical(sizes(f"K{bound}"), machine(optional | {"capacity_words": 6}, level()), "chosen")
        # What passes by takes no room.
        assert chosen.says(Tiles.of(f"K{bound}", "", keeps=["", "wio"]))[1] is not None
        assert (chosen.says(Tiles.of(f"K{bound}", "", keeps=["o", "wio"]))[1] is not None) == (bound == largest)


def keeps_one(tensor: str, **more: Any) -> dict[str, Any]:
    """A level with room for tiles of one tensor, whose accesses cost 1 pJ unless stated."""
    return level(tensor, 100, **{"pj": 1.0} | more)


ORDERS: dict[str, tuple[str, tuple[dict[str, Any], ...], str, Tiles, float]] = {
    "a window does not slide around a loop stated inside": (
        "P4 R3 C2",
        (keeps_one("i"), level()),
        "C",
        Tiles.of("P2 R3", "P2 C2"),
        1.0,
    ),
    "weights do not stay around a loop stated inside": (
        "P4 C2",
        (keeps_one("w"), level()),
        "C",
        Tiles.of("", "P4 C2"),
        1.0,
    ),
    "weights stay where the loop stated inside is not there": (
        "P4 C2",
        (keeps_one("w"), level()),
        "C",
        Tiles.of("C2", "P4"),
        1.0,
    ),
    "of a level's loops one slides windows, for all levels further in": (
        "P4 R4 Q2 S2",
        (keeps_one("i"), keeps_one("i", pj=4.0, fanout=4), level()),
        "",
        Tiles.of("P2 S2", "/ R4", "P2 Q2"),
        0.698,
    ),
    "a window does not come back inside a loop that moves it": (
        "P3 R3 K2",
        (keeps_one("i"), keeps_one("i", pj=0.0), level()),
        "",
        Tiles.of("", "P3", "R3 K2"),
        1.0,
    ),
    "a window slides or comes back, as the loop stated inside says": (
        "P4 R4 K2",
        (keeps_one("i"), level()),
        "P",
        Tiles.of("P2 R2", "P2 K2 R2"),
        0.846,
    ),
    "a window that comes back saves almost half": (
        "P16 R2 K2",
        (keeps_one("i"), level()),
        "",
        Tiles.of("", "P16 R2 K2"),
        0.987,
    ),
    "of two windows that come back one saves": (
        "P2 R2 Q2 S2 K2",
        (keeps_one("i"), level()),
        "",
        Tiles.of("", "P2 R2 Q2 S2 K2"),
        0.909,
    ),
    "a window does not slide around kernels further in": (
        "P4 R3 K2",
        (keeps_one("i"), level("wo", 100), level()),
        "",
        Tiles.of("P2 R3", "K2", "P2"),
        1.0,
    ),
    "a window slides inside of instances side by side": (
        "P8 R3",
        (keeps_one("i"), level("wo", 100), level(fanout=2)),
        "",
        Tiles.of("P2 R3", "P2", "/ P2"),
        0.994,
    ),
    "windows of two instances slide past one another": (
        "P64 R5",
        (keeps_one("i"), level(fanout=2)),
        "",
        Tiles.of("P2 R5", "P16 / P2"),
        0.991,
    ),
    "a window slides where there could be instances side by side": (
        "P32 R2",
        (keeps_one("i"), level(fanout=2)),
        "",
        Tiles.of("R2", "P32"),
        0.989,
    ),
    "a window slides on where the taps move it by as much": (
        "P2 R4",
        (keeps_one("i"), level()),
        "",
        Tiles.of("R2", "P2 R2"),
        0.936,
    ),
}
"""Layer, levels, the order stated for the outermost one, a tiling, and what the program has of its least energy."""

NEIGHBOURS: dict[str, tuple[str, tuple[dict[str, Any], ...], str, Tiles, float]] = {
    "taps side by side have all but one word of another": (
        "P32 R4",
        (keeps_one("i", pj=0.0), level(fanout=4, pj=1.0)),
        "",
        Tiles.of("", "P32 / R4"),
        0.984,
    ),
    "kernels side by side have what comes back": (
        "P16 R2 K2",
        (keeps_one("i", pj=0.0), level(fanout=2, pj=1.0)),
        "",
        Tiles.of("", "P16 R2 / K2"),
        0.994,
    ),
    "words of neighbours are fewer to arrive, over all instances": (
        "P8 R2 K4",
        (keeps_one("i"), level("wo", 100, fanout=2), level(fanout=4)),
        "",
        Tiles.of("", "P8 / R2", "/ K4"),
        0.785,
    ),
    "positions side by side have what comes back": (
        "P8 R2 Q16 S2",
        (keeps_one("i", pj=0.0), level(fanout=16, pj=1.0)),
        "",
        Tiles.of("", "Q16 S2 / P8 R2"),
        0.912,
    ),
    "taps side by side along two axes": (
        "P2 R16 Q2 S2",
        (keeps_one("i", pj=0.0), level(fanout=32, pj=1.0)),
        "",
        Tiles.of("", "P2 Q2 / R16 S2"),
        0.74,
    ),
    "half a word may be rounded off": (
        "P3 R3",
        (keeps_one("i", pj=0.0), level("wo", 100), level(fanout=9, pj=1.0)),
        "",
        Tiles.of("", "", "P3 / R3"),
        0.966,
    ),
}
"""The same where instances need what a neighbour has."""


@pytest.mark.parametrize("name", ORDERS | NEIGHBOURS)
def test_what_orders_and_neighbours_allow(name: str) -> None:
    layer, levels, order, tiles, share = (ORDERS | NEIGHBOURS)[name]
    stated = {"kind": "constraints", "orders": [{"level": f"L{len(levels) - 1}", "order": list(order)}]}
    seen = Analytical(sizes(layer), machine(*levels), constraints=stated if order else None).look(tiles)
    assert seen.program_energy_pj is not None
    assert share * seen.energy_pj - 1e-6 <= seen.program_energy_pj <= seen.energy_pj + 1e-6


def test_fan_outs_limits_and_rules_are_kept_to_and_no_more() -> None:
    def allowed(bound: int, **more: Any) -> bool:
        view = Analytical(sizes(f"K{bound} C2"), machine(level(words=99), level(fanout=6), **more), **constrained)
        return view.says(Tiles.of("", f"C2 / K{bound}"))[1] is not None

    constrained: dict[str, Any] = {}
    assert allowed(6) and not allowed(7)
    # Loops that are within the fan-out alone, together beyond it.
    full = Analytical(sizes("K4 C2"), machine(level(words=99), level(fanout=7)))
    assert full.says(Tiles.of("", "C2 / K4"))[1] is not None and full.says(Tiles.of("", "/ K4 C2"))[1] is None
    limits = [{"name": "few", "most": 5, "over": [{"level": "L1", "kind": "spatial"}]}]
    assert allowed(5, limits=limits) and not allowed(6, limits=limits)
    for statement, bound, fine in (
        ("at_most", 5, True),
        ("at_most", 6, False),
        ("at_least", 5, True),
        ("at_least", 4, False),
    ):
        factor = {"level": "L1", "dim": "K", "kind": "spatial", statement: 5}
        constrained = {"constraints": {"kind": "constraints", "factors": [factor]}}
        assert allowed(bound) == fine, (statement, bound)


def test_nothing_of_a_layer_is_left_out() -> None:
    """The least of all tilings, none of them given: every factor stands somewhere."""
    view = Analytical(sizes("K4 C4"), machine(level(words=4), level(pj=1.0)))
    best, _ = view.judge.best()["energy"]
    assert view.least_energy_pj() == pytest.approx(best, rel=1e-5)


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
