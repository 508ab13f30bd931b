"""A port of an on-chip memory: so many words a cycle, one request after another."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

import simpy


class MemoryPort:
    """Reads or writes of one memory, in the order in which they are asked for; times are exact fractions of cycles."""

    def __init__(self, env: simpy.Environment, words_per_cycle: float) -> None:
        self._env = env
        self._rate = Fraction(words_per_cycle)
        self._free = Fraction(0)

    def take(self, n_bytes: int, word_bits: int) -> int:
        """Ask for bytes that are words of so many bits; the cycle at which the last one has passed."""
        self._free = max(self._free, Fraction(self._env.now)) + Fraction(n_bytes * 8, word_bits) / self._rate
        return ceil(self._free)

    def pass_through(self, n_bytes: int, word_bits: int) -> Any:
        """Ask for bytes; an event that fires when they have passed."""
        return self._env.timeout(self.take(n_bytes, word_bits) - self._env.now)
