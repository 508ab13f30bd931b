"""Packet files: what is tolerated, what is refused and where, and files that stream."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nocsim import Packet
from nocsim.mesh import kernel as kernel
from nocsim.mesh.topology import Topology
from nocsim.traffic import packet_stream
from nocsim.traffic.packet_files import PACKET_COLUMNS, packet_blocks, plain_packets, read_packets
from nocsim.traffic.packet_stream import PacketReplay
from nocsim.traffic.packets import PacketError, Packets
from nocsim.traffic.replay import Scan, replay_packets, replay_packets_file

HEADER = "packet,kind,src,dsts,inject_cycle,n_flits\n"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "packets.csv"
    path.write_bytes(text.encode())
    return path


def same(ours: Packets, theirs: Packets) -> bool:
    return all((getattr(ours, name) == getattr(theirs, name)).all() for name in Packets.__dataclass_fields__)


def test_reader_tolerates_what_spreadsheets_write(tmp_path: Path) -> None:
    plain = read_packets(written(tmp_path, HEADER + "0,m,0,1 2,7,5\n1,u,3,9,8,1\n"))
    odd = "\ufeffpacket, kind ,src,dsts,inject_cycle,n_flits,\r\n 0 ,m,0, 1  2 ,7,5,\r\n\r\n,,,,,\r\n1,u,3,9,8,1\r\n"
    assert same(plain, read_packets(written(tmp_path, odd)))
    other_order = "n_flits,packet,kind,src,dsts,inject_cycle\n5,0,m,0,1 2,7\n1,1,u,3,9,8\n"
    assert same(plain, read_packets(written(tmp_path, other_order)))


@given(st.data())
def test_the_two_ways_of_reading_agree(data: st.DataObject) -> None:
    number = st.integers(0, 10**12)
    rows = data.draw(
        st.lists(st.tuples(number, st.booleans(), number, st.lists(number, min_size=1, max_size=4), number, number))
    )
    end = data.draw(st.sampled_from(["\n", "\r\n"]))
    lines = [f"{n},{'m' if m else 'u'},{s},{' '.join(map(str, d))},{c},{f + 1}{end}" for n, m, s, d, c, f in rows]
    text = "".join(lines)
    if data.draw(st.booleans()):
        text = text.removesuffix(end)
    plain = plain_packets(text.encode()) if rows else Packets.of(())
    assert plain is not None
    expected = Packets.of(
        Packet(src=s, dsts=tuple(d), inject_cycle=c, n_flits=f + 1, multicast=m, number=n) for n, m, s, d, c, f in rows
    )
    assert same(plain, expected)


@given(st.lists(st.sampled_from([*"0123,,,,  um\n\n-.", "0,u,1,2,3,4\n", "1,m,1,2 3,3,4\n"])).map("".join))
def test_what_is_read_as_plain_is_read_the_same_by_the_csv_module(text: str) -> None:
    plain = plain_packets(text.encode()) if text else None
    if plain is None:
        return
    rows = [line.split(",") for line in text.removesuffix("\n").split("\n")]
    assert [len(row) for row in rows] == [6] * len(plain)
    assert plain.number.tolist() == [int(row[0]) for row in rows]
    assert plain.multicast.tolist() == [row[1] == "m" for row in rows]
    assert plain.dsts.tolist() == [int(word) for row in rows for word in row[3].split(" ")]
    assert plain.n_flits.tolist() == [int(row[5]) for row in rows]


def test_blocks_know_their_rows_whatever_the_way_of_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{i},u,{i % 16},{i % 7},{i},5" for i in range(300)]
    lines[100] = " 100 , u,4,2,100,5"
    lines[150] = ""
    path = written(tmp_path, HEADER + "\r\n".join(lines))
    monkeypatch.setattr("nocsim.traffic.packet_files._BLOCK_BYTES", 500)
    blocks = list(packet_blocks(path))
    assert len(blocks) > 5
    for packets, rows in blocks:
        assert (rows == packets.number + 2).all()
    assert Packets.joined(block.packets for block in blocks).number.tolist() == [*range(150), *range(151, 300)]


def test_old_line_ends(tmp_path: Path) -> None:
    assert len(read_packets(written(tmp_path, HEADER.replace("\n", "\r") + "0,u,0,1,0,5\r1,u,0,1,0,5\r"))) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "row 1: the file is empty; allowed: the header packet,kind,src,dsts,inject_cycle,n_flits"),
        ("packet,kind,src,dsts,n_flits\n", "row 1, column inject_cycle: missing in the header (found 'packet,kind,"),
        (HEADER.replace("src", "dsts"), "row 1, column src: missing in the header"),
        (HEADER + "0,u,0,1,0,5\n1,u,x,1,0,5\n", "row 3, column src: not an integer (found 'x'); allowed: 0.."),
        (HEADER + "0,u,0,1;2,0,5\n", "row 2, column dsts: not an integer (found '1;2')"),
        (
            HEADER + "0,b,0,1,0,5\n",
            "row 2, column kind: no such kind (found 'b'); allowed: u (unicast) or m (multicast)",
        ),
        (HEADER + "0,u,0,1,0,0\n", "row 2, column n_flits: out of range (found 0); allowed: 1.."),
        (HEADER + "0,u,0,1,-3,5\n", "row 2, column inject_cycle: out of range (found -3); allowed: 0.."),
        (HEADER + "0,u,0,1,0\n", "row 2, column n_flits: wrong number of fields (found 5); allowed: 6 fields"),
        (HEADER + "0,u,0,1,0,5,8\n", "row 2, column n_flits: wrong number of fields (found 7); allowed: 6 fields"),
        (HEADER + "\n0,u,99,1,0,5\n", "row 3, column src: no such endpoint (found 99); allowed: 0..31"),
        (HEADER + "7,u,0,32,0,5\n", "row 2, column dsts: no such endpoint (found 32); allowed: 0..31"),
        (HEADER + "0,m,0,1 16,0,5\n", "row 2, column dsts: a multicast reaches local ports only (found 16)"),
        (HEADER + "0,u,0,1 2,0,5\n", "row 2, column dsts: a unicast has one destination (found '1 2')"),
        (HEADER + "0,m,0,,0,5\n", "row 2, column dsts: no destination (found '')"),
        (HEADER + "0,m,0,3 1 3,0,5\n", "row 2, column dsts: a destination is given twice (found '3 1 3')"),
        (HEADER + "0,u,0,1,0,5\n0,u,0,1,0,5\n", "row 3, column packet: the number is given twice (found 0)"),
        (HEADER + "0,u,0,1,0,5\n0,u,0,1,0,99999999999999999999\n", "row 3, column n_flits: out of range"),
        (HEADER + "0,u,0,\xe9,0,5\n", "row 2, column dsts: not an integer"),
        (HEADER + '0,u,0,"1,0,5\n', "row 2, column inject_cycle: wrong number of fields"),
    ],
)
def test_errors_name_the_place(tmp_path: Path, text: str, message: str) -> None:
    path, out = written(tmp_path, text), tmp_path / "out.csv"
    out.write_text("old", encoding="utf-8")
    with pytest.raises(PacketError) as error:
        replay_packets_file(path, out, 4, 4)
    assert str(error.value).startswith(f"{path}: {message}")
    assert out.read_text(encoding="utf-8") == "old"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["out.csv", "packets.csv"]


def test_not_a_text_file(tmp_path: Path) -> None:
    path = tmp_path / "packets.csv"
    path.write_bytes(HEADER.encode() + b"0,u,0,1,0,5\n0,u,\xff,1,0,5\n")
    with pytest.raises(PacketError, match="row 3: not UTF-8 text"):
        read_packets(path)
    with pytest.raises(PacketError, match=r"nothing\.csv: no such file"):
        read_packets(tmp_path / "nothing.csv")


def test_errors_without_a_file_name_the_packet() -> None:
    with pytest.raises(PacketError, match=r"packet 8, column dsts: no such endpoint \(found 99\)"):
        replay_packets([Packet(0, 1, number=3), Packet(0, 99, number=8)], 4, 4)
    with pytest.raises(PacketError, match="packet 3, column packet: the number is given twice"):
        replay_packets([Packet(0, 1, number=3), Packet(0, 2, number=3)], 4, 4)
    with pytest.raises(PacketError, match="packet 0, column n_flits: out of range"):
        replay_packets([Packet(0, 1, n_flits=0)], 4, 4)


def test_a_list_of_packets() -> None:
    done = replay_packets((Packet(0, dst, inject_cycle=9, n_flits=2) for dst in (0, 1)), 2, 1)
    assert list(done.lines())[1:] == ["0,0,9,10,14,15", "1,1,11,12,20,21"]
    assert Packet(0, [1, 2]).dsts == (1, 2)  # type: ignore[arg-type]
    assert len(replay_packets([], 2, 2)) == 0


def test_no_packets_no_deliveries(tmp_path: Path) -> None:
    summary = replay_packets_file(written(tmp_path, HEADER), tmp_path / "out.csv", 4, 4)
    assert (summary.n_packets, summary.n_deliveries, summary.complete) == (0, 0, True)
    assert (tmp_path / "out.csv").read_text(encoding="utf-8") == "packet,dst,head_in,tail_in,head_out,tail_out\n"


def random_lines(rng: random.Random, n: int, load: float) -> list[str]:
    """Packets on a 4x4 mesh in the order of their cycles, one in five a multicast."""
    lines, cycle = [], 0.0
    for number in range(n):
        cycle += rng.expovariate(load)
        if rng.random() < 0.2:
            dsts = " ".join(map(str, rng.sample(range(16), rng.randint(1, 4))))
            lines.append(f"{3 * number},m,{rng.randrange(32)},{dsts},{int(cycle)},5")
        else:
            lines.append(f"{3 * number},u,{rng.randrange(32)},{rng.randrange(32)},{int(cycle)},{rng.randint(1, 9)}")
    return lines


@pytest.mark.parametrize("load", [0.3, 3.0])  # packets a cycle: below and far beyond saturation
def test_streaming_gives_what_the_arrays_give(tmp_path: Path, load: float, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = random_lines(random.Random(4), 4000, load)
    path, out = written(tmp_path, HEADER + "\n".join(lines)), tmp_path / "out.csv"
    whole = replay_packets(read_packets(path), 4, 4)
    monkeypatch.setattr("nocsim.traffic.packet_files._BLOCK_BYTES", 3000)
    monkeypatch.setattr(packet_stream, "BLOCK_PACKETS", 64)
    summary = replay_packets_file(path, out, 4, 4)
    assert out.read_text(encoding="utf-8").splitlines() == list(whole.lines())
    assert summary.complete and summary.n_packets == 4000 and summary.n_deliveries == len(whole)
    assert (summary.link_flits == whole.link_flits).all() and summary.end_cycle == whole.end_cycle
    assert summary.mean_latency_cycles == pytest.approx((whole.tail_out - whole.head_in).mean())


@pytest.mark.parametrize("order", ["numbers", "cycles"])
def test_files_in_any_order_give_the_same(tmp_path: Path, order: str) -> None:
    rng = random.Random(5)
    lines = random_lines(rng, 500, 0.3)
    if order == "numbers":
        numbers = list(range(500))
        rng.shuffle(numbers)
        lines = [f"{number},{line.partition(',')[2]}" for number, line in zip(numbers, lines, strict=True)]
    else:  # grouped by source, so each source still has its order
        lines.sort(key=lambda line: int(line.split(",")[2]))
    out = tmp_path / "out.csv"
    path = written(tmp_path, HEADER + "\n".join(lines))
    seen: list[Scan] = []
    replay_packets_file(path, out, 4, 4, check=seen.append)
    assert [scan.ascending for scan in seen] == [False]
    assert out.read_text(encoding="utf-8").splitlines() == list(replay_packets(read_packets(path), 4, 4).lines())


def test_what_is_kept_follows_what_is_in_flight() -> None:
    replay = PacketReplay(Topology(4, 4))
    rng = random.Random(6)
    taken = cycle = 0
    for _ in range(40):
        packets = []
        for _ in range(1000):
            cycle += rng.randint(1, 4)
            dsts = tuple(rng.sample(range(16), 3)) if rng.random() < 0.2 else rng.randrange(32)
            packets.append(Packet(rng.randrange(16), dsts, cycle))
        replay.feed(Packets.of(packets))
        while (arrivals := replay.take()) is not None:
            taken += int(arrivals.packet.size)
    state = replay._state
    assert taken > 30000
    assert replay._packets.shape[1] <= 4 * packet_stream.BLOCK_PACKETS
    assert state.slot.size >> kernel.SLOT_SHIFT <= 2048 and state.sub.size >> kernel.SUB_SHIFT <= 2048
    assert state.tree_uses.size < 1000


def test_columns_are_those_of_the_format() -> None:
    assert HEADER.strip() == ",".join(PACKET_COLUMNS)


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


def test_a_stalled_mesh_takes_nothing_more_while_its_sources_fill_up() -> None:
    # packets that queue up behind the stuck one are no movement; after the limit even a free source keeps silent
    stuck = [Packet(0, (1, 2), 0, 1)]
    queueing = [Packet(0, 1, cycle, 1) for cycle in range(1, 60000, 7)]
    packets = [*stuck, *queueing, Packet(3, 2, 20000, 1), Packet(3, 2, 40020, 1)]
    deliveries = replay_packets(packets, 2, 2, 4, 5)
    arrived = deliveries.packet[deliveries.tail_out >= 0].tolist()
    assert arrived == [1 + len(queueing)]
    assert deliveries.deadlock is not None and deliveries.deadlock.cycle == 20009
