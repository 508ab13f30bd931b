"""`nocsim run --network`: a whole network on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cosa.commands.work import Work
from cosa.common.parameters import Given
from cosa.common.result_cache import chosen_cache
from cosa.common.terminal import check_output, out
from cosa.experiments.layer_pool import LayerProgress
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
    result = run_network(
        network,
        architecture,
        options,
        workers=how.workers,
        cache=chosen_cache(how.cache),
        progress=LayerProgress(),
    )
    if how.json_file == "-":
        out(result.to_json())
    else:
        if how.json_file is not None:
            result.to_file(how.json_file)
        out(text(result, len(network.layers)))
    return 0 if result.complete else 130


def text(result: NetworkResult, layers: int) -> str:
    """The table: a row a unique layer, then totals over all occurrences."""
    lines = [
        f"{result.network} on {result.architecture}, mapper {made_together(run.made for run in result.layers)}",
        "",
        f"{'layer':22}{'x':>4}{'compute':>12}{'analytical':>12}{'simulated':>12}{'ratio':>7}{'MACs':>7}",
    ]
    for run in result.layers:
        ratio = run.simulated_cycles / run.analytical_cycles
        simulated_cycles = ("~" if run.method == "extrapolated" else "") + f"{run.simulated_cycles:,}"
        lines.append(
            f"{run.layer[:21]:22}{run.count:>4}{run.compute_only_cycles:>12,}{run.analytical_cycles:>12,}"
            f"{simulated_cycles:>12}{ratio:>7.2f}{run.mac_utilisation:>7.1%}"
        )
    compute, analytical, simulated = (
        result.total(field) for field in ("compute_only_cycles", "analytical_cycles", "simulated_cycles")
    )
    lines += [
        f"{'whole network':22}{sum(run.count for run in result.layers):>4}{compute:>12,}{analytical:>12,}"
        f"{simulated:>12,}{simulated / analytical if analytical else 0:>7.2f}{result.mac_utilisation:>7.1%}",
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
