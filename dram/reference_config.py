"""Configurations of measured cases: from a simulator's own parameters, as it parsed them, to ours."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dram.config import DramConfig
from dram.errors import DramConfigError

#: address fields of the reference files
_FIELD_NAMES = {"ch": "channel", "ra": "rank", "bg": "bankgroup", "ba": "bank", "ro": "row", "co": "column"}


def reference_config(folder: Path, data: dict[str, Any] | None = None) -> DramConfig:
    """The configuration a folder of cases was measured with.

    Raises:
        NotImplementedError: no controller policy here corresponds to it.
    """
    if data is None:
        data = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert data is not None
    p = data["parameters"]
    mapping = ":".join(_FIELD_NAMES[name] for name, _ in reversed(data["address_fields_lsb_to_msb"]))
    if data["simulator"] == "dramsim2":
        return _dramsim2_config(data["config_id"], p, mapping)
    if data["simulator"] == "dramsim3" and not p["enable_self_refresh"] and p["refresh_policy_code"] < 2:
        return _dramsim3_config(data, mapping)
    if data["simulator"] == "ramulator2" and p["dram"] == "DDR4" and p["row_policy"]["impl"] == "Open":
        return _ramulator_config(data["config_id"], p, mapping)
    raise NotImplementedError(_why_not(data["simulator"], p))


def _dramsim2_config(name: str, p: dict[str, Any], mapping: str) -> DramConfig:
    for required in ("row", "bank", "column"):
        if required not in mapping.split(":"):
            mapping = f"{mapping}:{required}"
    return DramConfig.model_validate(
        {
            "name": name,
            "organization": {
                "channels": p["NUM_CHANS"],
                "ranks": p["NUM_RANKS"],
                "banks_per_group": p["NUM_BANKS"],
                "rows": p["NUM_ROWS"],
                "columns": p["NUM_COLS"],
                "device_width_bits": p["DEVICE_WIDTH"],
                "bus_width_bits": p["JEDEC_DATA_BUS_BITS"],
            },
            "timing": {
                "tCK_ps": p["tCK"] * 1000,
                "CWL": p["CL"] - 1,
                "tRRD_S": p["tRRD"],
                "tCCD_S": p["tCCD"],
                "tWTR_S": p["tWTR"],
                "tREFI": int(p["REFRESH_PERIOD"] / p["tCK"]),
                **{n: p[n] for n in ("BL", "CL", "AL", "tRCD", "tRP", "tRAS", "tRC", "tRTP", "tWR", "tRTRS", "tFAW")},
                **{n: p[n] for n in ("tRFC", "tCKE", "tXP", "tCMD")},
            },
            "currents": {n: p[n] for n in ("Vdd", "IDD0", "IDD2P", "IDD2N", "IDD3N", "IDD4R", "IDD4W", "IDD5")},
            "address_mapping": mapping,
            "controller": {
                "policy": "dramsim2",
                "page": p["ROW_BUFFER_POLICY"].removesuffix("_page"),
                "queues": "per_rank" if p["QUEUING_STRUCTURE"] == "per_rank" else "per_bank",
                "order": p["SCHEDULING_POLICY"].removesuffix("_round_robin"),
                "transaction_queue": p["TRANS_QUEUE_DEPTH"],
                "command_queue": p["CMD_QUEUE_DEPTH"],
                "row_accesses": p["TOTAL_ROW_ACCESSES"],
                "low_power": p["USE_LOW_POWER"] == "true",
            },
        }
    )


def _ramulator_config(name: str, p: dict[str, Any], mapping: str) -> DramConfig:
    o, c = p["organization"], p["timing_cycles"]
    names = {
        "BL": 2 * c["nBL"], "CL": c["nCL"], "CWL": c["nCWL"], "tRCD": c["nRCD"], "tRP": c["nRP"], "tRAS": c["nRAS"],
        "tRC": c["nRC"], "tRRD_S": c["nRRDS"], "tRRD_L": c["nRRDL"], "tCCD_S": c["nCCDS"], "tCCD_L": c["nCCDL"],
        "tWTR_S": c["nWTRS"], "tWTR_L": c["nWTRL"], "tRTP": c["nRTP"], "tWR": c["nWR"], "tRTRS": c["nCS"],
        "tFAW": c["nFAW"], "tREFI": c["nREFI"], "tRFC": c["nRFC"],
    }  # fmt: skip
    return DramConfig.model_validate(
        {
            "name": name,
            "organization": {
                "channels": p["channels"],
                "ranks": o["rank"],
                "bank_groups": o["bankgroup"],
                "banks_per_group": o["bank"],
                "rows": o["row"],
                "columns": o["column"],
                "device_width_bits": o["dq"],
                "bus_width_bits": o["channel_width"],
            },
            "timing": {"tCK_ps": c["tCK_ps"], **names},
            "address_mapping": mapping,
            "controller": {
                "policy": "frfcfs",
                "read_queue": p["controller"]["read_buffer_size"],
                "write_queue": p["controller"]["write_buffer_size"],
                "drain_above": p["controller"]["wr_high_watermark"],
                "drain_below": p["controller"]["wr_low_watermark"],
                "forward_clocks": 0,
                "drain_batch": None,
            },
        }
    )


@dataclass(frozen=True)
class ReferenceSetup:
    """How a folder of cases was measured.

    ``width`` requests at most were presented in a clock, and clocking went on for ``tail_clocks`` after the last
    completion.
    """

    config: DramConfig
    simulator: str
    width: int
    tail_clocks: int

    @property
    def write_done(self) -> str:
        """What a completed write is there: its ``command``, or its ``data`` (or acceptance, which the policy knows)."""
        return "command" if self.simulator == "ramulator2" else "data"


def load_reference(path: Path) -> ReferenceSetup:
    """Read a ``config.json`` of the reference measurements.

    Raises:
        DramConfigError: the file cannot be read, a parameter is missing or wrong, or no policy here corresponds to it.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        config = reference_config(path.parent, data)
        width = int(data.get("issue_width_per_cycle", 1))
        tail = max(int(data.get("tail_cycles_after_last_completion", 0)), 0)
    except OSError as error:
        raise DramConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DramConfigError(f"{path}: not JSON: {error}") from None
    except KeyError as error:
        raise DramConfigError(f"{path}: {error.args[0]}: missing; allowed: a config.json of the measurements") from None
    except NotImplementedError as error:
        raise DramConfigError(f"{path}: not supported: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"])
        raise DramConfigError(f"{path}: {place}: {first['msg']} (found {first['input']!r})") from None
    except (TypeError, AttributeError, ValueError, ZeroDivisionError) as error:
        raise DramConfigError(f"{path}: not a config.json of the measurements: {error}") from None
    if not 1 <= width <= 1024:
        raise DramConfigError(f"{path}: issue_width_per_cycle: out of range (found {width}); allowed: 1 to 1024")
    return ReferenceSetup(config, str(data["simulator"]), width, tail)


