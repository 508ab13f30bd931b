"""Plain text for terminals, pipes and logs: tables, and words that fit a line."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Literal

WIDTH = 80
"""Columns of everything printed, so that it reads the same in a terminal, a pipe and a log."""


def printable(text: str, width: int | None = None) -> str:
    """Text on one line, without control characters, cut to `width`."""
    clean = "".join(letter if letter.isprintable() else "?" for letter in text)
    return clean if width is None or len(clean) <= width else clean[: width - 3] + "..."


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: int | Container[int] = 1,
    widths: Sequence[int] | None = None,
) -> list[str]:
    """Lines of a table. Nothing is cut or wrapped.

    Parameters
    ----------
    left: how many first columns, or which, are left-aligned; the others are right-aligned.
    widths: how wide columns are at least, so that tables of one report stand in line; columns are one blank apart then.
        None: as wide as their cells, two blanks apart, or one where that does not fit into `WIDTH`.
    """
    from io import StringIO

    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    columns = [[cell.replace("\n", " ") for cell in column] for column in zip(header, *rows, strict=True)]
    wide = sum(max(map(cell_len, column)) + 2 for column in columns) - 2 > WIDTH
    grid = Table.grid(padding=(0, 1 if widths or wide else 2, 0, 0))
    lefts = range(left) if isinstance(left, int) else left
    for place, column in enumerate(columns):
        justify: Literal["left", "right"] = "left" if place in lefts else "right"
        grid.add_column(justify=justify, no_wrap=True)
        blanks = " " * (widths[place] - cell_len(column[0])) if widths else ""
        column[0] = column[0] + blanks if justify == "left" else blanks + column[0]
    # A column is one cell of many lines: rich takes its time for every cell.
    grid.add_row(*(Text("\n".join(column)) for column in columns))
    # As wide as any table, and nothing of the environment: it does not matter where a table is read.
    paper = Console(file=StringIO(), width=10_000, color_system=None, force_terminal=False, force_jupyter=False)
    with paper.capture() as captured:
        paper.print(grid, crop=False)
    return [line.rstrip() for line in captured.get().split("\n")[: 1 + len(rows)]]
