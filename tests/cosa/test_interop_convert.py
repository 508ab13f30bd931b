"""``cosa convert``: what goes in, what comes out, what is noted, and one line for everything wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from cosa.model.schedule import Schedule
from tests.conftest import Ran

SAMPLES = Path(__file__).parent.parent / "data" / "timeloop_files"
Command = Callable[..., Ran]

MAPPING = """
mapping:
- {target: DRAM, type: temporal, factors: P=112 Q=16, permutation: PQ}
- {target: GlobalBuffer, type: spatial, factors: K=16, permutation: K, split: 7}
- {target: InputBuffer, type: spatial, factors: Q=7, permutation: Q}
- {target: AccumulationBuffer, type: temporal, factors: C=3 R=7 S=7 K=4, permutation: CRSK}
"""


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder, with the samples beside."""
    monkeypatch.chdir(tmp_path)
    for path in SAMPLES.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "map.yaml").write_text(MAPPING)


def test_a_problem_becomes_a_layer_and_back(cosa: Command) -> None:
    ran = cosa("convert", "cosa_resnet50_conv1_problem.yaml", "--to", "layer", "-o", "layer.yaml")
    assert (ran.code, ran.out, ran.err) == (0, "written to layer.yaml\n", "")
    layer = Layer.from_file("layer.yaml")
    assert (layer.R, layer.P, layer.stride_w, layer.macs) == (7, 112, 2, 118013952)
    assert cosa("convert", "layer.yaml", "--to", "timeloop-problem", "-o", "p.yaml").code == 0
    again = cosa("convert", "p.yaml", "--to", "layer")
    assert again.out == Path("layer.yaml").read_text().replace("cosa_resnet50_conv1_problem", "p")


def test_problem_architecture_and_mapping_become_a_schedule(cosa: Command) -> None:
    ran = cosa(
        *("convert", "--problem", "cosa_resnet50_conv1_problem.yaml", "--arch", "cosa_simba_arch.yaml"),
        *("--mapping", "map.yaml", "cosa_mapspace.yaml", "--to", "schedule", "-o", "out.json"),
    )
    assert ran.code == 0
    assert "note: cosa_simba_arch.yaml: not used: num_ports, num_banks\n" in ran.err
    schedule = Schedule.from_file("out.json")
    assert [level.level for level in schedule.nest][:2] == ["DRAM", "GlobalBuffer"]
    assert schedule.nest[1].keeps == ("inputs", "outputs")
    assert schedule.nest[0].loops[0].dim == "Q"
    assert schedule.architecture.fanout(4) == (16, 1)
    assert cosa("convert", "out.json", "--to", "timeloop-mapping", "-o", "m2.yaml").code == 0
    again = cosa("convert", "out.json", "m2.yaml", "--to", "schedule", "-o", "again.json")
    assert again.code == 0
    assert Schedule.from_file("again.json").content_hash == schedule.content_hash


def test_a_mapping_on_our_mesh_is_row_major_there(cosa: Command) -> None:
    arguments = ["--problem", "cosa_resnet50_conv1_problem.yaml", "--arch", "simba_4x4", "--mapping", "map.yaml"]
    ran = cosa("convert", *arguments, "--to", "schedule", "-o", "out.yaml")
    assert "note: map.yaml: GlobalBuffer: spatial loops along X number the 4x4 PEs row by row" in ran.err
    schedule = Schedule.from_file("out.yaml")
    assert [loop.axis for loop in schedule.nest[1].loops] == ["row_major"]
    cosa("convert", "out.yaml", "--to", "timeloop-mapping").assert_error("out.yaml", "K16", "row_major")


def test_one_row_joins_the_axes_of_a_mesh(cosa: Command, schedule: Schedule) -> None:
    data = schedule.model_dump(mode="json")
    loops = data["nest"][1]["loops"]
    loops[:] = [{"dim": "P", "bound": 2}, {"dim": "K", "bound": 2}]
    for dim, bound, axis in (("Q", 2, "y"), ("K", 2, "y"), ("K", 2, "x"), ("C", 2, "x")):
        loops.append({"dim": dim, "bound": bound, "kind": "spatial", "axis": axis})
    Schedule.from_data(data).save("both.json")
    ran = cosa("convert", "both.json", "--to", "timeloop-mapping")
    ran.assert_error("spatial loops K2, K2", "--one-row")
    ran = cosa("convert", "both.json", "--to", "timeloop-mapping", "--one-row", "-o", "m.yaml")
    assert (ran.code, ran.err) == (0, "")
    assert "factors: R=1 S=1 P=1 Q=2 C=2 K=4 N=1\n  permutation: CKQRSPN\n  split: 3\n" in Path("m.yaml").read_text()
    assert cosa("convert", "both.json", "m.yaml", "--to", "schedule", "-o", "again.json").code == 0
    again = Schedule.from_file("again.json")
    assert [(loop.dim, loop.bound, loop.axis) for loop in again.nest[1].spatial] == [
        ("Q", 2, "row_major"),
        ("K", 4, "row_major"),
        ("C", 2, "row_major"),
    ]


def test_what_does_not_fit_is_noted(cosa: Command) -> None:
    text = MAPPING.replace("P=112", "P=1") + "- {target: Registers, type: temporal, factors: P=112}\n"
    Path("map.yaml").write_text(text)
    arguments = ["--problem", "cosa_resnet50_conv1_problem.yaml", "--arch", "simba_4x4", "--mapping", "map.yaml"]
    ran = cosa("convert", *arguments, "--to", "schedule")
    assert ran.code == 0
    assert "note: does not fit its architecture: AccumulationBuffer" in ran.err
    assert Schedule.from_data(json.loads(ran.out)).layer.P == 112


