"""The file in which a program says on which port it serves."""

from __future__ import annotations

import os
import stat
from contextlib import suppress


def write_port(path: str, port: int) -> None:
    """In one step, so that who waits for the file never reads half of it. What is there and is no
    file (a device, a pipe with its reader) is written to as it is, and keeps its place."""
    if _is_replaced(path):
        temporary = f"{path}.tmp"
        with open(temporary, "w", encoding="ascii") as file:
            file.write(f"{port}\n")
        try:
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise
    else:
        target = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        with open(target, "w", encoding="ascii") as file:
            file.write(f"{port}\n")


def _is_replaced(path: str) -> bool:
    with suppress(FileNotFoundError):
        return stat.S_ISREG(os.stat(path).st_mode)
    return True
