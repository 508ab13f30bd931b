"""Re-reading a command log: does any pair of commands break a row of the constraint table?

Independent of kernels and policies: it knows the table and the log, and keeps the times of past commands.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dram.constraints import Constraint

LoggedCommand = Mapping[str, int | str]

#: names in Ramulator's logs
_ALIASES = {"PREpb": "PRE", "PREab": "PREA", "REFab": "REF"}
_SCOPE_KEYS = {
    "channel": ("channel",),
    "rank": ("channel", "rank"),
    "group": ("channel", "rank", "bankgroup"),
    "bank": ("channel", "rank", "bankgroup", "bank"),
}


@dataclass(frozen=True)
class Violation:
    """A command came too early after an earlier one of the same scope."""

    constraint: Constraint
    earlier_clock: int
    clock: int
    position: int

    def __str__(self) -> str:
        row = self.constraint
        return (
            f"command {self.position}: {row.later} in clock {self.clock}, {row.earlier} in clock "
            f"{self.earlier_clock}; at least {row.delay_clocks} apart ({row.name}, {row.scope})"
        )


def violations(
    table: Sequence[Constraint], log: Iterable[LoggedCommand], commands_per_clock: int = 1
) -> list[Violation | str]:
    """Everything a log breaks: rows of the table, and the width of the command bus.

    Args:
        table: constraints.
        log: commands in order, as :meth:`dram.system.DramSystem.command_log` gives them.
        commands_per_clock: commands a channel may send in a clock.
    """
    by_later: dict[str, list[int]] = defaultdict(list)
    by_earlier: dict[str, list[int]] = defaultdict(list)
    for number, row in enumerate(table):
        by_later[row.later].append(number)
        by_earlier[row.earlier].append(number)
    past: dict[tuple[object, ...], deque[int]] = {}
    others: dict[tuple[object, ...], dict[object, int]] = defaultdict(dict)
    bus: dict[object, tuple[int, int]] = {}
    found: list[Violation | str] = []
    for position, entry in enumerate(log):
        command = _ALIASES.get(str(entry["cmd"]), str(entry["cmd"]))
        clock = int(entry["cycle"])
        last, count = bus.get(entry["channel"], (-1, 0))
        bus[entry["channel"]] = (clock, count + 1 if clock == last else 1)
        if clock < last or (clock == last and count >= commands_per_clock):
            found.append(f"command {position}: more than {commands_per_clock} in clock {clock} of a channel")
        for number in by_later[command]:
            row = table[number]
            if row.scope == "other ranks":
                ranks = others[number, entry["channel"]]
                since = max((at for rank, at in ranks.items() if rank != entry["rank"]), default=None)
            else:
                times = past.get(_key(number, row.scope, entry))
                since = times[0] if times is not None and len(times) == row.window else None
            if since is not None and clock - since < row.delay_clocks:
                found.append(Violation(row, since, clock, position))
        for number in by_earlier[command]:
            row = table[number]
            if row.scope == "other ranks":
                others[number, entry["channel"]][entry["rank"]] = clock
            else:
                past.setdefault(_key(number, row.scope, entry), deque(maxlen=row.window)).append(clock)
    return found


def _key(number: int, scope: str, entry: LoggedCommand) -> tuple[object, ...]:
    return (number, *(entry.get(name) for name in _SCOPE_KEYS[scope]))


def row_errors(log: Iterable[LoggedCommand]) -> list[str]:
    """Column commands to a row that is not open, ACT to an open bank, REF to a rank with an open bank."""
    open_rows: dict[tuple[object, ...], object] = {}
    found = []
    for position, entry in enumerate(log):
        command = _ALIASES.get(str(entry["cmd"]), str(entry["cmd"]))
        rank = (entry["channel"], entry["rank"])
        bank = (*rank, entry.get("bankgroup"), entry.get("bank"))
        if command == "ACT":
            if bank in open_rows:
                found.append(f"command {position}: ACT, but row {open_rows[bank]} is open")
            open_rows[bank] = entry["row"]
        elif command in ("RD", "WR", "RDA", "WRA"):
            if open_rows.get(bank) != entry["row"]:
                found.append(f"command {position}: {command} to row {entry['row']}, open is {open_rows.get(bank)}")
            if command in ("RDA", "WRA"):
                open_rows.pop(bank, None)
        elif command == "PRE":
            open_rows.pop(bank, None)
        elif command == "PREA":
            open_rows = {key: row for key, row in open_rows.items() if key[:2] != rank}
        elif command == "REF" and any(key[:2] == rank for key in open_rows):
            found.append(f"command {position}: REF, but a bank of the rank is open")
    return found
