"""Real and awkward layers, scheduled and simulated on the default architecture."""

from __future__ import annotations

from typing import Any

import pytest

import cosa
from cosa.model.layer import Layer
from tests.nocsim.test_accelerator import check_conservation, check_cycles, run

RESNET50 = [entry.layer for entry in cosa.load_network("resnet50").layers]

AWKWARD: dict[str, dict[str, int]] = {
    "all_ones": {},
    "one_filter": {"P": 7, "Q": 7, "K": 3},
    "prime_13": {"P": 13, "Q": 13, "C": 13, "K": 13},
    "prime_127": {"P": 127, "C": 127},
    "prime_1009": {"K": 1009, "C": 64},
    "fully_connected": {"C": 2048, "K": 1000},
    "matrix_product": {"P": 128, "C": 256, "K": 64},
    "batch": {"R": 3, "S": 3, "P": 14, "Q": 14, "C": 16, "K": 16, "N": 4},
    "groups": {"R": 3, "S": 3, "P": 14, "Q": 14, "C": 4, "K": 4, "G": 32},
    "depthwise": {"R": 3, "S": 3, "P": 28, "Q": 28, "G": 64},
    "strided": {"R": 7, "S": 7, "P": 56, "Q": 56, "C": 3, "K": 16, "stride_w": 2, "stride_h": 2},
    "stride_beyond_the_filter": {"P": 28, "Q": 28, "C": 32, "K": 32, "stride_w": 2, "stride_h": 3},
    "dilated": {"R": 3, "S": 3, "P": 28, "Q": 28, "C": 8, "K": 16, "dilation_w": 2, "dilation_h": 3},
    "asymmetric": {"R": 5, "S": 1, "P": 33, "Q": 6, "C": 10, "K": 15, "stride_w": 3},
}


def layer(name: str, **bounds: int) -> Layer:
    plain: dict[str, Any] = dict.fromkeys("RSPQCKN", 1)
    return Layer(name=name, **(plain | bounds))


@pytest.mark.parametrize("entry", RESNET50, ids=lambda entry: entry.name)
def test_resnet50(entry: Layer) -> None:
    accelerator, result = run(cosa.schedule(entry, objective="cosa"))
    check_conservation(accelerator, result)
    check_cycles(accelerator, result)
    assert result.cycles.total >= result.cycles.compute_only
    # Every operand word is needed at least once, every output is written exactly once in the end.
    words = {(f.tensor, f.source, f.destination, f.kind): f.sent_words for f in result.flows}
    from_dram = [count for key, count in words.items() if key[1] == "dram" and key[0] == "weights"]
    assert sum(from_dram) >= entry.tensor_words("weights")
    assert words["inputs", "dram", "global_buffer", "fill"] >= entry.tensor_words("inputs")
    assert words["outputs", "global_buffer", "dram", "final"] == entry.tensor_words("outputs")


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_layers(name: str) -> None:
    check(layer(name, **AWKWARD[name]))


def check(entry: Layer) -> None:
    accelerator, result = run(cosa.schedule(entry, objective="cosa"))
    check_conservation(accelerator, result)
    check_cycles(accelerator, result)


@pytest.mark.slow
def test_thirty_one_prime_factors() -> None:
    """K = 256, C = 512, 64x64, 3x3: 4.8 billion MACs."""
    check(layer("thirty_one_factors", R=3, S=3, P=64, Q=64, C=512, K=256))
