"""Runs a schedule: all of it, or, if it is long, as many of its periods as an accurate total needs."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from math import inf

from cosa.model.schedule import Schedule
from nocsim.machine.accelerator import Accelerator, Parts
from nocsim.machine.dram_setup import dram_data
from nocsim.machine.limits import Limits, Progress
from nocsim.machine.sampling import STEPS_AT_ONCE, Sampler, SamplingPlan
from nocsim.result.accounts import accounts, cycles_of, machine_bound
from nocsim.result.estimate import MARGIN, Error, shift, standard_error, windows_for

MARGIN_SHARE = 0.005
"""The largest margin with which a total is extrapolated."""

_MOST_RUNS = 8


@dataclass(frozen=True)
class Simulated:
    """What is simulated (see `nocsim.simulate`)."""

    schedule: Schedule
    ideal_network: bool = False
    ideal_memory: bool = False
    parts: Parts | None = None

    def build(self, plan: SamplingPlan | None) -> Accelerator:
        """A fresh accelerator."""
        return Accelerator(
            self.schedule,
            ideal_network=self.ideal_network,
            ideal_memory=self.ideal_memory,
            parts=self.parts,
            plan=plan,
        )


@dataclass(frozen=True)
class SimulatedRun:
    """An accelerator that has run, after how many simulations and wall-clock seconds.

    `error` is that of an extrapolated total; None if all was simulated, or if the run was ended early.
    """

    accelerator: Accelerator
    runs: int
    loading_seconds: float
    simulate_seconds: float
    error: Error | None


def run(
    machine: Simulated, limits: Limits, progress: Progress | None, *, exact: bool, steps_at_once: int = STEPS_AT_ONCE
) -> SimulatedRun:
    """Simulate; with `exact` every step, else windows of a schedule with more than `steps_at_once` steps of PEs.

    Raises
    ------
    SimulationError: the machine deadlocks.
    """
    accelerator = machine.build(None)
    loading = accelerator.load_kernels()
    started = time.perf_counter()
    rounds = None
    if not exact and accelerator.traffic.steps * len(accelerator.pes) > steps_at_once:
        rounds = _Rounds(sampler_of(accelerator))
    runs, error = 0, None
    while True:
        if rounds is not None and rounds.plan is not None:
            accelerator = machine.build(rounds.plan)
        elif runs:
            accelerator = machine.build(None)
        left = limits.time_limit_seconds
        if left is not None:
            left = max(0.0, left - (time.perf_counter() - started))
        accelerator.run(replace(limits, time_limit_seconds=left), progress)
        runs += 1
        if rounds is None or accelerator.plan is None or accelerator.ended != "finished":
            break
        error = rounds.add(accelerator)
        if error is not None:
            break
    return SimulatedRun(accelerator, runs, loading, time.perf_counter() - started, error)


def sampler_of(accelerator: Accelerator) -> Sampler:
    """What makes the plans for a schedule."""
    memory_bytes_per_cycle = inf
    if accelerator.channels:
        dram = dram_data(accelerator.architecture, accelerator.dram_config)
        memory_bytes_per_cycle = float(dram.access_bytes * dram.channels / dram.cycles_per_access)
    return Sampler(accelerator.traffic, machine_bound(accelerator).cycles, memory_bytes_per_cycle)


class _Rounds:
    """Runs of one schedule, each of a better plan, until the total is sure. `plan` is the next; None: all of it."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self.plan = sampler.plan()
        self._before: dict[int, float] = {}
        self._shift: tuple[float | None, float] = None, 0.0
        self._runs = 0
        self._doubled = False

    def add(self, accelerator: Accelerator) -> Error | None:
        """Take what has run: its error if that is small enough, else None, and `plan` is the next."""
        plan = self.plan
        assert plan is not None
        self._runs += 1
        cycles = cycles_of(accelerator)
        if self._doubled:
            self._shift = shift(plan, cycles, self._before)
        self._before = cycles
        found = Error(standard_error(plan, cycles), *self._shift)
        total, _ = accounts(accelerator)
        allowed = total * MARGIN_SHARE / MARGIN
        if found.shift_cycles is not None and found.cycles <= allowed:
            return found
        windows = windows_for(plan, found, allowed)
        shifted = found.shift_cycles is None or abs(found.shift_cycles) > allowed / 2
        self._doubled = shifted or windows <= plan.windows
        settling = plan.settling * (2 if self._doubled else 1)
        self.plan = self._sampler.refined(plan, windows, settling) if self._runs < _MOST_RUNS else None
        return None
