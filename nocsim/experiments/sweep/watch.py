"""How far a sweep is, on standard error: a bar with failures and the time left."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from nocsim.experiments.sweep.spec import SweepCounts

_BAR = 24
_LOG_SECONDS = 60.0


def duration(seconds: float) -> str:
    """Seconds in the two units that matter: ``45 s``, ``12 min 30 s``, ``3 h 20 min``, ``2 d 4 h``."""
    total = round(seconds)
    for large, small, unit, part in ((86400, 3600, "d", "h"), (3600, 60, "h", "min"), (60, 1, "min", "s")):
        if total >= large:
            rest = total % large // small
            return f"{total // large} {unit}" + (f" {rest} {part}" if rest else "")
    return f"{total} s"


class SweepBar:
    """A bar on a terminal, from the second second on; in a file or a pipe one line a minute."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._started = time.monotonic()
        self._next = self._started + (2.0 if self._stream.isatty() else _LOG_SECONDS)
        self._first: int | None = None
        self._width = 0

    def __call__(self, counts: SweepCounts) -> None:
        """Show it."""
        ended = counts.done + counts.failed
        if self._first is None:
            self._first = ended
        now = time.monotonic()
        if now < self._next:
            return
        text = self.text(counts, now - self._started)
        if not self._stream.isatty():
            self._next = now + _LOG_SECONDS
            print(text, file=self._stream, flush=True)
            return
        print(f"\r{text:{self._width}}", end="", file=self._stream, flush=True)
        self._width = len(text)

    def text(self, counts: SweepCounts, elapsed: float) -> str:
        """The line: bar, points, failures, time left at the pace so far."""
        ended = counts.done + counts.failed
        full = _BAR * ended // counts.points
        fresh = ended - (self._first or 0)
        left = f", {duration(elapsed / fresh * counts.left)} left" if fresh and counts.left else ""
        failed = f", {counts.failed} failed" if counts.failed else ""
        return f"[{'#' * full}{'.' * (_BAR - full)}] {ended} of {counts.points} points{failed}{left}"

    def end(self) -> None:
        """Wipe the bar."""
        if self._width:
            print("\r" + " " * self._width + "\r", end="", file=self._stream, flush=True)
