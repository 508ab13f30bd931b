"""All unique layers of a network, scheduled and simulated: one row a layer, totals with the occurrences counted.

python scripts/resnet50.py [--arch simba_4x4] [--network resnet50] [--objective latency] [--against cosa] [--csv FILE]
                           [--no-timing]

Columns: /proven: simulated cycles over what no schedule of the layer can run below (`machine_bound_cycles` of the
schedule; - for objectives that do not prove it). /own: over the bound of this schedule (the busiest port, link or
compute, with nothing before or after it). against: cycles of the schedule of another objective over these. Simulations
are exact.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import cosa
from cosa.common.errors import CosaError
from cosa.common.progress import Progress
from cosa.experiments.figures import made_text, totals
from cosa.experiments.pipeline import rows_of
from cosa.mappers.registry import options_of
from nocsim.experiments.pipeline import FIGURES, SimulatedPoint
from nocsim.options import RunOptions


def measured(network: str, arch: str, objective: str) -> list[dict[str, Any]]:
    """A row a layer."""
    options, architecture = options_of(None, {"objective": objective}), cosa.load_architecture(arch)
    layers = cosa.load_network(network).layers
    how: dict[str, Any] = {"architecture": architecture, "options": options, "simulation": RunOptions(exact=True)}
    with Progress("layers") as progress:
        rows = rows_of([SimulatedPoint(layer=entry.layer, **how) for entry in layers], progress=progress)
    return [{"layer": entry.layer.name, "count": entry.count, **row} for entry, row in zip(layers, rows, strict=True)]


def over(row: dict[str, Any], name: str) -> float | None:
    """Simulated cycles over a figure."""
    return row["simulated_cycles"] / row[name] if row[name] else None


def shown(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.3f}"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="simba_4x4")
    parser.add_argument("--network", default="resnet50")
    parser.add_argument("--objective", default="latency", help="of the schedules: latency, energy, edp, cosa, ...")
    parser.add_argument("--against", help="objective of other schedules to compare with, such as cosa")
    parser.add_argument("--csv", help="write the table as CSV as well")
    parser.add_argument("--no-timing", action="store_true", help="leave wall-clock seconds out")
    options = parser.parse_args()
    try:
        rows = measured(options.network, options.arch, options.objective)
        others = measured(options.network, options.arch, options.against) if options.against else rows
    except CosaError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"{options.network} on {options.arch}, by {made_text(rows)}")
    print(
        f"{'layer':14}{'x':>3}{'compute':>11}{'analytical':>12}{'simulated':>11}{'ratio':>7}{'/proven':>9}"
        f"{'/own':>7}{'against':>9}{'MACs':>7}{'row hit':>9}"
        + ("" if options.no_timing else f"{'solve s':>9}{'sim s':>7}")
    )
    for row, other in zip(rows, others, strict=True):
        row["against_over_simulated"] = other["simulated_cycles"] / row["simulated_cycles"] if options.against else None
        print(
            f"{row['layer']:14}{row['count']:>3}{row['compute_cycles']:>11,}{row['analytical_cycles']:>12,}"
            f"{row['simulated_cycles']:>11,}{over(row, 'analytical_cycles'):>7.2f}"
            f"{shown(over(row, 'machine_bound_cycles')):>9}{over(row, 'bound_cycles'):>7.3f}"
            f"{shown(row['against_over_simulated']):>9}{row['mac_utilisation']:>7.1%}{row['row_hit_rate']:>9.1%}"
            + ("" if options.no_timing else f"{row['solve_seconds']:>9.3f}{row['simulate_seconds']:>7.2f}")
        )
    whole = totals(rows, FIGURES)
    print(
        f"{'network':14}{sum(row['count'] for row in rows):>3}{whole['compute_cycles']:>11,}"
        f"{whole['analytical_cycles']:>12,}{whole['simulated_cycles']:>11,}{over(whole, 'analytical_cycles'):>7.2f}"
    )
    for name, values in (
        ("simulated / proven bound of all schedules", [over(row, "machine_bound_cycles") for row in rows]),
        ("simulated / own bound", [over(row, "bound_cycles") for row in rows]),
        (f"{options.against} / simulated", [row["against_over_simulated"] for row in rows]),
    ):
        known = [value for value in values if value is not None]
        if known:
            print(f"{name}, geometric mean of {len(known)} layers: {geometric_mean(known):.3f}")
    if not options.no_timing:
        solve = geometric_mean([row["solve_seconds"] for row in rows])
        print(f"{whole['seconds']:.1f} s in all; solver {solve:.3f} s a layer (geometric mean)")
    if options.csv:
        clocks = [name for name, figure in FIGURES.items() if figure.clock] if options.no_timing else []
        with Path(options.csv).open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(row | dict.fromkeys(clocks) for row in rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
