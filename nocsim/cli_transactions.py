"""Commands about transactions of the published network simulator."""

from __future__ import annotations

from typing import Annotated

import typer

from cosa.terminal import check_output, out


def register(app: typer.Typer) -> None:
    """Add the commands to an application."""
    app.command("replay-transactions")(replay_transactions_command)


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
    from cosa.arch import parse_mesh
    from cosa.errors import InputError, nearest_of
    from nocsim.replay_transactions import MEMORIES, replay_transactions
    from nocsim.transactions import read_transactions, write_times

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
