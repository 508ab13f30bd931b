"""The layer that options of a command line name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cosa.common.errors import InputError

if TYPE_CHECKING:
    from cosa.model.layer import Layer


def chosen_layer(network: str | None, layer: str | None, layer_file: str | None) -> Layer:
    """The layer of --network and --layer, or of --layer-file.

    Raises
    ------
    InputError: none is named, or options contradict each other.
    """
    choices = "either --network NAME --layer NAME, or --layer-file FILE"
    if layer_file is not None:
        other = "--network" if network is not None else "--layer" if layer is not None else None
        if other:
            raise InputError(f"contradicts {other}", source="--layer-file", value=layer_file, allowed=choices)
        from cosa.model.layer import Layer

        return Layer.from_file(layer_file)
    if network is None and layer is None:
        raise InputError("no layer given", allowed=choices)
    if network is None:
        raise InputError("needs --network", source="--layer", value=layer, allowed=choices)
    from cosa.model.networks import load_network

    assert layer is not None
    table = load_network(network)
    return table.find(layer).layer
