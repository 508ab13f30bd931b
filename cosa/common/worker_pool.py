"""Processes of their own for work that takes long, and calls spread over them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_all_start_methods, get_context, parent_process, set_start_method
from multiprocessing.process import BaseProcess
from typing import Any


@contextmanager
def worker_processes(workers: int) -> Iterator[ProcessPoolExecutor | None]:
    """So many fresh processes, for a fork of one with solver threads can hang; None with one worker: this process.

    Ctrl-C, or any error in the block, ends them at once: work under way is of no use any more, and may take long.
    """
    if workers == 1:
        yield None
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_prepare_worker) as pool:
        try:
            yield pool
        except BaseException:
            for process in list((pool._processes or {}).values()):
                process.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def call_all(
    pool: ProcessPoolExecutor | None, function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]
) -> Iterator[Any]:
    """``function(*job)`` of every job, in the order of the jobs."""
    if pool is None:
        for job in jobs:
            yield function(*job)
        return
    futures = [pool.submit(function, *job) for job in jobs]
    for future in futures:
        yield future.result()


def _prepare_worker() -> None:
    """Ctrl-C reaches a whole group of processes; the parent ends its workers, quietly.

    Pyomo makes a lock of the default kind when it loads. That of forked processes leaves nothing behind that would be
    reported as leaked when the worker is ended.

    A parent that was killed cannot end anything: a thread of the worker waits for that.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if "fork" in get_all_start_methods():
        set_start_method("fork", force=True)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
