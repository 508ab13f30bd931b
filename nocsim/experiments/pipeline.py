"""The pipeline with the simulator: Point -> schedule -> choose -> evaluate -> simulate -> row.

`STAGES` is the order; each works on the `SimulatedTrial` that goes through. Figures are entries of `FIGURES`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar

from cosa.common.errors import InputError
from cosa.common.files import dump_yaml
from cosa.experiments.figures import (
    ANALYTICAL,
    Figure,
    agreed,
    by_name,
    count,
    mean_by,
    once,
    real,
    seconds,
    text,
    unknown,
)
from cosa.experiments.pipeline import Outcome, Point, Trial, evaluate, run, schedule
from cosa.mappers.registry import MapperOptions
from cosa.model.arch import Architecture
from cosa.model.schedule import Schedule
from nocsim.options import RunOptions

if TYPE_CHECKING:
    from nocsim.result.result import Result

Device = dict[str, Any]
"""A DRAM device as plain data."""


@dataclass(frozen=True, kw_only=True)
class SimulatedPoint(Point):
    """What is scheduled, evaluated and simulated.

    Attributes
    ----------
    simulation: how; None: not at all
    device: the DRAM device where that is a file: its content, since the file could change, and another host may not
        have it
    candidates: schedules of a search among which simulation chooses
    """

    simulation: RunOptions | None = field(default_factory=RunOptions)
    device: Device | None = None
    candidates: int = 1

    packages: ClassVar[tuple[str, ...]] = ("cosa", "dram", "nocsim", "arch_configs.dram")

    @property
    def limit(self) -> float | None:
        """Seconds of the simulation."""
        return self.simulation.time_limit_seconds if self.simulation else None

    def run(self) -> Outcome:
        """Through all stages."""
        return run(SimulatedTrial(self), STAGES, FIGURES)

    def inputs(self) -> dict[str, Any]:
        """All that can change the outcome, as plain data."""
        simulation = self.simulation and self.simulation.with_(time_limit_seconds=None).given()
        return super().inputs() | {
            "simulation": simulation,
            "device": self.device,
            "candidates": self.candidates,
        }


@dataclass
class SimulatedTrial(Trial):
    """A point on its way, simulation included. `result`: of one that came to its end."""

    result: Result | None = None
    ended: str | None = None
    reached_cycles: int = 0
    simulate_seconds: float | None = None
    simulations: int | None = None
    skipped: int | None = None

    def take(self, result: Result) -> None:
        """What a simulation has found."""
        self.ended, self.reached_cycles = result.ended, result.cycles.total
        self.interrupted |= result.ended == "interrupted"
        self.repeatable = result.ended in ("finished", "max_cycles")
        assert result.timing is not None
        self.loading_seconds += result.timing.load_kernels_seconds
        self.simulate_seconds = result.timing.simulate_seconds
        if result.ended == "finished":
            self.result, self.latency_cycles = result, result.cycles.total


def require_simulated(architecture: Architecture, options: Iterable[MapperOptions]) -> None:
    """InputError, before anything is solved, where schedules of mappers with these options can't be simulated."""
    architecture.require_noc()
    architecture.require_dram()
    for one in options:
        if getattr(one, "remainders", False):
            message = "smaller last tiles are not simulated"
            raise InputError(message, path="remainders", value=True, allowed="false")


def choose(trial: SimulatedTrial) -> None:
    """The best of several candidates by simulation."""
    from nocsim.experiments.simulated_search import simulate_best

    point: SimulatedPoint = trial.point
    if point.candidates > 1:
        started = time.perf_counter()
        best = simulate_best(trial.found, point.simulation)
        trial.schedule_seconds = (trial.schedule_seconds or 0.0) + time.perf_counter() - started
        trial.found, trial.result = [best.schedule], best.result
        trial.simulations, trial.skipped = best.simulations, best.skipped
        trial.interrupted |= best.interrupted


def simulate(trial: SimulatedTrial) -> None:
    """Run the schedule on the machine, unless its bound says that it will be given up, or `choose` has run it."""
    from nocsim.api import simulate as simulated
    from nocsim.experiments.simulated_search import excluded, machine_bound

    point: SimulatedPoint = trial.point
    if point.simulation is None:
        return
    with _with_device(trial.schedule, point.device) as found:
        trial.bound = machine_bound(found)
        if trial.result is not None:
            trial.take(trial.result)
        elif point.candidates > 1 or excluded(trial.bound, point.simulation):
            trial.ended = "max_cycles"
        else:
            trial.take(simulated(found, point.simulation, keep_interrupted=point.keep_interrupted))


