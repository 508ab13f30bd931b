"""Compiled code kept on disk: what is damaged, unwritable or of other sources is made anew, and never ends a run."""

from __future__ import annotations

import ast
import errno
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dram
from cosa.common import compile_cache

ROOT = Path(__file__).resolve().parents[2]
KERNEL = """
from cosa.common.compile_cache import compiled
from dram.probe_constants import STEP

@compiled
def step(x):
    return x + STEP
"""


class Kernel:
    """Two modules of the package `dram`, in a folder of their own: a kernel, and the constants it imports."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "probe_constants.py").write_text("STEP = 2\n")
        (folder / "probe_kernel.py").write_text(KERNEL)

    def run(self) -> tuple[int, int]:
        """What a new process would find: the kernel's answer to 40, and how many times it came from the cache."""
        for name in ("dram.probe_kernel", "dram.probe_constants"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        step: Any = importlib.import_module("dram.probe_kernel").step
        return step(40), sum(step.stats.cache_hits.values())

    @property
    def kept(self) -> list[Path]:
        return sorted(self.folder.glob("__pycache__/*.nbc"))


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    monkeypatch.setattr(dram, "__path__", [*dram.__path__, str(tmp_path)])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python's own cache looks at whole seconds
    yield Kernel(tmp_path)
    for name in ("dram.probe_kernel", "dram.probe_constants"):
        sys.modules.pop(name, None)


def test_code_is_kept(kernel: Kernel) -> None:
    assert [kernel.run(), kernel.run()] == [(42, 0), (42, 1)]
    assert len(kernel.kept) == 1


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut short": lambda data: data[: len(data) // 2],
    "a page never written": lambda data: data[:2048] + bytes(2048) + data[4096:],
    "a bit": lambda data: data[:2000] + bytes([data[2000] ^ 1]) + data[2001:],
    "garbage": lambda data: b"\x80garbage" * 1000,
    "less than a digest": lambda data: data[:7],
    "more than there was": lambda data: data + b"\0",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_code_is_made_anew(kernel: Kernel, damage: Callable[[bytes], bytes]) -> None:
    kernel.run()
    (file,) = kernel.kept
    data = file.read_bytes()
    file.write_bytes(damage(data))
    assert kernel.run() == (42, 0)
    assert kernel.run() == (42, 1), "and kept again"


def test_whole_code_that_numba_refuses_is_made_anew(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel.run()

    def refuse(code: bytes) -> Any:
        raise ModuleNotFoundError("a type that is gone")

    with monkeypatch.context() as patch:
        patch.setattr(compile_cache.pickle, "loads", refuse)
        assert kernel.run() == (42, 0)


def test_a_changed_constant_of_another_file_is_seen(kernel: Kernel) -> None:
    kernel.run()
    (kernel.folder / "probe_constants.py").write_text("STEP = 5\n")
    assert [kernel.run(), kernel.run()] == [(45, 0), (45, 1)]
    assert len(kernel.kept) == 1, "old code is replaced, not added to"


@pytest.mark.parametrize("trouble", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_code_that_cannot_be_written_is_compiled_each_time(
    kernel: Kernel, trouble: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fills up while the file is written; nothing is left of it, and old code is not taken for new."""
    kernel.run()
    (kernel.folder / "probe_constants.py").write_text("STEP = 3\n")
    write = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        if self.suffix != ".part":
            return write(self, data)
        write(self, data[: len(data) // 2])
        raise OSError(trouble, "no")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        assert [kernel.run(), kernel.run()] == [(43, 0), (43, 0)]
    assert sorted(kernel.folder.glob("__pycache__/*")) == kernel.kept
    assert [kernel.run(), kernel.run()] == [(43, 0), (43, 1)]


def test_a_place_that_is_not_a_file_is_left_alone(kernel: Kernel) -> None:
    kernel.run()
    (file,) = kernel.kept
    file.unlink()
    file.mkdir()
    assert [kernel.run(), kernel.run()] == [(42, 0), (42, 0)]


@pytest.mark.parametrize("compiled", [compile_cache.compiled, compile_cache.compiled_with_arrays])
def test_without_a_place_functions_are_compiled_all_the_same(compiled: Callable[..., Any]) -> None:
    namespace: dict[str, Any] = {}
    exec("def double(x):\n    return 2 * x\n", namespace)  # no file, so numba finds no place
    assert compiled(namespace["double"])(21) == 42


def kernel_files() -> list[Path]:
    """All files that compile something."""
    files = [file for package in ("cosa", "dram", "nocsim") for file in (ROOT / package).rglob("*.py")]
    compiling = "from cosa.common.compile_cache import"
    return sorted(file for file in files if compiling in file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", kernel_files(), ids=lambda file: str(file.relative_to(ROOT)))
def test_all_that_a_kernel_is_made_of_counts(file: Path) -> None:
    """The imports that Python sees are those that the digest covers."""
    module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
    importlib.import_module(module)
    covered = set(compile_cache.source_files(module))
    assert str(file) in covered and compile_cache.__file__ in covered
    own = ("cosa", "dram", "nocsim")
    for path in map(Path, covered):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Import):
                assert not {alias.name.split(".")[0] for alias in node.names} & set(own), "written as from ... import"
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in own:
                for alias in node.names:
                    inner = sys.modules.get(f"{node.module}.{alias.name}") or sys.modules[str(node.module)]
                    assert inner.__file__ in covered


def test_numba_is_asked_for_nowhere_else() -> None:
    """One place decides how kernels are compiled and kept."""
    for package in ("cosa", "dram", "nocsim"):
        for file in (ROOT / package).rglob("*.py"):
            if file != Path(compile_cache.__file__):
                assert "njit" not in file.read_text(encoding="utf-8"), file
