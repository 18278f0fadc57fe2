"""The live table of progress on a pseudo-terminal: whole, in its place, wherever it is drawn."""

import os
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.pseudo_terminal import COLOURED, Screen, Terminal

# Draws once for each byte that comes: how many rows are read. It ends with the bytes.
PROGRAM = """
import os, sys
from kafkalite.cli._pipeline_progress import watching
from kafkalite.pipelines.common.progress import Progress
partitions = int(sys.argv[2])
with watching("to-lake", "auto") as watch:
    while rows := os.read(int(sys.argv[1]), 1):
        behind = {("orders", number): 1000 + number for number in range(partitions)}
        watch(Progress(5000, rows=rows[0], rows_per_s=10.0, behind=behind, batch=0, reading=7))
print("the end")
"""

Start = Callable[..., "Drawing"]


class Drawing:
    """The program above, drawing when it is told to."""

    def __init__(self, columns: int, lines: int, partitions: int, **environment: str) -> None:
        theirs, self._ours = os.pipe()
        call = [sys.executable, "-c", PROGRAM, str(theirs), str(partitions)]
        self.terminal = Terminal(call, columns, lines, environment, pass_fds=[theirs])
        os.close(theirs)

    @property
    def screen(self) -> Screen:
        return self.terminal.screen

    def draw(self, rows: int) -> list[str]:
        os.write(self._ours, bytes([rows]))
        self.terminal.until(lambda terminal: self._has(rows))
        return self.screen.shown

    def _has(self, rows: int) -> bool:
        # The frame's end, or a sign that there was no line for it.
        shown = self.screen.shown
        has_rows = any(line.split()[:2] == ["rows", str(rows)] for line in shown)
        return has_rows and any(line.strip()[0] in "└." for line in shown)

    def end(self) -> list[str]:
        os.close(self._ours)
        self._ours = -1
        assert self.terminal.to_the_end() == 0
        return self.screen.shown

    def close(self) -> None:
        if self._ours >= 0:
            os.close(self._ours)
        self.terminal.close()


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[Drawing] = []

    def start(columns: int, lines: int, partitions: int = 2, **environment: str) -> Drawing:
        started.append(Drawing(columns, lines, partitions, **environment))
        return started[-1]

    yield start
    for each in started:
        each.close()


def test_the_table_is_drawn_over_itself(start: Start) -> None:
    drawing = start(80, 24)
    first = drawing.draw(1)
    assert first[0] == "to-lake"
    assert first[1].split() == ["rows", "1", "in", "0", "batches"]
    assert [line.split() for line in first[-3:-1]] == [
        ["│", "orders", "│", "1", "│", "1,001", "│"],
        ["│", "orders", "│", "0", "│", "1,000", "│"],
    ]
    assert drawing.screen.cursor_is_hidden
    for rows in range(2, 9):
        shown = drawing.draw(rows)
        assert (len(shown), shown[0]) == (len(first), "to-lake")
    # It stays, the cursor is back, and what is said next stands below.
    assert drawing.end() == [*shown, "the end"]
    after = drawing.screen
    assert (after.cursor_is_hidden, after.unknown) == (False, set())


@pytest.mark.parametrize(("columns", "lines"), [(30, 24), (80, 15), (20, 10), (200, 60)])
def test_it_fits_into_any_terminal(start: Start, columns: int, lines: int) -> None:
    drawing = start(columns, lines, partitions=100)
    first = drawing.draw(1)
    for rows in (2, 3):
        assert len(drawing.draw(rows)) == len(first) <= lines
    assert [line for line in drawing.screen.shown if line.startswith("to-lake")] == ["to-lake"]
    is_tiny = lines < 20
    assert is_tiny or any(line.startswith("… and ") for line in first)
    # A line that a terminal wraps would not be drawn over.
    assert drawing.screen.wrapped == 0


def test_it_takes_the_size_that_a_terminal_is_given(start: Start) -> None:
    drawing = start(100, 40, partitions=40)
    wide = drawing.draw(1)
    drawing.terminal.resize(40, 20)
    narrow = drawing.draw(2)
    assert len(narrow) <= 20 < len(wide) + 10
    assert drawing.screen.wrapped == 0
    drawing.terminal.resize(100, 40)
    assert len(drawing.draw(3)) >= len(narrow)


def test_it_has_no_colours_where_none_are_wanted(start: Start) -> None:
    drawing = start(80, 24, NO_COLOR="1")
    drawing.draw(1)
    drawing.end()
    assert not COLOURED.search(drawing.terminal.said)


def test_a_terminal_that_can_do_nothing_gets_lines(start: Start) -> None:
    """A table cannot be drawn over itself there; the first line comes after ten seconds."""
    drawing = start(80, 24, TERM="dumb")
    os.write(drawing._ours, b"\x01\x02\x03")
    assert drawing.end() == ["the end"]
    assert "\x1b" not in drawing.terminal.said
