"""Compiled kernels: where they may be kept, and that an edit is never answered from an old cache."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KERNEL = ROOT / "nocsim" / "mesh" / "kernel.py"
RUN = """
from nocsim.mesh import kernel as kernel
from nocsim.mesh.mesh import Mesh
assert not hasattr(kernel.run_mesh, "signatures") or not kernel.run_mesh.signatures
mesh = Mesh(4, 4)
mesh.submit(0, [3, 15], 1, 5)
mesh.submit(5, 15, 1, 5)
while not mesh.idle:
    mesh.run(1000)
    mesh.take_reports()
hits = sum(kernel.run_mesh.stats.cache_hits.values())
print(kernel.__file__, mesh.now, hits)
"""


def copied_packages(tmp_path: Path) -> Path:
    folder = tmp_path / "installed"
    for package in ("nocsim", "cosa", "dram", "arch_configs"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def run(folder: Path, **environment: str) -> tuple[int, int]:
    """The cycle after the last delivery, and how many kernels came from a cache."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "XDG_"))}
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**inherited, "PYTHONPATH": str(folder), **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    file, cycle, hits = done.stdout.split()
    assert Path(file).is_relative_to(folder)
    return int(cycle), int(hits)


def test_a_cache_beside_the_source_is_used_until_the_source_changes(tmp_path: Path) -> None:
    folder = copied_packages(tmp_path)
    cycle, hits = run(folder)
    assert hits == 0
    assert run(folder) == (cycle, 1)
    kernel = folder / "nocsim" / "mesh" / "kernel.py"
    stat = kernel.stat()
    text = kernel.read_text(encoding="utf-8")
    changed = text.replace("\n        cycle += 1\n", "\n        cycle += 3\n")
    assert changed != text
    kernel.write_text(changed, encoding="utf-8")
    os.utime(kernel, ns=(stat.st_atime_ns, stat.st_mtime_ns + 2_000_000_000))
    assert run(folder) == (3 * cycle, 0)


def test_nothing_can_be_written(tmp_path: Path) -> None:
    """A read-only installation and no home. Files stand where folders would be made, which stops root as well."""
    folder = copied_packages(tmp_path)
    for package in ("nocsim/mesh", "nocsim/traffic", "nocsim", "dram", "cosa/common", "cosa"):
        (folder / package / "__pycache__").write_text("", encoding="utf-8")
    blocked = tmp_path / "home"
    blocked.write_text("", encoding="utf-8")
    before = sorted(folder.rglob("*"))
    cycle, hits = run(folder, HOME=str(blocked / "nobody"), PYTHONDONTWRITEBYTECODE="1")
    assert (cycle > 30, hits) == (True, 0)
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("file", [KERNEL, *sorted((ROOT / "dram").glob("*_kernel.py"))], ids=lambda file: file.stem)
def test_a_kernel_file_takes_no_compiled_code_or_constants_from_another(file: Path) -> None:
    """numba keys its cache on the content of the one file that holds a function."""
    others = {path.stem for path in (ROOT / "dram").glob("*_kernel.py")} | {"kernel"}
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            assert (node.module or "").split(".")[-1] not in others, node.module
            assert not names & others, names
