"""The oracle itself: its accounting equals the product's on random nests, its space has what it should and no more."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from math import prod
from typing import Any

import pytest

from cosa.analytical.evaluation import evaluate_timeloop
from cosa.model.arch import Architecture
from cosa.model.constraints import Constraints
from cosa.model.layer import Layer
from cosa.model.mapping_rules import MappingRules
from cosa.model.schedule import ScheduleLevel, check_nest
from cosa.model.validity import violations
from tests.certificate.accounting import TENSORS, Machine, Work, evaluate
from tests.certificate.enumerator import OBJECTIVES, Enumerator, TooManyNestsError, best
from tests.certificate.generator import KINDS, Pair, generate, pairs
from tests.certificate.rules import Rules


def random_nest(pair: Pair, rng: random.Random) -> list[dict[str, Any]]:
    """A nest within the fan-outs, of any tiles, orders, axes and choices of what is kept, seldom in the buffers."""
    machine, work = Machine(pair.architecture), Work(pair.layer)
    number = len(machine.levels)
    loops: list[dict[str, list[dict[str, Any]]]] = [{"temporal": [], "spatial": []} for _ in range(number)]
    rows = [rng.random() < 0.3 for _ in range(number)]
    primes = [(dim, prime) for dim, bound in work.bounds.items() for prime in factors(bound)]
    rng.shuffle(primes)
    for dim, prime in primes:
        level, (columns, lines) = (at := rng.randrange(number)), machine.fanouts[at]
        axis, most = ("row_major", columns * lines) if rows[level] else rng.choice((("x", columns), ("y", lines)))
        spatial = loops[level]["spatial"]
        used = prod(loop["bound"] for loop in spatial if loop["axis"] == axis)
        kind = "spatial" if used * prime <= most and rng.random() < 0.7 else "temporal"
        at_level = loops[level][kind]
        same = [loop for loop in at_level if loop["dim"] == dim and (kind == "temporal" or loop["axis"] == axis)]
        if same and (kind == "spatial" or rng.random() < 0.5):
            same[0]["bound"] *= prime
            continue
        loop = {"dim": dim, "bound": prime, "kind": kind, "axis": axis if kind == "spatial" else None}
        at_level.insert(rng.randint(0, len(at_level)), loop)
    nest = []
    for level in range(number):
        keeps = [*machine.keeps[level], *machine.may_keep[level]]
        if level < number - 1:
            keeps = [tensor for tensor in TENSORS if tensor in keeps and rng.random() < 0.7]
        both = loops[level]["temporal"] + loops[level]["spatial"]
        nest.append({"level": machine.names[level], "keeps": keeps, "loops": both})
    return nest[::-1]


def factors(number: int) -> Iterator[int]:
    prime = 2
    while number > 1:
        while number % prime == 0:
            yield prime
            number //= prime
        prime += 1


def product_view(pair: Pair) -> tuple[Layer, Architecture, MappingRules]:
    layer, architecture = (
        Layer.from_data(pair.layer, "layer"),
        Architecture.from_data(pair.architecture, "architecture"),
    )
    rules = MappingRules()
    if pair.constraints is not None:
        rules = Constraints.from_data(pair.constraints, "constraints").rules(layer, architecture)
    return layer, architecture, rules


def as_levels(nest: Any) -> tuple[ScheduleLevel, ...]:
    return tuple(ScheduleLevel.model_validate_json(json.dumps(entry)) for entry in nest)


def test_the_accounting_equals_that_of_cosa_evaluate_on_random_nests() -> None:
    nests = linked = 0
    seen: Counter[str] = Counter()
    for seed in range(260):
        pair = generate(seed)
        rng = random.Random(f"nests {seed}")
        layer, architecture, _ = product_view(pair)
        for _ in range(6 if pair.kind in ("window", "strides", "dilation") else 3):
            nest = random_nest(pair, rng)
            check_nest(layer, architecture, as_levels(nest))
            theirs = evaluate_timeloop(layer, architecture, as_levels(nest))
            ours = evaluate(pair.layer, pair.architecture, nest)
            assert ours.cycles == theirs.cycles, (seed, nest)
            assert ours.energy_pj == pytest.approx(theirs.energy_pj, rel=1e-12, abs=0), (seed, nest)
            nests += 1
            linked += any(item.link_transfers > 0 for level in theirs.networks for item in level.values())
            seen[pair.kind] += theirs.bound_by != "compute"
    assert nests == 951
    assert linked >= 90, "neighbours give words in too few of the nests"
    assert sum(seen.values()) >= 300, "bandwidths stretch too few of the nests"


def test_a_group_of_which_neighbours_serve_a_part_is_read_whole() -> None:
    """P2 K2 in a row: of the two instances that want the same inputs one lies beside who had them a step before."""
    level = {"keeps": list(TENSORS), "capacity_words": 100, "vector_access_energy_pj": 1}
    outer = level | {"name": "L1", "capacity_words": None, "fanout": 4}
    pair = Pair(0, "", {"name": "part", "R": 3, "P": 2, "K": 2} | dict.fromkeys("SQCN", 1), {}, None, "fixed")
    pair.architecture.update({"name": "part", "levels": [level | {"name": "L0"}, outer]})
    layer, architecture, _ = product_view(pair)
    spatial = [{"dim": dim, "bound": 2, "kind": "spatial", "axis": "x"} for dim in "PK"]
    temporal = {"dim": "R", "bound": 3, "kind": "temporal", "axis": None}
    nest = [
        {"level": "L1", "keeps": list(TENSORS), "loops": [temporal, *spatial]},
        {"level": "L0", "keeps": list(TENSORS), "loops": []},
    ]
    theirs = evaluate_timeloop(layer, architecture, as_levels(nest))
    assert evaluate(pair.layer, pair.architecture, nest) == (theirs.cycles, theirs.energy_pj)
    assert theirs.levels[1].tensors["inputs"].reads == 6, "two groups at each of three steps"


def test_every_nest_is_valid_and_costs_what_cosa_evaluate_says() -> None:
    rng, checked = random.Random(1), 0
    for pair, enumerator in islice(pairs(0, most=1000), 26):
        layer, architecture, rules = product_view(pair)
        nests = list(enumerator.nests())
        for cost, nest in rng.sample(nests, k=min(8, len(nests))):
            levels = as_levels(nest)
            check_nest(layer, architecture, levels)
            assert violations(layer, architecture, levels) == []
            assert rules.broken(architecture, levels) == []
            theirs = evaluate_timeloop(layer, architecture, levels)
            assert (cost.cycles, cost.energy_pj) == (theirs.cycles, pytest.approx(theirs.energy_pj, rel=1e-12, abs=0))
            checked += 1
    assert checked > 100


def test_no_valid_nest_is_better_than_the_best() -> None:
    """Random nests that `cosa` finds valid lie in the space, whatever their arrangement."""
    valid = 0
    for pair, enumerator in islice(pairs(0, most=1500), 40):
        layer, architecture, rules = product_view(pair)
        least = enumerator.best()
        rng = random.Random(f"valid {pair.seed}")
        for _ in range(60):
            nest = random_nest(pair, rng)
            for entry, level in zip(nest, architecture.levels[::-1], strict=True):
                if pair.bypass == "fixed":
                    entry["keeps"] = level.keeps
            levels = as_levels(nest)
            if violations(layer, architecture, levels) or rules.broken(architecture, levels) or not mergeable(nest):
                continue
            cost = evaluate(pair.layer, pair.architecture, nest)
            for objective, value in zip(OBJECTIVES, (cost.cycles, cost.energy_pj, cost.edp), strict=True):
                assert least[objective][0] <= value * (1 + 1e-12), (pair.seed, objective, nest)
            valid += 1
    assert valid > 150


def mergeable(nest: Any) -> bool:
    """Whether levels have one temporal loop over a dimension, as in the space."""
    temporal = [[loop["dim"] for loop in entry["loops"] if loop["kind"] == "temporal"] for entry in nest]
    return all(len(set(dims)) == len(dims) for dims in temporal)


def test_what_is_left_out_costs_what_something_else_costs() -> None:
    """On pairs where arrangements may matter: windows that slide, and instances side by side, MACs or buffers."""
    compared, smaller = Counter[str](), 0
    for seed in range(3000):
        pair = generate(seed)
        machine, work = Machine(pair.architecture), Work(pair.layer)
        around = [prod(fanout) > 1 for fanout in machine.fanouts]
        which = "MACs" if around[0] else "windows" if work.slides and any(around[1:]) else ""
        if not which or compared[which] == 25:
            continue
        whole = Enumerator(pair.layer, pair.architecture, pair.constraints, pair.bypass, everything=True)
        try:
            whole.spaces(2000)
        except TooManyNestsError:
            continue
        everything = Counter((cost.cycles, f"{cost.energy_pj:.9e}") for cost, _ in whole.nests())
        if len(everything) < 20:
            continue
        found = Counter((cost.cycles, f"{cost.energy_pj:.9e}") for cost, _ in pair.enumerator().nests())
        assert set(found) == set(everything), seed
        compared[which] += 1
        smaller += found.total() < everything.total()
    assert compared == {"MACs": 25, "windows": 25}
    assert smaller >= 40


def test_rules_are_those_of_cosa() -> None:
    """Random nests that constraints allow or not, each by what the file says and by what the product reads in it."""
    kept: Counter[bool] = Counter()
    broken: Counter[str] = Counter()
    for seed in range(KINDS.index("constraints"), 1300, len(KINDS)):
        pair = generate(seed)
        rng = random.Random(f"rules {seed}")
        _, architecture, theirs = product_view(pair)
        machine, work = Machine(pair.architecture), Work(pair.layer)
        ours = Rules(pair.constraints, machine)
        for _ in range(10):
            nest = random_nest(pair, rng)
            if not mergeable(nest):
                continue
            levels = as_levels(nest)
            reasons = theirs.broken(architecture, levels)
            assert allows(ours, work, nest[::-1]) == (not reasons), (seed, nest, reasons)
            kept[not reasons] += 1
            broken.update(name for name in pair.constraints or () if name != "kind" and len(reasons) == 1)
    assert min(kept.values()) >= 200
    assert min(broken[name] for name in ("factors", "orders", "spatial", "keeps")) >= 20


def allows(rules: Rules, work: Work, nest: list[dict[str, Any]]) -> bool:
    """Whether the oracle's rules allow a nest (innermost level first)."""
    bounds: dict[str, list[dict[str, int]]] = {"temporal": [{} for _ in nest], "spatial": [{} for _ in nest]}
    for level, entry in enumerate(nest):
        for loop in entry["loops"]:
            at = bounds[loop["kind"]][level]
            at[loop["dim"]] = at.get(loop["dim"], 1) * loop["bound"]
        temporal = tuple(loop["dim"] for loop in entry["loops"] if loop["kind"] == "temporal")
        if temporal not in rules.orders(level, temporal):
            return False
        if tuple(entry["keeps"]) not in rules.kept(level, "chosen"):
            return False
        spatial = [loop for loop in entry["loops"] if loop["kind"] == "spatial"]
        if not all(rules.allows_axis(level, loop["dim"], loop["axis"]) for loop in spatial):
            return False
    splits = {
        dim: {(level, kind): at[level].get(dim, 1) for kind, at in bounds.items() for level in range(len(nest))}
        for dim in work.bounds
    }
    return rules.allows_products(bounds["temporal"], bounds["spatial"]) and all(
        rules.allows_split(dim, split) for dim, split in splits.items()
    )


