"""Replaying a trace from one source that presents its requests strictly in order, in memory that does not grow.

The source presents a request in its wished-for DRAM clock or later, at most ``width`` of them in a clock over all
channels together, and stops for that clock at the first one for which its controller has no room.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dram.channel import WRITE
from dram.config import DramConfig
from dram.losses import DramLosses
from dram.queues_kernel import STAGED_EDGE, STAGED_TAIL, Ints
from dram.stats import DramStats
from dram.system import DramSystem
from dram.traces import CHUNK, Requests

_RING = 16 * CHUNK
_OPEN_PARTS = 14
"""Chunks that may be under way. A posted write may wait that long to be written, then its time is not told."""


@dataclass(frozen=True)
class Served:
    """Requests whose times are known, in trace order: what was asked, and DRAM clocks (-1: never)."""

    first: int
    requests: Requests
    accepted: Ints
    cas: Ints
    completed: Ints


@dataclass
class Latencies:
    """DRAM clocks from acceptance to completion, as counts for each length."""

    counts: Ints = field(default_factory=lambda: np.zeros(1024, np.int64))
    from_arrival_sum: int = 0

    def add(self, latencies: Ints, waits: Ints) -> None:
        """Count some requests; ``waits`` are the clocks before acceptance."""
        if len(latencies) == 0:
            return
        new = np.bincount(latencies)
        if len(new) > len(self.counts):
            self.counts = np.concatenate([self.counts, np.zeros(2 * len(new) - len(self.counts), np.int64)])
        self.counts[: len(new)] += new
        self.from_arrival_sum += int(latencies.sum() + waits.sum())

    @property
    def number(self) -> int:
        """Requests counted."""
        return int(self.counts.sum())

    def summary(self) -> dict[str, float] | None:
        """Mean, median, 95th percentile, least and most; ``None`` without requests."""
        number = self.number
        if not number:
            return None
        lengths = np.flatnonzero(self.counts)
        cumulative = np.cumsum(self.counts)
        return {
            "mean": float((self.counts * np.arange(len(self.counts))).sum()) / number,
            "p50": int(np.searchsorted(cumulative, int(0.50 * number), side="right")),
            "p95": int(np.searchsorted(cumulative, int(0.95 * number), side="right")),
            "min": int(lengths[0]),
            "max": int(lengths[-1]),
            "mean_from_arrival": self.from_arrival_sum / number,
        }


@dataclass(frozen=True)
class _Part:
    """A chunk under way: the number of its first request, and the rows of the request logs that tell its times."""

    first: int
    requests: Requests
    channels: Ints
    places: Ints


class Replay:
    """Runs a trace and hands over what is served.

    After :meth:`run` is exhausted, ``stats``, ``losses``, ``reads`` and ``writes`` hold the figures of the whole run.

    Args:
        config: the DRAM.
        width: most requests that the source presents in a DRAM clock.
        tail_clocks: DRAM clocks to go on after the last completion (posted writes may still be waiting then).
    """

    def __init__(self, config: DramConfig, width: int = 1, tail_clocks: int = 0) -> None:
        self.config, self.width = config, width
        self.system = DramSystem(config, Fraction(1), requests_per_clock=width, in_order=True, request_ring=_RING)
        self.reads, self.writes = Latencies(), Latencies()
        self.first_clock, self.last_clock, self.requests = -1, 0, 0
        self.beyond_capacity, self.first_beyond = 0, -1
        """requests whose address wraps at the capacity, and the address of the first one"""
        self._clock = 0
        self._tail_clocks = tail_clocks
        self._parts: deque[_Part] = deque()
        self._posted = config.controller.posts_writes

    @property
    def stats(self) -> DramStats:
        """Counts up to now."""
        return self.system.stats

    @property
    def losses(self) -> DramLosses:
        """Where the clocks of all data buses went."""
        return self.system.losses

    def run(self, chunks: Iterable[Requests]) -> Iterator[Served]:
        """Replay; yields what is served, in trace order."""
        feed = self._stage if len(self.system.channels) == 1 else self._present
        number = 0
        for chunk in chunks:
            for start in range(0, len(chunk.cycles), CHUNK):
                columns = (chunk.cycles, chunk.ops, chunk.addresses)
                requests = Requests(*(column[start : start + CHUNK] for column in columns))
                part = self._part(number, requests)
                number += len(requests.cycles)
                self._parts.append(part)
                feed(part)
                yield from self._served(len(self._parts) - _OPEN_PARTS)
        while self.system.pending:
            self._advance(max(self.system.earliest_visible_cycle() or 0, self._clock + 1))
        if self._tail_clocks:
            self._advance(self._clock + self._tail_clocks + 1)
        yield from self._served(len(self._parts))

    def _part(self, first: int, requests: Requests) -> _Part:
        system = self.system
        channels = np.zeros(len(requests.cycles), np.int64)
        if len(system.channels) > 1:
            channels = system.channel_of(requests.addresses)
        places = np.zeros(len(channels), np.int64)
        for number, channel in enumerate(system.channels):
            own = np.flatnonzero(channels == number)
            places[own] = (channel.submitted + np.arange(len(own))) & (_RING - 1)
            channel.request_log[places[own]] = -1
        return _Part(first, requests, channels, places)

    def _stage(self, part: _Part) -> None:
        """One channel: hand it everything; its kernel takes the requests in order."""
        channel, requests = self.system.channels[0], part.requests
        channel.submit_many(np.maximum(requests.cycles, self._clock), requests.ops, requests.addresses, part.places)
        # at most ``width`` are taken in a clock, so the next chunk comes before the channel has none left
        while channel.staged_requests > CHUNK // 4:
            last = int(channel.staged[0, int(channel.io[STAGED_TAIL]) - 1, STAGED_EDGE])
            self._advance(max(self._clock + (channel.staged_requests - 1) // self.width, last))

    def _present(self, part: _Part) -> None:
        """Several channels: present one request after the other, for each waits for the one before it."""
        system, requests = self.system, part.requests
        rows = zip(*(column.tolist() for column in (requests.cycles, requests.ops, requests.addresses)), strict=True)
        presented = 0
        for (cycle, op, address), number in zip(rows, part.channels.tolist(), strict=True):
            channel = system.channels[number]
            while presented == self.width or cycle > self._clock or not channel.room(op, address):
                self._advance(max(self._clock + 1, cycle))
                presented = 0
            channel.submit(self._clock, op, address, 0)
            presented += 1

    def _advance(self, clock: int) -> None:
        for channel in self.system.channels:
            channel.run_to(clock)
            channel.discard(clock)
        self._clock = clock

    def _served(self, at_least: int) -> Iterator[Served]:
        """Hand over the chunks at the front that are served, and ``at_least`` so many in any case."""
        while self._parts:
            part = self._parts[0]
            times = np.empty((len(part.places), 3), np.int64)
            for number, channel in enumerate(self.system.channels):
                own = part.channels == number
                times[own] = channel.request_log[part.places[own]]
            accepted, cas, completed = (np.ascontiguousarray(times[:, column]) for column in range(3))
            open_rows = (completed < 0) | (cas == -1) if self._posted else completed < 0
            if open_rows.any():
                if at_least <= 0:
                    return
                for place, number in np.stack([part.places, part.channels])[:, open_rows].T.tolist():
                    self.system.channels[number].forget(place)
            at_least -= 1
            self._parts.popleft()
            self._count(part.requests, accepted, completed)
            yield Served(part.first, part.requests, accepted, np.maximum(cas, -1), completed)

    def _count(self, requests: Requests, accepted: Ints, completed: Ints) -> None:
        if self.first_clock < 0:
            self.first_clock = int(accepted[0])
        self.last_clock = max(self.last_clock, int(completed.max()))
        self.requests += len(accepted)
        beyond = requests.addresses >= self.config.capacity_bytes
        if beyond.any():
            if not self.beyond_capacity:
                self.first_beyond = int(requests.addresses[beyond.argmax()])
            self.beyond_capacity += int(np.count_nonzero(beyond))
        write = requests.ops == WRITE
        for latencies, own in ((self.reads, ~write), (self.writes, write)):
            latencies.add((completed - accepted)[own], (accepted - requests.cycles)[own])
