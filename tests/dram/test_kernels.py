"""The kernel files repeat the positions they share; here they are compared."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dram.queues_kernel as shared
from dram import dramsim2_kernel, dramsim3_kernel, frfcfs_kernel, losses_kernel

NAMES = [name for name in vars(shared) if name.isupper() and not name.endswith(("_SIZE", "_FIELDS"))]


@pytest.mark.parametrize("kernel", [dramsim2_kernel, dramsim3_kernel, frfcfs_kernel])
def test_shared_positions_agree(kernel: object) -> None:
    for name in NAMES:
        if hasattr(kernel, name):
            assert getattr(kernel, name) == getattr(shared, name), name
    assert {"WAKE", "FIRST_VISIBLE", "FLIGHT_TAG", "STAGED_ID"} <= set(vars(kernel))


@pytest.mark.parametrize("kernel", [dramsim2_kernel, dramsim3_kernel, frfcfs_kernel, losses_kernel, shared])
def test_kernel_file_imports_nothing_whose_change_a_cache_would_miss(kernel: object) -> None:
    tree = ast.parse(Path(str(vars(kernel)["__file__"])).read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= {"cosa.common.compile_cache"}


def test_importing_compiles_nothing() -> None:
    code = (
        "import dram, dram.reference\n"
        "from dram import dramsim2_kernel, frfcfs_kernel, queues_kernel\n"
        "for f in (dramsim2_kernel.run, frfcfs_kernel.run, queues_kernel.push):\n"
        "    assert not f.signatures\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
