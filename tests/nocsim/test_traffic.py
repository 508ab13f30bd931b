"""Synthetic traffic: patterns, what a run reports, when it is called saturated, the sweep."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cosa.common.errors import InputError
from nocsim.mesh.topology import Topology
from nocsim.traffic.patterns import PATTERNS, Pattern, permutation
from nocsim.traffic.replay import Packet, replay_packets
from nocsim.traffic.report import table, text
from nocsim.traffic.synthetic import SyntheticTraffic, TrafficResult, sweep, sweep_rates
from tests.conftest import Command as Nocsim


def result(name: str, mesh: tuple[int, int], rate: float, cycles: int = 4000, **options: int) -> TrafficResult:
    return SyntheticTraffic(Pattern(name, Topology(*mesh)), rate, cycles=cycles, **options).run()  # type: ignore[arg-type]


# ---- patterns


@pytest.mark.parametrize(
    ("name", "mesh", "expected"),
    [
        ("transpose", (3, 3), [0, 3, 6, 1, 4, 7, 2, 5, 8]),
        ("bitcomp", (4, 2), [7, 6, 5, 4, 3, 2, 1, 0]),
        ("bitcomp", (3, 1), [2, 1, 0]),
        ("bitrev", (4, 2), [0, 4, 2, 6, 1, 5, 3, 7]),
        ("shuffle", (4, 2), [0, 2, 4, 6, 1, 3, 5, 7]),
        ("tornado", (4, 2), [1, 2, 3, 0, 5, 6, 7, 4]),
        ("tornado", (5, 1), [2, 3, 4, 0, 1]),
        ("tornado", (8, 1), [3, 4, 5, 6, 7, 0, 1, 2]),
        ("neighbor", (3, 2), [1, 2, 0, 4, 5, 3]),
        *[(name, (1, 1), [0]) for name in ("transpose", "bitcomp", "bitrev", "shuffle", "tornado", "neighbor")],
    ],
)
def test_permutations(name: str, mesh: tuple[int, int], expected: list[int]) -> None:
    assert permutation(name, Topology(*mesh)).tolist() == expected
    assert sorted(expected) == list(range(len(expected)))


def test_random_patterns() -> None:
    rng, src = np.random.default_rng(1), np.repeat(np.arange(16), 2000)
    topology = Topology(4, 4)
    uniform = Pattern("uniform", topology).draw(src, rng)[:, 0]
    assert not (uniform == src).any()
    counts = np.bincount(uniform, minlength=16)
    assert counts.min() > 1700 and counts.max() < 2300
    hot = Pattern("hotspot", topology, hot_share=0.5).draw(src, rng)[:, 0]
    assert 0.5 < (hot == 10).mean() < 0.56  # half of them, and a fifteenth of the rest
    assert (Pattern("hotspot", topology, hot_node=3, hot_share=1.0).draw(src, rng) == 3).all()
    sets = Pattern("multicast", topology, destinations=5).draw(src, rng)
    assert sets.shape == (src.size, 5) and all(len(set(row)) == 5 for row in sets[:500].tolist())
    assert np.bincount(sets.reshape(-1), minlength=16).min() > 9000
    assert Pattern("uniform", Topology(1, 1)).draw(np.zeros(3, dtype=np.int64), rng).tolist() == [[0]] * 3


@pytest.mark.parametrize(
    ("name", "mesh", "options", "message"),
    [
        ("unifrom", (4, 4), {}, "no such pattern (found 'unifrom'); allowed: uniform, .*did you mean uniform"),
        ("bitrev", (3, 4), {}, "--mesh: pattern bitrev .* allowed: a mesh with a power of two of nodes"),
        ("shuffle", (5, 5), {}, "--mesh: pattern shuffle .* power of two"),
        ("transpose", (4, 2), {}, "--mesh: pattern transpose .* a square mesh"),
        ("hotspot", (4, 4), {"hot_node": 16}, "--hot-node: no such node .* 0..15"),
        ("hotspot", (4, 4), {"hot_share": 1.5}, "--hot-share: not a share"),
        ("multicast", (2, 2), {"destinations": 5}, "--destinations: .* allowed: 1..4"),
    ],
)
def test_impossible_patterns(name: str, mesh: tuple[int, int], options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(").replace(")", r"\)")):
        Pattern(name, Topology(*mesh), **options)  # type: ignore[arg-type]


# ---- a run


@pytest.mark.parametrize("name", PATTERNS)
def test_a_low_load_is_accepted_at_nearly_the_latency_of_an_empty_mesh(name: str) -> None:
    r = result(name, (4, 4), 0.03)
    assert not r.saturated and r.unfinished_packets == 0
    assert r.accepted == pytest.approx(r.offered, rel=0.05)
    assert r.offered == pytest.approx(0.03, rel=0.1)
    assert r.zero_load_latency is not None and r.packet_latency.mean is not None
    assert r.zero_load_latency <= r.packet_latency.mean < 1.15 * r.zero_load_latency
    assert r.network_latency.mean is not None and r.network_latency.mean <= r.packet_latency.mean


def test_figures_are_those_of_a_replay_of_the_same_packets() -> None:
    topology = Topology(4, 3)
    traffic = SyntheticTraffic(Pattern("uniform", topology), 0.2, cycles=1500, warmup_cycles=300, seed=7)
    sent: list[Packet] = []
    feed = traffic.replay.feed

    def listen(packets, until):  # type: ignore[no-untyped-def]
        for src, dst, cycle in zip(packets.src, packets.dsts, packets.inject_cycle, strict=True):
            sent.append(Packet(int(src), int(dst), int(cycle)))
        feed(packets, until)

    traffic.replay.feed = listen  # type: ignore[method-assign]
    r = traffic.run()
    done = replay_packets(sent, 4, 3)
    created = np.array([p.inject_cycle for p in sent])
    measured = (created >= 300) & (created < 1500)
    latency = np.sort((done.tail_out - created)[measured])
    assert r.measured_packets == latency.size and r.unfinished_packets == 0
    assert r.packet_latency.mean == pytest.approx(latency.mean())
    assert r.packet_latency.maximum == latency[-1]
    for share, value in ((50, r.packet_latency.p50), (99, r.packet_latency.p99)):
        assert value == latency[-(-share * latency.size // 100) - 1]
    assert r.network_latency.mean == pytest.approx((done.tail_out - done.head_in)[measured].mean())
    in_window = (done.tail_out >= 300) & (done.tail_out < 1500)
    assert r.accepted * 12 * 1200 == pytest.approx(5 * in_window.sum(), abs=5 * 12)
    assert r.offered == pytest.approx(5 * latency.size / (12 * 1200))


def test_the_warm_up_is_not_measured_and_the_seed_decides() -> None:
    assert result("uniform", (4, 4), 0.1, seed=3) == result("uniform", (4, 4), 0.1, seed=3)
    assert result("uniform", (4, 4), 0.1, seed=3) != result("uniform", (4, 4), 0.1, seed=4)
    r = result("uniform", (4, 4), 0.1, cycles=1000, warmup_cycles=990)
    assert (r.warmup_cycles, r.measured_cycles) == (990, 10) and r.measured_packets < 20
    assert result("uniform", (2, 2), 0.01, cycles=10).packet_latency.maximum is None or True


def test_links_of_neighbour_traffic_are_loaded_as_the_rate() -> None:
    traffic = SyntheticTraffic(Pattern("neighbor", Topology(4, 1)), 0.2, cycles=20_000)
    r = traffic.run()
    shares = dict(zip(traffic.topology.link_names(), traffic.heat.busy_share, strict=True))
    for link in ("r0->r1", "r1->r2", "r2->r3", "r3->r2", "local0->r0", "r1->local1"):
        assert shares[link] == pytest.approx(0.2, abs=0.03)
    assert shares["north0->r0"] == 0
    assert r.mesh_links.maximum == max(shares[link] for link in shares if link.startswith("r") and "->r" in link)
    assert r.injection_links.mean == pytest.approx(0.2, abs=0.02)


def test_loads_of_multicasts_count_a_packet_once() -> None:
    r = result("multicast", (4, 4), 0.04, cycles=10_000)
    assert r.fan_out == 4
    assert r.accepted == pytest.approx(r.offered, rel=0.02)
    assert r.ejection_links.mean == pytest.approx(4 * r.injection_links.mean, rel=0.02)


@pytest.mark.parametrize(
    ("name", "mesh", "below", "above"),
    [
        ("uniform", (8, 8), 0.25, 0.36),  # measured: about 0.33 are accepted at most
        ("transpose", (4, 4), 0.3, 0.37),  # three sources share a link, so a third
        ("hotspot", (4, 4), 0.2, 0.32),  # a fifth of sixteen sources and a bit, into one port
        ("neighbor", (4, 4), 0.9, 1.0),  # nothing is shared, one flit a cycle passes
    ],
)
def test_saturation_is_called_by_its_name(name: str, mesh: tuple[int, int], below: float, above: float) -> None:
    assert not result(name, mesh, below, cycles=12_000).saturated
    r = result(name, mesh, above, cycles=12_000)
    if name == "neighbor":
        assert not r.saturated
        return
    assert r.saturated and r.accepted < r.offered and r.unfinished_packets > 0 and r.queued_flits > 0
    assert "SATURATED: the network does not keep up" in text(r)


def test_short_runs_at_a_safe_load_are_not_called_saturated() -> None:
    assert not any(result("uniform", (4, 4), 0.2, cycles=500, seed=seed).saturated for seed in range(40))


def test_long_multicasts_can_deadlock() -> None:
    r = result("multicast", (4, 4), 0.5, cycles=60_000, packet_flits=12)
    assert r.deadlocked and r.saturated
    assert "DEADLOCKED" in text(r)


def test_a_short_run_sees_a_deadlock_too() -> None:
    """Well before the 20,000 cycles without movement after which the kernel gives up."""
    assert result("multicast", (4, 4), 0.5, cycles=8_000, packet_flits=12).deadlocked


@pytest.mark.parametrize(
    ("rate", "options", "message"),
    [
        (0.0, {}, "--rate: no such load"),
        (1.1, {}, "--rate: no such load"),
        (float("nan"), {}, "--rate: no such load"),
        (0.1, {"packet_flits": 0}, "--flits: no such length"),
        (0.1, {"cycles": 5}, "--cycles"),
        (0.1, {"cycles": 100, "warmup_cycles": 100}, "--warmup: nothing is left to measure"),
        (0.1, {"seed": -1}, "--seed"),
    ],
)
def test_impossible_runs(rate: float, options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SyntheticTraffic(Pattern("uniform", Topology(4, 4)), rate, **options)  # type: ignore[arg-type]


# ---- sweep and command


def test_rates_of_a_sweep() -> None:
    assert sweep_rates("0.02:0.6:0.02") == pytest.approx([0.02 * i for i in range(1, 31)])
    assert sweep_rates("0.1:0.1:0.5") == [0.1]
    for wrong in (
        "",
        "0.1",
        "0.1:0.2",
        "0:0.5:0.1",
        "0.3:0.2:0.1",
        "0.1:1.2:0.1",
        "0.1:0.5:0",
        "0.1:0.5:1e-9",
        "a:b:c",
    ):
        with pytest.raises(InputError, match="--sweep: not a range of rates"):
            sweep_rates(wrong)


def test_sweep() -> None:
    results = list(sweep(Pattern("uniform", Topology(4, 4)), [0.1, 0.7], cycles=3000))
    assert [r.saturated for r in results] == [False, True]
    lines = table(results).splitlines()
    assert lines[0].startswith("rate,offered,accepted,saturated,latency_mean_cycles")
    assert [line.split(",")[3] for line in lines[1:]] == ["no", "yes"]
    assert len({line.count(",") for line in lines}) == 1


def test_command(nocsim: Nocsim, tmp_path: Path) -> None:
    argv = ["traffic", "--pattern", "uniform", "--rate", "0.1", "--mesh", "4x4", "--cycles", "2000", "--seed", "5"]
    ran = nocsim(*argv)
    assert (ran.code, ran.err) == (0, "")
    for word in (
        "offered load",
        "accepted load",
        "p99",
        "hops",
        "mesh links",
        "400 cycles of warm-up",
        "not saturated",
    ):
        assert word in ran.out
    assert nocsim(*argv) == ran
    data = json.loads(nocsim(*argv, "--json", "-").out)
    assert (data["kind"], data["rate"], data["seed"], data["saturated"]) == ("traffic_result", 0.1, 5, False)
    path, heat = tmp_path / "result.json", tmp_path / "heat.png"
    nocsim(*argv, "--json", path, "--heat", heat)
    assert TrafficResult.from_file(path) == TrafficResult.from_data(data)
    assert heat.read_bytes().startswith(b"\x89PNG")


def test_sweep_command(nocsim: Nocsim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    argv = ["traffic", "--pattern", "transpose", "--mesh", "2x2", "--cycles", "500", "--sweep", "0.2:0.6:0.2"]
    ran = nocsim(*argv)
    assert (ran.code, ran.err) == (0, "")
    assert "written to transpose_2x2.png, transpose_2x2.csv" in ran.out
    first = (tmp_path / "transpose_2x2.png").read_bytes()
    assert first.startswith(b"\x89PNG")
    assert len((tmp_path / "transpose_2x2.csv").read_text(encoding="utf-8").splitlines()) == 4
    data = json.loads(nocsim(*argv, "-o", "curve.csv", "--json", "-").out)
    assert [r["rate"] for r in data["results"]] == [0.2, 0.4, 0.6]
    assert (tmp_path / "curve.png").read_bytes() == first  # the same bytes each time
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "curve.csv", "curve.png", "transpose_2x2.csv", "transpose_2x2.png",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pattern", "tornadoes"], "--pattern: no such pattern (found 'tornadoes')"),
        (["--pattern", "transpose", "--mesh", "4x5"], "--mesh: pattern transpose exchanges column and row"),
        (["--pattern", "uniform", "--rate", "2"], "--rate: no such load (found 2.0)"),
        (["--pattern", "multicast", "--fifo", "4"], "--reservation: no multicast could ever start"),
        (["--pattern", "uniform", "--sweep", "1"], "--sweep: not a range of rates"),
        (["--pattern", "uniform", "-o", "x.png"], "--output: nothing to draw"),
        (["--pattern", "uniform", "--sweep", "0.1:0.2:0.1", "--heat", "x.png"], "--heat: a sweep has no single"),
        (["--pattern", "uniform", "--sweep", "0.1:0.2:0.1", "-o", "no/x.png"], "cannot be written"),
        ([], "--pattern"),
    ],
)
def test_bad_input_is_one_line(nocsim: Nocsim, options: list[str], message: str) -> None:
    nocsim("traffic", "--cycles", "1000", *options).assert_error(message)


def test_long_multicasts_are_warned_of(nocsim: Nocsim) -> None:
    ran = nocsim(
        "traffic", "--pattern", "multicast", "--mesh", "3x3", "--flits", "8", "--rate", "0.01", "--cycles", "500"
    )
    assert ran.code == 0
    assert ran.err == "warning: multicasts of 8 flits are longer than the reservation of 5: the mesh can deadlock\n"
