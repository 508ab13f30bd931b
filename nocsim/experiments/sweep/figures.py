"""The figures of a point: schedule it, evaluate it analytically, simulate it."""

from __future__ import annotations

import json
import time
from typing import Any, Literal, TypedDict

from cosa.common.errors import CosaError
from cosa.mappers.registry import candidates, options_of
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from cosa.model.schedule import Schedule

Kind = Literal["INTEGER", "REAL", "TEXT"]

FIGURES: dict[str, Kind] = {
    "latency_cycles": "INTEGER",
    "simulated_cycles": "INTEGER",
    "extrapolated_share": "REAL",
    "analytical_cycles": "INTEGER",
    "timeloop_cycles": "INTEGER",
    "bound_cycles": "INTEGER",
    "bound_by": "TEXT",
    "compute_cycles": "INTEGER",
    "milliseconds": "REAL",
    "energy_pj": "REAL",
    "exact_energy_pj": "REAL",
    "edp_pj_cycles": "REAL",
    "dram_energy_pj": "REAL",
    "buffer_bytes": "INTEGER",
    "pes": "INTEGER",
    "mac_units": "INTEGER",
    "macs": "INTEGER",
    "mac_utilisation": "REAL",
    "dram_read_words": "INTEGER",
    "dram_write_words": "INTEGER",
    "network_words": "INTEGER",
    "dram_bytes": "INTEGER",
    "network_bytes": "INTEGER",
    "row_hit_rate": "REAL",
    "busiest_link_share": "REAL",
    "schedule_hash": "TEXT",
    "solver_status": "TEXT",
    "model": "TEXT",
    "seed": "INTEGER",
    "objective_value": "REAL",
    "bound": "REAL",
    "gap": "REAL",
    "evaluations": "INTEGER",
    "samples_drawn": "INTEGER",
    "samples_valid": "INTEGER",
    "stopped_by": "TEXT",
}
"""Every figure with its type in the file of results; `docs/reference/sweeps.md` says what each one is."""


class Outcome(TypedDict, total=False):
    """What became of a point: its figures, or an error; seconds of scheduling, evaluation and simulation.

    `schedule` is the schedule as JSON, without the architecture (which the file of results has) and times.
    """

    figures: dict[str, Any]
    schedule: str
    error_kind: str
    error: str
    seconds: float
    sources: str
    versions: dict[str, str]


def run_task(task: str) -> Outcome:
    """Run a point (`Point.task`); whatever goes wrong is an outcome, not an exception.

    Seconds are wall-clock time without the loading of compiled kernels, which happens once a process.
    """
    from nocsim.experiments.network_run import source_digest
    from nocsim.experiments.sweep.versions import versions

    started = time.perf_counter()
    loading, outcome = 0.0, Outcome()
    try:
        data = json.loads(task)
        layer, architecture = Layer.from_data(data["layer"]), Architecture.from_data(data["architecture"])
        schedule = candidates(layer, architecture, options_of(data["mapper"], data["options"]))[0]
        outcome["figures"], loading = _figures(schedule, data["simulate"], data["device"])
        outcome["schedule"] = schedule.model_dump_json(exclude={"architecture", "timing"})
    except CosaError as error:
        outcome["error_kind"], outcome["error"] = type(error).__name__, str(error)
    except MemoryError:
        outcome["error_kind"], outcome["error"] = "MemoryError", "out of memory"
    except Exception as error:
        outcome["error_kind"], outcome["error"] = type(error).__name__, str(error) or "no message"
    outcome["seconds"] = time.perf_counter() - started - loading
    outcome["sources"], outcome["versions"] = source_digest(), versions()
    return outcome


def load() -> None:
    """Import what every point needs."""
    from importlib import import_module

    for name in (
        "cosa.analytical.evaluation",
        "cosa.mappers.program_task",
        "nocsim.machine.accelerator",
        "nocsim.result.collect",
    ):
        import_module(name)


def _figures(schedule: Schedule, simulated: bool, device: dict[str, Any] | None) -> tuple[dict[str, Any], float]:
    """All figures, and the seconds in which kernels were loaded."""
    figures = _analytical(schedule)
    if not simulated:
        return figures, 0.0
    from nocsim.experiments.sweep.machines import simulate_with

    result = simulate_with(schedule, device)
    channels = result.dram.channels
    accesses = sum(channel.reads + channel.writes for channel in channels)
    energies = [channel.energy_pj.total for channel in channels if channel.energy_pj is not None]
    figures |= {
        "latency_cycles": result.cycles.total,
        "simulated_cycles": result.cycles.total,
        "extrapolated_share": result.extrapolation.extrapolated_share if result.extrapolation else 0.0,
        "analytical_cycles": result.cycles.analytical,
        "bound_cycles": result.cycles.bound,
        "bound_by": result.cycles.bound_by,
        "milliseconds": result.milliseconds,
        "edp_pj_cycles": figures["energy_pj"] * result.cycles.total,
        "dram_energy_pj": sum(energies) if len(energies) == len(channels) else None,
        "mac_utilisation": result.mac_utilisation,
        "dram_bytes": sum(channel.bytes for channel in channels),
        "network_bytes": sum(load.bytes for load in result.tensors.values()),
        "row_hit_rate": sum(channel.row_hits for channel in channels) / accesses if accesses else None,
        "busiest_link_share": max((link.busy_share for link in result.links), default=0.0),
    }
    return figures, result.timing.load_kernels_seconds if result.timing else 0.0


def _analytical(schedule: Schedule) -> dict[str, Any]:
    """What is known without simulating; figures of the machine are None where the architecture has no mesh."""
    from cosa.analytical.loads import bound
    from cosa.analytical.traffic import Traffic
    from cosa.api import evaluate
    from nocsim.experiments.sweep.size import on_chip_buffer_bytes

    architecture = schedule.architecture
    timeloop, exact = evaluate(schedule, "timeloop"), evaluate(schedule, "exact")
    figures: dict[str, Any] = dict.fromkeys(FIGURES)
    figures |= {
        "latency_cycles": exact.cycles,
        "analytical_cycles": exact.cycles,
        "timeloop_cycles": timeloop.cycles,
        "compute_cycles": exact.compute_cycles,
        "milliseconds": exact.cycles / (architecture.clock_ghz * 1e6),
        "energy_pj": timeloop.energy_pj,
        "exact_energy_pj": exact.energy_pj,
        "edp_pj_cycles": timeloop.energy_pj * exact.cycles,
        "buffer_bytes": on_chip_buffer_bytes(architecture),
        "mac_units": architecture.macs,
        "macs": schedule.layer.macs,
        "mac_utilisation": exact.utilisation,
        "schedule_hash": schedule.content_hash,
        "solver_status": schedule.provenance.solver_status,
        **schedule.provenance.made.model_dump(exclude={"mapper", "objective"}),
    }
    if (search := schedule.provenance.search) is not None:
        figures |= search.model_dump(include={"evaluations", "samples_drawn", "samples_valid", "stopped_by"})
    if architecture.noc is not None:
        traffic = Traffic(schedule.padded_layer, architecture, schedule.nest)
        machine = bound(traffic)
        figures |= {
            "bound_cycles": machine.cycles,
            "bound_by": machine.bound_by,
            "pes": architecture.noc.pes,
            "dram_read_words": traffic.dram_read_words,
            "dram_write_words": traffic.dram_write_words,
            "network_words": traffic.mesh_words,
        }
    return figures
