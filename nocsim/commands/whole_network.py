"""`nocsim run --network`: layers of a network, or of a file, on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cosa.commands.whole_network import Column, lines, network_of, utilisation
from cosa.common.errors import InputError
from cosa.common.progress import Progress
from cosa.common.result_cache import chosen_cache
from cosa.common.terminal import check_output, out, out_lines
from cosa.mappers.registry import options_of
from nocsim.experiments.network import NetworkResult, run_network
from nocsim.experiments.pipeline import FIGURES

if TYPE_CHECKING:
    from cosa.commands.work import Work
    from cosa.common.parameters import Given
    from nocsim.commands.main import HowToRun

CONTRADICTIONS = ("schedule", "heat", "max_cycles", "ideal_network", "ideal_memory", "exact")
"""What is said of one schedule."""


def run_whole_network(work: Work, given: Given, how: HowToRun) -> int:
    """Run it, print the table, write the result; 130 if it was interrupted (the layers done are reported)."""
    from nocsim.options import RunOptions

    for name in CONTRADICTIONS:
        if name in given.values:
            flag = "--" + name.replace("_", "-")
            source, value = ("--network", work.network) if work.network else ("--layer-file", work.layer_file)
            raise InputError(f"contradicts {flag}", source=source, value=value, allowed="one of the two")
    with given.flags():
        options = options_of(how.mapper, given.owned, flags=True)
    network, architecture = network_of(work), work.architecture()
    placement = given.of(RunOptions).placement
    if placement is not None:
        architecture = architecture.with_placement(placement)
    if how.json_file not in (None, "-"):
        check_output("--json", how.json_file, work.inputs() | given.files)
    with Progress("layers") as progress:
        result = run_network(
            network, architecture, options, workers=how.workers, cache=chosen_cache(how.cache), progress=progress
        )
    if how.json_file == "-":
        out(result.to_json())
    else:
        if how.json_file is not None:
            result.to_file(how.json_file)
        out_lines(text(result, len(network.layers)))
    return 0 if result.complete else 130


_COLUMNS: tuple[Column, ...] = (
    ("compute", lambda row: f"{row['compute_cycles']:,}"),
    ("analytical", lambda row: f"{row['analytical_cycles']:,}"),
    ("simulated", lambda row: f"{'~' if row['extrapolated_share'] else ''}{row['simulated_cycles']:,}"),
    ("ratio", lambda row: f"{row['simulated_cycles'] / row['analytical_cycles']:.2f}"),
    ("MACs", utilisation("simulated_cycles")),
)


def text(result: NetworkResult, layers: int) -> list[str]:
    """The table: a row a unique layer, then totals over all occurrences."""
    found = lines(result, FIGURES, _COLUMNS, layers)
    if not result.rows:
        return found
    whole = result.totals(FIGURES)
    exact = sum(not row["extrapolated_share"] for row in result.rows)
    told = [
        "",
        f"DRAM {whole['dram_bytes']:,} bytes, network {whole['network_bytes']:,} bytes",
        f"simulated exactly: {exact} of {len(result.rows)} unique layers",
    ]
    if exact < len(result.rows):
        told[-1] += "; the others (~) in part,"
        told.append(
            f"  {whole['extrapolated_share']:.1%} of all cycles are extrapolated, estimated margin of the total "
            f"{whole['margin_share']:.2%}"
        )
    return found + told
