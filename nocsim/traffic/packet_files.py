"""Packet files, read block by block so that memory does not grow with their length.

The formats are those of the router-level reference measurements: ``packets.csv`` with the columns packet, kind (u or
m), src, dsts (separated by blanks), inject_cycle, n_flits; ``deliveries.csv`` with the columns packet, dst, head_in,
tail_in, head_out, tail_out, where -1 stands for what never happened.

A block in the plain form that programs write is read by array operations; any other goes through the csv module, with
all the tolerance that files out of spreadsheets need.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from cosa.common.file_kinds import another_kind
from nocsim.traffic.packets import MAX_NUMBER, Int64s, PacketError, Packets

PACKET_COLUMNS = ("packet", "kind", "src", "dsts", "inject_cycle", "n_flits")
_BLOCK_BYTES = 1 << 18
_BOM = b"\xef\xbb\xbf"
_MAX_DIGITS = 15
_PLAIN = bytes(byte for byte in range(256) if byte not in b"0123456789, um\n")
_AS_NUMBERS = bytes.maketrans(b"um,\n", b"01  ")


class Block(NamedTuple):
    """Packets of a file and the row of each (row 1 is the header)."""

    packets: Packets
    rows: Int64s


def read_packets(path: str | Path) -> Packets:
    """Read a packets file. Tolerates a byte-order mark, CRLF, blanks, blank lines, trailing commas, any column order.

    Raises PacketError with file, row (1 is the header) and column, also if the file cannot be read.
    """
    return Packets.joined(block.packets for block in packet_blocks(path))


def packet_blocks(path: str | Path) -> Iterator[Block]:
    """Read a packets file block by block; tolerance and errors as in `read_packets`."""
    path = Path(path)
    try:
        with path.open("rb") as stream:
            yield from _Reader(str(path)).blocks(stream)
    except FileNotFoundError:
        raise PacketError("no such file", source=str(path)) from None
    except OSError as error:
        raise PacketError(f"cannot be read: {error.strerror or error}", source=str(path)) from None


class _Reader:
    """Where one file is being read."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._row = 0  # rows read so far
        self._places: dict[str, int] | None = None  # of the columns, once the header was read
        self._n_columns = 0

    def blocks(self, stream: BinaryIO) -> Iterator[Block]:
        """Blocks of whole lines."""
        rest = b""
        first = True
        while chunk := stream.read(_BLOCK_BYTES):
            if first:
                chunk, first = chunk.removeprefix(_BOM), False
            lines, newline, tail = chunk.rpartition(b"\n")
            if not newline:
                rest += tail
                continue
            yield from self._read(rest + lines + newline)
            rest = tail
        if rest:
            yield from self._read(rest)
        if self._places is None:
            columns = ",".join(PACKET_COLUMNS)
            raise PacketError("the file is empty", source=self._source, path="row 1", allowed=f"the header {columns}")

    def _read(self, data: bytes) -> Iterator[Block]:
        if self._places is None:
            # the header on its own, so that what follows can be plain
            whole = data
            header, newline, data = data.partition(b"\n")
            try:
                yield from self._tolerant(header + newline)
            except PacketError as error:
                allowed = f"a packets file with the columns {','.join(PACKET_COLUMNS)}"
                text = whole.decode(errors="replace")
                raise another_kind(text, self._source, ("packets file",), allowed) or error from None
            if not data:
                return
        plain = None
        if self._places == {name: place for place, name in enumerate(PACKET_COLUMNS)}:
            plain = plain_packets(data)
        if plain is None:
            yield from self._tolerant(data)
        else:
            rows = np.arange(self._row + 1, self._row + 1 + len(plain), dtype=np.int64)
            self._row += len(plain)
            yield Block(plain, rows)

    def _tolerant(self, data: bytes) -> Iterator[Block]:
        """Lines as spreadsheets and people write them."""
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            row = self._row + 1 + data[: error.start].count(b"\n")
            raise PacketError("not UTF-8 text", source=self._source, path=f"row {row}") from None
        numbers, multicast, src, cycles, lengths = [list[int]() for _ in range(5)]
        starts, dsts, rows = [0], list[int](), list[int]()
        reader = csv.reader(io.StringIO(text, newline=""))
        try:
            for fields in reader:
                row = self._row + reader.line_num
                cells = [field.strip() for field in fields]
                while cells and not cells[-1] and (self._places is None or len(cells) > self._n_columns):
                    cells.pop()
                if not any(cells):
                    continue
                if self._places is None:
                    self._header(cells, row)
                    continue
                if len(cells) != self._n_columns:
                    column = PACKET_COLUMNS[min(len(cells), len(PACKET_COLUMNS) - 1)]
                    raise self._fault(row, column, "wrong number of fields", len(cells), f"{self._n_columns} fields")
                cell = {name: cells[place] for name, place in self._places.items()}
                if cell["kind"] not in ("u", "m"):
                    raise self._fault(row, "kind", "no such kind", cell["kind"], "u (unicast) or m (multicast)")
                numbers.append(self._integer(cell["packet"], row, "packet", -MAX_NUMBER))
                multicast.append(cell["kind"] == "m")
                src.append(self._integer(cell["src"], row, "src", 0))
                dsts.extend(self._integer(word, row, "dsts", 0) for word in cell["dsts"].split())
                cycles.append(self._integer(cell["inject_cycle"], row, "inject_cycle", 0))
                lengths.append(self._integer(cell["n_flits"], row, "n_flits", 1))
                starts.append(len(dsts))
                rows.append(row)
        except csv.Error as error:
            place = f"row {self._row + reader.line_num}"
            raise PacketError(f"not a CSV file: {error}", source=self._source, path=place) from None
        self._row += reader.line_num
        if rows:
            columns = [np.array(c, dtype=np.int64) for c in (numbers, src, cycles, lengths, starts, dsts, rows)]
            kinds = np.array(multicast, dtype=np.bool_)
            yield Block(Packets(columns[0], kinds, *columns[1:6]), columns[6])

    def _header(self, cells: Sequence[str], row: int) -> None:
        places = {name: place for place, name in enumerate(cells)}
        for column in PACKET_COLUMNS:
            if cells.count(column) != 1:
                problem = "given twice in the header" if column in places else "missing in the header"
                raise self._fault(row, column, problem, ",".join(cells), ",".join(PACKET_COLUMNS))
        self._places, self._n_columns = places, len(cells)

    def _integer(self, text: str, row: int, column: str, least: int) -> int:
        allowed = f"{least}..{MAX_NUMBER}"
        try:
            value = int(text)
        except ValueError:
            raise self._fault(row, column, "not an integer", text, allowed) from None
        if not least <= value <= MAX_NUMBER:
            raise self._fault(row, column, "out of range", value, allowed)
        return value

    def _fault(self, row: int, column: str, message: str, value: Any, allowed: str) -> PacketError:
        return PacketError(
            message, source=self._source, path=f"row {row}, column {column}", value=value, allowed=allowed
        )


