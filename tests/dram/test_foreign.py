"""Other simulators' devices and traces: equal to the native device they were measured as, and refused by key."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dram.cli import main
from dram.config import DramConfig
from dram.devices import load_device
from dram.errors import DramConfigError
from dram.reference_config import reference_config
from dram.traces import read_trace

DATA = Path(__file__).parents[1] / "data" / "dram"

_SECTIONS = {
    "dram_structure": ("bankgroups", "banks_per_group", "rows", "device_width", "BL", "num_dies"),
    "timing": (
        "tCK", "AL", "CL", "CWL", "tCCD_L", "tCCD_S", "tRTRS", "tRTP", "tWTR_L", "tWTR_S", "tWR", "tRP", "tRRD_L",
        "tRRD_S", "tRAS", "tRCD", "tRFC", "tCKE", "tXP", "tREFI", "tFAW", "tPPD", "t32AW", "tRCDRD", "tRCDWR",
    ),
    "system": (
        "channel_size", "channels", "bus_width", "address_mapping", "queue_structure", "row_buf_policy",
        "cmd_queue_size", "trans_queue_size",
    ),
}  # fmt: skip


def ini_of(p: dict[str, Any], protocol: str) -> str:
    """The file that DRAMsim3 parses to these parameters: a word of a column is doubled for HBM there."""
    devices, vdd = p["devices_per_rank"], 1.2
    standby, active = p["pre_stb_energy_inc"] / devices / vdd, p["act_stb_energy_inc"] / devices / vdd
    power = {
        "IDD0": (p["act_energy_inc"] / devices / vdd + active * p["tRAS"] + standby * p["tRP"]) / p["tRC"],
        "IDD2P": p["pre_pd_energy_inc"] / devices / vdd,
        "IDD2N": standby,
        "IDD3N": active,
        "IDD4R": p["read_energy_inc"] / devices / vdd / p["burst_cycle"] + active,
        "IDD4W": p["write_energy_inc"] / devices / vdd / p["burst_cycle"] + active,
        "IDD5AB": p["ref_energy_inc"] / devices / vdd / p["tRFC"] + active,
    }
    columns = p["columns"] // 2 if protocol == "HBM2" else p["columns"]
    lines = ["; a comment", "[power]", f"VDD = {vdd} ; V", *(f"{name} = {value!r}" for name, value in power.items())]
    for section, names in _SECTIONS.items():
        lines += [f"[{section}]", *(f"{name} = {p[name]}" for name in names)]
        if section == "dram_structure":
            lines += [f"protocol = {protocol}", f"columns = {columns} ;"]
    policy = "RANK_LEVEL_STAGGERED" if p["refresh_policy_code"] == 1 else "RANK_LEVEL_SIMULTANEOUS"
    return "\n".join([*lines, f"refresh_policy = {policy}", f"unified_queue = {bool(p['unified_queue'])}", ""])


def same(found: DramConfig, native: DramConfig) -> None:
    assert found.organization == native.organization
    assert found.timing == native.timing
    assert found.controller == native.controller
    places = found.address_map(), native.address_map()
    assert all(places[0].decode(1 << bit) == places[1].decode(1 << bit) for bit in range(40))


DRAMSIM3 = sorted(path.parent for path in (DATA / "dramsim3").glob("*/config.json"))


@pytest.mark.parametrize("folder", DRAMSIM3, ids=lambda folder: folder.name)
def test_dramsim3_files_are_the_devices_measured(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = json.loads((folder / "config.json").read_text())
    native = reference_config(folder)
    path = tmp_path / "mine.ini"
    path.write_text(ini_of(data["parameters"], data["device_file"].split("_")[0]))
    found = load_device(path)
    same(found, native)
    assert found.currents is not None and native.currents is not None and found.name == "mine"
    products = [[value * c.Vdd for name, value in c if name != "Vdd"] for c in (found.currents, native.currents)]
    assert products[0] == pytest.approx(products[1])
    trace = sorted(folder.glob("*.requests.csv.gz"))[0]
    width = str(data["issue_width_per_cycle"])
    assert (
        main(["replay", "--device", str(path), "--trace", str(trace), "--width", width, "-o", str(tmp_path / "o")]) == 0
    )
    with gzip.open(trace, "rt") as file:
        measured = [line.split(",")[:7] for line in file.read().splitlines()]
    served = [line.split(",") for line in (tmp_path / "o").read_text().splitlines()]
    # A few writes stay in DRAMsim3's buffer after the last completion; --config goes on for a while, --device does not.
    assert [row[:5] + row[6:] for row in served] == [row[:5] + row[6:] for row in measured]


RAMULATOR = """
Frontend:
  impl: LoadStoreTrace
  clock_ratio: 8
