"""What a replay comes to, as data and as text."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from dram.replay import Replay

_COMMANDS = (
    ("activates", "ACT"), ("precharges", "PRE"), ("reads", "RD"), ("writes", "WR"), ("refreshes", "REF"),
)  # fmt: skip
_LOSSES = (
    ("data", "data on the bus"), ("row", "row miss or conflict"), ("activation", "activation limits (tRRD, tFAW)"),
    ("turnaround", "read/write turnaround"), ("bank_group", "bank group gap"), ("refresh", "refresh"),
    ("command_bus", "command bus"), ("idle", "nothing was asked"), ("in_progress", "still under way"),
)  # fmt: skip


def summary(replay: Replay) -> dict[str, Any]:
    """Figures of a finished replay: DRAM clocks, GB/s (1 GB = 1e9 bytes), pJ.

    Energy is ``None`` without currents in the device file.
    """
    config, stats, losses = replay.config, replay.stats, replay.losses
    clock_ns = config.timing.tCK_ps / 1000
    clocks = max(replay.last_clock - max(replay.first_clock, 0), 1)
    energy = {name: getattr(stats, f"energy_{name}_pj") for name in ("background", "burst", "activate", "refresh")} | {
        "total": stats.energy_pj
    }
    return {
        "device": config.name,
        "policy": config.controller.policy,
        "mapping": config.address_mapping,
        "capacity_bytes": config.capacity_bytes,
        "requests": replay.requests,
        "requests_beyond_capacity": replay.beyond_capacity,
        "clocks": stats.total_cycles,
        "last_completed": replay.last_clock,
        "read_latency_clocks": replay.reads.summary(),
        "write_latency_clocks": replay.writes.summary(),
        "bandwidth_gbps": replay.requests * config.request_bytes / (clocks * clock_ns),
        "peak_bandwidth_gbps": config.organization.channels * config.peak_bytes_per_clock / clock_ns,
        "row_hit_rate": stats.row_hit_rate,
        "commands": {short: getattr(stats, name) for name, short in _COMMANDS},
        "forwarded_reads": stats.forwarded_reads,
        "merged_writes": stats.merged_writes,
        "lost_clocks": asdict(losses),
        "energy_pj": energy if config.currents is not None else None,
    }


def text(figures: dict[str, Any]) -> str:
    """The same as a table of a few lines."""
    lines = [
        f"{figures['device']}, policy {figures['policy']}, mapping {figures['mapping']}",
        f"{'requests':24}{figures['requests']:>16,}",
        f"{'last completion':24}{figures['last_completed']:>16,} clocks",
        f"{'bandwidth':24}{figures['bandwidth_gbps']:>16.3f} GB/s of {figures['peak_bandwidth_gbps']:.3f}",
        f"{'row hit rate':24}{figures['row_hit_rate']:>16.1%}",
    ]
    for name, label in (("read", "read latency"), ("write", "write latency")):
        latency = figures[f"{name}_latency_clocks"]
        if latency is not None:
            lines.append(
                f"{label:24}{latency['mean']:>16.2f} clocks (median {latency['p50']}, 95 % {latency['p95']}, "
                f"{latency['min']} to {latency['max']}; from arrival {latency['mean_from_arrival']:.2f})"
            )
    lines.append(f"{'commands':24}" + ", ".join(f"{name} {count:,}" for name, count in figures["commands"].items()))
    energy = figures["energy_pj"]
    if energy is None:
        lines.append(f"{'energy':24}the device file has no currents")
    else:
        parts = ", ".join(f"{name} {value / 1000:,.1f}" for name, value in energy.items() if name != "total")
        lines.append(f"{'energy':24}{energy['total'] / 1000:>16,.1f} nJ ({parts})")
    return "\n".join([*lines, *losses_text(figures["lost_clocks"])]) + "\n"


def losses_text(lost: dict[str, int]) -> Sequence[str]:
    """Where the clocks of the data bus went, a line for each part that is not 0."""
    total = max(sum(lost.values()), 1)
    lines = ["where the clocks of the data bus went"]
    lines += [f"  {label:34}{lost[name]:>16,}{lost[name] / total:>9.1%}" for name, label in _LOSSES if lost[name]]
    return lines
