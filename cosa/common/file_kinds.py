"""What kind of file a text is, by its look: to tell the user of a wrong one what it is, and which command reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from cosa.common.errors import InputError

_LOOKED_AT = 20_000  # characters; a trace may be long


@dataclass(frozen=True)
class FileKind:
    """A kind of file; `reader` is the command that reads it, None if none does."""

    name: str
    reader: str | None
    looks: Callable[[str], bool]


def _all(*patterns: str) -> Callable[[str], bool]:
    """Texts in which each of the patterns is found; ``^`` begins a line."""
    compiled = [re.compile(pattern, re.MULTILINE) for pattern in patterns]
    return lambda text: all(pattern.search(text) for pattern in compiled)


def _noxim_table(text: str) -> bool:
    """Rows of source, destination and an injection rate; % comments."""
    rows = [line.partition("%")[0].split() for line in text.splitlines()]
    rows = [row for row in rows if row]
    row = re.compile(r"\d+ \d+( \d*\.\d+){1,2}( \d+){0,3}")
    return bool(rows) and all(row.fullmatch(" ".join(cells)) for cells in rows)


_TRACE_LINE = r"\A(?:[ \t]*(?:#.*)?\n)*[ \t]*"

KINDS: tuple[FileKind, ...] = (
    FileKind(
        "BookSim configuration", "nocsim traffic --booksim FILE", _all(r"^[ \t]*(topology|routing_function)\s*=[^;]+;")
    ),
    FileKind("Noxim traffic table", None, _noxim_table),
    FileKind("Noxim configuration", None, _all(r"^mesh_dim_x\s*:", r"^(buffer_depth|routing_algorithm)\s*:")),
    FileKind("Garnet or gem5 configuration", None, _all(r"^\[system\.", r"^type=")),
    FileKind("MAESTRO model", None, _all(r"^[ \t]*Network\s+\S+\s*\{", r"^[ \t]*Layer\s+\S+\s*\{")),
    FileKind("MAESTRO hardware file", None, _all(r"^[ \t]*num_pes\s*:", r"^[ \t]*(l1|l2)_size\w*\s*:")),
    FileKind("ZigZag workload", None, _all(r"^[ \t]*-?\s*operator_type\s*:", r"^[ \t]*-?\s*(loop_dims|equation)\s*:")),
    FileKind("ZigZag accelerator", None, _all(r"^[ \t]*operational_array\s*:", r"^[ \t]*memories\s*:")),
    FileKind("DRAMsim3 configuration", "dram replay --device FILE", _all(r"^\[dram_structure\]")),
    FileKind("DRAMSim2 device file", None, _all(r"^NUM_BANKS\s*=", r"^(tRCD|tRAS)\s*=")),
    FileKind("DRAMSim2 system file", None, _all(r"^NUM_CHANS\s*=", r"^TRANS_QUEUE_DEPTH\s*=")),
    FileKind("Ramulator 2 configuration", "dram replay --device FILE", _all(r"^MemorySystem\s*:", r"^\s+DRAM\s*:")),
    FileKind("Ramulator 1 configuration", None, _all(r"^[ \t]*standard\s*=", r"^[ \t]*(channels|ranks|speed|org)\s*=")),
    FileKind("DRAMSys configuration", None, _all(r'"(mcconfig|memspec)"\s*:')),
    FileKind("SCALE-Sim configuration", "cosa convert FILE", _all(r"(?i)^\[architecture_presets\]")),
    FileKind(
        "SCALE-Sim topology", "cosa convert FILE --to layers", _all(r"(?i)\A[ \t]*Layer[^\n,\t]*[,\t]\s*(IFMAP|M\b)")
    ),
    FileKind(
        "Timeloop file",
        "cosa convert FILE",
        _all(r"^(problem|architecture|mapping|mapper|mapspace|mapspace_constraints|architecture_constraints)\s*:"),
    ),
    FileKind("packets file", "nocsim replay-packets FILE", _all(r"\A(?=[^\n]*\bdsts\b)[^\n]*\binject_cycle\b")),
    FileKind("list of transactions", "nocsim replay-transactions FILE", _all(r"\A(tc|tc_id)\s*,\s*actor")),
    FileKind("DRAM device", "dram replay --device FILE", _all(r"^organization\s*:", r"^timing\s*:")),
    FileKind(
        "request trace of a DRAM",
        "dram replay --trace FILE",
        _all(
            _TRACE_LINE + r"(?:(?:LD|ST|R|W)\s+\w+[\w,]*(?:\s+\d+)?\s*$"
            r"|(?:0x)?[0-9a-fA-F]+\s+(?:R|W|READ|WRITE|IFETCH|P_\w+)\b"
            r"|\d+:\s*(?:\(\d+\)\s*)?(?:read|write)\b)"
        ),
    ),
    *(
        FileKind(f"{kind} of this package", reader, _all(rf'^[ \t]*"?kind"?\s*:\s*"?{kind}\b'))
        for kind, reader in (
            ("layer", "cosa schedule --layer-file FILE"),
            ("architecture", "cosa schedule --arch FILE"),
            ("schedule", "nocsim run --schedule FILE"),
        )
    ),
)
"""The kinds known, the more special ones first."""


def kind_of(text: str) -> FileKind | None:
    """The first kind that a text looks like."""
    start = text[:_LOOKED_AT].removeprefix("\ufeff")
    return next((kind for kind in KINDS if kind.looks(start)), None)


def another_kind(text: str, source: str, own: Collection[str], allowed: str) -> InputError | None:
    """The error for a text of a kind that is none of `own` (names), or None if it may be one of them, or is unknown.

    Parameters
    ----------
    allowed: what is read in its place.
    """
    kind = kind_of(text)
    if kind is None or kind.name in own:
        return None
    article = "an" if kind.name[0] in "aeiou" else "a"
    read = f"which `{kind.reader}` reads" if kind.reader else "which is not read"
    return InputError(f"this is {article} {kind.name}, {read}", source=source, allowed=allowed)
