"""The Python API: one call from a schedule to what its machine does with every cycle."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosa.api import find_architecture
from cosa.model.arch import Architecture
from cosa.model.schedule import Schedule
from nocsim.machine.limits import Limits, Progress
from nocsim.options import RunOptions

if TYPE_CHECKING:
    from nocsim.machine.accelerator import Parts
    from nocsim.result.result import Result


def simulate(
    schedule: Schedule | Mapping[str, Any] | str | Path,
    options: RunOptions | None = None,
    *,
    architecture: Architecture | Mapping[str, Any] | str | Path | None = None,
    mesh: str | None = None,
    parts: Parts | None = None,
    keep_interrupted: bool = False,
    progress: Progress | None = None,
    **given: Any,
) -> Result:
    """Simulate a schedule cycle by cycle.

    Parameters
    ----------
    schedule: a schedule, its fields, or the path of its file.
    options: how it is run; or by name, as `given`: `placement`, another `machine.placement`; `ideal_network`,
        `ideal_memory`, unlimited bandwidth and zero latency in place of the mesh or the DRAM (usually faster, but
        everything else then meets in another order, which may be a worse one: docs/concepts.md, "Ideal parts");
        `max_cycles`, `time_limit_seconds`, which end the run early: the result then says so in `ended` and is partial;
        `exact`, simulate every step. Else a schedule with very many steps is simulated in part, and its cycles are
        extrapolated (see `nocsim.machine.sampling`); `Result.method` says so. A run with `max_cycles` is always exact.
    architecture: another architecture than the one embedded in the schedule (model, fields, packaged name, or
        file).
    mesh: another mesh of PEs, ``"columns x rows"`` as in ``"4x4"``.
    parts: classes to build the machine from (see `nocsim.machine.accelerator.Parts`).
    keep_interrupted: Ctrl-C gives a partial result as well instead of a KeyboardInterrupt.
    progress: called now and then with the share of steps computed and the cycle.

    Raises
    ------
    InputError: a file, field or option is wrong, or the architecture has other levels than the schedule.
    InfeasibleError: the schedule does not fit; the message says which spatial loops or tiles need what.
    SimulationError: the machine deadlocks.

    Examples
    --------
    >>> import cosa, nocsim
    >>> result = nocsim.simulate(cosa.schedule("resnet50:3356"), mesh="4x4")
    >>> result.cycles.total > result.cycles.analytical > result.cycles.compute_only
    True
    """
    from nocsim.machine.extrapolate import Simulated, run
    from nocsim.result.collect import collect
    from nocsim.result.result import RunTiming

    started = time.perf_counter()
    how = (options or RunOptions()).with_(**given) if given else options or RunOptions()
    found = resolve(schedule, architecture, mesh, how.placement)
    limits = Limits(how.max_cycles, how.time_limit_seconds, keep_interrupted)
    machine = Simulated(found, how.ideal_network, how.ideal_memory, parts)
    done = run(machine, limits, progress, exact=how.exact or how.max_cycles is not None)
    timing = RunTiming(
        load_kernels_seconds=done.loading_seconds,
        simulate_seconds=done.simulate_seconds,
        total_seconds=time.perf_counter() - started,
    )
    return collect(done.accelerator, timing, done.runs, done.error)


def resolve(
    schedule: Schedule | Mapping[str, Any] | str | Path,
    architecture: Architecture | Mapping[str, Any] | str | Path | None = None,
    mesh: str | None = None,
    placement: str | None = None,
) -> Schedule:
    """A schedule on the architecture that it is to run on: its own, another one, either with another mesh or placement.

    Raises
    ------
    InputError: a file or field is wrong, or the architecture has other levels than the schedule.
    """
    found = Schedule.from_argument(schedule)
    if architecture is not None:
        found = found.with_architecture(find_architecture(architecture))
    if mesh is not None:
        found = found.with_architecture(found.architecture.with_mesh(mesh))
    if placement is not None:
        found = found.with_architecture(found.architecture.with_placement(placement))
    return found
