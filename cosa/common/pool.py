"""The pool: tasks spread over processes, of which one that dies fails its own task and no other.

Not `concurrent.futures`: there a process that dies (out of memory, a fault in a library) breaks the whole pool and does
not tell which task it had, and workers outlive a parent that was killed. Nor `multiprocessing`, also beneath `pebble`:
fresh processes there import the script that was started, which then needs a guard.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from numbers import Integral
from pathlib import Path
from typing import IO, Any, Protocol

from cosa.common.errors import CosaError, InputError

MOST_WORKERS = 1024
QUICK_SECONDS = 2.0
"""Workers have their next task at hand if the last one took less; longer tasks are shared out more evenly without."""

_ROOT = str(Path(__file__).parents[2])

Function = Callable[..., Any]
Task = tuple[Any, Function, tuple[Any, ...]]
"""A key, and what is called with which arguments; all must be known by name in other processes."""


class WorkerStartError(CosaError):
    """Worker processes cannot be started, so no task can be run."""

    exit_code = 1


class WorkerDiedError(CosaError):
    """The process that had a task has ended."""

    exit_code = 1


@dataclass(frozen=True)
class Ended:
    """A task that has ended, after so many seconds: its value, or the error that it raised."""

    key: Any
    value: Any = None
    error: Exception | None = None
    seconds: float = 0.0

    def result(self) -> Any:
        """The value; the error is raised."""
        if self.error is not None:
            raise self.error
        return self.value


class Pool(Protocol):
    """What runs tasks."""

    @property
    def slots(self) -> int:
        """Tasks that it takes at a time."""

    def submit(self, key: Any, function: Function, arguments: tuple[Any, ...]) -> None:
        """Start a task; at most `slots` may be under way."""

    def wait(self, seconds: float) -> list[Ended]:
        """Tasks that have ended since; waits for one at most that long."""

    def close(self) -> None:
        """Stop whatever is under way."""


def require_workers(workers: Any, source: str | None = None) -> None:
    """InputError where it is no number of processes; `source` says where it was given."""
    whole = isinstance(workers, Integral) and not isinstance(workers, bool)
    if not whole or not 1 <= workers <= MOST_WORKERS:
        allowed = f"a whole number from 1 to {MOST_WORKERS}"
        where = {"path": "workers"} if source is None else {"source": source}
        raise InputError("not a number of processes", value=workers, allowed=allowed, **where)


@contextmanager
def opened(workers: int) -> Iterator[Pool]:
    """So many processes, or with one worker this process; they end with the block, however it ends."""
    require_workers(workers)
    pool: Pool = ThisProcess() if workers == 1 else Processes(workers)
    try:
        yield pool
    finally:
        pool.close()


def completed(pool: Pool, tasks: Iterable[Task]) -> Iterator[Ended]:
    """Tasks as they end, begun in their order."""
    left, under_way = iter(tasks), 0
    while True:
        while under_way < pool.slots and (task := next(left, None)) is not None:
            pool.submit(*task)
            under_way += 1
        if not under_way:
            return
        for ended in pool.wait(60.0):
            under_way -= 1
            yield ended


def call_all(pool: Pool, function: Function, jobs: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
    """``function(*job)`` of every job, in the order of the jobs."""
    found: dict[int, Ended] = {}
    at = 0
    for ended in completed(pool, ((number, function, job) for number, job in enumerate(jobs))):
        found[ended.key] = ended
        while at in found:
            yield found.pop(at).result()
            at += 1


def called(key: Any, function: Function, arguments: tuple[Any, ...]) -> Ended:
    """A task, done here and now; an error is an end, too."""
    started = time.perf_counter()
    try:
        value = function(*arguments)
    except Exception as error:
        return Ended(key, error=error, seconds=time.perf_counter() - started)
    return Ended(key, value, seconds=time.perf_counter() - started)


class ThisProcess:
    """No other processes: a task is done when somebody waits for it."""

    slots = 1

    def __init__(self) -> None:
        self._tasks: deque[Task] = deque()

    def submit(self, key: Any, function: Function, arguments: tuple[Any, ...]) -> None:
        """See `Pool`."""
        self._tasks.append((key, function, arguments))

    def wait(self, seconds: float) -> list[Ended]:
        """See `Pool`; waits as long as the task takes."""
        return [called(*self._tasks.popleft())] if self._tasks else []

    def close(self) -> None:
        """See `Pool`."""
        self._tasks.clear()


@dataclass
class _Worker:
    """A process and its tasks: the one under way first."""

    process: subprocess.Popen[bytes]
    link: Connection
    complaints: IO[bytes]
    tasks: deque[Task] = field(default_factory=deque)
    ready: bool = False

    def send(self, data: Any) -> None:
        """Hand it to the process."""
        with suppress(BrokenPipeError, ConnectionResetError):  # it has died; `wait` will say so
            self.link.send(data)


class Processes:
    """Processes of this machine. They start with the first tasks, and end with this one however it ends.

    prepare: called in each before its first task.
    """

    def __init__(self, workers: int, prepare: Callable[[], None] | None = None) -> None:
        self._most_workers, self._prepare = workers, prepare
        self._last_seconds = float("inf")
        self._workers: list[_Worker] = []
        self._closing = False

    @property
    def slots(self) -> int:
        """See `Pool`."""
        return self._most_workers * (2 if self._last_seconds < QUICK_SECONDS else 1)

    @property
    def pids(self) -> list[int]:
        """The processes."""
        return [worker.process.pid for worker in self._workers]

    def submit(self, key: Any, function: Function, arguments: tuple[Any, ...]) -> None:
        """See `Pool`."""
        alive = [worker for worker in self._workers if worker.process.poll() is None]
        worker = min(alive, key=lambda worker: len(worker.tasks), default=None)
        if worker is None or (worker.tasks and len(alive) < self._most_workers):
            worker = self._start()
        worker.tasks.append((key, function, arguments))
        worker.send(pickle.dumps((function, arguments)))

    def wait(self, seconds: float) -> list[Ended]:
        """See `Pool`. A task whose process dies has failed.

        Raises
        ------
        WorkerStartError: a process ended before it took any task.
        """
        links = {worker.link: worker for worker in self._workers}
        found = []
        for link in wait_for(list(links), seconds):
            worker = links[link]  # type: ignore[index]
            try:
                ended: Ended = worker.link.recv()
            except (EOFError, ConnectionResetError):
                error = self._bury(worker)
                if worker.tasks:
                    found.append(Ended(worker.tasks.popleft()[0], error=error))
                for task in worker.tasks:  # it had not come to these
                    self.submit(*task)
                continue
            if worker.ready:
                found.append(replace(ended, key=worker.tasks.popleft()[0]))
                self._last_seconds = ended.seconds
            worker.ready = True  # the first answer: it has started
        return found

    def close(self) -> None:
        """See `Pool`."""
        self._closing = True
        for worker in self._workers:
            worker.process.kill()
        for worker in list(self._workers):
            self._bury(worker)

    def _start(self) -> _Worker:
        # A file, not a pipe: nobody would read a pipe until the process has died.
        complaints = tempfile.TemporaryFile()  # noqa: SIM115
        ours, theirs = Pipe()
        path = os.pathsep.join(filter(None, (_ROOT, os.environ.get("PYTHONPATH"))))
        process = subprocess.Popen(
            [sys.executable, "-m", "cosa.common.pool_worker", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=complaints,
            stderr=complaints,
            pass_fds=[theirs.fileno()],
            env=os.environ | {"PYTHONPATH": path},
            process_group=0,  # out of reach of a terminal's Ctrl-C, also while it starts
        )
        theirs.close()
        worker = _Worker(process, ours, complaints)
        self._workers.append(worker)
        worker.send((sys.path, pickle.dumps(self._prepare)))
        return worker

    def _bury(self, worker: _Worker) -> WorkerDiedError:
        """Clean up after a process that has ended; what became of the task it had."""
        self._workers.remove(worker)
        worker.link.close()
        code = worker.process.wait()
        with worker.complaints as complaints:
            complaints.seek(0)
            lines = complaints.read().decode(errors="replace").strip().splitlines()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        last = f": {lines[-1]}" if lines else ""
        if not worker.ready and not self._closing:
            raise WorkerStartError(f"a worker process does not start ({how}){last}")
        return WorkerDiedError(f"the worker process ended ({how}){last}")