def test_a_layer_by_hand() -> None:
    """Two words and two MACs on a buffer of three words: both orders of one loop, temporal or side by side."""
    layer = {"K": 2}
    level = {"keeps": list(TENSORS), "word_bits": 8, "vector_access_energy_pj": 1}
    architecture = {
        "name": "hand",
        "levels": [
            level | {"name": "L0", "capacity_words": 3, "fanout": 2},
            level | {"name": "L1", "capacity_words": None},
        ],
        "mac": {"energy_pj": 0},
    }
    # K outside of L0: two cycles. L0 reads 1 weight and 1 input a cycle and takes 1 output; it is filled with two
    # weights and one input; outputs need none. L1 gives two weights and one input, and takes two outputs.
    # K around the MACs would need 2 + 1 + 2 words in L0. So there is one nest.
    found = Enumerator(layer, architecture)
    assert [cost for cost, _ in found.nests()] == [(2, (2 + 2 + 2) + (2 + 1) + (2 + 1 + 2))]
    assert {name: value for name, (value, _) in best(layer, architecture).items()} == {
        "latency": 2,
        "energy": 14,
        "edp": 28,
    }
    architecture["levels"][0]["capacity_words"] = 5
    # Now K fits inside too: after one another, or side by side with one input for both MACs.
    nests = sorted((cost.cycles, cost.energy_pj) for cost, _ in Enumerator(layer, architecture).nests())
    assert nests == [(1, (2 + 1 + 2) + 3 + 5), (2, 14), (2, 6 + 3 + 5)]


