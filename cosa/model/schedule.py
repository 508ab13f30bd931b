"""The schedule: for every level the ordered loops and what it keeps, with the layer, architecture and provenance."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, JsonValue, model_validator

from cosa.common.errors import FieldError, InputError
from cosa.common.files import WHOLE, FileModel, Model
from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, MAX_BOUND, MAX_MACS, Bound, Dim, Layer, Tensor

Axis = Literal["x", "y", "row_major"]


class Loop(Model):
    """One loop. A spatial loop runs along an axis of its level's fan-out; `row_major` numbers the instances row by row.

    Row-major loops are for factors that fit the number of instances but neither axis (13 on a 4x4 mesh); a level then
    has row-major spatial loops only.
    """

    dim: Dim
    bound: Annotated[int, Field(ge=1, le=MAX_BOUND)]
    kind: Literal["temporal", "spatial"] = "temporal"
    axis: Axis | None = None

    @model_validator(mode="after")
    def _axis_of_spatial(self) -> Loop:
        if (self.kind == "spatial") != (self.axis is not None):
            allowed = "x, y or row_major for a spatial loop, null for a temporal loop"
            raise FieldError(f"does not suit a {self.kind} loop", path="axis", value=self.axis, allowed=allowed)
        return self


class ScheduleLevel(Model):
    """Loops of one level, outer to inner: temporal first, then spatial (over the instances of the next level in)."""

    level: str
    keeps: tuple[Tensor, ...]
    loops: tuple[Loop, ...] = ()

    @model_validator(mode="after")
    def _order(self) -> ScheduleLevel:
        if len(set(self.keeps)) != len(self.keeps):
            raise FieldError("a tensor is named twice", path="keeps", value=list(self.keeps), allowed="each once")
        kinds = [loop.kind for loop in self.loops]
        if kinds != sorted(kinds, key=lambda kind: kind == "spatial"):
            allowed = "a level's temporal loops, then its spatial loops"
            raise FieldError("out of order", path="loops", value=kinds, allowed=allowed)
        axes = {loop.axis for loop in self.loops if loop.kind == "spatial"}
        if "row_major" in axes and len(axes) > 1:
            allowed = "at one level either row_major or x and y"
            raise FieldError("mixed spatial loops", path="loops", value=sorted(map(str, axes)), allowed=allowed)
        return self

    @property
    def temporal(self) -> tuple[Loop, ...]:
        """Temporal loops, outer to inner."""
        return tuple(loop for loop in self.loops if loop.kind == "temporal")

    @property
    def spatial(self) -> tuple[Loop, ...]:
        """Spatial loops, outer to inner."""
        return tuple(loop for loop in self.loops if loop.kind == "spatial")


StoppedBy = Literal[
    "samples",
    "evaluations",
    "time",
    "victory_condition",
    "generations",
    "exhausted",
    "no_valid_mapping",
    "interrupted",
]


class Search(Model):
    """What a search did; the same for the same seed and budget, unless time or Ctrl-C stopped it."""

    stopped_by: StoppedBy
    evaluations: int
    samples_drawn: int
    samples_valid: int
    samples_walked: int | None = None
    tilings: int | None = None
    logical_threads: int = 1


class Made(Model):
    """Who made a schedule, for what, and how good its maker says it is; what every result and row tells of it."""

    mapper: str
    objective: str | None = None
    model: str | None = None
    seed: int | None = None
    objective_value: float | None = None
    bound: float | None = None
    gap: float | None = None

    @property
    def text(self) -> str:
        """In a line, without what is not known."""
        parts = [self.mapper]
        if self.objective:
            value = "" if self.objective_value is None else f" = {self.objective_value:.6g}"
            details = [] if self.bound is None else [f"bound {self.bound:.6g}"]
            details += [] if self.gap is None else [f"gap {self.gap:.2%}"]
            model = f" ({self.model} model)" if self.model else ""
            parts.append(f"objective {self.objective}{model}{value}" + (f" ({', '.join(details)})" if details else ""))
        if self.seed is not None:
            parts.append(f"seed {self.seed}")
        return ", ".join(parts)


def made_together(made: Iterable[Made]) -> str:
    """Who made several schedules, in a line: what they share, and the largest gap."""
    found = list(made)

    def words(name: str) -> str:
        return " and ".join(dict.fromkeys(str(one) for each in found if (one := getattr(each, name)) is not None))

    parts = [words("mapper")] if found else []
    for name, text in (("objective", "objective {}"), ("model", "{} model"), ("seed", "seed {}")):
        if value := words(name):
            parts.append(text.format(value))
    if gaps := [each.gap for each in found if each.gap is not None]:
        parts.append(f"gaps up to {max(gaps):.2%}")
    return ", ".join(parts)


class Provenance(Made):
    """Where a schedule comes from. `objective_value`, `bound` and `gap` speak of the mapper's own objective.

    With a `model` they are cycles, picojoules or their product in that model, and the gap is value / bound - 1;
    `model_cycles` and `model_energy_pj` are the schedule's figures there.
    `bypass`: ``chosen`` where what levels keep was chosen with the mapping; the nest says what each keeps.
    `machine_bound_cycles`: what no schedule of the space searched can run below on the simulated machine.
    `options`: of the mapper, those that differ from their defaults.
    """

    version: str
    options: dict[str, JsonValue] = Field(default_factory=dict)
    bypass: str | None = None
    solver: str | None = None
    solver_status: str | None = None
    model_cycles: float | None = None
    model_energy_pj: float | None = None
    machine_bound_cycles: float | None = None
    search: Search | None = None
    notes: tuple[str, ...] = ()

    @property
    def made(self) -> Made:
        """What results and rows tell of it."""
        return Made(**{name: getattr(self, name) for name in Made.model_fields})

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C cut the search off."""
        return self.search is not None and self.search.stopped_by == "interrupted"

    @property
    def repeatable(self) -> bool:
        """Whether the same run would find the same: what time cut off may be better the next time."""
        cut_off = self.search is not None and self.search.stopped_by in ("time", "interrupted")
        return self.solver_status not in ("time_limit", "failed") and not cut_off


