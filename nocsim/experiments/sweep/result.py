"""The result of a sweep: its points as rows, totals over layers, and exports."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cosa.common.errors import InputError, nearest_of
from cosa.common.files import whole_file, write_atomic
from cosa.experiments.figures import Row, totals
from cosa.model.schedule import Schedule
from nocsim.experiments.pipeline import FIGURES
from nocsim.experiments.sweep.spec import Sweep

NUMBERS = tuple(name for name, figure in FIGURES.items() if figure.kind != "TEXT")
SHORT_NAMES = {figure.short: name for name, figure in FIGURES.items() if figure.short}


@dataclass(frozen=True)
class Configuration:
    """All layers on one combination of the other axes.

    Attributes
    ----------
    axes: the value on every axis but `layer`
    positions: the place of that value on the axis
    layers, done, failed: points, how many of them have figures, how many have failed
    figures: totals over the layers as often as they occur (ratios: of the totals; searches: once for each layer), None
        unless all are done
    """

    axes: dict[str, Any]
    positions: dict[str, int]
    layers: int
    done: int
    figures: Row
    failed: int = 0


@dataclass(frozen=True)
class SweepResult:
    """A sweep, and its points as rows of the file of results, in order (`nocsim.experiments.sweep.store.Store.rows`).

    `path` is that file, `number` the number of the sweep in it.
    """

    sweep: Sweep
    rows: list[dict[str, Any]]
    path: Path | None = None
    number: int | None = None

    @property
    def failed(self) -> list[dict[str, Any]]:
        """Rows of points that failed."""
        return [row for row in self.rows if row["status"] == "failed"]

    @cached_property
    def axis_names(self) -> list[str]:
        """All axes; `layer` always is one."""
        return list(dict.fromkeys((*self.sweep.axes, "layer")))

    def schedule(self, number: int) -> Schedule:
        """The schedule of a finished point, by its `number`; `Schedule.save` writes it.

        Raises
        ------
        InputError: there is no such point, or the file has no schedule of it.
        """
        from nocsim.experiments.sweep.store import Store

        source = str(self.path or self.sweep.name)
        if not 0 <= number < len(self.rows):
            allowed = f"a whole number from 0 to {len(self.rows) - 1}, as in the column number"
            raise InputError("no such point", source=source, value=number, allowed=allowed)
        row = self.rows[number]
        if row["status"] != "done":
            why = f": {row['error']}" if row["error"] else ""
            raise InputError(f"point {number} is {row['status']}{why}", source=source)
        data = None
        if self.path is not None:
            store = Store(self.path)
            try:
                data = store.schedule(row["inputs_hash"])
            finally:
                store.close()
        if data is None:
            raise InputError(f"no schedule of point {number} is kept", source=source)
        return Schedule.from_data(data, source=source)

    def columns(self, *, timing: bool = True) -> list[str]:
        """Names of the columns of `records`."""
        rest = ["error_kind", "error", "architecture_hash", "inputs_hash", "version", "sources", "versions"]
        inputs = ["number", *self.axis_names, "mapper", "options", "simulate", "count", "status"]
        names = dict.fromkeys([*inputs, *FIGURES, *rest])
        return [name for name in names if timing or name not in FIGURES or not FIGURES[name].clock]

    def records(self, *, timing: bool = True) -> Iterator[dict[str, Any]]:
        """A flat row for each point; axis values that are lists or mappings are JSON text."""
        for row in self.rows:
            axes = {name: row["axes"].get(name) for name in self.axis_names if name not in FIGURES}
            values = row | axes | {"simulate": self.sweep.simulate}
            yield {name: _flat(values[name]) for name in self.columns(timing=timing)}

    def frame(self, *, timing: bool = True) -> Any:
        """A pandas DataFrame, a row for each point. Without `timing` the same sweep gives the same frame.

        Raises
        ------
        InputError: pandas is not installed.
        """
        pandas = _package("pandas")
        rows, types = list(self.records(timing=timing)), {"INTEGER": "Int64", "REAL": "Float64", "TEXT": "string"}
        data = {}
        for name in self.columns(timing=timing):
            values = [row[name] for row in rows]
            data[name] = pandas.array(values, dtype=types[FIGURES[name].kind]) if name in FIGURES else values
        return pandas.DataFrame(data)

    def csv_text(self, *, timing: bool = True) -> str:
        """All points as CSV; empty where there is no value."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns(timing=timing), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.records(timing=timing))
        return text.getvalue()

    def to_csv(self, path: str | Path, *, timing: bool = True) -> None:
        """Write all points as CSV (`csv_text`)."""
        write_atomic(path, self.csv_text(timing=timing))

    def to_parquet(self, path: str | Path, *, timing: bool = True) -> None:
        """Write all points as Parquet, with the types of the figures; values of several types become text.

        Raises
        ------
        InputError: pandas or pyarrow is not installed, or the file can't be written.
        """
        _package("pyarrow")
        frame = self.frame(timing=timing)
        for name in frame.columns:
            if len({type(value) for value in frame[name] if value is not None} - {int, float}) and name not in FIGURES:
                frame[name] = [
                    value if value is None or isinstance(value, bool) else str(value) for value in frame[name]
                ]
        with whole_file(path) as stream:
            frame.to_parquet(stream)

    @cached_property
    def configurations(self) -> list[Configuration]:
        """Rows of the same place on all axes but `layer`, taken together, in order."""
        groups: dict[tuple[tuple[str, int], ...], list[dict[str, Any]]] = {}
        for row in self.rows:
            key = tuple((name, place) for name, place in row["positions"].items() if name != "layer")
            groups.setdefault(key, []).append(row)
        return [_configuration(dict(key), rows) for key, rows in groups.items()]


