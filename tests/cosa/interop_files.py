"""What the tests of Timeloop files share: reading text, its facts, and the message with which it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from cosa.common.errors import InputError
from cosa.interop.facts import facts_of
from cosa.interop.timeloop_files import parse_timeloop
from cosa.interop.timeloop_model import TimeloopFile

CONV = "problem: {R: 3, S: 1, P: 16, Q: 1, C: 4, K: 8, N: 1}\n"


def read(text: str) -> TimeloopFile:
    return parse_timeloop(text, "f.yaml")


def facts(text: str) -> dict[str, Any]:
    return facts_of(read(text))


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        facts(text)
    message = str(caught.value)
    assert message.startswith("f.yaml: ")
    assert "\n" not in message
    return message
