"""The command line ``dram``: replay of request traces, and the devices there are.

Exit codes: 0 fine, 1 out of memory, 2 bad input, 130 interrupted. Whatever a user gets wrong ends in one line on
standard error. Heavy imports stand inside the commands, so that the process starts quickly.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cosa.common.terminal import application, out, out_json, run
from dram.errors import DramConfigError
from dram.policies import packaged

if TYPE_CHECKING:
    from dram.config import DramConfig
    from dram.replay import Served

app = application("dram", "Replays request traces on cycle-exact DRAM controllers.")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    return run(app, "dram", argv)


def _complete_devices() -> list[str]:
    from dram.devices import device_names

    return device_names()


@app.command("replay")
def replay_command(
    trace: Annotated[Path, typer.Option(metavar="FILE", help="Requests: CSV, or text of any form read; .gz too.")],
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="config.json of the reference measurements.")
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="Packaged device, device file, or .ini of DRAMsim3, YAML of Ramulator 2.",
            autocompletion=_complete_devices,
        ),
    ] = None,
    policy: Annotated[str | None, typer.Option(metavar="NAME", help=f"Controller: {', '.join(packaged())}.")] = None,
    mapping: Annotated[
        str | None, typer.Option(metavar="FIELDS", help="Address fields from the top, such as row:bank:column.")
    ] = None,
    ranks: Annotated[int | None, typer.Option(metavar="N", help="Ranks of a channel.")] = None,
    channels: Annotated[int | None, typer.Option(metavar="N", help="Channels.")] = None,
    width: Annotated[int | None, typer.Option(metavar="N", help="Most requests presented in a DRAM clock.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="CSV with the times of every request; .gz too."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Replay a trace: requests in order, as fast as they are accepted but not before their cycles."""
    from dram.reference_config import load_reference
    from dram.replay import Replay
    from dram.show import memory_size
    from dram.summary import summary, text
    from dram.traces import read_trace

    changes = {"policy": policy, "mapping": mapping, "ranks": ranks, "channels": channels}
    if (config is None) == (device is None):
        raise DramConfigError("--config, --device: exactly one is needed; allowed: --config FILE or --device NAME|FILE")
    write_done, tail = "data", 0
    if config is not None:
        given = [f"--{name}" for name, value in changes.items() if value is not None]
        if given:
            raise DramConfigError(f"{given[0]}: not with --config; allowed: with --device")
        setup = load_reference(config)
        chosen, write_done, tail = setup.config, setup.config.controller.write_done, setup.tail_clocks
        width = setup.width if width is None else width
    else:
        chosen = _device(str(device), policy, mapping, ranks, channels)
    if width is not None and not 1 <= width <= 1024:
        raise DramConfigError(f"--width: out of range (found {width}); allowed: 1 to 1024")
    if not trace.is_file():
        raise DramConfigError(f"{trace}: no such file")
    if output is not None and output.exists() and output.samefile(trace):
        raise DramConfigError(f"--output: would overwrite the trace (found {str(output)!r}); allowed: another file")
    run = Replay(chosen, width or 1, tail)
    served = run.run(read_trace(trace, chosen))
    if output is None:
        for _ in served:
            pass
    else:
        _write(output, _lines(served, write_done))
    if run.requests == 0:
        raise DramConfigError(f"{trace}: has no requests; allowed: at least one")
    if run.beyond_capacity:
        wrapped = f"the first one, {run.first_beyond:#x}, is {run.first_beyond % chosen.capacity_bytes:#x}"
        print(
            f"warning: {trace}: {run.beyond_capacity:,} of {run.requests:,} requests are beyond the capacity of "
            f"{memory_size(chosen.capacity_bytes)} (addresses below {chosen.capacity_bytes:#x}); they wrap: {wrapped}",
            file=sys.stderr,
        )
    figures = summary(run)
    out(json.dumps(figures, indent=2) + "\n" if as_json else text(figures))


def _device(name: str, policy: str | None, mapping: str | None, ranks: int | None, channels: int | None) -> DramConfig:
    from dram.devices import parse_device
    from dram.policy import controllers

    data = _loaded(name).model_dump(mode="json")
    if policy is not None:
        if policy not in controllers():
            raise DramConfigError(f"--policy: unknown (found {policy!r}); allowed: {', '.join(controllers())}")
        if data["controller"]["policy"] != policy:
            data["controller"] = {"policy": policy}
    if mapping is not None:
        data["address_mapping"] = mapping
    for field, value in (("ranks", ranks), ("channels", channels)):
        if value is not None:
            data["organization"][field] = value
    return parse_device(data, name)


def _loaded(name: str) -> DramConfig:
    """A device, with notes on standard error."""
    from dram.devices import load_device

    notes: list[str] = []
    config = load_device(name, notes)
    for note in notes:
        print(f"note: {name}: {note}", file=sys.stderr)
    return config


def _lines(served: Iterable[Served], write_done: str) -> Iterator[str]:
    """Lines of the completions; a simulator may call a write completed with its command."""
    yield "id,cycle,op,addr,accepted,cas,completed\n"
    for part in served:
        columns = (
            part.requests.cycles, part.requests.ops, part.requests.addresses, part.accepted, part.cas, part.completed,
        )  # fmt: skip
        rows = zip(*(column.tolist() for column in columns), strict=True)
        lines = []
        for number, (cycle, op, address, accepted, cas, completed) in enumerate(rows, start=part.first):
            if op and write_done == "command":
                completed = cas if cas >= 0 else accepted
            lines.append(
                f"{number},{cycle},{'W' if op else 'R'},{address:#x},{accepted},{cas if cas >= 0 else ''},{completed}\n"
            )
        yield "".join(lines)


def _write(path: Path, lines: Iterable[str]) -> None:
    """Write a file, gzip if its name says so, that appears under its name once it is whole."""
    import gzip

    part = path.with_name(path.name + ".part")
    try:
        with (gzip.open if path.suffix == ".gz" else open)(part, "wt", encoding="utf-8", newline="") as file:
            file.writelines(lines)
        part.replace(path)
    except OSError as error:
        raise DramConfigError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)


@app.command("devices")
def devices_command(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME|FILE]", help="One device.", autocompletion=_complete_devices)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List the packaged devices, or show every parameter of one with its meaning."""
    from dram.devices import device_names, load_device
    from dram.show import device_text, devices_text

    if name is None:
        configs = [load_device(each) for each in device_names()]
        out(json.dumps([c.name for c in configs]) + "\n" if as_json else devices_text(configs))
        return
    config = _loaded(name)
    if as_json:
        out_json(config.model_dump(mode="json"))
        return
    out(device_text(config))
    from dram.advice import mapping_advice

    advice = mapping_advice(config)
    if advice is not None:
        print(f"note: {advice}", file=sys.stderr)


if __name__ == "__main__":
    raise SystemExit(main())
