"""Searches for schedules: what they return is valid and is what they say, and workers change nothing."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import Counter
from typing import Any

import numpy as np
import pytest

from cosa.analytical.batch import BatchEvaluator
from cosa.api import evaluate
from cosa.common.errors import InfeasibleError, InputError, SolverError
from cosa.mappers import kernel
from cosa.mappers.broken import broken_shares
from cosa.mappers.evolutionary import search
from cosa.mappers.registry import Run, candidates, every_mapper, options_of
from cosa.mappers.search import Found, Stop, draws_in_vain, run_tasks, shares
from cosa.mappers.search_mappers import EvolutionaryOptions
from cosa.mappers.space import MapSpace, stream
from cosa.model.arch import Architecture
from cosa.model.layer import DIMS, Layer
from cosa.model.schedule import Schedule, Search
from cosa.model.validity import violations

SEARCHES = ("random", "hybrid", "evolutionary")
TINY = (
    Layer(name="pointwise", R=1, S=1, P=2, Q=2, C=4, K=2, N=1),
    Layer(name="strided", R=3, S=1, P=4, Q=1, C=1, K=2, N=1, stride_w=2),
    Layer(name="groups", R=1, S=3, P=1, Q=2, C=1, K=2, N=1, G=2),
)


@pytest.fixture
def small() -> Layer:
    """Small, strided, with a bound that is no power of two."""
    return Layer(name="small", R=3, S=1, P=6, Q=4, C=8, K=4, N=1, stride_w=2)


@pytest.fixture
def chip() -> Architecture:
    """Two levels below a DRAM with bandwidths, a fan-out along both axes; nothing to simulate."""
    levels = [
        {"name": "Local", "keeps": ["weights", "outputs"], "capacity_words": 12, "fanout": 2},
        {"name": "Shared", "keeps": ["inputs", "outputs"], "capacity_words": 24, "fanout": {"x": 2, "y": 2}},
        {
            "name": "DRAM",
            "keeps": ["weights", "inputs", "outputs"],
            "capacity_words": None,
            "read_bandwidth_words_per_cycle": 2.0,
            "write_bandwidth_words_per_cycle": 1.0,
        },
    ]
    return Architecture.from_data({"name": "chip", "levels": levels})


def mapped(
    mapper: str,
    layer: Layer,
    architecture: Architecture,
    *,
    workers: int = 1,
    keep_interrupted: bool = False,
    seeds: list[Schedule] | None = None,
    **options: Any,
) -> Schedule:
    if seeds is not None:
        return search(layer, architecture, EvolutionaryOptions(**options), Run(workers=workers), seeds=seeds)[0]
    run = Run(workers=workers, keep_interrupted=keep_interrupted)
    return candidates(layer, architecture, options_of(mapper, options), run)[0]


def searched(schedule: Schedule) -> Search:
    assert schedule.provenance.search is not None
    return schedule.provenance.search


def value(schedule: Schedule) -> float:
    assert schedule.provenance.objective_value is not None
    return schedule.provenance.objective_value


@pytest.mark.parametrize("mapper", SEARCHES)
@pytest.mark.parametrize("objective", ["latency", "energy", "edp"])
def test_the_value_is_that_of_the_schedule(small: Layer, simba: Architecture, mapper: str, objective: str) -> None:
    found = mapped(mapper, small, simba, objective=objective, evaluations=3000, seed=3)
    assert violations(found.padded_layer, simba, found.nest) == []
    result = evaluate(found)
    true = {"latency": result.cycles, "energy": result.energy_pj, "edp": result.cycles * result.energy_pj}[objective]
    assert value(found) == pytest.approx(true, rel=1e-12)
    search = searched(found)
    assert search.evaluations <= 3000
    assert 0 < search.samples_valid <= search.samples_drawn
    assert found.provenance.mapper == mapper


@pytest.mark.parametrize("layer", TINY, ids=lambda layer: layer.name)
@pytest.mark.parametrize("objective", ["latency", "energy", "edp"])
def test_nothing_beats_the_optimum(layer: Layer, chip: Architecture, objective: str) -> None:
    best = mapped("exhaustive", layer, chip, objective=objective)
    assert searched(best).stopped_by == "exhausted"
    assert best.provenance.gap == 0.0
    others = [mapped(mapper, layer, chip, objective=objective, evaluations=20_000, seed=1) for mapper in SEARCHES]
    for found in others:
        assert value(found) >= value(best) * (1 - 1e-12) or found.padded
    # Twenty thousand draws of so few mappings meet an optimal one.
    assert min(map(value, others)) == pytest.approx(value(best), rel=1e-12)


def test_exhaustive_looks_at_every_mapping(chip: Architecture) -> None:
    """The count of valid mappings, and the optimum, against an enumeration in Python."""
    layer = Layer(name="count", R=1, S=1, P=2, Q=1, C=4, K=3, N=1)
    evaluator = BatchEvaluator(layer, chip)
    space = MapSpace.of(evaluator, axes_apart=True)
    slots = list(zip(space.slot_level.tolist(), space.slot_axis.tolist(), strict=True))

    def factorisations(bound: int, places: int) -> list[tuple[int, ...]]:
        if places == 1:
            return [(bound,)]
        return [
            (first, *rest)
            for first in range(1, bound + 1)
            if bound % first == 0
            for rest in factorisations(bound // first, places - 1)
        ]

    def words(extent: dict[str, int], tensor: str) -> int:
        dims = {"weights": "CK", "inputs": "PC", "outputs": "PK"}[tensor]
        return math.prod(extent[dim] for dim in dims)

    total = 0
    for by_dim in itertools.product(*(factorisations(layer.bounds[dim], len(slots)) for dim in "PCK")):  # type: ignore[index]
        factors = dict(zip("PCK", by_dim, strict=True))
        used = [math.prod(factors[dim][slot] for dim in "PCK") for slot in range(len(slots))]
        fits = True
        for slot, (level, axis) in enumerate(slots):
            limit = {(0, 0): 2, (1, 0): 2, (1, 1): 2, (1, 2): 4}.get((level, axis))
            fits = fits and (limit is None or used[slot] <= limit)
        rows = slots.index((1, 2))
        fits = fits and (used[rows] == 1 or used[slots.index((1, 0))] == used[slots.index((1, 1))] == 1)
        for level, keeps, capacity in ((0, ("weights", "outputs"), 12), (1, ("inputs", "outputs"), 24)):
            inside = [slot for slot, (at, _) in enumerate(slots) if at <= level]
            extent = {dim: math.prod(factors[dim][slot] for slot in inside) for dim in "PCK"}
            fits = fits and sum(words(extent, tensor) for tensor in keeps) <= capacity
        if fits:
            loops = [sum(factors[dim][slot] > 1 for dim in "PCK") for slot in range(len(slots))]
            total += math.prod(math.factorial(n) for n in loops)
    found = mapped("exhaustive", layer, chip)
    assert searched(found).evaluations == total
    assert searched(found).samples_valid == total > 500


def test_exhaustive_refuses_with_the_size(layer: Layer, small: Layer, simba: Architecture, chip: Architecture) -> None:
    with pytest.raises(InputError, match=r"has more than \d\.\d+e\+\d+ tilings alone"):
        mapped("exhaustive", layer, simba)
    with pytest.raises(InputError, match=r"has [\d,]+ valid mappings, .* at most 100 valid"):
        mapped("exhaustive", TINY[0], chip, evaluations=100)


@pytest.mark.parametrize("mapper", [*SEARCHES, "exhaustive"])
def test_workers_change_nothing(small: Layer, chip: Architecture, simba: Architecture, mapper: str) -> None:
    layer, architecture = small, simba
    options = {} if mapper == "exhaustive" else {"evaluations": 9000, "seed": 1}
    if mapper == "exhaustive":
        layer, architecture = TINY[0], chip
    one, three = (
        mapped(mapper, layer, architecture, workers=n, **options).model_copy(update={"timing": None}) for n in (1, 3)
    )
    assert one == three
    assert searched(one).logical_threads > 3


@pytest.mark.parametrize("mapper", SEARCHES)
def test_seeds_differ(small: Layer, simba: Architecture, mapper: str) -> None:
    hashes = {mapped(mapper, small, simba, seed=seed, evaluations=200).content_hash for seed in range(4)}
    assert len(hashes) > 1


def test_more_samples_are_never_worse(small: Layer, simba: Architecture) -> None:
    values = [value(mapped("random", small, simba, samples=n, seed=5)) for n in (1, 10, 100, 1000)]
    assert values == sorted(values, reverse=True)
    assert values[0] != values[-1]


def test_random_counts_what_it_draws(small: Layer, simba: Architecture) -> None:
    search = searched(mapped("random", small, simba))
    assert (search.stopped_by, search.samples_valid, search.evaluations) == ("samples", 5, 5)
    assert search.samples_drawn > 5


def test_tilings_are_drawn_uniformly(chip: Architecture) -> None:
    """Every ordered factorisation equally often (chi-squared, 1 in 10,000)."""
    layer = Layer(name="uniform", R=1, S=1, P=4, Q=1, C=1, K=1, N=1)
    data = chip.model_dump(mode="json")
    for level in data["levels"]:
        level["fanout"] = 1
    space = MapSpace.of(BatchEvaluator(layer, Architecture.from_data(data)))
    batch, state = space.batch(6000), stream(0, 0)
    filled, drawn = kernel.fill_random(
        state,
        space.primes,
        space.dims,
        space.tables(),
        10**6,
        batch.loops(),
        np.zeros(6000, np.int64),
    )
    assert filled == drawn == 6000
    tilings = batch.temporal_bounds.prod(axis=2)
    counts = np.unique(tilings, axis=0, return_counts=True)[1]
    assert len(counts) == 6  # 4 over three levels
    assert ((counts - 1000) ** 2 / 1000).sum() < 25.7


def test_hybrid_stops_by_its_victory_condition(small: Layer, simba: Architecture) -> None:
    found = mapped("hybrid", small, simba, logical_threads=3, victory_condition=50)
    search = searched(found)
    assert (search.stopped_by, search.logical_threads) == ("victory_condition", 3)
    assert search.evaluations >= 3 * 51
    assert search.samples_walked is not None
    assert search.samples_walked >= search.samples_drawn
    longer = mapped("hybrid", small, simba, logical_threads=3, victory_condition=500)
    assert searched(longer).evaluations > search.evaluations
    assert value(longer) <= value(found)


def test_hybrid_walks_every_order_of_a_tiling() -> None:
    """One level of order, no fan-out: a tiling is walked in lexicographic order from the inside out."""
    levels = [
        {"name": "Local", "keeps": ["weights"], "capacity_words": 1},
        {"name": "DRAM", "keeps": ["weights", "inputs", "outputs"], "capacity_words": None},
    ]
    layer = Layer(name="orders", R=1, S=1, P=2, Q=1, C=3, K=5, N=1)
    evaluator = BatchEvaluator(layer, Architecture.from_data({"name": "bare", "levels": levels}))
    space = MapSpace.of(evaluator)
    batch, slots = space.batch(40), len(space.slot_level)
    arrays = [np.zeros(40, kind) for kind in (np.int64, np.float64, np.int64)]
    filled = kernel.fill_hybrid(
        stream(0, 0),
        np.zeros(1, np.bool_),
        np.ones((len(DIMS), slots), np.int64),
        np.zeros((slots, len(DIMS)), np.int64),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
        space.primes,
        space.tables(),
        1,
        0,
        10**6,
        batch.loops(),
        *arrays,
    )[0]
    assert filled == 40
    dims, bounds = batch.temporal_dims[:, 1], batch.temporal_bounds[:, 1]
    orders = [
        "".join(DIMS[d] for d, b in zip(*row, strict=True) if b > 1)[::-1] for row in zip(dims, bounds, strict=True)
    ]
    # Only P can leave the DRAM: C and K would not fit into one weight word.
    assert set(map(len, orders)) == {2, 3}
    walk = "".join(f"{order} " for order in orders)
    assert "PCK PKC CPK CKP KPC KCP " in walk
    assert "CK KC " in walk


def test_threads_like_timeloops_draw_neighbours(chip: Architecture) -> None:
    """The same random numbers, but thread t takes the t-th tiling of a row of four: P differs, others do not."""
    data = chip.model_dump(mode="json")
    for level in data["levels"][:2]:
        level |= {"fanout": 1, "capacity_words": 2**30}
    layer = Layer(name="neighbours", R=1, S=1, P=64, Q=1, C=16, K=16, N=1)
    space = MapSpace.of(BatchEvaluator(layer, Architecture.from_data(data)))
    slots, tilings = len(space.slot_level), []
    for thread in range(4):
        factors = np.ones((len(DIMS), slots), np.int64)
        kernel.fill_hybrid(
            stream(3, 0),
            np.zeros(1, np.bool_),
            factors,
            np.zeros((slots, len(DIMS)), np.int64),
            np.zeros(slots, np.int64),
            np.zeros(slots, np.int64),
            space.primes,
            space.tables(),
            4,
            thread,
            1,
            space.batch(1).loops(),
            np.zeros(1, np.int64),
            np.zeros(1),
            np.zeros(1, np.int64),
        )
        assert factors.prod(axis=1).tolist() == [layer.bounds[dim] for dim in DIMS]
        tilings.append(factors)
    p = DIMS.index("P")
    assert len({tuple(factors[p]) for factors in tilings}) == 4
    rest = [np.delete(factors, p, axis=0) for factors in tilings]
    assert sum(np.array_equal(rest[0], other) for other in rest) >= 2


def test_hybrid_as_timeloop(small: Layer, simba: Architecture) -> None:
    ours, theirs = (mapped("hybrid", small, simba, as_timeloop=as_timeloop, seed=1) for as_timeloop in (False, True))
    assert violations(small, simba, theirs.nest) == []
    assert evaluate(theirs).cycles == value(theirs)
    assert ours.provenance.search != theirs.provenance.search


def test_small_gains_count_unless_told_otherwise() -> None:
    first, second, fits = np.array([1000.0, 999.5, 999.4]), np.array([5.0, 5.0, 5.0]), np.ones(3, np.bool_)
    best = np.full(2, np.inf)
    assert kernel.count_victory(first, second, fits, best, 0, 9, 0.0) == (3, 2, 0)
    assert best.tolist() == [999.4, 5.0]
    # Within the tolerance the second value decides, and small gains of it are none either.
    second = np.array([5.0, 4.999, 4.0])
    best = np.full(2, np.inf)
    assert kernel.count_victory(first + np.array([0, 0.6, 0.9]), second, fits, best, 0, 9, 0.001) == (3, 2, 0)
    assert best.tolist() == [1000.3, 4.0]
    assert kernel.count_victory(np.full(3, 2e3), second, fits, best, 0, 2, 0.0) == (2, -1, 2)


def test_evolutionary_starts_from_the_program_and_pads(simba: Architecture) -> None:
    layer = Layer(name="primes", R=1, S=1, P=13, Q=1, C=61, K=67, N=1)
    start = mapped("published", layer, simba)
    found = mapped("evolutionary", layer, simba, seed=2, evaluations=20_000)
    assert found.provenance.notes == ("started from the program's schedule",)
    assert value(found) < evaluate(start).cycles
    assert found.padded
    assert evaluate(found).cycles == value(found)
    only = mapped("evolutionary", layer, simba, seeds=[start], evaluations=1)
    assert value(only) <= evaluate(start).cycles


def test_evolutionary_needs_no_program(small: Layer, chip: Architecture, monkeypatch: pytest.MonkeyPatch) -> None:
    from cosa.mappers import published

    def fails(*_: object, **__: object) -> Schedule:
        raise SolverError("no schedule in time")

    monkeypatch.setattr(published, "solve", fails)
    found = mapped("evolutionary", small, chip, evaluations=3000)
    assert found.provenance.notes == ("started at random, since the program has no schedule: no schedule in time",)
    assert searched(found).stopped_by == "evaluations"


@pytest.mark.parametrize("mapper", SEARCHES)
def test_budgets(small: Layer, simba: Architecture, mapper: str) -> None:
    search = searched(mapped(mapper, small, simba, evaluations=1001))
    assert (search.stopped_by, search.evaluations) == ("evaluations", 1001)
    late = searched(mapped(mapper, small, simba, time_limit_seconds=0.5, evaluations=10**9))
    assert mapper == "hybrid" or late.stopped_by in ("time", "generations")


def test_time_stops_a_search(layer: Layer, simba: Architecture) -> None:
    found = mapped("random", layer, simba, time_limit_seconds=0.2, workers=2)
    assert searched(found).stopped_by == "time"
    assert searched(found).samples_valid > 5


def test_evaluations_are_shared_out() -> None:
    assert shares(10, 4) == [3, 3, 2, 2]
    assert shares(2, 4) == [1, 1]
    assert shares(None, 2) == [None, None]


@pytest.mark.parametrize("mapper", [*SEARCHES, "exhaustive"])
def test_time_never_ends_a_search_before_its_first_turn(small: Layer, chip: Architecture, mapper: str) -> None:
    """Nothing can load, let alone find, anything in a picosecond."""
    layer = TINY[0] if mapper == "exhaustive" else small
    found = searched(mapped(mapper, layer, chip, time_limit_seconds=1e-12, workers=2))
    assert found.samples_valid > 0
    assert found.stopped_by == "time"


def test_the_clock_starts_at_the_first_look() -> None:
    stop = Stop(0.05)
    time.sleep(0.06)
    assert stop.now() is None
    time.sleep(0.06)
    assert stop.now() == "time"
    assert Stop(1.0, spent=2.0).now() == "time"


def test_counting_a_space_obeys_the_clock_and_interrupts(simba: Architecture) -> None:
    layer = Layer(name="large", R=1, S=1, P=8, Q=8, C=64, K=64, N=1)
    says = r"at least [\d,]+ valid mappings, in [\d,]+ of [\d,]{12,} tilings: time ran out"
    with pytest.raises(SolverError, match=says):
        mapped("exhaustive", layer, simba, time_limit_seconds=0.1, evaluations=10**14)
    import _thread

    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        mapped("exhaustive", layer, simba, evaluations=10**14, keep_interrupted=True)
    assert time.monotonic() - started < 2.5
    timer.join()


def test_an_empty_space_is_said_to_be_empty(chip: Architecture) -> None:
    data = chip.model_dump(mode="json") | {
        "limits": [{"name": "none", "over": [{"level": "DRAM", "kind": "temporal"}], "most": 1}]
    }
    data["levels"][1] |= {"capacity_words": 2, "fanout": 1}
    with pytest.raises(InfeasibleError, match=r"exhaustive .*; broken most: .* of 20,000 tilings drawn"):
        mapped("exhaustive", TINY[0], Architecture.from_data(data))


def test_an_interrupt_returns_the_best_so_far(layer: Layer, simba: Architecture) -> None:
    mapped("random", layer, simba)  # loads the kernels
    import _thread

    for keep in (True, False):
        timer = threading.Timer(0.5, _thread.interrupt_main)
        timer.start()
        started = time.monotonic()
        if keep:
            found = mapped("random", layer, simba, samples=10**9, workers=2, keep_interrupted=True)
            assert searched(found).stopped_by == "interrupted"
            assert violations(layer, simba, found.nest) == []
        else:
            with pytest.raises(KeyboardInterrupt):
                mapped("random", layer, simba, samples=10**9)
        assert time.monotonic() - started < 2.5
        timer.join()


def test_a_fault_in_a_logical_thread_is_raised(small: Layer, simba: Architecture) -> None:
    def fault(evaluator: BatchEvaluator, stop: Stop, found: Found) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_tasks([fault, fault], small, simba, 2, Stop(None))


def test_names_and_options_are_checked(small: Layer, simba: Architecture) -> None:
    assert [one.name for one in every_mapper()] == ["program", "published", *SEARCHES, "exhaustive"]
    with pytest.raises(InputError, match="did you mean random"):
        mapped("randm", small, simba)
    with pytest.raises(InputError, match=r"mapper: no such mapper .found 'machine'.*did you mean program"):
        mapped("machine", small, simba)
    with pytest.raises(InputError, match=r"not an objective of the mapper random.*did you mean latency"):
        mapped("random", small, simba, objective="latencies")
    with pytest.raises(InputError, match=r"objective: .*allowed: latency, energy, edp \(cosa is one of published\)"):
        mapped("random", small, simba, objective="cosa")
    with pytest.raises(InputError, match="gap: an option of program, published, not of the mapper random"):
        mapped("random", small, simba, gap=0.1)
    with pytest.raises(InputError, match="workers: not a number of processes"):
        mapped("random", small, simba, workers=0)
    with pytest.raises(InputError, match=r"victory_condition: not valid .found 0.; allowed: a whole number from 1"):
        mapped("hybrid", small, simba, victory_condition=0)
    for seed in (-1, 1.5, True, "1"):
        with pytest.raises(InputError, match=f"seed: not valid .found {seed!r}.; allowed: a whole number from 0 to"):
            mapped("random", small, simba, seed=seed)
    for wrong in (0, 1.5, 10**20, True):
        with pytest.raises(InputError, match=r"samples: not valid .*; allowed: a whole number from 1 to 10{14}$"):
            mapped("random", small, simba, samples=wrong)
    for late in (math.inf, 0, "2", True):
        with pytest.raises(InputError, match=r"time_limit_seconds: not .*; allowed: a number > 0 and <= 1e\+07$"):
            mapped("random", small, simba, time_limit_seconds=late)


@pytest.mark.parametrize(
    ("mapper", "option", "owners"),
    [
        ("hybrid", "samples", "random"),
        ("evolutionary", "samples", "random"),
        ("program", "evaluations", "random, hybrid, evolutionary, exhaustive"),
        ("published", "rounds", "program"),
        ("exhaustive", "seed", "program, published, random, hybrid, evolutionary"),
        ("program", "as_published", "published"),
    ],
)
def test_options_of_other_mappers_are_refused(
    small: Layer, simba: Architecture, mapper: str, option: str, owners: str
) -> None:
    with pytest.raises(InputError, match=f"{option}: an option of {owners}, not of the mapper {mapper} .found 5."):
        mapped(mapper, small, simba, **{option: 5})
    with pytest.raises(InputError, match=f"spam: not an option of the mapper {mapper}"):
        mapped(mapper, small, simba, spam=5)


def test_seeds_of_other_layers_and_architectures_are_refused(
    small: Layer, simba: Architecture, chip: Architecture
) -> None:
    other = small.model_copy(update={"K": 2})
    for layer, architecture, says in ((other, chip, "another layer"), (small, simba, "another architecture")):
        seed = mapped("random", layer, architecture)
        with pytest.raises(InputError, match=rf"seeds\[0\]: o[fn] {says}"):
            mapped("evolutionary", small, chip, seeds=[seed])
    named = mapped("random", small.model_copy(update={"name": "other name"}), chip)
    assert mapped("evolutionary", small, chip, seeds=[named], evaluations=500).layer == small


@pytest.mark.parametrize(
    ("mapper", "options"),
    [("random", {"samples": 10**6}), ("hybrid", {}), ("evolutionary", {"seeds": []})],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_whole_search_gives_up_after_so_many_draws(
    small: Layer, simba: Architecture, monkeypatch: pytest.MonkeyPatch, mapper: str, options: dict[str, Any]
) -> None:
    """However many logical threads it has."""
    from cosa.mappers import search

    monkeypatch.setattr(search, "MOST_DRAWS_IN_A_ROW", 6400)
    data = simba.model_dump(mode="json")
    for level in data["levels"][:-1]:
        level["capacity_words"] = len(level["keeps"])
    large = small.model_copy(update={"P": 56, "Q": 56, "C": 64, "K": 64})
    texts = []
    for workers in (1, 2):
        with pytest.raises(InfeasibleError, match=r"in 6,\d{3} samples \(stopped by no_valid_mapping\)") as error:
            mapped(mapper, large, Architecture.from_data(data), workers=workers, **options)
        texts.append(str(error.value))
    assert texts[0] == texts[1]


def test_a_thread_without_a_mapping_gives_up_sooner() -> None:
    founds = [Found(valid=0), Found(valid=1)]
    assert [draws_in_vain(found, 32) for found in founds] == [625_000, 20_000_000]


@pytest.mark.parametrize("mapper", [*SEARCHES, "exhaustive"])
def test_no_room_names_the_level(small: Layer, simba: Architecture, mapper: str) -> None:
    data = simba.model_dump(mode="json")
    data["levels"][4]["capacity_words"] = 1
    with pytest.raises(InfeasibleError, match="GlobalBuffer keeps inputs, outputs"):
        mapped(mapper, small, Architecture.from_data(data))


def test_no_valid_mapping_names_the_constraints_broken(
    small: Layer, simba: Architecture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with its share, whatever else a tiling breaks: with buffers of a word it is they, not the fan-outs."""
    from cosa.mappers import search

    monkeypatch.setattr(search, "MOST_DRAWS_IN_A_ROW", 2000)
    data = simba.model_dump(mode="json")
    for level in data["levels"][:-1]:
        level["capacity_words"] = len(level["keeps"])
    large = small.model_copy(update={"P": 56, "Q": 56, "C": 64, "K": 64})
    says = r"in 2,000 samples \(stopped by no_valid_mapping\); broken most: \w+'s capacity in (100|99\.\d) %"
    with pytest.raises(
        InfeasibleError, match=rf"{says}, \w+'s capacity in .* % of 20,000 tilings drawn; [\d.]+ % break"
    ):
        mapped("random", large, Architecture.from_data(data))


