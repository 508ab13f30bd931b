"""Figures: what is told of a point. One entry each: name, type, unit, how totals are made, help, how it is computed.

Rows of networks, comparisons and sweeps, their tables, pictures, exports and files are made from the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from cosa.model.arch import Architecture
from cosa.model.schedule import Made, made_together

if TYPE_CHECKING:
    from cosa.experiments.pipeline import Trial

ColumnType = Literal["INTEGER", "REAL", "TEXT"]
"""Types as SQLite names them."""

Row = dict[str, Any]
"""Figures of a point by name (None: unknown), and what a view says of its place: `layer`, `count` and others."""

Rows = Sequence[Mapping[str, Any]]
Total = Callable[[Rows, str], Any]
"""What a figure is over the layers of a network, from their rows; None if it means nothing, or one is unknown."""


def unknown(rows: Rows, name: str) -> None:
    """It means nothing over several layers."""


def agreed(rows: Rows, name: str) -> Any:
    """What all layers have."""
    return rows[0][name] if all(row[name] == rows[0][name] for row in rows) else None


def summed(rows: Rows, name: str) -> Any:
    """The sum over all layers, as often as they occur."""
    return _sum(row[name] and row[name] * row["count"] for row in rows)


def once(rows: Rows, name: str) -> Any:
    """The sum over unique layers."""
    return _sum(row[name] for row in rows)


def mean_by(weight: str) -> Total:
    """The mean over all layers, weighted by another figure."""

    def total(rows: Rows, name: str) -> float | None:
        whole = summed(rows, weight)
        if not whole or any(row[name] is None for row in rows):
            return None
        part = sum(float(row[name] * row["count"] * row[weight]) for row in rows)
        return part / float(whole)

    return total


def product_of(first: str, second: str) -> Total:
    """The product of two sums."""

    def total(rows: Rows, name: str) -> float | None:
        factors = summed(rows, first), summed(rows, second)
        return None if None in factors else factors[0] * factors[1]

    return total


def _sum(values: Iterable[Any]) -> Any:
    found = list(values)
    return None if None in found else sum(found)


@dataclass(frozen=True)
class Figure:
    """A figure.

    Attributes
    ----------
    of: its value, from what the stages have found of a point.
    total: over layers.
    short: a short name on the command line.
    title, scale: how tables and pictures name it, and how many of its units are one that they show.
    more_is_better: whether a large value is.
    simulated: whether it is unknown without simulation.
    clock: whether it differs from run to run.
    """

    name: str
    kind: ColumnType
    of: Callable[[Any], Any]
    help: str
    unit: str = ""
    total: Total = unknown
    short: str = ""
    title: str = ""
    scale: float = 1
    more_is_better: bool = False
    simulated: bool = False
    clock: bool = False

    @property
    def label(self) -> str:
        """What tables and pictures call it."""
        return self.title or self.short or self.name

    def text(self, value: Any) -> str:
        """A value in a table."""
        if value is None:
            return "-"
        if isinstance(value, str):
            return value
        if self.scale != 1:
            value = value / self.scale
        if isinstance(value, int):
            return f"{value:,}"
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"


Figures = dict[str, Figure]


def _path(text: str) -> Callable[[Any], Any]:
    """What stands there, seen from a trial; None where something on the way is."""

    def of(trial: Any) -> Any:
        for name in text.split("."):
            trial = None if trial is None else getattr(trial, name)
        return trial

    return of


def text(name: str, of: str | Callable[[Any], Any], help: str, **more: Any) -> Figure:
    """A figure in words."""
    return Figure(name, "TEXT", _path(of) if isinstance(of, str) else of, help, **more)


def count(name: str, of: str | Callable[[Any], Any], help: str, total: Total = summed, **more: Any) -> Figure:
    """A whole number; its unit is the end of its name."""
    unit = name.rpartition("_")[2]
    unit = unit if unit in ("cycles", "words", "bytes") else ""
    return Figure(name, "INTEGER", _path(of) if isinstance(of, str) else of, help, unit, total, **more)


def real(
    name: str, of: str | Callable[[Any], Any], help: str, unit: str = "", total: Total = summed, **more: Any
) -> Figure:
    """A number."""
    return Figure(name, "REAL", _path(of) if isinstance(of, str) else of, help, unit, total, **more)


def seconds(name: str, of: str, help: str, **more: Any) -> Figure:
    """Time by a clock."""
    return real(name, of, help, "s", once, clock=True, **more)


def on_chip_buffer_bytes(architecture: Architecture) -> int:
    """Bytes of all buffers on the chip: every instance of every level that is not DRAM, second sets included.

    A second set (`buffers: 2`) counts unless the architecture says that the two share the stated capacity.
    """
    bits = 0
    for number, level in enumerate(architecture.levels):
        if level.capacity_words is not None and not architecture.is_dram(number):
            sets = 1 if architecture.shared_halves else level.buffers
            bits += architecture.instances(number) * level.capacity_words * sets * level.word_bits
    return -(-bits // 8)


def _stopped_by(trial: Trial) -> str | None:
    made = trial.schedule.provenance
    if trial.interrupted:
        return "interrupted"
    if made.search is not None:
        return made.search.stopped_by
    return "time" if made.solver_status == "time_limit" else None


def _edp(cycles: str) -> Callable[[Trial], Any]:
    of = _path(cycles)
    return lambda trial: trial.timeloop and trial.timeloop.energy_pj * of(trial)


def _padded(trial: Trial) -> str | None:
    return " ".join(f"{dim}={bound}" for dim, bound in trial.schedule.padded.items()) or None


def _milliseconds(trial: Trial) -> float:
    return trial.latency_cycles / (trial.schedule.architecture.clock_ghz * 1e6)


def _utilisation(trial: Trial) -> float:
    return trial.schedule.layer.macs / (trial.latency_cycles * trial.schedule.architecture.macs)


_MADE, _SEARCH = "schedule.provenance.", "schedule.provenance.search."
_LATENCY: dict[str, Any] = {"short": "latency", "title": "latency (cycles)"}
_ENERGY: dict[str, Any] = {"short": "energy", "title": "energy (uJ)", "scale": 1e6}
_EDP: dict[str, Any] = {"short": "edp", "title": "EDP (uJ x Mcycles)", "scale": 1e12}
_BUFFER: dict[str, Any] = {"short": "buffer", "title": "buffers (KB)", "scale": 1000}
_USE: dict[str, Any] = {"short": "utilisation", "more_is_better": True}

ANALYTICAL: tuple[Figure, ...] = (
    text("mapper", _MADE + "mapper", "what made the schedule", total=agreed),
    text("objective", _MADE + "objective", "what it minimised", total=agreed),
    text("model", _MADE + "model", "the model of the machine in which it did", total=agreed),
    count("seed", _MADE + "seed", "its seed", agreed),
    real("objective_value", _MADE + "objective_value", "the objective of the schedule, by its mapper", "", unknown),
    real("bound", _MADE + "bound", "what no schedule's objective is below", "", unknown),
    real("gap", _MADE + "gap", "distance of the two, over the bound", "share", unknown),
    count("latency_cycles", "latency_cycles", "`simulated_cycles`, else `analytical_cycles`", **_LATENCY),
    count("analytical_cycles", "exact.cycles", "analytically, by the convention exact"),
    count("timeloop_cycles", "timeloop.cycles", "analytically, by the convention timeloop"),
    count("compute_cycles", "exact.compute_cycles", "product of all temporal loops"),
    count("bound_cycles", "bound.cycles", "what no run of the schedule is below; DRAM left out without simulation"),
    text("bound_by", "bound.bound_by", "the resource that says so"),
    real("machine_bound_cycles", _MADE + "machine_bound_cycles", "what no schedule runs below, if proven", "cycles"),
    real("milliseconds", _milliseconds, "`latency_cycles` at the core clock", "ms"),
    real("energy_pj", "timeloop.energy_pj", "analytically, by the convention timeloop", "pJ", **_ENERGY),
    real("exact_energy_pj", "exact.energy_pj", "analytically, by the convention exact", "pJ", scale=1e6),
    real(
        "edp_pj_cycles",
        _edp("latency_cycles"),
        "`energy_pj` x `latency_cycles`",
        "pJ x cycles",
        product_of("energy_pj", "latency_cycles"),
        **_EDP,
    ),
    real(
        "timeloop_edp_pj_cycles",
        _edp("timeloop.cycles"),
        "`energy_pj` x `timeloop_cycles`",
        "pJ x cycles",
        product_of("energy_pj", "timeloop_cycles"),
        scale=1e12,
    ),
    count("buffer_bytes", "buffer_bytes", "all buffers on the chip, second sets included", agreed, **_BUFFER),
    count("pes", "schedule.architecture.noc.pes", "PEs of the mesh", agreed),
    count("mac_units", "schedule.architecture.macs", "MAC units", agreed),
    count("macs", "schedule.layer.macs", "MACs of the layer"),
    count("padding_macs", "schedule.padding_macs", "MACs that padding adds"),
    text("padded", _padded, "padded bounds, as in `K=96`"),
    real(
        "mac_utilisation",
        _utilisation,
        "MACs a MAC unit and cycle of `latency_cycles`",
        "share",
        mean_by("latency_cycles"),
        **_USE,
    ),
    count("dram_read_words", "traffic.dram_read_words", "into the chip"),
    count("dram_write_words", "traffic.dram_write_words", "out of the chip"),
    count("network_words", "traffic.mesh_words", "that leave any node"),
    text("schedule_hash", "schedule.content_hash", "of layer, architecture and loops"),
    text("solver_status", _MADE + "solver_status", "of a program"),
    count("evaluations", _SEARCH + "evaluations", "of a search: mappings evaluated", once),
    count("samples_drawn", _SEARCH + "samples_drawn", "of a search: mappings drawn", once),
    count("samples_walked", _SEARCH + "samples_walked", "of a search: mappings walked past", once),
    count("samples_valid", _SEARCH + "samples_valid", "of a search: valid ones among them", once),
    text("stopped_by", _stopped_by, "why a search ended, or `time` of a program"),
    seconds("seconds", "seconds", "wall time of all stages, without the loading of compiled kernels"),
    seconds("schedule_seconds", "schedule_seconds", "wall time of the mapper"),
    seconds("schedule_cpu_seconds", "schedule_cpu_seconds", "processor time of the mapper"),
    seconds("solve_seconds", "schedule.timing.solve_seconds", "wall time of the solver alone"),
)


def by_name(figures: Iterable[Figure]) -> Figures:
    """A table of figures."""
    return {figure.name: figure for figure in figures}


def totals(rows: Rows, figures: Figures) -> Row:
    """Every figure of the rows over all layers; of one layer that occurs once its own figures."""
    known = {name: figure for name, figure in figures.items() if name in rows[0]}
    if len(rows) == rows[0]["count"] == 1:
        return {name: rows[0][name] for name in known}
    alone = len(rows) == 1
    return {
        name: rows[0][name] if alone and figure.total is unknown else figure.total(rows, name)
        for name, figure in known.items()
    }


def made_text(rows: Rows) -> str:
    """Who made the schedules of rows, in a line."""
    done = [row for row in rows if row["schedule_hash"]]
    return made_together(Made(**{name: row[name] for name in Made.model_fields}) for row in done)


def figure_table(figures: Figures) -> list[str]:
    """The figures as a Markdown table."""
    lines = ["| figure | unit | meaning |", "|---|---|---|"]
    lines += [f"| `{name}` | {figure.unit} | {figure.help} |" for name, figure in figures.items()]
    return lines
