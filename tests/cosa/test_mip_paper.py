"""The paper's program: the optimum of the aggregated one, and of every nest there is; its objectives and switches."""

from __future__ import annotations

import random
from functools import partial
from itertools import product
from math import log2, prod
from typing import Any

import pytest

import cosa
from cosa.common.errors import InputError
from cosa.mappers.nests import build_nest, order_free_levels
from cosa.mip.aggregated import Program
from cosa.mip.nest import NestQuantities, breakdown, readings
from cosa.mip.objective import OBJECTIVES, Weights
from cosa.mip.paper import PaperProgram
from cosa.mip.quantities import Rules, exact_modes, staying_modes
from cosa.mip.solver import SolverResult, solve
from cosa.mip.space import Factors
from cosa.model.arch import Architecture, load_architecture
from cosa.model.layer import DIMS, Dim, Layer
from cosa.model.mapping_rules import KINDS, LoopKind
from cosa.model.validity import violations

published = partial(cosa.schedule, mapper="published")

SIMBA = load_architecture("simba_4x4")


def layer(**fields: int) -> Layer:
    return Layer.model_validate(dict.fromkeys(DIMS, 1) | fields)


def random_layer(rng: random.Random, primes: int) -> Layer:
    bounds = dict.fromkeys(DIMS, 1)
    for _ in range(primes):
        bounds[rng.choice(DIMS)] *= rng.choice((2, 2, 3, 3, 5, 7))
    return layer(**bounds, stride_w=rng.choice((1, 1, 2)), stride_h=rng.choice((1, 2)))


def solved(kind: type[Program], work: Layer, architecture: Architecture = SIMBA, **options: Any) -> tuple[Any, Any]:
    """The result, and what its own nest is worth."""
    program = kind(work, architecture, **options)
    result: SolverResult = solve(program.model, gap=1e-6)
    assert result.status == "optimal"
    factors = program.decode()
    nest = build_nest(architecture, factors, {program.order_level: factors.innermost})
    return result.objective, breakdown(work, architecture, nest, **options)["total"]


@pytest.mark.parametrize("as_published", [False, True])
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", range(4))
def test_paper_and_aggregated_have_one_optimum(seed: int, objective: str, as_published: bool) -> None:
    rng = random.Random(seed)
    work = random_layer(rng, 2 + seed)
    options = {"objective": objective, "rules": Rules(as_published=as_published, precision=bool(seed % 2))}
    aggregated, of_aggregated = solved(Program, work, **options)
    paper, of_paper = solved(PaperProgram, work, **options)
    assert aggregated == pytest.approx(paper, abs=1e-4)
    assert of_aggregated == pytest.approx(aggregated, abs=1e-4)
    assert of_paper == pytest.approx(paper, abs=1e-4)


def every_value(work: Layer, objective: str, rules: Rules) -> float:
    """The least objective over every assignment of factors, of 1 too, to places, and the orders it is for."""
    assert all(bound in (1, 2, 3, 5, 7) for bound in work.bounds.values())
    dims = [dim for dim in DIMS if work.bounds[dim] > 1]
    places: list[tuple[int, LoopKind]] = [
        (level, kind)
        for level in range(len(SIMBA.levels))
        for kind in KINDS
        if kind == "temporal" or SIMBA.fanout(level) != (1, 1)
    ]
    ordered, chosen = rules.order_level(SIMBA), OBJECTIVES[objective]
    modes = exact_modes(rules) if chosen.absolute else staying_modes(rules)
    best = float("inf")
    for assigned in product(places, repeat=len(dims)):
        bounds: dict[tuple[int, Dim, LoopKind], int] = {
            (level, dim, kind): work.bounds[dim] for dim, (level, kind) in zip(dims, assigned, strict=True)
        }
        if any(
            prod(bound for (at, _, kind), bound in bounds.items() if (at, kind) == (level, "spatial"))
            > prod(SIMBA.fanout(level))
            for level in range(len(SIMBA.levels))
        ):
            continue
        nests = {build_nest(SIMBA, Factors(bounds, ()), {ordered: mode.innermost}) for mode in modes}
        for numbers in [reading for nest in nests for reading in readings(work, SIMBA, nest, rules)]:
            shares = [
                (numbers.log_tile(tensor, level), rules.share_words(work, SIMBA, level, tensor))
                for level, entry in enumerate(SIMBA.levels)
                for tensor in entry.keeps
            ]
            if all(words is None or size <= log2(words + 0.5) for size, words in shares):
                total = sum(term.weighted for term in chosen.terms(numbers, Weights()))
                best = min(best, abs(total) if chosen.absolute else total)
    return best


@pytest.mark.parametrize("as_published", [False, True])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_optimum_is_the_best_of_all_nests(objective: str, as_published: bool) -> None:
    """No nest of a small layer with a halo and a stride is better; and one is as good."""
    rules = Rules(as_published=as_published)
    work = layer(R=3, P=2, K=5, stride_w=2)
    assert solved(Program, work, objective=objective, rules=rules)[0] == pytest.approx(
        every_value(work, objective, rules), abs=1e-5
    )


def test_each_factor_stands_at_one_place_and_each_slot_holds_one() -> None:
    program = PaperProgram(layer(P=4, C=6, K=2), SIMBA)
    assert solve(program.model).status == "optimal"
    assert program.slots == 5
    placed = [(dim, number) for (_, dim, number), binary in program.assignment.items() if binary.value > 0.5]
    assert sorted(placed) == [("C", 0), ("C", 1), ("K", 0), ("P", 0), ("P", 1)]
    in_slots = [
        place.slot for (place, _, _), x in program.assignment.items() if x.value > 0.5 and place.slot is not None
    ]
    assert len(set(in_slots)) == len(in_slots)
    assert program.relevance["K", "weights"]
    assert not program.relevance["K", "inputs"]
    assert program.storage[0, "weights"]
    assert not program.storage[0, "inputs"]


