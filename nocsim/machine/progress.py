"""Counters that processes wait on: every hand-over in the machine is 'wait until so many have happened'."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import simpy


class Counter:
    """A count that only grows. `reach(n)` is an event that fires when the count is n or more.

    Waiters of the same count are woken in the order in which they came.
    """

    __slots__ = ("_env", "_order", "_waiters", "value")

    def __init__(self, env: simpy.Environment) -> None:
        self._env = env
        self._waiters: list[tuple[int, int, Any]] = []
        self._order = 0
        self.value = 0

    def add(self, amount: int = 1) -> None:
        """Count up, and wake whoever waited for this."""
        self.value += amount
        while self._waiters and self._waiters[0][0] <= self.value:
            heappop(self._waiters)[2].succeed()

    @property
    def wakes_next(self) -> bool:
        """Whether somebody waits for the very next count."""
        return bool(self._waiters) and self._waiters[0][0] <= self.value + 1

    def reach(self, count: int) -> Any:
        """An event that fires once the count has reached `count` (at once if it has)."""
        event = self._env.event()
        if count <= self.value:
            event.succeed()
        else:
            self._order += 1
            heappush(self._waiters, (count, self._order, event))
        return event
