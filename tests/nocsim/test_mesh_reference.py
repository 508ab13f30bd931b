"""The replay against measurements of the SystemC router."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path

import pytest

from nocsim.traffic.replay import read_packets, replay_packets, replay_packets_file

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data" / "noc"
ALL_CASES = ROOT.parent / "shared" / "reference" / "noc"  # the whole set, where a checkout has it beside it
CASES = json.loads((DATA / "cases.json").read_text(encoding="utf-8"))["cases"]


def unpacked(case: str, kind: str) -> str:
    return gzip.decompress((DATA / f"{case}.{kind}.csv.gz").read_bytes()).decode()


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "packets.csv"
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_every_delivery_equals_the_measurement(case: dict, tmp_path: Path) -> None:
    packets, deliveries = written(tmp_path, unpacked(case["case"], "packets")), tmp_path / "deliveries.csv"
    result = replay_packets_file(
        packets,
        deliveries,
        case["columns"],
        case["rows"],
        case["output_fifo_flits"],
        case["multicast_reservation_flits"],
    )
    assert deliveries.read_bytes().decode() == unpacked(case["case"], "deliveries")
    assert result.complete == case["complete"]
    assert result.n_deliveries == case["deliveries"]
    assert (result.deadlock is None) == case["complete"]


@pytest.mark.skipif(not (ALL_CASES / "cases.json").exists(), reason="the whole reference set is not here")
def test_whole_reference_set() -> None:
    for case in json.loads((ALL_CASES / "cases.json").read_text(encoding="utf-8"))["cases"]:
        deliveries = replay_packets(
            read_packets(ALL_CASES / f"{case['case']}.packets.csv"),
            case["columns"],
            case["rows"],
            case["output_fifo_flits"],
            case["multicast_reservation_flits"],
        )
        expected = (ALL_CASES / f"{case['case']}.deliveries.csv").read_text(encoding="utf-8")
        assert "\n".join(deliveries.lines()).split() == expected.split(), case["case"]


def test_check_reference_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("check_reference", ROOT / "scripts" / "check_reference.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    cases = CASES[:3]
    (tmp_path / "cases.json").write_text(json.dumps({"cases": cases}), encoding="utf-8")
    for case in cases:
        for kind in ("packets", "deliveries"):
            (tmp_path / f"{case['case']}.{kind}.csv").write_text(unpacked(case["case"], kind), encoding="utf-8")
    assert script.main(["noc", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "3 of 3 cases equal\n"
    changed = tmp_path / f"{cases[1]['case']}.deliveries.csv"
    lines = changed.read_text(encoding="utf-8").split("\n")
    lines[3] += "1"
    changed.write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / f"{cases[2]['case']}.packets.csv").unlink()
    assert script.main(["noc", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert f"{cases[1]['case']}: line 4: reference {lines[3]!r}, computed {lines[3][:-1]!r}" in out
    assert "1 of 3 cases equal" in out
    assert script.main(["noc", str(tmp_path / "nowhere")]) == 1
