"""When a simulation ends before its end, and how it is watched."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Ending = Literal["finished", "max_cycles", "time_limit", "interrupted"]

Progress = Callable[[float, int], None]
"""Called now and then with the share of steps that are computed (0 to 1) and the cycle.

A long schedule is run in rounds (`nocsim.machine.extrapolate`); each begins at 0.
"""


@dataclass(frozen=True)
class Limits:
    """Ends a run early: nothing after `max_cycles` is simulated; `time_limit_seconds` of wall-clock time.

    With `keep_interrupted` Ctrl-C ends the run with a partial result too, else it is raised as everywhere.
    """

    max_cycles: int | None = None
    time_limit_seconds: float | None = None
    keep_interrupted: bool = False


class ProgressLine:
    """A line on standard error with share, cycle and time left; on a terminal, and only after two seconds.

    Each round has a line of its own, with the time left of that round: whether another one follows nobody knows yet.
    """

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._next = self._started + 2
        self._shown = False
        self._round = 1
        self._share = 0.0

    def __call__(self, share: float, cycle: int) -> None:
        """Show it, at most five times a second."""
        now = time.monotonic()
        if share < self._share:
            self._round += 1
            self._started = now
        self._share = share
        if now < self._next or not sys.stderr.isatty():
            return
        self._next = now + 0.2
        self._shown = True
        elapsed = now - self._started
        left = f", {elapsed / share * (1 - share):.0f} s left" if share > 0.01 else ""
        which = f"round {self._round}: " if self._round > 1 else ""
        line = f"{which}{share:6.1%} computed, cycle {cycle:,}{left}"
        print(f"\r{line:70}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Wipe the line."""
        if self._shown:
            print("\r" + " " * 70 + "\r", end="", file=sys.stderr, flush=True)
