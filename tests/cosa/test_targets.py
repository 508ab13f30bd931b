"""Machines that are not Simba: levels and limits are data for the program, the evaluator and what is shown."""

from __future__ import annotations

from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cosa
from cosa.analytical.batch import BatchEvaluator, MappingBatch
from cosa.commands.main import main
from cosa.common.errors import InfeasibleError
from cosa.mip.nest import breakdown
from cosa.mip.quantities import Rules
from cosa.model.arch import Architecture, load_architecture
from cosa.model.layer import DIMS, Layer
from cosa.model.schedule import Loop, Provenance, Schedule, ScheduleLevel
from cosa.model.validity import violations

published = partial(cosa.schedule, mapper="published")

TARGETS = ("eyeriss_like", "gpu_k80", "tpu_128x128")
LAYERS = {
    "3x3": Layer(R=3, S=3, P=28, Q=28, C=128, K=128, N=1),
    "strided": Layer(R=7, S=7, P=112, Q=112, C=3, K=64, N=1, stride_w=2, stride_h=2),
    "fully connected": Layer(R=1, S=1, P=1, Q=1, C=2048, K=1000, N=4),
    "matrix product": Layer(R=1, S=1, P=512, Q=1, C=768, K=3072, N=1),
    "grouped": Layer(R=3, S=3, P=14, Q=14, C=4, K=4, N=1, G=32),
}


def threads(schedule: Schedule) -> int:
    """Threads of a block of the GPU."""
    by_name = {entry.level: entry for entry in schedule.nest}
    loops = (*by_name["SharedMemory"].spatial, *by_name["CoreRegisters"].temporal)
    return prod(loop.bound for loop in loops)


@pytest.mark.parametrize("as_published", [False, True])
@pytest.mark.parametrize("work", LAYERS)
@pytest.mark.parametrize("target", TARGETS)
def test_layers_are_scheduled_evaluated_and_shown(target: str, work: str, as_published: bool, tmp_path: Path) -> None:
    architecture = load_architecture(target)
    schedule = published(LAYERS[work], architecture, as_published=as_published, time_limit_seconds=20, gap=1e-3)
    assert violations(schedule.layer, architecture, schedule.nest) == []
    value = schedule.provenance.objective_value
    parts = breakdown(schedule.layer, architecture, schedule.nest, rules=Rules(as_published=as_published))
    assert parts["total"] == pytest.approx(value, abs=1e-4)
    assert cosa.evaluate(schedule).macs == cosa.evaluate(schedule, "exact").macs == schedule.layer.macs
    schedule.save(tmp_path / "s.json")
    for command in ("show", "evaluate"):
        assert main([command, str(tmp_path / "s.json")]) == 0


def test_the_gpu_is_that_of_the_paper() -> None:
    gpu = load_architecture("gpu_k80")
    assert gpu.macs == 2496
    assert gpu.levels[gpu.level_index("L2")].capacity_words * 4 == 1.5 * 2**20  # type: ignore[operator]
    for work in LAYERS.values():
        schedule = published(work, gpu, time_limit_seconds=20, gap=1e-3)
        assert threads(schedule) <= 1024


def with_limit(most: int) -> Architecture:
    data = load_architecture("gpu_k80").model_dump(mode="json")
    data["limits"][0]["most"] = most
    return Architecture.from_data(data)


@pytest.mark.parametrize("formulation", ["aggregated", "paper"])
def test_a_limit_binds(formulation: str) -> None:
    """With fewer threads a block the program finds another schedule, not one that breaks the limit."""
    work = Layer(R=1, S=1, P=8, Q=1, C=8, K=12, N=1)
    found = {}
    for most in (1024, 48, 20, 1):
        schedule = published(work, with_limit(most), formulation=formulation, time_limit_seconds=60)
        assert schedule.provenance.solver_status == "optimal"
        assert threads(schedule) <= most
        found[most] = cosa.evaluate(schedule).compute_cycles
    assert found[1024] < found[48] < found[20] < found[1]


def test_limits_that_leave_no_way_are_named() -> None:
    data = load_architecture("gpu_k80").model_dump(mode="json")
    places = [{"level": entry["name"], "kind": kind} for entry in data["levels"] for kind in ("temporal", "spatial")]
    data["limits"] = [{"name": "iterations of everything", "over": places, "most": 100}]
    with pytest.raises(InfeasibleError, match="iterations of everything: at most 100"):
        published(LAYERS["3x3"], Architecture.from_data(data))


@pytest.fixture
def broken() -> Schedule:
    """Threads 6 x 4 in a block, of at most 20."""
    architecture = with_limit(20)
    loops: dict[str, tuple[Loop, ...]] = {
        "SharedMemory": (Loop(dim="K", bound=6, kind="spatial", axis="x"),),
        "CoreRegisters": (Loop(dim="P", bound=4),),
    }
    nest = tuple(
        ScheduleLevel(level=entry.name, keeps=entry.keeps, loops=loops.get(entry.name, ()))
        for entry in architecture.levels[::-1]
    )
    work = Layer.model_validate(dict.fromkeys(DIMS, 1) | {"K": 6, "P": 4})
    return Schedule.make(work, architecture, nest, Provenance(mapper="hand", version="1"))


def test_a_broken_limit_is_named(broken: Schedule, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken.save(tmp_path / "s.json")
    assert main(["show", str(tmp_path / "s.json")]) == 1
    message = capsys.readouterr().err
    assert "threads a block need 24, there are 20" in message
    assert "spatial loops of SharedMemory, temporal loops of CoreRegisters" in message


def test_batches_know_limits(broken: Schedule) -> None:
    for most, fits in ((20, False), (24, True)):
        result: Any = BatchEvaluator(broken.layer, with_limit(most)).evaluate(MappingBatch.of([broken.nest]))
        assert np.array_equal(result.fits, [fits])
