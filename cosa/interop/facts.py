"""What a Timeloop file says, as plain data: for people, and for comparison with what others say it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cosa.interop.nests import directive_order, loop_order, mapping_nest, plain_name
from cosa.interop.timeloop_files import all_constraints
from cosa.interop.timeloop_model import (
    ArchFile,
    ArchLevel,
    ConstraintList,
    Directive,
    MappingFile,
    Nest,
    Problem,
    ProblemShape,
    TimeloopFile,
)

Facts = dict[str, Any]


def facts_of(file: TimeloopFile) -> Facts:
    """Facts of a file, with its `kind`: architecture, constraints, mapping, problem, shape, mapper or bundle."""
    dims = _dims(file)
    bounds = None if file.problem is None else file.problem.bounds
    parts: dict[str, Facts] = {}
    if file.architecture is not None:
        parts["architecture"] = architecture_facts(file.architecture, dims, bounds)
    if file.constraints:
        parts["constraints"] = constraints_facts(file.constraints, dims, bounds)
    if file.mapping is not None:
        parts["mapping"] = mapping_facts(file.mapping, file)
    if file.nest is not None:
        parts["mapping"] = nest_facts(file.nest)
    if file.problem is not None:
        parts["problem"] = problem_facts(file.problem)
    if file.shape is not None:
        parts["shape"] = shape_facts(file.shape)
    if file.mapper is not None:
        parts["mapper"] = {"mapper": dict(file.mapper)}
    name = Path(file.source).name
    if len(parts) == 1:
        kind, facts = next(iter(parts.items()))
        return {"file": name, "kind": kind, **facts}
    result: Facts = {"file": name, "kind": "bundle", "format": None}
    for kind, facts in parts.items():
        result["format"] = result["format"] or (facts.get("format") if kind != "mapping" else None)
        # Constraints and mapper are lists and mappings of their own in a bundle.
        result[kind] = facts[kind] if kind in ("constraints", "mapper") else {"kind": kind, **facts}
    return result


def _dims(file: TimeloopFile) -> tuple[str, ...]:
    """All dimensions that a file knows of: those of its shape, else those named anywhere."""
    shape = file.problem.shape if file.problem is not None else file.shape
    if shape is not None:
        return shape.dimensions
    return tuple(dict.fromkeys(dim for directive in all_constraints(file) for dim in directive.dims))


def architecture_facts(architecture: ArchFile, dims: Sequence[str], bounds: Mapping[str, int] | None) -> Facts:
    """Levels outermost first."""
    # A container without a fan-out only carries attributes or constraints to what is below it.
    told = [
        level
        for level in architecture.levels
        if level.kind != "container" or (level.fanout_x * level.fanout_y > 1 and not level.derived)
    ]
    levels = [_level_facts(level, dims, bounds) for level in told]
    return {"format": architecture.format, "levels_outer_to_inner": levels}


def _level_facts(level: ArchLevel, dims: Sequence[str], bounds: Mapping[str, int] | None) -> Facts:
    facts: Facts = {"name": level.name, "kind": level.kind}
    if level.kind == "storage":
        facts |= {
            "word_bits": level.word_bits,
            "block_size": level.block_words,
            "cluster_size": level.cluster_size,
            "entries": level.entries,
        }
    if level.kind == "compute":
        facts["word_bits"] = level.word_bits
    if level.kind != "container":
        facts |= {"instances": level.instances, "meshX": level.mesh_x, "meshY": level.mesh_y}
    if level.kind != "compute":
        facts |= {"fanoutX": level.fanout_x, "fanoutY": level.fanout_y}
    for key, value in (("class", level.component_class), ("technology", level.technology)):
        if value:
            facts[key] = value
    if "bandwidth" in level.attributes:
        facts["bandwidth_deprecated"] = level.attributes["bandwidth"]
    for key, bandwidth in (("read_bandwidth", level.read_bandwidth), ("write_bandwidth", level.write_bandwidth)):
        if bandwidth is not None:
            facts[key] = bandwidth
    if level.parallel_group is not None:
        facts["parallel_group"] = level.parallel_group
    for directive in level.directives:
        inner = _directive_facts(directive, dims, bounds, constraint=True)
        del inner["target"], inner["type"]
        facts |= inner if directive.type == "bypass" else {f"{directive.type}_constraint": inner}
    # Whatever else the file says of a level stands under its own name.
    return {**{key: value for key, value in level.attributes.items() if key not in facts}, **facts}


def constraints_facts(lists: Sequence[ConstraintList], dims: Sequence[str], bounds: Mapping[str, int] | None) -> Facts:
    """Constraints in the order of the file; and the mapping, if they leave exactly one."""
    directives = [directive for part in lists for directive in part.directives]
    facts: Facts = {
        "format": lists[0].format,
        "key": lists[0].key,
        "constraints": [_directive_facts(directive, dims, bounds, constraint=True) for directive in directives],
    }
    only = only_mapping(directives, dims)
    if only is not None:
        facts |= {"only_mapping_outer_to_inner": _loops(only), "number_of_mappings": 1, "problem_bounds": only.bounds}
    return facts


def only_mapping(directives: Sequence[Directive], dims: Sequence[str]) -> Nest | None:
    """The one mapping that constraints leave: every level has all factors, an order, and says what it keeps."""
    loops = [directive for directive in directives if directive.type in ("temporal", "spatial")]
    if not loops or any(directive.type not in ("temporal", "spatial", "bypass") for directive in directives):
        return None
    for directive in loops:
        fixed = {factor.dim for factor in directive.factors if factor.relation == "=" and factor.value}
        if fixed != set(dims) or set(directive.permutation or ()) != set(dims):
            return None
        if directive.type == "spatial" and directive.split is None:
            return None
    order = directive_order(directives)
    deciding = {plain_name(directive.target) for directive in directives if directive.type == "bypass"}
    if not set(order[1:]) <= deciding:
        return None
    return mapping_nest(MappingFile(tuple(directives)), "", dims=dims, order=order)


def mapping_facts(mapping: MappingFile, file: TimeloopFile) -> Facts:
    """The nest, the directives it comes from, and what is kept where."""
    bounds = None if file.problem is None else file.problem.bounds
    dims = mapping.dims if file.problem is None else file.problem.shape.dimensions
    nest = mapping_nest(mapping, file.source, bounds=bounds, dims=dims, architecture=file.architecture)
    facts = nest_facts(nest)
    if bounds is not None:
        facts["problem_bounds"] = dict(bounds)
    facts["problem_bounds"] = {**dict.fromkeys(dims, 1), **facts["problem_bounds"]}
    directives = []
    for directive in mapping.directives:
        if directive.type != "bypass":
            entry = _directive_facts(directive, dims, bounds, constraint=False)
            if directive.type == "spatial":
                entry["split"] = len(dims) if directive.split is None else directive.split
                entry["split_is_default"] = directive.split is None
            directives.append(entry)
    facts["directives"] = directives
    facts["bypass"] = [
        _directive_facts(directive, dims, bounds, constraint=False)
        for directive in mapping.directives
        if directive.type == "bypass"
    ]
    return facts


def nest_facts(nest: Nest) -> Facts:
    """The loops outer to inner and the bounds they multiply up to."""
    keeps = {plain_name(level.name): list(level.keeps) for level in nest.levels if level.keeps is not None}
    facts: Facts = {
        "format": None,
        "problem_bounds": nest.bounds,
        "nest_outer_to_inner_without_unit_loops": _loops(nest),
    }
    return facts | ({"keep": keeps} if keeps else {})


def _loops(nest: Nest) -> list[Facts]:
    return [
        {"level": plain_name(level.name), "dim": loop.dim, "bound": loop.bound, "type": loop.kind}
        | ({"residue": loop.residue} if loop.residue is not None else {})
        for level in nest.levels
        for loop in level.loops
    ]


def _directive_facts(
    directive: Directive, dims: Sequence[str], bounds: Mapping[str, int] | None, constraint: bool
) -> Facts:
    facts: Facts = {"target": directive.target, "type": directive.type}
    if directive.type == "bypass":
        keep, bypass = list(directive.keep or ()), list(directive.bypass or ())
        return facts | {"keep": keep, "bypass": bypass} | ({"keep_only": True} if directive.keep_only else {})
    if directive.type not in ("temporal", "spatial"):
        return facts | dict(directive.settings)
    exact = {factor.dim: factor for factor in directive.factors if factor.relation == "="}
    values = {dim: factor.value or (bounds or {}).get(dim, 0) for dim, factor in exact.items()}
    if directive.only_factors:
        values = {dim: values.get(dim, 1) for dim in dict.fromkeys([*dims, *values])}
    facts["factors"] = values
    residues = {dim: factor.residue for dim, factor in exact.items() if factor.residue is not None}
    if residues:
        facts["residues"] = residues
    for name, relation in (("max_factors", "<="), ("min_factors", ">=")):
        limits = {factor.dim: factor.value for factor in directive.factors if factor.relation == relation}
        if limits:
            facts[name] = limits
    facts["permutation_inner_to_outer"] = None if directive.permutation is None else list(directive.permutation)
    if not constraint:
        return facts
    dropped = {dim: value for dim, value in values.items() if bounds is not None and value > bounds.get(dim, value)}
    if dropped:
        facts["ignored_factors"] = dropped
    facts["free_dims"] = [dim for dim in loop_order(directive, dims) if dim not in values]
    if directive.type == "spatial":
        facts["split"] = directive.split
        if directive.split is not None:
            order = loop_order(directive, dims)
            facts |= {"on_X": order[: directive.split], "on_Y": order[directive.split :]}
    return facts


def problem_facts(problem: Problem) -> Facts:
    """Bounds, coefficients, and what follows: MACs and tensor sizes."""
    derived: Facts = {"macs": problem.macs}
    for space in problem.shape.data_spaces:
        derived[space.name.lower()] = problem.words(space)
        for rank in space.projection:
            if len(rank) > 1:
                # The output's dimension comes first, whatever the order of the terms.
                outputs = {dim for other in problem.shape.data_spaces if other.read_write for dim in _named(other)}
                dims = sorted((dim for dim, _ in rank), key=lambda dim: dim not in outputs)
                derived[f"input_extent_along_{'_and_'.join(dims)}"] = problem.rank_extent(rank)
    return {
        "format": problem.format,
        "shape": problem.shape.name,
        "bounds": dict(problem.bounds),
        "coefficients": dict(problem.coefficients),
        "derived": derived,
        "data_spaces": shape_facts(problem.shape)["data_spaces"],
        "dimensions": list(problem.shape.dimensions),
    }


def _named(space: Any) -> list[str]:
    return [dim for rank in space.projection for dim, _ in rank]


def shape_facts(shape: ProblemShape) -> Facts:
    """Dimensions, coefficients with defaults, projections."""
    return {
        "name": shape.name,
        "dimensions": list(shape.dimensions),
        "coefficients": dict(shape.coefficients),
        "data_spaces": [
            {
                "name": space.name,
                "read_write": space.read_write,
                "projection": [
                    [[word for word in term if word is not None] for term in rank] for rank in space.projection
                ],
            }
            for space in shape.data_spaces
        ],
    }
