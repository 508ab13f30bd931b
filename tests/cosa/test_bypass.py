"""What levels keep, chosen with the mapping: optima that equal exhaustive search over all choices, bounds that hold."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cosa
import nocsim
from cosa.analytical.batch import MappingBatch
from cosa.analytical.loads import loads
from cosa.analytical.network_batch import NetworkEvaluator
from cosa.analytical.routes import endpoint
from cosa.analytical.traffic import Traffic
from cosa.common.errors import InfeasibleError, InputError
from cosa.mappers.certified import CertifiedSearch
from cosa.mappers.figures import AnalyticalModel, NetworkModel
from cosa.mappers.neighbours import MappingPoint, MappingPoints
from cosa.mappers.opening import outermost_only
from cosa.model.arch import Architecture, load_architecture
from cosa.model.constraints import Constraints
from cosa.model.layer import TENSORS, Layer
from cosa.model.networks import load_network
from cosa.model.schedule import Schedule
from tests.cosa.test_machine_program import (
    at_tiling,
    every_tiling,
    meshed_architecture,
    small_architecture,
    small_layer,
)


def wider(architecture: Architecture) -> Architecture:
    """The same, with a buffer that may keep weights, too."""
    data = architecture.model_dump(mode="json")
    (buffer,) = [level for level in data["levels"] if level["keeps"] == ["inputs", "outputs"]]
    buffer["may_keep"] = ["weights"]
    return Architecture.from_data(data)


def small_model(layer: Layer, kind: str, bypass: Any = "chosen") -> AnalyticalModel:
    if kind == "analytical":
        return AnalyticalModel(layer, wider(small_architecture()), bypass=bypass)
    return NetworkModel(layer, wider(meshed_architecture()), bypass=bypass)


def best_of_all(model: AnalyticalModel, layer: Layer, objective: str) -> float:
    """The best value over every tiling, every order of the table, and every choice of what levels keep."""
    tilings = np.array(every_tiling(layer, model.architecture))
    free, best = model.keeping.free, np.inf
    for choice in product((False, True), repeat=len(free)):
        keeps = np.array([[tensor in kept for tensor in TENSORS] for kept in model.keeping.always])
        for (level, tensor), kept in zip(free, choice, strict=True):
            keeps[level, TENSORS.index(tensor)] = kept
        kept = np.repeat(keeps[np.newaxis], len(tilings), axis=0)
        for orders in product(range(len(model.neighbourhood.innermost)), repeat=len(model.architecture.levels) - 1):
            points = MappingPoints(tilings, np.tile(np.array((0, *orders)), (len(tilings), 1)), kept)
            result = model.evaluator(points[0]).evaluate(model.neighbourhood.batch(points), detail=False)
            cycles, energy = result.cycles.astype(float), result.energy_pj
            value = {"latency": cycles, "energy": energy, "edp": cycles * energy}[objective]
            best = min(best, float(value[result.fits].min(initial=np.inf)))
    return best


@pytest.mark.parametrize(
    ("kind", "objective", "bounds"),
    [
        pytest.param(kind, objective, bounds, marks=() if quick else pytest.mark.slow)
        for bounds in ({"P": 4, "R": 3, "K": 2}, {"P": 4, "K": 4, "C": 2})
        for kind in ("analytical", "network")
        for objective in ("latency", "energy", "edp")
        for quick in [kind == "analytical" and objective == "energy" and "R" in bounds]
    ],
)
def test_the_answer_is_the_best_of_all_choices_and_the_bound_below_it(
    bounds: dict[str, int], objective: str, kind: str
) -> None:
    layer = small_layer(**bounds)
    model = small_model(layer, kind)
    start = outermost_only(layer, model.architecture, model.neighbourhood)
    outcome = CertifiedSearch(model=model, start=[start], gap=1e-4, time_limit_seconds=120).run(objective)
    best = best_of_all(model, layer, objective)
    assert outcome.value == pytest.approx(best, rel=1e-9)
    assert outcome.bound <= best * (1 + 1e-9)


def wander(model: AnalyticalModel, layer: Layer, rng: random.Random, steps: int) -> MappingPoint:
    """A mapping some random steps from the one that always fits."""
    point = outermost_only(layer, model.architecture, model.neighbourhood)
    for _ in range(steps):
        points = model.neighbourhood.neighbours(point, False)
        fits = model.evaluator(point).evaluate(model.neighbourhood.batch(points), detail=False).fits
        changes = [at for at in np.flatnonzero(fits).tolist() if points[at].tiles != point.tiles]
        point = points[rng.choice(changes)]
    return point


@pytest.mark.parametrize("kind", ("analytical", "network"))
def test_the_program_never_exceeds_the_figures_of_a_mapping(kind: str) -> None:
    """The real hierarchy: random mappings with random choices, which the program is told."""
    architecture, rng = wider(load_architecture("simba_4x4")), random.Random(7)
    layer = load_network("resnet50").find("input.8").layer.model_copy(update={"P": 4, "Q": 4, "C": 8, "K": 8})
    model: AnalyticalModel = (
        AnalyticalModel(layer, architecture, bypass="chosen")
        if kind == "analytical"
        else NetworkModel(layer, architecture, bypass="chosen")
    )
    for _ in range(2):
        point = wander(model, layer, rng, 20)
        figures = model.figures(point)
        assert figures is not None and point.keeps is not None
        program: Any = model.program(1000.0, 1e5)
        for level, tensor in model.keeping.free:
            program.require(program.keeps.kept[level, tensor] == int(point.keeps[level, TENSORS.index(tensor)]))
        cycles, energy, _ = at_tiling(program, point)
        assert (program.decode_keeps() == point.keeps).all()
        assert cycles <= figures.cycles * (1 + 1e-6)
        assert energy <= figures.energy_pj * (1 + 1e-6)
        if kind == "analytical":
            assert cycles >= 0.5 * figures.cycles
        assert energy >= 0.5 * figures.energy_pj


def test_loads_of_a_batch_are_those_of_the_transfers_whatever_is_kept() -> None:
    """Several choices in one batch, some without any store in a PE, against `cosa.analytical.loads`."""
    layer, architecture, rng = small_layer(P=4, C=4, K=4), wider(meshed_architecture()), random.Random(2)
    model = AnalyticalModel(layer, architecture, bypass="chosen")
    points = [wander(model, layer, rng, 8) for _ in range(30)]
    nests = [model.neighbourhood.nest(point) for point in points]
    assert len({tuple(entry.keeps for entry in nest) for nest in nests}) > 5
    found = NetworkEvaluator(layer, architecture).loads(MappingBatch.of(nests))
    noc = architecture.require_noc()
    (dram,), (buffer,) = (
        [endpoint(noc, port) for port in ports] for ports in (noc.dram_ports, noc.global_buffer_ports)
    )
    for number, nest in enumerate(nests):
        traffic = Traffic(layer, architecture, nest)
        exact = loads(traffic)
        assert found.steps[number] == traffic.steps
        assert found.dram_out[number] == exact.injected_flits.get((dram,), 0)
        assert found.gb_out[number] == exact.injected_flits.get((buffer,), 0)
        assert found.gb_in[number] == exact.ejected_flits.get((buffer,), 0)
        assert found.dram_in[number] == exact.ejected_flits.get((dram,), 0)


def test_a_schedule_says_what_was_chosen_and_everything_uses_it(tmp_path: Path) -> None:
    layer = load_network("resnet50").find("input.43").layer
    chosen = cosa.schedule(layer, objective="energy", model="analytical", bypass="chosen", gap=0.1)
    plain = cosa.schedule(layer, objective="energy", model="analytical", gap=0.1)
    assert chosen.provenance.model_energy_pj < 0.95 * plain.provenance.model_energy_pj
    assert chosen.provenance.bypass == "chosen" and plain.provenance.bypass is None
    assert any("every choice of what levels keep (Registers any of weights" in note for note in chosen.provenance.notes)
    assert any("GlobalBuffer bypasses" in note for note in chosen.provenance.notes)
    chosen.save(tmp_path / "chosen.yaml")
    read = Schedule.from_file(tmp_path / "chosen.yaml")
    assert read.nest == chosen.nest and read.architecture == load_architecture("simba_4x4")
    assert cosa.evaluate(read).energy_pj == pytest.approx(chosen.provenance.model_energy_pj, rel=1e-12)
    fixed = Constraints.of_nest(chosen.nest)
    again = cosa.schedule(layer, objective="energy", model="analytical", constraints=fixed, gap=0.1)
    assert again.nest == chosen.nest


def test_constraints_say_what_levels_keep() -> None:
    layer, architecture = small_layer(P=4, K=4), wider(small_architecture())
    stated = Constraints.from_data({"keeps": [{"level": "Buffer", "keep": ["weights"], "bypass": ["outputs"]}]})
    for bypass in ("fixed", "chosen"):
        found = cosa.schedule(
            layer, architecture, objective="energy", model="analytical", constraints=stated, bypass=bypass
        )
        assert "weights" in found.nest[1].keeps and "outputs" not in found.nest[1].keeps
    with pytest.raises(InfeasibleError, match="Buffer can't keep weights"):
        cosa.schedule(layer, small_architecture(), objective="energy", constraints=stated)
    top = Constraints.from_data({"keeps": [{"level": "DRAM", "bypass": ["outputs"]}]})
    with pytest.raises(InfeasibleError, match="bypasses nothing"):
        cosa.schedule(layer, architecture, objective="energy", constraints=top, bypass="chosen")
    both = Constraints.from_data(
        {"keeps": [{"level": "every", "keep": ["inputs"]}, {"level": "Pe", "bypass": ["inputs"]}]}
    )
    with pytest.raises(InfeasibleError, match="Pe is to keep inputs and to bypass it"):
        cosa.schedule(layer, architecture, objective="energy", constraints=both)
    with pytest.raises(InputError, match="bypass: not valid"):
        cosa.schedule(layer, architecture, objective="energy", bypass="choose")  # type: ignore[arg-type]


def test_may_keep_names_other_tensors() -> None:
    data = small_architecture().model_dump(mode="json")
    assert wider(small_architecture()).content_hash != small_architecture().content_hash
    data["levels"][1]["may_keep"] = ["inputs"]
    with pytest.raises(InputError, match="may_keep"):
        Architecture.from_data(data)


def test_a_level_too_small_for_all_that_it_keeps_can_pass_some_by() -> None:
    data = small_architecture().model_dump(mode="json")
    data["levels"][0]["capacity_words"] = 2
    architecture, layer = Architecture.from_data(data), small_layer(P=4, K=4)
    with pytest.raises(InfeasibleError, match="Pe keeps"):
        cosa.schedule(layer, architecture, objective="energy", model="analytical")
    found = cosa.schedule(layer, architecture, objective="energy", model="analytical", bypass="chosen")
    assert len(found.nest[2].keeps) <= 2


def test_the_simulator_moves_what_was_chosen() -> None:
    """A buffer that passes all by carries nothing; the run is not below the bound of the space."""
    layer = small_layer(P=4, C=8, K=8, Q=4)
    stated = Constraints.from_data({"keeps": [{"level": "GlobalBuffer", "bypass": ["inputs", "outputs"]}]})
    found = cosa.schedule(
        layer, objective="latency", constraints=stated, bypass="chosen", gap=0.3, time_limit_seconds=60
    )
    result = nocsim.simulate(found)
    assert not [flow for flow in result.flows if "global_buffer" in (flow.source, flow.destination)]
    assert result.cycles.total >= found.provenance.machine_bound_cycles
