"""Synthetic traffic for people: the text of one run, and table and picture of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nocsim.result.pictures import new_figure, save_figure
from nocsim.traffic.synthetic import Latency, LinkShares, TrafficResult

_COLUMNS = (
    "rate,offered,accepted,saturated,latency_mean_cycles,latency_p50_cycles,latency_p90_cycles,latency_p95_cycles,"
    "latency_p99_cycles,latency_max_cycles,network_latency_mean_cycles,zero_load_latency_cycles,hops_mean,"
    "mesh_link_busy_mean,mesh_link_busy_max,measured_packets,unfinished_packets"
)


def text(result: TrafficResult) -> str:
    """Everything a run tells, in lines."""
    r = result
    fan_out = f" to {r.fan_out} nodes each" if r.fan_out > 1 else ""
    lines = [
        f"{r.pattern} on a {r.mesh} mesh, packets of {r.packet_flits} flits{fan_out}, "
        f"FIFOs of {r.fifo_flits} flits, seed {r.seed}",
        f"{r.warmup_cycles:,} cycles of warm-up, {r.measured_cycles:,} measured, {r.drain_cycles:,} of drain",
        "",
        f"offered load      {r.offered:.4f} flits/node/cycle (rate {r.rate:g})",
        f"accepted load     {r.accepted:.4f} flits/node/cycle",
        f"packet latency    {_latency(r.packet_latency)}  from creation, waiting at the source included",
        f"network latency   {_latency(r.network_latency)}  from the head flit's entry",
    ]
    if r.zero_load_latency is not None:
        lines.append(f"zero-load latency {r.zero_load_latency:.2f} cycles for the same packets in an empty mesh")
        lines.append(f"hops              {r.mean_hops:.3f} mean")
    lines += [
        f"mesh links        {_shares(r.mesh_links)}",
        f"injection links   {_shares(r.injection_links)}",
        f"ejection links    {_shares(r.ejection_links)}",
        f"packets           {r.measured_packets:,} measured, {r.unfinished_packets:,} of them not arrived whole",
        "",
        verdict(r),
    ]
    return "".join(line.rstrip() + "\n" for line in lines)


def verdict(result: TrafficResult) -> str:
    """Whether the network keeps up, in one line."""
    if result.deadlocked:
        return "DEADLOCKED: no flit moves any more."
    if result.saturated:
        return (
            f"SATURATED: the network does not keep up with {result.offered:.4f} flits/node/cycle and accepts "
            f"{result.accepted:.4f}; {result.queued_flits:,} flits wait at the sources, latencies grow with the run."
        )
    return "not saturated: the network accepts what is offered"


def _latency(latency: Latency) -> str:
    if latency.mean is None:
        return "no packet arrived"
    return (
        f"mean {latency.mean:.2f}, p50 {latency.p50}, p90 {latency.p90}, p95 {latency.p95}, p99 {latency.p99}, "
        f"max {latency.maximum} cycles"
    )


def _shares(shares: LinkShares) -> str:
    if shares.busiest is None:
        return "none"
    return f"busy {shares.mean:.1%} on average, the busiest {shares.maximum:.1%} ({shares.busiest})"


def table(results: Sequence[TrafficResult]) -> str:
    """CSV text of a sweep, one line for each rate."""
    lines = [_COLUMNS]
    for r in results:
        latency = r.packet_latency
        row = (
            f"{r.rate:g}",
            f"{r.offered:.6f}",
            f"{r.accepted:.6f}",
            "yes" if r.saturated else "no",
            _cell(latency.mean),
            *map(_cell, (latency.p50, latency.p90, latency.p95, latency.p99, latency.maximum)),
            _cell(r.network_latency.mean),
            _cell(r.zero_load_latency),
            _cell(r.mean_hops),
            f"{r.mesh_links.mean:.6f}",
            f"{r.mesh_links.maximum:.6f}",
            str(r.measured_packets),
            str(r.unfinished_packets),
        )
        lines.append(",".join(row))
    return "".join(line + "\n" for line in lines)


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)


def draw_curve(results: Sequence[TrafficResult], path: str | Path) -> None:
    """Draw a sweep: latency over offered load above, accepted over offered load below; saturated points are hollow.

    Latencies of saturated points depend on the length of the run; the picture ends at a few times the one at zero load.

    Raises InputError if the file cannot be written.
    """
    figure = new_figure(7.0, 7.0)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    first = results[0]
    fan_out = f" to {first.fan_out} nodes" if first.fan_out > 1 else ""
    figure.suptitle(f"{first.pattern} traffic, {first.mesh} mesh, packets of {first.packet_flits} flits{fan_out}")

    stable = [r for r in results if not r.saturated]
    zero_load = first.zero_load_latency or 1.0
    highest = zero_load
    for name, colour, marker in (("p99", "#d95f02", "s"), ("mean", "#1b6ca8", "o")):
        points = [(r, value) for r in results if (value := getattr(r.packet_latency, name)) is not None]
        upper.plot([r.offered for r, _ in points], [value for _, value in points], color=colour, linewidth=1.5)
        for r, value in points:
            face = "white" if r.saturated else colour
            upper.plot([r.offered], [value], marker, color=colour, markerfacecolor=face, markersize=5)
        upper.plot([], [], f"{marker}-", color=colour, markersize=5, label=f"{name} latency")
        highest = max([highest, *(value for r, value in points if not r.saturated)])
    upper.axhline(zero_load, color="0.5", linewidth=1.0, linestyle=":", label="mean in an empty mesh")
    # beyond a few times the zero-load latency the curve is a wall
    upper.set_ylim(0, max(3 * zero_load, min(1.15 * highest, 8 * zero_load)))
    upper.set_ylabel("packet latency [cycles]\nfrom creation to the tail flit's ejection")
    upper.legend(loc="upper left")

    limit = max(r.offered for r in results)
    lower.plot([0, limit], [0, limit], color="0.5", linewidth=1.0, linestyle=":", label="offered")
    lower.plot([r.offered for r in results], [r.accepted for r in results], color="#1b6ca8", linewidth=1.5)
    for r in results:
        face = "white" if r.saturated else "#1b6ca8"
        lower.plot([r.offered], [r.accepted], "o", color="#1b6ca8", markerfacecolor=face, markersize=5)
    lower.plot([], [], "o-", color="#1b6ca8", label="accepted")
    lower.plot([], [], "o", color="0.4", markerfacecolor="white", label="saturated (both panels)")
    lower.set_ylim(0, None)
    lower.set_xlim(0, limit * 1.02)
    lower.set_xlabel("offered load [flits/node/cycle]")
    lower.set_ylabel("accepted load\n[flits/node/cycle]")
    lower.legend(loc="upper left")
    for axes in (upper, lower):
        axes.grid(color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
    if len(stable) < len(results):
        knee = max((r.offered for r in stable), default=0.0)
        for axes in (upper, lower):
            axes.axvspan(knee, limit * 1.02, color="0.94", zorder=0)
    save_figure(figure, path)
