"""Constraints on mappings: a file that fixes or bounds factors, loop orders and spatial dimensions, and what it means.

`Constraints` is the file; `cosa.model.mapping_rules` is what it says of one layer on one architecture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, model_validator

from cosa.common.errors import FieldError, InfeasibleError, InputError, nearest_of
from cosa.common.files import WHOLE, FileModel, Model, read_data
from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, RELEVANT, TENSORS, Bound, Dim, Layer, Tensor
from cosa.model.mapping_rules import KINDS, Block, LoopKind, MappingRules, ProductRule
from cosa.model.schedule import ScheduleLevel

PLACES = ("every", "array", "inside_array", "around_array", "outermost")
"""Names for levels of any architecture: the array is the level with the mesh, or with the largest fan-out."""

_DimList = Annotated[tuple[Dim, ...], Field(min_length=1, max_length=len(DIMS))]


class FactorConstraint(Model):
    """The product of the loops over a dimension at a level (over all levels that a place names) is so much.

    `kind`: temporal loops, spatial loops, or (null) both. `equal`, or a range from `at_least` to `at_most`.
    """

    level: str
    dim: Dim
    kind: LoopKind | None = None
    equal: Bound | None = None
    at_least: Bound | None = None
    at_most: Bound | None = None

    @model_validator(mode="after")
    def _one_statement(self) -> FactorConstraint:
        bounded = self.at_least is not None or self.at_most is not None
        if (self.equal is not None) == bounded:
            raise FieldError(
                "states nothing, or too much", allowed="either equal, or at_least and at_most or one of them"
            )
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            allowed = f"at most {self.at_most}, which is at_most"
            raise FieldError("contradicts at_most", path="at_least", value=self.at_least, allowed=allowed)
        return self


class OrderConstraint(Model):
    """Loop order of a level (of each that a place names): what stands innermost.

    `order`: loops from the outer to the inner, as a schedule has them; loops not named stand outside of these. `stays`:
    the loops that leave a tensor where it is stand innermost, in any order. Loops of bound 1 do not count.
    """

    level: str
    order: _DimList | None = None
    stays: Tensor | None = None

    @model_validator(mode="after")
    def _one_statement(self) -> OrderConstraint:
        if (self.order is None) == (self.stays is None):
            raise FieldError("states nothing, or too much", allowed="either order or stays")
        if self.order is not None and len(set(self.order)) < len(self.order):
            raise FieldError("names a loop twice", path="order", value=list(self.order), allowed="each loop once")
        return self

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Blocks of loops from the inside out; all others stand outside of them."""
        if self.order is not None:
            return tuple((dim,) for dim in reversed(self.order))
        assert self.stays is not None
        return (tuple(dim for dim in DIMS if dim not in RELEVANT[self.stays]),)


class SpatialConstraint(Model):
    """Which loops a level (each that a place names) may have side by side over its instances.

    `dims`: these, along either axis; or `x` and `y`: these along the one, those along the other.
    """

    level: str
    dims: tuple[Dim, ...] | None = None
    x: tuple[Dim, ...] | None = None
    y: tuple[Dim, ...] | None = None

    @model_validator(mode="after")
    def _one_statement(self) -> SpatialConstraint:
        if (self.dims is None) == (self.x is None and self.y is None):
            raise FieldError("states nothing, or too much", allowed="either dims, or x and y or one of them")
        both = [dim for dim in self.x or () if dim in (self.y or ())]
        if both:
            raise FieldError("also along x", path="y", value=both[0], allowed="each dimension along one axis")
        return self


class KeepConstraint(Model):
    """Tensors that a level (each that a place names) keeps, and those that it bypasses; not named: free."""

    level: str
    keep: tuple[Tensor, ...] = ()
    bypass: tuple[Tensor, ...] = ()

    @model_validator(mode="after")
    def _one_statement(self) -> KeepConstraint:
        if not (*self.keep, *self.bypass):
            raise FieldError("states nothing", allowed="keep, bypass or both")
        if both := [tensor for tensor in self.keep if tensor in self.bypass]:
            raise FieldError("also under keep", path="bypass", value=both[0], allowed="each tensor once")
        return self


