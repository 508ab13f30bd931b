"""What a program says of one tiling at least, against what its nests cost: machinery of the tests of bounds.

A tiling fixes all factors (and what levels keep); orders, and where spatial loops run, stay free. The program's least
value of it must not exceed what its best nest costs, and tells how much of that the program sees.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from cosa.analytical.constants import Constants
from cosa.analytical.network_batch import NetworkEvaluator
from cosa.analytical.network_machine import NetworkLoads, floors, waits_for_tiles
from cosa.mappers.figures import NetworkModel, fix_counts, free_counts
from cosa.mappers.neighbours import MappingPoint
from cosa.mip.analytical_program import AnalyticalProgram
from cosa.mip.powers import has_variables
from cosa.mip.solver import solve
from cosa.model.arch import Architecture
from cosa.model.constraints import Constraints
from cosa.model.keeping import Keeping
from cosa.model.layer import DIMS, TENSORS, Layer
from cosa.model.mapping_rules import MappingRules
from tests.certificate.enumerator import Enumerator
from tests.nocsim.nests import random_architecture

LETTERS = {"w": "weights", "i": "inputs", "o": "outputs"}


def tensors(letters: str) -> list[str]:
    """Names of tensors from their first letters."""
    return [LETTERS[letter] for letter in letters]


def level(keeps: str = "wio", words: int | None = None, **more: Any) -> dict[str, Any]:
    """A level that keeps some tensors (first letters) and whose accesses cost nothing unless stated (`pj`)."""
    renamed = {
        "pj": "vector_access_energy_pj",
        "read": "read_bandwidth_words_per_cycle",
        "write": "write_bandwidth_words_per_cycle",
    }
    more = {renamed.get(name, name): value for name, value in more.items()}
    if "may_keep" in more:
        more["may_keep"] = tensors(more["may_keep"])
    return {"keeps": tensors(keeps), "capacity_words": words, "vector_access_energy_pj": 0.0} | more


def machine(*levels: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Data of an architecture from its levels, innermost first; MACs cost nothing unless stated."""
    named = [{"name": f"L{number}", **entry} for number, entry in enumerate(levels)]
    return {"name": "case", "levels": named, "mac": {"word_bits": 16, "energy_pj": 0.0}} | more


def loops(text: str) -> dict[str, int]:
    """Bounds by dimension, of "P2 K3"."""
    return {word[0]: int(word[1:]) for word in text.split()}


def sizes(text: str, **more: int) -> dict[str, Any]:
    """Data of a layer, of "P2 K3" and strides and dilations."""
    return {"name": "case"} | dict.fromkeys(DIMS, 1) | loops(text) | more


@dataclass(frozen=True)
class Tiles:
    """Bounds of temporal and spatial loops by level, innermost first, and what each level keeps (None: as stated)."""

    temporal: tuple[dict[str, int], ...]
    spatial: tuple[dict[str, int], ...]
    keeps: tuple[tuple[str, ...], ...] | None = None

    @staticmethod
    def of(*levels: str, keeps: Sequence[str] | None = None) -> Tiles:
        """From "P2 K3 / C4" of each level: temporal, then spatial loops; `keeps` in first letters."""
        split = [text.partition("/")[::2] for text in levels]
        kept = None if keeps is None else tuple(tuple(tensors(letters)) for letters in keeps)
        return Tiles(tuple(loops(one) for one, _ in split), tuple(loops(other) for _, other in split), kept)

    def point(self) -> MappingPoint:
        """The same as the mappers write it."""
        bounds = np.ones((2, len(self.temporal), len(DIMS)), np.int64)
        for kind, entries in enumerate((self.temporal, self.spatial)):
            for number, entry in enumerate(entries):
                for dim, bound in entry.items():
                    bounds[kind, number, DIMS.index(dim)] = bound
        kept = None
        if self.keeps is not None:
            kept = np.array([[tensor in level for tensor in TENSORS] for level in self.keeps])
        return MappingPoint(bounds, np.zeros(len(self.temporal), np.int64), kept)


@dataclass(frozen=True)
class Seen:
    """Of one tiling: what its best nest costs, and what the program says of it at least (None: that it is none)."""

    cycles: float
    energy_pj: float
    program_cycles: float | None
    program_energy_pj: float | None


