"""Compilation of the cycle loops, with the compiled code kept on disk where that is possible."""

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit
from numba.core.options import DefaultOptions

Function = TypeVar("Function", bound=Callable[..., Any])


#: The kernels allocate nothing, so counting references to their arrays is lost time (about half, as measured). Numba
#: has no public switch for that; without this one the kernels are only slower.
_OPTIONS: dict[str, Any] = {"error_model": "numpy"} | ({"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {})


def compiled(function: Function) -> Function:
    """Compile ``function`` at its first call; without a writable cache place it is compiled anew in each process."""
    try:
        result: Function = njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # numba found no place for its cache
        result = njit(**_OPTIONS)(function)
    return result


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
