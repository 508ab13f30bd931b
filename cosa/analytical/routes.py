"""X-Y routes of a mesh as pure functions: along the row until the column fits, then along the column.

An endpoint is (column, row, side): the side of its router at which it sits. A link between routers is the pair of
their positions. A multicast takes the union of the X-Y routes to its destinations, each link once.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Literal

from cosa.model.noc import Noc
from cosa.model.noc import NodePort as NocPort

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
