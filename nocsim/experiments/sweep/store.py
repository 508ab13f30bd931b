"""The file of results: one SQLite file in WAL mode, one row a point, shared by any number of runs.

A run claims a point by turning its row from `pending` to `running`, and writes figures and `done` (or `failed`) in one
transaction. So a run may be killed at any moment: what was committed stays, what was claimed is given back. A run
holds a lock on a file of its own for as long as it lives; the operating system drops it when the process dies, and that
is how other runs know. (WAL mode works within one machine only, and so does this.)
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import sqlite3
import time
import uuid
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from cosa.common.errors import InputError
from cosa.common.result_cache import source_digest
from cosa.common.version import version
from cosa.experiments.pipeline import Outcome, versions
from nocsim.experiments.pipeline import FIGURES, SimulatedPoint
from nocsim.experiments.sweep.points import SweepPoint
from nocsim.experiments.sweep.spec import Sweep, SweepCounts

APPLICATION_ID = 0x636F7361  # "cosa", in the header of the file
LAYOUT = 3
INVALID = "InvalidArchitecture"
"""Kind of the error of a point that can never run."""

_WAIT_SECONDS = 60.0
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS sweeps (
    sweep INTEGER PRIMARY KEY, spec_hash TEXT UNIQUE NOT NULL, name TEXT NOT NULL, spec TEXT NOT NULL,
    last_run TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS architectures (architecture_hash TEXT PRIMARY KEY, architecture TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS runs (
    run INTEGER PRIMARY KEY, lock_file TEXT NOT NULL, started TEXT NOT NULL, ended TEXT);
CREATE TABLE IF NOT EXISTS points (
    inputs_hash TEXT PRIMARY KEY,
    status TEXT NOT NULL CHECK (status IN ('pending', 'running', 'done', 'failed')),
    run INTEGER REFERENCES runs, layer TEXT NOT NULL, architecture_hash TEXT,
    options TEXT NOT NULL, {", ".join(f"{name} {figure.kind}" for name, figure in FIGURES.items())},
    error_kind TEXT, error TEXT, version TEXT NOT NULL, sources TEXT NOT NULL, versions TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS points_by_status ON points (status);
CREATE TABLE IF NOT EXISTS plan (
    sweep INTEGER NOT NULL REFERENCES sweeps, number INTEGER NOT NULL, inputs_hash TEXT NOT NULL REFERENCES points,
    count INTEGER NOT NULL, axes TEXT NOT NULL, positions TEXT NOT NULL, PRIMARY KEY (sweep, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS schedules (inputs_hash TEXT PRIMARY KEY REFERENCES points, schedule BLOB NOT NULL);
CREATE VIEW IF NOT EXISTS results AS
    SELECT sweeps.name AS sweep, plan.number, plan.axes, plan.count, points.*
    FROM plan JOIN points USING (inputs_hash) JOIN sweeps USING (sweep) ORDER BY plan.sweep, plan.number;
"""


