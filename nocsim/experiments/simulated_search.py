"""Choosing among schedules by simulation: the bound of the machine says which are not worth one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cosa.analytical.loads import Bound, bound
from cosa.analytical.traffic import Traffic
from cosa.model.schedule import Schedule
from nocsim.options import RunOptions

if TYPE_CHECKING:
    from nocsim.result.result import Result


@dataclass(frozen=True)
class SimulatedBest:
    """The schedule with the fewest simulated cycles, earlier ones first among equals, and what that took.

    `result`: None if a limit ended every simulation; the schedule is then the one with the lowest bound.
    `skipped`: candidates whose bound is no better than the best, or above the limit; `cut_off`: simulations ended when
    they could not become better; `interrupted`: Ctrl-C came, and this is the best until then.
    """

    schedule: Schedule
    result: Result | None
    simulations: int
    skipped: int
    cut_off: int
    interrupted: bool = False

    @property
    def cycles(self) -> int | None:
        """Its simulated cycles."""
        return self.result.cycles.total if self.result else None


def machine_bound(schedule: Schedule) -> Bound:
    """Cycles that no simulation of a schedule is below: compute, ports, links, DRAM data.

    Raises
    ------
    InputError: the architecture can't be simulated.
    """
    from nocsim.machine.dram_setup import dram_config, dram_data

    architecture = schedule.architecture
    dram = dram_data(architecture, dram_config(architecture))
    return bound(Traffic(schedule.padded_layer, architecture, schedule.nest), dram)


def excluded(found: Bound, options: RunOptions) -> bool:
    """Whether a simulation with that bound would be given up."""
    return options.max_cycles is not None and found.cycles > options.max_cycles


def simulate_best(schedules: Sequence[Schedule], options: RunOptions | None = None) -> SimulatedBest:
    """The best of candidates by simulation, those with the lowest bound first.

    Raises
    ------
    InputError: the architecture can't be simulated.
    KeyboardInterrupt: Ctrl-C came before the first simulation had ended.
    """
    from nocsim.api import simulate

    options = options or RunOptions()
    bounds = [machine_bound(schedule) for schedule in schedules]
    order = sorted(range(len(schedules)), key=lambda number: (bounds[number].cycles, number))
    best: tuple[int, int, Result] | None = None
    simulations = skipped = cut_off = 0
    interrupted = False
    try:
        for number in order:
            if excluded(bounds[number], options) or (best and bounds[number].cycles >= best[0]):
                skipped += 1
                continue
            most = [cycles for cycles in (options.max_cycles, best and best[0]) if cycles is not None]
            result = simulate(schedules[number], options, max_cycles=min(most, default=None))
            simulations += 1
            if result.ended != "finished":
                cut_off += 1
            elif best is None or (result.cycles.total, number) < best[:2]:
                best = result.cycles.total, number, result
    except KeyboardInterrupt:
        if best is None:
            raise
        interrupted = True
    number = best[1] if best else order[0]
    return SimulatedBest(schedules[number], best and best[2], simulations, skipped, cut_off, interrupted)
