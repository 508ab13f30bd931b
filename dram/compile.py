"""Compilation of the cycle loops, with the compiled code kept on disk where that is possible."""

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile ``function`` at its first call; without a writable cache place it is compiled anew in each process."""
    try:
        result: Function = njit(cache=True, error_model="numpy")(function)
    except RuntimeError:  # numba found no place for its cache
        result = njit(error_model="numpy")(function)
    return result


def compiled_helper(function: Function) -> Function:
    """Compile a function that only compiled functions of the same file call.

    It is part of the caller's cache entry and has no entry point for Python, which saves compile time.
    """
    result: Function = njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    return result
