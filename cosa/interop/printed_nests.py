"""Nests as Timeloop prints them: the text of ``*.map.txt`` and the archive ``*.map+stats.xml``."""

from __future__ import annotations

import re
from typing import Literal
from xml.etree import ElementTree

from cosa.interop.places import Where
from cosa.interop.timeloop_model import Nest, NestLevel, NestLoop, Problem, ProblemShape

_HEADER = re.compile(r"([^\s|\[][^\[|]*?)\s*\[(.*)\]")
_LOOP = re.compile(r"[|\s]*for\s+(\w+)\s+in\s+\[0:(\d+)(?:,(\d+))?\)(?:\s*\((Spatial-[XY])\))?")
_KEPT = re.compile(r"(\w+):\s*[\d.]+(?:\s*\([\d.]+\))?")
_RULE = re.compile(r"[-\s|]*|[|\s]*<<\s*Compute\s*>>")
_KINDS: tuple[Literal["temporal", "spatial-X", "spatial-Y"], ...] = ("temporal", "spatial-X", "spatial-Y")


def is_printed_nest(text: str) -> bool:
    """Whether a text looks like a printed nest."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return any(map(_LOOP.fullmatch, lines)) and any(_HEADER.fullmatch(line.strip()) for line in lines)


def read_printed_nest(text: str, where: Where) -> Nest:
    """The nest of a ``map.txt``. Loops of bound 1, which Timeloop prints to fill a level, are left out.

    Raises
    ------
    InputError: with the number of a line that is no level, loop or rule.
    """
    levels: list[tuple[str, tuple[str, ...], list[NestLoop]]] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or _RULE.fullmatch(line):
            continue
        loop, header = _LOOP.fullmatch(line), _HEADER.fullmatch(line)
        if loop is not None and levels:
            dim, bound, residue, kind = loop.groups()
            if int(bound) > 1:
                spatial = _KINDS[0] if kind is None else _KINDS[1] if kind.endswith("X") else _KINDS[2]
                left = int(residue) if residue and residue != bound else None
                levels[-1][2].append(NestLoop(dim, int(bound), spatial, left))
        elif header is not None:
            levels.append((header[1], tuple(_KEPT.findall(header[2])), []))
        else:
            allowed = "NAME [ tensors ] or | for DIM in [0:BOUND)"
            raise where.error(f"line {number} is neither a level nor a loop", value=line, allowed=allowed)
    if not levels:
        raise where.error("no nest in it", allowed="the text of a map.txt")
    return Nest(tuple(NestLevel(name, tuple(loops), keeps) for name, keeps, loops in levels))


def read_archived_nest(text: str, where: Where, problem: Problem | None, shape: ProblemShape | None) -> Nest:
    """The nest of a ``map+stats.xml``.

    The archive numbers dimensions and data spaces in the order of the shape, which it does not hold: without a problem
    or shape beside it, the number of dimensions must be that of ``cnn-layer``.

    Raises
    ------
    InputError: not such an archive, or one whose dimensions the shape does not have.
    """
    from cosa.interop.problems import CNN_LAYER

    if "<!ENTITY" in text:
        raise where.error("not read: it defines entities", allowed="the file as Timeloop wrote it")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise where.error(f"not valid XML: {error}") from None
    shape = problem.shape if problem is not None else shape or CNN_LAYER
    items = root.findall("engine/topology_/levels_/item/px")
    if not items:
        raise where.error("no levels in it", allowed="a map+stats.xml of Timeloop")
    stated = [item.findtext("second", "") for item in root.findall("*/workload_/bounds_/item")]
    if not all(text.isascii() and text.isdecimal() for text in stated):
        raise where.error("a bound of the problem that is no number", value=stated, allowed="whole numbers")
    bounds = [int(text) for text in stated]
    if bounds and len(bounds) != len(shape.dimensions):
        allowed = f"the {len(shape.dimensions)} of {shape.name}; give the problem beside it for another shape"
        raise where.error("the archive has another number of dimensions", value=len(bounds), allowed=allowed)
    levels = []
    for number, px in enumerate(items):
        name = px.findtext("specs_/LevelSpecs/level_name") or px.findtext("specs_/name/t_") or f"level {number}"
        subnest = px.find("subnest_")
        if subnest is None:
            continue
        loops = [loop for item in subnest.findall("item") if (loop := _archived_loop(item, where, shape)) is not None]
        kept = [item.text == "1" for item in px.findall("stats_/keep/PerDataSpace/item")]
        keeps = tuple(space.name for space, flag in zip(shape.data_spaces, kept, strict=False) if flag)
        levels.append(NestLevel(name, tuple(reversed(loops)), keeps if kept else None))
    nest = Nest(tuple(reversed(levels)))
    for dim, bound in zip(shape.dimensions, bounds, strict=False):
        if nest.bounds.get(dim, 1) != bound:
            message = f"the loops over {dim} do not multiply up"
            raise where.error(message, value=nest.bounds.get(dim, 1), allowed=str(bound))
    return nest


def _archived_loop(item: ElementTree.Element, where: Where, shape: ProblemShape) -> NestLoop | None:
    values = {}
    for key, default in (("dimension", ""), ("start", "0"), ("end", ""), ("stride", "1"), ("spacetime_dimension", "0")):
        text = item.findtext(key, default)
        if not (text.isascii() and text.isdecimal() and len(text) < 20):
            raise where.error(f"a loop without {key}", value=text, allowed="a number")
        values[key] = int(text)
    residue = item.findtext("residual_end", "")
    if values["start"] != 0 or values["stride"] != 1:
        raise where.error("a loop that does not count 0, 1, 2, ...", value=values)
    if not values["dimension"] < len(shape.dimensions) or not values["spacetime_dimension"] < len(_KINDS):
        allowed = f"{len(shape.dimensions)} dimensions of {shape.name}; give the problem for another shape"
        raise where.error("a loop over an unknown dimension", value=values["dimension"], allowed=allowed)
    if values["end"] <= 1:
        return None
    left = (
        int(residue) if residue.isascii() and residue.isdecimal() and int(residue) not in (0, values["end"]) else None
    )
    return NestLoop(shape.dimensions[values["dimension"]], values["end"], _KINDS[values["spacetime_dimension"]], left)
