"""Runs a schedule: all of it, or, if it is long, as many of its periods as an accurate total needs."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from math import ceil

from cosa.schedule import Schedule
from nocsim.accelerator import Accelerator, Parts
from nocsim.accounts import accounts, machine_bound, spread_of
from nocsim.limits import Limits, Progress
from nocsim.sampling import STEPS_AT_ONCE, Plan, Sampler, samples_for

STANDARD_ERROR_SHARE = 0.0015
"""Wanted of the total: a third of the 0.5 % that an extrapolated total may be off."""

_MOST_RUNS = 4


@dataclass(frozen=True)
class Machine:
    """What is simulated (see `nocsim.simulate`)."""

    schedule: Schedule
    ideal_network: bool = False
    ideal_memory: bool = False
    parts: Parts | None = None

    def build(self, plan: Plan | None) -> Accelerator:
        """A fresh accelerator."""
        return Accelerator(
            self.schedule,
            ideal_network=self.ideal_network,
            ideal_memory=self.ideal_memory,
            parts=self.parts,
            plan=plan,
        )


@dataclass(frozen=True)
class Run:
    """An accelerator that has run, after how many simulations and wall-clock seconds."""

    accelerator: Accelerator
    runs: int
    loading_seconds: float
    simulate_seconds: float


def run(
    machine: Machine,
    limits: Limits,
    progress: Progress | None,
    *,
    exact: bool,
    steps_at_once: int = STEPS_AT_ONCE,
    standard_error_share: float = STANDARD_ERROR_SHARE,
) -> Run:
    """Simulate; with `exact` every step, else periods of a schedule with more than `steps_at_once` steps of PEs.

    Raises
    ------
    SimulationError: the machine deadlocks.
    """
    accelerator = machine.build(None)
    loading = accelerator.load_kernels()
    started = time.perf_counter()
    sampler, plan = None, None
    if not exact and accelerator.traffic.steps * len(accelerator.pes) > steps_at_once:
        refresh_cycles = 0
        if accelerator.channels:
            refresh_cycles = ceil(accelerator.dram_config.timing.tREFI / accelerator.clocks_per_core_cycle)
        sampler = Sampler(accelerator.traffic, machine_bound(accelerator).cycles, refresh_cycles)
        plan = sampler.plan()
        sampler = sampler if plan is not None else None
    runs = 0
    while True:
        if plan is not None:
            accelerator = machine.build(plan)
        left = limits.time_limit_seconds
        if left is not None:
            left = max(0.0, left - (time.perf_counter() - started))
        accelerator.run(replace(limits, time_limit_seconds=left), progress)
        runs += 1
        if sampler is None or runs == _MOST_RUNS or _is_sure(accelerator, standard_error_share):
            return Run(accelerator, runs, loading, time.perf_counter() - started)
        plan = _refined(accelerator, sampler, standard_error_share)
        if plan is None:
            # So many periods would be needed that it is better to simulate all of them.
            accelerator = machine.build(None)


def _is_sure(accelerator: Accelerator, standard_error_share: float) -> bool:
    """Whether nothing is gained by more periods: all were simulated, or the run was ended, or they agree."""
    found = spread_of(accelerator)
    total, _ = accounts(accelerator)
    return found is None or found.standard_error_cycles <= total * standard_error_share


def _refined(accelerator: Accelerator, sampler: Sampler, standard_error_share: float) -> Plan | None:
    """A plan with as many periods as the spread of those simulated asks for."""
    plan, found = accelerator.plan, spread_of(accelerator)
    assert plan is not None and found is not None
    total, _ = accounts(accelerator)
    return sampler.refined(plan, samples_for(plan, found, total * standard_error_share))
