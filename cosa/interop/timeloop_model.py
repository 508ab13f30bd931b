"""What Timeloop files say, before it is turned into anything: levels, constraints, mappings, problems, nests.

Names of dimensions and data spaces are the file's own. Permutations are innermost first, as Timeloop writes them;
levels and loops of a nest are outermost first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from types import MappingProxyType
from typing import Any, Literal


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True)
class Factor:
    """A factor of a directive. 0 is the full bound; `residue` is the last iteration's factor where it differs."""

    dim: str
    value: int
    residue: int | None = None
    relation: Literal["=", "<=", ">="] = "="


@dataclass(frozen=True)
class Directive:
    """One directive of a mapping, or one constraint.

    `type` is ``temporal``, ``spatial``, ``bypass`` or another type of constraint, whose values stand in `settings`.
    None: the file does not say.
    """

    target: str
    type: str
    factors: tuple[Factor, ...] = ()
    only_factors: bool = False
    permutation: tuple[str, ...] | None = None
    split: int | None = None
    keep: tuple[str, ...] | None = None
    bypass: tuple[str, ...] | None = None
    keep_only: bool = False
    settings: Mapping[str, Any] = field(default_factory=_nothing)
    path: str = ""

    @property
    def dims(self) -> tuple[str, ...]:
        """Dimensions named, in order of appearance."""
        named = [*(self.permutation or ()), *(factor.dim for factor in self.factors)]
        return tuple(dict.fromkeys(dim for dim in named if dim != "_"))


@dataclass(frozen=True)
class ArchLevel:
    """A level of an architecture file: a memory, a container with a fan-out, or the compute units.

    `mesh_x` and `mesh_y` count instances on the whole chip (of a container: of what lies below it); `fanout_x` and
    `fanout_y` those of the next memory or compute level below one instance (of a container: the fan-out it adds).
    `entries` None: unlimited.
    `derived`: the fan-out of a component that stands in the file with it, as a container of its own.
    """

    name: str
    kind: Literal["storage", "container", "compute"]
    mesh_x: int = 1
    mesh_y: int = 1
    fanout_x: int = 1
    fanout_y: int = 1
    word_bits: int | None = None
    block_words: int = 1
    cluster_size: int = 1
    entries: int | None = None
    component_class: str = ""
    technology: str = ""
    read_bandwidth: float | None = None
    write_bandwidth: float | None = None
    multiple_buffering: float = 1
    vector_access_energy_pj: float | None = None
    operand_bits: int | None = None
    energy_per_op_pj: float | None = None
    cycle_seconds: float | None = None
    attributes: Mapping[str, Any] = field(default_factory=_nothing)
    directives: tuple[Directive, ...] = ()
    parallel_group: int | None = None
    derived: bool = False

    @property
    def instances(self) -> int:
        """Instances on the chip."""
        return self.mesh_x * self.mesh_y

    @property
    def own_mesh(self) -> tuple[int, int]:
        """Instances of the level itself along X and Y: those of a container lie above the fan-out that it adds."""
        if self.kind == "container":
            return self.mesh_x // self.fanout_x, self.mesh_y // self.fanout_y
        return self.mesh_x, self.mesh_y

    @property
    def is_dram(self) -> bool:
        """Whether class or technology say DRAM."""
        return "DRAM" in self.component_class.upper() or self.technology.upper() == "DRAM"


@dataclass(frozen=True)
class ArchFile:
    """An architecture, levels outermost first."""

    format: str
    levels: tuple[ArchLevel, ...]


@dataclass(frozen=True)
class ConstraintList:
    """Constraints in the order of the file, and the key under which they stand."""

    key: str
    format: str | None
    directives: tuple[Directive, ...]


@dataclass(frozen=True)
class DataSpace:
    """A tensor of a shape. A projection is a list of ranks, a rank a sum of terms (dimension, coefficient or None)."""

    name: str
    projection: tuple[tuple[tuple[str, str | None], ...], ...]
    read_write: bool = False


@dataclass(frozen=True)
class ProblemShape:
    """Dimensions, coefficients with their defaults, and data spaces of a kind of problem."""

    name: str
    dimensions: tuple[str, ...]
    coefficients: Mapping[str, int]
    data_spaces: tuple[DataSpace, ...]


@dataclass(frozen=True)
class Problem:
    """A shape with its bounds and coefficients."""

    name: str
    format: str | None
    shape: ProblemShape
    bounds: Mapping[str, int]
    coefficients: Mapping[str, int]

    @property
    def macs(self) -> int:
        """Product of all bounds."""
        return prod(self.bounds.values())

    def coefficient(self, name: str | None) -> int:
        """Value of a coefficient (1 without one)."""
        return 1 if name is None else self.coefficients[name]

    def rank_extent(self, rank: tuple[tuple[str, str | None], ...]) -> int:
        """Length of one axis of a tensor, from the first to the last index touched."""
        return sum((self.bounds[dim] - 1) * self.coefficient(name) for dim, name in rank) + 1

    def words(self, space: DataSpace) -> int:
        """Words of a tensor, as a bounding box."""
        return prod(self.rank_extent(rank) for rank in space.projection)


@dataclass(frozen=True)
class NestLoop:
    """One loop of a nest; `residue` is the bound of the last iteration where it differs."""

    dim: str
    bound: int
    kind: Literal["temporal", "spatial-X", "spatial-Y"]
    residue: int | None = None


@dataclass(frozen=True)
class NestLevel:
    """Loops of one level or container, outer to inner, and data spaces kept and bypassed there.

    Neither given: everything is kept. Only `keeps`: nothing else is. Both: what neither names is kept, too.
    """

    name: str
    loops: tuple[NestLoop, ...]
    keeps: tuple[str, ...] | None = None
    bypasses: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Nest:
    """A mapping as a loop nest, outermost level first."""

    levels: tuple[NestLevel, ...]

    @property
    def bounds(self) -> dict[str, int]:
        """Bound of each dimension: the product of its loops, or with residues what they add up to."""
        loops: dict[str, list[NestLoop]] = {}
        for level in self.levels:
            for loop in level.loops:
                loops.setdefault(loop.dim, []).append(loop)
        result = {}
        for dim, chain in loops.items():
            inside, total = 1, 1
            for loop in reversed(chain):
                last = loop.bound if loop.residue is None else loop.residue
                total += (last - 1) * inside
                inside *= loop.bound
            result[dim] = total
        return result


@dataclass(frozen=True)
class MappingFile:
    """A mapping as directives, in the order of the file."""

    directives: tuple[Directive, ...]

    @property
    def dims(self) -> tuple[str, ...]:
        """Dimensions named anywhere, in order of appearance."""
        return tuple(dict.fromkeys(dim for directive in self.directives for dim in directive.dims))


@dataclass(frozen=True)
class TimeloopFile:
    """Everything found in one file, or in several read together.

    `uncounted`: values, by their path, that would change a result and have no meaning here.
    """

    source: str
    architecture: ArchFile | None = None
    constraints: tuple[ConstraintList, ...] = ()
    mapping: MappingFile | None = None
    nest: Nest | None = None
    problem: Problem | None = None
    shape: ProblemShape | None = None
    mapper: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = field(default=(), compare=False)
    uncounted: Mapping[str, Any] = field(default_factory=_nothing, compare=False)
