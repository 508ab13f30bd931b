"""Does the mapper return schedules that fit, are the same each time, and say where they come from?"""

import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from math import prod

import pytest

import cosa
from cosa.common.errors import InfeasibleError, InputError, SolverError
from cosa.mappers.nests import split_over_axes
from cosa.mip import solver
from cosa.mip.nest import breakdown
from cosa.mip.quantities import Rules
from cosa.model.arch import Architecture, load_architecture
from cosa.model.layer import DIMS, Layer
from cosa.model.networks import load_network
from cosa.model.validity import violations

published = partial(cosa.schedule, mapper="published")

SIMBA = load_architecture("simba_4x4")


def layer(**bounds):
    return Layer(**dict.fromkeys(DIMS, 1) | bounds)


def changed(level, **fields):
    """simba_4x4 with fields of one level replaced."""
    data = SIMBA.model_dump(mode="json")
    data["levels"][level] |= fields
    return Architecture.from_data(data)


AWKWARD = {
    "all ones": layer(),
    "prime 13": layer(P=13, Q=13, C=13, K=13),
    "prime 127": layer(R=3, S=3, P=127, Q=127, C=127, K=127),
    "prime 1009": layer(P=1009, C=1009, K=1009),
    "prime near the largest bound": layer(K=16777213),
    "31 prime factors": layer(R=3, S=3, P=64, Q=64, C=512, K=256),
    "largest powers": layer(C=2**24, K=2**24),
    "fully connected": layer(C=2048, K=1000),
    "matrix product": layer(P=512, C=768, K=3072, N=8),
    "grouped": layer(R=3, S=3, P=14, Q=14, C=4, K=4, G=32, N=2),
    "depthwise": layer(R=3, S=3, P=112, Q=112, G=96, stride_w=2, stride_h=2),
    "stride beyond the filter": layer(R=2, S=2, P=30, Q=30, C=8, K=8, stride_w=5, stride_h=5),
    "dilated": layer(R=3, S=3, P=28, Q=28, C=16, K=16, dilation_w=4, dilation_h=2),
    "wide filter": layer(R=41, S=11, P=79, Q=350, C=1, K=32, N=4, stride_w=2, stride_h=2),
}


@pytest.mark.parametrize("as_published", [False, True])
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_layers_get_schedules_that_fit(name, as_published):
    schedule = published(AWKWARD[name], SIMBA, as_published=as_published, time_limit_seconds=20)
    assert violations(schedule.layer, SIMBA, schedule.nest) == []
    assert schedule.provenance.solver_status in ("optimal", "time_limit")


@pytest.mark.parametrize("network", ["resnet50", "alexnet"])
@pytest.mark.parametrize("as_published", [False, True])
def test_networks_fit_and_keep_the_objective(network, as_published):
    for entry in load_network(network).layers:
        schedule = published(entry.layer, SIMBA, as_published=as_published)
        assert violations(entry.layer, SIMBA, schedule.nest) == []
        parts = breakdown(entry.layer, SIMBA, schedule.nest, rules=Rules(as_published=as_published))
        assert parts["total"] == pytest.approx(schedule.provenance.objective_value, abs=1e-5)


@pytest.mark.parametrize("name", ["simba_8x8", "simba_8x_gbuf", "simba_paper", "cosa2021", "simba_4x4_wide"])
def test_other_architectures(name):
    architecture = load_architecture(name)
    for work in (load_network("resnet50").find("input.36").layer, AWKWARD["grouped"]):
        schedule = published(work, architecture)
        assert violations(work, architecture, schedule.nest) == []


def level(name, capacity_words, keeps=("weights", "inputs", "outputs"), **fields):
    return {"name": name, "keeps": list(keeps), "capacity_words": capacity_words, **fields}


DRAM = level("DRAM", None)
HIERARCHIES = {
    "one buffer a PE": [level("PEBuffer", 512), level("Shared", 32768, fanout="mesh"), DRAM],
    "nothing below the mesh": [level("Shared", 32768, fanout="mesh"), DRAM],
    "mesh at the DRAM": [level("PEBuffer", 512), DRAM | {"fanout": "mesh"}],
    "five levels": [
        level("Near", 512),
        level("Far", 4096, ("inputs", "weights"), fanout={"x": 2, "y": 3}),
        level("Shared", 32768, fanout="mesh"),
        level("Cache", 10**6, fanout=2),
        DRAM,
    ],
}


@pytest.mark.parametrize("as_published", [False, True])
@pytest.mark.parametrize("name", HIERARCHIES)
def test_levels_are_data(name, as_published):
    architecture = Architecture.from_data(SIMBA.model_dump(mode="json") | {"levels": HIERARCHIES[name]})
    work = load_network("resnet50").find("input.83").layer
    schedule = published(work, architecture, as_published=as_published)
    assert violations(work, architecture, schedule.nest) == []
    parts = breakdown(work, architecture, schedule.nest, rules=Rules(as_published=as_published))
    assert parts["total"] == pytest.approx(schedule.provenance.objective_value, abs=1e-5)


