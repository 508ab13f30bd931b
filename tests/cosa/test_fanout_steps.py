"""Levels that keep nothing: steps of a fan-out and places for loops, in our files and in Timeloop's."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest

import cosa
from cosa.analytical.batch import BatchEvaluator, MappingBatch
from cosa.analytical.evaluation import evaluate
from cosa.analytical.reference import reference_nest
from cosa.common.errors import InputError
from cosa.interop.convert import converted, read_inputs
from cosa.interop.reference import timeloop_v4_cases
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from cosa.model.schedule import Schedule

V4 = Path(__file__).parent.parent / "data" / "timeloop_v4.tar.xz"

ALL = ["weights", "inputs", "outputs"]
RF = {"name": "Rf", "keeps": ALL, "capacity_words": 64}
GLB = {"name": "Glb", "keeps": ["inputs", "outputs"], "capacity_words": 4096}
DRAM = {"name": "Main", "keeps": ALL, "capacity_words": None}


def machine(*levels: dict[str, Any]) -> Architecture:
    return Architecture.from_data({"name": "steps", "levels": list(levels)}, source="a.yaml")


def test_ten_runs_of_the_current_timeloop(tmp_path: Path) -> None:
    with tarfile.open(V4) as archive:
        archive.extractall(tmp_path, filter="data")
    found = dict(timeloop_v4_cases(tmp_path / "timeloop_v4"))
    assert len(found) == 10
    assert {name: difference for name, difference in found.items() if difference} == {}


# --- as files have them ---


def test_a_step_has_a_fanout_and_nothing_else() -> None:
    plain = machine(RF, {"name": "Row", "keeps": [], "fanout": 3}, GLB, DRAM)
    stated = machine(RF, {"name": "Row", "keeps": [], "fanout": 3, "capacity_words": 0}, GLB, DRAM)
    assert plain.content_hash == stated.content_hash
    assert plain.usable_words(1) is None and plain.levels[1].could_keep == ()
    assert Architecture.from_data(plain.model_dump(mode="json"), source="again") == plain


@pytest.mark.parametrize(
    ("level", "parts"),
    [
        ({"keeps": [], "capacity_words": 8}, ("levels[1].capacity_words", "keeps nothing", "found 8")),
        ({"keeps": [], "capacity_words": None}, ("levels[1].capacity_words",)),
        ({"keeps": ["inputs"], "capacity_words": 0}, ("levels[1].capacity_words", "no room", "found 0")),
        ({"keeps": ["inputs"]}, ("levels[1].capacity_words", "missing", "a whole number >= 1")),
        ({"keeps": [], "may_keep": ["inputs"]}, ("levels[1].capacity_words", "missing")),
        ({"keeps": [], "buffers": 2}, ("levels[1].buffers", "only a level that keeps something has it", "found 2")),
        ({"keeps": [], "read_bandwidth_words_per_cycle": 1.0}, ("levels[1].read_bandwidth_words_per_cycle",)),
        ({"keeps": [], "vector_access_energy_pj": 1.0}, ("levels[1].vector_access_energy_pj",)),
        ({"keeps": [], "cluster_size": 2}, ("levels[1].cluster_size",)),
    ],
)
def test_what_a_step_does_not_have(level: dict[str, Any], parts: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        machine(RF, {"name": "Step"} | level, GLB, DRAM)
    for part in parts:
        assert part in str(caught.value)


def test_a_step_may_keep_something_where_that_is_chosen() -> None:
    optional = {"name": "Step", "keeps": [], "may_keep": ["weights"], "capacity_words": 16}
    architecture = machine(RF | {"capacity_words": 3}, optional, GLB, DRAM | {"vector_access_energy_pj": 1000})
    layer = Layer(name="l", R=1, S=1, P=4, Q=1, C=4, K=4, N=1)
    fixed = cosa.schedule(layer, architecture, objective="energy", model="analytical")
    chosen = cosa.schedule(layer, architecture, objective="energy", model="analytical", bypass="chosen")
    assert fixed.nest[2].keeps == () and chosen.nest[2].keeps == ("weights",)
    energies = [schedule.provenance.objective_value for schedule in (fixed, chosen)]
    assert energies[1] < energies[0]  # type: ignore[operator]


# --- counts ---


def flat_and_stepped() -> tuple[Schedule, Schedule]:
    """Three rows of a filter by fourteen columns of outputs, in one fan-out and in two."""
    layer = Layer(name="l", R=1, S=3, P=8, Q=14, C=4, K=4, N=1)
    keeps = {"level": "Main", "keep": ALL, "loops": []}
    glb = {"level": "Glb", "keep": ["inputs", "outputs"], "loops": [["P", 8, "temporal"], ["C", 4, "temporal"]]}
    rf = {"level": "Rf", "keep": ALL, "loops": [["K", 4, "temporal"]]}
    column = {"level": "Column", "keep": [], "loops": [["Q", 14, "spatial_x"]]}
    row = {"level": "Row", "keep": [], "loops": [["S", 3, "spatial_y"]]}
    spatial = [["Q", 14, "spatial_x"], ["S", 3, "spatial_y"]]
    nests = ([keeps, glb | {"loops": glb["loops"] + spatial}, rf], [keeps, glb, column, row, rf])
    machines = (
        machine(RF, GLB | {"fanout": {"x": 14, "y": 3}}, DRAM),
        machine(
            RF,
            {"name": "Row", "keeps": [], "fanout": {"x": 1, "y": 3}},
            {"name": "Column", "keeps": [], "fanout": 14},
            GLB,
            DRAM,
        ),
    )
    made = cosa.schedule(layer, machines[0], mapper="published").provenance
    flat, stepped = (
        Schedule.make(layer, of, reference_nest(nest), made) for of, nest in zip(machines, nests, strict=True)
    )
    return flat, stepped


def test_multicast_is_found_in_each_step_by_itself() -> None:
    flat, stepped = flat_and_stepped()
    reads = [cosa.evaluate(one).levels[-2].tensors["inputs"].reads for one in (flat, stepped)]
    # 16 rows of inputs for all; or 14 columns of three rows each.
    assert reads == [8 * 4 * 16, 8 * 4 * 42]
    exact = [cosa.evaluate(one, convention="exact").levels[-2].tensors["inputs"].reads for one in (flat, stepped)]
    assert exact == [8 * 4 * 16] * 2  # what moves is what is wanted, whatever the steps


def test_a_step_costs_nothing_and_limits_nothing() -> None:
    flat, stepped = flat_and_stepped()
    for convention in ("timeloop", "timeloop-2022", "exact"):
        found = cosa.evaluate(stepped, convention=convention)  # type: ignore[arg-type]
        for level in (1, 2):
            assert found.levels[level].tensors == {} and found.levels[level].vector_access_energy_pj == 0
            assert found.levels[level].cycles == found.compute_cycles
        assert found.cycles == cosa.evaluate(flat, convention=convention).cycles  # type: ignore[arg-type]


def test_loops_of_a_step_count_as_innermost_of_the_level_around() -> None:
    layer = Layer(name="l", R=1, S=1, P=8, Q=1, C=16, K=32, N=1)
    architecture = machine(RF, {"name": "Dummy", "keeps": [], "fanout": 16}, GLB, DRAM)
    main = {"level": "Main", "keep": ALL, "loops": []}
    rf = {"level": "Rf", "keep": ALL, "loops": [["C", 16, "temporal"]]}

    def nest(around: list[Any], at: list[Any]) -> Any:
        glb = {"level": "Glb", "keep": ["inputs", "outputs"], "loops": around}
        dummy = {"level": "Dummy", "keep": [], "loops": [*at, ["K", 16, "spatial_x"]]}
        return reference_nest([main, glb, dummy, rf])

    four, two, more = ["P", 4, "temporal"], ["K", 2, "temporal"], ["P", 2, "temporal"]
    for convention in ("timeloop", "timeloop-2022", "exact"):
        around = evaluate(layer, architecture, nest([four, two, more], []), convention)  # type: ignore[arg-type]
        at = evaluate(layer, architecture, nest([four, two], [more]), convention)  # type: ignore[arg-type]
        assert [level.tensors for level in around.levels] == [level.tensors for level in at.levels]
        assert (around.cycles, around.energy_pj) == (at.cycles, at.energy_pj)


@pytest.mark.parametrize("mapper", ["program", "published", "random", "hybrid", "evolutionary", "exhaustive"])
def test_every_mapper_uses_steps(mapper: str) -> None:
    architecture = machine(
        RF | {"capacity_words": 12},
        {"name": "Row", "keeps": [], "fanout": 3},
        {"name": "Column", "keeps": [], "fanout": 4},
        GLB | {"capacity_words": 40},
        DRAM,
    )
    layer = Layer(name="l", R=3, S=1, P=4, Q=1, C=1, K=2, N=1)
    options = {"samples": 50} if mapper == "random" else {}
    schedule = cosa.schedule(layer, architecture, mapper=mapper, **options)
    assert [entry.keeps for entry in schedule.nest[2:4]] == [(), ()]
    found = cosa.evaluate(schedule)
    batch = BatchEvaluator(layer, architecture).evaluate(MappingBatch.of([schedule.nest]))
    assert (batch.cycles[0], batch.energy_pj[0]) == (found.cycles, pytest.approx(found.energy_pj))
    if mapper in ("program", "exhaustive"):
        assert found.macs_used == 12


# --- releases ---


def test_first_arrivals_of_outputs_are_fills_in_2022_alone() -> None:
    _, stepped = flat_and_stepped()
    now, then = (cosa.evaluate(stepped, convention=name) for name in ("timeloop", "timeloop-2022"))  # type: ignore[arg-type]
    assert (now.convention, then.convention) == ("timeloop", "timeloop-2022")
    for level in (0, 3):
        ours, theirs = now.levels[level].tensors["outputs"], then.levels[level].tensors["outputs"]
        assert theirs.fills - ours.fills == ours.partition_words > 0
        assert (ours.reads, ours.updates) == (theirs.reads, theirs.updates)
    assert now.levels[4] == then.levels[4] and now.cycles == then.cycles
    assert now.energy_pj < then.energy_pj


def test_words_from_neighbours_are_averaged_with_those_of_the_parent() -> None:
    """Fifteen rows for thirteen PEs, 24 times one from a neighbour: 405 words each, though neither part is whole."""
    layer = Layer(name="l", R=3, S=3, P=13, Q=13, C=9, K=15, N=1)
    architecture = machine(
        {"name": "Acc", "keeps": ["outputs"], "capacity_words": 64, "fanout": 3},
        {"name": "In", "keeps": ["inputs"], "capacity_words": 4096, "fanout": 3},
        GLB | {"capacity_words": 65536, "fanout": 16},
        DRAM,
    )
    nest = reference_nest(
        [
            {"level": "Main", "keep": ALL, "loops": []},
            {"level": "Glb", "keep": ["inputs", "outputs"], "loops": [["S", 3, "temporal"], ["Q", 13, "spatial_x"]]},
            {
                "level": "In",
                "keep": ["inputs"],
                "loops": [["K", 5, "temporal"], ["C", 3, "temporal"], ["K", 3, "spatial_x"]],
            },
            {
                "level": "Acc",
                "keep": ["outputs"],
                "loops": [["P", 13, "temporal"], ["R", 3, "temporal"], ["C", 3, "spatial_x"]],
            },
        ]
    )
    for convention in ("timeloop", "timeloop-2022"):
        found = evaluate(layer, architecture, nest, convention)  # type: ignore[arg-type]
        # (13 + 2) x 135 words over 13 PEs, and 3,240 from neighbours: 155.77 + 249.23.
        assert found.networks[2]["inputs"].link_transfers == 3240
        assert found.levels[1].tensors["inputs"].fills == 405


# --- Timeloop's files ---

NODES = """
architecture:
  version: 0.4
  nodes:
  - !Container {name: system}
  - !Component {name: DRAM, class: DRAM, attributes: {width: 8, datawidth: 8}}
  - !Component
    name: Glb
    class: SRAM
    attributes: {depth: 4096, width: 8, datawidth: 8}
    constraints: {dataspace: {keep: [Inputs, Outputs], bypass: [Weights]}}
  - !Container {name: column, spatial: {meshX: 14}}
  - !Container {name: PE, spatial: {meshY: 3}}
  - !Component {name: spad, class: regfile, attributes: {depth: 64, width: 8, datawidth: 8}}
  - !Component {name: mac, class: intmac, attributes: {width: 8}}
