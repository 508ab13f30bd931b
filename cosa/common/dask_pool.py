"""The same pool on a dask.distributed cluster."""

from __future__ import annotations

import logging
import queue
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cosa.common.errors import CosaError, InputError
from cosa.common.pool import Ended, Function, WorkerDiedError, called

if TYPE_CHECKING:
    from collections.abc import Callable

_PREFIX = "dask://"
_CONNECT_SECONDS = 10
_CLOSE_SECONDS = 5
_ASK_SECONDS = 5.0
"""Workers may come and go; this often they are counted."""
_ONE_AT_A_TIME = threading.Lock()
"""Workers may have several threads; solver and simulator are made for one."""


class SchedulerLostError(CosaError):
    """The cluster's scheduler is gone."""

    exit_code = 1


def called_alone(function: Function, arguments: tuple[Any, ...]) -> Ended:
    """A task on a worker of the cluster."""
    with _ONE_AT_A_TIME:
        return called(None, function, arguments)


class DaskPool:
    """Workers of a cluster. The scheduler hands tasks of a worker that dies to another one."""

    def __init__(self, address: str) -> None:
        host = address.removeprefix(_PREFIX)
        if not address.startswith(_PREFIX) or not host:
            allowed = f"{_PREFIX}host:port"
            raise InputError("not a scheduler", source="--scheduler", value=address, allowed=allowed)
        distributed = require_distributed()
        # It reports a lost scheduler with tracebacks; here that is one line.
        for name in ("client", "core", "comm"):
            logging.getLogger(f"distributed.{name}").setLevel(logging.CRITICAL)
        try:
            self._client = distributed.Client(f"tcp://{host}", timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(f"no dask scheduler answers: {reason}", source="--scheduler", value=address) from None
        self._address = address
        self._threads, self._ask_again, self._told = 1, 0.0, False
        self._futures: dict[Any, Any] = {}
        self._ends: queue.SimpleQueue[Any] = queue.SimpleQueue()

    @property
    def slots(self) -> int:
        """Two for each thread of the cluster, so that none waits for the next task; see `Pool`."""
        if time.monotonic() >= self._ask_again:
            with self._lost():
                self._note_threads(sum(self._client.nthreads().values()))
            self._ask_again = time.monotonic() + _ASK_SECONDS
        return 2 * max(1, self._threads)

    def _note_threads(self, threads: int) -> None:
        """Say once that there are none, if there were none when last asked."""
        if threads == self._threads == 0 and not self._told:
            print(f"note: {self._address} has no workers; waiting for some", file=sys.stderr, flush=True)
            self._told = True
        self._told = self._told and not threads
        self._threads = threads

    def submit(self, key: Any, function: Function, arguments: tuple[Any, ...]) -> None:
        """See `Pool`."""
        name = f"{function.__name__}-{self._client.id}-{key}"
        with self._lost():
            future = self._client.submit(called_alone, function, arguments, key=name, pure=False)
        self._futures[key] = future
        future.add_done_callback(self._note(key))

    def _note(self, key: Any) -> Callable[[Any], None]:
        return lambda _: self._ends.put(key)

    def wait(self, seconds: float) -> list[Ended]:
        """See `Pool`. A task on which workers die again and again has failed."""
        keys = []
        try:
            keys.append(self._ends.get(timeout=seconds))
            while True:
                keys.append(self._ends.get_nowait())
        except queue.Empty:
            pass
        if not keys and self._client.status != "running":
            raise self._gone()
        return [self._ended(key, self._futures.pop(key)) for key in keys]

    def _ended(self, key: Any, future: Any) -> Ended:
        if future.status == "cancelled":
            raise self._gone()
        with self._lost():
            error = future.exception()
            if error is None:
                ended: Ended = future.result()
                return replace(ended, key=key)
        text = " ".join(str(error).split()) or "no message"
        return Ended(key, error=WorkerDiedError(text) if type(error).__name__ == "KilledWorker" else error)

    def close(self) -> None:
        """See `Pool`."""
        with suppress(OSError, RuntimeError):
            for future in self._futures.values():
                future.cancel()
        self._client.close(timeout=_CLOSE_SECONDS)

    @contextmanager
    def _lost(self) -> Iterator[None]:
        """What the client raises without its scheduler, as our error."""
        try:
            yield
        except (OSError, RuntimeError, CancelledError):
            raise self._gone() from None

    def _gone(self) -> SchedulerLostError:
        return SchedulerLostError(f"--scheduler: {self._address} is gone; points that it finished are kept")


def require_distributed() -> Any:
    """The package dask.distributed; InputError where it is not installed."""
    try:
        import distributed
    except ImportError:
        allowed = "install cosa-nocsim[sweep]"
        raise InputError("dask.distributed is not installed", source="--scheduler", allowed=allowed) from None
    return distributed
