"""The worked example: every number of the page's tables is what a run does."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

import nocsim.machine.accelerator
from cosa.model.arch import Architecture
from cosa.model.schedule import Schedule
from dram.system import DramSystem
from nocsim.machine.network import MeshNetwork, Message
from tests.nocsim.test_time_lines import Steps, Transfers, time_line
from tests.test_docs import ROOT, blocks

PAGE = ROOT / "docs" / "worked-example.md"
SCHEDULE = ROOT / "tests" / "data" / "nocsim" / "worked-example.json"
GB, DRAM = 5, 11
"""Endpoints; those of PEs are 0 to 3."""

Table = list[list[str]]
Run = tuple[Transfers, Steps, int, DramSystem, list[tuple[int, int, int]]]


def tables() -> dict[str, Table]:
    """The rows of the page's tables by the first column's heading; tables with the same one together."""
    found: dict[str, Table] = {}
    rows: Table | None = None
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            rows = None
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if rows is None:
            rows = found.setdefault(cells[0], [])
        elif not set(cells[0]) <= set("-:"):
            rows.append(cells)
    return found


@pytest.fixture(scope="module")
def ran() -> Run:
    """What a run sends and computes, its cycles, its DRAM with a log of all commands, and when flits left.

    The last: (source, flits, cycle of the last one) of every message.
    """
    made: list[DramSystem] = []

    def logged(*args: Any, **named: Any) -> DramSystem:
        made.append(DramSystem(*args, **named, logging=True))
        return made[-1]

    leaving: list[tuple[int, int, int]] = []
    left = MeshNetwork._left

    def noted(network: MeshNetwork, message: Message) -> None:
        left(network, message)
        leaving.append((message.src, message.flits, message.sent_cycle - 1))  # heard of one cycle later

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MeshNetwork, "_left", noted)
        patch.setattr(nocsim.machine.accelerator, "DramSystem", logged)
        transfers, steps, total = time_line(Schedule.from_file(SCHEDULE), ideal_memory=False)
    (memory,) = made
    return transfers, steps, total, memory, leaving


def test_the_page_shows_the_machine_of_the_schedule() -> None:
    (text,) = [block.text for block in blocks(PAGE) if block.words == ("yaml",)]
    assert Architecture.from_data(yaml.safe_load(text)) == Schedule.from_file(SCHEDULE).architecture


def test_dram_commands(ran: Run) -> None:
    _, _, total, memory, _ = ran
    log = memory.command_log()
    entered = memory.request_log()  # in the order in which they were asked for
    rows = tables()["access"]
    assert len(rows) == len(entered)
    for row, (accepted, column_command, done) in zip(rows, entered.tolist(), strict=True):
        _, place, enters, pre, act, column, data_done = row
        assert [int(enters), int(column), int(data_done)] == [accepted, column_command, done]
        (command,) = [x for x in log if x["cycle"] == column_command]
        group, dram_row = map(int, place.split(","))
        assert (command["bankgroup"], command["bank"], command["row"]) == (group, 0, dram_row)
        assert command["cmd"] == ("WR" if row is rows[-1] else "RD")
        (opened,) = [x for x in log if x["cmd"] == "ACT" and (x["bankgroup"], x["row"]) == (group, dram_row)]
        assert int(act) == opened["cycle"]
        closed = [x["cycle"] for x in log if x["cmd"] == "PREpb" and x["bankgroup"] == group]
        assert int(pre) in closed if pre else all(int(cycle) > int(opened["cycle"]) for cycle in closed)
    assert len(log) == len(rows) * 2 + sum(bool(row[3]) for row in rows)
    assert total == int(rows[-1][-1])


def flits(n_bytes: int) -> int:
    """A header for each 32 bytes, and a flit for each 8."""
    return -(-n_bytes // 32) + -(-n_bytes // 8)


def test_transfers(ran: Run) -> None:
    transfers, *_, leaving = ran
    endpoints = {"GB": GB, "DRAM": DRAM} | {f"PE {pe}": pe for pe in range(4)}
    left = list(transfers)
    for what, source, n_flits, leaves, arrives in tables()["transfer"]:
        first, last = map(int, leaves.split(" to "))
        arrivals = {endpoints[name]: int(cycle) for name, cycle in re.findall(r"([A-Z]+(?: \d)?): (\d+)", arrives)}
        (found,) = [x for x in left if (x[1], x[4]) == (endpoints[source], arrivals) and what.startswith(x[0])]
        left.remove(found)
        assert flits(found[2]) == int(n_flits) == last - first + 1
        leaving.remove((endpoints[source], int(n_flits), last))
    assert not left and not leaving


def test_steps(ran: Run) -> None:
    transfers, steps, *_ = ran
    rows = [tuple(map(int, row)) for row in tables()["PE"]]
    assert [(pe, starts, ends) for pe, _, _, starts, ends in rows] == sorted(steps)
    for tensor, column in (("weights", 1), ("inputs", 2)):
        arrivals = {pe: cycle for name, *_, to in transfers if name == tensor for pe, cycle in to.items()}
        assert {row[0]: row[column] for row in rows} == {pe: arrivals[pe] for pe in range(4)}
