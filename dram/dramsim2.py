"""The ``dramsim2`` policy: from a configuration to the arrays of its kernel and back to counts."""

import numpy as np

from dram import dramsim2_kernel as k
from dram.channel import Channel, ChannelOptions
from dram.config import DramConfig, Dramsim2Controller
from dram.queues_kernel import Ints
from dram.stats import DramStats


def kernel_parameters(config: DramConfig, requests_per_clock: int) -> Ints:
    """The read-only vector of the kernel: the delays DRAMSim2 derives, with WL = RL - 1 and BL/2 the burst."""
    controller = config.controller
    assert isinstance(controller, Dramsim2Controller)
    t, o, address_map = config.timing, config.organization, config.address_map()
    burst = t.burst_clocks
    read, write = t.read_latency, t.read_latency - 1
    read_to_pre = t.AL + burst + max(t.tRTP, t.tCCD_S) - t.tCCD_S
    write_to_pre = write + burst + t.tWR
    values = {
        k.RANKS: o.ranks,
        k.BANKS: o.banks,
        k.OPEN_PAGE: int(controller.page == "open"),
        k.PER_BANK: int(controller.queues == "per_bank"),
        k.BANK_FIRST: int(controller.order == "bank_then_rank"),
        k.LOW_POWER: int(controller.low_power),
        k.KEEP_REFRESHES: int(controller.refresh_backlog == "kept"),
        k.ROW_ACCESS_CAP: controller.row_accesses,
        k.REQUESTS_PER_CLOCK: requests_per_clock,
        k.POSTED_CAS: int(t.AL > 0),
        k.P_RC: t.tRC,
        k.P_RAS: t.tRAS,
        k.P_RCD: t.tRCD - t.AL,
        k.P_RRD: t.tRRD_S,
        k.P_RP: t.tRP,
        k.P_RFC: t.tRFC,
        k.P_FAW: t.tFAW,
        k.P_REFI: t.tREFI,
        k.P_XP: t.tXP,
        k.P_CKE: t.tCKE,
        k.READ_TO_PRE: read_to_pre,
        k.READ_AUTO_PRE: t.AL + t.tRTP + t.tRP,
        k.WRITE_TO_PRE: write_to_pre,
        k.WRITE_AUTO_PRE: write_to_pre + t.tRP,
        k.COLUMN_TO_COLUMN: max(t.tCCD_S, burst),
        k.COLUMN_OTHER_RANK: burst + t.tRTRS,
        k.READ_TO_WRITE: read + burst + t.tRTRS - write,
        k.WRITE_TO_READ: write + burst + t.tWTR_S,
        k.WRITE_TO_READ_OTHER_RANK: write + burst + t.tRTRS - read,
        k.READ_LATENCY: t.tCMD + read + burst,
        k.WRITE_LATENCY: write + burst,
        k.SHIFT_RANK: address_map.shifts["rank"],
        k.MASK_RANK: address_map.masks["rank"],
        k.SHIFT_BANK: address_map.shifts["bank"],
        k.MASK_BANK: address_map.masks["bank"],
        k.SHIFT_ROW: address_map.shifts["row"],
        k.MASK_ROW: address_map.masks["row"],
        k.SHIFT_COLUMN: address_map.shifts["column"],
        k.MASK_COLUMN: address_map.masks["column"],
    }
    params = np.zeros(k.PARAMS_SIZE, np.int64)
    for position, value in values.items():
        params[position] = value
    return params


class Dramsim2Channel(Channel):
    """A channel that behaves as DRAMSim2. Requests are taken in the order submitted, reads and writes alike."""

    def __init__(self, config: DramConfig, options: ChannelOptions) -> None:
        super().__init__(config, options, in_order=True)
        controller = config.controller
        assert isinstance(controller, Dramsim2Controller)
        o = config.organization
        self.params = kernel_parameters(config, options.requests_per_clock)
        self.control: Ints = np.zeros(k.CONTROL_SIZE, np.int64)
        self.control[k.DUE_EDGE] = config.timing.tREFI // o.ranks
        self.control[k.REFRESH_RANK] = -1
        self.ranks: Ints = np.zeros((o.ranks, k.RANK_FIELDS), np.int64)
        self.ranks[:, k.FAW_EDGE : k.FAW_EDGE + 4] = -config.timing.tFAW
        self.banks: Ints = np.zeros((o.ranks * o.banks, k.BANK_FIELDS), np.int64)
        self.banks[:, k.OPEN_ROW] = -1
        queues = o.ranks * (o.banks if controller.queues == "per_bank" else 1)
        self.queues: Ints = np.zeros((queues, controller.command_queue, k.ENTRY_FIELDS), np.int64)
        self.queue_info: Ints = np.zeros((queues, k.QUEUE_INFO_FIELDS), np.int64)
        self.transactions: Ints = np.zeros((controller.transaction_queue, k.SLOT_FIELDS), np.int64)
        # a lone column command holds a slot too, so a queue can hold as many slots as commands
        slots = queues * controller.command_queue + 1
        self.slots: Ints = np.zeros((slots, k.SLOT_FIELDS), np.int64)
        self.slots[:, k.SLOT_FREE] = np.arange(slots)
        self.control[k.FREE_SLOTS] = slots
        self.min_latency_edges = int(min(self.params[k.READ_LATENCY], self.params[k.WRITE_LATENCY]))

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
            self.staged,
            self.flight,
            self.request_log,
            self.command_log,
        )

    def room(self, op: int, address: int) -> bool:
        """Whether the transaction queue could take a request at the next DRAM edge, after those already staged."""
        staged = int(self.io[k.STAGED_TAIL] - self.io[k.STAGED_HEAD])
        return bool(self.transactions.shape[0] > int(self.control[k.TRANSACTIONS]) + staged)

    def stats(self) -> DramStats:
        """Counts up to the present DRAM edge."""
        ranks = self.ranks.copy()
        k.settle_all(ranks, self._now_edge)
        total = ranks.sum(axis=0).tolist()
        control = self.control.tolist()
        reads, writes = total[k.READS], total[k.WRITES]
        return DramStats(
            reads=reads,
            writes=writes,
            row_hits=control[k.ROW_HITS],
            row_misses=control[k.ROW_MISSES],
            row_conflicts=control[k.ROW_CONFLICTS],
            activates=total[k.ACTS],
            precharges=total[k.PRES],
            refreshes=total[k.REFS],
            lost_refreshes=control[k.LOST_REFRESHES],
            bus_busy_cycles=(reads + writes) * self.config.timing.burst_clocks,
            total_cycles=self._now_edge,
            rank_active_cycles=total[k.ACTIVE_CYCLES],
            rank_standby_cycles=total[k.STANDBY_CYCLES],
            rank_powerdown_cycles=total[k.DOWN_CYCLES],
        ).with_energy(self.config)