def test_shares_of_tilings_that_break_a_constraint(chip: Architecture) -> None:
    """Against all tilings, each as likely as any other."""
    layer = Layer(name="shares", R=1, S=1, P=4, Q=1, C=8, K=3, N=1)
    limit = {"name": "lanes", "over": [{"level": "Shared", "kind": "spatial"}], "most": 2}
    data = chip.model_dump(mode="json") | {"limits": [limit]}
    architecture = Architecture.from_data(data)

    def factorisations(bound: int, places: int) -> list[tuple[int, ...]]:
        if places == 1:
            return [(bound,)]
        firsts = [first for first in range(1, bound + 1) if bound % first == 0]
        return [(first, *rest) for first in firsts for rest in factorisations(bound // first, places - 1)]

    # Spatial and temporal loops of Local, of Shared, temporal ones of DRAM.
    counts, tilings = Counter[str](), 0
    for p, c, k in itertools.product(*(factorisations(bound, 5) for bound in (4, 8, 3))):
        tilings += 1
        over_local = p[0] * c[0] * k[0] > 2
        splits = itertools.product((False, True), repeat=3)
        fits = [
            math.prod(b for b, chosen in zip((p[2], c[2], k[2]), split, strict=True) if chosen) <= 2
            and math.prod(b for b, chosen in zip((p[2], c[2], k[2]), split, strict=True) if not chosen) <= 2
            for split in splits
        ]
        inner, outer = ([math.prod(dim[:slots]) for dim in (p, c, k)] for slots in (2, 4))
        found = {
            "Local": over_local,
            "Shared": not any(fits),
            "local": inner[1] * inner[2] + inner[0] * inner[2] > 12,
            "shared": outer[0] * outer[1] + outer[0] * outer[2] > 24,
            "lanes": p[2] * c[2] * k[2] > 2,
        }
        found["fanout"] = found["Local"] or found["Shared"]
        found["capacity"] = found["local"] or found["shared"]
        found["valid"] = not any(found.values())
        counts.update(found)
    shares = broken_shares(layer, architecture, draws=40_000, seed=1)
    ours = {
        **shares.fanouts,
        "local": shares.capacities["Local"],
        "shared": shares.capacities["Shared"],
        **shares.limits,
        "fanout": shares.any_fanout,
        "capacity": shares.any_capacity,
        "valid": shares.valid,
    }
    assert set(shares.capacities) == {"Local", "Shared"}
    assert {name: count / shares.draws for name, count in ours.items()} == pytest.approx(
        {name: count / tilings for name, count in counts.items()}, abs=0.01
    )
    assert shares == broken_shares(layer, architecture, draws=40_000, seed=1)
