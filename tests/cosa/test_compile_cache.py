"""Compiled code kept on disk: used again, and made anew where its files are damaged or cannot be written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

KERNEL = """
from cosa.common.compile_cache import kept


def twice(x):
    return 2 * x


twice = kept(twice)
"""
FULL = """
import errno
from contextlib import contextmanager

from cosa.common import compile_cache


@contextmanager
def full(self, path):
    raise OSError(errno.ENOSPC, "No space left on device")
    yield


compile_cache._TolerantFile._open_for_write = full
"""


def run(folder: Path, before: str = "") -> tuple[int, int]:
    """What the kernel gives for 21, and how often its code came from the cache."""
    code = f"{before}\nimport kernel\nprint(kernel.twice(21), sum(kernel.twice.stats.cache_hits.values()))"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, env=environment, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    value, hits = map(int, done.stdout.split())
    return value, hits


def files(folder: Path, ending: str) -> list[Path]:
    found = sorted((folder / "cache").rglob(f"*{ending}"))
    assert found
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kernel.py").write_text(KERNEL)
    assert run(tmp_path) == (42, 0)
    assert run(tmp_path) == (42, 1)
    return tmp_path


@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", ["empty", "half", "zeros", "flipped"])
def test_damaged_files_are_made_anew(folder: Path, ending: str, damage: str) -> None:
    for path in files(folder, ending):
        whole = path.read_bytes()
        at = len(whole) // 2
        flipped = whole[:at] + bytes(byte ^ 0xFF for byte in whole[at : at + 40]) + whole[at + 40 :]
        changed = {"empty": b"", "half": whole[:at], "zeros": bytes(len(whole)), "flipped": flipped}
        path.write_bytes(changed[damage])
    assert run(folder) == (42, 0)
    assert run(folder) == (42, 1)


def test_a_full_disk_costs_time_only(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    for _ in range(2):
        assert run(tmp_path, FULL) == (42, 0)
