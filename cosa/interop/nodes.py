"""Architectures of Timeloop v0.4: a list of tagged nodes, each one below those before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cosa.common.errors import nearest_of
from cosa.interop import unused
from cosa.interop.components import MEANING, Attributes, compute_level, kind_of_class, storage_level
from cosa.interop.directives import read_parts
from cosa.interop.places import Where, check_keys, check_misspelt, list_of, mapping_of, text_of, whole_of
from cosa.interop.timeloop_model import ArchLevel, Directive
from cosa.interop.timeloop_yaml import TaggedDict

_TAGS = ("Container", "Component", "Parallel", "Nothing", "Hierarchical")
_USED = ("name", "class", "subclass", "attributes", "spatial", "constraints", "enabled", "nodes")


@dataclass
class _Scope:
    """What holds at a place among the nodes: instances so far, attributes inherited, the parallel group."""

    x: int = 1
    y: int = 1
    attributes: dict[str, Any] = field(default_factory=dict)
    group: int | None = None


class NodeWalk:
    """Walks the nodes from the outside in and collects levels and containers with a fan-out."""

    def __init__(self, variables: Mapping[str, Any], where: Where) -> None:
        self.variables, self.where = variables, where
        self.levels: list[ArchLevel] = []
        self.groups = 0
        self.kept_by_nothing: dict[int, set[str]] = {}

    def nodes(self, value: Any, where: Where, scope: _Scope | None = None) -> None:
        """A list of nodes; containers and memories hold for all nodes after them."""
        scope = scope or _Scope()
        for number, entry in enumerate(list_of(value, where)):
            self.node(entry, where.at(number), scope)

    def node(self, entry: Any, where: Where, scope: _Scope) -> None:
        """One node; widens `scope` for the nodes below it."""
        content = mapping_of(entry, where)
        tag = content.tag if isinstance(content, TaggedDict) else ""
        if tag not in _TAGS:
            allowed = ", ".join(f"!{name}" for name in _TAGS)
            nearest = nearest_of(tag, _TAGS)
            raise where.error("not a kind of node", value=f"!{tag}", allowed=allowed, nearest=nearest and f"!{nearest}")
        check_keys(content, where, _USED, unused.NODE)
        if content.get("enabled") is False:
            where.note(f"not used: {content.get('name', tag)}, which is not enabled")
            return
        if tag == "Parallel":
            self.parallel(content, where, scope)
        elif tag == "Hierarchical":
            self.nodes(content.get("nodes"), where.at("nodes"), scope)
        elif tag == "Nothing":
            self.nothing(content, where, scope)
        elif tag == "Container":
            self.container(content, where, scope)
        else:
            self.component(content, where, scope)

    def parallel(self, content: Mapping[str, Any], where: Where, scope: _Scope) -> None:
        """Members become consecutive levels; each one starts from what holds around the group."""
        self.groups += 1
        group = self.groups if scope.group is None else scope.group
        for number, entry in enumerate(list_of(content.get("nodes"), where.at("nodes"))):
            inner = _Scope(scope.x, scope.y, dict(scope.attributes), group)
            self.node(entry, where.at("nodes").at(number), inner)

    def nothing(self, content: Mapping[str, Any], where: Where, scope: _Scope) -> None:
        """Data spaces that a parallel group passes by."""
        if scope.group is None:
            raise where.error("!Nothing stands only among the members of !Parallel")
        for directive in read_parts(content.get("constraints"), where.at("constraints"), "Nothing"):
            self.kept_by_nothing.setdefault(scope.group, set()).update(directive.keep or ())

    def container(self, content: Mapping[str, Any], where: Where, scope: _Scope) -> None:
        """Attributes for everything below; a fan-out makes it a level that spatial loops can name."""
        name = text_of(content.get("name", "container"), where.at("name"))
        scope.attributes |= self.attributes_of(content, where)
        x, y = self.spatial(content, where, scope)
        directives = tuple(read_parts(content.get("constraints"), where.at("constraints"), name))
        scope.x, scope.y = scope.x * x, scope.y * y
        if x * y > 1 or directives:
            level = ArchLevel(name, "container", scope.x, scope.y, x, y, attributes=dict(scope.attributes))
            self.levels.append(replace(level, directives=directives))

    def component(self, content: Mapping[str, Any], where: Where, scope: _Scope) -> None:
        """A memory or the compute units; a fan-out of its own holds for everything below, too."""
        name = text_of(content.get("name"), where.at("name"))
        own = self.attributes_of(content, where)
        values = {**scope.attributes, **own}
        attributes = Attributes(values, where.at("attributes"), {**self.variables, **values})
        classes = " ".join(str(content[key]) for key in ("class", "subclass") if content.get(key))
        if not classes:
            raise where.at("class").error("no class", allowed="class: the kind of component, such as SRAM or intmac")
        kind = kind_of_class(str(content.get("class") or "")) or kind_of_class(classes)
        if kind is None:
            where.note(f"not used: component {name} of class {classes}")
            return
        # A memory of `class: storage` says by its subclass whether it is a DRAM.
        named_class = classes if "DRAM" in classes.upper() else str(content.get("class") or "")
        x, y = self.spatial(content, where, scope)
        scope.x, scope.y = scope.x * x, scope.y * y
        if x * y > 1:  # a step of its own, under the name that Timeloop's front end gives it
            self.levels.append(ArchLevel(f"inter_{name}_spatial", "container", scope.x, scope.y, x, y, derived=True))
        if kind == "storage":
            level = storage_level(name, named_class, attributes)
        else:
            level = compute_level(name, named_class, attributes, None)
        directives = tuple(read_parts(content.get("constraints"), where.at("constraints"), name))
        level = replace(level, mesh_x=scope.x, mesh_y=scope.y, directives=directives, parallel_group=scope.group)
        self.levels.append(level)

    def attributes_of(self, content: Mapping[str, Any], where: Where) -> dict[str, Any]:
        """Attributes of a node as written, checked for misspelling."""
        place = where.at("attributes")
        own = mapping_of(content.get("attributes"), place)
        check_misspelt(own, place, (*MEANING, *unused.ATTRIBUTES), MEANING)
        fanout = [key for key in own if key in ("instances", "meshX", "meshY")]
        if fanout:
            place.note(f"not used: {', '.join(fanout)} (in v0.4 a fan-out stands in `spatial`)")
        return {key: value for key, value in own.items() if key not in fanout}

    def spatial(self, content: Mapping[str, Any], where: Where, scope: _Scope) -> tuple[int, int]:
        """The fan-out that a node adds."""
        place = where.at("spatial")
        given = mapping_of(content.get("spatial"), place)
        check_keys(given, place, ("meshX", "meshY"), ("get_fanout",))
        names = {**self.variables, **scope.attributes}
        meshes = []
        for key in ("meshX", "meshY"):
            attributes = Attributes({key: given.get(key)}, place, names)
            meshes.append(whole_of(1 if given.get(key) is None else attributes.get(key), place.at(key)))
        return meshes[0], meshes[1]

    def finished(self) -> list[ArchLevel]:
        """All levels, the compute units last, members of a group bypassing what another member keeps."""
        compute = [level for level in self.levels if level.kind == "compute"]
        if not compute:
            raise self.where.error("no compute units", allowed="a !Component of a mac class")
        if len(compute) > 1:
            names = [level.name for level in compute]
            raise self.where.error("several kinds of compute units", value=names, allowed="one")
        if not any(level.kind == "storage" for level in self.levels):
            raise self.where.error("no memories", allowed="a !Component of a storage class")
        levels = [level for level in self.levels if level.kind != "compute"] + compute
        return [self._bypassing_siblings(level) for level in levels]

    def _bypassing_siblings(self, level: ArchLevel) -> ArchLevel:
        if level.parallel_group is None or level.kind != "storage":
            return level
        kept: dict[str, None] = {}
        for other in self.levels:
            if other.parallel_group == level.parallel_group and other is not level:
                kept |= dict.fromkeys(name for directive in other.directives for name in directive.keep or ())
        kept |= dict.fromkeys(sorted(self.kept_by_nothing.get(level.parallel_group, ())))
        own = next((directive for directive in level.directives if directive.type == "bypass"), None)
        mine = own or Directive(level.name, "bypass")
        passed = [*(mine.bypass or ()), *(name for name in kept if name not in (mine.keep or ()))]
        if not passed:
            return level
        derived = replace(mine, bypass=tuple(dict.fromkeys(passed)))
        others = tuple(directive for directive in level.directives if directive is not own)
        return replace(level, directives=(derived, *others))
