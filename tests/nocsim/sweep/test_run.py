"""Running: the figures, failures, workers that die, kills at any moment, several runs on one file."""

from __future__ import annotations

import csv
import json
import signal
import sqlite3
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cosa
import nocsim as api
from cosa.common.errors import CosaError, InputError
from cosa.mappers.published import PublishedOptions
from nocsim.experiments.sweep import pool as pools
from nocsim.experiments.sweep.figures import FIGURES, Outcome
from nocsim.experiments.sweep.pool import LocalPool
from nocsim.experiments.sweep.result import SweepResult, read_results
from nocsim.experiments.sweep.spec import Sweep, SweepCounts
from nocsim.experiments.sweep.store import Store
from nocsim.experiments.sweep.versions import versions
from tests.conftest import Command
from tests.nocsim.sweep.conftest import CONV, finished, start, statuses, wait_for


def csv_of(result: SweepResult, path: Path) -> str:
    result.to_csv(path, timing=False)
    return path.read_text()


def test_figures_failures_and_any_number_of_workers(sweep: Sweep, tmp_path: Path) -> None:
    seen: list[SweepCounts] = []
    one = sweep.run(tmp_path / "one.db", watch=seen.append)
    assert seen[-1] == SweepCounts(points=6, done=4, failed=2, running=0)
    three = sweep.run(tmp_path / "three.db", workers=3)
    assert csv_of(one, tmp_path / "one.csv") == csv_of(three, tmp_path / "three.csv")
    for row, point in zip(one.rows, sweep.points(), strict=True):
        assert row["axes"] == point.axes and row["inputs_hash"] == point.inputs_hash
        if row["axes"]["levels.GlobalBuffer.capacity_words"] == 1:
            assert row["status"] == "failed" and row["error_kind"] == "InfeasibleError"
            assert "does not fit" in row["error"] and row["latency_cycles"] is None
            continue
        assert point.architecture is not None
        schedule = cosa.schedule(point.layer, point.architecture, objective="cosa")
        result = api.simulate(schedule)
        timeloop, exact = (cosa.evaluate(schedule, convention=c) for c in ("timeloop", "exact"))
        assert row["status"] == "done" and row["seconds"] > 0 and row["schedule_hash"] == schedule.content_hash
        assert row["simulated_cycles"] == row["latency_cycles"] == result.cycles.total
        assert row["analytical_cycles"] == exact.cycles == result.cycles.analytical
        assert row["timeloop_cycles"] == timeloop.cycles and row["bound_cycles"] == result.cycles.bound
        assert row["energy_pj"] == timeloop.energy_pj and row["exact_energy_pj"] == exact.energy_pj
        assert row["edp_pj_cycles"] == timeloop.energy_pj * result.cycles.total
        assert row["pes"] == len(result.pes) and row["mac_utilisation"] == result.mac_utilisation
        words = sum(flow.sent_words for flow in result.flows if flow.source == "dram")
        assert row["dram_read_words"] == words and row["row_hit_rate"] == result.dram.channels[0].row_hit_rate
        assert row["network_words"] == sum(flow.sent_words for flow in result.flows)
        searched = {"evaluations", "model", "samples_drawn", "samples_valid", "stopped_by"}
        assert {name for name in FIGURES if row[name] is None} == searched