@dataclass
class Analytical:
    """A layer on an architecture: the program, and the enumerator as the judge of it."""

    layer: dict[str, Any]
    architecture: dict[str, Any]
    bypass: str = "fixed"
    constraints: dict[str, Any] | None = None
    _program: AnalyticalProgram = field(init=False)

    def __post_init__(self) -> None:
        layer, architecture = Layer.from_data(self.layer), Architecture.from_data(self.architecture)
        rules = MappingRules()
        if self.constraints is not None:
            rules = Constraints.from_data(self.constraints).rules(layer, architecture)
        self.keeping = Keeping.of(architecture, self.bypass, rules)  # type: ignore[arg-type]
        self.judge = Enumerator(self.layer, self.architecture, self.constraints, self.bypass)
        units = {"cycles_unit": 100.0, "energy_unit_pj": 1000.0}
        self._program = AnalyticalProgram(layer, architecture, **units, mapping_rules=rules, keeping=self.keeping)
        self._energy = self._program.energy

    def nests(self, tiles: Tiles) -> int:
        """How many nests a tiling has that fit."""
        found = self._tiling(tiles)
        return 0 if found is None else found.nests

    def _tiling(self, tiles: Tiles) -> Any:
        found = self.judge.tiling(tiles.temporal, tiles.spatial)
        if found is None or tiles.keeps is None:
            return found
        kept = tuple(tuple(at for at, level in enumerate(tiles.keeps) if tensor in level) for tensor in TENSORS)
        return replace(found, keeps=[choice for choice in found.keeps if choice == kept])

    def look(self, tiles: Tiles) -> Seen:
        """What its nests cost, and what the program says."""
        costs = [cost for cost, _ in self.judge.costs(self._tiling(tiles))]
        cycles, energy = self.says(tiles)
        return Seen(min(cost.cycles for cost in costs), min(cost.energy_pj for cost in costs), cycles, energy)

    def least_energy_pj(self) -> float | None:
        """The least energy that the program has for any tiling."""
        free_counts(self._program)
        return least(self._program, self._energy, 1000.0)

    def says(self, tiles: Tiles) -> tuple[float | None, float | None]:
        """The least cycles and energy (pJ) that the program has for a tiling."""
        program, point = self._program, tiles.point()
        fix_counts(program, point)
        for number, tensor in self.keeping.free:
            kept = program.keeps.kept[number, tensor]
            kept.fix(kept.lb if tiles.keeps is None else float(tensor in tiles.keeps[number]))
        return least(program, program.cycles, 100.0), least(program, self._energy, 1000.0)


def least(program: Any, expression: Any, unit: float) -> float | None:
    """The least value of an expression of a program, its powers exact; None where there is no solution."""
    from pyomo.core import Objective

    if program.model.component("objective") is not None:
        program.model.del_component("objective")
    program.model.objective = Objective(expr=expression)
    while True:
        result = solve(program.model, gap=1e-9)
        if result.objective is None:
            assert result.status == "infeasible", result
            return None
        if not sum(power.refine() for power in program.powers):
            return result.objective * unit


def random_tiles(rng: random.Random, view: Analytical, most_nests: int) -> Iterator[Tiles]:
    """Tilings that fit, with at most so many nests; endless where there is one."""
    work, fanouts = view.judge.work, [prod(fanout) for fanout in view.judge.machine.fanouts]
    levels = range(len(fanouts))
    places = [(0, at) for at in levels] + [(1, at) for at in levels if fanouts[at] > 1] * 2
    for _ in range(400):
        kinds: tuple[list[dict[str, int]], ...] = ([{} for _ in levels], [{} for _ in levels])
        for dim, bound in work.bounds.items():
            for prime in primes(bound):
                kind, at = rng.choice(places)
                if kind and prod(kinds[1][at].values()) * prime > fanouts[at]:
                    kind, at = 0, levels[-1]
                kinds[kind][at][dim] = kinds[kind][at].get(dim, 1) * prime
        keeps = None
        if view.keeping.free:
            chosen = [set(most) for most in view.keeping.always]
            for at, tensor in view.keeping.free:
                chosen[at] |= {tensor} if rng.random() < 0.5 else set()
            keeps = tuple(tuple(tensor for tensor in TENSORS if tensor in each) for each in chosen)
        tiles = Tiles(tuple(kinds[0]), tuple(kinds[1]), keeps)
        if 0 < view.nests(tiles) <= most_nests:
            yield tiles


def primes(number: int) -> Iterator[int]:
    """Prime factors, each as often as it is there."""
    prime = 2
    while number > 1:
        while number % prime == 0:
            yield prime
            number //= prime
        prime += 1


