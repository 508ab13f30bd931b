"""Figure 10: speed-ups over random on the simulator, four networks, on cosa2021 and on simba_4x4.

The searches look for the least analytical latency, as in the paper; their schedules are then simulated. program is
the machine program for the latency of the simulated machine. Simulations that reach their time limit are given up.

* One of random or hybrid counts with what it cannot be below (the cycle reached, or the bound of the schedule): its
  speed-up is `at least` this. One that was given up below the cycles of a program is simulated once more for as long
  as the programs may take.
* Of a program's nothing is known from above. Its layer counts with ratio 1, or with less where the baseline came to its
  end in fewer cycles than the program's had reached. That is a convention, no bound: how many layers count so stands
  in the table, and the mean without them.

`both simulated`: layers where both simulations came to their end, the fastest ones.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from common import (
    HYBRID,
    PUBLISHED,
    Mapper,
    Plan,
    certificates,
    compare,
    measure,
    program_of,
    random_of,
    ratios,
    speed_ups,
    start,
    write_csv,
)
from pictures import bars

ARCHITECTURES = ("cosa2021", "simba_4x4")
BASELINES = ("random", "hybrid")
PROGRAMS = ("published", "program")
PATIENCE = 20.0
"""A program's schedule that is given up says nothing, and there are few slow ones."""
Row = Mapping[str, Any]


def given_up(row: Row) -> bool:
    return row.get("ended", "finished") not in ("finished", None)


def key(row: Row) -> tuple[str, str]:
    return row["network"], row["layer"]


def simulated_again(plan: Plan, architecture: str, rows: list[Row], baselines: Sequence[Mapper]) -> list[Row]:
    """The rows, with baselines that were given up below a program's cycles simulated for as long as programs are."""
    slowest: dict[tuple[str, str], float] = {}
    for row in rows:
        if row["entry"] in PROGRAMS:
            slowest[key(row)] = max(slowest.get(key(row), 0), row.get("at_least_cycles", 0))
    for mapper in baselines:
        its = [row for row in rows if row["entry"] == mapper.name and given_up(row)]
        short = {key(row) for row in its if row["at_least_cycles"] < slowest[key(row)]}
        layers = [entry for entry in plan.layers if (entry[0], entry[1].layer.name) in short]
        if layers:
            patient = replace(mapper, patience=PATIENCE)
            again = {key(row): row for row in measure(plan, architecture, [patient], simulate=True, layers=layers)}
            rows = [again.get(key(row), row) if row["entry"] == mapper.name else row for row in rows]
    return rows


def counted(rows: Sequence[Row], base: str) -> tuple[list[Row], dict[str, int]]:
    """Rows of a baseline and the programs with `counted_cycles`, and by program how many layers count by convention."""
    theirs = {key(row): row for row in rows if row["entry"] == base and row.get("at_least_cycles")}
    found, assumed = [], dict.fromkeys(PROGRAMS, 0)
    for row in rows:
        other = theirs.get(key(row))
        if other is None or row["entry"] not in (base, *PROGRAMS) or not row.get("at_least_cycles"):
            continue
        cycles = row["at_least_cycles"]
        if row["entry"] in PROGRAMS and given_up(row):
            # Where the baseline came to its end first, a ratio of 1 is known to be too much.
            cycles = other["at_least_cycles"] if given_up(other) else max(other["at_least_cycles"], cycles)
            assumed[row["entry"]] += 1
        found.append({**row, "counted_cycles": cycles})
    return found, assumed


def work(plan: Plan) -> None:
    rows: list[Row] = []
    ours: dict[str, float] = {}
    counts: dict[str, int] = {}
    draws = replace(random_of(plan), seeds=1)  # simulations of random mappings are what takes the time
    programs = [replace(mapper, patience=PATIENCE) for mapper in (PUBLISHED, program_of(plan, "latency", "network"))]
    for architecture in ARCHITECTURES:
        found: list[Row] = [*measure(plan, architecture, [draws, HYBRID, *programs], simulate=True)]
        found = simulated_again(plan, architecture, found, (draws, HYBRID))
        rows += found
        write_csv(plan.out / "figure10_layers.csv", rows)
        groups: dict[str, dict[str, float]] = {}
        for base in BASELINES:
            whole, assumed = counted(found, base)
            means, layers = speed_ups(whole, "counted_cycles", f"{architecture}, at least: ")
            ours, counts = ours | means, counts | layers
            if any(assumed.values()):
                known = [row for row in whole if row["entry"] == base or not given_up(row)]
                means, layers = speed_ups(known, "at_least_cycles", f"{architecture}, at least, without these: ")
                ours, counts = ours | means, counts | layers
            for mapper in PROGRAMS:
                name = f"{architecture}: given up, counted as 1: {mapper} over {base}"
                ours[name], counts[name] = float(assumed[mapper]), sum(row["entry"] == mapper for row in whole)
                for network, (mean, number) in ratios(whole, base, mapper, "counted_cycles").items():
                    groups.setdefault(network, {})[f"{mapper} over {base}"] = mean
                    if network != "all":
                        name = f"{architecture}, at least: {network}: {mapper} over {base}"
                        ours[name], counts[name] = mean, number
        means, layers = speed_ups(found, "simulated_cycles", f"{architecture}, both simulated: ")
        ours, counts = ours | means, counts | layers
        for mapper in (*BASELINES, *PROGRAMS):
            its = [row for row in found if row["entry"] == mapper]
            name = f"{architecture}: simulations of {mapper} given up"
            ours[name], counts[name] = float(sum(map(given_up, its))), len(its)
        ours |= certificates(found, f"{architecture}: ")
        picture = plan.out / f"figure10_{architecture}.png"
        ordered = {name: groups[name] for name in sorted(groups, key=lambda name: name == "all")}
        bars(picture, ordered, "speed-up (simulated, at least)", title=architecture, line=1.0)
    compare(plan, "figure10", ours, counts)


if __name__ == "__main__":
    sys.exit(start(work, __doc__))
