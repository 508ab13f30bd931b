"""What schedules are made and compared for: cycles, energy, or their product. An objective is one entry here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

ObjectiveName = Literal["latency", "energy", "edp"]


@dataclass(frozen=True)
class Objective:
    """A value that is to be small, of cycles and energy (numbers or arrays).

    `ties` decides between equal values. `text` says it in words, `unit` what it is counted in.
    """

    name: ObjectiveName
    text: str
    unit: str
    value: Callable[[Any, Any], Any]
    ties: Callable[[Any, Any], Any]

    def each_cycle(self, least_energy_pj: float) -> float:
        """What a cycle adds at least, where no schedule takes less energy than that."""
        return float(self.value(1.0, least_energy_pj) - self.value(0.0, least_energy_pj))


OBJECTIVES: dict[str, Objective] = {
    one.name: one
    for one in (
        Objective("latency", "latency", "cycles", lambda cycles, _: cycles, lambda _, energy_pj: energy_pj),
        Objective("energy", "energy", "pJ", lambda _, energy_pj: energy_pj, lambda cycles, _: cycles),
        Objective(
            "edp",
            "energy x cycles",
            "pJ x cycles",
            lambda cycles, energy_pj: energy_pj * cycles,
            lambda cycles, _: cycles,
        ),
    )
}
assert tuple(OBJECTIVES) == get_args(ObjectiveName)
