"""Timing constraints as data: one table for a device and policy, which drives kernel, loss account and checker.

Sources: JEDEC's tables (DDR4: JESD79-4, sections on command timing) for :func:`jedec_table`; the published description
of DRAMsim3 for :func:`dramsim3_table`; the delays that DRAMSim2 derives for :func:`dramsim2_table`. All delays are in
DRAM clocks.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dram.config import DramConfig, Dramsim2Controller, Dramsim3Controller, Timing
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


def _pair(short: int, long: int | None) -> tuple[int, int]:
    return short, short if long is None else long


def _activation_rows(t: Timing) -> list[Constraint]:
    short, long = _pair(t.tRRD_S, t.tRRD_L)
    rows = [
        Constraint("bank", "ACT", "ACT", t.tRC, "tRC"),
        Constraint("group", "ACT", "ACT", long, "tRRD_L"),
        Constraint("rank", "ACT", "ACT", short, "tRRD_S"),
        Constraint("rank", "ACT", "ACT", t.tFAW, "tFAW", window=4),
    ]
    if t.t32AW is not None:
        rows.append(Constraint("rank", "ACT", "ACT", t.t32AW, "t32AW", window=32))
    return rows


def jedec_table(t: Timing, own_data_bus: bool = False) -> list[Constraint]:
    """The constraints of policy ``frfcfs``, as JEDEC's tables give them.

    Without bank groups (no ``_L`` values) the ``_S`` values hold for all banks.

    Args:
        t: delays.
        own_data_bus: every rank has its own data bus (pseudo channels of HBM2): ranks do not hinder each other.
    """
    burst, read, write = t.burst_clocks, t.read_latency, t.write_latency
    ccd_short, ccd_long = _pair(t.tCCD_S, t.tCCD_L)
    wtr_short, wtr_long = _pair(t.tWTR_S, t.tWTR_L)
    # the write preamble takes the clock before the data, hence two clocks between read and write data
    read_to_write = read + burst + 2 - write
    bus = "rank" if own_data_bus else "channel"
    rows = [
        Constraint(bus, "RD", "RD", burst, "data bus"),
        Constraint(bus, "WR", "WR", burst, "data bus"),
        Constraint("rank", "RD", "RD", ccd_short, "tCCD_S"),
        Constraint("rank", "WR", "WR", ccd_short, "tCCD_S"),
        Constraint("rank", "RD", "WR", read_to_write, "read to write"),
        Constraint("rank", "WR", "RD", write + burst + wtr_short, "tWTR_S"),
        Constraint("group", "RD", "RD", ccd_long, "tCCD_L"),
        Constraint("group", "WR", "WR", ccd_long, "tCCD_L"),
        Constraint("group", "WR", "RD", write + burst + wtr_long, "tWTR_L"),
        *_activation_rows(t),
        Constraint("bank", "ACT", "RD", t.act_to_read - t.AL, "tRCD"),
        Constraint("bank", "ACT", "WR", t.act_to_write - t.AL, "tRCD"),
        Constraint("bank", "ACT", "PRE", t.tRAS, "tRAS"),
        Constraint("bank", "RD", "PRE", t.AL + t.tRTP, "tRTP"),
        Constraint("bank", "WR", "PRE", write + burst + t.tWR, "tWR"),
        Constraint("bank", "PRE", "ACT", t.tRP, "tRP"),
        Constraint("rank", "ACT", "PREA", t.tRAS, "tRAS"),
        Constraint("rank", "RD", "PREA", t.AL + t.tRTP, "tRTP"),
        Constraint("rank", "WR", "PREA", write + burst + t.tWR, "tWR"),
        Constraint("rank", "PREA", "ACT", t.tRP, "tRP"),
        Constraint("rank", "ACT", "REF", t.tRC, "tRC"),
        Constraint("rank", "PRE", "REF", t.tRP, "tRP"),
        Constraint("rank", "PREA", "REF", t.tRP, "tRP"),
        Constraint("rank", "REF", "ACT", t.tRFC, "tRFC"),
        Constraint("rank", "REF", "REF", t.tRFC, "tRFC"),
    ]
    if t.tPPD:
        rows.append(Constraint("rank", "PRE", "PRE", t.tPPD, "tPPD"))
    if not own_data_bus:
        rows += [
            Constraint("other ranks", "RD", "RD", burst + t.tRTRS, "tRTRS"),
            Constraint("other ranks", "WR", "WR", burst + t.tRTRS, "tRTRS"),
            Constraint("other ranks", "RD", "WR", read_to_write, "read to write"),
            Constraint("other ranks", "WR", "RD", write + burst + t.tRTRS - read, "tRTRS"),
        ]
    return rows


def _for_commands(rows: Iterable[Constraint], names: dict[str, str]) -> list[Constraint]:
    """The same rows with commands renamed, for the variants with auto-precharge."""
    return [
        Constraint(r.scope, names.get(r.earlier, r.earlier), names.get(r.later, r.later), r.delay_clocks, r.name)
        for r in rows
    ]


def dramsim3_table(t: Timing, close_page: bool) -> list[Constraint]:
    """The constraints of DRAMsim3. Rank-wide commands need all banks ready, so their rows have scope rank."""
    burst, read, write = t.burst_clocks, t.read_latency, t.write_latency
    ccd_short, ccd_long = (max(burst, value) for value in _pair(t.tCCD_S, t.tCCD_L))
    wtr_short, wtr_long = _pair(t.tWTR_S, t.tWTR_L)
    read_to_write = read + burst - write + t.tRTRS
    columns = [
        Constraint("rank", "RD", "RD", ccd_short, "tCCD_S"),
        Constraint("group", "RD", "RD", ccd_long, "tCCD_L"),
        Constraint("other ranks", "RD", "RD", burst + t.tRTRS, "tRTRS"),
        Constraint("rank", "WR", "WR", ccd_short, "tCCD_S"),
        Constraint("group", "WR", "WR", ccd_long, "tCCD_L"),
        Constraint("other ranks", "WR", "WR", burst, "data bus"),
        Constraint("rank", "RD", "WR", read_to_write, "read to write"),
        Constraint("other ranks", "RD", "WR", read + burst - write + t.tRTRS, "tRTRS"),
        Constraint("rank", "WR", "RD", write + burst + wtr_short, "tWTR_S"),
        Constraint("group", "WR", "RD", write + burst + wtr_long, "tWTR_L"),
        Constraint("other ranks", "WR", "RD", write + burst + t.tRTRS - read, "tRTRS"),
        Constraint("bank", "ACT", "RD", t.act_to_read - t.AL, "tRCD"),
        Constraint("bank", "ACT", "WR", t.act_to_write - t.AL, "tRCD"),
    ]
    write_to_precharge = write + burst + t.tWR
    if close_page:
        columns = [
            *_for_commands(columns, {"RD": "RDA", "WR": "WRA"}),
            Constraint("bank", "RDA", "ACT", t.AL + burst + t.tRTP + t.tRP, "tRTP"),
            Constraint("bank", "WRA", "ACT", write_to_precharge + t.tRP, "tWR"),
            Constraint("rank", "RDA", "REF", t.AL + t.tRTP + t.tRP, "tRTP"),
            Constraint("rank", "WRA", "REF", write_to_precharge + t.tRP, "tWR"),
        ]
    else:
        columns += [
            Constraint("bank", "RD", "PRE", t.AL + t.tRTP, "tRTP"),
            Constraint("bank", "WR", "PRE", write_to_precharge, "tWR"),
        ]
    rows = [
        *columns,
        *_activation_rows(t),
        Constraint("bank", "ACT", "PRE", t.tRAS, "tRAS"),
        Constraint("bank", "PRE", "ACT", t.tRP, "tRP"),
        Constraint("rank", "PRE", "REF", t.tRP, "tRP"),
        Constraint("rank", "REF", "ACT", t.tRFC, "tRFC"),
        Constraint("rank", "REF", "REF", t.tRFC, "tRFC"),
    ]
    if t.tPPD:
        rows.append(Constraint("rank", "PRE", "PRE", t.tPPD, "tPPD"))
    return rows


def dramsim2_table(t: Timing, close_page: bool, low_power: bool) -> list[Constraint]:
    """The delays DRAMSim2 derives (WL = RL - 1), where they hold always.

    Left out are the delays between ranks, which DRAMSim2 applies to banks with an open row only, and tRC for rows that
    close by themselves in ranks that power down: waking up overwrites it there.
    """
    burst, read = t.burst_clocks, t.read_latency
    write = read - 1
    to_pre_read = t.AL + burst + max(t.tRTP, t.tCCD_S) - t.tCCD_S
    to_pre_write = write + burst + t.tWR
    rows = [
        Constraint("rank", "RD", "RD", max(t.tCCD_S, burst), "tCCD_S"),
        Constraint("rank", "WR", "WR", max(t.tCCD_S, burst), "tCCD_S"),
        Constraint("rank", "RD", "WR", read + burst + t.tRTRS - write, "read to write"),
        Constraint("rank", "WR", "RD", write + burst + t.tWTR_S, "tWTR_S"),
        Constraint("bank", "ACT", "RD", t.tRCD - t.AL, "tRCD"),
        Constraint("bank", "ACT", "WR", t.tRCD - t.AL, "tRCD"),
    ]
    if close_page:
        rows = [
            *_for_commands(rows, {"RD": "RDA", "WR": "WRA"}),
            Constraint("bank", "RDA", "ACT", t.AL + t.tRTP + t.tRP, "tRTP"),
            Constraint("bank", "WRA", "ACT", to_pre_write + t.tRP, "tWR"),
        ]
    else:
        rows += [
            Constraint("bank", "RD", "PRE", to_pre_read, "tRTP"),
            Constraint("bank", "WR", "PRE", to_pre_write, "tWR"),
        ]
    if not (close_page and low_power):
        rows.append(Constraint("bank", "ACT", "ACT", t.tRC, "tRC"))
    return [
        *rows,
        Constraint("bank", "ACT", "PRE", t.tRAS, "tRAS"),
        Constraint("bank", "PRE", "ACT", t.tRP, "tRP"),
        Constraint("rank", "ACT", "ACT", t.tRRD_S, "tRRD_S"),
        Constraint("rank", "ACT", "ACT", t.tFAW, "tFAW", window=4),
        Constraint("rank", "REF", "ACT", t.tRFC, "tRFC"),
    ]


def table_of(config: DramConfig) -> list[Constraint]:
    """The constraints that a configuration is run with. Two commands of a channel are at least one clock apart."""
    controller = config.controller
    if isinstance(controller, Dramsim2Controller):
        return dramsim2_table(config.timing, controller.page == "close", controller.low_power)
    if isinstance(controller, Dramsim3Controller):
        return dramsim3_table(config.timing, controller.page == "close")
    return jedec_table(config.timing)


def constraint_arrays(table: list[Constraint], by: str = "earlier") -> tuple[Ints, Ints]:
    """Rows (earlier, scope, later, delay, window, loss class) sorted by a command, and for each its first row."""
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
