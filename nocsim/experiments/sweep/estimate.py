"""What a sweep would take, without running it (`nocsim sweep --dry-run`)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from cosa.common.pool import Processes
from cosa.experiments.pipeline import run_point
from cosa.model.layer import TENSORS, Layer
from nocsim.experiments.sweep.points import SweepPoint
from nocsim.experiments.sweep.spec import SweepCounts
from nocsim.experiments.sweep.store import Store

_PLACES = (1 / 2, 5 / 6, 1 / 6)
"""Which points of a kind are timed, all ordered by size: the middle one first."""
_TRIES = 3
_BUDGET_SECONDS = 60.0
_WARM_SECONDS = 5.0
"""A first point that is quicker than this is run again: loading kernels may have been most of it."""


@dataclass(frozen=True)
class Estimate:
    """Points by what the file of results says of them, and the time that the others will take.

    Attributes
    ----------
    seconds: of all points left together, one after the other; None if it is not known
    at_least: it is a lower bound: points were still under way when the time for this was up
    basis: what that is taken from
    """

    counts: SweepCounts
    seconds: float | None
    basis: str
    at_least: bool = False


@dataclass
class _Kind:
    """Points of one mapper with the same options; their time is taken to grow as their tensors do.

    `measured` are sizes and seconds.
    """

    mapper: str
    left: list[SweepPoint] = field(default_factory=list)
    measured: list[tuple[float, float]] = field(default_factory=list)
    cut_off: bool = False

    @property
    def rate(self) -> float | None:
        """Seconds a word of the tensors."""
        if not self.measured:
            return None
        return sum(seconds for _, seconds in self.measured) / sum(words for words, _ in self.measured)


def estimate(
    points: list[SweepPoint],
    results: str | Path,
    *,
    retry_failed: bool = False,
    budget_seconds: float = _BUDGET_SECONDS,
) -> Estimate:
    """From the seconds of finished points; of mappers without any a few points are run for this, in `budget_seconds`.

    Nothing is written.
    """
    known: dict[str, tuple[str, float | None]] = {}
    if Path(results).exists():
        store = Store(results)
        try:
            known = store.known([point.inputs_hash for point in points], retry_failed=retry_failed)
        finally:
            store.close()
    statuses = [known.get(x.inputs_hash, ("pending" if x.architecture else "failed", None))[0] for x in points]
    done, failed, running = (statuses.count(name) for name in ("done", "failed", "running"))
    counts = SweepCounts(points=len(points), done=done, failed=failed, running=running)
    if not counts.left:
        return Estimate(counts, 0.0, "nothing is left")
    words = _Words()
    kinds: dict[tuple[str, str], _Kind] = {}
    for point, status in zip(points, statuses, strict=True):
        mapper = point.options.mapper
        kind = kinds.setdefault((mapper, point.options.text), _Kind(mapper))
        seconds = known.get(point.inputs_hash, ("", None))[1]
        if status == "done" and seconds is not None:
            kind.measured.append((words(point.layer), seconds))
        elif status in ("pending", "running"):
            kind.left.append(point)
    finished = sum(len(kind.measured) for kind in kinds.values())
    timed = _time_some([kind for kind in kinds.values() if kind.left and not kind.measured], words, budget_seconds)
    parts = [f"{finished} finished points"] if finished else []
    parts += [f"{timed} point{'s' if timed > 1 else ''} run for this"] if timed else []
    cut_off = any(kind.cut_off for kind in kinds.values())
    return Estimate(counts, _total(kinds.values(), words), " and ".join(parts) or "no finished point", cut_off)


class _Words:
    """Words of the three tensors of a layer, which the time of a point goes with best of what is known before."""

    def __init__(self) -> None:
        self._found: dict[Layer, float] = {}

    def __call__(self, layer: Layer) -> float:
        if layer not in self._found:
            self._found[layer] = float(sum(layer.tensor_words(tensor) for tensor in TENSORS))
        return self._found[layer]


def _total(kinds: Iterable[_Kind], words: _Words) -> float | None:
    """Seconds of all points left. Kinds that were not timed take as long as others of their mapper, or as all."""
    kinds = list(kinds)
    known = [(kind.mapper, kind.rate) for kind in kinds]
    total = 0.0
    for kind in kinds:
        rate = kind.rate
        if rate is None:
            same = [found for mapper, found in known if found is not None and mapper == kind.mapper]
            others = same or [found for _, found in known if found is not None]
            if not others:
                return None
            rate = fmean(others)
        total += rate * sum(words(point.layer) for point in kind.left)
    return total


def _time_some(kinds: Sequence[_Kind], words: _Words, budget_seconds: float) -> int:
    """Time points of every kind, of each one of middle size first; how many were timed."""
    timed = 0
    with _Stopwatch() as stopwatch:
        until = time.monotonic() + budget_seconds
        for place in _PLACES:
            for number, kind in enumerate(kinds):
                share = (until - time.monotonic()) / (len(kinds) - number)
                if kind.cut_off or share <= 0 or (place != _PLACES[0] and len(kind.left) < len(_PLACES)):
                    continue
                points = sorted(kind.left, key=lambda point: words(point.layer))
                at = int(place * len(points))
                for point in points[at : at + _TRIES]:
                    found = stopwatch.seconds(point, share)
                    if found is None:
                        continue
                    seconds, kind.cut_off = found
                    kind.measured.append((words(point.layer), seconds))
                    timed += 1
                    break
    return timed


class _Stopwatch:
    """Runs points in a process of its own."""

    def __init__(self) -> None:
        self._pool: Processes | None = None
        self._warm: set[str] = set()

    def __enter__(self) -> _Stopwatch:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._pool is not None:
            self._pool.close()
        self._pool = None

    def seconds(self, point: SweepPoint, most: float) -> tuple[float, bool] | None:
        """Seconds of a point, and whether it was cut off after so many; None if it failed."""
        found = self._run(point, most)
        if found is None or found[1] or point.options.mapper in self._warm or found[0] > _WARM_SECONDS:
            return found
        self._warm.add(point.options.mapper)
        again = self._run(point, most)
        return found if again is None or again[1] else again

    def _run(self, point: SweepPoint, most: float) -> tuple[float, bool] | None:
        self._pool = self._pool or Processes(1)
        self._pool.submit("", run_point, (point.point,))
        started = time.monotonic()
        while not (ended := self._pool.wait(0.2)):
            if time.monotonic() > started + most:
                self._stop()
                return most, True
        figures = None if ended[0].error else ended[0].value.get("figures")
        return (figures["seconds"], False) if figures else None
