"""Comparison of what our readers find in Timeloop files, and count for them, with what others wrote down beside them.

`timeloop_files_cases`: for every ``NAME.expected.json`` of a folder, ``NAME.*`` is read and every fact of the expected
file looked up. A fact is equal when it has the same value; order counts, except where a list is a set (what a level
keeps, which dimensions are free). Absent and empty are the same.

`timeloop_v4_cases`: every folder is a run of a current Timeloop, ``input.yaml`` as its front end wrote it, ``map.yaml``
where a mapper found the mapping, and ``expected.json`` with cycles and counts of an instance.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cosa.analytical.evaluation import Evaluation, evaluate_timeloop
from cosa.common.errors import CosaError
from cosa.interop.convert import converted, read_inputs
from cosa.interop.facts import facts_of
from cosa.interop.nests import plain_name
from cosa.interop.timeloop_files import read_timeloop
from cosa.model.schedule import Schedule

_ENDING = ".expected.json"


def timeloop_files_cases(folder: Path) -> Iterator[tuple[str, str | None]]:
    """Name of each file and its first fact that differs, None if all are equal."""
    for expected in sorted(folder.glob(f"*{_ENDING}")):
        stem = expected.name.removesuffix(_ENDING)
        files = [path for path in sorted(folder.glob(f"{stem}.*")) if not path.name.endswith(_ENDING)]
        if not files:
            yield stem, "no such file beside its expected facts"
            continue
        facts = json.loads(expected.read_text(encoding="utf-8"))
        named = folder / str(facts.get("file", ""))
        path = named if named in files else files[0]
        try:
            found = facts_of(read_timeloop(path))
        except CosaError as error:
            yield path.name, str(error)
            continue
        yield path.name, first_difference(facts, found)


_COUNTS = {
    "tile_words": "tile_words",
    "utilized_instances": "instances",
    "scalar_reads": "reads",
    "scalar_fills": "fills",
    "scalar_updates": "updates",
}
"""What Timeloop calls the counts of a tensor at a level, and what an evaluation does."""


def timeloop_v4_cases(folder: Path) -> Iterator[tuple[str, str | None]]:
    """Name of each run and the first number that the convention `timeloop` counts otherwise, None if none is."""
    for expected in sorted(folder.glob("*/expected.json")):
        run = expected.parent
        paths = [str(path) for path in (run / "input.yaml", run / "map.yaml") if path.exists()]
        try:
            schedule = converted(read_inputs(paths), "schedule")
            assert isinstance(schedule, Schedule)
            found = evaluate_timeloop(schedule.padded_layer, schedule.architecture, schedule.nest)
        except CosaError as error:
            yield run.name, str(error)
            continue
        theirs = json.loads(expected.read_text(encoding="utf-8"))
        # Levels that keep nothing, and the compute units, are named there at times, without counts.
        theirs["levels"] = {name: tensors for name, tensors in theirs["levels"].items() if tensors}
        ours = _counts(found)
        kept, counted = ({level: sorted(of["levels"][level]) for level in of["levels"]} for of in (theirs, ours))
        yield run.name, first_difference(kept, counted, "kept") or first_difference(theirs, ours)


def _counts(evaluation: Evaluation) -> dict[str, Any]:
    """Cycles, and counts by level that keeps something, in the shape of an ``expected.json``."""
    levels = {
        level.name: {
            tensor.capitalize(): {theirs: getattr(item, ours) for theirs, ours in _COUNTS.items()}
            for tensor, item in level.tensors.items()
        }
        for level in evaluation.levels
        if level.tensors
    }
    return {"cycles": evaluation.cycles, "levels": levels}


# Remarks and provenance, which no reader finds in the file; a format that the file does not state is not compared.
_REMARKS = ("file", "origin", "note", "notes", "word_bits_from")
_UNORDERED = ("keep", "bypass", "free_dims")
_ABSENT_IS_EMPTY = ("keep", "bypass", "factors", "free_dims", "on_Y", "on_X", "coefficients")
_ABSENT_IS_NOTHING = ("permutation_inner_to_outer", "split", "word_bits")


def first_difference(expected: Any, found: Any, path: str = "") -> str | None:
    """The first fact of `expected` that `found` does not have, None if it has them all."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for written, value in expected.items():
            key = written if written in found else written.replace("-", "_")
            if key in _REMARKS or (key == "format" and found.get(key) is None):
                continue
            inner = f"{path}.{key}" if path else key
            if key not in found and not (value in ([], {}) and key in _ABSENT_IS_EMPTY):
                if value is None and key in _ABSENT_IS_NOTHING:
                    continue
                return f"{inner}: expected {value!r}, found nothing"
            difference = _SPECIAL.get(key, first_difference)(value, found.get(key, type(value)()), inner)
            if difference is not None:
                return difference
        return None
    if isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            return f"{path}: expected {len(expected)} entries, found {len(found)}"
        for number, (theirs, ours) in enumerate(zip(expected, found, strict=True)):
            difference = first_difference(theirs, ours, f"{path}[{number}]")
            if difference is not None:
                return difference
        return None
    equal = expected == found and isinstance(expected, bool) == isinstance(found, bool)
    return None if equal else f"{path}: expected {expected!r}, found {found!r}"


def _as_sets(expected: Any, found: Any, path: str) -> str | None:
    if isinstance(expected, list) and isinstance(found, list):
        return first_difference(sorted(map(str, expected)), sorted(map(str, found)), path)
    return first_difference(expected, found, path)


def _as_spelt(expected: Any, found: Any, path: str) -> str | None:
    """Names in which - and _ are the same."""
    theirs, ours = (str(value).replace("-", "_").lower() for value in (expected, found))
    return (
        first_difference(expected, found, path) if isinstance(expected, dict) else first_difference(theirs, ours, path)
    )


def _as_level(expected: Any, found: Any, path: str) -> str | None:
    return first_difference(plain_name(str(expected)), plain_name(str(found)), path)


_SPECIAL: dict[str, Callable[[Any, Any, str], str | None]] = {
    **dict.fromkeys(_UNORDERED, _as_sets),
    "level": _as_level,
    "target": _as_level,
    "shape": _as_spelt,
}
