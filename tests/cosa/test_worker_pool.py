"""The pool: a task whose process dies fails alone, workers end with the process that started them."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cosa.common import pool as pools
from cosa.common.errors import InfeasibleError, InputError
from cosa.common.pool import Ended, Pool, Processes, WorkerDiedError, WorkerStartError, call_all, completed, opened

ROOT = Path(__file__).parents[2]

PARENT = """
import os, time
from cosa.common.pool import Processes, call_all

pool = Processes(2)
started = set(call_all(pool, os.getpid, [()] * 20))
for number in range(2):
    pool.submit(number, time.sleep, (600,))
print(*pool.pids, flush=True)
pool.wait(600)
"""


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has asked about does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ended(pool: Pool) -> Ended:
    """The next task to end."""
    until = time.monotonic() + 60
    while not (found := pool.wait(1)):
        assert time.monotonic() < until
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("workers", [1, 2])
def test_values_and_errors(workers: int) -> None:
    with opened(workers) as pool:
        assert list(call_all(pool, math.factorial, [(n,) for n in range(6)])) == [1, 1, 2, 6, 24, 120]
        tasks = [("root", math.sqrt, (-1,)), ("own", _raise, ("no room",)), ("fine", math.sqrt, (4,))]
        found = {one.key: one for one in completed(pool, tasks)}
    assert found["fine"].result() == 2
    assert isinstance(found["root"].error, ValueError)
    with pytest.raises(InfeasibleError, match="no room"):
        found["own"].result()
    assert all(one.seconds < 10 for one in found.values())


def _raise(message: str) -> None:
    raise InfeasibleError(message)


def test_what_cannot_be_sent_back_is_an_error() -> None:
    pool = Processes(1)
    try:
        for key, function in enumerate((_unsendable, _odd_error)):
            pool.submit(key, function, ())
            assert isinstance(ended(pool).error, RuntimeError)
    finally:
        pool.close()


def _unsendable() -> object:
    return lambda: None


class OddError(Exception):
    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} {second}")


def _odd_error() -> None:
    raise OddError(1, 2)


def test_a_worker_that_dies_fails_its_task_only() -> None:
    pool = Processes(1)
    try:
        pool.submit("first", math.sqrt, (4,))
        assert ended(pool).value == 2
        os.kill(pool.pids[0], signal.SIGSTOP)
        for key in ("second", "third"):  # one under way, one waiting
            pool.submit(key, math.sqrt, (4,))
        os.kill(pool.pids[0], signal.SIGKILL)
        found = ended(pool)
        assert found.key == "second" and isinstance(found.error, WorkerDiedError) and "SIGKILL" in str(found.error)
        found = ended(pool)
        assert (found.key, found.value) == ("third", 2)
        pid = pool.pids[0]
        os.kill(pid, signal.SIGKILL)  # while it has nothing to do
        while alive(pid):
            time.sleep(0.01)
        pool.submit("fourth", math.sqrt, (9,))
        assert ended(pool).value == 3
        pool.submit("fifth", os._exit, (3,))
        assert "exit code 3" in str(ended(pool).error)
        pool.submit("sixth", _die_loudly, ())
        assert str(ended(pool).error).endswith("(exit code 1): out of luck")
    finally:
        pool.close()


def _die_loudly() -> None:
    os.write(2, b"first\nout of luck\n")
    os._exit(1)


def test_workers_that_do_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools.sys, "executable", "/bin/false")
    with opened(2) as pool:
        pool.submit("", math.sqrt, (4,))
        with pytest.raises(WorkerStartError, match="a worker process does not start"):
            ended(pool)


@pytest.mark.parametrize("workers", ["2", 1.5, True, 0, 1025])
def test_workers_that_are_no_number(workers: object) -> None:
    with pytest.raises(InputError, match=r"workers: not a number of processes .* from 1 to 1024"), opened(workers):  # type: ignore[arg-type]
        pass


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="asks /proc who is alive")
def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    """Of a script without a guard, as it may be written."""
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=environment)
    assert parent.stdout is not None
    workers = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(workers) == 2 and all(alive(pid) for pid in workers)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 20
    while any(alive(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = [pid for pid in workers if alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left
