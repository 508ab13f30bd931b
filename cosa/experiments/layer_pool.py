"""Layers of a network in processes of their own; and the line on the terminal that counts them."""

from __future__ import annotations

import sys
import time
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


class LayerProgress:
    """A line on standard error that counts layers, with the time left; only on a terminal, only after two seconds."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._first: int | None = None

    def __call__(self, done: int, layers: int) -> None:
        """So many layers are done, of so many."""
        elapsed = time.monotonic() - self._started
        if self._first is None:
            self._first = done
        if elapsed < 2 or not sys.stderr.isatty():
            return
        fresh = done - self._first
        left = f", {elapsed / fresh * (layers - done):.0f} s left" if fresh else ""
        bar = "#" * (20 * done // layers) if layers else ""
        end = "\n" if done == layers else ""
        print(f"\r[{bar:20}] {done} of {layers} layers{left}   ", end=end, file=sys.stderr, flush=True)
