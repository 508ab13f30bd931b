"""Where the flits went: flits and busy share of every link and port, as a table and as a picture of the mesh."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cosa.common.errors import InputError
from cosa.common.files import whole_file
from nocsim.mesh.topology import LinkKind, Port, Topology
from nocsim.result.pictures import PICTURE_ENDINGS, new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEAT_ENDINGS = (*PICTURE_ENDINGS, ".csv")
_COLUMNS = "link,kind,source,target,flits,busy_share"

# the picture, in units of the distance between two routers; y points down as the rows do
_ROUTER = 0.17  # half the side of a router's square
_LANE = 0.065  # from the middle line to the lane of one direction
_WIDTH = 0.042  # half the width of an arrow's shaft
_HEAD = 0.075  # half the width of an arrow's head
_STUB = 0.55  # length of the arrows to and from an edge endpoint
_LOCAL_FROM, _LOCAL_TO = 0.335, 0.545  # the arrows to and from a local endpoint, along the diagonal
_NODE = 0.065  # radius of an endpoint
_MARGIN = 0.30  # around the routers; more on sides with edge endpoints or local ones
_NUMBERS_UP_TO = 8  # columns or rows up to which each arrow carries its number
_DIRECTIONS = {Port.NORTH: (0.0, -1.0), Port.EAST: (1.0, 0.0), Port.SOUTH: (0.0, 1.0), Port.WEST: (-1.0, 0.0)}
_DIAGONAL = (math.sqrt(0.5), math.sqrt(0.5))


@dataclass(frozen=True)
class LinkHeat:
    """Flits of each link over some cycles; links in the order of `Topology.link_names`.

    Attributes
    ----------
    topology: the mesh
    flits: flits that crossed each link, shape (n_links,)
    cycles: length of the time in which they did
    """

    topology: Topology
    flits: npt.NDArray[np.int64]
    cycles: int

    @property
    def busy_share(self) -> npt.NDArray[np.float64]:
        """Share of the cycles in which each link carried a flit, shape (n_links,), 0..1."""
        return self.flits / max(self.cycles, 1)

    def kind(self, kind: LinkKind) -> npt.NDArray[np.bool_]:
        """Which links are of a kind, shape (n_links,)."""
        return np.array([link.kind == kind for link in self.topology.links()], dtype=np.bool_)

    def table(self) -> str:
        """CSV text: link, kind, source, target (routers r0 .. or endpoints), flits, busy_share."""
        lines = [_COLUMNS]
        for link, flits, share in zip(
            self.topology.links(), self.flits.tolist(), self.busy_share.tolist(), strict=True
        ):
            source, _, target = link.name.partition("->")
            lines.append(f"{link.name},{link.kind.name.lower()},{source},{target},{flits},{share:.6f}")
        return "".join(line + "\n" for line in lines)

    def save(self, path: str | Path, *, title: str | None = None, names: Mapping[int, str] | None = None) -> None:
        """Write the table (``.csv``) or the picture (``.png``, ``.svg``, ``.pdf``), see `draw_heat`."""
        if Path(path).suffix.lower() == ".csv":
            with whole_file(path) as stream:
                stream.write(self.table().encode())
        else:
            draw_heat(self.topology, self.flits, self.cycles, path, title=title, names=names)


def check_heat_file(path: str, option: str = "--heat") -> None:
    """InputError unless the ending is one that `LinkHeat.save` knows; call it before the work."""
    ending = Path(path).suffix.lower()
    if ending not in HEAT_ENDINGS:
        allowed = f"a name that ends in {', '.join(HEAT_ENDINGS)}"
        raise InputError("no such kind of file", source=option, value=path, allowed=allowed)


def draw_heat(
    topology: Topology,
    flits: npt.NDArray[np.int64],
    cycles: int,
    path: str | Path,
    *,
    title: str | None = None,
    names: Mapping[int, str] | None = None,
) -> None:
    """Draw the mesh with its links coloured by their busy share.

    Routers are squares. The two directions of a link lie side by side, each an arrow that points the way of its
    flits and lies to the right of it. Endpoints are circles: local ones at the lower right of their router, edge ones
    outside; edge endpoints are drawn only where some of them sent or received. Small meshes carry the busy share in
    percent at each arrow.

    Parameters
    ----------
    topology: the mesh
    flits: flits of each link, shape (n_links,), as `Mesh.link_flits` gives them
    cycles: time in which they crossed
    path: picture to write (``.png``, ``.svg``, ``.pdf``)
    title: heading
    names: short names for some endpoints, such as ``{19: "GB", 29: "DRAM"}``; the others carry no name

    Raises
    ------
    InputError: the file cannot be written, or its ending is not one of a picture.
    """
    from matplotlib import colormaps
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import Normalize

    heat = LinkHeat(topology, np.asarray(flits), cycles)
    shares = heat.busy_share
    first_edge = topology.n_routers
    used = [e for e in range(first_edge, topology.n_endpoints) if _is_used(topology, heat.flits, e)]
    sides = {topology.attachment(endpoint)[1] for endpoint in used}
    edge = _ROUTER + _STUB + 2 * _NODE + 0.15
    left, top = (edge if side in sides else _MARGIN for side in (Port.WEST, Port.NORTH))
    right, bottom = (edge if side in sides else _MARGIN + 0.3 for side in (Port.EAST, Port.SOUTH))
    width, height = topology.columns - 1 + left + right, topology.rows - 1 + top + bottom
    inch = float(np.clip(11.0 / max(width, height), 0.42, 1.45))
    figure = new_figure(max(width * inch + 1.6, 4.6), max(height * inch + 0.9, 3.4))
    axes = figure.add_subplot()
    axes.set_aspect("equal")
    axes.set_xlim(-left, topology.columns - 1 + right)
    axes.set_ylim(topology.rows - 1 + bottom, -top)
    axes.axis("off")
    axes.set_title(title or f"Busy share of the links, {topology.columns}x{topology.rows} mesh, {cycles:,} cycles")

    arrows, values, marks = [], [], []
    for link in topology.links():
        endpoint = {LinkKind.INJECTION: link.source, LinkKind.EJECTION: link.target}.get(link.kind)
        if endpoint is not None and endpoint >= first_edge and endpoint not in used:
            continue
        start, stop = _ends(topology, link.number)
        arrows.append(_arrow(start, stop))
        values.append(float(shares[link.number]))
        marks.append((start, stop, link.kind))
    highest = max(values, default=0.0)
    # an idle link is white
    scale = colormaps["YlOrRd"].with_extremes(bad="white")
    colours = PolyCollection(
        arrows, array=np.ma.masked_equal(values, 0.0), cmap=scale, norm=Normalize(0.0, highest or 1.0), linewidths=0.4
    )
    colours.set_edgecolor("0.45")
    axes.add_collection(colours)
    _draw_nodes(axes, topology, used, names or {}, inch)
    numbered = max(topology.columns, topology.rows) <= _NUMBERS_UP_TO
    if numbered:
        for (start, stop, kind), value in zip(marks, values, strict=True):
            _draw_number(axes, start, stop, kind, value, inch)
    bar = figure.colorbar(colours, ax=axes, shrink=0.8, pad=0.02, aspect=28)
    bar.set_label("busy share: cycles with a flit / all cycles" + (", numbers in %" if numbered else ""))
    bar.ax.yaxis.set_major_formatter(lambda share, _: f"{share:.1%}" if highest < 0.05 else f"{share:.0%}")
    save_figure(figure, path)


def _is_used(topology: Topology, flits: npt.NDArray[np.int64], endpoint: int) -> bool:
    return bool(flits[topology.injection_link(endpoint)] or flits[topology.ejection_link(endpoint)])


def _ends(topology: Topology, number: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Start and end of the arrow of a link, in its lane."""
    link = topology.link(number)
    if link.kind == LinkKind.ROUTER:
        a, b = (np.array(topology.position(router), dtype=float) for router in (link.source, link.target))
        along = b - a
        start, stop = a + along * _ROUTER, b - along * _ROUTER
    else:
        endpoint = link.source if link.kind == LinkKind.INJECTION else link.target
        router, port = topology.attachment(endpoint)
        along, near, far = _stub(port)
        at = np.array(topology.position(router), dtype=float)
        start, stop = at + along * near, at + along * far
        if link.kind == LinkKind.INJECTION:
            start, stop, along = stop, start, -along
    right = np.array([-along[1], along[0]])  # y points down
    return start + right * _LANE, stop + right * _LANE


