"""Directives of mappings and constraints: factors, permutations, splits, what a level keeps.

Both use one notation. Factors are ``R=3 P=16``, ``R3 P16``, ``R=3,P=16`` or a list; permutations ``PRK``, ``P R K`` or
a list, innermost first; keys may stand in the entry itself or under its ``attributes``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cosa.common.errors import nearest_of
from cosa.interop import unused
from cosa.interop.places import Where, check_keys, list_of, mapping_of, names_of, number_of, text_of, whole_of
from cosa.interop.timeloop_model import Directive, Factor

BYPASS_TYPES = ("bypass", "bypassing", "datatype", "dataspace")
SETTING_TYPES = (
    "utilization",
    "parallelism",
    "max_overbooked_proportion",
    "no_link_transfer",
    "no_multicast",
    "no_reduction",
    "no_multicast_no_reduction",
    "no_link_transfer_no_multicast",
)
TYPES = ("temporal", "spatial", *BYPASS_TYPES, *SETTING_TYPES)

_MEANING = (
    "target",
    "name",
    "type",
    "attributes",
    "factors",
    "factors_only",
    "permutation",
    "split",
    "keep",
    "keep_only",
    "bypass",
    "min",
    "proportion",
    "temporal",
    "spatial",
    "dataspace",
    "constraints",
)
_PARTS = {"temporal": "temporal", "spatial": "spatial", "dataspace": "bypass"}

_FACTOR = re.compile(
    r"\s*,?\s*([A-Za-z][A-Za-z_]*)\s*(<=|>=|=<|=>|==|=|<|>)?\s*([0-9]{1,19})(?:\s*,\s*([0-9]{1,19})(?![0-9A-Za-z_]))?"
)


def read_directive(entry: Any, where: Where, target: str | None = None, types: tuple[str, ...] = TYPES) -> Directive:
    """One directive; `target` where the place already says it."""
    entries = mapping_of(entry, where)
    kind = text_of(entries.get("type"), where.at("type")).lower().replace("-", "_") if "type" in entries else None
    if kind is None:
        raise where.error("no type", allowed="type: " + ", ".join(("temporal", "spatial", "bypass")))
    if kind not in types:
        allowed = ", ".join(types)
        raise where.at("type").error("unknown type", value=kind, allowed=allowed, nearest=nearest_of(kind, types))
    return _directive(entries, "bypass" if kind in BYPASS_TYPES else kind, where, target)


def read_directives(entries: Any, where: Where, target: str | None = None) -> Iterator[Directive]:
    """Directives of a list; an entry may hold one, a list under `constraints`, or one each under `temporal`, ..."""
    for number, entry in enumerate(list_of(entries, where)):
        place = where.at(number)
        content = mapping_of(entry, place)
        own_target = _target(content, place, target)
        if "constraints" in content:
            inner = content["constraints"]
            if isinstance(inner, dict):
                yield from read_parts(inner, place.at("constraints"), own_target)
            else:
                yield from read_directives(inner, place.at("constraints"), own_target)
            check_keys(content, place, ("target", "name", "constraints"), unused.CONSTRAINT)
        elif "type" not in content and any(part in content for part in _PARTS):
            rest = {key: value for key, value in content.items() if key not in ("target", "name")}
            yield from read_parts(rest, place, own_target)
        else:
            yield read_directive(content, place, target)


def read_parts(content: Any, where: Where, target: str | None) -> Iterator[Directive]:
    """Directives written as ``{spatial: {...}, temporal: {...}, dataspace: {...}}``, as in nodes of v0.4."""
    entries = mapping_of(content, where)
    check_keys(entries, where, [*_PARTS, "bypass"], [*unused.CONSTRAINT, "targets"], what="constraint")
    for part, kind in (*_PARTS.items(), ("bypass", "bypass")):
        if part in entries:
            inner = mapping_of(entries[part], where.at(part))
            if not inner:
                continue
            yield _directive({"type": kind, **inner}, kind, where.at(part), target)


def _target(entries: Mapping[str, Any], where: Where, default: str | None) -> str:
    for key in ("target", "name"):
        if key in entries:
            return text_of(entries[key], where.at(key))
    if default is None:
        raise where.error("no target", allowed="target: the name of a level")
    return default


def _directive(entries: dict[str, Any], kind: str, where: Where, default: str | None) -> Directive:
    content = dict(entries)
    inner = content.pop("attributes", None)
    if inner is not None:
        for key, value in mapping_of(inner, where.at("attributes")).items():
            if key in content:
                raise where.at("attributes").at(key).error("given twice: here and beside `attributes`", value=value)
            content[key] = value
    check_keys(content, where, _MEANING, unused.CONSTRAINT)
    only_factors, keep_only = "factors_only" in content, "keep_only" in content
    for plain, only in (("factors", only_factors), ("keep", keep_only)):
        if plain in content and only:
            raise where.at(f"{plain}_only").error(f"contradicts {plain}", value=content[f"{plain}_only"])
    factors = content.get("factors_only", content.get("factors"))
    keep = content.get("keep_only", content.get("keep"))
    settings: dict[str, Any] = {}
    if kind in SETTING_TYPES:
        settings = {key: number_of(content[key], where.at(key)) for key in ("min", "proportion") if key in content}
    split = content.get("split")
    return Directive(
        target=_target(content, where, default),
        type=kind,
        factors=read_factors(factors, where.at("factors_only" if only_factors else "factors")),
        only_factors=only_factors,
        permutation=read_permutation(content.get("permutation"), where.at("permutation")),
        split=None if split is None else whole_of(split, where.at("split"), at_least=0),
        keep=names_of(keep, where.at("keep")) if keep is not None else None,
        bypass=names_of(content["bypass"], where.at("bypass")) if content.get("bypass") is not None else None,
        keep_only=keep_only,
        settings=settings,
        path=where.path,
    )


def read_factors(value: Any, where: Where) -> tuple[Factor, ...]:
    """Factors in any of their spellings.

    Raises
    ------
    InputError: text that is no factor, or a dimension given twice.
    """
    if value is None:
        return ()
    if isinstance(value, list):
        pieces = [text_of(entry, where.at(number)) for number, entry in enumerate(value)]
    else:
        pieces = [text_of(value, where)] if value != "" else []
    found: list[Factor] = []
    for piece in pieces:
        at = 0
        while at < len(piece.rstrip().rstrip(",").rstrip()):
            match = _FACTOR.match(piece, at)
            if match is None:
                allowed = "factors such as R=3 P=16, 0 for the whole dimension, K=4,2 with a residue"
                raise where.error("not a factor", value=piece[at:].strip(), allowed=allowed)
            found.append(_factor(match, where))
            at = match.end()
    named: set[tuple[str, str]] = set()
    for factor in found:
        if (factor.dim, factor.relation) in named:
            raise where.error(f"dimension {factor.dim} is given twice", value=", ".join(pieces))
        named.add((factor.dim, factor.relation))
    return tuple(found)


def _factor(match: re.Match[str], where: Where) -> Factor:
    dim, sign, number, rest = match.groups()
    value, residue = int(number), None if rest is None else int(rest)
    if sign in (None, "=", "=="):
        if residue is not None and not 1 <= residue <= value:
            raise where.error("not a residue", value=match[0].strip(), allowed="from 1 to the factor before it")
        return Factor(dim, value, residue)
    if residue is not None:
        raise where.error("a residue needs an exact factor", value=match[0].strip(), allowed="K=4,2")
    if sign in ("<=", "=<", "<"):
        return Factor(dim, value - (sign == "<"), relation="<=")
    return Factor(dim, value + (sign == ">"), relation=">=")


def read_permutation(value: Any, where: Where) -> tuple[str, ...] | None:
    """Dimensions, innermost first; ``_`` (in constraints) parts those inside from those outside."""
    if value is None or value == "" or value == []:
        return None
    if isinstance(value, list):
        dims = [text_of(entry, where.at(number)) for number, entry in enumerate(value)]
    else:
        text = text_of(value, where)
        dims = re.split(r"[\s,]+", text.strip(", ")) if "," in text else list("".join(text.split()))
    for number, dim in enumerate(dims):
        if not re.fullmatch(r"[A-Za-z][A-Za-z_]*|_", dim):
            raise where.error("not a dimension", value=dim, allowed="names of dimensions, such as PRK or [P, R, K]")
        if dim in dims[:number]:
            raise where.error(f"dimension {dim} is given twice", value="".join(dims))
    return tuple(dims)
