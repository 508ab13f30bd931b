"""Architectures and problems of Timeloop: sizes, widths, meshes, trees, nodes, shapes, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cosa.interop.facts import facts_of
from cosa.interop.timeloop_files import parse_timeloop
from tests.cosa.interop_files import CONV, facts, read, refused

# --- architectures ---


def levels(text: str) -> dict[str, dict[str, Any]]:
    found = facts(text)
    part = found.get("architecture", found)
    return {level["name"]: level for level in part["levels_outer_to_inner"]}


def storage(attributes: str) -> dict[str, Any]:
    text = f"arch:\n  arithmetic: {{instances: 1}}\n  storage:\n  - {{name: L, instances: 1, {attributes}}}"
    return levels(text)["L"]


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("entries: 0", {"entries": 0, "word_bits": 16}),
        ("sizeKB: 128, word-bits: 16", {"entries": 65536}),
        ("sizeKB: 4194304, datawidth: 8", {"entries": 4194304 * 1024}),
        ("depth: 8, width: 64, word_width: 8", {"entries": 64, "block_size": 8}),
        ("memory_depth: 8, memory_width: 64, word_bits: 8, cluster_size: 4", {"entries": 16, "block_size": 2}),
        ("data_storage_depth: 4, block-size: 2", {"entries": 8, "block_size": 2}),
        ("entries: 9, depth: 4, block_size: 2", {"entries": 9}),
        (
            "technology: DRAM, entries: 9, bandwidth: 5",
            {"entries": None, "read_bandwidth": 2.5, "write_bandwidth": 2.5},
        ),
        ("entries: 1, bandwidth: 5, read_bandwidth: 4", {"read_bandwidth": 4, "write_bandwidth": 2.5}),
    ],
)
def test_sizes_and_widths(attributes: str, expected: dict[str, Any]) -> None:
    found = storage(attributes)
    assert {key: found.get(key) for key in expected} == expected


@pytest.mark.parametrize(
    ("attributes", "parts"),
    [
        ("depth: 4, width: 12, word_bits: 8", ["width", "does not divide"]),
        ("word_bits: 8, datawidth: 16", ["datawidth", "contradicts word_bits"]),
        ("entrys: 4", ["entrys", "did you mean entries?"]),
        ("entries: -1", ["entries", "not a whole number"]),
        ("entries: many", ["entries", "many"]),
        ("meshX: 3", ["meshX x meshY"]),
    ],
)
def test_wrong_memories_are_named(attributes: str, parts: list[str]) -> None:
    message = refused(f"arch:\n  arithmetic: {{instances: 1}}\n  storage:\n  - {{name: L, instances: 1, {attributes}}}")
    for part in ("arch.storage[0]", *parts):
        assert part in message


def test_meshes() -> None:
    text = """
arch:
  arithmetic: {name: MACs, meshX: 8, meshY: 4}
  storage:
  - {name: A, entries: 1, instances: 8, meshX: 4}
  - {name: B, entries: 1, instances: 2}
  - {name: D, technology: DRAM, instances: 1}
"""
    found = levels(text)
    assert [(found[name]["meshX"], found[name]["meshY"]) for name in ("D", "B", "A", "MACs")] == [
        (1, 1),
        (2, 1),
        (4, 2),
        (8, 4),
    ]
    assert [(found[name]["fanoutX"], found[name]["fanoutY"]) for name in ("D", "B", "A")] == [(2, 1), (2, 2), (2, 2)]
    assert "does not lie below B" in refused(text.replace("instances: 8, meshX: 4", "instances: 3"))


TREE = """
architecture:
  version: 0.3
  subtree:
  - name: chip
    attributes: {datawidth: 8}
    local:
    - {name: DRAM, class: LPDDR_DRAM, attributes: {width: 64}}
    - {name: Buffer, class: smartbuffer_SRAM, attributes: {depth: 16, width: 32}}
    - {name: Net, class: XY_NoC}
    subtree:
    - name: PE[0..3]
      local:
      - {name: "RF[1..2]", class: regfile, attributes: {depth: 4, width: 16, datawidth: 16}}
      - {name: "mac[0..1]", class: fpmac, attributes: {datawidth: 32}}
