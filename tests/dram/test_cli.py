"""The command line: replay of reference files and text traces, errors of one line, memory that does not grow."""

import csv
import gzip
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dram.cli import main
from dram.devices import device_names, load_device
from dram.replay import Replay
from dram.system import READ, DramSystem
from dram.traces import CHUNK, Requests, read_trace

DATA = Path(__file__).parents[1] / "data" / "dram"
CASES = [(path.parent, path.name.removesuffix(".requests.csv.gz")) for path in sorted(DATA.rglob("*.requests.csv.gz"))]


def replay(*arguments: object) -> int:
    return main(["replay", *(str(argument) for argument in arguments)])


def error_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1
    return err


@pytest.mark.parametrize(("folder", "pattern"), CASES, ids=[f"{f.name}-{p}" for f, p in CASES])
def test_completions_are_those_measured(
    folder: Path, pattern: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = folder / f"{pattern}.requests.csv.gz"
    output = tmp_path / "completions.csv"
    assert replay("--config", folder / "config.json", "--trace", trace, "-o", output, "--json") == 0
    with gzip.open(trace, "rt") as file:
        assert output.read_text() == file.read()
    figures = json.loads(capsys.readouterr().out)
    measured = json.loads((folder / "cases.json").read_text())[pattern]
    latency = measured.get("read_latency_from_accepted")  # some copied summaries are shortened
    if latency is not None:
        found = figures["read_latency_clocks"]
        assert {name: found[name] for name in latency} == pytest.approx(latency, abs=1e-3)
        arrival = measured["read_latency_from_arrival"]["mean"]
        assert found["mean_from_arrival"] == pytest.approx(arrival, abs=1e-3)
        assert figures["row_hit_rate"] == pytest.approx(measured["row_hit_rate"], abs=1e-6)
        assert figures["peak_bandwidth_gbps"] == pytest.approx(measured["peak_GBps"], rel=1e-3)
    assert figures["last_completed"] >= max(int(row["accepted"]) for row in csv.DictReader(output.open()))
    assert sum(figures["lost_clocks"].values()) % figures["clocks"] == 0


def test_text_traces_of_all_forms_are_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {
        "ramulator.txt": "# comment\nLD 0x1000\nST 0x2000\n\nLD 8192\n",
        "own.txt": "R 0x1000 0\nW 2000 0\nR 0x2000 0\n".replace("2000 0\nR", "0x2000 0\nR"),
        "dramsim3.txt": "0x1000 READ 0\n0x2000 WRITE 0\n0x2000 READ 0\n",
        "own.csv": "cycle,op,addr\n0,R,0x1000\n0,W,0x2000\n0,R,0x2000\n",
    }
    found = []
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        with gzip.open(tmp_path / f"{name}.gz", "wt") as file:
            file.write(text)
        for trace in (tmp_path / name, tmp_path / f"{name}.gz"):
            output = tmp_path / "out.csv.gz"
            assert replay("--device", "ddr4_2400_x8", "--trace", trace, "-o", output) == 0
            with gzip.open(output, "rt") as file:
                found.append(list(csv.DictReader(file)))
    assert all(rows == found[0] for rows in found)
    assert [row["op"] for row in found[0]] == ["R", "W", "R"]
    assert found[0][2]["cas"] == "", "the waiting write answers the read"
    assert "ddr4_2400_x8, policy frfcfs" in capsys.readouterr().out


def test_device_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "t.txt"
    trace.write_text("".join(f"LD {i * 64:#x}\n" for i in range(2000)))
    figures = []
    for options in (
        [], ["--policy", "dramsim3"], ["--mapping", "row:rank:bank:bankgroup:column"], ["--width", "4"],
        ["--channels", "2", "--mapping", "row:bank:column:bankgroup:channel", "--width", "2"],
        ["--ranks", "2", "--mapping", "row:rank:bank:column:bankgroup"],
    ):  # fmt: skip
        assert replay("--device", "ddr4_2400_x8", "--trace", trace, "--json", *options) == 0
        figures.append(json.loads(capsys.readouterr().out))
    usual, dramsim3, column_low, _, two_channels, _ = (figure["bandwidth_gbps"] for figure in figures)
    assert figures[1]["policy"] == "dramsim3" and dramsim3 == pytest.approx(usual, rel=0.05)
    assert column_low < 0.75 * usual
    assert two_channels > 1.8 * usual
    assert figures[0]["energy_pj"]["total"] > 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("LD\n", "line 1: not a request (found 'LD')"),
        ("LD 0x10\nXX 0x20\n", "line 2: unknown direction (found 'XX 0x20'); allowed: LD address"),
        ("R 0x10 5\nR 0x20 4\n", "line 2: cycle before that of the line before (found 4 after 5)"),
        ("R 0x10 -1\n", "cycle is not a whole number"),
        ("R zz 1\n", "not an address"),
        ("R 0xffffffffffffffffff 1\n", "address out of range"),
        ("id,cycle\n1,2\n", "no column op"),
        ("cycle,op,addr\n0,Q,0x0\n", "line 2: unknown direction"),
        ("# nothing\n", "has no requests"),
    ],
)
def test_bad_traces(text: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "t.txt"
    trace.write_text(text)
    assert expected in error_of(capsys, "replay", "--device", "ddr4_2400_x8", "--trace", trace)


def test_bad_options_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "t.txt"
    trace.write_text("LD 0\n")
    device = ("--device", "ddr4_2400_x8")
    assert "exactly one is needed" in error_of(capsys, "replay", "--trace", trace)
    assert "no such file" in error_of(capsys, "replay", *device, "--trace", tmp_path / "none")
    assert "did you mean ddr4_2400_x8" in error_of(capsys, "replay", "--device", "ddr4_2400", "--trace", trace)
    assert "--policy: unknown (found 'fr')" in error_of(capsys, "replay", *device, "--policy", "fr", "--trace", trace)
    assert "unknown field 'bnk'" in error_of(capsys, "replay", *device, "--mapping", "row:bnk:column", "--trace", trace)
    assert "--width" in error_of(capsys, "replay", *device, "--width", "0", "--trace", trace)
    assert "overwrite" in error_of(capsys, "replay", *device, "--trace", trace, "-o", trace)
    assert "cannot be written" in error_of(capsys, "replay", *device, "--trace", trace, "-o", tmp_path / "a" / "b.csv")
    config = tmp_path / "config.json"
    for content, expected in (
        ("{", "not JSON"), ("{}", "missing"), ("[]", "not a config.json"), ('{"simulator": "x"}', "missing"),
    ):  # fmt: skip
        config.write_text(content)
        assert expected in error_of(capsys, "replay", "--config", config, "--trace", trace)
    source = json.loads((DATA / "dramsim2" / "ddr3_1333_x4_open_scheme2" / "config.json").read_text())
    source["parameters"]["tRC"] = 3
    config.write_text(json.dumps(source))
    assert "tRC = 3 is shorter than tRAS + tRP" in error_of(capsys, "replay", "--config", config, "--trace", trace)
    del source["parameters"]["tRC"]
    config.write_text(json.dumps(source))
    assert "tRC: missing" in error_of(capsys, "replay", "--config", config, "--trace", trace)
    assert list(tmp_path.glob("*.part")) == []


def test_devices(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in device_names())
    for name in device_names():
        assert main(["devices", name]) == 0
        text, note = capsys.readouterr()
        assert "tFAW" in text and note == "", "no packaged mapping is slower than random access"
    assert main(["devices", "hbm2_x128", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "hbm2_x128"


def test_a_bad_mapping_of_a_device_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = load_device("ddr3_1333_x4").with_changes(address_mapping="scheme3")
    path = tmp_path / "bad.yaml"
    path.write_text(config.model_dump_json())
    assert main(["devices", str(path)]) == 0
    note = capsys.readouterr().err
    assert note.startswith("note: address mapping scheme3 makes a plain stream") and "with row:rank:column:bank" in note


def test_chunks_do_not_change_what_is_served() -> None:
    """Longer than several chunks, with pauses, reads and writes: the same as everything submitted at once."""
    rng = np.random.default_rng(1)
    count = 3 * CHUNK + 123
    cycles = np.cumsum((rng.random(count) < 0.02) * rng.integers(0, 400, count))
    ops = (rng.random(count) < 0.3).astype(np.int64)
    addresses = rng.integers(0, 1 << 22, count) * 64
    config = load_device("ddr4_2400_x8")
    system = DramSystem(config, logging=True, in_order=True)
    system.submit_many(cycles, ops, addresses, np.arange(count))
    system.advance(10_000_000)
    run = Replay(config)
    served = list(run.run([Requests(cycles, ops, addresses)]))
    assert len(served) == 4
    for column, name in enumerate(("accepted", "cas", "completed")):
        assert (np.concatenate([getattr(part, name) for part in served]) == system.request_log()[:, column]).all()


@pytest.mark.parametrize("policy", ["frfcfs", "dramsim3"])
def test_memory_does_not_grow_with_the_trace(policy: str) -> None:
    config = load_device("ddr4_2400_x8").with_changes(controller={"policy": policy})

    def chunks(number: int) -> Iterator[Requests]:
        for first in range(number):
            blocks = first * CHUNK + np.arange(CHUNK)
            yield Requests(np.zeros(CHUNK, np.int64), np.full(CHUNK, READ), blocks * 64)

    peaks = []
    for number in (4, 4, 24):
        tracemalloc.start()
        for _ in Replay(config).run(chunks(number)):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.2 * peaks[1]


def test_trace_is_read_in_chunks(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("LD 0x40\n" * (CHUNK + 5))
    assert [len(part.cycles) for part in read_trace(path)] == [CHUNK, 5]
