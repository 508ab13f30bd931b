"""The analytical evaluation of a nest: access counts, energy, cycles, what binds them; in one of two conventions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal, get_args

from cosa.analytical.boxes import NestView
from cosa.analytical.energy import clusters_used, mac_energy_pj, vector_access_energy_pj, vectors
from cosa.analytical.exact import ExactAccesses, Hop, Words, exact
from cosa.analytical.timeloop import LevelAccesses, LevelNetwork, Release, counts
from cosa.common.errors import InputError
from cosa.model.arch import Architecture, Level
from cosa.model.layer import TENSORS, Layer, Tensor
from cosa.model.schedule import ScheduleLevel

Convention = Literal["timeloop", "timeloop-2022", "exact"]


@dataclass(frozen=True)
class TensorAtLevel:
    """A tensor at a level that keeps it. Accesses are scalar words over the run.

    `reads` go inward, `fills` come from outside, `updates` from inside, `drains` go outward (`exact` only: Timeloop
    does not count them). Those of one instance are averages with `timeloop`, of the busiest instance with `exact`;
    `accessed_words` are all of them at all instances. `partition_words`: distinct words of one instance over the run.
    """

    tile_words: int
    partition_words: int
    instances: int
    clusters: int
    reads: int
    fills: int
    updates: int
    drains: int
    accessed_words: int
    energy_pj_per_instance: float
    energy_pj: float


@dataclass(frozen=True)
class LevelResult:
    """A level: `cycles` are the compute cycles stretched by its bandwidths, `bound_by` the direction that does it."""

    name: str
    cycles: int
    bound_by: Literal["read", "write"] | None
    read_words: int
    write_words: int
    vector_access_energy_pj: float
    block_words: int
    tensors: dict[Tensor, TensorAtLevel]


@dataclass(frozen=True)
class NetworkCounts:
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
class Roofline:
    """Where a nest stands: MACs for a word at the outermost level, against what compute and bandwidth allow.

    `ridge_macs_per_word` is the intensity from which on the MAC units limit; `roof_macs_per_cycle` the lower of the two
    limits at this nest's own words. Without bandwidth at the outermost level the ridge is None.
    """

    intensity_macs_per_word: float
    ridge_macs_per_word: float | None
    peak_macs_per_cycle: int
    roof_macs_per_cycle: float
    attained_macs_per_cycle: float


@dataclass(frozen=True)
class Evaluation:
    """What a nest costs. Levels and networks stand innermost first; network i lies under level i.

    `macs` are those of the layer, and so are utilisation and roofline; `padding_macs` come on top and cost energy.
    `bound_by` is "compute" or the level and direction whose bandwidth gives `cycles`. `networks` is for Timeloop's,
    `hops` for `exact`.
    """

    convention: Convention
    cycles: int
    bound_by: str
    compute_cycles: int
    macs: int
    padding_macs: int
    utilisation: float
    macs_used: int
    energy_pj: float
    mac_energy_pj: float
    roofline: Roofline
    levels: tuple[LevelResult, ...]
    networks: tuple[dict[Tensor, NetworkCounts], ...]
    hops: tuple[Hop, ...]


@dataclass(frozen=True)
class ComputedWork:
    """What is computed: `layer`, padding included, in `compute_cycles` on `macs_used` MAC units of an architecture."""

    layer: Layer
    architecture: Architecture
    compute_cycles: int
    macs_used: int

    @classmethod
    def of(cls, view: NestView) -> ComputedWork:
        """The run of a whole nest."""
        return cls(view.layer, view.architecture, view.compute_cycles, view.macs_used)


def evaluate(
    layer: Layer,
    architecture: Architecture,
    nest: tuple[ScheduleLevel, ...],
    convention: Convention = "timeloop",
    *,
    padding_macs: int = 0,
) -> Evaluation:
    """A nest (outermost level first) in one of the conventions; capacities and fan-outs are not checked.

    `layer` is what the nest computes, of whose MACs `padding_macs` are padding (`Schedule.padded_layer`).

    Raises
    ------
    InputError: no such convention.
    """
    if convention in ("timeloop", "timeloop-2022"):
        return evaluate_timeloop(layer, architecture, nest, padding_macs, convention)
    if convention == "exact":
        return evaluate_exact(layer, architecture, nest, padding_macs)
    allowed = ", ".join(get_args(Convention))
    raise InputError("no such convention", source="convention", value=convention, allowed=allowed)


def evaluate_timeloop(
    layer: Layer,
    architecture: Architecture,
    nest: tuple[ScheduleLevel, ...],
    padding_macs: int = 0,
    release: Release = "timeloop",
) -> Evaluation:
    """A nest as a release of Timeloop counts it (`cosa.analytical.timeloop`)."""
    view = NestView(layer, architecture, nest)
    by_tensor = {tensor: counts(view, tensor, release) for tensor in TENSORS}
    levels = []
    for level in range(len(view.levels)):
        tensors: dict[Tensor, TensorAtLevel] = {}
        for tensor, found in by_tensor.items():
            if level in found.levels:
                tensors[tensor] = _tensor_timeloop(architecture, level, found.levels[level])
        slowdown = timeloop_cycles(
            view.compute_cycles,
            [item.reads for item in tensors.values()],
            [item.fills + item.updates for item in tensors.values()],
            architecture.levels[level],
        )
        levels.append(level_result(architecture, level, tensors, *slowdown))
    networks = tuple(
        {tensor: _network(by_tensor[tensor].networks[level]) for tensor in TENSORS} for level in range(len(view.levels))
    )
    return put_together(release, ComputedWork.of(view), tuple(levels), networks, (), padding_macs)


def timeloop_cycles(
    compute_cycles: int, reads: list[int], writes: list[int], level: Level
) -> tuple[int, Literal["read", "write"] | None]:
    """Compute cycles stretched until a level's words (of one instance, by tensor) fit through its bandwidths.

    The order of the double-precision operations is part of the convention: it decides the last cycle.
    """
    slowdown, bound_by = 1.0, None
    directions: tuple[tuple[Literal["read", "write"], list[int], float | None], ...] = (
        ("read", reads, level.read_bandwidth_words_per_cycle),
        ("write", writes, level.write_bandwidth_words_per_cycle),
    )
    for direction, words, bandwidth in directions:
        demand = 0.0
        for one in words:
            demand += one / compute_cycles
        if bandwidth is not None and demand > bandwidth and bandwidth / demand < slowdown:
            slowdown, bound_by = bandwidth / demand, direction
    return compute_cycles if bound_by is None else ceil(compute_cycles / slowdown), bound_by


def _tensor_timeloop(architecture: Architecture, level: int, item: LevelAccesses) -> TensorAtLevel:
    clusters = clusters_used(architecture, level, item.instances)
    block = architecture.levels[level].block_words
    accesses = sum(vectors(words, block) for words in (item.reads, item.fills, item.updates))
    # Divided by the instances of a cluster, although the vector energy is that of one instance already: a quirk kept.
    energy = accesses * vector_access_energy_pj(architecture, level) / (item.instances / clusters)
    return TensorAtLevel(
        tile_words=item.tile_words,
        partition_words=item.partition_words,
        instances=item.instances,
        clusters=clusters,
        reads=item.reads,
        fills=item.fills,
        updates=item.updates,
        drains=0,
        accessed_words=(item.reads + item.fills + item.updates) * item.instances,
        energy_pj_per_instance=energy,
        energy_pj=energy * item.instances,
    )


def _network(item: LevelNetwork) -> NetworkCounts:
    return NetworkCounts(
        fanout=item.fanout,
        ingresses=float(sum(item.ingresses.values())),
        multicasts=tuple((size, number, float(words)) for (size, number), words in sorted(item.ingresses.items())),
        link_transfers=item.link_transfers,
        spatial_reductions=int(item.spatial_reductions),
        average_hops=item.average_hops,
    )


def evaluate_exact(
    layer: Layer, architecture: Architecture, nest: tuple[ScheduleLevel, ...], padding_macs: int = 0
) -> Evaluation:
    """A nest in words that a machine moves (`cosa.analytical.exact`)."""
    view = NestView(layer, architecture, nest)
    by_tensor = exact(layer, architecture, nest)
    levels = []
    for level in range(len(view.levels)):
        tensors: dict[Tensor, TensorAtLevel] = {}
        for tensor, found in by_tensor.items():
            if level in found.levels:
                tensors[tensor] = _tensor_exact(architecture, level, found.levels[level])
        levels.append(
            level_result(architecture, level, tensors, *exact_cycles(view.compute_cycles, architecture, level, tensors))
        )
    hops = tuple(hop for found in by_tensor.values() for hop in found.hops)
    return put_together("exact", ComputedWork.of(view), tuple(levels), (), hops, padding_macs)


def exact_cycles(
    compute_cycles: int, architecture: Architecture, level: int, tensors: dict[Tensor, TensorAtLevel]
) -> tuple[int, Literal["read", "write"] | None]:
    """Compute cycles, or what the busiest instance's words take through the bandwidths of a level, and which binds."""
    entry = architecture.levels[level]
    reads = sum(item.reads + item.drains for item in tensors.values())
    writes = sum(item.fills + item.updates for item in tensors.values())
    cycles, bound_by = compute_cycles, None
    directions: tuple[tuple[Literal["read", "write"], int, float | None], ...] = (
        ("read", reads, entry.read_bandwidth_words_per_cycle),
        ("write", writes, entry.write_bandwidth_words_per_cycle),
    )
    for direction, words, bandwidth in directions:
        if bandwidth is not None and (needed := ceil(Fraction(words) / Fraction(bandwidth))) > cycles:
            cycles, bound_by = needed, direction
    return cycles, bound_by