def test_only_what_is_missing_is_run(sweep: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = sweep.model_copy(update={"simulate": False})
    first = quick.run(tmp_path / "r.db")
    submitted: list[str] = []
    real = LocalPool.submit

    def counted(self: LocalPool, key: str, task: str) -> None:
        submitted.append(key)
        real(self, key, task)

    monkeypatch.setattr(LocalPool, "submit", counted)
    assert quick.run(tmp_path / "r.db").rows == first.rows and not submitted
    longer = Sweep(name="small", axes=quick.axes | {"noc.mesh": ["2x2", "4x4", "4x2"]}, simulate=False)
    assert len(longer.run(tmp_path / "r.db").rows) == 9 and len(submitted) == 3
    assert len(read_results(tmp_path / "r.db").rows) == 9  # of the sweep that was run last
    failed = {row["inputs_hash"] for row in first.failed}
    assert len(failed) == 2
    submitted.clear()
    assert len(quick.run(tmp_path / "r.db", retry_failed=True).failed) == 2 and set(submitted) == failed
    assert not [path for path in tmp_path.iterdir() if "-run-" in path.name]


def test_the_same_point_twice_is_run_once(tmp_path: Path) -> None:
    axes = {"layer": CONV, "objective": "cosa", "levels.GlobalBuffer.capacity_words": ["x1", 65536]}
    rows = Sweep(axes=axes, simulate=False).run(tmp_path / "r.db").rows
    assert len(rows) == 2 and rows[0]["inputs_hash"] == rows[1]["inputs_hash"]
    assert statuses(tmp_path / "r.db") == ["done"]


def test_impossible_combinations_fail_and_do_not_run_again(tmp_path: Path) -> None:
    axes = {"layer": CONV, "objective": "cosa", "noc.fifo_flits": [7, 5], "noc.multicast_reservation_flits": [5, 7]}
    sweep = Sweep(axes=axes, simulate=False)
    for retry in (False, True):
        result = sweep.run(tmp_path / "r.db", retry_failed=retry)
        assert [row["status"] for row in result.rows] == ["done", "done", "done", "failed"]
        assert "multicast_reservation_flits" in result.rows[3]["error"]


def test_mappers_objectives_and_their_options(tmp_path: Path) -> None:
    axes = {"layer": CONV, "mapper": "random", "objective": ["latency", "energy"], "options.samples": [1, 50]}
    result = Sweep(axes=axes, simulate=False).run(tmp_path / "r.db")
    by_place = {(row["axes"]["objective"], row["axes"]["options.samples"]): row for row in result.rows}
    assert by_place["latency", 50]["timeloop_cycles"] <= by_place["latency", 1]["timeloop_cycles"]
    assert by_place["energy", 50]["energy_pj"] < by_place["energy", 1]["energy_pj"]
    assert by_place["energy", 50]["energy_pj"] < by_place["latency", 50]["energy_pj"]


def ended(pool: LocalPool) -> list[tuple[str, Outcome]]:
    found: list[tuple[str, Outcome]] = []
    until = time.monotonic() + 60
    while not found:
        found = pool.wait(1)
        assert time.monotonic() < until
    return found


def test_a_worker_that_dies_fails_its_point_only(sweep: Sweep) -> None:
    task = sweep.points()[0].task()
    pool = LocalPool(1)
    try:
        pool.submit("first", task)
        assert "figures" in ended(pool)[0][1]
        pool._workers[0].process.send_signal(signal.SIGSTOP)
        for key in ("second", "third"):  # one under way, one waiting
            pool.submit(key, task)
        pool._workers[0].process.kill()
        key, outcome = ended(pool)[0]
        assert key == "second" and outcome["error_kind"] == "WorkerDied" and "SIGKILL" in outcome["error"]
        key, outcome = ended(pool)[0]
        assert key == "third" and "figures" in outcome
        pool._workers[0].process.kill()  # while it has nothing to do
        pool._workers[0].process.wait()
        pool.submit("fourth", task)
        assert [key for key, outcome in ended(pool) if "figures" in outcome] == ["fourth"]
    finally:
        pool.close()


def test_workers_that_do_not_start_end_the_sweep(sweep: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools.sys, "executable", "/bin/false")
    with pytest.raises(CosaError, match="a worker process does not start"):
        sweep.run(tmp_path / "r.db")
    assert statuses(tmp_path / "r.db") == ["pending"] * 6


def children(pid: int) -> list[int]:
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are looked up in /proc")
def test_killed_at_any_moment(many: Path, tmp_path: Path) -> None:
    """Nothing finished is lost or run again, claims are given back, no worker is left behind."""
    results = tmp_path / "r.db"
    before: dict[str, tuple[object, ...]] = {}
    for least in (0, 5, 14):
        run = start(many, "--results", results, "--workers", 2)
        wait_for(results, least, run)
        workers = children(run.pid)
        assert len(workers) == 2 or not least
        run.send_signal(signal.SIGKILL)
        run.wait()
        now = finished(results)
        assert least <= len(now) < 24 and {key: now[key] for key in before} == before
        before = now
        until = time.monotonic() + 10
        while any(map(is_alive, workers)):
            assert time.monotonic() < until, "a worker outlives its run"
            time.sleep(0.05)
    run = start(many, "--results", results, "--workers", 2)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 0 and "24 points: 24 done" in out, err
    after = finished(results)
    assert len(after) == 24 and {key: after[key] for key in before} == before
    assert not list(tmp_path.glob("*-run-*"))
    unbroken = Sweep.from_file(many).run(tmp_path / "unbroken.db", workers=2)
    assert csv_of(read_results(results), tmp_path / "a.csv") == csv_of(unbroken, tmp_path / "b.csv")


def test_interrupted(many: Path, tmp_path: Path) -> None:
    results = tmp_path / "r.db"
    run = start(many, "--results", results)
    wait_for(results, 2, run)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=30)
    assert run.returncode == 130 and err == "error: interrupted\n" and not out
    assert "running" not in statuses(results) and 2 <= len(finished(results)) < 24


