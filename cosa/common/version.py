"""The version of the installed package."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1)
def version() -> str:
    """Version as installed; ``0+unknown`` when the sources run without being installed."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("cosa-nocsim")
    except PackageNotFoundError:
        return "0+unknown"
