"""One component of an architecture file and the facts that follow from its attributes: widths, sizes, instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from cosa.interop.expressions import evaluate
from cosa.interop.places import Where, number_of, text_of, whole_of
from cosa.interop.timeloop_model import ArchLevel

DEFAULT_WORD_BITS = 16

# Several names of one attribute; the first one counts if several are given and agree.
_ALIASES: dict[str, tuple[str, ...]] = {
    "word_bits": ("word_bits", "datawidth", "word_width"),
    "width": ("width", "memory_width", "data_storage_width"),
    "depth": ("depth", "memory_depth", "data_storage_depth"),
    "block_size": ("block_size", "n_words"),
    "cluster_size": ("cluster_size",),
    "entries": ("entries",),
    "sizeKB": ("sizeKB",),
    "instances": ("instances",),
    "meshX": ("meshX",),
    "meshY": ("meshY",),
    "bandwidth": ("bandwidth",),
    "read_bandwidth": ("read_bandwidth",),
    "write_bandwidth": ("write_bandwidth",),
    "network_word_bits": ("network_word_bits",),
    "vector_access_energy": ("vector_access_energy",),
    "technology": ("technology",),
    "multiple_buffering": ("multiple_buffering",),
    "energy_per_op": ("energy_per_op",),
    "global_cycle_seconds": ("global_cycle_seconds",),
    "multiplier_width": ("multiplier_width",),
}
MEANING = tuple(name for names in _ALIASES.values() for name in names)

_STORAGE_CLASSES = ("dram", "sram", "regfile", "smartbuffer", "storage")
_COMPUTE_CLASSES = ("mac", "compute")


def kind_of_class(name: str) -> Literal["storage", "compute"] | None:
    """What a component of a class is, by the parts of its name as in Timeloop; None: neither memory nor compute."""
    folded = name.lower()
    if any(part in folded for part in _STORAGE_CLASSES):
        return "storage"
    return "compute" if any(part in folded for part in _COMPUTE_CLASSES) else None


@dataclass(frozen=True)
class Attributes:
    """Attributes of a component with what it inherits; values may be expressions over `names`."""

    values: Mapping[str, Any]
    where: Where
    names: Mapping[str, Any]

    def get(self, name: str) -> Any:
        """Value of an attribute under any of its names, computed; None when it is not given.

        Raises
        ------
        InputError: two of its names with different values.
        """
        given = [alias for alias in _ALIASES[name] if self.values.get(alias) is not None]
        if not given:
            return None
        found = {alias: evaluate(self.values[alias], self.names, self.where.at(alias)) for alias in given}
        first = found[given[0]]
        for alias, value in found.items():
            if value != first:
                raise self.where.at(alias).error(f"contradicts {given[0]}, which is the same", value=value)
        return first

    def whole(self, name: str, at_least: int = 1) -> int | None:
        """A whole-number attribute."""
        value = self.get(name)
        return None if value is None else whole_of(value, self.where.at(name), at_least)

    def number(self, name: str) -> float | None:
        """A numeric attribute; infinity is none."""
        value = self.get(name)
        if value is None or value == float("inf"):
            return None
        return number_of(value, self.where.at(name))

    def text(self, name: str) -> str:
        """A text attribute, empty when not given."""
        value = self.values.get(name)
        return "" if value is None else text_of(value, self.where.at(name))


def storage_level(name: str, component_class: str, attributes: Attributes) -> ArchLevel:
    """Width, block, cluster, size and bandwidth of a memory.

    Block size is what is given, else width / cluster size / word bits. Size in words is `entries`, else
    depth x block size, else sizeKB; a DRAM is unlimited.
    """
    where = attributes.where
    word_bits = attributes.whole("word_bits") or DEFAULT_WORD_BITS
    cluster = attributes.whole("cluster_size") or 1
    width = attributes.whole("width")
    block = attributes.whole("block_size")
    if block is None:
        block = 1
        if width is not None:
            if width % (cluster * word_bits):
                allowed = f"a multiple of cluster_size x word_bits = {cluster} x {word_bits}"
                raise where.at("width").error("does not divide into words", value=width, allowed=allowed)
            block = width // cluster // word_bits
    entries, depth = attributes.whole("entries", at_least=0), attributes.whole("depth", at_least=0)
    kilobytes = attributes.number("sizeKB")
    if entries is None and depth is not None:
        entries = depth * block
    if entries is None and kilobytes is not None:
        entries = int(kilobytes * 1024 * 8) // word_bits
    technology = attributes.text("technology")
    if "DRAM" in component_class.upper() or technology.upper() == "DRAM":
        entries = None
    deprecated = attributes.number("bandwidth")
    half = None if deprecated is None else deprecated / 2
    read, write = attributes.number("read_bandwidth"), attributes.number("write_bandwidth")
    return ArchLevel(
        name=name,
        kind="storage",
        word_bits=word_bits,
        block_words=block,
        cluster_size=cluster,
        entries=entries,
        component_class=component_class,
        technology=technology,
        read_bandwidth=half if read is None else read,
        write_bandwidth=half if write is None else write,
        multiple_buffering=attributes.number("multiple_buffering") or 1,
        vector_access_energy_pj=attributes.number("vector_access_energy"),
        cycle_seconds=attributes.number("global_cycle_seconds"),
        attributes=attributes.values,
    )


def compute_level(name: str, component_class: str, attributes: Attributes, default_bits: int | None) -> ArchLevel:
    """The compute units; `default_bits` where the file gives no word width."""
    return ArchLevel(
        name=name,
        kind="compute",
        word_bits=attributes.whole("word_bits") or default_bits,
        component_class=component_class,
        technology=attributes.text("technology"),
        operand_bits=attributes.whole("multiplier_width") or attributes.whole("width"),
        energy_per_op_pj=attributes.number("energy_per_op"),
        cycle_seconds=attributes.number("global_cycle_seconds"),
        attributes=attributes.values,
    )


def mesh_of(attributes: Attributes, instances: int | None, place: str) -> tuple[int, int]:
    """Instances along X and Y. `instances` from the tree around the component, None where only attributes tell.

    Raises
    ------
    InputError: nothing says how many there are, or the numbers contradict each other.
    """
    where = attributes.where
    given, x, y = (attributes.whole(key) for key in ("instances", "meshX", "meshY"))
    total = given if given is not None else instances
    if total is None:
        if x is None or y is None:
            message = f"{place} does not say how many instances there are"
            raise where.error(message, allowed="instances, with or without meshX, or meshX and meshY")
        return x, y
    if x is None and y is None:
        return total, 1
    x, y = (x or total // (y or 1)), (y or total // (x or 1))
    if x * y != total:
        raise where.error(f"{place}: meshX x meshY does not give the instances", value=[x, y], allowed=f"{total}")
    return x, y


def with_fanouts(levels: Sequence[ArchLevel], where: Where) -> tuple[ArchLevel, ...]:
    """Fan-out of every memory: mesh of the next memory or compute level over its own; containers keep theirs.

    Raises
    ------
    InputError: the mesh of a level is no multiple of that of the level around it.
    """
    result = []
    for number, level in enumerate(levels):
        inner = next((other for other in levels[number + 1 :] if other.kind != "container"), None)
        if level.kind == "storage" and inner is not None:
            if inner.mesh_x % level.mesh_x or inner.mesh_y % level.mesh_y:
                value = f"{inner.mesh_x}x{inner.mesh_y}"
                allowed = f"multiples of the {level.mesh_x}x{level.mesh_y} of {level.name}"
                message = f"the mesh of {inner.name} does not lie below {level.name}"
                raise where.error(message, value=value, allowed=allowed)
            x, y = inner.mesh_x // level.mesh_x, inner.mesh_y // level.mesh_y
            level = replace(level, fanout_x=x, fanout_y=y)
        result.append(level)
    return tuple(result)
