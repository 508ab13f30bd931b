"""The kernel files repeat the positions they share; here they are compared."""

import ast
from pathlib import Path

import pytest

import dram.queues_kernel as shared
from dram import dramsim2_kernel, frfcfs_kernel

NAMES = [name for name in vars(shared) if name.isupper() and not name.endswith(("_SIZE", "_FIELDS"))]


@pytest.mark.parametrize("kernel", [dramsim2_kernel, frfcfs_kernel])
def test_shared_positions_agree(kernel: object) -> None:
    for name in NAMES:
        if hasattr(kernel, name):
            assert getattr(kernel, name) == getattr(shared, name), name
    assert {"WAKE", "FIRST_VISIBLE", "FLIGHT_TAG", "STAGED_ID"} <= set(vars(kernel))


@pytest.mark.parametrize("kernel", [dramsim2_kernel, frfcfs_kernel, shared])
def test_kernel_file_imports_nothing_whose_change_a_cache_would_miss(kernel: object) -> None:
    tree = ast.parse(Path(str(vars(kernel)["__file__"])).read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= {"dram.compile"}
