"""Cases measured with DRAMSim2."""

from typing import Any


def measured(data: dict[str, Any]) -> dict[str, Any]:
    """See :attr:`dram.policy.Controller.measured_by`."""
    p = data["parameters"]
    return {
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
        "controller": {
            "page": p["ROW_BUFFER_POLICY"].removesuffix("_page"),
            "queues": "per_rank" if p["QUEUING_STRUCTURE"] == "per_rank" else "per_bank",
            "order": p["SCHEDULING_POLICY"].removesuffix("_round_robin"),
            "transaction_queue": p["TRANS_QUEUE_DEPTH"],
            "command_queue": p["CMD_QUEUE_DEPTH"],
            "row_accesses": p["TOTAL_ROW_ACCESSES"],
            "low_power": p["USE_LOW_POWER"] == "true",
        },
    }
