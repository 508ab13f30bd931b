"""Synthetic traffic on the cycle-exact mesh: load, latency, hops and links, as the NoC literature reports them.

Every local endpoint creates packets on its own, in each cycle with probability rate / flits (a Bernoulli process), and
keeps those that cannot enter yet in a queue without limit, so the offered load never yields to the network.

A run has three parts: the warm-up, whose packets are not measured; the measurement; and a drain, in which traffic goes
on until every packet created in the measurement has arrived, at most as long as the measurement. A run that is already
saturated is not drained.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, Literal

import numpy as np

from cosa.common.errors import InputError
from cosa.common.files import FileModel, Model
from nocsim.mesh.heat import LinkHeat
from nocsim.mesh.routing import ROUTER_CYCLES
from nocsim.mesh.topology import Link, LinkKind
from nocsim.traffic.packet_stream import PacketReplay
from nocsim.traffic.packets import Int64s, Packets
from nocsim.traffic.patterns import Pattern

MAX_SWEEP_POINTS = 1000
_DRAWS_AT_ONCE = 1 << 16  # random numbers, one for each node and cycle
_DRAIN_STEP_CYCLES = 512
_SETTLED_CYCLES = 100
"""Without any movement for so long nothing moves any more: a flit that can move moves within a few cycles."""

_PARTS = 8  # of the measurement, between which the source queues are looked at
_FEW_PACKETS = 4
_NOISE = 4.0  # standard deviations of the number of packets that a source creates
_STEADY = 5.0  # standard errors of a slope
_SHARE_QUEUED = 0.01  # of the packets created


class Latency(Model):
    """Cycles; percentiles are nearest-rank. None without any packet."""

    mean: float | None
    p50: int | None
    p90: int | None
    p95: int | None
    p99: int | None
    maximum: int | None


class LinkShares(Model):
    """Busy share of links in the measurement: the mean over all of a kind, and the busiest with its share."""

    mean: float
    maximum: float
    busiest: str | None


class TrafficResult(FileModel):
    """What synthetic traffic did; loads in flits/node/cycle in the measurement.

    Attributes
    ----------
    offered: flits created, which differs from the rate asked for by the noise of the random process
    accepted: flits that arrived, each copy of a multicast counted as one part of its packet's fan-out
    packet_latency: from the cycle of creation to the ejection of the tail flit, so waiting at the source is included
    network_latency: from the entry of the head flit to the ejection of the tail flit
    zero_load_latency: mean of what the same packets would need in an empty mesh
    mean_hops: links between routers on the way from source to destination, mean over packets and destinations
    measured_packets: created in the measurement; `unfinished_packets` of them had not arrived at the end
    queued_flits: flits of packets that waited at the sources at the end of the measurement
    saturated: the network does not keep up: a source's queue grew in the measurement by more than the noise of what it
        creates (four standard deviations), or all queues together grew steadily by more than 1 % of the packets
        created, or measured packets did not arrive in the drain. Latencies then depend on the length of the run
    """

    kind: Literal["traffic_result"] = "traffic_result"
    schema_version: Literal[1] = 1
    pattern: str
    mesh: str
    fifo_flits: int
    reservation_flits: int
    packet_flits: int
    fan_out: int
    rate: float
    seed: int
    warmup_cycles: int
    measured_cycles: int
    drain_cycles: int
    offered: float
    accepted: float
    saturated: bool
    deadlocked: bool
    packet_latency: Latency
    network_latency: Latency
    zero_load_latency: float | None
    mean_hops: float | None
    measured_packets: int
    unfinished_packets: int
    queued_flits: int
    mesh_links: LinkShares
    injection_links: LinkShares
    ejection_links: LinkShares


class _Histogram:
    """Counts of whole cycles; its size is that of the largest one seen."""

    def __init__(self) -> None:
        self._counts = np.zeros(64, dtype=np.int64)

    def add(self, values: Int64s) -> None:
        """Count some values."""
        found = np.bincount(values, minlength=self._counts.size)
        found[: self._counts.size] += self._counts
        self._counts = found

    def latency(self) -> Latency:
        """Mean and percentiles."""
        total = int(self._counts.sum())
        if total == 0:
            return Latency(mean=None, p50=None, p90=None, p95=None, p99=None, maximum=None)
        below = np.cumsum(self._counts)

        def percentile(share: int) -> int:
            return int(np.searchsorted(below, -(-share * total // 100)))

        mean = float((self._counts * np.arange(self._counts.size)).sum()) / total
        return Latency(
            mean=mean,
            p50=percentile(50),
            p90=percentile(90),
            p95=percentile(95),
            p99=percentile(99),
            maximum=int(np.flatnonzero(self._counts)[-1]),
        )


class SyntheticTraffic:
    """One run of synthetic traffic; `run` does it, `heat` has the links of the measurement afterwards.

    Parameters
    ----------
    pattern: where packets go
    rate: offered load in flits/node/cycle, above 0 and at most 1 (a source's link takes one flit a cycle)
    packet_flits: length of every packet, header flit included
    cycles: length of the run without the drain, warm-up included
    warmup_cycles: default a fifth of ``cycles``
    seed: of the random numbers; the same seed gives the same result
    fifo_flits, reservation_flits: as in `nocsim.mesh.mesh.Mesh`

    Raises
    ------
    InputError: a parameter is out of range.
    """

    def __init__(
        self,
        pattern: Pattern,
        rate: float,
        *,
        packet_flits: int = 5,
        cycles: int = 100_000,
        warmup_cycles: int | None = None,
        seed: int = 1,
        fifo_flits: int = 7,
        reservation_flits: int = 5,
    ) -> None:
        if not 0 < rate <= 1:
            raise InputError("no such load", source="--rate", value=rate, allowed="above 0, up to 1 flit/node/cycle")
        if not 1 <= packet_flits <= 1_000_000:
            raise InputError("no such length", source="--flits", value=packet_flits, allowed="1..1000000")
        if not 10 <= cycles <= 10**12:
            raise InputError("no such length of a run", source="--cycles", value=cycles, allowed="10..1000000000000")
        warmup = cycles // 5 if warmup_cycles is None else warmup_cycles
        if not 0 <= warmup < cycles:
            raise InputError("nothing is left to measure", source="--warmup", value=warmup, allowed=f"0..{cycles - 1}")
        if not 0 <= seed < 2**63:
            raise InputError("no such seed", source="--seed", value=seed, allowed=f"0..{2**63 - 1}")
        if pattern.multicast and reservation_flits > fifo_flits:
            raise InputError(
                f"no multicast could ever start with FIFOs of {fifo_flits} flits",
                source="--reservation",
                value=reservation_flits,
                allowed=f"1..{fifo_flits}",
            )
        self.pattern, self.rate, self.packet_flits, self.seed = pattern, rate, packet_flits, seed
        self.cycles, self.warmup_cycles = cycles, warmup
        self.fifo_flits, self.reservation_flits = fifo_flits, reservation_flits
        self.topology = pattern.topology
        self.replay = PacketReplay(self.topology, fifo_flits, reservation_flits)
        self.heat = LinkHeat(self.topology, np.zeros(self.topology.n_links, dtype=np.int64), 0)
        self._rng = np.random.default_rng(seed)
        self._created = 0  # packets so far
        self._unfinished_packets = 0  # of the measurement
        self._sum_hops = self._n_hops = 0
        self._packet_latency, self._network_latency = _Histogram(), _Histogram()
        nodes = np.arange(self.topology.n_routers, dtype=np.int64)
        self._row, self._column = np.divmod(nodes, self.topology.columns)

    def run(self) -> TrafficResult:
        """Warm up, measure, drain."""
        replay, window = self.replay, self.cycles - self.warmup_cycles
        self._advance(0, self.warmup_cycles)
        flits_before, created_before = replay.link_flits(), self._created
        backlogs = [replay.source_backlog()]
        for part in range(_PARTS):
            first, last = (self.warmup_cycles + window * p // _PARTS for p in (part, part + 1))
            flits_in_part = replay.link_flits().sum()
            self._advance(first, last)
            backlogs.append(replay.source_backlog())
        # Sources that wait while no flit moves for a whole part of the window wait for ever.
        still = last - first > _SETTLED_CYCLES and replay.link_flits().sum() == flits_in_part
        deadlocked = replay.stalled or bool(still and backlogs[-1].any())
        created = self._created - created_before
        self.heat = LinkHeat(self.topology, replay.link_flits() - flits_before, window)
        saturated = deadlocked or self._grew(np.array(backlogs), created, window)
        drained = self.cycles
        while not saturated and not replay.stalled and self._draining():
            if drained >= self.cycles + window:
                saturated = True
                break
            drained = self._advance(drained, min(drained + _DRAIN_STEP_CYCLES, self.cycles + window))
        self._measure(everything=True)

        n_nodes = self.topology.n_routers
        ejected = int(self.heat.flits[self.topology.first_ejection_link :].sum())
        hops = self._sum_hops / self._n_hops if self._n_hops else None
        return TrafficResult(
            pattern=self.pattern.name,
            mesh=f"{self.topology.columns}x{self.topology.rows}",
            fifo_flits=self.fifo_flits,
            reservation_flits=self.reservation_flits,
            packet_flits=self.packet_flits,
            fan_out=self.pattern.fan_out,
            rate=self.rate,
            seed=self.seed,
            warmup_cycles=self.warmup_cycles,
            measured_cycles=window,
            drain_cycles=drained - self.cycles,
            offered=created * self.packet_flits / (n_nodes * window),
            accepted=ejected / (self.pattern.fan_out * n_nodes * window),
            saturated=saturated or replay.stalled,
            deadlocked=deadlocked or replay.stalled,
            packet_latency=self._packet_latency.latency(),
            network_latency=self._network_latency.latency(),
            zero_load_latency=None if hops is None else ROUTER_CYCLES * (hops + 1) + self.packet_flits,
            mean_hops=hops,
            measured_packets=created,
            unfinished_packets=self._unfinished_packets,
            queued_flits=int(backlogs[-1].sum()) * self.packet_flits,
            mesh_links=self._shares(LinkKind.ROUTER),
            injection_links=self._shares(LinkKind.INJECTION),
            ejection_links=self._shares(LinkKind.EJECTION),
        )

    # ---- inside

    def _advance(self, start: int, stop: int) -> int:
        """Create the packets of cycles start .. stop - 1 and run to ``stop``, which is returned."""
        n_nodes = self.topology.n_routers
        step = max(16, _DRAWS_AT_ONCE // n_nodes)
        for first in range(start, stop, step):
            last = min(first + step, stop)
            draws = self._rng.random((last - first, n_nodes))
            cycle, src = np.nonzero(draws < self.rate / self.packet_flits)
            dsts = self.pattern.draw(src, self._rng)
            n, fan_out = dsts.shape
            packets = Packets(
                number=np.arange(self._created, self._created + n, dtype=np.int64),
                multicast=np.full(n, self.pattern.multicast, dtype=np.bool_),
                src=src,
                inject_cycle=cycle + first,
                n_flits=np.full(n, self.packet_flits, dtype=np.int64),
                dst_starts=np.arange(0, (n + 1) * fan_out, fan_out, dtype=np.int64),
                dsts=dsts.reshape(-1),
            )
            self.replay.feed(packets, last)
            self._created += n
            self._measure()
            if self.replay.stalled:
                break
        return stop

    def _measure(self, *, everything: bool = False) -> None:
        """Take what has arrived into the statistics."""
        found = self.replay.take(everything=everything)
        if found is None:
            return
        measured = (found.created >= self.warmup_cycles) & (found.created < self.cycles)
        missing = measured & (found.tail_out < 0)
        self._unfinished_packets += int(np.unique(found.packet[missing]).size)
        measured &= found.tail_out >= 0
        tail_out, src, dst = found.tail_out[measured], found.src[measured], found.dst[measured]
        self._packet_latency.add(tail_out - found.created[measured])
        self._network_latency.add(tail_out - found.head_in[measured])
        hops = np.abs(self._column[src] - self._column[dst]) + np.abs(self._row[src] - self._row[dst])
        self._sum_hops += int(hops.sum())
        self._n_hops += hops.size

    def _draining(self) -> bool:
        """Whether a packet of the measurement is still on its way."""
        first = self.replay.first_open_cycle()
        return first is not None and first < self.cycles

    def _grew(self, backlogs: Int64s, created: int, window: int) -> bool:
        """Whether the source queues grew in the window; their lengths at equal distances, shape (times, endpoints)."""
        share = self.rate / self.packet_flits
        noise = _NOISE * float(np.sqrt(window * share * (1 - share)))
        # a stable queue fluctuates by a few packets, whatever the length of the run
        if int((backlogs[-1] - backlogs[0]).max()) > noise + _FEW_PACKETS:
            return True
        total = backlogs.sum(axis=1).astype(np.float64)
        time = np.arange(total.size) - (total.size - 1) / 2
        slope = float((time * total).sum() / (time * time).sum())
        rest = total - total.mean() - slope * time
        error = float(np.sqrt((rest * rest).sum() / (total.size - 2) / (time * time).sum()))
        growth = slope * (total.size - 1)
        return growth > max(_SHARE_QUEUED * created, _FEW_PACKETS) and slope > _STEADY * error

    def _shares(self, kind: LinkKind) -> LinkShares:
        """Busy shares of the links of one kind; of the ports only the local ones."""
        names = self.topology.link_names()
        chosen = [link.number for link in self.topology.links() if link.kind == kind and self._is_inner(link)]
        shares = self.heat.busy_share[chosen]
        if not shares.size:
            return LinkShares(mean=0.0, maximum=0.0, busiest=None)
        busiest = int(np.argmax(shares))
        return LinkShares(mean=float(shares.mean()), maximum=float(shares[busiest]), busiest=names[chosen[busiest]])

    def _is_inner(self, link: Link) -> bool:
        ends = {LinkKind.INJECTION: link.source, LinkKind.EJECTION: link.target}
        return ends.get(link.kind, 0) < self.topology.n_routers


def sweep(pattern: Pattern, rates: Iterable[float], **options: Any) -> Iterator[TrafficResult]:
    """One result for each rate; options as those of `SyntheticTraffic`. Each point starts anew, from the same seed."""
    for rate in rates:
        yield SyntheticTraffic(pattern, rate, **options).run()


def sweep_rates(text: str) -> list[float]:
    """Rates of ``"first:last:step"``, both ends included.

    Raises InputError if it is not of that form or not a range of rates.

    Examples
    --------
    >>> sweep_rates("0.1:0.4:0.1")
    [0.1, 0.2, 0.3, 0.4]
    """
    allowed = (
        f"FIRST:LAST:STEP with 0 < FIRST <= LAST <= 1 and at most {MAX_SWEEP_POINTS} points, such as 0.02:0.6:0.02"
    )
    try:
        first, last, step = (Decimal(part.strip()) for part in text.split(":"))
        # decimals, so that 0.02:0.6:0.02 means what it says
        valid = 0 < first <= last <= 1 and step > 0 and (last - first) / step < MAX_SWEEP_POINTS
    except (ValueError, ArithmeticError):
        valid = False
    if not valid:
        raise InputError("not a range of rates", source="--sweep", value=text, allowed=allowed)
    return [float(first + step * point) for point in range(int((last - first) / step) + 1)]
