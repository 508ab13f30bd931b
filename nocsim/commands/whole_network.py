"""`nocsim run --network`: a whole network on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cosa.commands.work import Work
from cosa.common.parameters import Given
from cosa.common.progress import Progress
from cosa.common.result_cache import chosen_cache
from cosa.common.tables import table
from cosa.common.terminal import check_output, out
from cosa.mappers.registry import options_of
from cosa.model.networks import Network
from cosa.model.schedule import made_together
from nocsim.experiments.network_run import NetworkResult, run_network

if TYPE_CHECKING:
    from nocsim.commands.main import HowToRun


def run_layers_named(work: Work, given: Given, of_mapper: dict[str, Any], how: HowToRun) -> int:
    """Schedule and simulate layers, print the table, write the result; 130 if it was interrupted (the layers done are
    reported)."""
    layers, architecture = work.layers(), work.architecture()
    network = Network(work.network or layers[0].layer.name, tuple(layers))
    if how.placement is not None:
        architecture = architecture.with_placement(how.placement)
    if how.json_file not in (None, "-"):
        check_output("--json", how.json_file or "", work.inputs())
    with given.flags():
        options = options_of(how.mapper, of_mapper, flags=True)
        options.require_levels(architecture)
    with Progress("layers") as progress:
        result = run_network(
            network, architecture, options, workers=how.workers, cache=chosen_cache(how.cache), progress=progress
        )
    if how.json_file == "-":
        out(result.to_json())
    else:
        if how.json_file is not None:
            result.to_file(how.json_file)
        out(text(result, len(network.layers)))
    return 0 if result.complete else 130


_WIDTHS = (22, 3, 11, 11, 11, 6, 6)


def _figures(cycles: list[int], utilisation: float, about: str = "") -> list[str]:
    compute, analytical, simulated = cycles
    ratio = simulated / analytical if analytical else 0
    return [f"{compute:,}", f"{analytical:,}", f"{about}{simulated:,}", f"{ratio:.2f}", f"{utilisation:.1%}"]


def text(result: NetworkResult, layers: int) -> str:
    """The table: a row a unique layer, then totals over all occurrences."""
    lines = [
        f"{result.network} on {result.architecture}, mapper {made_together(run.made for run in result.layers)}",
        "",
    ]
    rows = []
    for run in result.layers:
        about = "~" if run.method == "extrapolated" else ""
        cycles = [run.compute_only_cycles, run.analytical_cycles, run.simulated_cycles]
        rows.append([run.layer[:21], str(run.count), *_figures(cycles, run.mac_utilisation, about)])
    count = str(sum(run.count for run in result.layers))
    totals = [result.total(field) for field in ("compute_only_cycles", "analytical_cycles", "simulated_cycles")]
    rows.append(["whole network", count, *_figures(totals, result.mac_utilisation)])
    lines += [
        *table(["layer", "x", "compute", "analytical", "simulated", "ratio", "MACs"], rows, widths=_WIDTHS),
        "",
        f"DRAM {result.total('dram_bytes'):,} bytes, network {result.total('network_bytes'):,} bytes",
    ]
    exact = sum(run.method == "exact" for run in result.layers)
    line = f"simulated exactly: {exact} of {len(result.layers)} unique layers"
    if exact < len(result.layers):
        line += (
            f"; the others (~) in part,\n  {result.share_of_cycles('extrapolated_share'):.1%} of all cycles are "
            f"extrapolated, estimated margin of the total {result.share_of_cycles('margin_share'):.2%}"
        )
    lines.append(line)
    if padding := result.total("padding_macs"):
        lines.append(f"MACs {result.total('macs'):,}, and {padding:,} of padding")
    if not result.complete:
        lines.append(f"interrupted: {len(result.layers)} of {layers} unique layers")
    return "\n".join(lines) + "\n"
