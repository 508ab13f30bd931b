"""When a simulation ends before its end, and who watches it."""

from __future__ import annotations

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
