"""Layers: what is a layer and what is not, files, and how many words a tile touches."""

from __future__ import annotations

from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosa.analytical.footprint import box_words, shared_on_axis, span, touched_on_axis, touched_words
from cosa.common.errors import InputError
from cosa.model.layer import DIMS, MAX_BOUND, MAX_MACS, RELEVANT, TENSORS, Layer

PLAIN: dict[str, Any] = {"R": 3, "S": 3, "P": 8, "Q": 8, "C": 4, "K": 16, "N": 1}
small = st.integers(1, 12)


def rejected(**changes: Any) -> InputError:
    """The error of the plain layer with changes; `...` leaves a key out."""
    data = {key: value for key, value in (PLAIN | changes).items() if value is not ...}
    with pytest.raises(InputError) as caught:
        Layer.from_data(data, source="layer.yaml")
    return caught.value


def test_macs_are_the_product_of_all_eight_bounds() -> None:
    assert Layer(R=2, S=3, P=5, Q=7, C=11, K=13, N=17, G=19).macs == 2 * 3 * 5 * 7 * 11 * 13 * 17 * 19


def test_defaults() -> None:
    layer = Layer.from_data(PLAIN)
    assert (layer.G, layer.stride_w, layer.stride_h, layer.dilation_w, layer.dilation_h) == (1, 1, 1, 1, 1)
    bits = layer.word_bits
    assert (bits.weights, bits.inputs, bits.outputs, bits.partial_sums) == (8, 8, 8, 24)


@pytest.mark.parametrize("ending", ["json", "yaml", "yml"])
def test_a_file_gives_back_the_layer(tmp_path: Path, ending: str) -> None:
    layer = Layer.from_data(
        PLAIN | {"name": "ä: b", "stride_w": 2, "notes": ["one", "2"], "word_bits": {"outputs": 16}}
    )
    layer.to_file(tmp_path / f"layer.{ending}")
    assert Layer.from_file(tmp_path / f"layer.{ending}") == layer


@pytest.mark.parametrize(
    "value", ["56", True, 1.5, 56.0, None, [], {}, float("nan"), float("inf"), 0, -1, MAX_BOUND + 1]
)
def test_a_bound_is_a_whole_number_in_range(value: Any) -> None:
    error = rejected(K=value)
    assert (error.source, error.path) == ("layer.yaml", "K")
    assert f"(found {value!r})" in str(error)
    assert error.allowed == f"a whole number from 1 to {MAX_BOUND}"


def test_the_largest_bound_is_allowed() -> None:
    assert Layer.from_data(PLAIN | {"P": MAX_BOUND}).P == MAX_BOUND


def test_macs_that_counters_cannot_hold_are_refused() -> None:
    data = dict.fromkeys(PLAIN, 1) | {"P": 2**24, "Q": 2**24, "C": 2**14}
    assert Layer.from_data(data).macs == MAX_MACS
    with pytest.raises(InputError, match=f"found {2 * MAX_MACS}"):
        Layer.from_data(data | {"K": 2})


@pytest.mark.parametrize("missing", PLAIN)
def test_no_bound_may_be_missing(missing: str) -> None:
    error = rejected(**{missing: ...})
    assert (error.path, error.message) == (missing, "missing")


@pytest.mark.parametrize(
    ("key", "nearest"), [("k", "K"), ("stride", "stride_w"), ("dilation_x", "dilation_w"), ("wordbits", "word_bits")]
)
def test_an_unknown_key_gets_a_suggestion(key: str, nearest: str) -> None:
    error = rejected(**{key: 1})
    assert (error.path, error.message, error.nearest) == (key, "unknown key", nearest)
    assert "stride_w" in (error.allowed or "")


def test_a_misspelled_key_is_named_before_the_key_that_is_missing_for_it() -> None:
    error = rejected(KK=16, K=...)
    assert (error.path, error.nearest) == ("KK", "K")
    assert "1 more" in error.message


def test_paths_reach_into_nested_fields() -> None:
    assert rejected(word_bits={"weights": 65}).path == "word_bits.weights"
    assert rejected(notes=["fine", 2]).path == "notes[1]"
    assert rejected(word_bits={"weight": 8}).nearest == "weights"


@pytest.mark.parametrize("version", [0, 2, "1", True, 1.0, None])
def test_other_schema_versions_are_refused(version: Any) -> None:
    assert rejected(schema_version=version).path == "schema_version"


def test_other_kinds_are_refused() -> None:
    error = rejected(kind="architecture")
    assert (error.path, error.allowed) == ("kind", "'layer'")


@given(outputs=st.integers(1, 30), taps=st.integers(1, 12), stride=small, dilation=small)
def test_touched_on_axis_against_enumeration(outputs: int, taps: int, stride: int, dilation: int) -> None:
    touched = {p * stride + r * dilation for p in range(outputs) for r in range(taps)}
    assert touched_on_axis(outputs, taps, stride, dilation) == len(touched)
    assert span((stride, dilation), (outputs, taps)) == max(touched) - min(touched) + 1


@given(outputs=st.integers(1, 12), taps=st.integers(1, 12), stride=small, dilation=small, shift=st.integers(0, 60))
def test_shared_on_axis_against_enumeration(outputs: int, taps: int, stride: int, dilation: int, shift: int) -> None:
    scales, extents = (stride, dilation), (outputs, taps)
    touched = {p * stride + r * dilation for p in range(outputs) for r in range(taps)}
    shared = sum(index + shift in touched for index in touched)
    assert shared_on_axis(scales, extents, shift) == shared
    several = shared_on_axis(scales, tuple(np.full(3, extent, float) for extent in extents), np.full(3, float(shift)))
    assert several.tolist() == [shared] * 3
    alone = {p * stride for p in range(outputs)}
    assert shared_on_axis((stride,), (outputs,), shift) == sum(index + shift in alone for index in alone)


@given(
    bounds=st.fixed_dictionaries({dim: st.integers(1, 3) for dim in DIMS}),
    strides=st.tuples(small, small),
    dilations=st.tuples(small, small),
)
def test_words_against_a_walk_of_the_loops(
    bounds: dict[str, int], strides: tuple[int, int], dilations: tuple[int, int]
) -> None:
    steps = {"stride_w": strides[0], "stride_h": strides[1], "dilation_w": dilations[0], "dilation_h": dilations[1]}
    layer = Layer.from_data(bounds | steps)
    seen: dict[str, set[tuple[int, ...]]] = {tensor: set() for tensor in TENSORS}
    for r, s, p, q, c, k, n, g in product(*(range(bounds[dim]) for dim in DIMS)):
        seen["weights"].add((g, k, c, r, s))
        seen["outputs"].add((n, g, k, p, q))
        seen["inputs"].add((n, g, c, p * strides[0] + r * dilations[0], q * strides[1] + s * dilations[1]))
    for tensor in TENSORS:
        assert layer.tensor_words(tensor) == touched_words(layer, tensor, layer.bounds) == len(seen[tensor])
        sides = [max(axis) - min(axis) + 1 for axis in zip(*seen[tensor], strict=True)]
        assert box_words(layer, tensor, layer.bounds) == prod(sides)


@pytest.mark.parametrize("tensor", TENSORS)
def test_only_relevant_loops_change_a_footprint(tensor: Any) -> None:
    layer = Layer(R=3, S=3, P=9, Q=9, C=3, K=3, N=3, G=3)
    changed = {dim for dim in DIMS if box_words(layer, tensor, {dim: 3}) != 1}
    assert changed == RELEVANT[tensor]
