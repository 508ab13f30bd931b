"""The ``frfcfs`` policy: the timing table of a device, the arrays of the kernel and the counts out of them."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dram import frfcfs_kernel as k
from dram.channel import READ, Channel
from dram.config import DramConfig, FrfcfsController, Timing
from dram.queues_kernel import Ints
from dram.stats import DramStats

COMMAND_NAMES = ("ACT", "PREpb", "PREab", "RD", "WR", "REFab")
SCOPES = {"channel": k.CHANNEL, "rank": k.RANK, "group": k.GROUP, "bank": k.BANK, "other ranks": k.OTHER_RANKS}


@dataclass(frozen=True)
class Constraint:
    """``later`` not before ``delay_clocks`` after ``earlier`` (after the ``window``-th last one) in the same scope.

    ``name`` is what waiting for it is called in :meth:`FrfcfsChannel.waits`.
    """

    scope: str
    earlier: str
    later: str
    delay_clocks: int
    name: str
    window: int = 1


def timing_table(t: Timing) -> list[Constraint]:
    """The constraints between commands of a DDR device, as JEDEC's tables give them.

    Without bank groups (no ``_L`` values) the ``_S`` values hold for all banks.
    """
    burst, read, write = t.burst_clocks, t.read_latency, t.write_latency
    rrd_long = t.tRRD_S if t.tRRD_L is None else t.tRRD_L
    ccd_long = t.tCCD_S if t.tCCD_L is None else t.tCCD_L
    wtr_long = t.tWTR_S if t.tWTR_L is None else t.tWTR_L
    # the write preamble takes the clock before the data, hence two clocks between read and write data
    read_to_write = read + burst + 2 - write
    write_recovery = write + burst + t.tWR
    return [
        # data bus
        Constraint("channel", "RD", "RD", burst, "data bus"),
        Constraint("channel", "WR", "WR", burst, "data bus"),
        Constraint("rank", "RD", "RD", t.tCCD_S, "tCCD_S"),
        Constraint("rank", "WR", "WR", t.tCCD_S, "tCCD_S"),
        Constraint("rank", "RD", "WR", read_to_write, "read to write"),
        Constraint("rank", "WR", "RD", write + burst + t.tWTR_S, "tWTR_S"),
        Constraint("other ranks", "RD", "RD", burst + t.tRTRS, "tRTRS"),
        Constraint("other ranks", "WR", "WR", burst + t.tRTRS, "tRTRS"),
        Constraint("other ranks", "RD", "WR", read_to_write, "read to write"),
        Constraint("other ranks", "WR", "RD", write + burst + t.tRTRS - read, "tRTRS"),
        # bank groups
        Constraint("group", "RD", "RD", ccd_long, "tCCD_L"),
        Constraint("group", "WR", "WR", ccd_long, "tCCD_L"),
        Constraint("group", "WR", "RD", write + burst + wtr_long, "tWTR_L"),
        Constraint("group", "ACT", "ACT", rrd_long, "tRRD_L"),
        # rows of a bank
        Constraint("bank", "ACT", "ACT", t.tRC, "tRC"),
        Constraint("bank", "ACT", "RD", t.tRCD - t.AL, "tRCD"),
        Constraint("bank", "ACT", "WR", t.tRCD - t.AL, "tRCD"),
        Constraint("bank", "ACT", "PREpb", t.tRAS, "tRAS"),
        Constraint("bank", "RD", "PREpb", t.AL + t.tRTP, "tRTP"),
        Constraint("bank", "WR", "PREpb", write_recovery, "tWR"),
        Constraint("bank", "PREpb", "ACT", t.tRP, "tRP"),
        # the rank as a whole
        Constraint("rank", "ACT", "ACT", t.tRRD_S, "tRRD_S"),
        Constraint("rank", "ACT", "ACT", t.tFAW, "tFAW", window=4),
        Constraint("rank", "ACT", "PREab", t.tRAS, "tRAS"),
        Constraint("rank", "RD", "PREab", t.AL + t.tRTP, "tRTP"),
        Constraint("rank", "WR", "PREab", write_recovery, "tWR"),
        Constraint("rank", "PREab", "ACT", t.tRP, "tRP"),
        # refresh
        Constraint("rank", "ACT", "REFab", t.tRC, "tRC"),
        Constraint("rank", "PREpb", "REFab", t.tRP, "tRP"),
        Constraint("rank", "PREab", "REFab", t.tRP, "tRP"),
        Constraint("rank", "REFab", "ACT", t.tRFC, "refresh"),
        Constraint("rank", "REFab", "REFab", t.tRFC, "refresh"),
    ]


def constraint_arrays(table: list[Constraint]) -> tuple[Ints, Ints, list[str]]:
    """Rows sorted by the earlier command, for each command its first row (one more at the end), and the rows' names."""
    table = sorted(table, key=lambda c: COMMAND_NAMES.index(c.earlier))
    rows = [
        (
            COMMAND_NAMES.index(c.earlier),
            SCOPES[c.scope],
            COMMAND_NAMES.index(c.later),
            max(c.delay_clocks, 1),
            c.window,
        )
        for c in table
    ]
    constraints = np.array(rows, np.int64)
    first = np.searchsorted(constraints[:, k.EARLIER], np.arange(k.COMMAND_KINDS + 1)).astype(np.int64)
    return constraints, first, [c.name for c in table]


