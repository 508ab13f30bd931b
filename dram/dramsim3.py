"""The ``dramsim3`` policy: from a configuration to the arrays of its kernel and back to counts."""

import numpy as np

from dram import dramsim3_kernel as k
from dram.channel import READ, Channel, ChannelOptions
from dram.config import DramConfig, Dramsim3Controller
from dram.constraints import COMMANDS, constraint_arrays, table_of
from dram.queues_kernel import Ints
from dram.stats import DramStats


def kernel_parameters(config: DramConfig, in_order: bool, requests_per_clock: int) -> Ints:
    """The read-only vector of the kernel."""
    controller = config.controller
    assert isinstance(controller, Dramsim3Controller)
    t, o, address_map = config.timing, config.organization, config.address_map()
    first_only = controller.refresh_ranks == "first_only"
    values = {
        k.RANKS: o.ranks,
        k.BANKS: o.banks,
        k.BANKS_PER_GROUP: o.banks_per_group,
        k.TRANSACTION_QUEUE: controller.transaction_queue,
        k.COMMAND_QUEUE: controller.command_queue,
        k.PER_BANK: int(controller.queues == "per_bank"),
        k.UNIFIED: int(controller.unified_queue),
        k.CLOSE_PAGE: int(controller.page == "close"),
        k.DUAL: int(controller.dual_command),
        k.ROW_ACCESSES: controller.row_accesses,
        k.DRAIN_ABOVE: controller.drain_above,
        k.WRITE_LEFTOVERS: int(controller.leftover_writes == "written"),
        k.REFRESH_INTERVAL: t.tREFI if first_only else t.tREFI // o.ranks,
        k.FIRST_RANK_ONLY: int(first_only),
        k.READ_LATENCY: t.read_latency + t.burst_clocks,
        k.WRITE_LATENCY: t.write_latency + t.burst_clocks,
        k.IN_ORDER: int(in_order),
        k.REQUESTS_PER_CLOCK: requests_per_clock,
        k.POSTED_WRITES: int(controller.leftover_writes == "parked"),
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
    params = np.zeros(k.PARAMS_SIZE, np.int64)
    for position, value in values.items():
        params[position] = value
    return params


class Dramsim3Channel(Channel):
    """A channel that behaves as DRAMsim3.

    A write is done when its data are on the bus; with leftover writes parked, one clock after it was accepted. Reads
    and writes are taken from lanes of their own, unless ``in_order`` or with a unified queue.
    """

    def __init__(self, config: DramConfig, options: ChannelOptions) -> None:
        controller = config.controller
        assert isinstance(controller, Dramsim3Controller)
        in_order = options.in_order or controller.unified_queue
        self.slots: Ints = np.zeros((0, k.SLOT_FIELDS), np.int64)
        super().__init__(config, options, in_order)
        o = config.organization
        self.params = kernel_parameters(config, in_order, options.requests_per_clock)
        self.constraints, self.first_row = constraint_arrays(table_of(config))
        self.control: Ints = np.zeros(k.CONTROL_SIZE, np.int64)
        self.control[k.NEXT_REFRESH] = self.params[k.REFRESH_INTERVAL]
        self.control[k.FREE_SLOT] = -1
        self.ranks: Ints = np.zeros((o.ranks, k.RANK_FIELDS), np.int64)
        self.banks: Ints = np.zeros((o.ranks * o.banks, k.BANK_FIELDS), np.int64)
        self.banks[:, k.OPEN_ROW] = -1
        queues = o.ranks * (o.banks if controller.queues == "per_bank" else 1)
        self.queues: Ints = np.zeros((queues, controller.command_queue), np.int64)
        self.queue_info: Ints = np.zeros((queues, k.QUEUE_INFO_FIELDS), np.int64)
        self.transactions: Ints = np.zeros((2, controller.transaction_queue), np.int64)
        self._posted = 2 * controller.transaction_queue + queues * controller.command_queue
        self.slots = np.zeros((self.flight.shape[1] + self._posted, k.SLOT_FIELDS), np.int64)
        self.hashes: Ints = np.full(k.HASH_SIZE, -1, np.int64)
        nodes = 1 + o.ranks * (1 + o.bank_groups + o.banks)
        self.ready: Ints = np.zeros((nodes, len(COMMANDS)), np.int64)
        self.windows = self._windows(nodes)
        self.refreshes: Ints = np.zeros(64 * o.ranks, np.int64)
        self.min_latency_edges = 1  # a read answered by a waiting write

    def forget(self, place: int) -> None:
        """Tell no times of the request in this row of the request ring any more; its row will be used again."""
        self.slots[self.slots[:, k.IDENTITY] == place, k.IDENTITY] = self._ring

    def _reserve_flight(self, count: int) -> None:
        super()._reserve_flight(count)
        larger = np.zeros((self.flight.shape[1] + self._posted, k.SLOT_FIELDS), np.int64)
        larger[: len(self.slots)] = self.slots
        self.slots = larger

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
            self.queues,
            self.queue_info,
            self.transactions,
            self.slots,
            self.hashes,
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
        unified = bool(self.params[k.UNIFIED])
        queue = READ if unified else op
        if self.lanes == 2:
            staged = int(self.io[k.STAGED_TAIL + 2 * op] - self.io[k.STAGED_HEAD + 2 * op])
        else:
            waiting = self.staged[0, int(self.io[k.STAGED_HEAD]) : int(self.io[k.STAGED_TAIL]), k.STAGED_OP]
            staged = len(waiting) if unified else int(np.count_nonzero(waiting == op))
        return bool(self.control[k.HELD + queue] + staged < self.params[k.TRANSACTION_QUEUE])

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
            forwarded_reads=int(self.control[k.FORWARDED] + self.control[k.SHARED]),
            merged_writes=int(self.control[k.MERGED]),
            bus_busy_cycles=(reads + writes) * self.config.timing.burst_clocks,
            total_cycles=self._now_edge,
            rank_active_cycles=total[k.ACTIVE_CYCLES],
            rank_standby_cycles=total[k.STANDBY_CYCLES],
        ).with_energy(self.config)
