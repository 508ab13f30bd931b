"""Routes and multicast trees of a topology, by the rule of `cosa.analytical.routes`. Pure functions.

A flit goes hop by hop until it is at its destination's router, then out at the destination's port. A multicast tree is
the union of the paths to its destinations (Matchlib HybridRouter with dimension-order tables).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from cosa.analytical import routes
from nocsim.mesh.topology import N_PORTS, Port, Topology

_PORTS = {(0, -1): Port.NORTH, (1, 0): Port.EAST, (0, 1): Port.SOUTH, (-1, 0): Port.WEST}
"""By which port a flit leaves a router for the next hop (columns, rows)."""

ROUTER_CYCLES = 4
"""Cycles a flit needs from one router's input register to the next one's in a quiet mesh."""


def output_port(topology: Topology, router: int, dst: int) -> Port:
    """Port by which a flit for endpoint ``dst`` leaves ``router``."""
    column, row = topology.position(router)
    dst_router, dst_port = topology.attachment(dst)
    dst_column, dst_row = topology.position(dst_router)
    return _PORTS.get(routes.step(dst_column - column, dst_row - row), dst_port)


def unicast_route(topology: Topology, src: int, dst: int) -> list[int]:
    """Link numbers from endpoint to endpoint: injection link, links between routers, ejection link."""
    router, _ = topology.attachment(src)
    route = [topology.injection_link(src)]
    while True:
        port = output_port(topology, router, dst)
        route.append(topology.output_link(router, port))
        neighbour = topology.neighbour(router, port)
        if neighbour is None:
            return route
        router = neighbour


def hops(topology: Topology, src: int, dst: int) -> int:
    """Number of links between routers on the way from endpoint ``src`` to endpoint ``dst``."""
    start, end = (topology.position(topology.attachment(endpoint)[0]) for endpoint in (src, dst))
    return routes.hops(start, end)


def zero_load_latency_cycles(topology: Topology, src: int, dst: int, n_flits: int = 1) -> int:
    """Cycles from the head flit's entry to the tail flit's ejection of a packet in a quiet mesh."""
    if n_flits < 1:
        raise ValueError(f"a packet has at least 1 flit, not {n_flits}")
    return 1 + ROUTER_CYCLES * (hops(topology, src, dst) + 1) + n_flits - 1


def multicast_ports(topology: Topology, src: int, dsts: Iterable[int]) -> dict[int, frozenset[Port]]:
    """Output ports at each router of the tree, keyed by router number.

    ``src`` is any endpoint; ``dsts`` are local endpoints, ``src`` may be among them. Raises ValueError without
    destinations and for edge destinations.
    """
    root, _ = topology.attachment(src)
    ports: dict[int, set[Port]] = {}
    for dst in multicast_destinations(topology, dsts):
        router: int | None = root
        while router is not None:
            port = output_port(topology, router, dst)
            ports.setdefault(router, set()).add(port)
            router = topology.neighbour(router, port)
    return {router: frozenset(found) for router, found in ports.items()}


def multicast_tree(topology: Topology, src: int, dsts: Iterable[int]) -> frozenset[int]:
    """Link numbers of the tree, injection and ejection links included (arguments as in multicast_ports)."""
    ports = multicast_ports(topology, src, dsts)
    links = {topology.output_link(router, port) for router, found in ports.items() for port in found}
    return frozenset(links | {topology.injection_link(src)})


def multicast_destinations(topology: Topology, dsts: Iterable[int]) -> tuple[int, ...]:
    """Destinations in ascending order; ValueError if there are none, one twice, or one at an edge."""
    ordered = tuple(sorted(dsts))
    if not ordered:
        raise ValueError("a multicast needs at least one destination")
    if len(set(ordered)) != len(ordered):
        raise ValueError(f"a multicast names a destination twice: {ordered}")
    for dst in (ordered[0], ordered[-1]):
        if not topology.is_local(dst):
            raise ValueError(f"a multicast reaches local ports only, not endpoint {dst}")
    return ordered


def output_link_table(topology: Topology) -> npt.NDArray[np.int64]:
    """Link driven by each output port, shape (n_routers, 5)."""
    table = [[topology.output_link(router, port) for port in Port] for router in range(topology.n_routers)]
    return np.array(table, dtype=np.int64)


def unicast_link_table(topology: Topology) -> npt.NDArray[np.int64]:
    """Link by which a flit for an endpoint leaves a router, shape (n_endpoints, n_routers)."""
    attachments = np.array([topology.attachment(e) for e in range(topology.n_endpoints)], dtype=np.int64)
    dst_row, dst_column = np.divmod(attachments[:, :1], topology.columns)
    row, column = np.divmod(np.arange(topology.n_routers, dtype=np.int64)[np.newaxis, :], topology.columns)
    columns, rows = routes.step(dst_column - column, dst_row - row)
    port = attachments[:, 1:]
    for hop, towards in _PORTS.items():
        port = np.where((columns == hop[0]) & (rows == hop[1]), int(towards), port)
    flat = output_link_table(topology).reshape(-1)
    return np.asarray(flat[np.arange(topology.n_routers, dtype=np.int64) * N_PORTS + port])