STAGES: tuple[Callable[[Any], None], ...] = (schedule, choose, evaluate, simulate)


@contextmanager
def _with_device(found: Schedule, device: Device | None) -> Iterator[Schedule]:
    """The schedule on its architecture with a DRAM device that is given as data."""
    if device is None:
        yield found
        return
    with TemporaryDirectory(prefix="cosa-") as folder:
        file = Path(folder) / "device.yaml"
        file.write_text(dump_yaml(device), encoding="utf-8")
        yield found.with_architecture(with_device(found.architecture, str(file)))


def with_device(architecture: Architecture, device: str) -> Architecture:
    """The architecture with another DRAM device."""
    return architecture.with_(dram={"device": device})


def _result(of: Callable[[Result], Any]) -> Callable[[SimulatedTrial], Any]:
    """A figure of a simulation that came to its end."""
    return lambda trial: None if trial.result is None else of(trial.result)


def _at_least(trial: SimulatedTrial) -> int | None:
    if trial.ended is None or trial.bound is None:
        return None
    return trial.latency_cycles if trial.result else max(trial.reached_cycles, trial.bound.cycles)


def _share(name: str) -> Callable[[SimulatedTrial], float | None]:
    return _result(lambda result: getattr(result.extrapolation, name) if result.extrapolation else 0.0)


def _dram_energy(result: Result) -> float | None:
    energies = [channel.energy_pj.total for channel in result.dram.channels if channel.energy_pj is not None]
    return sum(energies) if len(energies) == len(result.dram.channels) else None


def _dram_bytes(result: Result) -> int:
    return sum(channel.bytes for channel in result.dram.channels)


def _network_bytes(result: Result) -> int:
    return sum(load.bytes for load in result.tensors.values())


def _row_hits(result: Result) -> float | None:
    channels = result.dram.channels
    accesses = sum(channel.reads + channel.writes for channel in channels)
    return sum(channel.row_hits for channel in channels) / accesses if accesses else None


def _busiest(result: Result) -> float:
    return max((link.busy_share for link in result.links), default=0.0)


def _computing(result: Result) -> float:
    return sum(pe.computing for pe in result.pes) / len(result.pes) / result.cycles.total


_EXTRAPOLATED = "of `simulated_cycles`, what stands for steps of a long schedule that were not simulated; 0 if exact"
_DRAM_ENERGY = "simulated DRAM, from data sheet currents; not part of the others"
_OF_BURSTS = mean_by("dram_bytes")
"""Accesses, each of a burst."""
_OF_CYCLES = mean_by("simulated_cycles")
_ONLY: dict[str, Any] = {"simulated": True}

SIMULATED: tuple[Figure, ...] = (
    count("simulated_cycles", "result.cycles.total", "of the simulator", **_ONLY),
    count("at_least_cycles", _at_least, "`simulated_cycles`, or what they are not below if given up", **_ONLY),
    real("extrapolated_share", _share("extrapolated_share"), _EXTRAPOLATED, "share", _OF_CYCLES, **_ONLY),
    real(
        "margin_share",
        _share("margin_share"),
        "estimated margin of such cycles; 0 if exact",
        "share",
        _OF_CYCLES,
        **_ONLY,
    ),
    text("ended", "ended", "how the simulation ended", total=agreed, **_ONLY),
    real("dram_energy_pj", _result(_dram_energy), _DRAM_ENERGY, "pJ", scale=1e6, **_ONLY),
    count("dram_bytes", _result(_dram_bytes), "whole bursts", **_ONLY),
    count("network_bytes", _result(_network_bytes), "payload sent", **_ONLY),
    real("row_hit_rate", _result(_row_hits), "of DRAM accesses", "share", _OF_BURSTS, more_is_better=True, **_ONLY),
    real("busiest_link_share", _result(_busiest), "of cycles in which it carried a flit", "share", unknown, **_ONLY),
    real("pe_computing_share", _result(_computing), "of cycles in which a PE computes", "share", _OF_CYCLES, **_ONLY),
    count("simulations", "simulations", "of candidates", once, **_ONLY),
    count("simulations_skipped", "skipped", "candidates whose bound is no better than the best", once, **_ONLY),
    seconds("simulate_seconds", "simulate_seconds", "wall time of the simulator", **_ONLY),
)

FIGURES = by_name((*ANALYTICAL, *SIMULATED))
