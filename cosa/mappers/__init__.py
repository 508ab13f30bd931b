"""Mappers: what makes schedules. One function for all of them, by name.

>>> from cosa.mappers import Budget, map_layer
>>> map_layer("random", layer, architecture, budget=Budget(samples=5), seed=0, workers=2)  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cosa.mappers.broken import BrokenShares, broken_shares
    from cosa.mappers.registry import MAPPERS, map_layer
    from cosa.mappers.search import Budget

__all__ = ["MAPPERS", "BrokenShares", "Budget", "broken_shares", "map_layer"]

_HOME = {
    "MAPPERS": "registry",
    "map_layer": "registry",
    "Budget": "search",
    "BrokenShares": "broken",
    "broken_shares": "broken",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module 'cosa.mappers' has no attribute {name!r}")
    return getattr(import_module(f"cosa.mappers.{_HOME[name]}"), name)
