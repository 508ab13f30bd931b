"""SCALE-Sim's files: the topology CSV (convolutions or matrix products, one a row) and the configuration."""

from __future__ import annotations

import configparser
import csv
import re
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
_COMMENT = re.compile(r"\s*(#|//).*")


@dataclass(frozen=True)
class Row:
    """One row of a topology: its number in the file, its layer's name, its numbers in the order of the columns."""

    number: int
    name: str
    values: tuple[int, ...]
    batch: int = 1


def read_topology(path: str | Path) -> tuple[Layer, ...]:
    """Layers of a topology file.

    A trailing comma, a column of sparsity, CRLF, a byte order mark, blanks, empty lines, comments (``#`` or ``//``), a
    row of one name (the network's) before the layers, and tabs in place of commas do not matter. SCALE-Sim gives the
    size of the input; the outputs follow by its own formula, ceil((input - filter + stride) / stride), which is one
    more than the whole windows where they do not divide (a note at the layer says so).

    A layer of convolution with ``DP`` in its name is depthwise, as SCALE-Sim has it: each channel is a layer of its own
    with Num Filter filters, here a group. A column Batch Size is the batch.

    Raises
    ------
    InputError: with row and column.
    """
    return parse_topology(read_text(path), str(path))


def parse_topology(text: str, source: str) -> tuple[Layer, ...]:
    """As `read_topology`, from text."""
    lines = [_COMMENT.sub("", line) for line in text.splitlines()]
    tabs = "\t" in next((line.strip() for line in lines if line.strip()), "")
    rows = [
        (number, [cell.strip(" \t,") if tabs else cell.strip() for cell in cells])
        for number, cells in enumerate(csv.reader(lines, delimiter="\t" if tabs else ","), start=1)
        if any(cell.strip() for cell in cells)
    ]
    if not rows:
        raise InputError("no rows", source=source, allowed="a header and one row a layer")
    kind = _kind(rows[0][1], source)
    heading = [] if _is_data(rows[0][1]) else rows[0][1]
    body = rows[1:] if heading else rows
    while body and len(_filled(body[0][1])) == 1:  # another heading: the network's name
        body = body[1:]
    if not body:
        raise InputError("a header but no layer", source=source, allowed="one row a layer")
    columns = CONV_COLUMNS if kind == "conv" else GEMM_COLUMNS
    make = _conv_layer if kind == "conv" else _gemm_layer
    further = _further(heading, columns, source)
    return tuple(make(_row(number, cells, columns, further, source), source) for number, cells in body)


def is_topology(text: str) -> bool:
    """Whether a text looks like a topology."""
    first = next((line for line in text.splitlines() if line.strip(" ,\t")), "")
    cells = [cell.strip() for cell in first.split("\t" if "\t" in first else ",")]
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


def _further(heading: Sequence[str], columns: Sequence[str], source: str) -> tuple[str, ...]:
    """What the columns after the usual ones are, by the heading: batch or sparsity."""
    found: list[str] = []
    for cell in _filled(heading)[1 + len(columns) :]:
        name = cell.lower().replace(" ", "").replace("_", "")
        kind = "batch" if name in ("batch", "batchsize", "n") else "sparsity" if name.startswith("spars") else None
        if kind is None or kind in found:
            allowed = f"{', '.join(columns)}, then Batch Size, Sparsity"
            raise InputError("row 1: unknown column", source=source, value=cell, allowed=allowed)
        found.append(kind)
    return tuple(found)


def _row(number: int, cells: Sequence[str], columns: Sequence[str], further: Sequence[str], source: str) -> Row:
    used = _filled(cells)
    if not used[0]:
        raise InputError(f"row {number}, column Layer name: empty", source=source, allowed="a name")
    values = []
    cells = [*used[1:], *[""] * len(columns)]
    for column, cell in zip(columns, cells, strict=False):
        values.append(_count(cell, f"row {number}, column {column}", source))
    rest = used[1 + len(columns) :]
    batch = 1
    # Besides the batch, one column may follow: how sparse the filter is (2:4), which does not change the dense layer.
    for place, cell in enumerate(rest):
        kind = further[place] if place < len(further) else "sparsity" if place == len(further) else ""
        if kind == "batch":
            batch = _count(cell, f"row {number}, column Batch Size", source)
        elif kind != "sparsity" or ":" not in cell:
            message = f"row {number}, column {len(columns) + 2 + place}: one column too many"
            allowed = f"{len(columns) + 1} columns, sparsity as 2:4, and a batch under the heading Batch Size"
            raise InputError(message, source=source, value=cell, allowed=allowed)
    return Row(number, used[0], tuple(values), batch)


def _count(cell: str, place: str, source: str) -> int:
    if not cell:
        raise InputError(f"{place}: empty", source=source, allowed="a whole number >= 1")
    if not (cell.isascii() and cell.isdecimal()) or not 1 <= int(cell[:20]) <= MAX_CELL:
        allowed = f"a whole number from 1 to {MAX_CELL}"
        raise InputError(f"{place}: not a number in range", source=source, value=cell, allowed=allowed)
    return int(cell)


def _conv_layer(row: Row, source: str) -> Layer:
    height, width, filter_height, filter_width, channels, filters, stride = row.values
    depthwise = "DP" in row.name
    notes = [f"depthwise, by DP in its name: {channels} groups of 1 -> {filters}"] if depthwise else []
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
        "C": 1 if depthwise else channels,
        "K": filters,
        "G": channels if depthwise else 1,
        "N": row.batch,
        "stride_w": stride,
        "stride_h": stride,
        "notes": notes,
    }
    return Layer.from_data(data, source=f"{source}: row {row.number}")


def _gemm_layer(row: Row, source: str) -> Layer:
    """M rows, N columns, K terms of each sum: P carries the rows."""
    m, n, k = row.values
    data = {"name": row.name[:200], "R": 1, "S": 1, "P": m, "Q": 1, "C": k, "K": n, "N": row.batch}
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