@dataclass
class Meshed:
    """A layer on a machine with a mesh: the program, and the closed form of every nest as the judge of it."""

    layer: Layer
    architecture: Architecture
    constants: Constants

    def __post_init__(self) -> None:
        self.model = NetworkModel(self.layer, self.architecture, constants=self.constants)
        self.judge = NetworkEvaluator(self.layer, self.architecture)
        self.program = self.model.program(1000.0, 1e5)

    def tilings(self, rng: random.Random, most_nests: int) -> Iterator[MappingPoint]:
        """Random tilings that fit, with at most so many nests."""
        levels = range(len(self.architecture.levels))
        fanouts = [prod(self.architecture.fanout(at)) for at in levels]
        places = [(0, at) for at in levels] + [(1, at) for at in levels if fanouts[at] > 1] * 2
        for _ in range(400):
            bounds = np.ones((2, len(levels), len(DIMS)), np.int64)
            for number, dim in enumerate(DIMS):
                for prime in primes(self.layer.bounds[dim]):
                    kind, at = rng.choice(places)
                    if kind and bounds[1, at].prod() * prime > fanouts[at]:
                        kind, at = 0, levels[-1]
                    bounds[kind, at, number] *= prime
            point = MappingPoint(bounds, np.zeros(len(levels), np.int64))
            if self.model.neighbourhood.count_nests(point) <= most_nests and self.model.figures(point):
                yield point

    def costs(self, point: MappingPoint) -> tuple[float, float]:
        """The least floor and the least predicted cycles of a tiling's nests."""
        floor = cycles = np.inf
        for points in self.model.neighbourhood.every_nest(point):
            loads = self.judge.loads(self.model.neighbourhood.batch(points))
            rate = self.constants.dram_bytes_per_cycle
            floor = min(floor, float(self.judge.floor_cycles(loads, rate).min()))
            cycles = min(cycles, float(self.judge.predicted_cycles(loads, self.constants).min()))
        return floor, cycles

    def floors(self, point: MappingPoint) -> Iterator[tuple[str, float, float]]:
        """Each floor by name: the least of a tiling's nests, and the least that the program has."""
        waits, rate = waits_for_tiles(self.architecture), self.constants.dram_bytes_per_cycle
        found: dict[str, float] = {}
        for points in self.model.neighbourhood.every_nest(point):
            loads = self.judge.loads(self.model.neighbourhood.batch(points))
            for name, cycles in floors(loads, waits, rate).items():
                found[name] = min(found.get(name, np.inf), float(np.min(cycles)))
        fix_counts(self.program, point)
        for name, expression in self.program.floors.items():
            yield name, found[name], self._least(expression)

    def loads(self, point: MappingPoint) -> Iterator[tuple[str, float, float]]:
        """Each load by name: the least of a tiling's nests, and the least that the program has.

        What the buffer has sent before PEs begin is taken off what it sends, here as in the formula.
        """
        found: dict[str, float] = {}
        for points in self.model.neighbourhood.every_nest(point):
            loads = self.judge.loads(self.model.neighbourhood.batch(points))
            for name, amount in self._amounts(loads).items():
                found[name] = min(found.get(name, np.inf), float(np.min(amount)))
        fix_counts(self.program, point)
        for name, amount in self._amounts(self.program.loads).items():
            yield name, found[name], self._least(amount)

    def _least(self, expression: Any) -> float:
        """The least value of a load of a tiling that there is."""
        if not has_variables(expression):
            return float(expression) * 1000.0
        says = least(self.program, expression, 1000.0)
        assert says is not None
        return says

    @staticmethod
    def _amounts(loads: NetworkLoads) -> dict[str, Any]:
        amounts = dict(vars(loads))
        prefetched = amounts.pop("prefetched")
        return amounts if prefetched is None else amounts | {"gb_out - prefetched": loads.gb_out - prefetched}

    def energies(self, point: MappingPoint) -> tuple[float, float | None]:
        """The least energy (pJ) of a tiling's nests, and the least that the program has."""
        neighbourhood, evaluator = self.model.neighbourhood, self.model.evaluator(point)
        batches = map(neighbourhood.batch, neighbourhood.every_nest(point))
        judged = min(float(evaluator.evaluate(batch, detail=False).energy_pj.min()) for batch in batches)
        fix_counts(self.program, point)
        return judged, least(self.program, self.program.energy, 1e5)

    def says(self, point: MappingPoint) -> tuple[float | None, float | None]:
        """The least floor and the least predicted cycles that the program has for a tiling."""
        fix_counts(self.program, point)
        return least(self.program, self.program.floor, 1000.0), least(self.program, self.program.cycles, 1000.0)


