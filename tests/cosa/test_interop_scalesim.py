"""SCALE-Sim's topologies and configurations: every shape they come in, and errors with row and column."""

from __future__ import annotations

import json
import random
from math import ceil
from pathlib import Path

import pytest

from cosa.analytical.evaluation import evaluate
from cosa.common.errors import CosaError, InputError
from cosa.interop.convert import converted, read_inputs
from cosa.interop.scalesim import parse_config, parse_topology, read_topology
from cosa.model.arch import Architecture
from cosa.model.schedule import Loop, ScheduleLevel

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


CONV = "Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,"


def test_dp_in_a_name_is_depthwise() -> None:
    full, depthwise, several = parse_topology(
        f"{CONV}\nConv1, 14, 14, 3, 3, 3, 8, 1,\nDP_conv2, 12, 12, 3, 3, 8, 1, 1,\nMyDP, 12, 12, 3, 3, 8, 2, 1,\n", "t"
    )
    assert (full.G, full.C, full.K) == (1, 3, 8)
    assert (depthwise.G, depthwise.C, depthwise.K, depthwise.P * depthwise.Q) == (8, 1, 1, 100)
    assert depthwise.G * depthwise.K * depthwise.P * depthwise.Q == 800 and depthwise.macs == 800 * 9
    assert depthwise.notes[0] == "depthwise, by DP in its name: 8 groups of 1 -> 1"
    assert (several.G, several.C, several.K) == (8, 1, 2)
    (lower,) = parse_topology(f"{CONV}\ndp_conv2, 12, 12, 3, 3, 8, 1, 1,\n", "t")
    assert lower.G == 1, "SCALE-Sim looks for capitals"
    (product,) = parse_topology("Layer, M, N, K,\nDP, 2, 3, 4,\n", "t")
    assert product.G == 1


def test_topologies_as_people_write_them() -> None:
    row = "C1, 19, 21, 3, 5, 17, 256, 2,"
    (plain,) = parse_topology(f"{CONV}\n{row}\n", "t")
    assert (plain.P, plain.Q) == (9, 9)
    for text in (
        f"{CONV}\n\nMyNet,\n{row}\n",
        f"# of the paper\n{CONV} # header\n{row} // first, of one\n",
        f"{CONV}\n{row}\n".replace(", ", "\t").replace(",", "\t"),
        f"{CONV} Sparsity,\n{row} 2:4,\n",
        f"{CONV} Batch Size,\n{row} 1,\n",
        row,
    ):
        assert parse_topology(text, "t") == (plain,), text
    (batched,) = parse_topology("Layer, M, N, K, Sparsity, batch_size\nfc, 1, 72, 256, 2:4, 4\n", "t")
    assert (batched.N, batched.K, batched.C) == (4, 72, 256)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{CONV} Bias,\nC1, 9, 9, 3, 3, 3, 8, 1, 4,\n", "row 1: unknown column (found 'Bias')"),
        (f"{CONV}\nC1, 9, 9, 3, 3, 3, 8, 1, 4,\n", "row 2, column 9: one column too many (found '4')"),
        (f"{CONV} Batch Size,\nC1, 9, 9, 3, 3, 3, 8, 1, 0,\n", "row 2, column Batch Size: not a number in range"),
        (f"{CONV}\nC1, 9, 9, 3, 3, 3, 8, 1,\nC2,\n", "row 3, column IFMAP Height: empty"),
    ],
)
def test_other_columns_are_refused(text: str, expected: str) -> None:
    with pytest.raises(InputError) as error:
        parse_topology(text, "t")
    assert expected in str(error.value)


CFG = """[general]
run_name = small_os
[architecture_presets]
ArrayHeight:    4
ArrayWidth:     8
IfmapSramSzkB:   16
FilterSramSzkB:  32
OfmapSramSzkB:   8
Bandwidth : 10
Dataflow : ws
[run_presets]
InterfaceBandwidth: USER
"""


def architecture(tmp_path: Path, *changes: tuple[str, str]) -> tuple[Architecture, list[str]]:
    text = CFG
    for change in changes:
        text = text.replace(*change)
    (tmp_path / "a.cfg").write_text(text)
    inputs = read_inputs([str(tmp_path / "a.cfg")])
    made = converted(inputs, "architecture")
    assert isinstance(made, Architecture)
    return made, inputs.notes


