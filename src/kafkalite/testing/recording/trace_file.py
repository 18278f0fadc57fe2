"""The file of a trace: whole lines, whatever happens, and an older trace until there is a new one.

Owns when the file is made (with the first line, beside the older one, whose place it then takes),
and that its last line is whole. What is no regular file (a pipe, say) is written to as it is.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kafkalite.testing.recording.said import Said

STANDARD_OUTPUT = "-"


class TraceFile:
    """`to_line` makes the line of what was said, without its end."""

    def __init__(self, path: str, to_line: Callable[[Said], str]) -> None:
        """OSError when there can be no such file."""
        self._to_line = to_line
        if not path or os.path.isdir(path):
            raise IsADirectoryError(f"{path!r} is no name of a file")
        self._path = Path(os.path.realpath(path)) if path != STANDARD_OUTPUT else None
        self._file: int | None = None
        self._size = 0
        self._is_regular = self._path is not None and _is_regular(self._path)
        if self._path is not None and (self._is_regular or self._path.is_dir()):
            _expect_writable(self._path)

    def write(self, said: Said) -> None:
        """OSError when the line is not in the file; nothing of it is, then."""
        line = f"{self._to_line(said)}\n".encode()
        if self._file is None:
            self._begin(line)
        else:
            self._append(self._file, line)

    def close(self) -> None:
        """OSError when what was written may not last."""
        if self._file is None:
            return
        file, self._file = self._file, None
        try:
            if self._is_regular:
                os.fsync(file)
        finally:
            if self._path is not None:
                os.close(file)

    def _begin(self, line: bytes) -> None:
        if self._path is None:
            self._file = sys.stdout.fileno()
            self._append(self._file, line)
        elif not self._is_regular:
            self._file = os.open(self._path, os.O_WRONLY)
            self._append(self._file, line)
        else:
            self._take_place(self._path, line)

    def _take_place(self, path: Path, line: bytes) -> None:
        """Of an older trace, once there is a line that is worth it."""
        beside = path.with_name(f".{os.getpid()}-{id(self):x}.new")  # as long as it may be anywhere
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            self._append(file, line)
            os.fsync(file)  # a power cut must not leave neither of the two
            os.replace(beside, path)
        except OSError:
            os.close(file)
            beside.unlink(missing_ok=True)
            raise
        self._file = file

    def _append(self, file: int, line: bytes) -> None:
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[os.write(file, rest) :]
        except OSError:
            if self._is_regular:
                with suppress(OSError):
                    os.ftruncate(file, self._size)
            raise
        self._size += len(line)


def _is_regular(path: Path) -> bool:
    return not path.exists() or stat.S_ISREG(path.stat().st_mode)


def _expect_writable(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path.name)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"nothing may be written in {path.parent}")