def _why_not(simulator: str, p: dict[str, Any]) -> str:
    if simulator == "dramsim3":
        return "no self refresh" if p["enable_self_refresh"] else "no refresh bank by bank"
    if simulator == "ramulator2":
        if p["dram"] != "DDR4":
            return f"no controller for {p['dram']} (commands of two clocks, row and column command buses)"
        return (
            f"no row policy {p['row_policy']['impl']} (closing requests of its own beside RDA/WRA; data of two ranks "
            "overlap there)"
        )
    return f"no policy for {simulator}"


def _dramsim3_config(data: dict[str, Any], mapping: str) -> DramConfig:
    p = data["parameters"]
    for required in ("row", "bank", "column"):
        if required not in mapping.split(":"):
            mapping = f"{mapping}:{required}"
    grouped = p["bankgroups"] > 1
    separate = bool(p["protocol_is_hbm"] or p["protocol_is_gddr"])
    apart = bool(p["protocol_is_gddr"]) or str(data.get("device_file", "")).startswith("LPDDR4")
    devices = p["devices_per_rank"]
    # the increments are V x mA (x cycles) of all devices of a rank; only their sums matter, so Vdd may be 1
    standby, active = p["pre_stb_energy_inc"] / devices, p["act_stb_energy_inc"] / devices
    return DramConfig.model_validate(
        {
            "name": data["config_id"],
            "organization": {
                "channels": p["channels"],
                "ranks": p["ranks"],
                "bank_groups": p["bankgroups"],
                "banks_per_group": p["banks_per_group"],
                "rows": p["rows"],
                "columns": p["columns"],
                "device_width_bits": p["bus_width"] // devices,
                "bus_width_bits": p["bus_width"],
            },
            "timing": {
                "tCK_ps": p["tCK"] * 1000,
                "BL": p["BL"],
                "beats_per_clock": p["BL"] // p["burst_cycle"],
                "CL": p["RL"] - p["AL"],
                "CWL": p["WL"] - p["AL"],
                "t32AW": p["t32AW"] if p["protocol_is_gddr"] else None,
                "tRCDRD": p["tRCDRD"] if separate else None,
                "tRCDWR": p["tRCDWR"] if separate else None,
                "tPPD": p["tPPD"] if apart else 0,
                **{n: p[n] for n in ("AL", "tRCD", "tRP", "tRAS", "tRC", "tRRD_S", "tCCD_S", "tWTR_S", "tRTP", "tWR")},
                **{n: p[n] if grouped else None for n in ("tRRD_L", "tCCD_L", "tWTR_L")},
                **{n: p[n] for n in ("tRTRS", "tFAW", "tREFI", "tRFC", "tCKE", "tXP")},
            },
            "currents": {
                "Vdd": 1,
                "IDD0": (p["act_energy_inc"] / devices + active * p["tRAS"] + standby * p["tRP"]) / p["tRC"],
                "IDD2P": p["pre_pd_energy_inc"] / devices,
                "IDD2N": standby,
                "IDD3N": active,
                "IDD4R": p["read_energy_inc"] / devices / p["burst_cycle"] + active,
                "IDD4W": p["write_energy_inc"] / devices / p["burst_cycle"] + active,
                "IDD5": p["ref_energy_inc"] / devices / p["tRFC"] + active,
            },
            "address_mapping": mapping,
            "controller": {
                "policy": "dramsim3",
                "page": "close" if p["row_buf_policy"] == "CLOSE_PAGE" else "open",
                "queues": "per_rank" if p["queue_structure"] == "PER_RANK" else "per_bank",
                "command_queue": p["cmd_queue_size"],
                "transaction_queue": p["trans_queue_size"],
                "unified_queue": bool(p["unified_queue"]),
                "dual_command": bool(p["enable_hbm_dual_cmd"]),
                "refresh_ranks": "staggered" if p["refresh_policy_code"] == 1 else "first_only",
                "leftover_writes": "parked",
            },
        }
    )