def test_a_configuration_is_an_architecture(tmp_path: Path) -> None:
    arch, _ = architecture(tmp_path)
    levels = {level.name: level for level in arch.levels}
    assert [(level.name, level.keeps) for level in arch.levels] == [
        ("Registers", ("weights",)), ("OfmapSram", ("outputs",)), ("FilterSram", ("weights",)),
        ("IfmapSram", ("inputs",)), ("DRAM", ("weights", "inputs", "outputs")),
    ]  # fmt: skip
    assert [levels[f"{name}Sram"].capacity_words for name in ("Ofmap", "Filter", "Ifmap")] == [8192, 32768, 16384]
    assert arch.fanout(1) == (8, 4), "columns along x, rows along y"
    assert arch.shared_halves and levels["IfmapSram"].buffers == 2
    assert levels["DRAM"].read_bandwidth_words_per_cycle == levels["DRAM"].write_bandwidth_words_per_cycle == 10
    arch, notes = architecture(tmp_path, ("USER", "CALC"), (": ws", ": os"))
    assert arch.levels[0].keeps == ("outputs",) and arch.levels[-1].read_bandwidth_words_per_cycle is None
    assert "InterfaceBandwidth is CALC" in notes[0]
    with pytest.raises(InputError, match=r"Bandwidth: bandwidths of parts \(found \[4.0, 10.0\]\)"):
        architecture(tmp_path, (": 10", ": 10, 4"))
    with pytest.raises(InputError, match="OfmapSramSzkB: no room for two halves"):
        architecture(tmp_path, ("OfmapSramSzkB:   8", "OfmapSramSzkB: 0"))


def test_a_layer_on_that_array(tmp_path: Path) -> None:
    """256 -> 72: weights and inputs cross once at 10 words a cycle, 72 outputs leave once."""
    arch, _ = architecture(tmp_path, ("ArrayHeight:    4", "ArrayHeight: 8"))
    (layer,) = parse_topology("Layer, M, N, K,\nfc, 1, 72, 256,\n", "t")
    loops: dict[str, list[Loop]] = {
        "DRAM": [Loop(dim="C", bound=32)],
        "OfmapSram": [
            Loop(dim="K", bound=9),
            Loop(dim="K", bound=8, kind="spatial", axis="x"),
            Loop(dim="C", bound=8, kind="spatial", axis="y"),
        ],
    }
    nest = tuple(
        ScheduleLevel(level=level.name, keeps=level.keeps, loops=tuple(loops.get(level.name, [])))
        for level in arch.levels[::-1]
    )
    found = evaluate(layer, arch, nest)
    assert found.cycles == 1869 == -(-(18_432 + 256) // 10)
    (dram,) = (level for level in found.levels if level.name == "DRAM")
    counts = dram.tensors
    assert (counts["weights"].reads, counts["inputs"].reads, counts["outputs"].updates) == (18_432, 256, 72)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("net.m", "Network n {\nLayer A {\nType: CONV\n}\n}\n", "a MAESTRO model, which is not read"),
        ("zig.yaml", "- id: 0\n  operator_type: Conv\n  loop_dims: [B]\n", "a ZigZag workload, which is not read"),
        ("f.noxim", "% source target pir\n0 5 0.02\n", "a Noxim traffic table, which is not read"),
        ("m.booksim", "topology = mesh;\n", "a BookSim configuration, which `nocsim traffic --booksim FILE` reads"),
        ("d.ini", "[dram_structure]\nBL = 8\n", "a DRAMsim3 configuration, which `dram replay --device FILE` reads"),
        ("r.yaml", "MemorySystem:\n  DRAM:\n    impl: DDR4\n", "a Ramulator 2 configuration, which `dram replay"),
        ("t.txt", "LD 0x0\n", "a request trace of a DRAM, which `dram replay --trace FILE` reads"),
        ("p.csv", "packet,kind,src,dsts,inject_cycle,n_flits\n", "a packets file, which `nocsim replay-packets FILE`"),
    ],
)
def test_files_of_other_tools_are_named(name: str, text: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as error:
        read_inputs([str(tmp_path / name)])
    assert str(error.value).startswith(f"{tmp_path / name}: this is {expected}")
