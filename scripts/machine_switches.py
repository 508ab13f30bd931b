"""What each machine switch is worth on ten ResNet-50 layers, one switch at a time.

The first eight are set as in the published machine; the others are choices that it does not have.

    python scripts/machine_switches.py [--arch simba_4x4] [--layers input.8,input.70]

Cycles with the switch over cycles without, a row a layer and the geometric mean; more than 1 is slower.
"""

from __future__ import annotations

import argparse
import sys
from statistics import geometric_mean
from typing import Any

import cosa
import nocsim
from cosa.arch import Architecture
from cosa.errors import CosaError

LAYERS = "input.2,input.8,input.11,input.36,input.70,input.76,input.83,input.128,input.135,3356"

SWITCHES: dict[str, dict[str, dict[str, Any]]] = {
    "1 read": {"machine": {"reads_in_flight": 1}},
    "1 read, path held": {"machine": {"reads_in_flight": 1, "dram_packet": "holds_path"}},
    "1 engine": {"machine": {"send_engine": "shared"}},
    "all store": {"machine": {"store_waits_for": "all_pes"}},
    "24 bit": {"machine": {"finished_outputs": "partial_sum_width"}},
    "no halo": {"machine": {"halo_reuse": False}},
    "no chunks": {"machine": {"chunk_packets": None}},
    "full packets": {"noc": {"partial_packets": "full"}},
    "first word": {"machine": {"compute_starts": "first_word"}},
    "tree": {"machine": {"reduction": "tree"}},
    "transposed": {"machine": {"placement": "transposed"}},
    "row major": {"machine": {"placement": "row_major"}},
    "column major": {"machine": {"placement": "column_major"}},
    "rows reversed": {"machine": {"placement": "row_major_reversed"}},
}


def changed(architecture: Architecture, changes: dict[str, dict[str, Any]]) -> Architecture:
    """An architecture with some fields of some blocks replaced."""
    data = architecture.model_dump(mode="json")
    for block, fields in changes.items():
        data[block] |= fields
    return Architecture.from_data(data)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="simba_4x4")
    parser.add_argument("--network", default="resnet50")
    parser.add_argument("--layers", default=LAYERS)
    options = parser.parse_args()
    print(f"{'layer':12}{'cycles':>10}" + "".join(f"{name:>19}" for name in SWITCHES))
    ratios: dict[str, list[float]] = {name: [] for name in SWITCHES}
    try:
        architecture = cosa.load_architecture(options.arch)
        network = cosa.load_network(options.network)
        for name in options.layers.split(","):
            schedule = cosa.schedule(network.find(name).layer, architecture, objective="cosa")
            usual = nocsim.simulate(schedule).cycles.total
            line = f"{name:12}{usual:>10,}"
            for switch, changes in SWITCHES.items():
                result = nocsim.simulate(schedule, architecture=changed(architecture, changes))
                ratios[switch].append(result.cycles.total / usual)
                line += f"{ratios[switch][-1]:>19.3f}"
            print(line, flush=True)
    except CosaError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"{'mean':22}" + "".join(f"{geometric_mean(values):>19.3f}" for values in ratios.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
