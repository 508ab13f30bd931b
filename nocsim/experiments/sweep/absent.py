"""Why a report has no figures where a reader would look for them."""

from __future__ import annotations

from collections.abc import Sequence

from cosa.experiments.figures import unknown
from nocsim.experiments.pipeline import FIGURES
from nocsim.experiments.sweep.result import SweepResult

_POINTS = "--points shows each layer"


def unfinished(result: SweepResult) -> list[str]:
    """A line if configurations have no totals because some of their layers have no figures."""
    several = [found for found in result.configurations if found.layers > 1]
    failed = sum(found.failed > 0 for found in several)
    left = sum(found.done + found.failed < found.layers and not found.failed for found in several)
    parts = [f"{left} with layers left to run"] if left else []
    parts += [f"{failed} with layers that failed"] if failed else []
    if not parts:
        return []
    return [f"no totals for {' and '.join(parts)}, of {len(result.configurations)} ({_POINTS})"]


def without_values(result: SweepResult, figures: Sequence[str]) -> list[str]:
    """A line for each of these figures that no configuration has though some have finished."""
    finished = [found for found in result.configurations if found.done == found.layers]
    lines = []
    for figure in figures:
        if not finished or any(found.figures[figure] is not None for found in finished):
            continue
        if FIGURES[figure].total is unknown and any(row[figure] is not None for row in result.rows):
            why = f"it has no total over several layers; {_POINTS}"
        elif not result.sweep.simulate:
            why = "it is not known without simulation" if FIGURES[figure].simulated else _UNKNOWN
        else:
            why = _UNKNOWN
        lines.append(f"no {figure}: {why}")
    return lines


_UNKNOWN = "no point has it, by this mapper and architecture"


def nothing_to_draw(result: SweepResult, x: str, y: str) -> str | None:
    """Why a picture of two figures would be empty; None if it would not."""
    if any(found.figures[x] is not None and found.figures[y] is not None for found in result.configurations):
        return None
    reasons = [*without_values(result, (x, y)), *unfinished(result)]
    return "; ".join(reasons) or "no point has finished"
