"""Request traces: read from text or CSV files (plain or gzip), a chunk at a time.

The forms of a line are those of :mod:`dram.trace_lines`. Empty lines and lines that begin with ``#`` are passed over.
"""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from cosa.common.file_kinds import another_kind
from dram.config import DramConfig
from dram.errors import DramConfigError
from dram.queues_kernel import Ints
from dram.trace_lines import FORMS, LineError, LineReader, Request

CHUNK = 1 << 15
"""Requests read at once."""


@dataclass(frozen=True)
class Requests:
    """Some requests in trace order: wished-for DRAM clocks, directions (0 read, 1 write), byte addresses."""

    cycles: Ints
    ops: Ints
    addresses: Ints


@contextmanager
def open_text(path: Path) -> Iterator[IO[str]]:
    """A text file, gzip or plain, for reading.

    Raises:
        DramConfigError: it cannot be opened.
    """
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
        opener = gzip.open if packed else open
        file = opener(path, "rt", encoding="utf-8")
    except OSError as error:
        raise DramConfigError(f"{path}: cannot be read: {error.strerror}") from None
    with file:
        yield file


def read_trace(path: Path, config: DramConfig | None = None) -> Iterator[Requests]:
    """The requests of a trace file, a chunk at a time; ``config``: the device, for what is told by its levels.

    Raises:
        DramConfigError: the file cannot be read, a line is none of the known forms, or cycles fall.
    """
    reader = LineReader(config)
    last = 0
    started = False
    rows: list[Request] = []
    if path.name.removesuffix(".gz").endswith(".rstl"):
        raise DramConfigError(f"{path}: cycles of a .rstl trace count from one request to the next; allowed: .stl")
    with open_text(path) as file:
        try:
            for number, line in enumerate(file, start=1):
                line = line.strip().removeprefix("\ufeff")
                if not line or line.startswith("#"):
                    continue
                try:
                    header = not started and reader.header(line)
                    started = True
                    if header:
                        continue
                    row = reader.request(line)
                except LineError as error:
                    if not rows and last == 0:
                        _require_trace(file, path)
                    message = f"{error} (found {line[:60]!r}); allowed: {error.allowed}"
                    raise DramConfigError(f"{path}: line {number}: {message}") from None
                if row[0] < last:
                    raise DramConfigError(
                        f"{path}: line {number}: cycle before that of the line before (found {row[0]} after {last}); "
                        "allowed: cycles that do not fall"
                    )
                last = row[0]
                rows.append(row)
                if len(rows) == CHUNK:
                    yield _chunk(rows)
                    rows = []
        except UnicodeDecodeError:
            raise DramConfigError(f"{path}: is not text") from None
        except (OSError, EOFError) as error:
            raise DramConfigError(f"{path}: cannot be read: {error}") from None
    if rows:
        yield _chunk(rows)


def _require_trace(file: IO[str], path: Path) -> None:
    """DramConfigError if the file looks like one of another kind."""
    file.seek(0)
    wrong = another_kind(file.read(1 << 14), str(path), ("request trace of a DRAM",), FORMS)
    if wrong is not None:
        raise DramConfigError(str(wrong)) from None


def _chunk(rows: list[Request]) -> Requests:
    table = np.array(rows, np.int64)
    return Requests(*(np.ascontiguousarray(table[:, column]) for column in range(3)))
