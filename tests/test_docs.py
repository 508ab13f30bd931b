"""The documentation is true: its examples run, its links lead somewhere, no option and no field is left out.

Fenced blocks by their first word:

* ``console``: lines that start with ``$ `` are commands, run in order; ``# exit code N`` after one states its exit code
  (else 0). With a second word ``check`` the output must be what stands there.
* ``python``: run in order, in one namespace a page. A block ``text output`` that follows is what it printed.
* ``yaml``, ``python``, ``csv``, ``text`` after a line ``name.yaml:``, ``name.py:``, ``name.csv:`` or ``name.txt:``:
  written to that file.

One temporary folder a page, in which ``scripts`` and ``tests`` lead to the repository's. In expected output a line
``...`` stands for any lines, ``...`` within a line for any characters. A last word ``highs-1.16`` compares only with
that solver version: another one may pick another of several equally good schedules.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGE_NAMES = [str(page.relative_to(ROOT)) for page in PAGES]

_FENCE = re.compile(r"^```(.*)$")
_FILE = re.compile(r"^`?([\w.-]+\.(?:yaml|py|csv|txt))`?:$")
_EXIT = re.compile(r"^# exit code (\d+)$")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
_SHELL = set("|<>&;$`*\n")
PROGRAMS = ("cosa", "nocsim", "dram")
MOST_PICTURE_BYTES = 200_000


@dataclass(frozen=True)
class Block:
    """A fenced block: the words behind its fence, its lines, where it starts, the file named just before it."""

    words: tuple[str, ...]
    lines: tuple[str, ...]
    where: str
    file: str | None

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def is_compared(self) -> bool:
        if not {"check", "output"} & set(self.words):
            return False
        wanted = [word.removeprefix("highs-") for word in self.words if word.startswith("highs-")]
        return not wanted or highs_version().startswith(wanted[0] + ".")


@dataclass(frozen=True)
class Command:
    """A command of a console block with the output and exit code that the page shows."""

    line: str
    expected: tuple[str, ...]
    code: int


@cache
def highs_version() -> str:
    from importlib.metadata import version

    return version("highspy")


def blocks(page: Path) -> list[Block]:
    found: list[Block] = []
    words: tuple[str, ...] | None = None
    lines: list[str] = []
    start, file, before = 0, None, ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        fence = _FENCE.match(line)
        if fence is None:
            if words is not None:
                lines.append(line)
            elif line.strip():
                before = line
        elif words is None:
            named = _FILE.match(before)
            words, lines, start, file = tuple(fence[1].split()), [], number, named[1] if named else None
        else:
            found.append(Block(words, tuple(lines), f"{page.relative_to(ROOT)}:{start}", file))
            words, before = None, ""
    assert words is None, f"{page}: the block of line {start} has no end"
    return found


def commands(block: Block) -> Iterator[Command]:
    line, code = "", 0
    expected: list[str] = []
    for text in (*block.lines, "$ "):
        stated = _EXIT.match(text)
        if text.startswith("$ "):
            if line:
                yield Command(line, tuple(expected), code)
            line, expected, code = text[2:].strip(), [], 0
        elif stated:
            code = int(stated[1])
        else:
            expected.append(text)


def assert_output(expected: tuple[str, ...], found: str, where: str) -> None:
    parts = []
    for line in "\n".join(expected).strip("\n").split("\n"):
        line = line.rstrip()
        parts.append(r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n")
    plain = "".join(line.rstrip() + "\n" for line in found.strip("\n").split("\n"))
    assert re.fullmatch("".join(parts), plain), f"{where}: the page does not show what comes out:\n{plain}"


def home_of(program: str) -> Any:
    """The module of a command line."""
    (script,) = (one for one in entry_points(group="console_scripts") if one.name == program)
    return import_module(script.module)


def run_command(line: str) -> tuple[int, str]:
    """Exit code and everything printed. Plain commands of the package run in this process: it is quicker."""
    program, *arguments = shlex.split(line)
    if program in PROGRAMS and not _SHELL & set(line):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = home_of(program).main(arguments)
        return code, out.getvalue()
    ran = subprocess.run(["bash", "-c", line], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return ran.returncode, ran.stdout


@pytest.mark.parametrize("name", PAGE_NAMES)
def test_examples(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for variable, value in {"NO_COLOR": "1", "COLUMNS": "80", "TERM": "dumb"}.items():
        monkeypatch.setenv(variable, value)
    for folder in ("scripts", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    namespace: dict[str, Any] = {"__name__": "__docs__"}
    printed: str | None = None
    for block in blocks(ROOT / name):
        kind = block.words[0] if block.words else ""
        if kind in ("yaml", "python", "csv", "text") and block.file:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
        elif kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(block.text, block.where, "exec"), namespace)
            printed = out.getvalue()
        elif kind == "text" and "output" in block.words:
            assert printed is not None, f"{block.where}: no python block stands before this output"
            if block.is_compared():
                assert_output(block.lines, printed, block.where)
        elif kind == "console":
            for command in commands(block):
                code, found = run_command(command.line)
                assert code == command.code, f"{block.where}: {command.line}: exit code {code}\n{found}"
                if block.is_compared():
                    assert_output(command.expected, found, f"{block.where}: {command.line}")


def anchors(page: Path) -> set[str]:
    """Anchors of the headings of a page, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower().replace("`", "")).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", PAGE_NAMES)
