"""Write the tables of the mappers' options into docs/reference/cli.md, made from their models."""

from __future__ import annotations

from pathlib import Path

from cosa.common.options import option_table
from cosa.mappers.registry import every_mapper

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"
START, END = "<!-- options of mappers: written by scripts/option_tables.py -->", "<!-- end of options of mappers -->"


def tables() -> str:
    """A heading and a table for every mapper."""
    parts = []
    for mapper in every_mapper():
        parts += [f"### `--mapper {mapper.name}`", "", f"{mapper.summary[:1].upper()}{mapper.summary[1:]}.", ""]
        parts += [*option_table(mapper.options), ""]
    return "\n".join(parts)


def with_tables(page: str) -> str:
    """The page with its tables as they should be."""
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{tables()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
