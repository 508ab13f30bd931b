"""What each machine switch is worth on ten ResNet-50 layers, one switch at a time.

The first eight are set as in the published machine; the others are choices that it does not have.

    python scripts/machine_switches.py [--arch simba_4x4] [--layers input.8,input.70]
    python scripts/machine_switches.py --published [--layers input.8,input.70]

Cycles with the switch over cycles without, a row a layer and the geometric mean; more than 1 is slower.

`--published`: our machine with the published rules against the published machine itself, both with the schedule that
CoSA's own program gives (`--as-published`), with DRAM. Columns:

* `simulated`: cycles on cosa2021. `replayed`: cycles of the generator's list on the published simulator.
* `ratio`: simulated over replayed; `refetch`: the same with `weights_refetch: physical`; `no_dram`: with a DRAM that
  never waits in both. `trimmed`: simulated with `partial_packets: trimmed` over simulated; `whole`: with PEs that hold
  the outputs of all loops inside them, so that they send them once in a step of the generator, over simulated.
* `waiting`: the replay where each compute also waits for what was sent to its PE in earlier steps, over the replay;
  `freed`: where inputs are loaded into the global buffer once the tile two steps before has been sent, and not only
  once all PEs have computed with it.
* `steps`: of a PE, ours over the generator's. `inputs`, `weights`, `outputs`: packets to and from PEs and DRAM, ours
  over the generator's.
* `loads`: partial sums that come back to PEs and buffer, packets, ours and the generator's.
* `idle`: PEs without work, which compute there.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from statistics import geometric_mean
from typing import Any

import cosa
import nocsim
from cosa.analytical.loads import transfers
from cosa.analytical.traffic import Traffic
from cosa.common.errors import CosaError
from cosa.experiments.pipeline import rows_of
from cosa.model.arch import Architecture
from cosa.model.schedule import Schedule
from nocsim.experiments.pipeline import SimulatedPoint
from nocsim.published.generator import PublishedDataflow
from nocsim.published.replay import replay_transactions
from nocsim.published.transactions import Transaction

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


def replayed(schedule: Schedule, transactions: list[Transaction], memory: str = "dramsim2") -> int:
    """Cycles of a list on the published simulator."""
    columns, rows = schedule.architecture.fanout(schedule.architecture.mesh_level)
    return replay_transactions(transactions, columns, rows + 1, memory).total_cycles


def waiting(transactions: list[Transaction]) -> Iterator[Transaction]:
    """A list in which a compute waits for the latest of each class that was sent to its PE."""
    latest: dict[int, dict[str, int]] = {}
    for item in transactions:
        if item.operation == "compute":
            waits = sorted({*item.dependencies, *latest.get(item.actor, {}).values()})
            yield replace(item, dependencies=tuple(waits))
            continue
        for pe in item.destinations:
            latest.setdefault(pe, {})[dict(item.labels)["class"]] = item.number
        yield item


def freed(transactions: list[Transaction]) -> Iterator[Transaction]:
    """A list in which a tile of inputs at the global buffer gives room when it has been sent to the PEs."""
    sent: dict[int, list[int]] = {}
    for item in transactions:
        labels = dict(item.labels)
        step = int(labels["mem_step"])
        if labels["class"] == "inputs_gb_to_pe":
            sent.setdefault(step, []).append(item.number)
        if labels["class"] == "inputs_dram_to_gb" and item.dependencies:
            item = replace(item, dependencies=tuple(sent.get(step - 2, ())))
        yield item


def packets(schedule: Schedule, transactions: list[Transaction]) -> tuple[Counter[str], Counter[str]]:
    """Packets by tensor, ours and the generator's, but those between PEs; ``loads``: partial sums that come back."""
    ours, theirs = Counter[str](), Counter[str]()
    for found in transfers(Traffic(schedule.padded_layer, schedule.architecture, schedule.nest)):
        if found.kind != "reduction":
            number = -(-found.n_bytes // 32) * found.count
            ours["loads" if found.kind == "reload" else found.tensor] += number
    for item in transactions:
        name = dict(item.labels)["class"]
        if name not in ("compute", "psums_pe_to_pe"):
            theirs["loads" if name.startswith("psums") else name.split("_")[0]] += item.size
    return ours, theirs


def with_whole_outputs(schedule: Schedule) -> Schedule:
    """The schedule on a machine whose PEs keep outputs, as inputs, at their outermost level, with room for them."""
    architecture = schedule.architecture
    top = architecture.mesh_level - 1
    data = architecture.model_dump(mode="json")
    data["levels"][top] |= {"keeps": [*data["levels"][top]["keeps"], "outputs"], "capacity_words": 2**30}
    nest = list(schedule.innermost_first)
    nest[top] = nest[top].with_(keeps=(*nest[top].keeps, "outputs"))
    return Schedule.make(schedule.layer, Architecture.from_data(data), tuple(nest[::-1]), schedule.provenance)


def against_published(layers: list[str]) -> None:
    """Print the table of `--published`."""
    names = (
        "ratio",
        "refetch",
        "no_dram",
        "trimmed",
        "whole",
        "waiting",
        "freed",
        "steps",
        "inputs",
        "weights",
        "outputs",
    )
    print(
        f"{'layer':12}{'simulated':>11}{'replayed':>11}" + "".join(f"{name:>9}" for name in names) + "    loads  idle"
    )
    machine, network = cosa.load_architecture("cosa2021"), cosa.load_network("resnet50")
    physical = changed(machine, {"machine": {"weights_refetch": "physical"}})
    trimmed = changed(machine, {"noc": {"partial_packets": "trimmed"}})
    columns: dict[str, list[float]] = {name: [] for name in names}
    for name in layers:
        schedule = cosa.schedule(network.find(name).layer, machine, "published", as_published=True)
        dataflow = PublishedDataflow(schedule)
        listed = list(dataflow.transactions())
        there = replayed(schedule, listed)
        here, refetched, cut = (
            nocsim.simulate(schedule, architecture=arch).cycles for arch in (machine, physical, trimmed)
        )
        ours, theirs = packets(schedule, listed)
        ideal = nocsim.simulate(schedule, ideal_memory=True).cycles.total
        values = [here.total / there, refetched.total / there]
        values += [ideal / replayed(schedule, listed, "none"), cut.total / here.total]
        values.append(nocsim.simulate(with_whole_outputs(schedule)).cycles.total / here.total)
        values += [replayed(schedule, list(change(listed))) / there for change in (waiting, freed)]
        values.append(here.steps / len(dataflow.both))
        values += [ours[tensor] / theirs[tensor] for tensor in ("inputs", "weights", "outputs")]
        for column, value in zip(names, values, strict=True):
            columns[column].append(value)
        traffic = Traffic(schedule.padded_layer, machine, schedule.nest)
        idle = machine.require_noc().pes - len(traffic.placement.used)
        line = f"{name:12}{here.total:>11,}{there:>11,}" + "".join(f"{value:>9.3f}" for value in values)
        print(f"{line} {ours['loads']:>4}/{theirs['loads']:<4} {idle:>4}", flush=True)
    print(f"{'mean':34}" + "".join(f"{geometric_mean(column):>9.3f}" for column in columns.values()))


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="simba_4x4")
    parser.add_argument("--network", default="resnet50")
    parser.add_argument("--layers", default=LAYERS)
    parser.add_argument("--published", action="store_true", help="cosa2021 against the published machine")
    options = parser.parse_args()
    if options.published:
        against_published(options.layers.split(","))
        return 0
    print(f"{'layer':12}{'cycles':>10}" + "".join(f"{name:>19}" for name in SWITCHES))
    ratios: dict[str, list[float]] = {name: [] for name in SWITCHES}
    try:
        architecture = cosa.load_architecture(options.arch)
        network = cosa.load_network(options.network)
        machines = [architecture, *(changed(architecture, changes) for changes in SWITCHES.values())]
        for name in options.layers.split(","):
            schedule = cosa.schedule(network.find(name).layer, architecture, "published")
            what = {"layer": schedule.layer, "architecture": architecture}
            points = [SimulatedPoint(**what, schedule=schedule.with_architecture(machine)) for machine in machines]
            usual, *switched = (row["simulated_cycles"] for row in rows_of(points))
            for switch, cycles in zip(SWITCHES, switched, strict=True):
                ratios[switch].append(cycles / usual)
            print(f"{name:12}{usual:>10,}" + "".join(f"{ratios[switch][-1]:>19.3f}" for switch in SWITCHES), flush=True)
    except CosaError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"{'mean':22}" + "".join(f"{geometric_mean(values):>19.3f}" for values in ratios.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