class ScheduleTiming(Model):
    """Wall-clock seconds; not part of hashes and comparisons."""

    build_seconds: float = 0.0
    solve_seconds: float = 0.0
    total_seconds: float = 0.0


class Schedule(FileModel):
    """A layer on an architecture as a loop nest; `nest` stands outermost level first and can be simulated alone.

    `padded`: larger bounds of dimensions to which the loops multiply up instead of the layer's. The machine then
    computes `padded_layer`; `layer` and its MACs stay those asked for.
    `remainders`: the loops only cover the layer: what lies outside is skipped, and the last tiles are smaller.
    """

    kind: Literal["schedule"] = "schedule"
    schema_version: Annotated[Literal[1], WHOLE] = 1
    layer: Layer
    architecture_name: str
    architecture_hash: str
    architecture: Architecture
    padded: dict[Dim, Bound] = Field(default_factory=dict)
    remainders: bool = False
    nest: tuple[ScheduleLevel, ...]
    provenance: Provenance
    timing: ScheduleTiming | None = None

    @model_validator(mode="after")
    def _belongs_together(self) -> Schedule:
        if self.architecture_hash != self.architecture.content_hash:
            raise FieldError(
                "does not belong to the embedded architecture, which was changed after scheduling "
                "(to run on a changed architecture, give that one with --arch)",
                path="architecture_hash",
                value=self.architecture_hash,
                allowed=self.architecture.content_hash,
            )
        for dim, bound in self.padded.items():
            if bound <= self.layer.bounds[dim]:
                allowed = f"more than {self.layer.bounds[dim]}, the layer's bound"
                raise FieldError("no padding", path=f"padded.{dim}", value=bound, allowed=allowed)
        if self.covered_layer.macs > MAX_MACS:
            allowed = f"at most {MAX_MACS} MACs, which counters hold"
            raise FieldError("too large", path="padded", value=self.covered_layer.macs, allowed=allowed)
        if self.remainders and not self.padded:
            raise FieldError("nothing is left over", path="remainders", value=True, allowed="false, or padded bounds")
        check_nest(self.layer, self.architecture, self.nest, self.padded)
        return self

    @classmethod
    def make(
        cls,
        layer: Layer,
        architecture: Architecture,
        nest: tuple[ScheduleLevel, ...],
        provenance: Provenance,
        timing: ScheduleTiming | None = None,
        padded: Mapping[Dim, int] | None = None,
        remainders: bool = False,
    ) -> Schedule:
        """Put a schedule together (name and hash of the architecture are filled in)."""
        return cls(
            layer=layer,
            architecture_name=architecture.name,
            architecture_hash=architecture.content_hash,
            architecture=architecture,
            padded=dict(padded or {}),
            remainders=remainders,
            nest=nest,
            provenance=provenance,
            timing=timing,
        )

    @property
    def content_hash(self) -> str:
        """SHA-256 of layer, architecture, nest and padding (not of names, notes, provenance and timing)."""
        data = self.model_dump(mode="json", include={"layer", "nest"}) | {"architecture": self.architecture_hash}
        if self.padded:  # only then, so that the hashes of others stay
            data["padded"] = dict(self.padded)
        if self.remainders:
            data["remainders"] = True
        data["layer"] = {key: value for key, value in data["layer"].items() if key not in ("kind", "name", "notes")}
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()

    @property
    def covered_layer(self) -> Layer:
        """The layer that the loops multiply up to: `layer` itself unless a bound is padded."""
        return self.layer.padded_to(self.padded)

    @property
    def padded_layer(self) -> Layer:
        """The layer that the machine computes in whole tiles: `layer` itself unless a bound is padded.

        Raises
        ------
        InputError: the schedule has remainders, so that it is not computed in whole tiles.
        """
        if self.remainders:
            raise InputError(
                "remainders: tiles that are cut are known to the evaluation by the convention `exact` only",
                source=f"the schedule of layer {self.layer.name!r}",
                path="remainders",
                value=True,
                allowed="`cosa show` and `cosa evaluate --convention exact`, or a schedule made without --remainders",
            )
        return self.covered_layer

    @property
    def padding_macs(self) -> int:
        """Multiply-accumulates that padding adds to those of the layer; none where remainders leave it out."""
        return 0 if self.remainders else self.covered_layer.macs - self.layer.macs

    @property
    def innermost_first(self) -> tuple[ScheduleLevel, ...]:
        """The nest in the architecture's order."""
        return self.nest[::-1]

    def with_architecture(self, architecture: Architecture) -> Schedule:
        """The same nest on another architecture.

        Raises
        ------
        InputError: the levels differ, or one does not keep what the schedule keeps there.
        """
        ours = [level.level for level in self.innermost_first]
        theirs = [level.name for level in architecture.levels]
        if ours != theirs:
            raise InputError(
                f"architecture {architecture.name!r} does not have the levels of the schedule",
                path="architecture",
                value=theirs,
                allowed=str(ours),
            )
        try:
            check_nest(self.layer, architecture, self.nest, self.padded)
        except FieldError as error:
            source = f"the schedule on architecture {architecture.name!r}"
            raise InputError(
                error.message, source=source, path=error.path, allowed=error.allowed, **error.found
            ) from None
        return Schedule.make(
            self.layer, architecture, self.nest, self.provenance, self.timing, self.padded, self.remainders
        )

    def with_nest(self, nest: tuple[ScheduleLevel, ...], provenance: Provenance | None = None) -> Schedule:
        """Another nest for the same layer, padding and architecture; without `provenance` with the same; no timing."""
        return Schedule.make(
            self.layer,
            self.architecture,
            nest,
            provenance or self.provenance,
            padded=self.padded,
            remainders=self.remainders,
        )

    def save(self, path: str | Path, timing: bool = True) -> None:
        """Write the file; without `timing` the same input and seed give the same bytes."""
        self.to_file(path, **({} if timing else {"exclude": {"timing"}}))


