"""Long schedules: which periods of a nest are simulated, and what each of them stands for.

A *period* is one iteration, or a few, of the loops down to a chosen depth. Inside, all periods do the same; they differ
in what moves when they begin and in whether their outputs start from zero or leave finished. Periods that are alike in
this, and whose predecessors are, are of one *kind*. Of every kind some periods are simulated, spread evenly over the
run, each after others that bring the machine into the state it has there. A simulated period of a kind stands for an
equal share of all periods of that kind (its *weight*): everything that happens in it counts so many times. What moves
in a period depends on its kind alone, so words, packets and bytes are exact. Its cycles are not: DRAM rows and refresh
fall differently. The spread within each kind gives a standard error, as in stratified sampling; if it is too large,
more periods are simulated.

The beginning (fill) and the last period (drain) stand for themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, prod, sqrt

from cosa.analytical.traffic import Residency, Traffic, bytes_of
from cosa.workload import REDUCTION
from nocsim.dataflow import Odometer, Range, changing_loops

STEPS_AT_ONCE = 1 << 16
"""Steps of all PEs together that are always simulated: some seconds."""

_MOST_PERIODS = 4_000
_FEWEST_PERIODS = 16
_SAMPLES = 3  # of a kind, at least
_SHARED_SAMPLES = 16  # more at first, by how many periods are of the kind
_SETTLING_LATENCY_CYCLES = 200
_SETTLING_TIMES = 4  # that a period lasts, at least: what lies at its borders is then little of it
_REFRESHES = 8  # in a period, at least: one more or less is then little of it
_WORTH_IT = 0.5  # a plan that simulates a larger share of the steps is not worth its uncertainty

Kind = tuple[object, ...]


@dataclass(frozen=True)
class Plan:
    """Which periods are simulated.

    Attributes
    ----------
    bounds: of the loops that number the periods, outer to inner.
    share: iterations of the innermost of these loops in a period; its bound is divided by this.
    periods: (number, weight) in order; weight 0 only brings the machine into its state.
    kinds: the kind of each simulated period by its number, for those that represent others.
    counts: how many periods of each kind there are.
    """

    bounds: tuple[int, ...]
    share: int
    periods: tuple[tuple[int, int], ...]
    kinds: dict[int, int]
    counts: tuple[int, ...]
    steps_per_period: int

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


class Sampler:
    """Makes plans for one schedule: `plan` the first, `refined` one with more periods after a run was too uncertain."""

    def __init__(self, traffic: Traffic, bound_cycles: int, refresh_cycles: int) -> None:
        """`bound_cycles` is a time that the whole run cannot be below; a rank is refreshed every `refresh_cycles`."""
        self._traffic, self._bound_cycles = traffic, bound_cycles
        self._loops = traffic.step_loops
        self._shortest_cycles = max(_SETTLING_TIMES * settling_cycles(traffic), _REFRESHES * refresh_cycles)

    def plan(self) -> Plan | None:
        """The plan with the fewest steps over all depths; None if no plan saves half of them."""
        best: Plan | None = None
        for depth in range(1, len(self._loops) + 1):
            bound = self._loops[depth - 1].bound
            for share in (share for share in range(1, bound) if bound % share == 0):
                count = prod(x.bound for x in self._loops[:depth]) // share
                if not _FEWEST_PERIODS <= count <= _MOST_PERIODS:
                    continue
                found = self._at(depth, share, None)
                if found is not None and (best is None or found.simulated_steps < best.simulated_steps):
                    best = found
        return best

    def refined(self, plan: Plan, samples: Sequence[int]) -> Plan | None:
        """The same periods with so many simulated of each kind; None if that does not save half of the steps."""
        return self._at(plan.depth, plan.share, samples)

    def _at(self, depth: int, share: int, samples: Sequence[int] | None) -> Plan | None:
        bounds = tuple(x.bound for x in self._loops[:depth])
        bounds = (*bounds[:-1], bounds[-1] // share)
        count, per_period = prod(bounds), share * prod(x.bound for x in self._loops[depth:])
        if self._bound_cycles < self._shortest_cycles * count:
            return None
        before = 1
        of_kind = self._kinds(bounds, before)
        weights = dict.fromkeys([*range(before), count - 1], 1)
        simulated = {*range(before), *range(count - 1 - before, count)}
        kinds = {}
        for kind, members in enumerate(of_kind):
            first_samples = _SAMPLES + _SHARED_SAMPLES * len(members) // count
            wanted = min(len(members), samples[kind] if samples else first_samples)
            for sample in range(wanted):
                # In the middle of each of `wanted` equal parts.
                number = members[(2 * sample + 1) * len(members) // (2 * wanted)]
                first, last = (part * len(members) // wanted for part in (sample, sample + 1))
                weights[number], kinds[number] = last - first, kind
                simulated.update(range(number - before, number + 1))
        if len(simulated) > count * _WORTH_IT:
            return None
        periods = tuple((number, weights.get(number, 0)) for number in sorted(simulated))
        return Plan(bounds, share, periods, kinds, tuple(len(members) for members in of_kind), per_period)

    def _kinds(self, bounds: tuple[int, ...], head: int) -> list[list[int]]:
        """Numbers of the periods of each kind, without the first `head` ones and the last."""
        own = list(_period_kinds(self._traffic, bounds))
        found: dict[Kind, list[int]] = {}
        for number in range(head, len(own) - 1):
            found.setdefault((own[number - 1], own[number]), []).append(number)
        return list(found.values())


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
    known: dict[Kind, int] = {}
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


def settling_cycles(traffic: Traffic) -> int:
    """Cycles in which everything that the nodes hold can be replaced: by then a machine is in its steady state."""
    architecture = traffic.architecture
    n_bytes = 0
    for residency in (residency for found in traffic.on_chip.values() for residency in found):
        n_bytes += bytes_of(residency.tile.words, traffic.word_bits(residency.tensor, finished=False))
    for residency in traffic.pe.values():
        groups = len(traffic.placement.groups(residency.tile))
        n_bytes += groups * bytes_of(residency.tile.words, traffic.word_bits(residency.tensor, finished=False))
    return _SETTLING_LATENCY_CYCLES + n_bytes // max(1, architecture.require_noc().flit_bits // 8)


@dataclass(frozen=True)
class Spread:
    """Standard error of the cycles of all periods, and how many samples of each kind would make it small enough."""

    standard_error_cycles: float
    deviations: tuple[float, ...]


def spread(plan: Plan, cycles: dict[int, float]) -> Spread:
    """What the cycles of the simulated periods (by number) say about all others."""
    samples: list[list[float]] = [[] for _ in plan.counts]
    for number, kind in plan.kinds.items():
        samples[kind].append(cycles[number])
    deviations, variance = [], 0.0
    for found, count in zip(samples, plan.counts, strict=True):
        mean = sum(found) / len(found)
        square = sum((x - mean) ** 2 for x in found) / max(1, len(found) - 1)
        deviations.append(sqrt(square))
        variance += count * (count - len(found)) * square / len(found)
    return Spread(sqrt(variance), tuple(deviations))


def samples_for(plan: Plan, found: Spread, error_cycles: float) -> list[int]:
    """Samples of each kind that bring the standard error to this: more where there are many, and where they vary."""
    shares = [count * deviation for count, deviation in zip(plan.counts, found.deviations, strict=True)]
    total = sum(shares)
    return [max(_SAMPLES, ceil(share * total / error_cycles**2)) for share in shares]
