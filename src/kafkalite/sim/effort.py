"""How much is done in one turn of the loop, counted and not timed: the same on every machine.

Owns a clock that counts the calls which each of its callbacks makes, of Python's functions and of
those in C, and keeps the heaviest. Some four thousand of them take a millisecond.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, TypeVar

from kafkalite.env.clock import ManualClock, ManualTimer

T = TypeVar("T")

# In one turn; some six milliseconds.
MOST_CALLS = 25_000
_KEPT_PLACES = 6
_CALLS = ("call", "c_call")  # the latter are their callers'
_COUNTED, _WORLD = "kafkalite.", "kafkalite.sim."  # what the world itself does takes no time in it


@dataclass(slots=True)
class Turn:
    """What one turn did."""

    calls: int = 0
    places: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        most = ", ".join(f"{name} {n}" for name, n in self.places.most_common(_KEPT_PLACES))
        return f"{self.calls} calls in one turn: {most}"


class CountingClock(ManualClock):
    """A clock that stands still, and knows the heaviest of the turns since `begin`."""

    __slots__ = ("heaviest",)

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        super().__init__(now_ms)
        self.heaviest = Turn()

    def begin(self) -> None:
        """What was heavy until now does not count."""
        self.heaviest = Turn()

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> ManualTimer:
        return super().call_later(delay_ms, lambda: self.turn(callback))

    def turn(self, callback: Callable[[], T]) -> T:
        """Calls back, as a turn of its own also when it is within another."""
        turn = Turn()

        def count(frame: FrameType, event: str, _: Any) -> None:
            module = frame.f_globals.get("__name__", "")
            if event in _CALLS and module.startswith(_COUNTED) and not module.startswith(_WORLD):
                turn.calls += 1
                turn.places[f"{module}.{frame.f_code.co_name}"] += 1

        outer = sys.getprofile()
        sys.setprofile(count)
        try:
            return callback()
        finally:
            sys.setprofile(outer)
            if turn.calls > self.heaviest.calls:
                self.heaviest = turn