def read_results(path: str | Path, sweep: str | int | None = None) -> SweepResult:
    """What a file of results holds of a sweep, finished or not.

    Parameters
    ----------
    sweep: its number in the file (`sweeps_in`), or its name, which means the one of that name that was run last;
        without it, the one that was run last.

    Raises
    ------
    InputError: the file is missing, is no file of results, or has no such sweep.
    """
    from nocsim.experiments.sweep.store import Store

    store = Store(path)
    try:
        if sweep is None:
            store.latest()
        else:
            store.sweep = _number_of(str(sweep), store.sweeps(), str(path))
        return SweepResult(store.spec(), store.rows(), store.path, store.sweep)
    finally:
        store.close()


def sweeps_in(path: str | Path) -> list[dict[str, Any]]:
    """The sweeps of a file of results, the one that was run last at the end.

    Each has its number `sweep`, its `name`, `last_run` (UTC), and how many `points` it has and are `done`.

    Raises
    ------
    InputError: the file is missing, or is no file of results.
    """
    from nocsim.experiments.sweep.store import Store

    store = Store(path)
    try:
        return store.sweeps()
    finally:
        store.close()


def _number_of(wanted: str, sweeps: Sequence[dict[str, Any]], source: str) -> int:
    for entry in reversed(sweeps):
        if wanted in (str(entry["sweep"]), entry["name"]):
            number: int = entry["sweep"]
            return number
    allowed = ", ".join(f"{entry['sweep']} ({entry['name']})" for entry in sweeps)
    raise InputError("no such sweep", source=source, value=wanted, allowed=allowed)


def figure_name(text: str, source: str) -> str:
    """A number of `FIGURES` by its name or a short one.

    Raises
    ------
    InputError: there is no such figure.
    """
    name = SHORT_NAMES.get(text, text)
    if name not in NUMBERS:
        choices = [*SHORT_NAMES, *NUMBERS]
        allowed = ", ".join(choices)
        raise InputError(
            "no such figure", source=source, value=text, allowed=allowed, nearest=nearest_of(text, choices)
        )
    return name


def _configuration(positions: dict[str, int], rows: Sequence[dict[str, Any]]) -> Configuration:
    axes = {name: value for name, value in rows[0]["axes"].items() if name != "layer"}
    done = [row for row in rows if row["status"] == "done"]
    figures = dict.fromkeys(FIGURES) if len(done) < len(rows) else totals(rows, FIGURES)
    failed = sum(row["status"] == "failed" for row in rows)
    return Configuration(axes, positions, len(rows), len(done), figures, failed)


def _flat(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value


def _package(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        allowed = "install cosa-nocsim[sweep]"
        raise InputError(f"the package {name.partition('.')[0]} is not installed", allowed=allowed) from None
