"""X-Y routes of a mesh as pure functions: along the row until the column fits, then along the column.

`step` is the rule; the links of a route, the tables of the simulated mesh (`nocsim.mesh.routing`), and the shares of
links that bounds use follow from it. Another topology begins here.

An endpoint is (column, row, side): the side of its router at which it sits. A link between routers is the pair of
their positions. A multicast takes the union of the X-Y routes to its destinations, each link once.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Literal

from cosa.model.noc import Noc, NodePort

Amount = Any
"""A number, or an array."""

Position = tuple[int, int]
Endpoint = tuple[int, int, str]
Link = tuple[Position, Position]


def step(columns: Amount, rows: Amount) -> tuple[Amount, Amount]:
    """The next hop (columns, rows; one of them 0) of a flit so many columns and rows before its destination.

    Numbers or arrays; (0, 0): it is there.
    """
    along_row = (columns > 0) * 1 - (columns < 0) * 1
    return along_row, ((rows > 0) * 1 - (rows < 0) * 1) * (along_row == 0)


def xy_links(source: Position, destination: Position) -> list[Link]:
    """Links between routers on the way, in order; none within one router."""
    places = [source]
    while (here := places[-1]) != destination:
        column, row = step(destination[0] - here[0], destination[1] - here[1])
        places.append((here[0] + column, here[1] + row))
    return list(pairwise(places))


def hops(source: Position, destination: Position) -> int:
    """Links between routers on the way."""
    return abs(destination[0] - source[0]) + abs(destination[1] - source[1])


def multicast_links(source: Position, destinations: Iterable[Position]) -> frozenset[Link]:
    """Links of the tree from one router to several."""
    return frozenset(link for destination in destinations for link in xy_links(source, destination))


def busiest_link_share(noc: Noc) -> float:
    """Part of the operands that one link next to the memories carries at least; 0 where that is not known.

    Routes go along the row first. With all memories at one router in the last column, what is for PEs of other columns
    leaves along the row. PEs are used from the first column on, so the last one has its even share of them at most;
    a multicast passes the link unless all its PEs are there.
    """
    ports = (*noc.global_buffer_ports, *noc.dram_ports)
    routers = {endpoint(noc, port)[:2] for port in ports}
    if len(noc.global_buffer_ports) > 1 or len(noc.dram_ports) > 1 or len(routers) > 1:
        return 0.0
    column = next(iter(routers))[0]
    return (noc.pe_columns - 1) / noc.pe_columns if column == noc.pe_columns - 1 else 0.0


def any_link_share(noc: Noc) -> float:
    """Part of the flits to PEs that one link at the memories' router carries at least, wherever the PEs are.

    Packets leave it along the row or down its column: with few PEs in use, half of them each way.
    """
    column, row, _ = endpoint(noc, noc.global_buffer_ports[0])
    ways = (column > 0) + (column < noc.router_columns - 1) + (row > 0) + (row < noc.router_rows - 1)
    return 1 / max(1, ways)


def endpoint(noc: Noc, port: NodePort) -> Endpoint:
    """Where a port of a noc block sits; negative positions count from the far edge."""
    return port.router[0] % noc.router_columns, port.router[1] % noc.router_rows, port.side


def pe_endpoint(noc: Noc, pe: int) -> Endpoint:
    """Where a PE sits: PEs are numbered row by row."""
    return pe % noc.pe_columns, pe // noc.pe_columns, "local"


def reduction_order(
    group: Iterable[int], columns: int, shape: Literal["chain", "tree"] = "chain"
) -> tuple[list[tuple[int, int]], int]:
    """How PEs that share an output tile add up: (from, to) pairs, and the PE that ends up with the sum.

    In each row to its last PE of the group, then from the rows to that of the last row. A chain passes the sum from
    each to the next; a tree adds pairs of neighbours, then pairs of the sums, and so on (of an odd number the first one
    waits), so it is as deep as the logarithm of their number. The hops are equally many.
    """
    rows: dict[int, list[int]] = {}
    for pe in sorted(group):
        rows.setdefault(pe // columns, []).append(pe)
    join = _chained if shape == "chain" else _paired
    ends = [members[-1] for members in rows.values()]
    return [*(pair for members in rows.values() for pair in join(members)), *join(ends)], ends[-1]


def _chained(members: list[int]) -> list[tuple[int, int]]:
    return list(pairwise(members))


def _paired(members: list[int]) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    while len(members) > 1:
        odd = len(members) % 2
        pairs += zip(members[odd::2], members[odd + 1 :: 2], strict=True)
        members = members[:odd] + members[odd + 1 :: 2]
    return pairs
