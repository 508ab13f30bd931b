"""Long schedules, simulated exactly and extrapolated: cycles, error, and what it saves.

The schedules are the first valid ones that the random mapper draws. Those with more than --most steps are extrapolated
only. Times are CPU seconds.
"""

from __future__ import annotations

import argparse
import time

import nocsim
from cosa.analytical.traffic import Traffic
from cosa.arch import load_architecture
from cosa.mappers import map_layer
from cosa.mappers.search import Budget
from cosa.networks import load_network

CASES = ("input.40:0", "input.15:6", "input.40:10", "input.83:3", "input.83:11")
"""Random schedules of ResNet-50 with 3 to 12 times 10^4 steps, of which at most half are simulated."""


def main() -> None:
    """Print a row a schedule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="simba_4x4")
    parser.add_argument("--network", default="resnet50")
    parser.add_argument("cases", nargs="*", default=list(CASES), help="layer:seed of the random mapper")
    parser.add_argument("--most", type=int, default=120_000, help="steps up to which the exact run is made as well")
    options = parser.parse_args()
    architecture = load_architecture(options.arch)
    print(
        f"{'layer':12}{'seed':>5}{'steps':>10}{'simulated':>10}{'exact':>12}{'extrapolated':>13}{'error':>8}"
        f"{'std err':>8}{'words':>6}{'CPU s':>8}{'exact':>8}{'saves':>7}"
    )
    worst = 0.0
    layers = {entry.layer.name: entry.layer for entry in load_network(options.network).layers}
    for case in options.cases:
        name, seed = case.rsplit(":", 1)
        schedule = map_layer("random", layers[name], architecture, budget=Budget(samples=1), seed=int(seed))
        steps = Traffic(schedule.padded_layer, architecture, schedule.nest).steps
        started = time.process_time()
        found = nocsim.simulate(schedule)
        seconds = time.process_time() - started
        part = found.extrapolation
        row = f"{name:12}{seed:>5}{steps:>10}{part.simulated_steps if part else steps:>10}"
        if steps > options.most:
            print(f"{row}{'':>12}{found.cycles.total:>13,}{'':>8}", end="")
            print(f"{part.standard_error_share if part else 0:>8.2%}{'':>6}{seconds:>8.1f}", flush=True)
            continue
        started = time.process_time()
        exact = nocsim.simulate(schedule, exact=True)
        exact_seconds = time.process_time() - started
        error = found.cycles.total / exact.cycles.total - 1
        worst = max(worst, abs(error))
        same = found.flows == exact.flows and found.tensors == exact.tensors and found.nodes == exact.nodes
        print(
            f"{row}{exact.cycles.total:>12,}{found.cycles.total:>13,}{error:>+8.2%}"
            f"{part.standard_error_share if part else 0:>8.2%}{'same' if same else 'DIFFER':>7}"
            f"{seconds:>7.1f}{exact_seconds:>8.1f}{exact_seconds / seconds:>6.1f}x",
            flush=True,
        )
    print(f"largest error {worst:.2%}")


if __name__ == "__main__":
    main()
