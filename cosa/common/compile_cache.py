"""Compilation of the cycle loops, with the compiled code kept on disk where that is possible.

The place is the one numba chooses: beside the source, else in the user's cache folder, or where ``NUMBA_CACHE_DIR``
says. The files are not numba's, for two reasons. numba loads a file that is empty or cut short, as after a power loss,
into an error, and lets a full disk end a run: here such a file counts as absent, and code that can't be kept is
compiled again the next time. And numba sees changes of the one file that holds a function, not of those with its
constants and helpers: here every file counts that is imported from, and so on from there.
"""

from __future__ import annotations

import os
import pickle
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba import njit
from numba.core.caching import FunctionCache
from numba.core.options import DefaultOptions
from numba.core.serialize import dumps

Function = TypeVar("Function", bound=Callable[..., Any])

_PLAIN: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}
#: Most kernels make no arrays, so counting references to those they are given is lost time (about half, as measured).
#: numba has no public switch for that; without this one the kernels are only slower.
_UNCOUNTED = _PLAIN | ({"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {})

_DIGEST_BYTES = sha256().digest_size
_IMPORT = re.compile(r"^from ((?:cosa|dram|nocsim)\b[\w.]*) import (\([^)]*\)|.+)", re.MULTILINE)


def compiled(function: Function) -> Function:
    """Compile at the first call a function that makes no arrays, and keep it."""
    return _kept(function, _UNCOUNTED)


def compiled_helper(function: Function) -> Function:
    """Compile a function that only compiled functions call, and that makes no arrays.

    It is part of the code kept for its callers and has no entry point for Python, which saves compile time.
    """
    result: Function = njit(no_cpython_wrapper=True, **_UNCOUNTED)(function)
    return result


def inlined_helper(function: Function) -> Function:
    """Like :func:`compiled_helper`, but a part of its caller's code.

    Passing a dozen arrays takes longer than many a body. LLVM does it, which compiles in half the time of numba's own
    inlining.
    """
    result: Function = njit(forceinline=True, no_cpython_wrapper=True, **_UNCOUNTED)(function)
    return result


def compiled_with_arrays(function: Function) -> Function:
    """Like :func:`compiled`, of a function that may make arrays. Other threads go on while it runs."""
    return _kept(function, _PLAIN | {"nogil": True})


def helper_with_arrays(function: Function) -> Function:
    """Like :func:`compiled_helper`, of a function that may make arrays."""
    result: Function = njit(no_cpython_wrapper=True, **_PLAIN)(function)
    return result


def _kept(function: Function, options: dict[str, Any]) -> Function:
    result: Function = njit(**options)(function)
    with suppress(RuntimeError):  # numba found no place; or there is no compiler to keep anything of
        if not numba.config.DISABLE_JIT:
            result._cache = _KeptCode(function)  # type: ignore[attr-defined]
    return result


class _KeptCode(FunctionCache):  # type: ignore[misc]
    """numba's cache of a function, with files of our own; one that can't be used or written is none."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        base = Path(self._cache_path) / self._impl.filename_base
        self._cache_file = _Entries(base, sources_digest(function.__module__))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # whole, yet not what this numba takes
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)


class _Entries:
    """The compiled code of one function, a file for each signature, which begins with a digest of what it is for."""

    def __init__(self, base: Path, sources: bytes) -> None:
        self._base, self._sources = base, sources

    def _path(self, key: tuple[Any, ...]) -> Path:
        """The same for all states of the sources, so that the last one is kept."""
        signature, target, *_ = key
        return Path(f"{self._base}.{sha256(repr((signature, target)).encode()).hexdigest()[:16]}.nbc")

    def _digest(self, key: tuple[Any, ...], code: bytes) -> bytes:
        return sha256(self._sources + repr((numba.__version__, key)).encode() + code).digest()

    def load(self, key: tuple[Any, ...]) -> Any:
        try:
            data = self._path(key).read_bytes()
        except OSError:
            return None
        digest, code = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        return pickle.loads(code) if digest == self._digest(key, code) else None

    def save(self, key: tuple[Any, ...], data: Any) -> None:
        code = dumps(data)
        path = self._path(key)
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            part.write_bytes(self._digest(key, code) + code)
            part.replace(path)
        except OSError:
            with suppress(OSError):
                part.unlink()
            raise


def sources_digest(module: str) -> bytes:
    """Digest of the files that the kernels of a module can be made of."""
    digest = sha256()
    for path in source_files(module):
        digest.update(_read(path, *_state(path))[0])
    return digest.digest()


def source_files(module: str) -> list[str]:
    """The file of a module and all files of the three packages that it imports from, directly or not.

    Imports inside functions and under conditions give nothing to a kernel and are left out.
    """
    found: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = getattr(sys.modules.get(name), "__file__", None)
        if name not in found and path is not None:
            found[name] = path
            for origin, inner in _read(path, *_state(path))[1]:
                waiting.append(f"{origin}.{inner}" if f"{origin}.{inner}" in sys.modules else origin)
    return [found[name] for name in sorted(found)]


def _state(path: str) -> tuple[int, int]:
    status = Path(path).stat()
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=256)
def _read(path: str, changed_ns: int, size: int) -> tuple[bytes, list[tuple[str, str]]]:
    """Digest of a file, and what it imports of the three packages: (module or package, name)."""
    text = Path(path).read_bytes()
    imports = [
        (origin, part.split()[0])
        for origin, names in _IMPORT.findall(text.decode())
        for part in re.sub(r"#.*", "", names).strip("()").split(",")
        if part.strip()
    ]
    return sha256(text).digest(), imports
