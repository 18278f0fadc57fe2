"""A file that lines are added to, found by its name each time: who rotates it may move it away.

Owns how it is opened: made for its owner alone, never waited for (a pipe that nobody reads is an
error), and written behind whatever others wrote. Blocks as disks do: for workers.
"""

from __future__ import annotations

import os

from kafkalite.env import unix

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | unix.OF_OUR_OWN
_MODE = 0o600


def add(path: str, lines: bytes) -> None:
    """Raises OSError, also when only some of it could be written."""
    descriptor = os.open(path, _FLAGS, _MODE)
    try:
        left = memoryview(lines)
        while left:
            left = left[os.write(descriptor, left) :]
    finally:
        os.close(descriptor)