def plain_packets(data: bytes) -> Packets | None:
    """Packets of lines in the plain form, None if a line is not in it.

    The plain form: the columns in their usual order, nothing but digits and u or m in the fields, one blank between
    destinations, no quotes, at least one destination, no number beyond the limits.
    """
    data = data.replace(b"\r\n", b"\n")
    if not data.endswith(b"\n"):
        data += b"\n"
    if len(data.translate(None, _PLAIN)) != len(data):
        return None
    text = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(text < ord("0"))  # of the words: commas, blanks and line ends are below the digits
    what = text[ends]
    lines = np.flatnonzero(what == ord("\n"))
    n = lines.size
    commas = np.flatnonzero(what == ord(","))
    lengths = np.diff(ends, prepend=-1) - 1
    if commas.size != 5 * n or lengths.min() < 1 or lengths.max() > _MAX_DIGITS:
        return None
    comma = commas.reshape(n, 5)
    starts = np.concatenate((np.full(1, -1, dtype=np.int64), lines[:-1]))
    n_dsts = comma[:, 3] - comma[:, 2]
    kinds = ends[comma[:, 1]] - 1
    letters = np.flatnonzero(text > ord("9"))
    if (
        not (comma[:, 0] == starts + 1).all()
        or not (comma[:, 4] == lines - 1).all()
        or int((n_dsts - 1).sum()) != np.count_nonzero(what == ord(" "))
        or letters.size != n
        or not (letters == kinds).all()
        or not (lengths[comma[:, 1]] == 1).all()
    ):
        return None
    values = np.fromstring(data.translate(_AS_NUMBERS).decode(), dtype=np.int64, sep=" ")
    n_flits = values[lines]
    if values.max() > MAX_NUMBER or n_flits.min() < 1:
        return None
    is_dst = np.zeros(values.size + 1, dtype=np.int64)
    is_dst[comma[:, 2] + 1] += 1
    is_dst[comma[:, 3] + 1] -= 1
    return Packets(
        number=values[comma[:, 0]],
        multicast=values[comma[:, 1]] == 1,
        src=values[comma[:, 2]],
        inject_cycle=values[comma[:, 4]],
        n_flits=n_flits,
        dst_starts=np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(n_dsts))),
        dsts=values[np.cumsum(is_dst[:-1]) == 1],
    )