def meshed(seed: int) -> Meshed:
    """A random layer, often with a window, on a random machine with a mesh."""
    rng = random.Random(seed)
    dims = rng.sample("PQCKNG", rng.choice((2, 3, 3, 4)))
    bounds = {dim: rng.choice((2, 3, 4, 6, 8, 16)) for dim in dims}
    if rng.random() < 0.4:
        bounds |= dict(zip(rng.choice(("PR", "QS")), (rng.choice((2, 4, 8)), rng.choice((2, 3))), strict=True))
    while prod(bounds.values()) > 3000:
        bounds[max(bounds, key=lambda dim: bounds[dim])] = 2
    more = {name: 2 for name in ("stride_w", "stride_h", "dilation_w") if rng.random() < 0.1}
    noc: dict[str, Any] = rng.choice(
        (
            {},
            {"partial_packets": "full"},
            {"packet_payload_flits": 1},
            {"global_buffer_ports": [{"router": [0, -1]}]},
            {"global_buffer_ports": [{"router": [0, -1]}, {"router": [-1, -1]}]},
        )
    )
    architecture = random_architecture(
        rng,
        noc=dict(noc),
        machine=rng.choice(({}, {"compute_starts": "first_word"})),
        pe={"pipeline_latency_cycles": rng.choice((0, 0, 20))},
        capacity=rng.choice((64, 512, 1 << 20)),
    )
    rate = rng.choice((None, None, None, 1.0))
    return Meshed(Layer.from_data(sizes("", **bounds, **more)), architecture, Constants(dram_bytes_per_cycle=rate))


def windows(seed: int) -> Analytical:
    """A small layer with a window on a small machine, most of which costs nothing.

    Of every other seed inputs alone cost something, bounds are tiny so that moves coincide, and a level's order may be
    stated.
    """
    rng = random.Random(seed)
    return _windows_of_few_words(rng) if seed % 2 else _windows_of_levels(rng)


def _steps(rng: random.Random, chance: float) -> dict[str, int]:
    names = ("stride_w", "stride_h", "dilation_w", "dilation_h")
    return {name: rng.choice((2, 3)) for name in names if rng.random() < chance}


FANOUTS: tuple[Any, ...] = (2, 3, 4, 6, {"x": 2, "y": 2}, {"x": 3, "y": 2}, {"x": 1, "y": 4})


def _windows_of_levels(rng: random.Random) -> Analytical:
    axes = rng.choice(("PR", "PR", "QS", "PRQ", "PRQS"))
    bounds = {dim: rng.choice((2, 3, 4, 6, 8, 12, 16) if dim in "PQ" else (2, 3, 3, 4, 5)) for dim in axes}
    if len(axes) == 4:
        bounds = {dim: min(bound, 4) for dim, bound in bounds.items()}
    bounds |= {dim: rng.choice((2, 2, 3, 4)) for dim in rng.sample("CKNG", rng.choice((0, 1, 1, 2)))}
    layer = sizes("", **bounds, **_steps(rng, 0.15))
    count = rng.choice((2, 2, 3, 3, 4))
    costly, slow = rng.randrange(count), rng.randrange(count)
    levels = []
    for at in range(count):
        outermost, more = at == count - 1, dict[str, Any]()
        keeps = "wio" if outermost else rng.choice(("wio", "i", "i", "io", "wi", "o", "w"))
        if not outermost and rng.random() < 0.15:
            more["may_keep"] = "".join(tensor for tensor in "wio" if tensor not in keeps)
        if at == costly:
            more["pj"] = 1.0
        if at == slow and rng.random() < 0.5:
            more[rng.choice(("read", "write"))] = rng.choice((0.3, 0.5, 1))
        if rng.random() < 0.45:
            more["fanout"] = rng.choice(FANOUTS)
        levels.append(level(keeps, None if outermost else rng.choice((40, 100, 400)), **more))
    return Analytical(layer, machine(*levels), "chosen")


def _windows_of_few_words(rng: random.Random) -> Analytical:
    bounds = {dim: rng.choice((2, 2, 3, 4)) for dim in rng.choice(("PR", "QS", "PRQS"))}
    bounds |= {dim: rng.choice((2, 2, 3)) for dim in rng.sample("KKC", rng.choice((0, 1, 2)))}
    layer = sizes("", **bounds, **_steps(rng, 0.12))
    inner = [level("i", 100, pj=rng.choice((0.0, 1.0))) for _ in range(rng.choice((1, 2, 2)))]
    inner[-1]["vector_access_energy_pj"] = 1.0
    if rng.random() < 0.3:
        inner[0] = level("wo", 100)
    levels = [*inner, level("wio", None)]
    for at, entry in enumerate(levels):
        if rng.random() < (0.3 if at == 0 else 0.55):
            entry["fanout"] = rng.choice(FANOUTS)
    direction = rng.choice(("read", "write"))
    rng.choice(levels)[f"{direction}_bandwidth_words_per_cycle"] = rng.choice((0.1, 0.3))
    constraints = None
    if rng.random() < 0.35:
        order = rng.sample(list(bounds), rng.randint(1, min(3, len(bounds))))
        name = f"L{rng.randrange(len(levels))}"
        constraints = {"kind": "constraints", "orders": [{"level": name, "order": order}]}
    return Analytical(layer, machine(*levels), "fixed", constraints)
