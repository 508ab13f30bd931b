"""The scripts of the paper's tables and figures on very little: they run, their numbers add up, and they go on."""

from __future__ import annotations

import csv
import importlib
import json
import os
import re
import subprocess
import sys
import time
from math import isfinite
from pathlib import Path
from typing import Any

import pytest

from cosa.common.result_cache import read_cached, write_cached

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "scripts" / "paper"
FIGURES = ("table6", "figure1", "figure3", "figure4", "figure6", "figure7", "figure8", "figure9", "figure10")
LITTLE = ("--quick", "--layers", "resnet50:3356", "--workers", "1", "--seeds", "2", "--program-seconds", "0.5")


def command(name: str, out: Path, *more: str) -> list[str]:
    return [sys.executable, str(SCRIPTS / f"{name}.py"), "--out", str(out), *LITTLE, "--samples", "1500", *more]


def run(name: str, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    return subprocess.run(command(name, out, *more), capture_output=True, text=True, check=False, env=environment)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_published_values_are_those_of_scripts() -> None:
    found = rows(SCRIPTS / "paper.csv")
    assert {row["figure"] for row in found} == set(FIGURES)
    assert all(float(row["value"]) > 0 and row["source"] for row in found)
    assert set(FIGURES) == {path.stem for path in SCRIPTS.glob("*.py")} - {"common", "orders", "pictures"}


def test_speed_ups_are_those_of_the_layers_and_a_run_goes_on(tmp_path: Path) -> None:
    """Figure 6; then with everything there but one result, which alone is made again."""
    done = run("figure6", tmp_path)
    assert done.returncode == 0, done.stderr
    layers = rows(tmp_path / "figure6_layers.csv")
    cycles = {
        name: [float(row["timeloop_cycles"]) for row in layers if row["entry"] == name]
        for name in ("random", "published")
    }
    assert len(cycles["random"]) == 2
    expected = (cycles["random"][0] * cycles["random"][1]) ** 0.5 / cycles["published"][0]
    summary = {row["quantity"]: row for row in rows(tmp_path / "figure6.csv")}
    assert float(summary["speed-up of published over random"]["ours"]) == pytest.approx(expected)
    assert float(summary["speed-up of published over random"]["paper"]) == 5.2
    assert (tmp_path / "figure6.png").read_bytes().startswith(b"\x89PNG")

    results = {path: path.read_bytes() for path in (tmp_path / "results").iterdir()}
    assert len(results) == len(layers)
    gone = next(path for path in results if '"stopped_by": "samples"' in path.read_text())
    kept = next(path for path in results if '"solver_status": "optimal"' in path.read_text())
    gone.unlink()
    changed = read_cached(kept.parent, kept.stem)
    assert changed is not None
    write_cached(kept.parent, kept.stem, changed | {"figures": changed["figures"] | {"timeloop_cycles": 1}})
    assert run("figure6", tmp_path).returncode == 0
    again = rows(tmp_path / "figure6_layers.csv")
    assert "1" in [row["timeloop_cycles"] for row in again], "what is there is read back"
    assert json.loads(gone.read_text())["data"]["figures"]["schedule_hash"] in results[gone].decode()


def test_wrong_options_are_told(tmp_path: Path) -> None:
    for more, word in ((("--layers", "resnet50:nothing"), "no such layer"), (("--seeds", "0"), "--seeds")):
        done = run("figure6", tmp_path, *more)
        assert done.returncode == 2
        assert word in done.stderr
    assert not list(tmp_path.iterdir())


def test_figure10_counts_every_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program's simulation that was given up lowers the mean, and is never taken for faster than it can be."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    figure10, common = importlib.import_module("figure10"), importlib.import_module("common")

    def row(layer: str, mapper: str, at_least: int, ended: bool = True) -> dict[str, Any]:
        simulation = {"ended": "finished", "simulated_cycles": at_least} if ended else {"ended": "time_limit"}
        return {"network": "net", "layer": layer, "entry": mapper, "at_least_cycles": at_least, **simulation}

    found = [
        *(row("both ended", "hybrid", 800), row("both ended", "published", 100)),
        *(row("baseline given up", "hybrid", 300, ended=False), row("baseline given up", "published", 100)),
        *(row("program given up", "hybrid", 800), row("program given up", "published", 300, ended=False)),
        *(row("program slower", "hybrid", 800), row("program slower", "published", 1600, ended=False)),
        *(row("both given up", "hybrid", 800, ended=False), row("both given up", "published", 1600, ended=False)),
        *(row("no baseline", "published", 100), row("both ended", "random", 5)),
        {"network": "net", "layer": "no mapping", "entry": "hybrid", "error": "none"},
        row("no mapping", "published", 100),
    ]
    whole, assumed = figure10.counted(found, "hybrid")
    assert assumed == {"published": 3, "program": 0}
    mean, layers = common.ratios(whole, "hybrid", "published", "counted_cycles")["all"]
    assert layers == 5
    assert mean == pytest.approx((8 * 3 * 1 * 0.5 * 1) ** (1 / 5))


def test_figure10_simulates_a_baseline_on_where_it_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    figure10, common = importlib.import_module("figure10"), importlib.import_module("common")
    entries = common.chosen_layers(["alexnet:210", "alexnet:218", "alexnet:223"])
    plan = common.Plan(Path("unused"), entries, 1, 1, 1.0, 1.0, 1, True)

    def row(layer: str, mapper: str, at_least: int, ended: str) -> dict[str, Any]:
        place = {"network": "alexnet", "layer": layer, "entry": mapper}
        return place | {"at_least_cycles": at_least, "ended": ended}

    asked = []

    def measure(_: Any, architecture: str, mappers: Any, *, simulate: bool, layers: Any) -> list[dict[str, Any]]:
        asked.append((architecture, mappers[0].name, mappers[0].patience, [entry.layer.name for _, entry in layers]))
        return [row(entry.layer.name, mappers[0].name, 990, "finished") for _, entry in layers]

    monkeypatch.setattr(figure10, "measure", measure)
    found = [
        *(row("210", "hybrid", 300, "time_limit"), row("210", "published", 1000, "finished")),
        *(row("218", "hybrid", 2000, "time_limit"), row("218", "published", 1000, "finished")),
        *(row("223", "hybrid", 900, "finished"), row("223", "published", 1000, "finished")),
    ]
    again = figure10.simulated_again(plan, "cosa2021", found, [common.HYBRID])
    assert asked == [("cosa2021", "hybrid", figure10.PATIENCE, ["210"])]
    assert again == [row("210", "hybrid", 990, "finished"), *found[1:]]


def test_figure10_tells_how_many_layers_count_by_convention(tmp_path: Path) -> None:
    done = run("figure10", tmp_path, "--simulation-seconds", "0.001")
    assert done.returncode == 0, done.stderr
    summary = {row["quantity"]: row for row in rows(tmp_path / "figure10.csv")}
    for architecture in ("cosa2021", "simba_4x4"):
        assert float(summary[f"{architecture}: simulations of published given up"]["ours"]) == 1
        assert float(summary[f"{architecture}: given up, counted as 1: published over hybrid"]["ours"]) == 1
        mean = summary[f"{architecture}, at least: speed-up of published over hybrid"]
        assert (float(mean["ours"]), mean["layers"]) == (1, "1")
        assert f"{architecture}, at least, without these: speed-up of published over hybrid" not in summary


def told_of_quality(summary: list[dict[str, str]], out: Path) -> None:
    """Table VI: what answers cost over those of better ones, as its tables of layers have it."""
    found = {row["quantity"]: float(row["ours"]) for row in summary if row["ours"]}
    answers = {row["entry"]: row for row in rows(out / "table6_layers.csv")}
    energy = {name: float(answers[name]["energy_pj"]) for name in ("any fastest", "program")}
    simulated = {row["entry"]: float(row["simulated_cycles"]) for row in rows(out / "table6_simulated.csv")}
    assert found["any fastest: energy / program energy"] == pytest.approx(energy["any fastest"] / energy["program"])
    cycles = found["any fastest: simulated cycles, at least / published cycles"]
    assert cycles == pytest.approx(simulated["any fastest"] / simulated["published"])
    assert cycles != 1
    assert energy["any fastest"] != energy["program"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [figure for figure in FIGURES if figure != "figure6"])
def test_every_figure(name: str, tmp_path: Path) -> None:
    done = run(name, tmp_path, "--simulation-seconds", "60")
    assert done.returncode == 0, done.stderr
    summary = rows(tmp_path / f"{name}.csv")
    for row in rows(SCRIPTS / "paper.csv"):
        if row["figure"] == name:
            ours = [found for found in summary if found["quantity"] == row["quantity"]]
            assert [float(found["paper"]) for found in ours] == [float(row["value"])]
            if not re.search("cosa2021: worst|over random", row["quantity"]):  # not with --quick; given up in time
                assert isfinite(float(ours[0]["ours"]))
    assert list(tmp_path.glob(f"{name}*.png"))
    if name == "table6":
        told_of_quality(summary, tmp_path)


@pytest.mark.slow
def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    """Killed once something is there: the next run keeps it, and ends with the same table but for seconds."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    running = subprocess.Popen(command("figure7", tmp_path), stdout=subprocess.DEVNULL, env=environment)
    until = time.monotonic() + 120
    while not list(tmp_path.glob("results/*.json")) and time.monotonic() < until:
        time.sleep(0.05)
    running.kill()
    running.wait()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("results/*.json")}
    assert before
    assert run("figure7", tmp_path).returncode == 0
    assert all(path.stat().st_mtime_ns == written for path, written in before.items())
    assert run("figure7", tmp_path / "fresh").returncode == 0

    def told(folder: Path) -> list[dict[str, str]]:
        searches = [row for row in rows(folder / "figure7_layers.csv") if row["evaluations"]]
        return [{key: row[key] for key in row if "seconds" not in key} for row in searches]

    assert told(tmp_path) == told(tmp_path / "fresh")
