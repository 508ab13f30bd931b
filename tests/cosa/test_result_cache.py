"""Results kept between runs: what is damaged counts as absent, and a cache that can't be written is done without."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cosa.common import files
from cosa.common.result_cache import chosen_cache, read_cached, write_cached

DATA = {"cycles": 1234, "energy_pj": 0.1, "layers": [{"name": "a"}, {"name": "b"}]}


def test_what_was_written_is_read(tmp_path: Path) -> None:
    cache = tmp_path / "not" / "there"
    assert read_cached(cache, "k") is None
    write_cached(cache, "k", DATA)
    assert read_cached(cache, "k") == DATA and read_cached(cache, "other") is None
    assert read_cached(None, "k") is None
    write_cached(None, "k", DATA)


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut short": lambda data: data[: len(data) // 2],
    "zeros": lambda data: bytes(len(data)),
    "garbage": lambda data: b"\xff\xfe\x00garbage",
    "a digit": lambda data: data.replace(b"1234", b"1235"),
    "another result": lambda data: json.dumps(json.loads(data) | {"data": {"cycles": 1}}).encode(),
    "a list": lambda data: b"[1, 2]",
    "a number": lambda data: b"3",
    "an empty result": lambda data: b"{}",
    "too deep": lambda data: b"[" * 100_000,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_result_is_made_anew(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    write_cached(tmp_path, "k", DATA)
    file = tmp_path / "k.json"
    damaged = damage(file.read_bytes())
    assert damaged != file.read_bytes()
    file.write_bytes(damaged)
    assert read_cached(tmp_path, "k") is None
    write_cached(tmp_path, "k", DATA)
    assert read_cached(tmp_path, "k") == DATA


def test_a_result_under_another_key_is_not_taken(tmp_path: Path) -> None:
    write_cached(tmp_path, "k", DATA)
    (tmp_path / "k.json").rename(tmp_path / "other.json")
    assert read_cached(tmp_path, "other") is None


def test_a_place_that_cannot_be_used(tmp_path: Path) -> None:
    """Files stand where folders would be made, and the other way round, which stops root as well."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    (tmp_path / "k.json").mkdir()
    for cache in (blocked, blocked / "below", tmp_path):
        write_cached(cache, "k", DATA)
        assert read_cached(cache, "k") is None


@pytest.mark.parametrize("trouble", [errno.ENOSPC, errno.EROFS])
def test_a_full_disk(tmp_path: Path, trouble: int, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cached(tmp_path, "k", DATA)

    def full(*_: Any) -> Any:
        raise OSError(trouble, os.strerror(trouble))

    monkeypatch.setattr(files.os, "fdopen", full)
    write_cached(tmp_path, "k", {"cycles": 1})
    assert read_cached(tmp_path, "k") == DATA and [file.name for file in tmp_path.iterdir()] == ["k.json"]


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert chosen_cache(None) is None and chosen_cache("x") == Path("x")