"""


def test_trees() -> None:
    file = read(TREE)
    found = levels(TREE)
    assert list(found) == ["DRAM", "Buffer", "RF", "mac"]
    assert [level["instances"] for level in found.values()] == [1, 1, 8, 8]
    assert [level["word_bits"] for level in found.values()] == [8, 8, 16, 32]
    assert found["DRAM"]["entries"] is None
    assert "not used: component Net of class XY_NoC" in " ".join(file.notes)
    assert "did you mean datawidth?" in refused(TREE.replace("{depth: 16, width: 32}", "{depth: 16, data_width: 32}"))


NODES = """
variables: {lanes: 4}
architecture:
  version: 0.4
  nodes:
  - !Container
    name: system
    attributes: {datawidth: 8, size: 2 * 16}
  - !Component {name: DRAM, class: DRAM, attributes: {width: 64}}
  - !Component {name: GLB, class: SRAM, attributes: {depth: size ** 2, width: 8 * 8}}
  - !Container {name: PE, spatial: {meshX: 2 * lanes, meshY: 3}}
  - !Parallel
    nodes:
    - !Component
      {name: A, class: storage, attributes: {depth: 4, width: 8}, constraints: {dataspace: {keep: [Inputs]}}}
    - !Component
      {name: B, class: storage, attributes: {depth: 4, width: 8}, constraints: {dataspace: {keep_only: [Weights]}}}
    - !Nothing {constraints: {dataspace: {keep: [Outputs]}}}
  - !Component {name: off, class: SRAM, enabled: false}
  - !Component {name: lane, class: regfile, spatial: {meshX: lanes}, attributes: {depth: 1, width: 8}}
  - !Component {name: mac, class: intmac, attributes: {multiplier_width: 8}}
"""


def test_nodes() -> None:
    found = levels(NODES)
    assert list(found) == ["DRAM", "GLB", "PE", "A", "B", "lane", "mac"]
    assert [level.get("instances") for level in found.values()] == [1, 1, None, 24, 24, 96, 96]
    assert (found["GLB"]["entries"], found["GLB"]["block_size"]) == (32**2 * 8, 8)
    assert (found["GLB"]["fanoutX"], found["GLB"]["fanoutY"]) == (8, 3)
    assert (found["B"]["fanoutX"], found["B"]["fanoutY"]) == (4, 1)
    assert set(found["A"]["bypass"]) == {"Weights", "Outputs"}
    assert set(found["B"]["bypass"]) == {"Inputs", "Outputs"}
    assert found["mac"]["word_bits"] == 8  # inherited


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("!Parallel", "!Paralel", "did you mean !Parallel?"),
        ("class: SRAM, attributes", "clas: SRAM, attributes", "did you mean class?"),
        ("size ** 2", "size ** 2 **", "neither a number nor an expression"),
        ("size ** 2", "sise ** 2", "no attribute or variable 'sise'"),
        ("size ** 2", "9 ** 9 ** 9", "too large"),
        ("size ** 2", "__import__('os')", "cannot be read"),
        ("meshY: 3", "meshZ: 3", "did you mean"),
        ("class: intmac", "class: adder", "no compute units"),
        ("datawidth: 8, size", "datawith: 8, size", "did you mean datawidth?"),
    ],
)
def test_wrong_nodes_are_named(old: str, new: str, part: str) -> None:
    assert part in refused(NODES.replace(old, new, 1))


# --- problems ---


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("problem: {R: 3}", ["no bound for S, P, Q, C, K, N"]),
        (CONV.replace("R: 3", "R: 0"), ["problem.R", "not a whole number"]),
        (CONV.replace("N: 1", "N: 1, Wstrid: 2"), ["Wstrid", "did you mean Wstride?"]),
        (CONV.replace("R: 3", "shape: cnn-layr, R: 3"), ["no such shape", "cnn-layr"]),
    ],
)
def test_wrong_problems_are_named(text: str, parts: list[str]) -> None:
    message = refused(text)
    for part in parts:
        assert part in message


@pytest.mark.parametrize("shape", ["", "shape: cnn-layer, ", "shape: cnn_layer, ", "shape: CNN_Layer.yaml, "])
def test_the_shape_of_a_flat_problem(shape: str) -> None:
    assert facts(CONV.replace("{R", "{" + shape + "R"))["shape"] == "cnn_layer"


def test_a_named_shape_is_looked_for_beside_the_file(tmp_path: Path) -> None:
    shape = "shape: {name: mv, dimensions: [M, K], data_spaces: [{name: A, projection: [M, K]}]}"
    (tmp_path / "my-shape.yaml").write_text(shape)
    file = parse_timeloop("problem: {shape: my_shape, M: 3, K: 4}", str(tmp_path / "p.yaml"))
    assert file.problem is not None
    assert file.problem.shape.name == "mv"
    assert facts_of(file)["derived"]["a"] == 12
