"""Configuration files of Ramulator 2 (YAML): DDR4 with presets, defaults and roundings as its source has them."""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import yaml

from dram.errors import DramConfigError
from dram.reference_config import measured_device

KIND = "Ramulator 2 configuration"

_DENSITIES_MB = (2048, 4096, 8192, 16384)
_WIDTHS = (4, 8, 16)
_RATES = (1600, 1866, 2133, 2400, 2666, 2933, 3200)
_TIMINGS = (
    "nBL", "nCL", "nRCD", "nRP", "nRAS", "nRC", "nWR", "nRTP", "nCWL", "nCCDS", "nCCDL", "nRRDS", "nRRDL", "nWTRS",
    "nWTRL", "nFAW", "nRFC", "nREFI", "nCS",
)  # fmt: skip
# rate: CL of each speed bin by its letter, then nRAS, nWR, nRTP, nCWL, nCCDL, nWTRS, nWTRL (JESD79-4)
_SPEEDS: Mapping[int, tuple[Mapping[str, int], Sequence[int]]] = {
    1600: ({"J": 10, "K": 11, "L": 12}, (28, 12, 6, 9, 5, 2, 6)),
    1866: ({"L": 12, "M": 13, "N": 14}, (32, 14, 7, 10, 5, 3, 7)),
    2133: ({"N": 14, "P": 15, "R": 16}, (36, 16, 8, 11, 6, 3, 8)),
    2400: ({"P": 15, "R": 16, "U": 17, "T": 18}, (39, 18, 9, 12, 6, 3, 9)),
    2666: ({"T": 17, "U": 18, "V": 19, "W": 20}, (43, 20, 10, 14, 7, 4, 10)),
    2933: ({"V": 19, "W": 20, "Y": 21, "AA": 22}, (47, 22, 11, 16, 8, 4, 11)),
    3200: ({"W": 20, "AA": 22, "AC": 24}, (52, 24, 12, 16, 8, 4, 12)),
}
# nRRDS, nRRDL, nFAW by width of the device, then rate
_ACTIVATION = {
    4: ((4,) * 7, (5, 5, 6, 6, 7, 8, 8), (16,) * 7),
    8: ((4,) * 7, (5, 5, 6, 6, 7, 8, 8), (20, 22, 23, 26, 28, 31, 34)),
    16: ((5, 5, 6, 7, 8, 8, 9), (6, 6, 7, 8, 9, 10, 11), (28, 28, 32, 36, 40, 44, 48)),
}
_RFC_NS = dict(zip(_DENSITIES_MB, (160, 260, 360, 550), strict=True))
_REFI_NS = 7800
_MAPPINGS = {"RoBaRaCoCh": ("ch", "co", "ra", "bg", "ba", "ro"), "ChRaBaRoCo": ("co", "ro", "ba", "bg", "ra", "ch")}
"""Fields of the address mappers from the least significant one up."""


def device(text: str, source: str, notes: list[str]) -> dict[str, Any]:
    """Sections of a device file; ``notes`` gets what was assumed, or has no effect here.

    Raises:
        DramConfigError: with the path of the key.
    """
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise DramConfigError(f"{source}: not YAML: {' '.join(str(error).split())}") from None
    top = _Block(data, source, "", ("Frontend", "MemorySystem"))
    if top.data.get("Frontend") is not None:
        notes.append("Frontend is not used: cycles of a trace are DRAM clocks")
    system = top.block("MemorySystem", ("impl", "clock_ratio", "DRAM", "Controller", "AddrMapper"))
    system.only("impl", ("GenericDRAM",))
    memory = system.block("DRAM", ("impl", "org", "timing"))
    memory.only("impl", ("DDR4",))
    organization = _organization(memory.block("org", (*_ORGANIZATION, "preset")))
    timing_keys = ("preset", "rate", *_TIMINGS, *(f"t{name[1:]}" for name in _TIMINGS))
    timing = _timing(memory.block("timing", timing_keys), organization)
    controller_keys = (
        "impl", "wr_low_watermark", "wr_high_watermark", "Scheduler", "RefreshManager", "RowPolicy", "plugins",
    )  # fmt: skip
    controller = system.block("Controller", controller_keys)
    controller.only("impl", ("Generic",))
    if controller.data.get("plugins"):
        raise controller.error("plugins", "not modelled", controller.data["plugins"], "none")
    for name, impl in (("Scheduler", "FRFCFS"), ("RefreshManager", "AllBank"), ("RowPolicy", "OpenRowPolicy")):
        controller.block(name, ("impl",)).only("impl", (impl,))
    mapper = system.block("AddrMapper", ("impl",)).only("impl", tuple(_MAPPINGS))
    assumed = [name for name in ("Controller", "AddrMapper") if name not in system.data]
    if assumed:
        notes.append(f"not given, taken as open rows, FR-FCFS and {mapper}: {', '.join(assumed)}")
    found = measured_device(
        {
            "simulator": "ramulator2",
            "config_id": PurePath(source).stem,
            "address_fields_lsb_to_msb": [(field, 0) for field in _MAPPINGS[mapper]],
            "parameters": {
                "dram": "DDR4",
                "row_policy": {"impl": "Open"},
                "channels": organization["channel"],
                "organization": organization,
                "timing_cycles": timing,
                "controller": {
                    "read_buffer_size": 32,
                    "write_buffer_size": 32,
                    "wr_high_watermark": controller.number("wr_high_watermark", 0.8),
                    "wr_low_watermark": controller.number("wr_low_watermark", 0.2),
                },
            },
        }
    )
    return found | {"description": f"Ramulator's {PurePath(source).name}"}


