"""The command ``cosa`` apart from scheduling: tables, architectures, schemas, the nest, its start and its end."""

from __future__ import annotations

import json
import math
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cosa.mip.nest import breakdown
from cosa.mip.quantities import Rules
from cosa.model.arch import Architecture, architecture_names, load_architecture
from cosa.model.layer import TENSORS, Layer
from cosa.model.networks import load_network, network_names
from cosa.model.schedule import Schedule

if TYPE_CHECKING:
    from tests.conftest import Ran

    Cosa = Callable[..., Ran]


def start(*argv: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, its output not a terminal."""
    environment = {**os.environ, **options.pop("env", {})}
    command = [sys.executable, "-m", "cosa.commands.main", *argv]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, **options)


def test_version(cosa: Cosa) -> None:
    ran = cosa("--version")
    assert ran.code == 0
    assert re.fullmatch(r"cosa \d+\.\d+\.\d+\S*\n", ran.out)


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"], ["schedule", "--help"], ["show", "-h"]])
def test_help(cosa: Cosa, argv: list[str]) -> None:
    ran = cosa(*argv)
    assert (ran.code, ran.err) == (0, "")
    assert "Usage: cosa" in ran.out


def test_networks(cosa: Cosa) -> None:
    ran = cosa("networks")
    assert (ran.code, ran.err) == (0, "")
    header, *rows = ran.out.splitlines()
    assert header.split("  ")[0] == "network"
    assert [row.split()[0] for row in rows] == network_names()
    assert ["resnet50", "24", "54", "4,089,184,256"] in [row.split() for row in rows]


def test_networks_as_data(cosa: Cosa) -> None:
    data = json.loads(cosa("networks", "--json").out)
    assert (data["kind"], data["schema_version"]) == ("networks", 1)
    assert {"name": "dlrm", "unique_layers": 7, "occurrences": 8, "macs": 2011904} in data["networks"]


@pytest.mark.parametrize("name", network_names())
def test_one_network(cosa: Cosa, name: str) -> None:
    lines = cosa("networks", name).out.splitlines()
    entries = load_network(name).layers
    assert max(map(len, lines[: len(entries) + 1])) <= 80
    for line, entry in zip(lines[1:], entries, strict=False):
        assert line.split()[0] == entry.layer.name
        assert line.split()[-1] == f"{entry.layer.macs:,}"
    assert f"{load_network(name).macs:,} MACs" in "\n".join(lines)


def test_one_network_shows_notes_and_dilation(cosa: Cosa) -> None:
    out = cosa("networks", "deepbench").out
    assert re.search(r"^01_DeepSpeech \[1\]", out, re.MULTILINE)
    assert out.splitlines()[-1].startswith("[1] dilation_w is 0 in the published row; taken as 1")
    assert re.search(r"^28_Vision .* 2x2 +3x3 ", out, re.MULTILINE)


def test_layers_of_a_network_as_data_are_layers(cosa: Cosa) -> None:
    data = json.loads(cosa("networks", "resnext50_32x4d_grouped", "--json").out)
    entries = load_network("resnext50_32x4d_grouped").layers
    assert [Layer.from_data(entry["layer"]) for entry in data["layers"]] == [entry.layer for entry in entries]
    assert [entry["count"] for entry in data["layers"]] == [entry.count for entry in entries]


def test_unknown_network(cosa: Cosa) -> None:
    cosa("networks", "resnet51").assert_error("no such network", "found 'resnet51'", "vgg16", "did you mean resnet50?")


def test_archs(cosa: Cosa) -> None:
    rows = cosa("archs").out.splitlines()
    table, descriptions = rows[1 : rows.index("")], rows[rows.index("") + 1 :]
    assert [row.split()[0] for row in table] == architecture_names()
    assert [row.split(maxsplit=1) for row in descriptions] == [
        [name, load_architecture(name).description] for name in architecture_names()
    ]
    assert max(map(len, rows)) <= 80
    data = json.loads(cosa("archs", "--json").out)
    hashes = {entry["name"]: entry["hash"] for entry in data["architectures"]}
    assert hashes == {name: load_architecture(name).content_hash for name in architecture_names()}


@pytest.mark.parametrize("name", architecture_names())
def test_a_printed_architecture_can_be_used_as_a_file(cosa: Cosa, name: str, tmp_path: Path) -> None:
    path = tmp_path / "copy.yaml"
    path.write_text(cosa("archs", name).out)
    assert load_architecture(path) == load_architecture(name)
    assert path.read_text().startswith("# ")
    again = tmp_path / "again.yaml"
    again.write_text(cosa("archs", path).out)
    assert load_architecture(again) == load_architecture(name)
    assert Architecture.from_data(json.loads(cosa("archs", name, "--json").out)) == load_architecture(name)


def test_archs_checks_a_file(cosa: Cosa, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(cosa("archs", "simba_4x4").out.replace("capacity_words: 4096", "capacity_words: 0"))
    cosa("archs", path).assert_error(
        f"{path}: levels[3].capacity_words: there is no room for what the level keeps (found 0)"
    )
    cosa("archs", "simba").assert_error("architecture: no such architecture")


@pytest.mark.parametrize("kind", ["layer", "architecture", "schedule"])
def test_schema(cosa: Cosa, kind: str) -> None:
    schema = json.loads(cosa("schema", kind).out)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert schema["properties"]["kind"]["const"] == kind
    assert schema["additionalProperties"] is False


def test_unknown_schema(cosa: Cosa) -> None:
    cosa("schema", "layers").assert_error(
        "found 'layers'",
        "layer, architecture, constraints, network_constants, published_constants, schedule, weights",
        "did you mean layer?",
    )


SHOWN = """\
input.8 on simba_4x4
R3 S3 P56 Q56 C64 K64 N1

DRAM                           452,864 words, unbounded
  keeps weights 36,864, inputs 215,296, outputs 200,704
  for P in 0..7
  for Q in 0..4
GlobalBuffer                   [###.......]   26.6%  17,408 / 65,536
  keeps inputs 10,240, outputs 7,168
    for P in 0..2
    for K in 0..2
    spatial K4 on x, Q2 on y, C2 on y  16 of 16 PEs (4 of 4 x, 4 of 4 y)
InputBuffer                    [####......]   42.2%  1,728 / 4,096
  keeps inputs 1,728
      for C in 0..4
      spatial K8 on x          8 of 8 WeightBuffer
WeightBuffer                   [#.........]    0.4%  72 / 16,384
  keeps weights 72
        for R in 0..3
        for S in 0..3
        for P in 0..4
AccumulationBuffer             [#.........]   10.9%  7 / 64
  keeps outputs 7
          for Q in 0..7
          spatial C8 on x      8 of 8 Registers
Registers                      [##########]  100.0%  1 / 1
  keeps weights 1

MACs            115,605,504
compute cycles  112,896
utilisation     100.0% of 1,024 MAC units
made by         hand, objective none = 1.5 (bound 1.5, gap 0.00%), seed 0,
                version 1, optimal by paper, 0.25 s
"""


def test_show(cosa: Cosa, schedule_file: Path) -> None:
    ran = cosa("show", schedule_file)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == SHOWN


def test_show_as_data(cosa: Cosa, schedule_file: Path, schedule: Schedule) -> None:
    data = json.loads(cosa("show", schedule_file, "--json").out)
    assert (data["kind"], data["schema_version"], data["violations"]) == ("schedule_view", 1, [])
    assert data["totals"] == {"macs": 115605504, "padding_macs": 0, "compute_cycles": 112896, "utilisation": 1.0}
    assert [level["level"] for level in data["levels"]] == [entry.level for entry in schedule.nest]
    buffer = data["levels"][1]
    assert buffer["tile_words"] == {"inputs": 10240, "outputs": 7168}
    assert (buffer["used_words"], buffer["capacity_words"], buffer["fill"]) == (17408, 65536, 17408 / 65536)
    assert (buffer["instances_used"], buffer["instances"], buffer["used_along"]) == (16, 16, {"x": 4, "y": 4})
    assert data["levels"][0]["fill"] is None
    assert Layer.from_data(data["layer"]) == schedule.layer


def test_show_half_used(cosa: Cosa, schedule: Schedule, tmp_path: Path) -> None:
    schedule.with_architecture(schedule.architecture.with_mesh("8x5")).save(tmp_path / "s.json")
    out = cosa("show", tmp_path / "s.json").out
    assert "16 of 40 PEs (4 of 8 x, 4 of 5 y)" in out
    assert "utilisation     40.0% of 2,560 MAC units" in out


def test_show_what_does_not_fit(cosa: Cosa, schedule: Schedule, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    schedule.with_architecture(schedule.architecture.with_mesh("4x3")).save(path)
    ran = cosa("show", path)
    assert ran.code == 1
    assert "does not fit" in ran.out
    assert ran.err.count("\n") == 1
    assert "GlobalBuffer: spatial loops Q2 x C2 along y need 4, there are 3 (rows of the 4x3 mesh of PEs)" in ran.err


def test_show_an_overfull_buffer(cosa: Cosa, schedule: Schedule, tmp_path: Path) -> None:
    data = schedule.model_dump(mode="json")
    data["architecture"]["levels"][4]["capacity_words"] = 10
    data["architecture_hash"] = Architecture.from_data(data["architecture"]).content_hash
    (tmp_path / "s.json").write_text(json.dumps(data))
    ran = cosa("show", tmp_path / "s.json")
    assert ran.code == 1
    assert "[##########]  >9999%  17,408 / 10" in ran.out


def test_show_stays_within_80_columns(cosa: Cosa, schedule: Schedule, tmp_path: Path) -> None:
    data = schedule.model_dump(mode="json")
    data["layer"]["name"] = "a very long name " * 10
    data["nest"][1]["level"] = data["architecture"]["levels"][4]["name"] = "The[bold]Global:smile:Buffer" * 3
    data["nest"][1]["loops"] += [{"dim": "N", "bound": 1, "kind": "spatial", "axis": "x"}] * 3
    data["nest"][1]["loops"] += [{"dim": "C", "bound": 2, "kind": "spatial", "axis": "x"}] * 12
    data["layer"].update(C=64 * 2**12, stride_w=16, stride_h=16, dilation_w=12345, G=13)
    data["nest"][0]["loops"].append({"dim": "G", "bound": 13})
    data["provenance"]["notes"] = ["word " * 60, "x" * 200]
    data["architecture_hash"] = Architecture.from_data(data["architecture"]).content_hash
    (tmp_path / "s.json").write_text(json.dumps(data))
    ran = cosa("show", tmp_path / "s.json")
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "The[bold]Global:smile:Buffe..." in ran.out
    assert "N1" not in ran.out.split("keeps")[2]


def test_control_characters_do_not_reach_the_terminal(cosa: Cosa, schedule: Schedule, tmp_path: Path) -> None:
    data = schedule.model_dump(mode="json")
    data["layer"]["name"] = "a\x1b[31m\nb"
    (tmp_path / "s.json").write_text(json.dumps(data))
    assert cosa("show", tmp_path / "s.json").out.startswith("a?[31m?b on simba_4x4\n")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda d: d["nest"][0]["loops"][0].update(bound=8),
            "nest: the bounds of the loops over P multiply up wrongly",
        ),
        (lambda d: d["architecture"].update(clock_ghz=2.0), "architecture_hash: does not belong"),
        (lambda d: d.update(kind="layer"), "kind: wrong kind of file (found 'layer'); allowed: 'schedule'"),
        (lambda d: d.update(schema_version=2), "schema_version: not valid (found 2); allowed: 1"),
        (lambda d: d.pop("nest"), "nest: missing"),
    ],
)
def test_show_a_broken_schedule(cosa: Cosa, schedule_file: Path, change: Any, says: str) -> None:
    data = json.loads(schedule_file.read_text())
    change(data)
    schedule_file.write_text(json.dumps(data))
    for options in ([], ["--json"]):
        cosa("show", schedule_file, *options).assert_error(f"error: {schedule_file}: {says}")


def test_show_a_truncated_file(cosa: Cosa, schedule_file: Path) -> None:
    text = schedule_file.read_text()
    for length in (0, 1, 100, len(text) // 2, len(text) - 3):
        schedule_file.write_text(text[:length])
        cosa("show", schedule_file).assert_error(str(schedule_file))


def test_show_no_file(cosa: Cosa, tmp_path: Path, schedule_file: Path) -> None:
    cosa("show", tmp_path).assert_error("cannot be read: is a directory")
    cosa("show", tmp_path / "shedule.json").assert_error("no such file", "did you mean schedule.json?")
    cosa("show", "").assert_error()
    cosa("show").assert_error("FILE")
    cosa("show", schedule_file, schedule_file).assert_error("unexpected extra argument")


@pytest.mark.parametrize("argv", [["shedule"], ["--frob"], ["networks", "--frob"], ["show", "--json"]])
def test_usage_errors_are_one_line(cosa: Cosa, argv: list[str]) -> None:
    cosa(*argv).assert_error()


def test_interruption(cosa: Cosa, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cosa.commands.listing.networks", interrupt)
    cosa("networks").assert_error("interrupted", code=130)


def test_as_a_process(schedule_file: Path) -> None:
    fine = start("show", str(schedule_file))
    assert (fine.returncode, fine.stdout, fine.stderr) == (0, SHOWN, "")
    bad = start("show", "missing.json")
    assert (bad.returncode, bad.stdout, bad.stderr) == (2, "", "error: missing.json: no such file\n")


@pytest.mark.parametrize("env", [{"NO_COLOR": "1", "COLUMNS": "20"}, {"TERM": "dumb"}, {"PYTHONIOENCODING": "ascii"}])
def test_output_does_not_depend_on_the_terminal(schedule_file: Path, env: dict[str, str]) -> None:
    assert start("show", str(schedule_file), env=env).stdout == SHOWN


def test_a_terminal_that_lacks_a_letter(schedule: Schedule, tmp_path: Path) -> None:
    schedule.model_copy(update={"layer": schedule.layer.model_copy(update={"name": "größe"})}).save(tmp_path / "ü.json")
    ran = start("show", str(tmp_path / "ü.json"), env={"PYTHONIOENCODING": "ascii"})
    assert ran.returncode == 0
    assert ran.stdout.startswith("gr\\xf6\\xdfe on simba_4x4")
    ran = start("show", str(tmp_path / "ö.json"), env={"PYTHONIOENCODING": "ascii"})
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)


def test_a_reader_that_stops_reading() -> None:
    command = f"'{sys.executable}' -m cosa.commands.main schema schedule | head -n 1; echo ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("{\n0\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_output_that_is_full() -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "cosa.commands.main", "networks"]
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "standard output: cannot be written" in ran.stderr


def test_the_solver_is_not_loaded_for_small_commands() -> None:
    code = """
import sys, cosa
assert not [name for name in sys.modules if name.split('.')[0] in ('pydantic', 'yaml', 'typer', 'pyomo')]
from cosa.commands.main import main
main(['networks'])
loaded = {name.split('.')[0] for name in sys.modules}
assert not loaded & {'pyomo', 'highspy', 'numpy', 'numba', 'simpy', 'networkx', 'nocsim', 'dram'}, loaded
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_networks_starts_quickly() -> None:
    def cpu_seconds() -> float:
        # Time of the processor, not of the clock: other tests run beside this one.
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert start("networks").returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(cpu_seconds() for _ in range(5)) <= 0.6


def test_the_api_has_the_promised_names_in_any_order_of_import() -> None:
    code = """
import cosa
for name in cosa.__all__:
    assert callable(getattr(cosa, name)), name
assert set(cosa.__all__) <= set(dir(cosa))
from cosa.model.schedule import Schedule
from cosa import schedule, Schedule as Again
assert Schedule is Again and callable(schedule) and callable(cosa.schedule)
try:
    cosa.schedule('resnet50:input.9')
except cosa.InputError as error:
    assert 'did you mean' in str(error)
try:
    cosa.nothing
except AttributeError as error:
    assert 'nothing' in str(error)
"""
    for first in ("", "import cosa.model.schedule\n", "from cosa import schedule\n"):
        ran = subprocess.run([sys.executable, "-c", first + code], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr


def test_breakdown(cosa: Cosa, schedule_file: Path, schedule: Schedule) -> None:
    """The terms are those of the nest, whoever made it; as a table and as data."""
    ran = cosa("breakdown", schedule_file, schedule_file, "--as-published")
    assert (ran.code, ran.err) == (0, "")
    assert len(ran.out.splitlines()) == 5
    data = json.loads(cosa("breakdown", schedule_file, "--as-published", "--json").out)
    terms = breakdown(schedule.layer, schedule.architecture, schedule.nest, rules=Rules(as_published=True))
    (entry,) = data["schedules"]
    assert entry["total"] == pytest.approx(terms["total"])
    assert entry["terms"]["compute"] == pytest.approx(10 * math.log2(112896))
    assert entry["traffic"] == pytest.approx(sum(entry["terms"][f"traffic {tensor}"] for tensor in TENSORS))
    assert f"{terms['total']:.3f}" in ran.out


def test_breakdown_of_what_does_not_exist(cosa: Cosa, schedule_file: Path) -> None:
    ran = cosa("breakdown", schedule_file, "--objective", "cosaa")
    assert ran.code == 2
    assert "did you mean cosa" in ran.err
