"""The ``frfcfs`` policy: from a configuration to the arrays of its kernel."""

import numpy as np

from dram import banks_kernel as b
from dram import queues_kernel as q
from dram.channel import READ, WRITE, ChannelOptions
from dram.config import DramConfig
from dram.constraints import COMMANDS
from dram.policies.frfcfs import FrfcfsController
from dram.policies.frfcfs import kernel as k
from dram.queues_kernel import Ints
from dram.timed_channel import TimedChannel


class FrfcfsChannel(TimedChannel):
    """A channel with an open-page FR-FCFS controller. Reads and writes have lanes of their own unless ``in_order``."""

    kernel = k
    command_names = tuple({"PRE": "PREpb", "PREA": "PREab", "REF": "REFab"}.get(name, name) for name in COMMANDS)

    def __init__(self, config: DramConfig, options: ChannelOptions) -> None:
        super().__init__(config, options, options.in_order)
        controller = config.controller
        assert isinstance(controller, FrfcfsController)
        t, o = config.timing, config.organization
        shortest = min(t.read_latency, t.write_latency) + t.burst_clocks
        forward = shortest if controller.forward_clocks is None else controller.forward_clocks
        own = {
            k.READ_QUEUE: controller.read_queue,
            k.WRITE_QUEUE: controller.write_queue,
            # "held > share x size" and "held < share x size" in whole numbers
            k.DRAIN_ABOVE: int(np.floor(controller.drain_above * controller.write_queue)),
            # with no write left, waiting reads must go even if drain_below is 0
            k.DRAIN_BELOW: max(int(np.ceil(controller.drain_below * controller.write_queue)), 1),
            k.DRAIN_BATCH: q.NEVER if controller.drain_batch is None else controller.drain_batch,
            k.FORWARD_LATENCY: forward,
            k.REFRESH_CLOCKS: t.tRFC,
        }
        self.params = self._parameters(own, k.PARAMS, options.requests_per_clock)
        number = np.arange(1, o.ranks + 1)
        # the first refresh is asked for in the last clock of the first interval
        self.ranks[:, b.DUE] = (t.tREFI // o.ranks * number if controller.refresh_stagger else t.tREFI) - 1
        self.banks = self._banks(k.BANK_FIELDS)
        self.banks[:, k.ACTIVE_SLOT] = -1
        banks = len(self.banks)
        self.lists: Ints = np.full((2, banks, k.LIST_FIELDS), -1, np.int64)
        self.bounds: Ints = np.full((2, banks), q.NEVER, np.int64)
        self.slots = np.zeros((controller.read_queue + controller.write_queue + banks, k.SLOT_FIELDS), np.int64)
        self.hashes: Ints = np.full(256, -1, np.int64)
        self.active: Ints = np.zeros((banks + 1, k.ACTIVE_FIELDS), np.int64)
        self.control = np.zeros(k.CONTROL, np.int64)
        self.control[b.FREE_SLOT] = self.control[k.LAST_READ] = -1
        self.control[b.REFRESH_WAKE] = self.ranks[:, b.DUE].min()
        self.min_latency_edges = min(shortest, forward)

    def room(self, op: int, address: int) -> bool:
        """Whether the controller could take this request at the next DRAM edge, after those already staged."""
        if b.find(self.params, self.slots, self.hashes, address & -self.config.request_bytes, WRITE) >= 0:
            return True
        lane = op if self.lanes == 2 else 0
        waiting = self.staged[lane, int(self.io[q.STAGED_HEAD + 2 * lane]) : int(self.io[q.STAGED_TAIL + 2 * lane])]
        staged = int(np.count_nonzero(waiting[:, q.STAGED_OP] == op))
        held, size = (k.READS_HELD, k.READ_QUEUE) if op == READ else (k.WRITES_HELD, k.WRITE_QUEUE)
        return bool(self.control[held] + staged < self.params[size])