class _Block:
    """A mapping of the file, with its place in it; keys that are none of the allowed ones are refused."""

    def __init__(self, data: object, source: str, path: str, allowed: Sequence[str]) -> None:
        self.source, self.path = source, path
        if not isinstance(data, Mapping):
            shown = "nothing" if data is None else repr(data)[:40]
            raise DramConfigError(f"{source}: {path or 'the file'}: not a mapping (found {shown}); allowed: a mapping")
        self.data = dict(data)
        for key in self.data:
            if key not in allowed:
                near = difflib.get_close_matches(str(key), allowed, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise DramConfigError(f"{source}: {self.at(key)}: unknown key; allowed: {', '.join(allowed)}{hint}")

    def at(self, key: object) -> str:
        return f"{self.path}.{key}" if self.path else str(key)

    def error(self, key: str, message: str, value: object, allowed: str) -> DramConfigError:
        return DramConfigError(f"{self.source}: {self.at(key)}: {message} (found {value!r}); allowed: {allowed}")

    def block(self, key: str, allowed: Sequence[str]) -> "_Block":
        """The mapping under a key; empty if it is not there."""
        return _Block(self.data.get(key, {}), self.source, self.at(key), allowed)

    def only(self, key: str, choices: Sequence[str]) -> str:
        """One of the words that are modelled; the first one if it is not given."""
        value = self.data.get(key, choices[0])
        if value not in choices:
            raise self.error(key, "not modelled", value, ", ".join(choices))
        return str(value)

    def number(self, key: str, default: float) -> float:
        value = self.data.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise self.error(key, "not a number", value, "a number from 0")
        return value

    def count(self, key: str) -> int | None:
        """A whole number from 1, or None if it is not given."""
        value = self.data.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise self.error(key, "not a count", value, "a whole number from 1")
        return value


_ORGANIZATION = ("channel", "rank", "bankgroup", "bank", "row", "column", "dq", "density", "channel_width")


def _organization(block: _Block) -> dict[str, int]:
    presets = {f"DDR4_{mb // 1024}Gb_x{width}": (mb, width) for mb in _DENSITIES_MB for width in _WIDTHS}
    found: dict[str, int] = {"channel_width": 64}
    if "preset" in block.data:
        density, width = presets[block.only("preset", tuple(presets))]
        groups = 2 if width == 16 else 4
        rows = (density << 20) // (groups * 4 * 1024 * width)
        found |= {"density": density, "dq": width, "channel": 1, "rank": 1, "bankgroup": groups, "bank": 4}
        found |= {"row": rows, "column": 1024}
    for name in _ORGANIZATION:
        value = block.count(name)
        if value is not None:
            found[name] = value
        elif name not in found:
            raise DramConfigError(f"{block.source}: {block.at(name)}: missing; allowed: a count, or a preset")
    bits = found["bankgroup"] * found["bank"] * found["row"] * found["column"] * found["dq"]
    if bits >> 20 != found["density"]:
        raise block.error("density", f"not that of the organization, {bits >> 20} Mb", found["density"], "equal")
    return found


def _timing(block: _Block, organization: Mapping[str, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    presets = {f"DDR4_{rate}{letter}": (rate, cl) for rate, (bins, _) in _SPEEDS.items() for letter, cl in bins.items()}
    rate = block.count("rate")
    if "preset" in block.data:
        if rate is not None:
            raise block.error("rate", "not together with a preset", rate, "one of preset and rate")
        rate, cl = presets[block.only("preset", tuple(presets))]
        ras, wr, rtp, cwl, ccd, wtr_short, wtr_long = _SPEEDS[rate][1]
        found = {"nBL": 4, "nCL": cl, "nRCD": cl, "nRP": cl, "nRAS": ras, "nRC": ras + cl, "nWR": wr, "nRTP": rtp}
        found |= {"nCWL": cwl, "nCCDS": 4, "nCCDL": ccd, "nWTRS": wtr_short, "nWTRL": wtr_long, "nCS": 2}
    if rate is None:
        raise DramConfigError(f"{block.source}: {block.at('preset')}: missing; allowed: {', '.join(presets)}, or rate")
    if rate < 2:
        raise block.error("rate", "not a transfer rate", rate, "MT/s")
    clock_ps = int(1e6 / (rate // 2))
    if organization["dq"] in _ACTIVATION and rate in _RATES:
        names = ("nRRDS", "nRRDL", "nFAW")
        rows = _ACTIVATION[organization["dq"]]
        found |= {name: row[_RATES.index(rate)] for name, row in zip(names, rows, strict=True)}
    if organization["density"] in _RFC_NS:
        found["nRFC"] = _clocks(_RFC_NS[organization["density"]], clock_ps)
    found["nREFI"] = _clocks(_REFI_NS, clock_ps)
    for name in _TIMINGS:
        in_ns = f"t{name[1:]}"
        value = block.count(name)
        if value is not None:
            found[name] = value
        elif in_ns in block.data:
            found[name] = _clocks(block.number(in_ns, 0), clock_ps)
        if name not in found:
            message = f"{block.at(name)}: missing; allowed: {name} in clocks or {in_ns} in ns, or a preset"
            raise DramConfigError(f"{block.source}: {message}")
    return found | {"tCK_ps": clock_ps}


def _clocks(time_ns: float, clock_ps: int) -> int:
    """JEDEC's rounding: up, unless it is a clock and less than 2.6 % more."""
    return (int(time_ns * 1000) * 1000 // clock_ps + 974) // 1000