class FrfcfsChannel(Channel):
    """A channel with an open-page FR-FCFS controller. Reads and writes are taken from lanes of their own."""

    lanes = 2
    command_names = COMMAND_NAMES

    def __init__(self, config: DramConfig, ratio: Fraction, logging: bool) -> None:
        super().__init__(config, ratio, logging)
        controller = config.controller
        assert isinstance(controller, FrfcfsController)
        t, o, address_map = config.timing, config.organization, config.address_map()
        read_clocks, write_clocks = t.read_latency + t.burst_clocks, t.write_latency + t.burst_clocks
        forward = controller.forward_clocks
        values = {
            k.RANKS: o.ranks,
            k.BANKS: o.banks,
            k.BANKS_PER_GROUP: o.banks_per_group,
            k.READ_QUEUE: controller.read_queue,
            k.WRITE_QUEUE: controller.write_queue,
            # "held > share x size" and "held < share x size" in whole numbers
            k.DRAIN_ABOVE: int(np.floor(controller.drain_above * controller.write_queue)),
            # with no write left, waiting reads must go even if drain_below is 0
            k.DRAIN_BELOW: max(int(np.ceil(controller.drain_below * controller.write_queue)), 1),
            k.READ_LATENCY: read_clocks,
            k.WRITE_LATENCY: write_clocks,
            k.FORWARD_LATENCY: min(read_clocks, write_clocks) if forward is None else forward,
            k.P_REFI: t.tREFI,
            k.P_RFC: t.tRFC,
            k.SHIFT_RANK: address_map.shifts["rank"],
            k.MASK_RANK: address_map.masks["rank"],
            k.SHIFT_GROUP: address_map.shifts["bankgroup"],
            k.MASK_GROUP: address_map.masks["bankgroup"],
            k.SHIFT_BANK: address_map.shifts["bank"],
            k.MASK_BANK: address_map.masks["bank"],
            k.SHIFT_ROW: address_map.shifts["row"],
            k.MASK_ROW: address_map.masks["row"],
            k.SHIFT_COLUMN: address_map.shifts["column"],
            k.MASK_COLUMN: address_map.masks["column"],
            k.OFFSET_BITS: address_map.offset_bits,
        }
        self.params: Ints = np.zeros(k.PARAMS_SIZE, np.int64)
        for position, value in values.items():
            self.params[position] = value
        self.constraints, self.first_row, self._constraint_names = constraint_arrays(timing_table(t))
        self.control: Ints = np.zeros(k.WAITS + len(self.constraints) + k.WAITS_EXTRA, np.int64)
        self.control[k.WAIT_REASON] = -1
        self.ranks: Ints = np.zeros((o.ranks, k.RANK_FIELDS), np.int64)
        interval = t.tREFI // o.ranks
        for rank in range(o.ranks):
            # the first refresh is asked for in the last clock of the first interval
            self.ranks[rank, k.DUE] = (interval * (rank + 1) if controller.refresh_stagger else t.tREFI) - 1
        self.banks: Ints = np.zeros((o.ranks * o.banks, k.BANK_FIELDS), np.int64)
        self.banks[:, k.OPEN_ROW] = -1
        depth = max(controller.read_queue, controller.write_queue, o.ranks * o.banks)
        self.queues: Ints = np.zeros((3, depth, k.HELD_FIELDS), np.int64)
        nodes = 1 + o.ranks * (1 + o.bank_groups + o.banks)
        self.ready: Ints = np.zeros((2, nodes, k.COMMAND_KINDS), np.int64)
        self.ready[k.CAUSE] = -1
        widest = int(self.constraints[:, k.WINDOW].max())
        self.windows: Ints = np.full((len(self.constraints), nodes, widest + 1), -t.tFAW, np.int64)
        self.windows[:, :, 1:] = np.where(
            np.arange(1, widest + 1) == self.constraints[:, k.WINDOW, None, None], 0, -t.tFAW
        )
        self.refreshes: Ints = np.zeros(64 * o.ranks, np.int64)
        self.min_latency_edges = int(min(read_clocks, write_clocks, self.params[k.FORWARD_LATENCY]))

    def _run(self, until_edge: int) -> int:
        wake: int = k.run(
            until_edge,
            self.params,
            self.io,
            self.control,
            self.ranks,
            self.banks,
            self.queues,
            self.ready,
            self.windows,
            self.constraints,
            self.first_row,
            self.refreshes,
            self.staged,
            self.flight,
            self.request_log,
            self.command_log,
        )
        return wake

    def room(self, op: int, address: int) -> bool:
        """Whether the controller could take this request at the next DRAM edge, after those already staged."""
        writes = int(self.control[k.WRITES_HELD])
        block = address >> int(self.params[k.OFFSET_BITS])
        if block in self.queues[1, :writes, k.BLOCK].tolist():
            return True
        staged = int(self.io[k.STAGED_TAIL + 2 * op] - self.io[k.STAGED_HEAD + 2 * op])
        held, size = (k.READS_HELD, k.READ_QUEUE) if op == READ else (k.WRITES_HELD, k.WRITE_QUEUE)
        return bool(self.control[held] + staged < self.params[size])

    def stats(self) -> DramStats:
        """Counts up to the present DRAM edge."""
        ranks = self.ranks.copy()
        k.settle_all(ranks, self._now_edge)
        total = ranks.sum(axis=0).tolist()
        reads, writes, opened = total[k.READS], total[k.WRITES], total[k.MISSES] + total[k.CONFLICTS]
        return DramStats(
            reads=reads,
            writes=writes,
            row_hits=reads + writes - opened,
            row_misses=total[k.MISSES],
            row_conflicts=total[k.CONFLICTS],
            activates=total[k.ACTS],
            precharges=total[k.PRES],
            refreshes=total[k.REFS],
            forwarded_reads=int(self.control[k.FORWARDED]),
            merged_writes=int(self.control[k.MERGED]),
            bus_busy_cycles=(reads + writes) * self.config.timing.burst_clocks,
            total_cycles=self._now_edge,
            rank_active_cycles=total[k.ACTIVE_CYCLES],
            rank_standby_cycles=total[k.STANDBY_CYCLES],
        ).with_energy(self.config)

    def waits(self) -> dict[str, int]:
        """Clocks in which no command went out, by what the first command that could have gone next waited for."""
        clocks = self.control[k.WAITS :].tolist()
        if self.control[k.WAIT_REASON] >= 0:
            clocks[int(self.control[k.WAIT_REASON]) - k.WAITS] += self._now_edge - int(self.control[k.WAIT_FROM])
        result: dict[str, int] = {}
        for name, count in zip([*self._constraint_names, "refresh", "no request", "other"], clocks, strict=True):
            if count:
                result[name] = result.get(name, 0) + count
        return result
