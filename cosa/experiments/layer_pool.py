"""Layers of a network in processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from typing import Any

from cosa.common.errors import CosaError
from cosa.common.worker_pool import worker_processes
from cosa.model.networks import Network


def run_layers(
    network: Network, numbers: Sequence[int], function: Callable[..., Any], arguments: Sequence[Any], workers: int
) -> Iterator[tuple[int, Any]]:
    """(number, ``function(layer, *arguments)``) of some layers, as they are done.

    With one worker in this process, one after another. Otherwise in fresh processes, layers with most MACs first, so
    that no long one is left to the end. Ctrl-C, or leaving the iterator, ends the workers at once.

    Raises
    ------
    CosaError: of a layer; its name is put in front.
    """
    if workers == 1 or len(numbers) < 2:
        for number in numbers:
            yield number, _named(network, number, lambda layer: function(layer, *arguments))
        return
    with worker_processes(min(workers, len(numbers))) as pool:
        assert pool is not None
        order = sorted(numbers, key=lambda number: -network.layers[number].layer.macs)
        futures = {pool.submit(function, network.layers[number].layer, *arguments): number for number in order}
        for future in as_completed(futures):
            number = futures[future]
            yield number, _named(network, number, lambda _, done=future: done.result())


def _named(network: Network, number: int, call: Callable[..., Any]) -> Any:
    """What a layer gives; an error says which layer it was."""
    layer = network.layers[number].layer
    try:
        return call(layer)
    except CosaError as error:
        named = CosaError(f"{network.name} {layer.name}: {error}")
        named.exit_code = error.exit_code
        raise named from error
