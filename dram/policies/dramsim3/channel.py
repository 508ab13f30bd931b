"""The ``dramsim3`` policy: from a configuration to the arrays of its kernel."""

import numpy as np

from dram import banks_kernel as b
from dram import queues_kernel as q
from dram.channel import READ, ChannelOptions
from dram.config import DramConfig
from dram.policies.dramsim3 import Dramsim3Controller
from dram.policies.dramsim3 import kernel as k
from dram.queues_kernel import Ints
from dram.timed_channel import TimedChannel


class Dramsim3Channel(TimedChannel):
    """A channel that behaves as DRAMsim3.

    A write is done when its data are on the bus; with leftover writes parked, one clock after it was accepted. Reads
    and writes are taken from lanes of their own, unless ``in_order`` or with a unified queue.
    """

    kernel = k

    def __init__(self, config: DramConfig, options: ChannelOptions) -> None:
        controller = config.controller
        assert isinstance(controller, Dramsim3Controller)
        super().__init__(config, options, options.in_order or controller.unified_queue)
        o, t = config.organization, config.timing
        first_only = controller.refresh_ranks == "first_only"
        interval = t.tREFI if first_only else t.tREFI // o.ranks
        own = {
            k.TRANSACTION_QUEUE: controller.transaction_queue,
            k.COMMAND_QUEUE: controller.command_queue,
            k.PER_BANK: int(controller.queues == "per_bank"),
            k.UNIFIED: int(controller.unified_queue),
            k.CLOSE_PAGE: int(controller.page == "close"),
            k.DUAL: int(controller.dual_command),
            k.ROW_ACCESSES: controller.row_accesses,
            k.DRAIN_ABOVE: controller.drain_above,
            k.POSTED_WRITES: int(controller.posts_writes),
            b.REFRESH_INTERVAL: interval if first_only else interval * o.ranks,
        }
        self.params = self._parameters(own, k.PARAMS, options.requests_per_clock)
        self.ranks[:, b.DUE] = interval * np.arange(1, o.ranks + 1)
        if first_only:
            self.ranks[1:, b.DUE] = q.NEVER
        self.banks = self._banks(k.BANK_FIELDS)
        self.control = np.zeros(k.CONTROL, np.int64)
        self.control[b.REFRESH_WAKE] = interval
        self.control[b.FREE_SLOT] = -1
        queues = o.ranks * (o.banks if controller.queues == "per_bank" else 1)
        self.queues: Ints = np.zeros((queues, controller.command_queue), np.int64)
        self.queue_info: Ints = np.zeros((queues, k.QUEUE_INFO_FIELDS), np.int64)
        self.transactions: Ints = np.zeros((2, controller.transaction_queue), np.int64)
        self._posted = self.transactions.size + self.queues.size
        self.slots = np.zeros((self.flight.shape[1] + self._posted, k.SLOT_FIELDS), np.int64)
        self.hashes: Ints = np.full(4096, -1, np.int64)
        self.min_latency_edges = 1  # a read answered by a waiting write

    def forget(self, place: int) -> None:
        """See :meth:`Channel.forget`."""
        self.slots[self.slots[:, b.IDENTITY] == place, b.IDENTITY] = self._ring

    def _reserve_flight(self, count: int) -> None:
        super()._reserve_flight(count)
        larger = np.zeros((self.flight.shape[1] + self._posted, k.SLOT_FIELDS), np.int64)
        larger[: len(self.slots)] = self.slots
        self._grow("slots", larger)

    def room(self, op: int, address: int) -> bool:
        """Whether the controller could take this request at the next DRAM edge, after those already staged."""
        unified = bool(self.params[k.UNIFIED])
        queue = READ if unified else op
        if self.lanes == 2:
            staged = int(self.io[q.STAGED_TAIL + 2 * op] - self.io[q.STAGED_HEAD + 2 * op])
        else:
            waiting = self.staged[0, int(self.io[q.STAGED_HEAD]) : int(self.io[q.STAGED_TAIL]), q.STAGED_OP]
            staged = len(waiting) if unified else int(np.count_nonzero(waiting == op))
        return bool(self.control[k.HELD + queue] + staged < self.params[k.TRANSACTION_QUEUE])

    def _own_counts(self, total: list[int]) -> dict[str, int]:
        return {"forwarded_reads": int(self.control[b.FORWARDED] + self.control[k.SHARED])}
