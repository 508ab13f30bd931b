"""Options and objectives of the mappers: checked before anything runs, files read as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import cosa
from cosa.analytical.constants import Constants, PublishedConstants
from cosa.common.errors import InputError
from cosa.mip.objective import Weights
from cosa.model.constraints import load_constraints
from nocsim.experiments.sweep.spec import Sweep
from tests.conftest import Command
from tests.nocsim.sweep.conftest import CONV


def sweep(**given: Any) -> Sweep:
    axes = {"layer": CONV} | {name.replace("__", "."): values for name, values in given.items()}
    return Sweep(name="mine", axes=axes, simulate=False)


@pytest.mark.parametrize(
    ("mapper", "given", "axis", "phrase"),
    [
        (
            "published",
            {"options.samples": [1, 5]},
            "options.samples",
            "an option of random, not of the mapper published (found 1)",
        ),
        ("program", {"options.evaluations": 9}, "options.evaluations", "not of the mapper program"),
        ("hybrid", {"options.samples": 9}, "options.samples", "not of the mapper hybrid"),
        ("exhaustive", {"options.seed": [1, 2]}, "options.seed", "not of the mapper exhaustive"),
        ("program", {"options.threads": [1, 7]}, "options.threads", "a point has one core"),
        ("program", {"options.report": 3}, "options.report", "not an option of the mapper program"),
        ("random", {"options.name": "random"}, "options.name", "not an option of the mapper random"),
        ("random", {"options.smaples": 5}, "options.smaples", "did you mean samples?"),
        ("random", {"options.samples": True}, "options.samples", "not valid (found True); allowed: a whole number"),
        ("random", {"options.samples": "abc"}, "options.samples", "not valid (found 'abc')"),
        ("random", {"options.samples": 0}, "options.samples", "allowed: a whole number from 1"),
        ("random", {"options.time_limit_seconds": -1}, "options.time_limit_seconds", "a number > 0"),
        ("random", {"options.seconds": 1}, "options.seconds", "not an option of the mapper random"),
        ("published", {"options.seed": "x"}, "options.seed", "not valid (found 'x')"),
        ("program", {"options.model": "netwrk"}, "options.model", "did you mean network?"),
        ("program", {"options.physical_only": False}, "options.physical_only", "the model published-machine only"),
        ("program", {"objective": "edp", "options.settle_ties": False}, "options.settle_ties", "means nothing to"),
        ("program", {"options.remainders": True, "options.pad_percent": 5}, "options.pad_percent", "does not go with"),
        ("published", {"options.weights": {"bogus": 3}}, "options.weights.bogus", "unknown key"),
        (
            "published",
            {"options.weights": {"levels": {"GB": 2}}},
            "options.weights.levels",
            "'simba_4x4' has no such level",
        ),
        ("published", {"options.weights": 3}, "options.weights", "not valid (found 3)"),
        ("published", {"options.weights": "none.yaml"}, "options.weights", "none.yaml: no such file"),
        ("published", {"options.order_level": "GlobalBufer"}, "options.order_level", "did you mean GlobalBuffer?"),
        ("program", {"options.constraints": "weight_stationry"}, "options.constraints", "mean weight_stationary?"),
        (
            "published",
            {"options.constraints": "weight_stationary"},
            "options.constraints",
            "an option of program, not of",
        ),
        ("published", {"objective": "trafic"}, "objective", "did you mean traffic?"),
        (
            "published",
            {"objective": "latency"},
            "objective",
            "not an objective of the mapper published (found 'latency'); allowed",
        ),
        (
            "published",
            {"objective": ["cosa", "edp"]},
            "objective",
            "utilisation, compute, traffic, balance (edp is one of pr",
        ),
        ("program", {"objective": "pareto"}, "objective", "allowed: latency, energy, edp"),
        ("random", {"objective": "enrgy"}, "objective", "did you mean energy?"),
        (
            None,
            {"objective": "enrgy"},
            "objective",
            "no such objective (found 'enrgy'); allowed: latency, energy, edp, cosa",
        ),
        (None, {"objective": [3]}, "objective", "no such objective (found 3)"),
    ],
)
def test_wrong_options_end_the_sweep_before_it_starts(
    mapper: str | None, given: dict[str, Any], axis: str, phrase: str
) -> None:
    named = {} if mapper is None else {"mapper": mapper}
    with pytest.raises(InputError) as caught:
        sweep(**named, **given).points()
    assert str(caught.value).startswith(f"mine: axes.{axis}: ") and phrase in str(caught.value)


def test_also_on_the_command_line(tmp_path: Path, nocsim: Command) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("axes: {layer: 'dlrm:72', options.samples: [1, 5]}\n")
    for more in ([], ["--dry-run"]):
        ran = nocsim("sweep", path, "--results", tmp_path / "r.db", *more)
        ran.assert_error("s.yaml: axes.options.samples", "an option of random, not of the mapper program")
    assert not (tmp_path / "r.db").exists()


def test_the_mapper_follows_the_objective_where_none_is_named() -> None:
    """As `cosa.schedule` does; a mapper that is named makes its own schedules only."""
    found = sweep(objective=["latency", "cosa", "energy", "compute"]).points()
    assert [point.options.mapper for point in found] == ["program", "published", "program", "published"]
    named = sweep(mapper="program", objective=["latency", "energy"]).points()
    assert [point.inputs_hash for point in named] == [found[0].inputs_hash, found[2].inputs_hash]


def test_the_same_options_are_the_same_point() -> None:
    for mapper, objective in (("published", "cosa"), ("program", "latency"), ("random", "latency")):
        plain = sweep(mapper=mapper).points()[0]
        spelt = sweep(mapper=mapper, objective=[None, objective], options__seed=[None, 0, 1]).points()
        assert [point.inputs_hash == plain.inputs_hash for point in spelt] == [True, True, False] * 2


def test_null_leaves_an_option_out() -> None:
    """So that mappers with different options can be compared."""
    axes = {
        "layer": CONV,
        "mapper": ["published", "random"],
        "options.samples": [None, 7],
        "objective": [None, "energy"],
    }
    found = Sweep(axes=axes, zip=[["mapper", "options.samples", "objective"]]).points()
    assert [json.loads(point.options.text) for point in found] == [
        {"objective": "cosa"},
        {"objective": "energy", "samples": 7},
    ]
    crossed = Sweep(axes=axes, where=["(mapper == 'random') == (options.samples == 7)", "objective != 'energy'"])
    assert len(crossed.points()) == 2  # what the conditions leave out need not be right


def test_files_are_read_as_data(tmp_path: Path) -> None:
    """Beside the sweep; another content is another point."""
    (tmp_path / "w.yaml").write_text("{kind: weights, compute: 3}\n")
    (tmp_path / "c.yaml").write_text("{kind: network_constants, floor: 0.5}\n")
    (tmp_path / "p.yaml").write_text("{kind: published_constants, largest: 0.5}\n")
    (tmp_path / "k.yaml").write_text("{kind: constraints, factors: [{level: DRAM, dim: K, equal: 2}]}\n")

    def point(**given: Any) -> Any:
        sweep(**given).to_file(tmp_path / "s.yaml")
        return Sweep.from_file(tmp_path / "s.yaml").points()[0]

    first = point(mapper="published", options__weights="w.yaml")
    assert first.axes["options.weights"] == "w.yaml"
    assert first.inputs_hash == point(mapper="published", options__weights={"compute": 3}).inputs_hash
    assert first.options.weights == Weights(compute=3)
    (tmp_path / "w.yaml").write_text("{kind: weights, compute: 4}\n")
    assert point(mapper="published", options__weights="w.yaml").inputs_hash != first.inputs_hash
    constants = point(mapper="program", options__constants="c.yaml").options.constants
    assert constants == Constants.from_file(tmp_path / "c.yaml")
    model = {"mapper": "program", "options.model": "published-machine"}
    constants = point(**model, options__constants="p.yaml").options.constants
    assert constants == PublishedConstants.from_file(tmp_path / "p.yaml")
    with pytest.raises(InputError, match=r"axes\.options\.constants.kind: of another model"):
        point(**model, options__constants="c.yaml")
    constraints = point(mapper="program", options__constraints="k.yaml").options.constraints
    assert constraints.model_dump() == load_constraints(tmp_path / "k.yaml").model_dump()


def test_constraints_rule_the_schedule(tmp_path: Path) -> None:
    """What a file says is what `cosa.schedule` makes of it."""
    layer = cosa.Layer(name="small", R=1, S=1, P=4, Q=4, C=4, K=4, N=1)
    file = tmp_path / "k.yaml"
    file.write_text("{kind: constraints, factors: [{level: DRAM, dim: K, kind: temporal, equal: 4}]}\n")
    both = [None, str(file)]
    given = {"options.model": "analytical", "options.settle_ties": False, "options.constraints": both}
    rows = Sweep(axes={"layer": layer, "mapper": "program"} | given, simulate=False).run(tmp_path / "r.db").rows
    for row, constraints in zip(rows, both, strict=True):
        schedule = cosa.schedule(layer, model="analytical", settle_ties=False, constraints=constraints)
        assert row["error"] is None and row["schedule_hash"] == schedule.content_hash
    assert rows[0]["schedule_hash"] != rows[1]["schedule_hash"]
