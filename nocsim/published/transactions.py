"""Transactions of the published network simulator: reading and writing their lists.

A transaction is a unicast, a multicast or a compute of one endpoint, with the transactions it waits for. Two layouts
are read: the columns ``tc, actor, op, size, dests, deps`` (others are kept), and the published
``tc_id,actor_id,op,size,src,dest,dep`` with ``op`` 0 unicast, 1 multicast, 2 compute and ``#`` comment lines.
`size` counts packets, or cycles of a compute.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from cosa.common.errors import InputError
from cosa.common.files import read_text, write_atomic

Operation = Literal["unicast", "multicast", "compute"]
_NUMBERED: tuple[Operation, ...] = ("unicast", "multicast", "compute")

MEASURED = (
    "start",
    "end",
    "dest_ends",
    "dram_read_start",
    "dram_read_end",
    "dram_write_start",
    "dram_write_end",
)
"""Columns of an output file that a run fills."""

OUTPUT_COLUMNS = ("tc", "actor", "op", "size", "dests", "deps", "class", "mem_step", "noc_step", *MEASURED)


@dataclass(frozen=True)
class Transaction:
    """One transaction; `labels` are further columns that only describe it."""

    number: int
    actor: int
    operation: Operation
    size: int
    destinations: tuple[int, ...] = ()
    dependencies: tuple[int, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()


@dataclass
class Times:
    """What a run measures of a transaction; None for what does not apply."""

    start: int | None = None
    end: int | None = None
    destination_ends: dict[int, int] | None = None
    dram_read_start: int | None = None
    dram_read_end: int | None = None
    dram_write_start: int | None = None
    dram_write_end: int | None = None


def read_transactions(path: str | Path) -> list[Transaction]:
    """Transactions of a file, in its order (which is each actor's order of priority).

    Raises
    ------
    InputError: with file, line and column.
    """
    lines = [
        (number, line)
        for number, line in enumerate(read_text(path).splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not lines:
        raise InputError("no transactions", source=str(path))
    head = [name.strip() for name in lines[0][1].split(",")]
    published = ["tc_id", "actor_id", "op", "size", "src", "dest", "dep"]
    if head[0] == "tc":
        missing = [name for name in OUTPUT_COLUMNS[:6] if name not in head]
        if missing:
            raise InputError("missing column", source=f"{path}:{lines[0][0]}", value=missing[0], allowed=str(head))
        body = lines[1:]
    elif head[0] == "tc_id" or head[0].isdigit():
        body = lines[1:] if head[0] == "tc_id" else lines
        head = published
    else:
        raise InputError("unknown columns", source=f"{path}:{lines[0][0]}", value=head, allowed=str(published))
    found = [
        _transaction(f"{path}:{number}", dict(zip(head, row, strict=False)))
        for (number, _), row in zip(body, csv.reader(line for _, line in body), strict=True)
    ]
    known = {transaction.number for transaction in found}
    if len(known) != len(found):
        raise InputError("a transaction number stands twice", source=str(path), path="tc")
    for transaction in found:
        unknown = [number for number in transaction.dependencies if number not in known]
        if unknown:
            raise InputError(
                f"transaction {transaction.number} depends on one that is not there",
                source=str(path),
                path="deps",
                value=unknown[0],
            )
    return found


def _transaction(source: str, row: dict[str, str]) -> Transaction:
    ours = "tc" in row
    operation = row["op"].strip()
    if operation.isdigit() and int(operation) < len(_NUMBERED):
        operation = _NUMBERED[int(operation)]
    if operation not in _NUMBERED:
        raise InputError("no such operation", source=source, path="op", value=operation, allowed=", ".join(_NUMBERED))
    destinations = _integers(source, "dests" if ours else "dest", row)
    transaction = Transaction(
        number=_integer(source, "tc" if ours else "tc_id", row),
        actor=_integer(source, "actor" if ours else "actor_id", row),
        operation=operation,
        size=_integer(source, "size", row),
        destinations=() if operation == "compute" else destinations,
        dependencies=_integers(source, "deps" if ours else "dep", row),
        labels=tuple((name, row[name]) for name in ("class", "mem_step", "noc_step") if name in row),
    )
    count = len(transaction.destinations)
    if transaction.size < 1:
        raise InputError("too small", source=source, path="size", value=transaction.size, allowed=">= 1")
    if operation != "compute" and (count < 1 or (operation == "unicast" and count != 1)):
        raise InputError(
            f"a {operation} with {count} destinations",
            source=source,
            path="dests",
            allowed="one; several for multicast",
        )
    return transaction


def _integer(source: str, name: str, row: dict[str, str]) -> int:
    numbers = _integers(source, name, row)
    if len(numbers) != 1:
        raise InputError("not a number", source=source, path=name, value=row.get(name), allowed="a whole number")
    return numbers[0]


def _integers(source: str, name: str, row: dict[str, str]) -> tuple[int, ...]:
    text = row.get(name) or ""
    try:
        return tuple(int(part) for part in text.replace(";", " ").split())
    except ValueError:
        raise InputError("not numbers", source=source, path=name, value=text, allowed="whole numbers") from None


def transaction_lines(transactions: Iterable[Transaction]) -> Iterator[str]:
    """Lines of a list without measurements, header first, one after another."""
    yield ",".join(OUTPUT_COLUMNS[:9])
    for transaction in transactions:
        labels = dict(transaction.labels)
        fields = [
            transaction.number,
            transaction.actor,
            transaction.operation,
            transaction.size,
            " ".join(map(str, transaction.destinations)),
            " ".join(map(str, transaction.dependencies)),
            *(labels.get(name, "") for name in ("class", "mem_step", "noc_step")),
        ]
        yield ",".join(map(str, fields))


def write_times(path: str | Path, transactions: Iterable[Transaction], times: dict[int, Times]) -> None:
    """Write transactions with what a run has measured, in the order given."""
    write_atomic(path, "".join(line + "\n" for line in time_lines(transactions, times)))


def time_lines(transactions: Iterable[Transaction], times: dict[int, Times]) -> list[str]:
    """Lines of an output file, header first."""
    transactions = list(transactions)
    lines = [",".join(OUTPUT_COLUMNS)]
    for transaction, inputs in zip(transactions, islice(transaction_lines(transactions), 1, None), strict=True):
        measured = times[transaction.number]
        ends = measured.destination_ends or {}
        several = transaction.operation == "multicast" and len(transaction.destinations) > 1
        fields = [
            inputs,
            measured.start,
            measured.end,
            " ".join(f"{dst}:{ends[dst]}" for dst in transaction.destinations if dst in ends) if several else "",
            measured.dram_read_start,
            measured.dram_read_end,
            measured.dram_write_start,
            measured.dram_write_end,
        ]
        lines.append(",".join("" if field is None else str(field) for field in fields))
    return lines
