"""An evaluation for the eye and as data (``cosa evaluate``): every number with its unit and what it counts."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from typing import Any

from cosa.analytical.evaluation import Convention, Evaluation, TensorAtLevel
from cosa.analytical.loads import bound
from cosa.analytical.traffic import Traffic
from cosa.common.errors import InputError
from cosa.common.tables import WIDTH, printable, table
from cosa.model.layer import TENSORS, Dim, Layer, layer_line, padding_line
from cosa.model.schedule import Schedule

_AVERAGES = "words of one instance over the run, averages over instances in use; tiles are bounding boxes"
_TWICE = "vector accesses x pJ an access, over instances of a cluster (amortised twice, as Timeloop does)"

COUNTS: dict[Convention, str] = {
    "timeloop": _AVERAGES,
    "timeloop-2022": f"{_AVERAGES}; first arrivals of outputs are fills",
    "exact": "words over the run of the busiest instance; tiles are the words touched",
}
"""What access counts count, by convention."""

ENERGY: dict[Convention, str] = {
    "timeloop": _TWICE,
    "timeloop-2022": _TWICE,
    "exact": "vector accesses x pJ an access, of all instances in use",
}
"""What energies count, by convention."""


def describe(schedule: Schedule, evaluation: Evaluation) -> dict[str, Any]:
    """What ``cosa evaluate --json`` says: levels outermost first, units in the names."""
    architecture = schedule.architecture
    levels = []
    for number, level in reversed(list(enumerate(evaluation.levels))):
        entry = architecture.levels[number]
        tensors = {}
        for tensor, item in level.tensors.items():
            tensors[tensor] = {
                "tile_words": item.tile_words,
                "distinct_words": item.partition_words,
                "instances_used": item.instances,
                "clusters_used": item.clusters,
                "reads_words": item.reads,
                "fills_words": item.fills,
                "updates_words": item.updates,
                "drains_words": item.drains,
                "accessed_words_all_instances": item.accessed_words,
                "energy_pj_per_instance": item.energy_pj_per_instance,
                "energy_pj": item.energy_pj,
                "energy_pj_per_word": _per_word(item),
            }
        levels.append(
            {
                "level": level.name,
                "instances": architecture.instances(number),
                "word_bits": entry.word_bits,
                "block_words": level.block_words,
                "vector_access_energy_pj": level.vector_access_energy_pj,
                "cycles": level.cycles,
                "bound_by": level.bound_by,
                "read_words": level.read_words,
                "write_words": level.write_words,
                "read_bandwidth_words_per_cycle": entry.read_bandwidth_words_per_cycle,
                "write_bandwidth_words_per_cycle": entry.write_bandwidth_words_per_cycle,
                "tensors": tensors,
            }
        )
    names = [level.name for level in evaluation.levels]
    return {
        "kind": "evaluation",
        "schema_version": 1,
        "convention": evaluation.convention,
        "counts": COUNTS[evaluation.convention],
        "energies": ENERGY[evaluation.convention],
        "layer": schedule.layer.model_dump(mode="json"),
        "padded": dict(schedule.padded),
        "remainders": schedule.remainders,
        "architecture": {
            "name": architecture.name,
            "hash": schedule.architecture_hash,
            "macs": architecture.macs,
            "clock_ghz": architecture.clock_ghz,
        },
        "schedule_hash": schedule.content_hash,
        "cycles": evaluation.cycles,
        "bound_by": evaluation.bound_by,
        "compute_cycles": evaluation.compute_cycles,
        "macs": evaluation.macs,
        "padding_macs": evaluation.padding_macs,
        "macs_used": evaluation.macs_used,
        "utilisation": evaluation.utilisation,
        "energy_pj": evaluation.energy_pj,
        "mac_energy_pj": evaluation.mac_energy_pj,
        "energy_pj_per_mac": evaluation.energy_pj / evaluation.macs,
        "energy_delay_pj_cycles": evaluation.energy_pj * evaluation.cycles,
        "roofline": asdict(evaluation.roofline),
        "mesh_bound": _mesh_bound(schedule),
        "levels": levels,
        "networks": [
            {
                "source": names[number],
                "destination": names[number - 1] if number else "MAC",
                "tensor": tensor,
                "fanout": item.fanout,
                "ingresses_words": item.ingresses,
                "multicasts": [
                    {"instances": size, "groups": groups, "words": words} for size, groups, words in item.multicasts
                ],
                "link_transfers_words": item.link_transfers,
                "spatial_reductions_words": item.spatial_reductions,
                "average_hops": item.average_hops,
            }
            for number, networks in reversed(list(enumerate(evaluation.networks)))
            for tensor, item in networks.items()
        ],
        "hops": [
            {
                "tensor": hop.tensor,
                "source": names[hop.source] if hop.source >= 0 else "MAC",
                "destination": names[hop.destination] if hop.destination >= 0 else "MAC",
                "kind": hop.kind,
                "sent_words": hop.sent_words,
                "received_words": hop.received_words,
                "word_bits": hop.word_bits,
                "sent_bytes": hop.sent_bytes,
            }
            for hop in evaluation.hops
        ],
    }


def _mesh_bound(schedule: Schedule) -> dict[str, Any] | None:
    """Cycles that no run of the simulator can be below, by resource of PEs and mesh; None without such a machine."""
    if schedule.architecture.noc is None:
        return None
    try:
        found = bound(Traffic(schedule.padded_layer, schedule.architecture, schedule.nest))
    except InputError:  # spatial loops outside the mesh
        return None
    return {
        "compute_cycles": found.compute_cycles,
        "port_cycles": found.port_cycles,
        "link_cycles": found.link_cycles,
        "memory_cycles": found.memory_cycles,
        "cycles": found.cycles,
        "bound_by": found.bound_by,
    }


def _per_word(item: TensorAtLevel) -> float:
    return item.energy_pj / item.accessed_words if item.accessed_words else 0.0


def lines(view: dict[str, Any]) -> list[str]:
    """`describe` as lines."""
    architecture, roof = view["architecture"], view["roofline"]
    layer = view["layer"]
    ridge = roof["ridge_macs_per_word"]
    dram = printable(view["levels"][0]["level"], 24)
    head = [
        f"{printable(layer['name'], 40)} on {printable(architecture['name'], 34)}, convention {view['convention']}",
        layer_line_of(layer),
        *padding_lines(layer, view["padded"], view["remainders"]),
        "",
        f"cycles        {view['cycles']:,}, bound by {printable(view['bound_by'], 44)}",
        f"compute       {view['compute_cycles']:,} cycles (product of the temporal loops)",
        f"utilisation   {view['utilisation']:.1%} of {architecture['macs']:,} MAC units over all cycles; "
        f"{view['macs_used']:,} in use",
        f"energy        {view['energy_pj'] / 1e6:,.3f} uJ = {view['energy_pj_per_mac']:.3f} pJ a MAC; "
        f"MACs alone {view['mac_energy_pj'] / 1e6:,.3f} uJ",
        f"roofline      {roof['intensity_macs_per_word']:,.1f} MACs a word of {dram} "
        + (f"(ridge {ridge:,.1f})" if ridge else "(no bandwidth stated)"),
        f"              {roof['attained_macs_per_cycle']:,.1f} MACs a cycle, roof {roof['roof_macs_per_cycle']:,.1f}, "
        f"peak {roof['peak_macs_per_cycle']:,}",
        *_mesh_line(view["mesh_bound"]),
        "",
        f"accesses      {view['counts']}",
    ]
    found = [line for text in head for line in _wrapped(text)]
    rows, energies, cycles = [], [], []
    kinds = ["tile", "reads", "fills", "updates"] + (["drains"] if view["convention"] == "exact" else [])
    for level in view["levels"]:
        name = printable(level["level"], 20)
        for tensor in TENSORS:
            if (item := level["tensors"].get(tensor)) is None:
                continue
            counts = [item[f"{key}_words"] for key in kinds]
            rows.append([name, tensor, str(item["instances_used"]), *(f"{count:,}" for count in counts)])
            share = item["energy_pj"] / view["energy_pj"] if view["energy_pj"] else 0.0
            each, block = level["vector_access_energy_pj"], level["block_words"]
            energy = [f"{item['energy_pj_per_word']:.4g}", f"{item['energy_pj'] / 1e6:,.3f}", f"{share:.1%}"]
            energies.append([name, tensor, f"{each:,.4g}", str(block), *energy])
        bandwidths = [level[f"{way}_bandwidth_words_per_cycle"] for way in ("read", "write")]
        moved = [f"{level[f'{way}_words']:,}" for way in ("read", "write")]
        stated = ["none" if bandwidth is None else f"{bandwidth:g}" for bandwidth in bandwidths]
        if level["tensors"]:
            cycles.append([name, *moved, *stated, f"{level['cycles']:,}"])
    found += table(["level", "tensor", "inst.", *kinds], rows, left=2)
    found += ["", *_wrapped(f"energy        {view['energies']}")]
    found += table(["level", "tensor", "pJ/access", "words/access", "pJ/word", "uJ", "share"], energies, left=2)
    found += ["", "bandwidth     words of one instance; compute cycles stretched to fit"]
    return found + table(["level", "read", "written", "reads/cycle", "writes/cycle", "cycles"], cycles)


def _mesh_line(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return []
    parts = f"compute {found['compute_cycles']:,}, busiest port {found['port_cycles']:,}, link {found['link_cycles']:,}"
    memory = f", memory {found['memory_cycles']:,}" if found["memory_cycles"] else ""
    return [f"on the mesh   at least {found['cycles']:,} cycles: {parts} flits{memory} (DRAM left out)"]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=" " * 14, break_on_hyphens=False) or [""]


def padding_lines(layer: dict[str, Any], padded: dict[Dim, int], remainders: bool = False) -> list[str]:
    """What is padded, of a layer given as data; nothing if nothing is."""
    return [f"padded        {padding_line(Layer.from_data(layer), padded, remainders)}"] if padded else []


def layer_line_of(layer: dict[str, Any]) -> str:
    """Bounds, strides and dilations of a layer given as data."""
    return layer_line(Layer.from_data(layer))
