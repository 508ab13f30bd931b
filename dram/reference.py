"""Replaying measured cases of public DRAM simulators and comparing every request and every command.

A folder of cases holds ``config.json``, ``cases.json`` and for each pattern ``<pattern>.requests.csv.gz`` and perhaps
``<pattern>.commands.csv.gz``. The driver presents requests strictly in trace order, at most
``issue_width_per_cycle`` of them in a DRAM clock over all channels together, and stops for that clock at the first one
without room.
"""

import csv
import gzip
import json
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dram.channel import READ, WRITE
from dram.config import DramConfig
from dram.queues_kernel import NEVER
from dram.stats import DramStats
from dram.system import DramSystem

#: address fields of the reference files
_FIELD_NAMES = {"ch": "channel", "ra": "rank", "bg": "bankgroup", "ba": "bank", "ro": "row", "co": "column"}


@dataclass
class CaseResult:
    """Outcome of one case."""

    folder: str
    pattern: str
    requests: int = 0
    commands: int = 0
    """Commands compared; 0 if the case has no command log."""
    differences: list[str] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """All compared values are equal."""
        return not self.differences


def reference_config(folder: Path) -> DramConfig:
    """The configuration a folder of cases was measured with.

    Raises:
        NotImplementedError: no controller policy here corresponds to it.
    """
    data = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    p = data["parameters"]
    mapping = ":".join(_FIELD_NAMES[name] for name, _ in reversed(data["address_fields_lsb_to_msb"]))
    if data["simulator"] == "dramsim2":
        return _dramsim2_config(data["config_id"], p, mapping)
    if data["simulator"] == "ramulator2" and p["dram"] == "DDR4" and p["row_policy"]["impl"] == "Open":
        return _ramulator_config(data["config_id"], p, mapping)
    raise NotImplementedError(f"{data['config_id']}: no policy for {data['simulator']}")


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
            },
        }
    )


