"""Whole networks: unique layers scheduled and simulated in parallel processes, weighted by how often they occur.

Results are cached by what goes in (layer, architecture, mapper with its options, version and sources of the package),
so that a second run reads them back. Any number of workers gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from cosa.api import program_options
from cosa.common.errors import InputError, nearest_of
from cosa.common.files import FileModel, Model
from cosa.common.layer_pool import run_layers
from cosa.common.result_cache import content_key, read_cached, write_cached
from cosa.common.result_cache import source_digest as digest_of
from cosa.common.version import version
from cosa.mappers.registry import PROGRAMS, program_objective
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from cosa.model.networks import Network, NetworkLayer


class LayerRun(Model):
    """One unique layer: how often it occurs, and its cycles (of one occurrence).

    `method` says whether all steps were simulated; if not, `extrapolated_share` of the simulated cycles stand for steps
    that were not, and `margin_share` is the estimated margin of the total (both 0 if all were).
    """

    layer: str
    count: int
    macs: int
    padding_macs: int
    compute_only_cycles: int
    analytical_cycles: int
    simulated_cycles: int
    method: Literal["exact", "extrapolated"]
    extrapolated_share: float
    margin_share: float
    mac_utilisation: float
    dram_bytes: int
    network_bytes: int
    solver_status: str | None
    gap: float | None


class NetworkResult(FileModel):
    """A whole network, layer after layer; totals count every occurrence."""

    kind: Literal["network_result"] = "network_result"
    schema_version: Literal[1] = 1
    version: str
    network: str
    architecture: str
    architecture_hash: str
    mapper: str
    layers: tuple[LayerRun, ...]
    complete: bool

    def total(self, field: str) -> int:
        """Sum of a field over all occurrences of all layers."""
        return sum(int(getattr(run, field)) * run.count for run in self.layers)

    def share_of_cycles(self, field: str) -> float:
        """Mean of a share of the simulated cycles over the network (0 without layers)."""
        cycles = self.total("simulated_cycles")
        return sum(getattr(x, field) * x.simulated_cycles * x.count for x in self.layers) / cycles if cycles else 0.0

    @property
    def mac_utilisation(self) -> float:
        """MACs done per MAC unit and simulated cycle, over the network (0 without layers)."""
        return self.share_of_cycles("mac_utilisation")


def source_digest() -> str:
    """Digest of the sources that can change a run."""
    return digest_of(("cosa", "dram", "nocsim", "arch_configs.dram"))


def inputs_hash(layer: Layer, architecture_hash: str, mapper: str, options: dict[str, Any]) -> str:
    """Content hash of everything that can change a layer's figures (the layer's own name cannot)."""
    data = {
        "layer": layer.model_dump(mode="json", exclude={"name", "notes"}),
        "architecture": architecture_hash,
        "mapper": mapper,
        "options": options,
        "version": version(),
        "sources": source_digest(),
    }
    return content_key(data)


def cache_key(layer: Layer, architecture: Architecture, mapper: str, options: dict[str, Any]) -> str:
    """`inputs_hash` of a layer on an architecture."""
    return inputs_hash(layer, architecture.content_hash, mapper, options)


def run_layer(layer: Layer, architecture: Architecture, mapper: str, options: dict[str, Any]) -> dict[str, Any]:
    """Schedule and simulate one layer; the figures of `LayerRun` without its name and count."""
    import cosa
    import nocsim

    schedule = cosa.schedule(layer, architecture, **options)
    result = nocsim.simulate(schedule)
    part = result.extrapolation
    return {
        "macs": layer.macs,
        "padding_macs": schedule.padding_macs,
        "compute_only_cycles": result.cycles.compute_only,
        "analytical_cycles": result.cycles.analytical,
        "simulated_cycles": result.cycles.total,
        "method": result.method,
        "extrapolated_share": part.extrapolated_share if part else 0.0,
        "margin_share": part.margin_share if part else 0.0,
        "mac_utilisation": result.mac_utilisation,
        "dram_bytes": sum(channel.bytes for channel in result.dram.channels),
        "network_bytes": sum(load.bytes for load in result.tensors.values()),
        "solver_status": schedule.provenance.solver_status,
        "gap": schedule.provenance.gap,
    }


def run_network(
    network: Network,
    architecture: Architecture,
    *,
    mapper: str | None = None,
    options: dict[str, Any] | None = None,
    workers: int = 1,
    cache: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> NetworkResult:
    """Schedule and simulate every unique layer of a network.

    Parameters
    ----------
    mapper: `cosa`, the published program, or `machine`, the machine program (None: the objective decides).
    options: of the mapper, as `cosa.schedule` takes them.
    workers: processes at a time.
    cache: folder of earlier results, or None for none.
    progress: called with (layers done, layers in all).

    Returns
    -------
    All layers; after Ctrl-C those that were done, with `complete` false.

    Raises
    ------
    InputError: there is no such mapper or objective, or an option is of the other program.
    CosaError: a layer cannot be scheduled or simulated; the layer is named.
    """
    if mapper is not None and mapper not in PROGRAMS:
        allowed, nearest = ", ".join(PROGRAMS), nearest_of(mapper, PROGRAMS)
        raise InputError("no such mapper", source="--mapper", value=mapper, allowed=allowed, nearest=nearest)
    options = dict(options or {})
    options["objective"] = program_objective(mapper, options.get("objective"))
    program_options(architecture, **options)  # wrong ones end here, before the workers start
    mapper = mapper or "cosa"
    figures: dict[int, dict[str, Any]] = {}
    keys = [cache_key(entry.layer, architecture, mapper, options) for entry in network.layers]
    for number, key in enumerate(keys):
        known = read_cached(cache, key)
        if known is not None:
            figures[number] = known
    missing = [number for number in range(len(keys)) if number not in figures]
    complete = True
    if progress:
        progress(len(figures), len(keys))
    try:
        for number, found in run_layers(network, missing, run_layer, (architecture, mapper, options), workers):
            figures[number] = found
            if found["solver_status"] not in (
                "time_limit",
                "failed",
            ):  # more time, or another machine, may find a better one
                write_cached(cache, keys[number], found)
            if progress:
                progress(len(figures), len(keys))
    except KeyboardInterrupt:
        complete = False
    return NetworkResult(
        version=version(),
        network=network.name,
        architecture=architecture.name,
        architecture_hash=architecture.content_hash,
        mapper=mapper,
        layers=tuple(_entry(network.layers[number], figures[number]) for number in sorted(figures)),
        complete=complete,
    )


def _entry(entry: NetworkLayer, figures: dict[str, Any]) -> LayerRun:
    return LayerRun(layer=entry.layer.name, count=entry.count, **figures)
