"""Versions of what makes the figures besides this package: the interpreter, the solver, and what computes."""

from __future__ import annotations

import platform
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("highspy", "numba", "numpy")
"""`highspy` has the version of HiGHS."""


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Of Python (without the patch, which changes no figure) and of `PACKAGES`, by name."""
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # put there without being installed
            found[name] = "unknown"
    return found
