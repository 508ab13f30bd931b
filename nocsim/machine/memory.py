"""What the processes see of the DRAM: submit an access, be called when it is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import simpy


class Access(Protocol):
    """What is to happen when an access is done."""

    def quietly(self) -> bool:
        """Do it if no process has to hear of it; False (and nothing done) if one has, then `finish` is called."""

    def finish(self) -> None:
        """Do it, in SimPy's present."""


class MemoryChannel(Protocol):
    """One DRAM channel as an island (see `dram.DramSystem`): times are core cycles."""

    @property
    def pending(self) -> int:
        """Accesses whose completion has not been returned."""

    def submit(self, cycle: int, op: int, address: int, tag: int) -> None:
        """Stage an access."""

    def earliest_visible_cycle(self) -> int | None:
        """A cycle before which no completion becomes visible."""

    def advance(self, cycle: int) -> list[tuple[int, int]]:
        """Run to `cycle` and return (tag, cycle) of what has become visible."""


class Memory(Protocol):
    """Serves accesses of one burst. Replaceable as a whole: DRAM channels, or `IdealMemory`."""

    def submit(self, channel: int, op: int, address: int, access: Access) -> None:
        """Queue an access of one burst at a channel; `access` hears of it when its data have been transferred."""


class DramMemory:
    """DRAM channels behind the conductor."""

    def __init__(self, env: simpy.Environment, channels: Sequence[MemoryChannel], wake: Callable[[], None]) -> None:
        self._env, self.channels, self._wake = env, channels, wake
        self._accesses: dict[int, Access] = {}
        self._tag = 0
        self.cycle = 0
        """How far the channels may have run: up to the next thing that anybody can see, perhaps past SimPy's now."""

    def submit(self, channel: int, op: int, address: int, access: Access) -> None:
        """See `Memory`."""
        self._tag += 1
        self._accesses[self._tag] = access
        self.channels[channel].submit(self._env.now, op, address, self._tag)
        self._wake()

    def earliest_visible_cycle(self) -> int | None:
        """A cycle before which no access completes; None with nothing under way."""
        first: int | None = None
        for channel in self.channels:
            cycle = channel.earliest_visible_cycle()
            if cycle is not None and (first is None or cycle < first):
                first = cycle
        return first

    def advance(self, cycle: int) -> list[Access]:
        """Run all channels to `cycle`; the accesses done by then that a process has to hear of."""
        self.cycle = cycle
        heard: list[Access] = []
        for channel in self.channels:
            if channel.pending:
                for tag, _ in channel.advance(cycle):
                    access = self._accesses.pop(tag)
                    if not access.quietly():
                        heard.append(access)
        return heard


class IdealMemory:
    """Unlimited bandwidth, zero latency."""

    def __init__(self, env: simpy.Environment) -> None:
        self._env = env

    def submit(self, channel: int, op: int, address: int, access: Access) -> None:
        """See `Memory`."""

        def fire(_: Any) -> None:
            access.finish()

        event = self._env.event()
        event.callbacks.append(fire)
        event.succeed()
