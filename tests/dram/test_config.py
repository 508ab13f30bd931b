"""Device files and their errors: file, field path, value, what is allowed."""

import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from dram.address_map import FIELDS, SCHEMES, resolve_mapping
from dram.devices import device_names, load_device, parse_device
from dram.errors import DramConfigError


def device(name: str = "ddr2_667_x8") -> dict[str, Any]:
    data = yaml.safe_load((files("arch_configs") / "dram" / f"{name}.yaml").read_text())
    assert isinstance(data, dict)
    return data


@pytest.mark.parametrize("name", device_names())
def test_every_packaged_device_loads_and_every_parameter_has_a_comment(name: str) -> None:
    assert load_device(name).name == name
    text = (files("arch_configs") / "dram" / f"{name}.yaml").read_text()
    section = text[text.index("timing:") : text.index("address_mapping")]
    for line in section.splitlines()[1:]:
        if line.startswith("  ") and "Vdd" not in line:
            assert "#" in line, line


def test_device_from_a_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(device()))
    assert load_device(path) == load_device("ddr2_667_x8")


def error_of(data: object) -> str:
    with pytest.raises(DramConfigError) as caught:
        parse_device(data, "mine.yaml")
    return str(caught.value)


def test_unknown_device_names_the_nearest() -> None:
    with pytest.raises(DramConfigError, match=r"did you mean ddr2_667_x8\?.*ddr4_2400_x8"):
        load_device("ddr2_667")


def test_misspelt_parameter() -> None:
    data = device()
    data["timing"]["tRDC"] = data["timing"].pop("tRCD")
    text = error_of(data)
    assert "mine.yaml: timing.tRCD: missing" in text
    assert "mine.yaml: timing.tRDC: unknown parameter (value 4); did you mean tRCD? allowed: AL, BL," in text


def test_misspelt_controller_parameter_and_policy() -> None:
    data = device()
    data["controller"]["page_policy"] = "open"
    assert "mine.yaml: controller.page_policy: unknown parameter (value 'open')" in error_of(data)
    data["controller"] = {"policy": "dramsim"}
    assert "mine.yaml: controller.policy: 'dramsim' unknown; allowed: 'dramsim2', 'dramsim3', 'frfcfs'" in error_of(
        data
    )


@pytest.mark.parametrize(
    ("section", "field", "value", "expected"),
    [
        ("timing", "tRC", 17, "timing: tRC = 17 is shorter than tRAS + tRP = 14 + 4 = 18"),
        ("timing", "tRAS", 3, "tRAS = 3 is shorter than tRCD = 4"),
        ("timing", "CL", "four", "timing.CL: value 'four'"),
        ("timing", "CL", 0, "timing.CL: value 0"),
        ("timing", "CWL", 5, "timing.CWL = 5"),
        ("timing", "tREFI", 40, "tREFI = 40 must be longer than tRFC = 43"),
        ("organization", "rows", 1000, "organization: rows = 1000 must be a power of two"),
        ("organization", "bank_groups", 2, "timing.tRRD_L is missing"),
        ("controller", "page", "opne", "controller.page: value 'opne'"),
    ],
)
def test_wrong_values(section: str, field: str, value: object, expected: str) -> None:
    data = device()
    data[section][field] = value
    text = error_of(data)
    assert text.startswith("mine.yaml: ")
    assert expected in text


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        ("row:rank:bnk:column", "unknown field 'bnk'; did you mean bank?"),
        ("scheme8", "did you mean scheme"),
        ("row:rank:column", "field 'bank' is missing"),
        ("row:row:rank:bank:column", "stands twice"),
        ("row:bank:column", "has no field 'rank', but there are 16"),
    ],
)
def test_wrong_mapping(mapping: str, expected: str) -> None:
    data = device()
    data["address_mapping"] = mapping
    text = error_of(data)
    assert text.startswith("mine.yaml: ")
    assert expected in text


@pytest.mark.parametrize("scheme", SCHEMES)
def test_mapping_is_one_to_one(scheme: str) -> None:
    address_map = load_device("ddr2_667_x8").with_changes(address_mapping=scheme).address_map()
    for bit in range(address_map.offset_bits, 34):
        fields = address_map.decode(1 << bit)
        assert sum(value != 0 for value in fields.values()) == 1
        assert address_map.encode(**fields) == 1 << bit
    assert set(resolve_mapping(scheme)) <= set(FIELDS)


def test_ddr4_stream_changes_bank_group_with_every_request() -> None:
    config = load_device("ddr4_2400_x8")
    groups = [config.address_map().decode(i * config.request_bytes)["bankgroup"] for i in range(8)]
    assert groups == [0, 1, 2, 3, 0, 1, 2, 3]


def test_public_names_load_when_they_are_used() -> None:
    """Reading a device loads no compiler; the simulator does."""
    code = """
import sys, dram
assert set(dram.__all__) <= set(dir(dram)) and dram.load_device("ddr4_2400_x8")
assert "numba" not in sys.modules
assert all(getattr(dram, name) is not None for name in dram.__all__)
assert "numba" in sys.modules and not hasattr(dram, "nothing")
"""
    subprocess.run([sys.executable, "-c", code], check=True)
