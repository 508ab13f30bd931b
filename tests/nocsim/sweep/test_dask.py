"""The same sweep on a dask.distributed cluster of two workers, one of which is killed meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from cosa.common.dask_pool import DaskPool
from nocsim.experiments.sweep.result import read_results
from nocsim.experiments.sweep.spec import Sweep
from tests.conftest import Command
from tests.nocsim.sweep.conftest import ROOT, finished, start, wait_for


@dataclass
class Cluster:
    """A scheduler and two workers as processes, and the scheduler's address."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]


def launch(program: str, *arguments: str) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", f"distributed.cli.dask_{program}", "--no-dashboard", *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster with two workers."""
    with started(tmp_path, workers=2) as found:
        yield found


@contextmanager
def started(tmp_path: Path, workers: int) -> Iterator[Cluster]:
    file = tmp_path / "scheduler.json"
    scheduler = launch("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
    processes: list[subprocess.Popen[bytes]] = []
    try:
        until = time.monotonic() + 60
        while not file.exists() or not file.read_text().strip():
            assert time.monotonic() < until and scheduler.poll() is None
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        for number in range(workers):
            folder = str(tmp_path / f"worker{number}")
            options = ("--nthreads", "1", "--no-nanny", "--local-directory", folder)
            processes.append(launch("worker", address, *options))
        yield Cluster(address.replace("tcp://", "dask://"), scheduler, processes)
    finally:
        for process in (*processes, scheduler):
            process.kill()
            process.wait()


def test_a_worker_is_killed(cluster: Cluster, many: Path, tmp_path: Path) -> None:
    """All points are finished, with the figures of the embedded pool."""
    results = tmp_path / "r.db"
    run = start(many, "--results", results, "--scheduler", cluster.address)
    wait_for(results, 5, run)
    assert run.poll() is None and len(finished(results)) < 24
    cluster.workers[0].kill()
    out, err = run.communicate(timeout=120)
    assert run.returncode == 0 and "24 points: 24 done" in out, err
    alone = Sweep.from_file(many).run(tmp_path / "alone.db", workers=2)
    for result, name in ((read_results(results), "cluster.csv"), (alone, "alone.csv")):
        result.to_csv(tmp_path / name, timing=False)
    assert (tmp_path / "cluster.csv").read_text() == (tmp_path / "alone.csv").read_text()


@pytest.mark.slow
def test_the_scheduler_is_lost(cluster: Cluster, many: Path, tmp_path: Path) -> None:
    results = tmp_path / "r.db"
    run = start(many, "--results", results, "--scheduler", cluster.address)
    wait_for(results, 2, run)
    cluster.scheduler.kill()
    _, err = run.communicate(timeout=120)
    assert run.returncode == 1 and "is gone; points that it finished are kept" in err
    assert err.count("\n") == 1, err
    kept = finished(results)
    assert 2 <= len(kept) < 24
    again = Sweep.from_file(many).run(results, workers=2)
    assert len(again.rows) == 24 and not again.failed
    assert {key: finished(results)[key] for key in kept} == kept


def test_a_cluster_without_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """That nothing happens is said once; a worker that comes and goes does not make it silent."""
    monkeypatch.setattr("cosa.common.dask_pool._ASK_SECONDS", 0.0)
    with started(tmp_path, workers=0) as cluster:
        pool = DaskPool(cluster.address)
        try:
            assert pool.slots == 2 and not capsys.readouterr().err
            assert pool.slots == pool.slots == 2
            assert capsys.readouterr().err == f"note: {cluster.address} has no workers; waiting for some\n"
            for threads in (3, 0, 0, 0):
                pool._note_threads(threads)
            assert capsys.readouterr().err.count("no workers") == 1
        finally:
            pool.close()


def test_nobody_answers(many: Path, tmp_path: Path, nocsim: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cosa.common.dask_pool._CONNECT_SECONDS", 1)
    ran = nocsim("sweep", many, "--results", tmp_path / "r.db", "--scheduler", "dask://127.0.0.1:9")
    ran.assert_error("no dask scheduler answers", "--scheduler")
    assert not (tmp_path / "r.db").exists()
