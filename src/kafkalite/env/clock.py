"""Time: the wall clock, the monotonic clock and timers, real or owned by a test.

Owns every reading of time and every timer of the broker. It never runs a callback on another thread
than the one that owns it. Invariant: timers fire in the order of their deadlines, and those of one
deadline in the order in which they were set.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A callback that is due; cancelling one that has fired does nothing."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """Where the broker reads time and sets timers."""

    def now_ms(self) -> int:
        """Wall clock, milliseconds since 1970; may jump in both directions."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds since some moment; never goes back."""
        ...

    def processor_ns(self) -> int:
        """For how long this thread has been at work, in nanoseconds since some moment."""
        ...

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Timer: ...


class RealClock:
    """The machine's clock, with timers on an asyncio event loop."""

    __slots__ = ("_loop",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def processor_ns(self) -> int:
        return time.thread_time_ns()

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        return self._loop.call_later(delay_ms / 1000, callback)


class ManualTimer:
    """A timer of a `ManualClock`."""

    __slots__ = ("callback", "due_ms")

    def __init__(self, due_ms: int, callback: Callable[[], None]) -> None:
        self.due_ms = due_ms
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualClock:
    """Time that stands still until `advance` is called; then every timer on the way fires at its
    own moment."""

    __slots__ = ("_monotonic_ms", "_order", "_spent_ms", "_timers", "_wall_offset_ms")

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._monotonic_ms = self._spent_ms = 0
        self._wall_offset_ms = now_ms
        self._order = itertools.count()
        self._timers: list[tuple[int, int, ManualTimer]] = []

    def now_ms(self) -> int:
        return self._wall_offset_ms + self._monotonic_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def processor_ns(self) -> int:
        return self._spent_ms * 1_000_000

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> ManualTimer:
        timer = ManualTimer(self._monotonic_ms + max(0, delay_ms), callback)
        heapq.heappush(self._timers, (timer.due_ms, next(self._order), timer))
        return timer

    def advance(self, duration_ms: int) -> None:
        """Lets time pass, firing the timers that fall due, also those that fired timers set on the
        way."""
        end_ms = self._monotonic_ms + duration_ms
        while self._timers and self._timers[0][0] <= end_ms:
            due_ms, _, timer = heapq.heappop(self._timers)
            self._monotonic_ms = max(self._monotonic_ms, due_ms)
            callback, timer.callback = timer.callback, None
            if callback is not None:
                callback()
        self._monotonic_ms = max(self._monotonic_ms, end_ms)

    def next_due_ms(self) -> int | None:
        """How long until the next live timer, or None when nothing is set."""
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
        return self._timers[0][0] - self._monotonic_ms if self._timers else None

    def spend(self, duration_ms: int) -> None:
        """Lets time pass that something takes which is being done: timers have to wait for it."""
        self._monotonic_ms += duration_ms
        self._spent_ms += duration_ms

    def jump(self, duration_ms: int) -> None:
        """Moves the wall clock alone, as a person or a time server does; no timer fires."""
        self._wall_offset_ms += duration_ms
