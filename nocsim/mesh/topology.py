"""The 2-D mesh as a graph of routers, endpoints and links, with the numbers every other module uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx


class Port(IntEnum):
    """Ports of a router. The numbers also give the order in which a router looks at its inputs."""

    LOCAL = 0
    NORTH = 1
    EAST = 2
    SOUTH = 3
    WEST = 4

    @property
    def opposite(self) -> Port:
        """The port at the other end of a link between two routers (LOCAL has none: ValueError)."""
        if self is Port.LOCAL:
            raise ValueError("the local port has no opposite port")
        return Port((self + 1) % 4 + 1)


N_PORTS = len(Port)


class LinkKind(IntEnum):
    """What a link joins."""

    INJECTION = 0
    ROUTER = 1
    EJECTION = 2


@dataclass(frozen=True)
class Link:
    """One directed link.

    ``source`` and ``target`` are router numbers, or endpoint numbers where ``kind`` says so: the source of an
    injection link and the target of an ejection link are endpoints.
    """

    number: int
    kind: LinkKind
    source: int
    target: int
    name: str


@dataclass(frozen=True)
class Topology:
    """A mesh of ``columns`` x ``rows`` routers.

    Routers are numbered row-major, router 0 is the north-west corner. Endpoints: 0 .. n_routers-1 are the local ports,
    then the edge ports clockwise: north edge left to right, east edge top to bottom, south edge right to left, west
    edge bottom to top (the numbering of the original network simulator of the CoSA paper).

    Links are numbered by the router input they feed: ``port * n_routers + router``; then follow the ejection links,
    ``5 * n_routers + endpoint``.

    Examples
    --------
    >>> mesh = Topology(columns=4, rows=5)
    >>> mesh.n_routers, mesh.n_endpoints, mesh.n_links
    (20, 38, 138)
    >>> mesh.edge_endpoint(Port.SOUTH, 3), mesh.endpoint_name(29)
    (29, 'south3')
    >>> mesh.attachment(29)
    (19, <Port.SOUTH: 3>)
    """

    columns: int
    rows: int

    def __post_init__(self) -> None:
        """Reject meshes without routers."""
        for name, value in (("columns", self.columns), ("rows", self.rows)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be an int, not {value!r}")
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")

    @property
    def n_routers(self) -> int:
        """Number of routers, which is also the number of local endpoints."""
        return self.columns * self.rows

    @property
    def n_endpoints(self) -> int:
        """Number of endpoints: local ports and edge ports."""
        return self.n_routers + 2 * (self.columns + self.rows)

    @property
    def n_links(self) -> int:
        """Number of directed links, those of the endpoints included."""
        return N_PORTS * self.n_routers + self.n_endpoints

    @property
    def first_ejection_link(self) -> int:
        """Number of the ejection link of endpoint 0."""
        return N_PORTS * self.n_routers

    def router_at(self, column: int, row: int) -> int:
        """Number of the router at a position (ValueError outside the mesh)."""
        if not (0 <= column < self.columns and 0 <= row < self.rows):
            raise ValueError(f"no router at column {column}, row {row} in a {self.columns}x{self.rows} mesh")
        return row * self.columns + column

    def position(self, router: int) -> tuple[int, int]:
        """(column, row) of a router."""
        self._check(router, self.n_routers, "router")
        return router % self.columns, router // self.columns

    def neighbour(self, router: int, port: Port) -> int | None:
        """The router behind a port, None if an endpoint sits there."""
        column, row = self.position(router)
        if port == Port.NORTH and row > 0:
            return router - self.columns
        if port == Port.EAST and column < self.columns - 1:
            return router + 1
        if port == Port.SOUTH and row < self.rows - 1:
            return router + self.columns
        if port == Port.WEST and column > 0:
            return router - 1
        return None

    def edge_endpoint(self, side: Port, index: int) -> int:
        """Endpoint at the edge ``side``; ``index`` is the column (north, south) or the row (east, west)."""
        length = self.columns if side in (Port.NORTH, Port.SOUTH) else self.rows
        if side == Port.LOCAL:
            raise ValueError("the local port is not at an edge")
        self._check(index, length, f"position at the {side.name.lower()} edge")
        if side == Port.NORTH:
            return self.n_routers + index
        if side == Port.EAST:
            return self.n_routers + self.columns + index
        if side == Port.SOUTH:
            return self.n_routers + 2 * self.columns + self.rows - 1 - index
        return self.n_endpoints - 1 - index

    def attachment(self, endpoint: int) -> tuple[int, Port]:
        """(router, port) at which an endpoint sits."""
        self._check(endpoint, self.n_endpoints, "endpoint")
        if endpoint < self.n_routers:
            return endpoint, Port.LOCAL
        side, index = self._edge(endpoint)
        if side == Port.NORTH:
            return index, side
        if side == Port.EAST:
            return self.router_at(self.columns - 1, index), side
        if side == Port.SOUTH:
            return self.router_at(index, self.rows - 1), side
        return self.router_at(0, index), side

    def endpoint_at(self, router: int, port: Port) -> int:
        """Endpoint at a port of a router (ValueError if the port leads to another router)."""
        column, row = self.position(router)
        if port == Port.LOCAL:
            return router
        if self.neighbour(router, port) is not None:
            raise ValueError(f"port {Port(port).name} of router {router} leads to another router")
        return self.edge_endpoint(port, column if port in (Port.NORTH, Port.SOUTH) else row)

    def is_local(self, endpoint: int) -> bool:
        """Whether an endpoint is a local port (multicasts reach only these)."""
        self._check(endpoint, self.n_endpoints, "endpoint")
        return endpoint < self.n_routers

    def endpoint_name(self, endpoint: int) -> str:
        """``local5``, ``north0``, ``east2`` ...; edge names carry the column or the row."""
        self._check(endpoint, self.n_endpoints, "endpoint")
        if endpoint < self.n_routers:
            return f"local{endpoint}"
        side, index = self._edge(endpoint)
        return f"{side.name.lower()}{index}"

    def input_link(self, router: int, port: Port) -> int:
        """Link that feeds an input port."""
        self._check(router, self.n_routers, "router")
        return int(port) * self.n_routers + router

    def output_link(self, router: int, port: Port) -> int:
        """Link that an output port drives."""
        target = self.neighbour(router, port)
        if target is None:
            return self.ejection_link(self.endpoint_at(router, port))
        return self.input_link(target, Port(port).opposite)

    def injection_link(self, endpoint: int) -> int:
        """Link from an endpoint into its router."""
        return self.input_link(*self.attachment(endpoint))

    def ejection_link(self, endpoint: int) -> int:
        """Link from a router to its endpoint."""
        self._check(endpoint, self.n_endpoints, "endpoint")
        return self.first_ejection_link + endpoint

    def link(self, number: int) -> Link:
        """What is known of one link."""
        self._check(number, self.n_links, "link")
        if number >= self.first_ejection_link:
            endpoint = number - self.first_ejection_link
            router, _ = self.attachment(endpoint)
            return Link(number, LinkKind.EJECTION, router, endpoint, f"r{router}->{self.endpoint_name(endpoint)}")
        port, router = Port(number // self.n_routers), number % self.n_routers
        source = self.neighbour(router, port)
        if source is not None:
            return Link(number, LinkKind.ROUTER, source, router, f"r{source}->r{router}")
        endpoint = self.endpoint_at(router, port)
        return Link(number, LinkKind.INJECTION, endpoint, router, f"{self.endpoint_name(endpoint)}->r{router}")

    def link_name(self, number: int) -> str:
        """``r0->r1`` between routers, ``local0->r0`` for an injection, ``r0->local0`` for an ejection link."""
        return self.link(number).name

    def links(self) -> Iterator[Link]:
        """All links in the order of their numbers."""
        return (self.link(number) for number in range(self.n_links))

    def link_names(self) -> tuple[str, ...]:
        """Names of all links in the order of their numbers, to go with arrays of one value a link."""
        return tuple(link.name for link in self.links())

    def to_networkx(self) -> networkx.DiGraph[str]:
        """The mesh as a directed graph.

        Nodes are named ``r5`` (attributes ``kind="router"``, ``router``, ``column``, ``row``) and like
        ``endpoint_name`` (``kind="endpoint"``, ``endpoint``, ``router``, ``port``). Each edge carries ``link`` (its
        number) and ``kind`` (``injection``, ``router``, ``ejection``).
        """
        import networkx

        graph: networkx.DiGraph[str] = networkx.DiGraph(columns=self.columns, rows=self.rows)
        for router in range(self.n_routers):
            column, row = self.position(router)
            graph.add_node(f"r{router}", kind="router", router=router, column=column, row=row)
        for endpoint in range(self.n_endpoints):
            router, port = self.attachment(endpoint)
            name = self.endpoint_name(endpoint)
            graph.add_node(name, kind="endpoint", endpoint=endpoint, router=router, port=port.name.lower())
        for link in self.links():
            source, _, target = link.name.partition("->")
            graph.add_edge(source, target, link=link.number, kind=link.kind.name.lower())
        return graph

    def _edge(self, endpoint: int) -> tuple[Port, int]:
        """Side and column or row of an edge endpoint."""
        place = endpoint - self.n_routers
        if place < self.columns:
            return Port.NORTH, place
        place -= self.columns
        if place < self.rows:
            return Port.EAST, place
        place -= self.rows
        if place < self.columns:
            return Port.SOUTH, self.columns - 1 - place
        return Port.WEST, self.rows - 1 - (place - self.columns)

    @staticmethod
    def _check(number: int, count: int, what: str) -> None:
        if not 0 <= number < count:
            raise ValueError(f"{what} {number} is not in 0..{count - 1}")
