"""`nocsim run --network`: a whole network on the command line."""

from __future__ import annotations

from pathlib import Path

from cosa.common.errors import InputError
from cosa.common.layer_pool import LayerProgress
from cosa.common.result_cache import default_cache
from cosa.common.terminal import check_output, out
from nocsim.experiments.network_run import NetworkResult, run_network


def run_whole_network(
    name: str,
    *,
    arch: str | None,
    mesh: str | None,
    placement: str | None,
    mapper: str | None,
    objective: str | None,
    workers: int,
    cache: str | None,
    json_file: str | None,
) -> int:
    """Run it, print the table, write the result; 130 if it was interrupted (the layers done are reported)."""
    from cosa.model.arch import load_architecture
    from cosa.model.networks import load_network

    if not 1 <= workers <= 1024:
        raise InputError("out of range", source="--workers", value=workers, allowed="a whole number from 1 to 1024")
    network = load_network(name)
    architecture = load_architecture(arch or "simba_4x4")
    if mesh is not None:
        architecture = architecture.with_mesh(mesh)
    if placement is not None:
        architecture = architecture.with_placement(placement)
    if json_file not in (None, "-"):
        check_output("--json", json_file, {"--arch": arch})
    folder = None if cache == "none" else Path(cache) if cache else default_cache()
    options = {} if objective is None else {"objective": objective}
    result = run_network(
        network, architecture, mapper=mapper, options=options, workers=workers, cache=folder, progress=LayerProgress()
    )
    if json_file == "-":
        out(result.to_json())
    else:
        if json_file is not None:
            result.to_file(json_file)
        out(text(result, len(network.layers)))
    return 0 if result.complete else 130


def text(result: NetworkResult, layers: int) -> str:
    """The table: a row a unique layer, then totals over all occurrences."""
    lines = [
        f"{result.network} on {result.architecture}, mapper {result.mapper}",
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
