"""What a sweep would take, without running it (`nocsim sweep --dry-run`)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from nocsim.sweep.points import Point
from nocsim.sweep.pool import LocalPool
from nocsim.sweep.spec import SweepCounts
from nocsim.sweep.store import Store

_TRIES = 3
_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Estimate:
    """Points by what the file of results says of them, and the time that the others will take.

    Attributes
    ----------
    seconds: of all points left together, one after the other; None if it is not known
    basis: what that is taken from
    """

    counts: SweepCounts
    seconds: float | None
    basis: str


def estimate(points: list[Point], results: str | Path, *, retry_failed: bool = False) -> Estimate:
    """The mean time of finished points for each one left; without finished ones, of one that is run for this.

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
    measured = [seconds for status, seconds in known.values() if status == "done" and seconds is not None]
    if measured:
        return Estimate(counts, fmean(measured) * counts.left, f"the mean of {len(measured)} finished points")
    left = sorted((x for x in points if x.architecture), key=lambda x: x.layer.macs)
    seconds = _run_one(left)
    basis = "one point of middle size, run for this" if seconds else "no finished point"
    return Estimate(counts, seconds * counts.left if seconds else None, basis)


def _run_one(points: list[Point]) -> float | None:
    """Seconds of the point with the median number of MACs, or of a larger one if that fails.

    It is run twice: the first point of a process takes longer than the others.
    """
    pool = LocalPool(1)

    def run(point: Point) -> float | None:
        pool.submit("", point.task())
        until = time.monotonic() + _PATIENCE_SECONDS
        while not (ended := pool.wait(1.0)):
            if time.monotonic() > until:
                return None
        return ended[0][1]["seconds"] if "figures" in ended[0][1] else None

    try:
        for point in points[len(points) // 2 :][:_TRIES]:
            if run(point) is not None:
                return run(point)
        return None
    finally:
        pool.close()
