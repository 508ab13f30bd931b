"""The command ``nocsim replay-packets``."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Command as Nocsim

DATA = Path(__file__).resolve().parents[1] / "data" / "noc"
HEADER = "packet,kind,src,dsts,inject_cycle,n_flits\n"


def case(tmp_path: Path, name: str, kind: str = "packets") -> Path:
    path = tmp_path / f"{name}.{kind}.csv"
    path.write_bytes(gzip.decompress((DATA / f"{name}.{kind}.csv.gz").read_bytes()))
    return path


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "packets.csv"
    path.write_text(HEADER + text, encoding="utf-8")
    return path


def test_a_reference_case(nocsim: Nocsim, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    ran = nocsim("replay-packets", case(tmp_path, "j_mcast_3x5_010"), "--mesh", "3x5", "-o", out)
    assert (ran.code, ran.err) == (0, "")
    assert out.read_bytes() == case(tmp_path, "j_mcast_3x5_010", "deliveries").read_bytes()
    assert "packets, " in ran.out and f"written to {out}\n" in ran.out


def test_other_fifos(nocsim: Nocsim, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    nocsim("replay-packets", case(tmp_path, "l_buf10_mcastmix_4x4"), "--mesh", "4x4", "--fifo", "10", "-o", out)
    assert out.read_bytes() == case(tmp_path, "l_buf10_mcastmix_4x4", "deliveries").read_bytes()


def test_a_deadlock_is_reported_with_partial_results(nocsim: Nocsim, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    name = "m_longmcast6_4x4_deadlock"
    ran = nocsim("replay-packets", case(tmp_path, name), "--mesh", "4x4", "-o", out)
    assert ran.code == 1
    assert out.read_bytes() == case(tmp_path, name, "deliveries").read_bytes()
    warning, error = ran.err.splitlines()
    assert warning.startswith("warning: ") and "multicasts of up to 6 flits, more than the reservation of 5" in warning
    assert error.startswith("error: deadlock after cycle ") and "deliveries never happen" in error
    report = ran.out.partition("deadlock: ")[2].splitlines()
    assert "wait for each other: " in report[1]
    assert len(report) >= 4 and all(line.startswith("  packet ") and " holds " in line for line in report[2:])


def test_a_warning_is_no_error(nocsim: Nocsim, tmp_path: Path) -> None:
    ran = nocsim("replay-packets", case(tmp_path, "m_longmcast8_4x4"), "--mesh", "4x4", "-o", tmp_path / "out.csv")
    assert ran.code == 0
    assert ran.err.startswith("warning: ") and ran.err.count("\n") == 1


def test_a_multicast_that_could_never_start_is_refused(nocsim: Nocsim, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    path = written(tmp_path, "0,u,0,1,0,5\n1,m,0,1 2,0,5\n")
    ran = nocsim("replay-packets", path, "--mesh", "2x2", "--fifo", "4", "-o", out)
    ran.assert_error("--reservation: no multicast could ever start with FIFOs of 4 flits (row 3 of", "allowed: 1..4")
    assert not out.exists()
    path = written(tmp_path, "0,u,0,1,0,5\n")
    assert nocsim("replay-packets", path, "--mesh", "2x2", "--fifo", "4", "-o", out).code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--mesh", "4"], "--mesh: not a mesh (found '4'); allowed: "),
        (["--mesh", "4x0"], "--mesh: not a mesh (found '4x0')"),
        (["--mesh", "4x4", "--fifo", "0"], "--fifo: no such depth (found 0); allowed: 1..63 flits"),
        (["--mesh", "4x4", "--fifo", "64"], "--fifo: no such depth (found 64); allowed: 1..63 flits"),
        (["--mesh", "4x4", "--reservation", "0"], "--reservation: no such reservation (found 0); allowed: 1.."),
        (
            ["--mesh", "4x4", "--heat", "heat.txt"],
            "--heat: no such kind of file (found 'heat.txt'); allowed: a name that",
        ),
        (
            ["--mesh", "1x1"],
            "packets.csv: row 2, column dsts: no such endpoint (found 15); allowed: 0..4, the endpoints",
        ),
    ],
)
def test_bad_input_is_one_line(nocsim: Nocsim, tmp_path: Path, options: list[str], message: str) -> None:
    out = tmp_path / "out.csv"
    ran = nocsim("replay-packets", written(tmp_path, "0,u,0,15,0,5\n"), "-o", out, *options)
    ran.assert_error(message)
    assert not out.exists()


def test_places_that_cannot_be_written(nocsim: Nocsim, tmp_path: Path) -> None:
    packets = written(tmp_path, "0,u,0,1,0,5\n")
    nocsim("replay-packets", packets, "--mesh", "2x2", "-o", tmp_path / "no" / "out.csv").assert_error(
        "cannot be written"
    )
    nocsim("replay-packets", packets, "--mesh", "2x2", "-o", tmp_path).assert_error("cannot be written")
    nocsim("replay-packets", packets, "--mesh", "2x2", "-o", packets).assert_error(
        "would overwrite the file of PACKETS"
    )
    nocsim("replay-packets", tmp_path / "x.csv", "--mesh", "2x2", "-o", tmp_path / "o.csv").assert_error("no such file")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["packets.csv"]


def test_heat(nocsim: Nocsim, tmp_path: Path) -> None:
    packets = written(tmp_path, "0,u,0,1,0,5\n")
    table, picture = tmp_path / "heat.csv", tmp_path / "heat.png"
    for heat in (table, picture):
        ran = nocsim("replay-packets", packets, "--mesh", "2x1", "-o", tmp_path / "out.csv", "--heat", heat)
        assert f"link heat written to {heat}" in ran.out
    lines = table.read_text(encoding="utf-8").splitlines()
    assert "r0->r1,router,r0,r1,5,0.357143" in lines  # 5 of 14 cycles
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_pipes(tmp_path: Path) -> None:
    """Packets from a pipe, deliveries into one."""
    command = [
        sys.executable,
        "-m",
        "nocsim.commands.main",
        "replay-packets",
        "/dev/stdin",
        "--mesh",
        "2x1",
        "-o",
        "/dev/stdout",
    ]
    text = HEADER + "1,u,0,1,0,5\n0,u,1,0,0,5\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, env={**os.environ}, check=False)
    assert (done.returncode, done.stdout.splitlines()[1:]) == (0, ["0,0,0,4,9,13", "1,1,0,4,9,13"]), done.stderr
    assert "2 packets" in done.stderr
