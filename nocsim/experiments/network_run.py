"""Whole networks: unique layers scheduled and simulated in parallel processes, weighted by how often they occur.

Results are cached by what goes in (layer, architecture, mapper with its options, version and sources of the package),
so that a second run reads them back. Any number of workers gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from cosa.common.files import FileModel, Model
from cosa.common.result_cache import content_key, read_cached, write_cached
from cosa.common.result_cache import source_digest as digest_of
from cosa.common.version import version
from cosa.experiments.layer_pool import run_layers
from cosa.mappers.registry import MapperOptions, candidates, options_of
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from cosa.model.networks import Network, NetworkLayer
from cosa.model.schedule import Made


class LayerRun(Model):
    """One unique layer: how often it occurs, and its cycles (of one occurrence).

    `method` says whether all steps were simulated; if not, `extrapolated_share` of the simulated cycles stand for steps
    that were not, and `margin_share` is the estimated margin of the total (both 0 if all were). `made`: the schedule's
    mapper, objective, model, seed, value, bound and gap.
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
    made: Made


class NetworkResult(FileModel):
    """A whole network, layer after layer; totals count every occurrence."""

    kind: Literal["network_result"] = "network_result"
    schema_version: Literal[1] = 1
    version: str
    network: str
    architecture: str
    architecture_hash: str
    mapper: str
    objective: str
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


def inputs_hash(
    layer: Layer, architecture_hash: str, options: MapperOptions, inputs: Mapping[str, Any] | None = None
) -> str:
    """Content hash of everything that can change a layer's figures (the layer's own name cannot); `inputs`: more."""
    data = {
        "layer": layer.model_dump(mode="json", exclude={"name", "notes"}),
        "architecture": architecture_hash,
        "mapper": options.mapper,
        "options": options.given(),
        "inputs": dict(inputs or {}),
        "version": version(),
        "sources": source_digest(),
    }
    return content_key(data)


def run_layer(layer: Layer, architecture: Architecture, options: MapperOptions) -> dict[str, Any]:
    """Schedule and simulate one layer; the figures of `LayerRun` without its name and count."""
    import nocsim

    schedule = candidates(layer, architecture, options)[0]
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
        "repeatable": schedule.provenance.repeatable,
        "made": schedule.provenance.made.model_dump(mode="json"),
    }


def run_network(
    network: Network,
    architecture: Architecture,
    options: MapperOptions | None = None,
    *,
    workers: int = 1,
    cache: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> NetworkResult:
    """Schedule and simulate every unique layer of a network.

    Parameters
    ----------
    options: of a mapper (None: the default mapper with its defaults).
    workers: processes at a time.
    cache: folder of earlier results, or None for none.
    progress: called with (layers done, layers in all).

    Returns
    -------
    All layers; after Ctrl-C those that were done, with `complete` false.

    Raises
    ------
    CosaError: a layer cannot be scheduled or simulated; the layer is named.
    """
    options = options or options_of(None, {})
    figures: dict[int, dict[str, Any]] = {}
    keys = [inputs_hash(entry.layer, architecture.content_hash, options) for entry in network.layers]
    for number, key in enumerate(keys):
        known = read_cached(cache, key)
        if known is not None:
            figures[number] = known
    missing = [number for number in range(len(keys)) if number not in figures]
    complete = True
    if progress:
        progress(len(figures), len(keys))
    try:
        for number, found in run_layers(network, missing, run_layer, (architecture, options), workers):
            # More time, or another machine, may find a better one than what a limit cut off.
            repeatable = found.pop("repeatable")
            figures[number] = found
            if repeatable:
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
        mapper=options.mapper,
        objective=options.made_for,
        layers=tuple(_entry(network.layers[number], figures[number]) for number in sorted(figures)),
        complete=complete,
    )


def _entry(entry: NetworkLayer, figures: dict[str, Any]) -> LayerRun:
    made = Made.model_validate(figures["made"])
    return LayerRun(layer=entry.layer.name, count=entry.count, **figures | {"made": made})
