"""X-Y routes of a mesh as pure functions: along the row until the column fits, then along the column.

An endpoint is (column, row, side): the side of its router at which it sits. A link between routers is the pair of
their positions. A multicast takes the union of the X-Y routes to its destinations, each link once.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from cosa.noc import Noc
from cosa.noc import Port as NocPort

Position = tuple[int, int]
Endpoint = tuple[int, int, str]
Link = tuple[Position, Position]


def xy_links(source: Position, destination: Position) -> list[Link]:
    """Links between routers on the way, in order; none within one router."""
    column, row = source
    places = [source]
    while column != destination[0]:
        column += 1 if destination[0] > column else -1
        places.append((column, row))
    while row != destination[1]:
        row += 1 if destination[1] > row else -1
        places.append((column, row))
    return list(pairwise(places))


def multicast_links(source: Position, destinations: Iterable[Position]) -> frozenset[Link]:
    """Links of the tree from one router to several."""
    return frozenset(link for destination in destinations for link in xy_links(source, destination))


def endpoint(noc: Noc, port: NocPort) -> Endpoint:
    """Where a port of a noc block sits; negative positions count from the far edge."""
    return port.router[0] % noc.router_columns, port.router[1] % noc.router_rows, port.side


def pe_endpoint(noc: Noc, pe: int) -> Endpoint:
    """Where a PE sits: PEs are numbered row by row."""
    return pe % noc.pe_columns, pe // noc.pe_columns, "local"


def reduction_order(group: Iterable[int], columns: int) -> tuple[list[tuple[int, int]], int]:
    """How PEs that share an output tile add up: (from, to) pairs, and the PE that ends up with the sum.

    Along each row to its last PE of the group, then from row to row to that of the last row.
    """
    rows: dict[int, list[int]] = {}
    for pe in sorted(group):
        rows.setdefault(pe // columns, []).append(pe)
    ends = [members[-1] for members in rows.values()]
    pairs = [pair for members in rows.values() for pair in pairwise(members)]
    return [*pairs, *pairwise(ends)], ends[-1]