def test_no_nest_fits() -> None:
    architecture = generate(0).architecture
    architecture["levels"][0] |= {"capacity_words": 2, "keeps": list(TENSORS)}
    assert best({"K": 2}, architecture) == {}


def test_too_many_nests() -> None:
    pair, enumerator = next(pairs(0))
    looked_at = enumerator.best() and enumerator.looked_at
    assert looked_at > 1
    with pytest.raises(TooManyNestsError):
        best(pair.layer, pair.architecture, pair.constraints, pair.bypass, most=looked_at - 1)


def test_pairs_have_every_kind_and_are_the_same_again() -> None:
    assert {generate(seed).kind for seed in range(len(KINDS))} == set(KINDS)
    assert [generate(seed) for seed in range(50)] == [generate(seed) for seed in range(50)]
    for seed in range(len(KINDS) * 4):
        pair = generate(seed)
        levels = pair.architecture["levels"]
        memories = [level for level in levels if level["keeps"]]
        has = {
            "window": any(pair.layer[a] > 1 and pair.layer[b] > 1 for a, b in ("PR", "QS")),
            "strides": "stride_w" in pair.layer,
            "dilation": "dilation_w" in pair.layer,
            "groups": pair.layer["G"] > 1,
            "batch": pair.layer["N"] > 1,
            "constraints": pair.constraints is not None,
            "bypass": pair.bypass == "chosen",
            "fanouts": any(level["fanout"] != 1 for level in levels),
            "blocks": all(level["block_words"] > 1 for level in memories),
            "clusters": any(level.get("cluster_size", 1) > 1 for level in levels),
            "buffers": all(level.get("buffers") == 2 for level in memories),
            "tiny": all(level["capacity_words"] <= 10 for level in memories[:-1]),
        }
        assert has.get(pair.kind, True), (seed, pair.kind)