def _rows(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def replay(system: DramSystem, cycles: list[int], ops: list[int], addresses: list[int], width: int) -> int:
    """Drive a system (ratio 1) by the rules of the reference driver until all is done; returns the last completion."""
    total = len(cycles)
    clock = 0
    last = 0
    done = 0
    if len(system.channels) == 1 and system.channels[0].lanes == 1 and width == 1:
        system.submit_many(np.array(cycles), np.array(ops), np.array(addresses), np.arange(total))
        position = total
    else:
        position = 0
    while done < total:
        presented = 0
        while position < total and presented < width and cycles[position] <= clock:
            channel = system.channels[system.channel_of(addresses[position])]
            if not channel.room(ops[position], addresses[position]):
                break
            system.submit(clock, ops[position], addresses[position], position)
            position += 1
            presented += 1
        if position == total:
            # nothing more to present: go from completion to completion
            clock = system.earliest_visible_cycle() or clock + 1
        elif presented == 0 and system.pending == 0 and cycles[position] > clock + 1:
            clock = cycles[position]
        else:
            clock += 1
        for _, visible in system.advance(clock):
            done += 1
            last = max(last, visible)
    return last


def _extend(rows: list[dict[str, str]], total: int) -> list[dict[str, str]]:
    """The requests left out of a shortened file, if it is a stream: one stride, one direction, one wished-for cycle."""
    addresses = [int(row["addr"], 16) for row in rows]
    stride = addresses[1] - addresses[0]
    steady = all(b - a == stride for a, b in pairwise(addresses))
    if not steady or len({(row["op"], row["cycle"]) for row in rows}) > 1:
        return []
    return [rows[0] | {"addr": hex(addresses[0] + i * stride)} for i in range(len(rows), total)]


def check_case(folder: Path | str, pattern: str) -> CaseResult:
    """Replay one case; compare accepted, cas, completed of each request, each command logged, counts and energy.

    Of a case whose file was shortened and cannot be continued, only what happened before the first missing request
    could be presented is compared.
    """
    folder = Path(folder)
    result = CaseResult(folder.name, pattern)
    data = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    summary = json.loads((folder / "cases.json").read_text(encoding="utf-8"))[pattern]
    rows = _rows(folder / f"{pattern}.requests.csv.gz")
    limit = NEVER
    extra: list[dict[str, str]] = []
    if summary.get("requests_file_truncated_to") is not None:
        extra = _extend(rows, summary["requests"])
        if not extra:
            limit = int(rows[-1]["accepted"])
    width = int(data["issue_width_per_cycle"])
    system = DramSystem(reference_config(folder), Fraction(1), logging=True, requests_per_clock=width)
    presented = rows + extra
    cycles = [int(row["cycle"]) for row in presented]
    ops = [WRITE if row["op"] == "W" else READ for row in presented]
    addresses = [int(row["addr"], 16) for row in presented]
    last = replay(system, cycles, ops, addresses, width)
    result.requests = len(rows)
    timing = system.config.timing
    # Ramulator calls a write done when its command is issued, here it is done with its last data beat
    posted = timing.write_latency + timing.burst_clocks if data["simulator"] == "ramulator2" else 0
    _compare_requests(result, rows, _logged_requests(system, addresses), limit, posted)
    commands = folder / f"{pattern}.commands.csv.gz"
    if limit == NEVER:
        if not posted and last != summary["last_completed"]:
            result.differences.append(f"last completion in {last}, expected {summary['last_completed']}")
        system.advance(max(summary["total_cycles_simulated"], last + 1))
        _compare_summary(result, summary, system.stats, system.config)
        if commands.exists():
            _compare_commands(result, _rows(commands), system.command_log())
    return result


def check_folder(folder: Path | str) -> list[CaseResult]:
    """All cases of a folder, or of the folders below it whose simulator has a policy here."""
    folder = Path(folder)
    results: list[CaseResult] = []
    for config in sorted(folder.rglob("config.json")):
        try:
            reference_config(config.parent)
        except NotImplementedError:
            continue
        for requests in sorted(config.parent.glob("*.requests.csv.gz")):
            results.append(check_case(config.parent, requests.name.removesuffix(".requests.csv.gz")))
    return results


def _logged_requests(system: DramSystem, addresses: list[int]) -> list[list[int]]:
    """Accepted, cas, completed of every request in trace order."""
    logs = [iter(channel.request_log[: channel.submitted].tolist()) for channel in system.channels]
    return [next(logs[system.channel_of(address)]) for address in addresses]


def _compare_requests(
    result: CaseResult, rows: list[dict[str, str]], log: list[list[int]], limit: int, posted_write_clocks: int
) -> None:
    for i, row in enumerate(rows):
        expected = [int(row[name]) if row[name] else -1 for name in ("accepted", "cas", "completed")]
        if row["op"] == "W" and posted_write_clocks and expected[1] >= 0:
            expected[2] += posted_write_clocks
        found = [value if value <= limit else NEVER for value in log[i]]
        expected = [value if value <= limit else NEVER for value in expected]
        if found != expected:
            result.differences.append(f"request {i}: accepted, cas, completed {found}, expected {expected}")


def _compare_commands(result: CaseResult, rows: list[dict[str, str]], log: list[dict[str, int | str]]) -> None:
    result.commands = len(rows)
    if len(rows) != len(log):
        result.differences.append(f"{len(log)} commands, expected {len(rows)}")
    for i, (row, found) in enumerate(zip(rows, log, strict=False)):
        different = [name for name, value in row.items() if value and name in found and str(found[name]) != value]
        if different:
            result.differences.append(f"command {i}: {found}, expected {row}")
            break


def _compare_summary(result: CaseResult, summary: dict[str, Any], stats: DramStats, config: DramConfig) -> None:
    commands = summary["commands"]
    pairs: list[tuple[str, float, float]] = [
        ("ACT", stats.activates, commands.get("ACT", 0)),
        ("PRE", stats.precharges, sum(commands.get(name, 0) for name in ("PRE", "PREpb", "PREab"))),
        ("REF", stats.refreshes, sum(commands.get(name, 0) for name in ("REF", "REFab"))),
        ("row hits", stats.row_hits, summary["row_hits"]),
    ]
    accumulators = summary.get("tool", {}).get("accumulators_mA_cycles")
    if accumulators and config.currents is not None:
        unit = config.currents.Vdd * config.timing.tCK_ps / 1000
        for name, field_name in (
            ("background", "background"), ("burst", "burst"), ("actpre", "activate"), ("refresh", "refresh"),
        ):  # fmt: skip
            pairs.append((name, round(getattr(stats, f"energy_{field_name}_pj") / unit), accumulators[name]))
    for name, found, expected in pairs:
        if found != expected:
            result.differences.append(f"{name}: {found}, expected {expected}")
