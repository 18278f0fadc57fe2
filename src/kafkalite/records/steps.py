"""Work that is done a piece at a time, so that others get their turn in between.

A generator that yields nothing, after at most some milliseconds of work each, and returns what came
of it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]


def finish(steps: Steps[T]) -> T:
    """What comes of it, all in one go."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result
