"""What ships with the package, as data and as plain tables: layer tables and architectures."""

from __future__ import annotations

from importlib import resources
from typing import Any

from cosa.common.files import dump_yaml
from cosa.common.tables import table
from cosa.model.arch import architecture_names, load_architecture
from cosa.model.networks import load_network, network_names

_BOUNDS = ("R", "S", "P", "Q", "C", "K", "N", "G")


def networks() -> dict[str, Any]:
    """Every layer table with its counts; MACs count every occurrence of a layer."""
    entries = []
    for name in network_names():
        network = load_network(name)
        occurrences = sum(entry.count for entry in network.layers)
        entries.append(
            {"name": name, "unique_layers": len(network.layers), "occurrences": occurrences, "macs": network.macs}
        )
    return {"kind": "networks", "schema_version": 1, "networks": entries}


def networks_table(data: dict[str, Any]) -> list[str]:
    """`networks` as lines."""
    rows = [
        [entry["name"], str(entry["unique_layers"]), str(entry["occurrences"]), f"{entry['macs']:,}"]
        for entry in data["networks"]
    ]
    return table(["network", "unique layers", "occurrences", "MACs"], rows)


def network(name: str) -> dict[str, Any]:
    """The layers of one table; `macs` of a layer is that of one occurrence."""
    found = load_network(name)
    layers = [
        {
            "layer": entry.layer.model_dump(mode="json"),
            "count": entry.count,
            "macs": entry.layer.macs,
            "application": entry.application,
        }
        for entry in found.layers
    ]
    return {"kind": "network", "schema_version": 1, "name": name, "macs": found.macs, "layers": layers}


def network_table(data: dict[str, Any]) -> list[str]:
    """`network` as lines; columns in which all rows are 1 are left out, notes stand below."""
    layers = [entry["layer"] for entry in data["layers"]]
    bounds = [dim for dim in _BOUNDS if dim != "G" or any(layer["G"] > 1 for layer in layers)]
    pairs = [key for key in ("stride", "dilation") if any(_pair(layer, key) != "1x1" for layer in layers)]
    counted = any(entry["count"] > 1 for entry in data["layers"])
    marks: dict[tuple[str, ...], str] = {(): ""}
    rows = []
    for entry in data["layers"]:
        layer = entry["layer"]
        mark = marks.setdefault(tuple(layer["notes"]), f" [{len(marks)}]")
        row = [layer["name"] + mark, *(str(layer[dim]) for dim in bounds), *(_pair(layer, key) for key in pairs)]
        rows.append([*row, *([str(entry["count"])] if counted else []), f"{entry['macs']:,}"])
    lines = table(["layer", *bounds, *pairs, *(["count"] if counted else []), "MACs"], rows)
    lines += ["", f"{data['macs']:,} MACs" + (", every occurrence counted" if counted else "")]
    return lines + [f"{mark.strip()} {'; '.join(notes)}" for notes, mark in marks.items() if notes]


def _pair(layer: dict[str, Any], key: str) -> str:
    return f"{layer[f'{key}_w']}x{layer[f'{key}_h']}"


def architectures() -> dict[str, Any]:
    """The packaged architectures, in short."""
    entries = []
    for name in architecture_names():
        found = load_architecture(name)
        noc, dram = found.noc, found.dram
        shared = len(found.levels) - 2 if noc is None else found.mesh_level
        entries.append(
            {
                "name": name,
                "description": found.description,
                "mesh": noc.mesh if noc else None,
                "macs": found.macs,
                "shared_words": found.levels[shared].capacity_words,
                "flit_bits": noc.flit_bits if noc else None,
                "clock_ghz": found.clock_ghz,
                "dram": dram.model_dump(mode="json") if dram else None,
                "hash": found.content_hash,
            }
        )
    return {"kind": "architectures", "schema_version": 1, "architectures": entries}


def architectures_table(data: dict[str, Any]) -> list[str]:
    """`architectures` as lines."""
    rows = [
        [
            entry["name"],
            f"{entry['dram']['channels']} x {entry['dram']['device']}" if entry["dram"] else "-",
            entry["mesh"] or "-",
            f"{entry['macs']:,}",
            f"{entry['shared_words']:,}",
            str(entry["flit_bits"] or "-"),
        ]
        for entry in data["architectures"]
    ]
    lines = table(["architecture", "DRAM", "PEs", "MACs", "global buffer", "flit bits"], rows, left=2)
    width = max(len(entry["name"]) for entry in data["architectures"])
    return [*lines, "", *(f"{entry['name']:{width}}  {entry['description']}" for entry in data["architectures"])]


def architecture(name: str) -> dict[str, Any]:
    """One architecture, packaged or from a file, with all defaults filled in."""
    return load_architecture(name).model_dump(mode="json")


def architecture_text(name: str) -> str:
    """YAML of an architecture: a packaged one as it ships, comments included, to be copied and changed."""
    if name in architecture_names():
        return (resources.files("arch_configs") / f"{name}.yaml").read_text(encoding="utf-8")
    return dump_yaml(architecture(name))
