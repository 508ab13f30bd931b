"""Long schedules: which periods of a nest are simulated, and what each of them stands for.

A *period* is one iteration, or a few, of the loops down to a chosen depth. Inside, all periods do the same; they differ
in what moves when they begin and in whether their outputs start from zero or leave finished. Periods that are alike in
this, and whose last predecessors are, are of one *kind*. Simulated are *windows*: runs of neighbouring periods at
random places, one in each of equal parts of the run, and further ones until every kind was seen. The first periods of a
window bring the machine into the state that it has there, the last ones take what it does ahead for the next window;
those between are measured. All measured periods of a kind stand for equal shares of all periods of that kind (their
*weights*): everything that happens in one counts so many times. What moves in a period depends on its kind alone, so
words, packets and bytes are exact. Its cycles are not (`nocsim.result.estimate` says how sure they are).

The beginning (fill) and the end (drain) stand for themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, inf, prod
from random import Random

from cosa.analytical.traffic import Residency, Traffic, bytes_of
from cosa.model.layer import REDUCTION
from nocsim.machine.dataflow import Odometer, Range, changing_loops

STEPS_AT_ONCE = 1 << 16
"""Steps of all PEs together that are always simulated: some seconds."""

_FIRST_WINDOWS = 16  # besides those for rare kinds
_FIRST_SHARE = 0.05  # of the steps that these should take if nothing asks for more
_FEWEST_PERIODS = 64
_MOST_PERIODS = 60_000
_MOST_CONTEXT = 3  # predecessors that make a kind
_SAMPLES = ((0.01, 3), (0.002, 2), (0.0, 1))  # of a kind, at least, by its share of the periods
_SETTLING_LATENCY_CYCLES = 3000  # besides: until PEs, mesh and DRAM are back in the rhythm that they had before a gap
_MOST_DIVISIONS = 6  # that are looked at closely
_WORTH_TRYING = 0.25  # a first plan that simulates a larger share of the steps will not lead to much
_WORTH_IT = 0.6

PeriodKind = tuple[object, ...]


@dataclass(frozen=True)
class SamplingPlan:
    """Which periods are simulated.

    Attributes
    ----------
    bounds: of the loops that number the periods, outer to inner.
    share: iterations of the innermost of these loops in a period; its bound is divided by this.
    periods: (number, weight) in order; weight 0 only brings the machine into its state.
    kinds: the kind of each measured period by its number, for those that represent others.
    counts: how many periods of each kind there are.
    windows: how many windows are at random places.
    settling: how often the machine may settle before it is measured.
    """

    bounds: tuple[int, ...]
    share: int
    periods: tuple[tuple[int, int], ...]
    kinds: dict[int, int]
    counts: tuple[int, ...]
    steps_per_period: int
    windows: int = 0
    settling: int = 1

    @property
    def depth(self) -> int:
        """How many loops number the periods."""
        return len(self.bounds)

    @property
    def count(self) -> int:
        """How many periods the schedule has."""
        return prod(self.bounds)

    @property
    def simulated_steps(self) -> int:
        """Steps of a PE that are simulated."""
        return len(self.periods) * self.steps_per_period


@dataclass(frozen=True)
class _Division:
    """A way to cut a schedule into periods."""

    bounds: tuple[int, ...]
    share: int
    steps_per_period: int
    context: int  # periods in which the machine settles once

    @property
    def count(self) -> int:
        return prod(self.bounds)


class Sampler:
    """Makes plans for one schedule: `plan` the first, `refined` those after a run that was too uncertain."""

    def __init__(self, traffic: Traffic, bound_cycles: int, memory_bytes_per_cycle: float = inf) -> None:
        """`bound_cycles` is a time that the whole run cannot be below; the DRAM moves so many bytes a cycle at most."""
        self._traffic, self._bound_cycles = traffic, bound_cycles
        self._loops = traffic.step_loops
        self._settling_cycles = settling_cycles(traffic, memory_bytes_per_cycle)
        self._kinds: dict[_Division, list[int]] = {}

    def plan(self) -> SamplingPlan | None:
        """The plan with the fewest steps over all divisions; None if no plan saves most of them."""
        best: SamplingPlan | None = None
        for division in self._divisions():
            found = self._at(division, frozenset(), 0, _FIRST_WINDOWS, 1)
            if found is not None and (best is None or found.simulated_steps < best.simulated_steps):
                best = found
        return best if best is not None and best.simulated_steps <= self._traffic.steps * _WORTH_TRYING else None

    def refined(self, plan: SamplingPlan, windows: int, settling: int) -> SamplingPlan | None:
        """All that `plan` measures and more, in so many windows that settle so often; None if that saves too little."""
        division = self._division(plan.bounds, plan.share)
        found = self._at(division, frozenset(plan.kinds), plan.windows, max(0, windows - plan.windows), settling)
        return found if found is not None and found.simulated_steps <= self._traffic.steps * _WORTH_IT else None

    def _divisions(self) -> list[_Division]:
        """Those with periods about as long as the machine takes to settle."""
        found = []
        for depth in range(1, len(self._loops) + 1):
            bounds = tuple(x.bound for x in self._loops[:depth])
            for share in (share for share in range(1, bounds[-1]) if bounds[-1] % share == 0):
                division = self._division((*bounds[:-1], bounds[-1] // share), share)
                if _FEWEST_PERIODS <= division.count <= _MOST_PERIODS and division.context <= _MOST_CONTEXT:
                    found.append(division)
        # Long periods are simulated longer than they need.
        return sorted(found, key=lambda x: (x.context * x.steps_per_period, x.context))[:_MOST_DIVISIONS]

    def _division(self, bounds: tuple[int, ...], share: int) -> _Division:
        count = prod(bounds)
        context = max(1, ceil(self._settling_cycles * count / self._bound_cycles))
        return _Division(bounds, share, self._traffic.steps // count, context)

    def _at(
        self, division: _Division, old: frozenset[int], seed: int, windows: int, settling: int
    ) -> SamplingPlan | None:
        """A plan that measures the `old` periods and so many windows; None if that would be all periods.

        Any numbers do for the places that do not go with the loops; the same schedule has the same ones.
        """
        count, context, head = division.count, division.context, division.context * settling
        if count <= 4 * head:
            return None
        if division not in self._kinds:
            self._kinds[division] = self._kinds_of(division)
        kind_of = self._kinds[division]
        begin, end = head, count - head
        random = Random(f"{division.bounds} {seed}")
        fair = int(_FIRST_SHARE * count / _FIRST_WINDOWS) - 2 * head
        # Whole iterations of the innermost loop, if short: in some machines slow and fast periods take turns.
        whole = division.bounds[-1] if division.bounds[-1] <= 4 * context else 1
        length = -(-min(max(head, fair), 4 * head) // whole) * whole
        rare = -(-(context + 1) // whole) * whole
        measured = {number for number in old if begin <= number < end}
        for window in range(windows):
            first, last = (part * (end - begin) // windows + begin for part in (window, window + 1))
            at = random.randrange(first, max(first + 1, last))
            measured.update(range(at, min(at + length, end)))
        members: dict[int, list[int]] = {}
        for number in range(begin, end):
            members.setdefault(kind_of[number], []).append(number)
        seen = Counter(kind_of[number] for number in measured)
        for kind, own in members.items():
            wanted = min(len(own), next(n for share, n in _SAMPLES if len(own) >= share * count))
            if seen[kind] < wanted:
                for at in random.sample(own, wanted):
                    # What comes next is of rare kinds, too.
                    new = set(range(at, min(at + rare, end))) - measured
                    measured |= new
                    seen.update(kind_of[number] for number in new)
        return _plan(division, members, measured, head, windows + seed, settling)

    def _kinds_of(self, division: _Division) -> list[int]:
        """A number for the kind of each period."""
        own = list(_period_kinds(self._traffic, division.bounds))
        known: dict[PeriodKind, int] = {}
        context = division.context
        return [
            known.setdefault(tuple(own[max(0, number - context) : number + 1]), len(known))
            for number in range(len(own))
        ]


def _plan(
    division: _Division, members: dict[int, list[int]], measured: set[int], head: int, windows: int, settling: int
) -> SamplingPlan | None:
    """The plan that measures these periods; head and tail besides."""
    count = division.count
    simulated = {*range(head), *range(count - 2 * head, count)}
    for number in measured:
        simulated.update(range(number - head, number + division.context + 1))
    if len(simulated) == count:
        return None
    weights = dict.fromkeys([*range(head), *range(count - head, count)], 1)
    kinds: dict[int, int] = {}
    counts: list[int] = []
    for own in members.values():
        found = [number for number in own if number in measured]
        each, more = divmod(len(own), len(found))
        for place, number in enumerate(found):
            # Those that count once more are spread evenly.
            weights[number] = each + ((place + 1) * more // len(found) > place * more // len(found))
            kinds[number] = len(counts)
        counts.append(len(own))
    periods = tuple((number, weights.get(number, 0)) for number in sorted(simulated))
    return SamplingPlan(
        division.bounds, division.share, periods, kinds, tuple(counts), division.steps_per_period, windows, settling
    )


def _period_kinds(traffic: Traffic, bounds: tuple[int, ...]) -> Iterator[int]:
    """For each period a number for what moves in it: equal for those that move the same."""
    depth = len(bounds)
    residencies = [*traffic.pe.values(), *(residency for found in traffic.on_chip.values() for residency in found)]
    changes = [tuple(_change(residency, j) for residency in residencies) for j in range(depth)]
    reductions = [
        [j for j in range(min(depth, changing_loops(residency))) if _reduces(residency, j)]
        for residency in residencies
        if residency.tensor == "outputs"
    ]
    known: dict[PeriodKind, int] = {}
    odometer = Odometer([Range(bound) for bound in bounds])
    at = odometer.indices
    for j in odometer:
        states = [(all(at[i] == 0 for i in which), all(at[i] == bounds[i] - 1 for i in which)) for which in reductions]
        kind = (None if j < 0 else changes[j], *states)
        yield known.setdefault(kind, len(known))


def _change(residency: Residency, j: int) -> int:
    return residency.changes[j] if j < len(residency.changes) else 0


def _reduces(residency: Residency, j: int) -> bool:
    return residency.outer[j].dim in REDUCTION


def settling_cycles(traffic: Traffic, memory_bytes_per_cycle: float = inf) -> int:
    """Cycles in which everything that the nodes hold can be replaced: by then a machine is near its steady state.

    At the rate of one port, or of the DRAM if that is slower; outputs leave and come back.
    """
    n_bytes = 0
    for residency in (residency for found in traffic.on_chip.values() for residency in found):
        n_bytes += _moved_bytes(traffic, residency)
    for residency in traffic.pe.values():
        n_bytes += len(traffic.placement.groups(residency.tile)) * _moved_bytes(traffic, residency)
    noc = traffic.architecture.require_noc()
    payload = noc.packet_payload_flits
    port_bytes_per_cycle = noc.flit_bits / 8 * payload / (payload + 1)
    return _SETTLING_LATENCY_CYCLES + ceil(n_bytes / min(port_bytes_per_cycle, memory_bytes_per_cycle))


def _moved_bytes(traffic: Traffic, residency: Residency) -> int:
    times = 2 if residency.tensor == "outputs" else 1
    return times * bytes_of(residency.tile.words, traffic.word_bits(residency.tensor, finished=False))
