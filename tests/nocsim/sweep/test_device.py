"""The DRAM device of a point: found beside the sweep, checked before the run, and part of what goes in by content."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest

import cosa
import nocsim as api
from cosa.common.errors import InputError
from cosa.model.arch import load_architecture
from nocsim.experiments.sweep.machines import with_device
from nocsim.experiments.sweep.spec import Sweep
from tests.conftest import Command
from tests.nocsim.sweep.conftest import CONV

BASE = load_architecture("simba_4x4").require_dram().device


def write_device(path: Path, **changes: int) -> None:
    text = (resources.files("arch_configs") / "dram" / f"{BASE}.yaml").read_text()
    lines = text.splitlines()
    for name, value in changes.items():
        number = next(n for n, line in enumerate(lines) if line.strip().startswith(f"{name}:"))
        lines[number] = f"{lines[number].partition(':')[0]}: {value}"
    path.write_text("\n".join(lines))


def test_the_content_of_a_device_file_goes_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changed between two runs, and found although the command is started elsewhere."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    file, device = tmp_path / "s.yaml", tmp_path / "mydev.yaml"
    Sweep(axes={"layer": CONV, "objective": "cosa", "dram.device": [BASE, "mydev.yaml"]}).to_file(file)
    write_device(device)
    packaged, same = Sweep.from_file(file).run(tmp_path / "r.db").rows
    assert packaged["status"] == same["status"] == "done"
    assert packaged["simulated_cycles"] == same["simulated_cycles"]
    write_device(device, CL=30, tRCD=30)
    again, slower = Sweep.from_file(file).run(tmp_path / "r.db").rows
    assert again == packaged | {"number": 0} and slower["simulated_cycles"] > same["simulated_cycles"]
    schedule = cosa.schedule(cosa.Layer.from_data(CONV), objective="cosa")
    architecture = with_device(schedule.architecture, str(device))
    assert slower["simulated_cycles"] == api.simulate(schedule, architecture=architecture).cycles.total


def test_a_point_runs_with_the_device_that_its_hash_covers(tmp_path: Path) -> None:
    """Also if the file is gone, as on another host of a cluster."""
    from nocsim.experiments.sweep.figures import run_task

    Sweep(axes={"layer": CONV, "objective": "cosa", "dram.device": "mydev.yaml"}).to_file(tmp_path / "s.yaml")
    write_device(tmp_path / "mydev.yaml")
    point = Sweep.from_file(tmp_path / "s.yaml").points()[0]
    (tmp_path / "mydev.yaml").unlink()
    packaged = Sweep(axes={"layer": CONV, "objective": "cosa"}).points()[0]
    found, expected = (run_task(task)["figures"]["simulated_cycles"] for task in (point.task(), packaged.task()))
    assert found == expected


@pytest.mark.parametrize("simulate", ["true", "false"])
@pytest.mark.parametrize(
    ("axes", "phrase"),
    [
        ("dram.device: [ddr4_2400_x8, ddr4_2400]", "axes.dram.device: DRAM device 'ddr4_2400' unknown; did you mean"),
        ("dram.device: none.yaml", "axes.dram.device: none.yaml: no such file"),
        ("dram.device: bad.yaml", "axes.dram.device: {folder}/bad.yaml: timing.CL"),
        ("dram.policy: [dramsim2, dramsim9]", "axes.dram.policy: dram: simba_4x4: dram"),
        ("architecture: mine.yaml", "axes.architecture: DRAM device 'nope' unknown"),
    ],
)
def test_a_wrong_device_ends_the_sweep_before_it_starts(
    axes: str, phrase: str, simulate: str, tmp_path: Path, nocsim: Command
) -> None:
    with_device(load_architecture("simba_4x4"), "nope").to_file(tmp_path / "mine.yaml")
    write_device(tmp_path / "bad.yaml", CL=-1)
    (tmp_path / "s.yaml").write_text(f"simulate: {simulate}\naxes:\n  layer: 'dlrm:72'\n  {axes}\n")
    for more in ([], ["--dry-run"]):
        ran = nocsim("sweep", tmp_path / "s.yaml", "--results", tmp_path / "r.db", *more)
        ran.assert_error("s.yaml", phrase.format(folder=tmp_path))
    assert not (tmp_path / "r.db").exists()


def test_an_axis_may_mend_the_device_of_an_architecture() -> None:
    wrong = with_device(load_architecture("simba_4x4"), "nope")
    points = Sweep(axes={"layer": CONV, "architecture": wrong, "dram.device": BASE}).points()
    assert points[0].architecture == load_architecture("simba_4x4")
    with pytest.raises(InputError, match="'nope' unknown"):
        Sweep(axes={"layer": CONV, "architecture": wrong}).points()