def test_weights_scale_their_terms() -> None:
    schedule = published(layer(R=3, P=14, C=32, K=64), SIMBA)
    plain = breakdown(schedule.layer, SIMBA, schedule.nest)
    weights = Weights(utilisation=0.2, compute=5, tensors={"inputs": 3.0})
    changed = breakdown(schedule.layer, SIMBA, schedule.nest, weights=weights)
    assert changed["compute"] == pytest.approx(plain["compute"] / 2)
    assert changed["traffic inputs"] == pytest.approx(3 * plain["traffic inputs"])
    assert changed["traffic outputs"] == plain["traffic outputs"]
    only = Weights(levels={entry.name: 0.0 for entry in SIMBA.levels if entry.name != "InputBuffer"})
    nest = NestQuantities(schedule.layer, SIMBA, schedule.nest, Rules())
    of_level = breakdown(schedule.layer, SIMBA, schedule.nest, weights=only)["utilisation"]
    assert of_level == pytest.approx(-0.1 * nest.log_tile("inputs", SIMBA.level_index("InputBuffer")))


def test_weights_change_the_schedule() -> None:
    """With compute for nothing and traffic for much, fewer words are worth idle MACs, and the optimum says so."""
    work = layer(R=3, S=3, P=14, Q=14, C=32, K=64)
    weights = Weights(compute=0, traffic=10)
    light, plain = published(work, SIMBA, weights=weights), published(work, SIMBA)
    of_light, of_plain = (breakdown(work, SIMBA, found.nest, objective="traffic")["total"] for found in (light, plain))
    assert of_light < of_plain
    assert light.provenance.objective_value == pytest.approx(
        breakdown(work, SIMBA, light.nest, weights=weights)["total"], abs=1e-4
    )


@pytest.mark.parametrize(
    ("data", "path"),
    [({"computes": 1}, "computes"), ({"traffic": -1}, "traffic"), ({"tensors": {"bias": 1}}, "tensors.bias")],
)
def test_weights_files_are_checked(data: dict[str, Any], path: str) -> None:
    with pytest.raises(InputError) as caught:
        Weights.from_data(data, source="w.yaml")
    assert caught.value.path == path


def test_levels_that_are_not_there() -> None:
    with pytest.raises(InputError, match="did you mean GlobalBuffer"):
        published(layer(P=4), SIMBA, weights=Weights(levels={"GlobalBufer": 1}))
    with pytest.raises(InputError, match=r"order_level.*did you mean InputBuffer"):
        published(layer(P=4), SIMBA, order_level="Inputbuffer")
    with pytest.raises(InputError, match="did you mean paper"):
        published(layer(P=4), SIMBA, formulation="papers")


def test_precision_counts_bytes() -> None:
    """24-bit partial sums take three 8-bit entries of the global buffer; without the term each takes one."""
    work = layer(P=64, Q=64, K=64, C=2)
    level = SIMBA.level_index("GlobalBuffer")
    sizes = []
    for precision in (False, True):
        schedule = published(work, SIMBA, precision=precision)
        rules = Rules(precision=precision)
        assert violations(work, SIMBA, schedule.nest) == []
        numbers = NestQuantities(work, SIMBA, schedule.nest, rules)
        sizes.append(2 ** numbers.log_tile("outputs", level))
        assert breakdown(work, SIMBA, schedule.nest, rules=rules)["total"] == pytest.approx(
            schedule.provenance.objective_value, abs=1e-4
        )
    assert sizes[1] <= 65536 * 3 / 4 / 3 < sizes[0]
    assert rules.log_bytes(work, "outputs") == pytest.approx(log2(3))


def test_another_ordered_level() -> None:
    """The order of the input buffer's loops becomes part of the program; everything outside counts as outside."""
    work = layer(R=3, P=14, C=32, K=64)
    schedule = published(work, SIMBA, order_level="InputBuffer")
    rules = Rules(ordered_level="InputBuffer")
    assert violations(work, SIMBA, schedule.nest) == []
    assert breakdown(work, SIMBA, schedule.nest, rules=rules)["total"] == pytest.approx(
        schedule.provenance.objective_value, abs=1e-4
    )


def test_orders_left_free_need_no_mesh() -> None:
    """Without a mesh the orders are chosen all the same: none of the others moves fewer words at the DRAM."""
    from cosa.analytical.evaluation import evaluate_exact

    data = SIMBA.model_dump(mode="json", exclude={"noc", "dram"})
    data["levels"][4]["fanout"] = {"x": 4, "y": 4}
    plain = Architecture.from_data(data)
    work = layer(R=3, P=14, Q=14, C=64, K=64)
    program = Program(work, plain)
    assert program.order_level == 4
    solve(program.model)
    factors = program.decode()
    nest = order_free_levels(work, plain, factors, program.order_level)

    def words(candidate: Any) -> int:
        outermost = evaluate_exact(work, plain, candidate).levels[-1]
        return outermost.read_words + outermost.write_words

    for innermost in ((), ("K",), ("P", "Q"), ("C",)):
        other = build_nest(plain, factors, {4: factors.innermost, 5: innermost})
        assert words(nest) <= words(other)