def test_a_schedule_of_ours_goes_out_and_comes_back(cosa: Command, schedule_file: Path) -> None:
    ran = cosa("convert", schedule_file, "--to", "timeloop-mapping", "-o", "m.yaml")
    assert "note: GlobalBuffer: loops along y are written outside" in ran.err
    assert cosa("convert", schedule_file, "--to", "timeloop-problem", "-o", "p.yaml").code == 0
    assert cosa("convert", "p.yaml", "m.yaml", "--arch", "simba_4x4", "--to", "schedule", "-o", "b.json").code == 0
    ours, theirs = Schedule.from_file(schedule_file), Schedule.from_file("b.json")
    for mine, back in zip(ours.nest, theirs.nest, strict=True):
        assert sorted(map(str, mine.loops)) == sorted(map(str, back.loops))
        assert mine.keeps == back.keeps
    assert cosa("convert", schedule_file, "--to", "layer", "-o", "l.json").code == 0
    assert Layer.from_file("l.json") == ours.layer
    assert cosa("convert", schedule_file, "--to", "architecture", "-o", "a.yaml").code == 0
    assert Architecture.from_file("a.yaml").content_hash == ours.architecture_hash


@pytest.mark.parametrize(
    "name", ["cosa_simba_arch.yaml", "eyeriss_like_arch_v04.yaml", "eyeriss_like_float32_v03.yaml"]
)
def test_architectures_can_be_read_by_the_other_commands(cosa: Command, name: str) -> None:
    assert cosa("convert", name, "--to", "architecture", "-o", "arch.yaml").code == 0
    assert cosa("archs", "arch.yaml").code == 0


def test_a_topology_becomes_a_folder_of_layers(cosa: Command) -> None:
    rows = ["Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,"]
    rows += ["conv/1, 8, 8, 3, 3, 1, 4, 1,", "Conv_1, 8, 8, 3, 3, 1, 4, 2,", "conv_1, 9, 9, 3, 3, 1, 4, 2,"]
    Path("t.csv").write_text("\n".join(rows))
    ran = cosa("convert", "t.csv", "--to", "layers", "-o", "layers")
    assert ran.out == "".join(f"written to layers/{name}.yaml\n" for name in ("conv_1", "Conv_1_2", "conv_1_3"))
    assert "note: t.csv: Conv_1: P = 4 by SCALE-Sim's formula" in ran.err
    assert Layer.from_file("layers/conv_1_3.yaml").P == 4
    cosa("convert", "t.csv", "--to", "layer").assert_error("t.csv", "3 layers", "--layer with one of conv/1")
    assert cosa("convert", "t.csv", "--layer", "conv_1", "--to", "layer").code == 0
    cosa("convert", "t.csv", "--layer", "conv1", "--to", "layer").assert_error("--layer", "did you mean")
    cosa("convert", "t.csv", "--to", "layers").assert_error("-o", "layers need a folder")
    cosa("convert", "t.csv", "--to", "layers", "-o", "t.csv").assert_error("t.csv", "cannot be made a folder")


def test_facts_of_a_file_and_of_a_configuration(cosa: Command) -> None:
    found = json.loads(cosa("convert", "conv1d_kp_ws_map.yaml", "--to", "facts").out)
    assert found["kind"] == "mapping"
    Path("c.cfg").write_text(
        "[architecture_presets]\nArrayHeight=4\nArrayWidth=8\nIfmapSramSzkB=1\nFilterSramSzkB=1\nOfmapSramSzkB=1\n"
        "Dataflow=os\n"
    )
    assert json.loads(cosa("convert", "c.cfg", "--to", "facts").out)["array_columns"] == 8


def test_files_of_ours_without_their_kind(cosa: Command) -> None:
    Path("l.yaml").write_text("{R: 3, S: 3, P: 4, Q: 4, C: 2, K: 2, N: 1}")
    assert "P: 4" in cosa("convert", "l.yaml", "--to", "timeloop-problem").out


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ([], ["--to"]),
        (["--to", "layer"], ["nothing to convert"]),
        (["no.yaml", "--to", "layer"], ["no.yaml", "no such file"]),
        (["cosa_simba_arch.yaml", "--to", "layer"], ["no layer in the input"]),
        (["cosa_resnet50_conv1_problem.yaml", "--to", "architecture"], ["no architecture in the input"]),
        (["cosa_resnet50_conv1_problem.yaml", "--to", "schedule"], ["no mapping in the input"]),
        (["map.yaml", "--arch", "simba_4x4", "--to", "schedule"], ["map.yaml", "needs its problem"]),
        (["map.yaml", "map.yaml", "--to", "facts"], ["a second mapping"]),
        (["map.yaml", "--to", "fact"], ["--to", "did you mean facts?"]),
        (["map.yaml", "--to", "facts", "-o", "map.yaml"], ["-o", "would overwrite"]),
        (["map.yaml", "--to", "facts", "-o", "no/f.json"], ["its folder does not exist"]),
        (["--arch", "simba_4", "--to", "architecture"], ["no such architecture", "did you mean"]),
    ],
)
def test_one_line_for_everything_wrong(cosa: Command, arguments: list[str], parts: list[str]) -> None:
    cosa("convert", *arguments).assert_error(*parts)


def test_nothing_of_it_loads_before_it_is_asked_for() -> None:
    code = (
        "import cosa, cosa.commands.main, sys; sys.exit(any(name.startswith('cosa.interop') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
