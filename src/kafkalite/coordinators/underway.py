"""What a shard has under way over several turns of the loop; its other events wait meanwhile.

Owns whose event that is, and its place in the loop's slices. Decides nothing. Invariant: one thing
at a time, and its end is told once, or never when it was given up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kafkalite.coordinators.asked import Waiter
from kafkalite.env.clock import Clock, Timer
from kafkalite.env.slicing import Slices, Steps, Work, caught

T = TypeVar("T")


class Underway:
    """A pause, or steps."""

    __slots__ = ("_clock", "_pause", "_slices", "_work", "is_busy", "later")

    def __init__(self, clock: Clock, slices: Slices) -> None:
        self._clock = clock
        self._slices = slices
        self._pause: Timer | None = None
        self._work: Work | None = None
        self.is_busy = False
        self.later: Waiter | None = None  # who waits for what the steps are for

    def pause(self, pause_ms: int, go_on: Callable[[], None]) -> None:
        def over() -> None:
            self._pause, self.is_busy = None, False
            go_on()

        assert not self.is_busy, "two things are under way"
        self.is_busy = True
        self._pause = self._clock.call_later(pause_ms, over)

    def work_off(
        self, steps: Steps[T], later: Waiter | None, done: Callable[[T | Exception], None]
    ) -> None:
        """Has it done from the next turn on; `done` is told what came of it, or what went wrong."""

        def over(outcome: T | Exception) -> None:
            self._work = self.later = None
            self.is_busy = False
            done(outcome)

        assert not self.is_busy, "two things are under way"
        self.is_busy, self.later = True, later
        self._work = Work(caught(steps), over, owner=self)
        self._slices.enter(self._work)

    def give_up(self) -> Waiter | None:
        """Does no more of it; returns who waited."""
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        if self._work is not None:
            self._work = None
            self._slices.drop(self)
        self.is_busy = False
        later, self.later = self.later, None
        return later
