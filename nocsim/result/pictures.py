"""What the pictures share: a figure without a screen, written whole, and named by its ending."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from cosa.common.errors import InputError
from cosa.common.files import whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURE_ENDINGS = (".png", ".svg", ".pdf")
DOTS_PER_INCH = 150


def new_figure(width_inches: float, height_inches: float) -> Figure:
    """An empty figure that needs no screen and leaves matplotlib's global state alone."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_inches, height_inches), dpi=DOTS_PER_INCH, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure in the format of the file's ending; the same figure gives the same bytes.

    Raises InputError for an ending that is not one of a picture, or if the file cannot be written.
    """
    ending = Path(path).suffix.lower()
    if ending not in PICTURE_ENDINGS:
        raise InputError("no such kind of picture", source=str(path), value=ending, allowed=", ".join(PICTURE_ENDINGS))
    metadata = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}[ending]
    picture = io.BytesIO()
    figure.savefig(picture, format=ending[1:], metadata=metadata)
    with whole_file(path) as stream:
        stream.write(picture.getvalue())
