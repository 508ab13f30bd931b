"""Compilation of the cycle loops, with the compiled code kept on disk where that is possible."""

import pickle
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from numba import njit
from numba.core.caching import IndexDataCacheFile
from numba.core.options import DefaultOptions

Function = TypeVar("Function", bound=Callable[..., Any])


#: The kernels allocate nothing, so counting references to their arrays is lost time (about half, as measured). Numba
#: has no public switch for that; without this one the kernels are only slower.
_OPTIONS: dict[str, Any] = {"error_model": "numpy"} | ({"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {})


class _TolerantFile(IndexDataCacheFile):  # type: ignore[misc]  # numba has no types
    """The files of numba's cache: damaged ones (a power loss, a full disk) are as if they were not there.

    A file of code begins with its digest: what is not the code that was written is not run.
    """

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except Exception:  # whatever unpickling makes of the bytes
            return {}

    def _save_data(self, name: str, data: Any) -> None:
        dumped = self._dump(data)
        with self._open_for_write(self._data_path(name)) as stream:
            stream.write(sha256(dumped).digest() + dumped)

    def _load_data(self, name: str) -> Any:
        found = Path(self._data_path(name)).read_bytes()
        if sha256(found[_DIGEST:]).digest() != found[:_DIGEST]:
            raise FileNotFoundError(name)  # which numba takes for a file that was removed
        return pickle.loads(found[_DIGEST:])

    def save(self, key: Any, data: Any) -> None:
        """Keep an entry; without it the next process compiles anew, nothing else."""
        with suppress(OSError):
            super().save(key, data)


_DIGEST = 32


def kept(function: Function, **options: Any) -> Function:
    """`function` compiled at its first call, the code kept on disk where there is a place for it."""
    try:
        result: Any = njit(cache=True, **options)(function)
    except RuntimeError:  # numba found no place for its cache
        result = njit(**options)(function)
        return result  # type: ignore[no-any-return]
    cache = getattr(result, "_cache", None)  # a plain function where NUMBA_DISABLE_JIT is set
    if cache is not None:
        files = _TolerantFile.__new__(_TolerantFile)
        files.__dict__.update(cache._cache_file.__dict__)
        cache._cache_file = files
    return result  # type: ignore[no-any-return]


def compiled(function: Function) -> Function:
    """Compile ``function`` at its first call; without a writable cache place it is compiled anew in each process."""
    return kept(function, **_OPTIONS)


def compiled_helper(function: Function) -> Function:
    """Compile a function that only compiled functions of the same file call.

    It is part of the caller's cache entry and has no entry point for Python, which saves compile time.
    """
    result: Function = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS)(function)
    return result


def inlined_helper(function: Function) -> Function:
    """Like :func:`compiled_helper`, but a part of its caller's code.

    Passing a dozen arrays takes longer than many a body. Every call is compiled anew, so it should stand in one place.
    """
    result: Function = njit(inline="always", **_OPTIONS)(function)
    return result
