"""What is known of all mappings without a program: met by one where nothing else stands in the way, missed by none."""

from __future__ import annotations

import random
from typing import Any

import pytest

from cosa.mappers.least import least, least_cycles, least_energy_pj, most_parallel
from cosa.model.arch import Architecture
from cosa.model.keeping import Keeping
from cosa.model.layer import Layer
from tests.certificate.enumerator import Enumerator
from tests.cosa.bound_cases import level, machine, sizes


def bounds_of(layer: dict[str, Any], architecture: dict[str, Any]) -> tuple[float, float]:
    """The least cycles and pJ that are known of all mappings."""
    one, other = Layer.from_data(layer), Architecture.from_data(architecture)
    return least_cycles(one, other, most_parallel(one, other).units), least_energy_pj(one, other)


ROOMY = level("wio", 10_000)

MET: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "compute": (sizes("K6 C5 P7"), machine(ROOMY, ROOMY | {"fanout": 6}, level(fanout=5))),
    "compute, not all MACs": (sizes("K6 C5"), machine(ROOMY, level(fanout=4))),
    "words read, most weights": (sizes("K6 C5"), machine(ROOMY, level(read=0.5))),
    "words read, most inputs": (sizes("P6 N5"), machine(ROOMY, level(read=0.5))),
    "words read of a window": (sizes("P6 R3", stride_w=2), machine(ROOMY, level(read=0.1))),
    "words written": (sizes("P6 N5"), machine(ROOMY, level(write=0.5))),
}


@pytest.mark.parametrize("name", MET)
def test_cycles_are_those_of_the_best_mapping(name: str) -> None:
    layer, architecture = MET[name]
    best, _ = Enumerator(layer, architecture).best()["latency"]
    found = bounds_of(layer, architecture)[0]
    # The accounting rounds stretched cycles up, from a number that is a bit more than the exact one.
    assert found == best or (name.startswith("words") and found > 30 and found == best - 1)


@pytest.mark.parametrize(
    ("layer", "pj", "blocks"),
    [("K6 C5", 0.0, 1), ("K6 C5", 1.0, 1), ("P6 N5", 1.0, 1), ("K6 P4", 1.0, 1), ("K8 C4 P4", 8.0, 2)],
)
def test_energy_is_that_of_the_best_mapping_if_only_the_outermost_level_costs(
    layer: str, pj: float, blocks: int
) -> None:
    macs = {"mac": {"word_bits": 16, "energy_pj": 1.0 - min(pj, 0.5)}}
    architecture = machine(ROOMY, level(pj=pj, block_words=blocks), **macs)
    best, _ = Enumerator(sizes(layer), architecture).best()["energy"]
    assert bounds_of(sizes(layer), architecture)[1] == pytest.approx(best, rel=1e-12)


def exact_bounds(layer: dict[str, Any], architecture: dict[str, Any]) -> dict[str, float]:
    """By objective what no schedule is below in the convention ``exact``."""
    one, other = Layer.from_data(layer), Architecture.from_data(architecture)
    keeping = Keeping.of(other)
    return {objective: least(one, other, objective, keeping) for objective in ("latency", "energy", "edp")}


def test_words_of_the_innermost_keeper_are_one_for_all_of_its_macs_in_every_cycle() -> None:
    """K4 C4 over 2 x 2 MACs, all words at the outermost level once (16, 4, 4), each MAC 1 pJ.

    The innermost level is one for each two MACs, so of its 7 pJ words each tensor takes 16 / 2 at least.
    """
    layer = sizes("K4 C4")
    macs = {"mac": {"word_bits": 16, "energy_pj": 1.0}}
    two_macs = level("wio", 100, pj=7.0, fanout=2)
    found = exact_bounds(layer, machine(two_macs, level(pj=3.0, fanout=2, read=0.5), **macs))
    assert found["latency"] == (16 + 4) / 0.5
    assert found["energy"] == 16 + 3 * (16 + 4 + 4) + 7 * 3 * (16 / 2)
    assert found["edp"] == found["latency"] * found["energy"]
    # What may pass the level by need not cost anything there.
    architecture = Architecture.from_data(machine(two_macs, level(pj=3.0, fanout=2), **macs))
    kept = least(Layer.from_data(layer), architecture, "energy", Keeping.of(architecture, "chosen"))
    assert kept == 16 + 3 * (16 + 4 + 4)


def test_no_mapping_of_random_spaces_is_below() -> None:
    rng = random.Random(4)
    for _ in range(12):
        dims = rng.sample("PQCKR", 2)
        layer = sizes(" ".join(f"{dim}{rng.choice((2, 3, 4, 6))}" for dim in dims))
        inner = level("wio", rng.choice((6, 20)), fanout=rng.choice((1, 2, 3)))
        outer = level(pj=1.0, fanout=rng.choice((1, 2, 4)), read=rng.choice((None, 0.5)), write=rng.choice((None, 0.5)))
        architecture = machine(inner, outer)
        best = Enumerator(layer, architecture).best()
        cycles, energy = bounds_of(layer, architecture)
        assert cycles <= best["latency"][0], (layer, architecture)
        assert energy <= best["energy"][0] * (1 + 1e-12), (layer, architecture)
