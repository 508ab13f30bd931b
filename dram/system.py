"""The DRAM island: what a simulator steps."""

from collections.abc import Callable
from fractions import Fraction
from pkgutil import resolve_name
from typing import TypeVar

import numpy as np

from dram.channel import READ, WRITE, Channel, ChannelOptions
from dram.config import DramConfig
from dram.errors import DramConfigError
from dram.losses import DramLosses
from dram.queues_kernel import Ints
from dram.stats import DramStats

__all__ = ["READ", "WRITE", "DramSystem"]

Address = TypeVar("Address", int, Ints)


class DramSystem:
    """All channels of a DRAM, stepped by a conductor in core cycles (cycles of the machine around it).

    DRAM edge ``d`` lies in core cycle ``floor(d / ratio)``. A request submitted in core cycle ``t`` may enter the
    controller at DRAM edge ``ceil(t * ratio)`` or later; a completion at DRAM edge ``d`` is visible in core cycle
    ``ceil(d / ratio)``, at the earliest in the core cycle after the one in which it was decided. Integers only.

    Requests are staged without limit. A channel takes reads and writes from lanes of their own, at most one of each a
    DRAM clock; policies with one queue for both take them in the order submitted, at most one a DRAM clock. Addresses
    are byte addresses; each request moves ``config.request_bytes``.

    The conductor asks :meth:`earliest_visible_cycle`, lets everything else run up to at most that cycle ``c``, submits
    what came up, and calls :meth:`advance` with the cycle reached.

    Args:
        config: device, geometry and controller.
        clocks_per_core_cycle: DRAM clocks per core cycle, for example ``Fraction(1, 3)`` for a DRAM clock of 3 ns
            beside a core clock of 1 ns.
        logging: keep acceptance, column command and completion of every request, and every command (memory grows
            with the run).
        requests_per_clock: most requests a channel takes in a DRAM clock (with two lanes: from each).
        in_order: every channel takes requests strictly in the order submitted; else reads and writes do not wait for
            each other (where the policy has one queue for both they always do).
        request_ring: keep the times of the last so many requests of each channel (a power of two, more than are ever
            pending) and no command log, so that memory does not grow with the run.

    Raises:
        DramConfigError: the ratio is not positive.
    """

    def __init__(
        self,
        config: DramConfig,
        clocks_per_core_cycle: Fraction = Fraction(1),
        *,
        logging: bool = False,
        requests_per_clock: int = 1,
        in_order: bool = False,
        request_ring: int = 0,
    ) -> None:
        ratio = Fraction(clocks_per_core_cycle)
        if ratio <= 0:
            raise DramConfigError(f"clocks_per_core_cycle: value {clocks_per_core_cycle}: must be greater than 0")
        self.config = config
        self.clocks_per_core_cycle = ratio
        address_map = config.address_map()
        self._channel_shift = address_map.shifts["channel"]
        self._channel_mask = address_map.masks["channel"]
        self.channels: list[Channel] = []
        options = ChannelOptions(ratio, logging, in_order, requests_per_clock, request_ring)
        channel: Callable[[DramConfig, ChannelOptions], Channel] = resolve_name(config.controller.channel_class)
        for _ in range(config.organization.channels):
            self.channels.append(channel(config, options))
        self._only = self.channels[0] if len(self.channels) == 1 else None

    @property
    def pending(self) -> int:
        """Requests submitted whose completion has not been returned."""
        return self._only.pending if self._only is not None else sum(channel.pending for channel in self.channels)

    @property
    def stats(self) -> DramStats:
        """Counts of all channels up to the cycle advanced to."""
        total = self.channels[0].stats()
        for channel in self.channels[1:]:
            total = total + channel.stats()
        return total

    @property
    def losses(self) -> DramLosses:
        """Where the clocks of all channels' data buses went; they add up to channels x ``stats.total_cycles``."""
        total = self.channels[0].losses()
        for channel in self.channels[1:]:
            total = total + channel.losses()
        return total

    def channel_of(self, address: Address) -> Address:
        """Channel that holds a byte address (or the channels of an array of them)."""
        return (address >> self._channel_shift) & self._channel_mask

    def submit(self, cycle: int, op: int, address: int, tag: int) -> None:
        """Stage a request in core cycle ``cycle`` (not before the cycle advanced to).

        Args:
            cycle: core cycle.
            op: ``READ`` or ``WRITE``.
            address: byte address.
            tag: any integer; comes back with the completion.

        Raises:
            DramOrderError: ``cycle`` lies before the cycle advanced to.
        """
        channel = self._only or self.channels[(address >> self._channel_shift) & self._channel_mask]
        channel.submit(cycle, op, address, tag)

    def submit_many(self, cycle: int | Ints, op: int | Ints, addresses: Ints, tags: Ints) -> None:
        """Stage requests in the order given.

        Args:
            cycle: core cycle of all of them, or one for each, not falling.
            op: ``READ`` or ``WRITE`` for all of them, or one for each.
            addresses: byte addresses.
            tags: integers that come back with the completions.

        Raises:
            DramOrderError: a cycle lies before the one advanced to, or cycles fall.
        """
        addresses = np.ascontiguousarray(addresses, np.int64)
        tags = np.ascontiguousarray(tags, np.int64)
        if self._only is not None and isinstance(cycle, int) and isinstance(op, int):
            self._only.submit_alike(cycle, op, addresses, tags)
            return
        cycles = np.broadcast_to(np.asarray(cycle, np.int64), addresses.shape)
        ops = np.broadcast_to(np.asarray(op, np.int64), addresses.shape)
        if self._only is not None:
            self._only.submit_many(cycles, ops, addresses, tags)
            return
        numbers = (addresses >> self._channel_shift) & self._channel_mask
        for number, channel in enumerate(self.channels):
            chosen = np.flatnonzero(numbers == number)
            channel.submit_many(cycles[chosen], ops[chosen], addresses[chosen], tags[chosen])

    def earliest_visible_cycle(self) -> int | None:
        """Core cycle before which no completion becomes visible, or ``None`` if nothing is pending. Moves nothing.

        Exact once the column command of the next completion is issued, else a lower bound; always after the cycle
        advanced to.
        """
        if self._only is not None:
            return self._only.earliest_visible_cycle()
        bounds = [bound for channel in self.channels if (bound := channel.earliest_visible_cycle()) is not None]
        return min(bounds, default=None)

    def advance(self, cycle: int) -> list[tuple[int, int]]:
        """Run all DRAM edges that lie in core cycles before ``cycle``.

        Returns:
            (tag, core cycle) of each completion visible at ``cycle`` or before, once, in order of completion.

        Raises:
            DramOrderError: ``cycle`` lies before the cycle advanced to.
        """
        if self._only is not None:
            self._only.run_to(cycle)
            return self._only.collect(cycle)
        done: list[tuple[int, int]] = []
        for channel in self.channels:
            channel.run_to(cycle)
            done += channel.collect(cycle)
        done.sort(key=lambda entry: entry[1])
        return done

    def request_log(self) -> Ints:
        """With ``logging``: DRAM clocks accepted, column command, completed, one row a request in order of submission.

        -1 stands for what has not happened, or never will (column command of a forwarded or merged request). With
        several channels the rows of channel 0 come first, then those of channel 1, and so on.
        """
        log = np.concatenate([channel.request_log[: channel.submitted] for channel in self.channels])
        times: Ints = np.maximum(log, -1)
        return times

    def command_log(self) -> list[dict[str, int | str]]:
        """With ``logging``: every command as cycle (DRAM clock), cmd, channel, rank, bankgroup, bank, row, col.

        A field that has no meaning for the command is left out; ``col`` counts requests, not device columns.
        """
        log = [entry for number, channel in enumerate(self.channels) for entry in channel.commands(number)]
        log.sort(key=lambda entry: int(entry["cycle"]))
        return log
