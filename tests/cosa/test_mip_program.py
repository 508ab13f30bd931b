"""Does the program mean what it says: tiles, orders, terms?"""

from fractions import Fraction
from itertools import permutations
from math import log2, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosa.analytical.footprint import span
from cosa.mappers.nests import build_nest
from cosa.mip.aggregated import Program
from cosa.mip.factors import divisors, prime_factors
from cosa.mip.nest import NestQuantities, breakdown
from cosa.mip.quantities import Rules, order, sliding_axes, staying_modes
from cosa.mip.solver import solve
from cosa.model.arch import load_architecture
from cosa.model.layer import DIMS, TENSORS, Layer
from cosa.model.schedule import Loop, ScheduleLevel

SIMBA = load_architecture("simba_4x4")


def layer(**bounds):
    return Layer(**dict.fromkeys(DIMS, 1) | bounds)


def solved(work, architecture=SIMBA, **rules):
    program = Program(work, architecture, rules=Rules(**rules))
    result = solve(program.model)
    assert result.status == "optimal"
    factors = program.decode()
    nest = build_nest(architecture, factors, {architecture.mesh_level: factors.innermost})
    return program, result, factors, nest


LAYERS = {
    "3x3": layer(R=3, S=3, P=14, Q=14, C=32, K=64),
    "7x7 stride 2": layer(R=7, S=7, P=112, Q=112, C=3, K=64, stride_w=2, stride_h=2),
    "dilated": layer(R=3, S=3, P=28, Q=28, C=16, K=16, dilation_w=2, dilation_h=3),
    "1x1 stride 2": layer(P=28, Q=28, C=64, K=64, stride_w=2, stride_h=2),
    "one-dimensional": layer(R=9, P=1000, C=8, K=8, stride_w=4),
    "grouped": layer(R=3, S=3, P=14, Q=14, C=4, K=4, G=32, N=2),
    "fully connected": layer(C=2048, K=1000, N=4),
    "reduction only": layer(C=4096),
}


@pytest.mark.parametrize("as_published", [False, True])
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("architecture", ["simba_4x4", "simba_8x8"])
def test_terms_of_the_program_are_those_of_its_nest(name, as_published, architecture):
    """Two implementations of each quantity, Pyomo expressions and plain numbers, say the same of every optimum."""
    from pyomo.core import value

    architecture = load_architecture(architecture)
    program, result, _, nest = solved(LAYERS[name], architecture, as_published=as_published)
    parts = breakdown(LAYERS[name], architecture, nest, rules=program.rules)
    for term in program.terms:
        assert value(term.weighted) == pytest.approx(parts[term.name], abs=1e-5), term.name
    assert parts["total"] == pytest.approx(result.objective, abs=1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_tiles_of_the_program_are_the_true_boxes(name):
    from pyomo.core import value

    program, _, factors, nest = solved(LAYERS[name])
    numbers = NestQuantities(LAYERS[name], SIMBA, nest, program.rules)
    for level in (3, 4):
        assert value(program.log_tile("inputs", level)) == pytest.approx(numbers.log_tile("inputs", level), abs=1e-6)
        for axis in sliding_axes(LAYERS[name]):
            outputs, taps = factors.extent(axis.outputs, level), factors.extent(axis.taps, level)
            length = span((axis.stride, axis.dilation), (outputs, taps))
            assert value(program.log_span(axis, level)) == pytest.approx(log2(length), abs=1e-6)


def test_published_optimum_is_exact_on_layers_without_windows():
    """On 1x1 layers of stride 1 the two forms are one program."""
    work = layer(P=28, Q=28, C=64, K=64)
    assert solved(work)[1].objective == pytest.approx(solved(work, as_published=True)[1].objective, rel=2e-4)


bounds = st.dictionaries(st.sampled_from(DIMS), st.sampled_from((2, 3, 4)), max_size=8)


@given(bounds, st.booleans())
@settings(max_examples=60, deadline=None)
def test_three_modes_stand_for_all_orders(loops, as_published):
    """The best order has the iterations of the best mode, for whatever weights the tensors have."""
    rules = Rules(as_published=as_published)

    def iterations(dims):
        level = ScheduleLevel(level="b", keeps=TENSORS, loops=tuple(Loop(dim=d, bound=loops[d]) for d in dims))
        inner = [ScheduleLevel(level=str(i), keeps=TENSORS) for i in range(SIMBA.mesh_level)]
        nest = NestQuantities(layer(), SIMBA, (ScheduleLevel(level="d", keeps=TENSORS), level, *reversed(inner)), rules)
        return tuple(round(nest.log_iterations(tensor), 9) for tensor in TENSORS)

    modes = [iterations(order(list(loops), mode.innermost)) for mode in staying_modes(rules)]
    for dims in list(permutations(loops))[:200]:
        counted = iterations(dims)
        assert any(all(a <= b for a, b in zip(mode, counted, strict=True)) for mode in modes)


def test_shares_of_levels():
    rules = Rules()
    buffer = SIMBA.levels[SIMBA.mesh_level]
    assert (rules.share(buffer, "inputs"), rules.share(buffer, "outputs")) == (Fraction(1, 4), Fraction(3, 4))
    assert Rules(input_share=Fraction(1, 2)).share(buffer, "outputs") == Fraction(1, 2)
    assert rules.share(SIMBA.levels[-1], "weights") == Fraction(1, 3)
    assert rules.share_words(layer(), SIMBA, SIMBA.mesh_level, "inputs") == 16384
    assert rules.share_words(layer(), SIMBA, 5, "inputs") is None


@given(st.integers(1, 10**6))
def test_prime_factors_multiply_up(number):
    factors = prime_factors(number)
    assert prod(prime**count for prime, count in factors.items()) == number
    assert list(factors) == sorted(factors)


def test_divisors_with_exponents():
    assert divisors(12)[3] == (4, {2: 2, 3: 0})
    assert [number for number, _ in divisors(12)] == [1, 2, 3, 4, 6, 12]
    assert divisors(1) == [(1, {})]
