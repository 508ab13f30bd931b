"""Plain text for terminals, pipes and logs: tables, and words that fit a line."""

from __future__ import annotations

import io
from collections.abc import Sequence

WIDTH = 80
"""Columns of everything printed, so that it reads the same in a terminal, a pipe and a log."""


def printable(text: str, width: int | None = None) -> str:
    """Text on one line, without control characters, cut to `width`."""
    clean = "".join(letter if letter.isprintable() else "?" for letter in text)
    return clean if width is None or len(clean) <= width else clean[: width - 3] + "..."


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Lines of a plain table; the first `left` columns are left-aligned, the others right-aligned.

    Columns stand closer where they would be wider than `WIDTH` otherwise; nothing is cut or wrapped.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    gap = 2 if sum(widths) + 2 * len(widths) - 2 <= WIDTH else 1
    found = Table(box=None, show_edge=False, pad_edge=False, padding=(0, gap, 0, 0), header_style="")
    for column, (title, width) in enumerate(zip(header, widths, strict=True)):
        justify = "left" if column < left else "right"
        found.add_column(Text(title), justify=justify, no_wrap=True, min_width=width)  # type: ignore[arg-type]
    for row in rows:
        found.add_row(*map(Text, row))
    text = io.StringIO()
    Console(file=text, width=sum(widths) + gap * len(widths), color_system=None, highlight=False).print(found)
    return [line.rstrip() for line in text.getvalue().splitlines()]
