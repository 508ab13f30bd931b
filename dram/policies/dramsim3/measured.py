"""Cases measured with DRAMsim3."""

from typing import Any


def measured(data: dict[str, Any]) -> dict[str, Any]:
    """See :attr:`dram.policy.Controller.measured_by`."""
    p = data["parameters"]
    if p["enable_self_refresh"]:
        raise NotImplementedError("no self refresh")
    if p["refresh_policy_code"] >= 2:
        raise NotImplementedError("no refresh bank by bank")
    grouped = p["bankgroups"] > 1
    separate = bool(p["protocol_is_hbm"] or p["protocol_is_gddr"])
    apart = bool(p["protocol_is_gddr"]) or str(data.get("device_file", "")).startswith("LPDDR4")
    devices = p["devices_per_rank"]
    return {
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
        "currents": p["currents"] if "currents" in p else _currents(p),
        "controller": {
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


def _currents(p: dict[str, Any]) -> dict[str, float]:
    """Currents from the increments of energy, V x mA (x cycles) of a rank; only products matter, so Vdd is 1."""
    devices = p["devices_per_rank"]
    standby, active = p["pre_stb_energy_inc"] / devices, p["act_stb_energy_inc"] / devices
    return {
        "Vdd": 1,
        "IDD0": (p["act_energy_inc"] / devices + active * p["tRAS"] + standby * p["tRP"]) / p["tRC"],
        "IDD2P": p["pre_pd_energy_inc"] / devices,
        "IDD2N": standby,
        "IDD3N": active,
        "IDD4R": p["read_energy_inc"] / devices / p["burst_cycle"] + active,
        "IDD4W": p["write_energy_inc"] / devices / p["burst_cycle"] + active,
        "IDD5": p["ref_energy_inc"] / devices / p["tRFC"] + active,
    }
