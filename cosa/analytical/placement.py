"""Which PE of the mesh does what: the spatial loops at the mesh level laid out over rows and columns."""

from __future__ import annotations

from cosa.analytical.tiles import Shift, StridedLoop, Tile
from cosa.arch import Architecture
from cosa.workload import Dim, Layer


class Placement:
    """Which PE of the mesh does what: the offsets of each PE and the groups of PEs that share a tile."""

    def __init__(self, layer: Layer, architecture: Architecture, loops: list[StridedLoop]) -> None:
        level = architecture.mesh_level
        columns, rows = architecture.fanout(level)
        self.columns, self.rows = columns, rows
        self._layer = layer
        spatial = [x for x in loops if x.level == level and x.loop.kind == "spatial"]
        self.offsets: dict[int, dict[Dim, int]] = {}
        coordinates: list[tuple[int, int, dict[Dim, int]]] = [(0, 0, {})]
        size = {"x": 1, "y": 1, "row_major": 1}
        for x in reversed(spatial):
            axis = x.loop.axis
            assert axis is not None
            reach, size[axis] = size[axis], size[axis] * x.bound
            coordinates = [
                (
                    column + (index * reach if axis != "y" else 0),
                    row + (index * reach if axis == "y" else 0),
                    {**offsets, x.dim: offsets.get(x.dim, 0) + index * x.stride},
                )
                for index in range(x.bound)
                for column, row, offsets in coordinates
            ]
        for column, row, offsets in coordinates:
            self.offsets[row * columns + column] = offsets
        self.offsets = dict(sorted(self.offsets.items()))

    @property
    def used(self) -> list[int]:
        """Numbers of the PEs in use, row by row."""
        return list(self.offsets)

    def groups(self, tile: Tile) -> list[tuple[Shift, list[int]]]:
        """(position, PEs) of each group of PEs that hold the same tile, in order of their first PE."""
        found: dict[Shift, list[int]] = {}
        for pe, offsets in self.offsets.items():
            found.setdefault(tile.position(offsets), []).append(pe)
        return list(found.items())
