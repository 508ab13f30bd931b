"""A worker process: ``python -m cosa.common.pool_worker FD`` reads tasks from that link and writes how they ended.

It ends when the link does, so it never outlives the process that started it: a thread reads also while a task is under
way.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import traceback
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from cosa.common.pool import Ended, called


def main() -> None:
    """Work until the link ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    link, tasks = Connection(int(sys.argv[1])), SimpleQueue[Any]()
    sys.path[:], prepare = link.recv()
    if (function := pickle.loads(prepare)) is not None:
        function()
    link.send(Ended(None))
    threading.Thread(target=_read, args=(link, tasks), daemon=True).start()
    while True:
        ended = called(None, _call, (tasks.get(),))
        try:
            if ended.error is not None:
                ended.error.add_note("in a worker process:\n" + "".join(traceback.format_exception(ended.error)))
                pickle.loads(pickle.dumps(ended.error))  # one with arguments of its own may not come back
            link.send(ended)
        except Exception as error:
            text = f"{type(error).__name__}: {error}" if ended.error is None else repr(ended.error)
            link.send(Ended(None, error=RuntimeError(text), seconds=ended.seconds))


def _call(task: bytes) -> Any:
    function, arguments = pickle.loads(task)
    return function(*arguments)


def _read(link: Connection, tasks: SimpleQueue[Any]) -> None:
    try:
        while True:
            tasks.put(link.recv())
    except (EOFError, ConnectionResetError):
        os._exit(0)


if __name__ == "__main__":
    main()
