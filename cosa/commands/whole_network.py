"""`cosa schedule --network NAME`: all layers of a network, or several, on the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from cosa.common.progress import Progress
from cosa.common.result_cache import chosen_cache
from cosa.common.tables import WIDTH, printable, table
from cosa.common.terminal import out_lines
from cosa.experiments.figures import Figures, Row, made_text
from cosa.experiments.network import SUMMARY, NetworkRows, schedule_network
from cosa.experiments.pipeline import FIGURES
from cosa.model.networks import Network

if TYPE_CHECKING:
    from cosa.commands.main import HowToSchedule
    from cosa.commands.work import Work
    from cosa.common.parameters import Given
    from cosa.mappers.registry import MapperOptions

Column = tuple[str, Callable[[Row], str]]
"""Its head, and its cell of a row, or of totals."""


def schedule_whole_network(work: Work, given: Given, options: MapperOptions, how: HowToSchedule) -> int:
    """Schedule it, print the table; 130 if it was interrupted (what is done is reported and written)."""
    network, architecture = network_of(work), work.architecture()
    with given.flags(), Progress("layers") as progress:
        result = schedule_network(
            network,
            architecture,
            options,
            workers=how.workers,
            folder=how.output,
            timing=how.timing,
            cache=chosen_cache(how.cache),
            progress=progress,
        )
    out_lines(lines(result, FIGURES, _COLUMNS, len(network.layers)))
    if how.output is not None:
        out_lines(["", f"written to {how.output}: {len(result.rows)} schedules and {SUMMARY}"])
    return 0 if result.complete else 130


def network_of(work: Work) -> Network:
    """The layers of a command as a network."""
    layers = tuple(work.layers())
    return Network(work.network or layers[0].layer.name, layers)


def _text(name: str, form: str) -> Callable[[Row], str]:
    return lambda row: "" if row[name] is None else format(row[name], form)


def utilisation(name: str) -> Callable[[Row], str]:
    """MACs a MAC unit and cycle of that figure."""
    return lambda row: "" if not row[name] else f"{row['macs'] / (row[name] * row['mac_units']):.1%}"


_COLUMNS: tuple[Column, ...] = (
    ("compute", _text("compute_cycles", ",")),
    ("cycles", _text("timeloop_cycles", ",")),
    ("MACs", utilisation("timeloop_cycles")),
    ("uJ", lambda row: "" if row["energy_pj"] is None else f"{row['energy_pj'] / 1e6:,.1f}"),
    ("objective", _text("objective_value", ",.6g")),
    ("gap", _text("gap", ".2%")),
)
"""Cycles and energy by Timeloop's counts."""


def lines(result: NetworkRows, figures: Figures, columns: Sequence[Column], layers: int) -> list[str]:
    """A row a unique layer, then totals over all occurrences."""
    whole = result.totals(figures)
    rows = [(printable(str(row["layer"]), 16), row["count"], row) for row in result.rows]
    if rows:
        rows.append(("whole network", sum(int(count) for _, count, _ in rows), whole))
    cells = [[name, str(count), *(cell(row) for _, cell in columns)] for name, count, row in rows]
    made = made_text(result.rows)
    title = f"{result.network} on {printable(result.architecture, 34)}" + (f", by {made}" if made else "")
    found = [*wrap(title, WIDTH), "", *table(["layer", "x", *(head for head, _ in columns)], cells)]
    if padding := whole.get("padding_macs"):
        found += ["", f"MACs {whole['macs']:,}, and {padding:,} of padding"]
    if not result.complete:
        found += ["", f"interrupted: {len(result.rows)} of {layers} unique layers"]
    return found
