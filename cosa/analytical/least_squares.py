"""Least squares with weights that are not negative."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def nonnegative_least_squares(matrix: Array, target: Array) -> Array:
    """Weights w >= 0 that minimise |matrix w - target|.

    The active-set method of Lawson and Hanson (Solving Least Squares Problems, 1974, chapter 23). Columns are scaled to
    length 1 first, so that units do not matter; a column of zeros gets weight 0.
    """
    lengths = np.linalg.norm(matrix, axis=0)
    scale = np.where(lengths > 0, lengths, 1.0)
    columns = matrix / scale
    count = columns.shape[1]
    free = np.zeros(count, bool)
    found = np.zeros(count)
    tolerance = 1e-10 * max(1.0, float(np.linalg.norm(target)))
    # Each round frees a column for good or shrinks the residual; the limit guards against rounding alone.
    for _ in range(10 * count + 10):
        slope = columns.T @ (target - columns @ found)
        candidates = np.where(free, -np.inf, slope)
        entering = int(np.argmax(candidates))
        if candidates[entering] <= tolerance:
            break
        free[entering] = True
        while free.any():
            solution = np.zeros(count)
            solution[free] = np.linalg.lstsq(columns[:, free], target, rcond=None)[0]
            if (solution[free] > 0).all():
                found = solution
                break
            blocking = free & (solution <= 0)
            steps = found[blocking] / np.maximum(found[blocking] - solution[blocking], 1e-300)
            found = found + float(steps.min()) * (solution - found)
            free &= found > 1e-15
            found = np.where(free, found, 0.0)
    result: Array = found / scale
    return result
