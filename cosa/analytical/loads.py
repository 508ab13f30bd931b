"""What the mesh and the DRAM must carry for a schedule, and the bound of the machine that follows.

Only what cannot be avoided counts:

* A transfer of b bytes takes at least one header flit for each payload_flits data flits, whole packets where partial
  ones cost as much; cutting it into more packets only adds flits.
* A node with several ports may spread its flits over them, so a port of n has at least an n-th of them, rounded up. The
  links of such a transfer are left out: another port has other routes.
* A port and a link pass one flit a cycle, in each direction. A multicast loads each link of its tree once.
* DRAM: operands read and finished outputs written, in whole accesses, an n-th on each of n channels. Partial sums are
  left out: a controller may merge their writes and answer their reads from its write queue.
* A memory on the chip outside the PEs passes its words, in and out, at the bandwidths that its level states.
* Compute: the temporal loops, and the pipeline latency of every step.

So no run of the simulator takes less than `bound`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, Literal, TypeVar

import numpy.typing as npt

from cosa.analytical.routes import Endpoint, Link, endpoint, multicast_links, pe_endpoint, reduction_order
from cosa.analytical.traffic import Residency, Traffic, bytes_of
from cosa.model.layer import TENSORS, Tensor
from cosa.model.noc import Noc

BoundBy = Literal["compute", "port", "link", "memory", "dram"]

Amount = TypeVar("Amount", int, npt.NDArray[Any])

Ports = tuple[Endpoint, ...]
"""The ports of one node; a PE has one."""


@dataclass(frozen=True)
class Transfer:
    """One kind of transfer: `count` times `n_bytes` from one node to one or more."""

    tensor: Tensor
    kind: Literal["fill", "reload", "partial", "final", "reduction"]
    source: Ports
    destinations: tuple[Ports, ...]
    n_bytes: int
    count: int


@dataclass(frozen=True)
class DramData:
    """What the data bus of a DRAM channel needs: bytes and core cycles of one access."""

    access_bytes: int
    cycles_per_access: Fraction
    channels: int = 1


@dataclass(frozen=True)
class Loads:
    """Flits over the whole run, headers included: by the ports of a node and direction, and by link."""

    injected_flits: dict[Ports, int]
    ejected_flits: dict[Ports, int]
    link_flits: dict[Link, int]

    @property
    def port_cycles(self) -> int:
        """Cycles of the busiest port."""
        both = [*self.injected_flits.items(), *self.ejected_flits.items()]
        return max((-(-flits // len(ports)) for ports, flits in both), default=0)

    @property
    def link_cycles(self) -> int:
        """Cycles of the busiest link between routers."""
        return max(self.link_flits.values(), default=0)


@dataclass(frozen=True)
class Bound:
    """Cycles that no run can be below, by resource; `dram_cycles` is None where no DRAM was given."""

    compute_cycles: int
    port_cycles: int
    link_cycles: int
    memory_cycles: int
    dram_cycles: int | None

    @property
    def cycles(self) -> int:
        """The largest."""
        return max(self.compute_cycles, self.port_cycles, self.link_cycles, self.memory_cycles, self.dram_cycles or 0)

    @property
    def bound_by(self) -> BoundBy:
        """The resource with the largest."""
        named: dict[BoundBy, int] = {
            "compute": self.compute_cycles,
            "port": self.port_cycles,
            "link": self.link_cycles,
            "memory": self.memory_cycles,
            "dram": self.dram_cycles or 0,
        }
        return max(named, key=lambda name: named[name])


def flits(noc: Noc, n_bytes: Amount) -> Amount:
    """Flits of so many bytes (a number, or an array of them) in as few packets as possible, headers included."""
    flit_bytes = noc.flit_bits // 8
    packets = -(-n_bytes // (flit_bytes * noc.packet_payload_flits))
    if noc.partial_packets == "full":
        return packets * (1 + noc.packet_payload_flits)
    found: Amount = packets + -(-n_bytes // flit_bytes)
    return found


def transfers(traffic: Traffic) -> Iterator[Transfer]:
    """Every kind of transfer of a schedule over the mesh (between two memories at the global buffer there is none)."""
    noc = traffic.architecture.require_noc()
    buffer: Ports = tuple(endpoint(noc, port) for port in noc.global_buffer_ports)
    dram: Ports = tuple(endpoint(noc, port) for port in noc.dram_ports)
    for tensor in TENSORS:
        pe, on_chip = traffic.pe[tensor], traffic.on_chip[tensor]
        near = buffer if on_chip else dram
        groups = [pes for _, pes in traffic.placement.groups(pe.tile)]
        if tensor != "outputs":
            width = traffic.word_bits(tensor)
            for pes in groups:
                yield from _fills(pe, near, tuple((pe_endpoint(noc, number),) for number in pes), width)
            if on_chip:
                yield from _fills(on_chip[-1], dram, (buffer,), width)
            continue
        widths = traffic.word_bits(tensor), traffic.word_bits(tensor, finished=False)
        for pes in groups:
            pairs, root = reduction_order(pes, noc.pe_columns, traffic.architecture.machine.reduction)
            tile_bytes = bytes_of(pe.tile.words, traffic.word_bits(tensor, finished=False))
            for source, destination in pairs:
                ends = (pe_endpoint(noc, source),), ((pe_endpoint(noc, destination),),)
                yield Transfer("outputs", "reduction", *ends, tile_bytes, pe.visits)
            yield from _outputs(pe, (pe_endpoint(noc, root),), near, *widths)
        if on_chip:
            yield from _outputs(on_chip[-1], buffer, dram, *widths)


def _fills(residency: Residency, source: Ports, destinations: tuple[Ports, ...], bits: int) -> Iterator[Transfer]:
    sizes = Counter({residency.tile.words: 1})
    for j, words in enumerate(residency.changes):
        sizes[words] += residency.times(j)
    for words, count in sizes.items():
        if words and count:
            yield Transfer(residency.tensor, "fill", source, destinations, bytes_of(words, bits), count)


def _outputs(
    residency: Residency, inner: Ports, outer: Ports, final_bits: int, partial_bits: int
) -> Iterator[Transfer]:
    words, again = residency.tile.words, residency.visits - residency.distinct_tiles
    yield Transfer("outputs", "final", inner, (outer,), bytes_of(words, final_bits), residency.distinct_tiles)
    if again:
        yield Transfer("outputs", "partial", inner, (outer,), bytes_of(words, partial_bits), again)
        yield Transfer("outputs", "reload", outer, (inner,), bytes_of(words, partial_bits), again)


def loads(traffic: Traffic) -> Loads:
    """Flits that every port and link must carry.

    Raises
    ------
    InputError: the architecture has no mesh.
    """
    noc = traffic.architecture.require_noc()
    injected: Counter[Ports] = Counter()
    ejected: Counter[Ports] = Counter()
    links: Counter[Link] = Counter()
    for item in transfers(traffic):
        number = flits(noc, item.n_bytes) * item.count
        injected[item.source] += number
        for ports in item.destinations:
            ejected[ports] += number
        if len(item.source) == 1 and all(len(ports) == 1 for ports in item.destinations):
            places = [ports[0][:2] for ports in item.destinations]
            for link in multicast_links(item.source[0][:2], places):
                links[link] += number
    return Loads(dict(injected), dict(ejected), dict(links))


def dram_accesses(traffic: Traffic, access_bytes: int) -> int:
    """Accesses that must reach the DRAM: operands read, finished outputs written."""
    noc = traffic.architecture.require_noc()
    dram: Ports = tuple(endpoint(noc, port) for port in noc.dram_ports)
    return sum(
        -(-item.n_bytes // access_bytes) * item.count
        for item in transfers(traffic)
        if (item.kind == "fill" and item.source == dram) or (item.kind == "final" and item.destinations == (dram,))
    )


def memory_cycles(traffic: Traffic) -> int:
    """Cycles that the words of the busiest memory on the chip need at its stated bandwidths (0 without any)."""
    levels = traffic.architecture.levels
    cycles = 0
    for level in range(traffic.architecture.mesh_level, len(levels) - 1):
        node = traffic.node(level)
        read = sum(flow.sent_words for flow in traffic.flows if flow.source == node)
        written = sum(flow.received_words for flow in traffic.flows if flow.destination == node)
        for words, bandwidth in (
            (read, levels[level].read_bandwidth_words_per_cycle),
            (written, levels[level].write_bandwidth_words_per_cycle),
        ):
            if bandwidth:
                cycles = max(cycles, ceil(words / Fraction(bandwidth)))
    return cycles


def bound(traffic: Traffic, dram: DramData | None = None) -> Bound:
    """The bound of the machine for a schedule; without `dram` its data cycles are left out.

    Raises
    ------
    InputError: the architecture has no mesh.
    """
    found = loads(traffic)
    latency = traffic.steps * traffic.architecture.pe.pipeline_latency_cycles
    dram_cycles = None
    if dram is not None:
        each = -(-dram_accesses(traffic, dram.access_bytes) // dram.channels)
        dram_cycles = ceil(each * dram.cycles_per_access)
    compute = traffic.compute_cycles + latency
    return Bound(compute, found.port_cycles, found.link_cycles, memory_cycles(traffic), dram_cycles)
