"""Write the tables of the documentation that are made from the code: options of mappers, figures."""

from __future__ import annotations

from pathlib import Path

from cosa.common.options import option_table
from cosa.experiments.figures import figure_table
from cosa.mappers.registry import every_mapper
from nocsim.experiments.pipeline import FIGURES

DOCS = Path(__file__).parent.parent / "docs" / "reference"


def options() -> str:
    """A heading and a table for every mapper."""
    parts = []
    for mapper in every_mapper():
        parts += [f"### `--mapper {mapper.name}`", "", f"{mapper.summary[:1].upper()}{mapper.summary[1:]}.", ""]
        parts += [*option_table(mapper.options), ""]
    return "\n".join(parts)


def figures() -> str:
    """The table of figures."""
    return "\n".join([*figure_table(FIGURES), ""])


TABLES = {"cli.md": ("options of mappers", options), "figures.md": ("figures", figures)}
"""By page: what the markers around its tables say, and what makes them."""


def with_tables(name: str, page: str) -> str:
    """The text of a page with its tables as they should be."""
    what, made = TABLES[name]
    start, end = f"<!-- {what}: written by scripts/doc_tables.py -->", f"<!-- end of {what} -->"
    before, _, rest = page.partition(start)
    _, _, after = rest.partition(end)
    return f"{before}{start}\n\n{made()}\n{end}{after}"


if __name__ == "__main__":
    for name in TABLES:
        text = (DOCS / name).read_text(encoding="utf-8")
        (DOCS / name).write_text(with_tables(name, text), encoding="utf-8")
