"""Objective terms of schedules side by side (``cosa breakdown``): one layer by several mappers, say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cosa.common.tables import printable, table
from cosa.model.schedule import Schedule


def describe(
    schedules: Sequence[tuple[str, Schedule]], terms: Sequence[dict[str, float]], objective: str
) -> dict[str, Any]:
    """What ``cosa breakdown --json`` says; one entry a schedule (file name, schedule), in their order."""
    return {
        "kind": "objective_breakdown",
        "schema_version": 1,
        "objective": objective,
        "schedules": [
            {
                "file": file,
                "layer": schedule.layer.name,
                "architecture": schedule.architecture.name,
                "mapper": schedule.provenance.mapper,
                "schedule_hash": schedule.content_hash,
                "terms": {name: value for name, value in found.items() if name != "total"},
                "traffic": sum(value for name, value in found.items() if name.startswith("traffic ")),
                "total": found["total"],
            }
            for (file, schedule), found in zip(schedules, terms, strict=True)
        ],
    }


def lines(view: dict[str, Any]) -> list[str]:
    """A row a schedule, a column a term."""
    names = list(view["schedules"][0]["terms"])
    heads = [name.replace("traffic ", "") for name in names]
    rows = [
        [printable(entry["file"], 26), *(f"{entry['terms'][name]:.3f}" for name in names), f"{entry['total']:.3f}"]
        for entry in view["schedules"]
    ]
    title = f"objective {view['objective']}, weighted terms (log2)"
    if any(name.startswith("traffic ") for name in names):
        title += "; weights, inputs, outputs: their traffic"
    return [title, "", *table(["schedule", *heads, "total"], rows, left=1)]
