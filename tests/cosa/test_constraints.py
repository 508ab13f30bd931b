"""Constraints: what they say, that nothing leaves them, and what stands in the way where nothing keeps to them."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cosa
from cosa.commands.main import main
from cosa.common.errors import InfeasibleError, InputError
from cosa.mappers.certified import CertifiedSearch
from cosa.mappers.feasible import feasible_point
from cosa.mappers.figures import AnalyticalModel, NetworkModel
from cosa.mappers.neighbours import MappingPoint, MappingPoints, Neighbourhood
from cosa.model.arch import Architecture, architecture_names, load_architecture
from cosa.model.constraints import Constraints, constraint_names, load_constraints
from cosa.model.layer import Layer
from cosa.model.networks import load_network
from cosa.model.validity import require_room
from tests.cosa.test_machine_program import every_tiling, meshed_architecture, small_architecture, small_layer

FULL = {"P": 4, "C": 4, "K": 4}
SLIDING = {"P": 4, "R": 3, "C": 2, "K": 2}


def constraints(**data: Any) -> Constraints:
    return Constraints.from_data(data, source="c.yaml")


def exhaustive(model: AnalyticalModel, objective: str) -> float:
    """The best value over every tiling that keeps to the rules and every order of its neighbourhood."""
    neighbourhood = model.neighbourhood
    tilings = np.array(every_tiling(model.layer, model.architecture))
    tilings = tilings[neighbourhood.allows(tilings)]
    best = np.inf
    orders = [neighbourhood._choices[level] for level in range(1, len(model.architecture.levels))]
    for chosen in product(*orders):
        numbers = np.tile(np.array((neighbourhood._choices[0][0], *chosen)), (len(tilings), 1))
        result = model.evaluator(MappingPoint(tilings[0], numbers[0])).evaluate(
            neighbourhood.batch(MappingPoints(tilings, numbers)), detail=False
        )
        value = result.energy_pj if objective == "energy" else result.cycles.astype(float)
        best = min(best, float(value[result.fits].min()))
    return best


@pytest.mark.parametrize(
    ("data", "bounds", "objective"),
    [
        # Loops that the best answer without constraints does not have, so that each of them costs.
        (
            {"orders": [{"level": "DRAM", "order": ["C", "P", "K"]}, {"level": "Buffer", "stays": "inputs"}]},
            FULL,
            "energy",
        ),
        ({"factors": [{"level": "DRAM", "dim": "K", "kind": "temporal", "equal": 2}]}, FULL, "energy"),
        (
            {"factors": [{"level": "Pe", "dim": "P", "at_most": 1}, {"level": "DRAM", "dim": "C", "at_least": 2}]},
            FULL,
            "latency",
        ),
        ({"spatial": [{"level": "array", "x": ["K"], "y": ["P"]}]}, FULL, "energy"),
        ({"orders": [{"level": "every", "order": ["P"]}]}, SLIDING, "latency"),
    ],
)
def test_the_answer_is_the_best_of_what_keeps_to_them(
    data: dict[str, Any], bounds: dict[str, int], objective: str
) -> None:
    layer, architecture = small_layer(**bounds), small_architecture()
    rules = constraints(**data).rules(layer, architecture)
    model = AnalyticalModel(layer, architecture, rules=rules)
    start = feasible_point(layer, architecture, model.neighbourhood)
    outcome = CertifiedSearch(model=model, start=[start], gap=1e-4).run(objective)
    best = exhaustive(model, objective)
    assert outcome.value == pytest.approx(best, rel=1e-9)
    assert outcome.bound <= best * (1 + 1e-9)
    assert rules.broken(architecture, model.neighbourhood.nest(outcome.answer.point)) == []


def test_orders_that_are_stated_cost_what_they_must() -> None:
    """A bad order at every level is worse than a free one, and its bound is above the free optimum."""
    layer, architecture = small_layer(**FULL), small_architecture()
    free = cosa.schedule(layer, architecture, objective="energy", gap=1e-4)
    loops = [{"level": "DRAM", "dim": dim, "kind": "temporal", "at_least": 2} for dim in ("P", "C", "K")]
    any_order = cosa.schedule(layer, architecture, objective="energy", gap=1e-4, constraints=constraints(factors=loops))
    bad = constraints(factors=loops, orders=[{"level": "DRAM", "order": ["K", "P", "C"]}])
    good = constraints(factors=loops, orders=[{"level": "DRAM", "order": ["C", "P", "K"]}])
    values = {
        name: cosa.schedule(layer, architecture, objective="energy", gap=1e-4, constraints=one).provenance
        for name, one in (("bad", bad), ("good", good))
    }
    best = any_order.provenance.objective_value
    assert best is not None and free.provenance.objective_value is not None
    assert free.provenance.objective_value < best
    assert sorted(entry.objective_value or 0 for entry in values.values())[0] == pytest.approx(best)
    worse = max(values.values(), key=lambda entry: entry.objective_value or 0)
    assert (worse.bound or 0) > best * 1.01


def test_a_fixed_mapping_comes_back_unchanged() -> None:
    layer = load_network("resnet50").find("input.43").layer
    architecture = load_architecture("simba_4x4")
    first = cosa.schedule(layer, architecture, objective="energy", model="analytical", gap=0.1, time_limit_seconds=10)
    fixed = Constraints.of_nest(first.nest)
    again = cosa.schedule(layer, architecture, objective="edp", model="analytical", constraints=fixed)
    assert again.nest == first.nest
    figures = AnalyticalModel(layer, architecture).figures(Neighbourhood(architecture).of_nest(first.nest))
    assert figures is not None
    assert again.provenance.objective_value == pytest.approx(figures.edp)


@pytest.mark.parametrize("name", constraint_names())
def test_packaged_constraints_hold_on_packaged_architectures(name: str) -> None:
    """On every level of every architecture the rules read; on one real layer a schedule keeps to them."""
    assert name not in architecture_names()
    layer = load_network("resnet50").find("input.8").layer
    found = load_constraints(name)
    assert found.description
    for other in architecture_names():
        found.rules(layer, load_architecture(other))
    architecture = load_architecture("eyeriss_like")
    layer = small_layer(P=6, Q=6, R=3, S=3, C=4, K=8)
    schedule = cosa.schedule(layer, architecture, objective="energy", constraints=found, gap=0.5)
    assert found.rules(layer, architecture).broken(architecture, schedule.nest) == []


def test_rules_are_broken_by_other_nests() -> None:
    architecture, layer = load_architecture("simba_4x4"), small_layer(P=8, Q=8, C=64, K=64)
    schedule = cosa.schedule(layer, architecture, objective="energy", model="analytical", gap=0.5)
    spatial = constraints(spatial=[{"level": "array", "dims": []}]).rules(layer, architecture)
    assert any("spatial" in text for text in spatial.broken(architecture, schedule.nest))
    level = next(entry for entry in schedule.nest if len(entry.temporal) > 1)
    turned = tuple(loop.dim for loop in reversed(level.temporal))
    order = Constraints.from_data({"orders": [{"level": level.level, "order": list(turned)}]}).rules(
        layer, architecture
    )
    assert order.broken(architecture, schedule.nest) == [f"loop order at {level.level}"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"factors": [{"level": "Bufer", "dim": "P", "equal": 2}]}, ("c.yaml", "factors[0].level", "Buffer")),
        ({"factors": [{"level": "Pe", "dim": "P", "equal": 3}]}, ("factors[0].equal", "divisor of 4", "did you mean")),
        ({"factors": [{"level": "Pe", "dim": "X", "equal": 3}]}, ("factors[0].dim",)),
        ({"factors": [{"level": "Pe", "dim": "P"}]}, ("factors[0]", "equal")),
        ({"factors": [{"level": "Pe", "dim": "P", "at_least": 4, "at_most": 2}]}, ("at_least", "at_most")),
        ({"orders": [{"level": "Pe", "order": ["P", "P"]}]}, ("orders[0].order", "twice")),
        ({"orders": [{"level": "Pe"}]}, ("orders[0]", "stays")),
        ({"spatial": [{"level": "Pe", "x": ["K"], "y": ["K"]}]}, ("spatial[0].y",)),
        ({"spatial": [{"level": "Pe"}]}, ("spatial[0]", "dims")),
        ({"architectures": ["other"]}, ("architectures", "small")),
    ],
    ids=lambda value: str(value)[:40],
)
def test_wrong_constraints_are_named(data: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        constraints(**data).rules(small_layer(**FULL), small_architecture())
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            {"factors": [{"level": "Pe", "dim": dim, "equal": 4} for dim in ("P", "C")]},
            ("factors[0]", "factors[1]", "capacity of Pe, 14 words"),
        ),
        (
            {"factors": [{"level": "Buffer", "dim": dim, "kind": "spatial", "at_least": 4} for dim in ("P", "K")]},
            ("fan-out of Buffer, 4 instances", "factors[0]", "factors[1]", "Smallest change"),
        ),
        (
            {"factors": [{"level": level, "dim": "P", "at_least": 4} for level in ("Pe", "DRAM")]},
            ("factors[0]", "factors[1]"),
        ),
        ({"factors": [{"level": "Pe", "dim": "P", "at_least": 8}]}, ("at least 8 (factors[0]): 4 instead",)),
        (
            {"orders": [{"level": "Pe", "stays": "weights"}, {"level": "every", "order": ["P", "K"]}]},
            ("orders[0] and orders[1]", "Pe"),
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_contradictions_name_themselves(data: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(InfeasibleError) as caught:
        cosa.schedule(small_layer(**FULL), small_architecture(), objective="energy", constraints=constraints(**data))
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_constraints_that_do_not_matter_are_not_named() -> None:
    data = {
        "factors": [
            {"level": "Pe", "dim": "K", "at_most": 2},
            *({"level": at, "dim": "P", "at_least": 4} for at in ("Pe", "DRAM")),
        ]
    }
    with pytest.raises(InfeasibleError) as caught:
        cosa.schedule(small_layer(**FULL), small_architecture(), objective="energy", constraints=constraints(**data))
    assert "factors[0]" not in str(caught.value) and "capacity" not in str(caught.value)


def test_limits_that_leave_nothing_are_named_with_the_smallest_change() -> None:
    """All loops outside the array must be spatial: the limit, fan-out and buffers bind together."""
    limit = {"name": "steps", "most": 2, "over": [{"level": "DRAM", "kind": "temporal"}]}
    architecture = small_architecture(limits=[limit])
    layer = small_layer(P=64, C=8, K=8)
    with pytest.raises(InfeasibleError) as caught:
        cosa.schedule(layer, architecture, objective="energy")
    text = str(caught.value)
    assert "limit steps of 2" in text and "capacity of Buffer, 40 words for inputs, outputs" in text
    change = text.partition("Smallest change that lets one in: ")[2]
    assert change
    # With that change it fits.
    data = architecture.model_dump(mode="json")
    for part in change.split("; "):
        number = int(part.partition(" to ")[2].split()[0].replace(",", ""))
        if part.startswith("limit"):
            data["limits"][0]["most"] = number
        else:
            level = next(entry for entry in data["levels"] if f"of {entry['name']} " in part)
            level["capacity_words" if part.startswith("capacity") else "fanout"] = number
    changed = Architecture.from_data(data)
    point = feasible_point(layer, changed, Neighbourhood(changed))
    assert AnalyticalModel(layer, changed).figures(point) is not None


def test_too_little_room_names_every_level_and_what_it_needs() -> None:
    data = small_architecture().model_dump(mode="json")
    data["levels"][0]["capacity_words"], data["levels"][1]["capacity_words"] = 2, 1
    with pytest.raises(InfeasibleError, match=r"Pe keeps.* from 2 to 3\).*Buffer keeps.* from 1 to 2\)"):
        require_room(small_layer(P=4), Architecture.from_data(data))


def test_the_network_model_keeps_to_them_too() -> None:
    layer, architecture = small_layer(**FULL), meshed_architecture()
    rules = constraints(orders=[{"level": "every", "stays": "outputs"}]).rules(layer, architecture)
    model = NetworkModel(layer, architecture, rules=rules)
    start = feasible_point(layer, architecture, model.neighbourhood)
    outcome = CertifiedSearch(model=model, start=[start], gap=1e-3).run("energy")
    assert rules.broken(architecture, model.neighbourhood.nest(outcome.answer.point)) == []
    assert outcome.bound <= outcome.value * (1 + 1e-9)


def write_small(folder: Path) -> list[str]:
    """Layer and architecture files; the options that name them."""
    small_architecture().to_file(folder / "arch.yaml")
    small_layer(**FULL).to_file(folder / "layer.yaml")
    return ["schedule", "--layer-file", str(folder / "layer.yaml"), "--arch", str(folder / "arch.yaml")]


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*write_small(tmp_path), "--objective", "energy"]
    output = tmp_path / "s.json"
    assert main([*command, "--constrain", "output_stationary", "-o", str(output)]) == 0
    assert output.exists()
    bad = tmp_path / "bad.yaml"
    constraints(factors=[{"level": level, "dim": "P", "at_least": 4} for level in ("Pe", "DRAM")]).to_file(bad)
    assert main([*command, "--constrain", str(bad)]) == 1
    assert "factors[0]" in capsys.readouterr().err
    assert main([*command, "--constrain", "weight_stationery"]) == 2
    assert "did you mean weight_stationary?" in capsys.readouterr().err
    assert main([*command[:-2], "--objective", "cosa", "--constrain", "weight_stationary"]) == 2
    assert "--constrain" in capsys.readouterr().err
    assert Layer.from_file(tmp_path / "layer.yaml").K == 4
