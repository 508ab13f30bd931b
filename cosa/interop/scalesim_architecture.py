"""A SCALE-Sim configuration as an architecture: the array under three memories, each of one tensor, under the DRAM."""

from __future__ import annotations

from typing import Any

from cosa.common.errors import InputError
from cosa.interop.scalesim import ScaleSimConfig
from cosa.model.arch import Architecture

_STATIONARY = {"ws": "weights", "os": "outputs", "is": "inputs"}


def scalesim_architecture(config: ScaleSimConfig, source: str, notes: list[str]) -> Architecture:
    """The architecture; `notes` gets what it does not say.

    A word is a byte, as in SCALE-Sim. Its sizes count both halves of a double buffer. The array keeps the stationary
    tensor, one word a MAC. The bandwidth to the DRAM is that of its reads together, and that of its writes.

    Raises
    ------
    InputError: a memory of no words, or bandwidths that differ.
    """
    memories = (
        ("OfmapSram", "outputs", config.ofmap_sram_kib),
        ("FilterSram", "weights", config.filter_sram_kib),
        ("IfmapSram", "inputs", config.ifmap_sram_kib),
    )
    levels: list[dict[str, Any]] = [
        {"name": "Registers", "keeps": [_STATIONARY[config.dataflow]], "capacity_words": 1},
    ]
    for name, tensor, size_kib in memories:
        words = int(size_kib * 1024)
        if words < 2:
            path = f"architecture_presets.{name.removesuffix('Sram')}SramSzkB"
            raise InputError("no room for two halves", source=source, path=path, value=size_kib, allowed="more KiB")
        levels.append({"name": name, "keeps": [tensor], "capacity_words": words, "buffers": 2})
    levels[1]["fanout"] = {"x": config.array_columns, "y": config.array_rows}
    levels.append({"name": "DRAM", "keeps": ["weights", "inputs", "outputs"], "capacity_words": None})
    bandwidths = sorted(set(config.bandwidth_words_per_cycle or ()))
    if len(bandwidths) > 1 or bandwidths == [0]:
        allowed = "one, more than 0"
        path = "architecture_presets.Bandwidth"
        raise InputError("bandwidths of parts", source=source, path=path, value=bandwidths, allowed=allowed)
    if bandwidths:
        levels[-1] |= dict.fromkeys(
            ("read_bandwidth_words_per_cycle", "write_bandwidth_words_per_cycle"), bandwidths[0]
        )
    else:
        notes.append(f"{source}: InterfaceBandwidth is CALC: the DRAM has no bandwidth")
    notes.append(
        f"{source}: {config.dataflow}: {_STATIONARY[config.dataflow]} stay in the array; which dimensions its rows and "
        "columns take is for constraints"
    )
    data = {"name": config.run_name or "scalesim", "shared_halves": True, "levels": levels}
    return Architecture.from_data(data, source=source)
