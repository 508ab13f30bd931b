"""What the command lines share: running a typer application, one-line errors, whole writes to standard output.

Exit codes: 0 fine, 1 infeasible or without an answer, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import typer

from cosa.common.errors import CosaError, InputError


def application(name: str, text: str) -> typer.Typer:
    """A typer application whose bare call prints its help, with `--version`; errors stay plain lines."""
    app = typer.Typer(
        name=name,
        help=text,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    def show_version(wanted: bool) -> None:
        if wanted:
            from cosa.common.version import version

            out(f"{name} {version()}\n")
            raise typer.Exit

    @app.callback(invoke_without_command=True)
    def root(
        context: typer.Context,
        version: bool = typer.Option(
            False, "--version", callback=show_version, is_eager=True, help="Print the version and exit."
        ),
    ) -> None:
        if context.invoked_subcommand is None:
            out(context.get_help() + "\n")

    return app


def run(app: typer.Typer, name: str, argv: Sequence[str] | None) -> int:
    """Run one command of an application and return its exit code."""
    from typer.main import get_command

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A name that the terminal's encoding lacks must not end a command.
            stream.reconfigure(errors="backslashreplace")
    with _interrupts() as interrupted:
        try:
            code = get_command(app).main(args=argv, prog_name=name, standalone_mode=False)
        except CosaError as error:
            return fail(str(error), error.exit_code)
        except (KeyboardInterrupt, typer.Abort):
            code = 130
        except MemoryError:
            return fail("out of memory", 1)
        except Exception as error:
            # Some libraries turn Ctrl-C into an error of their own.
            if interrupted:
                code = 130
            elif hasattr(error, "format_message"):
                return fail(error.format_message(), 2)  # typer's own usage errors
            else:
                raise
    if code == 130:
        fail("interrupted", 130)
        if any(thread.name == "highs" for thread in threading.enumerate()):
            # Ctrl-C came twice and left the solver working: an orderly end would abort on its threads.
            os._exit(130)
    return code if isinstance(code, int) else 0


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """The Ctrl-Cs that came meanwhile; each raises KeyboardInterrupt as usual."""
    seen: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler or (
        threading.current_thread() is not threading.main_thread()
    ):
        yield seen
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def fail(message: str, code: int) -> int:
    """Print one line to standard error; returns `code`."""
    line = " ".join(message.split())
    print("error: " + "".join(c if c.isprintable() else "?" for c in line), file=sys.stderr)
    return code


def out(text: str) -> None:
    """Write to standard output, whole and at once."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has seen enough; nothing may be left that Python would flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit from None
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise InputError(f"cannot be written: {error.strerror}", source="standard output") from None


def out_json(data: Any) -> None:
    """Write data as JSON; ASCII only, so that the bytes do not depend on the terminal's encoding."""
    out(json.dumps(data, indent=2) + "\n")


def out_lines(lines: list[str]) -> None:
    """Write lines."""
    out("".join(line + "\n" for line in lines))


def check_outputs(outputs: Mapping[str, str | None], inputs: Mapping[str, str | None]) -> None:
    """As `check_output`, of several by flag (None: not asked for; ``-``: standard output), no two of which are one."""
    taken: dict[str, str] = {}
    for option, output in outputs.items():
        if output is None:
            continue
        if output != "-":
            check_output(option, output, inputs)
        other = taken.setdefault(output if output == "-" else str(Path(output).resolve()), option)
        if other != option:
            raise InputError(f"also what {other} writes to", source=option, value=output, allowed="another file")


def check_output(option: str, output: str, inputs: Mapping[str, str | None]) -> None:
    """What would stop a file from being written stops the command before it works; `inputs` are files it reads.

    Raises
    ------
    InputError: the file can't be written, or is one of the inputs.
    """
    from cosa.common.files import require_writable

    if not output:
        raise InputError("empty", source=option, value=output, allowed="the name of a file")
    require_writable(output)
    for name, read in inputs.items():
        if read and Path(read).is_file() and Path(output).is_file() and Path(read).samefile(output):
            raise InputError(f"would overwrite the file of {name}", source=option, value=output, allowed="another file")
