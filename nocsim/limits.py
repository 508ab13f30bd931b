"""When a simulation ends before its end, and how it is watched."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Ending = Literal["finished", "max_cycles", "time_limit", "interrupted"]

Progress = Callable[[float, int], None]
"""Called now and then with the share of steps that are computed (0 to 1) and the cycle."""


@dataclass(frozen=True)
class Limits:
    """Ends a run early: nothing after `max_cycles` is simulated; `time_limit_seconds` of wall-clock time.

    With `keep_interrupted` Ctrl-C ends the run with a partial result too, else it is raised as everywhere.
    """

    max_cycles: int | None = None
    time_limit_seconds: float | None = None
    keep_interrupted: bool = False


class ProgressLine:
    """A line on standard error with share, cycle and time left; on a terminal, and only after two seconds."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._next = self._started + 2
        self._shown = False

    def __call__(self, share: float, cycle: int) -> None:
        """Show it, at most five times a second."""
        now = time.monotonic()
        if now < self._next or not sys.stderr.isatty():
            return
        self._next = now + 0.2
        self._shown = True
        elapsed = now - self._started
        left = f", {elapsed / share * (1 - share):.0f} s left" if share > 0.01 else ""
        print(f"\r{share:6.1%} computed, cycle {cycle:,}{left}   ", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Wipe the line."""
        if self._shown:
            print("\r" + " " * 60 + "\r", end="", file=sys.stderr, flush=True)
