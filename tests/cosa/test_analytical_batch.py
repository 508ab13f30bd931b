"""The batch evaluator: the same results as the single evaluation, on random mappings and where it has to fall back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cosa.analytical.batch import BatchEvaluator, BatchResult, MappingBatch
from cosa.analytical.evaluation import evaluate
from cosa.api import find_architecture, find_layer
from cosa.common.errors import InputError
from cosa.model.arch import Architecture
from cosa.model.layer import TENSORS, Layer
from cosa.model.schedule import Schedule, ScheduleLevel
from cosa.model.validity import violations
from scripts.bench_analytical import random_mappings
from tests.cosa.test_analytical_exact import small_schedule
from tests.nocsim.nests import random_schedule

ROOT = Path(__file__).parents[2]


def assert_same(
    found: BatchResult, number: int, layer: Layer, architecture: Architecture, nest: tuple[ScheduleLevel, ...]
) -> None:
    """Every number of one mapping, energies to the last bit."""
    single = evaluate(layer, architecture, nest)
    assert found.cycles[number] == single.cycles
    assert found.compute_cycles[number] == single.compute_cycles
    assert found.energy_pj[number] == single.energy_pj
    assert found.utilisation[number] == pytest.approx(single.utilisation, rel=1e-15)
    assert found.fits[number] == (not violations(layer, architecture, nest))
    if found.reads is None:
        return
    for level, item in enumerate(single.levels):
        assert found.level_cycles[number, level] == item.cycles
        for index, tensor in enumerate(TENSORS):
            one = item.tensors.get(tensor)
            at = (number, level, index)
            counts = (found.tile_words, found.partition_words, found.reads, found.fills, found.updates)
            wanted = (one.tile_words, one.partition_words, one.reads, one.fills, one.updates) if one else (0,) * 5
            assert tuple(int(array[at]) for array in counts) == wanted, (number, item.name, tensor)
            assert found.level_energy_pj[at] == (one.energy_pj if one else 0.0)
            if one:
                assert found.instances[number, level] == one.instances


CASES = [
    ("simba_4x4", "resnet50:input.8"),
    ("simba_8x8", "resnet50:input.2"),
    ("simba_4x4_wide", "resnet50:input.36"),
    ("cosa2021", "resnet50:input.70"),
]


def compare(architecture: Architecture, layer: Layer, mappings: int, seed: int) -> None:
    batch = random_mappings(layer, architecture, mappings, seed)
    found = BatchEvaluator(layer, architecture).evaluate(batch)
    for number in range(mappings):
        assert_same(found, number, layer, architecture, batch.nest(architecture, number))


@pytest.mark.parametrize(("name", "layer"), CASES)
def test_random_mappings(name: str, layer: str) -> None:
    compare(find_architecture(name), find_layer(layer), 100, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "layer"), CASES)
def test_random_mappings_by_thousands(name: str, layer: str) -> None:
    compare(find_architecture(name), find_layer(layer), 3000, seed=2)


@pytest.mark.parametrize("first", range(0, 600, 200))
def test_random_hierarchies(first: int) -> None:
    """Any levels, keeping, axes, strides, dilations, groups, and mappings that use links between neighbours."""
    linked = 0
    for seed in range(first, first + 200):
        schedule = small_schedule(seed) if seed % 2 else random_schedule(seed)
        layer, architecture, nest = schedule.layer, schedule.architecture, schedule.nest
        found = BatchEvaluator(layer, architecture).evaluate(MappingBatch.of([nest]))
        assert_same(found, 0, layer, architecture, nest)
        networks = evaluate(layer, architecture, nest).networks
        linked += any(item.link_transfers for network in networks for item in network.values())
    assert linked > 5


def test_arrays_and_nests_are_the_same_mappings(schedule: Schedule) -> None:
    batch = MappingBatch.of([schedule.nest, schedule.nest])
    assert len(batch) == 2
    assert batch.nest(schedule.architecture, 1) == schedule.nest


def test_without_details_and_with_one_mapping(schedule: Schedule) -> None:
    evaluator = BatchEvaluator(schedule.layer, schedule.architecture)
    for count in (1, 3):
        short = evaluator.evaluate(MappingBatch.of([schedule.nest] * count), detail=False)
        assert short.reads is None and len(short.cycles) == count
        for number in range(count):
            assert_same(short, number, schedule.layer, schedule.architecture, schedule.nest)
    assert len(evaluator.evaluate(MappingBatch.empty(0, 6, 1, 1)).cycles) == 0


def test_counts_beyond_double_precision_are_taken_by_the_single_evaluation(simba: Architecture) -> None:
    layer = Layer(R=1, S=1, P=2**20, Q=2**10, C=2**10, K=2**14, N=1)
    batch = random_mappings(layer, simba, 20, seed=3)
    found = BatchEvaluator(layer, simba).evaluate(batch)
    for number in range(20):
        assert_same(found, number, layer, simba, batch.nest(simba, number))
    assert np.all(found.cycles > 0) and np.all(found.energy_pj > 0)
    huge = Layer(R=1, S=1, P=2**24, Q=2**24, C=2**7, K=2**7, N=1)
    batch = MappingBatch.empty(1, 6, 8, 1)
    batch.temporal_dims[0, 5, :4], batch.temporal_bounds[0, 5, :4] = [2, 3, 4, 5], [2**24, 2**24, 2**7, 2**7]
    data = simba.model_dump(mode="json")
    data["levels"][5]["read_bandwidth_words_per_cycle"] = 0.01
    with pytest.raises(InputError, match="does not fit 64 bits"):
        BatchEvaluator(huge, Architecture.from_data(data)).evaluate(batch)


def test_another_number_of_levels_is_refused(schedule: Schedule) -> None:
    with pytest.raises(InputError, match="another number of levels"):
        BatchEvaluator(schedule.layer, schedule.architecture).evaluate(MappingBatch.empty(1, 5, 1, 1))


def test_importing_compiles_nothing_and_the_package_does_not_load_numba() -> None:
    code = (
        "import sys, cosa, cosa.api, cosa.analytical.evaluation, cosa.analytical.batch;"
        "assert 'numba' not in sys.modules;"
        "import cosa.analytical.batch_kernel as k; assert not k.evaluate_batch.signatures"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ})
