"""Why time was lost: every clock of a channel's data bus is charged to data or to what kept data away.

Read off the command log alone. Before each burst the bus may have been free. Clocks of that gap in which the
controller held no request are idle. The rest goes to what held the column command back, and then to what held its ACT
back, each by how much earlier the command would have gone without it; what remains is the time it takes to close and
open a row. A gap is counted from the clock in which the column command would have had to go for its data to follow the
last data at once, so read latency alone is never a loss, nor is a row that was opened while other data were on the bus.
"""

from dataclasses import dataclass, fields

import numpy as np

from dram import banks_kernel as b
from dram import losses_kernel as k
from dram.config import DramConfig
from dram.constraints import COMMANDS, constraint_arrays, table_of
from dram.queues_kernel import Ints


@dataclass(frozen=True)
class DramLosses:
    """DRAM clocks of one channel (or of several added up), by what they went to; they add up to all clocks."""

    data: int = 0
    """the data bus carried data"""
    row: int = 0
    """a row was closed and opened: tRP, tRCD, tRAS, tRC, tWR, tRTP"""
    activation: int = 0
    """limits of activation: tRRD, tFAW"""
    turnaround: int = 0
    """reads after writes, writes after reads, another rank: tWTR, tRTRS, preambles"""
    bank_group: int = 0
    """column commands too near each other: tCCD_L (or a tCCD longer than the burst)"""
    refresh: int = 0
    """a rank was refreshed: tRFC"""
    command_bus: int = 0
    """the command could have gone, but the controller sent another one, or had not looked at the request yet"""
    idle: int = 0
    """the controller held no request that may go"""
    in_progress: int = 0
    """after the last burst, with requests still under way; 0 once all data are out"""

    @property
    def total(self) -> int:
        """All clocks."""
        return sum(getattr(self, f.name) for f in fields(self))

    def shares(self) -> dict[str, float]:
        """Each part as a share of all clocks."""
        total = max(self.total, 1)
        return {f.name: getattr(self, f.name) / total for f in fields(self)}

    def __add__(self, other: "DramLosses") -> "DramLosses":
        return DramLosses(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})


_CLASS_OF = {
    "row": k.ROW, "activation": k.ACTIVATION, "turnaround": k.TURNAROUND, "bank_group": k.BANK_GROUP,
    "refresh": k.REFRESH, "data": k.DATA, "command_bus": k.COMMAND_BUS, "idle": k.IDLE, "in_progress": k.IN_PROGRESS,
}  # fmt: skip


class LossAccount:
    """The account of one channel, fed with its command log."""

    def __init__(self, config: DramConfig) -> None:
        t, o = config.timing, config.organization
        self._rows, self._first_row = constraint_arrays(table_of(config), by="later")
        write_latency = config.controller.write_latency(t)
        self._params: Ints = np.array(
            [o.ranks, o.banks, o.banks_per_group, t.burst_clocks, t.read_latency, write_latency], np.int64
        )
        nodes = 1 + o.ranks * (1 + o.bank_groups + o.banks)
        self._last: Ints = np.full((nodes, len(COMMANDS)), k.LONG_AGO, np.int64)
        windows = self._rows[:, b.WINDOW]
        self._windowed: Ints = np.flatnonzero(windows > 1).astype(np.int64)
        self._rings: Ints = np.full((len(self._rows), 1 + o.ranks, int(windows.max()) + 1), k.LONG_AGO, np.int64)
        for row in self._windowed.tolist():
            self._rings[row, :, windows[row]] = 0
        self._acts: Ints = np.full((o.ranks * o.banks, k.ACT_FIELDS), k.LONG_AGO, np.int64)
        self._state: Ints = np.zeros(k.STATE_SIZE, np.int64)
        self._bounds: Ints = np.zeros(k.DATA + 1, np.int64)
        self._totals: Ints = np.zeros(k.CLASSES, np.int64)

    def add(self, log: Ints, start: int, end: int, edge: int) -> int:
        """Charge the bursts of log rows ``start`` to ``end`` that are over by ``edge``; returns the first row left."""
        left: int = k.account(
            log, start, end, edge, self._params, self._rows, self._first_row, self._windowed, self._state, self._last,
            self._rings, self._acts, self._totals, self._bounds,
        )  # fmt: skip
        return left

    def at(self, edge: int, quiet: int) -> DramLosses:
        """The account up to ``edge``, of which the controller was without requests for ``quiet`` clocks."""
        totals = self._totals.tolist()
        left = edge - int(self._state[k.BUS_FREE])
        idle = max(min(left, quiet - int(self._state[k.QUIET_SEEN])), 0)
        totals[k.IDLE] += idle
        totals[k.IN_PROGRESS] += left - idle
        return DramLosses(**{name: totals[position] for name, position in _CLASS_OF.items()})
