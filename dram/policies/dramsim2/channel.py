"""The ``dramsim2`` policy: from a configuration to the arrays of its kernel."""

import numpy as np

from dram import banks_kernel as b
from dram import queues_kernel as q
from dram.channel import Channel, ChannelOptions
from dram.config import DramConfig
from dram.policies.dramsim2 import Dramsim2Controller
from dram.policies.dramsim2 import command_kernel as c
from dram.policies.dramsim2 import kernel as k
from dram.queues_kernel import Ints


class Dramsim2Channel(Channel):
    """A channel that behaves as DRAMSim2. Requests are taken in the order submitted, reads and writes alike."""

    kernel = k

    def __init__(self, config: DramConfig, options: ChannelOptions) -> None:
        super().__init__(config, options, in_order=True)
        controller = config.controller
        assert isinstance(controller, Dramsim2Controller)
        t, o = config.timing, config.organization
        # the delays that DRAMSim2 derives, with WL = RL - 1 and BL/2 the burst
        burst = t.burst_clocks
        read, write = t.read_latency, controller.write_latency(t)
        write_to_pre = write + burst + t.tWR
        own = {
            c.OPEN_PAGE: int(controller.page == "open"),
            c.PER_BANK: int(controller.queues == "per_bank"),
            c.BANK_FIRST: int(controller.order == "bank_then_rank"),
            c.LOW_POWER: int(controller.low_power),
            c.KEEP_REFRESHES: int(controller.refresh_backlog == "kept"),
            c.ROW_ACCESS_CAP: controller.row_accesses,
            c.POSTED_CAS: int(t.AL > 0),
            c.P_RC: t.tRC,
            c.P_RAS: t.tRAS,
            c.P_RCD: t.tRCD - t.AL,
            c.P_RRD: t.tRRD_S,
            c.P_RP: t.tRP,
            c.P_RFC: t.tRFC,
            c.P_FAW: t.tFAW,
            c.P_XP: t.tXP,
            c.P_CKE: t.tCKE,
            c.READ_TO_PRE: t.AL + burst + max(t.tRTP, t.tCCD_S) - t.tCCD_S,
            c.READ_AUTO_PRE: t.AL + t.tRTP + t.tRP,
            c.WRITE_TO_PRE: write_to_pre,
            c.WRITE_AUTO_PRE: write_to_pre + t.tRP,
            c.COLUMN_TO_COLUMN: max(t.tCCD_S, burst),
            c.COLUMN_OTHER_RANK: burst + t.tRTRS,
            c.READ_TO_WRITE: read + burst + t.tRTRS - write,
            c.WRITE_TO_READ: write + burst + t.tWTR_S,
            c.WRITE_TO_READ_OTHER_RANK: write + burst + t.tRTRS - read,
            b.READ_LATENCY: t.tCMD + read + burst,
        }
        self.params = self._parameters(own, c.PARAMS, options.requests_per_clock)
        self.control = np.zeros(c.CONTROL, np.int64)
        self.control[c.DUE_EDGE] = t.tREFI // o.ranks
        self.control[c.REFRESH_RANK] = -1
        self.control[b.FREE_SLOT] = -1
        self.ranks = np.zeros((o.ranks, c.RANK_FIELDS), np.int64)
        self.ranks[:, c.FAW_EDGE : c.FAW_EDGE + 4] = -t.tFAW
        self.banks = np.zeros((o.ranks * o.banks, c.BANK_FIELDS), np.int64)
        self.banks[:, b.OPEN_ROW] = -1
        queues = o.ranks * (o.banks if controller.queues == "per_bank" else 1)
        self.queues: Ints = np.zeros((queues, controller.command_queue, c.ENTRY_FIELDS), np.int64)
        self.queue_info: Ints = np.zeros((queues, c.QUEUE_INFO_FIELDS), np.int64)
        self.transactions: Ints = np.zeros(controller.transaction_queue, np.int64)
        # a lone column command holds a slot too, so a queue can hold as many slots as commands
        slots = controller.transaction_queue + queues * controller.command_queue + 1
        self.slots = np.zeros((slots, b.SLOT_FIELDS), np.int64)
        self.min_latency_edges = int(min(self.params[b.READ_LATENCY], self.params[b.WRITE_LATENCY]))

    def room(self, op: int, address: int) -> bool:
        """Whether the transaction queue could take a request at the next DRAM edge, after those already staged."""
        staged = int(self.io[q.STAGED_TAIL] - self.io[q.STAGED_HEAD])
        return bool(len(self.transactions) > int(self.control[c.TRANSACTIONS]) + staged)

    def _own_counts(self, total: list[int]) -> dict[str, int]:
        return {"row_hits": total[b.HITS], "lost_refreshes": int(self.control[c.LOST_REFRESHES])}
