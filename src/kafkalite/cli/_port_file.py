"""The file in which a program says on which port it serves."""

from __future__ import annotations

import os
import stat
from contextlib import suppress


def write_port(path: str, port: int, option: str = "--port-file") -> None:
    """In one step, so that who waits for the file never reads half of it, and nothing is left
    beside it. What is there and is no file (a device, a pipe with its reader) is written to as it
    is, and keeps its place. OSError, which names the file, when it cannot be written."""
    try:
        if _is_replaced(path):
            _replace(path, f"{port}\n")
        else:
            target = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
            with open(target, "w", encoding="ascii") as file:
                file.write(f"{port}\n")
    except OSError as reason:
        raise OSError(
            reason.errno, f"{option} cannot be written: {reason.strerror}", path
        ) from reason


def _replace(path: str, text: str) -> None:
    temporary = f"{path}.tmp"
    try:
        with open(temporary, "w", encoding="ascii") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _is_replaced(path: str) -> bool:
    with suppress(FileNotFoundError):
        return stat.S_ISREG(os.stat(path).st_mode)
    return True
