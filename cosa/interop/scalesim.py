"""SCALE-Sim's files: the topology CSV (convolutions or matrix products, one a row) and the configuration."""

from __future__ import annotations

import configparser
import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cosa.common.errors import InputError, nearest_of
from cosa.common.files import read_text
from cosa.model.layer import Layer

CONV_COLUMNS = (
    "IFMAP Height",
    "IFMAP Width",
    "Filter Height",
    "Filter Width",
    "Channels",
    "Num Filter",
    "Strides",
)
GEMM_COLUMNS = ("M", "N", "K")
MAX_CELL = 2**24


@dataclass(frozen=True)
class Row:
    """One row of a topology: its number in the file, its layer's name, its numbers in the order of the columns."""

    number: int
    name: str
    values: tuple[int, ...]


def read_topology(path: str | Path) -> tuple[Layer, ...]:
    """Layers of a topology file.

    A trailing comma, a column of sparsity, CRLF, a byte order mark, blanks and empty lines do not matter. SCALE-Sim
    gives the size of the input; the outputs follow by its own formula, ceil((input - filter + stride) / stride), which
    is one more than the whole windows where they do not divide (a note at the layer says so).

    Raises
    ------
    InputError: with row and column.
    """
    return parse_topology(read_text(path), str(path))


def parse_topology(text: str, source: str) -> tuple[Layer, ...]:
    """As `read_topology`, from text."""
    rows = [
        (number, [cell.strip() for cell in cells])
        for number, cells in enumerate(csv.reader(text.splitlines()), start=1)
        if any(cell.strip() for cell in cells)
    ]
    if not rows:
        raise InputError("no rows", source=source, allowed="a header and one row a layer")
    kind = _kind(rows[0][1], source)
    body = rows if _is_data(rows[0][1]) else rows[1:]
    if not body:
        raise InputError("a header but no layer", source=source, allowed="one row a layer")
    columns = CONV_COLUMNS if kind == "conv" else GEMM_COLUMNS
    make = _conv_layer if kind == "conv" else _gemm_layer
    return tuple(make(_row(number, cells, columns, source), source) for number, cells in body)


def is_topology(text: str) -> bool:
    """Whether a text looks like a topology."""
    first = next((line for line in text.splitlines() if line.strip(" ,\t")), "")
    cells = [cell.strip() for cell in first.split(",")]
    return len(cells) >= 4 and (cells[0].lower().startswith("layer") or _is_data(cells))


def _is_data(cells: Sequence[str]) -> bool:
    return len(cells) > 1 and cells[1].isdecimal()


def _filled(cells: Sequence[str]) -> list[str]:
    """Cells without the empty ones at the end (a trailing comma makes one)."""
    used = list(cells)
    while used and not used[-1]:
        used.pop()
    return used


def _kind(header: Sequence[str], source: str) -> Literal["conv", "gemm"]:
    cells = _filled(header)
    if not _is_data(cells):
        names = [cell.lower().replace(" ", "") for cell in cells[1:4]]
        if names == ["m", "n", "k"]:
            return "gemm"
        if len(cells) >= 8:
            return "conv"
    elif len(cells) in (4, 5):
        return "gemm"
    elif len(cells) >= 8:
        return "conv"
    allowed = f"Layer name, {', '.join(CONV_COLUMNS)}; or Layer, {', '.join(GEMM_COLUMNS)}"
    raise InputError("row 1: not the columns of a topology", source=source, value=",".join(cells), allowed=allowed)


def _row(number: int, cells: Sequence[str], columns: Sequence[str], source: str) -> Row:
    used = _filled(cells)
    if not used[0]:
        raise InputError(f"row {number}, column Layer name: empty", source=source, allowed="a name")
    values = []
    for column, cell in zip(columns, [*used[1:], *[""] * len(columns)], strict=False):
        place = f"row {number}, column {column}"
        if not cell:
            raise InputError(f"{place}: empty", source=source, allowed="a whole number >= 1")
        if not (cell.isascii() and cell.isdecimal()) or not 1 <= int(cell[:20]) <= MAX_CELL:
            allowed = f"a whole number from 1 to {MAX_CELL}"
            raise InputError(f"{place}: not a number in range", source=source, value=cell, allowed=allowed)
        values.append(int(cell))
    rest = used[1 + len(columns) :]
    # One column may follow: how sparse the filter is (2:4), which does not change the dense layer.
    if len(rest) > 1 or any(":" not in cell for cell in rest):
        message = f"row {number}, column {len(columns) + 2}: one column too many"
        raise InputError(
            message, source=source, value=rest[0], allowed=f"{len(columns) + 1} columns, and sparsity as 2:4"
        )
    return Row(number, used[0], tuple(values))


