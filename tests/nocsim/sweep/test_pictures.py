"""Reports and pictures of results made by hand: what a reader can tell apart, and what is said where nothing is."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nocsim.experiments.pipeline import FIGURES
from nocsim.experiments.sweep import plot
from nocsim.experiments.sweep.report import report
from nocsim.experiments.sweep.result import SweepResult
from nocsim.experiments.sweep.spec import Sweep

PORTS = [[{"router": [0, place], "side": "west"}] for place in range(3)]
Figures = dict[str, Any]


def made(axes: dict[str, Any], figures: Callable[[dict[str, int]], Figures | None], **more: Any) -> SweepResult:
    """A result with the figures of each place on the axes; None: still to run."""
    sweep = Sweep(name="made", axes=axes, **more)
    groups: list[tuple[str, ...]] = []
    for name in axes:
        group = next((group for group in sweep.zip if name in group), (name,))
        if group not in groups:
            groups.append(group)
    rows = []
    steps = itertools.product(*(range(len(sweep.values(group[0]))) for group in groups))
    for number, places in enumerate(steps):
        positions = {name: place for group, place in zip(groups, places, strict=True) for name in group}
        found = figures(positions)
        row: dict[str, Any] = {"number": number, "positions": positions, "count": 1, "inputs_hash": str(number)}
        row["axes"] = {name: sweep.values(name)[place] for name, place in positions.items()}
        row["axes"].setdefault("layer", f"layer{number}")
        row |= {"status": "pending" if found is None else "done", "error": None, "error_kind": None, "seconds": 1.0}
        rows.append(row | dict.fromkeys(FIGURES) | (found or {}))
    return SweepResult(sweep, rows)


def text(result: SweepResult, x: str = "latency_cycles", y: str = "energy_pj", **options: Any) -> str:
    return "\n".join(report(result, x, y, **options))


def staircase(steps: int) -> SweepResult:
    """All configurations of one list of ports are on the front, all others are behind it."""

    def figures(at: dict[str, int]) -> Figures:
        step, behind = at["noc.fifo_flits"], at["noc.dram_ports"]
        return {"latency_cycles": 1000 + step + 200 * behind, "energy_pj": 1e9 - 1e5 * step + 1e8 * behind}

    return made({"layer": "l", "noc.dram_ports": PORTS, "noc.fifo_flits": list(range(5, 5 + steps))}, figures)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The figure that would be written."""
    kept: list[Any] = []
    monkeypatch.setattr(plot, "save_figure", lambda figure, path: kept.append(figure))

    def draw(result: SweepResult, x: str = "latency_cycles", y: str = "energy_pj") -> Any:
        plot.save_trade_off(result, x, y, "p.png")
        kept[-1].draw_without_rendering()
        return kept[-1]

    return draw


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("steps", [1, 2, 12, 40])
def test_labels_do_not_overlap_and_stay_inside(steps: int, drawn: Callable[..., Any]) -> None:
    figure = drawn(staircase(steps))
    axes, key = figure.axes
    boxes = [label.get_window_extent() for label in axes.texts]
    numbers: list[int] = []
    for label in axes.texts:  # "3", or "3-5" for markers that nearly coincide
        first, _, last = label.get_text().partition("-")
        numbers += range(int(first), int(last or first) + 1)
    assert numbers == list(range(1, min(steps, 24) + 1))
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)
    inside = axes.get_window_extent()
    assert all(inside.x0 <= box.x0 and box.x1 <= inside.x1 and box.y1 <= inside.y1 for box in boxes)
    (lines,) = key.texts
    assert lines.get_window_extent().x1 <= figure.bbox.x1 and lines.get_window_extent().y0 >= figure.bbox.y0
    content = lines.get_text()
    assert (
        "#1 " in content and "noc.dram_ports #1 = [{router: [0, 0], side: west}]" in content
    ) and "{'" not in content
    assert ("and 16 more" in content) == (steps == 40)


def test_the_front_can_be_told_from_the_rest(drawn: Callable[..., Any]) -> None:
    """Also a front of one point."""
    for steps in (1, 12):
        axes = drawn(staircase(steps)).axes[0]
        (behind,), (front,) = axes.collections, axes.lines
        assert len(behind.get_offsets()) == 2 * steps and len(front.get_xdata()) == steps
        assert len(behind.get_facecolor()) == 0 and front.get_marker() == "o"


def test_scales(drawn: Callable[..., Any]) -> None:
    axes = {"layer": "l", "noc.fifo_flits": [5, 6]}
    near = made(axes, lambda at: {"latency_cycles": 10 + at["noc.fifo_flits"], "energy_pj": 1e6})
    far = made(axes, lambda at: {"latency_cycles": 10 * 40 ** at["noc.fifo_flits"], "energy_pj": 1e6})
    assert [drawn(result).axes[0].get_xscale() for result in (near, far)] == ["linear", "log"]
    assert drawn(far).axes[0].get_yscale() == "linear"


