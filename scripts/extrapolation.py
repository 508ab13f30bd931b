"""Long schedules, extrapolated and simulated exactly: cycles, error, what is claimed about it, and what it saves.

Each case is a layer of a network, a machine, what makes the schedule, and a seed:

* `random`: a valid mapping drawn at random; mostly few PEs are busy;
* `hybrid`: the best of a hybrid search that has only begun;
* `cosa`: the program's schedule. The machines whose names begin with `small` have a fraction of the buffers, so that
  such schedules get many steps, too, with all PEs busy.

Schedules with more than --steps-at-once steps of PEs together are extrapolated, as longer ones are by `nocsim run`.
Those in the table are short enough for the exact run. Times are CPU seconds.

With --random, the cases are drawn instead: any layer, machine and mapping, with as many steps as `nocsim run`
extrapolates by default and no more than half as many again, so that the exact run is still short. Those that would run
exactly from the start are passed over; the last line says how many.

    python scripts/extrapolation.py [--quick | --random N --seed S] [--csv TABLE.csv] [--exact-from TABLE.csv]
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import time
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

import cosa
from cosa.common.errors import CosaError
from cosa.model.arch import Architecture, load_architecture
from cosa.model.layer import Layer
from cosa.model.networks import load_network
from cosa.model.schedule import Schedule
from nocsim.machine.accelerator import Accelerator
from nocsim.machine.extrapolate import MARGIN_SHARE, Simulated, run, sampler_of
from nocsim.machine.limits import Limits
from nocsim.machine.sampling import STEPS_AT_ONCE
from nocsim.result.collect import collect
from nocsim.result.result import Result

MACHINES: dict[str, tuple[str, int, dict[str, dict[str, Any]]]] = {
    "simba_4x4": ("simba_4x4", 1, {}),
    "simba_8x8": ("simba_8x8", 1, {}),
    "cosa2021": ("cosa2021", 1, {}),
    "small8": ("simba_4x4", 8, {}),
    "small16": ("simba_4x4", 16, {}),
    "small32": ("simba_4x4", 32, {}),
    "small32_2021": ("cosa2021", 32, {"machine": {"weights_refetch": "physical"}}),
    "single": ("simba_4x4", 1, {"levels": {"buffers": 1}}),
    "oneread": ("simba_4x4", 1, {"machine": {"reads_in_flight": 1, "dram_packet": "holds_path"}}),
    "shared": (
        "simba_4x4",
        1,
        {
            "machine": {
                "send_engine": "shared",
                "store_waits_for": "all_pes",
                "finished_outputs": "partial_sum_width",
            }
        },
    ),
    "first": (
        "simba_4x4",
        1,
        {"machine": {"compute_starts": "first_word", "reduction": "tree", "halo_reuse": False}},
    ),
    "ddr3": ("simba_4x4", 1, {"dram": {"device": "ddr3_1600_x4"}}),
    "hbm": ("simba_4x4", 1, {"dram": {"device": "hbm2_x128"}}),
    "slowdram": ("simba_4x4", 1, {"dram": {"clocks_per_core_cycle": "1/4"}}),
}
"""Base, what its capacities are divided by (the global buffer's of `small32` by 16), and changes of its blocks."""

CASES = Path(__file__).resolve().parents[1] / "tests" / "data" / "extrapolation.csv"
"""The cases, and what their exact runs gave."""

QUICK = 4
"""Cases with the shortest exact runs in the table."""

CASE = ("network", "layer", "machine", "mapper", "seed")

DRAWN = "drawn"
"""In place of a network: the layer is what its name says, such as R3S3P14Q14C64K64."""


@cache
def architecture(name: str) -> Architecture:
    """A machine of the table."""
    base, divisor, changes = MACHINES[name]
    data = load_architecture(base).model_dump(mode="json")
    for block, fields in changes.items():
        for part in data["levels"] if block == "levels" else [data[block]]:
            part |= fields
    for level in data["levels"]:
        if level["capacity_words"] and level["capacity_words"] > 1:
            by = 16 if name == "small32" and level["name"] == "GlobalBuffer" else divisor
            level["capacity_words"] = max(1, level["capacity_words"] // by)
    return Architecture.from_data(data)


def schedule_of(case: dict[str, str]) -> Schedule:
    """The schedule of a case."""
    machine = architecture(case["machine"])
    layer = (
        drawn_layer(case["layer"])
        if case["network"] == DRAWN
        else load_network(case["network"]).find(case["layer"]).layer
    )
    if case["mapper"] == "cosa":
        return cosa.schedule(layer, machine, "published")
    few = {"samples": 1} if case["mapper"] == "random" else {"evaluations": 64}
    return cosa.schedule(layer, machine, case["mapper"], seed=int(case["seed"]), **few)


def drawn_layer(name: str) -> Layer:
    """The layer of a drawn case by its name."""
    bounds: dict[str, Any] = {dim: int(bound) for dim, bound in re.findall(r"([A-Z])(\d+)", name)}
    return Layer(name=name, **bounds, N=1)


def drawn(count: int, seed: int, steps_at_once: int) -> Iterator[tuple[dict[str, str], int]]:
    """So many cases that are not simulated exactly from the start, and how many that are were drawn before each."""
    random = Random(seed)
    passed = 0
    while count:
        bounds = {
            "R": random.choice((1, 3, 5)),
            "S": random.choice((1, 3, 5)),
            "P": random.randint(1, 28),
            "Q": random.randint(1, 28),
            "C": random.choice((3, 16, 32, 64, 96, 128)),
            "K": random.choice((16, 32, 64, 96, 128, 256)),
        }
        name = "".join(f"{dim}{bound}" for dim, bound in bounds.items())
        machine, mapping = random.choice(list(MACHINES)), str(random.randrange(10_000))
        case = dict(zip(CASE, (DRAWN, name, machine, "random", mapping), strict=True))
        accelerator = Accelerator(schedule_of(case))
        if not steps_at_once < accelerator.traffic.steps * len(accelerator.pes) <= 1.5 * steps_at_once:
            continue
        if sampler_of(accelerator).plan() is None:
            passed += 1
            continue
        yield case, passed
        count, passed = count - 1, 0


def simulated(schedule: Schedule, steps_at_once: int, exact: bool) -> tuple[Result, float]:
    """The result, and CPU seconds."""
    started = time.process_time()
    done = run(Simulated(schedule), Limits(), None, exact=exact, steps_at_once=steps_at_once)
    return collect(done.accelerator, None, done.runs, done.error), time.process_time() - started


def words_of(result: Result) -> str:
    """A digest of all that moved: words, packets, flits and bytes, by tensor and node."""
    moved = result.model_dump(mode="json", include={"flows", "tensors", "nodes"})
    return sha256(repr(moved).encode()).hexdigest()[:12]


def row_of(case: dict[str, str], steps_at_once: int, known: dict[str, str] | None) -> dict[str, Any]:
    """A row of the table; `known` has the exact run's figures."""
    schedule = schedule_of(case)
    found, seconds = simulated(schedule, steps_at_once, exact=False)
    if known is None:
        exact, exact_seconds = (found, seconds) if found.method == "exact" else simulated(schedule, 0, exact=True)
        known = {"exact_cycles": str(exact.cycles.total), "exact_cpu_s": f"{exact_seconds:.1f}"}
        known["words"] = words_of(exact)
    part = found.extrapolation
    return {name: case[name] for name in CASE} | {
        "pes": sum(pe.used for pe in found.pes),
        "steps": found.cycles.steps,
        "exact_cycles": known["exact_cycles"],
        "words": known["words"],
        "exact_cpu_s": known["exact_cpu_s"],
        "method": found.method,
        "cycles": found.cycles.total,
        "error": f"{found.cycles.total / int(known['exact_cycles']) - 1:.5f}",
        "standard_error": f"{part.standard_error_share:.5f}" if part else "",
        "shift": f"{part.shift_share:.5f}" if part else "",
        "margin": f"{part.margin_share:.5f}" if part else "",
        "simulated": f"{part.simulated_steps / found.cycles.steps:.4f}" if part else "1",
        "runs": part.runs if part else "",
        "same_words": "same" if words_of(found) == known["words"] else "DIFFER",
        "cpu_s": f"{seconds:.1f}",
    }


def line_of(row: dict[str, Any]) -> str:
    """A row to print."""
    share = {name: f"{float(row[name]):+.3%}" if row[name] else "-" for name in ("error", "shift")}
    share |= {name: f"{float(row[name]):.3%}" if row[name] else "-" for name in ("standard_error", "margin")}
    return (
        f"{row['network'][:10] + ' ' + row['layer'][:18]:26}{row['machine']:13}{row['mapper']:7}{row['seed']:>4}"
        f"{row['pes']:>4}{row['steps']:>8}{float(row['simulated']):>7.1%}{int(row['exact_cycles']):>12,}"
        f"{share['error']:>9}{share['standard_error']:>8}{share['shift']:>9}{share['margin']:>8}"
        f" {row['same_words']:6}{row['cpu_s']:>7}{row['exact_cpu_s']:>7}"
    )


def main() -> int:
    """Print a row a case, and the worst error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"only the {QUICK} cases with the shortest exact runs")
    parser.add_argument("--cases", metavar="FILE", type=Path, default=CASES, help="a table with other cases")
    parser.add_argument("--csv", metavar="FILE", type=Path, help="write the table")
    parser.add_argument("--exact-from", metavar="FILE", type=Path, help="exact figures of an earlier table")
    parser.add_argument("--random", metavar="N", type=int, help="draw so many cases instead")
    parser.add_argument("--seed", type=int, default=0, help="of the cases that are drawn (0)")
    parser.add_argument(
        "--steps-at-once",
        type=int,
        help=f"extrapolate beyond so many steps (20,000; with --random {STEPS_AT_ONCE:,}, as by default)",
    )
    options = parser.parse_args()
    if options.random is not None and options.random < 1:
        parser.error("--random takes a whole number from 1 on")
    steps_at_once: int = options.steps_at_once or (STEPS_AT_ONCE if options.random else 20_000)
    cases: Iterable[tuple[dict[str, str], int]]
    if options.random:
        cases = drawn(options.random, options.seed, steps_at_once)
    else:
        with options.cases.open(newline="") as file:
            table = list(csv.DictReader(file))
        if options.quick:
            table = sorted(table, key=lambda case: float(case["exact_cpu_s"]))[:QUICK]
        cases = ((case, 0) for case in table)
    known: dict[tuple[str, ...], dict[str, str]] = {}
    if options.exact_from:
        with options.exact_from.open(newline="") as file:
            known = {tuple(row[name] for name in CASE): row for row in csv.DictReader(file)}
    print(
        f"{'network, layer':26}{'machine':13}{'mapper':7}{'seed':>4}{'PEs':>4}{'steps':>8}{'simul.':>7}{'exact':>12}"
        f"{'error':>9}{'std err':>8}{'shift':>9}{'margin':>8} {'words':6}{'CPU s':>7}{'exact':>7}"
    )
    rows, passed = [], 0
    try:
        for case, more in cases:
            row = row_of(case, steps_at_once, known.get(tuple(case[name] for name in CASE)))
            rows.append(row)
            passed += more
            print(line_of(row), flush=True)
    except CosaError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    if options.csv:
        with options.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    parts = [row for row in rows if row["method"] == "extrapolated"]
    errors = [abs(float(row["error"])) for row in rows]
    if options.random:
        print(f"{passed} more were drawn that run exactly from the start")
    print(
        f"{len(rows)} schedules, {len(parts)} extrapolated; largest error {max(errors):.3%}, mean {mean(errors):.3%}; "
        f"beyond its margin: {sum(abs(float(row['error'])) > float(row['margin']) + 5e-6 for row in parts)}; "
        f"words differ: {sum(row['same_words'] != 'same' for row in rows)}; "
        f"CPU seconds of those extrapolated {sum(float(row['cpu_s']) for row in parts):,.0f}, "
        f"exactly {sum(float(row['exact_cpu_s']) for row in parts):,.0f}"
    )
    return 0 if max(errors) <= MARGIN_SHARE and all(row["same_words"] == "same" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
