"""How sure the cycles of an extrapolated run are, and how many windows would make them sure enough.

The total is a sum over kinds: periods of the kind times the mean of those measured (stratified sampling). What the
measured periods of a kind differ by gives a standard error. Neighbours are not independent of each other (a slow period
may be followed by a fast one, or by another slow one), so whole windows are looked at, too.

What a kind's periods have in common this does not see: a machine that has not settled when it is measured. So a run
is compared with one whose windows settle twice as long, period by period: their difference is the *shift*. Windows
differ in it, too: after a gap a machine may work in another rhythm for a while (its PEs and the DRAM can fall into step
in more than one way), in some windows for long and in others not at all. So it has a standard error of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, hypot, sqrt

from nocsim.machine.sampling import SamplingPlan

_PRIOR_SAMPLES = 2
"""A kind with few samples is taken to vary as all kinds together do: as if that were seen in so many more."""

_LEAST_TOGETHER = 0.02
_FEW = 3
_SAFETY = 1.3


MARGIN = 5
"""The margin of an extrapolated total in errors: chosen by what `scripts/extrapolation.py --random` measures."""

LEAST_MARGIN_SHARE = 0.0025
"""The smallest margin. What all windows have in common however long they settle, such as where refreshes fall, no error
sees; on random schedules it was up to 0.2 %."""


@dataclass(frozen=True)
class Error:
    """How far off the cycles of all periods may be.

    Attributes
    ----------
    standard_error_cycles: from how much the measured periods differ.
    shift_cycles: by how much the total changed when windows settled for longer; None if that was not looked at yet.
    shift_error_cycles: the standard error of that, from how much windows differ in it.
    """

    standard_error_cycles: float
    shift_cycles: float | None
    shift_error_cycles: float = 0.0

    @property
    def random_cycles(self) -> float:
        """What more windows make smaller."""
        return hypot(self.standard_error_cycles, self.shift_error_cycles)

    @property
    def cycles(self) -> float:
        """All together: what settling longer still changes is taken to be as much again as it has just changed."""
        return hypot(self.random_cycles, self.shift_cycles or 0.0)

    def margin_share(self, total_cycles: int) -> float:
        """Margin of a total, as a share of it: estimated, not proven."""
        return max(LEAST_MARGIN_SHARE, MARGIN * self.cycles / total_cycles)


def standard_error(plan: SamplingPlan, cycles: Mapping[int, float]) -> float:
    """Of the cycles of all periods, from those of the measured ones by number."""
    samples: list[list[int]] = [[] for _ in plan.counts]
    for number, kind in plan.kinds.items():
        samples[kind].append(number)
    means = [sum(cycles[number] for number in own) / len(own) for own in samples]
    squares = [sum((cycles[number] - mean) ** 2 for number in own) for own, mean in zip(samples, means, strict=True)]
    freedom = sum(len(own) - 1 for own in samples)
    # Of all kinds together, relative to the means.
    usual = sum(square / max(1.0, mean) ** 2 for square, mean in zip(squares, means, strict=True)) / max(1, freedom)
    variance = few_variance = 0.0
    scales = []
    for own, count, mean, square in zip(samples, plan.counts, means, squares, strict=True):
        n = len(own)
        deviation = (square + _PRIOR_SAMPLES * usual * mean**2) / (n - 1 + _PRIOR_SAMPLES)
        if n < _FEW:
            few_variance += count * (count - n) * deviation / n
        else:
            variance += count * (count - n) * deviation / n
        # Of a residual in the sum over all periods.
        scales.append(sqrt(count * (count - n) / n / (n - 1)) if n > 1 else 0.0)
    alone, sums = 0.0, [0.0]
    last = None
    for number, kind in sorted(plan.kinds.items()):
        if number - 1 != last:
            sums.append(0.0)
        last = number
        residual = (cycles[number] - means[kind]) * scales[kind]
        sums[-1] += residual
        alone += residual**2
    together = max(_LEAST_TOGETHER, sum(x**2 for x in sums) / alone) if alone else 1.0
    return sqrt(variance * together + few_variance)


def shift(plan: SamplingPlan, cycles: Mapping[int, float], before: Mapping[int, float]) -> tuple[float, float]:
    """Cycles that the total moved by because periods that both runs measured lasted longer than `before`.

    Also the standard error of that: each window says how much, and they differ.
    """
    seen = [0] * len(plan.counts)
    for number in before:
        if number in plan.kinds:
            seen[plan.kinds[number]] += 1
    windows: list[float] = []
    last = None
    for number, kind in sorted(plan.kinds.items()):
        if number not in before:
            continue
        if number - 1 != last:
            windows.append(0.0)
        last = number
        windows[-1] += (cycles[number] - before[number]) * plan.counts[kind] / seen[kind]
    n = len(windows)
    total = sum(windows)
    return total, sqrt(sum((x - total / n) ** 2 for x in windows) * n / (n - 1)) if n > 1 else abs(total)


def windows_for(plan: SamplingPlan, found: Error, error_cycles: float) -> int:
    """Windows that bring the error to this: it falls with the share that is measured, and is 0 if all is."""
    share = len(plan.kinds) / plan.count
    wanted = _SAFETY * (found.random_cycles / error_cycles) ** 2
    return ceil(plan.windows * wanted / (1 - share + share * wanted))
