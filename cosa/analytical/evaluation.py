"""The analytical evaluation of a nest: access counts, energy, cycles, what binds them; in one of two conventions."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal

from cosa.analytical.boxes import NestView
from cosa.analytical.energy import clusters_used, mac_energy_pj, vector_access_energy_pj, vectors
from cosa.analytical.timeloop import LevelAccesses, counts
from cosa.arch import Architecture
from cosa.schedule import ScheduleLevel
from cosa.workload import TENSORS, Layer, Tensor

Convention = Literal["timeloop", "exact"]


@dataclass(frozen=True)
class TensorAtLevel:
    """A tensor at a level that keeps it: words and scalar counts of one instance, energy of one and of all in use."""

    tile_words: int
    partition_words: int
    instances: int
    clusters: int
    reads: int
    fills: int
    updates: int
    energy_pj_per_instance: float
    energy_pj: float


@dataclass(frozen=True)
class LevelResult:
    """A level: `cycles` are the compute cycles stretched by its bandwidths."""

    name: str
    cycles: int
    vector_access_energy_pj: float
    block_words: int
    tensors: dict[Tensor, TensorAtLevel]


@dataclass(frozen=True)
class NetworkResult:
    """A tensor on the network under a level; words of one instance of that level.

    `multicasts`: (instances of a group, number of such groups, words), sorted. `ingresses` are the words sent in.
    """

    fanout: int
    ingresses: float
    multicasts: tuple[tuple[int, int, float], ...]
    link_transfers: int
    spatial_reductions: int
    average_hops: float


@dataclass(frozen=True)
class Evaluation:
    """What a nest costs. Levels and networks stand innermost first; network i lies under level i."""

    convention: Convention
    cycles: int
    compute_cycles: int
    macs: int
    utilisation: float
    macs_used: int
    energy_pj: float
    mac_energy_pj: float
    levels: tuple[LevelResult, ...]
    networks: tuple[dict[Tensor, NetworkResult], ...]


def level_cycles(
    compute_cycles: int,
    reads: list[int],
    writes: list[int],
    read_bandwidth: float | None,
    write_bandwidth: float | None,
) -> int:
    """Compute cycles stretched until a level's words (of one instance, by tensor) fit through its bandwidths.

    The order of the double-precision operations is part of the convention: it decides the last cycle.
    """
    slowdown = 1.0
    for words, bandwidth in ((reads, read_bandwidth), (writes, write_bandwidth)):
        demand = 0.0
        for one in words:
            demand += one / compute_cycles
        if bandwidth is not None and demand > bandwidth:
            slowdown = min(slowdown, bandwidth / demand)
    return compute_cycles if slowdown == 1.0 else ceil(compute_cycles / slowdown)


def evaluate_timeloop(layer: Layer, architecture: Architecture, nest: tuple[ScheduleLevel, ...]) -> Evaluation:
    """A nest (outermost level first) in Timeloop's convention."""
    view = NestView(layer, architecture, nest)
    by_tensor = {tensor: counts(view, tensor) for tensor in TENSORS}
    levels = []
    for level in range(len(view.levels)):
        found = {t: c.levels[level] for t, c in by_tensor.items() if level in c.levels}
        levels.append(_level(view, level, found))
    networks = tuple(
        {
            tensor: NetworkResult(
                fanout=item.fanout,
                ingresses=float(sum(item.ingresses.values())),
                multicasts=tuple((size, n, float(words)) for (size, n), words in sorted(item.ingresses.items())),
                link_transfers=item.link_transfers,
                spatial_reductions=int(item.spatial_reductions),
                average_hops=item.average_hops,
            )
            for tensor, item in ((tensor, by_tensor[tensor].networks[level]) for tensor in TENSORS)
        }
        for level in range(len(view.levels))
    )
    return _evaluation("timeloop", view, tuple(levels), networks)


def _level(view: NestView, level: int, found: dict[Tensor, LevelAccesses]) -> LevelResult:
    entry = view.architecture.levels[level]
    vector_pj = vector_access_energy_pj(view.architecture, level)
    tensors: dict[Tensor, TensorAtLevel] = {}
    for tensor, item in found.items():
        clusters = clusters_used(view.architecture, level, item.instances)
        accesses = sum(vectors(words, entry.block_words) for words in (item.reads, item.fills, item.updates))
        # Per instance by cluster occupancy, although the vector energy is already that of one instance (see above).
        energy = accesses * vector_pj / (item.instances / clusters)
        tensors[tensor] = TensorAtLevel(
            item.tile_words,
            item.partition_words,
            item.instances,
            clusters,
            item.reads,
            item.fills,
            item.updates,
            energy,
            energy * item.instances,
        )
    cycles = level_cycles(
        view.compute_cycles,
        [item.reads for item in found.values()],
        [item.fills + item.updates for item in found.values()],
        entry.read_bandwidth_words_per_cycle,
        entry.write_bandwidth_words_per_cycle,
    )
    return LevelResult(entry.name, cycles, vector_pj, entry.block_words, tensors)


def _evaluation(
    convention: Convention,
    view: NestView,
    levels: tuple[LevelResult, ...],
    networks: tuple[dict[Tensor, NetworkResult], ...],
) -> Evaluation:
    cycles = max(view.compute_cycles, *(level.cycles for level in levels))
    macs = view.layer.macs
    mac_pj = macs * mac_energy_pj(view.architecture)
    return Evaluation(
        convention=convention,
        cycles=cycles,
        compute_cycles=view.compute_cycles,
        macs=macs,
        utilisation=macs / (cycles * view.architecture.macs),
        macs_used=view.macs_used,
        energy_pj=mac_pj + sum(item.energy_pj for level in levels for item in level.tensors.values()),
        mac_energy_pj=mac_pj,
        levels=levels,
        networks=networks,
    )
