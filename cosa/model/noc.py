"""The mesh of an architecture: PEs and routers, flits and packets, and where global buffer and DRAM attach."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from cosa.common.errors import FieldError, InputError
from cosa.common.files import WHOLE, Model

MAX_MESH = 64
_MESH = re.compile(r"([1-9][0-9]?)x([1-9][0-9]?)")
_MESH_ALLOWED = f"columns x rows, each from 1 to {MAX_MESH}, such as 4x4"


def parse_mesh(text: str, source: str | None = None, path: str | None = None) -> tuple[int, int]:
    """``"4x4"`` as (columns, rows); both from 1 to 64.

    Raises
    ------
    InputError: not of that form, or a side out of range.
    """
    match = _MESH.fullmatch(str(text).strip().lower())
    sides = (int(match[1]), int(match[2])) if match else (0, 0)
    if not all(1 <= side <= MAX_MESH for side in sides):
        raise InputError("not a mesh", source=source, path=path, value=text, allowed=_MESH_ALLOWED)
    return sides


class NodePort(Model):
    """Where a node attaches: router as [column, row], negative numbers from the far edge; an edge side for DRAM."""

    router: tuple[int, int]
    side: Literal["local", "north", "east", "south", "west"] = "local"


class Noc(Model):
    """The mesh. Routers are the PE mesh plus `extra_rows` rows below it; sizes in flits of `flit_bits`."""

    mesh: str
    extra_rows: Annotated[int, Field(ge=0, le=MAX_MESH)] = 0
    flit_bits: Annotated[Literal[32, 64, 128, 256, 512], WHOLE] = 64
    packet_payload_flits: Annotated[int, Field(ge=1, le=1024)] = 4
    partial_packets: Literal["full", "trimmed"] = "trimmed"
    fifo_flits: Annotated[int, Field(ge=1, le=63)] = 7
    multicast_reservation_flits: Annotated[int, Field(ge=1, le=63)] = 5
    global_buffer_ports: Annotated[tuple[NodePort, ...], Field(min_length=1)] = (NodePort(router=(-1, -1)),)
    dram_ports: Annotated[tuple[NodePort, ...], Field(min_length=1)] = (NodePort(router=(-1, -1), side="south"),)

    @field_validator("mesh")
    @classmethod
    def _mesh(cls, mesh: str) -> str:
        match = _MESH.fullmatch(mesh)
        if not match or not all(1 <= int(side) <= MAX_MESH for side in match.groups()):
            raise FieldError("not a mesh", allowed=_MESH_ALLOWED)
        return mesh

    @model_validator(mode="after")
    def _consistent(self) -> Noc:
        packet, places = 1 + self.packet_payload_flits, self.multicast_reservation_flits
        if places < packet:
            raise FieldError(
                f"less than a packet of {packet} flits (header included), so multicasts can deadlock",
                path="multicast_reservation_flits",
                value=places,
                allowed=f">= {packet}",
            )
        if self.fifo_flits < places:
            raise FieldError(
                "less than multicast_reservation_flits, so no multicast could ever start",
                path="fifo_flits",
                value=self.fifo_flits,
                allowed=f">= {places}",
            )
        columns, rows = self.router_columns, self.router_rows
        for name in ("global_buffer_ports", "dram_ports"):
            for number, port in enumerate(getattr(self, name)):
                column, row = port.router
                path = f"{name}[{number}]"
                if not (-columns <= column < columns and -rows <= row < rows):
                    raise FieldError(
                        f"outside the {columns}x{rows} routers",
                        path=f"{path}.router",
                        value=[column, row],
                        allowed=f"column from {-columns} to {columns - 1}, row from {-rows} to {rows - 1}",
                    )
                at_edge = {"local": True, "north": row % rows == 0, "south": row % rows == rows - 1}
                at_edge |= {"west": column % columns == 0, "east": column % columns == columns - 1}
                if not at_edge[port.side]:
                    raise FieldError(
                        f"router [{column}, {row}] has no such edge",
                        path=f"{path}.side",
                        value=port.side,
                        allowed=", ".join(side for side, there in at_edge.items() if there),
                    )
                if name == "global_buffer_ports" and port.side != "local":
                    raise FieldError(
                        "a global buffer sits on a router's local port (multicasts end there)",
                        path=f"{path}.side",
                        value=port.side,
                        allowed="local",
                    )
        return self

    @property
    def pe_columns(self) -> int:
        """Columns of PEs."""
        return int(self.mesh.split("x")[0])

    @property
    def pe_rows(self) -> int:
        """Rows of PEs."""
        return int(self.mesh.split("x")[1])

    @property
    def pes(self) -> int:
        """Number of PEs."""
        return self.pe_columns * self.pe_rows

    @property
    def router_columns(self) -> int:
        """Columns of routers."""
        return self.pe_columns

    @property
    def router_rows(self) -> int:
        """Rows of routers."""
        return self.pe_rows + self.extra_rows
