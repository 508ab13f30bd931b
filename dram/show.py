"""Devices as text: a list, or every parameter of one with its meaning."""

from collections.abc import Sequence

from pydantic import BaseModel

from cosa.common.tables import table
from dram.config import DramConfig


def devices_text(configs: Sequence[DramConfig]) -> str:
    """A line for each device."""
    rows = []
    for config in configs:
        o = config.organization
        rate = config.peak_bytes_per_clock / config.timing.tCK_ps * 1000
        sizes = [
            str(o.channels),
            str(o.ranks),
            str(o.banks),
            f"{config.request_bytes} B",
            memory_size(config.capacity_bytes),
        ]
        sizes.append(f"{rate:.2f}")
        rows.append([config.name, *sizes, config.controller.policy])
    header = ["device", "channels", "ranks", "banks", "request", "capacity", "GB/s a channel", "policy"]
    return "\n".join(table(header, rows, left=(0, 7))) + "\n"


def device_text(config: DramConfig) -> str:
    """Every parameter with its value and meaning."""
    lines = [
        f"{config.name}: {config.description}",
        f"capacity: {memory_size(config.capacity_bytes)} ({config.capacity_bytes:,} bytes)",
        f"address_mapping: {config.address_mapping}",
    ]
    sections: list[tuple[str, BaseModel | None]] = [
        ("organization", config.organization), ("timing (DRAM clocks, unless the name says otherwise)", config.timing),
        ("currents (mA of one device; Vdd in V)", config.currents), ("controller", config.controller),
    ]  # fmt: skip
    for title, model in sections:
        if model is None:
            continue
        lines += ["", title]
        for name, field in type(model).model_fields.items():
            value = getattr(model, name)
            if value is not None:
                lines.append(f"  {name:20}{value!s:>12}  {field.description or ''}".rstrip())
    return "\n".join(lines) + "\n"


def memory_size(size_bytes: int) -> str:
    """A power of two of bytes in the largest unit that gives a whole number."""
    units = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
    power = min(max(size_bytes.bit_length() - 1, 0) // 10, len(units) - 1)
    return f"{size_bytes >> 10 * power:,} {units[power]}"
