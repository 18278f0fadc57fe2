"""The file that tells who waits for it on which port a program listens."""

from __future__ import annotations

import os
from contextlib import suppress


def write_port(path: str, port: int) -> None:
    """In one step, so that who waits for the file never reads half of it; nothing is left beside
    it. OSError, which names the file, when it cannot be written."""
    temporary = f"{path}.tmp"
    try:
        with open(temporary, "w", encoding="ascii") as file:
            file.write(f"{port}\n")
        os.replace(temporary, path)
    except OSError as reason:
        with suppress(OSError):
            os.unlink(temporary)
        raise OSError(
            reason.errno, f"--port-file cannot be written: {reason.strerror}", path
        ) from reason