def _stub(port: Port) -> tuple[npt.NDArray[np.float64], float, float]:
    """Direction of a port's stub and where it begins and ends, seen from the router's middle."""
    if port == Port.LOCAL:
        return np.array(_DIAGONAL), _LOCAL_FROM, _LOCAL_TO
    return np.array(_DIRECTIONS[port]), _ROUTER, _ROUTER + _STUB


def _arrow(start: npt.NDArray[np.float64], stop: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Outline of an arrow."""
    along = stop - start
    length = float(np.hypot(*along))
    along = along / length
    across = np.array([-along[1], along[0]])
    neck = stop - along * min(0.13, 0.5 * length)
    points = [start - across * _WIDTH, neck - across * _WIDTH, neck - across * _HEAD, stop]
    points += [neck + across * _HEAD, neck + across * _WIDTH, start + across * _WIDTH]
    return np.array(points)


def _draw_nodes(axes: Axes, topology: Topology, edges: list[int], names: Mapping[int, str], inch: float) -> None:
    """Routers with their numbers, endpoints, and the names of some."""
    from matplotlib.patches import Circle, Rectangle

    # all of it lies within the axes, so the layout need not look at each
    style: dict[str, Any] = {
        "facecolor": "white",
        "edgecolor": "0.25",
        "linewidth": 0.8,
        "zorder": 3,
        "in_layout": False,
    }
    points = float(np.clip(inch * 7.5, 4.0, 10.0))
    for router in range(topology.n_routers):
        x, y = topology.position(router)
        axes.add_patch(Rectangle((x - _ROUTER, y - _ROUTER), 2 * _ROUTER, 2 * _ROUTER, **style))
        axes.text(x, y, str(router), ha="center", va="center", fontsize=points, zorder=4, in_layout=False)
    for endpoint in [*range(topology.n_routers), *edges]:
        router, port = topology.attachment(endpoint)
        along, _, far = _stub(port)
        at = np.array(topology.position(router), dtype=float) + along * (far + _NODE)
        axes.add_patch(Circle((float(at[0]), float(at[1])), _NODE, **style))
        if endpoint in names:
            place = at + along * (_NODE + 0.03)
            axes.text(
                float(place[0]),
                float(place[1]),
                names[endpoint],
                ha={0: "center", 1: "left", -1: "right"}[int(np.sign(round(along[0], 3)))],
                va={0: "center", 1: "top", -1: "bottom"}[int(np.sign(round(along[1], 3)))],
                fontsize=points,
                zorder=4,
                in_layout=False,
            )


def _draw_number(
    axes: Axes,
    start: npt.NDArray[np.float64],
    stop: npt.NDArray[np.float64],
    kind: LinkKind,
    share: float,
    inch: float,
) -> None:
    """Busy share in percent beside an arrow, on its outer side; nothing at an idle one."""
    if share == 0.0:
        return
    along = (stop - start) / float(np.hypot(*(stop - start)))
    right = np.array([-along[1], along[0]])
    # numbers of links between routers stand towards the end that is away from the local endpoint's
    diagonal = abs(along[0] * along[1]) > 0.1
    if kind == LinkKind.ROUTER:
        share_of_way = 0.74 if along[0] > 0.5 or along[1] > 0.5 else 0.26
    else:
        share_of_way = 0.5 if diagonal else 0.2 if kind == LinkKind.INJECTION else 0.7
    middle = start + (stop - start) * share_of_way + right * (_HEAD + (0.03 if diagonal else 0.015))
    text = f"{100 * share:.0f}" if share >= 0.0995 else f"{100 * share:.1f}"
    ha = "center" if abs(right[0]) < 0.1 else "left" if right[0] > 0 else "right"
    va = "center" if abs(right[1]) < 0.1 else "top" if right[1] > 0 else "bottom"
    if diagonal:
        ha, va = ("left", "center") if right[0] > 0 else ("center", "top")  # injection, ejection
    axes.text(
        float(middle[0]),
        float(middle[1]),
        text,
        ha=ha,
        va=va,
        fontsize=float(np.clip(inch * 5.2, 4.0, 7.0)),
        zorder=4,
        in_layout=False,
    )
