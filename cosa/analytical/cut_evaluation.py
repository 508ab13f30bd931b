"""The evaluation of a nest with remainders: the `exact` convention with tiles cut at the bounds of the layer."""

from __future__ import annotations

from cosa.analytical.cut import CutAccesses, cut
from cosa.analytical.energy import clusters_used, vector_access_energy_pj
from cosa.analytical.evaluation import ComputedWork, Evaluation, TensorAtLevel, exact_cycles, level_result, put_together
from cosa.analytical.exact import Hop
from cosa.analytical.traffic import word_bits
from cosa.model.arch import Architecture
from cosa.model.layer import Layer, Tensor
from cosa.model.schedule import ScheduleLevel


def evaluate_cut(
    layer: Layer, architecture: Architecture, nest: tuple[ScheduleLevel, ...], quick: bool = False
) -> Evaluation:
    """A nest (outermost level first) that covers a layer, whose last tiles may be smaller.

    Counts are those of `cosa.analytical.cut`. Instances differ in their words, so vector accesses are words over words
    of a block, not rounded up for each instance. With `quick` words of one
    instance are counted only where a bandwidth takes them; cycles and energy are the same.
    """
    bounded = frozenset(
        number
        for number, level in enumerate(architecture.levels)
        if level.read_bandwidth_words_per_cycle or level.write_bandwidth_words_per_cycle or number == len(nest) - 1
    )
    found, by_tensor = cut(layer, nest, architecture.machine.halo_reuse, bounded if quick else None)
    cycles = found.compute_cycles
    levels = []
    for level in range(len(architecture.levels)):
        tensors: dict[Tensor, TensorAtLevel] = {
            tensor: _tensor(architecture, level, moved.levels[level])
            for tensor, moved in by_tensor.items()
            if level in moved.levels
        }
        levels.append(level_result(architecture, level, tensors, *exact_cycles(cycles, architecture, level, tensors)))
    hops = tuple(
        Hop(
            tensor,
            source,
            destination,
            kind,
            sent,
            received,
            word_bits(layer, architecture, tensor, finished=kind in ("fill", "final")),
        )
        for tensor, moved in by_tensor.items()
        for kind, source, destination, sent, received in moved.hops
    )
    return put_together(
        "exact", ComputedWork(layer, architecture, cycles, found.instances(-1)), tuple(levels), (), hops, 0
    )


def _tensor(architecture: Architecture, level: int, item: CutAccesses) -> TensorAtLevel:
    per_word = vector_access_energy_pj(architecture, level) / architecture.levels[level].block_words
    reads, fills, updates, drains = item.busiest
    words = item.reads + item.fills + item.updates + item.drains
    return TensorAtLevel(
        tile_words=item.tile_words,
        partition_words=item.distinct_words,
        instances=item.instances,
        clusters=clusters_used(architecture, level, item.instances),
        reads=reads,
        fills=fills,
        updates=updates,
        drains=drains,
        accessed_words=words,
        energy_pj_per_instance=(reads + fills + updates + drains) * per_word,
        energy_pj=words * per_word,
    )
