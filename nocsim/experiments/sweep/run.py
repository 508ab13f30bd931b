"""Runs a sweep: claims points, hands them to a pool, writes what comes back."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from cosa.common.errors import CosaError
from cosa.common.pool import Ended, Pool, Processes, require_workers
from cosa.common.result_cache import source_digest
from cosa.experiments.pipeline import Outcome, failure, run_point, versions
from nocsim.experiments.pipeline import SimulatedPoint
from nocsim.experiments.sweep.points import SweepPoint, expand
from nocsim.experiments.sweep.spec import Sweep, Watch
from nocsim.experiments.sweep.store import Store

if TYPE_CHECKING:
    from nocsim.experiments.sweep.result import SweepResult

_WATCH_SECONDS = 0.5
_AHEAD = 64
"""Points looked up at a time; each is still claimed alone."""


class OtherSourcesError(CosaError):
    """A worker runs other sources of this package, or other versions of what it uses."""

    exit_code = 1


def run_sweep(
    sweep: Sweep,
    results: str | Path,
    *,
    workers: int = 1,
    scheduler: str | None = None,
    retry_failed: bool = False,
    watch: Watch | None = None,
) -> SweepResult:
    """See `Sweep.run`."""
    from nocsim.experiments.sweep.result import SweepResult

    require_workers(workers)
    points = expand(sweep)
    with ExitStack() as stack:
        pool = _pool(workers, scheduler)
        stack.callback(pool.close)
        store = Store(results, create=True)
        # Last in, first out: claims are given back even if the pool takes its time to close.
        stack.callback(store.close)
        store.plan(sweep, points)
        store.start_run(retry_failed=retry_failed)
        _run(store, pool, {point.inputs_hash: point for point in points}, watch)
        return SweepResult(store.spec(), store.rows(), store.path, store.sweep)


def _pool(workers: int, scheduler: str | None) -> Pool:
    if scheduler is None:
        return Processes(workers, _load)
    from cosa.common.dask_pool import DaskPool

    return DaskPool(scheduler)


def _load() -> None:
    """Import what every point needs."""
    from importlib import import_module

    for name in (
        "cosa.analytical.evaluation",
        "cosa.mappers.program_task",
        "nocsim.machine.accelerator",
        "nocsim.result.collect",
    ):
        import_module(name)


def _run(store: Store, pool: Pool, points: dict[str, SweepPoint], watch: Watch | None) -> None:
    """Until every point has ended, here or in another run."""
    ahead: list[str] = []
    here: set[str] = set()
    next_watch = 0.0
    while True:
        while len(here) < pool.slots:
            ahead = ahead or store.pending(_AHEAD)
            if not ahead:
                break
            key = ahead.pop(0)
            if store.claim(key):
                here.add(key)
                pool.submit(key, run_point, (points[key].point,))
        for ended in pool.wait(_WATCH_SECONDS) if here else ():
            store.finish(ended.key, _outcome(ended), ended.seconds)
            here.remove(ended.key)
        now = time.monotonic()
        if here and now < next_watch:
            continue
        next_watch = now + _WATCH_SECONDS
        counts = store.counts()
        if watch is not None:
            watch(counts)
        if not here and not counts.left:
            return
        if not here:
            # What is left is under way in other runs; should one of them die, its points are taken over.
            store.give_back_dead()
            pool.wait(_WATCH_SECONDS)


def _outcome(ended: Ended) -> Outcome:
    """Of a point. What other sources of this package made, or other versions of what it uses, are not its figures."""
    if ended.error is not None:
        return failure(ended.error)
    outcome: Outcome = ended.value
    if outcome["sources"] != source_digest(SimulatedPoint.packages):
        raise OtherSourcesError(
            "a worker has other sources of this package: install the same version everywhere; if it was changed "
            "meanwhile, start again"
        )
    theirs, ours = outcome["versions"], versions()
    if different := [name for name in ours if theirs.get(name) != ours[name]]:
        each = ", ".join(f"{name} {theirs.get(name)} where this command has {ours[name]}" for name in different)
        raise OtherSourcesError(f"a worker has {each}: install the same versions everywhere")
    return outcome
