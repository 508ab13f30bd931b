"""Choosing among schedules by simulation: the bound of the machine says which are not worth one."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

from cosa.analytical.loads import bound
from cosa.analytical.traffic import Traffic
from cosa.model.schedule import Schedule

WAVE = 4
"""Simulations that know the same best so far, on any number of workers: so the result does not depend on them."""


@dataclass(frozen=True)
class Simulated:
    """Cycles of a simulation that came to its end, and the share of them that was extrapolated (0: exact)."""

    cycles: int
    extrapolated_share: float = 0.0


@dataclass(frozen=True)
class SimulatedBest:
    """The schedule with the fewest simulated cycles, earlier ones first among equals, and what that took.

    `simulated`: None if a limit ended every simulation; the schedule is then the one with the lowest bound.
    `skipped`: candidates whose bound is no better than the best, or above the limit; `cut_off`: simulations ended when
    they could not become better; `interrupted`: Ctrl-C came, and this is the best until then.
    """

    schedule: Schedule
    simulated: Simulated | None
    simulations: int
    skipped: int
    cut_off: int
    interrupted: bool = False

    @property
    def cycles(self) -> int | None:
        """Its simulated cycles."""
        return self.simulated.cycles if self.simulated else None


def machine_bound(schedule: Schedule) -> int:
    """Cycles that no simulation of a schedule is below: compute, ports, links, DRAM data.

    Raises
    ------
    InputError: the architecture can't be simulated.
    """
    from nocsim.machine.dram_setup import dram_config, dram_data

    architecture = schedule.architecture
    dram = dram_data(architecture, dram_config(architecture))
    return bound(Traffic(schedule.padded_layer, architecture, schedule.nest), dram).cycles


@dataclass(frozen=True)
class Limit:
    """When a simulation is given up: cycles (the same on any machine) and seconds; whether all steps are simulated."""

    max_cycles: int | None = None
    seconds: float | None = None
    exact: bool = False

    def excludes(self, cycles: int) -> bool:
        """Whether a simulation that takes at least so many cycles would be given up."""
        return self.max_cycles is not None and cycles > self.max_cycles


def simulated(task: tuple[str, Limit]) -> Simulated | None:
    """What a schedule (its JSON) takes; None if a limit ended the simulation."""
    from nocsim.api import simulate

    text, limit = task
    schedule = Schedule.model_validate_json(text)
    result = simulate(schedule, max_cycles=limit.max_cycles, time_limit_seconds=limit.seconds, exact=limit.exact)
    if result.ended != "finished":
        return None
    part = result.extrapolation
    return Simulated(result.cycles.total, part.extrapolated_share if part else 0.0)


def simulate_all(
    schedules: Sequence[Schedule], pool: ProcessPoolExecutor | None, limit: Limit
) -> list[Simulated | None]:
    """What schedules take by simulation; None where a limit ended it."""
    tasks = [(schedule.model_dump_json(), limit) for schedule in schedules]
    return list(map(simulated, tasks) if pool is None else pool.map(simulated, tasks))


def simulate_best(
    schedules: Sequence[Schedule], pool: ProcessPoolExecutor | None = None, limit: Limit | None = None
) -> SimulatedBest:
    """The best of candidates by simulation, those with the lowest bound first.

    Raises
    ------
    InputError: the architecture can't be simulated.
    KeyboardInterrupt: Ctrl-C came before the first simulation had ended.
    """
    limit = limit or Limit()
    bounds = [machine_bound(schedule) for schedule in schedules]
    left = sorted(range(len(schedules)), key=lambda number: (bounds[number], number))
    lowest = left[0]
    best: tuple[Simulated, int] | None = None
    simulations = skipped = cut_off = 0
    interrupted = False
    try:
        while left:
            wave: list[int] = []
            while left and len(wave) < (WAVE if best else 1):
                number = left.pop(0)
                if limit.excludes(bounds[number]) or (best and bounds[number] >= best[0].cycles):
                    skipped += 1
                else:
                    wave.append(number)
            most = [cycles for cycles in (limit.max_cycles, best[0].cycles - 1 if best else None) if cycles is not None]
            wanted = replace(limit, max_cycles=min(most, default=None))
            found = simulate_all([schedules[number] for number in wave], pool, wanted)
            simulations += len(wave)
            cut_off += found.count(None)
            ends = [(one, number) for one, number in zip(found, wave, strict=True) if one is not None]
            best = min([*ends, *([best] if best else [])], key=lambda end: (end[0].cycles, end[1]), default=best)
    except KeyboardInterrupt:
        if best is None:
            raise
        interrupted = True
    found_best, number = best or (None, lowest)
    return SimulatedBest(schedules[number], found_best, simulations, skipped, cut_off, interrupted)
