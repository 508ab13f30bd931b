"""Recompute reference measurements and compare every line.

Usage: python scripts/check_reference.py noc FOLDER

Each subcommand takes a folder in the layout of the reference measurements, computes every case from its inputs alone,
prints ``N of M cases equal`` and, for each case that differs, the first differing line. Exit code 1 if any differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cosa.analytical.reference import analytical_cases
from cosa.interop.reference import timeloop_files_cases, timeloop_v4_cases
from dram.reference import dram_cases
from nocsim.published.reference import endtoend_cases, first_difference
from nocsim.traffic.replay import read_packets, replay_packets


def noc_cases(folder: Path) -> Iterator[tuple[str, str | None]]:
    """Replay each router-level case; yield its name and its first difference, None if it is equal."""
    for case in json.loads((folder / "cases.json").read_text(encoding="utf-8"))["cases"]:
        yield case["case"], noc_difference(folder, case)


def noc_difference(folder: Path, case: dict[str, Any]) -> str | None:
    """First difference of one router-level case."""
    try:
        packets = read_packets(folder / f"{case['case']}.packets.csv")
        expected = (folder / f"{case['case']}.deliveries.csv").read_text(encoding="utf-8-sig").split("\n")
        deliveries = replay_packets(
            packets,
            case["columns"],
            case["rows"],
            case["output_fifo_flits"],
            case["multicast_reservation_flits"],
        )
    except (OSError, ValueError) as error:
        return str(error)
    return first_difference((line.strip() for line in expected if line.strip()), deliveries.lines())


CHECKS = {
    "noc": (noc_cases, "router-level packets and deliveries"),
    "analytical": (analytical_cases, "records of Timeloop: access counts, cycles and energies of mappings"),
    "timeloop_files": (timeloop_files_cases, "Timeloop files and the facts that stand in them"),
    "timeloop_v4": (timeloop_v4_cases, "runs of the current release of Timeloop: cycles and access counts"),
    "dram": (dram_cases, "requests, commands, counts and energy of DRAMSim2, DRAMsim3 and Ramulator"),
    "endtoend": (endtoend_cases, "transactions of the published network simulator"),
}

NOUNS = {"analytical": "records", "timeloop_files": "files", "timeloop_v4": "runs"}


def main(arguments: list[str] | None = None) -> int:
    """Run one check; the exit code is 0 only if every case is equal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="check", required=True)
    for name, (_, what) in CHECKS.items():
        commands.add_parser(name, help=what).add_argument("folder", type=Path, help="folder with the reference files")
    options = parser.parse_args(arguments)
    cases, _ = CHECKS[options.check]
    n_cases = n_equal = 0
    try:
        for name, difference in cases(options.folder):
            n_cases += 1
            n_equal += difference is None
            if difference is not None:
                print(f"{name}: {difference}")
    except (OSError, ValueError, KeyError) as error:
        print(f"{options.folder}: cannot read the list of cases: {error!r}", file=sys.stderr)
        return 1
    print(f"{n_equal} of {n_cases} {NOUNS.get(options.check, 'cases')} equal")
    return 0 if n_equal == n_cases and n_cases > 0 else 1


if __name__ == "__main__":
    raise SystemExit(main())