def _conv_layer(row: Row, source: str) -> Layer:
    height, width, filter_height, filter_width, channels, filters, stride = row.values
    notes = []
    extents = {}
    for axis, size, taps, column in (("P", width, filter_width, "Width"), ("Q", height, filter_height, "Height")):
        if taps > size:
            message = f"row {row.number}, column Filter {column}: larger than the input"
            raise InputError(message, source=source, value=taps, allowed=f"at most {size}")
        extents[axis] = -(-(size - taps + stride) // stride)
        if (size - taps) % stride:
            notes.append(
                f"{axis} = {extents[axis]} by SCALE-Sim's formula; {extents[axis] - 1} windows of {taps} with stride "
                f"{stride} lie inside an input of {size}"
            )
    data = {
        "name": row.name[:200],
        "R": filter_width,
        "S": filter_height,
        **extents,
        "C": channels,
        "K": filters,
        "N": 1,
        "stride_w": stride,
        "stride_h": stride,
        "notes": notes,
    }
    return Layer.from_data(data, source=f"{source}: row {row.number}")


def _gemm_layer(row: Row, source: str) -> Layer:
    """M rows, N columns, K terms of each sum: P carries the rows."""
    m, n, k = row.values
    data = {"name": row.name[:200], "R": 1, "S": 1, "P": m, "Q": 1, "C": k, "K": n, "N": 1}
    return Layer.from_data(data, source=f"{source}: row {row.number}")


@dataclass(frozen=True)
class ScaleSimConfig:
    """Facts of a configuration. SRAM sizes in KiB; bandwidths in words a cycle, None where the tool computes them."""

    run_name: str
    array_rows: int
    array_columns: int
    ifmap_sram_kib: float
    filter_sram_kib: float
    ofmap_sram_kib: float
    dataflow: Literal["os", "ws", "is"]
    ifmap_offset: int = 0
    filter_offset: int = 10_000_000
    ofmap_offset: int = 20_000_000
    bandwidth_words_per_cycle: tuple[float, ...] | None = None
    not_used: tuple[str, ...] = ()


_REQUIRED = {
    "arrayheight": "ArrayHeight",
    "arraywidth": "ArrayWidth",
    "ifmapsramszkb": "IfmapSramSzkB",
    "filtersramszkb": "FilterSramSzkB",
    "ofmapsramszkb": "OfmapSramSzkB",
    "dataflow": "Dataflow",
}
_OFFSETS = {"ifmapoffset": "IfmapOffset", "filteroffset": "FilterOffset", "ofmapoffset": "OfmapOffset"}
_PRESETS = "architecture_presets"


def read_config(path: str | Path) -> ScaleSimConfig:
    """Facts of a configuration file.

    Raises
    ------
    InputError: with section and key.
    """
    return parse_config(read_text(path), str(path))


def parse_config(text: str, source: str) -> ScaleSimConfig:
    """As `read_config`, from text."""
    parser = configparser.ConfigParser(interpolation=None, inline_comment_prefixes=("#", ";"))
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise InputError(f"not a configuration: {' '.join(str(error).split())}", source=source) from None
    if not parser.has_section(_PRESETS):
        nearest = nearest_of(_PRESETS, parser.sections())
        raise InputError("no such section", source=source, path=_PRESETS, allowed=f"[{_PRESETS}]", nearest=nearest)
    entries = dict(parser.items(_PRESETS))
    # Before version 2 the keys had no unit in their name; it was the same.
    for old in ("ifmapsramsz", "filtersramsz", "ofmapsramsz"):
        if old in entries:
            entries.setdefault(f"{old}kb", entries.pop(old))
    for key, written in _REQUIRED.items():
        if not entries.get(key, "").strip():
            nearest = nearest_of(key, sorted(entries))
            raise InputError("not given", source=source, path=f"{_PRESETS}.{written}", nearest=nearest)
    dataflow = entries["dataflow"].strip().lower()
    if dataflow not in ("os", "ws", "is"):
        path = f"{_PRESETS}.Dataflow"
        raise InputError("unknown dataflow", source=source, path=path, value=dataflow, allowed="os, ws, is")
    numbers = {key: _number(entries[key], written, source) for key, written in _REQUIRED.items() if key != "dataflow"}
    for key in ("arrayheight", "arraywidth"):
        if numbers[key] < 1 or not numbers[key].is_integer():
            path = f"{_PRESETS}.{_REQUIRED[key]}"
            raise InputError("not a whole number", source=source, path=path, value=entries[key], allowed=">= 1")
    offsets = {
        key: int(_number(entries[key], written, source)) for key, written in _OFFSETS.items() if entries.get(key)
    }
    calculated = parser.get("run_presets", "interfacebandwidth", fallback="CALC").strip().upper() == "CALC"
    bandwidth = None
    if not calculated:
        if not entries.get("bandwidth", "").strip():
            raise InputError("not given", source=source, path=f"{_PRESETS}.Bandwidth", allowed="words a cycle")
        bandwidth = tuple(_number(cell, "Bandwidth", source) for cell in entries["bandwidth"].split(","))
    known = {*_REQUIRED, *_OFFSETS, "bandwidth"}
    others = [f"{section}.{key}" for section in parser.sections() if section != _PRESETS for key in parser[section]]
    used = ("general.run_name", "run_presets.interfacebandwidth")
    rest = [f"{_PRESETS}.{key}" for key in entries if key not in known] + [key for key in others if key not in used]
    return ScaleSimConfig(
        run_name=parser.get("general", "run_name", fallback="").strip().strip("\"'"),
        array_rows=int(numbers["arrayheight"]),
        array_columns=int(numbers["arraywidth"]),
        ifmap_sram_kib=numbers["ifmapsramszkb"],
        filter_sram_kib=numbers["filtersramszkb"],
        ofmap_sram_kib=numbers["ofmapsramszkb"],
        dataflow=dataflow,  # type: ignore[arg-type]
        ifmap_offset=offsets.get("ifmapoffset", 0),
        filter_offset=offsets.get("filteroffset", 10_000_000),
        ofmap_offset=offsets.get("ofmapoffset", 20_000_000),
        bandwidth_words_per_cycle=bandwidth,
        not_used=tuple(rest),
    )


def is_config(text: str) -> bool:
    """Whether a text looks like a configuration."""
    return any(line.strip().lower() == f"[{_PRESETS}]" for line in text.splitlines())


def _number(text: str, key: str, source: str) -> float:
    try:
        value = float(text.strip())
    except ValueError:
        value = -1
    if not 0 <= value < 2**53:
        path = f"{_PRESETS}.{key}"
        raise InputError("not a number in range", source=source, path=path, value=text.strip(), allowed="a number >= 0")
    return value
