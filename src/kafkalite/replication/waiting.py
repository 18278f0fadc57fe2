"""Replies that wait for a partition to move: long-poll fetches and acknowledgements.

Owns the parked attempts and their deadlines; knows nothing of requests. An attempt is tried again
after its partitions moved, at most once per turn of the event loop however often they moved, and a
last time when its deadline has come. Invariant: a finished attempt is parked nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from kafkalite.env.clock import Clock, Timer


class Watched(Protocol):
    """Something whose progress can be waited for."""

    def watch(self, parked: Parked) -> None: ...

    def unwatch(self, parked: Parked) -> None: ...


class Parked:
    """One attempt that is tried until it succeeds or its time is up."""

    __slots__ = ("_attempt", "_is_due", "_timer", "_waiting", "_watched")

    def __init__(self, waiting: Waiting, attempt: Callable[[bool], bool]) -> None:
        self._waiting = waiting
        self._attempt = attempt
        self._watched: tuple[Watched, ...] = ()
        self._timer: Timer | None = None
        self._is_due = False

    def start(self, watched: Iterable[Watched], delay_ms: int) -> None:
        self._watched = tuple(watched)
        for one in self._watched:
            one.watch(self)
        self._timer = self._waiting.clock.call_later(delay_ms, self._expire)

    def moved(self) -> None:
        """One of the watched has moved: have the attempt tried again this turn."""
        if not self._is_due and self._timer is not None:
            self._is_due = True
            self._waiting.due(self)

    def cancel(self) -> None:
        """Forget the attempt, for example because nobody is left to reply to."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            for one in self._watched:
                one.unwatch(self)
            self._watched = ()

    def retry(self) -> None:
        self._is_due = False
        if self._timer is not None and self._attempt(False):
            self.cancel()

    def _expire(self) -> None:
        if self._timer is not None:
            self.cancel()
            self._attempt(True)


class Waiting:
    """All parked attempts of one broker, and those of them to be tried this turn."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._due: list[Parked] = []

    def park(
        self, watched: Iterable[Watched], delay_ms: int, attempt: Callable[[bool], bool]
    ) -> Parked:
        """Call `attempt(is_last)` after moves of the watched until it returns True."""
        parked = Parked(self, attempt)
        parked.start(watched, delay_ms)
        return parked

    def due(self, parked: Parked) -> None:
        if not self._due:
            self.clock.call_later(0, self._retry_due)
        self._due.append(parked)

    def _retry_due(self) -> None:
        due, self._due = self._due, []
        for parked in due:
            parked.retry()