class Constraints(FileModel):
    """What mappings must keep to; everything not named is free.

    `architectures`: names of those that it is for (none: any). Levels are named as the architecture names them, or by
    one of `PLACES`.
    """

    kind: Literal["constraints"] = "constraints"
    schema_version: Annotated[Literal[1], WHOLE] = 1
    description: str = ""
    architectures: tuple[str, ...] = ()
    factors: tuple[FactorConstraint, ...] = ()
    orders: tuple[OrderConstraint, ...] = ()
    spatial: tuple[SpatialConstraint, ...] = ()
    keeps: tuple[KeepConstraint, ...] = ()
    _source: str = PrivateAttr(default="constraints")

    @classmethod
    def from_data(cls, data: Any, source: str | None = None) -> Constraints:
        """See `FileModel`; the source is kept for errors that need layer and architecture to be found."""
        found = super().from_data(data, source)
        found._source = source or "constraints"
        return found

    @property
    def source(self) -> str:
        """File or name that errors speak of."""
        return self._source

    @classmethod
    def of_nest(cls, nest: Sequence[ScheduleLevel]) -> Constraints:
        """Constraints that only one mapping keeps to: factors, orders and axes of a nest (outermost level first), and
        what its levels keep.

        Where a dimension runs along both axes of a level, or row by row, the axes stay open.

        Raises
        ------
        InputError: a level has two temporal loops over one dimension; factors can't tell them apart.
        """
        factors, orders, spatial, keeps = [], [], [], []
        for entry in nest:
            loops = [loop for loop in entry.loops if loop.bound > 1]
            temporal = tuple(loop.dim for loop in loops if loop.kind == "temporal")
            if len(set(temporal)) < len(temporal):
                allowed = "each dimension once"
                raise InputError(
                    "two temporal loops of one dimension", source=entry.level, value=temporal, allowed=allowed
                )
            for dim in DIMS:
                for kind in KINDS:
                    bound = prod(loop.bound for loop in loops if loop.dim == dim and loop.kind == kind)
                    factors.append(FactorConstraint(level=entry.level, dim=dim, kind=kind, equal=bound))
            if temporal:
                orders.append(OrderConstraint(level=entry.level, order=temporal))
            along = {axis: tuple(loop.dim for loop in loops if loop.axis == axis) for axis in ("x", "y", "row_major")}
            if not along["row_major"] and not set(along["x"]) & set(along["y"]):
                spatial.append(SpatialConstraint(level=entry.level, x=along["x"], y=along["y"]))
            bypass = tuple(tensor for tensor in TENSORS if tensor not in entry.keeps)
            keeps.append(KeepConstraint(level=entry.level, keep=entry.keeps, bypass=bypass))
        return cls(factors=tuple(factors), orders=tuple(orders), spatial=tuple(spatial), keeps=tuple(keeps))

    def rules(
        self, layer: Layer, architecture: Architecture, sizes: Mapping[Dim, Sequence[int]] | None = None
    ) -> MappingRules:
        """What they say of one layer on one architecture.

        Parameters
        ----------
        sizes: for a dimension, the bounds it may be padded to (default: the layer's alone).

        Raises
        ------
        InputError: not for this architecture, no such level, or a factor that divides no bound of its dimension.
        InfeasibleError: two loop orders of a level contradict each other.
        """
        if self.architectures and architecture.name not in self.architectures:
            raise InputError(
                f"not for architecture {architecture.name!r}",
                source=self.source,
                path="architectures",
                value=list(self.architectures),
                allowed="one of these with --arch",
            )
        products: list[ProductRule] = []
        for number, factor in enumerate(self.factors):
            path = f"factors[{number}]"
            levels = self._levels(architecture, factor.level, path)
            bounds = tuple((sizes or {}).get(factor.dim, ())) or (layer.bounds[factor.dim],)
            if factor.equal is not None:
                self._require_divisor(factor, bounds, f"{path}.equal")
            kinds = KINDS if factor.kind is None else (factor.kind,)
            least, most = factor.equal or factor.at_least or 1, factor.equal or factor.at_most
            text = (
                f"{factor.dim} at {factor.level}"
                if factor.kind is None
                else f"{factor.kind} {factor.dim} at {factor.level}"
            )
            products.append(ProductRule(path, text, levels, (factor.dim,), kinds, least, most))
        axes: dict[int, tuple[tuple[Dim, ...], tuple[Dim, ...]]] = {}
        for number, spatial in enumerate(self.spatial):
            path = f"spatial[{number}]"
            for level in self._levels(architecture, spatial.level, path):
                name = architecture.levels[level].name
                allowed = spatial.dims if spatial.dims is not None else (*(spatial.x or ()), *(spatial.y or ()))
                others = tuple(dim for dim in DIMS if dim not in allowed)
                products.append(
                    ProductRule(path, f"spatial {', '.join(others)} at {name}", (level,), others, ("spatial",), 1, 1)
                )
                if spatial.dims is None:
                    x, y = spatial.x or (), spatial.y or ()
                    known = axes.get(level, (x, y))
                    axes[level] = (
                        tuple(dim for dim in known[0] if dim in x),
                        tuple(dim for dim in known[1] if dim in y),
                    )
                    for dims, most, axis in zip((x, y), architecture.fanout(level), "xy", strict=True):
                        text = f"{', '.join(dims) or 'loops'} along {axis} at {name}"
                        products.append(ProductRule(path, text, (level,), dims, ("spatial",), 1, most))
        return MappingRules(self.source, tuple(products), self._blocks(architecture), axes, self._keeps(architecture))

    def _levels(self, architecture: Architecture, name: str, path: str) -> tuple[int, ...]:
        names = [level.name for level in architecture.levels]
        if name in names:
            return (names.index(name),)
        outermost, array = len(names) - 1, array_level(architecture)
        places = {
            "every": range(outermost + 1),
            "array": (array,),
            "inside_array": range(array),
            "around_array": range(array, outermost + 1),
            "outermost": (outermost,),
        }
        if name not in places:
            raise InputError(
                f"architecture {architecture.name!r} has no such level",
                source=self.source,
                path=f"{path}.level",
                value=name,
                allowed=", ".join([*names, *PLACES]),
                nearest=nearest_of(name, [*names, *PLACES]),
            )
        return tuple(places[name])

    def _require_divisor(self, factor: FactorConstraint, bounds: Sequence[int], path: str) -> None:
        wanted = factor.equal
        assert wanted is not None
        if any(bound % wanted == 0 for bound in bounds):
            return
        nearest = min(
            (size for bound in bounds for size in range(1, min(bound, 2 * wanted) + 1) if bound % size == 0),
            key=lambda size: abs(size - wanted),
        )
        raise InputError(
            f"does not divide {factor.dim}",
            source=self.source,
            path=path,
            value=wanted,
            allowed=f"a divisor of {' or '.join(map(str, bounds))}",
            nearest=str(nearest),
        )

    def _keeps(self, architecture: Architecture) -> dict[tuple[int, Tensor], bool]:
        found: dict[tuple[int, Tensor], bool] = {}
        for number, entry in enumerate(self.keeps):
            for level in self._levels(architecture, entry.level, f"keeps[{number}]"):
                for tensor in (*entry.keep, *entry.bypass):
                    keep = tensor in entry.keep
                    if found.setdefault((level, tensor), keep) != keep:
                        name = architecture.levels[level].name
                        raise InfeasibleError(f"{self.source}: {name} is to keep {tensor} and to bypass it")
        return found

    def _blocks(self, architecture: Architecture) -> dict[int, tuple[Block, ...]]:
        found: dict[int, tuple[Block, ...]] = {}
        stated: dict[int, list[str]] = {}
        for number, entry in enumerate(self.orders):
            path = f"orders[{number}]"
            for level in self._levels(architecture, entry.level, path):
                stated.setdefault(level, []).append(path)
                merged = _merged(found.get(level, ()), entry.blocks)
                if merged is None:
                    raise InfeasibleError(
                        f"{self.source}: contradictory loop orders at {architecture.levels[level].name}: "
                        f"{' and '.join(stated[level])} put different loops innermost"
                    )
                found[level] = merged
        return found


