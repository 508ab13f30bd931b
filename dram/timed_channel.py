"""A channel whose timing is its table of constraints, as ready times, and whose refreshes stand in line."""

import numpy as np

from dram import banks_kernel as b
from dram.channel import Channel, ChannelOptions
from dram.config import DramConfig
from dram.constraints import COMMANDS, constraint_arrays, table_of
from dram.queues_kernel import Ints


class TimedChannel(Channel):
    """The state that :mod:`dram.banks_kernel` keeps, for kernels that take their timing from the table."""

    def __init__(self, config: DramConfig, options: ChannelOptions, in_order: bool) -> None:
        super().__init__(config, options, in_order)
        o = config.organization
        nodes = 1 + o.ranks * (1 + o.bank_groups + o.banks)
        self.constraints, self.first_row = constraint_arrays(table_of(config))
        self.ready: Ints = np.zeros((nodes, len(COMMANDS)), np.int64)
        self.windows = self._windows(nodes)
        self.ranks = np.zeros((o.ranks, b.RANK_FIELDS), np.int64)
        self.refreshes: Ints = np.zeros(64 * o.ranks, np.int64)

    def _banks(self, fields: int) -> Ints:
        """Closed banks, with the nodes above them."""
        o = self.config.organization
        index = np.arange(o.ranks * o.banks)
        banks = np.zeros((len(index), fields), np.int64)
        banks[:, b.OPEN_ROW] = -1
        banks[:, b.NODE + b.IN_RANK] = 1 + index // o.banks
        banks[:, b.NODE + b.IN_GROUP] = 1 + o.ranks + index // o.banks_per_group
        banks[:, b.NODE + b.IN_BANK] = 1 + o.ranks * (1 + o.bank_groups) + index
        return banks

    def _windows(self, nodes: int) -> Ints:
        """For each row of the table and node the last commands, if it has a window, and a position."""
        delays, widths = self.constraints[:, b.DELAY], self.constraints[:, b.WINDOW]
        windows = np.full((len(widths), nodes, int(widths.max()) + 1), -int(delays.max()), np.int64)
        for row, width in enumerate(widths.tolist()):
            windows[row, :, width] = 0
        return windows