def _tensor_exact(architecture: Architecture, level: int, item: ExactAccesses) -> TensorAtLevel:
    block, vector_pj = architecture.levels[level].block_words, vector_access_energy_pj(architecture, level)

    def accesses(words: Words) -> int:
        return sum(vectors(count, block) for count in (words.reads, words.fills, words.updates, words.drains))

    busiest, total = item.busiest, item.total
    return TensorAtLevel(
        tile_words=item.tile_words,
        partition_words=item.distinct_words,
        instances=item.instances,
        clusters=clusters_used(architecture, level, item.instances),
        reads=busiest.reads,
        fills=busiest.fills,
        updates=busiest.updates,
        drains=busiest.drains,
        accessed_words=total.reads + total.fills + total.updates + total.drains,
        energy_pj_per_instance=max(accesses(words) for words in item.kinds) * vector_pj,
        energy_pj=sum(accesses(words) * number for words, number in item.kinds.items()) * vector_pj,
    )


def level_result(
    architecture: Architecture,
    level: int,
    tensors: dict[Tensor, TensorAtLevel],
    cycles: int,
    bound_by: Literal["read", "write"] | None,
) -> LevelResult:
    """The figures of a level from those of its tensors."""
    entry = architecture.levels[level]
    return LevelResult(
        name=entry.name,
        cycles=cycles,
        bound_by=bound_by,
        read_words=sum(item.reads + item.drains for item in tensors.values()),
        write_words=sum(item.fills + item.updates for item in tensors.values()),
        vector_access_energy_pj=vector_access_energy_pj(architecture, level),
        block_words=entry.block_words,
        tensors=tensors,
    )


