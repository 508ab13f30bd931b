"""Configurations of other DRAM simulators as devices, a module for each; :func:`read_device` tells them apart."""

from collections.abc import Callable, Mapping
from typing import Any

from cosa.common.file_kinds import kind_of
from dram.foreign import dramsim3_ini, ramulator_yaml

_READERS: Mapping[str, Callable[[str, str, list[str]], dict[str, Any]]] = {
    dramsim3_ini.KIND: dramsim3_ini.device,
    ramulator_yaml.KIND: ramulator_yaml.device,
}
OWN_KIND = "DRAM device"
KINDS = (OWN_KIND, *_READERS)
"""Kinds of files that are devices, as :mod:`cosa.common.file_kinds` names them."""


def read_device(text: str, source: str, notes: list[str]) -> dict[str, Any] | None:
    """Sections of a device file from a configuration of another simulator; None if the text is none.

    Args:
        text: of the file.
        source: its name.
        notes: gets what was assumed, or has no effect here.

    Raises:
        DramConfigError: it says what the controllers here do not do, or not what they need.
    """
    kind = kind_of(text)
    reader = _READERS.get(kind.name) if kind is not None else None
    return None if reader is None else reader(text, source, notes)
