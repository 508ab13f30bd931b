"""A worker process: reads tasks from standard input and writes how they ended to standard output.

``python -m cosa.common.pool_worker``. It ends when its input does, so it never outlives the process that started it: a
thread watches the input also while a task is under way.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import traceback
from queue import SimpleQueue
from typing import Any

from cosa.common.pool import Ended, called, framed, unframed


def main() -> None:
    """Work until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is no answer
    tasks: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_read, args=(tasks,), daemon=True).start()
    sys.path[:] = tasks.get()
    prepare = pickle.loads(tasks.get())
    if prepare is not None:
        prepare()
    answers.write(framed(Ended(None)))
    while True:
        answers.flush()
        answers.write(_answer(called(None, _call, (tasks.get(),))))


def _call(task: bytes) -> Any:
    function, arguments = pickle.loads(task)
    return function(*arguments)


def _answer(ended: Ended) -> bytes:
    """Bytes of a task's end; what cannot be sent is an error that says so."""
    if ended.error is not None:
        ended.error.add_note("in a worker process:\n" + "".join(traceback.format_exception(ended.error)))
    try:
        data = framed(ended)
        if ended.error is not None:  # one with arguments of its own may not come back
            next(unframed(bytearray(data)))
        return data
    except Exception as error:
        text = f"{type(error).__name__}: {error}" if ended.error is None else repr(ended.error)
        return framed(Ended(None, error=RuntimeError(text), seconds=ended.seconds))


def _read(tasks: SimpleQueue[Any]) -> None:
    stream = bytearray()
    while chunk := os.read(0, 1 << 16):
        stream += chunk
        for task in unframed(stream):
            tasks.put(task)
    os._exit(0)


if __name__ == "__main__":
    main()