def test_links(name: str) -> None:
    page = ROOT / name
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in _LINK.findall(text):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        other = (page.parent / path).resolve() if path else page
        assert other.exists(), f"{name}: {target} leads nowhere"
        assert not anchor or anchor in anchors(other), f"{name}: {target}: there is no such heading"


def test_pictures() -> None:
    """Every picture of a page is there, small, and described in words; every picture there is on a page."""
    shown = set()
    for page in PAGES:
        for words, target in _PICTURE.findall(page.read_text(encoding="utf-8")):
            picture = (page.parent / target).resolve()
            assert picture.stat().st_size < MOST_PICTURE_BYTES, f"{page}: {target} is large"
            assert len(words) > 20, f"{page}: {target} is not described"
            shown.add(picture)
    assert shown == set((ROOT / "docs" / "pictures").iterdir())


def test_every_page_is_on_the_map() -> None:
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / target.partition("#")[0]).resolve() for target in _LINK.findall(index.read_text())}
    missing = [name for page, name in zip(PAGES, PAGE_NAMES, strict=True) if page not in linked and page != index]
    assert not missing


def words_in_code(*names: str) -> set[str]:
    """What stands in backticks on the pages."""
    text = "\n".join((ROOT / "docs" / "reference" / f"{name}.md").read_text(encoding="utf-8") for name in names)
    return set(re.findall(r"`([^`\n]+)`", text))


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_option_is_described(program: str) -> None:
    from typer.main import get_command

    described = words_in_code("cli")
    group: Any = get_command(home_of(program).app)
    for name, command in {"": group, **group.commands}.items():
        if name:
            assert f"{program} {name}" in described
        for parameter in command.params:
            for option in (*parameter.opts, *parameter.secondary_opts):
                if option.startswith("-"):
                    assert any(re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", word) for word in described), (
                        f"{program} {name} {option}"
                    )


