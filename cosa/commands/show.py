"""A schedule for the eye: the loop nest level by level, how full each level is, and what the nest amounts to.

`describe` computes everything once as plain data (``cosa show --json``); `render` only lays it out.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from math import prod
from typing import TYPE_CHECKING, Any

from cosa.common.tables import WIDTH, printable
from cosa.model.layer import TENSORS, Layer, layer_line, padding_line
from cosa.model.schedule import Loop, Provenance, Schedule
from cosa.model.validity import tile_words, violations

if TYPE_CHECKING:
    from rich.text import Text

_BAR, _COLUMN = 10, 31


def describe(schedule: Schedule) -> dict[str, Any]:
    """What `cosa show` says, as data: levels outermost first, totals, broken constraints, provenance."""
    architecture, layer, computed = schedule.architecture, schedule.layer, schedule.covered_layer
    inner = schedule.innermost_first
    levels = []
    for index, entry in reversed(list(enumerate(inner))):
        tiles = {tensor: tile_words(computed, inner, index, tensor) for tensor in TENSORS if tensor in entry.keeps}
        usable = architecture.usable_words(index)
        x, y = architecture.fanout(index)
        used = sum(tiles.values())
        levels.append(
            {
                "level": entry.level,
                "loops": [loop.model_dump(mode="json") for loop in entry.loops],
                "tile_words": tiles,
                "used_words": used,
                "capacity_words": usable,
                "fill": None if usable is None else used / max(1, usable),
                "fanout": {"x": x, "y": y},
                "instances": x * y,
                "instances_used": _used(entry.spatial),
                "used_along": {axis: _used(loop for loop in entry.spatial if loop.axis == axis) for axis in ("x", "y")},
                "below": _below(schedule, index),
            }
        )
    cycles = prod(loop.bound for entry in inner for loop in entry.temporal)
    if schedule.remainders:
        from cosa.analytical.cut import CutNest

        cycles = CutNest(layer, schedule.nest).compute_cycles
    return {
        "kind": "schedule_view",
        "schema_version": 1,
        "layer": layer.model_dump(mode="json"),
        "padded": dict(schedule.padded),
        "remainders": schedule.remainders,
        "architecture": {"name": architecture.name, "hash": schedule.architecture_hash, "macs": architecture.macs},
        "levels": levels,
        "totals": {
            "macs": layer.macs,
            "padding_macs": schedule.padding_macs,
            "compute_cycles": cycles,
            "utilisation": layer.macs / (cycles * architecture.macs),
        },
        "violations": [str(violation) for violation in violations(computed, architecture, schedule.nest)],
        "provenance": schedule.provenance.model_dump(mode="json"),
        "timing": schedule.timing.model_dump(mode="json") if schedule.timing else None,
    }


def _below(schedule: Schedule, index: int) -> str:
    if schedule.architecture.levels[index].fanout == "mesh":
        return "PEs"
    return schedule.innermost_first[index - 1].level if index else "MACs"


def _used(loops: Iterable[Loop]) -> int:
    return prod(loop.bound for loop in loops)


def compact(schedule: Schedule) -> list[str]:
    """The nest, one line a level: temporal loops, then ``|`` and the spatial loops with their axis."""
    width = min(24, max(len(printable(entry.level)) for entry in schedule.nest))
    lines = []
    for entry in schedule.nest:
        temporal = " ".join(f"{loop.dim}{loop.bound}" for loop in entry.temporal if loop.bound > 1) or "-"
        spatial = " ".join(f"{loop.dim}{loop.bound}({loop.axis})" for loop in entry.spatial if loop.bound > 1)
        head = f"{printable(entry.level, 24):{width}}  "
        lines += _wrapped(head + temporal + (f" | {spatial}" if spatial else ""), indent=width + 2)
    return lines


def provenance_line(view: dict[str, Any]) -> str:
    """Who made the schedule, how good its maker says it is, and how long that took."""
    made, timing = Provenance.model_validate_json(json.dumps(view["provenance"])), view["timing"]
    parts = [f"{made.made.text}, version {made.version}"]
    if made.solver_status:
        parts.append(made.solver_status + (f" by {made.solver}" if made.solver else ""))
    if timing:
        parts.append(f"{timing['total_seconds']:.2f} s")
    return printable(", ".join(parts))


def search_line(view: dict[str, Any]) -> str | None:
    """What a search did; None for a program."""
    found = view["provenance"]["search"]
    if found is None:
        return None
    valid = f"{found['samples_valid']:,} of {found['samples_drawn']:,} samples valid"
    stopped = found["stopped_by"].replace("_", " ")
    return f"{valid}, {found['evaluations']:,} evaluated, stopped by {stopped}"


def render(view: dict[str, Any]) -> list[Text]:
    """Lines to print, none wider than `WIDTH` columns."""
    from rich.text import Text

    layer = Layer.from_data(view["layer"])
    architecture = view["architecture"]
    title = f"{printable(layer.name, 40)} on {printable(architecture['name'], 34)}"
    lines = [Text(title, "bold"), *_texts(layer_line(layer)), Text()]
    for depth, level in enumerate(view["levels"]):
        lines.append(_head(level))
        lines += [Text("  " + line, "dim") for line in _wrapped("keeps " + _tiles(level), width=WIDTH - 2)]
        # Each level's loops stand a little further in, so that the eye sees what is inside what.
        indent = " " * min(2 + 2 * depth, 16)
        loops = [loop for loop in level["loops"] if loop["bound"] > 1]
        for loop in loops:
            if loop["kind"] == "temporal":
                lines.append(Text(f"{indent}for {loop['dim']} in 0..{loop['bound']}", "cyan"))
        lines += _spatial(level, indent, [loop for loop in loops if loop["kind"] == "spatial"])
    totals = view["totals"]
    lines += [
        Text(),
        Text(f"MACs            {totals['macs']:,}"),
        *(
            _texts(f"padded          {padding_line(layer, view['padded'], view['remainders'])}", indent=16)
            if view["padded"]
            else []
        ),
        Text(f"compute cycles  {totals['compute_cycles']:,}"),
        Text(f"utilisation     {totals['utilisation']:.1%} of {architecture['macs']:,} MAC units"),
        *_texts(f"made by         {provenance_line(view)}", indent=16),
    ]
    if (searched := search_line(view)) is not None:
        lines += _texts(f"search          {searched}", indent=16)
    for note in view["provenance"]["notes"]:
        lines += _texts(f"note            {printable(note)}", indent=16)
    for violation in view["violations"]:
        lines += [Text(line, "bold red") for line in _wrapped(f"does not fit    {printable(violation)}", indent=16)]
    return lines


def text(view: dict[str, Any]) -> str:
    """`render` as text for standard output: coloured in a terminal, plain elsewhere and where NO_COLOR is set."""
    from rich.console import Console

    console = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
    with console.capture() as capture:
        for line in render(view):
            console.print(line)
    return capture.get()


def summary(schedule: Schedule, network: str | None = None) -> list[str]:
    """A schedule in a few lines: layer, architecture, provenance, compute cycles, notes, and the compact nest."""
    view = describe(schedule)
    layer, architecture, totals = schedule.layer, schedule.architecture, view["totals"]
    name = printable(f"{network} {layer.name}" if network else layer.name, 60)
    cycles, share, units = totals["compute_cycles"], totals["utilisation"], f"{architecture.macs:,}"
    mesh = f"{architecture.noc.mesh} PEs, " if architecture.noc else ""
    lines = [
        f"layer         {name}: {layer_line(layer)}",
        *([f"padded        {padding_line(layer, schedule.padded, schedule.remainders)}"] if schedule.padded else []),
        f"architecture  {printable(architecture.name, 34)}: {mesh}{units} MAC units",
        f"made by       {provenance_line(view)}",
        *([f"search        {searched}"] if (searched := search_line(view)) is not None else []),
        f"compute       {cycles:,} cycles, {share:.1%} of the MAC units busy",
        *(f"note          {printable(note)}" for note in schedule.provenance.notes),
    ]
    wrapped = [part for line in lines for part in _wrapped(line, indent=14)]
    return [*wrapped, "", *compact(schedule)]


def _head(level: dict[str, Any]) -> Text:
    """Name at the left; bar, share and words of the buffer from `_COLUMN` on."""
    from rich.text import Text

    name = (f"{printable(level['level'], _COLUMN - 1):{_COLUMN}}", "bold")
    used, capacity, fill = level["used_words"], level["capacity_words"], level["fill"]
    if capacity is None:
        return Text.assemble(name, f"{used:,} words, unbounded")
    full = min(_BAR, round(fill * _BAR)) or (1 if used else 0)
    bar = (f"[{'#' * full}{'.' * (_BAR - full)}]", "bold red" if fill > 1 else "green")
    return Text.assemble(name, bar, f" {_percent(fill):>7}  {used:,} / {capacity:,}")


def _percent(fill: float) -> str:
    return f"{fill:.1%}" if fill < 100 else ">9999%"


def _tiles(level: dict[str, Any]) -> str:
    return ", ".join(f"{tensor} {words:,}" for tensor, words in level["tile_words"].items()) or "nothing"


def _spatial(level: dict[str, Any], indent: str, loops: list[dict[str, Any]]) -> list[Text]:
    """Spatial loops at the left, instances used of the fan-out at the right; nothing where there is no fan-out."""
    if level["instances"] == 1 and not loops:
        return []
    from rich.text import Text

    used = f"{level['instances_used']:,} of {level['instances']:,} {printable(level['below'], 24)}"
    if level["fanout"]["y"] > 1 and not any(loop["axis"] == "row_major" for loop in loops):
        used += f" ({level['used_along']['x']} of {level['fanout']['x']} x, "
        used += f"{level['used_along']['y']} of {level['fanout']['y']} y)"
    lines = []
    if loops:
        left = indent + "spatial " + ", ".join(f"{loop['dim']}{loop['bound']} on {loop['axis']}" for loop in loops)
        lines = _wrapped(left, indent=len(indent) + 8)
    if lines and len(beside := f"{lines[-1]:{_COLUMN - 2}}  {used}") <= WIDTH:
        lines[-1] = beside
    else:
        lines.append(f"{indent}uses {used}")
    return [Text(line, "magenta") for line in lines]


def _wrapped(text: str, indent: int = 0, width: int = WIDTH) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=" " * indent, drop_whitespace=True, break_on_hyphens=False)


def _texts(text: str, indent: int = 0) -> list[Text]:
    from rich.text import Text

    return [Text(line) for line in _wrapped(text, indent)]
