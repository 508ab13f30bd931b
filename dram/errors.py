"""Errors of the DRAM package."""

from cosa.common.errors import CosaError


class DramConfigError(CosaError, ValueError):
    """A DRAM device file or configuration cannot be used; the text names file, field, value and what is allowed."""


class DramOrderError(ValueError):
    """A call would move time backwards, for example a request submitted before the cycle already simulated."""
