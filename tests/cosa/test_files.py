"""Files: every way in which one can be broken ends in one clear error; writing is all or nothing."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from cosa.common.errors import InputError, nearest_of, shown
from cosa.common.files import read_data, require_writable, write_atomic
from cosa.model.layer import Layer

PLAIN = {"R": 3, "S": 3, "P": 8, "Q": 8, "C": 4, "K": 16, "N": 1}
YAML = "".join(f"{key}: {value}\n" for key, value in PLAIN.items())
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def refused(path: Path, content: str | bytes) -> str:
    """The one-line error of a layer file with this content."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as caught:
        Layer.from_file(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    assert len(text) < 1000
    return text


BROKEN: list[tuple[str, str | bytes, str]] = [
    ("layer.yaml", "", "the file is empty"),
    ("layer.json", "  \n", "the file is empty"),
    ("layer.yaml", "# only a comment\n", "not a mapping (found None)"),
    ("layer.yaml", "- 1\n- 2\n", "not a mapping (found [1, 2])"),
    ("layer.json", "[1, 2]", "not a mapping (found [1, 2])"),
    ("layer.yaml", "just words", "not a mapping (found 'just words')"),
    ("layer.json", "3", "not a mapping (found 3)"),
    ("layer.json", json.dumps(PLAIN)[:-9], "not valid JSON at line 1"),
    ("layer.json", '{"R": 3,\n "S": }', "not valid JSON at line 2, column 7"),
    ("layer.json", '{"R": 3, "R": 4}', "key 'R' is given twice"),
    ("layer.json", '{"word_bits": {"inputs": 8, "inputs": 8}}', "key 'inputs' is given twice"),
    ("layer.yaml", YAML + "K: 16\n", "at line 8, column 1: key 'K' is given twice"),
    ("layer.yaml", YAML + "word_bits: {inputs: 8, inputs: 9}\n", "key 'inputs' is given twice"),
    ("layer.yaml", "R: [1, 2\nS: 3", "not valid YAML at line 2"),
    ("layer.yaml", "R: 3\n\tS: 3\n", "not valid YAML at line 2"),
    ("layer.yaml", YAML + "---\n" + YAML, "not valid YAML at line 8"),
    ("layer.yaml", "R: !!python/object/apply:os.getcwd []", "not valid YAML at line 1"),
    ("layer.yaml", "? [a, b]\n: 1\n", "a key must be text"),
    ("layer.yaml", YAML + "notes: !!set {a, b}\n", "notes: not plain data"),
    ("layer.yaml", YAML + "name: !!binary aGVsbG8=\n", "name: not plain data (found b'hello')"),
    ("layer.yaml", YAML.replace("K: 16", "K: .nan"), "K: not valid (found nan)"),
    ("layer.yaml", YAML.replace("K: 16", "K: .inf"), "K: not valid (found inf)"),
    ("layer.yaml", YAML.replace("K: 16", "K: -.inf"), "K: not valid (found -inf)"),
    ("layer.yaml", YAML.replace("K: 16", "K: 1e3"), "K: not valid (found 1000.0)"),
    ("layer.yaml", YAML.replace("K: 16", "K: yes"), "K: not valid (found True)"),
    ("layer.yaml", YAML.replace("K: 16", "K:"), "K: not valid (found None)"),
    ("layer.json", json.dumps(PLAIN | {"K": float("nan")}), "K: not valid (found nan)"),
    ("layer.json", json.dumps(PLAIN | {"K": float("-inf")}), "K: not valid (found -inf)"),
    ("layer.yaml", YAML.replace("K: 16", "K: 1" + "0" * 5000), "far too many digits"),
    ("layer.json", '{"K": 1' + "0" * 5000 + "}", "far too many digits"),
    ("layer.json", '{"K": 1' + "0" * 4000 + "}", "far too many digits"),
    ("layer.yaml", YAML + "1: 2\n", "1: unknown key"),
    ("layer.yaml", YAML + "2020-01-01: 2\n", "2020-01-01: unknown key"),
    ("layer.yaml", YAML + "null: 2\n", "unknown key"),
    ("layer.json", '{"name": "\\ud800"}', "name: not text"),
    ("layer.json", '{"\\ud800": 1}', "not text"),
    ("layer.json", "[" * 100000, "nested too deeply"),
    ("layer.json", '{"notes": ' + "[" * 500 + "]" * 500 + "}", "nested too deeply"),
    ("layer.yaml", "notes: " + "[" * 200 + "]" * 200, "nested too deeply"),
    ("layer.yaml", "notes: " + "[" * 5000, "nested too deeply"),
    ("layer.yaml", "notes: &a [*a]\n", "nested too deeply"),
    ("layer.yaml", b"\x89PNG\r\n\x1a\n\x00\xff\xfe", "cannot be read: not UTF-8 text"),
    ("layer.json", b"\x00\x01\x02", "not valid JSON"),
    ("layer.yaml", b"R: 3\x00\n", "special characters are not allowed"),
    ("layer.json", json.dumps(PLAIN).encode("utf-16"), "not UTF-8 text"),
    (
        "layer.yaml",
        "kind: architecture\nname: x\n",
        "kind: wrong kind of file (found 'architecture'); allowed: 'layer'",
    ),
]


@pytest.mark.parametrize(("name", "content", "says"), BROKEN, ids=lambda part: repr(part)[:30])
def test_broken_files(tmp_path: Path, name: str, content: str | bytes, says: str) -> None:
    assert says in refused(tmp_path / name, content)


def test_references_that_multiply_are_refused_early(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert "too large" in refused(tmp_path / "layer.yaml", "\n".join(lines))


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    for name, content in (("a.json", json.dumps(PLAIN)), ("a.yaml", YAML)):
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + content.encode())
        assert Layer.from_file(tmp_path / name) == Layer.from_data(PLAIN)


def test_endings_and_line_ends(tmp_path: Path) -> None:
    for name, content in (
        ("a.JSON", json.dumps(PLAIN)),
        ("a.txt", json.dumps(PLAIN)),
        ("b", YAML.replace("\n", "\r\n")),
    ):
        (tmp_path / name).write_bytes(content.encode())
        assert Layer.from_file(tmp_path / name) == Layer.from_data(PLAIN)


def test_yaml_references_and_merges_may_be_used(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("base: &base {x: 1, y: 2}\nother: {<<: *base, y: 3}\nagain: *base\n")
    assert read_data(path) == {"base": {"x": 1, "y": 2}, "other": {"x": 1, "y": 3}, "again": {"x": 1, "y": 2}}


@pytest.mark.parametrize(
    "name", ["1e5", "643e90", "12", "true", "null", "2020-01-01", "0x10", "a: b", "- a", "1_0", "ü"]
)
@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_text_that_looks_like_something_else_comes_back_as_text(tmp_path: Path, name: str, ending: str) -> None:
    Layer.from_data(PLAIN | {"name": name}).to_file(tmp_path / f"a.{ending}")
    assert Layer.from_file(tmp_path / f"a.{ending}").name == name


def test_numbers_with_an_exponent_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a: 1e3\nb: 1.5E-2\nc: 643e902f\nd: -2e+1\n")
    assert read_data(path) == {"a": 1000.0, "b": 0.015, "c": "643e902f", "d": -20.0}


def test_a_missing_file_names_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "layer.yaml").write_text(YAML)
    with pytest.raises(InputError, match=r"no such file; did you mean layer\.yaml\?"):
        Layer.from_file(tmp_path / "layers.yaml")
    with pytest.raises(InputError, match=r"no such file$"):
        Layer.from_file(tmp_path / "nowhere" / "layers.yaml")


@pytest.mark.parametrize(
    ("name", "says"), [("", "is a directory"), ("x" * 300, "name too long"), ("a.yaml/b", "not a dir")]
)
def test_what_cannot_be_read(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "a.yaml").write_text(YAML)
    with pytest.raises(InputError, match="cannot be read") as caught:
        Layer.from_file(tmp_path / name)
    assert says in str(caught.value).lower()


def test_values_in_messages_are_short_and_never_fail() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert shown(deep) == "a list"
    assert shown(10**5000) == "a int"
    assert len(shown("x" * 10_000)) == 80
    while deep:
        deep = deep[0]


def test_nearest() -> None:
    assert nearest_of("weigths", ["inputs", "weights"]) == "weights"
    assert nearest_of("k", ["K", "C"]) == "K"
    assert nearest_of("zebra", ["K", "C"]) is None


def entries(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_writing(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for text in ("one", "two"):
        require_writable(path)
        write_atomic(path, text)
        assert path.read_text() == text
    assert entries(tmp_path) == ["a.json"]


def test_a_new_file_has_the_usual_mode_and_an_old_one_keeps_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    old = os.umask(0o027)
    try:
        write_atomic(path, "one")
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    write_atomic(path, "two")
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "real" / "a.json")
    for text in ("one", "two"):
        require_writable(link)
        write_atomic(link, text)
        assert link.is_symlink()
        assert (tmp_path / "real" / "a.json").read_text() == text


def test_a_name_of_the_longest_length(tmp_path: Path) -> None:
    require_writable(tmp_path / ("x" * 255))
    write_atomic(tmp_path / ("x" * 255), "one")
    assert entries(tmp_path) == ["x" * 255]


@pytest.mark.parametrize("write", [require_writable, lambda path: write_atomic(path, "x")])
def test_where_nothing_can_be_written(tmp_path: Path, write: Any) -> None:
    (tmp_path / "file").write_text("kept")
    for name, says in (
        ("missing/a.json", "its folder does not exist"),
        (".", "it is a folder"),
        ("file/a.json", "not a directory"),
        ("x" * 256, "file name too long"),
    ):
        with pytest.raises(InputError) as caught:
            write(tmp_path / name)
        assert f"cannot be written: {says}" in str(caught.value)
    assert entries(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.parametrize("write", [require_writable, lambda path: write_atomic(path, "x")])
def test_a_write_protected_file_is_not_replaced(tmp_path: Path, write: Any) -> None:
    path = tmp_path / "a.json"
    path.write_text("kept")
    path.chmod(0o444)
    with pytest.raises(InputError, match="cannot be written: the file is write-protected"):
        write(path)
    assert path.read_text() == "kept"
    assert entries(tmp_path) == ["a.json"]


@pytest.mark.skipif(ROOT, reason="the superuser may write into any folder")
def test_a_write_protected_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(InputError, match="cannot be written: permission denied"):
            require_writable(tmp_path / "a.json")
    finally:
        tmp_path.chmod(0o755)


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError(28, "No space left on device"), MemoryError])
def test_a_failure_while_writing_leaves_the_old_file(tmp_path: Path, monkeypatch: Any, failure: Any) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")

    def fail(*_: Any) -> None:
        raise failure

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises((KeyboardInterrupt, InputError, MemoryError)):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert entries(tmp_path) == ["a.json"]


def test_devices_are_written_not_replaced() -> None:
    require_writable("/dev/null")
    write_atomic("/dev/null", "x")
    assert not Path("/dev/null").is_file()
