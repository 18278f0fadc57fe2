"""A pseudo-terminal of a size, the program in it, and what stands on its screen.

Owns as much of a terminal as programs here use: lines that wrap and scroll, cursor movements up and
to a line's beginning, erased lines. Anything else that a program says to it is kept by name.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence

# A control sequence, or one character.
TOKEN = re.compile(r"\x1b\[(?P<given>[?0-9;]*)(?P<what>[A-Za-z])|(?P<other>.|\n)", re.DOTALL)
COLOURED = re.compile(r"\x1b\[[0-9;]*(3[0-8]|4[0-8]|9[0-7])[0-9;]*m")


class Screen:
    """What a terminal of this size shows."""

    def __init__(self, columns: int, lines: int) -> None:
        self.columns, self.height = columns, lines
        self.rows = [""] * lines
        self.unknown: set[str] = set()
        self.wrapped = 0
        self.cursor_is_hidden = False
        self._row = self._column = 0

    def feed(self, text: str) -> None:
        for found in TOKEN.finditer(text):
            if found["what"]:
                self._control(found["given"], found["what"])
            else:
                self._put(found["other"])

    def resize(self, columns: int, lines: int) -> None:
        """As xterm does: what does not fit is cut."""
        gone = max(0, self._row - lines + 1)
        self.rows = [*self.rows[gone:], *([""] * lines)][:lines]
        self.rows = [row[:columns] for row in self.rows]
        self._row, self.columns, self.height = self._row - gone, columns, lines

    def _control(self, given: str, what: str) -> None:
        count = int(given) if given.isdigit() else 1
        match given, what:
            case _, "A":
                self._row = max(0, self._row - count)
            case "2", "K":
                self.rows[self._row] = ""
            case "?25", "l" | "h":
                self.cursor_is_hidden = what == "l"
            case _, "m":
                pass
            case _:
                self.unknown.add(given + what)

    def _put(self, each: str) -> None:
        if each == "\r":
            self._column = 0
        elif each == "\n":
            self._down()
        else:
            if self._column == self.columns:
                self.wrapped += 1
                self._column = 0
                self._down()
            row = self.rows[self._row].ljust(self._column)
            self.rows[self._row] = row[: self._column] + each + row[self._column + 1 :]
            self._column += 1

    def _down(self) -> None:
        if self._row == self.height - 1:
            self.rows = [*self.rows[1:], ""]
        else:
            self._row += 1

    @property
    def shown(self) -> list[str]:
        """Lines with something on them."""
        return [row.rstrip() for row in self.rows if row.strip()]


class Terminal:
    """A program in a pseudo-terminal."""

    def __init__(
        self,
        call: Sequence[str],
        columns: int = 80,
        lines: int = 24,
        environment: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        self.screen = Screen(columns, lines)
        self.said = ""
        self._ours, theirs = pty.openpty()
        self._set_size(columns, lines)
        # Its size is the terminal's, whoever started the tests.
        kept = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.process = subprocess.Popen(
            call,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**kept, "TERM": "xterm-256color", **(environment or {})},
            pass_fds=pass_fds,
            start_new_session=True,
        )
        os.close(theirs)

    def resize(self, columns: int, lines: int) -> None:
        self._set_size(columns, lines)
        self.screen.resize(columns, lines)
        os.killpg(self.process.pid, signal.SIGWINCH)

    def _set_size(self, columns: int, lines: int) -> None:
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, size)

    def until(self, is_so: Callable[[Terminal], bool], timeout_s: float = 30.0) -> None:
        """Reads until it is so, or the program has ended and was not."""
        deadline = time.monotonic() + timeout_s
        while not is_so(self):
            left = deadline - time.monotonic()
            assert left > 0, f"never came: {self.screen.shown}"
            assert self._read(left), f"ended before: {self.screen.shown}"

    def to_the_end(self, timeout_s: float = 30.0) -> int:
        deadline = time.monotonic() + timeout_s
        while self._read(max(0.0, deadline - time.monotonic())):
            pass
        return self.process.wait(max(1.0, deadline - time.monotonic()))

    def _read(self, timeout_s: float) -> bool:
        """False at the end, or when nothing came."""
        if not select.select([self._ours], [], [], timeout_s)[0]:
            return False
        try:
            text = os.read(self._ours, 65_536).decode(errors="replace")
        except OSError:
            return False
        self.said += text
        self.screen.feed(text)
        return bool(text)

    def close(self) -> None:
        """Ends the program, if it still runs."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._ours)
