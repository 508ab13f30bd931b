"""Reading Timeloop files, one or several together: what is in them is told by their keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cosa.common.errors import nearest_of
from cosa.interop import unused
from cosa.interop.architectures import read_architecture
from cosa.interop.directives import BYPASS_TYPES, read_directive, read_directives
from cosa.interop.places import Where, list_of, mapping_of
from cosa.interop.printed_nests import is_printed_nest, read_archived_nest, read_printed_nest
from cosa.interop.problems import read_problem, read_shape
from cosa.interop.timeloop_model import ConstraintList, Directive, MappingFile, Problem, ProblemShape, TimeloopFile
from cosa.interop.timeloop_yaml import parse_yaml

_CONSTRAINT_KEYS = ("mapspace", "mapspace_constraints", "architecture_constraints", "arch_constraints", "constraints")
PARTS = ("arch", "architecture", *_CONSTRAINT_KEYS, "mapping", "problem", "shape", "mapper")


def read_timeloop(path: str | Path, problem: Problem | None = None, shape: ProblemShape | None = None) -> TimeloopFile:
    """Everything a Timeloop file says. `problem` or `shape` name the dimensions of an archived nest.

    Raises
    ------
    InputError: with file and path of what is wrong.
    """
    from cosa.common.files import read_text

    return parse_timeloop(read_text(path), str(path), problem, shape)


def parse_timeloop(
    text: str, source: str, problem: Problem | None = None, shape: ProblemShape | None = None
) -> TimeloopFile:
    """As `read_timeloop`, from text; `source` is named in errors and is where named shapes are looked for."""
    where = Where(source)
    if not text.strip():
        raise where.error("the file is empty")
    if text.lstrip().startswith("<"):
        return TimeloopFile(source, nest=read_archived_nest(text, where, problem, shape), notes=where.all_notes())
    if is_printed_nest(text):
        return TimeloopFile(source, nest=read_printed_nest(text, where), notes=where.all_notes())
    return timeloop_of(parse_yaml(text, where), where)


def timeloop_of(data: Any, where: Where) -> TimeloopFile:
    """What the plain data of a Timeloop file says."""
    content = mapping_of(data, where)
    for key in content:
        if key in unused.FILE or key.startswith("_") or (key in where.ignored and key not in PARTS):
            where.leave_aside(key, content[key])
        elif key not in PARTS:
            nearest = nearest_of(key, [*PARTS, *unused.FILE])
            raise where.at(key).error("not a part of a Timeloop file", allowed=", ".join(PARTS), nearest=nearest)
    if not any(key in PARTS for key in content):
        raise where.error("nothing of Timeloop in it", value=list(content), allowed=", ".join(PARTS))
    result = TimeloopFile(where.source)
    if "shape" in content:
        result = replace(result, shape=read_shape(content["shape"], where.at("shape")))
    if "problem" in content:
        folder = Path(where.source).parent
        problem = read_problem(content["problem"], where.at("problem"), folder, result.shape)
        result = replace(result, problem=problem)
    for key in ("arch", "architecture"):
        if key in content:
            if result.architecture is not None:
                raise where.at(key).error("a second architecture")
            variables = mapping_of(content.get("variables"), where.at("variables"))
            result = replace(result, architecture=read_architecture(content[key], where.at(key), variables))
    constraints = [
        found for key in _CONSTRAINT_KEYS if key in content for found in _constraints(content[key], key, where)
    ]
    result = replace(result, constraints=tuple(constraints))
    # The front end writes an empty list where the mapping is its mapper's, in a file of its own.
    if content.get("mapping") not in (None, [], {}):
        result = replace(result, mapping=_mapping(content["mapping"], where.at("mapping")))
    if "mapper" in content:
        result = replace(result, mapper=dict(mapping_of(content["mapper"], where.at("mapper"))))
    return replace(result, notes=where.all_notes(), uncounted=where.uncounted)


def _mapping(value: Any, where: Where) -> MappingFile:
    if isinstance(value, dict):
        raise where.error("a mapping as a tree of nodes, which cannot be read", allowed="a list of directives")
    types = ("temporal", "spatial", *BYPASS_TYPES)
    return MappingFile(
        tuple(
            read_directive(entry, where.at(number), None, types) for number, entry in enumerate(list_of(value, where))
        )
    )


def _constraints(value: Any, key: str, where: Where) -> Iterator[ConstraintList]:
    """The list of constraints at one of its places: the value itself, `constraints` (or what it names), `targets`."""
    place = where.at(key)
    if value is None:
        return
    if isinstance(value, list):
        yield ConstraintList(key, None, tuple(read_directives(value, place)))
        return
    content = mapping_of(value, place)
    version = content.get("version")
    inner, form = None, None if version is None else f"v{version}"
    named = content.get("constraints")
    if isinstance(named, str):
        inner = f"constraints_{named.replace('-', '_')}"
        if inner not in content:
            allowed = ", ".join(name for name in content if name.startswith("constraints_")) or "a list of constraints"
            raise place.at("constraints").error("no list of that name", value=named, allowed=allowed)
        form = form or "v0.1"
    elif named is not None:
        inner, form = "constraints", form or ("v0.1" if key == "mapspace" else None)
    elif "targets" in content:
        inner = "targets"
    for other in content:
        known = ("constraints", "targets", *unused.MAPSPACE)
        if other not in known and not other.startswith("constraints_"):
            raise place.at(other).error("unknown key", allowed="constraints, targets", nearest=nearest_of(other, known))
        if other not in (inner, "version", "constraints", "targets"):
            where.unused[other] = None
    if inner is not None:
        directives = tuple(read_directives(content[inner], place.at(inner)))
        yield ConstraintList(f"{key}.{inner}", form, directives)


def together(files: Sequence[TimeloopFile]) -> TimeloopFile:
    """Several files read as one; each part may come from one of them only.

    Raises
    ------
    InputError: a part in two files.
    """
    result = files[0]
    for other in files[1:]:
        changes: dict[str, Any] = {}
        for part in ("architecture", "mapping", "nest", "problem", "shape", "mapper"):
            mine, theirs = getattr(result, part), getattr(other, part)
            if mine is not None and theirs is not None:
                raise Where(other.source).error(f"a second {part} (the first one is in {result.source})")
            changes[part] = theirs if mine is None else mine
        changes["constraints"] = (*result.constraints, *other.constraints)
        changes["uncounted"] = {**result.uncounted, **other.uncounted}
        changes["notes"] = (*result.notes, *(note for note in other.notes if note not in result.notes))
        result = replace(result, **changes)
    return result


def all_constraints(file: TimeloopFile) -> tuple[Directive, ...]:
    """Constraints of a file: those in its lists, then those in the nodes of its architecture."""
    listed = [directive for part in file.constraints for directive in part.directives]
    levels = () if file.architecture is None else file.architecture.levels
    return (*listed, *(directive for level in levels for directive in level.directives))
