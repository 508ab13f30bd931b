"""Every request and command of measured DRAMSim2, DRAMsim3 and Ramulator runs, exactly."""

from pathlib import Path

import pytest

from dram.reference import check_case, check_folder

DATA = Path(__file__).parents[1] / "data" / "dram"
REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "dram"

CASES = [(path.parent, path.name.removesuffix(".requests.csv.gz")) for path in sorted(DATA.rglob("*.requests.csv.gz"))]


@pytest.mark.parametrize(("folder", "pattern"), CASES, ids=[f"{f.name}-{p}" for f, p in CASES])
def test_copied_case_is_equal(folder: Path, pattern: str) -> None:
    result = check_case(folder, pattern)
    assert result.requests > 0
    assert result.equal, result.differences[:5]


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="the full reference data are not here")
@pytest.mark.parametrize(
    ("simulator", "cases"), [("dramsim2", 95), ("dramsim3", 94), ("ramulator2/ddr4_2400u_x8_frfcfs_open", 18)]
)
def test_all_reference_cases_are_equal(simulator: str, cases: int) -> None:
    results = check_folder(REFERENCE / simulator)
    assert len(results) == cases
    assert [r for r in results if not r.equal] == []


def test_a_wrong_delay_is_noticed(tmp_path: Path) -> None:
    source = DATA / "dramsim2" / "ddr2_667_cosa_16rank_open_scheme2"
    for path in source.iterdir():
        content = path.read_bytes()
        if path.name == "config.json":
            assert b'"tRCD":4' in content
            content = content.replace(b'"tRCD":4', b'"tRCD":5')
        (tmp_path / path.name).write_bytes(content)
    result = check_case(tmp_path, "row_conflict")
    assert not result.equal
    assert "request 0" in result.differences[0]
