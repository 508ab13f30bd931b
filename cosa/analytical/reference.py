"""Measured records of Timeloop runs (one layer, architecture and mapping each) against our evaluation.

Layout of a folder: ``architectures.json`` and any number of ``*.json`` lists of records. A record has `layer`, `arch`,
`nest` (levels outermost first with `keep` and `loops` as [dimension, bound, kind]) and `result`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from math import isclose
from pathlib import Path
from typing import Any

from cosa.analytical.evaluation import Evaluation, evaluate_timeloop
from cosa.model.arch import Architecture
from cosa.model.layer import TENSORS, Layer
from cosa.model.schedule import ScheduleLevel

RELATIVE_ENERGY = 1e-9
TWO_DECIMALS = 0.00501
"""Hops and words of a network are stated with two decimals: words are not whole where a bypassed level scaled them."""


def read_json(path: Path) -> Any:
    """Data of a JSON file, packed with gzip or not."""
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def reference_architecture(name: str, data: dict[str, Any]) -> Architecture:
    """An architecture of ``architectures.json``: instances of neighbouring levels give the fan-outs."""
    mac = data["mac"]
    below = {"mesh_x": mac["mesh_x"], "mesh_y": mac["instances"] // mac["mesh_x"]}
    levels = []
    for entry in data["levels_inner_to_outer"]:
        levels.append(
            {
                "name": entry["name"],
                "keeps": list(TENSORS),
                "capacity_words": entry["size_words"],
                "fanout": {axis[-1]: below[axis] // entry[axis] for axis in ("mesh_x", "mesh_y")},
                "technology": entry["technology"],
                "word_bits": entry["word_bits"],
                "block_words": entry["block_size_words"],
                "cluster_size": entry["cluster_size"],
                "read_bandwidth_words_per_cycle": entry["read_bandwidth_words_per_cycle"],
                "write_bandwidth_words_per_cycle": entry["write_bandwidth_words_per_cycle"],
                "vector_access_energy_pj": entry["vector_access_energy_pj"],
            }
        )
        below = entry
    block = {"word_bits": mac["word_bits"], "energy_pj": mac["energy_per_mac_pj"]}
    return Architecture.from_data({"name": name, "levels": levels, "mac": block}, source=name)


def reference_layer(data: dict[str, int], name: str) -> Layer:
    """A layer of a record."""
    bounds = {dim: data[dim] for dim in ("R", "S", "P", "Q", "C", "K", "N")}
    strides = {f"{word}_{axis.lower()}": data[f"{axis}{word}"] for word in ("stride", "dilation") for axis in "WH"}
    return Layer.from_data({"name": name, **bounds, **strides, "G": data.get("G", 1)})


def reference_nest(data: list[dict[str, Any]]) -> tuple[ScheduleLevel, ...]:
    """A nest of a record, outermost level first."""
    kinds = {
        "temporal": {"kind": "temporal"},
        "spatial_x": {"kind": "spatial", "axis": "x"},
        "spatial_y": {"kind": "spatial", "axis": "y"},
    }
    return tuple(
        ScheduleLevel.model_validate_json(
            json.dumps(
                {
                    "level": entry["level"],
                    "keeps": [tensor.lower() for tensor in entry["keep"]],
                    "loops": [{"dim": dim, "bound": bound, **kinds[kind]} for dim, bound, kind in entry["loops"]],
                }
            )
        )
        for entry in data
    )


def record_values(evaluation: Evaluation) -> dict[str, Any]:
    """An evaluation in the shape of a record's `result`."""
    levels: dict[str, Any] = {}
    networks: dict[str, Any] = {}
    for number, level in enumerate(evaluation.levels):
        levels[level.name] = {"cycles": level.cycles}
        for tensor, item in level.tensors.items():
            levels[level.name][tensor.capitalize()] = {
                "tile": item.tile_words,
                "partition": item.partition_words,
                "instances": item.instances,
                "clusters": item.clusters,
                "reads": item.reads,
                "updates": item.updates,
                "fills": item.fills,
                "energy_pj_per_instance": item.energy_pj_per_instance,
                "energy_pj": item.energy_pj,
                "vector_access_energy_pj": level.vector_access_energy_pj,
            }
        inner = evaluation.levels[number - 1].name if number else "MAC"
        networks[f"{level.name}->{inner}"] = {
            tensor.capitalize(): {
                "fanout": item.fanout,
                "ingresses": item.ingresses,
                "multicast_scatter_accesses": [list(entry) for entry in item.multicasts],
                "link_transfers": item.link_transfers,
                "spatial_reductions": item.spatial_reductions,
                "avg_hops": item.average_hops,
            }
            for tensor, item in evaluation.networks[number].items()
        }
    return {
        "cycles": evaluation.cycles,
        "compute_cycles": evaluation.compute_cycles,
        "macs": evaluation.macs,
        "utilization": evaluation.utilisation,
        "utilized_macs": evaluation.macs_used,
        "energy_pj": evaluation.energy_pj,
        "mac_energy_pj": evaluation.mac_energy_pj,
        "levels": levels,
        "networks": networks,
    }


def first_difference(expected: Any, found: Any, path: str = "") -> str | None:
    """The first field of `expected` that `found` lacks or has otherwise; counts exactly, energies to 1e-9."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            if not isinstance(found, dict) or key not in found:
                return f"{path}.{key}".lstrip(".") + ": not computed"
            difference = first_difference(value, found[key], f"{path}.{key}".lstrip("."))
            if difference:
                return difference
        return None
    name = path.rsplit(".", 1)[-1]
    if "energy" in name or name == "utilization":
        equal = isclose(expected, found, rel_tol=RELATIVE_ENERGY, abs_tol=0.0)
    elif name in ("avg_hops", "ingresses"):
        equal = abs(expected - found) <= TWO_DECIMALS
    elif name == "multicast_scatter_accesses":
        pairs = list(zip(sorted(expected), sorted(found), strict=False))
        equal = len(expected) == len(found) and all(
            theirs[:2] == ours[:2] and abs(theirs[2] - ours[2]) <= TWO_DECIMALS for theirs, ours in pairs
        )
    else:
        equal = expected == found
    return None if equal else f"{path}: reference {expected!r}, computed {found!r}"


def analytical_cases(folder: Path) -> Iterator[tuple[str, str | None]]:
    """Evaluate each record of a folder; yield its name and its first difference, None if it is equal."""
    files = sorted([*folder.glob("*.json"), *folder.glob("*.json.gz")])
    table = next((path for path in files if path.name.startswith("architectures.json")), None)
    if table is None:
        raise ValueError("no architectures.json")
    architectures: dict[str, Architecture] = {}
    data = read_json(table)
    for path in files:
        if path == table:
            continue
        for record in read_json(path):
            name = f"{path.name}: {record['id']}"
            try:
                if record["arch"] not in architectures:
                    architectures[record["arch"]] = reference_architecture(record["arch"], data[record["arch"]])
                layer = reference_layer(record["layer"], record.get("layer_name", "layer"))
                found = evaluate_timeloop(
                    layer, architectures[record["arch"]], reference_nest(record["nest"]), release="timeloop-2022"
                )
                yield name, first_difference(record["result"], record_values(found))
            except (KeyError, ValueError, TypeError) as error:
                yield name, f"cannot be read: {error!r}"
