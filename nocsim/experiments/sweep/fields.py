"""Fields of an architecture by path (``noc.mesh``, ``levels.GlobalBuffer.capacity_words``, ``levels[4].keeps``).

They are read and changed in plain data, as an architecture file holds them with all defaults filled in. Besides its
fields a level has ``capacity_bytes``: its capacity in words of `word_bits`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from fractions import Fraction
from typing import Any

from cosa.common.errors import InputError, nearest_of

_PART = re.compile(r"([^\[\]]+)((?:\[\d+\])*)")
_BYTES, _WORDS = "capacity_bytes", "capacity_words"
_MULTIPLIER = re.compile(r"x(\d+(?:\.\d+)?)")

Data = dict[str, Any]


def parts_of(path: str) -> list[str | int]:
    """A path as keys and indices; InputError if it is not one."""
    parts: list[str | int] = []
    for text in path.split("."):
        match = _PART.fullmatch(text)
        if not match:
            allowed = "names joined by dots, such as noc.mesh or levels.GlobalBuffer.capacity_words"
            raise InputError("not the path of a field", value=path, allowed=allowed)
        parts.append(match[1])
        parts += [int(number) for number in re.findall(r"\d+", match[2])]
    return parts


def leaves(data: Any, prefix: str = "") -> Iterator[str]:
    """Paths of all fields that hold no further ones; levels go by their names."""
    if isinstance(data, dict) and data:
        for key, value in data.items():
            yield from leaves(value, f"{prefix}.{key}" if prefix else key)
    elif _named(data):
        for item in data:
            yield from leaves(item, f"{prefix}.{item['name']}")
    else:
        yield prefix


def nearest_path(path: str, data: Data, others: tuple[str, ...] = ()) -> str:
    """The field (or one of `others`) most like a path that leads nowhere."""
    every = [*others, *leaves(data)]
    last = path.rpartition(".")[2]
    by_name = {candidate.rpartition(".")[2]: candidate for candidate in reversed(every)}
    alike = [candidate for candidate in every if candidate.rpartition(".")[2] == last]
    if not alike and (name := nearest_of(last, list(by_name))):
        alike = [candidate for candidate in every if candidate.rpartition(".")[2] == name]
    return max(alike or every, key=lambda candidate: SequenceMatcher(None, path, candidate).ratio())


def value_at(data: Data, path: str, others: tuple[str, ...] = ()) -> Any:
    """The value of a field.

    Parameters
    ----------
    data: an architecture as plain data.
    others: what else the path could have meant, for the error.

    Raises
    ------
    InputError: there is no such field; the nearest one is named.
    """
    holder, key = _place(data, path, others)
    if not is_bytes(path):
        return holder[key]
    if holder[key] is None:
        return None
    size = Fraction(holder[key] * holder["word_bits"], 8)
    return int(size) if size.denominator == 1 else float(size)


def scaled(data: Data, path: str, value: Any) -> Any:
    """A value for a field: ``x8`` is eight times what it is in `data`, any other value is itself.

    Raises
    ------
    InputError: there is no such field, or nothing that can be multiplied.
    """
    match = _MULTIPLIER.fullmatch(value) if isinstance(value, str) else None
    return _times(value_at(data, path), Fraction(match[1]), path, value) if match else value


def set_value(data: Data, path: str, value: Any) -> None:
    """Change a field in place.

    Raises
    ------
    InputError: there is no such field, or a capacity in bytes is not a whole number of words.
    """
    holder, key = _place(data, path, ())
    holder[key] = _words(value, holder["word_bits"], path) if is_bytes(path) else value


def is_bytes(path: str) -> bool:
    """Whether it is a capacity in bytes, which no architecture file holds."""
    return path.endswith("." + _BYTES)


def _words(size: Any, word_bits: Any, path: str) -> int | None:
    if size is None:
        return None
    bits = isinstance(word_bits, int) and not isinstance(word_bits, bool) and word_bits > 0
    if isinstance(size, bool) or not isinstance(size, int | float) or not math.isfinite(size) or size <= 0 or not bits:
        raise InputError("not a size", path=path, value=size, allowed="bytes > 0, or a multiplier such as x8")
    words = Fraction(size) * 8 / word_bits
    if words.denominator != 1:
        message = f"not a whole number of words of {word_bits} bits"
        near = Fraction(max(1, round(words)) * word_bits, 8)
        nearest = str(near) if near.denominator == 1 else None
        raise InputError(message, path=path, value=size, nearest=nearest)
    return int(words)


def _times(old: Any, factor: Fraction, path: str, text: str) -> int | float:
    if isinstance(old, bool) or not isinstance(old, int | float):
        raise InputError(f"{old!r} cannot be multiplied", path=path, value=text, allowed="a value of its own")
    if isinstance(old, float):
        return float(Fraction(str(old)) * factor)
    new = old * factor
    if new.denominator != 1:
        raise InputError(f"{old} times {factor} is not a whole number", path=path, value=text)
    return int(new)


def _place(data: Data, path: str, others: tuple[str, ...]) -> tuple[Any, Any]:
    """The mapping or list that holds a field, and the key or index in it; of bytes those of the words."""
    if is_bytes(path):
        try:
            return _place(data, path.removesuffix(_BYTES) + _WORDS, others)
        except InputError as error:
            nearest = error.nearest.replace(_WORDS, _BYTES) if error.nearest else None
            raise InputError(error.message, path=path, allowed=error.allowed, nearest=nearest) from None
    holder: Any = data
    parts = parts_of(path)
    key: Any = None
    for number, part in enumerate(parts):
        key = _key(holder, part)
        if key is None:
            walked = ".".join(str(part) for part in parts[:number])
            if isinstance(holder, dict) or _named(holder):
                known = list(holder) if isinstance(holder, dict) else [item["name"] for item in holder]
                allowed = ", ".join([*others, *known] if number == 0 else known)
                nearest = nearest_path(path, data, others)
                raise InputError("no such field", path=path, allowed=allowed, nearest=nearest)
            raise InputError(f"no such field: {walked} holds {holder!r}", path=path, nearest=nearest_path(path, data))
        if number < len(parts) - 1:
            holder = holder[key]
    return holder, key


def _named(holder: Any) -> bool:
    """Whether it is a list of things that go by their names, as levels do."""
    if not isinstance(holder, list) or not holder:
        return False
    return all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in holder)


def _key(holder: Any, part: str | int) -> str | int | None:
    if isinstance(part, int):
        return part if isinstance(holder, list) and part < len(holder) else None
    if isinstance(holder, dict):
        return part if part in holder else None
    if _named(holder):
        return next((number for number, item in enumerate(holder) if item["name"] == part), None)
    return None
