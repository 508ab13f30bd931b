"""Synthetic traffic patterns: where each local endpoint of a mesh sends.

The names are those of the NoC literature (Dally and Towles, "Principles and Practices of Interconnection Networks",
2004, section 3.2; BookSim2; gem5 Garnet). ``n`` is the number of nodes, node = row * columns + column:

=========  =============================================================================  =====================
uniform    any other node, all equally likely                                             any mesh
transpose  node at (column, row) sends to (row, column)                                   square
bitcomp    every bit of the node number inverted, which is n - 1 - node and so            any mesh
           defined for every mesh
bitrev     bits of the node number in reverse order                                       n a power of two
shuffle    bits of the node number rotated left by one                                    n a power of two
tornado    ceil(columns / 2) - 1 columns to the east in its row, around the edge          any mesh
neighbor   one column to the east in its row, around the edge                             any mesh
hotspot    a hot node with a given probability, else as uniform                           any mesh
multicast  a set of a given number of distinct nodes, all sets equally likely, which      any mesh
           may hold the sender
=========  =============================================================================  =====================

A pattern may send a node's packets to the node itself (the diagonal of transpose, a mesh of one node); they turn round
at its router. tornado and neighbor move along the row only, as in Garnet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from cosa.common.errors import InputError, nearest_of
from nocsim.mesh.topology import Topology
from nocsim.traffic.packets import Int64s

PatternName = Literal[
    "uniform", "transpose", "bitcomp", "bitrev", "shuffle", "tornado", "neighbor", "hotspot", "multicast"
]
PATTERNS: tuple[PatternName, ...] = get_args(PatternName)


@dataclass(frozen=True)
class Pattern:
    """A pattern on one mesh.

    Attributes
    ----------
    name: one of `PATTERNS`
    topology: the mesh
    hot_node: for ``hotspot``: the node; default the one nearest to the middle (rounded to the south-east)
    hot_share: for ``hotspot``: probability that a packet goes there, 0..1
    destinations: for ``multicast``: nodes of each packet

    Raises
    ------
    InputError: no such pattern, not on this mesh, or a parameter is out of range.
    """

    name: PatternName
    topology: Topology
    hot_node: int | None = None
    hot_share: float = 0.2
    destinations: int = 4

    def __post_init__(self) -> None:
        """Reject patterns that the mesh does not have."""
        n, mesh = self.topology.n_routers, f"{self.topology.columns}x{self.topology.rows}"
        if self.name not in PATTERNS:
            raise InputError(
                "no such pattern",
                source="--pattern",
                value=self.name,
                allowed=", ".join(PATTERNS),
                nearest=nearest_of(str(self.name), PATTERNS),
            )
        if self.name in ("bitrev", "shuffle") and n & (n - 1):
            allowed = "a mesh with a power of two of nodes, such as 4x4 or 8x4"
            raise InputError(
                f"pattern {self.name} moves bits of node numbers", source="--mesh", value=mesh, allowed=allowed
            )
        if self.name == "transpose" and self.topology.columns != self.topology.rows:
            allowed = "a square mesh, such as 4x4"
            raise InputError("pattern transpose exchanges column and row", source="--mesh", value=mesh, allowed=allowed)
        if self.hot_node is not None and not 0 <= self.hot_node < n:
            raise InputError("no such node", source="--hot-node", value=self.hot_node, allowed=f"0..{n - 1}")
        if not 0 <= self.hot_share <= 1:
            raise InputError("not a share", source="--hot-share", value=self.hot_share, allowed="0..1")
        if self.name == "multicast" and not 1 <= self.destinations <= n:
            raise InputError(
                "a multicast goes to distinct nodes",
                source="--destinations",
                value=self.destinations,
                allowed=f"1..{n}",
            )

    @property
    def multicast(self) -> bool:
        """Whether packets follow the multicast rules."""
        return self.name == "multicast"

    @property
    def fan_out(self) -> int:
        """Destinations of each packet."""
        return self.destinations if self.multicast else 1

    def draw(self, src: Int64s, rng: np.random.Generator) -> Int64s:
        """Destinations of one packet from each of ``src``, shape (len(src), fan_out)."""
        n = self.topology.n_routers
        if self.multicast:
            # the first places of a random permutation for each packet
            return np.argsort(rng.random((src.size, n)), axis=1)[:, : self.destinations]
        if self.name in ("uniform", "hotspot"):
            others = (src + rng.integers(1, max(n, 2), src.size)) % n
            if self.name == "uniform":
                return others[:, np.newaxis]
            columns, rows = self.topology.columns, self.topology.rows
            hot = self.topology.router_at(columns // 2, rows // 2) if self.hot_node is None else self.hot_node
            return np.where(rng.random(src.size) < self.hot_share, hot, others)[:, np.newaxis]
        return permutation(self.name, self.topology)[src][:, np.newaxis]


def permutation(name: str, topology: Topology) -> Int64s:
    """Destination of each node under a pattern that is a permutation."""
    n, columns = topology.n_routers, topology.columns
    node = np.arange(n, dtype=np.int64)
    row, column = np.divmod(node, columns)
    bits = n.bit_length() - 1
    ways: dict[str, Callable[[], Int64s]] = {
        "transpose": lambda: column * columns + row,
        "bitcomp": lambda: n - 1 - node,
        "bitrev": lambda: sum((((node >> bit) & 1) << (bits - 1 - bit) for bit in range(bits)), np.zeros_like(node)),
        "shuffle": lambda: ((node << 1) | (node >> max(bits - 1, 0))) & (n - 1),
        "tornado": lambda: row * columns + (column + (columns + 1) // 2 - 1) % columns,
        "neighbor": lambda: row * columns + (column + 1) % columns,
    }
    return ways[name]()
