"""The pipeline: a point is scheduled and evaluated, and becomes a row; `nocsim.experiments.pipeline` simulates it, too.

Whole networks, comparisons, sweeps and the paper's tables are lists of points with a view each. Any number of workers
gives the same outcomes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from cosa.common import errors
from cosa.common.errors import CosaError
from cosa.common.pool import Pool, completed, opened
from cosa.common.result_cache import content_key, read_cached, source_digest, write_cached
from cosa.common.version import version
from cosa.experiments.figures import ANALYTICAL, Figures, Row, by_name, on_chip_buffer_bytes
from cosa.mappers.registry import MapperOptions, Run, candidates
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from cosa.model.schedule import Schedule

if TYPE_CHECKING:
    from cosa.analytical.evaluation import Evaluation
    from cosa.analytical.loads import Bound
    from cosa.analytical.traffic import Traffic

LIBRARIES = ("highspy", "numba", "numpy")
"""What computes besides this package; `highspy` has the version of HiGHS."""


class Outcome(TypedDict, total=False):
    """What became of a point as plain data: its figures and schedule, or an error.

    `schedule`: without the architecture, which the point has. `repeatable`: the same run would give the same.
    `sources`, `versions`: of what made it.
    """

    figures: Row
    schedule: dict[str, Any]
    repeatable: bool
    error_kind: str
    error: str
    exit_code: int
    sources: str
    versions: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Point:
    """What is scheduled and evaluated.

    Attributes
    ----------
    options: of the mapper; None where the `schedule` is given
    keep_interrupted: Ctrl-C ends a search with the best so far
    """

    layer: Layer
    architecture: Architecture
    options: MapperOptions | None = None
    schedule: Schedule | None = None
    keep_interrupted: bool = False
    workers: int = 1

    packages: ClassVar[tuple[str, ...]] = ("cosa",)
    """Those whose sources can change the outcome."""

    @property
    def limit(self) -> float | None:
        """Seconds that may cut it off without being part of its `inputs`: what ends before is the same without."""
        return None

    def run(self) -> Outcome:
        """Through all stages."""
        return run(Trial(self), STAGES, FIGURES)

    def inputs(self) -> dict[str, Any]:
        """All that can change the outcome, as plain data; the layer's own name cannot."""
        return {
            "layer": self.layer.model_dump(mode="json", exclude={"name", "notes"}),
            "architecture": self.architecture.content_hash,
            "mapper": self.options and self.options.mapper,
            "options": self.options and self.options.given(),
            "schedule": self.schedule and self.schedule.content_hash,
            "version": version(),
            "sources": source_digest(self.packages),
            "versions": versions(),
        }

    def schedule_of(self, outcome: Outcome) -> Schedule:
        """The schedule of this point's outcome, with its own names."""
        own = {"layer": self.layer, "architecture": self.architecture}
        names = {"architecture_name": self.architecture.name}
        found = {name: model.model_dump(mode="json") for name, model in own.items()}
        return Schedule.from_data(outcome["schedule"] | found | names, source="a kept result")


@dataclass
class Trial:
    """A point on its way, with what each stage has found."""

    point: Any
    found: list[Schedule] = field(default_factory=list)
    timeloop: Evaluation | None = None
    exact: Any = None
    traffic: Traffic | None = None
    bound: Bound | None = None
    latency_cycles: int = 0
    interrupted: bool = False
    repeatable: bool = True
    seconds: float = 0.0
    loading_seconds: float = 0.0
    schedule_seconds: float | None = None
    schedule_cpu_seconds: float | None = None

    @property
    def schedule(self) -> Schedule:
        """The best found."""
        return self.found[0]

    @property
    def buffer_bytes(self) -> int:
        """On the chip."""
        return on_chip_buffer_bytes(self.schedule.architecture)


Stage = Callable[[Any], None]


def schedule(trial: Trial) -> None:
    """Let the mapper work, or take the schedule that is given."""
    point: Point = trial.point
    if point.schedule is not None:
        trial.found = [point.schedule]
        return
    assert point.options is not None
    wall, processor = time.perf_counter(), time.process_time()
    how = Run(point.workers, most=getattr(point, "candidates", 1), keep_interrupted=point.keep_interrupted)
    trial.found = candidates(point.layer, point.architecture, point.options, how)
    trial.schedule_seconds = time.perf_counter() - wall
    trial.schedule_cpu_seconds = time.process_time() - processor
    trial.interrupted = trial.schedule.provenance.interrupted


