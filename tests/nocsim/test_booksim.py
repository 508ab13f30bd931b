"""BookSim's configurations for synthetic traffic, and other tools' files where packets are expected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cosa.common.errors import InputError
from nocsim.commands.main import main
from nocsim.traffic.booksim import read_booksim

MESH = """// my mesh
topology = mesh;
k  = 4;
n  = 2;
routing_function = dor;
num_vcs = 1; /* one
of them */ vc_buf_size = 8;
traffic = uniform;
injection_rate = 0.1;
packet_size = 5;
"""


def written(tmp_path: Path, *changes: tuple[str, str], more: str = "") -> Path:
    text = MESH
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "mesh.booksim"
    path.write_text(text + more)
    return path


def test_a_configuration_stands_for_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, more="warmup_periods = 1; sample_period = 500; max_samples = 4; seed = 7;")
    assert main(["traffic", "--booksim", str(path), "--json", "-"]) == 0
    out, notes = capsys.readouterr()
    by_flags = [
        "--pattern", "uniform", "--mesh", "4x4", "--rate", "0.5", "--flits", "5", "--fifo", "8", "--cycles", "2500",
        "--warmup", "500", "--seed", "7",
    ]  # fmt: skip
    assert main(["traffic", *by_flags, "--json", "-"]) == 0
    assert out == capsys.readouterr().out
    assert "rate 0.5 flits/node/cycle: injection_rate counts packets, of 5 flits" in notes
    # What is given beside the file counts.
    assert main(["traffic", "--booksim", str(path), "--rate", "0.2", "--fifo", "3", "--json", "-"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["rate"], result["fifo_flits"], result["seed"], result["mesh"]) == (0.2, 3, 7, "4x4")


def test_what_else_a_configuration_may_say(tmp_path: Path) -> None:
    options, _ = read_booksim(written(tmp_path))
    assert (options["warmup_cycles"], options["cycles"], options["seed"]) == (3000, 13_000, 0)
    options, notes = read_booksim(written(tmp_path, more="injection_rate_uses_flits = 1; watch_out = -; c = 1;"))
    assert options["rate"] == 0.1 and notes[-1] == "without effect here: watch_out"
    options, _ = read_booksim(written(tmp_path, ("uniform", "hotspot({5},{1})")))
    assert (options["pattern"], options["hot_node"], options["hot_share"]) == ("hotspot", 5, 1.0)
    options, _ = read_booksim(written(tmp_path, ("n  = 2", "n = 1"), ("uniform", "tornado")))
    assert (options["mesh"], options["pattern"]) == ("4x1", "tornado")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("topology = mesh", "topology = torus", "topology: not modelled (found 'torus'); allowed: mesh"),
        (
            "topology = mesh;",
            "",
            "topology: not modelled (not given: BookSim's default) (found 'torus'); allowed: mesh",
        ),
        ("num_vcs = 1", "num_vcs = 4", "num_vcs: not modelled (found '4'); allowed: 1"),
        ("num_vcs = 1;", "", "num_vcs: not modelled (not given: BookSim's default) (found '16'); allowed: 1"),
        ("= dor", "= min_adapt", "routing_function: not modelled (found 'min_adapt'); allowed: dor, dim_order, xy"),
        ("= uniform", "= tornado", "traffic: moves along every dimension there, along the row here (found 'tornado')"),
        ("= uniform", "= randperm", "traffic: not modelled (found 'randperm'); allowed: uniform, transpose"),
        (
            "= 0.1",
            "= 0.3",
            "injection_rate: 1.5 flits/node/cycle (found '0.3'); allowed: more than 0, up to 1, in packets",
        ),
        ("= 0.1", "= {0.1,0.2}", "injection_rate: not a number (found '{0.1,0.2}'); allowed: one number"),
        ("n  = 2", "n = 3", "n: not modelled (found '3'); allowed: 1 or 2 dimensions"),
        ("k  = 4", "kk = 4", "kk: no such key (found '4')"),
        ("k  = 4", "k = 4; k = 5", "k: given twice (found '5')"),
        ("k  = 4;", "k = 4", "k: no semicolon at its end"),
        ("k  = 4", "k 4", "not an entry (found 'k 4'); allowed: key = value;"),
        ("k  = 4", "k = 4; seed = time", "seed: not a whole number in range (found 'time')"),
        ("k  = 4", "k = 4; priority = age", "priority: not modelled (found 'age'); allowed: none"),
        ("k  = 4", "k = 4; use_read_write = 1", "use_read_write: not modelled (found '1'); allowed: 0"),
        ("k  = 4", "k = 4; routing_delay = 0", "routing_delay: not modelled (found '0'); allowed: 1"),
    ],
)
def test_what_is_not_modelled_is_refused(
    old: str, new: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, (old, new))
    assert main(["traffic", "--booksim", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"error: {path}") and expected in err and err.count("\n") == 1


def test_the_line_of_a_wrong_entry(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"booksim:9: not an entry"):
        read_booksim(written(tmp_path, ("injection_rate = 0.1", "injection_rate 0.1")))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (MESH, "a BookSim configuration, which `nocsim traffic --booksim FILE` reads"),
        ("% source target pir\n0 5 0.02\n5 0 0.02\n", "a Noxim traffic table, which is not read"),
        ("LD 0x0\n", "a request trace of a DRAM, which `dram replay --trace FILE` reads"),
        ("[dram_structure]\nprotocol = DDR4\n", "a DRAMsim3 configuration, which `dram replay --device FILE` reads"),
        ("Layer, M, N, K,\nfc, 1, 72, 256,\n", "a SCALE-Sim topology, which `cosa convert FILE --to layers` reads"),
        ("Network n {\nLayer A {\n}\n}\n", "a MAESTRO model, which is not read"),
        ("kind: layer\nname: x\n", "a layer of this package, which `cosa schedule --layer-file FILE` reads"),
    ],
)
def test_other_files_are_named(text: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    assert main(["replay-packets", str(path), "--mesh", "4x4", "-o", str(tmp_path / "o.csv")]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: {path}: this is {name}; allowed: a packets file") and err.count("\n") == 1
    assert not (tmp_path / "o.csv").exists()
