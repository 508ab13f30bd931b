"""The command ``cosa schedule``: options, bad input, the file it writes or leaves alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import cosa as api
from cosa.common.errors import InfeasibleError, SolverError
from cosa.mappers import program_task, published
from cosa.mappers.registry import MapperOptions
from cosa.model.arch import load_architecture
from cosa.model.schedule import Schedule

if TYPE_CHECKING:
    from tests.conftest import Ran

    Cosa = Callable[..., Ran]


LAYER = {"name": "small", "R": 3, "S": 3, "P": 8, "Q": 8, "C": 8, "K": 16, "N": 1}
NAMED = ("--network", "resnet50", "--layer", "3356")
PUBLISHED = ("--objective", "cosa")
"""For tests of anything but the objective: its program is solved in a fraction of a second."""


@pytest.fixture
def layer_file(tmp_path: Path) -> Path:
    path = tmp_path / "layer.yaml"
    path.write_text("".join(f"{key}: {value}\n" for key, value in LAYER.items()))
    return path


@pytest.fixture
def no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails the test when the solver is called: the error must come before the work."""

    def called(*_: Any, **__: Any) -> Schedule:
        pytest.fail("the solver was called")

    for module in (published, program_task):
        monkeypatch.setattr(module, "solve", called)


def test_a_layer_of_a_table(cosa: Cosa, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    ran = cosa("schedule", *NAMED, "--arch", "simba_4x4", "-o", path)
    assert (ran.code, ran.err) == (0, "")
    found = Schedule.from_file(path)
    assert (found.layer.name, found.architecture) == ("3356", load_architecture("simba_4x4"))
    assert found.timing is not None
    made = found.provenance
    assert (made.mapper, made.objective, made.model, made.solver_status) == ("program", "latency", "network", "optimal")
    assert made.bound is not None
    assert made.objective_value is not None
    assert made.bound <= made.objective_value <= made.bound * 1.01
    lines = ran.out.splitlines()
    assert lines[0] == "layer         resnet50 3356: R1 S1 P1 Q1 C2048 K1000 N1"
    assert lines[1] == "architecture  simba_4x4: 4x4 PEs, 1,024 MAC units"
    assert "optimal" in ran.out
    assert "gap 0." in ran.out
    assert lines[-1] == f"written to {path}"
    assert max(map(len, lines[:-1])) <= 80
    assert cosa("show", path).code == 0


def test_a_layer_file_and_an_architecture_file(cosa: Cosa, tmp_path: Path, layer_file: Path) -> None:
    arch = tmp_path / "my_arch.yaml"
    load_architecture("simba_8x_gbuf").to_file(arch)
    path = tmp_path / "out.yaml"
    options = ("--objective", "cosa", "--time-limit", "60", "--seed", "3", "--threads", "1", "--mesh", "2x3")
    ran = cosa("schedule", "--layer-file", layer_file, "--arch", arch, *options, "-o", path)
    assert (ran.code, ran.err) == (0, "")
    found = Schedule.from_file(path)
    assert (found.layer.K, found.architecture.noc.mesh, found.provenance.seed) == (16, "2x3", 3)


def test_without_output_only_the_summary(cosa: Cosa, tmp_path: Path, layer_file: Path) -> None:
    before = sorted(tmp_path.iterdir())
    ran = cosa("schedule", "--layer-file", layer_file, *PUBLISHED)
    assert ran.code == 0
    assert "written" not in ran.out
    assert sorted(tmp_path.iterdir()) == before


def test_the_same_input_gives_the_same_bytes(cosa: Cosa, tmp_path: Path, layer_file: Path) -> None:
    for name in ("a.json", "b.json"):
        ran = cosa("schedule", "--layer-file", layer_file, *PUBLISHED, "--no-timing", "-o", tmp_path / name)
        assert ran.code == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert Schedule.from_file(tmp_path / "a.json").timing is None


def test_the_api_gives_the_same_schedule(cosa: Cosa, tmp_path: Path, layer_file: Path) -> None:
    assert cosa("schedule", "--layer-file", layer_file, *PUBLISHED, "-o", tmp_path / "a.json").code == 0
    expected = Schedule.from_file(tmp_path / "a.json").content_hash
    layer = api.Layer.from_file(layer_file)
    assert api.schedule(layer, objective="cosa").content_hash == expected
    assert api.schedule(str(layer_file), "simba_4x4", objective="cosa", seed=0).content_hash == expected
    simba = api.load_architecture("simba_4x4")
    assert api.schedule(layer_file, simba, objective="cosa").content_hash == expected


CONTRADICTIONS: list[tuple[list[str], str]] = [
    ([], "no layer given"),
    (["--network", "resnet"], "--network: no such network (found 'resnet')"),
    ([*NAMED, "--workers", "2"], "--workers: the mapper program solves one layer on one core"),
    ([*NAMED, "--cache", "none"], "--cache: for whole networks"),
    (["--network", "dlrm", "--workers", "0"], "--workers: not valid (found 0)"),
    (["--network", "dlrm", "--samples", "3"], "--samples: an option of random, not of the mapper program"),
    (["--layer", "input.8"], "--layer: needs --network"),
    (["--layer-file", "l.yaml", "--network", "resnet50"], "--layer-file: contradicts --network"),
    (["--layer-file", "l.yaml", "--layer", "input.8"], "--layer-file: contradicts --layer"),
    (["--layer-file", "l.yaml", *NAMED], "--layer-file: contradicts --network"),
    (["--network", "resnet", "--layer", "x"], "--network: no such network (found 'resnet')"),
    (["--network", "resnet50", "--layer", "input_8"], "did you mean input.8?"),
    ([*NAMED, "--arch", "simba"], "--arch: no such architecture (found 'simba')"),
    ([*NAMED, "--arch", ""], "--arch: no such architecture (found '')"),
    ([*NAMED, "--arch", "missing.yaml"], "missing.yaml: no such file"),
    ([*NAMED, "--mesh", "0x4"], "--mesh: not a mesh (found '0x4'); allowed: columns x rows, each from 1 to 64"),
    ([*NAMED, "--mesh", "4"], "--mesh: not a mesh (found '4')"),
    ([*NAMED, "--mesh", "axb"], "--mesh: not a mesh (found 'axb')"),
    ([*NAMED, "--mesh", ""], "--mesh: not a mesh (found '')"),
    ([*NAMED, "--mesh", "65x65"], "--mesh: not a mesh (found '65x65')"),
    ([*NAMED, "--time-limit", "0"], "--time-limit: not valid (found 0.0); allowed: a number > 0"),
    ([*NAMED, "--time-limit", "-1"], "--time-limit: not valid (found -1.0)"),
    ([*NAMED, "--time-limit", "nan"], "--time-limit"),
    ([*NAMED, "--time-limit", "inf"], "--time-limit"),
    ([*NAMED, "--time-limit", "soon"], "--time-limit"),
    ([*NAMED, "--seed", "-1"], "--seed: not valid (found -1); allowed: a whole number from 0 to 2147483647"),
    ([*NAMED, "--seed", "1.5"], "--seed"),
    ([*NAMED, "--seed", str(2**31)], "--seed: not valid (found 2147483648)"),
    ([*NAMED, "--threads", "0"], "--threads: not valid (found 0)"),
    ([*NAMED, "-o", ""], "-o: empty"),
    ([*NAMED, "extra"], "extra"),
    ([*NAMED, "--sed", "1"], "--sed"),
]


@pytest.mark.usefixtures("no_solver")
@pytest.mark.parametrize(("argv", "says"), CONTRADICTIONS, ids=lambda part: str(part)[-40:])
def test_bad_options(cosa: Cosa, tmp_path: Path, argv: list[str], says: str) -> None:
    path = tmp_path / "out.json"
    output = [] if "-o" in argv else ["-o", str(path)]
    cosa("schedule", *argv, *output).assert_error(says)
    assert not path.exists()


def test_an_unknown_objective(cosa: Cosa) -> None:
    ran = cosa("schedule", *NAMED, "--objective", "cosas")
    ran.assert_error("--objective", "found 'cosas'", "latency, energy, edp", "traffic", "did you mean cosa?")
    cosa("schedule", *NAMED, "--objective", "latancy").assert_error("--objective", "did you mean latency?")
    ran = cosa("schedule", *NAMED, "--mapper", "program", "--objective", "traffic")
    ran.assert_error("the mapper program", "allowed: latency, energy, edp (traffic is one of published)")


@pytest.mark.usefixtures("no_solver")
def test_the_program_named_or_chosen_by_what_is_asked_of_it(
    cosa: Cosa, layer_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing named: latency on the machine. An option of the published program alone, or its name, chooses it."""
    asked: list[tuple[str, str]] = []

    def called(layer: Any, architecture: Any, options: MapperOptions, *_: Any) -> Schedule:
        asked.append((options.mapper, options.made_for))
        raise SolverError("not today")

    for module in (published, program_task):
        monkeypatch.setattr(module, "solve", called)
    for options, expected in (
        ((), ("program", "latency")),
        (("--mapper", "program"), ("program", "latency")),
        (("--mapper", "program", "--objective", "edp"), ("program", "edp")),
        (("--objective", "energy"), ("program", "energy")),
        (("--mapper", "published"), ("published", "cosa")),
        (("--as-published",), ("published", "cosa")),
        (("--pad-primes-above", "7"), ("published", "cosa")),
        (("--objective", "traffic"), ("published", "traffic")),
    ):
        cosa("schedule", "--layer-file", layer_file, *options).assert_error("not today", code=1)
        assert asked.pop() == expected
    for options, says in (
        (
            ("--mapper", "program", "--as-published"),
            "--as-published: an option of published, not of the mapper program",
        ),
        (
            ("--mapper", "published", "--pad-percent", "5"),
            "--pad-percent: an option of program, not of the mapper publ",
        ),
        (("--pad-percent", "5", "--precision"), "--precision: an option of published, not of the mapper program"),
        (
            ("--objective", "energy", "--weights", "w.yaml"),
            "--weights: an option of published, not of the",
        ),
        (("--mapper", "published", "--objective", "latency"), "--objective: not an objective of the mapper published"),
        (("--mapper", "machine"), "did you mean program?"),
        (("--mapper", "cosa"), "did you mean published?"),
    ):
        cosa("schedule", "--layer-file", layer_file, *options).assert_error(says)


BAD_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"K": ...}, "K: missing; allowed: a whole number from 1 to 16777216"),
    ({"K": "56"}, "K: not valid (found '56'); allowed: a whole number from 1 to 16777216"),
    ({"K": True}, "K: not valid (found True)"),
    ({"K": 1.5}, "K: not valid (found 1.5)"),
    ({"K": 0}, "K: not valid (found 0)"),
    ({"K": -3}, "K: not valid (found -3)"),
    ({"K": 2**40}, f"K: not valid (found {2**40})"),
    ({"K": 10**50}, "K: not valid (found 1000"),
    ({"strid_w": 2}, "strid_w: unknown key; allowed: "),
    ({"strid_w": 2}, "did you mean stride_w?"),
    ({"word_bits": {"inputs": 0}}, "word_bits.inputs: not valid (found 0); allowed: a whole number from 1 to 64"),
    ({"P": 2**24, "Q": 2**24, "N": 2**24}, "the product of all bounds, its MACs, is too large"),
]


@pytest.mark.usefixtures("no_solver")
@pytest.mark.parametrize(("changes", "says"), BAD_FIELDS, ids=lambda part: str(part)[:30])
def test_bad_fields(cosa: Cosa, tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    layer, path = tmp_path / "layer.json", tmp_path / "out.json"
    layer.write_text(json.dumps({key: value for key, value in (LAYER | changes).items() if value is not ...}))
    cosa("schedule", "--layer-file", layer, "-o", path).assert_error(f"error: {layer}: ", says)
    assert not path.exists()


@pytest.mark.usefixtures("no_solver")
def test_bad_files(cosa: Cosa, tmp_path: Path, layer_file: Path, schedule_file: Path) -> None:
    arch = tmp_path / "arch.yaml"
    load_architecture("simba_4x4").to_file(arch)
    wrong = "kind: wrong kind of file (found 'architecture'); allowed: 'layer'"
    cosa("schedule", "--layer-file", arch).assert_error(f"{arch}: {wrong}")
    wrong = "kind: wrong kind of file (found 'schedule'); allowed: 'architecture'"
    cosa("schedule", *NAMED, "--arch", schedule_file).assert_error(f"{schedule_file}: {wrong}")
    # A layer file need not say its kind; its first key tells.
    cosa("schedule", *NAMED, "--arch", layer_file).assert_error(f"{layer_file}: R: unknown key")
    cosa("schedule", "--layer-file", tmp_path).assert_error("cannot be read: is a directory")
    cosa("schedule", "--layer-file", tmp_path / "layers.yaml").assert_error("no such file; did you mean layer.yaml?")
    layer_file.write_text(layer_file.read_text() + "K: 16\n")
    cosa("schedule", "--layer-file", layer_file).assert_error("line 9", "key 'K' is given twice")


@pytest.mark.usefixtures("no_solver")
def test_an_output_that_cannot_be_written_stops_before_the_solver(cosa: Cosa, tmp_path: Path, layer_file: Path) -> None:
    protected = tmp_path / "protected.json"
    protected.write_text("kept")
    protected.chmod(0o444)
    for output, says in (
        (tmp_path / "missing" / "out.json", "its folder does not exist"),
        (tmp_path, "it is a folder"),
        (layer_file / "out.json", "not a directory"),
        (tmp_path / ("x" * 300), "file name too long"),
        (protected, "the file is write-protected"),
    ):
        cosa("schedule", "--layer-file", layer_file, "-o", output).assert_error(f"{output}: cannot be written: {says}")
    cosa("schedule", "--layer-file", layer_file, "-o", layer_file).assert_error(
        "would overwrite the file of --layer-file"
    )
    assert protected.read_text() == "kept"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["layer.yaml", "protected.json"]


@pytest.mark.parametrize(
    ("failure", "code", "says"),
    [
        (InfeasibleError("GlobalBuffer is too small"), 1, "error: GlobalBuffer is too small"),
        (SolverError("no schedule within the time limit"), 1, "time limit"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 1, "out of memory"),
    ],
    ids=lambda part: type(part).__name__,
)
@pytest.mark.parametrize("existing", [True, False])
def test_a_failure_leaves_the_output_alone(
    cosa: Cosa,
    tmp_path: Path,
    layer_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    failure: BaseException,
    code: int,
    says: str,
    existing: bool,
) -> None:
    def fail(*_: Any, **__: Any) -> Schedule:
        raise failure

    monkeypatch.setattr(program_task, "solve", fail)
    path = tmp_path / "out.json"
    if existing:
        path.write_text("from before")
    names = sorted(tmp_path.iterdir())
    cosa("schedule", "--layer-file", layer_file, "-o", path).assert_error(says, code=code)
    assert sorted(tmp_path.iterdir()) == names
    if existing:
        assert path.read_text() == "from before"


def test_a_layer_that_fits_nowhere_names_the_binding_constraint(cosa: Cosa, tmp_path: Path, layer_file: Path) -> None:
    data = load_architecture("simba_4x4").model_dump(mode="json")
    data["levels"][4]["capacity_words"] = 1
    arch, path = tmp_path / "tiny.json", tmp_path / "out.json"
    arch.write_text(json.dumps(data))
    ran = cosa("schedule", "--layer-file", layer_file, "--arch", arch, "-o", path)
    ran.assert_error("does not fit", "GlobalBuffer", "inputs", "outputs", code=1)
    assert not path.exists()


def test_a_mapper_that_breaks_a_constraint_is_caught(
    cosa: Cosa, tmp_path: Path, layer_file: Path, schedule: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = schedule.with_architecture(schedule.architecture.with_mesh("2x2"))
    monkeypatch.setattr(program_task, "solve", lambda *_, **__: broken)
    ran = cosa("schedule", "--layer-file", layer_file, "-o", tmp_path / "out.json")
    ran.assert_error("does not fit", "need 4, there are 2", code=1)
    assert not (tmp_path / "out.json").exists()


def test_options_of_the_program_reach_it(cosa: Cosa, layer_file: Path, tmp_path: Path) -> None:
    weights = tmp_path / "weights.yaml"
    weights.write_text("compute: 2\n")
    path = tmp_path / "s.json"
    options = ("--formulation", "paper", "--precision", "--weights", weights, "--objective", "traffic")
    ran = cosa("schedule", "--layer-file", layer_file, *options, "--order-level", "GlobalBuffer", "-o", path)
    assert (ran.code, ran.err) == (0, "")
    made = Schedule.from_file(path).provenance
    assert made.objective == "traffic"
    assert "formulation paper" in made.notes
    assert "weights: utilisation 0.1, compute 2, traffic 1" in made.notes
    terms = api.breakdown(path, "traffic", precision=True, weights=weights)
    assert terms["total"] == pytest.approx(made.objective_value, abs=1e-4)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--formulation", "papers"), "did you mean paper"),
        (("--objective", "trafic"), "did you mean traffic"),
        (("--order-level", "L2"), "allowed: Registers"),
        (("--pad-primes-above", "1"), "a whole number from 2"),
        (("--weights", "nowhere.yaml"), "no such file"),
    ],
)
def test_wrong_options_of_the_program(cosa: Cosa, layer_file: Path, options: tuple[str, ...], says: str) -> None:
    ran = cosa("schedule", "--layer-file", layer_file, *options)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err


def test_weights_with_an_unknown_key(cosa: Cosa, layer_file: Path, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text("computing: 1\n")
    ran = cosa("schedule", "--layer-file", layer_file, "--weights", tmp_path / "w.yaml", "-o", tmp_path / "s.json")
    assert ran.code == 2
    assert "computing" in ran.err
    assert "did you mean compute" in ran.err
    assert not (tmp_path / "s.json").exists()