problem: {version: 0.4, shape: cnn-layer, instance: {R: 1, S: 3, P: 8, Q: 14, C: 4, K: 4, N: 1}}
mapping:
- {target: DRAM, type: temporal, factors: R=1 S=1 P=1 Q=1 C=1 K=1 N=1, permutation: RSPQCKN}
- {target: Glb, type: temporal, factors: R=1 S=1 P=8 Q=1 C=4 K=1 N=1, permutation: CPRSQKN}
- {target: column, type: spatial, factors: R=1 S=1 P=1 Q=14 C=1 K=1 N=1, permutation: RSPQCKN, split: 7}
- {target: PE, type: spatial, factors: R=1 S=3 P=1 Q=1 C=1 K=1 N=1, permutation: RSPQCKN, split: 0}
- {target: spad, type: temporal, factors: R=1 S=1 P=1 Q=1 C=1 K=4 N=1, permutation: RSPQCKN}
- {target: Glb, type: bypass, keep: [Inputs, Outputs], bypass: [Weights]}
"""


def schedule_of(tmp_path: Path, text: str) -> Schedule:
    (tmp_path / "all.yaml").write_text(text)
    found = converted(read_inputs([str(tmp_path / "all.yaml")]), "schedule")
    assert isinstance(found, Schedule)
    return found


SPAD = "{name: spad, class: regfile,"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        # The fan-out stands with the memory below it: a step all the same.
        ("  - !Container {name: PE, spatial: {meshY: 3}}\n", ""),
        ("target: column", "target: inter_column_spatial"),
    ],
)
def test_fanouts_of_containers_are_steps(tmp_path: Path, old: str, new: str) -> None:
    text = NODES.replace(old, new)
    if "name: PE" not in text:
        text = text.replace(SPAD, f"{SPAD} spatial: {{meshY: 3}},").replace("target: PE", "target: spad")
    found = schedule_of(tmp_path, text)
    assert [found.architecture.fanout(level) for level in range(5)] == [(1, 1), (1, 3), (14, 1), (1, 1), (1, 1)]
    assert cosa.evaluate(found).levels[3].tensors["inputs"].reads == 1344


def test_an_outermost_memory_that_is_bypassed_is_refused(tmp_path: Path) -> None:
    bypass = "- {target: DRAM, type: bypass, keep: [Weights], bypass: [Inputs, Outputs]}\n"
    with pytest.raises(InputError, match=r"DRAM, the outermost memory, is bypassed.*'inputs', 'outputs'"):
        schedule_of(tmp_path, NODES + bypass)
    with pytest.raises(InputError, match=r"DRAM, the outermost memory, is bypassed.*'weights'"):
        schedule_of(tmp_path, NODES + "mapspace_constraints:\n- {target: DRAM, type: bypass, bypass: [Weights]}\n")


def test_a_memory_of_no_size_is_a_place_for_loops(tmp_path: Path) -> None:
    dummy = (
        "  - !Component {name: Dummy, class: SRAM, attributes: {sizeKB: 0, datawidth: 8}}\n  - !Container {name: column"
    )
    text = NODES.replace("  - !Container {name: column", dummy)
    text = text.replace("P=8 Q=1 C=4 K=1 N=1, permutation: CPRSQKN", "P=4 Q=1 C=4 K=1 N=1, permutation: CPRSQKN")
    text += "- {target: Dummy, type: temporal, factors: P2}\n"
    plain = (
        text.replace("sizeKB: 0", "sizeKB: 1") + "- {target: Dummy, type: bypass, bypass: [Weights, Inputs, Outputs]}\n"
    )
    found, wanted = (cosa.evaluate(schedule_of(tmp_path, one)) for one in (text, plain))
    assert found.levels[3].name == "Dummy" and found.levels[3].tensors == {}
    assert [level.tensors for level in found.levels] == [level.tensors for level in wanted.levels]