@pytest.mark.parametrize("figures", [("gap", "latency_cycles"), ("busiest_link_share", "row_hit_rate")])
def test_no_empty_picture(figures: tuple[str, str], tmp_path: Path) -> None:
    def at(positions: dict[str, int]) -> Figures:
        return {"latency_cycles": 9, "gap": 0.0, "busiest_link_share": 0.5, "row_hit_rate": 0.9, "dram_bytes": 64}

    result = made({"layer": ["a", "b"], "noc.fifo_flits": [5, 6]}, at)
    reason = f"no {figures[0]}: it has no total over several layers; --points shows each layer"
    with pytest.raises(plot.NothingToDrawError, match=reason):
        plot.save_trade_off(result, *figures, tmp_path / "p.png")
    assert not (tmp_path / "p.png").exists()
    lines = text(result, *figures)
    assert reason in lines and "none of 2 has both figures" in lines
    assert reason not in text(made({"layer": "a", "noc.fifo_flits": [5, 6]}, at), *figures)


def test_shares_have_totals_where_they_mean_something() -> None:
    shares = [(0.5, 300, 0.25, 10), (0.9, 100, 0.0, 30)]

    def at(positions: dict[str, int]) -> Figures:
        rate, size, share, cycles = shares[positions["layer"]]
        names = ("row_hit_rate", "dram_bytes", "extrapolated_share", "simulated_cycles", "evaluations")
        return dict(zip(names, (rate, size, share, cycles, 7), strict=True))

    (found,) = made({"layer": ["a", "b"]}, at).configurations
    assert found.figures["row_hit_rate"] == pytest.approx((0.5 * 300 + 0.9 * 100) / 400)
    assert found.figures["extrapolated_share"] == pytest.approx(2.5 / 40)
    assert found.figures["evaluations"] == 14 and found.figures["busiest_link_share"] is None


def test_unfinished_sweeps() -> None:
    """With the layer first, no configuration is complete before its last layer."""

    def at(positions: dict[str, int]) -> Figures | None:
        missing = positions["layer"] == 1 and positions["noc.fifo_flits"] > 0
        return None if missing else {"latency_cycles": 9, "energy_pj": 1e6}

    result = made({"layer": ["a", "b"], "noc.fifo_flits": [5, 6, 7]}, at)
    lines = text(result)
    assert "no totals for 2 with layers left to run, of 3 (--points shows each layer)" in lines
    assert "Pareto front of latency and energy: 1 of 1 with figures (3 in all)" in lines
    nothing = made({"layer": "a", "noc.fifo_flits": [5, 6]}, lambda at: None)
    with pytest.raises(plot.NothingToDrawError, match="no point has finished"):
        plot.save_trade_off(nothing, "latency_cycles", "energy_pj", "p.png")


def test_each_configuration_says_how_many_layers_it_has() -> None:
    result = made({"network": ["a", "b"], "layer_of": [1, 2]}, lambda at: {"latency_cycles": 1, "energy_pj": 1e6})
    rows = [row for row in result.rows if row["positions"] != {"network": 1, "layer_of": 1}]
    for row in rows:
        row["positions"].pop("layer_of")
        row["axes"].pop("layer_of")
    sweep = Sweep(name="made", axes={"network": ["a", "b"]})
    lines = text(SweepResult(sweep, rows)).splitlines()
    assert "totals over all layers:" in lines and not any("over 2 layers" in line for line in lines)
    start = lines.index("totals over all layers:") + 1
    assert [line.split()[:2] for line in lines[start : start + 3]] == [["network", "layers"], ["a", "2"], ["b", "1"]]


def test_blocks_and_zipped_axes_are_short_in_tables() -> None:
    blocks = [{"device": "DDR3-1600K-x8", "channels": n, "mapping": "row-major"} for n in (1, 2)]
    axes = {"layer": "l", "dram": blocks, "noc.mesh": ["2x2", "4x4"], "noc.flit_bits": [64, 128]}
    result = made(axes, lambda at: {"latency_cycles": 9, "energy_pj": 1e6}, zip=[["noc.mesh", "noc.flit_bits"]])
    lines = text(result).splitlines()
    assert "dram #2 = channels: 2" in lines and "noc.mesh 4x4 goes with noc.flit_bits 128" in lines
    assert max(map(len, lines)) <= 80 and not any("device" in line for line in lines)
    table = lines[lines.index("") + 1 :]
    assert table[0].split()[:2] == ["dram", "mesh"] and table[4].split()[:2] == ["#2", "4x4"]
    changes = next(line for line in lines if line.startswith("noc.mesh  "))
    assert changes.split()[:3] == ["noc.mesh", "4x4", "2x2"]
