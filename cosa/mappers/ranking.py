"""What a search keeps of the mappings it has evaluated: the best of an objective, the front of cycles and energy."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from cosa.mappers.figures import Figures
from cosa.mappers.neighbours import MappingPoint


@dataclass(frozen=True)
class Answer:
    """A mapping with its exact figures."""

    point: MappingPoint
    figures: Figures


@dataclass
class SearchOutcome:
    """What the search found. `bound` is of the objective's value, `gap` = value / bound - 1.

    `answers`: the best mappings in their order, each with other factors. No mapping whose factors are not listed has a
    value below `bound` (infinite: there are no others).
    `stopped_by`: ``gap`` (best and bound meet), ``tight`` (nothing left to tighten: the rest is what the program does
    not model), ``slow`` (further rounds would hardly move the bound), ``time``, ``failed`` (the solver).
    `floor_cycles`: what no mapping runs below, whatever is predicted (None: not asked for). `tilings_seen`: all there
    are, where all were looked at. `first_seconds`: when the first mapping was there, `best_seconds`: when the best was.
    """

    answers: list[Answer]
    value: float
    bound: float
    rounds: int
    evaluations: int
    seconds: float
    first_seconds: float
    best_seconds: float
    stopped_by: str
    floor_cycles: float | None = None
    tilings_seen: int | None = None

    @property
    def answer(self) -> Answer:
        """The best mapping."""
        return self.answers[0]

    @property
    def gap(self) -> float:
        """Distance of the value from the bound, in linear units."""
        return max(0.0, self.value / self.bound - 1) if self.bound > 0 else inf


@dataclass(frozen=True)
class FrontPoint:
    """The least energy within a number of cycles: no mapping in at most `most_cycles` takes less than `bound_pj`."""

    answer: Answer
    most_cycles: float
    bound_pj: float


@dataclass(frozen=True)
class Kept:
    """An answer, and after how many seconds it was found."""

    answer: Answer
    seconds: float

    @property
    def tiles(self) -> bytes:
        """What tells its factors from those of others."""
        return self.answer.point.tiles


class Ranking:
    """The best mappings of an objective, at most `most`, each with other factors, in the best known order."""

    def __init__(self, objective: str, most: int = 1) -> None:
        self.objective, self.most = objective, most
        self.entries: list[Kept] = []

    def offer(self, kept: Kept) -> None:
        """Take a mapping if it belongs there."""
        value = self._value(kept)
        if len(self.entries) == self.most and value >= self._value(self.entries[-1]):
            return
        same = next((entry for entry in self.entries if entry.tiles == kept.tiles), None)
        if same is not None:
            if value >= self._value(same):
                return
            self.entries = [entry for entry in self.entries if entry is not same]
        self.entries.append(kept)
        self.entries.sort(key=self._value)
        del self.entries[self.most :]

    def _value(self, kept: Kept) -> tuple[float, float]:
        return kept.answer.figures.value(self.objective)

    def holds(self, point: MappingPoint) -> bool:
        """Whether a mapping with these factors is among them."""
        tiles = point.tiles
        return any(entry.tiles == tiles for entry in self.entries)

    @property
    def best(self) -> float:
        """Value of the best; infinite where there is none."""
        return self._value(self.entries[0])[0] if self.entries else inf

    @property
    def last(self) -> float:
        """Value of the last of `most`; infinite while there are fewer."""
        return self._value(self.entries[-1])[0] if len(self.entries) == self.most else inf


class Front:
    """The mappings of which none has fewer cycles and no more energy, or less energy and no more cycles."""

    def __init__(self) -> None:
        self.entries: list[Kept] = []

    def offer(self, kept: Kept) -> None:
        """Take a mapping if it belongs there, and drop those that it beats."""
        mine = kept.answer.figures
        if any(
            entry.answer.figures.cycles <= mine.cycles and entry.answer.figures.energy_pj <= mine.energy_pj
            for entry in self.entries
        ):
            return
        self.entries = [
            entry
            for entry in self.entries
            if entry.answer.figures.cycles < mine.cycles or entry.answer.figures.energy_pj < mine.energy_pj
        ]
        self.entries.append(kept)

    def within(self, cycles: float) -> Kept | None:
        """The least energy in at most so many cycles."""
        fine = [entry for entry in self.entries if entry.answer.figures.cycles <= cycles]
        return min(fine, key=lambda entry: entry.answer.figures.energy_pj, default=None)
