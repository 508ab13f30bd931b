"""Configuration files of DRAMsim3 (``.ini``): defaults and derived values as its source has them (29817593)."""

import configparser
import difflib
from pathlib import PurePath
from typing import Any

from dram.errors import DramConfigError
from dram.reference_config import measured_device

KIND = "DRAMsim3 configuration"

# section: key: default, whose type is that of the value
_KEYS: dict[str, dict[str, Any]] = {
    "dram_structure": {
        "protocol": "DDR3", "bankgroups": 2, "banks_per_group": 2, "bankgroup_enable": True, "rows": 1 << 16,
        "columns": 1 << 10, "device_width": 8, "BL": 8, "hbm_dual_cmd": True,
    },
    "timing": {
        "tCK": 1.0, "AL": 0, "CL": 12, "CWL": 12, "tCCD_L": 6, "tCCD_S": 4, "tRTRS": 2, "tRTP": 5, "tWTR_L": 5,
        "tWTR_S": 5, "tWR": 10, "tRP": 10, "tRRD_L": 4, "tRRD_S": 4, "tRAS": 24, "tRCD": 10, "tRFC": 74, "tCKE": 6,
        "tXP": 8, "tREFI": 7800, "tFAW": 50, "tPPD": 0, "t32AW": 330, "tRCDRD": 24, "tRCDWR": 20,
    },
    "power": {
        "VDD": 1.2, "IDD0": 48.0, "IDD2P": 25.0, "IDD2N": 34.0, "IDD3N": 43.0, "IDD4W": 123.0, "IDD4R": 135.0,
        "IDD5AB": 250.0,
    },
    "system": {
        "channel_size": 1024, "channels": 1, "bus_width": 64, "address_mapping": "chrobabgraco",
        "queue_structure": "PER_BANK", "row_buf_policy": "OPEN_PAGE", "cmd_queue_size": 16, "trans_queue_size": 32,
        "unified_queue": False, "refresh_policy": "RANK_LEVEL_STAGGERED", "enable_self_refresh": False,
        "aggressive_precharging_enabled": False, "mega_tick": 1,
    },
}  # fmt: skip

# Keys without influence on times and energies here: DRAMsim3 never reads them, or uses them for what is refused
# (self refresh, refresh bank by bank), for its output, or not at all.
_WITHOUT_EFFECT = {
    "dram_structure": ("num_dies",),
    "timing": (
        "tRFC2", "tRFC4", "tRFCb", "tREFIb", "tRPRE", "tWPRE", "tWR2", "tCKESR", "tCKSRE", "tXS", "tPD", "tRTP_L",
        "tRTP_S", "tRC", "ideal_memory_latency",
    ),
    "power": ("IPP0", "IDD3P", "IDD5PB", "IDD6x"),
    "system": ("write_buf_size", "sref_threshold", "queue_size", "refresh_strategy", "req_buffering_enabled"),
    "other": ("epoch_period", "output_level", "output_prefix", "output_dir"),
    "thermal": None,
}  # fmt: skip

_RARE = ("AL", "tPPD", "t32AW", "tRCDRD", "tRCDWR")
"""Timings that few standards have."""

_CHOICES = {
    "protocol": ("DDR3", "DDR4", "GDDR5", "GDDR5X", "LPDDR", "LPDDR3", "LPDDR4", "HBM", "HBM2"),
    "queue_structure": ("PER_BANK", "PER_RANK"),
    "row_buf_policy": ("OPEN_PAGE", "CLOSE_PAGE"),
    "refresh_policy": ("RANK_LEVEL_STAGGERED", "RANK_LEVEL_SIMULTANEOUS"),
    "enable_self_refresh": (False,),
    "aggressive_precharging_enabled": (False,),
    "mega_tick": (1,),
}
_FIELDS = ("ch", "ra", "bg", "ba", "ro", "co")


def device(text: str, source: str, notes: list[str]) -> dict[str, Any]:
    """Sections of a device file; ``notes`` gets what was assumed, or has no effect here.

    Raises:
        DramConfigError: with section and key.
    """
    given = _sections(text, source)
    values: dict[str, Any] = {}
    unused: list[str] = []
    for section, entries in given.items():
        known, silent = _KEYS.get(section, {}), _WITHOUT_EFFECT.get(section, ())
        if section not in _KEYS and section not in _WITHOUT_EFFECT:
            allowed = ", ".join(f"[{name}]" for name in (*_KEYS, "other"))
            raise DramConfigError(f"{source}: unknown section (found [{section}]); allowed: {allowed}")
        names = {name.lower(): name for name in known}
        for key, value in entries.items():
            if key.lower() in names:
                name = names[key.lower()]
                values[name] = _value(source, f"{section}.{name}", value, known[name])
            elif silent is None or key.lower() in (name.lower() for name in silent):
                unused.append(key)
            else:
                near = difflib.get_close_matches(key.lower(), names, n=1)
                hint = f"; did you mean {names[near[0]]}?" if near else ""
                raise DramConfigError(f"{source}: {section}.{key}: unknown key; allowed: {', '.join(known)}{hint}")
    assumed = [name for name in _KEYS["timing"] if name not in values and name not in _RARE]
    if assumed:
        notes.append(f"DRAMsim3's defaults: {', '.join(assumed)}")
    if unused:
        notes.append(f"without effect here: {', '.join(unused)}")
    p = {name: value for keys in _KEYS.values() for name, value in keys.items()} | values
    for name, choices in _CHOICES.items():
        if p[name] not in choices:
            section = next(section for section, keys in _KEYS.items() if name in keys)
            shown = ", ".join(map(str, choices))
            raise DramConfigError(f"{source}: {section}.{name}: not modelled (found {p[name]!r}); allowed: {shown}")
    return _device(p, source, notes)


