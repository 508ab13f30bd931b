"""Commands about transactions of the published network simulator."""

from __future__ import annotations

from typing import Annotated

import typer

from cosa.common.terminal import check_output, out


def register(app: typer.Typer) -> None:
    """Add the commands to an application."""
    app.command("replay-transactions")(replay_transactions_command)
    app.command("transactions")(transactions_command)


def replay_transactions_command(
    transactions: Annotated[
        str, typer.Argument(metavar="FILE", help="CSV of transactions, ours or the published layout.")
    ],
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="CSV with the times measured.")],
    mesh: Annotated[str, typer.Option(metavar="COLUMNSxROWS", help="Mesh of routers.")] = "4x5",
    memory: Annotated[
        str, typer.Option(metavar="none|dramsim2", help="DRAM behind its endpoint: never waits, or as published.")
    ] = "none",
) -> None:
    """Replay transactions exactly as the network simulator published with CoSA runs them."""
    from cosa.common.errors import InputError, nearest_of
    from cosa.model.noc import parse_mesh
    from nocsim.published.replay import MEMORIES, replay_transactions
    from nocsim.published.transactions import read_transactions, write_times

    columns, rows = parse_mesh(mesh, source="--mesh")
    if memory not in MEMORIES:
        nearest = nearest_of(memory, MEMORIES)
        raise InputError(
            "no such memory", source="--memory", value=memory, allowed=", ".join(MEMORIES), nearest=nearest
        )
    check_output("-o", output, {"FILE": transactions})
    found = read_transactions(transactions)
    replay = replay_transactions(found, columns, rows, memory)
    write_times(output, found, replay.times)
    out(f"total cycles {replay.total_cycles}\n{len(found)} transactions written to {output}\n")


DATAFLOWS = ("cosa2021",)


def transactions_command(
    schedule: Annotated[str, typer.Option(metavar="FILE", help="Schedule file.")],
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="CSV of transactions to write.")],
    dataflow: Annotated[
        str, typer.Option(metavar="cosa2021", help="Whose rules turn the schedule into transactions.")
    ] = "cosa2021",
    mesh: Annotated[
        str | None, typer.Option(metavar="COLUMNSxROWS", help="Mesh of PEs instead of the architecture's.")
    ] = None,
    arch: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="Architecture instead of the one in the schedule.")
    ] = None,
) -> None:
    """Write a schedule as the transactions that the published network simulator would run."""
    from cosa.common.errors import InputError
    from cosa.common.files import write_atomic
    from cosa.model.validity import require_valid
    from nocsim.api import resolve
    from nocsim.published.generator import PublishedDataflow
    from nocsim.published.transactions import transaction_lines

    if dataflow not in DATAFLOWS:
        raise InputError("no such dataflow", source="--dataflow", value=dataflow, allowed=", ".join(DATAFLOWS))
    check_output("-o", output, {"--schedule": schedule, "--arch": arch})
    found = resolve(schedule, arch, mesh)
    require_valid(found, "transactions")
    lines = list(transaction_lines(PublishedDataflow(found).transactions()))
    write_atomic(output, "\n".join(lines) + "\n")
    out(f"{len(lines) - 1} transactions written to {output}\n")
