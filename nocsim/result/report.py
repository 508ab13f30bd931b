"""A result as a short table for the terminal."""

from __future__ import annotations

from textwrap import wrap

from cosa.common.tables import table
from nocsim.machine.waits import CAUSES, RESOURCES, Cause, Resource
from nocsim.result.result import DramChannel, PeCycles, Result

_CAUSES = (
    ("computing", "computing"),
    ("waiting_inputs", "waiting for inputs"),
    ("waiting_weights", "waiting for weights"),
    ("waiting_partial_sums", "waiting for partial sums"),
    ("drain", "draining outputs"),
    ("idle", "idle (finished, or not in use)"),
)


def text(result: Result) -> str:
    """The result in about forty lines of at most 80 columns."""
    lines = [
        f"{result.layer} on {result.architecture}, {result.mesh} PEs",
        *wrap(f"schedule by {result.made.text}", 80, subsequent_indent="  "),
        *([] if result.ended == "finished" else [f"PARTIAL: ended early ({result.ended.replace('_', ' ')})"]),
        *_method(result),
        "",
        *_cycles(result),
        "",
        *_pes(result),
        "",
        *_traffic(result),
        "",
        *_links(result),
        *_dram(result),
    ]
    if result.timing is not None:
        simulated = result.extrapolation.simulated_cycles if result.extrapolation else result.cycles.total
        rate = simulated / max(result.timing.simulate_seconds, 1e-9)
        loading = f"kernels loaded in {result.timing.load_kernels_seconds:.2f} s"
        lines += ["", f"simulated in {result.timing.simulate_seconds:.2f} s ({rate:,.0f} cycles a second), {loading}"]
    return "\n".join(lines) + "\n"


def _method(result: Result) -> list[str]:
    """How an extrapolated result came about; an exact one needs no words."""
    part = result.extrapolation
    if part is None:
        return []
    return [
        f"EXTRAPOLATED: {part.simulated_steps:,} of {result.cycles.steps:,} steps simulated "
        f"({part.simulated_periods:,} of {part.periods:,} periods,",
        f"  {part.kinds} kinds); cycles {part.extrapolated_share:.1%} extrapolated"
        + ("" if part.margin_share is None else f", estimated margin {part.margin_share:.2%}"),
    ]


def _cycles(result: Result) -> list[str]:
    cycles = result.cycles
    steps = f"{cycles.steps:,} steps of {cycles.cycles_per_step:,}"
    ideal = [name for name, on in (("network", result.ideal_network), ("memory", result.ideal_memory)) if on]
    over_analytical = _ratio("simulated / analytical", result.simulated_over_analytical)
    over_bound = _ratio("simulated / bound", result.simulated_over_bound)
    note = f" with ideal {' and '.join(ideal)}" if ideal else ""
    return [
        f"{'simulated cycles' + note:36}{cycles.total:>14,}   {result.milliseconds:.3f} ms",
        f"{'analytical cycles':36}{cycles.analytical:>14,}{over_analytical}",
        f"{f'bound of the machine ({cycles.bound_by})':36}{cycles.bound:>14,}{over_bound}",
        f"{'compute-only cycles':36}{cycles.compute_only:>14,}   {steps}",
        f"{'MAC utilisation':36}{result.mac_utilisation:>14.1%}",
        *(
            [f"{'MACs, and padding':36}{result.macs:>14,}   {result.padding_macs:,} more"]
            if result.padding_macs
            else []
        ),
    ]


def _ratio(what: str, ratio: float | None) -> str:
    """A partial run has none."""
    return "" if ratio is None else f"   {what} {ratio:.2f}"


def _pes(result: Result) -> list[str]:
    used = [pe for pe in result.pes if pe.used]
    rows = []
    for field, label in _CAUSES:
        shares = [_share(pe, field, result.cycles.total) for pe in result.pes]
        if any(shares):
            rows.append([f"  {label}", *map("{:.1%}".format, (sum(shares) / len(shares), min(shares), max(shares)))])
    lines = table(["where the PEs' cycles went", "mean", "least", "most"], rows, widths=(36, 13, 11, 11))
    note = "" if len(used) == len(result.pes) else " (the spatial loops of the schedule use no more)"
    lines.append(f"  PEs in use {len(used)} of {len(result.pes)}{note}")
    return lines + _waits(result)


