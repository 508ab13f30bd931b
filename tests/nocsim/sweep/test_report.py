"""Totals, Pareto fronts, sensitivity, exports, the bar."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nocsim.experiments.pipeline import FIGURES
from nocsim.experiments.sweep.result import Configuration, SweepResult, figure_name
from nocsim.experiments.sweep.spec import Sweep
from nocsim.experiments.sweep.tradeoff import pareto_front, sensitivities, workloads
from tests.conftest import Command
from tests.nocsim.sweep.conftest import CONV


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[SweepResult, Path]:
    """Two networks' worth of configurations, evaluated analytically, with failures."""
    axes = {
        "network": ["dlrm"],
        "mapper": "published",
        "noc.mesh": ["2x2", "4x4"],
        "levels.GlobalBuffer.capacity_words": [1, "x1", "x4"],
    }
    path = tmp_path_factory.mktemp("report") / "r.db"
    return Sweep(name="dlrm", axes=axes, simulate=False).run(path, workers=2), path


def test_totals_count_every_occurrence(ran: tuple[SweepResult, Path]) -> None:
    result, _ = ran
    assert len(result.rows) == 42 and len(result.configurations) == 6
    for place, found in enumerate(result.configurations):
        rows = result.rows[7 * place : 7 * place + 7]
        assert found.layers == 7 and found.done == (0 if place % 3 == 0 else 7)
        if place % 3 == 0:
            assert set(found.figures.values()) == {None}
            continue
        cycles = sum(row["latency_cycles"] * row["count"] for row in rows)
        energy = sum(row["energy_pj"] * row["count"] for row in rows)
        assert found.figures["latency_cycles"] == cycles and found.figures["energy_pj"] == energy
        assert found.figures["edp_pj_cycles"] == cycles * energy
        assert found.figures["buffer_bytes"] == rows[0]["buffer_bytes"] and found.figures["simulated_cycles"] is None
        macs = sum(row["macs"] * row["count"] for row in rows)
        assert found.figures["mac_utilisation"] == pytest.approx(macs / (cycles * rows[0]["mac_units"]))


def test_sensitivity_compares_all_else_equal(ran: tuple[SweepResult, Path]) -> None:
    result, _ = ran
    found = sensitivities(result, ["latency_cycles"])
    assert [(entry.axes, entry.values, entry.base) for entry in found] == [
        (("noc.mesh",), ("4x4",), ("2x2",)),
        (("levels.GlobalBuffer.capacity_words",), (1,), ("x1",)),
        (("levels.GlobalBuffer.capacity_words",), ("x4",), ("x1",)),
    ]
    cycles = [configuration.figures["latency_cycles"] or 0 for configuration in result.configurations]
    expected = math.sqrt(cycles[4] / cycles[1] * cycles[5] / cycles[2])
    assert found[0].ratios["latency_cycles"] == pytest.approx(expected)
    assert found[1].ratios["latency_cycles"] is None
    assert found[2].ratios["latency_cycles"] == pytest.approx(math.sqrt(cycles[2] / cycles[1] * cycles[5] / cycles[4]))


def configuration(x: float | None, y: float | None, network: int = 0) -> Configuration:
    return Configuration({"network": f"n{network}"}, {"network": network}, 1, 1, {"pes": x, "energy_pj": y})


PLACES = st.lists(st.tuples(st.none() | st.integers(0, 5), st.integers(0, 5)), max_size=12)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PLACES)
def test_the_pareto_front_by_its_definition(places: list[tuple[int | None, int]]) -> None:
    every = [configuration(x, y) for x, y in places]
    known = [(x, y) for x, y in places if x is not None]
    best = [p for p in known if not any(q[0] <= p[0] and q[1] <= p[1] and q != p for q in known)]
    front = pareto_front(every, "pes", "energy_pj")
    assert [(c.figures["pes"], c.figures["energy_pj"]) for c in front] == sorted(best)


def test_more_utilisation_is_better() -> None:
    places = ((0.1, 1.0), (0.9, 2.0), (0.5, 3.0))
    every = [Configuration({}, {}, 1, 1, {"mac_utilisation": x, "energy_pj": y}) for x, y in places]
    assert pareto_front(every, "mac_utilisation", "energy_pj") == [every[1], every[0]]


def test_networks_are_not_traded_off_against_each_other(sweep: Sweep) -> None:
    result = SweepResult(sweep, [])
    object.__setattr__(result, "configurations", [configuration(1, 1, 0), configuration(2, 2, 1)])
    assert [(name, len(group)) for name, group in workloads(result)] == [("n0", 1), ("n1", 1)]


