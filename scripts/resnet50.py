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
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean

import cosa
import nocsim
from cosa.common.errors import CosaError
from cosa.model.networks import NetworkLayer


@dataclass(frozen=True)
class Row:
    """One layer: cycles by three models, what the PEs did, what the solver took."""

    layer: str
    count: int
    macs: int
    compute_cycles: int
    analytical_cycles: int
    simulated_cycles: int
    simulated_over_analytical: float
    simulated_over_proven: float | None
    simulated_over_own_bound: float
    against_over_simulated: float | None
    mac_utilisation: float
    pe_computing_share: float
    dram_row_hit_rate: float
    solver_status: str
    gap: float
    solve_seconds: float
    simulate_seconds: float


def run_layer(entry: NetworkLayer, arch: str, objective: str, against: str | None) -> Row:
    """Schedule and simulate one layer."""
    schedule = cosa.schedule(entry.layer, arch, objective=objective)
    result = nocsim.simulate(schedule, exact=True)
    other = None
    if against:
        other = nocsim.simulate(cosa.schedule(entry.layer, arch, objective=against), exact=True).cycles.total
    provenance, timing = schedule.provenance, schedule.timing
    channels = result.dram.channels
    hits = sum(c.row_hits for c in channels)
    columns = sum(c.reads + c.writes for c in channels)
    assert result.timing is not None
    return Row(
        layer=entry.layer.name,
        count=entry.count,
        macs=entry.layer.macs,
        compute_cycles=result.cycles.compute_only,
        analytical_cycles=result.cycles.analytical,
        simulated_cycles=result.cycles.total,
        simulated_over_analytical=result.cycles.total / result.cycles.analytical,
        simulated_over_proven=(
            result.cycles.total / provenance.machine_bound_cycles if provenance.machine_bound_cycles else None
        ),
        simulated_over_own_bound=result.cycles.total / result.cycles.bound,
        against_over_simulated=None if other is None else other / result.cycles.total,
        mac_utilisation=result.mac_utilisation,
        pe_computing_share=sum(pe.computing for pe in result.pes) / len(result.pes) / result.cycles.total,
        dram_row_hit_rate=hits / columns if columns else 0.0,
        solver_status=str(provenance.solver_status),
        gap=provenance.gap if provenance.gap is not None else float("nan"),
        solve_seconds=timing.solve_seconds if timing else 0.0,
        simulate_seconds=result.timing.simulate_seconds,
    )


def _shown(ratio: float | None) -> str:
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
    started = time.perf_counter()
    rows = []
    head = (
        f"{'layer':14}{'x':>3}{'compute':>11}{'analytical':>12}{'simulated':>11}{'ratio':>7}{'/proven':>9}"
        f"{'/own':>7}{'against':>9}{'MACs':>7}{'row hit':>9}"
    )
    print(head + ("" if options.no_timing else f"{'solve s':>9}{'sim s':>7}"))
    try:
        network = cosa.load_network(options.network)
        for entry in network.layers:
            row = run_layer(entry, options.arch, options.objective, options.against)
            rows.append(row)
            line = (
                f"{row.layer:14}{row.count:>3}{row.compute_cycles:>11,}{row.analytical_cycles:>12,}"
                f"{row.simulated_cycles:>11,}{row.simulated_over_analytical:>7.2f}"
                f"{_shown(row.simulated_over_proven):>9}{row.simulated_over_own_bound:>7.3f}"
                f"{_shown(row.against_over_simulated):>9}{row.mac_utilisation:>7.1%}{row.dram_row_hit_rate:>9.1%}"
            )
            print(
                line + ("" if options.no_timing else f"{row.solve_seconds:>9.3f}{row.simulate_seconds:>7.2f}"),
                flush=True,
            )
    except CosaError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    compute, analytical, simulated = (
        sum(getattr(row, name) * row.count for row in rows)
        for name in ("compute_cycles", "analytical_cycles", "simulated_cycles")
    )
    print(
        f"{'network':14}{sum(r.count for r in rows):>3}{compute:>11,}{analytical:>12,}{simulated:>11,}"
        f"{simulated / analytical:>7.2f}"
    )
    for name, values in (
        ("simulated / proven bound of all schedules", [row.simulated_over_proven for row in rows]),
        ("simulated / own bound", [row.simulated_over_own_bound for row in rows]),
        (f"{options.against} / simulated", [row.against_over_simulated for row in rows]),
    ):
        known = [value for value in values if value is not None]
        if known:
            print(f"{name}, geometric mean of {len(known)} layers: {geometric_mean(known):.3f}")
    if not options.no_timing:
        solve = 1.0
        for row in rows:
            solve *= row.solve_seconds ** (1 / len(rows))
        print(f"{time.perf_counter() - started:.1f} s in all; solver {solve:.3f} s a layer (geometric mean)")
    if options.csv:
        with Path(options.csv).open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(asdict(rows[0])), lineterminator="\n")
            writer.writeheader()
            for row in rows:
                data = asdict(row)
                if options.no_timing:
                    data["solve_seconds"] = data["simulate_seconds"] = ""
                writer.writerow(data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
