"""Devices as text: a list, or every parameter of one with its meaning."""

from collections.abc import Sequence

from pydantic import BaseModel

from dram.config import DramConfig


def devices_text(configs: Sequence[DramConfig]) -> str:
    """A line for each device."""
    lines = [f"{'device':20}{'channels':>9}{'ranks':>6}{'banks':>6}{'request':>9}{'GB/s a channel':>16}  policy"]
    for config in configs:
        o = config.organization
        rate = config.peak_bytes_per_clock / config.timing.tCK_ps * 1000
        lines.append(
            f"{config.name:20}{o.channels:>9}{o.ranks:>6}{o.banks:>6}{config.request_bytes:>7} B{rate:>16.2f}  "
            f"{config.controller.policy}"
        )
    return "\n".join(lines) + "\n"


def device_text(config: DramConfig) -> str:
    """Every parameter with its value and meaning."""
    lines = [f"{config.name}: {config.description}", f"address_mapping: {config.address_mapping}"]
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
