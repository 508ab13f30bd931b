"""One DRAM channel: staging, clock ratio, growing arrays. A policy adds the state of its controller and its kernel."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from dram import banks_kernel as b
from dram import queues_kernel as qk
from dram.config import DramConfig
from dram.constraints import COMMANDS
from dram.errors import DramOrderError
from dram.losses import DramLosses, LossAccount
from dram.queues_kernel import Ints
from dram.stats import DramStats

READ = 0
WRITE = 1

#: commands kept until they are accounted for, if there is no command log
UNLOGGED_COMMANDS = 4096


@dataclass(frozen=True)
class ChannelOptions:
    """How a channel is driven; see :class:`dram.system.DramSystem`."""

    ratio: Fraction = Fraction(1)
    logging: bool = False
    in_order: bool = False
    requests_per_clock: int = 1
    request_ring: int = 0
    """keep times of the last so many requests (a power of two) and no command log; 0: as ``logging`` says"""


class Channel(ABC):
    """The part of a channel that does not depend on the policy. Used through :class:`dram.system.DramSystem`."""

    #: the module of the kernel: ``run``, and ``State`` with the arrays that it takes, attributes here
    kernel: Any
    _arrays: ClassVar[Any]
    #: names of the commands by their number in the command log
    command_names: tuple[str, ...] = COMMANDS

    params: Ints
    control: Ints
    ranks: Ints
    banks: Ints
    slots: Ints

    def __init_subclass__(cls) -> None:
        if hasattr(cls, "kernel"):
            cls._arrays = attrgetter(*cls.kernel.State._fields)

    def __init__(self, config: DramConfig, options: ChannelOptions, in_order: bool) -> None:
        self.config = config
        self.lanes = 1 if in_order else 2
        self._num = options.ratio.numerator
        self._den = options.ratio.denominator
        self._ring = options.request_ring
        self._logging = logging = options.logging and not self._ring
        self.io: Ints = np.zeros(qk.IO_SIZE, np.int64)
        self.io[qk.RATIO_NUM] = self._num
        self.io[qk.RATIO_DEN] = self._den
        self.io[qk.FIRST_VISIBLE] = qk.NEVER
        self.io[qk.LOGGING] = int(logging or self._ring > 0)
        self.io[qk.QUIET_SINCE] = 0
        self.staged: Ints = np.zeros((2, 64, qk.STAGED_FIELDS), np.int64)
        self.flight: Ints = np.zeros((3, 128, qk.FLIGHT_FIELDS), np.int64)
        self.request_log: Ints = np.full((64 if logging else self._ring + 1, qk.REQUEST_FIELDS), -1, np.int64)
        self.command_log: Ints = np.zeros((UNLOGGED_COMMANDS, qk.LOG_FIELDS), np.int64)
        self._losses = LossAccount(config)
        self._out: Ints = np.zeros((128, 2), np.int64)
        self.pending = 0
        self.submitted = 0
        # Python's copies of what the kernels keep in io: attribute reads are far cheaper than array element reads
        self._now_edge = 0
        self._wake = 0
        self._first_visible = qk.NEVER
        self.min_latency_edges = 1
        self._cycle = 0
        self._tails = [0, 0]
        self._accounted = 0
        self._state: Any = None

    def _parameters(self, own: dict[int, int], size: int, requests_per_clock: int) -> Ints:
        """The read-only vector of the kernel: what all policies have, and the policy's own."""
        t, o, place = self.config.timing, self.config.organization, self.config.address_map()
        fields = ("rank", "bankgroup", "bank", "row", "column")
        values = {
            b.RANKS: o.ranks,
            b.BANKS: o.banks,
            b.BANKS_PER_GROUP: o.banks_per_group,
            **{b.SHIFT_RANK + 2 * number: place.shifts[field] for number, field in enumerate(fields)},
            **{b.MASK_RANK + 2 * number: place.masks[field] for number, field in enumerate(fields)},
            b.OFFSET_BITS: place.offset_bits,
            b.READ_LATENCY: t.read_latency + t.burst_clocks,
            b.WRITE_LATENCY: self.config.controller.write_latency(t) + t.burst_clocks,
            b.IN_ORDER: int(self.lanes == 1),
            b.REQUESTS_PER_CLOCK: requests_per_clock,
            b.REFRESH_INTERVAL: t.tREFI,
        } | own
        params = np.zeros(size, np.int64)
        params[list(values)] = list(values.values())
        return params

    # -- submitting ------------------------------------------------------------------------------------------------

    def _check(self, cycle: int, op: int) -> None:
        if cycle < self._cycle:
            raise DramOrderError(f"request submitted in cycle {cycle}, but the DRAM stands at cycle {self._cycle}")
        if op not in (READ, WRITE):
            raise ValueError(f"op {op} unknown; allowed: READ (0), WRITE (1)")

    def submit(self, cycle: int, op: int, address: int, tag: int) -> None:
        """Stage one request at core cycle ``cycle``."""
        self._check(cycle, op)
        lane = op if self.lanes == 2 else 0
        self._make_room(lane, 1)
        edge = -(-cycle * self._num // self._den)
        identity = self.submitted & (self._ring - 1) if self._ring else self.submitted
        qk.push(self.io, self.staged, lane, edge, op, address, tag, identity)
        self._count(lane, 1, edge)

    def submit_alike(self, cycle: int, op: int, addresses: Ints, tags: Ints) -> None:
        """Stage requests of one direction at one core cycle, in order."""
        count = len(addresses)
        if count != len(tags):
            raise ValueError(f"{count} addresses, but {len(tags)} tags")
        self._check(cycle, op)
        if count:
            lane = op if self.lanes == 2 else 0
            self._make_room(lane, count)
            edge = -(-cycle * self._num // self._den)
            mask = self._ring - 1 if self._ring else -1
            qk.push_many(self.io, self.staged, lane, edge, op, addresses, tags, self.submitted, mask)
            self._count(lane, count, edge)

    def _count(self, lane: int, count: int, edge: int) -> None:
        self._tails[lane] += count
        self.submitted += count
        self.pending += count
        if edge < self._wake:
            self._wake = edge

    def submit_many(self, cycles: Ints, ops: Ints, addresses: Ints, tags: Ints) -> None:
        """Stage requests in order; ``cycles`` (core cycles) must not fall."""
        count = len(addresses)
        if count == 0:
            return
        if int(cycles[0]) < self._cycle or bool((cycles[1:] < cycles[:-1]).any()):
            raise DramOrderError(f"requests must come in order of cycles, none before cycle {self._cycle}")
        if int(ops.min()) < READ or int(ops.max()) > WRITE:
            raise ValueError("op: allowed: READ (0), WRITE (1)")
        edges = cycles if self._num == self._den else -(-cycles * self._num // self._den)
        ones = int(np.count_nonzero(ops)) if self.lanes == 2 else 0
        counts = (count - ones, ones)[: self.lanes]
        for lane, lane_count in enumerate(counts):
            self._make_room(lane, count if lane_count else 0)
        qk.push_rows(
            self.io, self.staged, self.lanes, edges, ops, addresses, tags, self.submitted,
            self._ring - 1 if self._ring else -1,
        )  # fmt: skip
        for lane, lane_count in enumerate(counts):
            self._tails[lane] += lane_count
        self.submitted += count
        self.pending += count
        self._wake = min(self._wake, int(edges[0]))
        self.io[qk.WAKE] = self._wake

    def _make_room(self, lane: int, count: int) -> None:
        """See to it that everything that holds one entry a request can take ``count`` more."""
        if self.pending + count >= self.flight.shape[1]:
            self._reserve_flight(count)
        if self._logging and self.submitted + count > self.request_log.shape[0]:
            self._grow_request_log(count)
        tail = self._tails[lane]
        capacity = self.staged.shape[1]
        if tail + count <= capacity:
            return
        head = int(self.io[qk.STAGED_HEAD + 2 * lane])
        used = tail - head
        if used + count > capacity // 2:
            larger = np.zeros((2, 1 << (2 * (used + count)).bit_length(), qk.STAGED_FIELDS), np.int64)
            larger[:, :capacity] = self.staged
            self._grow("staged", larger)
        self.staged[lane, :used] = self.staged[lane, head:tail].copy()
        self.io[qk.STAGED_HEAD + 2 * lane] = 0
        self.io[qk.STAGED_TAIL + 2 * lane] = used
        self._tails[lane] = used

    def _reserve_flight(self, count: int) -> None:
        needed = self.pending + count + 1
        old_mask = self.flight.shape[1] - 1
        larger = np.zeros((3, 1 << (2 * needed).bit_length(), qk.FLIGHT_FIELDS), np.int64)
        for ring in range(3):
            head, tail = int(self.io[qk.FLIGHT_HEAD + 2 * ring]), int(self.io[qk.FLIGHT_TAIL + 2 * ring])
            positions = np.arange(head, tail)
            larger[ring, positions & (larger.shape[1] - 1)] = self.flight[ring, positions & old_mask]
        self._grow("flight", larger)

    def _grow_request_log(self, count: int) -> None:
        larger = np.full((2 * (self.submitted + count), qk.REQUEST_FIELDS), -1, np.int64)
        larger[: self.submitted] = self.request_log[: self.submitted]
        self._grow("request_log", larger)

    # -- running ---------------------------------------------------------------------------------------------------

    def _run(self, until_edge: int) -> int:
        """Run the kernel; returns WAKE, which lies before ``until_edge`` only if the command log is full."""
        return int(self.kernel.run(until_edge, *(self._state or self.kernel_state())))

    def kernel_state(self) -> Any:
        """The kernel's `State`, for a compiled loop that steps it itself; valid until an array grows."""
        if self._state is None:  # kept: gathering the arrays anew makes a call that does little a third longer
            self._state = self.kernel.State(*self._arrays(self))
        return self._state

    def _grow(self, name: str, larger: Ints) -> None:
        """Put a larger array in the place of one of the kernel's: the only way to replace one."""
        setattr(self, name, larger)
        self._state = None

    def kernel_ran(self, count: int) -> None:
        """Take over what such a loop has left, and make room for ``count`` more requests."""
        io = self.io
        self._tails = [int(io[qk.STAGED_TAIL]), int(io[qk.STAGED_TAIL + 2])]
        self.pending = int(io[qk.PENDING])
        self._wake, self._first_visible = int(io[qk.WAKE]), int(io[qk.FIRST_VISIBLE])
        for lane in range(self.lanes):
            self._make_room(lane, count)

    @abstractmethod
    def room(self, op: int, address: int) -> bool:
        """Whether the controller could take this request at the next DRAM edge, after those already staged."""

    def stats(self) -> DramStats:
        """Counts up to the present DRAM edge."""
        ranks = self.ranks.copy()
        b.settle_all(ranks, self._now_edge)
        total = ranks.sum(axis=0).tolist()
        columns = total[b.READS] + total[b.WRITES]
        counts = {
            "reads": total[b.READS],
            "writes": total[b.WRITES],
            "row_hits": columns - total[b.MISSES] - total[b.CONFLICTS],
            "row_misses": total[b.MISSES],
            "row_conflicts": total[b.CONFLICTS],
            "activates": total[b.ACTS],
            "precharges": total[b.PRES],
            "refreshes": total[b.REFS],
            "forwarded_reads": int(self.control[b.FORWARDED]),
            "merged_writes": int(self.control[b.MERGED]),
            "bus_busy_cycles": columns * self.config.timing.burst_clocks,
            "total_cycles": self._now_edge,
            "rank_active_cycles": total[b.ACTIVE_CYCLES],
            "rank_standby_cycles": total[b.STANDBY_CYCLES],
            "rank_powerdown_cycles": total[b.DOWN_CYCLES],
        }
        return DramStats(**counts | self._own_counts(total)).with_energy(self.config)

    def _own_counts(self, total: list[int]) -> dict[str, int]:
        """Counts that the policy takes another way; ``total`` are the fields of all ranks."""
        return {}

    def commands(self, number: int) -> list[dict[str, int | str]]:
        """The command log; ``number`` is the number of this channel."""
        banks_per_group = self.config.organization.banks_per_group
        result = []
        if not self._logging:
            raise ValueError("there is no command log: logging is off")
        for cycle, command, rank, bank, row, column, _, _ in self.command_log[: int(self.io[qk.COMMANDS])].tolist():
            entry: dict[str, int | str] = {
                "cycle": cycle, "cmd": self.command_names[command], "channel": number, "rank": rank,
            }  # fmt: skip
            if bank >= 0:
                if self.config.organization.bank_groups > 1:
                    entry["bankgroup"] = bank // banks_per_group
                entry["bank"] = bank % banks_per_group
            if row >= 0:
                entry["row"] = row
            if column >= 0:
                entry["col"] = column
            result.append(entry)
        return result

    def losses(self) -> DramLosses:
        """Where the clocks of the data bus went, up to the present DRAM edge."""
        self._account(self._now_edge)
        since = int(self.io[qk.QUIET_SINCE])
        quiet = int(self.io[qk.QUIET]) + (max(self._now_edge - since, 0) if since >= 0 else 0)
        return self._losses.at(self._now_edge, quiet)

    def _account(self, edge: int) -> None:
        """Charge the clocks before every burst that is over by ``edge``; without a log drop the commands."""
        count = int(self.io[qk.COMMANDS])
        self._accounted = self._losses.add(self.command_log, self._accounted, count, edge)
        if not self._logging:
            left = count - self._accounted
            self.command_log[:left] = self.command_log[self._accounted : count].copy()
            self.io[qk.COMMANDS] = left
            self._accounted = 0

    def _make_room_for_commands(self, edge: int) -> None:
        self._account(edge)
        if self._logging or 2 * int(self.io[qk.COMMANDS]) > len(self.command_log):
            larger = np.zeros((2 * len(self.command_log), qk.LOG_FIELDS), np.int64)
            larger[: len(self.command_log)] = self.command_log
            self._grow("command_log", larger)

    def run_to(self, cycle: int) -> None:
        """Run every DRAM edge that lies in a core cycle before ``cycle``."""
        if cycle < self._cycle:
            raise DramOrderError(f"advance to cycle {cycle}, but the DRAM stands at cycle {self._cycle}")
        self._cycle = cycle
        until = -(-cycle * self._num // self._den)
        if until > self._wake:
            wake = self._run(until)
            while wake < until:
                self._make_room_for_commands(wake)
                wake = self._run(until)
            self._wake = wake
            self._first_visible = int(self.io[qk.FIRST_VISIBLE])
        self._now_edge = until

    def collect(self, cycle: int) -> list[tuple[int, int]]:
        """Hand over the completions visible at core cycle ``cycle`` or before."""
        count = self.discard(cycle)
        return [(tag, at) for tag, at in self._out[:count].tolist()] if count else []

    @property
    def staged_requests(self) -> int:
        """Requests submitted that the controller has not taken yet."""
        io = self.io.tolist()
        return sum(io[qk.STAGED_TAIL + 2 * lane] - io[qk.STAGED_HEAD + 2 * lane] for lane in range(self.lanes))

    def forget(self, place: int) -> None:
        """Tell no times of the request in this row of the request ring any more; its row will be used again."""
        raise NotImplementedError

    def discard(self, cycle: int) -> int:
        """Forget the completions visible at core cycle ``cycle`` or before; returns how many."""
        if self._first_visible > cycle:
            return 0
        if self._out.shape[0] < self.pending:
            self._out = np.zeros((2 * self.pending, 2), np.int64)
        count: int = qk.collect(self.io, self.flight, cycle, self._out)
        self.pending -= count
        self._first_visible = int(self.io[qk.FIRST_VISIBLE])
        return count

    def earliest_visible_cycle(self) -> int | None:
        """Core cycle before which no completion becomes visible; ``None`` if nothing is pending."""
        if self.pending == 0:
            return None
        edge = max(self._wake, self._now_edge) + self.min_latency_edges
        undecided = -(-edge * self._den // self._num)
        return max(min(self._first_visible, undecided), self._cycle + 1)
