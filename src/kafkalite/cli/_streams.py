"""Output that cannot be written any more, at a command's end."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


def leave_output() -> None:
    """So that the interpreter's end does not try again what cannot be written."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError, ValueError):  # another program's stand-in for an output
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
