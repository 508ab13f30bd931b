from __future__ import annotations

from itertools import pairwise

import networkx
import numpy as np
import pytest

from nocsim.mesh import routing
from nocsim.mesh.topology import LinkKind, Port, Topology

SHAPES = [(1, 1), (1, 5), (6, 1), (4, 4), (4, 5), (3, 7), (32, 32)]


def test_endpoint_numbers_of_the_published_mesh() -> None:
    mesh = Topology(columns=4, rows=5)
    assert mesh.n_endpoints == 38
    edges = [mesh.attachment(e) for e in range(20, 38)]
    assert edges[0:4] == [(column, Port.NORTH) for column in range(4)]
    assert edges[4:9] == [(4 * row + 3, Port.EAST) for row in range(5)]
    assert edges[9:13] == [(16 + column, Port.SOUTH) for column in (3, 2, 1, 0)]
    assert edges[13:18] == [(4 * row, Port.WEST) for row in (4, 3, 2, 1, 0)]


@pytest.mark.parametrize(("columns", "rows"), SHAPES)
def test_endpoints_and_ports_are_a_bijection(columns: int, rows: int) -> None:
    mesh = Topology(columns, rows)
    places = [mesh.attachment(e) for e in range(mesh.n_endpoints)]
    assert len(set(places)) == mesh.n_endpoints
    assert [mesh.endpoint_at(router, port) for router, port in places] == list(range(mesh.n_endpoints))
    assert all(mesh.neighbour(router, port) is None for router, port in places)
    assert [mesh.is_local(e) for e in range(mesh.n_endpoints)] == [port == Port.LOCAL for _, port in places]


@pytest.mark.parametrize(("columns", "rows"), SHAPES)
def test_links(columns: int, rows: int) -> None:
    mesh = Topology(columns, rows)
    names = mesh.link_names()
    assert len(names) == len(set(names)) == mesh.n_links
    kinds = [link.kind for link in mesh.links()]
    assert kinds.count(LinkKind.INJECTION) == kinds.count(LinkKind.EJECTION) == mesh.n_endpoints
    for router in range(mesh.n_routers):
        for port in Port:
            link = mesh.link(mesh.output_link(router, port))
            assert link.source == router
            neighbour = mesh.neighbour(router, port)
            if neighbour is None:
                assert link.kind == LinkKind.EJECTION and link.target == mesh.endpoint_at(router, port)
            else:
                assert link.kind == LinkKind.ROUTER and link.target == neighbour
                assert mesh.neighbour(neighbour, port.opposite) == router


@pytest.mark.parametrize(("columns", "rows"), SHAPES)
def test_networkx_graph_agrees_with_the_routes(columns: int, rows: int) -> None:
    mesh = Topology(columns, rows)
    graph = mesh.to_networkx()
    assert graph.number_of_nodes() == mesh.n_routers + mesh.n_endpoints
    assert sorted(link for _, _, link in graph.edges(data="link")) == list(range(mesh.n_links))
    rng = np.random.default_rng(1)
    for src, dst in rng.integers(mesh.n_endpoints, size=(30, 2)).tolist():
        route = routing.unicast_route(mesh, src, dst)
        ends = [mesh.link_name(link).split("->") for link in route]
        assert ends[0][0] == mesh.endpoint_name(src) and ends[-1][1] == mesh.endpoint_name(dst)
        assert all(a[1] == b[0] for a, b in pairwise(ends))
        start, stop = f"r{mesh.attachment(src)[0]}", f"r{mesh.attachment(dst)[0]}"
        assert routing.hops(mesh, src, dst) == len(route) - 2 == networkx.shortest_path_length(graph, start, stop)


def test_routes_go_along_the_row_first() -> None:
    mesh = Topology(4, 4)
    assert [mesh.link_name(link) for link in routing.unicast_route(mesh, 0, 6)] == [
        "local0->r0",
        "r0->r1",
        "r1->r2",
        "r2->r6",
        "r6->local6",
    ]
    assert routing.zero_load_latency_cycles(mesh, 0, 0) == 5
    assert routing.zero_load_latency_cycles(mesh, 0, 15) == 29
    assert routing.zero_load_latency_cycles(mesh, 0, 1, n_flits=5) == 13


@pytest.mark.parametrize(("columns", "rows"), SHAPES)
def test_multicast_tree_is_the_union_of_the_paths(columns: int, rows: int) -> None:
    mesh = Topology(columns, rows)
    rng = np.random.default_rng(2)
    for _ in range(10):
        src = int(rng.integers(mesh.n_endpoints))
        dsts = rng.choice(mesh.n_routers, size=min(mesh.n_routers, 9), replace=False).tolist()
        tree = routing.multicast_tree(mesh, src, dsts)
        assert tree == {link for dst in dsts for link in routing.unicast_route(mesh, src, dst)}
        # a tree: as many links as nodes below the source
        assert len({mesh.link_name(link).split("->")[1] for link in tree}) == len(tree)


@pytest.mark.parametrize(("columns", "rows"), SHAPES)
def test_link_table_agrees_with_single_ports(columns: int, rows: int) -> None:
    mesh = Topology(columns, rows)
    table = routing.unicast_link_table(mesh)
    assert table.shape == (mesh.n_endpoints, mesh.n_routers)
    rng = np.random.default_rng(3)
    for dst, router in zip(
        rng.integers(mesh.n_endpoints, size=300).tolist(), rng.integers(mesh.n_routers, size=300).tolist(), strict=True
    ):
        assert table[dst, router] == mesh.output_link(router, routing.output_port(mesh, router, dst))


@pytest.mark.parametrize("size", [(0, 1), (1, 0), (-1, 3)])
def test_meshes_without_routers_are_rejected(size: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Topology(*size)


def test_numbers_outside_the_mesh_are_rejected() -> None:
    mesh = Topology(3, 2)
    for call in (
        lambda: mesh.position(6),
        lambda: mesh.router_at(3, 0),
        lambda: mesh.attachment(-1),
        lambda: mesh.attachment(16),
        lambda: mesh.link(mesh.n_links),
        lambda: mesh.edge_endpoint(Port.LOCAL, 0),
        lambda: mesh.edge_endpoint(Port.EAST, 2),
        lambda: mesh.endpoint_at(0, Port.EAST),
        lambda: Port.LOCAL.opposite,
        lambda: routing.multicast_tree(mesh, 0, []),
        lambda: routing.multicast_tree(mesh, 0, [1, 1]),
        lambda: routing.multicast_tree(mesh, 0, [6]),
        lambda: routing.zero_load_latency_cycles(mesh, 0, 1, n_flits=0),
    ):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError):
        Topology(2.0, 2)  # type: ignore[arg-type]