def check_nest(
    layer: Layer,
    architecture: Architecture,
    nest: tuple[ScheduleLevel, ...],
    padded: Mapping[Dim, int] | None = None,
) -> None:
    """Structure of a nest: levels, what they keep, and factors whose product is the layer, or its padded bounds.

    Capacities and fan-outs are questions of feasibility: see `cosa.model.validity`.

    Raises
    ------
    FieldError: with the level or dimension that is wrong.
    """
    names = [level.name for level in architecture.levels][::-1]
    given = [level.level for level in nest]
    if given != names:
        allowed = f"{names}, outermost first"
        raise FieldError("not the levels of the architecture", path="nest", value=given, allowed=allowed)
    for number, (level, entry) in enumerate(zip(architecture.levels[::-1], nest, strict=True)):
        path, value = f"nest[{number}].keeps", list(entry.keeps)
        could = level.could_keep
        if not set(entry.keeps) <= set(could):
            raise FieldError(f"more than {level.name} keeps", path=path, value=value, allowed=", ".join(could))
        if number == 0 and set(entry.keeps) != set(level.keeps):
            allowed = ", ".join(level.keeps)
            raise FieldError("the outermost level keeps every tensor", path=path, value=value, allowed=allowed)
    products = dict.fromkeys(DIMS, 1)
    for entry in nest:
        for loop in entry.loops:
            products[loop.dim] *= loop.bound
    for dim, product in products.items():
        wanted = (padded or {}).get(dim, layer.bounds[dim])
        if product != wanted:
            allowed = f"{wanted}, the padded bound" if padded and dim in padded else f"{wanted}, the layer's bound"
            raise FieldError(
                f"the bounds of the loops over {dim} multiply up wrongly", path="nest", value=product, allowed=allowed
            )
