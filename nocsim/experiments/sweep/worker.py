"""A worker process: reads points from standard input, one JSON line each, and writes their outcomes.

``python -m nocsim.experiments.sweep.worker``. It ends when its input does, so it never outlives the process that
started it: a thread watches the input also while a point is under way.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from queue import SimpleQueue
from typing import TextIO

from nocsim.experiments.sweep.figures import load, run_task


def main() -> None:
    """Work until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints is no answer
    tasks: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin, tasks), daemon=True).start()
    load()
    answers.write("{}\n")
    while True:
        answers.flush()
        answers.write(json.dumps(run_task(tasks.get())) + "\n")


def _read(stream: TextIO, tasks: SimpleQueue[str]) -> None:
    for line in stream:
        tasks.put(json.loads(line))
    os._exit(0)


if __name__ == "__main__":
    main()
