"""The architecture: memory levels with their fan-outs, the mesh, the DRAM block and the machine's switches.

Mesh and DRAM block are for the simulator; an architecture that is only evaluated analytically needs neither.
"""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from importlib import resources
from math import prod
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field, field_validator, model_validator

from cosa.common.errors import FieldError, InputError, nearest_of
from cosa.common.files import WHOLE, FileModel, Model
from cosa.model.layer import Bits, Tensor
from cosa.model.noc import Noc, parse_mesh

Count = Annotated[int, Field(ge=1, le=2**31)]
Cycles = Annotated[int, Field(ge=0, le=2**31)]
Bandwidth = Annotated[float, Field(gt=0)]
Picojoules = Annotated[float, Field(ge=0, le=1e12)]

MAX_MACS = 2**40


class Fanout(Model):
    """Instances of the next level in that one instance feeds, along X and Y."""

    x: Count = 1
    y: Count = 1


class Level(Model):
    """One memory of the hierarchy.

    `capacity_words` counts the entries of one tile set, over all tensors kept (null: unbounded). `buffers: 2` is a
    second, shadow set beside it, so that the next tile may arrive while the present one is used; it takes nothing from
    the capacity unless the architecture says `shared_halves`. `fanout` is what the level's spatial loops spread over:
    a number, ``{x: , y: }``, or ``mesh`` for the level below which the mesh of PEs lies.

    `may_keep`: tensors that the level could keep besides, but passes by unless a mapper chooses what levels keep
    (`bypass` of `cosa.api.schedule`).

    A level that neither keeps nor may keep anything has no capacity (0; the file may leave it out): a step of a fan-out
    that has several, each multicast by itself, or a place for loops. It costs no energy and has no bandwidth.

    An access reads or writes a vector of `block_words` words of `word_bits` bits and costs `vector_access_energy_pj`
    (null: estimated by `cosa.analytical.energy` for the `technology`; null there: DRAM at the outermost level, SRAM
    elsewhere). `cluster_size` instances share one physical array. Bandwidths are words a cycle of one instance, over
    all tensors it keeps (null: unlimited). The word width of a transfer on the network is the layer's, not this one.
    """

    name: str = Field(min_length=1, max_length=100)
    keeps: tuple[Tensor, ...]
    may_keep: tuple[Tensor, ...] = ()
    capacity_words: Annotated[int, Field(ge=0, le=2**31)] | None = 0
    buffers: Annotated[Literal[1, 2], WHOLE] = 1
    fanout: Count | Fanout | Literal["mesh"] = 1
    read_bandwidth_words_per_cycle: Bandwidth | None = None
    write_bandwidth_words_per_cycle: Bandwidth | None = None
    word_bits: Annotated[int, Field(ge=1, le=1024)] = 8
    block_words: Annotated[int, Field(ge=1, le=2**16)] = 1
    cluster_size: Annotated[int, Field(ge=1, le=2**16)] = 1
    technology: Literal["SRAM", "DRAM"] | None = None
    vector_access_energy_pj: Picojoules | None = None

    @field_validator("keeps")
    @classmethod
    def _distinct(cls, keeps: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        if len(set(keeps)) != len(keeps):
            raise FieldError("a tensor is named twice", allowed="weights, inputs, outputs, each once")
        return keeps

    @model_validator(mode="after")
    def _others(self) -> Level:
        if len({*self.keeps, *self.may_keep}) != len(self.keeps) + len(self.may_keep):
            allowed = "tensors that `keeps` does not name, each once"
            raise FieldError("a tensor is named twice", path="may_keep", value=list(self.may_keep), allowed=allowed)
        if self.could_keep:
            if self.capacity_words == 0:
                stated = "capacity_words" in self.model_fields_set
                message = "there is no room for what the level keeps" if stated else "missing"
                found = {"value": 0} if stated else {}
                allowed = "a whole number >= 1, or `keeps: []`; null at the outermost level"
                raise FieldError(message, path="capacity_words", allowed=allowed, **found)
            return self
        if self.capacity_words != 0:
            message, value = "a level that keeps nothing has no capacity", self.capacity_words
            raise FieldError(message, path="capacity_words", value=value, allowed="0, or tensors in `keeps`")
        for name in _OF_MEMORIES:
            if (value := getattr(self, name)) != Level.model_fields[name].default:
                message, allowed = "only a level that keeps something has it", "nothing, or tensors in `keeps`"
                raise FieldError(message, path=name, value=value, allowed=allowed)
        return self

    @property
    def could_keep(self) -> tuple[Tensor, ...]:
        """Tensors that the level keeps or may keep."""
        return (*self.keeps, *self.may_keep)


_OF_MEMORIES = (
    "buffers",
    "word_bits",
    "cluster_size",
    "read_bandwidth_words_per_cycle",
    "write_bandwidth_words_per_cycle",
    "block_words",
    "technology",
    "vector_access_energy_pj",
)
"""Fields that say something about a memory, and nothing about a level that keeps nothing."""


class LoopsAt(Model):
    """The temporal or the spatial loops of a level."""

    level: str
    kind: Literal["temporal", "spatial"] = "spatial"


class Limit(Model):
    """The product of all loops at some places is at most `most`: threads a block of a GPU, say."""

    name: str = Field(min_length=1, max_length=100)
    over: Annotated[tuple[LoopsAt, ...], Field(min_length=1)]
    most: Count


class DramBlock(Model):
    """Names a DRAM set-up; `nocsim` resolves it.

    `clocks_per_core_cycle` is ``real`` (the device's clock over the core's) or a ratio n/m of clocks.
    """

    device: str = Field(min_length=1)
    policy: str = Field(min_length=1)
    mapping: str = Field(min_length=1)
    channels: Annotated[int, Field(ge=1, le=64)] = 1
    ranks: Annotated[int, Field(ge=1, le=64)] = 1
    clocks_per_core_cycle: str = Field(default="real", pattern=r"^(real|[1-9][0-9]{0,5}(/[1-9][0-9]{0,5})?)$")


class Pe(Model):
    """A PE. A step takes its temporal loops plus `pipeline_latency_cycles`; null adds partial sums as they arrive."""

    pipeline_latency_cycles: Cycles = 0
    adder_words_per_cycle: Count | None = None


PlacementOrder = Literal[
    "as_scheduled", "transposed", "row_major", "column_major", "row_major_reversed", "column_major_reversed"
]
"""How the spatial loops at the mesh level are laid out on the mesh (`cosa.analytical.placement`)."""


class Machine(Model):
    """Switches that tell one machine from another; `docs/reference/architecture.md` says what each models."""

    reads_in_flight: Count = 64
    dram_packet: Literal["complete", "holds_path"] = "complete"
    send_engine: Literal["own", "shared"] = "own"
    store_waits_for: Literal["own_pe", "all_pes"] = "own_pe"
    finished_outputs: Literal["quantised", "partial_sum_width"] = "quantised"
    halo_reuse: bool = True
    chunk_packets: Count | None = 16
    dram_write_buffer_packets: Count = 64
    compute_starts: Literal["whole_tile", "first_word"] = "whole_tile"
    reduction: Literal["chain", "tree"] = "chain"
    placement: PlacementOrder = "as_scheduled"
    weights_refetch: Literal["physical", "published"] = "physical"


class Mac(Model):
    """A multiply-accumulate unit: width of its operands, energy of one operation (null: estimated from the width)."""

    word_bits: Bits = 8
    energy_pj: Picojoules | None = None


class Architecture(FileModel):
    """An accelerator. Levels stand innermost first; the outermost (the DRAM, as a rule unbounded) keeps everything.

    `noc` and `dram` may be left out where nothing is simulated; `fanout: mesh` and `noc` need each other.
    """

    kind: Literal["architecture"] = "architecture"
    schema_version: Annotated[Literal[1], WHOLE] = 1
    name: str = Field(min_length=1, max_length=100)
    description: str = ""
    clock_ghz: Annotated[float, Field(gt=0, le=100)] = 1.0
    shared_halves: bool = False
    levels: Annotated[tuple[Level, ...], Field(min_length=1, max_length=16)]
    limits: tuple[Limit, ...] = ()
    mac: Mac = Mac()
    noc: Noc | None = None
    dram: DramBlock | None = None
    pe: Pe = Pe()
    machine: Machine = Machine()

    @model_validator(mode="after")
    def _hierarchy(self) -> Architecture:
        names = [level.name for level in self.levels]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise FieldError(
                    f"level {names.index(name)} has the same name", path=f"levels[{number}].name", value=name
                )
        outermost, path = self.levels[-1], f"levels[{len(names) - 1}]"
        if len(outermost.keeps) < 3:
            allowed = "weights, inputs, outputs"
            value = list(outermost.keeps)
            raise FieldError("the outermost level keeps all", path=f"{path}.keeps", value=value, allowed=allowed)
        for number, level in enumerate(self.levels[:-1]):
            path = f"levels[{number}]"
            if level.capacity_words is None:
                message = "only the outermost level is unbounded"
                raise FieldError(message, path=f"{path}.capacity_words", value=None, allowed="a whole number >= 1")
        meshes = [number for number, level in enumerate(self.levels) if level.fanout == "mesh"]
        if self.noc is None and meshes:
            path, allowed = f"levels[{meshes[0]}].fanout", "a whole number or {x: , y: }, or state the noc block"
            raise FieldError("there is no noc block to take the mesh from", path=path, value="mesh", allowed=allowed)
        if self.noc is not None and len(meshes) != 1:
            which = "none has it" if not meshes else f"levels {' and '.join(map(str, meshes))} have it"
            raise FieldError(f"exactly one level has `fanout: mesh`; {which}", path="levels")
        for number, limit in enumerate(self.limits):
            for place, loops in enumerate(limit.over):
                if loops.level not in names:
                    path, allowed = f"limits[{number}].over[{place}].level", ", ".join(names)
                    raise FieldError("no such level", path=path, value=loops.level, allowed=allowed)
        for number, level in enumerate(self.levels):
            if self.instances(number) % level.cluster_size:
                path, allowed = f"levels[{number}].cluster_size", f"a divisor of its {self.instances(number)} instances"
                raise FieldError("does not divide the instances", path=path, value=level.cluster_size, allowed=allowed)
        if self.macs > MAX_MACS:
            allowed = f"at most {MAX_MACS}"
            message = "the product of all fan-outs, the MAC units, is too large"
            raise FieldError(message, path="levels", value=self.macs, allowed=allowed)
        return self

    @property
    def mesh_level(self) -> int:
        """Index of the level whose spatial loops spread over the PEs.

        Raises
        ------
        InputError: there is no mesh of PEs.
        """
        self.require_noc()
        return next(i for i, level in enumerate(self.levels) if level.fanout == "mesh")

    def require_noc(self) -> Noc:
        """The mesh; InputError where the architecture states none."""
        if self.noc is None:
            raise InputError(
                "no mesh of PEs is stated: this architecture can be scheduled and evaluated, not simulated",
                source=self.name,
                path="noc",
                allowed="a noc block, and `fanout: mesh` at one level",
            )
        return self.noc

    def require_dram(self) -> DramBlock:
        """The DRAM block; InputError where the architecture states none."""
        if self.dram is None:
            raise InputError(
                "no DRAM is stated: this architecture can be scheduled and evaluated, not simulated",
                source=self.name,
                path="dram",
                allowed="a dram block (device, policy, mapping)",
            )
        return self.dram

    def fanout(self, level: int) -> tuple[int, int]:
        """(x, y) fan-out below a level."""
        value = self.levels[level].fanout
        if isinstance(value, Fanout):
            return value.x, value.y
        if value == "mesh":
            noc = self.require_noc()
            return noc.pe_columns, noc.pe_rows
        assert isinstance(value, int)
        return value, 1

    def instances(self, level: int) -> int:
        """Instances of a level on the chip: the product of the fan-outs further out."""
        return prod(x * y for x, y in (self.fanout(outer) for outer in range(level + 1, len(self.levels))))

    def is_dram(self, level: int) -> bool:
        """Whether a level is DRAM: as it states, else the outermost one."""
        technology = self.levels[level].technology
        return technology == "DRAM" if technology else level == len(self.levels) - 1

    def pe_tile_level(self, tensor: Tensor, store: int) -> int:
        """Level whose loops a PE takes a tensor's tile over; `store`: outermost level of a PE that keeps it (-1: none).

        The tile is what the store holds, `store` again; of weights refetched as published what all loops of a PE want.
        """
        whole = self.machine.weights_refetch == "published" and tensor == "weights" and store >= 0
        return self.mesh_level - 1 if whole else store

    def usable_words(self, level: int) -> int | None:
        """Entries that one tile set may take at a level (null: unbounded, or nothing can be kept there)."""
        capacity = self.levels[level].capacity_words or None
        if capacity is not None and self.shared_halves:
            return capacity // self.levels[level].buffers
        return capacity

    def level_index(self, name: str) -> int:
        """Index of a level by name; KeyError when there is none."""
        for index, level in enumerate(self.levels):
            if level.name == name:
                return index
        raise KeyError(name)

    @property
    def macs(self) -> int:
        """Multiply-accumulate units on the chip."""
        return self.instances(-1)

    def with_mesh(self, mesh: str) -> Architecture:
        """The same architecture with another mesh of PEs, ``"columns x rows"``."""
        columns, rows = parse_mesh(mesh, path="mesh")
        self.require_noc()
        return self.with_(noc={"mesh": f"{columns}x{rows}"})

    def with_placement(self, placement: str) -> Architecture:
        """The same architecture with `machine.placement` as given."""
        allowed = get_args(PlacementOrder)
        if placement not in allowed:
            raise InputError(
                "no such placement",
                path="placement",
                value=placement,
                allowed=", ".join(allowed),
                nearest=nearest_of(placement, allowed),
            )
        return self.with_(machine={"placement": placement})

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of everything that can change a result (name and description cannot).

        What has its default value is left out, so that a field which a later version adds does not make the schedule
        files of this one look edited.
        """
        data = self.model_dump(mode="json", exclude={"name", "description", "kind"}, exclude_defaults=True)
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def architecture_names() -> list[str]:
    """Names of the architectures that travel with the package."""
    folder = resources.files("arch_configs")
    return sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def _exists(path: str) -> bool:
    try:
        return path != "" and Path(path).exists()
    except OSError:  # a name too long for the file system
        return False


def load_architecture(name_or_path: str | Path) -> Architecture:
    """An architecture by packaged name (``simba_4x4``) or by file.

    Raises
    ------
    InputError: no such name or file, or the file is wrong.
    """
    text = str(name_or_path)
    if text in architecture_names():
        with resources.as_file(resources.files("arch_configs") / f"{text}.yaml") as path:
            return Architecture.from_file(path)
    if not Path(text).suffix and not _exists(text):
        names = architecture_names()
        raise InputError(
            "no such architecture",
            path="architecture",
            value=text,
            allowed=", ".join(names) + ", or a YAML or JSON file",
            nearest=nearest_of(text, names),
        )
    return Architecture.from_file(text)