def test_a_published_tile_that_does_not_fit_is_cut_off():
    """AlexNet's second layer: the published optimum has no room for its halo in the global buffer."""
    schedule = published(load_network("alexnet").find("input.4").layer, SIMBA, as_published=True)
    assert any("cut off" in note for note in schedule.provenance.notes)
    assert violations(schedule.layer, SIMBA, schedule.nest) == []


def test_same_input_and_seed_same_schedule():
    work = load_network("resnet50").find("input.8").layer
    first, second = published(work, SIMBA, seed=7), published(work, SIMBA, seed=7)
    assert first.to_json(exclude={"timing"}) == second.to_json(exclude={"timing"})


def test_the_order_of_hashes_does_not_matter():
    """A process with other string hashes gives the same schedule."""
    script = (
        "import sys, cosa\n"
        "found = cosa.schedule('alexnet:input.2', objective='cosa', seed=1)\n"
        "sys.stdout.write(found.to_json(exclude={'timing'}))"
    )
    texts = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert texts[0] == texts[1] and texts[0].startswith("{")


def test_time_limit_with_a_solution_gives_its_schedule(monkeypatch):
    solve = solver.solve

    def stopped(*arguments, **options):
        return replace(solve(*arguments, **options), status="time_limit", gap=0.25)

    monkeypatch.setattr(solver, "solve", stopped)
    schedule = published(layer(C=64, K=64, P=7), SIMBA)
    assert (schedule.provenance.solver_status, schedule.provenance.gap) == ("time_limit", 0.25)


def test_interruption_and_faults_are_solver_errors(monkeypatch):
    for status in ("interrupted", "failed", "unbounded"):
        result = solver.SolverResult(status, "as the solver says", 0.1)
        monkeypatch.setattr(solver, "solve", lambda *_, result=result, **__: result)
        with pytest.raises(SolverError, match="as the solver says"):
            published(layer(C=4), SIMBA)


def test_loading_the_mapper_loads_neither_pyomo_nor_highs():
    script = "import sys, cosa.mappers.published; print(sorted({'pyomo', 'highspy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "[]\n"


def test_provenance_and_timing():
    schedule = published(layer(C=64, K=64, P=7), SIMBA, seed=3)
    origin = schedule.provenance
    assert (origin.mapper, origin.objective, origin.seed, origin.solver_status) == ("published", "cosa", 3, "optimal")
    assert origin.solver.startswith("HiGHS ") and origin.gap <= 1e-4 and origin.bound <= origin.objective_value + 1e-9
    assert 0 < schedule.timing.solve_seconds <= schedule.timing.total_seconds


def test_infeasible_names_level_tensors_and_words():
    with pytest.raises(InfeasibleError) as caught:
        published(layer(C=4), changed(4, capacity_words=1))
    for part in ("GlobalBuffer", "inputs, outputs", "2 words", "has 1"):
        assert part in str(caught.value)


@pytest.mark.parametrize("words", [2, 3, 4, 5])
def test_buffers_of_a_few_words(words):
    work = layer(R=3, S=3, P=8, Q=8, C=8, K=8)
    schedule = published(work, changed(4, capacity_words=words))
    assert violations(work, schedule.architecture, schedule.nest) == []


def test_no_schedule_in_time():
    with pytest.raises(SolverError, match="time limit of 1e-06 seconds"):
        published(load_network("resnet50").find("input.8").layer, SIMBA, time_limit_seconds=1e-6)


def test_unknown_objective():
    with pytest.raises(InputError, match="did you mean cosa"):
        published(layer(), SIMBA, objective="cosaa")


@pytest.mark.parametrize(
    ("bounds", "columns", "rows", "axes"),
    [
        ({"K": 16}, 4, 4, {("K", 4, "x"), ("K", 4, "y")}),
        ({"P": 2, "K": 8}, 4, 4, {("P", 2, "x"), ("K", 2, "x"), ("K", 4, "y")}),
        ({"P": 3, "K": 4}, 4, 4, {("P", 3, "x"), ("K", 4, "y")}),
        ({"P": 13}, 4, 4, {("P", 13, "row_major")}),
        ({"P": 3, "Q": 5}, 4, 4, {("P", 3, "row_major"), ("Q", 5, "row_major")}),
        ({"C": 8}, 8, 1, {("C", 8, "x")}),
        ({"K": 4, "C": 3}, 3, 4, {("C", 3, "x"), ("K", 4, "y")}),
        ({}, 4, 4, set()),
    ],
)
def test_spatial_loops_on_axes(bounds, columns, rows, axes):
    assert set(split_over_axes(bounds, columns, rows)) == axes


def test_spatial_split_keeps_the_product():
    for total in range(1, 65):
        loops = split_over_axes({"K": total}, 8, 8)
        assert prod(bound for _, bound, _ in loops) == total


def test_orders_left_free_are_those_with_fewest_words():
    """No other order of the DRAM level moves fewer words."""
    from itertools import permutations

    from cosa.analytical.traffic import words_moved

    work = load_network("resnet50").find("input.36").layer
    schedule = published(work, SIMBA)
    outermost = schedule.nest[0]
    best = words_moved(work, SIMBA, schedule.nest).total
    for loops in permutations(outermost.temporal):
        nest = (outermost.model_copy(update={"loops": loops}), *schedule.nest[1:])
        assert words_moved(work, SIMBA, nest).total >= best
