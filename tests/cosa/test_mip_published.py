"""Is the published objective reproduced?"""

import csv
import json
from pathlib import Path

import pytest

from cosa.mip.aggregated import Program
from cosa.mip.nest import breakdown
from cosa.mip.quantities import Rules
from cosa.mip.solver import solve
from cosa.model.arch import load_architecture
from cosa.model.networks import load_network
from cosa.model.schedule import Loop, ScheduleLevel

DATA = Path(__file__).parent.parent / "data" / "cosa"
PUBLISHED = Rules(as_published=True)
SIMBA = load_architecture("simba_4x4")
TENSORS = {"Weights": "weights", "Inputs": "inputs", "Outputs": "outputs"}


def reference():
    with (DATA / "published_objectives.csv").open() as file:
        return {(row["network"], row["layer"]): float(row["objective"]) for row in csv.DictReader(file)}


def schedules():
    return json.loads((DATA / "published_schedules.json").read_text())


def nest_of(record):
    levels = []
    for entry in record["nest"]:
        axis = "row_major" if entry["level"] == "GlobalBuffer" else "x"
        loops = tuple(
            Loop(dim=dim, bound=bound) if kind == "temporal" else Loop(dim=dim, bound=bound, kind="spatial", axis=axis)
            for dim, bound, kind in entry["loops"]
        )
        levels.append(ScheduleLevel(level=entry["level"], keeps=tuple(TENSORS[t] for t in entry["keep"]), loops=loops))
    return tuple(levels)


@pytest.mark.parametrize("record", schedules(), ids=lambda record: record["id"])
def test_breakdown_of_reference_schedules_adds_up_to_their_objective(record):
    layer = load_network(record["network"]).find(record["layer"]).layer
    parts = breakdown(layer, SIMBA, nest_of(record), rules=PUBLISHED)
    assert parts["total"] == pytest.approx(record["objective"], abs=1e-6)
    assert parts["utilisation"] < 0 < parts["compute"]


@pytest.mark.parametrize(("network", "layer"), list(reference()), ids=str)
def test_optimum_is_the_published_one(network, layer):
    program = Program(load_network(network).find(layer).layer, SIMBA, rules=PUBLISHED)
    result = solve(program.model)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(reference()[network, layer], abs=1e-5)