def put_together(
    convention: Convention,
    view: ComputedWork,
    levels: tuple[LevelResult, ...],
    networks: tuple[dict[Tensor, NetworkCounts], ...],
    hops: tuple[Hop, ...],
    padding_macs: int,
) -> Evaluation:
    """The evaluation of a run from the figures of its levels."""
    cycles, bound_by = view.compute_cycles, "compute"
    for level in levels:
        if level.cycles > cycles:
            cycles, bound_by = level.cycles, f"{level.bound_by} bandwidth of {level.name}"
    macs, mac_pj = view.layer.macs - padding_macs, view.layer.macs * mac_energy_pj(view.architecture)
    # One addition after another: `sum` rounds otherwise from one version of Python to the next.
    energy = mac_pj
    for level in levels:
        for item in level.tensors.values():
            energy += item.energy_pj
    return Evaluation(
        convention=convention,
        cycles=cycles,
        bound_by=bound_by,
        compute_cycles=view.compute_cycles,
        macs=macs,
        padding_macs=padding_macs,
        utilisation=macs / (cycles * view.architecture.macs),
        macs_used=view.macs_used,
        energy_pj=energy,
        mac_energy_pj=mac_pj,
        roofline=_roofline(view, levels[-1], cycles, macs),
        levels=levels,
        networks=networks,
        hops=hops,
    )


def _roofline(view: ComputedWork, outermost: LevelResult, cycles: int, macs: int) -> Roofline:
    """Reads and writes of the outermost level run beside each other, so the slower direction is the roof."""
    entry, peak = view.architecture.levels[-1], view.architecture.macs
    words = outermost.read_words + outermost.write_words
    needed = max(
        moved / bandwidth if bandwidth else 0.0
        for moved, bandwidth in (
            (outermost.read_words, entry.read_bandwidth_words_per_cycle),
            (outermost.write_words, entry.write_bandwidth_words_per_cycle),
        )
    )
    return Roofline(
        intensity_macs_per_word=macs / words,
        # Words a cycle at this nest's mix of reads and writes, were the outermost level always busy.
        ridge_macs_per_word=peak * needed / words if needed else None,
        peak_macs_per_cycle=peak,
        roof_macs_per_cycle=min(float(peak), macs / needed) if needed else float(peak),
        attained_macs_per_cycle=macs / cycles,
    )
