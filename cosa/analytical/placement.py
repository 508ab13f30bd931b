"""Which PE of the mesh does what: the spatial loops at the mesh level laid out over rows and columns."""

from __future__ import annotations

from cosa.analytical.tiles import Shift, StridedLoop, Tile
from cosa.common.errors import InputError
from cosa.model.arch import Architecture, PlacementOrder
from cosa.model.layer import Dim, Layer


class Placement:
    """The offsets of each PE in use, and the groups of PEs that share a tile.

    `machine.placement` says where the loops run:

    * ``as_scheduled``: each along its own axis, of one axis the innermost loop with the smallest steps.
    * ``transposed``: those along x along y, and the other way round.
    * ``row_major``, ``column_major``: all loops number the PEs in use, the innermost one fastest; numbers go along the
      rows, or down the columns. With ``_reversed`` the outermost loop is the fastest.

    Raises
    ------
    InputError: transposed, the loops do not fit the mesh.
    """

    def __init__(self, layer: Layer, architecture: Architecture, loops: list[StridedLoop]) -> None:
        level, placement = architecture.mesh_level, architecture.machine.placement
        columns, rows = architecture.fanout(level)
        self.columns, self.rows = columns, rows
        inside_out = [x for x in reversed(loops) if x.level == level and x.loop.kind == "spatial"]
        if placement.endswith("_reversed"):
            inside_out.reverse()
        size = {"x": 1, "y": 1, "row_major": 1, "column_major": 1}
        places: list[tuple[dict[str, int], dict[Dim, int]]] = [({}, {})]
        for x in inside_out:
            axis = _axis(placement, x)
            reach, size[axis] = size[axis], size[axis] * x.bound
            places = [
                (
                    {**at, axis: at.get(axis, 0) + index * reach},
                    {**offsets, x.dim: offsets.get(x.dim, 0) + index * x.stride},
                )
                for index in range(x.bound)
                for at, offsets in places
            ]
        if size["x"] > columns or size["y"] > rows:
            raise InputError(
                f"the spatial loops need {size['x']}x{size['y']} PEs when they are transposed",
                source=architecture.name,
                path="machine.placement",
                value=placement,
                allowed=f"a placement that fits the {columns}x{rows} mesh",
            )
        numbered = {}
        for at, offsets in places:
            column, row = at.get("x", 0), at.get("y", 0)
            down = at.get("column_major", 0)
            number = row * columns + column + at.get("row_major", 0) + down % rows * columns + down // rows
            numbered[number] = offsets
        self.offsets: dict[int, dict[Dim, int]] = dict(sorted(numbered.items()))

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


def _axis(placement: PlacementOrder, x: StridedLoop) -> str:
    """Along what a loop runs: an axis of the mesh, or the numbers of the PEs in some order."""
    scheduled = x.loop.axis
    assert scheduled is not None
    if placement == "as_scheduled":
        return scheduled
    if placement == "transposed":
        return {"x": "y", "y": "x", "row_major": "column_major"}[scheduled]
    return placement.removesuffix("_reversed")