_RESOURCES: dict[Resource, str] = {
    "dram": "DRAM",
    "port": "port",
    "link": "link",
    "latency": "latency",
    "buffer_space": "buffers",
    "reduction": "reduce",
}
_WAITS: dict[Cause, str] = {
    "inputs": "inputs",
    "weights": "weights",
    "partial_sums": "partial sums",
    "drain": "outputs to leave",
}


def _waits(result: Result) -> list[str]:
    """Mean shares of the PEs' cycles by what they waited for, and which resource kept them waiting."""
    rows = []
    all_cycles = result.cycles.total * len(result.pes)
    for cause in CAUSES:
        found = [pe.waiting.get(cause, {}) for pe in result.pes]
        shares = [sum(cycles.get(resource, 0) for cycles in found) / all_cycles for resource in RESOURCES]
        if any(shares):
            rows.append([f"  {_WAITS[cause]}", *map("{:.1%}".format, shares)])
    header = ["waiting for, because of", *(_RESOURCES[name] for name in RESOURCES)]
    return table(header, rows, widths=(24, *[8] * len(RESOURCES))) if rows else []


def _share(pe: PeCycles, field: str, total: int) -> float:
    return int(getattr(pe, field)) / total


def _traffic(result: Result) -> list[str]:
    flows = []
    for flow in result.flows:
        label = f"{flow.tensor} {flow.source} -> {flow.destination}".replace("global_buffer", "buffer")
        label += "" if flow.kind == "fill" else f" {flow.kind}"
        flows.append([f"  {label}", *map("{:,}".format, (flow.sent_words, flow.received_words, flow.transfers))])
    loads = [
        [f"  {tensor}", *map("{:,}".format, (load.packets, load.flits, load.bytes))]
        for tensor, load in result.tensors.items()
    ]
    header = ["on the network", "packets", "flits", "bytes"]
    return table(["words moved", "sent", "received", "transfers"], [*flows, header, *loads], widths=(36, 13, 13, 11))


def _links(result: Result) -> list[str]:
    if not result.links:
        return []
    busiest = sorted(result.links, key=lambda link: (-link.flits, link.link))[:5]
    rows = [[f"  {link.link}", f"{link.flits:,}", f"{link.busy_share:.1%}"] for link in busiest]
    return [*table(["busiest links and ports", "flits", "busy"], rows, widths=(48, 11, 7)), ""]


def _dram(result: Result) -> list[str]:
    dram = result.dram
    if not dram.channels:
        return ["DRAM: ideal"]
    lines = [f"DRAM {dram.device}, policy {dram.policy}, {dram.clocks_per_core_cycle} clocks a core cycle"]
    rows = [
        [
            f"  {channel.channel}",
            *(f"{channel.reads:,}", f"{channel.writes:,}", f"{channel.row_hit_rate:.1%}", f"{channel.busy_share:.1%}"),
            *(f"{channel.bandwidth_gbps:.2f}", f"{channel.peak_bandwidth_gbps:.2f}"),
        ]
        for channel in dram.channels
    ]
    header = ["  channel", "reads", "writes", "row hits", "busy", "GB/s", "of peak"]
    head, *found = table(header, rows, widths=(11, 10, 10, 9, 7, 9, 9))
    lines.append(head)
    for channel, line in zip(dram.channels, found, strict=True):
        lines += [line, *_lost(channel)]
    if dram.advice is not None:
        lines += wrap(f"note: {dram.advice}", 80, initial_indent="  ", subsequent_indent="  ")
    return lines


_LOST = (
    ("data", "data"),
    ("row", "rows"),
    ("activation", "activation"),
    ("turnaround", "turnaround"),
    ("bank_group", "bank group"),
    ("refresh", "refresh"),
    ("command_bus", "commands"),
    ("idle", "not asked"),
    ("in_progress", "under way"),
)


def _lost(channel: DramChannel) -> list[str]:
    """Where the channel's clocks went, shares of 0.1 % and more, and its energy."""
    clocks = channel.clocks.model_dump()
    total = max(sum(clocks.values()), 1)
    shares = [f"{label} {clocks[name] / total:.1%}" for name, label in _LOST if clocks[name] >= total / 1000]
    lines = wrap("its clocks: " + ", ".join(shares), 80, initial_indent="    ", subsequent_indent="      ")
    if channel.energy_pj is not None:
        lines.append(f"    energy {channel.energy_pj.total / 1e6:,.3f} uJ")
    return lines
