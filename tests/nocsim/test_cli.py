"""The command line nocsim: results, files, exit codes, one clear error each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import nocsim
from cosa.model.schedule import Schedule
from nocsim.commands.main import main
from nocsim.machine.conductor import Conductor


@pytest.fixture
def schedule_file(small_job: Schedule, tmp_path: Path) -> Path:
    path = tmp_path / "schedule.json"
    small_job.save(path)
    return path


def error_of(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ") and captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err


def test_run_prints_a_short_table(schedule_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--schedule", str(schedule_file), "--mesh", "4x4"]) == 0
    text = capsys.readouterr().out
    for phrase in ("simulated cycles", "analytical cycles", "compute-only cycles", "row hits", "busiest links"):
        assert phrase in text
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) <= 50


def test_json_is_complete_and_reproducible(schedule_file: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"{i}.json" for i in range(2)]
    for file in files:
        assert main(["run", "--schedule", str(schedule_file), "--json", str(file), "--no-timing"]) == 0
    assert files[0].read_bytes() == files[1].read_bytes()
    data = json.loads(files[0].read_text())
    assert data["kind"] == "simulation_result" and data["schema_version"] == 1
    assert "timing" not in data
    assert {"cycles", "pes", "flows", "tensors", "nodes", "links", "dram"} <= data.keys()


def test_json_to_standard_output(schedule_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--schedule", str(schedule_file), "--json", "-"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["timing"]["simulate_seconds"] > 0


def test_ideal_options(schedule_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["run", "--schedule", str(schedule_file), "--ideal-network", "--ideal-memory", "--json", "-"]
    assert main(options) == 0
    cycles = json.loads(capsys.readouterr().out)["cycles"]
    assert cycles["total"] == cycles["compute_only"] + cycles["steps"] * cycles["pipeline_latency_per_step"]


@pytest.mark.parametrize(
    ("arguments", "code", "phrase"),
    [
        (["--mesh", "0x4"], 2, "allowed: columns x rows"),
        (["--mesh", "4"], 2, "'4'"),
        (["--mesh", "axb"], 2, "'axb'"),
        (["--mesh", "1x1"], 1, "1x1 mesh of PEs"),
        (["--arch", "nosuch"], 2, "allowed: cosa2021"),
        (["--arch", "simba_4x5"], 2, "did you mean simba_4x4?"),
        (["--arch", "missing.yaml"], 2, "no such file"),
        (["--json", "/nowhere/at/all.json"], 2, "/nowhere/at/all.json"),
        (["--nonsense"], 2, "--nonsense"),
    ],
)
def test_bad_options(
    schedule_file: Path, arguments: list[str], code: int, phrase: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--schedule", str(schedule_file), *arguments]) == code
    assert phrase in error_of(capsys)


def edited(path: Path, edit: Any) -> Path:
    data = json.loads(path.read_text())
    edit(data)
    path.write_text(json.dumps(data))
    return path


@pytest.mark.parametrize(
    ("edit", "phrase"),
    [
        (lambda d: d.pop("nest"), "nest: missing"),
        (lambda d: d.update(nests=[]), "nests: unknown key"),
        (lambda d: d["layer"].update(K=64), "loops over K multiply up wrongly (found 32); allowed: 64"),
        (lambda d: d["layer"].update(K="32"), "layer.K"),
        (lambda d: d["layer"].update(K=0), "layer.K"),
        (lambda d: d["architecture"]["noc"].update(fifo_flits=9), "architecture_hash"),
        (lambda d: d["architecture"]["noc"].update(fifo_flit=9), "did you mean fifo_flits?"),
        (lambda d: d.update(schema_version=2), "schema_version"),
        (lambda d: d.update(kind="layer"), "kind"),
    ],
)
def test_bad_schedules(
    schedule_file: Path, edit: Any, phrase: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "result.json"
    path = edited(schedule_file, edit)
    assert main(["run", "--schedule", str(path), "--json", str(target)]) == 2
    message = error_of(capsys)
    assert phrase in message and "schedule.json" in message
    assert not target.exists()


def test_truncated_schedule(schedule_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schedule_file.write_text(schedule_file.read_text()[:-200])
    assert main(["run", "--schedule", str(schedule_file)]) == 2
    assert "not valid JSON at line" in error_of(capsys)


def test_missing_schedule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--schedule", str(tmp_path / "nothing.json")]) == 2
    assert "no such file" in error_of(capsys)


def test_an_old_result_survives_a_failure(schedule_file: Path, tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    target.write_text("old")
    assert main(["run", "--schedule", str(schedule_file), "--mesh", "1x1", "--json", str(target)]) == 1
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir() if "tmp" in p.name] == []


def test_result_may_not_overwrite_the_schedule(schedule_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = schedule_file.read_bytes()
    assert main(["run", "--schedule", str(schedule_file), "--json", str(schedule_file)]) == 2
    assert "would overwrite" in error_of(capsys)
    assert schedule_file.read_bytes() == before


def test_a_run_can_be_ended_early(schedule_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["run", "--schedule", str(schedule_file), "--json", "-"]
    assert main(options) == 0
    whole = json.loads(capsys.readouterr().out)
    assert whole["ended"] == "finished"
    assert main([*options, "--max-cycles", str(whole["cycles"]["total"])]) == 0
    assert json.loads(capsys.readouterr().out)["ended"] == "finished"
    half = whole["cycles"]["total"] // 2
    assert main([*options, "--max-cycles", str(half)]) == 0
    part = json.loads(capsys.readouterr().out)
    assert part["ended"] == "max_cycles" and part["cycles"]["total"] == half
    assert sum(flow["sent_words"] for flow in part["flows"]) < sum(flow["sent_words"] for flow in whole["flows"])
    for pe in part["pes"]:
        parts = ("computing", "waiting_inputs", "waiting_weights", "waiting_partial_sums", "drain", "idle")
        assert sum(pe[name] for name in parts) == part["cycles"]["total"]
        assert pe["idle"] >= 0


def test_a_time_limit_and_an_interrupt(
    main_job: Schedule, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.json"
    main_job.save(path)
    assert main(["run", "--schedule", str(path), "--time-limit", "1e-6"]) == 0
    assert "PARTIAL: ended early (time limit)" in capsys.readouterr().out
    real = Conductor._turn
    turns = []

    def interrupted(self: Conductor, event: Any) -> None:
        turns.append(event)
        if len(turns) == 1000:
            raise KeyboardInterrupt
        real(self, event)

    monkeypatch.setattr(Conductor, "_turn", interrupted)
    target = tmp_path / "r.json"
    assert main(["run", "--schedule", str(path), "--json", str(target)]) == 130
    assert json.loads(target.read_text())["ended"] == "interrupted"


@pytest.mark.parametrize("option", ["--max-cycles", "--time-limit"])
def test_limits_out_of_range(schedule_file: Path, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--schedule", str(schedule_file), option, "0"]) == 2
    assert option in error_of(capsys)


@pytest.mark.parametrize("cycles", [1, 10, 100, 999, 1000, 1001, 4000])
def test_ending_early_at_any_cycle(main_job: Schedule, cycles: int) -> None:
    """The DRAM may have run a few cycles ahead; the result is still one."""
    result = nocsim.simulate(main_job, max_cycles=cycles)
    assert result.ended == "max_cycles" and result.cycles.total == cycles
    assert result.simulated_over_bound is None and result.simulated_over_analytical is None
    assert all(0 <= link.busy_share <= 1 for link in result.links)
    assert all(0 <= channel.busy_share <= 1 for channel in result.dram.channels)


def test_limits_do_not_go_with_a_network(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--network", "dlrm", "--max-cycles", "5"]) == 2
    assert "contradicts --max-cycles" in error_of(capsys)
