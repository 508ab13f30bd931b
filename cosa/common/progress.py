"""How far work is, on standard error."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


class Progress:
    """A bar with a text beside it, on a terminal, from the second second on; `end` wipes it.

    Called with counts it says how many `things` are done and failed, and the time left at the pace so far. In a file or
    a pipe nothing stands, or with `log_seconds` a plain line that often.
    """

    def __init__(self, things: str = "", log_seconds: float | None = None, stream: TextIO | None = None) -> None:
        self._things, self._stream, self._log_seconds = things, stream or sys.stderr, log_seconds
        self._bar: Bar | None = None
        self.restart()
        self._next = self._started + (2.0 if self._stream.isatty() else log_seconds or 0.0)

    def restart(self) -> None:
        """Something else begins, whose time left is not known by what was before."""
        self._started, self._first = time.monotonic(), -1.0

    def __call__(self, done: int, total: int, failed: int = 0) -> None:
        """So many are done, failed ones included, of so many."""
        failures = f", {failed:,} failed" if failed else ""
        self.show(f"{done:,} of {total:,} {self._things}{failures}{self.left(done, total)}", done / max(total, 1))

    def left(self, done: float, total: float) -> str:
        """``, 3 min left``, at the pace since the first call; nothing where there is no telling."""
        if self._first < 0:
            self._first = done  # was done before, in no time
        fresh, elapsed = done - self._first, time.monotonic() - self._started
        return f", {duration(elapsed / fresh * (total - done))} left" if fresh > 0 and done < total else ""

    def show(self, text: str, share: float | None = None) -> None:
        """Show a text, at most five times a second, beside the share that is done (None: nobody knows)."""
        now = time.monotonic()
        if now < self._next:
            return
        if not self._stream.isatty():
            if self._log_seconds is not None:
                self._next = now + self._log_seconds
                print(text, file=self._stream, flush=True)
            return
        self._next = now + 0.2
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            # Without a thread of its own, and leaving both streams alone: results are printed meanwhile.
            self._bar = Bar(
                BarColumn(24),
                TextColumn("{task.description}", markup=False),
                console=Console(file=self._stream),
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._bar.add_task("")
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], total=share and 1.0, completed=share, description=text, refresh=True)

    def end(self) -> None:
        """Wipe it."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def duration(seconds: float) -> str:
    """Seconds in the two units that matter: ``45 s``, ``12 min 30 s``, ``3 h 20 min``, ``2 d 4 h``."""
    total = round(seconds)
    for large, small, unit, part in ((86400, 3600, "d", "h"), (3600, 60, "h", "min"), (60, 1, "min", "s")):
        if total >= large:
            rest = total % large // small
            return f"{total // large} {unit}" + (f" {rest} {part}" if rest else "")
    return f"{total} s"
