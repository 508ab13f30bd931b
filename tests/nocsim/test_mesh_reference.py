"""The replay against measurements of the SystemC router."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path

import pytest

from nocsim.replay import PacketError, Packets, read_packets, replay_packets, replay_packets_file

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data" / "noc"
ALL_CASES = ROOT.parent / "shared" / "reference" / "noc"  # the whole set, where a checkout has it beside it
CASES = json.loads((DATA / "cases.json").read_text(encoding="utf-8"))["cases"]
HEADER = "packet,kind,src,dsts,inject_cycle,n_flits\n"


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
    assert len(result) == case["deliveries"]


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


def same(ours: Packets, theirs: Packets) -> bool:
    return all((getattr(ours, name) == getattr(theirs, name)).all() for name in Packets.__dataclass_fields__)


def test_reader_tolerates_what_spreadsheets_write(tmp_path: Path) -> None:
    plain = read_packets(written(tmp_path, HEADER + "0,m,0,1 2,7,5\n1,u,3,9,8,1\n"))
    odd = "\ufeffpacket, kind ,src,dsts,inject_cycle,n_flits,\r\n 0 ,m,0, 1  2 ,7,5,\r\n\r\n,,,,,\r\n1,u,3,9,8,1\r\n"
    assert same(plain, read_packets(written(tmp_path, odd)))
    other_order = "n_flits,packet,kind,src,dsts,inject_cycle\n5,0,m,0,1 2,7\n1,1,u,3,9,8\n"
    assert same(plain, read_packets(written(tmp_path, other_order)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "packets.csv, row 1, column packet: the file is empty"),
        ("packet,kind,src,dsts,n_flits\n", "row 1, column inject_cycle: no such column"),
        (HEADER + "0,u,0,1,0,5\n1,u,x,1,0,5\n", "row 3, column src: 'x' is not an integer"),
        (HEADER + "0,u,0,1;2,0,5\n", "row 2, column dsts: '1;2' is not an integer"),
        (HEADER + "0,b,0,1,0,5\n", "row 2, column kind: 'b' is neither u nor m"),
        (HEADER + "0,u,0,1,0,0\n", "row 2, column n_flits: 0 is out of range"),
        (HEADER + "0,u,0,1,-3,5\n", "row 2, column inject_cycle: -3 is out of range"),
        (HEADER + "0,u,0,1,0\n", "row 2, column n_flits: 5 fields instead of 6"),
        (HEADER + "0,u,0,1,0,5,8\n", "row 2, column n_flits: 7 fields instead of 6"),
        (HEADER + "0,u,99,1,0,5\n", r"packet 0, column src: not an endpoint of the mesh \(0..31\)"),
        (HEADER + "7,u,0,32,0,5\n", "packet 7, column dsts: not an endpoint"),
        (HEADER + "0,m,0,1 16,0,5\n", "packet 0, column dsts: a multicast reaches local ports only"),
        (HEADER + "0,u,0,1 2,0,5\n", "packet 0, column dsts: a unicast has one destination"),
        (HEADER + "0,m,0,,0,5\n", "packet 0, column dsts: no destination"),
        (HEADER + "0,m,0,3 1 3,0,5\n", "packet 0, column dsts: a destination occurs twice"),
        (HEADER + "0,u,0,1,0,5\n0,u,0,1,0,5\n", "packet 0, column packet: the number occurs twice"),
    ],
)
def test_errors_name_the_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(PacketError, match=message):
        replay_packets_file(written(tmp_path, text), tmp_path / "out.csv", 4, 4)
    assert not (tmp_path / "out.csv").exists()


def test_no_packets_no_deliveries(tmp_path: Path) -> None:
    deliveries = replay_packets_file(written(tmp_path, HEADER), tmp_path / "out.csv", 4, 4)
    assert len(deliveries) == 0 and deliveries.complete


def test_deliveries_are_in_the_order_of_packet_and_destination(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + "5,u,0,1,300,1\n2,m,1,3 0,0,1\n")
    assert list(replay_packets(read_packets(path), 4, 1).lines())[1:] == [
        "2,0,0,0,9,9",
        "2,3,0,0,13,13",
        "5,1,300,300,309,309",
    ]


def test_a_long_pause_is_no_deadlock(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + "0,u,0,1,0,1\n1,u,0,1,5000000,1\n")
    assert replay_packets(read_packets(path), 2, 2).tail_out.tolist() == [9, 5000009]


def test_nothing_enters_after_the_stall_limit(tmp_path: Path) -> None:
    # a multicast that needs more places than the FIFO has never leaves the first input register
    stuck = "0,m,0,1 2,0,1\n1,u,3,2,20000,1\n2,u,3,2,40010,1\n"
    deliveries = replay_packets(read_packets(written(tmp_path, HEADER + stuck)), 2, 2, 4, 5)
    assert list(deliveries.lines())[1:] == [
        "0,1,0,0,-1,-1",
        "0,2,0,0,-1,-1",
        "1,2,20000,20000,20009,20009",
        "2,2,-1,-1,-1,-1",
    ]


def test_many_packets_at_once_and_many_blocks(tmp_path: Path) -> None:
    lines = [f"{i},u,{i % 4},{(i + 1) % 4},{0 if i < 9000 else i},1" for i in range(20000)]
    deliveries = replay_packets(read_packets(written(tmp_path, HEADER + "\n".join(lines))), 2, 2)
    assert deliveries.complete
    assert (deliveries.tail_out > deliveries.head_in).all()


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
