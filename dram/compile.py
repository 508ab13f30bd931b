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