def array_level(architecture: Architecture) -> int:
    """The level whose instances are the array: that with the mesh, else that with the largest fan-out."""
    if architecture.noc is not None:
        return architecture.mesh_level
    sizes = [prod(architecture.fanout(level)) for level in range(len(architecture.levels))]
    return max(range(len(sizes)), key=lambda level: (sizes[level], level))


def _merged(one: tuple[Block, ...], other: tuple[Block, ...]) -> tuple[Block, ...] | None:
    """Both orders at once, None where they contradict each other."""
    found: list[Block] = []
    first, second = [set(block) for block in one], [set(block) for block in other]
    while first and second:
        inner = first[0] & second[0]
        if inner not in (first[0], second[0]):
            return None
        found.append(tuple(dim for dim in DIMS if dim in inner))
        for blocks in (first, second):
            blocks[0] -= inner
            if not blocks[0]:
                blocks.pop(0)
    rest = first or second
    return (*found, *(tuple(dim for dim in DIMS if dim in block) for block in rest))


def constraint_names() -> list[str]:
    """Names of the constraint files that travel with the package."""
    folder = resources.files("arch_configs") / "constraints"
    return sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def load_constraints(name_or_path: str | Path) -> Constraints:
    """Constraints by packaged name (``weight_stationary``) or by file.

    Raises
    ------
    InputError: no such name or file, or the file is wrong.
    """
    text, names = str(name_or_path), constraint_names()
    if text in names:
        with resources.as_file(resources.files("arch_configs") / "constraints" / f"{text}.yaml") as path:
            return Constraints.from_data(read_data(path), source=text)
    if not Path(text).suffix and not Path(text).exists():
        raise InputError(
            "no such constraints",
            path="constraints",
            value=text,
            allowed=", ".join(names) + ", or a YAML or JSON file",
            nearest=nearest_of(text, names),
        )
    return Constraints.from_file(text)
