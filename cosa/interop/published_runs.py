"""The JSON of the published end-to-end runs: a layer and a mapping with its levels, outermost first."""

from __future__ import annotations

from typing import Any

from cosa.interop.nests import plain_name
from cosa.interop.places import Where, list_of, mapping_of, text_of, whole_of
from cosa.interop.printed_nests import read_printed_nest
from cosa.interop.problems import read_problem
from cosa.interop.timeloop_model import Nest, NestLevel, NestLoop, TimeloopFile

_LEVELS = "mapping_levels_outer_to_inner"
_TENSORS = {"weights": "Weights", "inputs": "Inputs", "outputs": "Outputs"}


def is_published_run(data: Any) -> bool:
    """Whether plain data is such a run."""
    return isinstance(data, dict) and "layer" in data and _LEVELS in data


def read_published_run(data: dict[str, Any], where: Where) -> TimeloopFile:
    """Problem and nest of a run. A level keeps the tensors of which it holds words.

    `mapping_text`, where it is there, says along which axis a spatial loop runs and must tell the same loops.

    Raises
    ------
    InputError: with the path of what is wrong.
    """
    problem = read_problem({**mapping_of(data["layer"], where.at("layer"))}, where.at("layer"))
    levels = []
    for number, entry in enumerate(list_of(data[_LEVELS], where.at(_LEVELS))):
        place = where.at(_LEVELS).at(number)
        content = mapping_of(entry, place)
        words = mapping_of(content.get("tile_words"), place.at("tile_words"))
        keeps = tuple(_TENSORS[tensor] for tensor in _TENSORS if words.get(tensor))
        loops = []
        for at, loop in enumerate(list_of(content.get("loops_outer_to_inner"), place.at("loops_outer_to_inner"))):
            inner = place.at("loops_outer_to_inner").at(at)
            fields = mapping_of(loop, inner)
            kind = fields.get("kind")
            if kind not in ("temporal", "spatial"):
                raise inner.at("kind").error("not a kind of loop", value=kind, allowed="temporal, spatial")
            bound = whole_of(fields.get("bound"), inner.at("bound"))
            if bound > 1:
                spatial = "temporal" if kind == "temporal" else "spatial-X"
                loops.append(NestLoop(text_of(fields.get("dim"), inner.at("dim")), bound, spatial))  # type: ignore[arg-type]
        bypasses = tuple(name for name in _TENSORS.values() if name not in keeps)
        levels.append(NestLevel(text_of(content.get("level"), place.at("level")), tuple(loops), keeps, bypasses))
    nest = Nest(tuple(levels))
    text = data.get("mapping_text")
    if text:
        lines = [str(line) for line in text] if isinstance(text, list) else [str(text)]
        printed = read_printed_nest("\n".join(lines), where.at("mapping_text"))
        if [_plain(level) for level in printed.levels] != [_plain(level) for level in nest.levels]:
            raise where.at("mapping_text").error(f"tells other loops than {_LEVELS}")
        kept = zip(nest.levels, printed.levels, strict=True)
        nest = Nest(tuple(NestLevel(ours.name, text.loops, ours.keeps, ours.bypasses) for ours, text in kept))
    return TimeloopFile(where.source, nest=nest, problem=problem, notes=where.all_notes())


def _plain(level: NestLevel) -> tuple[Any, ...]:
    return plain_name(level.name), [(loop.dim, loop.bound, loop.kind == "temporal") for loop in level.loops]
