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

Kind = Literal["INTEGER", "REAL", "TEXT"]
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
    kind: Kind
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


def _made(name: str) -> Callable[[Trial], Any]:
    return lambda trial: getattr(trial.schedule.provenance, name)


def _search(name: str) -> Callable[[Trial], Any]:
    def of(trial: Trial) -> Any:
        search = trial.schedule.provenance.search
        return None if search is None else getattr(search, name)

    return of


def _stopped_by(trial: Trial) -> str | None:
    made = trial.schedule.provenance
    if trial.interrupted:
        return "interrupted"
    if made.search is not None:
        return made.search.stopped_by
    return "time" if made.solver_status == "time_limit" else None


def _timeloop(name: str) -> Callable[[Trial], Any]:
    return lambda trial: trial.timeloop and getattr(trial.timeloop, name)


def _exact(name: str) -> Callable[[Trial], Any]:
    return lambda trial: getattr(trial.exact, name)


def _traffic(name: str) -> Callable[[Trial], Any]:
    return lambda trial: trial.traffic and getattr(trial.traffic, name)


def _timing(name: str) -> Callable[[Trial], Any]:
    return lambda trial: trial.schedule.timing and getattr(trial.schedule.timing, name)


def _padded(trial: Trial) -> str | None:
    return " ".join(f"{dim}={bound}" for dim, bound in trial.schedule.padded.items()) or None


def _pes(trial: Trial) -> int | None:
    noc = trial.schedule.architecture.noc
    return None if noc is None else noc.pes


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


