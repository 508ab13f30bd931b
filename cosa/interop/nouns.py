"""From what Timeloop files say to our nouns: architecture and schedule (the layer: see `roles`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from cosa.common.errors import nearest_of
from cosa.interop.nests import level_named, plain_name
from cosa.interop.places import Where
from cosa.interop.roles import Roles, tensor_of_name
from cosa.interop.timeloop_model import ArchFile, ArchLevel, Directive, Nest, NestLevel, NestLoop
from cosa.model.arch import Architecture
from cosa.model.layer import TENSORS, Layer, Tensor
from cosa.model.schedule import Axis, Loop, Provenance, Schedule

DEFAULT_MAC_BITS = 16


def tensors_of(names: Sequence[str], tensors: Mapping[str, Tensor] | None, where: Where) -> tuple[Tensor, ...]:
    """Data spaces as tensors, by the problem's shape or else by their names.

    Raises
    ------
    InputError: a name that says nothing.
    """
    found = []
    for name in names:
        tensor = (tensors or {}).get(name) or tensor_of_name(name)
        if tensor is None:
            allowed = ", ".join(tensors) if tensors else "Weights, Inputs, Outputs, or the problem that defines it"
            raise where.error("not a tensor of the problem", value=name, allowed=allowed)
        found.append(tensor)
    return tuple(tensor for tensor in TENSORS if tensor in found)


def kept_tensors(
    level: str, directives: Sequence[Directive], tensors: Mapping[str, Tensor] | None, where: Where
) -> tuple[Tensor, ...]:
    """What a level may keep: everything that no constraint makes it bypass."""
    kept = set(TENSORS)
    for directive in directives:
        if directive.type == "bypass" and plain_name(directive.target) == plain_name(level):
            kept -= set(tensors_of(directive.bypass or (), tensors, where))
            if directive.keep_only:
                kept &= set(tensors_of(directive.keep or (), tensors, where))
    return tuple(tensor for tensor in TENSORS if tensor in kept)


def architecture_of(
    file: ArchFile, directives: Sequence[Directive], tensors: Mapping[str, Tensor] | None, where: Where
) -> Architecture:
    """The architecture of a file, with bypass as its constraints say.

    Containers with a fan-out, and memories that keep nothing or have no room, are levels that keep nothing: Timeloop
    counts each step of a fan-out by itself. Mesh and DRAM block are not in Timeloop's files and stay out.

    Raises
    ------
    InputError: what our architecture does not have, by level.
    """
    compute = file.levels[-1]
    kept: list[tuple[ArchLevel, tuple[Tensor, ...]]] = []
    for level in file.levels[:-1]:
        keeps = kept_tensors(level.name, [*directives, *level.directives], tensors, where)
        if level.kind == "container":
            if not kept:
                raise where.error(f"container {level.name} stands around the outermost memory", value=level.fanout_x)
            if level.fanout_x * level.fanout_y > 1:
                kept.append((level, ()))
        else:
            if not kept:
                _require_all(keeps, level.name, where)
            kept.append((level, () if level.entries == 0 else keeps))
    below = [*(level for level, _ in kept[1:]), compute]
    levels = [_level(level, keeps, inner, where) for (level, keeps), inner in zip(kept, below, strict=True)]
    data = {
        "name": Path(where.source).stem[:100] or "timeloop",
        "description": f"read from {Path(where.source).name}, Timeloop {file.format}",
        "shared_halves": any(level.multiple_buffering == 2 for level, _ in kept),
        "levels": levels[::-1],
        "mac": _given({"word_bits": compute.word_bits or compute.operand_bits or DEFAULT_MAC_BITS})
        | _given({"energy_pj": compute.energy_per_op_pj}),
    }
    cycles = {level.cycle_seconds for level in file.levels if level.cycle_seconds}
    if len(cycles) > 1:
        raise where.error("several clocks", value=sorted(cycles), allowed="one global_cycle_seconds")
    if cycles:
        data["clock_ghz"] = round(1e-9 / cycles.pop(), 9)
    return Architecture.from_data(data, source=where.source)


def _require_all(keeps: tuple[Tensor, ...], level: str, where: Where) -> None:
    """InputError where the outermost memory passes something by: there is nothing around it that could hold that."""
    if passed := [tensor for tensor in TENSORS if tensor not in keeps]:
        message = f"{level}, the outermost memory, is bypassed; ours holds every tensor before and after the layer"
        raise where.error(message, value=passed, allowed="a bypass of levels further in")


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _level(level: ArchLevel, keeps: tuple[Tensor, ...], inner: ArchLevel, where: Where) -> dict[str, Any]:
    (x, y), (inner_x, inner_y) = level.own_mesh, inner.own_mesh
    x, y = inner_x // x, inner_y // y
    fanout = {"x": x, "y": y} if y > 1 else x
    if not keeps:
        return {"name": level.name, "keeps": [], "fanout": fanout}
    if level.multiple_buffering not in (1, 2):
        message = f"{level.name}: multiple_buffering that is neither single nor double"
        raise where.error(message, value=level.multiple_buffering, allowed="1, 2")
    return {
        "name": level.name,
        "keeps": list(keeps),
        "capacity_words": level.entries,
        "buffers": int(level.multiple_buffering),
        "fanout": fanout,
        "word_bits": level.word_bits,
        "block_words": level.block_words,
        "cluster_size": level.cluster_size,
        "technology": "DRAM" if level.is_dram else "SRAM",
    } | _given(
        {
            "read_bandwidth_words_per_cycle": level.read_bandwidth,
            "write_bandwidth_words_per_cycle": level.write_bandwidth,
            "vector_access_energy_pj": level.vector_access_energy_pj,
        }
    )


def schedule_of(
    nest: Nest,
    layer: Layer,
    architecture: Architecture,
    where: Where,
    roles: Roles | None = None,
) -> Schedule:
    """The schedule of a nest. `roles` translate names of dimensions and tensors.

    Raises
    ------
    InputError: a level, dimension or loop that the schedule can't hold.
    """
    names = [level.name for level in architecture.levels][::-1]
    loops: dict[str, list[NestLoop]] = {name: [] for name in names}
    keeps: dict[str, tuple[Tensor, ...]] = {}
    tensors = None if roles is None else roles.tensors
    for level in nest.levels:
        host = level_named(level.name, names)
        if host is None:
            nearest, message = nearest_of(level.name, names), "no such level in the architecture"
            raise where.error(message, value=level.name, allowed=", ".join(names), nearest=nearest)
        keeps[host] = _keeps(level, architecture, host, tensors, where)
        loops[host].extend(level.loops)
    entries = []
    for name in names:
        level_keeps = keeps.get(name, architecture.levels[architecture.level_index(name)].keeps)
        inside = _loops(loops[name], name, architecture, roles, where)
        plain = [loop.model_dump(mode="json") for loop in inside]
        entries.append({"level": name, "keeps": list(level_keeps), "loops": plain})
    provenance = Provenance(mapper="imported", version="1", notes=(f"read from {Path(where.source).name}",))
    data = {
        "layer": layer.model_dump(mode="json"),
        "architecture_name": architecture.name,
        "architecture_hash": architecture.content_hash,
        "architecture": architecture.model_dump(mode="json"),
        "nest": entries,
        "provenance": provenance.model_dump(mode="json"),
    }
    return Schedule.from_data(data, source=where.source)


def _keeps(
    level: NestLevel, architecture: Architecture, host: str, tensors: Mapping[str, Tensor] | None, where: Where
) -> tuple[Tensor, ...]:
    """What a nest keeps at a level; what it does not say is kept, as in Timeloop.

    Raises
    ------
    InputError: the outermost level passes something by.
    """
    possible = architecture.levels[architecture.level_index(host)].keeps
    kept = set(tensors_of(level.keeps or (), tensors, where))
    if level.bypasses is not None or level.keeps is None:
        passed = set(tensors_of(level.bypasses or (), tensors, where))
        kept |= set(possible) - passed
    keeps = tuple(tensor for tensor in TENSORS if tensor in kept)
    if host == architecture.levels[-1].name:
        _require_all(keeps, host, where)
    return keeps


def _loops(
    loops: Sequence[NestLoop], level: str, architecture: Architecture, roles: Roles | None, where: Where
) -> list[Loop]:
    """Loops of a level, temporal before spatial.

    Loops along X that are more than the columns of our mesh but not than its PEs number the PEs row by row: Timeloop
    often lays a mesh out as one row.
    """
    spatial = [loop for loop in loops if loop.kind != "temporal"]
    columns, rows = architecture.fanout(architecture.level_index(level))
    along_x = prod(loop.bound for loop in spatial)
    on_mesh = architecture.levels[architecture.level_index(level)].fanout == "mesh"
    only_x = all(loop.kind == "spatial-X" for loop in spatial)
    row_major = on_mesh and only_x and columns < along_x <= columns * rows
    if row_major:
        where.note(f"{level}: spatial loops along X number the {columns}x{rows} PEs row by row")
    result = []
    for loop in [*(loop for loop in loops if loop.kind == "temporal"), *spatial]:
        if loop.residue is not None:
            value = f"{loop.dim}={loop.bound},{loop.residue}"
            raise where.error(f"{level}: a residue; our loops all run to their bound", value=value)
        axis: Axis | None = None
        if loop.kind != "temporal":
            axis = "row_major" if row_major else "x" if loop.kind == "spatial-X" else "y"
        dims = {dim: dim for dim in ("R", "S", "P", "Q", "C", "K", "N", "G")} if roles is None else roles.dims
        if loop.dim not in dims:
            raise where.error(f"{level}: no such dimension in the layer", value=loop.dim, allowed=", ".join(dims))
        kind = "temporal" if axis is None else "spatial"
        result.append(Loop.model_validate({"dim": dims[loop.dim], "bound": loop.bound, "kind": kind, "axis": axis}))
    return result
