"""Problems and shapes of Timeloop: which dimensions, which tensors, how large.

A problem is flat (v0.1: bounds and coefficients beside `shape`) or has an `instance`. Its shape is written inline or
named: ``cnn-layer`` and ``gemm_ABZ`` are known, others are looked for as NAME.yaml beside the file. Without a shape it
is ``cnn-layer``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cosa.interop import unused
from cosa.interop.places import Where, check_keys, list_of, mapping_of, names_of, text_of, whole_of
from cosa.interop.timeloop_model import DataSpace, Problem, ProblemShape

CNN_LAYER = ProblemShape(
    "cnn_layer",
    tuple("RSPQCKN"),
    {"Wstride": 1, "Hstride": 1, "Wdilation": 1, "Hdilation": 1},
    (
        DataSpace("Weights", ((("C", None),), (("K", None),), (("R", None),), (("S", None),))),
        DataSpace(
            "Inputs",
            (
                (("N", None),),
                (("C", None),),
                (("R", "Wdilation"), ("P", "Wstride")),
                (("S", "Hdilation"), ("Q", "Hstride")),
            ),
        ),
        DataSpace("Outputs", ((("N", None),), (("K", None),), (("Q", None),), (("P", None),)), read_write=True),
    ),
)
GEMM = ProblemShape(
    "gemm_ABZ",
    tuple("MNK"),
    {},
    (
        DataSpace("A", ((("M", None),), (("K", None),))),
        DataSpace("B", ((("N", None),), (("K", None),))),
        DataSpace("Z", ((("M", None),), (("N", None),)), read_write=True),
    ),
)
_LIBRARY = {shape.name.lower(): shape for shape in (CNN_LAYER, GEMM)}

_SHAPE_KEYS = ("name", "dimensions", "coefficients", "data_spaces")


def read_shape(value: Any, where: Where) -> ProblemShape:
    """A shape written out.

    Raises
    ------
    InputError: a dimension or coefficient in a projection that the shape does not have, and other faults of form.
    """
    content = mapping_of(value, where)
    if content.get("flatten"):
        raise where.at("flatten").error("flattened dimensions, which cannot be read", value=content["flatten"])
    check_keys(content, where, (*_SHAPE_KEYS, "flatten"), unused.SHAPE)
    dimensions = names_of(content.get("dimensions"), where.at("dimensions"))
    if not dimensions or len(set(dimensions)) != len(dimensions):
        raise where.at("dimensions").error("not a list of different dimensions", value=list(dimensions))
    coefficients: dict[str, int] = {}
    for number, entry in enumerate(list_of(content.get("coefficients"), where.at("coefficients"))):
        place = where.at("coefficients").at(number)
        coefficient = mapping_of(entry, place)
        check_keys(coefficient, place, ("name", "default"))
        name = text_of(coefficient.get("name"), place.at("name"))
        coefficients[name] = whole_of(coefficient.get("default", 1), place.at("default"), at_least=0)
    spaces = []
    for number, entry in enumerate(list_of(content.get("data_spaces"), where.at("data_spaces"))):
        spaces.append(_data_space(entry, where.at("data_spaces").at(number), dimensions, coefficients))
    if not spaces:
        raise where.at("data_spaces").error("no data spaces", allowed="a list of tensors with name and projection")
    name = text_of(content.get("name") or "shape", where.at("name"))
    return ProblemShape(name, dimensions, coefficients, tuple(spaces))


def _data_space(value: Any, where: Where, dimensions: tuple[str, ...], coefficients: Mapping[str, int]) -> DataSpace:
    content = mapping_of(value, where)
    check_keys(content, where, ("name", "projection", "read_write"), ("ranks",))
    name = text_of(content.get("name"), where.at("name"))
    ranks = []
    for number, rank in enumerate(list_of(content.get("projection"), where.at("projection"))):
        place = where.at("projection").at(number)
        terms = []
        # A rank may be a dimension by its name alone: [C] for [[C]].
        for at, term in enumerate(rank if isinstance(rank, list) else [[rank]]):
            names = [text_of(word, place.at(at)) for word in (term if isinstance(term, list) else [term])]
            if not 1 <= len(names) <= 2:
                raise place.at(at).error("not a term", value=term, allowed="[dimension] or [dimension, coefficient]")
            if names[0] not in dimensions:
                allowed = ", ".join(dimensions)
                raise place.at(at).error("no such dimension in the shape", value=names[0], allowed=allowed)
            if len(names) == 2 and names[1] not in coefficients:
                allowed = ", ".join(coefficients) or "none"
                raise place.at(at).error("no such coefficient in the shape", value=names[1], allowed=allowed)
            terms.append((names[0], names[1] if len(names) == 2 else None))
        if not terms:
            raise place.error("an axis without dimensions", value=rank, allowed="[[dimension]], or a sum of terms")
        ranks.append(tuple(terms))
    read_write = content.get("read_write", False)
    if isinstance(read_write, str) and read_write.lower() in ("yes", "on", "y", "no", "off", "n"):
        read_write = read_write.lower() in ("yes", "on", "y")
    if not isinstance(read_write, bool):
        raise where.at("read_write").error("not a truth value", value=read_write, allowed="true, false")
    return DataSpace(name, tuple(ranks), read_write)


def read_problem(value: Any, where: Where, folder: Path | None = None, shape: ProblemShape | None = None) -> Problem:
    """A problem. `folder`: where named shapes are looked for; `shape`: one that stands beside it in the same file.

    Raises
    ------
    InputError: an unknown shape, a missing bound, an unknown key.
    """
    content = mapping_of(value, where)
    named = content.get("shape")
    if isinstance(named, dict):
        shape = read_shape(named, where.at("shape"))
    elif named is not None:
        shape = _named_shape(text_of(named, where.at("shape")), where.at("shape"), folder, shape)
    else:
        shape = shape or CNN_LAYER
    inner, place = content, where
    own: tuple[str, ...] = ("shape", "version")
    if "instance" in content:
        check_keys(content, where, ("shape", "version", "instance"), unused.PROBLEM)
        inner, place, own = mapping_of(content["instance"], where.at("instance")), where.at("instance"), ()
    aside = [key for key in (*unused.INSTANCE, *unused.PROBLEM) if key not in shape.dimensions]
    check_keys(inner, place, (*own, *shape.dimensions, *shape.coefficients), aside)
    missing = [dim for dim in shape.dimensions if inner.get(dim) is None]
    if missing:
        allowed = f"a bound for each of {', '.join(shape.dimensions)}"
        raise place.error(f"no bound for {', '.join(missing)} of shape {shape.name}", allowed=allowed)
    bounds = {dim: whole_of(inner[dim], place.at(dim)) for dim in shape.dimensions}
    coefficients = {
        name: whole_of(default if inner.get(name) is None else inner[name], place.at(name), at_least=0)
        for name, default in shape.coefficients.items()
    }
    version = content.get("version")
    form = f"v{version}" if version is not None else "v0.1" if "instance" not in content else None
    return Problem(Path(where.source).stem, form, shape, bounds, coefficients)


def _named_shape(name: str, where: Where, folder: Path | None, beside: ProblemShape | None) -> ProblemShape:
    plain = name.removesuffix(".yaml").removesuffix(".yml").replace("-", "_")
    for known in (_LIBRARY.get(plain.lower()), beside):
        if known is not None and known.name.replace("-", "_").lower() == plain.lower():
            return known
    if folder is not None:
        from cosa.interop.timeloop_yaml import read_yaml

        for spelling in (plain, plain.replace("_", "-")):
            for ending in (".yaml", ".yml"):
                path = folder / f"{spelling}{ending}"
                if path.is_file():
                    place = replace(where, source=str(path), path="")
                    content = mapping_of(read_yaml(str(path), place), place)
                    return read_shape(content.get("shape"), place.at("shape"))
    allowed = (
        f"{', '.join(shape.name for shape in _LIBRARY.values())}, a shape written out, or NAME.yaml beside the file"
    )
    raise where.error("no such shape", value=name, allowed=allowed)