ANALYTICAL: tuple[Figure, ...] = (
    Figure("mapper", "TEXT", _made("mapper"), "what made the schedule", total=agreed),
    Figure("objective", "TEXT", _made("objective"), "what it minimised", total=agreed),
    Figure("model", "TEXT", _made("model"), "the model of the machine in which it did", total=agreed),
    Figure("seed", "INTEGER", _made("seed"), "its seed", total=agreed),
    Figure("objective_value", "REAL", _made("objective_value"), "the objective of the schedule, by its mapper"),
    Figure("bound", "REAL", _made("bound"), "what no schedule's objective is below"),
    Figure("gap", "REAL", _made("gap"), "distance of the two, over the bound", "share"),
    Figure(
        "latency_cycles",
        "INTEGER",
        lambda trial: trial.latency_cycles,
        "`simulated_cycles`, without simulation `analytical_cycles`",
        "cycles",
        summed,
        short="latency",
        title="latency (cycles)",
    ),
    Figure("analytical_cycles", "INTEGER", _exact("cycles"), "analytically, by the convention exact", "cycles", summed),
    Figure(
        "timeloop_cycles", "INTEGER", _timeloop("cycles"), "analytically, by the convention timeloop", "cycles", summed
    ),
    Figure("compute_cycles", "INTEGER", _exact("compute_cycles"), "product of all temporal loops", "cycles", summed),
    Figure(
        "bound_cycles",
        "INTEGER",
        lambda trial: trial.bound and trial.bound.cycles,
        "what no run of the schedule is below; without simulation, the DRAM is left out",
        "cycles",
        summed,
    ),
    Figure("bound_by", "TEXT", lambda trial: trial.bound and trial.bound.bound_by, "the resource that says so"),
    Figure(
        "machine_bound_cycles",
        "REAL",
        _made("machine_bound_cycles"),
        "what no schedule of the layer runs below, where the mapper has proven it",
        "cycles",
        summed,
    ),
    Figure(
        "milliseconds",
        "REAL",
        lambda trial: trial.latency_cycles / (trial.schedule.architecture.clock_ghz * 1e6),
        "`latency_cycles` at the core clock",
        "ms",
        summed,
    ),
    Figure(
        "energy_pj",
        "REAL",
        _timeloop("energy_pj"),
        "analytically, by the convention timeloop",
        "pJ",
        summed,
        short="energy",
        title="energy (uJ)",
        scale=1e6,
    ),
    Figure(
        "exact_energy_pj", "REAL", _exact("energy_pj"), "analytically, by the convention exact", "pJ", summed, scale=1e6
    ),
    Figure(
        "edp_pj_cycles",
        "REAL",
        lambda trial: trial.timeloop and trial.timeloop.energy_pj * trial.latency_cycles,
        "`energy_pj` x `latency_cycles`",
        "pJ x cycles",
        product_of("energy_pj", "latency_cycles"),
        short="edp",
        title="EDP (uJ x Mcycles)",
        scale=1e12,
    ),
    Figure(
        "timeloop_edp_pj_cycles",
        "REAL",
        lambda trial: trial.timeloop and trial.timeloop.energy_pj * trial.timeloop.cycles,
        "`energy_pj` x `timeloop_cycles`",
        "pJ x cycles",
        product_of("energy_pj", "timeloop_cycles"),
        scale=1e12,
    ),
    Figure(
        "buffer_bytes",
        "INTEGER",
        lambda trial: on_chip_buffer_bytes(trial.schedule.architecture),
        "all buffers on the chip, every instance, second sets included",
        "bytes",
        agreed,
        short="buffer",
        title="buffers (KB)",
        scale=1000,
    ),
    Figure("pes", "INTEGER", _pes, "PEs of the mesh", total=agreed),
    Figure("mac_units", "INTEGER", lambda trial: trial.schedule.architecture.macs, "MAC units", total=agreed),
    Figure("macs", "INTEGER", lambda trial: trial.schedule.layer.macs, "MACs of the layer", total=summed),
    Figure(
        "padding_macs", "INTEGER", lambda trial: trial.schedule.padding_macs, "MACs that padding adds", total=summed
    ),
    Figure("padded", "TEXT", _padded, "padded bounds, as in `K=96`"),
    Figure(
        "mac_utilisation",
        "REAL",
        lambda trial: trial.schedule.layer.macs / (trial.latency_cycles * trial.schedule.architecture.macs),
        "MACs a MAC unit and cycle of `latency_cycles`",
        "share",
        mean_by("latency_cycles"),
        short="utilisation",
        more_is_better=True,
    ),
    Figure("dram_read_words", "INTEGER", _traffic("dram_read_words"), "into the chip", "words", summed),
    Figure("dram_write_words", "INTEGER", _traffic("dram_write_words"), "out of the chip", "words", summed),
    Figure("network_words", "INTEGER", _traffic("mesh_words"), "that leave any node", "words", summed),
    Figure(
        "schedule_hash",
        "TEXT",
        lambda trial: trial.schedule.content_hash,
        "of layer, architecture and loops",
    ),
    Figure("solver_status", "TEXT", _made("solver_status"), "of a program"),
    Figure("evaluations", "INTEGER", _search("evaluations"), "of a search: mappings evaluated", total=once),
    Figure("samples_drawn", "INTEGER", _search("samples_drawn"), "of a search: mappings drawn", total=once),
    Figure("samples_walked", "INTEGER", _search("samples_walked"), "of a search: mappings walked past", total=once),
    Figure("samples_valid", "INTEGER", _search("samples_valid"), "of a search: valid ones among them", total=once),
    Figure("stopped_by", "TEXT", _stopped_by, "why a search ended, or `time` of a program"),
    Figure(
        "seconds",
        "REAL",
        lambda trial: trial.seconds,
        "wall time of all stages, without the loading of compiled kernels",
        "s",
        once,
        clock=True,
    ),
    Figure(
        "schedule_seconds",
        "REAL",
        lambda trial: trial.schedule_seconds,
        "wall time of the mapper",
        "s",
        once,
        clock=True,
    ),
    Figure(
        "schedule_cpu_seconds",
        "REAL",
        lambda trial: trial.schedule_cpu_seconds,
        "processor time of the mapper",
        "s",
        once,
        clock=True,
    ),
    Figure("solve_seconds", "REAL", _timing("solve_seconds"), "wall time of the solver alone", "s", once, clock=True),
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