def evaluate(trial: Trial) -> None:
    """Count analytically, in both conventions, and what the mesh must carry, where there is one.

    Tiles that are cut are known to the convention exact only.
    """
    from cosa.analytical.loads import bound
    from cosa.analytical.traffic import Traffic
    from cosa.api import evaluate as evaluated

    found = trial.schedule
    trial.exact = evaluated(found, "exact")
    trial.latency_cycles = trial.exact.cycles
    if found.remainders:
        return
    trial.timeloop = evaluated(found, "timeloop")
    if found.architecture.noc is not None:
        trial.traffic = Traffic(found.padded_layer, found.architecture, found.nest)
        trial.bound = bound(trial.traffic)


STAGES: tuple[Stage, ...] = (schedule, evaluate)
FIGURES = by_name(ANALYTICAL)


def run(trial: Trial, stages: Sequence[Stage], figures: Figures) -> Outcome:
    """A point through its stages; an error of the point is an outcome, not an exception."""
    started = time.perf_counter()
    outcome = Outcome(sources=source_digest(trial.point.packages), versions=versions())
    try:
        for stage in stages:
            stage(trial)
    except CosaError as error:
        return outcome | failure(error)
    except MemoryError:
        return outcome | failure(MemoryError("out of memory"))
    trial.seconds = time.perf_counter() - started - trial.loading_seconds
    outcome["figures"] = {name: figure.of(trial) for name, figure in figures.items()}
    outcome["schedule"] = trial.schedule.model_dump(mode="json", exclude={"architecture"})
    outcome["repeatable"] = trial.repeatable and trial.schedule.provenance.repeatable
    return outcome


def failure(error: Exception) -> Outcome:
    """An error as an outcome."""
    code = error.exit_code if isinstance(error, CosaError) else 1
    return Outcome(error_kind=type(error).__name__, error=str(error) or "no message", exit_code=code)


def require_done(outcome: Outcome, where: str = "") -> None:
    """The error of a point that failed, with where it was in front of the message."""
    if "error" in outcome:
        kind: type[CosaError] = getattr(errors, outcome["error_kind"], CosaError)
        error = kind(where + outcome["error"])
        error.exit_code = outcome["exit_code"]
        raise error


def run_point(point: Point) -> Outcome:
    """What a pool calls."""
    return point.run()


def run_points(
    points: Sequence[Point],
    *,
    workers: int = 1,
    pool: Pool | None = None,
    cache: Path | None = None,
    keep_all: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[tuple[int, Outcome]]:
    """Outcomes of points with their numbers, as they are there; what is kept comes first.

    With one worker points run in this process, one after another. Otherwise those with most MACs come first, so that no
    long one is left to the end. Ctrl-C, or leaving the iterator, ends the workers at once.

    Parameters
    ----------
    workers: processes at a time, or a `pool` that is open.
    cache: folder of earlier results, or None for none. Kept is what the same run would give again, with `keep_all`
        also what time cut off, for the same limit, and that a point failed.
    progress: called with (points done, points in all).
    """
    keys = [_keys(point) for point in points] if cache else []
    missing, done = [], 0
    if progress:
        progress(0, len(points))

    def ended(number: int, outcome: Outcome) -> tuple[int, Outcome]:
        nonlocal done
        done += 1
        if progress:
            progress(done, len(points))
        return number, outcome

    for number in range(len(points)):
        known = next(filter(None, (read_cached(cache, key) for key in keys[number])), None) if cache else None
        if known is None:
            missing.append(number)
        else:
            yield ended(number, Outcome(**known))  # type: ignore[typeddict-item]
    if not missing:
        return
    with ExitStack() as stack:
        if pool is None:
            pool = stack.enter_context(opened(min(workers, len(missing))))
        order = sorted(missing, key=lambda number: -points[number].layer.macs) if workers > 1 else missing
        for task in completed(pool, ((number, run_point, (points[number],)) for number in order)):
            outcome: Outcome = task.result()
            if cache and (keep_all or outcome.get("repeatable")):
                write_cached(cache, keys[task.key][0 if outcome.get("repeatable") else 1], dict(outcome))
            yield ended(task.key, outcome)


def rows_of(points: Sequence[Point], **how: Any) -> list[Row]:
    """Figures of points in their order, run as `run_points` says; the error of one that failed is raised."""
    found: dict[int, Row] = {}
    for number, outcome in run_points(points, **how):
        require_done(outcome, f"{points[number].layer.name}: ")
        found[number] = outcome["figures"]
    return [found[number] for number in range(len(points))]


def point_key(point: Point) -> str:
    """Hash of all that can change a point's outcome."""
    return content_key(point.inputs())


def _keys(point: Point) -> tuple[str, str]:
    """Of a point's outcome, and of what time cut off."""
    key = point_key(point)
    return key, content_key([key, point.limit])


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Of Python (without the patch, which changes no figure) and of `LIBRARIES`, by name."""
    import platform
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in LIBRARIES:
        try:
            found[name] = installed(name)
        except PackageNotFoundError:  # put there without being installed
            found[name] = "unknown"
    return found
