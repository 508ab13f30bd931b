"""Errors of a simulation, each with the exit code of the command line."""

from __future__ import annotations

from cosa.common.errors import CosaError


class SimulationError(CosaError):
    """The simulation cannot go on (a deadlock, or processes that wait for each other); the message says why."""

    exit_code = 1
