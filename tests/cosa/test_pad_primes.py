"""Padding of large primes: the next bound without one, in the schedule as padding and not as work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cosa
from cosa.common.errors import InputError
from cosa.mappers.published import padded_bounds
from cosa.mip.factors import prime_factors, smooth_bound
from cosa.model.layer import Layer


@given(st.integers(1, 3000), st.sampled_from((2, 3, 5, 7, 11, 13, 16, 17, 31, 100)))
def test_smooth_bound_is_the_next_one(bound: int, largest: int) -> None:
    found = bound
    while max(prime_factors(found), default=1) > largest:
        found += 1
    assert smooth_bound(bound, largest) == found


def test_smooth_bounds_of_the_largest_bounds_are_quick() -> None:
    assert smooth_bound(2**23 + 1, 2) == 2**24
    assert smooth_bound(2**24 - 3, 13) == 2**24


def test_a_large_prime_is_padded_and_runs_faster() -> None:
    layer = Layer(name="prime", R=1, S=1, P=127, Q=1, C=67, K=64, N=1)
    plain, padded = cosa.schedule(layer, objective="cosa"), cosa.schedule(layer, pad_primes_above=7)
    assert padded.padded == {"P": 128, "C": 70}
    assert padded.layer == layer
    assert padded.padding_macs == 64 * (128 * 70 - 127 * 67)
    of_plain, of_padded = cosa.evaluate(plain), cosa.evaluate(padded)
    assert of_padded.macs == of_plain.macs == layer.macs
    assert of_padded.compute_cycles < of_plain.compute_cycles


def test_without_large_primes_nothing_is_padded() -> None:
    assert padded_bounds(Layer(R=3, S=3, P=56, Q=56, C=64, K=64, N=1), 7) == {}
    with pytest.raises(InputError, match=r"pad_primes_above: not valid .found 1.; allowed: a whole number from 2"):
        cosa.schedule("resnet50:input.8", pad_primes_above=1)