def models(root: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """A model and all models in its fields."""
    yield root
    left: list[Any] = [field.annotation for field in root.model_fields.values()]
    while left:
        part = left.pop()
        if isinstance(part, type) and issubclass(part, BaseModel):
            yield from models(part)
        else:
            left += get_args(part)


def test_every_field_is_described() -> None:
    from cosa.analytical.constants import Constants, PublishedConstants
    from cosa.mip.objective import Weights
    from cosa.model.constraints import Constraints
    from cosa.model.schedule import Schedule
    from dram.config import DramConfig
    from nocsim.experiments.compare import Comparison
    from nocsim.experiments.network_run import NetworkResult
    from nocsim.experiments.portfolio_search import PortfolioResult
    from nocsim.result.result import Result
    from nocsim.traffic.synthetic import TrafficResult

    described = words_in_code("files", "architecture")
    fields = {
        f"{model.__name__}.{name}"
        for root in (
            Schedule,
            Constants,
            PublishedConstants,
            Constraints,
            Weights,
            Result,
            NetworkResult,
            Comparison,
            PortfolioResult,
            TrafficResult,
            DramConfig,
        )
        for model in models(root)
        for name in model.model_fields
    }
    assert len(fields) > 100
    assert sorted(field for field in fields if field.partition(".")[2] not in described) == []


def keys(data: Any) -> set[str]:
    """All names in data."""
    if isinstance(data, dict):
        return set(data).union(*map(keys, data.values()))
    return set().union(*map(keys, data)) if isinstance(data, list) else set()


def test_every_evaluated_number_is_described() -> None:
    import cosa
    from cosa.commands.show_evaluation import describe

    layer = cosa.Layer(name="small", R=1, S=1, P=4, Q=4, C=4, K=4, N=1)
    schedule = cosa.schedule(layer, "simba_4x4", objective="cosa")
    found: set[str] = set()
    for convention in ("timeloop", "exact"):
        view = describe(schedule, cosa.evaluate(schedule, convention=convention))
        found |= keys({name: value for name, value in view.items() if name != "layer"})
    assert len(found) > 60
    assert sorted(found - words_in_code("evaluation") - {"weights", "inputs", "outputs"}) == []


def test_every_dram_figure_is_described() -> None:
    from dataclasses import fields

    from dram.losses import DramLosses

    assert {field.name for field in fields(DramLosses)} <= words_in_code("dram")


def test_every_field_and_figure_of_a_sweep_is_described() -> None:
    from cosa.mappers.registry import mapper_names
    from nocsim.experiments.sweep.figures import FIGURES
    from nocsim.experiments.sweep.options import option_names
    from nocsim.experiments.sweep.points import DERIVED
    from nocsim.experiments.sweep.result import SweepResult
    from nocsim.experiments.sweep.spec import SPECIAL_AXES, Sweep, sweep_names

    columns = SweepResult(Sweep(axes={"network": "dlrm"}), []).columns()
    wanted = {*Sweep.model_fields, *SPECIAL_AXES, *FIGURES, *DERIVED, *columns, *sweep_names()}
    assert sorted(wanted - words_in_code("sweeps")) == []
    options = {name for mapper in mapper_names() for name in option_names(mapper)}
    assert sorted(options - words_in_code("cli")) == []


def test_tables_of_options_are_made_from_the_models() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    with_tables = runpy.run_path(str(ROOT / "scripts" / "option_tables.py"))["with_tables"]
    assert page == with_tables(page), "run scripts/option_tables.py"


def test_every_script_is_described() -> None:
    scripts = {path.relative_to(ROOT).as_posix() for path in (ROOT / "scripts").rglob("*.py")}
    assert sorted(scripts - words_in_code("cli")) == []


def test_everything_shipped_is_described() -> None:
    from cosa.model.arch import architecture_names
    from cosa.model.constraints import constraint_names
    from cosa.model.networks import network_names
    from dram.devices import device_names

    assert set(network_names()) <= words_in_code("networks")
    assert set(constraint_names()) <= words_in_code("machine-program")
    assert set(architecture_names()) | set(device_names()) <= words_in_code("architecture")


def test_a_wrong_example_fails(tmp_path: Path) -> None:
    """The checks of this file can fail."""
    page = ROOT / "docs" / "index.md"
    example = Block(("console", "check"), ("$ cosa --version", "cosa 0.0.0"), "page:1", None)
    command = next(commands(example))
    code, found = run_command(command.line)
    assert code == 0
    with pytest.raises(AssertionError, match="does not show"):
        assert_output(command.expected, found, "page:1")
    assert_output(("cosa ...",), found, "page:1")
    assert run_command("cosa networks nonsense")[0] == 2
    assert run_command("false")[0] == 1
    assert "no-such-heading" not in anchors(page)
