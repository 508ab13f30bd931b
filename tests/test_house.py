"""The house: which room may import which, what stays light, and command lines that answer alike."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("cosa", "nocsim", "dram")


def imports(path: Path) -> Iterator[str]:
    """Dotted names that a module of ours imports from our packages, wherever the import stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name for name in names if name.split(".")[0] in PACKAGES)


def modules(room: str) -> list[Path]:
    found = sorted((ROOT / room).rglob("*.py"))
    assert found, room
    return found


@pytest.mark.parametrize(
    ("room", "allowed"),
    [
        ("cosa/common", ("cosa.common",)),
        ("dram", ("dram", "cosa.common")),
        ("cosa", ("cosa",)),
        ("cosa/model", ("cosa.common", "cosa.model", "cosa.analytical.footprint")),
        ("nocsim/mesh", ("nocsim.mesh", "nocsim.errors", "nocsim.result.pictures", "cosa", "dram")),
    ],
)
def test_imports_run_one_way(room: str, allowed: tuple[str, ...]) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules(room)
        for name in imports(path)
        if not any(name == one or name.startswith(f"{one}.") for one in allowed)
    ]
    assert wrong == []


def test_only_the_command_line_knows_the_rooms_of_commands() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in (*modules("cosa"), *modules("nocsim"))
        if "commands" not in path.parts
        for name in imports(path)
        if ".commands" in name
    ]
    assert wrong == []


def test_importing_a_package_is_light() -> None:
    for package in PACKAGES:
        code = f"import sys, {package}; print({{'numpy', 'pydantic', 'numba', 'pyomo', 'typer'}} & set(sys.modules))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "set()\n", package


@pytest.mark.parametrize("program", PACKAGES)
def test_every_program_says_its_version(program: str) -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / program, "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{program} ")
