"""Speed of the analytical model: evaluations a second, in JSON.

Usage: python scripts/bench_analytical.py [--mappings N] [--arch NAME] [--layer NETWORK:LAYER]

Random mappings of one layer on one architecture (every prime factor of a bound at a random level, in a random place of
its order, spatial where the fan-out has room) are evaluated by the batch evaluator, with and without details, and some
of them one by one in either convention. One thread.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from cosa.analytical.batch import SPATIAL_AXES, BatchEvaluator, MappingBatch
from cosa.analytical.evaluation import Convention, evaluate
from cosa.api import find_architecture, find_layer
from cosa.common.errors import InputError
from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, TENSORS, Layer


def prime_factors(value: int) -> list[int]:
    found, prime = [], 2
    while value > 1:
        while value % prime == 0:
            found.append(prime)
            value //= prime
        prime += 1
    return found


def random_mappings(layer: Layer, architecture: Architecture, mappings: int, seed: int) -> MappingBatch:
    """Random mappings that respect fan-outs, not capacities; a level keeps what the architecture says."""
    rng = np.random.default_rng(seed)
    levels = len(architecture.levels)
    batch = MappingBatch.empty(mappings, levels, len(DIMS), 2 * len(DIMS))
    batch.keeps[:] = [[tensor in level.keeps for tensor in TENSORS] for level in architecture.levels]
    rows = np.arange(mappings)
    # The slots of a level hold the dimensions in a random order of their own; spatial slots along x, then along y.
    batch.temporal_dims[:] = rng.permuted(np.broadcast_to(np.arange(len(DIMS)), (mappings, levels, len(DIMS))), axis=2)
    batch.spatial_dims[:] = np.tile(np.arange(len(DIMS)), 2)
    batch.spatial_axes[:] = np.repeat([SPATIAL_AXES.index("y"), SPATIAL_AXES.index("x")], len(DIMS))
    slot_of = np.argsort(batch.temporal_dims, axis=2)
    room = np.broadcast_to([architecture.fanout(level)[::-1] for level in range(levels)], (mappings, levels, 2)).copy()
    for dim, name in enumerate(DIMS):
        for prime in prime_factors(getattr(layer, name)):
            level = rng.integers(0, levels, mappings)
            axis = rng.integers(0, 2, mappings)
            spatial = (room[rows, level, axis] >= prime) & (rng.random(mappings) < 0.7)
            there, here = rows[spatial], rows[~spatial]
            room[there, level[spatial], axis[spatial]] //= prime
            batch.spatial_bounds[there, level[spatial], axis[spatial] * len(DIMS) + dim] *= prime
            batch.temporal_bounds[here, level[~spatial], slot_of[here, level[~spatial], dim]] *= prime
    return batch


def seconds(call: Callable[[], Any]) -> float:
    """Processor time of the best of five calls: what other processes take does not count."""
    best = float("inf")
    for _ in range(5):
        started = time.process_time()
        call()
        best = min(best, time.process_time() - started)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--mappings", type=int, default=20000)
    parser.add_argument("--arch", default="simba_4x4")
    parser.add_argument("--layer", default="resnet50:input.8")
    options = parser.parse_args()
    try:
        layer, architecture = find_layer(options.layer), find_architecture(options.arch)
    except InputError as error:
        parser.error(str(error))
    batch = random_mappings(layer, architecture, options.mappings, seed=0)
    evaluator = BatchEvaluator(layer, architecture)
    started = time.perf_counter()
    result = evaluator.evaluate(batch)
    first = time.perf_counter() - started
    found: dict[str, Any] = {
        "layer": options.layer,
        "architecture": options.arch,
        "mappings": options.mappings,
        "mappings_that_fit": int(result.fits.sum()),
        "first_call_seconds": round(first, 3),
    }
    for name, detail in (("batch_detailed", True), ("batch_cycles_and_energy", False)):
        elapsed = seconds(lambda detail=detail: evaluator.evaluate(batch, detail=detail))  # type: ignore[misc]
        found[f"{name}_evaluations_per_second"] = round(options.mappings / elapsed)
    nests = [batch.nest(architecture, number) for number in range(min(50, options.mappings))]
    conventions: tuple[Convention, ...] = ("timeloop", "exact")
    for convention in conventions:

        def one_by_one(convention: Convention = convention) -> None:
            for nest in nests:
                evaluate(layer, architecture, nest, convention)

        found[f"single_{convention}_evaluations_per_second"] = round(len(nests) / seconds(one_by_one))
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
