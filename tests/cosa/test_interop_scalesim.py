"""SCALE-Sim's topologies and configurations: every shape they come in, and errors with row and column."""

from __future__ import annotations

import json
import random
from math import ceil
from pathlib import Path

import pytest

from cosa.common.errors import CosaError, InputError
from cosa.interop.scalesim import parse_config, parse_topology, read_topology

HEADER = "Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,"
ROWS = ("Conv1, 224, 230, 7, 5, 3, 64, 2,", "FC, 1, 1, 1, 1, 512, 1000, 1,")
GEMM = ("Layer, M, N, K,", "QKV, 197, 2304, 768,")


@pytest.mark.parametrize(
    "text",
    [
        "\n".join((HEADER, *ROWS)),
        "\n".join((HEADER, *ROWS)) + "\n",
        "\r\n".join((HEADER, *ROWS)) + "\r\n\r\n",
        "\n".join(line.rstrip(",") for line in (HEADER, *ROWS)),
        "\n".join(line.replace(" ", "") for line in (HEADER, *ROWS)),
        "\n".join(line.replace(", ", " ,\t") for line in (HEADER, *ROWS)),
        "\n\n" + "\n,,,,,,,,\n".join((HEADER, *ROWS)),
        "\n".join((HEADER + " Sparsity,", *(row + " 2:4," for row in ROWS))),
        "\n".join(ROWS),
    ],
    ids=["plain", "newline", "crlf", "no comma", "no blanks", "blanks", "empty lines", "sparsity", "no header"],
)
def test_convolutions(text: str) -> None:
    conv, full = parse_topology(text, "t.csv")
    assert (conv.name, conv.R, conv.S, conv.C, conv.K, conv.N) == ("Conv1", 5, 7, 3, 64, 1)
    assert (conv.stride_w, conv.stride_h) == (2, 2)
    # ceil((size - filter + stride) / stride), width along P
    width, height = ceil((230 - 5 + 2) / 2), ceil((224 - 7 + 2) / 2)
    assert conv.bounds["P"] == width
    assert conv.bounds["Q"] == height
    assert len(conv.notes) == 2  # neither axis divides
    assert "Q = 110 by SCALE-Sim's formula; 109 windows of 7" in conv.notes[1]
    assert (full.P, full.Q, full.C, full.K, full.notes) == (1, 1, 512, 1000, ())


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_matrix_products(end: str) -> None:
    (layer,) = parse_topology(end.join(GEMM), "t.csv")
    assert (layer.name, layer.P, layer.K, layer.C, layer.macs) == ("QKV", 197, 2304, 768, 197 * 2304 * 768)


def test_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(("\ufeff" + "\r\n".join((HEADER, *ROWS))).encode())
    assert [layer.name for layer in read_topology(path)] == ["Conv1", "FC"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["no rows"]),
        (HEADER, ["a header but no layer"]),
        ("a, b, c\n1, 2, 3", ["row 1", "not the columns of a topology"]),
        (f"{HEADER}\nA, 8, 8, 3, 3, 1, x, 1,", ["row 2, column Num Filter", "'x'"]),
        (f"{HEADER}\nA, 8, 8, 3, 3, 1, 4.5, 1,", ["row 2, column Num Filter", "4.5"]),
        (f"{HEADER}\n\nA, 8, 8, 3, 3, 0, 4, 1,", ["row 3, column Channels", "'0'"]),
        (f"{HEADER}\nA, 8, 8, 3, 3, 1, 4,", ["row 2, column Strides: empty"]),
        (f"{HEADER}\nA, 8, 8, 3, 3, 1, 4, 1, 7", ["row 2, column 9", "one column too many"]),
        (f"{HEADER}\nA, 8, 2, 3, 3, 1, 4, 1,", ["row 2, column Filter Width", "larger than the input"]),
        (f"{HEADER}\n, 8, 8, 3, 3, 1, 4, 1,", ["row 2, column Layer name: empty"]),
        (f"{GEMM[0]}\nA, 8, , 3", ["row 2, column N: empty"]),
        (f"{GEMM[0]}\nA, 99999999999999999999999, 1, 3", ["row 2, column M", "not a number in range"]),
    ],
)
def test_wrong_rows_are_named(text: str, parts: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        parse_topology(text, "t.csv")
    message = str(caught.value)
    assert message.startswith("t.csv: ")
    assert "\n" not in message
    for part in parts:
        assert part in message


CONFIG = """[general]
run_name = "eyeriss"

[architecture_presets]
ArrayHeight:    12
ArrayWidth:     14
IfmapSramSzkB:  108
FilterSramSzkB: 108.5
OfmapSramSzkB:  108
IfmapOffset:    0
FilterOffset:   10000000
OfmapOffset:    20000000
Bandwidth : 10, 20
Dataflow : WS    ; weight stationary
MemoryBanks: 1

[layout]
IfmapCustomLayout: False

[run_presets]
InterfaceBandwidth: USER
"""


def test_configurations() -> None:
    config = parse_config(CONFIG, "c.cfg")
    assert (config.run_name, config.array_rows, config.array_columns, config.dataflow) == ("eyeriss", 12, 14, "ws")
    assert (config.ifmap_sram_kib, config.filter_sram_kib) == (108, 108.5)
    assert config.bandwidth_words_per_cycle == (10, 20)
    assert config.not_used == ("architecture_presets.memorybanks", "layout.ifmapcustomlayout")
    assert parse_config(CONFIG.replace("USER", "CALC"), "c.cfg").bandwidth_words_per_cycle is None
    old = parse_config(CONFIG.replace("SramSzkB", "SramSz").replace("\n", "\r\n"), "c.cfg")
    assert old.ofmap_sram_kib == 108


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("[architecture_presets]", "[arch_presets]", ["no such section", "architecture_presets"]),
        ("ArrayHeight:    12", "", ["architecture_presets.ArrayHeight", "not given"]),
        ("ArrayHeight:    12", "ArrayHeight: 12.5", ["ArrayHeight", "not a whole number"]),
        ("WS", "rs", ["Dataflow", "unknown dataflow", "os, ws, is"]),
        ("108.5", "lots", ["FilterSramSzkB", "lots"]),
        ("Bandwidth : 10, 20", "", ["Bandwidth", "not given"]),
        ("[general]", "general", ["not a configuration"]),
    ],
)
def test_wrong_configurations_are_named(old: str, new: str, parts: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        parse_config(CONFIG.replace(old, new, 1), "c.cfg")
    for part in parts:
        assert part in str(caught.value)


def test_broken_text_ends_in_one_line() -> None:
    chance = random.Random(1)
    for text, parse in (("\n".join((HEADER, *ROWS)), parse_topology), (CONFIG, parse_config)):
        for _ in range(300):
            at, length = chance.randrange(len(text)), chance.randrange(12)
            broken = (
                text[:at] + chance.choice(["", ",", '"', "\n", "=", "[", "-1", "²", "9" * 30]) + text[at + length :]
            )
            try:
                json.dumps(str(parse(broken, "f")))
            except CosaError as error:
                assert "\n" not in str(error)
