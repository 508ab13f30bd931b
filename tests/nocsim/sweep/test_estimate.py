"""What `--dry-run` says: times by mapper and size, from a few points, within its own budget."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cosa.common.pool import Ended
from cosa.experiments.pipeline import Outcome
from cosa.model.layer import TENSORS, Layer
from nocsim.experiments.pipeline import SimulatedPoint
from nocsim.experiments.sweep import estimate as module
from nocsim.experiments.sweep.spec import Sweep
from tests.nocsim.sweep.conftest import CONV

SECONDS_A_WORD = {"published": 0.001, "random": 0.05, "evolutionary": 0.2}
LAYERS = [CONV | {"name": f"l{n}", "C": 8 * n, "K": 8 * n} for n in (1, 2, 3, 4, 9)]


class Clock:
    """Time that passes only while points run."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


def words(layer: dict[str, Any] | Layer) -> int:
    found = layer if isinstance(layer, Layer) else Layer.from_data(layer)
    return sum(found.tensor_words(tensor) for tensor in TENSORS)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A pool in which a point takes seconds by its mapper and words, and ten times that at first."""
    clock, mappers = Clock(), []

    class FakePool:
        def __init__(self, workers: int) -> None:
            assert workers == 1

        def submit(self, key: str, function: Callable[..., Any], arguments: tuple[SimulatedPoint]) -> None:
            (point,) = arguments
            assert point.options is not None
            mapper = point.options.mapper
            self.seconds = SECONDS_A_WORD[mapper] * words(point.layer) * (1 if mapper in mappers else 1.5)
            self.fails = point.layer.name == "l3" and mapper == "random"
            self.left = self.seconds
            mappers.append(mapper)

        def wait(self, seconds: float) -> list[Ended]:
            clock.now += min(seconds, self.left)
            self.left -= seconds
            if self.left > 0:
                return []
            figures = {"seconds": self.seconds}
            return [Ended("", Outcome(error="no") if self.fails else Outcome(figures=figures))]

        def close(self) -> None:
            pass

    monkeypatch.setattr(module, "Processes", FakePool)
    monkeypatch.setattr(module, "time", clock)
    return mappers


def sweep(*mappers: str) -> Sweep:
    return Sweep(axes={"layer": LAYERS, "mapper": list(mappers), "noc.mesh": ["2x2", "4x4"]}, simulate=False)


def test_each_mapper_and_the_size_of_layers_count(ran: list[str], tmp_path: Path) -> None:
    found = module.estimate(sweep("published", "evolutionary").points(), tmp_path / "no.db", budget_seconds=1e6)
    all_words = 2 * sum(map(words, LAYERS))
    assert found.seconds is not None and not found.at_least
    assert found.seconds == pytest.approx(
        all_words * (SECONDS_A_WORD["published"] + SECONDS_A_WORD["evolutionary"]), rel=0.2
    )
    assert ran.count("published") == 4  # three sizes, the first of them twice
    assert ran.count("evolutionary") == 3  # none of them is so quick that the start would count
    assert "6 points run for this" in found.basis


def test_a_point_that_fails_is_no_measure(ran: list[str], tmp_path: Path) -> None:
    found = module.estimate(sweep("random").points(), tmp_path / "no.db", budget_seconds=1e6)
    assert found.seconds == pytest.approx(2 * sum(map(words, LAYERS)) * SECONDS_A_WORD["random"], rel=0.5)


def test_slow_mappers_do_not_take_the_time_of_others(ran: list[str], tmp_path: Path) -> None:
    points = sweep("evolutionary", "published").points()
    found = module.estimate(points, tmp_path / "no.db", budget_seconds=20)
    assert found.at_least and found.seconds is not None
    assert {"evolutionary", "published"} == set(ran) and ran.count("evolutionary") == 1
    slow, quick = (sum(map(words, LAYERS)) * 2 * SECONDS_A_WORD[name] for name in ("evolutionary", "published"))
    assert quick < found.seconds < slow