class Store:
    """An open file of results. `sweep` is the number of the sweep in it that this object works on.

    Raises
    ------
    InputError: the file is missing (where it is only read), or is no file of results.
    """

    def __init__(self, path: str | Path, *, create: bool = False) -> None:
        self.path = Path(path)
        self._lock: IO[bytes] | None = None
        self._run = 0
        self.sweep = 0
        if not create and not self.path.is_file():
            raise InputError("no such file", source=str(path))
        try:
            self._open(create)
        except sqlite3.DatabaseError as error:
            raise InputError(f"not a file of sweep results: {error}", source=str(path)) from None

    def _open(self, create: bool) -> None:
        mode = "rwc" if create else "rw"
        uri = f"{self.path.absolute().as_uri()}?mode={mode}"
        self._base = sqlite3.connect(uri, uri=True, timeout=_WAIT_SECONDS, isolation_level=None)
        self._base.row_factory = sqlite3.Row
        # In this order: another run may be making the file just now, tables and number at once.
        empty = not self._base.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        found = self._base.execute("PRAGMA application_id").fetchone()[0]
        if found != APPLICATION_ID and not (found == 0 and empty):
            raise sqlite3.DatabaseError("it is the file of another program")
        layout = self._base.execute("PRAGMA user_version").fetchone()[0]
        if found == APPLICATION_ID and layout not in (0, LAYOUT):
            raise sqlite3.DatabaseError(
                f"another version wrote it (its layout is {layout}, that of this version {LAYOUT}); use another file"
            )
        if create:
            self._use_wal()
            self._base.execute("PRAGMA synchronous = FULL")
            self._make_tables()
        elif empty:  # nothing is in it yet, and nothing is to be written
            self._base.close()
            self._base = sqlite3.connect(":memory:", isolation_level=None)
            self._base.row_factory = sqlite3.Row
            self._make_tables()

    def _make_tables(self) -> None:
        with self._transaction():
            for statement in _SCHEMA.split(";\n"):
                self._base.execute(statement)
            self._base.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self._base.execute(f"PRAGMA user_version = {LAYOUT}")

    def _use_wal(self) -> None:
        """Change to WAL mode; two runs that do so at once get an error at once, not after the usual wait."""
        until = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                self._base.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._base.execute("BEGIN IMMEDIATE")
            yield
            self._base.execute("COMMIT")
        except BaseException as error:
            if self._base.in_transaction:
                self._base.execute("ROLLBACK")
            if isinstance(error, sqlite3.OperationalError):
                raise InputError(f"cannot be written: {error}", source=str(self.path)) from None
            raise

    def close(self) -> None:
        """Close the file, and end the run if one was started: points it has not finished are given back."""
        if self._lock is not None:
            with self._transaction():
                self._give_back(self._run)
            Path(self._lock.name).unlink(missing_ok=True)
            self._lock.close()
            self._lock = None
        self._base.close()

    # the plan

    def plan(self, sweep: Sweep, points: Sequence[SweepPoint]) -> None:
        """Enter the points of a sweep; those that the file has already keep what is known of them."""
        spec = sweep.to_json()
        plan = hashlib.sha256()
        for point in points:
            plan.update(point.inputs_hash.encode())
        spec_hash = hashlib.sha256(spec.encode() + plan.digest()).hexdigest()
        with self._transaction():
            self._base.execute(
                "INSERT INTO sweeps (spec_hash, name, spec, last_run) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (spec_hash) DO UPDATE SET last_run = excluded.last_run",
                (spec_hash, sweep.name, spec, _now()),
            )
            row = self._base.execute("SELECT sweep FROM sweeps WHERE spec_hash = ?", (spec_hash,)).fetchone()
            self.sweep = row["sweep"]
            if self._base.execute("SELECT 1 FROM plan WHERE sweep = ?", (self.sweep,)).fetchone():
                return
            architectures = {x.architecture.content_hash: x.architecture for x in points if x.architecture is not None}
            self._base.executemany(
                "INSERT OR IGNORE INTO architectures VALUES (?, ?)",
                [(key, found.to_json()) for key, found in architectures.items()],
            )
            self._base.executemany(
                f"INSERT OR IGNORE INTO points ({', '.join(_PLANNED)}) VALUES ({', '.join('?' * len(_PLANNED))})",
                map(_point_row, points),
            )
            self._base.executemany(
                "INSERT INTO plan VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (self.sweep, x.number, x.inputs_hash, x.count, json.dumps(x.axes), json.dumps(x.positions))
                    for x in points
                ],
            )

    def latest(self) -> None:
        """Work on the sweep that was run last.

        Raises
        ------
        InputError: the file holds none.
        """
        found = self.sweeps()
        if not found:
            raise InputError("there is no sweep in it", source=str(self.path))
        self.sweep = found[-1]["sweep"]

    def sweeps(self) -> list[dict[str, Any]]:
        """All sweeps, the one run last at the end: number (`sweep`), `name`, `last_run`, `points`, of them `done`."""
        rows = self._base.execute(
            "SELECT sweep, name, last_run, count(*) AS points, total(status = 'done') AS done "
            "FROM sweeps JOIN plan USING (sweep) JOIN points USING (inputs_hash) "
            "GROUP BY sweep ORDER BY last_run, sweep"
        )
        return [dict(row) | {"done": int(row["done"])} for row in rows]

    def spec(self) -> Sweep:
        """The sweep as it was given."""
        row = self._base.execute("SELECT spec FROM sweeps WHERE sweep = ?", (self.sweep,)).fetchone()
        return Sweep.from_data(json.loads(row["spec"]), source=str(self.path))

    # a run

    def start_run(self, *, retry_failed: bool = False) -> None:
        """Begin to claim points. Points of runs that have died are given back first."""
        name = f"{self.path.name}-run-{uuid.uuid4().hex[:12]}"
        self._lock = (self.path.parent / name).open("wb")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        with self._transaction():
            row = self._base.execute(
                "INSERT INTO runs (lock_file, started) VALUES (?, ?) RETURNING run", (name, _now())
            ).fetchone()
            self._run = row["run"]
            if retry_failed:
                self._base.execute(
                    "UPDATE points SET status = 'pending', error_kind = NULL, error = NULL, seconds = NULL "
                    "WHERE status = 'failed' AND error_kind != ? AND "
                    "inputs_hash IN (SELECT inputs_hash FROM plan WHERE sweep = ?)",
                    (INVALID, self.sweep),
                )
        self.give_back_dead()

    def give_back_dead(self) -> bool:
        """Make points of runs that have died `pending` again; whether there were such runs."""
        dead = self._dead_runs()
        for run, lock_file in dead.items():
            with self._transaction():
                self._give_back(run)
            (self.path.parent / lock_file).unlink(missing_ok=True)
        return bool(dead)

    def _dead_runs(self) -> dict[int, str]:
        """Runs whose process has died before they ended, with their lock files."""
        runs = self._base.execute("SELECT run, lock_file FROM runs WHERE ended IS NULL AND run != ?", (self._run,))
        return {row["run"]: row["lock_file"] for row in runs.fetchall() if self._is_dead(row["lock_file"])}

    def _is_dead(self, lock_file: str) -> bool:
        try:
            with (self.path.parent / lock_file).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return True
        except BlockingIOError:
            return False
        return True

    def _give_back(self, run: int) -> None:
        self._base.execute(
            "UPDATE points SET status = 'pending', run = NULL WHERE status = 'running' AND run = ?", (run,)
        )
        self._base.execute("UPDATE runs SET ended = ? WHERE run = ?", (_now(), run))

    def pending(self, most: int) -> list[str]:
        """Some points that nobody has claimed, in the order of the sweep."""
        rows = self._base.execute(
            "SELECT inputs_hash FROM plan JOIN points USING (inputs_hash) "
            "WHERE sweep = ? AND status = 'pending' ORDER BY number LIMIT ?",
            (self.sweep, most),
        )
        return [row["inputs_hash"] for row in rows]

    def claim(self, inputs_hash: str) -> bool:
        """Claim a point for this run; False if another run was quicker.

        A claim that a power failure takes back does no harm, so it is not waited for until it is on the disk.
        """
        self._base.execute("PRAGMA synchronous = NORMAL")
        with self._transaction():
            changed = self._base.execute(
                "UPDATE points SET status = 'running', run = ? WHERE inputs_hash = ? AND status = 'pending'",
                (self._run, inputs_hash),
            )
        self._base.execute("PRAGMA synchronous = FULL")
        return changed.rowcount == 1

    def finish(self, inputs_hash: str, outcome: Outcome, seconds: float) -> None:
        """Write what became of a point of this run, after so many seconds."""
        figures = outcome.get("figures")
        values: dict[str, Any] = dict(figures or {"seconds": seconds})
        values |= {"error_kind": outcome.get("error_kind"), "error": outcome.get("error")}
        values["status"] = "failed" if figures is None else "done"
        assignments = ", ".join(f"{name} = :{name}" for name in values)
        with self._transaction():
            changed = self._base.execute(
                f"UPDATE points SET {assignments} WHERE inputs_hash = :key AND run = :me AND status = 'running'",
                values | {"key": inputs_hash, "me": self._run},
            )
            if changed.rowcount and "schedule" in outcome:
                packed = zlib.compress(json.dumps(outcome["schedule"]).encode(), 9)
                self._base.execute("INSERT OR REPLACE INTO schedules VALUES (?, ?)", (inputs_hash, packed))

    # what is known

    def counts(self) -> SweepCounts:
        """How far the sweep is."""
        rows = self._base.execute(
            "SELECT status, run, count(*) AS n FROM plan JOIN points USING (inputs_hash) WHERE sweep = ? "
            "GROUP BY status, run",
            (self.sweep,),
        )
        found: Counter[str] = Counter()
        for row in self._alive(rows):
            found[row["status"]] += row["n"]
        done, failed, running = (found[name] for name in ("done", "failed", "running"))
        return SweepCounts(points=found.total(), done=done, failed=failed, running=running)

    def known(self, hashes: Sequence[str], *, retry_failed: bool = False) -> dict[str, tuple[str, float | None]]:
        """Status and seconds of those of these points that the file has; `retry_failed`: as if to be run once more."""
        rows = self._base.execute("SELECT inputs_hash, status, seconds, error_kind, run FROM points")
        wanted = set(hashes)
        found = {}
        for row in self._alive(rows):
            again = retry_failed and row["status"] == "failed" and row["error_kind"] != INVALID
            if row["inputs_hash"] in wanted:
                found[row["inputs_hash"]] = ("pending", None) if again else (row["status"], row["seconds"])
        return found

    def rows(self) -> list[dict[str, Any]]:
        """All points of the sweep in its order: `number`, `count`, `axes`, `positions`, and the columns of `points`."""
        rows = self._base.execute(
            "SELECT plan.number, plan.count, plan.axes, plan.positions, points.* "
            "FROM plan JOIN points USING (inputs_hash) WHERE sweep = ? ORDER BY number",
            (self.sweep,),
        )
        decoded = ("axes", "positions", "options", "versions")
        return [row | {name: json.loads(row[name]) for name in decoded} for row in self._alive(rows)]

    def _alive(self, rows: Iterable[sqlite3.Row]) -> Iterator[dict[str, Any]]:
        """Rows with `status` and `run`; what a run that has died had under way waits for the next one."""
        dead: dict[int, str] | None = None
        for row in rows:
            found = dict(row)
            if found["status"] == "running":
                dead = self._dead_runs() if dead is None else dead
                found["status"] = "pending" if found["run"] in dead else "running"
            yield found

    def schedule(self, inputs_hash: str) -> dict[str, Any] | None:
        """The schedule of a finished point as plain data; None if there is no such point."""
        row = self._base.execute(
            "SELECT schedule, architecture FROM schedules JOIN points USING (inputs_hash) "
            "JOIN architectures USING (architecture_hash) WHERE inputs_hash = ?",
            (inputs_hash,),
        ).fetchone()
        if row is None:
            return None
        data: dict[str, Any] = json.loads(zlib.decompress(row["schedule"]))
        return data | {"architecture": json.loads(row["architecture"])}


_PLANNED = (
    *("inputs_hash", "status", "layer", "architecture_hash", "mapper", "objective", "seed", "options"),
    *("error_kind", "error", "version", "sources", "versions"),
)
"""Columns of what is known before a point is run."""


def _point_row(point: SweepPoint) -> tuple[Any, ...]:
    layer = point.layer.model_dump_json(exclude={"kind", "name", "notes"})
    options, architecture = point.options, point.architecture
    return (
        point.inputs_hash,
        "failed" if architecture is None else "pending",
        layer,
        None if architecture is None else architecture.content_hash,
        options.mapper,
        options.made_for,
        getattr(options, "seed", None),
        options.text,
        INVALID if architecture is None else None,
        point.error,
        version(),
        source_digest(SimulatedPoint.packages),
        json.dumps(versions()),
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