MemorySystem:
  impl: GenericDRAM
  clock_ratio: 3
  DRAM:
    impl: DDR4
    org: {preset: DDR4_8Gb_x8, channel: 1, rank: 1}
    timing: {preset: DDR4_2400U}
  Controller:
    impl: Generic
    Scheduler: {impl: FRFCFS}
    RefreshManager: {impl: AllBank}
    RowPolicy: {impl: OpenRowPolicy}
    plugins:
  AddrMapper: {impl: RoBaRaCoCh}
"""


def ramulator(tmp_path: Path, *changes: tuple[str, str]) -> DramConfig:
    text = RAMULATOR
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "ram.yaml").write_text(text)
    return load_device(tmp_path / "ram.yaml")


def test_ramulator_files_are_the_devices_measured(tmp_path: Path) -> None:
    same(ramulator(tmp_path), reference_config(DATA / "ramulator2" / "ddr4_2400u_x8_frfcfs_open"))
    two = ramulator(tmp_path, ("channel: 1, rank: 1", "channel: 2, rank: 2"), ("RoBaRaCoCh", "ChRaBaRoCo"))
    assert (two.organization.channels, two.organization.ranks) == (2, 2)
    assert two.address_mapping == "channel:rank:bankgroup:bank:row:column"
    # 4 Gb x16 at 3200 MT/s, one timing in clocks and one in ns (13.75 ns are 22 clocks of 625 ps)
    wide = ramulator(
        tmp_path,
        ("DDR4_8Gb_x8", "DDR4_4Gb_x16"),
        ("{preset: DDR4_2400U}", "{preset: DDR4_3200AC, nRP: 25, nRC: 77, tRCD: 13.75}"),
    )
    t, o = wide.timing, wide.organization
    assert (o.bank_groups, o.banks_per_group, o.rows, o.device_width_bits) == (2, 4, 1 << 15, 16)
    assert (t.CL, t.tRP, t.tRCD, t.tRC, t.tRRD_S, t.tRRD_L, t.tFAW) == (24, 25, 22, 77, 9, 11, 48)
    assert (t.tRFC, t.tREFI, t.tCK_ps, t.CWL, t.tCCD_L) == (416, 12480, 625, 16, 8)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            [("OpenRowPolicy}", "ClosedRowPolicy}")],
            "MemorySystem.Controller.RowPolicy.impl: not modelled (found 'Closed",
        ),
        ([("impl: DDR4", "impl: DDR5")], "MemorySystem.DRAM.impl: not modelled (found 'DDR5'); allowed: DDR4"),
        ([("RoBaRaCoCh", "MOP4CLXOR")], "MemorySystem.AddrMapper.impl: not modelled (found 'MOP4CLXOR')"),
        ([("rank: 1}", "rnk: 1}")], "MemorySystem.DRAM.org.rnk: unknown key; allowed: channel, rank"),
        ([("DDR4_2400U", "DDR4_2400Q")], "DRAM.timing.preset: not modelled (found 'DDR4_2400Q'); allowed: DDR4_1600J"),
        ([("{preset: DDR4_2400U}", "{rate: 2400}")], "DRAM.timing.nBL: missing; allowed: nBL in clocks or tBL in ns"),
        ([("{preset: DDR4_2400U}", "{preset: DDR4_2400U, rate: 3200}")], "timing.rate: not together with a preset"),
        ([("rank: 1}", "rank: 1, row: 1024}")], "org.density: not that of the organization, 128 Mb (found 8192)"),
        ([("plugins:", "plugins: [{ControllerPlugin: {impl: TraceRecorder}}]")], "Controller.plugins: not modelled"),
    ],
)
def test_what_ramulator_files_say_besides_is_refused(
    changes: list[tuple[str, str]], expected: str, tmp_path: Path
) -> None:
    with pytest.raises(DramConfigError) as error:
        ramulator(tmp_path, *changes)
    assert expected in str(error.value)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("tRP = 17", "tRPx = 17"), "timing.tRPx: unknown key; allowed: tCK"),
        (("tRP = 17", "tRP = soon"), "timing.tRP: not a whole number (found 'soon')"),
        (("rochrababgco", "rochrababg"), "system.address_mapping: not six fields (found 'rochrababg')"),
        (("RANK_LEVEL_STAGGERED", "BANK_LEVEL_STAGGERED"), "system.refresh_policy: not modelled"),
        (("protocol = DDR4", "protocol = HMC"), "dram_structure.protocol: not modelled (found 'HMC'); allowed: DDR3"),
        (("[system]", "[sytem]"), "unknown section (found [sytem])"),
        (
            ("unified_queue = False", "enable_self_refresh = true"),
            "system.enable_self_refresh: not modelled (found True)",
        ),
        (("tCK = 0.83", "tCK = 0.83\ntCK = 1"), "not a configuration"),
        (("tCCD_S = 4", "tCCD_S = 9"), "tCCD_L = 6 is shorter than tCCD_S = 9"),
    ],
)
def test_what_dramsim3_files_say_besides_is_refused(change: tuple[str, str], expected: str, tmp_path: Path) -> None:
    data = json.loads((DATA / "dramsim3" / "ddr4_2400_x8_open_rochrababgco" / "config.json").read_text())
    text = ini_of(data["parameters"], "DDR4")
    assert change[0] in text
    (tmp_path / "d.ini").write_text(text.replace(*change))
    with pytest.raises(DramConfigError) as error:
        load_device(tmp_path / "d.ini")
    assert expected in str(error.value)


def test_a_device_file_without_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    config = load_device("ddr3_1333_x4")
    Path("mydev").write_text(config.model_dump_json())
    assert load_device("mydev") == config
    # A packaged name is the packaged device, whatever lies in the folder.
    Path("ddr4_2400_x8").write_text("nonsense")
    assert load_device("ddr4_2400_x8").name == "ddr4_2400_x8"
    Path("part.ini").write_text(
        "[dram_structure]\nprotocol = DDR4\nbankgroups = 4\nbanks_per_group = 4\n[timing]\ntCK = 1\n"
    )
    Path("t.txt").write_text("LD 0x0\n")
    assert main(["replay", "--device", "part.ini", "--trace", "t.txt"]) == 0
    notes = capsys.readouterr().err.splitlines()
    assert notes[0].startswith("note: part.ini: DRAMsim3's defaults: CL, CWL, tCCD_L") and "8192 MiB" in notes[1]


def rows(tmp_path: Path, text: str, name: str = "t.trace", config: DramConfig | None = None) -> list[tuple[int, ...]]:
    path = tmp_path / name
    path.write_text(text)
    parts = list(read_trace(path, config))
    columns = [np.concatenate([getattr(part, column) for part in parts]) for column in ("cycles", "ops", "addresses")]
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_traces_of_other_simulators(tmp_path: Path) -> None:
    expected = [(5, 0, 0x1000), (9, 1, 0x2040)]
    k6 = "0x1000 P_MEM_RD 5\n0x2040 P_MEM_WR 9\n0x3000 P_FETCH 9\n3000 P_LOCK_WR 10\n0xAB BOFF 10\n"
    assert rows(tmp_path, k6) == [*expected, (9, 0, 0x3000), (10, 0, 0x3000), (10, 1, 0xAB)]
    assert rows(tmp_path, "0x1000 IFETCH 5\n0x2040 WRITE 9\n") == expected
    assert rows(tmp_path, "0x1000 R\n0x2040 W\n") == [(0, 0, 0x1000), (0, 1, 0x2040)]
    stl = "# DRAMSys\n5: read 0x1000\n9:\t(64)\twrite\t2040\t0xabcdef\n"
    config = load_device("ddr4_2400_x8")
    assert rows(tmp_path, stl, "t.stl", config) == expected
    with pytest.raises(DramConfigError, match=r"a request of 32 bytes .*; allowed: 64 bytes, one burst of the device"):
        rows(tmp_path, "5: (32) read 0x0\n", "t.stl", config)
    with pytest.raises(DramConfigError, match="from one request to the next"):
        rows(tmp_path, stl, "t.rstl", config)


def test_address_vectors_name_the_levels_of_the_device(tmp_path: Path) -> None:
    grouped, plain = load_device("ddr4_2400_x8"), load_device("ddr3_1333_x4")
    found = rows(tmp_path, "R 0,0,1,2,100,4\nW 0,0,3,0,0,0\n", config=grouped)
    at = grouped.address_map().decode
    assert [(op, at(address)) for _, op, address in found] == [
        (0, {"channel": 0, "rank": 0, "bankgroup": 1, "bank": 2, "row": 100, "column": 4}),
        (1, {"channel": 0, "rank": 0, "bankgroup": 3, "bank": 0, "row": 0, "column": 0}),
    ]
    ((_, _, address),) = rows(tmp_path, "R 0,1,7,100,4\n", config=plain)
    assert plain.address_map().decode(address)["bank"] == 7
    for text, expected in (
        ("R 140736775976056,140736775976056\n", r"an address vector of 2 levels .*allowed: 6 levels of this device"),
        ("R 0,0,4,0,0,0\n", "bankgroup 4 in an address vector .*allowed: 0 to 3"),
        ("R 0,0,x,0,0,0\n", "bankgroup is not a whole number"),
    ):
        with pytest.raises(DramConfigError, match=expected):
            rows(tmp_path, text, config=grouped)


def test_hexadecimal_beside_decimal_is_refused(tmp_path: Path) -> None:
    assert rows(tmp_path, "R ff0\nR 0\nR 8\nR 0x10\n") == [(0, 0, 0xFF0), (0, 0, 0), (0, 0, 8), (0, 0, 16)]
    assert rows(tmp_path, "R 4096\nR 0xff0\n") == [(0, 0, 4096), (0, 0, 0xFF0)]
    for text in ("R ff0\nR 4096\n", "R 4096\nR ff0\n", "op,addr\nR,ff0\nR,10\n"):
        with pytest.raises(
            DramConfigError, match=r"line [23]: .* beside .*; allowed: 0x before all hexadecimal addresses"
        ):
            rows(tmp_path, text)


def test_addresses_beyond_the_capacity_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "t.txt"
    trace.write_text("R 0x0 0\nR 0x200000000 1000\nR 0x7ffde0689818 2000\nR 0x1ffffffff 3000\n")
    assert main(["replay", "--device", "ddr4_2400_x8", "--trace", str(trace), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["requests_beyond_capacity"] == 2 and json.loads(out)["capacity_bytes"] == 8 << 30
    assert err == (
        f"warning: {trace}: 2 of 4 requests are beyond the capacity of 8 GiB (addresses below 0x200000000); they wrap: "
        "the first one, 0x200000000, is 0x0\n"
    )
    assert main(["devices"]) == 0
    assert "8 GiB" in capsys.readouterr().out
    assert main(["devices", "ddr4_2400_x8"]) == 0
    assert "capacity: 8 GiB (8,589,934,592 bytes)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("% source target pir\n0 5 0.02\n", "a Noxim traffic table, which is not read"),
        ("topology = mesh;\nk = 4;\n", "a BookSim configuration, which `nocsim traffic --booksim FILE` reads"),
        ("Network n {\nLayer A {\nType: CONV\n}\n}\n", "a MAESTRO model, which is not read"),
        ("- id: 0\n  operator_type: Conv\n  loop_dims: [B]\n", "a ZigZag workload, which is not read"),
        ("NUM_BANKS=8\ntRCD=10\n", "a DRAMSim2 device file, which is not read"),
    ],
)
def test_other_files_are_named(text: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    (tmp_path / "t").write_text("LD 0x0\n")
    for arguments in (("--device", path, "--trace", tmp_path / "t"), ("--device", "ddr4_2400_x8", "--trace", path)):
        assert main(["replay", *map(str, arguments)]) == 2
        assert f"error: {path}: this is {name}; allowed: " in capsys.readouterr().err
    assert main(["replay", "--device", str(tmp_path / "t"), "--trace", str(tmp_path / "t")]) == 2
    assert "this is a request trace of a DRAM, which `dram replay --trace FILE` reads" in capsys.readouterr().err
