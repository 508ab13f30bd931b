"""Link heat as a table and as pictures."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from cosa.common.errors import InputError
from cosa.model.schedule import Schedule
from nocsim.mesh.heat import LinkHeat, check_heat_file, draw_heat
from nocsim.mesh.mesh import Mesh
from nocsim.mesh.topology import LinkKind, Topology
from nocsim.result.heat import run_heat, save_run_heat


def heat_of(columns: int, rows: int, *messages: tuple[int, int]) -> LinkHeat:
    mesh = Mesh(columns, rows)
    for src, dst in messages:
        mesh.submit(src, dst, 2, 5)
    while not mesh.idle:
        mesh.run(1 << 40)
        mesh.take_reports()
    return LinkHeat(mesh.topology, mesh.link_flits(), mesh.now)


def texts(path: Path) -> list[str]:
    """Texts of an SVG picture (drawn as shapes, each with its text in a comment)."""
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    tree = ElementTree.parse(path, parser)
    return [node.text.strip() for node in tree.iter() if callable(node.tag) and node.text]


def test_arrays() -> None:
    heat = heat_of(3, 1, (0, 2), (0, 1))
    assert heat.busy_share == pytest.approx(heat.flits / heat.cycles)
    names = heat.topology.link_names()
    flits = {names[link]: int(heat.flits[link]) for link in np.flatnonzero(heat.flits)}
    assert flits == {"local0->r0": 20, "r0->r1": 20, "r1->r2": 10, "r2->local2": 10, "r1->local1": 10}
    assert heat.kind(LinkKind.ROUTER).sum() == 4


def test_table(tmp_path: Path) -> None:
    heat = heat_of(2, 2, (0, 3), (8, 1))
    heat.save(tmp_path / "heat.csv")
    header, *lines = (tmp_path / "heat.csv").read_text(encoding="utf-8").splitlines()
    assert header == "link,kind,source,target,flits,busy_share"
    assert len(lines) == heat.topology.n_links
    assert f"r0->r1,router,r0,r1,10,{10 / heat.cycles:.6f}" in lines
    assert sum(int(line.split(",")[4]) for line in lines) == heat.flits.sum()


@pytest.mark.parametrize(("columns", "rows"), [(1, 1), (1, 5), (4, 5), (12, 3)])
def test_pictures(tmp_path: Path, columns: int, rows: int) -> None:
    n = columns * rows
    heat = heat_of(columns, rows, *((i, n - 1 - i) for i in range(n)))
    first, second, svg = tmp_path / "a.png", tmp_path / "b.png", tmp_path / "c.svg"
    heat.save(first)
    heat.save(second)
    heat.save(svg)
    assert first.read_bytes() == second.read_bytes()
    found = texts(svg)
    for router in range(n):
        assert str(router) in found
    assert any(text.startswith(f"Busy share of the links, {columns}x{rows} mesh") for text in found)
    assert not any(text in found for text in ("nan", "NaN"))


def test_endpoints_at_the_edge_are_drawn_where_they_are_used(tmp_path: Path) -> None:
    names = {3: "GB", 8: "DRAM", 5: "north1"}
    heat_of(2, 2, (8, 0)).save(tmp_path / "a.svg", names=names, title="one DRAM")
    found = texts(tmp_path / "a.svg")
    assert {"GB", "DRAM", "one DRAM"} <= set(found) and "north1" not in found


def test_nothing_moved(tmp_path: Path) -> None:
    topology = Topology(2, 2)
    draw_heat(topology, np.zeros(topology.n_links, dtype=np.int64), 0, tmp_path / "a.pdf")
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")


def test_endings_and_places() -> None:
    check_heat_file("a.PNG")
    for name in ("a", "a.gif", "png"):
        with pytest.raises(InputError, match="--heat: no such kind of file"):
            check_heat_file(name)
    with pytest.raises(InputError, match="cannot be written"):
        heat_of(1, 1).save("no/such/folder/a.png")
    with pytest.raises(InputError, match="no such kind of picture"):
        draw_heat(Topology(1, 1), np.zeros(10, dtype=np.int64), 1, "a.txt")


def test_of_a_simulated_schedule(small_job: Schedule, tmp_path: Path) -> None:
    from nocsim import simulate
    from nocsim.commands.main import main

    schedule_file = tmp_path / "schedule.json"
    small_job.save(schedule_file)
    result = simulate(small_job, ideal_memory=True)
    noc = small_job.architecture.noc
    assert noc is not None
    heat = run_heat(result, noc)
    assert heat.cycles == result.cycles.total
    assert heat.flits.sum() == sum(link.flits for link in result.links)
    save_run_heat(result, small_job.architecture, tmp_path / "a.svg")
    assert {"GB", "DRAM"} <= set(texts(tmp_path / "a.svg"))
    argv = ["run", "--schedule", str(schedule_file), "--ideal-memory", "--heat", str(tmp_path / "b.png")]
    assert main(argv) == 0
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")
    assert main(["run", "--schedule", str(schedule_file), "--heat", "c.png", "--ideal-network"]) == 2
