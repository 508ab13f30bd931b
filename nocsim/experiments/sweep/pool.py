"""The embedded pool: worker processes, each with one point at a time, and the next one waiting if points are quick.

Not `concurrent.futures`: there a process that dies (out of memory, a fault in a library) breaks the whole pool and
does not tell which task it had, and workers outlive a parent that was killed.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

from cosa.common.errors import CosaError
from nocsim.experiments.sweep.figures import Outcome

QUICK_SECONDS = 2.0
"""Workers have their next point at hand if the last one took less; longer points are shared out more evenly without."""

_ROOT = str(Path(__file__).parents[3])


class WorkerStartError(CosaError):
    """Worker processes cannot be started, so no point can be run."""

    exit_code = 1


class Pool(Protocol):
    """What runs points elsewhere."""

    @property
    def slots(self) -> int:
        """Points that it takes at a time."""

    def submit(self, key: str, task: str) -> None:
        """Start a point; at most `slots` may be under way."""

    def wait(self, seconds: float) -> list[tuple[str, Outcome]]:
        """Points that have ended since, by key; waits for one at most that long."""

    def close(self) -> None:
        """Stop whatever is under way."""


@dataclass
class _Worker:
    """A process and its points with their tasks: the one under way first."""

    process: subprocess.Popen[bytes]
    complaints: IO[bytes]
    points: deque[tuple[str, str]] = field(default_factory=deque)
    ready: bool = False
    answer: bytearray = field(default_factory=bytearray)


class LocalPool:
    """Processes of this machine. They start with the first points, and end with this one however it ends."""

    def __init__(self, workers: int) -> None:
        self._most_workers = workers
        self._last_seconds = float("inf")
        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()
        self._closing = False

    @property
    def slots(self) -> int:
        """See `Pool`."""
        return self._most_workers * (2 if self._last_seconds < QUICK_SECONDS else 1)

    def submit(self, key: str, task: str) -> None:
        """See `Pool`."""
        alive = [worker for worker in self._workers if worker.process.poll() is None]
        worker = min(alive, key=lambda worker: len(worker.points), default=None)
        if worker is None or (worker.points and len(alive) < self._most_workers):
            worker = self._start()
        worker.points.append((key, task))
        assert worker.process.stdin is not None
        with suppress(BrokenPipeError):  # it has died; `wait` will say so
            worker.process.stdin.write(json.dumps(task).encode() + b"\n")
            worker.process.stdin.flush()

    def wait(self, seconds: float) -> list[tuple[str, Outcome]]:
        """See `Pool`. A point whose process dies has failed.

        Raises
        ------
        WorkerStartError: a process ended before it took any point.
        """
        ended = []
        for ready, _ in self._selector.select(seconds):
            worker: _Worker = ready.data
            assert worker.process.stdout is not None
            chunk = os.read(worker.process.stdout.fileno(), 1 << 16)
            worker.answer += chunk
            lines, _, rest = worker.answer.rpartition(b"\n")
            worker.answer[:] = rest
            outcomes: list[Outcome] = [json.loads(line) for line in lines.splitlines()]
            if outcomes and not worker.ready:
                del outcomes[0]  # it has started
                worker.ready = True
            for outcome in outcomes:
                ended.append((worker.points.popleft()[0], outcome))
                self._last_seconds = outcome["seconds"]
            if not chunk:
                outcome = self._bury(worker)
                if worker.points:
                    ended.append((worker.points.popleft()[0], outcome))
                for key, task in worker.points:  # it had not come to these
                    self.submit(key, task)
        return ended

    def close(self) -> None:
        """See `Pool`."""
        self._closing = True
        for worker in self._workers:
            worker.process.kill()
        for worker in list(self._workers):
            self._bury(worker)
        self._selector.close()

    def _start(self) -> _Worker:
        # A file, not a pipe: nobody would read a pipe until the process has died.
        complaints = tempfile.TemporaryFile()  # noqa: SIM115
        path = os.pathsep.join(filter(None, (_ROOT, os.environ.get("PYTHONPATH"))))
        process = subprocess.Popen(
            [sys.executable, "-m", "nocsim.experiments.sweep.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env=os.environ | {"PYTHONPATH": path},
            process_group=0,  # out of reach of a terminal's Ctrl-C, also while it starts
        )
        worker = _Worker(process, complaints)
        self._workers.append(worker)
        assert process.stdout is not None
        self._selector.register(process.stdout, selectors.EVENT_READ, worker)
        return worker

    def _bury(self, worker: _Worker) -> Outcome:
        """Clean up after a process that has ended; the outcome of the point it had."""
        assert worker.process.stdin is not None and worker.process.stdout is not None
        self._selector.unregister(worker.process.stdout)
        self._workers.remove(worker)
        code = worker.process.wait()
        with worker.complaints as complaints, worker.process.stdout:
            complaints.seek(0)
            lines = complaints.read().decode(errors="replace").strip().splitlines()
        with suppress(BrokenPipeError):  # a point that it never read
            worker.process.stdin.close()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        last = f": {lines[-1]}" if lines else ""
        if not worker.ready and not self._closing:
            raise WorkerStartError(f"a worker process does not start ({how}){last}")
        return Outcome(error_kind="WorkerDied", error=f"the worker process ended ({how}){last}")