def test_two_runs_share_one_file(many: Path, tmp_path: Path) -> None:
    """Each point is run by one of them, both do some, and the file is sound."""
    results = tmp_path / "r.db"
    runs = [start(many, "--results", results) for _ in range(2)]
    for run in runs:
        out, err = run.communicate(timeout=120)
        assert run.returncode == 0 and "24 points: 24 done" in out, err
    base = sqlite3.connect(results)
    assert base.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    shares = base.execute("SELECT run, count(*) FROM points GROUP BY run").fetchall()
    assert len(shares) == 2 and sum(count for _, count in shares) == 24
    assert base.execute("SELECT count(*) FROM runs WHERE ended IS NULL").fetchone()[0] == 0
    base.close()


def test_points_of_a_dead_run_are_taken_over_and_those_of_a_living_one_are_not(sweep: Sweep, tmp_path: Path) -> None:
    points = sweep.points()
    living, dying, other = (Store(tmp_path / "r.db", create=True) for _ in range(3))
    for store in (living, dying, other):
        store.plan(sweep, points)
        store.start_run()
    keys = other.pending(100)
    assert keys == [point.inputs_hash for point in points]
    assert living.claim(keys[0]) and dying.claim(keys[1])
    assert not other.claim(keys[0]) and not other.claim(keys[1])
    other.finish(keys[0], Outcome(figures={"pes": 1}, seconds=1.0))  # not its point: nothing happens
    assert other.counts() == SweepCounts(points=6, done=0, failed=0, running=2)
    assert not other.give_back_dead()
    assert dying._lock is not None
    dying._lock.close()  # as the operating system does when a process ends
    dying._base.close()
    assert other.give_back_dead() and not other.give_back_dead()
    assert other.claim(keys[1]) and not other.claim(keys[0])
    living.finish(keys[0], Outcome(figures={"pes": 1}, seconds=1.0))
    assert living.counts() == SweepCounts(points=6, done=1, failed=0, running=1)
    living.close()
    other.close()
    assert statuses(tmp_path / "r.db").count("pending") == 5


