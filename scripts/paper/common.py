"""What the scripts of the paper's tables and figures share: options, points kept between runs, tables.

What becomes of a point (a mapping, a simulation) is a file in `OUT/results`, named by a hash of what goes in and of the
sources. A run that was killed goes on with what is not there yet.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from cosa.api import find_architecture
from cosa.common.errors import CosaError
from cosa.common.files import write_atomic
from cosa.common.progress import Progress
from cosa.common.result_cache import content_key, read_cached, source_digest, write_cached
from cosa.experiments.pipeline import Outcome, require_done, run_points
from cosa.mappers.program import ProgramOptions
from cosa.mappers.published import PublishedOptions
from cosa.mappers.registry import MapperOptions, candidates
from cosa.mappers.search_mappers import HybridOptions, RandomOptions
from cosa.model.layer import Layer
from cosa.model.networks import FOUR_NETWORKS, NetworkLayer, load_network
from cosa.model.objectives import ObjectiveName
from cosa.model.schedule import Schedule
from nocsim.experiments.pipeline import FIGURES, SimulatedPoint
from nocsim.options import RunOptions

HERE = Path(__file__).parent
QUICK_LAYERS = (
    "alexnet:input.6",
    "alexnet:223",
    "resnet50:input.11",
    "resnet50:input.83",
    "resnext50_32x4d:input.39",
    "resnext50_32x4d:input.83",
    "deepbench_ocr_face:10_OCR",
    "deepbench_ocr_face:14_Face_Recognition",
)
"""Of every network two layers: 3x3 and 1x1, with many and with few channels, and a fully connected one."""


@dataclass(frozen=True)
class Plan:
    """How much a script does; `simulation_seconds` is the wall time after which a simulation is given up."""

    out: Path
    layers: tuple[tuple[str, NetworkLayer], ...]
    workers: int
    seeds: int
    program_seconds: float
    simulation_seconds: float
    samples: int
    quick: bool

    @property
    def results(self) -> Path:
        """Folder of what is done."""
        return self.out / "results"


@dataclass(frozen=True)
class Mapper:
    """A mapper with its options, under the name that it has in tables."""

    name: str
    options: MapperOptions
    seeds: int = 1
    patience: float = 1.0
    """Times the plan's seconds that a simulation of its schedules may take."""


RANDOM = Mapper("random", RandomOptions())
HYBRID = Mapper("hybrid", HybridOptions())
HYBRID_AS_TIMELOOP = Mapper("hybrid as Timeloop", HybridOptions(as_timeloop=True))
PUBLISHED = Mapper("published", PublishedOptions())
FASTEST = Mapper("any fastest", ProgramOptions(model="analytical", settle_ties=False))
"""The machine program's latency alone: proven within 1 %, which of the fastest is left open."""


def program_of(plan: Plan, objective: ObjectiveName, model: Any) -> Mapper:
    """The machine program, which knows how far from its optimum it is at most."""
    options = ProgramOptions(objective=objective, model=model, time_limit_seconds=plan.program_seconds)
    return Mapper("program", options)


def random_of(plan: Plan) -> Mapper:
    """The best of 5, once for every seed: a single draw says little."""
    return replace(RANDOM, seeds=plan.seeds)


# what is done, and kept


@dataclass(frozen=True, kw_only=True)
class PaperPoint(SimulatedPoint):
    """A point whose mapper is not charged for what is loaded once."""

    def run(self) -> Outcome:
        """Through all stages."""
        if self.options is not None:
            warm_up()
        return super().run()


@cache
def warm_up() -> None:
    """Load everything once in a process."""
    layer, architecture = Layer(name="warm", R=1, S=1, P=2, Q=1, C=2, K=2, N=1), find_architecture("simba_4x4")
    for mapper in (RANDOM, HYBRID, PUBLISHED, FASTEST, Mapper("program", ProgramOptions(model="analytical"))):
        candidates(layer, architecture, mapper.options)


def outcomes(plan: Plan, points: Sequence[SimulatedPoint]) -> list[Outcome]:
    """What became of points; what is known is read back."""
    with Progress("points") as progress:
        how: Any = {"workers": plan.workers, "cache": plan.results, "keep_all": True, "progress": progress}
        found = dict(run_points(points, **how))
    return [found[number] for number in range(len(points))]


