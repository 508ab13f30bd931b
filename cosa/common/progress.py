"""The line on the terminal that counts what is done."""

from __future__ import annotations

import sys
import time


class LayerProgress:
    """A line on standard error that counts layers, with the time left; only on a terminal, only after two seconds."""

    def __init__(self, what: str = "layers") -> None:
        self._what = what
        self._started = time.monotonic()
        self._first: int | None = None

    def __call__(self, done: int, layers: int) -> None:
        """So many layers are done, of so many."""
        elapsed = time.monotonic() - self._started
        if self._first is None:
            self._first = done
        if elapsed < 2 or not sys.stderr.isatty():
            return
        fresh = done - self._first
        left = f", {elapsed / fresh * (layers - done):.0f} s left" if fresh else ""
        bar = "#" * (20 * done // layers) if layers else ""
        end = "\n" if done == layers else ""
        print(f"\r[{bar:20}] {done} of {layers} {self._what}{left}   ", end=end, file=sys.stderr, flush=True)
