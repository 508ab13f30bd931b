"""Request traces: read from text or CSV files (plain or gzip), a chunk at a time.

Forms of a line of text, with addresses in hexadecimal (with or without 0x) or decimal:

=====================  ===========================================================
``LD address``         load; ``ST address``: store. Presented as fast as accepted
``R address cycle``    read in a DRAM clock or later; ``W address cycle``: write
``address READ cycle`` the same, in the order of DRAMsim3's trace files
=====================  ===========================================================

A cycle may be left out everywhere. Empty lines and lines that begin with ``#`` are passed over. A CSV file has a header
with at least ``op`` and ``addr``, and ``cycle``: the request files of the reference measurements.
"""

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from dram.errors import DramConfigError
from dram.queues_kernel import Ints

CHUNK = 1 << 15
"""Requests read at once."""

Parser = Callable[[str], tuple[int, int, int]]
"""From a line to cycle, direction, address."""

_OPS = {"R": 0, "READ": 0, "LD": 0, "LOAD": 0, "W": 1, "WRITE": 1, "ST": 1, "STORE": 1}


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


def read_trace(path: Path) -> Iterator[Requests]:
    """The requests of a trace file, a chunk at a time.

    Raises:
        DramConfigError: the file cannot be read, a line is none of the known forms, or cycles fall.
    """
    parse: Parser = _text_line
    last = 0
    rows: list[tuple[int, int, int]] = []
    with open_text(path) as file:
        try:
            for number, line in enumerate(file, start=1):
                line = line.strip()
                if not line or line.startswith("#"):
                    continue
                if parse is _text_line and not rows and "," in line:
                    parse = _csv_parser(path, line)
                    continue
                try:
                    row = parse(line)
                except (ValueError, IndexError, OverflowError) as error:
                    raise DramConfigError(
                        f"{path}: line {number}: {_what(error)} (found {line[:60]!r}){_FORMS}"
                    ) from None
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


_FORMS = "; allowed: LD address, ST address, R|W address [cycle], address READ|WRITE [cycle]"


def _what(error: Exception) -> str:
    return str(error) if isinstance(error, _LineError) else "not a request"


class _LineError(ValueError):
    """What is wrong with a line."""


def _number(text: str, what: str) -> int:
    value = int(text, 0) if text.isdigit() or text[:2] in ("0x", "0X") else int(text, 16)
    if not 0 <= value < 1 << 62:
        raise _LineError(f"{what} out of range")
    return value


def _text_line(line: str) -> tuple[int, int, int]:
    parts = line.split()
    if parts[0].upper() in _OPS:
        op, address = _OPS[parts[0].upper()], parts[1]
    elif parts[1].upper() in _OPS:
        op, address = _OPS[parts[1].upper()], parts[0]
    else:
        raise _LineError("unknown direction")
    if len(parts) > 3:
        raise _LineError("too many fields")
    return (_cycle(parts[2]) if len(parts) == 3 else 0), op, _number(address, "address")


def _cycle(text: str) -> int:
    if not text.isdigit():
        raise _LineError("cycle is not a whole number from 0")
    return _number(text.lstrip("0") or "0", "cycle")


def _csv_parser(path: Path, header: str) -> Parser:
    names = [name.strip() for name in header.split(",")]
    for name in ("op", "addr"):
        if name not in names:
            raise DramConfigError(f"{path}: line 1: no column {name} (found {header[:60]!r}); allowed: cycle,op,addr")
    return _CsvLine(names.index("cycle") if "cycle" in names else -1, names.index("op"), names.index("addr"))


class _CsvLine:
    """Reads a line of a CSV file; the positions are those of its header."""

    def __init__(self, cycle: int, op: int, address: int) -> None:
        self._cycle, self._op, self._address = cycle, op, address

    def __call__(self, line: str) -> tuple[int, int, int]:
        parts = line.split(",")
        op = _OPS.get(parts[self._op].strip().upper())
        if op is None:
            raise _LineError("unknown direction")
        cycle = _cycle(parts[self._cycle].strip()) if self._cycle >= 0 else 0
        return cycle, op, _number(parts[self._address].strip(), "address")


def _chunk(rows: list[tuple[int, int, int]]) -> Requests:
    table = np.array(rows, np.int64)
    return Requests(*(np.ascontiguousarray(table[:, column]) for column in range(3)))
