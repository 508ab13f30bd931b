"""Cases measured with Ramulator 2."""

from typing import Any


def measured(data: dict[str, Any]) -> dict[str, Any]:
    """See :attr:`dram.policy.Controller.measured_by`."""
    p = data["parameters"]
    if p["dram"] != "DDR4":
        raise NotImplementedError(
            f"no controller for {p['dram']} (commands of two clocks, row and column command buses)"
        )
    if p["row_policy"]["impl"] != "Open":
        raise NotImplementedError(
            f"no row policy {p['row_policy']['impl']} (closing requests of its own beside RDA/WRA; data of two ranks "
            "overlap there)"
        )
    o, c = p["organization"], p["timing_cycles"]
    names = {
        "BL": 2 * c["nBL"], "CL": c["nCL"], "CWL": c["nCWL"], "tRCD": c["nRCD"], "tRP": c["nRP"], "tRAS": c["nRAS"],
        "tRC": c["nRC"], "tRRD_S": c["nRRDS"], "tRRD_L": c["nRRDL"], "tCCD_S": c["nCCDS"], "tCCD_L": c["nCCDL"],
        "tWTR_S": c["nWTRS"], "tWTR_L": c["nWTRL"], "tRTP": c["nRTP"], "tWR": c["nWR"], "tRTRS": c["nCS"],
        "tFAW": c["nFAW"], "tREFI": c["nREFI"], "tRFC": c["nRFC"],
    }  # fmt: skip
    return {
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
        "controller": {
            "read_queue": p["controller"]["read_buffer_size"],
            "write_queue": p["controller"]["write_buffer_size"],
            "drain_above": p["controller"]["wr_high_watermark"],
            "drain_below": p["controller"]["wr_low_watermark"],
            "forward_clocks": 0,
            "drain_batch": None,
        },
    }
