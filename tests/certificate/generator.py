"""Random small layers, architectures and constraints, the same for the same seed, on which certificates are tried.

Each pair is of a `kind`, which it is sure to have; everything else is left to chance, so most pairs have several.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from math import prod
from typing import Any

from tests.certificate.accounting import DIMS, TENSORS, Work
from tests.certificate.enumerator import MOST_NESTS, Enumerator, TooManyNestsError

KINDS = (
    "window",
    "strides",
    "dilation",
    "groups",
    "batch",
    "constraints",
    "bypass",
    "fanouts",
    "blocks",
    "bandwidths",
    "clusters",
    "buffers",
    "tiny",
    "steps",
)
BOUNDS = (2, 3, 4, 5, 6, 7, 8, 9, 10)
FANOUTS: tuple[Any, ...] = (4, 6, {"x": 4, "y": 3}, {"x": 1, "y": 4}, {"x": 2, "y": 2}, {"x": 3, "y": 2})
CAPACITIES = (4, 6, 10, 20, 30, 50, 100)
BANDWIDTHS = (0.3, 0.5, 1, 2, 2.7, 3)
ENERGIES = (0.1, 1, 3, 20, 200)
MOST_SPLITS = 30_000
"""Ways to split the bounds over levels and kinds: pairs with more are not begun."""


@dataclass(frozen=True)
class Pair:
    """Data of the files, and how levels choose what they keep."""

    seed: int
    kind: str
    layer: dict[str, Any]
    architecture: dict[str, Any]
    constraints: dict[str, Any] | None
    bypass: str

    def enumerator(self) -> Enumerator:
        """All its nests."""
        return Enumerator(self.layer, self.architecture, self.constraints, self.bypass)


def generate(seed: int) -> Pair:
    """The pair of a seed; its space may be empty, or too large."""
    rng = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    layer, architecture = _layer(rng, kind), _architecture(rng, kind)
    chosen = kind == "bypass" or rng.random() < 0.1
    constrained = kind == "constraints" or rng.random() < 0.1
    constraints = _constraints(rng, layer, architecture) if constrained else None
    return Pair(seed, kind, layer, architecture, constraints, "chosen" if chosen else "fixed")


def pairs(first: int = 0, most: int = MOST_NESTS) -> Iterator[tuple[Pair, Enumerator]]:
    """Pairs of the seeds from `first` on that have a nest, and at most `most` (as many as are looked at)."""
    for seed in count(first):
        pair = generate(seed)
        if splits(pair) > MOST_SPLITS:
            continue
        found = pair.enumerator()
        try:
            if found.spaces(most):
                yield pair, found
        except TooManyNestsError:
            continue


def splits(pair: Pair) -> int:
    """Ways to split the bounds over levels and kinds, at most."""
    enumerator, bounds = pair.enumerator(), Work(pair.layer).bounds
    slots = enumerator.levels + sum(prod(fanout) > 1 for fanout in enumerator.machine.fanouts)
    return prod(slots ** _primes(bound) for bound in bounds.values())


def _primes(number: int) -> int:
    found, prime = 0, 2
    while number > 1:
        if number % prime:
            prime += 1
        else:
            number //= prime
            found += 1
    return found


def _layer(rng: random.Random, kind: str) -> dict[str, Any]:
    layer: dict[str, Any] = {"name": "random"} | dict.fromkeys(DIMS, 1)
    dims = rng.sample("RSPQCK", rng.choice((1, 2, 2, 3, 3, 4)))
    if kind in ("window", "strides", "dilation"):
        dims = [*rng.choice(("PR", "QS")), *rng.sample("CK", rng.choice((0, 1, 1)))]
    dims += "G" * (kind == "groups" or rng.random() < 0.1) + "N" * (kind == "batch" or rng.random() < 0.1)
    for dim in dims:
        layer[dim] = rng.choice(BOUNDS)
    for name, word in (("strides", "stride"), ("dilation", "dilation")):
        for axis in "wh":
            if kind == name or rng.random() < 0.15:
                layer[f"{word}_{axis}"] = rng.choice((2, 2, 3, 4))
    return layer


def _architecture(rng: random.Random, kind: str) -> dict[str, Any]:
    number = rng.choice((2, 2, 3, 3, 3, 4, 5))
    fanouts = [rng.choice(FANOUTS) if rng.random() < 0.4 else 1 for _ in range(number)]
    if kind in ("fanouts", "clusters") and all(fanout == 1 for fanout in fanouts[1:]):
        fanouts[rng.randrange(1, number)] = rng.choice(FANOUTS[2:] if kind == "fanouts" else FANOUTS)
    instances = [prod(map(_size, fanouts[level + 1 :])) for level in range(number)]
    levels = []
    for level in range(number):
        outermost = level == number - 1
        entry: dict[str, Any] = {"name": f"L{level}", "fanout": fanouts[level]}
        if not outermost and rng.random() < (0.5 if kind == "steps" else 0.0 if kind == "clusters" else 0.05):
            levels.append(entry | {"keeps": []})
            continue
        keeps = list(TENSORS) if outermost or rng.random() < 0.4 else rng.sample(TENSORS, rng.choice((1, 2)))
        entry["keeps"] = [tensor for tensor in TENSORS if tensor in keeps]
        if not outermost and (kind == "bypass" or rng.random() < 0.2):
            others = [tensor for tensor in TENSORS if tensor not in keeps]
            entry["may_keep"] = rng.sample(others, rng.randint(0, len(others)))
        capacities = CAPACITIES[:3] if kind == "tiny" else CAPACITIES
        entry["capacity_words"] = None if outermost else rng.choice(capacities)
        entry["word_bits"] = rng.choice((8, 16, 24))
        entry["block_words"] = rng.choice((2, 4)) if kind == "blocks" else rng.choice((1, 1, 1, 2, 4))
        for direction in ("read", "write"):
            stated = rng.random() < (0.9 if kind == "bandwidths" else 0.4)
            entry[f"{direction}_bandwidth_words_per_cycle"] = rng.choice(BANDWIDTHS) if stated else None
        if rng.random() < 0.5:
            entry["vector_access_energy_pj"] = rng.choice(ENERGIES)
        if kind == "buffers" or rng.random() < 0.2:
            entry["buffers"] = 2
        divisors = [size for size in range(2, instances[level] + 1) if instances[level] % size == 0]
        if divisors and (kind == "clusters" or rng.random() < 0.2):
            entry["cluster_size"] = rng.choice(divisors)
        levels.append(entry)
    halves = kind == "buffers" and rng.random() < 0.5
    return {"name": "random", "levels": levels, "mac": {"word_bits": rng.choice((8, 16))}, "shared_halves": halves}


def _size(fanout: Any) -> int:
    return fanout if isinstance(fanout, int) else fanout["x"] * fanout["y"]


def _constraints(rng: random.Random, layer: dict[str, Any], architecture: dict[str, Any]) -> dict[str, Any]:
    names = [level["name"] for level in architecture["levels"]]
    dims = [dim for dim in DIMS if layer[dim] > 1]
    found: dict[str, Any] = {"kind": "constraints"}
    for what in rng.sample(("factors", "factors", "orders", "spatial", "keeps"), rng.choice((1, 1, 2))):
        name = rng.choice(names)
        if what == "factors":
            found.setdefault("factors", []).append(_factor(rng, layer, rng.choice(dims), name))
        elif what == "orders":
            order = {"order": rng.sample(dims, rng.randint(1, min(3, len(dims))))}
            found["orders"] = [{"level": name} | rng.choice((order, {"stays": rng.choice(TENSORS)}))]
        elif what == "spatial":
            some, others = rng.sample(dims, (len(dims) + 1) // 2), []
            if rng.random() < 0.5:
                others = [dim for dim in dims if dim not in some]
            found["spatial"] = [{"level": name} | rng.choice(({"dims": some}, {"x": some, "y": others}))]
        else:
            level = architecture["levels"][rng.randrange(len(names) - 1)]
            if level["keeps"]:
                keep = rng.choice(level["keeps"])
                found["keeps"] = [{"level": level["name"], rng.choice(("keep", "bypass")): [keep]}]
    return found


def _factor(rng: random.Random, layer: dict[str, Any], dim: str, name: str) -> dict[str, Any]:
    place = rng.choice((name, name, name, "array", "inside_array", "outermost", "every"))
    factor: dict[str, Any] = {"level": place, "dim": dim}
    if rng.random() < 0.7:
        factor["kind"] = rng.choice(("temporal", "temporal", "spatial"))
    divisors = [size for size in range(1, layer[dim] + 1) if layer[dim] % size == 0]
    statement = rng.choice(("equal", "at_least", "at_most"))
    return factor | {statement: rng.choice(divisors)}
