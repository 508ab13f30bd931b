"""Comparison with measured runs of the published simulator, in the layout of the reference measurements.

A case is ``CASE.json`` (layer, mapping, total cycles) with ``CASE.VARIANT.transactions.csv``; VARIANT is ``no_dram`` or
``dramsim2``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path

from cosa.common.errors import CosaError
from cosa.model.schedule import Schedule
from nocsim.published.generator import PublishedDataflow
from nocsim.published.replay import replay_transactions
from nocsim.published.transactions import read_transactions, time_lines, transaction_lines

_COLUMNS, _ROWS = 4, 5
_INPUTS = 9  # columns of a list without measurements


def endtoend_cases(folder: Path) -> Iterator[tuple[str, str | None]]:
    """Name and first difference (None: equal) of every run of a folder, and of the list made from each mapping."""
    for path in sorted(folder.glob("*.transactions.csv")):
        case, variant = path.name.removesuffix(".transactions.csv").rsplit(".", 1)
        try:
            expected = path.read_text(encoding="utf-8").splitlines()
            total = json.loads((folder / f"{case}.json").read_text(encoding="utf-8"))["runs"][variant]["total_cycles"]
            transactions = read_transactions(path)
            replay = replay_transactions(transactions, _COLUMNS, _ROWS, "none" if variant == "no_dram" else variant)
            computed = [*time_lines(transactions, replay.times), str(replay.total_cycles)]
            difference = first_difference([*expected, str(total)], computed)
        except (OSError, ValueError, KeyError, CosaError) as error:
            difference = repr(error)
        yield f"{case}.{variant}", difference
    for path in sorted(folder.glob("*.json")):
        lists = sorted(folder.glob(f"{path.stem}.*.transactions.csv"))
        if lists:
            yield f"{path.stem} generated", _generated_difference(path, lists[0])


def _generated_difference(mapping: Path, expected: Path) -> str | None:
    try:
        computed = transaction_lines(PublishedDataflow(published_schedule(mapping)).transactions())
        lines = expected.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError, KeyError, CosaError) as error:
        return repr(error)
    return first_difference((",".join(line.split(",")[:_INPUTS]) for line in lines), computed)


def published_schedule(path: Path) -> Schedule:
    """The schedule in a case file, on the published machine.

    Raises
    ------
    InputError: the file is not one.
    """
    from cosa.interop.convert import converted, read_inputs

    schedule = converted(read_inputs([str(path)], architecture="cosa2021"), "schedule")
    assert isinstance(schedule, Schedule)
    return schedule


def first_difference(expected: Iterable[str], computed: Iterable[str]) -> str | None:
    """First pair of lines that differ, None if all are equal."""
    for number, (theirs, ours) in enumerate(zip_longest(expected, computed), start=1):
        if theirs != ours:
            return f"line {number}: reference {theirs!r}, computed {ours!r}"
    return None
