"""The last look at an answer: what a mapper states must be what the schedule that it returns evaluates to.

Searches work on arrays, and an answer passes several hands until it is a schedule. Whatever happens on the way, the
figures that are stated are those of the object that leaves the mapper, counted anew.
"""

from __future__ import annotations

import json
from math import isclose

from cosa.common.errors import InternalError
from cosa.model.objectives import OBJECTIVES
from cosa.model.schedule import Schedule

_RELATIVE = 1e-9
"""The order of additions in double precision."""


def confirm(schedule: Schedule, figures: dict[str, tuple[float, float]]) -> Schedule:
    """The schedule, if what was stated of it is what it evaluates to.

    Parameters
    ----------
    figures: by name, (stated, evaluated from the schedule).

    Raises
    ------
    InternalError: some differ; the message has layer, architecture, nest and provenance to report.
    """
    wrong = [
        f"{name} stated {stated!r}, evaluated {evaluated!r}"
        for name, (stated, evaluated) in figures.items()
        if not isclose(stated, evaluated, rel_tol=_RELATIVE, abs_tol=_RELATIVE)
    ]
    if wrong:
        data = schedule.model_dump(mode="json", exclude={"timing"}, exclude_defaults=True)
        raise InternalError(
            f"internal error: the mapper {schedule.provenance.mapper} returned another schedule than it scored "
            f"({'; '.join(wrong)}); please report it with this input: {json.dumps(data, sort_keys=True)}"
        )
    return schedule


def figures_of(schedule: Schedule) -> tuple[float, float]:
    """Cycles and energy (pJ) of a schedule of whole tiles in Timeloop's convention."""
    from cosa.analytical.evaluation import evaluate_timeloop

    found = evaluate_timeloop(schedule.padded_layer, schedule.architecture, schedule.nest, schedule.padding_macs)
    return float(found.cycles), found.energy_pj


def value_of(objective: str, cycles: float, energy_pj: float) -> float:
    """What ``latency``, ``energy`` or ``edp`` is of these figures."""
    return float(OBJECTIVES[objective].value(cycles, energy_pj))
