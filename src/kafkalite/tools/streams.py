"""Standard input, output and errors as the caller left them: closed, full, or read by nobody."""

from __future__ import annotations

import io
import os
import select
import sys
from typing import Any


def take_up() -> None:
    """Puts something in the place of streams that the caller has closed: else the next files and
    sockets have their numbers. Reading the one or writing the other fails, as on a closed stream;
    what is said as an error is lost."""
    if sys.stdin is None:
        sys.stdin = _standing_in(0, os.O_WRONLY, "r")
    if sys.stdout is None:
        sys.stdout = _standing_in(1, os.O_RDONLY, "w")
    if sys.stderr is None:
        sys.stderr = _standing_in(2, os.O_WRONLY, "w")


def _standing_in(number: int, flags: int, mode: str) -> Any:
    found = os.open(os.devnull, flags)
    if found != number:
        os.dup2(found, number)
        os.close(found)
    return open(number, mode, encoding="utf-8", errors="replace", closefd=False)


def read_line() -> str:
    """The next line of standard input without its end; empty when there is none to be read."""
    try:
        return bytes(sys.stdin.buffer.readline()).decode(errors="replace").rstrip("\r\n")
    except OSError:
        return ""


def lose_what_cannot_be_written() -> None:
    """From here on the program goes on whatever becomes of its output, as one of Java does;
    `is_output_lost` tells whoever cares."""
    sys.stdout = _lenient(sys.stdout, "replace")
    sys.stderr = _lenient(sys.stderr, "backslashreplace")


def is_output_lost() -> bool:
    """Whether something that was flushed could not be written."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return isinstance(raw, _Lenient) and raw.is_lost


class _Lenient(io.RawIOBase):
    def __init__(self, stream: Any) -> None:
        self._stream = stream  # whose end would close the descriptor
        self.is_lost = False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self._stream.fileno())

    def isatty(self) -> bool:
        return bool(self._stream.isatty())

    def write(self, data: Any) -> int:
        while not self.is_lost:
            try:
                return os.write(self.fileno(), data)
            except BlockingIOError:  # somebody shares it who does not wait
                select.select([], [self.fileno()], [])
            except OSError:
                self.is_lost = True
        return len(data)


def _lenient(stream: Any, errors: str) -> Any:
    return io.TextIOWrapper(
        io.BufferedWriter(_Lenient(stream)), stream.encoding, errors,
        line_buffering=stream.line_buffering, write_through=True,  # bytes may come behind text
    )  # fmt: skip
