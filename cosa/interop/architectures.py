"""Architecture files of Timeloop: the flat v0.1 (`arch`), the tree of v0.2 and v0.3 (`subtree`), the nodes of v0.4."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cosa.interop import unused
from cosa.interop.components import (
    DEFAULT_WORD_BITS,
    MEANING,
    Attributes,
    compute_level,
    kind_of_class,
    mesh_of,
    storage_level,
    with_fanouts,
)
from cosa.interop.nodes import NodeWalk
from cosa.interop.places import Where, check_keys, check_misspelt, list_of, mapping_of, text_of, whole_of
from cosa.interop.timeloop_model import ArchFile, ArchLevel

_RANGE = re.compile(r"(.+?)\s*\[\s*(\d+)\s*\.\.\s*(\d+)\s*\]")
_TREE_KEYS = ("name", "attributes", "local", "subtree")
_COMPONENT_KEYS = ("name", "class", "subclass", "attributes", "instances")
_FLAT_KEYS = ("arithmetic", "storage", "version")


def read_architecture(value: Any, where: Where, variables: Mapping[str, Any]) -> ArchFile:
    """An architecture in any of the formats, told apart by its keys."""
    content = mapping_of(value, where)
    version = str(content.get("version", "")).strip()
    if "nodes" in content:
        check_keys(content, where, ("nodes", "version"), ("name",))
        walk = NodeWalk(variables, where)
        walk.nodes(content["nodes"], where.at("nodes"))
        return ArchFile(f"v{version or '0.4'}", with_fanouts(walk.finished(), where))
    if "subtree" in content or "local" in content:
        check_keys(content, where, (*_TREE_KEYS, "version"))
        levels = _tree(content, where, variables)
        return ArchFile(f"v{version or '0.2'}", with_fanouts(_with_compute_last(levels, where), where))
    if "storage" in content or "arithmetic" in content:
        return ArchFile("v0.1", with_fanouts(_flat(content, where), where))
    allowed = "storage and arithmetic (v0.1), subtree (v0.2, v0.3) or nodes (v0.4)"
    raise where.error("no levels", value=list(content), allowed=allowed)


def _flat(content: dict[str, Any], where: Where) -> list[ArchLevel]:
    """v0.1: memories innermost first, the compute units apart."""
    check_keys(content, where, _FLAT_KEYS)
    levels = []
    place = where.at("arithmetic")
    compute = mapping_of(content.get("arithmetic"), place)
    if not compute:
        raise place.error("no compute units", allowed="instances, word_bits")
    check_keys(compute, place, ("name", *MEANING), unused.ATTRIBUTES)
    attributes = Attributes(compute, place, compute)
    name = text_of(compute.get("name", "(arithmetic)"), place.at("name"))
    level = compute_level(name, "", attributes, DEFAULT_WORD_BITS)
    levels.append(_placed(level, attributes, None))
    storage = list_of(content.get("storage"), where.at("storage"))
    if not storage:
        raise where.at("storage").error("no memories", allowed="a list, innermost first")
    for number, entry in enumerate(storage):
        place = where.at("storage").at(number)
        entries = mapping_of(entry, place)
        check_keys(entries, place, ("name", "class", *MEANING), unused.ATTRIBUTES)
        attributes = Attributes(entries, place, entries)
        name = text_of(entries.get("name"), place.at("name"))
        level = storage_level(name, str(entries.get("class", "")), attributes)
        levels.append(_placed(level, attributes, None))
    return levels[::-1]


def _placed(level: ArchLevel, attributes: Attributes, instances: int | None) -> ArchLevel:
    x, y = mesh_of(attributes, instances, level.name)
    return replace(level, mesh_x=x, mesh_y=y)


def split_range(name: str, where: Where) -> tuple[str, int]:
    """``PE[0..13]`` as (PE, 14); a plain name is one."""
    match = _RANGE.fullmatch(name)
    if match is None:
        if "[" in name:
            raise where.error("not a range of instances", value=name, allowed="a name, or such as PE[0..13]")
        return name, 1
    first, last = int(match[2]), int(match[3])
    if last < first:
        raise where.error("a range that ends before it starts", value=name, allowed="such as PE[0..13]")
    return match[1], last - first + 1


def _tree(content: dict[str, Any], where: Where, variables: Mapping[str, Any]) -> list[ArchLevel]:
    """v0.2 and v0.3: the local list of a tree comes before the one subtree below it."""
    levels: list[ArchLevel] = []
    inherited: dict[str, Any] = {}
    instances, node, place = 1, content, where
    while True:
        check_keys(node, place, (*_TREE_KEYS, "version"), unused.TREE_NODE)
        if "name" in node:
            _, count = split_range(text_of(node["name"], place.at("name")), place.at("name"))
            instances *= count
        inherited |= mapping_of(node.get("attributes"), place.at("attributes"))
        for number, entry in enumerate(list_of(node.get("local"), place.at("local"))):
            level = _component(entry, place.at("local").at(number), instances, inherited, variables)
            if level is not None:
                levels.append(level)
        below = list_of(node.get("subtree"), place.at("subtree"))
        if not below:
            return levels
        if len(below) > 1:
            raise place.at("subtree").error(
                "several subtrees, not one chain of levels", value=len(below), allowed="one"
            )
        place = place.at("subtree").at(0)
        node = mapping_of(below[0], place)


def _component(
    entry: Any, where: Where, instances: int, inherited: Mapping[str, Any], variables: Mapping[str, Any]
) -> ArchLevel | None:
    content = mapping_of(entry, where)
    check_keys(content, where, _COMPONENT_KEYS, unused.COMPONENT)
    name, count = split_range(text_of(content.get("name"), where.at("name")), where.at("name"))
    own = mapping_of(content.get("attributes"), where.at("attributes"))
    check_misspelt(own, where.at("attributes"), (*MEANING, *unused.ATTRIBUTES), MEANING)
    values = {**inherited, **own}
    if "instances" in content:
        values["instances"] = whole_of(content["instances"], where.at("instances"))
    attributes = Attributes(values, where.at("attributes"), {**variables, **values})
    component_class = text_of(content.get("class"), where.at("class"))
    kind = kind_of_class(component_class)
    if kind is None:
        where.note(f"not used: component {name} of class {component_class}")
        return None
    if kind == "storage":
        level = storage_level(name, component_class, attributes)
    else:
        level = compute_level(name, component_class, attributes, DEFAULT_WORD_BITS)
    return _placed(level, attributes, instances * count)


def _with_compute_last(levels: list[ArchLevel], where: Where) -> list[ArchLevel]:
    compute = [level for level in levels if level.kind == "compute"]
    if len(compute) != 1:
        names = [level.name for level in compute]
        raise where.error("not exactly one kind of compute unit", value=names, allowed="one component of a mac class")
    storage = [level for level in levels if level.kind != "compute"]
    if not storage:
        raise where.error("no memories", allowed="a component of a storage class")
    return [*storage, *compute]
