"""Replaying measured cases of public DRAM simulators and comparing every request and every command.

A folder of cases holds ``config.json``, ``cases.json`` and for each pattern ``<pattern>.requests.csv.gz`` and perhaps
``<pattern>.commands.csv.gz``. The driver presents requests strictly in trace order, at most
``issue_width_per_cycle`` of them in a DRAM clock over all channels together, and stops for that clock at the first one
without room.
"""

import csv
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dram.channel import READ, WRITE
from dram.config import DramConfig
from dram.queues_kernel import NEVER
from dram.reference_config import reference_config
from dram.stats import DramStats
from dram.system import DramSystem


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


def _rows(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def replay(system: DramSystem, cycles: list[int], ops: list[int], addresses: list[int], width: int) -> int:
    """Drive a system (ratio 1) by the rules of the reference driver until all is done; returns the last completion."""
    total = len(cycles)
    clock = 0
    last = 0
    done = 0
    if len(system.channels) == 1:
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
    system = DramSystem(reference_config(folder), Fraction(1), logging=True, requests_per_clock=width, in_order=True)
    presented = rows + extra
    cycles = [int(row["cycle"]) for row in presented]
    ops = [WRITE if row["op"] == "W" else READ for row in presented]
    addresses = [int(row["addr"], 16) for row in presented]
    last = replay(system, cycles, ops, addresses, width)
    result.requests = len(rows)
    timing = system.config.timing
    # Where the simulator calls a write done when its command is issued; here it is done with its last data beat.
    by_command = system.config.controller.write_done == "command"
    posted = timing.write_latency + timing.burst_clocks if by_command else 0
    # posted writes may go after the last completion
    system.advance(max(summary["total_cycles_simulated"], last + 1))
    _compare_requests(result, rows, _logged_requests(system, addresses), limit, posted)
    commands = folder / f"{pattern}.commands.csv.gz"
    if limit == NEVER:
        if not posted and last != summary["last_completed"]:
            result.differences.append(f"last completion in {last}, expected {summary['last_completed']}")
        _compare_summary(result, summary, system.stats, system.config)
        if commands.exists():
            _compare_commands(result, _rows(commands), system.command_log())
    return result


def unsupported(folder: Path | str) -> str | None:
    """Why the cases of a folder cannot be replayed here, or ``None`` if they can."""
    try:
        reference_config(Path(folder))
    except NotImplementedError as error:
        return str(error)
    return None


def case_names(folder: Path) -> list[str]:
    """The patterns of a folder of cases."""
    return sorted(path.name.removesuffix(".requests.csv.gz") for path in folder.glob("*.requests.csv.gz"))


def check_folder(folder: Path | str) -> list[CaseResult]:
    """All cases of a folder, or of the folders below it, whose configuration has a policy here."""
    folders = [config.parent for config in sorted(Path(folder).rglob("config.json"))]
    return [check_case(f, pattern) for f in folders if unsupported(f) is None for pattern in case_names(f)]


def dram_cases(folder: Path) -> Iterator[tuple[str, str | None]]:
    """Name and first difference (``None``: equal) of each case below a folder; says what is not supported, and why."""
    configs = sorted(folder.rglob("config.json"))
    if not configs:
        raise ValueError("no config.json in this folder or below it")
    for config in configs:
        place = config.parent
        name = str(place.relative_to(folder)) if place != folder else place.name
        reason = unsupported(place)
        if reason is not None:
            print(f"{name}: not supported: {reason} ({len(case_names(place))} cases not compared)")
            continue
        for pattern in case_names(place):
            try:
                result = check_case(place, pattern)
                difference = None if result.equal else result.differences[0]
            except (OSError, ValueError, KeyError) as error:
                difference = repr(error)
            yield f"{name}/{pattern}", difference


def _logged_requests(system: DramSystem, addresses: list[int]) -> list[list[int]]:
    """Accepted, cas, completed of every request in trace order."""
    logs = [iter(np.maximum(channel.request_log[: channel.submitted], -1).tolist()) for channel in system.channels]
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
    tool = summary.get("tool", {})
    if "act_stb_energy" in tool and config.currents is not None:
        pairs.append(("clocks with a row open", stats.rank_active_cycles, tool["rank_active_cycles"]))
        pairs.append(("clocks with all banks closed", stats.rank_standby_cycles, tool["all_bank_idle_cycles"]))
        unit = config.timing.tCK_ps / 1000
        for name, parts in (
            ("background", ("act_stb_energy", "pre_stb_energy")), ("burst", ("read_energy", "write_energy")),
            ("activate", ("act_energy",)), ("refresh", ("ref_energy",)),
        ):  # fmt: skip
            # floating point there too, and an increment was rounded to whole numbers on its way into the files
            found, expected = getattr(stats, f"energy_{name}_pj") / unit, sum(tool[part] for part in parts)
            if abs(found - expected) > 2e-6 * expected:
                pairs.append((f"energy {name}", found, expected))
    for name, found, expected in pairs:
        if found != expected:
            result.differences.append(f"{name}: {found}, expected {expected}")
