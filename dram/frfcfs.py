"""The ``frfcfs`` policy: from a configuration to the arrays of its kernel and back to counts."""

import numpy as np

from dram import frfcfs_kernel as k
from dram.channel import READ, Channel, ChannelOptions
from dram.config import DramConfig, FrfcfsController
from dram.constraints import COMMANDS, constraint_arrays, table_of
from dram.queues_kernel import Ints
from dram.stats import DramStats


def kernel_parameters(config: DramConfig, in_order: bool, requests_per_clock: int) -> Ints:
    """The read-only vector of the kernel."""
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
        k.DRAIN_BATCH: k.NEVER if controller.drain_batch is None else controller.drain_batch,
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
        k.IN_ORDER: int(in_order),
        k.REQUESTS_PER_CLOCK: requests_per_clock,
    }
    params = np.zeros(k.PARAMS_SIZE, np.int64)
    for position, value in values.items():
        params[position] = value
    return params


class FrfcfsChannel(Channel):
    """A channel with an open-page FR-FCFS controller. Reads and writes have lanes of their own unless ``in_order``."""

    command_names = tuple({"PRE": "PREpb", "PREA": "PREab", "REF": "REFab"}.get(name, name) for name in COMMANDS)

    def __init__(self, config: DramConfig, options: ChannelOptions) -> None:
        in_order = options.in_order
        super().__init__(config, options, in_order)
        controller = config.controller
        assert isinstance(controller, FrfcfsController)
        t, o = config.timing, config.organization
        self.params = kernel_parameters(config, in_order, options.requests_per_clock)
        self.constraints, self.first_row = constraint_arrays(table_of(config))
        self.ranks: Ints = np.zeros((o.ranks, k.RANK_FIELDS), np.int64)
        interval = t.tREFI // o.ranks
        for rank in range(o.ranks):
            # the first refresh is asked for in the last clock of the first interval
            self.ranks[rank, k.DUE] = (interval * (rank + 1) if controller.refresh_stagger else t.tREFI) - 1
        self.banks, nodes = self._banks()
        banks = len(self.banks)
        self.lists: Ints = np.full((2, banks, k.LIST_FIELDS), -1, np.int64)
        self.bounds: Ints = np.full((2, banks), k.NEVER, np.int64)
        count = controller.read_queue + controller.write_queue + banks
        self.slots: Ints = np.zeros((count, k.SLOT_FIELDS), np.int64)
        self.slots[:, k.FREE] = np.arange(count)
        self.hashes: Ints = np.full(k.HASH_SIZE, -1, np.int64)
        self.active: Ints = np.zeros((banks + 1, k.ACTIVE_FIELDS), np.int64)
        self.control: Ints = np.zeros(k.CONTROL_SIZE, np.int64)
        self.control[k.FREE_SLOTS] = count
        self.control[k.REFRESH_WAKE] = self.ranks[:, k.DUE].min()
        self.ready: Ints = np.zeros((nodes, len(COMMANDS)), np.int64)
        self.windows = self._windows(nodes)
        self.refreshes: Ints = np.zeros(64 * o.ranks, np.int64)
        self.min_latency_edges = int(
            min(self.params[k.READ_LATENCY], self.params[k.WRITE_LATENCY], self.params[k.FORWARD_LATENCY])
        )

    def _banks(self) -> tuple[Ints, int]:
        """The banks with the nodes above them, and the number of nodes."""
        o = self.config.organization
        indices = np.arange(o.ranks * o.banks)
        banks = np.zeros((len(indices), k.BANK_FIELDS), np.int64)
        banks[:, k.OPEN_ROW] = -1
        banks[:, k.ACTIVE_SLOT] = -1
        banks[:, k.NODE + k.RANK] = 1 + indices // o.banks
        banks[:, k.NODE + k.GROUP] = 1 + o.ranks + indices // o.banks_per_group
        banks[:, k.NODE + k.BANK] = 1 + o.ranks * (1 + o.bank_groups) + indices
        return banks, 1 + o.ranks * (1 + o.bank_groups + o.banks)

    def _run(self, until_edge: int) -> int:
        return int(k.run(until_edge, *self.kernel_arrays()))

    def kernel_arrays(self) -> tuple[Ints, ...]:
        """See :meth:`Channel.kernel_arrays`."""
        return (
            self.params,
            self.io,
            self.control,
            self.ranks,
            self.banks,
            self.lists,
            self.bounds,
            self.slots,
            self.hashes,
            self.active,
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

    def room(self, op: int, address: int) -> bool:
        """Whether the controller could take this request at the next DRAM edge, after those already staged."""
        block = address >> int(self.params[k.OFFSET_BITS])
        slot = int(self.hashes[(block ^ (block >> 8) ^ (block >> 16)) & (k.HASH_SIZE - 1)])
        while slot >= 0:
            if self.slots[slot, k.BLOCK] == block:
                return True
            slot = int(self.slots[slot, k.NEXT_HASHED])
        lane = op if self.lanes == 2 else 0
        waiting = self.staged[lane, int(self.io[k.STAGED_HEAD + 2 * lane]) : int(self.io[k.STAGED_TAIL + 2 * lane])]
        staged = int(np.count_nonzero(waiting[:, k.STAGED_OP] == op))
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