def test_results_of_other_sources_are_not_taken(sweep: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = LocalPool.wait

    def other(self: LocalPool, seconds: float) -> list[tuple[str, Outcome]]:
        return [(key, Outcome(**outcome | {"sources": "others"})) for key, outcome in real(self, seconds)]

    monkeypatch.setattr(LocalPool, "wait", other)
    with pytest.raises(CosaError, match="a worker has other sources"):
        sweep.model_copy(update={"simulate": False}).run(tmp_path / "r.db")
    assert set(statuses(tmp_path / "r.db")) == {"pending"}


@pytest.mark.parametrize("workers", ["2", 1.5, True, 0, 1025])
def test_workers_that_are_no_number(sweep: Sweep, tmp_path: Path, workers: Any) -> None:
    with pytest.raises(InputError, match=r"workers: not a number of processes .* from 1 to 1024"):
        sweep.run(tmp_path / "r.db", workers=workers)
    assert not (tmp_path / "r.db").exists()


def test_results_of_other_versions_are_not_taken(sweep: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the interpreter, the solver and the libraries: each row says which, and a worker must have the same."""
    real = LocalPool.wait

    def other(self: LocalPool, seconds: float) -> list[tuple[str, Outcome]]:
        found = real(self, seconds)
        return [(key, Outcome(**x | {"versions": versions() | {"highspy": "1.0"}})) for key, x in found]

    with monkeypatch.context() as patch:
        patch.setattr(LocalPool, "wait", other)
        with pytest.raises(CosaError, match=r"a worker has highspy 1\.0 where this command has 1\.\d+"):
            sweep.model_copy(update={"simulate": False}).run(tmp_path / "r.db")
    assert set(statuses(tmp_path / "r.db")) == {"pending"}
    quick = Sweep(axes={"layer": CONV, "objective": "cosa"}, simulate=False)
    first = quick.run(tmp_path / "r.db")
    assert first.rows[0]["versions"] == versions() and set(versions()) == {"python", "highspy", "numpy", "numba"}
    first.to_csv(tmp_path / "r.csv")
    with (tmp_path / "r.csv").open() as stream:
        assert json.loads(next(csv.DictReader(stream))["versions"]) == versions()
    upgraded = versions() | {"highspy": "1.0"}
    monkeypatch.setattr("nocsim.experiments.sweep.points.versions", lambda: upgraded)
    assert quick.points()[0].inputs_hash != first.rows[0]["inputs_hash"]


def test_a_file_without_versions_is_read_and_written(tmp_path: Path) -> None:
    """As an earlier version wrote it."""
    quick = Sweep(axes={"layer": CONV, "objective": "cosa"}, simulate=False)
    before = quick.run(tmp_path / "r.db")
    base = sqlite3.connect(tmp_path / "r.db")
    base.execute("DROP VIEW results")
    base.execute("ALTER TABLE points DROP COLUMN versions")
    base.close()
    assert read_results(tmp_path / "r.db").rows == [before.rows[0] | {"versions": {}}]
    assert (
        Sweep(axes={"layer": CONV, "objective": "cosa", "noc.flit_bits": [64, 128]}, simulate=False)
        .run(tmp_path / "r.db")
        .rows[1]["versions"]
        == versions()
    )


def test_an_empty_file_is_a_file_without_results(sweep: Sweep, tmp_path: Path, nocsim: Command) -> None:
    quick = sweep.model_copy(update={"simulate": False})
    quick.to_file(tmp_path / "s.yaml")
    results = tmp_path / "r.db"
    results.touch()
    dry = nocsim("sweep", tmp_path / "s.yaml", "--results", results, "--dry-run")
    assert dry.code == 0 and "6 points: 0 done, 0 failed, 6 left" in dry.out
    nocsim("sweep-report", results).assert_error("r.db: there is no sweep in it")
    assert results.read_bytes() == b""
    assert len(quick.run(results).rows) == 6


def test_what_a_dead_run_had_under_way_is_not_running(sweep: Sweep, tmp_path: Path) -> None:
    """Neither in a report nor in an estimate, before another run takes it over."""
    store = Store(tmp_path / "r.db", create=True)
    points = sweep.points()
    store.plan(sweep, points)
    store.start_run()
    key = store.pending(1)[0]
    assert store.claim(key)
    assert [row["status"] for row in read_results(tmp_path / "r.db").rows].count("running") == 1
    assert store._lock is not None
    store._lock.close()  # as the operating system does when a process ends
    store._base.close()
    assert {row["status"] for row in read_results(tmp_path / "r.db").rows} == {"pending"}
    reader = Store(tmp_path / "r.db")
    reader.latest()
    assert reader.counts().running == 0 and reader.known([key]) == {key: ("pending", None)}
    reader.close()
    assert statuses(tmp_path / "r.db").count("running") == 1  # reading changes nothing


def test_files_that_are_no_results(sweep: Sweep, tmp_path: Path, nocsim: Command) -> None:
    (tmp_path / "text.db").write_text("no database at all, but long enough to be looked at as one" * 20)
    with pytest.raises(InputError, match="not a file of sweep results"):
        sweep.run(tmp_path / "text.db")
    foreign = sqlite3.connect(tmp_path / "foreign.db")
    foreign.execute("CREATE TABLE t (a)")
    foreign.close()
    content = (tmp_path / "foreign.db").read_bytes()
    with pytest.raises(InputError, match="another program"):
        sweep.run(tmp_path / "foreign.db")
    assert (tmp_path / "foreign.db").read_bytes() == content
    nocsim("sweep-report", tmp_path / "none.db").assert_error("none.db: no such file")
    nocsim("sweep-report", tmp_path / "text.db").assert_error("not a file of sweep results")
    nocsim("sweep", "pe_4x", "--results", tmp_path / "no" / "r.db").assert_error("its folder does not exist")


def test_command_line(sweep: Sweep, tmp_path: Path, nocsim: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sweep.model_copy(update={"simulate": False}).to_file("s.yaml")
    dry = nocsim("sweep", "s.yaml", "--dry-run")
    assert (
        dry.code == 0
        and "6 points: 0 done, 0 failed, 6 left" in dry.out
        and "an estimate from 3 points run for this" in dry.out
    )
    assert [path.name for path in tmp_path.iterdir()] == ["s.yaml"]
    ran = nocsim("sweep", "s.yaml", "--workers", "2")
    assert ran.code == 1 and "small: 6 points: 4 done, 2 failed" in ran.out and "2 x InfeasibleError" in ran.out
    again = nocsim("sweep", "s.yaml", "--dry-run")
    assert again.out == "6 points: 4 done, 2 failed, 0 left\n"
    retried = nocsim("sweep", "s.yaml", "--dry-run", "--retry-failed")
    assert retried.out.startswith("6 points: 4 done, 0 failed, 2 left\n")
    nocsim("sweep", "s.yaml", "--workers", "0").assert_error("--workers")
    nocsim("sweep", "s.yaml", "--results", "s.yaml").assert_error("would overwrite")
    nocsim("sweep", "s.yaml", "--scheduler", "tcp://x").assert_error("--scheduler", "dask://host:port")


def test_an_estimate_from_finished_points(sweep: Sweep, tmp_path: Path) -> None:
    from nocsim.experiments.sweep.estimate import estimate

    quick = sweep.model_copy(update={"simulate": False})
    points = quick.points()
    quick.run(tmp_path / "r.db")
    more = Sweep(name="small", axes=quick.axes | {"noc.fifo_flits": [7, 8]}, simulate=False).points()
    found = estimate(more, tmp_path / "r.db")
    mean = sum(row["seconds"] for row in read_results(tmp_path / "r.db").rows if row["status"] == "done") / 4
    assert found.counts.left == 6 and found.seconds == pytest.approx(6 * mean)
    assert estimate(points, tmp_path / "r.db").seconds == 0
    broken = [replace(point, options=PublishedOptions(order_level="none")) for point in points]
    assert estimate(broken, tmp_path / "none.db").seconds is None
