"""Timing constraints as data: one table for a device and policy, which drives kernel, loss account and checker.

Each policy makes its own table (:meth:`dram.policy.Controller.constraints`). All delays are in DRAM clocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dram.data_sheet import Timing

if TYPE_CHECKING:
    from dram.config import DramConfig
    from dram.queues_kernel import Ints

#: commands by their number in tables, kernels and command logs
COMMANDS = ("ACT", "PRE", "PREA", "RD", "WR", "REF", "RDA", "WRA")
#: which pairs of commands a row speaks of: those that share a channel, a rank, a bank group, a bank; or not a rank
SCOPES = ("channel", "rank", "group", "bank", "other ranks")
#: what waiting for a row is charged to, by the start of its name
LOSS_CLASSES = ("row", "activation", "turnaround", "bank_group", "refresh", "data")
_LOSS_OF = (
    ("tRRD", "activation"), ("tFAW", "activation"), ("t32AW", "activation"),
    ("read to write", "turnaround"), ("write to read", "turnaround"), ("tWTR", "turnaround"), ("tRTRS", "turnaround"),
    ("tCCD", "bank_group"), ("tRFC", "refresh"), ("data bus", "data"),
)  # fmt: skip


@dataclass(frozen=True)
class Constraint:
    """``later`` not before ``delay_clocks`` after ``earlier`` (after the ``window``-th last one) in the same scope."""

    scope: str
    earlier: str
    later: str
    delay_clocks: int
    name: str
    window: int = 1

    @property
    def loss_class(self) -> str:
        """What waiting for it is charged to, one of :data:`LOSS_CLASSES`."""
        return next((loss for start, loss in _LOSS_OF if self.name.startswith(start)), "row")


def short_and_long(short: int, long: int | None) -> tuple[int, int]:
    """Delays between bank groups and inside one."""
    return short, short if long is None else long


def activation_rows(t: Timing) -> list[Constraint]:
    """Limits of activation as data sheets have them: tRC, tRRD, tFAW."""
    short, long = short_and_long(t.tRRD_S, t.tRRD_L)
    rows = [
        Constraint("bank", "ACT", "ACT", t.tRC, "tRC"),
        Constraint("group", "ACT", "ACT", long, "tRRD_L"),
        Constraint("rank", "ACT", "ACT", short, "tRRD_S"),
        Constraint("rank", "ACT", "ACT", t.tFAW, "tFAW", window=4),
    ]
    if t.t32AW is not None:
        rows.append(Constraint("rank", "ACT", "ACT", t.t32AW, "t32AW", window=32))
    return rows


def for_commands(rows: Iterable[Constraint], names: dict[str, str]) -> list[Constraint]:
    """The same rows with commands renamed, for the variants with auto-precharge."""
    return [
        Constraint(r.scope, names.get(r.earlier, r.earlier), names.get(r.later, r.later), r.delay_clocks, r.name)
        for r in rows
    ]


def table_of(config: DramConfig) -> list[Constraint]:
    """The constraints that a configuration is run with. Two commands of a channel are at least one clock apart."""
    return config.controller.constraints(config.timing)


def constraint_arrays(table: list[Constraint], by: str = "earlier") -> tuple[Ints, Ints]:
    """Rows (earlier, scope, later, delay, window, loss class) sorted by a command, and for each its first row."""
    import numpy as np

    table = sorted(table, key=lambda c: COMMANDS.index(getattr(c, by)))
    rows = [
        (
            COMMANDS.index(c.earlier),
            SCOPES.index(c.scope),
            COMMANDS.index(c.later),
            max(c.delay_clocks, 1),
            c.window,
            LOSS_CLASSES.index(c.loss_class),
        )
        for c in table
    ]
    constraints = np.array(rows, np.int64)
    keys = constraints[:, 0 if by == "earlier" else 2]
    first = np.searchsorted(keys, np.arange(len(COMMANDS) + 1)).astype(np.int64)
    return constraints, first