def _sections(text: str, source: str) -> dict[str, dict[str, str]]:
    parser = configparser.RawConfigParser(inline_comment_prefixes=(";", "#"), strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise DramConfigError(f"{source}: not a configuration: {' '.join(str(error).split())}") from None
    return {name: dict(parser[name]) for name in parser.sections()}


def _value(source: str, path: str, text: str, default: Any) -> Any:
    if isinstance(default, bool):
        words = {
            "true": True,
            "yes": True,
            "on": True,
            "1": True,
            "false": False,
            "no": False,
            "off": False,
            "0": False,
        }
        if text.lower() not in words:
            raise DramConfigError(f"{source}: {path}: not true or false (found {text!r}); allowed: true, false")
        return words[text.lower()]
    if isinstance(default, str):
        return text
    try:
        value = type(default)(text)
    except ValueError:
        value = -1
    if not 0 <= value < 1 << 40:
        what = "a whole number" if isinstance(default, int) else "a number"
        raise DramConfigError(f"{source}: {path}: not {what} (found {text!r}); allowed: {what} from 0")
    return value


def _device(p: dict[str, Any], source: str, notes: list[str]) -> dict[str, Any]:
    protocol = p["protocol"]
    hbm, gddr = protocol.startswith("HBM"), protocol.startswith("GDDR")
    if not p["bankgroup_enable"]:
        p["banks_per_group"], p["bankgroups"] = p["banks_per_group"] * p["bankgroups"], 1
    for name in ("bankgroups", "banks_per_group", "rows", "columns", "device_width", "BL", "channels", "bus_width"):
        if p[name] < 1:
            raise DramConfigError(f"{source}: {name}: not modelled (found {p[name]}); allowed: from 1")
    # A column is a device word here; DRAMsim3's files count a burst of GDDR, or two words of HBM, as one.
    p["columns"] *= p["BL"] if gddr else 2 if hbm else 1
    devices = p["bus_width"] // p["device_width"]
    bank_mib = p["columns"] * p["device_width"] // 8 * (p["rows"] // 1024) // 1024
    rank_mib = bank_mib * p["bankgroups"] * p["banks_per_group"] * devices
    if rank_mib < 1:
        raise DramConfigError(f"{source}: dram_structure: a bank of less than 1 MiB, which DRAMsim3 does not count")
    ranks = max(p["channel_size"] // rank_mib, 1)
    parameters = p | {
        "ranks": ranks,
        "devices_per_rank": devices,
        "burst_cycle": p["BL"] // (4 if protocol == "GDDR5" else 8 if protocol == "GDDR5X" else 2),
        "RL": p["AL"] + p["CL"],
        "WL": p["AL"] + p["CWL"],
        "tRC": p["tRAS"] + p["tRP"],
        "enable_hbm_dual_cmd": p["hbm_dual_cmd"] and hbm,
        "protocol_is_hbm": hbm,
        "protocol_is_gddr": gddr,
        "refresh_policy_code": int(p["refresh_policy"] == "RANK_LEVEL_STAGGERED"),
        "currents": {"Vdd": p["VDD"], "IDD5": p["IDD5AB"]}
        | {name: p[name] for name in ("IDD0", "IDD2P", "IDD2N", "IDD3N", "IDD4R", "IDD4W")},
    }
    mapping = str(p["address_mapping"])
    fields = [mapping[at : at + 2] for at in range(0, len(mapping), 2)]
    if sorted(fields) != sorted(_FIELDS):
        allowed = f"{', '.join(_FIELDS)} in any order without blanks, such as rochrababgco"
        raise DramConfigError(
            f"{source}: system.address_mapping: not six fields (found {mapping!r}); allowed: {allowed}"
        )
    if rank_mib > p["channel_size"]:
        size = p["channel_size"]
        notes.append(f"channel_size {size} MiB is less than a rank: one of {rank_mib} MiB, as DRAMsim3 does")
    found = measured_device(
        {
            "simulator": "dramsim3",
            "device_file": protocol,
            "config_id": PurePath(source).stem,
            "address_fields_lsb_to_msb": [(field, 0) for field in reversed(fields)],
            "parameters": parameters,
        }
    )
    return found | {"description": f"DRAMsim3's {PurePath(source).name}"}
