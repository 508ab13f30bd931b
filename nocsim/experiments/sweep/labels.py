"""Names of layers and architectures by which they can be told apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def distinct(names: Iterable[str]) -> list[str]:
    """The names, with ``#2``, ``#3`` ... behind those that were there before."""
    found: list[str] = []
    for name in names:
        label, number = name, 1
        while label in found:
            number += 1
            label = f"{name}#{number}"
        found.append(label)
    return found


def layer_labels(values: Sequence[Any], names: Sequence[str]) -> list[str]:
    """Labels of the values of the axis `layer`, from the values and the names of the layers.

    ``network:layer`` stays as it is; a file or a layer given in full goes by the name of the layer.
    """
    named = zip(values, names, strict=True)
    return distinct(value if isinstance(value, str) and ":" in value else name for value, name in named)


def architecture_labels(values: Sequence[Any]) -> list[str]:
    """Labels of the values of the axis `architecture`: as given, or by its name if given in full."""
    return distinct(value.get("name", "architecture") if isinstance(value, dict) else str(value) for value in values)
