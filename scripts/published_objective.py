"""CoSA's published objective on the layers of ResNet-50: the reference, our optimum, and what true footprints change.

Columns: `reference`, the optimum of the published program measured elsewhere (tests/data/cosa); `published`, ours of
the same program; `fits`, whether the schedule it gives fits the buffers; `true`, the optimum with true footprints;
`published of true`, what the published objective says of that schedule (below `published` where the published program
takes it for too large: it charges a stride once for every prime factor); seconds of the two solves.
"""

from __future__ import annotations

import csv
from math import exp, log
from pathlib import Path

import cosa
from cosa.mappers.nests import build_nest
from cosa.mip.aggregated import Program
from cosa.mip.nest import breakdown
from cosa.mip.quantities import Rules
from cosa.mip.solver import solve
from cosa.model.arch import load_architecture
from cosa.model.networks import load_network
from cosa.model.validity import violations

REFERENCE = Path(__file__).parent.parent / "tests" / "data" / "cosa" / "published_objectives.csv"
NETWORK, GAP, EQUAL = "resnet50", 1e-4, 1e-5


def main() -> None:
    architecture = load_architecture("simba_4x4")
    with REFERENCE.open() as file:
        reference = {row["layer"]: float(row["objective"]) for row in csv.DictReader(file) if row["network"] == NETWORK}
    rules = Rules(as_published=True)
    equal, seconds, true_seconds = 0, [], []
    print(
        f"{'layer':10} {'reference':>11} {'published':>11} {'difference':>10} {'fits':>4} {'true':>9} "
        f"{'published of true':>17} {'difference':>10} {'s':>6} {'s, true':>7}"
    )
    for entry in load_network(NETWORK).layers:
        layer = entry.layer
        program = Program(layer, architecture, rules=rules)
        result = solve(program.model, gap=GAP)
        assert result.objective is not None
        factors = program.decode()
        nest = build_nest(architecture, factors, {program.order_level: factors.innermost})
        buffers = [v for v in violations(layer, architecture, nest) if "tiles" in v.what]
        true = cosa.schedule(layer, architecture, "published", gap=GAP)
        assert true.provenance.objective_value is not None and true.timing is not None
        of_true = breakdown(layer, architecture, true.nest, rules=rules)["total"]
        difference = result.objective - reference[layer.name]
        equal += abs(difference) <= EQUAL
        seconds.append(result.seconds)
        true_seconds.append(true.timing.solve_seconds)
        print(
            f"{layer.name:10} {reference[layer.name]:11.5f} {result.objective:11.5f} {difference:+10.5f} "
            f"{'no' if buffers else 'yes':>4} {true.provenance.objective_value:9.4f} {of_true:17.4f} "
            f"{of_true - result.objective:+10.4f} {seconds[-1]:6.3f} {true_seconds[-1]:7.3f}"
        )
    print(f"equal to {EQUAL:g}: {equal} of {len(seconds)} layers")
    for name, values in (("published", seconds), ("true footprints", true_seconds)):
        mean = exp(sum(map(log, values)) / len(values))
        print(
            f"solve seconds, {name}: geometric mean {mean:.3f}, median {sorted(values)[len(values) // 2]:.3f}, "
            f"largest {max(values):.3f}"
        )


if __name__ == "__main__":
    main()
