"""From the directives of a mapping to its loop nest.

The order of levels is that of the architecture. A mapping read alone stands in the order of its file, turned round when
it was written innermost first (as Timeloop's mapper writes it).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from cosa.common.errors import InputError, nearest_of
from cosa.interop.timeloop_model import (
    ArchFile,
    Directive,
    Factor,
    MappingFile,
    Nest,
    NestLevel,
    NestLoop,
)

_MAIN_MEMORY = re.compile(r"dram|main_?mem|off_?chip|backing|^(main|memory|mem|ddr\d?|hbm\d?)$", re.IGNORECASE)
_INTER = re.compile(r"inter_(.+)_spatial")


def plain_name(name: str) -> str:
    """The container that Timeloop's own output calls ``inter_NAME_spatial``; other names as they are."""
    match = _INTER.fullmatch(name)
    return match[1] if match else name


def directive_order(directives: Iterable[Directive]) -> tuple[str, ...]:
    """Targets outermost first, as far as the directives alone tell; those without loops come last.

    Innermost first is the file whose last target is the main memory by its name, or whose first one bypasses something
    while its last one keeps everything.
    """
    seen = list(directives)
    with_loops = [directive for directive in seen if directive.type in ("temporal", "spatial")]
    targets = list(dict.fromkeys(plain_name(directive.target) for directive in with_loops))
    others = [plain_name(directive.target) for directive in seen]
    rest = [name for name in dict.fromkeys(others) if name not in targets]
    if len(targets) < 2:
        return (*targets, *rest)
    first, last = (_MAIN_MEMORY.search(targets[end]) is not None for end in (0, -1))
    if first == last:
        bypassed = {plain_name(directive.target) for directive in seen if directive.bypass}
        first, last = (targets[end] not in bypassed for end in (0, -1))
    return (*(reversed(targets) if last and not first else targets), *rest)


def architecture_order(directives: Iterable[Directive], architecture: ArchFile, source: str) -> tuple[str, ...]:
    """All levels and containers of an architecture that hold loops, outermost first.

    Raises
    ------
    InputError: a target that the architecture does not have.
    """
    storage = [level for level in architecture.levels if level.kind == "storage"]
    names = [level.name for level in architecture.levels if level.kind != "compute"]
    for directive in directives:
        resolve_target(directive, names, [level.name for level in storage], source)
    return tuple(names)


def level_named(name: str, names: Sequence[str], spatial: bool = False) -> str | None:
    """The level that a name stands for: itself, or a container and its ``inter_NAME_spatial``, one for the other.

    `spatial`: of a memory that has a fan-out above itself, that step.
    """
    step = f"inter_{name}_spatial"
    candidates = (step, name) if spatial else (name, step)
    return next((one for one in (*candidates, plain_name(name)) if one in names), None)


def resolve_target(directive: Directive, names: Sequence[str], storage: Sequence[str], source: str) -> str:
    """The level that a directive names, by name (`level_named`) or by number (0: innermost memory)."""
    name = directive.target
    if (found := level_named(name, names, directive.type == "spatial")) is not None:
        return found
    if name.isdecimal() and int(name) < len(storage):
        return storage[-1 - int(name)]
    raise InputError(
        "no such level in the architecture",
        source=source,
        path=f"{directive.path}.target",
        value=directive.target,
        allowed=", ".join(names),
        nearest=nearest_of(name, list(names)),
    )


@dataclass(frozen=True)
class _Context:
    source: str
    bounds: Mapping[str, int] | None
    dims: tuple[str, ...]


def mapping_nest(
    mapping: MappingFile,
    source: str,
    *,
    bounds: Mapping[str, int] | None = None,
    dims: Sequence[str] | None = None,
    architecture: ArchFile | None = None,
    order: Sequence[str] | None = None,
) -> Nest:
    """The nest of a mapping. `bounds` of the problem resolve factors of 0; `dims` are all dimensions of its shape.

    Raises
    ------
    InputError: an unknown target or dimension, a directive given twice, a factor of 0 without the problem.
    """
    directives = mapping.directives
    storage: Sequence[str] = ()
    if architecture is not None:
        order = architecture_order(directives, architecture, source)
        storage = [level.name for level in architecture.levels if level.kind == "storage"]
    elif order is None:
        order = directive_order(directives)
    context = _Context(source, bounds, tuple(dims) if dims is not None else mapping.dims)
    found: dict[tuple[str, str], Directive] = {}
    for directive in directives:
        name = resolve_target(directive, list(order), storage or list(order), source)
        if (name, directive.type) in found:
            path = directive.path
            raise InputError(f"a second {directive.type} directive for {name}", source=source, path=path)
        found[name, directive.type] = directive
    levels = []
    for name in order:
        loops = [*_loops(found.get((name, "temporal")), context), *_loops(found.get((name, "spatial")), context)]
        levels.append(NestLevel(name, tuple(loops), *_kept(found.get((name, "bypass")))))
    return Nest(tuple(levels))


def _kept(directive: Directive | None) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Data spaces kept and bypassed; what a directive does not name is kept, unless it keeps only what it names."""
    if directive is None:
        return None, None
    return directive.keep or (), None if directive.keep_only else directive.bypass or ()


def _loops(directive: Directive | None, context: _Context) -> list[NestLoop]:
    """Loops of a directive, outer to inner, without those of bound 1."""
    if directive is None:
        return []
    factors = {factor.dim: factor for factor in directive.factors}
    inside_out = loop_order(directive, context.dims)
    for dim in inside_out:
        if dim not in context.dims:
            allowed = ", ".join(context.dims)
            path = f"{directive.path}.factors"
            message = "no such dimension in the problem"
            raise InputError(message, source=context.source, path=path, value=dim, allowed=allowed)
    split = len(inside_out) if directive.split is None else directive.split
    loops = []
    for place, dim in enumerate(inside_out):
        kind: Literal["temporal", "spatial-X", "spatial-Y"] = "temporal"
        if directive.type == "spatial":
            kind = "spatial-X" if place < split else "spatial-Y"
        factor = _exact(factors.get(dim, Factor(dim, 1)), directive, context)
        if factor.value != 1:
            residue = factor.residue if factor.residue != factor.value else None
            loops.append(NestLoop(dim, factor.value, kind, residue))
    return loops[::-1]


def loop_order(directive: Directive, dims: Sequence[str]) -> list[str]:
    """Dimensions of a directive innermost first: those of the permutation, then those it leaves out."""
    named = [dim for dim in directive.permutation or () if dim != "_"]
    rest = [*dims, *(factor.dim for factor in directive.factors)]
    return list(dict.fromkeys([*named, *rest]))


def _exact(factor: Factor, directive: Directive, context: _Context) -> Factor:
    path = f"{directive.path}.factors"
    if factor.relation != "=":
        value = f"{factor.dim}{factor.relation}{factor.value}"
        raise InputError("a mapping needs exact factors", source=context.source, path=path, value=value, allowed="K=4")
    if factor.value != 0:
        return factor
    if context.bounds is None:
        raise InputError(
            "0 stands for the whole dimension, which only the problem tells",
            source=context.source,
            path=path,
            value=f"{factor.dim}=0",
            allowed="a factor, or the problem beside the mapping",
        )
    return Factor(factor.dim, context.bounds[factor.dim])
