"""The published form against CoSA's program restated, on small layers; `scripts/program.py` has ResNet-50's."""

from __future__ import annotations

import random
from math import log2
from typing import Any

import pytest

from cosa.mappers.nests import build_nest
from cosa.mip.aggregated import Program
from cosa.mip.nest import breakdown, readings
from cosa.mip.paper import PaperProgram
from cosa.mip.quantities import Rules
from cosa.mip.solver import solve
from cosa.model.arch import Architecture, load_architecture
from cosa.model.layer import DIMS, Layer
from tests.cosa.original_program import Machine, original_optimum

SMALL = Machine(words=(1, 4, 32, 16, 64), fanouts=(1, 2, 1, 2, 4))
"""Buffers that a few loops fill: the halo of loops of bound 1 matters where it takes room or fills it."""

RULES = Rules(as_published=True)


def architecture(machine: Machine) -> Architecture:
    """simba_4x4 with the buffers and fan-outs of a machine."""
    data: dict[str, Any] = load_architecture("simba_4x4").model_dump(mode="json")
    for level, words, fanout in zip(data["levels"], machine.words, machine.fanouts, strict=False):
        level |= {"capacity_words": words, "buffers": 1, "cluster_size": 1}
        if level["fanout"] != "mesh":
            level["fanout"] = fanout
    data["noc"]["mesh"] = {4: "2x2", 16: "4x4"}[machine.fanouts[4]]
    return Architecture.from_data(data)


def layer(bounds: dict[str, int], strides: tuple[int, int]) -> Layer:
    return Layer.model_validate(dict.fromkeys(DIMS, 1) | bounds | {"stride_w": strides[0], "stride_h": strides[1]})


def require_equal(bounds: dict[str, int], strides: tuple[int, int], machine: Machine) -> None:
    """One optimum, by the restated program, both formulations, and what `breakdown` says of their nests."""
    wanted, bound = original_optimum(bounds, strides, machine, gap=1e-8)
    assert wanted == pytest.approx(bound, abs=1e-5)
    work, on = layer(bounds, strides), architecture(machine)
    for kind in (Program, PaperProgram):
        program = kind(work, on, rules=RULES)
        assert solve(program.model, gap=1e-8).objective == pytest.approx(wanted, abs=1e-5), kind
        factors = program.decode()
        nest = build_nest(on, factors, {program.order_level: factors.innermost})
        assert breakdown(work, on, nest, rules=RULES)["total"] == pytest.approx(wanted, abs=1e-5), kind


SHAPES: dict[str, tuple[dict[str, int], tuple[int, int]]] = {
    "fully connected": ({"C": 16, "K": 6}, (1, 1)),
    "1x1": ({"P": 4, "Q": 2, "C": 8, "K": 3}, (1, 1)),
    "1x1, stride 2": ({"P": 4, "C": 6, "K": 4}, (2, 2)),
    "one output along each axis": ({"R": 3, "S": 3, "C": 4, "K": 4}, (1, 1)),
    "one output, stride 2": ({"R": 5, "S": 3, "C": 4, "K": 2}, (2, 1)),
    "one output, no taps, stride 2": ({"C": 8, "K": 4}, (2, 2)),
    "3x1 and stride 2": ({"R": 3, "P": 4, "C": 4, "K": 4}, (2, 1)),
    "3x3": ({"R": 3, "S": 3, "P": 2, "Q": 2, "C": 3}, (1, 1)),
}


@pytest.mark.parametrize("machine", [Machine(), SMALL], ids=["simba", "small"])
@pytest.mark.parametrize("shape", SHAPES)
def test_published_form_is_the_original_program(shape: str, machine: Machine) -> None:
    require_equal(*SHAPES[shape], machine)


@pytest.mark.parametrize("seed", range(30))
def test_published_form_is_the_original_program_on_random_layers(seed: int) -> None:
    rng = random.Random(seed)
    bounds: dict[str, int] = {}
    for _ in range(rng.randint(3, 5)):
        dim = rng.choice("RSPQCCKKN")
        bounds[dim] = bounds.get(dim, 1) * rng.choice((2, 2, 3, 5))
    require_equal(bounds, (rng.choice((1, 2)), rng.choice((1, 2))), SMALL)


def test_a_factor_1_stands_at_the_best_level_that_keeps_inputs() -> None:
    """Two levels in a PE keep inputs here, which the original machine has not: a stride counts at both, or at one."""
    data = load_architecture("simba_4x4").model_dump(mode="json")
    data["levels"][1]["keeps"] = ["inputs", "outputs"]
    work = layer({"R": 3, "Q": 4, "C": 4, "K": 4}, (2, 2))
    totals = []
    for words in (64, 8):
        data["levels"][1]["capacity_words"] = words
        on = Architecture.from_data(data)
        program = Program(work, on, rules=RULES)
        total = solve(program.model, gap=1e-8).objective
        factors = program.decode()
        nest = build_nest(on, factors, {program.order_level: factors.innermost})
        assert breakdown(work, on, nest, rules=RULES)["total"] == pytest.approx(total, abs=1e-5)
        places = {units.outputs for numbers in readings(work, on, nest, RULES) for units in numbers.units.values()}
        assert places == {None, 0, 1, 2, 3}
        totals.append(total)
    assert totals[0] < totals[1]


def test_loops_of_bound_1_fill_the_input_buffer() -> None:
    """Without them 0.2 more on a fully connected layer: two bits of halo at a tenth each, from nothing."""
    work, on = layer({"C": 16, "K": 6}, (1, 1)), architecture(Machine())
    published, true = (solve(Program(work, on, rules=rules).model, gap=1e-8).objective for rules in (RULES, Rules()))
    assert published is not None
    assert true is not None
    assert published == pytest.approx(true - 0.1 * 2 * log2(2), abs=1e-6)
