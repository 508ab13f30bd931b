"""Figure 10: speed-ups over random on the simulator, four networks, on cosa2021 and on simba_4x4.

The searches look for the least analytical latency, as in the paper; their schedules are then simulated. certified is
the machine program for the latency of the simulated machine. A simulation that reaches its time limit gives no value,
and the layer is left out of the means with that mapper: as such schedules are the slow ones, that makes the speed-ups
smaller. `at least`: all layers, with the lower bound of the machine in place of what the baselines would have taken.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from common import COSA, HYBRID, Plan, certified, compare, measure, random_of, ratio_bars, speed_ups, start, write_csv

ARCHITECTURES = ("cosa2021", "simba_4x4")
BASELINES = ("random", "hybrid")


def work(plan: Plan) -> None:
    rows, ours, counts = [], {}, {}
    draws = replace(random_of(plan), seeds=1)  # simulations of random mappings are what takes the time
    for architecture in ARCHITECTURES:
        mappers = [draws, HYBRID, COSA, certified(plan, "latency", "network")]
        found = measure(plan, architecture, mappers, simulate=True)
        means, layers = speed_ups(found, "simulated_cycles", f"{architecture}: ")
        ours, counts = ours | means, counts | layers
        picture = plan.out / f"figure10_{architecture}.png"
        label = "speed-up over random (simulated)"
        ratio_bars(picture, found, "simulated_cycles", ("hybrid", "cosa", "certified"), label, title=architecture)
        rows += found
        write_csv(plan.out / "figure10_layers.csv", rows)
        bounded = [row for row in found if row["mapper"] in BASELINES or row.get("simulated_cycles")]
        means, layers = speed_ups(bounded, "at_least_cycles", f"{architecture}, at least: ")
        ours, counts = ours | means, counts | layers
        given_up = [row for row in found if str(row.get("simulation")).startswith("given up")]
        counts_name = f"{architecture}: simulations given up"
        ours[counts_name], counts[counts_name] = float(len(given_up)), len(found)
    compare(plan, "figure10", ours, counts)


if __name__ == "__main__":
    sys.exit(start(work, __doc__))