def measure(
    plan: Plan,
    architecture: str,
    mappers: Sequence[Mapper],
    *,
    simulate: bool = False,
    layers: Sequence[tuple[str, NetworkLayer]] | None = None,
) -> list[dict[str, Any]]:
    """A row for every layer, mapper and seed: its place, figures or an error."""
    places, points = [], []
    for network, entry in plan.layers if layers is None else layers:
        for mapper in mappers:
            for seed in range(mapper.seeds):
                places.append((network, entry.layer.name, mapper))
                points.append(mapping(entry.layer, architecture, mapper, seed))
    found = outcomes(plan, points)
    rows: list[dict[str, Any]] = [
        {"network": network, "layer": layer, "architecture": architecture, "entry": mapper.name}
        | (outcome.get("figures") or {"error": outcome["error"]})
        for (network, layer, mapper), outcome in zip(places, found, strict=True)
    ]
    if simulate:
        mapped = [number for number, outcome in enumerate(found) if "schedule" in outcome]
        schedules = [points[number].schedule_of(found[number]) for number in mapped]
        patience = [places[number][2].patience for number in mapped]
        for number, figures in zip(mapped, simulated(plan, schedules, patience), strict=True):
            known = {name: value for name, value in figures.items() if value is not None or not FIGURES[name].clock}
            rows[number] |= known
    return rows


def mapping(layer: Layer, architecture: str, mapper: Mapper, seed: int = 0) -> PaperPoint:
    """A point that is not simulated."""
    options = mapper.options.with_(seed=seed)
    return PaperPoint(layer=layer, architecture=find_architecture(architecture), options=options, simulation=None)


def simulated(plan: Plan, schedules: Sequence[Schedule], patience: Sequence[float]) -> list[dict[str, Any]]:
    """Figures of schedules, simulated; one that takes more than the plan's seconds times its patience is given up."""
    points = []
    for schedule, times in zip(schedules, patience, strict=True):
        what: Any = {"layer": schedule.layer, "architecture": schedule.architecture, "schedule": schedule}
        points.append(PaperPoint(**what, simulation=RunOptions(time_limit_seconds=plan.simulation_seconds * times)))
    return [outcome["figures"] for outcome in outcomes(plan, points)]


def schedule_of(plan: Plan, layer: Layer, architecture: str, mapper: Mapper) -> Schedule:
    """The schedule of a mapper, from the results where it is known; its error is raised."""
    point = mapping(layer, architecture, mapper)
    (outcome,) = outcomes(plan, [point])
    require_done(outcome)
    return point.schedule_of(outcome)


# tables


def of_paper(figure: str) -> dict[str, float]:
    """The paper's values of a table or figure, by quantity."""
    with (HERE / "paper.csv").open(encoding="utf-8") as file:
        return {row["quantity"]: float(row["value"]) for row in csv.DictReader(file) if row["figure"] == figure}


def by_layer(rows: Iterable[Mapping[str, Any]], mapper: str, value: str) -> dict[tuple[str, str], float]:
    """A mapper's value of every layer (network, layer) where all its seeds have one: their geometric mean."""
    found: dict[tuple[str, str], list[float | None]] = {}
    for row in rows:
        if row["entry"] == mapper:
            found.setdefault((row["network"], row["layer"]), []).append(row.get(value))
    whole = {key: [number for number in numbers if number] for key, numbers in found.items()}
    return {key: geometric_mean(whole[key]) for key, numbers in found.items() if len(whole[key]) == len(numbers)}