def test_exports_hold_the_same(ran: tuple[SweepResult, Path], tmp_path: Path, nocsim: Command) -> None:
    result, path = ran
    command = nocsim("sweep-report", path, "--csv", tmp_path / "r.csv", "--parquet", tmp_path / "r.parquet")
    assert command.code == 0 and "written to" in command.out
    rows = list(csv.DictReader(io.StringIO((tmp_path / "r.csv").read_text())))
    import pandas

    parquet, frame = pandas.read_parquet(tmp_path / "r.parquet"), result.frame()
    assert list(rows[0]) == list(parquet.columns) == list(frame.columns) == result.columns()
    assert set(FIGURES) < set(frame.columns) and len(rows) == len(parquet) == len(frame) == 42
    for row, stored, written in zip(result.rows, parquet.to_dict("records"), rows, strict=True):
        place = row["number"]
        for name in FIGURES:
            text = "" if row[name] is None else str(row[name])
            assert written[name] == text
            for value in (frame[name][place], stored[name]):
                assert pandas.isna(value) if row[name] is None else value == row[name], name
        assert frame["noc.mesh"][place] == stored["noc.mesh"] == written["noc.mesh"] == row["axes"]["noc.mesh"]
    assert str(frame["latency_cycles"].dtype) == "Int64"
    sums: Any = frame[frame.status == "done"].groupby("noc.mesh")["latency_cycles"].sum()
    for mesh in ("2x2", "4x4"):
        done = [row for row in result.rows if row["axes"]["noc.mesh"] == mesh and row["status"] == "done"]
        assert sums[mesh] == sum(row["latency_cycles"] for row in done) > 0


def test_the_report(ran: tuple[SweepResult, Path], tmp_path: Path, nocsim: Command) -> None:
    _, path = ran
    text = nocsim("sweep-report", path, "--figures", "latency,buffer", "--plot", tmp_path / "p.png").out
    assert "dlrm: 42 points: 28 done, 14 failed" in text and "fixed: network = dlrm" in text
    assert "totals over 7 layers:" in text and "buffers: 1 of 4 with figures (6 in all)" in text
    assert "no totals for 2 with layers that failed, of 6" in text
    assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG" and (tmp_path / "p.png").stat().st_size > 10_000
    first = (tmp_path / "p.png").read_bytes()
    nocsim("sweep-report", path, "--figures", "latency,buffer", "--plot", tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes() == first
    each = nocsim("sweep-report", path, "--points", "--rows", "10").out
    assert "and 32 more rows" in each
    assert "more rows" not in nocsim("sweep-report", path, "--points", "--rows", "0").out


@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        (["--figures", "latency"], "not two figures"),
        (["--figures", "latency,latency_cycles"], "not two figures"),
        (["--figures", "latency,enrgy"], "did you mean energy?"),
        (["--figures", "latency,bound_by"], "no such figure"),
        (["--rows", "-1"], "--rows"),
        (["--plot", "p.gif"], "no such kind of picture"),
    ],
)
def test_bad_options(ran: tuple[SweepResult, Path], arguments: list[str], phrase: str, nocsim: Command) -> None:
    nocsim("sweep-report", ran[1], *arguments).assert_error(phrase)


def test_every_figure_can_be_plotted() -> None:
    names = [name for name, figure in FIGURES.items() if figure.kind != "TEXT"]
    assert [figure_name(name, "here") for name in names] == names
    assert figure_name("edp", "here") == "edp_pj_cycles"


def test_lists_on_an_axis_are_text_in_exports(tmp_path: Path) -> None:
    ports = [[{"router": [-1, -1], "side": "south"}], [{"router": [0, -1], "side": "south"}]]
    result = Sweep(axes={"layer": CONV, "mapper": "published", "noc.dram_ports": ports}, simulate=False).run(
        tmp_path / "r.db"
    )
    result.to_parquet(tmp_path / "r.parquet")
    result.to_csv(tmp_path / "r.csv")
    texts = [row["noc.dram_ports"] for row in csv.DictReader((tmp_path / "r.csv").open())]
    assert (
        texts
        == list(result.frame()["noc.dram_ports"])
        == [
            '[{"router": [-1, -1], "side": "south"}]',
            '[{"router": [0, -1], "side": "south"}]',
        ]
    )


def test_outputs_of_one_name_and_standard_output(
    ran: tuple[SweepResult, Path], tmp_path: Path, nocsim: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, path = ran
    monkeypatch.chdir(tmp_path)
    same = ["--csv", "a.png", "--plot", tmp_path / "a.png"]
    nocsim("sweep-report", path, *same).assert_error("--csv", "--plot", "another file")
    nocsim("sweep-report", path, "--parquet", "-").assert_error("--parquet", "only CSV")
    assert nocsim("sweep-report", path, "--csv", "-").out == result.csv_text()
    assert list(tmp_path.iterdir()) == []
