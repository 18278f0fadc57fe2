"""Standard input, output and errors as the caller left them: closed, full, or read by nobody."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
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


def leave_output() -> None:
    """So that the interpreter's end does not try again what cannot be written."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError, ValueError):  # another program's stand-in for an output
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
