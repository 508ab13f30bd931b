"""Tables and the bar: plain text wherever it goes, and quick to be there."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosa.common.progress import Progress, duration
from cosa.common.tables import WIDTH, table

CELLS = st.text("abc[]/\\019.,:%{}<>=*_~`#|é+- ", max_size=12).map(str.rstrip)


def by_hand(rows: list[list[str]], left: int) -> list[str]:
    """The definition: columns as wide as their cells, two blanks apart, or one where that is too wide."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    gap = "  " if sum(widths) + 2 * len(widths) - 2 <= WIDTH else " "
    lines = []
    for row in rows:
        cells = [
            cell.ljust(w) if n < left else cell.rjust(w) for n, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(gap.join(cells).rstrip())
    return lines


@given(st.integers(1, 9).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1, max_size=6)))
def test_tables_by_their_definition(rows: list[list[str]]) -> None:
    for left in (0, 1, 2):
        assert table(rows[0], rows[1:], left) == by_hand(rows, left)


def test_columns_that_stand_in_line() -> None:
    rows = [["  one", "1", "x"], ["  a name that is longer", "12,345", "y"]]
    assert table(["what", "count", "why"], rows, left=(0, 2), widths=(8, 6, 0)) == [
        "what                     count why",
        "  one                        1 x",
        "  a name that is longer 12,345 y",
    ]
    assert table(["what", "count"], [["one", "1"]], widths=(8, 6)) == ["what      count", "one           1"]


def test_wide_letters_and_lines() -> None:
    assert table(["a", "b"], [["層", "1"], ["x\ny", "2"]]) == ["a    b", "層   1", "x y  2"]


@pytest.mark.parametrize("name", ["COLUMNS", "FORCE_COLOR", "TERM", "JUPYTER_COLUMNS", "TTY_COMPATIBLE"])
def test_nothing_of_the_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "7")
    assert table(["name", "cycles"], [["a" * 100, "1" * 100]])[1] == "a" * 100 + " " + "1" * 100


def test_lists_are_quick() -> None:
    script = "import sys, cosa.commands.main as m; m.main(['networks']); print('rich.progress' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("network") and done.stdout.endswith("False\n")


class Screen(io.StringIO):
    """A terminal, or a file."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    @property
    def text(self) -> str:
        """What was written, without what moves the cursor and colours."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue())


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setenv("TERM", "xterm")
    return now


def test_the_bar_on_a_terminal(clock: list[float]) -> None:
    screen = Screen(True)
    with Progress("points", stream=screen) as bar:
        bar(10, 100)  # done before
        assert screen.text == ""
        clock[0] = 90.0
        bar(40, 100, 5)
        # 30 points in 90 s: 60 more take 180 s
        assert "━" in screen.text and screen.text.rstrip().endswith(" 40 of 100 points, 5 failed, 3 min left")
        clock[0] = 90.1
        bar(41, 100, 5)
        assert "41" not in screen.text
        clock[0] = 91.0
        bar.show("[bold]as it stands")
        assert "[bold]as it stands" in screen.text
        assert "\x1b[?25l" in screen.getvalue()  # the cursor is hidden
    assert screen.getvalue().rstrip().endswith("\x1b[2K") and "\x1b[?25h" in screen.getvalue()


def test_the_bar_elsewhere(clock: list[float]) -> None:
    quiet, log = Screen(False), Screen(False)
    for stream, seconds in ((quiet, None), (log, 60.0)):
        clock[0] = 0.0
        with Progress("points", seconds, stream) as bar:
            for second in range(0, 200, 10):
                clock[0] = float(second)
                bar(second, 200)
    assert quiet.getvalue() == ""
    assert log.getvalue().splitlines()[0] == "60 of 200 points, 2 min 20 s left"
    assert len(log.getvalue().splitlines()) == 3


def test_what_begins_anew(clock: list[float]) -> None:
    screen = Screen(True)
    bar = Progress(stream=screen)
    assert bar.left(0.0, 1.0) == ""
    clock[0] = 10.0
    assert bar.left(0.5, 1.0) == ", 10 s left"
    bar.restart()
    assert bar.left(0.1, 1.0) == ""
    clock[0] = 11.0
    assert bar.left(0.2, 1.0) == ", 8 s left" and bar.left(1.0, 1.0) == ""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.6, "1 min"), (750, "12 min 30 s"), (12_000, "3 h 20 min"), (187_200, "2 d 4 h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_one_place_for_bars() -> None:
    """Nobody else draws over a line of the terminal."""
    root = Path(__file__).parents[2]
    others = [
        path
        for package in ("cosa", "nocsim", "dram", "scripts")
        for path in (root / package).rglob("*.py")
        if 'f"\\r' in path.read_text() or '"\\r" +' in path.read_text()
    ]
    assert others == []