def ratios(rows: Sequence[Mapping[str, Any]], base: str, mapper: str, value: str) -> dict[str, tuple[float, int]]:
    """The base's value over a mapper's: by network the geometric mean and the layers in it, then of all networks.

    `all` is the geometric mean of the networks' means. Only layers that both have count.
    """
    high, low = by_layer(rows, base, value), by_layer(rows, mapper, value)
    networks: dict[str, list[float]] = {}
    for key in high:
        if key in low:
            networks.setdefault(key[0], []).append(high[key] / low[key])
    found = {name: (geometric_mean(values), len(values)) for name, values in networks.items()}
    if found:
        layers = sum(count for _, count in found.values())
        found["all"] = (geometric_mean([mean for mean, _ in found.values()]), layers)
    return found


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """All rows, with a column for every name that one of them has."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text.getvalue())


def compare(plan: Plan, figure: str, ours: Mapping[str, float], layers: Mapping[str, int] | None = None) -> None:
    """Write and print ours beside the published values; `layers`: how many are in a value, by quantity."""
    theirs = of_paper(figure)
    counts = layers or {}
    rows = [
        {"quantity": name, "paper": theirs.get(name), "ours": value, "layers": counts.get(name)}
        for name, value in ours.items()
    ]
    missing = sorted(set(theirs) - set(ours))
    rows += [{"quantity": name, "paper": theirs[name], "ours": None, "layers": None} for name in missing]
    write_csv(plan.out / f"{figure}.csv", rows)
    print(f"{figure}: load average {os.getloadavg()[0]:.1f} at the end")
    print(f"{'':56}{'paper':>12}{'ours':>12}{'layers':>8}")
    for row in rows:
        print(f"{row['quantity']:56}{_cell(row['paper']):>12}{_cell(row['ours']):>12}{row['layers'] or '':>8}")


def _cell(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:,.4g}"


def speed_ups(
    rows: Sequence[Mapping[str, Any]], value: str, prefix: str = "", mappers: Sequence[str] = ("published", "program")
) -> tuple[dict[str, float], dict[str, int]]:
    """Means of all networks by quantity, and the layers in each: the mappers over every baseline in the rows."""
    ours, counts = {}, {}
    names = {row["entry"] for row in rows}
    for mapper in mappers:
        for base in ("random", "hybrid", "hybrid as Timeloop"):
            found = ratios(rows, base, mapper, value).get("all") if base in names else None
            if found:
                quantity = f"{prefix}speed-up of {mapper} over {base}"
                ours[quantity], counts[quantity] = found
    return ours, counts


def certificates(rows: Sequence[Mapping[str, Any]], prefix: str = "", mapper: str = "program") -> dict[str, float]:
    """How many of a mapper's answers have a proven gap of at most 1 %, of how many, and the largest gap, %."""
    gaps = [row["gap"] for row in rows if row["entry"] == mapper and "gap" in row]
    proven = [gap for gap in gaps if gap is not None]
    found = {f"{prefix}{mapper}: layers proven within 1 %": float(sum(gap <= 0.01 for gap in proven))}
    if len(proven) == len(gaps):
        return found | {f"{prefix}{mapper}: largest gap, %": 100 * max(proven, default=0.0)}
    return found | {f"{prefix}{mapper}: layers without a bound": float(len(gaps) - len(proven))}


# the command line


def start(work: Callable[[Plan], None], text: str | None) -> int:
    """Read the options and do the work; errors of input are told in a line, Ctrl-C keeps what is done."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/paper"), help="folder of tables, pictures and results")
    parser.add_argument("--quick", action="store_true", help="eight layers, smaller budgets")
    parser.add_argument("--layers", help="NETWORK:LAYER,... instead of the four networks")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seeds", type=int, help="draws of the random mapper (5; quick: 2)")
    parser.add_argument("--program-seconds", type=float, help="limit of a program (20; quick: 6)")
    parser.add_argument("--simulation-seconds", type=float, help="limit of a simulation (15)")
    parser.add_argument("--samples", type=int, help="valid mappings of figure 1 (40000; quick: 4000)")
    options = parser.parse_args()
    full = {"seeds": 5, "program_seconds": 20.0, "simulation_seconds": 15.0, "samples": 40_000}
    quick = {"seeds": 2, "program_seconds": 6.0, "simulation_seconds": 15.0, "samples": 4_000}
    defaults = quick if options.quick else full
    chosen = {name: value if (value := getattr(options, name)) is not None else defaults[name] for name in defaults}
    wrong = [name for name, value in (*chosen.items(), ("workers", options.workers)) if value <= 0]
    if wrong:
        parser.error(f"--{wrong[0].replace('_', '-')}: must be above 0")
    try:
        names = options.layers.split(",") if options.layers else QUICK_LAYERS if options.quick else None
        plan = Plan(options.out, chosen_layers(names), options.workers, **chosen, quick=options.quick)
        work(plan)
    except CosaError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted; what is done is kept, the same command goes on", file=sys.stderr)
        return 130
    return 0


def chosen_layers(names: Sequence[str] | None) -> tuple[tuple[str, NetworkLayer], ...]:
    """(network, layer) of names ``NETWORK:LAYER``; of all four networks without names."""
    if names is None:
        return tuple((name, entry) for name in FOUR_NETWORKS for entry in load_network(name).layers)
    pairs = [name.partition(":") for name in names]
    return tuple((network, load_network(network).find(layer)) for network, _, layer in pairs)


def layer_of(text: str) -> tuple[tuple[str, NetworkLayer], ...]:
    """A single layer ``NETWORK:LAYER`` as `measure` takes it."""
    return chosen_layers([text])


def kept(results: Path, what: Any, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `make` gives, or what it gave for the same `what` and sources before."""
    key = content_key(["paper", what, source_digest(SimulatedPoint.packages)])
    known = read_cached(results, key)
    if known is None:
        known = json.loads(json.dumps(make()))
        write_cached(results, key, known)
    return known
